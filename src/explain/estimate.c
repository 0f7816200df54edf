/* SPDX-License-Identifier: Apache-2.0
 *
 * What a fit would take: trains a few sub-models and makes a few steps of the explainer, for about two
 * seconds in all, extrapolates from their times, and counts the operations of least squares. */
#include "explain/learn.h"
#include "explain/run.h"

#include <string.h>

enum { TRIALS = 3 };
static const double TRY_S = 0.7; /* of each trial */

typedef struct {
    fds__fit_settings settings;
    fds_groups *groups;   /* or NULL */
    fds__fit_plans plans; /* of the first coalitions, where all would take seconds to draw */
    double times;         /* as many are in the fit's own plans */
    uint32_t *order;      /* (inputs) */
    fds_utility *utility;
    size_t n, classes, inputs;
    float *probs;             /* (threads, inputs, classes) of a sub-model */
    const fds_events *caller; /* whose progress counts finished trials, whatever a trial reports */
    fds_events events;        /* of the trials */
    uint64_t done;
    size_t tried; /* sub-models before the ones that are trained now */
    double start_s;
} question;

static bool report_trials(void *user, const fds_progress *progress) {
    const question *q = user;
    (void)progress;
    return fds__report(q->caller, "estimate", "trials", q->done, TRIALS, q->start_s, NULL) !=
           FDS_OK;
}

/* ---- sub-models ---- */

static fds_status try_row(void *context, size_t job, unsigned worker, fds_error *err) {
    const question *q = context;
    /* Rows are of different sizes: a stride through the plan sees all of them, two by two, because a
     * coalition and its complement have half of the players on average. */
    const size_t pairs = (fds_plan_rows(q->plans.all) - 2) / 2, tried = q->tried + job;
    const size_t row = 2 + tried / 2 * 37 % pairs * 2 + tried % 2;
    return fds_utility_eval(q->utility, worker, fds_plan_coalition(q->plans.all, row),
                            q->probs + worker * q->inputs * q->classes, err);
}

/* Of many players a sub-model takes seconds. Two small ones are trained instead, of players at even
 * distances, and the time of the plan's mean size is on the line through theirs. */
enum { SMALL = 200, LARGER = 600, MANY = 2000 };

typedef struct {
    const question *q;
    double seconds[2];
} line;

static fds_status try_size(void *context, size_t job, unsigned worker, fds_error *err) {
    line *l = context;
    const question *q = l->q;
    size_t size = job ? LARGER : SMALL;
    OWNED uint64_t *coalition = NULL;
    TRY(RESERVE(coalition, fds_coalition_words(q->n), 1, err));
    for (size_t i = 0; i < size; i++)
        fds__coalition_add(coalition, i * q->n / size);
    double start = fds__now_s();
    fds_status status = fds_utility_eval(q->utility, worker, coalition, q->probs, err);
    l->seconds[job] = fds__now_s() - start;
    return status;
}

static fds_status time_small(const question *q, double *seconds, fds_error *err) {
    line l = {.q = q};
    size_t rows = fds_plan_rows(q->plans.all);
    double mean = 0;
    for (size_t row = 2; row < rows; row++)
        mean += (double)fds_coalition_size(fds_plan_coalition(q->plans.all, row), q->n) /
                (double)(rows - 2);
    TRY(fds__pool_run(1, 2, try_size, &l, "estimate", "sub-models", &q->events, err));
    double each = MAX(l.seconds[1] - l.seconds[0], 0) / (LARGER - SMALL);
    *seconds = (l.seconds[0] + each * (mean - SMALL)) / q->settings.threads;
    return FDS_OK;
}

/* Seconds per sub-model, on all threads. */
static fds_status time_sub_model(question *q, double *seconds, fds_error *err) {
    unsigned threads = q->settings.threads;
    const size_t jobs = 2 * threads;
    TRY(RESERVE(q->probs, threads * q->inputs, q->classes, err));
    if (q->n > MANY)
        return time_small(q, seconds, err);
    double start = fds__now_s();
    do {
        TRY(fds__pool_run(threads, jobs, try_row, q, "estimate", "sub-models", &q->events, err));
        q->tried += jobs;
    } while (fds__now_s() - start < TRY_S && q->tried < fds_plan_rows(q->plans.all));
    *seconds = (fds__now_s() - start) / (double)q->tried;
    return FDS_OK;
}

