/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole job: service model, utilities, values, explainer, check. Every stage finds in the
 * folder what an earlier process that died has left, and the result has the same bits as if none
 * had. */
#include "explain/run.h"

#include <math.h>
#include <string.h>

/* A fit at work. Settings, data and players are the caller's. */
typedef struct {
    const char *dir, *method;
    const fds_dataset *train;
    const fds_players *players;
    const fds_groups *groups;
    const fds_events *events;
    fds_fit_settings settings;
    fds_explainer_params explainer_params;
    fds_fit_plans plans;
    size_t n, inputs, columns; /* columns: inputs * classes */
    uint32_t classes;
    uint32_t *order; /* (inputs) samples, those kept out last */
    fds_value *value;
    fds_table *table;
    fds_table_view *view, *held_view;
    json_t *description;
    uint32_t *predicted;     /* (inputs) */
    double *empty, *full;    /* (inputs, classes) */
    double *values, *errors; /* (n, columns), by least squares */
    float *targets;          /* (inputs, classes, n): the same, turned round */
    fds_explainer *explainer;
    fds_ls_report strengths;
    fds_fit_report report;
    bool is_done;
} fit;

static void fit_free(fit *f) {
    fds_explainer_free(f->explainer);
    fds_free(f->targets);
    fds_free(f->values);
    fds_free(f->errors);
    fds_free(f->empty);
    fds_free(f->full);
    fds_free(f->predicted);
    json_decref(f->description);
    fds_table_view_free(f->view);
    fds_table_view_free(f->held_view);
    fds_table_free(f->table);
    fds_value_free(f->value);
    fds_free(f->order);
    fds_fit_plans_free(&f->plans);
}

static fds_status path_of(const fit *f, const char *name, char path[FDS_PATH_MAX], fds_error *err) {
    return fds_path_join(path, FDS_PATH_MAX, f->dir, name, err);
}

/* count numbers, 0 */
static fds_status room(void *pointer, size_t count, size_t size, fds_error *err) {
    void **out = pointer;
    *out = fds_alloc_zero(count, size);
    return *out ? FDS_OK : fds_fail_nomem(err, count * size);
}

/* ---- before any work ---- */

/* What would otherwise show only once all sub-models are trained. */
static fds_status check_explainer(const fit *f, fds_error *err) {
    const fds_explainer_params *p = &f->explainer_params;
    size_t outputs = f->classes * (p->is_by_group ? fds_groups_count(f->groups) : f->n);
    size_t batch = FDS_MIN(f->inputs - f->settings.held_inputs, (size_t)p->batch);
    const fds_deep_params net = fds_explainer_net(p, f->train->shape, outputs, batch);
    if (outputs > UINT32_MAX)
        return fds_fail(err, FDS_LIMIT, "an explainer of %zu outputs is too large", outputs);
    FDS_TRY(fds_deep_check(&net, NULL, err));
    fds_safetensors *weights = NULL;
    fds_status status = p->weights ? fds_safetensors_read(p->weights, &weights, err) : FDS_OK;
    fds_safetensors_free(weights);
    return status;
}

/* Removes what processes that died while they wrote a file of the run have left beside it. */
static fds_status sweep(const fit *f, fds_error *err) {
    static const char *const names[] = {FDS_RUN_JSON, FDS_RUN_SERVICE, FDS_RUN_EXPLAINER,
                                        FDS_RUN_PLAYERS, FDS_RUN_ERRORS};
    char path[FDS_PATH_MAX];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        FDS_TRY(path_of(f, names[i], path, err));
        FDS_TRY(fds_out_sweep(path, err));
    }
    return FDS_OK;
}

