/* SPDX-License-Identifier: Apache-2.0
 *
 * baseline: methods to compare with, one file per method. Each file begins with the definition that
 * it computes and the paper that it comes from.
 *
 *   baseline.c       the methods by name, their checks, how one is run
 *   ask.c            the game of a table of sub-models
 *   values.c         baselines of a problem as results
 *   permutations.c   random permutations of the players, means of marginals, when to stop
 *   the others       one method each, listed in BASELINE_METHODS; tmc.c also has beta, controls.c
 *                    random and same-label
 */
#ifndef FDS_BASELINE_H
#define FDS_BASELINE_H

#include "utility/utility.h"

/* ---- settings and results ---- */

typedef enum fds__scorer {
    FDS__SCORER_ACCURACY,      /* share of test samples whose label is the likeliest */
    FDS__SCORER_CONFIDENCE,    /* mean probability of the label */
    FDS__SCORER_CROSS_ENTROPY, /* mean logarithm of that probability, not below 1e-12 */
    FDS__SCORER_EACH_SAMPLE,   /* a game for every test sample: the probability of its label */
} fds__scorer;

/* The methods read these parameters: method, scorer (a fds__scorer), permutations, until, truncate,
 * coalitions (0: as many as epsilon and delta need), epsilon, delta, form (1: group testing with a
 * dummy player), seed (of permutations and coalitions) and threads. */

/* The method's defaults; FDS_ERR_USAGE for an unknown method. */
fds_status fds__baseline_default(const char *method, fds_params *params, fds_error *err);
/* Whether the method reads a table of sub-models. */
bool fds__baseline_needs_table(const char *method);
/* FDS_ERR_USAGE, with the reason, for a scorer that the method cannot use and for parameters out of
 * range, before any work. */
fds_status fds__baseline_check(const fds_params *params, size_t players, fds_error *err);

/* The most different coalitions that the method asks a table for; 0: it needs no table. */
fds_status fds__baseline_most(const fds_params *params, size_t players, uint32_t classes,
                              size_t *coalitions, fds_error *err);
/* The cost of training these coalitions, as fds_table_estimate gives it for a plan; all that the
 * table has counts as if it were among them. memory is 0. */
fds_status fds__baseline_estimate(const fds_params *params, const fds_table *table,
                                  fds_table_cost *cost, fds_error *err);

/* What a baseline works on; a method with a table uses the table's utility function. */
typedef struct fds__baseline_data {
    const fds_problem *problem;
    const uint32_t *labels; /* (tests): the labels that are scored, usually the true ones */
    const fds__aim *aim;    /* of a regression, which is scored by it; or NULL */
    /* gshapley: the network and its seed; freeshap, knn: how to create "entk" and "knn:K"; NULL: as
     * fds__utility_params_default has them */
    const fds__utility_params *utility;
    fds_table *table; /* or NULL */
    /* freeshap, knn: such a utility function on the same data, which is then used instead of a new
     * one; or NULL. One of another kind is ignored. */
    const fds_utility *made;
} fds__baseline_data;

typedef struct fds__baseline_report {
    size_t asked;        /* coalitions whose utility the method used, repetitions counted */
    size_t trained;      /* of these, sub-models that were not in the table before */
    size_t permutations; /* that were walked */
    double truncated;    /* share of their places that were skipped */
    double change;       /* relative change over the last 100 permutations; NaN: fewer than 200 */
    bool has_converged;  /* change fell below until */
    double lr;           /* gshapley: the learning rate that was found */
    double seconds;
} fds__baseline_report;

/* values and errors [players * columns], player by player; columns: test_count for
 * FDS__SCORER_EACH_SAMPLE, else 1. errors are standard errors: 0 where nothing is drawn (loo, knn),
 * NaN where they are unknown (a single permutation or coalition; random and same-label). errors and
 * report may be NULL. Same seed, same bits, for any number of threads. */
fds_status fds__baseline(const fds_params *params, const fds__baseline_data *data, double *values,
                         double *errors, fds__baseline_report *report, const fds_events *events,
                         fds_error *err);

/* ---- one call of fds__baseline, as the methods see it: baseline.c ---- */

