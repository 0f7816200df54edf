/* SPDX-License-Identifier: Apache-2.0
 * Money for the predictions of a batch: one charge per sample, one transaction for all of them.
 *
 * The samples of a request with the idempotency key K have the keys "K", "K 1", "K 2", ... in the
 * ledger; K itself has no blanks. The answer is kept with the first. A request that was paid before gets
 * that answer, whatever the price and the run are by now. One that was cut short by a low balance may be
 * sent again: what is paid stays paid, and only the rest is charged. */
#include "serve/serve.h"

#include <math.h>

enum { LEDGER_KEY = 256, MOST_ANSWER = 65536, LABEL = FDS__NUMBER };

/* The key of sample k in the ledger. */
static const char *write_key(const serve_job *job, size_t k, char out[LEDGER_KEY]) {
    snprintf(out, LEDGER_KEY, k ? "%s %zu" : "%s", job->key, k);
    return out;
}

/* ---- answers ---- */

/* What is sent for a paid job: the body with the numbers of its entries. */
static fds_status send(serve_job *job, const oip_body *body, bool is_repeated, fds_error *err) {
    serve_reply *r = &job->reply;
    *r = (serve_reply){.status = 200, .type = SERVE_JSON, .is_repeated = is_repeated};
    return body->hole_count <= job->request.count
               ? oip_finish(body, job->receipts, &r->body, &r->json_size, err)
               : fds__fail(err, FDS_ERR_CORRUPT,
                           "a kept answer has other samples than its request");
}

/* The same with the answer that was kept under the key. */
static fds_status send_kept(serve_job *job, const void *answer, size_t size, fds_error *err) {
    oip_body body = {0};
    fds_status status = oip_unpack(answer, size, &body, err);
    if (status == FDS_OK)
        status = send(job, &body, true, err);
    oip_body_free(&body);
    return status;
}

/* It is paid, but cannot be told: the same key asks again. */
static void fail_sending(fds_server *server, serve_job *job, const fds_error *err) {
    serve_log_event(server, "failure", err->text);
    serve_refuse(&job->reply, 500, "%s", err->text);
}

static void refuse_reuse(serve_job *job, const char *reason) {
    serve_refuse(&job->reply, 422, "the Idempotency-Key was used for another request: %s", reason);
}

/* ---- before anything is computed ---- */

/* Looks for the samples in the ledger, in their order, until one is not paid: *paid. The first sets
 * *first, whose answer is the caller's. */
static fds_status look_for(const fds_server *server, serve_job *job, size_t *paid,
                           fds_charge *first, fds_error *err) {
    char key[LEDGER_KEY];
    for (*paid = 0; *paid < job->request.count; ++*paid) {
        fds_charge c = {.customer = job->customer, .key = write_key(job, *paid, key)};
        memcpy(c.fingerprint, job->fingerprint, sizeof c.fingerprint);
        TRY(fds_ledger_repeat(server->ledger, &c, err));
        if (*paid == 0)
            *first = c;
        if (c.status != FDS_OK || !c.is_repeated)
            break;
        job->receipts[*paid] = c.index;
    }
    return FDS_OK;
}

static void fail_reading(fds_server *server, serve_job *job, const fds_error *err) {
    atomic_fetch_add(&server->metrics.ledger_failures, 1);
    serve_log_event(server, "ledger", err->text);
    serve_refuse(&job->reply, 503, "the ledger cannot be read");
    job->reply.retry_s = 1;
}

/* A job whose key was paid before is answered. */
static void repeat(fds_server *server, serve_job *job) {
    fds_charge first = {0};
    fds_error err = {0};
    size_t paid;
    fds_status status = look_for(server, job, &paid, &first, &err);
    if (status != FDS_OK) {
        fail_reading(server, job, &err);
    } else if (first.status != FDS_OK) {
        refuse_reuse(job, first.reason);
    } else if (paid == job->request.count) {
        atomic_fetch_add(&server->metrics.repeated, paid);
        if (send_kept(job, first.first_answer, first.first_answer_size, &err) != FDS_OK)
            fail_sending(server, job, &err);
    } else if (paid && first.run != job->model->ledger_run) {
        serve_refuse(
            &job->reply, 409,
            "%zu of %zu samples are paid, by another version of the model; send the others "
            "under a new Idempotency-Key",
            paid, job->request.count);
    }
    fds_text_free(first.first_answer);
}

/* What the job's customer owes for the jobs before it; they are few. */
static int64_t owed_before(serve_job **jobs, size_t count, uint64_t customer) {
    int64_t owed = 0;
    for (size_t i = 0; i < count; i++)
        if (jobs[i]->is_paid && !jobs[i]->reply.status && jobs[i]->customer == customer &&
            !*jobs[i]->key)
            owed += jobs[i]->amount * (int64_t)jobs[i]->request.count;
    return owed;
}