static fds_status open_fit(fit *f, const uint32_t *inputs, fds_error *err) {
    const fds_fit_settings *s = &f->settings;
    char path[FDS_PATH_MAX];
    FDS_TRY(fds_fit_plans_make(s, f->n, f->groups, &f->plans, err));
    const fds_ls_params ls = {.adjust = s->params.adjust, .groups = f->groups};
    FDS_TRY(fds_least_squares_check(f->plans.plan, &ls, err));
    FDS_TRY(room(&f->order, f->inputs, sizeof *f->order, err));
    fds_fit_order(s, inputs, f->inputs, f->order);
    FDS_TRY(fds_value_create(&s->value, f->train, f->players, f->train, f->order, f->inputs,
                             s->threads, &f->value, err));
    FDS_TRY(fds_run_record_describe(f->method, s, f->train, f->players, f->groups, f->value,
                                    &f->explainer_params, &f->description, err));
    bool is_there;
    FDS_TRY(fds_run_record_compare(f->dir, f->description, &is_there, &f->is_done, err));
    f->report.was_resumed = is_there;
    if (!f->is_done && !s->is_bank)
        FDS_TRY(check_explainer(f, err));
    FDS_TRY(fds_mkdirs(f->dir, err));
    FDS_TRY(path_of(f, FDS_RUN_TABLE, path, err));
    /* the table's lock keeps other processes out of the whole run */
    FDS_TRY(fds_table_open(path, f->value, FDS_F32, f->events, &f->table, err));
    FDS_TRY(sweep(f, err));
    return is_there ? FDS_OK : fds_run_record_write(f->dir, f->description, s, NULL, NULL, err);
}

/* ---- the service model, and what the run needs to show its players ---- */

static fds_status save_players(const fit *f, fds_error *err) {
    char path[FDS_PATH_MAX];
    FDS_TRY(path_of(f, FDS_RUN_PLAYERS, path, err));
    float *samples;
    FDS_TRY(room(&samples, f->n * f->train->sample_size, sizeof *samples, err));
    for (size_t p = 0; p < f->n; p++) {
        const uint32_t *index;
        fds_players_samples(f->players, p, &index);
        fds_dataset_sample(f->train, index[0], samples + p * f->train->sample_size);
    }
    fds_shape s = f->train->shape;
    const fds_tensor tensor = {
        "samples", 4, {(uint32_t)f->n, s.channels, s.height, s.width}, samples};
    fds_status status = fds_safetensors_write(path, &tensor, 1, NULL, 0, err);
    fds_free(samples);
    return status;
}

/* All samples of all players. */
static fds_status gather_samples(const fit *f, uint32_t **out, size_t *count, fds_error *err) {
    const uint32_t *index;
    *count = 0;
    for (size_t p = 0; p < f->n; p++)
        *count += fds_players_samples(f->players, p, &index);
    FDS_TRY(room(out, *count, sizeof **out, err));
    size_t at = 0;
    for (size_t p = 0; p < f->n; p++) {
        size_t owned = fds_players_samples(f->players, p, &index);
        memcpy(*out + at, index, owned * sizeof *index);
        at += owned;
    }
    fds_index_sort(*out, *count);
    return FDS_OK;
}

static fds_status train_service(fit *f, fds_error *err) {
    char path[FDS_PATH_MAX];
    fds_train_params train;
    uint32_t *samples;
    size_t count;
    FDS_TRY(path_of(f, FDS_RUN_SERVICE, path, err));
    FDS_TRY(fds_value_training(&f->settings.value, &train, err));
    FDS_TRY(gather_samples(f, &samples, &count, err));
    fds_model *model = NULL;
    fds_status status = fds_model_train(f->train, samples, count, f->settings.value.network, &train,
                                        f->events, &model, NULL, err);
    fds_free(samples);
    if (status == FDS_OK)
        status = fds_model_save(model, path, err);
    fds_model_free(model);
    return status == FDS_OK ? save_players(f, err) : status;
}

/* ---- utilities ---- */

/* v(0) and v(1) of every input and label, and which label is predicted. */
static fds_status read_ends(fit *f, fds_error *err) {
    fds_rows rows = fds_table_view_rows(f->view);
    FDS_TRY(room(&f->empty, f->columns, sizeof *f->empty, err));
    FDS_TRY(room(&f->full, f->columns, sizeof *f->full, err));
    FDS_TRY(room(&f->predicted, f->inputs, sizeof *f->predicted, err));
    FDS_TRY(rows.read(rows.context, 0, 0, 0, f->columns, f->empty, err));
    FDS_TRY(rows.read(rows.context, 0, 1, 0, f->columns, f->full, err));
    size_t right = 0;
    for (size_t x = 0; x < f->inputs; x++) {
        const double *v = f->full + x * f->classes;
        for (uint32_t y = 1; y < f->classes; y++)
            if (v[y] > v[f->predicted[x]])
                f->predicted[x] = y;
        right += f->predicted[x] == f->train->labels[f->order[x]];
    }
    f->report.service_accuracy = (double)right / (double)f->inputs;
    return FDS_OK;
}