/* values[count * columns] of coalitions[count * words], coalition by coalition. Columns are
 * different games over the same coalitions. Only one thread calls it; it uses others itself. */
typedef struct baseline_game {
    size_t players, columns;
    fds_status (*ask)(void *context, const uint64_t *coalitions, size_t count, double *values,
                      fds_error *err);
    void *context;
} baseline_game;

typedef struct baseline_job {
    const fds_params *params;
    const fds__baseline_data *data; /* NULL in tests of methods that only ask for coalitions */
    baseline_game game;             /* of methods with a table */
    const uint32_t *player_labels;  /* (players): the label that most of a player's samples have */
    uint32_t classes;
    size_t players, columns;
    double *values, *errors; /* errors may be NULL; beforehand NaN or, for exact methods, 0 */
    fds__baseline_report *report;
    const fds_events *events;
    fds_utility *own;              /* by baseline_utility */
    struct baseline_block *memory; /* by baseline_alloc */
    size_t missing_bytes;          /* what it could not allocate */
} baseline_job;

/* Frees own and memory. */
void baseline_job_free(baseline_job *job);
/* Zeroed memory (rows, columns) that belongs to the job. A method allocates all that it needs, then
 * checks once that it has it: NULL stands for out of memory. */
void *baseline_alloc(baseline_job *job, size_t rows, size_t columns, size_t item_size);
fds_status baseline_check_memory(const baseline_job *job, fds_error *err);

/* The utility function that came with the data, where it is of that kind ("knn:5"; "entk" includes
 * "entk:K"), else a new one by the data's parameters, which belongs to the job. */
fds_status baseline_utility(baseline_job *job, const char *kind, const fds_utility **out,
                            fds_error *err);

/* ---- games: ask.c ---- */

/* Sets job->game to the table of the job's data. Its columns are those of the scorer or, with
 * by_class, for each label the share of all test samples that have it and are correctly classified
 * (cs-shapley: their sum is the accuracy). It counts what is asked and trained in the report, and
 * reports trained sub-models to the job's events. */
fds_status baseline_open_game(baseline_job *job, bool by_class, fds_error *err);

/* out[columns]: the score of probs (inputs, classes). labels NULL: all are 0. */
void baseline_score(fds__scorer scorer, const double *probs, const uint32_t *labels, size_t inputs,
                    uint32_t classes, double *out);

/* values (2, columns): v(0) and v(N). */
fds_status baseline_ask_ends(baseline_job *job, double *values, fds_error *err);

/* Asks for the coalitions 0 .. count-1, BASELINE_CHUNK at a time. draw adds the players of one to
 * bits, which are 0; add receives its values, in the order of the numbers. */
enum { BASELINE_CHUNK = 512 };
fds_status baseline_ask_all(baseline_job *job, size_t count,
                            void (*draw)(void *context, size_t number, uint64_t *bits),
                            void (*add)(void *context, size_t number, const uint64_t *bits,
                                        const double *values),
                            void *context, fds_error *err);

/* ---- permutations of the players: permutations.c ---- */

/* Permutation number `number` of a seed: uniform among those of 0 .. players-1, a function of both
 * alone. */
void baseline_permutation(uint64_t seed, uint64_t number, size_t players, uint32_t *permutation);

/* Running means of marginals over permutations, with their standard errors and TMC-Shapley's rule
 * for stopping: the mean over players of |phi_t - phi_(t-100)| / |phi_t|, for several games
 * the mean over them, computed every 100 permutations. */
typedef struct baseline_means {
    size_t size, count; /* players * columns; permutations added */
    double change;      /* NaN before there are 200 permutations */
    double *mean;       /* (players, columns) */
    double *squares;    /* (players, columns): sums of squared deviations from the mean */
    double *earlier;    /* (players, columns): the means at the last multiple of 100 */
} baseline_means;

/* Means in the job's memory, which the caller checks. */
baseline_means baseline_means_make(baseline_job *job);
/* One permutation's marginals (players, columns), by player; those of skipped places are 0. */
void baseline_means_add(baseline_means *means, const double *marginals);
/* How many permutations to walk next, at most `most`; 0: the values have converged, or there are
 * enough. */
