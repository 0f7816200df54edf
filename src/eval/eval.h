/* SPDX-License-Identifier: Apache-2.0
 *
 * eval: how good values are.
 *
 *   removal.c   the value loss H_eta: who is removed, what remains, the loss
 *   agree.c     agreement with the truth, and the area under the ROC curve
 *   methods.c   the methods that are compared, by name
 *   bench.c     a case for each data set and seed, then the report
 *   case.c      one case: every method's values, removals and agreement; case.json
 *   folder.c    the folder of a case: the lock, settings.json, METHOD.json
 *   game.c      what is valued: a problem, and utility functions with their tables
 *   answers.c   the values of one method, and what they cost
 *   lds.c       the linear datamodeling score
 *   measure.c   value losses and agreement, as JSON
 *   flipped.c   the game with wrong labels
 *   curves.c    accuracy without players, precision and recall of wrong labels
 *   outside.c   values that other programs have computed
 *   task.c      what is valued, in files for other programs
 *   audit.h     audits of data
 *
 * case.json is all that a report is made from; docs/bench.md has its keys.
 */
#ifndef FDS_EVAL_H
#define FDS_EVAL_H

#include "baseline/baseline.h"
#include "explain/explain.h"
#include "report/report.h"

#include <string.h>

/* ---- methods.c ---- */

/* A method as a benchmark names it: "afds", "ls", "tmc", "freeshap/sample". */
typedef struct eval_method {
    char name[48];  /* as it was given */
    char title[64]; /* for people: "FreeShap, per sample" */
    char base[40];  /* without "/sample": for fds__fit or fds__baseline */
    report_kind kind;
    bool is_fit;        /* by fds__fit: fds, afds, gfds, gfds+ */
    bool is_per_sample; /* values differ from test sample to test sample */
    bool is_converged;  /* its own utility function is "retrain", else "retrain:10" */
    bool is_outside;    /* values from a file */
    char path[1024];    /* of that file or folder */
} eval_method;

/* FDS_ERR_USAGE, with what would be right, for an unknown name. */
fds_status eval_method_find(const char *name, eval_method *out, fds_error *err);

/* The parameters "methods" and "remove" as lists. */
enum { EVAL_MOST = 64 };
typedef struct eval_lists {
    eval_method methods[EVAL_MOST];
    size_t method_count;
    double shares[EVAL_MOST]; /* of the players, ascending, above 0, at most 1 */
    size_t share_count;
} eval_lists;

fds_status eval_lists_read(const fds_params *params, eval_lists *out, fds_error *err);
bool eval_has_method(const eval_lists *lists, const char *name);

/* ---- outside.c ---- */

typedef struct eval_game eval_game;

/* Adds the method of "NAME=PATH", length bytes. */
fds_status eval_outside_add(eval_lists *lists, const char *text, size_t length, fds_error *err);
/* Whether there are values for this game, which may be that with wrong labels. */
fds_status eval_outside_find(const eval_game *game, const eval_method *method, bool *is_there,
                             fds_error *err);
/* *values (players) or (tests, players), which the caller frees; the checksum of the file. */
fds_status eval_outside_read(const eval_game *game, const eval_method *method, double **values,
                             bool *is_per_sample, uint64_t *checksum, fds_error *err);
/* values (players, eval_columns). */
fds_status eval_outside_answer(const eval_game *game, const eval_method *method, double *values,
                               fds_error *err);

/* ---- task.c ---- */

/* Writes the task of a game that is made to its folder. */
fds_status eval_task_write(const eval_game *game, fds_error *err);

/* ---- game.c ---- */

/* How sub-models are trained: for 10 epochs, or until they have converged. */
typedef enum eval_utility {
    EVAL_UTILITY_EPOCHS,
    EVAL_UTILITY_CONVERGED,
    EVAL_UTILITIES
} eval_utility;

const char *eval_utility_name(eval_utility utility); /* "retrain:10", "retrain" */
eval_utility eval_own_utility(const eval_method *method);

/* A utility function, and what it answers. */
typedef struct eval_side {
    fds_utility *utility; /* NULL: not used */
    fds_table *table;
    /* NULL for another seed's models */
    uint32_t *predicted; /* (tests) labels, by the model of all players */
    double *rise;        /* (tests) v(N) - v(0) of that label */
} eval_side;

enum { EVAL_OTHERS = 16 }; /* the greatest `lds_seeds` and `loss_seeds` */

/* The caller sets the first members, up to budget. */
struct eval_game {
    const char *name; /* of the data, "mnist" */
    const fds_problem *problem;
    fds_params params; /* of the job "bench", complete, for this data set and seed */
    const eval_lists *lists;
    const fds_events *events;
    char dir[FDS__PATH_MAX];
    /* sub-models of every method that trains any, of 10 epochs and scored by their confidence; 0:
     * each method has its own setting */
    size_t budget;
    size_t players, tests;
    fds_groups *groups; /* of players, by label */
    eval_side sides[EVAL_UTILITIES];
    /* the same with other seeds of the sub-models: other initial networks and mini-batches */
    eval_side others[EVAL_UTILITIES][EVAL_OTHERS];
};

