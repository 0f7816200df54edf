/* SPDX-License-Identifier: Apache-2.0
 *
 * baseline: the methods that others value data by. One file a method, each opening with the
 * definition that it computes and where it comes from.
 *
 *   baseline.c       the methods by name, their checks, and what calls them
 *   ask.c            a table of sub-models as a game that can be asked
 *   permutations.c         random permutations of the players, the mean of what each adds, when to stop
 *   loo.c tmc.c gshapley.c group_testing.c cs_shapley.c freeshap.c banzhaf.c knn.c controls.c
 */
#ifndef FDS_BASELINE_H
#define FDS_BASELINE_H

#include "utility/utility.h"

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

/* events: sub-models being trained are told to it. labels as in fds_baseline_data. All must outlive
 * it. */
fds_status baseline_asker_create(fds_table *table, baseline_columns columns, fds_scorer scorer,
                                 const uint32_t *labels, unsigned threads, const fds_events *events,
                                 baseline_asker **out, fds_error *err);
void baseline_asker_free(baseline_asker *asker);
baseline_game baseline_asker_game(baseline_asker *asker);
/* Coalitions asked for so far, and how many of them had to be computed. */
void baseline_asker_count(const baseline_asker *asker, size_t *asked, size_t *computed);

/* One scorer's verdict on probs (inputs, classes): out[columns]. */
void baseline_score(fds_scorer scorer, const double *probs, const uint32_t *labels, size_t inputs,
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
bool baseline_is_near(const fds_baseline_params *params, size_t columns, const double *value,
                      const double *full);

/* Of the report permutations, change (NaN before there are 200 permutations) and has_converged. */
void baseline_means_tell(const fds_baseline_params *params, const baseline_means *means,
                         fds_baseline_report *report);

/* Whether to walk on, after a round. */
bool baseline_goes_on(const fds_baseline_params *params, const baseline_means *means);

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

fds_status baseline_walk(const baseline_walker *walker, const fds_baseline_params *params,
                         double *values, double *errors, fds_baseline_report *report,
                         const fds_events *events, fds_error *err);

/* ---- methods ---- */

/* One call of fds_baseline, as the methods see it. */
typedef struct baseline_job {
    const fds_baseline_params *params;
    const fds_baseline_data *data; /* NULL in tests of methods that only ask for coalitions */
    baseline_game game;            /* of methods that ask */
    const uint32_t *player_labels; /* (players): the label that most of a player's samples have */
    uint32_t classes;
    size_t players, columns;
    double *values, *errors; /* errors may be NULL; beforehand NaN or, of exact methods, 0 */
    fds_baseline_report *report;
    const fds_events *events;
} baseline_job;

/* The value function that came with the data, where it is of that kind ("knn:5"; "entk" stands for
 * "entk:K" as well), else a new one by the data's parameters: *own, which the method frees. */
fds_status baseline_utility(const baseline_job *job, const char *kind, fds_utility **own,
                            const fds_utility **out, fds_error *err);

fds_status baseline_loo(baseline_job *job, fds_error *err);
fds_status baseline_tmc(baseline_job *job, fds_error *err); /* and beta:A,B */
fds_status baseline_banzhaf(baseline_job *job, fds_error *err);
fds_status baseline_group_testing(baseline_job *job, fds_error *err);
/* game: BASELINE_BY_CLASS. */
fds_status baseline_cs_shapley(baseline_job *job, fds_error *err);
fds_status baseline_gshapley(baseline_job *job, fds_error *err);
fds_status baseline_freeshap(baseline_job *job, fds_error *err);
fds_status baseline_knn(baseline_job *job, fds_error *err);
fds_status baseline_random(baseline_job *job, fds_error *err);
fds_status baseline_same_label(baseline_job *job, fds_error *err);

/* How many different coalitions each of those that ask will ask for at the most; params as
 * fds_baseline_check accepts them, with their permutations. */
fds_status baseline_loo_most(const fds_baseline_params *params, size_t players, uint32_t classes,
                             size_t *most, fds_error *err);
fds_status baseline_tmc_most(const fds_baseline_params *params, size_t players, uint32_t classes,
                             size_t *most, fds_error *err);
fds_status baseline_banzhaf_most(const fds_baseline_params *params, size_t players,
                                 uint32_t classes, size_t *most, fds_error *err);
fds_status baseline_group_testing_most(const fds_baseline_params *params, size_t players,
                                       uint32_t classes, size_t *most, fds_error *err);
fds_status baseline_cs_shapley_most(const fds_baseline_params *params, size_t players,
                                    uint32_t classes, size_t *most, fds_error *err);

/* "beta:4,1": false when text is not of that form with numbers above 0. */
bool baseline_read_beta(const char *text, double *alpha, double *beta);
/* "knn:5" */
bool baseline_read_knn(const char *text, uint32_t *k);

#endif
