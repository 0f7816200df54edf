/* SPDX-License-Identifier: Apache-2.0
 * The queue of jobs and its worker.
 *
 * The worker takes everything that waits, up to a bound, and answers it together: one pass through each
 * model, one transaction of the ledger. There is no timer. While a batch is computed and synced to the
 * disk, the next one gathers, so batches grow with the load by themselves and a lone request waits for
 * nobody. */
#include "serve/serve.h"

#include <math.h>
#include <stdarg.h>

/* Of a round; a larger job has one of its own. Jobs without predictions come after the others. */
enum { MOST_JOBS = 512, MOST_SAMPLES = 1024, MOST_SIDE_JOBS = 4 };
enum { MOST_WAITING = 64, MOST_OWN_WAITING = 8 }; /* jobs besides predictions; of one account */

/* ---- replies ---- */

void serve_refuse(serve_reply *reply, unsigned status, const char *format, ...) {
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fds__free(reply->body.data);
    *reply = (serve_reply){.status = status, .type = SERVE_JSON, .json_size = SIZE_MAX};
    oip_write_error(&reply->body, text);
}

unsigned serve_status(fds_status status) {
    switch (status) {
    case FDS_ERR_USAGE:
    case FDS_ERR_FORMAT:
    case FDS_ERR_SHAPE:
        return 400;
    case FDS_ERR_NOT_FOUND:
        return 404;
    case FDS_ERR_LIMIT:
        return 413;
    case FDS_ERR_NOMEM:
        return 503;
    default:
        return 500;
    }
}

/* ---- the queue ---- */

void serve_job_clear(serve_job *job) {
    oip_request_free(&job->request);
    oip_body_free(&job->body);
    fds__free(job->packed.data);
    job->packed = (fds__text){0};
    fds__free(job->receipts);
    job->receipts = NULL;
    serve_models_release(job->models);
    job->models = NULL;
    json_decref(job->args);
    json_decref(job->state);
    job->args = job->state = NULL;
}

static bool is_held(const serve_queue *q, const serve_job *job) {
    for (const serve_job *at = q->held; at; at = at->next_held)
        if (strcmp(at->key, job->key) == 0 && strcmp(at->account, job->account) == 0)
            return true;
    return false;
}

static bool has_key(const serve_job *job) { return job->is_paid && *job->key; }

/* Jobs besides predictions are slow: all together, and those of one account, are few. */
static bool is_crowded(const serve_queue *q, const serve_job *job) {
    size_t own = 0;
    for (const serve_job *at = q->first_side; at; at = at->next)
        own += strcmp(at->account, job->account) == 0;
    return job->kind != SERVE_JOB_INFER &&
           (q->side_count >= MOST_WAITING || (*job->account && own >= MOST_OWN_WAITING));
}

static void add(serve_queue *q, serve_job *job) {
    serve_job ***last = job->kind == SERVE_JOB_INFER ? &q->last : &q->last_side;
    job->next = NULL;
    **last = job;
    *last = &job->next;
}

bool serve_queue_put(fds_server *server, serve_job *job) {
    serve_queue *q = &server->queue;
    pthread_mutex_lock(&q->lock);
    bool is_repeated = has_key(job) && is_held(q, job), is_full = is_crowded(q, job),
         is_free = !q->is_ended && !is_repeated && !is_full;
    if (q->is_ended)
        serve_refuse(&job->reply, 503, "the server is about to stop");
    else if (is_repeated)
        serve_refuse(&job->reply, 409, "a request with this Idempotency-Key is in flight");
    else if (is_full)
        serve_refuse(&job->reply, 503, "too many requests wait; try again in a second");
    job->reply.retry_s = is_full;
    if (is_free) {
        add(q, job);
        q->side_count += job->kind != SERVE_JOB_INFER;
        if (has_key(job)) {
            job->next_held = q->held;
            q->held = job;
        }
        pthread_cond_signal(&q->is_filled);
    }
    pthread_mutex_unlock(&q->lock);
    return is_free;
}

