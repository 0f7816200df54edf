/* SPDX-License-Identifier: Apache-2.0
 * fds value, from filled tables to values: which labels are asked about, the values for each test
 * sample and for their mean, and the file they are written to. */
#include "value.h"

#include <stdlib.h>
#include <string.h>

/* What the values are of: columns as fds_table_view_create has them. */
typedef struct {
    const uint32_t *labels; /* [tests]; NULL: every label */
    bool is_mean;
    size_t columns;
} question;

static question ask(const value_job *j, const uint32_t *labels, bool is_mean) {
    size_t tests = j->setup.test_count, classes = fds_utility_get_info(j->game.value).classes;
    return (question){labels, is_mean, is_mean ? 1 : labels ? tests : tests * classes};
}

size_t value_columns(const value_job *j) {
    bool is_all = strcmp(j->target, "all") == 0;
    return ask(j, is_all ? NULL : &(uint32_t){0}, j->is_mean).columns;
}

/* ---- labels ---- */

static uint32_t largest(const double *probs, uint32_t classes) {
    uint32_t best = 0;
    for (uint32_t c = 1; c < classes; c++)
        if (probs[c] > probs[best])
            best = c;
    return best;
}

void value_choose_labels(value_job *j, const double *none, const double *all, uint32_t classes) {
    const cli_setup *s = &j->setup;
    const uint16_t *truth = fds_dataset_get_info(cli_setup_tested(s)).labels;
    bool use_truth = strcmp(j->target, "true") == 0;
    for (size_t i = 0; i < s->test_count; i++) {
        uint32_t right = truth[s->test_samples ? s->test_samples[i] : i];
        j->labels[i] = right;
        if (!all)
            continue;
        uint32_t predicted = largest(all + i * classes, classes);
        j->right += predicted == right;
        j->labels[i] = use_truth ? right : predicted;
        j->none += none[i * classes + j->labels[i]] / (double)s->test_count;
        j->all += all[i * classes + j->labels[i]] / (double)s->test_count;
    }
}

fds_status value_find_labels(value_job *j, fds_error *err) {
    uint32_t classes = fds_utility_get_info(j->game.value).classes;
    size_t columns = j->setup.test_count * classes;
    double *answers = cli_alloc(2 * columns, sizeof *answers, err);
    fds_table_view *view = NULL;
    fds_status status = answers ? FDS_OK : FDS_ERR_NOMEM;
    if (status == FDS_OK)
        status = fds_table_view_create(j->game.table, j->plan, NULL, false, 1, &view, err);
    for (size_t row = 0; row < 2 && status == FDS_OK; row++) { /* row 0: none, row 1: all */
        fds_rows rows = fds_table_view_rows(view);
        status = rows.read(rows.context, 0, row, 0, columns, answers + row * columns, err);
    }
    if (status == FDS_OK)
        value_choose_labels(j, answers, answers + columns, classes);
    fds_table_view_free(view);
    free(answers);
    return status;
}

/* ---- the surrogate's values ---- */

/* The exact values of "knn:K", of all inputs and labels, brought to the columns of q. */
static fds_status knn_values(const value_job *j, const question *q, double *values,
                             fds_error *err) {
    const fds_utility_info info = fds_utility_get_info(j->surrogate.value);
    size_t n = info.players, classes = info.classes;
    double *all = cli_alloc(info.inputs * classes * n, sizeof *all, err);
    if (!all)
        return FDS_ERR_NOMEM;
    fds_status status = fds_utility_knn_shapley(j->surrogate.value, all, err);
    for (size_t at = 0; status == FDS_OK && at < info.inputs * classes; at++) {
        size_t input = at / classes;
        if (q->labels && at % classes != q->labels[input])
            continue;
        size_t column = q->is_mean ? 0 : q->labels ? input : at;
        for (size_t p = 0; p < n; p++)
            values[p * q->columns + column] +=
                all[at * n + p] / (q->is_mean ? (double)info.inputs : 1);
    }
    free(all);
    return status;
}

/* Those of "kernel" and "entk", by least squares on a plan of its own. */
static fds_status kernel_values(const value_job *j, const question *q, double *values,
                                fds_error *err) {
    fds_table_view *view = NULL;
    CLI_TRY(fds_table_view_create(j->surrogate.table, j->values_plan, q->labels, q->is_mean,
                                  value_threads(j), &view, err));
    fds_rows rows = fds_table_view_rows(view);
    const fds_ls_params params = {.adjust = FDS_ADJUST_COUNTS, .groups = j->groups};
    fds_status status = fds_least_squares(j->values_plan, &rows, &params, value_threads(j), values,
                                          NULL, NULL, &j->term->events, err);
    fds_table_view_free(view);
    return status;
}

/* ---- solving ---- */

static fds_status solve_with_surrogate(value_job *j, const question *q, const fds_rows *rows,
                                       double *values, double *errors, fds_ls_report *report,
                                       fds_error *err) {
    double *known = cli_alloc(fds_plan_players(j->plan) * q->columns, sizeof *known, err);
    fds_table_view *view = NULL;
    fds_status status = known ? FDS_OK : FDS_ERR_NOMEM;
    if (status == FDS_OK)
        status = (j->values_plan ? kernel_values : knn_values)(j, q, known, err);
    if (status == FDS_OK)
        status = fds_table_view_create(j->surrogate.table, j->plan, q->labels, q->is_mean,
                                       value_threads(j), &view, err);
    if (status == FDS_OK) {
        fds_rows control = fds_table_view_rows(view);
        const fds_ls_params params = {j->adjust, j->groups, &control, known};
        status = fds_least_squares(j->plan, rows, &params, value_threads(j), values, errors, report,
                                   &j->term->events, err);
    }
    fds_table_view_free(view);
    free(known);
    return status;
}

