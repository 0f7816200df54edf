/* SPDX-License-Identifier: Apache-2.0
 * Money for the predictions of a batch: one charge per sample, one transaction for all of them.
 *
 * The samples of a request with the idempotency key K have the keys "K", "K 1", "K 2", ... in the
 * ledger; K itself has no blanks. The answer is kept with the first. A request that was cut short by a
 * low balance may be sent again: what is paid stays paid, and only the rest is charged. */
#include "serve/serve.h"

#include <math.h>

enum { LEDGER_KEY = 256, MOST_ANSWER = 65536, LABEL = FDS__NUMBER };

/* ---- before anything is computed ---- */

/* What the job's customer owes for the jobs before it; they are few. */
static int64_t owed_before(serve_job **jobs, size_t count, uint64_t customer) {
    int64_t owed = 0;
    for (size_t i = 0; i < count; i++)
        if (jobs[i]->is_paid && !jobs[i]->reply.status && jobs[i]->customer == customer &&
            !*jobs[i]->key)
            owed += jobs[i]->amount * (int64_t)jobs[i]->request.count;
    return owed;
}

static void check_customer(fds_server *server, serve_job **jobs, size_t i) {
    serve_job *job = jobs[i];
    fds_error err = {0};
    int64_t price;
    if (fds_ledger_find(server->ledger, job->account, &job->customer, &err) != FDS_OK ||
        fds_ledger_account_kind(server->ledger, job->customer) != FDS_ACCOUNT_CUSTOMER) {
        serve_refuse(&job->reply, 402, "the ledger has no customer \"%s\"", job->account);
        return;
    }
    int64_t balance = fds_ledger_balance(server->ledger, job->customer);
    bool is_huge = __builtin_mul_overflow(job->amount, (int64_t)job->request.count, &price);
    /* under a key it may be paid already */
    if (is_huge || (!*job->key && price > balance - owed_before(jobs, i, job->customer)))
        serve_refuse(&job->reply, 402,
                     "the balance of %s is too low: %lld units for each of %zu "
                     "samples, %lld are there",
                     job->account, (long long)job->amount, job->request.count, (long long)balance);
}

void serve_charge_check(fds_server *server, serve_job **jobs, size_t count) {
    if (!server->ledger)
        return;
    pthread_mutex_lock(&server->ledger_lock);
    for (size_t i = 0; i < count; i++)
        if (jobs[i]->is_paid && !jobs[i]->reply.status)
            check_customer(server, jobs, i);
    pthread_mutex_unlock(&server->ledger_lock);
}

/* ---- charges ---- */

/* The charges of a batch, with the texts that they point to. */
typedef struct {
    size_t count;
    fds_charge *items;
    char (*keys)[LEDGER_KEY];
    char (*labels)[LABEL]; /* numbers of regressions */
} charges_of_batch;

static void fill_charge(charges_of_batch *bill, const serve_job *job, const serve_batch *b,
                        size_t k) {
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
    snprintf(bill->keys[place], LEDGER_KEY, k ? "%s %zu" : "%s", job->key, k);
    c->key = bill->keys[place];
    c->answer = k ? NULL : job->packed.data;
    c->answer_size = k ? 0 : job->packed.used;
}

/* Requests without a key come first: owed_before has reserved their money, and they must not be cut
 * short by others. */
static fds_status make_bill(charges_of_batch *bill, serve_job **jobs,
                            const serve_batch *const *batches, size_t count, fds_error *err) {
    for (int has_key = 0; has_key < 2; has_key++)
        for (size_t i = 0; i < count; i++)
            if ((*jobs[i]->key != 0) == has_key) {
                jobs[i]->first_charge = bill->count;
                bill->count += jobs[i]->reply.status ? 0 : jobs[i]->request.count;
            }
    TRY(NEW(bill->items, bill->count, err));
    TRY(NEW(bill->keys, bill->count, err));
    TRY(NEW(bill->labels, bill->count, err));
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; !jobs[i]->reply.status && k < jobs[i]->request.count; k++)
            fill_charge(bill, jobs[i], batches[i], k);
    return FDS_OK;
}

static void free_bill(charges_of_batch *bill) {
    for (size_t i = 0; bill->items && i < bill->count; i++)
        fds_text_free(bill->items[i].first_answer);
    fds__free(bill->items);
    fds__free(bill->keys);
    fds__free(bill->labels);
}

/* ---- answers ---- */

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
        serve_refuse(&job->reply, 422, "the Idempotency-Key was used for another request: %s",
                     reason);
    else
        serve_refuse(&job->reply, c->status == FDS_ERR_USAGE ? 400 : 500, "%s", reason);
}

/* The kept answer, or the job's own. */
static fds_status send(serve_job *job, const fds_charge *charges, fds_error *err) {
    serve_reply *r = &job->reply;
    OWNED uint64_t *receipts = NULL;
    oip_body first = {0};
    bool is_repeated = charges[0].is_repeated && charges[0].first_answer;
    TRY(NEW(receipts, job->request.count, err));
    for (size_t k = 0; k < job->request.count; k++)
        receipts[k] = charges[k].index;
    if (is_repeated)
        TRY(oip_unpack(charges[0].first_answer, charges[0].first_answer_size, &first, err));
    const oip_body *body = is_repeated ? &first : &job->body;
    *r = (serve_reply){.status = 200, .type = SERVE_JSON, .is_repeated = charges[0].is_repeated};
    fds_status status =
        body->hole_count <= job->request.count
            ? oip_finish(body, receipts, &r->body, &r->json_size, err)
            : fds__fail(err, FDS_ERR_CORRUPT, "a kept answer has other samples than its request");
    oip_body_free(&first);
    return status;
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
    }
    if (send(job, charges, &err) != FDS_OK) { /* it is paid: the same key asks again */
        serve_log_event(server, "failure", err.text);
        serve_refuse(&job->reply, 500, "%s", err.text);
    }
}

void serve_charge(fds_server *server, serve_job **jobs, const serve_batch *const *batches,
                  size_t count) {
    charges_of_batch bill = {0};
    fds_error err = {0};
    for (size_t i = 0; i < count; i++)
        keep(jobs[i]);
    fds_status status = make_bill(&bill, jobs, batches, count, &err);
    if (status == FDS_OK && bill.count) {
        pthread_mutex_lock(&server->ledger_lock);
        status = fds_ledger_charge(server->ledger, bill.items, bill.count, &err);
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
