/* SPDX-License-Identifier: Apache-2.0
 *
 * A table of sub-models as a game that can be asked: coalitions go in, what the scorer makes of
 * their sub-models' answers comes out. What the table has is read, what it lacks is trained and
 * kept, so no coalition is ever trained twice, by whatever method. As methods by permutations ask for few
 * at a time, what is kept goes to the disk every few seconds; whoever made the asker syncs the
 * table in the end.
 *
 * Only what the scorer looks at is read: of each test sample the one probability of its label, or,
 * where the likeliest label matters (accuracy), all of them. Rows are read by several threads, each
 * value by one of them alone; sums run over the test samples in ascending order.
 *
 * How many sub-models a method will still want is not known here: events are told of those trained
 * so far with a total of 0. Methods tell how far they are.
 */
#include "baseline/baseline.h"

#include <math.h>
#include <string.h>

#define LEAST_PROBABILITY 1e-12 /* that a logarithm is taken of */

struct baseline_asker {
    fds_table *table;
    baseline_columns columns;
    fds__scorer scorer;
    const uint32_t *labels; /* (inputs) */
    uint32_t *zeros;        /* (inputs): the labels, once only theirs are read */
    bool reads_all;         /* the probabilities of all labels */
    size_t width;           /* columns of the game */
    unsigned threads;
    const fds_events *outer;
    fds_events inner;
    double start_s;
    size_t asked, computed;
};

/* ---- verdicts ---- */

/* The lowest of several. */
static uint32_t likeliest(const double *probs, uint32_t classes) {
    uint32_t best = 0;
    for (uint32_t y = 1; y < classes; y++)
        if (probs[y] > probs[best])
            best = y;
    return best;
}

static double score_one(fds__scorer scorer, const double *probs, uint32_t label, uint32_t classes) {
    if (scorer == FDS__SCORER_ACCURACY)
        return likeliest(probs, classes) == label;
    return scorer == FDS__SCORER_CROSS_ENTROPY ? log(fmax(probs[label], LEAST_PROBABILITY))
                                               : probs[label];
}

void baseline_score(fds__scorer scorer, const double *probs, const uint32_t *labels, size_t inputs,
                    uint32_t classes, double *out) {
    double sum = 0;
    for (size_t i = 0; i < inputs; i++) {
        double one = score_one(scorer, probs + i * classes, labels[i], classes);
        if (scorer == FDS__SCORER_EACH_SAMPLE)
            out[i] = one;
        sum += one;
    }
    if (scorer != FDS__SCORER_EACH_SAMPLE)
        out[0] = sum / (double)inputs;
}

/* For each label the share of all inputs that have it and are answered rightly. */
static void score_by_class(const double *probs, const uint32_t *labels, size_t inputs,
                           uint32_t classes, double *out) {
    for (uint32_t y = 0; y < classes; y++)
        out[y] = 0;
    for (size_t i = 0; i < inputs; i++)
        out[labels[i]] += likeliest(probs + i * classes, classes) == labels[i];
    for (uint32_t y = 0; y < classes; y++)
        out[y] /= (double)inputs;
}

/* ---- reading ---- */

typedef struct {
    const baseline_asker *asker;
    fds_rows rows;
    double *probs;  /* (workers, rows.columns) */
    double *values; /* (coalitions, width) */
} reading;

static fds_status read_one(void *context, size_t row, unsigned worker, fds_error *err) {
    const reading *r = context;
    const baseline_asker *a = r->asker;
    const fds_utility *of = fds__table_utility(a->table);
    double *probs = r->probs + worker * r->rows.columns, *out = r->values + row * a->width;
    TRY(r->rows.read(r->rows.context, worker, row, 0, r->rows.columns, probs, err));
    if (a->columns == BASELINE_BY_CLASS)
        score_by_class(probs, a->labels, of->inputs, of->classes, out);
    else if (a->reads_all)
        baseline_score(a->scorer, probs, a->labels, of->inputs, of->classes, out);
    else
        baseline_score(a->scorer, probs, a->zeros, of->inputs, 1, out);
    return FDS_OK;
}

