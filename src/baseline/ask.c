/* SPDX-License-Identifier: Apache-2.0
 *
 * The game of a table of sub-models: coalitions go in, the scores of their sub-models come out. A
 * coalition that the table lacks is trained and kept, so no method ever trains a coalition twice.
 * Methods by permutations ask for few coalitions at a time, so what is kept goes to the disk every
 * few seconds; the caller syncs the table at the end.
 *
 * Only what the scorer needs is read: for each test sample the probability of its label or, for
 * accuracy, the probabilities of all labels. Several threads read rows, and one thread computes all
 * of a row; sums run over the test samples in ascending order.
 *
 * How many sub-models a method will still need is not known here: events receive the number trained
 * so far with a total of 0. Methods report how far they are.
 */
#include "baseline/baseline.h"

#include <math.h>
#include <string.h>

#define LEAST_PROBABILITY 1e-12 /* that a logarithm is taken of */

/* ---- scores ---- */

static double score_one(fds__scorer scorer, const double *probs, uint32_t label, uint32_t classes) {
    if (scorer == FDS__SCORER_ACCURACY)
        return fds__argmax(probs, classes) == label;
    return scorer == FDS__SCORER_CROSS_ENTROPY ? log(fmax(probs[label], LEAST_PROBABILITY))
                                               : probs[label];
}

void baseline_score(fds__scorer scorer, const double *probs, const uint32_t *labels, size_t inputs,
                    uint32_t classes, double *out) {
    double sum = 0;
    for (size_t i = 0; i < inputs; i++) {
        double one = score_one(scorer, probs + i * classes, labels ? labels[i] : 0, classes);
        if (scorer == FDS__SCORER_EACH_SAMPLE)
            out[i] = one;
        sum += one;
    }
    if (scorer != FDS__SCORER_EACH_SAMPLE)
        out[0] = sum / (double)inputs;
}

/* For each label the share of all inputs that have it and are correctly classified. */
static void score_by_class(const double *probs, const uint32_t *labels, size_t inputs,
                           uint32_t classes, double *out) {
    memset(out, 0, classes * sizeof *out);
    for (size_t i = 0; i < inputs; i++)
        out[labels[i]] += fds__argmax(probs + i * classes, classes) == labels[i];
    for (uint32_t y = 0; y < classes; y++)
        out[y] /= (double)inputs;
}

/* ---- the game of a table ---- */

typedef struct {
    baseline_job *job;
    bool by_class, reads_all; /* reads_all: the probabilities of all labels */
    fds_events events;        /* count over all calls */
    double start_s;
    /* of one call */
    fds_rows rows;
    double *probs;  /* (workers, rows.columns) */
    double *values; /* (coalitions, columns) */
} asker;

static fds_status read_one(void *context, size_t row, unsigned worker, fds_error *err) {
    const asker *a = context;
    const fds__baseline_data *data = a->job->data;
    const fds_utility *of = fds__table_utility(data->table);
    fds__scorer scorer = (fds__scorer)a->job->params->scorer;
    double *probs = a->probs + worker * a->rows.columns;
    double *out = a->values + row * a->job->game.columns;
    TRY(a->rows.read(a->rows.context, worker, row, 0, a->rows.columns, probs, err));
    if (a->by_class)
        score_by_class(probs, data->labels, of->inputs, of->classes, out);
    else if (a->reads_all)
        baseline_score(scorer, probs, data->labels, of->inputs, of->classes, out);
    else
        baseline_score(scorer, probs, NULL, of->inputs, 1, out);
    return FDS_OK;
}

static fds_status read_all(asker *a, const fds_plan *plan, size_t count, fds_error *err) {
    const fds__baseline_data *data = a->job->data;
    unsigned workers = fds__pool_workers((unsigned)a->job->params->threads, count);
    fds_table_view *view;
    TRY(fds_table_view_create(data->table, plan, a->reads_all ? NULL : data->labels, false, workers,
                              &view, err));
    fds__table_view_aim(view, data->aim);
    a->rows = fds_table_view_rows(view);
    a->probs = fds__alloc_zero(workers * a->rows.columns, sizeof *a->probs);
    fds_status status =
        a->probs ? fds__pool_run(workers, count, read_one, a, "read", "sub-models", NULL, err)
                 : fds__fail_nomem(err, workers * a->rows.columns * sizeof *a->probs);
    fds__free(a->probs);
    fds_table_view_free(view);
    return status;
}

