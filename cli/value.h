/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of fds value: cmd_value.c reads the options and calls the others in turn.
 *
 *   value_game.c   groups, coalitions, the tables of utilities: from the options to filled tables
 *   value_solve.c  from filled tables to values
 *   value_baseline.c  the methods of others: their options, and their values
 *   value_show.c   the result as text and as JSON
 */
#ifndef FDS_CLI_VALUE_H
#define FDS_CLI_VALUE_H

#include "cli.h"

enum { VALUE_PATH_SIZE = 4096 + 64 };
enum { MOST_COALITIONS = 1 << 24 }; /* two days of sub-models, a gigabyte of plan */

typedef struct value_options {
    cli_common common;
    fds_data_options data;
    const char *output, *method, *players, *sampler, *value, *adjust, *group, *target, *table;
    const char *store, *model, *optimizer, *utility, *form;
    bool global, per_sample, dry_run;
    uint64_t test_count, coalitions, batch; /* 0: not given */
    uint64_t draw;                          /* UINT64_MAX: not given */
    uint64_t top, permutations;             /* permutations: 0 when not given */
    double lr, beta;                        /* 0: not given */
    double until, truncate, epsilon, delta; /* negative: not given */
} value_options;

/* A value function, and the table of what it answered. */
typedef struct value_game {
    const char *kind; /* "retrain:10"; NULL: none, in methods that ask no model anything */
    fds_utility *value;
    fds_table *table;
    fds_table_cost need; /* before it was filled */
    double seconds;      /* that filling took; of baselines, making the value function */
    char dir[VALUE_PATH_SIZE];
} value_game;

typedef struct value_job {
    const value_options *o;
    cli_term *term;
    cli_setup setup;

    /* what the options say */
    const char *method;
    bool is_baseline, is_exact; /* neither: least squares */
    bool is_grouped;            /* by gfds or gfds+ */
    bool is_mean;               /* one value a player, not one for each test sample */
    fds_sampler sampler;
    fds_adjust adjust;
    const char *adjust_name, *target;
    fds_store store;
    fds_utility_params params;

    /* the game and its surrogate (kind NULL: none), on the same plan */
    fds_groups *groups;           /* NULL: none are needed */
    fds_plan *plan, *values_plan; /* values_plan: for those of "kernel" and "entk" */
    value_game game, surrogate;

    /* the values */
    uint32_t *labels;        /* [tests]: predicted or true; the mean is of these */
    size_t right;            /* test samples whose label all players together predict */
    double none, all;        /* mean probability of the labels with no and with all players */
    double *values, *errors; /* [players * columns]: what is written; errors NULL: exact */
    double *mean_values, *mean_errors; /* [players] */
    fds_ls_report report;

    /* of baselines */
    fds_baseline_params baseline;
    fds_baseline_report found;
} value_job;

static inline unsigned value_threads(const value_job *j) { return (unsigned)j->o->common.threads; }
/* Whether a value function trains networks. */
bool value_is_retrain(const char *kind);
/* Whether it needs one that is trained, or any at all; NULL does not. */
bool value_has_training(const char *kind);
bool value_has_network(const char *kind);
/* --draw, and the seed of what is drawn at random, by that and --seed. */
uint64_t value_draw(const value_job *j);
uint64_t value_draw_seed(const value_job *j);

/* Groups, plans and tables, ready to be filled; says what that will take. */
fds_status value_open_games(value_job *j, fds_error *err);
fds_status value_fill_games(value_job *j, fds_error *err);
void value_close_games(value_job *j);
/* Whether every coalition that there is was drawn. */
bool value_saw_all(const value_job *j);
/* How many games are valued: one an input, or a label of an input, or one in all. */
size_t value_columns(const value_job *j);
/* Bytes of memory at the most. */
uint64_t value_memory(const value_job *j);
/* "2,002 sub-models to train (0 of 2,002 are there already)"; returns out. */
#define VALUE_NEED_SIZE 160
const char *value_need_text(const value_job *j, const value_game *g, char out[VALUE_NEED_SIZE]);

/* A baseline's value function, where it has one, and with is_kept its table; says what that will
 * take. */
fds_status value_open_game(value_job *j, bool is_kept, fds_error *err);

fds_status value_solve(value_job *j, fds_error *err);
/* The labels that the values are for, from what the table has for rows 0 and 1 of the plan. */
fds_status value_find_labels(value_job *j, fds_error *err);
/* The same from what no players (none) and all players (all) answer, (tests, classes) each; NULL:
 * the true ones. */
void value_choose_labels(value_job *j, const double *none, const double *all, uint32_t classes);
fds_status value_save(const value_job *j, fds_error *err);

/* What the options of a baseline say, and their mistakes. */
fds_status value_read_baseline(value_job *j, fds_error *err);
/* The value function, the table where there is one, and the values. */
fds_status value_open_baseline(value_job *j, fds_error *err);
fds_status value_run_baseline(value_job *j, fds_error *err);
/* Its lines of the summary before the work, and after it. */
void value_print_baseline_plan(const value_job *j, int width);
void value_print_baseline(const value_job *j, int width);
json_t *value_json_baseline(const value_job *j, bool is_done);
const char *value_scorer_name(const value_job *j); /* "accuracy" */
/* Whether the value function serves only to predict the labels that a baseline explains. */
bool value_is_for_labels(const value_job *j);

fds_status value_show(const value_job *j, fds_error *err);
/* What value_open_games found out, and no more. */
fds_status value_show_plan(const value_job *j, fds_error *err);

/* The label that most of a player's samples have, the lowest of several; counts: scratch (classes).
 */
uint32_t value_player_label(const cli_setup *setup, size_t player, uint32_t *counts);

#endif