static fds_status read_all(const baseline_asker *a, const fds_plan *plan, size_t count,
                           double *values, fds_error *err) {
    unsigned workers = fds__pool_workers(a->threads, count);
    fds_table_view *view;
    TRY(fds_table_view_create(a->table, plan, a->reads_all ? NULL : a->labels, false, workers,
                              &view, err));
    reading r = {.asker = a, .rows = fds_table_view_rows(view), .values = values};
    r.probs = fds__alloc_zero(workers * r.rows.columns, sizeof *r.probs);
    fds_status status =
        r.probs ? fds__pool_run(workers, count, read_one, &r, "read", "sub-models", NULL, err)
                : fds__fail_nomem(err, workers * r.rows.columns * sizeof *r.probs);
    fds__free(r.probs);
    fds_table_view_free(view);
    return status;
}

/* ---- asking ---- */

static fds_status ask(void *context, const uint64_t *coalitions, size_t count, double *values,
                      fds_error *err) {
    baseline_asker *a = context;
    if (!count)
        return FDS_OK;
    fds_plan *plan;
    TRY(fds__plan_blank(fds__table_utility(a->table)->players, count, &plan, err));
    memcpy(plan->bits, coalitions, count * plan->words * sizeof *plan->bits);
    size_t before = fds__table_count(a->table);
    fds_status status = fds__table_fill_more(a->table, plan, a->threads, &a->inner, err);
    a->asked += count;
    a->computed += fds__table_count(a->table) - before;
    if (status == FDS_OK)
        status = read_all(a, plan, count, values, err);
    fds_plan_free(plan);
    return status;
}

/* ---- making one ---- */

static void pass_log(void *user, fds_log_level level, const char *text) {
    const baseline_asker *a = user;
    if (a->outer && a->outer->log)
        a->outer->log(a->outer->user, level, text);
}

static bool pass_progress(void *user, const fds_progress *progress) {
    const baseline_asker *a = user;
    if (!a->outer || !a->outer->progress)
        return false;
    fds_progress all = *progress;
    all.done += a->computed;
    all.total = 0;
    all.elapsed_s = fds__now_s() - a->start_s;
    return a->outer->progress(a->outer->user, &all);
}

fds_status baseline_asker_create(fds_table *table, baseline_columns columns, fds__scorer scorer,
                                 const uint32_t *labels, unsigned threads, const fds_events *events,
                                 baseline_asker **out, fds_error *err) {
    const fds_utility *of = fds__table_utility(table);
    for (size_t i = 0; i < of->inputs; i++)
        if (labels[i] >= of->classes)
            return fds__fail(err, FDS_ERR_USAGE, "test sample %zu: label %u, there are %u classes",
                             i, labels[i], of->classes);
    baseline_asker *a = fds__alloc_zero(1, sizeof *a);
    uint32_t *zeros = fds__alloc_zero(of->inputs, sizeof *zeros);
    if (!a || !zeros) {
        fds__free(a);
        fds__free(zeros);
        return fds__fail_nomem(err, of->inputs * sizeof *zeros);
    }
    bool is_by_class = columns == BASELINE_BY_CLASS;
    *a = (baseline_asker){.table = table,
                          .columns = columns,
                          .scorer = scorer,
                          .labels = labels,
                          .zeros = zeros,
                          .reads_all = is_by_class || scorer == FDS__SCORER_ACCURACY,
                          .width = is_by_class                         ? of->classes
                                   : scorer == FDS__SCORER_EACH_SAMPLE ? of->inputs
                                                                       : 1,
                          .threads = threads,
                          .outer = events,
                          .inner = {.log = pass_log, .progress = pass_progress, .user = a},
                          .start_s = fds__now_s()};
    *out = a;
    return FDS_OK;
}

void baseline_asker_free(baseline_asker *asker) {
    if (asker)
        fds__free(asker->zeros);
    fds__free(asker);
}

baseline_game baseline_asker_game(baseline_asker *asker) {
    return (baseline_game){fds__table_utility(asker->table)->players, asker->width, ask, asker};
}

void baseline_asker_count(const baseline_asker *asker, size_t *asked, size_t *computed) {
    *asked = asker->asked;
    *computed = asker->computed;
}