static fds_status ask(void *context, const uint64_t *coalitions, size_t count, double *values,
                      fds_error *err) {
    asker *a = context;
    baseline_job *job = a->job;
    fds_table *table = job->data->table;
    if (!count)
        return FDS_OK;
    fds_plan *plan;
    TRY(fds__plan_blank(job->game.players, count, &plan, err));
    memcpy(plan->bits, coalitions, count * plan->words * sizeof *plan->bits);
    size_t before = fds__table_count(table);
    fds_status status =
        fds__table_fill_more(table, plan, (unsigned)job->params->threads, &a->events, err);
    job->report->asked += count;
    job->report->trained += fds__table_count(table) - before;
    a->values = values;
    if (status == FDS_OK)
        status = read_all(a, plan, count, err);
    fds_plan_free(plan);
    return status;
}

static void pass_log(void *user, fds_log_level level, const char *text) {
    const fds_events *events = ((const asker *)user)->job->events;
    if (events && events->log)
        events->log(events->user, level, text);
}

static bool pass_progress(void *user, const fds_progress *progress) {
    const asker *a = user;
    const fds_events *events = a->job->events;
    if (!events || !events->progress)
        return false;
    fds_progress all = *progress;
    all.done += a->job->report->trained;
    all.total = 0;
    all.elapsed_s = fds__now_s() - a->start_s;
    return events->progress(events->user, &all);
}

fds_status baseline_open_game(baseline_job *job, bool by_class, fds_error *err) {
    const fds_utility *of = fds__table_utility(job->data->table);
    asker *a = baseline_alloc(job, 1, 1, sizeof *a);
    TRY(baseline_check_memory(job, err));
    *a = (asker){.job = job,
                 .by_class = by_class,
                 .reads_all = by_class || job->params->scorer == FDS__SCORER_ACCURACY,
                 .events = {.log = pass_log, .progress = pass_progress, .user = a},
                 .start_s = fds__now_s()};
    bool is_each = job->params->scorer == FDS__SCORER_EACH_SAMPLE;
    job->game = (baseline_game){of->players,
                                by_class  ? of->classes
                                : is_each ? of->inputs
                                          : 1,
                                ask, a};
    return FDS_OK;
}

/* ---- many coalitions ---- */

fds_status baseline_ask_ends(baseline_job *job, double *values, fds_error *err) {
    size_t words = fds_coalition_words(job->players);
    uint64_t *both = baseline_alloc(job, 2, words, sizeof *both);
    TRY(baseline_check_memory(job, err));
    fds__coalition_complement(both, job->players, both + words);
    return job->game.ask(job->game.context, both, 2, values, err);
}

fds_status baseline_ask_all(baseline_job *job, size_t count,
                            void (*draw)(void *context, size_t number, uint64_t *bits),
                            void (*add)(void *context, size_t number, const uint64_t *bits,
                                        const double *values),
                            void *context, fds_error *err) {
    size_t words = fds_coalition_words(job->players), columns = job->columns;
    uint64_t *bits = baseline_alloc(job, BASELINE_CHUNK, words, sizeof *bits);
    double *values = baseline_alloc(job, BASELINE_CHUNK, columns, sizeof *values);
    double start_s = fds__now_s();
    TRY(baseline_check_memory(job, err));
    for (size_t first = 0, size; first < count; first += size) {
        size = MIN(count - first, (size_t)BASELINE_CHUNK);
        memset(bits, 0, size * words * sizeof *bits);
        for (size_t k = 0; k < size; k++)
            draw(context, first + k, bits + k * words);
        TRY(job->game.ask(job->game.context, bits, size, values, err));
        for (size_t k = 0; k < size; k++)
            add(context, first + k, bits + k * words, values + k * columns);
        TRY(fds__report(job->events, job->params->method, "coalitions", first + size, count,
                        start_s, err));
    }
    return FDS_OK;
}