static void check_balance(const fds_server *server, serve_job **jobs, size_t i) {
    serve_job *job = jobs[i];
    int64_t price, balance = fds_ledger_balance(server->ledger, job->customer);
    bool is_huge = __builtin_mul_overflow(job->amount, (int64_t)job->request.count, &price);
    /* under a key a part may be paid already */
    if (is_huge || (!*job->key && price > balance - owed_before(jobs, i, job->customer)))
        serve_refuse(&job->reply, 402,
                     "the balance of %s is too low: %lld units for each of %zu "
                     "samples, %lld are there",
                     job->account, (long long)job->amount, job->request.count, (long long)balance);
}

static void check_job(fds_server *server, serve_job **jobs, size_t i) {
    serve_job *job = jobs[i];
    fds_error err = {0};
    if (NEW(job->receipts, job->request.count, &err) != FDS_OK) {
        serve_refuse(&job->reply, 503, "%s", err.text);
        return;
    }
    if (fds_ledger_find(server->ledger, job->account, &job->customer, &err) != FDS_OK ||
        fds_ledger_account_kind(server->ledger, job->customer) != FDS_ACCOUNT_CUSTOMER) {
        serve_refuse(&job->reply, 402, "the ledger has no customer \"%s\"", job->account);
        return;
    }
    if (*job->key)
        repeat(server, job);
    if (!job->reply.status && job->amount < server->set.price)
        serve_refuse(&job->reply, 400,
                     "parameter \"fds_amount\" must be at least the price, %lld units",
                     (long long)server->set.price);
    if (!job->reply.status)
        check_balance(server, jobs, i);
}

void serve_charge_check(fds_server *server, serve_job **jobs, size_t count) {
    fds_error err = {0};
    if (!server->ledger)
        return;
    pthread_mutex_lock(&server->ledger_lock);
    fds_status status = fds_ledger_settle(server->ledger, &err); /* else balances may be old */
    for (size_t i = 0; i < count; i++)
        if (jobs[i]->is_paid && !jobs[i]->reply.status && status == FDS_OK)
            check_job(server, jobs, i);
        else if (jobs[i]->is_paid && !jobs[i]->reply.status)
            fail_reading(server, jobs[i], &err);
    pthread_mutex_unlock(&server->ledger_lock);
}

/* ---- charges ---- */

/* The charges of a batch, with the texts that they point to. */
typedef struct {
    size_t count;
    fds_charge *items;
    char (*keys)[LEDGER_KEY];
    char (*labels)[LABEL]; /* numbers of regressions */
    const serve_job **owners;
    fds_server *server;
} charges_of_batch;

static void fill_charge(charges_of_batch *bill, const serve_job *job, size_t k) {
    const serve_batch *b = job->batch;
    const serve_model *m = b->model;
    size_t at = job->first + k, place = job->first_charge + k, payees = m->payees->count,
           size = fds__shape_size(m->info.shape);
    fds_charge *c = &bill->items[place];
    *c = (fds_charge){.run = m->ledger_run,
                      .customer = job->customer,
                      .amount = job->amount,
                      .confidence = NAN,
                      .values = b->payee_values + at * payees,
                      .errors = b->payee_errors + at * payees};
    if (m->info.is_regression) {
        fds__write_double(b->predictions[at], bill->labels[place]);
        c->label = bill->labels[place];
    } else {
        c->label = m->class_names[b->labels[at]];
        c->confidence = MIN((double)b->probs[at * m->info.classes + b->labels[at]], 1);
    }
    fds__sha256(&(fds__bytes){b->samples + at * size, size * sizeof(float)}, 1, c->input);
    memcpy(c->fingerprint, job->fingerprint, sizeof c->fingerprint);
    if (!*job->key)
        return;
    c->key = write_key(job, k, bill->keys[place]);
    c->answer = k ? NULL : job->packed.data;
    c->answer_size = k ? 0 : job->packed.used;
}

/* Requests without a key come first: owed_before has reserved their money, and they must not be cut
 * short by others. */
static fds_status make_bill(charges_of_batch *bill, serve_job **jobs, size_t count,
                            fds_error *err) {
    for (int has_key = 0; has_key < 2; has_key++)
        for (size_t i = 0; i < count; i++)
            if ((*jobs[i]->key != 0) == has_key) {
                jobs[i]->first_charge = bill->count;
                bill->count += jobs[i]->reply.status ? 0 : jobs[i]->request.count;
            }
    TRY(NEW(bill->items, bill->count, err));
    TRY(NEW(bill->keys, bill->count, err));
    TRY(NEW(bill->labels, bill->count, err));
    TRY(NEW(bill->owners, bill->count, err));
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; !jobs[i]->reply.status && k < jobs[i]->request.count; k++) {
            fill_charge(bill, jobs[i], k);
            bill->owners[jobs[i]->first_charge + k] = jobs[i];
        }
    return FDS_OK;
}

