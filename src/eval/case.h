/* SPDX-License-Identifier: Apache-2.0
 *
 * A case of a bench, inside: what case.c and the files it is made of share.
 *
 *   case.c      the whole job, and case.json
 *   folder.c    its folder: the lock, settings.json, METHOD.json
 *   game.c      what is valued: players, test samples, value functions with their tables
 *   answers.c   the values of one method, and what they cost
 *   measure.c   value losses and agreement, as JSON
 *   flipped.c   the game with wrong labels
 */
#ifndef FDS_EVAL_CASE_H
#define FDS_EVAL_CASE_H

#include "eval/eval.h"

#include <string.h>

/* ---- methods.c ---- */

/* NULL-terminated: those that are compared. */
const char *const *eval_method_names(const fds__bench_params *params);
bool eval_has_method(const fds__bench_params *params, const char *name);

/* ---- game.c ---- */

/* What sub-models are trained by: 10 epochs, or until they have converged. */
typedef enum eval_utility {
    EVAL_UTILITY_EPOCHS,
    EVAL_UTILITY_CONVERGED,
    EVAL_UTILITIES
} eval_utility;

const char *eval_utility_name(eval_utility scorer); /* "retrain:10", "retrain" */

/* A value function, and what it answers. */
typedef struct eval_side {
    fds_utility *value; /* NULL: not wanted */
    fds_table *table;
    uint32_t *predicted; /* (tests) labels, by the model of all players */
    double *rise;        /* (tests) v(N) - v(0) of that label */
} eval_side;

/* The first four members are the caller's. */
typedef struct eval_game {
    const fds__bench_data *data;
    const fds__bench_params *params;
    const fds_events *events;
    const fds_dataset *train; /* that of data, or one with other labels */
    fds_problem problem;      /* of the same, for fits and baselines; nothing is its own */
    char dir[FDS__PATH_MAX];
    size_t players, tests;
    uint32_t classes;
    fds_groups *groups;      /* of players, by label */
    uint32_t *player_labels; /* (players) */
    uint32_t *labels;        /* (tests), the true ones */
    eval_side sides[EVAL_UTILITIES];
} eval_game;

/* All but the tables and what is read from them; nothing is written. */
fds_status eval_game_make(eval_game *game, const char *dir, bool is_converged, fds_error *err);
/* The tables in the folder dir, with the models of all players and of none. */
fds_status eval_game_open(eval_game *game, fds_error *err);
void eval_game_free(eval_game *game);
/* How many sub-models fds, afds, gfds and ls learn from. */
size_t eval_coalitions(const eval_game *game);
/* Sample number of test sample i. */
uint32_t eval_test(const eval_game *game, size_t i);

/* ---- folder.c ---- */

/* What a method took; NaN: not known, or nothing to do. */
typedef struct eval_cost {
    double prepare_s, answer_ms;
    size_t sub_models;
    bool was_resumed;  /* seconds are of the last part alone */
    bool is_elsewhere; /* times are of another machine, or number of threads, than this one */
    /* not in METHOD.json, as they are the same whenever the values are computed */
    size_t permutations; /* that were walked; 0: the method walks none */
    bool has_rule;       /* by which the method ends them before all are walked */
    bool has_converged;  /* it did */
} eval_cost;

/* METHOD.json: at work on it, and done. */
typedef struct eval_record {
    bool is_begun, is_done;
    eval_cost cost;
} eval_record;

/* One that cannot be read or means nothing counts as begun, with a warning. */
fds_status eval_record_read(const eval_game *game, const char *method, eval_record *out,
                            fds_error *err);
/* cost NULL: begun. */
fds_status eval_record_write(const eval_game *game, const char *method, const eval_cost *cost,
                             fds_error *err);
/* What it runs on; NULL: no memory. */
json_t *eval_describe_machine(const eval_game *game);

/* Makes the folder ours, until the lock is closed. FDS_ERR_IO when another process has it, FDS_ERR_USAGE
 * when it holds something else. */
fds_status eval_folder_lock(const char *dir, fds__file *lock, fds_error *err);
/* Writes settings.json, or compares with the one that is there: FDS_ERR_USAGE, naming the difference.
 */
fds_status eval_folder_settle(const eval_game *game, fds_error *err);
/* "data" and "settings" as case.json has them; NULL: no memory. */
json_t *eval_describe_data(const eval_game *game);
json_t *eval_describe_settings(const eval_game *game);

/* ---- answers.c ---- */

static inline size_t eval_columns(const eval_game *game, const eval_method *method) {
    return method->is_per_sample ? game->tests : 1;
}

/* gfds and gfds+ compare groups, which are by label here. */
static inline bool eval_lacks_groups(const eval_game *game, const eval_method *method) {
    return strncmp(method->base, "gfds", 4) == 0 && fds_groups_count(game->groups) < 2;
}

/* values (players, eval_columns): of methods by sample for labels (tests). cost NULL: it is neither
 * asked for nor kept. */
fds_status eval_answers(const eval_game *game, const eval_method *method, const uint32_t *labels,
                        double *values, eval_cost *cost, fds_error *err);

/* Which coalitions are drawn: ls sees those that fds and afds learn from, so that the two differ by
 * the explainer alone; the two halves of the truth others. */
typedef enum eval_draw { EVAL_DRAW_METHODS, EVAL_DRAW_TRUTH, EVAL_DRAW_TRUTH_AGAIN } eval_draw;

/* count, or as many as there are besides the empty and the full one. */
size_t eval_drawn(const eval_game *game, size_t count);
/* values (players, tests) for labels by least squares on eval_drawn coalitions. used (or NULL): how
 * many different ones, with the empty and the full one. */
fds_status eval_least_squares(const eval_game *game, eval_utility scorer, eval_draw draw,
                              size_t count, const uint32_t *labels, double *values, size_t *used,
                              fds_error *err);

/* Draws what a fitted method says of a few test samples into dir/METHOD.png. */
fds_status eval_picture(const eval_game *game, const eval_method *method, fds_error *err);

/* ---- measure.c ---- */

/* What is taken for the truth of a value function. */
typedef struct eval_truth {
    double *values;     /* (players, tests); NULL: none was asked for */
    size_t coalitions;  /* of both halves */
    double correlation; /* of one half with the other */
} eval_truth;

/* The item of "judged" for a value function. */
fds_status eval_measure_utility(const eval_game *game, eval_utility scorer, const eval_truth *truth,
                                json_t **out, fds_error *err);
/* Appends to list the losses by one value function and way, for each set of test samples. */
fds_status eval_measure_losses(const eval_game *game, eval_utility scorer, fds_removal way,
                               const double *values, size_t columns, json_t *list, fds_error *err);
/* "agreement" of a row. truth (players, tests) of its own value function, or NULL. */
fds_status eval_measure_agreement(const eval_game *game, const eval_method *method,
                                  const double *values, const double *truth, json_t **out,
                                  fds_error *err);

/* ---- flipped.c ---- */

/* areas[count]: how well each method finds the players whose labels were made wrong. */
fds_status eval_flipped(const eval_game *game, const eval_method *methods, size_t count,
                        double *areas, fds_error *err);

#endif