/* ---- the explainer ---- */

/* Seconds per step. out (batch, outputs) */
static fds_status time_steps(const question *q, fds__deep *net, float *out, double *seconds,
                             fds_error *err) {
    const fds__adam adam = {
        .lr = q->settings.explainer.lr, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f};
    size_t steps = 0;
    double start = 0;
    for (; steps < 2 || fds__now_s() - start < TRY_S; steps++) {
        if (steps == 1) /* the first one warms up */
            start = fds__now_s();
        TRY(fds__deep_forward(net, q->utility->data->inputs->values, NULL, out, err));
        TRY(fds__deep_backward(net, out, err));
        TRY(fds__deep_step(net, &adam, err));
        TRY(fds__report(&q->events, "estimate", "steps", steps, steps, start, err));
    }
    *seconds = (fds__now_s() - start) / (double)(steps - 1);
    return FDS_OK;
}

static fds_status time_explainer(const question *q, double *seconds, size_t *memory,
                                 fds_error *err) {
    const fds__explainer_params *p = &q->settings.explainer;
    size_t outputs = q->classes * fds__explainer_each(p, q->n, q->groups);
    size_t train = q->inputs - q->settings.validation_inputs, batch = MIN((size_t)p->batch, train);
    size_t epochs = p->epochs + (p->warm_up ? LEARN_WARM_UP : 0);
    const fds__deep_params params =
        fds__explainer_net(p, q->utility->data->inputs->shape, outputs, batch);
    fds__deep *net = NULL;
    float *out;
    double each = 0;
    TRY(fds__deep_check(&params, memory, err));
    TRY(RESERVE(out, batch, outputs, err));
    fds_status status = fds__deep_create(&params, &net, err);
    if (status == FDS_OK)
        status = time_steps(q, net, out, &each, err);
    *seconds = each * (double)(train / batch * epochs);
    fds__deep_free(net);
    fds__free(out);
    return status;
}

/* ---- accuracy ---- */

/* Correlations with the truth (docs/accuracy.md), of the bank and of a probe; the least of the sets. */
static const struct {
    fds_shape shape;
    double bank, probe;
    const char *of;
} measured[] = {
    {{1, 28, 28}, 0.982, 0.981, "100 pictures of MNIST or Fashion-MNIST as players"},
    {{3, 32, 32}, 0.977, 0.949, "100 pictures of CIFAR-10 as players"},
};

/* Promises only what was measured for such a case: 100 single pictures as players, converged
 * sub-models, 20 coalitions per player. */
static void expect_accuracy(const question *q, const fds_problem *problem, fds__fit_cost *out) {
    enum { MEASURED_PLAYERS = 100, PER_PLAYER = 20 };
    const fds__fit_settings *s = &q->settings;
    bool was_measured = q->n == MEASURED_PLAYERS && problem->sample_count == q->n &&
                        problem->train->is_image && s->sampler == FDS_SAMPLER_LEVERAGE &&
                        s->adjust == FDS_ADJUST_COUNTS && strcmp(s->kind, "retrain") == 0 &&
                        s->coalitions >= PER_PLAYER * q->n && (s->is_bank || s->probes);
    for (size_t i = 0; was_measured && i < sizeof measured / sizeof *measured; i++)
        if (fds__shape_equal(problem->train->shape, measured[i].shape)) {
            out->accuracy = s->is_bank ? measured[i].bank : measured[i].probe;
            out->accuracy_of = measured[i].of;
        }
}

/* ---- all of it ---- */

/* The different coalitions, each of which is trained and kept once, and the bytes of the table and
 * of the bank, where there is one. */
static fds_status size_table(const question *q, fds__fit_cost *out, fds_error *err) {
    fds__slot_map index = {0};
    fds__bank_slots slots;
    fds_status status = fds__slot_map_number(&index, q->plans.all, NULL, err);
    out->sub_models = (size_t)((double)index.count * q->times);
    fds__slot_map_free(&index);
    if (status == FDS_OK)
        status = fds__table_bytes(q->utility, FDS_STORE_F32, out->sub_models, &out->disk, err);
    const fds_plan *kept = q->settings.keeps_models ? q->plans.all : q->plans.probes;
    if (status != FDS_OK || !kept)
        return status;
    status = fds__bank_slots_init(&slots, fds__utility_network(q->utility), kept, err);
    double kept_times = q->settings.keeps_models ? q->times : 1;
    out->disk +=
        FDS__BANK_HEADER + (uint64_t)((double)slots.count * kept_times * (double)slots.record_size);
    fds__bank_slots_free(&slots);
    return status;
}

