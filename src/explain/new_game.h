/* SPDX-License-Identifier: Apache-2.0
 * Sub-models that are trained with new players: new_game.c, new_models.c. */
#ifndef FDS_EXPLAIN_NEW_GAME_H
#define FDS_EXPLAIN_NEW_GAME_H

#include "explain/run_inside.h"

/* ---- new_game.c ---- */

/* The run's players, then new ones, and the samples of all. */
typedef struct fds__new_game {
    size_t known; /* the run's players come first */
    fds_dataset *all;
    fds_players *players;
    fds__identities *identities; /* of a run for changing data; or NULL */
    fds__utility_params utility; /* that of the run; its texts belong to the run */
    fds__scale scale;            /* that of the run */
    float *mean, *std;
} fds__new_game;

/* more: the samples of new players, whose features are those of the run; new_ones NULL: one owns them all.
 * params: where the run's data is now. FDS_ERR_USAGE when it is other data. The caller frees *out after a
 * failure too. */
fds_status fds__new_game_open(const fds_run *run, const fds_params *params, const fds_dataset *more,
                              const fds_players *new_ones, const fds_events *events,
                              fds__new_game *out, fds_error *err);
void fds__new_game_free(fds__new_game *game);
/* The utility function of the run for coalitions of this game. */
fds_status fds__new_game_utility(const fds_run *run, const fds__new_game *game,
                                 const fds_dataset *ds, const uint32_t *index, size_t count,
                                 const fds_events *events, unsigned workers, fds_utility **out,
                                 fds_error *err);

/* ---- new_models.c ---- */

enum { FDS__NEW_MODELS = 32 }; /* strata, unless the caller says */

/* Of each model: which known players, and which new one. */
struct fds__new_models {
    fds__new_game game; /* emptied once networks are trained */
    size_t known, new_players;
    size_t strata;     /* coalitions of known players that were drawn */
    bool is_exact;     /* they are all that there are */
    bool is_noisy;     /* the program's answers have noise: a coalition may be trained twice */
    size_t bases;      /* different ones */
    uint32_t *base_of; /* (strata) */
    double *shares;    /* (strata) of their differences in a value */
    uint64_t *bits;    /* (bases, words of all players) */
    float *weights;    /* (bases, 1 + new_players, weights) of networks; NULL: a program answers */
    const fds_net *net;
    unsigned workers;
    fds_lane **lanes; /* (workers) */
};

/* Draws the coalitions and trains. new_ones, more, params: as for fds__new_game_open. *out belongs to the
 * caller after a failure too. */
fds_status fds__new_models_train(const fds_run *run, const fds_params *params, size_t strata,
                                 uint64_t seed, const fds_dataset *more,
                                 const fds_players *new_ones, const fds_events *events,
                                 fds__new_models **out, fds_error *err);

/* Inputs whose values are wanted. */
typedef struct fds__new_question {
    const fds_dataset *ds; /* index (x->count) */
    const uint32_t *index;
    const fds_inputs *x;    /* the same, normalised */
    const uint32_t *labels; /* (x->count) */
    const fds__aim *aim;    /* of a regression; or NULL */
} fds__new_question;

/* values and errors (x->count, new players); errors may be NULL. */
fds_status fds__new_models_value(const fds_run *run, const fds__new_models *models,
                                 const fds__new_question *question, double *values, double *errors,
                                 fds_error *err);

#endif
