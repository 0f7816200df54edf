/* SPDX-License-Identifier: Apache-2.0
 * A fit's utilities, the service model, and samples of the players. */
#include "explain/fit_inside.h"

static fds_status save_players(const fds__fit_job *f, fds_error *err) {
    char path[FDS__PATH_MAX];
    TRY(fds__path_join(path, sizeof path, f->dir, FDS__RUN_PLAYERS, err));
    float *samples;
    TRY(RESERVE(samples, f->n * f->train->sample_size, 1, err));
    for (size_t p = 0; p < f->n; p++) {
        const uint32_t *index;
        fds_players_samples(f->players, p, &index);
        fds_dataset_sample(f->train, index[0], samples + p * f->train->sample_size);
    }
    fds_shape s = f->train->shape;
    const fds__tensor tensor = {
        "samples", 4, {(uint32_t)f->n, s.channels, s.height, s.width}, samples};
    fds_status status = fds__safetensors_write(path, &tensor, 1, NULL, 0, f->events, err);
    fds__free(samples);
    return status;
}

/* Takes the sub-model of all players as the service model. */
static fds_status take_service(void *context, const float *weights, const fds_train_report *report,
                               fds_error *err) {
    fds__fit_job *f = context;
    const fds__utility_params utility = fds__fit_utility(&f->settings);
    fds_train_params train;
    if (f->service)
        return FDS_OK;
    TRY(fds__utility_training(&utility, &train, err));
    const fds__utility_data *data = f->utility->data;
    const fds__scale scale = {data->mean, data->std, data->target_mean, data->target_std};
    return fds__model_create(f->train, f->problem->samples, f->problem->sample_count,
                             utility.network, &train, &scale, weights, report, &f->service, err);
}

static fds_status train_service(void *context, size_t job, unsigned worker, fds_error *err) {
    const fds__fit_job *f = context;
    float *probs;
    (void)job;
    TRY(RESERVE(probs, f->columns, 1, err));
    fds_status status =
        fds_utility_eval(f->utility, worker, fds_plan_coalition(f->plans.all, 1), probs, err);
    fds__free(probs);
    return status;
}

static fds_status save_service(const fds__fit_job *f, fds_error *err) {
    char path[FDS__PATH_MAX];
    TRY(fds__path_join(path, sizeof path, f->dir, FDS__RUN_SERVICE, err));
    TRY(f->service ? fds_model_save(f->service, path, err)
                   : fds__service_program_save(path, f->utility, f->problem, err));
    return save_players(f, err);
}

/* Of a regression: the values are those for what the service model predicts. */
static fds_status aim_at_predictions(fds__fit_job *f, fds_error *err) {
    double mean, std, error = 0;
    f->aim = (fds__aim){.mean = f->utility->data->target_mean,
                        .std = f->utility->data->target_std,
                        .is_kernel = f->params->score == 1};
    TRY(RESERVE(f->aim.targets, f->inputs, 1, err));
    TRY(RESERVE(f->zeros, f->inputs, 1, err));
    const fds_dataset *asked = fds__problem_input_data(f->problem);
    fds__dataset_target_stats(asked, f->order, f->inputs, &mean, &std);
    for (size_t x = 0; x < f->inputs; x++) {
        f->aim.targets[x] = f->full[x];
        double away = f->aim.mean + f->aim.std * f->full[x] - asked->targets[f->order[x]];
        error += away * away / (double)f->inputs;
    }
    f->report.service_accuracy = 1 - error / (std * std);
    return FDS_OK;
}

/* v(0) and v(1) of every input and label, and which label is predicted. */
static fds_status read_ends(fds__fit_job *f, fds_error *err) {
    TRY(RESERVE(f->empty, f->columns, 1, err));
    TRY(RESERVE(f->full, f->columns, 1, err));
    TRY(RESERVE(f->predicted, f->inputs, 1, err));
    TRY(fds__table_ends(f->table, f->plans.plan, f->empty, f->full, err));
    if (f->train->targets)
        return aim_at_predictions(f, err);
    size_t right = 0;
    for (size_t x = 0; x < f->inputs; x++) {
        f->predicted[x] = fds__argmax(f->full + x * f->classes, f->classes);
        right += f->predicted[x] == fds__problem_input_data(f->problem)->labels[f->order[x]];
    }
    f->report.service_accuracy = (double)right / (double)f->inputs;
    return FDS_OK;
}