/* Waits for work: predictions, and a few of the other jobs. False: there will be none. */
static bool take(serve_queue *q, serve_job **jobs, size_t *job_count, serve_job **side,
                 size_t *side_count) {
    size_t count = 0, samples = 0;
    *side_count = 0;
    pthread_mutex_lock(&q->lock);
    while (!q->first && !q->first_side && !q->is_ended)
        pthread_cond_wait(&q->is_filled, &q->lock);
    while (q->first && count < MOST_JOBS &&
           (count == 0 || samples + q->first->request.count <= MOST_SAMPLES)) {
        samples += q->first->request.count;
        jobs[count++] = q->first;
        q->first = q->first->next;
    }
    if (!q->first)
        q->last = &q->first;
    while (q->first_side && *side_count < MOST_SIDE_JOBS) {
        side[(*side_count)++] = q->first_side;
        q->first_side = q->first_side->next;
    }
    if (!q->first_side)
        q->last_side = &q->first_side;
    pthread_mutex_unlock(&q->lock);
    *job_count = count;
    return count + *side_count > 0;
}

/* Hands all jobs back to their owners, who may free them at once. */
static void hand_back(serve_queue *q, serve_job **jobs, size_t count) {
    pthread_mutex_lock(&q->lock);
    for (serve_job **at = &q->held; *at;)
        if ((*at)->reply.status)
            *at = (*at)->next_held;
        else
            at = &(*at)->next_held;
    pthread_mutex_unlock(&q->lock);
    for (size_t i = 0; i < count; i++)
        jobs[i]->done(jobs[i]);
}

/* ---- one model's samples ---- */

static void clear_batch(serve_batch *b) {
    fds__free(b->samples);
    fds__free(b->labels);
    fds__free(b->probs);
    fds__free(b->predictions);
    fds__free(b->values);
    fds__free(b->errors);
    fds__free(b->shares);
    fds__free(b->payee_values);
    fds__free(b->payee_errors);
    *b = (serve_batch){0};
}

static fds_status reserve(serve_batch *b, fds_error *err) {
    const serve_model *m = b->model;
    size_t n = b->count, payees = m->payees->count;
    TRY(RESERVE(b->samples, n, fds__shape_size(m->info.shape), err));
    TRY(NEW(b->labels, n, err));
    TRY(RESERVE(b->probs, n, m->info.classes, err));
    TRY(NEW(b->predictions, n, err));
    if (!b->has_values)
        return FDS_OK;
    TRY(RESERVE(b->values, n, m->info.players, err));
    TRY(RESERVE(b->errors, n, m->info.players, err));
    TRY(RESERVE(b->shares, n, payees, err));
    TRY(RESERVE(b->payee_values, n, payees, err));
    return RESERVE(b->payee_errors, n, payees, err);
}

static fds_status make_dataset(const serve_batch *b, fds_dataset **out, fds_error *err) {
    OWNED uint16_t *labels = NULL; /* not known: any will do */
    TRY(NEW(labels, b->count, err));
    const fds_arrays arrays = {.count = b->count,
                               .shape = b->model->info.shape,
                               .floats = b->samples,
                               .labels = labels,
                               .classes = b->model->info.classes};
    return fds_dataset_create(&arrays, out, err);
}

static fds_status ask(serve_batch *b, const fds_dataset *ds, fds_error *err) {
    const serve_model *m = b->model;
    uint32_t classes = m->info.classes;
    OWNED double *targets = NULL;
    if (!b->has_values) {
        TRY(fds_model_predict(fds_run_service(m->run), ds, NULL, b->count, 1, b->probs, NULL, err));
        for (size_t k = 0; k < b->count; k++)
            b->labels[k] = fds__argmax_f32(b->probs + k * classes, classes);
        return FDS_OK;
    }
    if (m->info.is_regression)
        TRY(NEW(targets, b->count, err));
    const fds__answers answers = {.labels = b->labels,
                                  .probs = b->probs,
                                  .values = b->values,
                                  .errors = b->errors,
                                  .targets = targets};
    TRY(fds__run_explain(m->run, FDS__ANSWERER_EXPLAINER, ds, NULL, b->count, false, &answers,
                         err));
    for (size_t k = 0; m->info.is_regression && k < b->count; k++)
        b->predictions[k] = m->info.aim.mean + m->info.aim.std * (double)b->probs[k];
    return FDS_OK;
}

