/* SPDX-License-Identifier: Apache-2.0
 * A fit's explainer: a network or a probe learns, the better of probe and least squares is chosen, and its
 * answers for validation inputs are checked. */
#include "explain/fit_inside.h"

#include <math.h>

/* ---- what the explainer answers for validation inputs ---- */

static fds_status ask_network(const fds__fit_job *f, fds__comparison *c, fds_error *err) {
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
static fds_status read_probes(const fds__fit_job *f, size_t first, size_t columns, double *answers,
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

static fds_status ask_probe(const fds__fit_job *f, fds__comparison *c, fds_error *err) {
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
static fds_status ask_least_squares(const fds__fit_job *f, const double *values,
                                    const double *errors, fds__comparison *c) {
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
static fds_status compare(const fds__fit_job *f, fds__comparison *c, fds_error *err) {
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
static fds_status measure(const fds__fit_job *f, double *misallocated, fds_error *err) {
    fds__comparison c;
    fds_status status = compare(f, &c, err);
    *misallocated = status == FDS_OK ? fds__comparison_misallocated(&c) : NAN;
    fds__comparison_free(&c);
    return status;
}

/* Chooses between the probe and least squares on the answers of the same sub-models: a map needs many
 * inputs to learn from, and least squares need many coalitions for each player. With a ridge they
 * shrink values, of which their errors say too little; those of a probe are calibrated. */
static fds_status choose(fds__fit_job *f, fds_error *err) {
    fds__fit_choice *choice = &f->report.choice;
    TRY(measure(f, &choice->probe, err));
    TRY(RESERVE(f->first, f->n * f->columns, 1, err));
    TRY(RESERVE(f->first_errors, f->n * f->columns, 1, err));
    TRY(fds__fit_solve_plan(f, f->plans.probes, f->first, f->first_errors, &choice->strengths,
                            err));
    TRY(measure(f, &choice->bank, err));
    choice->is_measured = true;
    choice->is_bank = choice->bank < choice->probe && choice->strengths.ridge == 0;
    if (!choice->is_bank) {
        fds__free(f->first);
        f->first = NULL;
    }
    return FDS_OK;
}

/* How factors of players follow from their samples. */
static fds_status learn_newcomers(fds__fit_job *f, fds_error *err) {
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
static fds_status train_explainer(fds__fit_job *f, const fds__training *training, fds_error *err) {
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
    TRY(fds__explainer_save(f->explainer, path, f->events, err));
    return s->explainer.learns_new ? learn_newcomers(f, err) : FDS_OK;
}

/* Factors of the values of training inputs, and the coefficients of all inputs. */
static fds_status find_factors(fds__fit_job *f, fds_error *err) {
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

/* out[j * n + i] = in[i * columns + j]; by blocks, for the cache */
static void turn(const double *in, size_t n, size_t columns, float *out) {
    enum { BLOCK = 32 };
    for (size_t first = 0; first < columns; first += BLOCK)
        for (size_t i = 0; i < n; i++)
            for (size_t j = first; j < MIN(first + BLOCK, columns); j++)
                out[j * n + i] = (float)in[i * columns + j];
}

static fds_status find_targets(fds__fit_job *f, fds_error *err) {
    if (f->settings.explainer.rank)
        return find_factors(f, err);
    TRY(RESERVE(f->targets, f->n * f->columns, 1, err));
    turn(f->values, f->n, f->columns, f->targets);
    return FDS_OK;
}

fds_status fds__fit_learn(fds__fit_job *f, fds_error *err) {
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

static fds_status calibrate(const fds__fit_job *f, fds__comparison *c, fds_error *err) {
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

static fds_status check_values(fds__fit_job *f, fds__comparison *c, fds_error *err) {
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
static void warn_of_agreement(const fds__fit_job *f) {
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

fds_status fds__fit_check_answers(fds__fit_job *f, fds_error *err) {
    fds__comparison c;
    fds_status status = check_values(f, &c, err);
    fds__comparison_free(&c);
    if (status == FDS_OK)
        warn_of_agreement(f);
    return status;
}