/* Makes everything except the tables and what is read from them; writes nothing. */
fds_status eval_game_make(eval_game *game, bool is_converged, fds_error *err);
/* Opens the tables in the folder dir, with the models of all players and of none. */
fds_status eval_game_open(eval_game *game, fds_error *err);
void eval_game_free(eval_game *game);
/* Seed number k of others than the game's own, which is number 0. */
uint64_t eval_other_seed(const eval_game *game, size_t k);
/* Sets in the parameters of a fit or baseline what is the same for all methods. */
void eval_set_params(const eval_game *game, fds_params *params);

static inline size_t eval_columns(const eval_game *g, const eval_method *method) {
    return method->is_per_sample ? g->tests : 1;
}

/* gfds and gfds+ compare groups. */
static inline bool eval_lacks_groups(const eval_game *g, const eval_method *method) {
    return strncmp(method->base, "gfds", 4) == 0 && fds_groups_count(g->groups) < 2;
}

/* Says what the case is doing now. */
#define eval_tell(game, format, ...)                                               \
    fds__log((game)->events, FDS_LOG_INFO, "%s, seed %llu: " format, (game)->name, \
             (unsigned long long)(game)->params.seed, __VA_ARGS__)

/* ---- folder.c ---- */

/* What a method took; NaN: not known, or nothing to do. */
typedef struct eval_cost {
    double prepare_s, answer_ms;
    size_t sub_models;
    bool was_resumed;  /* only the last part was timed */
    bool is_elsewhere; /* timed on another machine, or with another number of threads */
    /* not in METHOD.json: they are known whenever the values are computed */
    size_t permutations; /* that were sampled; 0: the method samples none */
    bool has_rule;       /* by which the method stops before it has sampled all */
    bool has_converged;  /* it did */
} eval_cost;

/* METHOD.json: work has begun, or is done. */
typedef struct eval_record {
    bool is_begun, is_done;
    eval_cost cost;
} eval_record;

/* A damaged record counts as begun, with a warning. */
fds_status eval_record_read(const eval_game *game, const char *method, eval_record *out,
                            fds_error *err);
/* cost NULL: begun. */
fds_status eval_record_write(const eval_game *game, const char *method, const eval_cost *cost,
                             fds_error *err);

/* FDS_ERR_CONFLICT if the folder has files but none of the name mark, which every folder of that kind
 * has; what: "a case". */
fds_status eval_folder_check(const char *dir, const char *mark, const char *what, fds_error *err);
/* Creates and locks the folder. FDS_ERR_IO when another process has locked it, FDS_ERR_USAGE when
 * it holds something else. */
fds_status eval_folder_lock(const char *dir, fds__file *lock, fds_error *err);
/* Writes settings.json, or compares with the one that is there: FDS_ERR_USAGE names the difference.
 */
fds_status eval_folder_settle(const eval_game *game, fds_error *err);
/* "machine", "data" and "settings" of case.json; NULL: out of memory. is_mixed: some times are of
 * another machine. */
json_t *eval_describe_machine(const eval_game *game, bool is_mixed);
json_t *eval_describe_data(const eval_game *game);
json_t *eval_describe_settings(const eval_game *game);

/* ---- answers.c ---- */

/* values (players, eval_columns): methods per sample value the given labels (tests). cost NULL:
 * neither measured nor recorded. */
fds_status eval_answers(const eval_game *game, const eval_method *method, const uint32_t *labels,
                        double *values, eval_cost *cost, fds_error *err);

/* Whether a method can be held to a game's budget. fds has converged models, cs-shapley is defined by
 * accuracies; others train no sub-models. */
bool eval_is_equal(const eval_method *method);

/* Which coalitions are sampled: ls gets those that fds and afds learn from, so that only the
 * explainer differs; the two halves of the truth get others. */
typedef enum eval_draw { EVAL_DRAW_METHODS, EVAL_DRAW_TRUTH, EVAL_DRAW_TRUTH_AGAIN } eval_draw;

/* How many coalitions each half of the truth has drawn. */
size_t eval_truth_half(const eval_game *game);
/* count, or as many as there are besides the empty and the full one. */
size_t eval_drawn(const eval_game *game, size_t count);
/* values (players, tests) for labels by least squares on eval_drawn coalitions. used (or NULL): how
 * many different ones, with the empty and the full one. */
fds_status eval_least_squares(const eval_game *game, eval_utility utility, eval_draw draw,
                              size_t count, const uint32_t *labels, double *values, size_t *used,
                              fds_error *err);

/* The seed of a draw's plan. */
uint64_t eval_plan_seed(const eval_game *game, eval_draw draw);

/* Draws the largest contributors to a few predictions, by a fitted method, into dir/name. */
fds_status eval_picture(const eval_game *game, const char *method, const char *name,
                        fds_error *err);

/* ---- lds.c ---- */

/* Half coalitions, and what the models of a utility function answer for them: the probability of the
 * predicted label. */
