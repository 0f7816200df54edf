/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole job: utilities and the service model, values, explainer, check. Every stage continues
 * from what an earlier process left in the folder, and the result has the same bits as one made
 * without interruption. */
#include "explain/run.h"

#include <math.h>
#include <string.h>

/* Problem, parameters and events belong to the caller. */
typedef struct {
    const char *dir;
    const fds_problem *problem;
    const fds_params *params;
    const fds_dataset *train;
    const fds_players *players;
    fds_groups *groups; /* or NULL */
    const fds_events *events;
    fds__fit_settings settings;
    fds__fit_plans plans;
    size_t n, inputs, columns; /* columns: inputs * classes */
    uint32_t classes;
    uint32_t *order; /* (inputs) samples, validation inputs last */
    fds_utility *utility;
    fds_model *service;
    fds_table *table;
    fds_table_view *view, *validation_view;
    json_t *description;
    uint32_t *predicted;          /* (inputs) */
    double *empty, *full;         /* (inputs, classes) */
    double *values, *errors;      /* (n, columns), by least squares */
    double *first, *first_errors; /* (n, columns), by the first sub-models, if these answer */
    fds__aim aim;                 /* of a regression: at what all players predict */
    uint32_t *zeros;              /* (inputs) its labels */
    float *targets;               /* (inputs, classes, n): the values, transposed; or */
    fds__factors factors;         /* with rank: (inputs, classes, rank), their coefficients */
    fds__explainer *explainer;    /* or */
    fds__probe *probe;
    fds_ls_report strengths;
    fds__fit_report report;
    bool is_done;
} fit;

static void fit_free(fit *f) {
    fds__explainer_free(f->explainer);
    fds__probe_free(f->probe);
    fds__free(f->targets);
    fds__factors_free(&f->factors);
    fds__free(f->values);
    fds__free(f->errors);
    fds__free(f->first);
    fds__free(f->first_errors);
    fds__free(f->empty);
    fds__free(f->full);
    fds__free(f->predicted);
    fds__aim_free(&f->aim);
    fds__free(f->zeros);
    json_decref(f->description);
    fds_table_view_free(f->view);
    fds_table_view_free(f->validation_view);
    fds_table_free(f->table);
    fds_model_free(f->service);
    fds_utility_free(f->utility);
    fds__free(f->order);
    fds__fit_plans_free(&f->plans);
    fds_groups_free(f->groups);
}

/* ---- before any work ---- */

/* Finds mistakes that would otherwise appear after all sub-models are trained. */
static fds_status check_explainer(const fit *f, fds_error *err) {
    const fds__explainer_params *p = &f->settings.explainer;
    size_t outputs = f->classes * fds__explainer_each(p, f->n, f->groups);
    size_t batch = MIN(f->inputs - f->settings.validation_inputs, (size_t)p->batch);
    const fds__deep_params net = fds__explainer_net(p, f->train->shape, outputs, batch);
    if (outputs > UINT32_MAX)
        return fds__fail(err, FDS_ERR_LIMIT, "an explainer of %zu outputs is too large", outputs);
    TRY(fds__deep_check(&net, NULL, err));
    fds__safetensors *weights = NULL;
    fds_status status = p->weights ? fds__safetensors_read(p->weights, &weights, err) : FDS_OK;
    fds__safetensors_free(weights);
    return status;
}

/* Removes the temporary files that killed processes left beside files of the run. */
static fds_status sweep(const fit *f, fds_error *err) {
    static const char *const names[] = {FDS__RUN_JSON,     FDS__RUN_SERVICE, FDS__RUN_EXPLAINER,
                                        FDS__RUN_PLAYERS,  FDS__RUN_ERRORS,  FDS__RUN_VALIDATION,
                                        FDS__RUN_NEWCOMERS};
    char path[FDS__PATH_MAX];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        TRY(fds__path_join(path, sizeof path, f->dir, names[i], err));
        TRY(fds__out_sweep(path, err));
    }
    return FDS_OK;
}