size_t baseline_means_next(const baseline_means *means, const fds_params *params, size_t most);
/* Writes the job's values and errors (NaN for one permutation) and the report. players: those of
 * each permutation that are walked; skipped: their places that are truncated, in all. */
void baseline_means_finish(const baseline_means *means, baseline_job *job, size_t players,
                           size_t skipped);

/* Permutations that are walked side by side, at most; 100 is a multiple of it. */
enum { BASELINE_ROUND = 50 };

/* Counts in *near the places in a row at which |value - full| <= truncate |full|, for several games
 * the means of both sides. False after the sixth: the permutation is truncated there. */
bool baseline_walks_on(const fds_params *params, size_t columns, const double *value,
                       const double *full, unsigned *near);

/* For games in which growing a coalition by one player is cheap: each thread walks whole
 * permutations. walk writes the values of all prefixes of a permutation, values (players + 1,
 * columns) from the empty coalition on, and in *end how many prefixes after the empty one it looked
 * at (the rest of values is not read; their marginals are 0). Sums go by the numbers of the
 * permutations. Writes the job's values, errors and report, except asked. */
typedef fds_status (*baseline_walker)(void *context, unsigned worker, const uint32_t *permutation,
                                      double *values, size_t *end, fds_error *err);
fds_status baseline_walk(baseline_job *job, baseline_walker walk, void *context, fds_error *err);

/* ---- methods ---- */

/* Parameters of training, for takes below. */
#define BASELINE_TRAINING "model lr beta batch optimizer"

/* All that is known of a method, at the end of its file. */
typedef struct baseline_method {
    const char *name;  /* "tmc"; "knn:K" where numbers follow */
    const char *about; /* one line of help */
    /* parameters besides scorer, per_sample and, with a table, those of sub-models; or NULL */
    const char *takes;
    bool (*is_named)(const char *text); /* or NULL: by name */
    const char *numbers;                /* what must follow in the name, for messages; or NULL */
    bool by_class;                      /* the columns of its game are accuracies by class */
    bool needs_classes;                 /* it means nothing for a regression */
    bool is_exact;                      /* nothing is drawn: standard errors are 0 */
    unsigned scorers;                   /* a bit each; 0: all */
    const char *why;                    /* no others */
    size_t permutations;                /* 0: it walks none */
    double until, truncate;
    double epsilon;          /* 0: no bound says how many coalitions it needs */
    size_t least_coalitions; /* 0: it draws no coalitions by number */
    fds_status (*run)(baseline_job *job, fds_error *err);
    /* the most different coalitions that it asks a table for; NULL: it needs no table */
    double (*most)(const fds_params *params, size_t players, uint32_t classes);
} baseline_method;

/* The methods, in the order of lists. */
#define BASELINE_METHODS(X) \
    X(loo)                  \
    X(tmc)                  \
    X(gshapley)             \
    X(group_testing)        \
    X(cs_shapley)           \
    X(freeshap)             \
    X(knn)                  \
    X(tknn)                 \
    X(banzhaf)              \
    X(ame)                  \
    X(beta)                 \
    X(random)               \
    X(same_label)

#define X(name) extern const baseline_method baseline_##name;
BASELINE_METHODS(X)
#undef X

/* "knn:5" is of the method "knn:K"; NULL: unknown. */
const baseline_method *baseline_find(const char *text);
/* params with the method's own defaults where nothing is given. */
fds_params baseline_complete(const baseline_method *method, const fds_params *params);
/* method->most as a whole number; FDS_ERR_LIMIT where epsilon needs too many coalitions. */
fds_status baseline_count(const baseline_method *method, const fds_params *params, size_t players,
                          uint32_t classes, size_t *most, fds_error *err);

/* "beta:4,1": false when text is not of that form with numbers above 0. */
bool baseline_read_beta(const char *text, double *alpha, double *beta);
/* The guarantee of "tknn:T" with `private` for so many test samples; NULL: no memory. */
json_t *baseline_tknn_privacy(const fds_params *params, size_t queries);
/* "knn:5" */
bool baseline_read_knn(const char *text, uint32_t *k);

#endif