typedef struct eval_halves {
    fds_plan *plan; /* NULL: not measured */
    double *own;    /* (rows, tests) by the models of the game's own seed */
    double *other;  /* (rows, tests) mean over other seeds, or NULL */
} eval_halves;

/* A plan of `lds` different coalitions of about half of the players, none of which fds, afds, ls or the
 * truth has drawn; fewer where there are not so many, NULL where there are fewer than three. */
fds_status eval_halves_plan(const eval_game *game, fds_plan **out, fds_error *err);
/* Trains the models, all of which the tables keep. */
fds_status eval_halves_make(const eval_game *game, eval_utility utility, eval_halves *out,
                            fds_error *err);
void eval_halves_free(eval_halves *halves);
/* Appends the scores of values (players, columns) to lists; other is not used without other
 * seeds. */
fds_status eval_measure_lds(const eval_game *game, eval_utility utility, const eval_halves *halves,
                            const double *values, size_t columns, json_t *own, json_t *other,
                            fds_error *err);

/* ---- measure.c ---- */

/* Whose models measure a loss: those of the game's own seed, or of `loss_seeds` other seeds, whose
 * mean it is. */
typedef enum eval_models { EVAL_MODELS_OWN, EVAL_MODELS_OTHER } eval_models;

/* The values of a utility function that are taken for the truth. */
typedef struct eval_truth {
    double *values;     /* (players, tests); NULL: not measured */
    size_t coalitions;  /* of both halves */
    double correlation; /* of one half with the other */
} eval_truth;

/* Adds count, mean, sd (n - 1; NaN for one) and samples to an entry, and the entry, which it takes
 * over, to list. */
fds_status eval_add_summary(json_t *list, json_t *entry, const double *samples, size_t count,
                            fds_error *err);
/* Appends to list the item of "utilities" for a utility function. */
fds_status eval_measure_utility(const eval_game *game, eval_utility utility,
                                const eval_truth *truth, const eval_halves *halves, json_t *list,
                                fds_error *err);
/* Appends to list the losses by one utility function and removal, for each set of test samples. */
fds_status eval_measure_losses(const eval_game *game, eval_utility utility, eval_models models,
                               fds_removal removal, const double *values, size_t columns,
                               json_t *list, fds_error *err);
/* "agreement" of a row. truth (players, tests) of its own utility function, or NULL. */
fds_status eval_measure_agreement(const eval_game *game, const eval_method *method,
                                  const double *values, const double *truth, json_t **out,
                                  fds_error *err);

/* ---- case.c, flipped.c ---- */

enum { EVAL_FLIPS = 16 }; /* the greatest `flipped_seeds` of a case */

/* A method that is compared. */
typedef struct eval_row {
    const eval_method *method;
    double *values; /* (players, eval_columns) */
    eval_cost cost;
    /* how well it finds wrong labels, with each seed of `flipped_seeds`; NaN: not measured */
    double areas[EVAL_FLIPS];
    size_t area_count;
    size_t area_models; /* sub-models that it used, with the last seed */
    bool is_equal;      /* they and their scores are those of the others */
    json_t *precision,
        *recall; /* of wrong labels: for each share, a number for each flip; or NULL */
} eval_row;

/* The training data of flip number k of a game: is_flipped (players) says whose labels are wrong. */
fds_status eval_flip(const eval_game *game, size_t k, bool *is_flipped, fds_dataset **train,
                     fds_error *err);
/* ---- curves.c, removal.c ---- */

/* values (players, eval_columns) become means over the test samples for their true labels
 * (players). cost: as for eval_answers. */
fds_status eval_global_values(const eval_game *game, const eval_method *method, eval_cost *cost,
                              double *values, fds_error *err);
/* Appends the curves of a row to a list. */
fds_status eval_measure_curves(const eval_game *game, const eval_row *row, json_t *list,
                               fds_error *err);
/* Adds a flip to the row's precision and recall. values, is_flipped (players). */
fds_status eval_measure_detection(const eval_game *game, const double *values,
                                  const bool *is_flipped, eval_row *row, fds_error *err);
/* A share of the players in whole ones. */
size_t eval_whole_players(double share, size_t players);
/* accuracy (share_count) on the table's inputs, by values (players). */
fds_status eval_removal_accuracy(fds_table *table, fds_removal removal, const double *values,
                                 const uint32_t *labels, const double *shares, size_t share_count,
                                 unsigned threads, double *accuracy, const fds_events *events,
                                 fds_error *err);

/* Sets the areas of each row. */
fds_status eval_flipped(const eval_game *game, eval_row *rows, size_t count, fds_error *err);

/* Measures a case in the folder dir, or what is left to do; changes nothing in a finished one.
 * dir/case.json has the result. name: that of the data. params: those of the job "bench" for this
 * seed, complete except for model and coalitions. FDS_ERR_USAGE, naming the difference, when dir
 * holds a case with other settings. */
fds_status eval_case(const char *dir, const char *name, const fds_problem *problem,
                     const fds_params *params, const fds_events *events, fds_error *err);

#endif
