/* SPDX-License-Identifier: Apache-2.0
 *
 * What a fit would take, before it is begun: a few sub-models are trained, a few columns solved for
 * and a few steps of the explainer made, for about two seconds in all, and multiplied up. */
#include "explain/bank.h"
#include "explain/learn.h"
#include "explain/run.h"

#include <math.h>
#include <string.h>

enum { TRIALS = 3 };
static const double TRY_S = 0.7; /* of each of them */

/* Progress of the whole, whatever a trial reports: so many trials are done. */
typedef struct {
    const fds_events *events; /* the caller's */
    uint64_t done;
    double start_s;
} teller;

static bool tell(void *user, const fds_progress *progress) {
    const teller *t = user;
    (void)progress;
    return fds__report(t->events, "estimate", "trials", t->done, TRIALS, t->start_s, NULL) !=
           FDS_OK;
}

/* ---- sub-models ---- */

typedef struct {
    const fds_utility *value;
    const fds_plan *plan;
    float *probs; /* (workers, inputs, classes) */
} trial;

static fds_status try_row(void *context, size_t job, unsigned worker, fds_error *err) {
    const trial *t = context;
    /* rows are of different sizes: a stride through the plan sees all of them */
    size_t rows = fds_plan_rows(t->plan) - 2, row = 2 + job * 37 % rows;
    return fds_utility_eval(t->value, worker, fds_plan_coalition(t->plan, row),
                            t->probs + worker * t->value->inputs * t->value->classes, err);
}

/* Seconds a sub-model, on all threads. */
static fds_status time_sub_model(const fds__fit_settings *s, const fds_utility *value,
                                 const fds_plan *plan, const fds_events *events, double *seconds,
                                 fds_error *err) {
    size_t size = value->inputs * value->classes, done = 0, jobs = 2 * s->threads;
    trial t = {value, plan, fds__alloc(s->threads * size * sizeof *t.probs)};
    if (!t.probs)
        return fds__fail_nomem(err, s->threads * size * sizeof *t.probs);
    fds_status status = FDS_OK;
    double start = fds__now_s();
    do {
        status =
            fds__pool_run(s->threads, jobs, try_row, &t, "estimate", "sub-models", events, err);
        done += jobs;
    } while (status == FDS_OK && fds__now_s() - start < TRY_S && done < fds_plan_rows(plan));
    *seconds = (fds__now_s() - start) / (double)done;
    fds__free(t.probs);
    return status;
}

/* ---- least squares ---- */

static fds_status noise(void *context, unsigned worker, size_t row, size_t first, size_t count,
                        double *out, fds_error *err) {
    (void)context, (void)worker, (void)err;
    for (size_t i = 0; i < count; i++)
        out[i] = (double)((row * 2654435761u + (first + i) * 40503u) % 65536) / 65536;
    return FDS_OK;
}

static fds_status time_columns(const fds__fit_settings *s, const fds_plan *plan,
                               const fds_groups *groups, size_t columns, const fds_events *events,
                               double *seconds, fds_error *err) {
    const fds_rows rows = {columns, noise, NULL};
    const fds_ls_params ls = {.adjust = s->adjust, .groups = groups};
    size_t size = fds_plan_players(plan) * columns;
    double *values = fds__alloc(2 * size * sizeof *values), start = fds__now_s();
    if (!values)
        return fds__fail_nomem(err, 2 * size * sizeof *values);
    fds_status status =
        fds_least_squares(plan, &rows, &ls, s->threads, values, values + size, NULL, events, err);
    *seconds = fds__now_s() - start;
    fds__free(values);
    return status;
}

/* A fixed part and a part for each column, from two sizes. */
static fds_status time_values(const fds__fit_settings *s, const fds_plan *plan,
                              const fds_groups *groups, size_t columns, const fds_events *events,
                              double *seconds, fds_error *err) {
    enum { FEW = 16, MANY = 1024 };
    double few, many;
    TRY(time_columns(s, plan, groups, FEW, events, &few, err));
    TRY(time_columns(s, plan, groups, MANY, events, &many, err));
    double each = MAX(many - few, 0.0) / (MANY - FEW);
    *seconds = few + each * (double)columns;
    return FDS_OK;
}

/* ---- the explainer ---- */