/* Values of players as values of payees: sums, and errors as of independent numbers. */
static void add_up(serve_batch *b) {
    const fds__payees *p = b->model->payees;
    for (size_t k = 0; k < b->count; k++) {
        double *values = b->payee_values + k * p->count, *errors = b->payee_errors + k * p->count;
        for (size_t i = 0; i < p->players; i++) {
            double error = b->errors[k * p->players + i];
            values[p->payee_of[i]] += b->values[k * p->players + i];
            errors[p->payee_of[i]] += error * error;
        }
        for (size_t i = 0; i < p->count; i++)
            errors[i] = sqrt(errors[i]);
    }
}

/* Parts of any amount, without the ledger's rounding to units. */
static fds_status divide(serve_batch *b, fds__policy policy, fds_error *err) {
    const int64_t amount = (int64_t)1 << 40;
    size_t n = b->model->payees->count, left;
    OWNED int64_t *units = NULL;
    OWNED fds__fixed *parts = NULL;
    fds__pay_rule rule;
    TRY(NEW(units, 2 * n, err));
    TRY(NEW(parts, n, err));
    for (size_t k = 0; k < b->count; k++) {
        TRY(fds__divide(b->payee_values + k * n, n, amount, policy, units + n, units, parts, &left,
                        &rule, err));
        for (size_t i = 0; i < n; i++)
            b->shares[k * n + i] =
                ((double)units[i] + ldexp((double)parts[i], -64)) / (double)amount;
    }
    return FDS_OK;
}

/* Samples of finite numbers can be too large for a network. */
static fds_status check_answers(const serve_batch *b, fds_error *err) {
    for (size_t i = 0; i < b->count * b->model->info.classes; i++)
        if (!isfinite(b->probs[i]))
            return fds__fail(err, FDS_ERR_DIVERGED, "an answer is infinite or not a number");
    return FDS_OK;
}

/* Takes the jobs' samples, all of one model. */
static fds_status fill_batch(serve_batch *b, serve_job **jobs, size_t count, fds_error *err) {
    size_t used = 0, size = fds__shape_size(jobs[0]->model->info.shape);
    b->model = jobs[0]->model;
    for (size_t i = 0; i < count; i++) {
        const serve_job *job = jobs[i];
        b->count += job->request.count;
        b->has_values |= job->is_paid || job->as->is_explained || job->as->is_regression;
    }
    TRY(reserve(b, err));
    for (size_t i = 0; i < count; i++) {
        jobs[i]->batch = b;
        jobs[i]->first = used;
        memcpy(b->samples + used * size, jobs[i]->request.samples,
               jobs[i]->request.count * size * sizeof *b->samples);
        used += jobs[i]->request.count;
    }
    return FDS_OK;
}

static fds_status compute(const fds_server *server, serve_batch *b, serve_job **jobs, size_t count,
                          fds_error *err) {
    fds_dataset *ds = NULL;
    TRY(fill_batch(b, jobs, count, err));
    TRY(make_dataset(b, &ds, err));
    fds_status status = ask(b, ds, err);
    fds_dataset_free(ds);
    TRY(status);
    TRY(check_answers(b, err));
    if (!b->has_values)
        return FDS_OK;
    add_up(b);
    for (size_t i = 0; i < b->count * b->model->payees->count; i++)
        if (!isfinite((float)b->payee_values[i])) /* as the ledger keeps them */
            return fds__fail(err, FDS_ERR_DIVERGED, "a value is too large");
    bool is_signed = strcmp(server->set.policy, "signed") == 0;
    return divide(b, is_signed ? FDS__POLICY_SIGNED : FDS__POLICY_CLIP, err);
}

