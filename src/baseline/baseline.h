/* SPDX-License-Identifier: Apache-2.0
 *
 * baseline: the methods that others value data by. One file a method, each opening with the
 * definition that it computes and where it comes from.
 *
 *   baseline.c       the methods by name, their checks, and what calls them
 *   ask.c            a table of sub-models as a game that can be asked
 *   values.c         baselines of a problem as results
 *   permutations.c   random permutations of the players, the mean of what each adds, when to stop
 *   the others       one method each; BASELINE_METHODS lists them, tmc.c has beta too, controls.c
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

/* Of the parameters the methods read: method, scorer (a fds__scorer), permutations, until, truncate,
 * coalitions (0: as many as epsilon and delta need), epsilon, delta, form (1: group testing with a
 * dummy player), seed (of permutations and coalitions) and threads. */

/* What to start with. until 0.05 and, for tmc, truncate 0.01 are those of Data Shapley's authors,
 * which we take for cs-shapley too; beta and freeshap truncate nothing. Ours are 1,000 permutations at
 * the most, the 200 of freeshap, all of them walked, and epsilon, by which 100 players take some
 * 2,000 coalitions. FDS_ERR_USAGE for a method that there is not. */
fds_status fds__baseline_default(const char *method, fds_params *params, fds_error *err);
const char *const *fds_baseline_methods(void); /* NULL-terminated; "knn:K", "beta:A,B" */
/* Whether it asks a table of sub-models; the others need none. */
bool fds__baseline_needs_table(const char *method);
/* FDS_ERR_USAGE, saying why, for a method that cannot be judged in this way or numbers that make no
 * sense, before any work. */
fds_status fds__baseline_check(const fds_params *params, size_t players, fds_error *err);

/* How many different coalitions it will ask a table for at the most, before any work; 0 for a
 * method without one. */
fds_status fds__baseline_most(const fds_params *params, size_t players, uint32_t classes,
                              size_t *coalitions, fds_error *err);
/* What the table would have to take for that, as fds_table_estimate tells it of a plan. What it has
 * counts as if it were all among them; memory is left 0. */
fds_status fds__baseline_estimate(const fds_params *params, const fds_table *table,
                                  fds_table_cost *need, fds_error *err);

/* What a baseline works on; the utility function is that of the table, where there is one. */
typedef struct fds__baseline_data {
    const fds_problem *problem;
    const uint32_t *labels; /* (tests): what the scorer asks about, usually the true ones */
    /* gshapley: the network and its seed; freeshap, knn: that of "entk" and "knn:K"; NULL: as
     * fds__utility_params_default has them */
    const fds__utility_params *value;
    fds_table *table; /* or NULL */
    /* freeshap, knn: such a utility function on the same data, so that none has to be made, or NULL;
     * one of another kind is not used */
    const fds_utility *made;
} fds__baseline_data;

typedef struct fds__baseline_report {
    size_t asked;        /* coalitions that the method looked at, repetitions counted */
    size_t trained;      /* of them, sub-models that were not in the table before */
    size_t permutations; /* that were walked */
    double truncated;    /* share of their places that were not looked at */
    double change;       /* relative change over the last 100 permutations; NaN: fewer */
    bool has_converged;  /* change fell below until */
    double lr;           /* gshapley: the learning rate that was found */
    double seconds;
} fds__baseline_report;

/* values and errors [players * columns], player by player; columns: input_count for
 * FDS__SCORER_EACH_SAMPLE, else 1. errors are standard errors: 0 where nothing is drawn (loo, knn), NaN
 * where they are not known (of a single order or coalition; random and same-label). errors and
 * report may be NULL. Same seed, same bits, for any number of threads. */
fds_status fds__baseline(const fds_params *params, const fds__baseline_data *data, double *values,
                         double *errors, fds__baseline_report *report, const fds_events *events,
                         fds_error *err);

/* ---- games that are asked: ask.c ---- */

/* values[count * columns] of coalitions[count * words], coalition by coalition. Columns are
 * different games over the same coalitions. To be called by one thread; it uses others itself. */
typedef struct baseline_game {
    size_t players, columns;
    fds_status (*ask)(void *context, const uint64_t *coalitions, size_t count, double *values,
                      fds_error *err);
    void *context;
} baseline_game;

/* What the columns of a table's game are: a scorer, or for each label the share of all test samples
 * that have it and are answered rightly (cs-shapley: their sum is the accuracy). */
typedef enum baseline_columns { BASELINE_SCORED, BASELINE_BY_CLASS } baseline_columns;

typedef struct baseline_asker baseline_asker;

/* events: sub-models being trained are told to it. labels as in fds__baseline_data. All must outlive
 * it. */
fds_status baseline_asker_create(fds_table *table, baseline_columns columns, fds__scorer scorer,
                                 const uint32_t *labels, unsigned threads, const fds_events *events,
                                 baseline_asker **out, fds_error *err);
void baseline_asker_free(baseline_asker *asker);
baseline_game baseline_asker_game(baseline_asker *asker);
/* Coalitions asked for so far, and how many of them had to be computed. */
void baseline_asker_count(const baseline_asker *asker, size_t *asked, size_t *computed);

/* One scorer's verdict on probs (inputs, classes): out[columns]. */
void baseline_score(fds__scorer scorer, const double *probs, const uint32_t *labels, size_t inputs,
                    uint32_t classes, double *out);

/* ---- permutations of the players: permutations.c ---- */

/* Order number `number` of a seed: a uniform permutation of 0 .. players-1, a function of both
 * alone. */