/* Trains those that the table, or the bank, lacks. */
static fds_status train_sub_models(fit *f, fds_error *err) {
    unsigned threads = f->settings.threads;
    char path[FDS_PATH_MAX];
    if (!f->settings.keeps_models)
        return fds_table_fill(f->table, f->plans.all, threads, f->events, err);
    FDS_TRY(path_of(f, FDS_RUN_BANK, path, err));
    return fds_bank_fill(path, f->value, f->table, f->plans.all, threads, f->events, err);
}

static fds_status fill_utilities(fit *f, fds_error *err) {
    const fds_fit_settings *s = &f->settings;
    fds_table_need need;
    FDS_TRY(train_sub_models(f, err));
    FDS_TRY(fds_table_plan(f->table, f->plans.all, s->threads, &need, err));
    f->report.sub_models = need.coalitions;
    FDS_TRY(fds_table_view_create(f->table, f->plans.plan, NULL, false, s->threads, &f->view, err));
    FDS_TRY(fds_table_view_create(f->table, f->plans.held, NULL, false, s->threads, &f->held_view,
                                  err));
    return read_ends(f, err);
}

/* ---- values by least squares ---- */

static fds_status solve(fit *f, fds_error *err) {
    const fds_fit_settings *s = &f->settings;
    const fds_rows rows = fds_table_view_rows(f->view);
    const fds_ls_params ls = {.adjust = s->params.adjust, .groups = f->groups};
    FDS_TRY(room(&f->values, f->n * f->columns, sizeof *f->values, err));
    FDS_TRY(room(&f->errors, f->n * f->columns, sizeof *f->errors, err));
    return fds_least_squares(f->plans.plan, &rows, &ls, s->threads, f->values, f->errors,
                             &f->strengths, f->events, err);
}

/* out[j * n + i] = in[i * columns + j]; by blocks, for the cache */
static void turn(const double *in, size_t n, size_t columns, float *out) {
    enum { BLOCK = 32 };
    for (size_t first = 0; first < columns; first += BLOCK)
        for (size_t i = 0; i < n; i++)
            for (size_t j = first; j < FDS_MIN(first + BLOCK, columns); j++)
                out[j * n + i] = (float)in[i * columns + j];
}

/* ---- the explainer ---- */

static fds_status learn(fit *f, fds_error *err) {
    const fds_inputs *x = f->value->data->inputs;
    FDS_TRY(room(&f->targets, f->n * f->columns, sizeof *f->targets, err));
    turn(f->values, f->n, f->columns, f->targets);
    const fds_rows rows = fds_table_view_rows(f->view), held = fds_table_view_rows(f->held_view);
    const fds_lesson lesson = {
        .inputs = f->inputs,
        .held = f->settings.held_inputs,
        .shape = f->train->shape,
        .x = x->values,
        .labels = x->labels,
        .players = f->n,
        .classes = f->classes,
        .groups = f->groups,
        .empty = f->empty,
        .full = f->full,
        .targets = f->explainer_params.objective == FDS_CLOSED ? f->targets : NULL,
        .plan = f->plans.plan,
        .held_plan = f->plans.held,
        .rows = &rows,
        .held_rows = &held,
    };
    fds_learnt learnt = {0};
    char path[FDS_PATH_MAX];
    FDS_TRY(path_of(f, FDS_RUN_EXPLAINER, path, err));
    FDS_TRY(
        fds_learn(&lesson, &f->explainer_params, f->dir, f->events, &f->explainer, &learnt, err));
    f->report.epochs = learnt.epochs;
    f->report.best_epoch = learnt.best_epoch;
    f->report.loss = learnt.held_loss;
    fds_free(learnt.metrics);
    return fds_explainer_save(f->explainer, path, err);
}