/* The bank and then the table are filled, but for the user sub-models are one count. */
typedef struct whole_count {
    const fds_events *events;
    uint64_t before, total;
    double began_s;
} whole_count;

static bool show_whole(void *user, const fds_progress *part) {
    const whole_count *c = user;
    fds_progress all = *part;
    if (strcmp(part->stage, "utilities") == 0 && c->before + part->total <= c->total) {
        all.done += c->before;
        all.total = c->total;
        all.elapsed_s = fds__now_s() - c->began_s;
    }
    return c->events->progress(c->events->user, &all);
}

static void pass_log(void *user, fds_log_level level, const char *text) {
    const whole_count *c = user;
    c->events->log(c->events->user, level, text);
}

static fds_status count_missing(const fds__fit_job *f, uint64_t *missing, fds_error *err) {
    fds_table_cost need;
    TRY(fds_table_estimate(f->table, f->plans.all, f->settings.threads, &need, err));
    *missing = need.missing;
    return FDS_OK;
}

/* Trains the sub-models that the table, or the bank, lacks. The bank has all of them, or the first
 * only. */
fds_status fds__fit_train_sub_models(fds__fit_job *f, fds_error *err) {
    unsigned threads = f->settings.threads;
    uint64_t missing;
    whole_count count = {.events = f->events, .began_s = fds__now_s()};
    const fds_events events = {.log = f->events && f->events->log ? pass_log : NULL,
                               .progress = f->events && f->events->progress ? show_whole : NULL,
                               .user = &count};
    TRY(count_missing(f, &count.total, err));
    const fds_plan *kept = f->settings.keeps_models ? f->plans.all : f->plans.probes;
    char path[FDS__PATH_MAX];
    if (kept) {
        TRY(fds__path_join(path, sizeof path, f->dir, FDS__RUN_BANK, err));
        if (f->settings.until.wanted > 0)
            TRY(fds__bank_extend(path, f->utility, kept, f->events, err));
        TRY(fds__bank_fill(path, f->utility, f->table, kept, threads, &events, err));
    }
    TRY(count_missing(f, &missing, err));
    count.before = count.total - MIN(missing, count.total);
    return fds_table_fill(f->table, f->plans.all, threads, &events, err);
}

/* The service model too, which an earlier process may have trained but not saved. */
static fds_status train_all(fds__fit_job *f, fds_error *err) {
    const fds__service_sink sink = {take_service, f};
    f->utility->data->service = &sink;
    fds_status status = fds__ranks_bind(f->utility, f->plans.all, FDS_STORE_F32, err);
    if (status == FDS_OK)
        status = fds__fit_train_sub_models(f, err);
    fds__ranks_bind(NULL, NULL, FDS_STORE_F32, NULL);
    bool is_program = fds__command_of(f->settings.kind); /* is the service model itself */
    if (status == FDS_OK && !f->service && !is_program)
        status = fds__pool_run(1, 1, train_service, f, "service model", "models", f->events, err);
    f->utility->data->service = NULL;
    return status;
}

fds_status fds__fit_fill(fds__fit_job *f, fds_error *err) {
    const fds__fit_settings *s = &f->settings;
    fds_table_cost need;
    TRY(train_all(f, err));
    TRY(save_service(f, err));
    TRY(fds__run_lists_write(f->dir, s, f->utility, &f->plans, err));
    TRY(fds_table_estimate(f->table, f->plans.all, s->threads, &need, err));
    f->report.sub_models = need.coalitions;
    TRY(fds_table_view_create(f->table, f->plans.plan, NULL, false, s->threads, &f->view, err));
    TRY(fds_table_view_create(f->table, f->plans.validation, NULL, false, s->threads,
                              &f->validation_view, err));
    return read_ends(f, err);
}