static fds_status time_steps(const fds__explainer_params *p, const fds_utility *value,
                             size_t outputs, size_t batch, const fds_events *events,
                             double *seconds, size_t *memory, fds_error *err) {
    const fds_inputs *x = value->data->inputs;
    const fds__deep_params params = fds__explainer_net(p, x->shape, outputs, batch);
    const fds__adam adam = {.lr = p->lr, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f};
    TRY(fds__deep_check(&params, memory, err));
    float *out = fds__alloc_zero(batch, outputs * sizeof *out);
    fds__deep *net = NULL;
    fds_status status = out ? fds__deep_create(&params, &net, err)
                            : fds__fail_nomem(err, batch * outputs * sizeof *out);
    size_t steps = 0;
    double start = 0;
    while (status == FDS_OK && (steps < 2 || fds__now_s() - start < TRY_S)) {
        if (steps == 1) /* the first one warms up */
            start = fds__now_s();
        status = fds__deep_forward(net, x->values, out, err);
        if (status == FDS_OK)
            status = fds__deep_backward(net, out, err);
        if (status == FDS_OK)
            status = fds__deep_step(net, &adam, err);
        if (status == FDS_OK)
            status = fds__report(events, "estimate", "steps", steps, steps, start, err);
        steps++;
    }
    *seconds = steps > 1 ? (fds__now_s() - start) / (double)(steps - 1) : 0;
    fds__deep_free(net);
    fds__free(out);
    return status;
}

/* ---- accuracy ---- */

/* Correlations with the truth for 100 players, from docs/accuracy.md. Of explainers with default
 * settings, the mean over the sets of data measured. */
static const struct {
    const char *network;
    fds_sampler sampler;
    bool is_converged; /* the sub-models: fds */
    double correlation;
} explained[] = {
    {"mlp", FDS_SAMPLER_LEVERAGE, true, 0.954},  {"mlp", FDS_SAMPLER_LEVERAGE, false, 0.973},
    {"cnn", FDS_SAMPLER_LEVERAGE, false, 0.974}, {"linear", FDS_SAMPLER_LEVERAGE, false, 0.950},
    {"mlp", FDS_SAMPLER_GFDS, false, 0.537},     {"mlp", FDS_SAMPLER_GFDS_PLUS, false, 0.852},
};

/* Of least squares with FDS_ADJUST_COUNTS, by coalitions a player. */
static const struct {
    double a_player, correlation;
} solved[] = {{2.5, 0.899}, {5, 0.937}, {10, 0.967}, {20, 0.983}, {40, 0.990}};

/* 0 where no explainer was measured that was fitted like this one. */
static double explainer_accuracy(const fds__fit_settings *s, size_t players, size_t groups) {
    bool is_plus = s->sampler == FDS_SAMPLER_GFDS_PLUS,
         is_converged = strcmp(s->kind, "retrain") == 0;
    fds_adjust usual = s->sampler == FDS_SAMPLER_LEVERAGE ? FDS_ADJUST_COUNTS : FDS_ADJUST_NONE;
    if (s->adjust != usual || s->explainer.objective != FDS__OBJECTIVE_CLOSED ||
        s->explainer.is_by_group != is_plus ||
        s->coalitions != fds__fit_coalitions(s->sampler, players, groups))
        return 0;
    for (size_t i = 0; i < sizeof explained / sizeof *explained; i++)
        if (explained[i].sampler == s->sampler && explained[i].is_converged == is_converged &&
            strcmp(explained[i].network, s->explainer.network) == 0)
            return explained[i].correlation;
    return 0;
}

static double solved_accuracy(const fds__fit_settings *s, size_t players) {
    size_t last = sizeof solved / sizeof *solved - 1, i = 0;
    double ratio = (double)s->coalitions / (double)players;
    if (s->sampler != FDS_SAMPLER_LEVERAGE || s->adjust != FDS_ADJUST_COUNTS ||
        ratio < solved[0].a_player)
        return 0;
    if (ratio >= solved[last].a_player)
        return solved[last].correlation;
    while (ratio >= solved[i + 1].a_player)
        i++;
    double part =
        log(ratio / solved[i].a_player) / log(solved[i + 1].a_player / solved[i].a_player);
    return solved[i].correlation + part * (solved[i + 1].correlation - solved[i].correlation);
}

static void expect_accuracy(const fds__fit_settings *s, size_t players, const fds_groups *groups,
                            fds__fit_cost *out) {
    out->accuracy = explainer_accuracy(s, players, groups ? fds_groups_count(groups) : 0);
    out->accuracy_of = "explainers fitted so for 100 players";
    if (out->accuracy > 0)
        return;
    out->accuracy = solved_accuracy(s, players);
    out->accuracy_of = out->accuracy == 0 ? NULL
                       : s->is_bank       ? "banks of 100 players"
                                    : "the least squares for 100 players that an explainer follows";
}

/* ---- all of it ---- */

typedef struct {
    fds__fit_settings settings;
    fds__fit_plans plans;
    fds_utility *value;
    uint32_t *order;
    size_t n, classes, inputs;
    fds_groups *groups;
} question;