/* ---- the check on inputs kept out ---- */

double fds_correlation(const double *a, const double *b, const bool *in, size_t count) {
    const double alike = 1e-12;
    double n = 0, mean_a = 0, mean_b = 0, aa = 0, bb = 0, saa = 0, sbb = 0, sab = 0;
    for (size_t i = 0; i < count; i++)
        if (!in || in[i]) {
            n++;
            mean_a += a[i];
            mean_b += b[i];
        }
    mean_a /= n;
    mean_b /= n;
    for (size_t i = 0; i < count; i++)
        if (!in || in[i]) {
            double x = a[i] - mean_a, y = b[i] - mean_b;
            aa += a[i] * a[i];
            bb += b[i] * b[i];
            saa += x * x;
            sbb += y * y;
            sab += x * y;
        }
    return n > 2 && saa > alike * aa && sbb > alike * bb ? sab / (sqrt(saa) * sqrt(sbb)) : NAN;
}

/* What is compared: (held, classes, n) each. */
typedef struct {
    double *values, *targets, *errors;
    uint32_t *labels; /* (n) of the players */
    bool *same;       /* (n) */
} comparison;

static void compare(fit *f, const comparison *c) {
    size_t held = f->settings.held_inputs, first = f->inputs - held, counted = 0,
           counted_within = 0;
    double sum = 0, within = 0;
    for (size_t x = 0; x < held; x++) {
        uint32_t y = f->predicted[first + x];
        size_t at = (x * f->classes + y) * f->n;
        for (size_t i = 0; i < f->n; i++)
            c->same[i] = c->labels[i] == y;
        double r = fds_correlation(c->values + at, c->targets + at, NULL, f->n);
        double w = fds_correlation(c->values + at, c->targets + at, c->same, f->n);
        if (!isnan(r)) {
            sum += r;
            counted++;
        }
        if (!isnan(w)) {
            within += w;
            counted_within++;
        }
    }
    f->report.agreement = counted ? sum / (double)counted : NAN;
    f->report.within = counted_within ? within / (double)counted_within : NAN;
}

static fds_status fill_comparison(fit *f, comparison *c, fds_error *err) {
    size_t held = f->settings.held_inputs, first = f->inputs - held, k = held * f->classes;
    const fds_inputs *x = f->value->data->inputs;
    float *raw;
    FDS_TRY(room(&raw, k * f->n, sizeof *raw, err));
    fds_status status =
        fds_explainer_run(f->explainer, x->values + first * x->size, held, raw, err);
    for (size_t j = 0; j < k && status == FDS_OK; j++) {
        size_t column = first * f->classes + j;
        for (size_t i = 0; i < f->n; i++) {
            c->values[j * f->n + i] = raw[j * f->n + i];
            c->targets[j * f->n + i] = f->values[i * f->columns + column];
            c->errors[j * f->n + i] = f->errors[i * f->columns + column];
        }
        fds_normalise(f->full[column] - f->empty[column], f->n, c->values + j * f->n);
    }
    fds_free(raw);
    return status;
}

static fds_status label_players(const fit *f, uint32_t *labels, fds_error *err) {
    size_t *counts;
    FDS_TRY(room(&counts, f->classes, sizeof *counts, err));
    for (size_t p = 0; p < f->n; p++) {
        const uint32_t *index;
        size_t count = fds_players_samples(f->players, p, &index);
        labels[p] = fds_player_label(f->train, index, count, counts);
    }
    fds_free(counts);
    return FDS_OK;
}