static fds_status compose(serve_job *job, fds_error *err) {
    const serve_batch *b = job->batch;
    const serve_model *m = b->model;
    size_t at = job->first;
    const oip_answers answers = {
        .labels = b->labels + at,
        .probs = b->probs + at * m->info.classes,
        .predictions = b->predictions + at,
        .values = b->has_values ? b->values + at * m->info.players : NULL,
        .errors = b->has_values ? b->errors + at * m->info.players : NULL,
        .shares = b->has_values ? b->shares + at * m->payees->count : NULL,
    };
    return oip_compose(job->as, &job->request, &answers, &job->body, err);
}

/* ---- a round ---- */

/* Whether the samples are to blame rather than this machine. */
static bool is_of_input(fds_status status) {
    return status == FDS_ERR_DIVERGED || status == FDS_ERR_USAGE || status == FDS_ERR_FORMAT;
}

static void fail(fds_server *server, serve_job *job, fds_status status, const fds_error *err) {
    if (is_of_input(status)) {
        serve_refuse(&job->reply, 400,
                     "the model has no answer for these samples: a number in them is too large");
        return;
    }
    serve_log_event(server, "failure", err->text);
    serve_refuse(&job->reply, status == FDS_ERR_NOMEM ? 503 : 500, "%s", fds_status_text(status));
    job->reply.retry_s = status == FDS_ERR_NOMEM;
}

/* Computes for jobs of one model and composes their answers, with up to count batches; returns how many
 * were used. Samples that the model cannot answer fail the batch that they are in: its halves are tried
 * again, until they stand alone. */
static size_t answer_model(fds_server *server, serve_batch *batches, serve_job **jobs,
                           size_t count) {
    fds_error err = {0};
    fds_status status = compute(server, batches, jobs, count, &err);
    atomic_fetch_add(&server->metrics.batches, 1);
    if (is_of_input(status) && count > 1) {
        clear_batch(batches);
        size_t used = answer_model(server, batches, jobs, count / 2);
        return used + answer_model(server, batches + used, jobs + count / 2, count - count / 2);
    }
    for (size_t i = 0; i < count; i++) {
        fds_status own = status == FDS_OK ? compose(jobs[i], &err) : status;
        if (own != FDS_OK)
            fail(server, jobs[i], own, &err);
    }
    if (status == FDS_OK && batches->has_values)
        serve_model_note(batches);
    atomic_fetch_add(&server->metrics.predictions, status == FDS_OK ? batches->count : 0);
    return 1;
}

static void send_free(fds_server *server, serve_job *job) {
    fds_error err = {0};
    serve_reply *r = &job->reply;
    *r = (serve_reply){.status = 200, .type = SERVE_JSON};
    fds_status status = oip_finish(&job->body, NULL, &r->body, &r->json_size, &err);
    if (status != FDS_OK)
        fail(server, job, status, &err);
}

static void answer_log(fds_server *server, serve_job *job) {
    fds_error err = {0};
    void *data = NULL;
    size_t size = 0;
    pthread_mutex_lock(&server->ledger_lock);
    fds_status status = fds_ledger_log_file(server->ledger, job->path, &data, &size, &err);
    pthread_mutex_unlock(&server->ledger_lock);
    if (status != FDS_OK) {
        bool is_there = status != FDS_ERR_NOT_FOUND && status != FDS_ERR_USAGE;
        serve_refuse(&job->reply, is_there ? serve_status(status) : 404,
                     "the log has no file \"%.100s\"", job->path);
        return;
    }
    bool is_text = strcmp(job->path, "checkpoint") == 0;
    job->reply =
        (serve_reply){.status = 200,
                      .type = is_text ? "text/plain; charset=utf-8" : "application/octet-stream",
                      .json_size = SIZE_MAX};
    fds__text_add(&job->reply.body, data, size);
    fds_text_free(data);
}