void baseline_permutation(uint64_t seed, uint64_t number, size_t players, uint32_t *order);

/* Running means of what players add, over permutations, with their standard errors and the rule by which
 * TMC-Shapley stops: the mean over players of |phi_t - phi_(t-100)| / |phi_t|, for several games
 * the mean over them, looked at every 100 permutations. */
typedef struct baseline_means baseline_means;

fds_status baseline_means_create(size_t players, size_t columns, baseline_means **out,
                                 fds_error *err);
void baseline_means_free(baseline_means *means);
/* One order's marginals (players, columns), by player; those not looked at are 0. */
void baseline_means_add(baseline_means *means, const double *marginals);
size_t baseline_means_count(const baseline_means *means); /* permutations added */
/* values and errors (players, columns); errors may be NULL; of one order they are NaN. */
void baseline_means_get(const baseline_means *means, double *values, double *errors);

/* Orders that are walked side by side, at the most; 100 is a multiple of it. */
enum { BASELINE_ROUND = 50 };

/* An order is truncated when more than so many places running were near v(N). */
enum { BASELINE_NEAR_PLACES = 5 };
/* |value - full| <= truncate |full|; for several games the means over them of both sides. */
bool baseline_is_near(const fds_params *params, size_t columns, const double *value,
                      const double *full);

/* Of the report permutations, change (NaN before there are 200 permutations) and has_converged. */
void baseline_means_tell(const fds_params *params, const baseline_means *means,
                         fds__baseline_report *report);

/* Whether to walk on, after a round. */
bool baseline_goes_on(const fds_params *params, const baseline_means *means);

/* Orders by walking: for games in which growing a coalition by one player is cheap, so that each
 * thread walks whole permutations. walk gives the values of all prefixes of an order, values (players +
 * 1, columns) from the empty coalition on, and *end: how many of the prefixes after the empty one
 * were looked at (the rest of values is not read; their marginals are 0). Rounds of BASELINE_ROUND
 * permutations, added up in the order of their numbers. Fills in values, errors, and the report but for
 * asked. */
typedef struct baseline_walker {
    size_t players, columns;
    fds_status (*walk)(void *context, unsigned worker, const uint32_t *order, double *values,
                       size_t *end, fds_error *err);
    void *context;
} baseline_walker;

fds_status baseline_walk(const baseline_walker *walker, const fds_params *params, double *values,
                         double *errors, fds__baseline_report *report, const fds_events *events,
                         fds_error *err);

/* ---- methods ---- */

/* One call of fds__baseline, as the methods see it. */
typedef struct baseline_job {
    const fds_params *params;
    const fds__baseline_data *data; /* NULL in tests of methods that only ask for coalitions */
    baseline_game game;             /* of methods that ask */
    const uint32_t *player_labels;  /* (players): the label that most of a player's samples have */
    uint32_t classes;
    size_t players, columns;
    double *values, *errors; /* errors may be NULL; beforehand NaN or, of exact methods, 0 */
    fds__baseline_report *report;
    const fds_events *events;
} baseline_job;

/* The value function that came with the data, where it is of that kind ("knn:5"; "entk" stands for
 * "entk:K" as well), else a new one by the data's parameters: *own, which the method frees. */
fds_status baseline_utility(const baseline_job *job, const char *kind, fds_utility **own,
                            const fds_utility **out, fds_error *err);

typedef fds_status (*baseline_most)(const fds_params *params, size_t players, uint32_t classes,
                                    size_t *most, fds_error *err);

enum {
    BASELINE_ANY_SCORER = 1 << FDS__SCORER_ACCURACY | 1 << FDS__SCORER_CONFIDENCE |
                          1 << FDS__SCORER_CROSS_ENTROPY | 1 << FDS__SCORER_EACH_SAMPLE,
};

/* All that is known of a method, at the end of its file. */
typedef struct baseline_method {
    const char *name;                   /* "tmc"; "knn:K" where numbers follow */
    const char *about;                  /* one line of help */
    const char *takes;                  /* parameters of its own, besides scorer and per_sample */
    bool (*is_named)(const char *text); /* or NULL: by name */
    bool has_table;                     /* it asks a table of sub-models */
    bool by_class;                      /* whose columns are accuracies by class */
    bool is_exact;                      /* nothing is drawn: standard errors are 0 */
    unsigned scorers;                   /* a bit each */
    const char *why;                    /* no others */
    size_t permutations;                /* 0: it walks none */
    double until, truncate;
    double epsilon;          /* 0: no bound says how many coalitions it needs */
    size_t least_coalitions; /* 0: it draws no coalitions by number */
    fds_status (*run)(baseline_job *job, fds_error *err);
    baseline_most
        most; /* different coalitions that it will ask for at most; of those with a table */
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
    X(banzhaf)              \
    X(ame)                  \
    X(beta)                 \
    X(random)               \
    X(same_label)

#define X(name) extern const baseline_method baseline_##name;
BASELINE_METHODS(X)
#undef X

/* "knn:5" is of the method "knn:K"; NULL: there is none. */
const baseline_method *baseline_find(const char *text);
/* params with the method's own defaults where nothing is given. */
fds_params baseline_complete(const baseline_method *method, const fds_params *params);

/* "beta:4,1": false when text is not of that form with numbers above 0. */
bool baseline_read_beta(const char *text, double *alpha, double *beta);
/* "knn:5" */
bool baseline_read_knn(const char *text, uint32_t *k);

#endif