static void free_bill(charges_of_batch *bill) {
    for (size_t i = 0; bill->items && i < bill->count; i++)
        fds_text_free(bill->items[i].first_answer);
    fds__free(bill->items);
    fds__free(bill->keys);
    fds__free(bill->labels);
    fds__free(bill->owners);
}

/* What stays in the ledger until the prediction is audited. */
static fds_status keep_input(void *user, size_t place, uint64_t entry, int64_t at_ms,
                             const void **data, size_t *size, fds_error *err) {
    const charges_of_batch *bill = user;
    const serve_job *job = bill->owners[place];
    return serve_shadow_keep(bill->server, job, place - job->first_charge, entry, at_ms, data, size,
                             err);
}

/* ---- the transaction ---- */

/* Under a key, the answer is kept: it must fit. */
static void keep(serve_job *job) {
    fds_error err = {0};
    if (!*job->key)
        return;
    fds_status status = oip_pack(&job->body, &job->packed, &err);
    if (status != FDS_OK)
        serve_refuse(&job->reply, 503, "%s", err.text);
    else if (job->packed.used > MOST_ANSWER)
        serve_refuse(
            &job->reply, 400,
            "an answer of %zu bytes cannot be kept for an Idempotency-Key: at most %d; ask "
            "for fewer samples or outputs, or as raw tensors",
            job->packed.used, MOST_ANSWER);
}

static void refuse_charge(serve_job *job, const fds_charge *c, size_t paid) {
    const char *reason = *c->reason ? c->reason : fds_status_text(c->status);
    if (c->status == FDS_ERR_LIMIT && paid)
        serve_refuse(&job->reply, 402,
                     "%zu of %zu samples are paid; %s. Pay in, and send the request again with its "
                     "Idempotency-Key",
                     paid, job->request.count, reason);
    else if (c->status == FDS_ERR_LIMIT)
        serve_refuse(&job->reply, 402, "%s", reason);
    else if (c->status == FDS_ERR_CONFLICT)
        refuse_reuse(job, reason);
    else
        serve_refuse(&job->reply, c->status == FDS_ERR_USAGE ? 400 : 500, "%s", reason);
}

static void settle(fds_server *server, serve_job *job, const fds_charge *charges) {
    serve_metrics *m = &server->metrics;
    fds_error err = {0};
    for (size_t k = 0; k < job->request.count; k++) {
        if (charges[k].status != FDS_OK) {
            refuse_charge(job, &charges[k], k);
            return;
        }
        atomic_fetch_add(charges[k].is_repeated ? &m->repeated : &m->paid, 1);
        if (!charges[k].is_repeated)
            atomic_fetch_add(&m->units, (unsigned long long)charges[k].amount);
        job->receipts[k] = charges[k].index;
    }
    fds_status status = charges[0].first_answer ? send_kept(job, charges[0].first_answer,
                                                            charges[0].first_answer_size, &err)
                                                : send(job, &job->body, false, &err);
    if (status != FDS_OK)
        fail_sending(server, job, &err);
}

void serve_charge(fds_server *server, serve_job **jobs, size_t count) {
    charges_of_batch bill = {.server = server};
    fds_error err = {0};
    for (size_t i = 0; i < count; i++)
        keep(jobs[i]);
    fds_status status = make_bill(&bill, jobs, count, &err);
    if (status == FDS_OK && bill.count) {
        pthread_mutex_lock(&server->ledger_lock);
        status = serve_shadow_before(server, &err);
        if (status == FDS_OK)
            status = fds_ledger_charge_keeping(server->ledger, bill.items, bill.count, keep_input,
                                               &bill, &err);
        if (status == FDS_OK)
            serve_shadow_after(server);
        pthread_mutex_unlock(&server->ledger_lock);
    }
    if (status != FDS_OK) {
        atomic_fetch_add(&server->metrics.ledger_failures, 1);
        serve_log_event(server, "ledger", err.text);
    }
    for (size_t i = 0; i < count; i++) {
        if (jobs[i]->reply.status)
            continue;
        if (status == FDS_OK) {
            settle(server, jobs[i], bill.items + jobs[i]->first_charge);
        } else {
            serve_refuse(
                &jobs[i]->reply, 503,
                "the ledger cannot be written; ask again, with an Idempotency-Key to pay once");
            jobs[i]->reply.retry_s = 1;
        }
    }
    free_bill(&bill);
}