static fds_status open_fit(fit *f, fds_error *err) {
    const fds__fit_settings *s = &f->settings;
    char path[FDS__PATH_MAX];
    TRY(fds__fit_plans_make(s, f->n, f->groups, &f->plans, err));
    const fds_ls_params ls = {.adjust = s->adjust, .groups = f->groups};
    TRY(fds_least_squares_check(f->plans.plan, &ls, err));
    TRY(fds__fit_utility_create(s, f->problem, f->events, &f->order, &f->utility, err));
    TRY(fds__run_record_describe(s, f->problem, f->params, f->groups, f->utility, &f->description,
                                 err));
    TRY(fds__run_record_compare(f->dir, f->description, f->events, &f->report.was_resumed,
                                &f->is_done, err));
    if (!f->is_done && !s->is_bank && !s->probes)
        TRY(check_explainer(f, err));
    TRY(fds__mkdirs(f->dir, err));
    TRY(fds__path_join(path, sizeof path, f->dir, FDS__RUN_TABLE, err));
    /* the table's lock keeps other processes out of the whole run */
    TRY(fds_table_open(path, f->utility, FDS_STORE_F32, f->events, &f->table, err));
    TRY(sweep(f, err));
    return f->is_done ? FDS_OK : fds__run_record_write(f->dir, f->description, s, NULL, NULL, err);
}

/* ---- utilities, the service model, and samples of the players ---- */

static fds_status save_players(const fit *f, fds_error *err) {
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
    fds_status status = fds__safetensors_write(path, &tensor, 1, NULL, 0, err);
    fds__free(samples);
    return status;
}

/* Takes the sub-model of all players as the service model. */
static fds_status take_service(void *context, const float *weights, const fds_train_report *report,
                               fds_error *err) {
    fit *f = context;
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
    const fit *f = context;
    float *probs;
    (void)job;
    TRY(RESERVE(probs, f->columns, 1, err));
    fds_status status =
        fds_utility_eval(f->utility, worker, fds_plan_coalition(f->plans.all, 1), probs, err);
    fds__free(probs);
    return status;
}

static fds_status save_service(const fit *f, fds_error *err) {
    char path[FDS__PATH_MAX];
    TRY(fds__path_join(path, sizeof path, f->dir, FDS__RUN_SERVICE, err));
    TRY(f->service ? fds_model_save(f->service, path, err)
                   : fds__service_program_save(path, f->utility, f->problem, err));
    return save_players(f, err);
}