static fds_status estimate_explainer(const question *q, const fds_events *events,
                                     fds__fit_cost *out, size_t *memory, fds_error *err) {
    const fds__fit_settings *s = &q->settings;
    const fds__explainer_params p = s->explainer;
    size_t outputs = q->classes * (p.is_by_group ? fds_groups_count(q->groups) : q->n);
    size_t learnt = q->inputs - s->validation_inputs, batch = MIN((size_t)p.batch, learnt);
    size_t epochs = p.epochs + (p.warm_up ? LEARN_WARM_UP : 0);
    double each;
    TRY(time_steps(&p, q->value, outputs, batch, events, &each, memory, err));
    out->seconds[FDS__FIT_STAGE_EXPLAINER] = each * (double)(learnt / batch * epochs);
    return FDS_OK;
}

/* How many different coalitions there are: each is trained and kept once. */
static fds_status count_different(const fds_plan *plan, size_t *count, fds_error *err) {
    fds__slot_map index = {0};
    fds_status status = fds__slot_map_number(&index, plan, NULL, err);
    *count = index.count;
    fds__slot_map_free(&index);
    return status;
}

/* Of the table, and of the bank where there is one. */
static fds_status estimate_disk(const question *q, uint64_t *disk, fds_error *err) {
    const fds__fit_settings *s = &q->settings;
    size_t count;
    TRY(count_different(q->plans.all, &count, err));
    TRY(fds__table_bytes(q->value, FDS_STORE_F32, count, disk, err));
    if (!s->keeps_models)
        return FDS_OK;
    fds_net *net;
    fds__bank_slots slots;
    TRY(fds_net_create(s->value.network, q->value->data->samples->shape, (uint32_t)q->classes, &net,
                       err));
    fds_status status = fds__bank_slots_create(net, q->plans.all, &slots, err);
    if (status == FDS_OK) {
        *disk += FDS__BANK_HEADER + (uint64_t)slots.count * slots.record_size;
        fds__bank_slots_free(&slots);
    }
    fds_net_free(net);
    return status;
}

static fds_status estimate(question *q, const fds_events *events, fds__fit_cost *out,
                           fds_error *err) {
    teller t = {events, 0, fds__now_s()};
    const fds_events told = {.progress = tell, .user = &t};
    const fds__fit_settings *s = &q->settings;
    size_t columns = q->inputs * q->classes, memory = 0;
    double each = 0;
    TRY(time_sub_model(s, q->value, q->plans.all, &told, &each, err));
    TRY(count_different(q->plans.all, &out->sub_models, err));
    out->seconds[FDS__FIT_STAGE_UTILITIES] = each * (double)out->sub_models;
    t.done++;
    TRY(time_values(s, q->plans.plan, q->groups, columns, &told,
                    &out->seconds[FDS__FIT_STAGE_VALUES], err));
    t.done++;
    if (!s->is_bank)
        TRY(estimate_explainer(q, &told, out, &memory, err));
    const fds_ls_params ls = {.adjust = s->adjust, .groups = q->groups};
    uint64_t values = (uint64_t)q->n * columns * (2 * sizeof(double) + sizeof(float));
    out->memory = q->value->memory + values + memory +
                  fds_least_squares_memory(q->plans.plan, &ls, columns, s->threads);
    TRY(estimate_disk(q, &out->disk, err));
    expect_accuracy(s, q->n, q->groups, out);
    t.done++;
    return fds__report(events, "estimate", "trials", t.done, TRIALS, t.start_s, err);
}

static fds_status run(question *q, const fds_problem *problem, const fds_params *params,
                      const fds_events *events, fds__fit_cost *out, fds_error *err) {
    const fds__fit_settings *s = &q->settings;
    TRY(fds__fit_prepare(problem, params, events, &q->settings, &q->groups, err));
    TRY(fds__fit_plans_make(s, q->n, q->groups, &q->plans, err));
    q->order = fds__alloc(q->inputs * sizeof *q->order);
    if (!q->order)
        return fds__fail_nomem(err, q->inputs * sizeof *q->order);
    fds__fit_order(s, problem->inputs, q->inputs, q->order);
    const fds__utility_params utility = fds__fit_utility(s);
    TRY(fds__utility_create(&utility, problem->train, problem->players, problem->train, q->order,
                            q->inputs, s->threads, &q->value, err));
    return estimate(q, events, out, err);
}

fds_status fds__fit_estimate(const fds_problem *problem, const fds_params *params,
                             const fds_events *events, fds__fit_cost *out, fds_error *err) {
    question q = {.n = fds_players_count(problem->players),
                  .classes = problem->train->classes,
                  .inputs = problem->input_count};
    *out = (fds__fit_cost){0};
    fds_status status = run(&q, problem, params, events, out, err);
    fds_utility_free(q.value);
    fds__free(q.order);
    fds__fit_plans_free(&q.plans);
    fds_groups_free(q.groups);
    return status;
}