static fds_status calibrate(fit *f, comparison *c, fds_error *err) {
    size_t held = f->settings.held_inputs, size = held * f->classes * f->n;
    char path[FDS_PATH_MAX];
    FDS_TRY(path_of(f, FDS_RUN_ERRORS, path, err));
    FDS_TRY(room(&c->values, size, sizeof *c->values, err));
    FDS_TRY(room(&c->targets, size, sizeof *c->targets, err));
    FDS_TRY(room(&c->errors, size, sizeof *c->errors, err));
    FDS_TRY(room(&c->labels, f->n, sizeof *c->labels, err));
    FDS_TRY(room(&c->same, f->n, sizeof *c->same, err));
    FDS_TRY(label_players(f, c->labels, err));
    FDS_TRY(fill_comparison(f, c, err));
    compare(f, c);
    fds_calibration calibration;
    FDS_TRY(fds_calibrate(c->values, c->targets, c->errors, f->predicted + f->inputs - held, held,
                          f->classes, c->labels, f->n, &calibration, err));
    fds_status status = fds_calibration_save(&calibration, f->classes, f->n, path, err);
    fds_calibration_free(&calibration);
    return status;
}

static fds_status check(fit *f, fds_error *err) {
    comparison c = {0};
    fds_status status = calibrate(f, &c, err);
    fds_free(c.values);
    fds_free(c.targets);
    fds_free(c.errors);
    fds_free(c.labels);
    fds_free(c.same);
    return status;
}

/* ---- all of it ---- */

static fds_status run_stage(fit *f, fds_fit_stage stage, fds_status (*work)(fit *, fds_error *),
                            fds_error *err) {
    double start = fds_now_s();
    fds_status status = work(f, err);
    f->report.seconds[stage] = fds_now_s() - start;
    return status;
}

/* A run that was complete before has its report, unless its files are no longer what they were:
 * then it is not done. Sub-models that are lost are trained again. */
static fds_status revisit(fit *f, fds_error *err) {
    fds_run_record record;
    fds_error why;
    FDS_TRY(fds_run_record_read(f->dir, &record, err));
    fds_status status = fds_run_record_check(f->dir, &record, &why);
    if (status == FDS_CORRUPT)
        fds_log(f->events, FDS_LOG_WARNING, "%s; made again", why.text);
    else if (status != FDS_OK)
        fds_fail(err, status, "%s", why.text);
    else
        f->report = record.report;
    f->report.was_resumed = true;
    fds_run_record_free(&record);
    f->is_done = status == FDS_OK;
    if (status == FDS_OK && f->settings.keeps_models)
        return train_sub_models(f, err);
    return status == FDS_CORRUPT ? FDS_OK : status;
}

static fds_status run_stages(fit *f, fds_error *err) {
    FDS_TRY(run_stage(f, FDS_STAGE_SERVICE, train_service, err));
    FDS_TRY(run_stage(f, FDS_STAGE_UTILITIES, fill_utilities, err));
    FDS_TRY(run_stage(f, FDS_STAGE_VALUES, solve, err));
    if (!f->settings.is_bank) {
        FDS_TRY(run_stage(f, FDS_STAGE_EXPLAINER, learn, err));
        FDS_TRY(run_stage(f, FDS_STAGE_CHECK, check, err));
    }
    return fds_run_record_write(f->dir, f->description, &f->settings, &f->report, &f->strengths,
                                err);
}

static fds_status run_fit(fit *f, const uint32_t *inputs, fds_error *err) {
    FDS_TRY(open_fit(f, inputs, err));
    if (f->is_done)
        FDS_TRY(revisit(f, err));
    if (!f->is_done)
        FDS_TRY(run_stages(f, err));
    return fds_learn_forget(f->dir, err);
}

fds_status fds_fit(const char *dir, const char *method, const fds_dataset *train,
                   const fds_players *players, const fds_groups *groups, const uint32_t *inputs,
                   size_t input_count, const fds_fit_params *params, const fds_events *events,
                   fds_fit_report *report, fds_error *err) {
    fit f = {.dir = dir,
             .method = method,
             .train = train,
             .players = players,
             .groups = groups,
             .events = events,
             .n = fds_players_count(players),
             .inputs = input_count,
             .classes = train->classes,
             .columns = input_count * train->classes,
             .report = {.loss = NAN, .agreement = NAN, .within = NAN}};
    FDS_TRY(fds_fit_settle(params, train, players, groups, inputs, input_count, &f.settings, err));
    f.explainer_params = fds_fit_explainer(&f.settings);
    fds_status status = run_fit(&f, inputs, err);
    if (status == FDS_OK && report)
        *report = f.report;
    fit_free(&f);
    return status;
}