static fds_status solve_rows(value_job *j, const question *q, const fds_rows *rows, double *values,
                             double *errors, fds_ls_report *report, fds_error *err) {
    if (j->is_exact)
        return fds_exact(j->plan, rows, value_threads(j), values, &j->term->events, err);
    if (j->surrogate.kind)
        return solve_with_surrogate(j, q, rows, values, errors, report, err);
    const fds_ls_params params = {.adjust = j->adjust,
                                  .groups = j->adjust == FDS_ADJUST_NONE ? NULL : j->groups};
    return fds_least_squares(j->plan, rows, &params, value_threads(j), values, errors, report,
                             &j->term->events, err);
}

/* *values and *errors become the caller's, whether or not it succeeds; exact values have none. */
static fds_status solve(value_job *j, question q, double **values, double **errors,
                        fds_ls_report *report, fds_error *err) {
    size_t count = fds_plan_players(j->plan) * q.columns;
    *values = cli_alloc(count, sizeof **values, err);
    if (!j->is_exact)
        *errors = cli_alloc(count, sizeof **errors, err);
    if (!*values || (!j->is_exact && !*errors))
        return FDS_ERR_NOMEM;
    fds_table_view *view = NULL;
    CLI_TRY(fds_table_view_create(j->game.table, j->plan, q.labels, q.is_mean, value_threads(j),
                                  &view, err));
    fds_rows rows = fds_table_view_rows(view);
    fds_status status = solve_rows(j, &q, &rows, *values, *errors, report, err);
    fds_table_view_free(view);
    return status;
}

static void warn_of_ridge(const value_job *j) {
    size_t n = fds_plan_players(j->plan), rows = fds_plan_rows(j->plan) - 2;
    if (j->report.ridge > 0)
        cli_warn(j->term,
                 "%zu coalitions are few for %zu players: least squares needed a ridge (%g), which "
                 "draws the values together and makes their standard errors too small; more "
                 "--coalitions would tell them apart",
                 rows, n, j->report.ridge);
}

fds_status value_solve(value_job *j, fds_error *err) {
    j->labels = cli_alloc(j->setup.test_count, sizeof *j->labels, err);
    if (!j->labels)
        return FDS_ERR_NOMEM;
    CLI_TRY(value_find_labels(j, err));
    fds_ls_report of_mean;
    bool is_all = strcmp(j->target, "all") == 0;
    CLI_TRY(solve(j, ask(j, j->labels, true), &j->mean_values, &j->mean_errors, &of_mean, err));
    if (j->is_mean)
        j->report = of_mean;
    else
        CLI_TRY(solve(j, ask(j, is_all ? NULL : j->labels, false), &j->values, &j->errors,
                      &j->report, err));
    if (!j->is_exact)
        warn_of_ridge(j);
    return FDS_OK;
}

/* ---- the file ---- */

uint32_t value_player_label(const cli_setup *s, size_t player, uint32_t *counts) {
    const fds_dataset_info info = fds_dataset_get_info(s->train);
    const uint32_t *samples = NULL;
    size_t count = fds_players_samples(s->players, player, &samples);
    uint32_t best = 0;
    memset(counts, 0, info.classes * sizeof *counts);
    for (size_t i = 0; i < count; i++)
        counts[info.labels[samples[i]]]++;
    for (uint32_t c = 1; c < info.classes; c++)
        if (counts[c] > counts[best])
            best = c;
    return best;
}

static fds_status save(const value_job *j, const char **names, uint32_t *labels, uint32_t *counts,
                       const char **classes, fds_error *err) {
    const cli_setup *s = &j->setup;
    size_t n = fds_players_count(s->players);
    uint32_t class_count = fds_dataset_get_info(s->train).classes;
    for (size_t i = 0; i < n; i++) {
        names[i] = fds_players_name(s->players, i);
        labels[i] = value_player_label(s, i, counts);
    }
    for (uint32_t c = 0; c < class_count; c++)
        classes[c] = fds_dataset_class_name(s->train, c);
    bool is_mean = j->is_mean, is_all = strcmp(j->target, "all") == 0;
    const fds_values values = {.players = n,
                               .player_names = names,
                               .player_labels = labels,
                               .classes = class_count,
                               .class_names = classes,
                               .is_mean = is_mean,
                               .tests = s->test_count,
                               .test_samples = s->test_samples,
                               .target_labels = is_all ? NULL : j->labels,
                               .values = is_mean ? j->mean_values : j->values,
                               .errors = is_mean ? j->mean_errors : j->errors};
    return fds_values_save(&values, j->o->output, err);
}

fds_status value_save(const value_job *j, fds_error *err) {
    if (!j->o->output)
        return FDS_OK;
    size_t n = fds_players_count(j->setup.players);
    uint32_t class_count = fds_dataset_get_info(j->setup.train).classes;
    const char **names = cli_alloc(n + class_count, sizeof *names, err);
    uint32_t *labels = cli_alloc(n + class_count, sizeof *labels, err);
    fds_status status =
        names && labels ? save(j, names, labels, labels + n, names + n, err) : FDS_ERR_NOMEM;
    free(names);
    free(labels);
    return status;
}