static fds_status estimate(question *q, const fds_problem *problem, fds__fit_cost *out,
                           fds_error *err) {
    const fds__fit_settings *s = &q->settings;
    const fds_ls_params ls = {.adjust = s->adjust, .groups = q->groups};
    size_t columns = q->inputs * q->classes, memory = 0;
    double seconds;
    fds_plan whole = *q->plans.plan; /* without its bits: their number is enough */
    whole.rows = (size_t)((double)whole.rows * q->times);
    TRY(fds__fit_check_plan(s, &whole, q->groups, err));
    TRY(time_sub_model(q, &seconds, err));
    TRY(size_table(q, out, err));
    out->seconds[FDS__FIT_STAGE_UTILITIES] = seconds * (double)out->sub_models;
    q->done++;
    TRY(fds__ls_seconds(&whole, &ls, columns, s->threads, &out->seconds[FDS__FIT_STAGE_VALUES],
                        err));
    q->done++;
    if (s->probes)
        memory = (fds__fit_measures(s) ? q->n * columns * sizeof(double) : 0) +
                 s->probes * columns * sizeof(float) +
                 (q->classes + s->threads) * s->probes * s->probes * sizeof(double);
    else if (!s->is_bank)
        TRY(time_explainer(q, &out->seconds[FDS__FIT_STAGE_EXPLAINER], &memory, err));
    /* values and errors stay; least squares are done when the explainer begins, for which values are
     * transposed, or become coefficients of factors */
    uint64_t peak, resident = fds__memory_resident(&peak), each = (uint64_t)q->n * columns;
    uint64_t bits = fds_plan_rows(q->plans.all) * fds_coalition_words(q->n) * sizeof(uint64_t);
    resident += (uint64_t)((q->times - 1) * 2 * (double)bits);
    uint64_t width = s->explainer.rank ? s->explainer.rank : q->n; /* of the targets */
    uint64_t learning = s->is_bank ? 0 : width * columns * sizeof(float) + memory;
    out->memory =
        MAX(peak, resident + 2 * each * sizeof(double) +
                      MAX(learning, fds_least_squares_memory(&whole, &ls, columns, s->threads)));
    expect_accuracy(q, problem, out);
    return fds__report(q->caller, "estimate", "trials", TRIALS, TRIALS, q->start_s, err);
}

/* Draws at most so many coalitions that it takes a second. */
static fds_status make_plans(question *q, fds_error *err) {
    const size_t most = MAX(((size_t)1 << 28) / q->n / 2 * 2, (size_t)64);
    fds__fit_settings few = q->settings;
    q->times = 1;
    if (few.coalitions > most && few.probes <= most) {
        q->times = (double)few.coalitions / (double)most;
        few.validation_coalitions =
            MAX((size_t)((double)few.validation_coalitions / q->times) / 2 * 2, (size_t)2);
        few.coalitions = most;
    }
    return fds__fit_plans_make(&few, q->n, q->groups, &q->plans, err);
}

static fds_status run(question *q, const fds_problem *problem, const fds_params *params,
                      fds__fit_cost *out, fds_error *err) {
    TRY(fds__fit_prepare(problem, params, q->caller, &q->settings, &q->groups, err));
    TRY(make_plans(q, err));
    TRY(fds__fit_utility_create(&q->settings, problem, q->caller, &q->order, &q->utility, err));
    q->start_s = fds__now_s();
    return estimate(q, problem, out, err);
}

fds_status fds__fit_estimate(const fds_problem *problem, const fds_params *params,
                             const fds_events *events, fds__fit_cost *out, fds_error *err) {
    question q = {.n = fds_players_count(problem->players),
                  .classes = problem->train->classes,
                  .inputs = problem->input_count,
                  .caller = events,
                  .events = {.progress = report_trials, .user = &q}};
    *out = (fds__fit_cost){0};
    fds_status status = run(&q, problem, params, out, err);
    if (status != FDS_OK && q.utility)
        fds__utility_log(q.utility, events);
    fds__free(q.probs);
    fds_utility_free(q.utility);
    fds__free(q.order);
    fds__fit_plans_free(&q.plans);
    fds_groups_free(q.groups);
    return status;
}