/* The jobs of one model among those that are neither computed nor answered. */
static size_t gather(serve_job **jobs, size_t count, serve_job **group) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        if (!jobs[i]->reply.status && !jobs[i]->batch &&
            (!found || jobs[i]->model == group[0]->model))
            group[found++] = jobs[i];
    return found;
}

static void answer(fds_server *server, serve_job **jobs, size_t count) {
    serve_job *group[MOST_JOBS], *paid[MOST_JOBS];
    serve_batch *made = fds__alloc_zero(count, sizeof *made); /* at most one per job */
    size_t used = 0, found, paid_count = 0;
    for (size_t i = 0; i < count && !made; i++)
        serve_refuse(&jobs[i]->reply, 503, "out of memory");
    serve_charge_check(server, jobs, count);
    while ((found = gather(jobs, count, group)) > 0)
        used += answer_model(server, made + used, group, found);
    for (size_t i = 0; i < count; i++)
        if (!jobs[i]->reply.status && jobs[i]->is_paid)
            paid[paid_count++] = jobs[i];
        else if (!jobs[i]->reply.status)
            send_free(server, jobs[i]);
    if (paid_count)
        serve_charge(server, paid, paid_count);
    for (size_t i = 0; i < used; i++)
        clear_batch(&made[i]);
    fds__free(made);
}

/* Those that predictions have overtaken, in front of the others that wait. True: that is so. */
static bool are_overtaken(serve_queue *q, serve_job **side, size_t count) {
    pthread_mutex_lock(&q->lock);
    bool are = q->first != NULL;
    for (size_t i = count; are && i-- > 0;) {
        side[i]->next = q->first_side;
        q->last_side = q->first_side ? q->last_side : &side[i]->next;
        q->first_side = side[i];
    }
    pthread_mutex_unlock(&q->lock);
    return are;
}

/* A job that is slow does a part of its work, and waits for its next turn behind the others. */
static void answer_side(fds_server *server, serve_job *job) {
    serve_queue *q = &server->queue;
    if (job->kind == SERVE_JOB_LOG)
        answer_log(server, job);
    else
        serve_api_answer(server, job);
    pthread_mutex_lock(&q->lock);
    if (job->is_unfinished && q->is_ended) {
        serve_refuse(&job->reply, 503, "the server is about to stop");
        job->is_unfinished = false;
    }
    bool is_over = !job->is_unfinished;
    if (is_over)
        q->side_count--;
    else
        add(q, job);
    pthread_mutex_unlock(&q->lock);
    if (is_over)
        job->done(job);
}

static void *work(void *context) {
    fds_server *server = context;
    serve_job *jobs[MOST_JOBS], *side[MOST_SIDE_JOBS];
    size_t count, side_count;
    while (take(&server->queue, jobs, &count, side, &side_count)) {
        if (count) {
            answer(server, jobs, count);
            hand_back(&server->queue, jobs, count);
        }
        for (size_t i = 0; i < side_count; i++) {
            answer_side(server, side[i]);
            if (are_overtaken(&server->queue, side + i + 1, side_count - i - 1))
                break;
        }
    }
    return NULL;
}

fds_status serve_queue_start(fds_server *server, fds_error *err) {
    serve_queue *q = &server->queue;
    q->last = &q->first;
    q->last_side = &q->first_side;
    if (pthread_create(&q->worker, NULL, work, server) != 0)
        return fds__fail(err, FDS_ERR_NOMEM, "cannot start a thread");
    q->has_worker = true;
    return FDS_OK;
}

void serve_queue_stop(fds_server *server) {
    serve_queue *q = &server->queue;
    if (!q->has_worker)
        return;
    pthread_mutex_lock(&q->lock);
    q->is_ended = true;
    pthread_cond_signal(&q->is_filled);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->worker, NULL);
    q->has_worker = false;
}
