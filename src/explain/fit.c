/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole job: utilities and the service model, values, explainer, check. Every stage continues
 * from what an earlier process left in the folder, and the result has the same bits as one made
 * without interruption. */
#include "explain/fit_inside.h"

#include <math.h>
#include <string.h>

static void fit_free(fds__fit_job *f) {
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

fds_status fds__fit_check_explainer(const fds__fit_settings *s, const fds_problem *problem,
                                    const fds_groups *groups, fds_error *err) {
    const fds__explainer_params *p = &s->explainer;
    const fds_dataset *train = problem->train;
    if (s->is_bank || s->probes)
        return FDS_OK;
    size_t outputs =
        train->classes * fds__explainer_each(p, fds_players_count(problem->players), groups);
    size_t batch = MIN(problem->input_count - s->validation_inputs, (size_t)p->batch);
    const fds__deep_params net = fds__explainer_net(p, train->shape, outputs, batch);
    if (outputs > UINT32_MAX)
        return fds__fail(err, FDS_ERR_LIMIT, "an explainer of %zu outputs is too large", outputs);
    TRY(fds__deep_check(&net, NULL, err));
    fds__safetensors *weights = NULL;
    fds_status status = p->weights ? fds__safetensors_read(p->weights, &weights, err) : FDS_OK;
    fds__safetensors_free(weights);
    return status;
}

/* Removes the temporary files that killed processes left beside files of the run. */
static fds_status sweep(const fds__fit_job *f, fds_error *err) {
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

fds_status fds__fit_check_plan(const fds__fit_settings *s, const fds_plan *plan,
                               const fds_groups *groups, fds_error *err) {
    const fds_ls_params ls = {.adjust = s->adjust, .groups = groups};
    bool answers = s->is_bank || fds__fit_measures(s);
    return answers ? fds__ls_prepared_check(plan, &ls, err)
                   : fds_least_squares_check(plan, &ls, err);
}

static fds_status open_fit(fds__fit_job *f, fds_error *err) {
    const fds__fit_settings *s = &f->settings;
    char path[FDS__PATH_MAX];
    TRY(fds__fit_plans_make(s, f->n, f->groups, &f->plans, err));
    TRY(fds__fit_check_plan(s, f->plans.plan, f->groups, err));
    TRY(fds__fit_utility_create(s, f->problem, f->events, &f->order, &f->utility, err));
    TRY(fds__run_record_describe(s, f->problem, f->params, f->groups, f->utility, &f->description,
                                 err));
    TRY(fds__run_record_compare(f->dir, f->description, f->events, &f->report.was_resumed,
                                &f->is_done, err));
    if (!f->is_done)
        TRY(fds__fit_check_explainer(s, f->problem, f->groups, err));
    TRY(fds__mkdirs(f->dir, err));
    TRY(fds__path_join(path, sizeof path, f->dir, FDS__RUN_TABLE, err));
    /* the table's lock keeps other processes out of the whole run */
    TRY(fds_table_open(path, f->utility, FDS_STORE_F32, f->events, &f->table, err));
    TRY(sweep(f, err));
    return f->is_done ? FDS_OK : fds__run_record_write(f->dir, f->description, s, NULL, NULL, err);
}

/* ---- values by least squares ---- */

fds_status fds__fit_solve_plan(const fds__fit_job *f, const fds_plan *plan, double *values,
                               double *errors, fds_ls_report *strengths, fds_error *err) {
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
static fds_status values_key(const fds__fit_job *f, uint64_t *key, fds_error *err) {
    const fds_plan *plan = f->plans.plan;
    uint64_t sums[3];
    TRY(fds__json_checksum(f->description, &sums[0], err));
    sums[1] = fds_checksum(plan->bits, plan->rows * plan->words * sizeof *plan->bits);
    sums[2] = fds_checksum(FDS_VERSION, strlen(FDS_VERSION));
    *key = fds_checksum(sums, sizeof sums);
    return FDS_OK;
}

static fds_status solve(fds__fit_job *f, fds_error *err) {
    const fds__fit_settings *s = &f->settings;
    TRY(RESERVE(f->values, f->n * f->columns, 1, err));
    TRY(RESERVE(f->errors, f->n * f->columns, 1, err));
    const bool is_grouped = s->sampler == FDS_SAMPLER_GFDS || s->sampler == FDS_SAMPLER_GFDS_PLUS;
    double noise = 0, start_s = fds__now_s();
    uint64_t key;
    bool is_found;
    TRY(values_key(f, &key, err));
    TRY(fds__values_find(f->dir, key, f->n, f->columns, &f->strengths, f->values, f->errors,
                         &is_found, err));
    if (!is_found || s->until.wanted > 0)
        TRY(fds__utility_noise(f->utility, f->table, f->plans.plan, f->events, &noise, err));
    f->settings.until.floor = fds__noise_floor(noise, false, is_grouped, f->n);
    if (is_found)
        return FDS_OK;
    TRY(fds__fit_solve_plan(f, f->plans.plan, f->values, f->errors, &f->strengths, err));
    fds__noise_add(noise, false, is_grouped, f->n, f->n * f->columns, f->errors);
    if (fds__now_s() - start_s < fds__values_kept_s)
        return FDS_OK;
    return fds__values_keep(f->dir, key, f->n, f->columns, &f->strengths, f->values, f->errors,
                            f->events, err);
}

/* ---- all of it ---- */

static fds_status run_stage(fds__fit_job *f, fds__fit_stage stage,
                            fds_status (*work)(fds__fit_job *, fds_error *), fds_error *err) {
    double start = fds__now_s();
    fds_status status = work(f, err);
    f->report.seconds[stage] = fds__now_s() - start;
    return status;
}

/* Takes the report of a complete run; a run with changed files is not complete. Trains lost
 * sub-models again. */
static fds_status revisit(fds__fit_job *f, fds_error *err) {
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
        return fds__fit_train_sub_models(f, err);
    return status == FDS_ERR_CORRUPT ? FDS_OK : status;
}

static fds_status run_stages(fds__fit_job *f, fds_error *err) {
    TRY(run_stage(f, FDS__FIT_STAGE_UTILITIES, fds__fit_fill, err));
    TRY(run_stage(f, FDS__FIT_STAGE_VALUES, solve, err));
    if (f->settings.until.wanted > 0)
        TRY(fds__fit_measure_round(f, err));
    if (f->needs_more)
        return FDS_OK;
    fds__ls_warn(&f->strengths, fds_plan_rows(f->plans.plan) - 2, f->n, f->events);
    if (!f->settings.is_bank)
        TRY(run_stage(f, FDS__FIT_STAGE_EXPLAINER, fds__fit_learn, err));
    TRY(run_stage(f, FDS__FIT_STAGE_CHECK, fds__fit_check_answers, err));
    return fds__run_record_write(f->dir, f->description, &f->settings, &f->report, &f->strengths,
                                 err);
}

static fds_status run_fit(fds__fit_job *f, fds_error *err) {
    TRY(fds__fit_prepare(f->problem, f->params, f->events, &f->settings, &f->groups, err));
    TRY(open_fit(f, err));
    if (f->is_done)
        TRY(revisit(f, err));
    if (!f->is_done)
        TRY(run_stages(f, err));
    if (f->needs_more)
        return FDS_OK;
    TRY(fds__values_forget(f->dir, err));
    return fds__learn_forget(f->dir, err);
}

/* params->round becomes the number of coalitions of the next round, or 0 after the last one. */
static fds_status run_round(const char *dir, const fds_problem *problem, fds_params *params,
                            const fds_events *events, fds__fit_report *report, fds_error *err) {
    fds__fit_job f = {.dir = dir,
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
    for (int i = 0; i < FDS__FIT_STAGES && !f.is_done; i++)
        f.report.seconds[i] += report->seconds[i];
    params->round = f.needs_more ? f.settings.until.count : 0;
    *report = f.report;
    fit_free(&f);
    return status;
}

fds_status fds__fit(const char *dir, const fds_problem *problem, const fds_params *params,
                    const fds_events *events, fds__fit_report *report, fds_error *err) {
    fds_params own = *params;
    fds__fit_report r = {0};
    if (own.until_error > 0)
        TRY(fds__fit_round(dir, params, &own.round, err));
    TRY(run_round(dir, problem, &own, events, &r, err));
    const bool was_resumed = r.was_resumed;
    while (own.round)
        TRY(run_round(dir, problem, &own, events, &r, err));
    r.was_resumed = was_resumed;
    if (report)
        *report = r;
    return FDS_OK;
}