/* Of a regression: the values are those for what the service model predicts. */
static fds_status aim_at_predictions(fit *f, fds_error *err) {
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
static fds_status read_ends(fit *f, fds_error *err) {
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

static fds_status count_missing(const fit *f, uint64_t *missing, fds_error *err) {
    fds_table_cost need;
    TRY(fds_table_estimate(f->table, f->plans.all, f->settings.threads, &need, err));
    *missing = need.missing;
    return FDS_OK;
}

/* Trains the sub-models that the table, or the bank, lacks. The bank has all of them, or the first
 * only. */
static fds_status train_sub_models(fit *f, fds_error *err) {
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
        TRY(fds__bank_fill(path, f->utility, f->table, kept, threads, &events, err));
    }
    TRY(count_missing(f, &missing, err));
    count.before = count.total - MIN(missing, count.total);
    return fds_table_fill(f->table, f->plans.all, threads, &events, err);
}

/* The service model too, which an earlier process may have trained but not saved. */
static fds_status train_all(fit *f, fds_error *err) {
    const fds__service_sink sink = {take_service, f};
    f->utility->data->service = &sink;
    fds_status status = fds__ranks_bind(f->utility, f->plans.all, FDS_STORE_F32, err);
    if (status == FDS_OK)
        status = train_sub_models(f, err);
    fds__ranks_bind(NULL, NULL, FDS_STORE_F32, NULL);
    bool is_program = fds__command_of(f->settings.kind); /* is the service model itself */
    if (status == FDS_OK && !f->service && !is_program)
        status = fds__pool_run(1, 1, train_service, f, "service model", "models", f->events, err);
    f->utility->data->service = NULL;
    return status;
}

static fds_status fill_utilities(fit *f, fds_error *err) {
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

/* ---- values by least squares ---- */

/* Of one plan; errors may be NULL. */
static fds_status solve_plan(const fit *f, const fds_plan *plan, double *values, double *errors,
                             fds_ls_report *strengths, fds_error *err) {
    const fds__fit_settings *s = &f->settings;
    const fds__solving solving = {.table = f->table,
                                  .plan = plan,
                                  .ls = {.adjust = s->adjust, .groups = f->groups},
                                  .aim = &f->aim,
                                  .threads = s->threads,
                                  .events = f->events};
    return fds__table_solve(&solving, f->zeros, false, values, errors, strengths, err);
}

/* A checksum of what the values depend on: settings and data, coalitions, and this version. */
static fds_status values_key(const fit *f, uint64_t *key, fds_error *err) {
    const fds_plan *plan = f->plans.plan;
    uint64_t sums[3];
    TRY(fds__json_checksum(f->description, &sums[0], err));
    sums[1] = fds_checksum(plan->bits, plan->rows * plan->words * sizeof *plan->bits);
    sums[2] = fds_checksum(FDS_VERSION, strlen(FDS_VERSION));
    *key = fds_checksum(sums, sizeof sums);
    return FDS_OK;
}

static fds_status solve(fit *f, fds_error *err) {
    const fds__fit_settings *s = &f->settings;
    TRY(RESERVE(f->values, f->n * f->columns, 1, err));
    TRY(RESERVE(f->errors, f->n * f->columns, 1, err));
    double noise, start_s = fds__now_s();
    uint64_t key;
    bool is_found;
    TRY(values_key(f, &key, err));
    TRY(fds__values_find(f->dir, key, f->n, f->columns, &f->strengths, f->values, f->errors,
                         &is_found, err));
    if (is_found)
        return FDS_OK;
    TRY(fds__utility_noise(f->utility, f->table, f->plans.plan, f->events, &noise, err));
    TRY(solve_plan(f, f->plans.plan, f->values, f->errors, &f->strengths, err));
    bool is_grouped = s->sampler == FDS_SAMPLER_GFDS || s->sampler == FDS_SAMPLER_GFDS_PLUS;
    fds__noise_add(noise, false, is_grouped, f->n, f->n * f->columns, f->errors);
    if (fds__now_s() - start_s < fds__values_kept_s)
        return FDS_OK;
    return fds__values_keep(f->dir, key, f->n, f->columns, &f->strengths, f->values, f->errors,
                            f->events, err);
}

/* out[j * n + i] = in[i * columns + j]; by blocks, for the cache */
static void turn(const double *in, size_t n, size_t columns, float *out) {
    enum { BLOCK = 32 };
    for (size_t first = 0; first < columns; first += BLOCK)
        for (size_t i = 0; i < n; i++)
            for (size_t j = first; j < MIN(first + BLOCK, columns); j++)
                out[j * n + i] = (float)in[i * columns + j];
}

/* ---- what the explainer answers for validation inputs ---- */

static fds_status ask_network(const fit *f, fds__comparison *c, fds_error *err) {
    const fds_inputs *x = f->utility->data->inputs;
    size_t first = f->inputs - c->inputs, count = c->inputs * f->classes * f->n;
    OWNED float *raw = NULL;
    TRY(RESERVE(raw, count, 1, err));
    TRY(fds__explainer_run(f->explainer, x->values + first * x->size, c->inputs, NULL, raw, err));
    for (size_t i = 0; i < count; i++)
        c->values[i] = (double)raw[i];
    return FDS_OK;
}

/* The answers of the probes, (columns, probes), from the table. */
static fds_status read_probes(const fit *f, size_t first, size_t columns, double *answers,
                              fds_error *err) {
    const fds_rows rows = fds_table_view_rows(f->view);
    size_t probes = f->settings.probes;
    OWNED double *row = NULL;
    TRY(RESERVE(row, columns, 1, err));
    for (size_t k = 0; k < probes; k++) {
        TRY(rows.read(rows.context, 0, k, first, columns, row, err));
        for (size_t j = 0; j < columns; j++)
            answers[j * probes + k] = row[j];
    }
    return FDS_OK;
}

static fds_status ask_probe(const fit *f, fds__comparison *c, fds_error *err) {
    size_t columns = c->inputs * f->classes, probes = f->settings.probes;
    OWNED double *answers = NULL;
    TRY(RESERVE(answers, columns, probes, err));
    TRY(RESERVE(c->spreads, columns, 1, err));
    TRY(read_probes(f, f->columns - columns, columns, answers, err));
    for (size_t j = 0; j < columns; j++)
        fds__probe_run(f->probe, answers + j * probes, (uint32_t)(j % f->classes),
                       c->values + j * f->n, &c->spreads[j]);
    return FDS_OK;
}

/* As the bank of all, or of the first, sub-models will, but for the 16 bits of its weights. */
static fds_status ask_least_squares(const fit *f, const double *values, const double *errors,
                                    fds__comparison *c) {
    size_t columns = c->inputs * f->classes;
    for (size_t i = 0; i < f->n; i++) {
        size_t first = i * f->columns + f->columns - columns;
        for (size_t j = 0; j < columns; j++)
            c->values[j * f->n + i] = values[first + j];
        for (size_t x = 0; x < c->inputs; x++)
            c->stated[x * f->n + i] = errors[first + x * f->classes + c->predicted[x]];
    }
    return FDS_OK;
}

/* The caller frees *c after a failure too. */
static fds_status compare(const fit *f, fds__comparison *c, fds_error *err) {
    size_t inputs = f->settings.validation_inputs, first = f->inputs - inputs,
           columns = inputs * f->classes;
    *c = (fds__comparison){.inputs = inputs,
                           .players = f->n,
                           .classes = f->classes,
                           .predicted = f->predicted + first,
                           .player_labels = f->problem->player_labels};
    TRY(RESERVE(c->values, columns, f->n, err));
    TRY(RESERVE(c->targets, columns, f->n, err));
    TRY(RESERVE(c->errors, columns, f->n, err));
    TRY(RESERVE(c->stated, inputs, f->n, err));
    TRY(f->settings.is_bank ? ask_least_squares(f, f->values, f->errors, c)
        : f->first          ? ask_least_squares(f, f->first, f->first_errors, c)
        : f->probe          ? ask_probe(f, c, err)
                            : ask_network(f, c, err));
    for (size_t j = 0; j < columns; j++) {
        size_t column = first * f->classes + j;
        for (size_t i = 0; i < f->n; i++) {
            c->targets[j * f->n + i] = f->values[i * f->columns + column];
            c->errors[j * f->n + i] = f->errors[i * f->columns + column];
        }
        fds__normalise(f->full[column] - f->empty[column], f->n, c->values + j * f->n);
    }
    return FDS_OK;
}

/* ---- the explainer ---- */

/* The share of the money that the explainer misallocates on validation inputs. */
static fds_status measure(const fit *f, double *misallocated, fds_error *err) {
    fds__comparison c;
    fds_status status = compare(f, &c, err);
    *misallocated = status == FDS_OK ? fds__comparison_misallocated(&c) : NAN;
    fds__comparison_free(&c);
    return status;
}

/* Chooses between the probe and least squares on the answers of the same sub-models: a map needs many
 * inputs to learn from, and least squares need many coalitions for each player. */
static fds_status choose(fit *f, fds_error *err) {
    fds__fit_choice *choice = &f->report.choice;
    TRY(measure(f, &choice->probe, err));
    TRY(RESERVE(f->first, f->n * f->columns, 1, err));
    TRY(RESERVE(f->first_errors, f->n * f->columns, 1, err));
    TRY(solve_plan(f, f->plans.probes, f->first, f->first_errors, &choice->strengths, err));
    TRY(measure(f, &choice->bank, err));
    choice->is_measured = true;
    choice->is_bank = choice->bank < choice->probe;
    if (!choice->is_bank) {
        fds__free(f->first);
        f->first = NULL;
    }
    return FDS_OK;
}

/* How factors of players follow from their samples. */
static fds_status learn_newcomers(fit *f, fds_error *err) {
    const fds__fit_settings *s = &f->settings;
    const fds_inputs *x = f->utility->data->inputs;
    size_t first = f->inputs - s->validation_inputs, columns = first * f->classes;
    char path[FDS__PATH_MAX];
    OWNED double *totals = NULL;
    fds__newcomers *newcomers = NULL;
    TRY(fds__path_join(path, sizeof path, f->dir, FDS__RUN_NEWCOMERS, err));
    TRY(RESERVE(totals, f->columns - columns, 1, err));
    for (size_t j = columns; j < f->columns; j++)
        totals[j - columns] = f->full[j] - f->empty[j];
    const fds__newcomer_job job = {.problem = f->problem,
                                   .service = f->service,
                                   .factors = &f->factors,
                                   .coefficients = f->targets,
                                   .columns = columns,
                                   .explainer = f->explainer,
                                   .validation = s->validation_inputs,
                                   .x = x->values + first * x->size,
                                   .predicted = f->predicted + first,
                                   .totals = totals,
                                   .values = f->values,
                                   .stride = f->columns,
                                   .first_column = columns,
                                   .events = f->events};
    fds_status status = fds__newcomers_learn(&job, &newcomers, err);
    if (status == FDS_OK)
        status = fds__newcomers_save(newcomers, path, err);
    if (status == FDS_OK)
        fds__log(f->events, FDS_LOG_INFO,
                 "new players: values predicted for players left out correlate with those of least "
                 "squares by %.2f",
                 fds__newcomers_agreement(newcomers));
    fds__newcomers_free(newcomers);
    return status;
}

/* Trains and saves the network, or the probe. */
static fds_status train_explainer(fit *f, const fds__training *training, fds_error *err) {
    const fds__fit_settings *s = &f->settings;
    char path[FDS__PATH_MAX];
    TRY(fds__path_join(path, sizeof path, f->dir, FDS__RUN_EXPLAINER, err));
    if (s->probes) {
        TRY(fds__probe_learn(training, s->probes, f->predicted, s->threads, f->events, &f->probe,
                             err));
        if (fds__fit_measures(s))
            TRY(choose(f, err));
        return f->first ? FDS_OK : fds__probe_save(f->probe, path, err);
    }
    TRY(fds__learn(training, &s->explainer, f->dir, f->events, &f->explainer, &f->report, err));
    TRY(fds__explainer_save(f->explainer, path, err));
    return s->explainer.learns_new ? learn_newcomers(f, err) : FDS_OK;
}

/* Factors of the values of training inputs, and the coefficients of all inputs. */
static fds_status find_factors(fit *f, fds_error *err) {
    const fds__fit_settings *s = &f->settings;
    size_t rank = s->explainer.rank, train = f->inputs - s->validation_inputs;
    TRY(fds__factors_find(f->values, f->n, f->columns, train * f->classes, rank, s->seed,
                          s->threads, f->events, &f->factors, err));
    f->report.energy = f->factors.energy;
    fds__log(f->events, FDS_LOG_INFO,
             "%zu factors of the %zu players hold %.2f %% of the squares of their values", rank,
             f->n, 100 * f->factors.energy);
    TRY(RESERVE(f->targets, f->columns, rank, err));
    return fds__factors_project(&f->factors, f->values, f->columns, s->threads, f->events,
                                f->targets, err);
}

static fds_status find_targets(fit *f, fds_error *err) {
    if (f->settings.explainer.rank)
        return find_factors(f, err);
    TRY(RESERVE(f->targets, f->n * f->columns, 1, err));
    turn(f->values, f->n, f->columns, f->targets);
    return FDS_OK;
}

static fds_status learn(fit *f, fds_error *err) {
    const fds_inputs *x = f->utility->data->inputs;
    TRY(find_targets(f, err));
    const fds_rows rows = fds_table_view_rows(f->view),
                   validation = fds_table_view_rows(f->validation_view);
    const fds__training training = {
        .inputs = f->inputs,
        .validation = f->settings.validation_inputs,
        .shape = f->train->shape,
        .x = x->values,
        .labels = x->labels,
        .players = f->n,
        .classes = f->classes,
        .groups = f->groups,
        .empty = f->empty,
        .full = f->full,
        .factors = f->factors.h,
        .rank = f->factors.rank,
        .targets = f->settings.explainer.objective == FDS__OBJECTIVE_CLOSED ? f->targets : NULL,
        .plan = f->plans.plan,
        .validation_plan = f->plans.validation,
        .rows = &rows,
        .validation_rows = &validation,
    };
    return train_explainer(f, &training, err);
}

/* ---- the check on validation inputs ---- */

static fds_status calibrate(const fit *f, fds__comparison *c, fds_error *err) {
    fds__calibration calibration;
    char path[FDS__PATH_MAX];
    TRY(fds__path_join(path, sizeof path, f->dir, FDS__RUN_ERRORS, err));
    TRY(fds__calibrate(c, f->events, &calibration, err));
    for (size_t x = 0; x < c->inputs; x++) {
        size_t at = x * f->classes + c->predicted[x];
        fds__calibration_errors(&calibration, f->classes, f->n, c->player_labels, false,
                                c->predicted[x], c->spreads ? c->spreads[at] : 0,
                                c->values + at * f->n, c->stated + x * f->n);
    }
    fds_status status = fds__calibration_save(&calibration, f->classes, f->n, path, err);
    fds__calibration_free(&calibration);
    return status;
}

static fds_status check_values(fit *f, fds__comparison *c, fds_error *err) {
    bool is_own = f->settings.is_bank;
    TRY(compare(f, c, err));
    if (!is_own) {
        TRY(fds__comparison_agreement(c, false, &f->report.agreement, err));
        TRY(fds__comparison_agreement(c, true, &f->report.within, err));
    }
    if (!is_own && !f->first) /* least squares have errors of their own */
        TRY(calibrate(f, c, err));
    const fds__validated what = {f->problem, f->utility->data,    c,
                                 is_own,     f->report.agreement, f->settings.seed};
    return fds__validation_write(f->dir, &what, f->events, err);
}

/* Says in plain words that the explainer is poor, and what would help. */
static void warn_of_agreement(const fit *f) {
    const double least = 0.9;
    if (!(f->report.agreement < least))
        return;
    fds__log(f->events, FDS_LOG_WARNING,
             "on validation inputs the explainer's values correlate with those of least squares by "
             "only %.2f: do not pay by them. %s%s%s would help",
             f->report.agreement, f->first ? "" : "More `inputs`",
             f->first             ? "A larger `answer_ms`"
             : f->settings.probes ? ", a larger `answer_ms`"
                                  : "",
             fds__command_of(f->settings.kind) ? "" : " or `explainer` bank");
}

static fds_status check(fit *f, fds_error *err) {
    fds__comparison c;
    fds_status status = check_values(f, &c, err);
    fds__comparison_free(&c);
    if (status == FDS_OK)
        warn_of_agreement(f);
    return status;
}

/* ---- all of it ---- */

static fds_status run_stage(fit *f, fds__fit_stage stage, fds_status (*work)(fit *, fds_error *),
                            fds_error *err) {
    double start = fds__now_s();
    fds_status status = work(f, err);
    f->report.seconds[stage] = fds__now_s() - start;
    return status;
}

/* Takes the report of a complete run; a run with changed files is not complete. Trains lost
 * sub-models again. */
static fds_status revisit(fit *f, fds_error *err) {
    fds__run_record record;
    fds_error why;
    TRY(fds__run_record_read(f->dir, &record, err));
    fds_status status = fds__run_record_check_fit(f->dir, &record, &why);
    if (status == FDS_ERR_CORRUPT)
        fds__log(f->events, FDS_LOG_WARNING, "%s; computed again", why.text);
    else if (status != FDS_OK)
        fds__fail(err, status, "%s", why.text);
    else
        f->report = record.report;
    f->report.was_resumed = true;
    fds__run_record_free(&record);
    f->is_done = status == FDS_OK;
    if (status == FDS_OK && (f->settings.keeps_models || f->settings.probes))
        return train_sub_models(f, err);
    return status == FDS_ERR_CORRUPT ? FDS_OK : status;
}

static fds_status run_stages(fit *f, fds_error *err) {
    TRY(run_stage(f, FDS__FIT_STAGE_UTILITIES, fill_utilities, err));
    TRY(run_stage(f, FDS__FIT_STAGE_VALUES, solve, err));
    if (!f->settings.is_bank)
        TRY(run_stage(f, FDS__FIT_STAGE_EXPLAINER, learn, err));
    TRY(run_stage(f, FDS__FIT_STAGE_CHECK, check, err));
    return fds__run_record_write(f->dir, f->description, &f->settings, &f->report, &f->strengths,
                                 err);
}

static fds_status run_fit(fit *f, fds_error *err) {
    TRY(fds__fit_prepare(f->problem, f->params, f->events, &f->settings, &f->groups, err));
    TRY(open_fit(f, err));
    if (f->is_done)
        TRY(revisit(f, err));
    if (!f->is_done)
        TRY(run_stages(f, err));
    TRY(fds__values_forget(f->dir, err));
    return fds__learn_forget(f->dir, err);
}

fds_status fds__fit(const char *dir, const fds_problem *problem, const fds_params *params,
                    const fds_events *events, fds__fit_report *report, fds_error *err) {
    fit f = {.dir = dir,
             .problem = problem,
             .params = params,
             .train = problem->train,
             .players = problem->players,
             .events = events,
             .n = fds_players_count(problem->players),
             .inputs = problem->input_count,
             .classes = problem->train->classes,
             .columns = problem->input_count * problem->train->classes,
             .report = {.loss = NAN, .agreement = NAN, .within = NAN, .energy = NAN}};
    fds_status status = run_fit(&f, err);
    f.report.probes = f.settings.probes;
    fds__fit_give_reason(&f.settings, &f.report);
    if (status == FDS_OK && report)
        *report = f.report;
    fit_free(&f);
    return status;
}
