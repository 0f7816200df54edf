/* SPDX-License-Identifier: Apache-2.0
 * An opened run, for run.c, which opens it, and run_answer.c, which answers. */
#ifndef FDS_EXPLAIN_RUN_INSIDE_H
#define FDS_EXPLAIN_RUN_INSIDE_H

#include "explain/run.h"

struct fds_run {
    char dir[FDS__PATH_MAX];
    fds__run_record record;
    char *text;
    unsigned threads, explainer_threads;
    fds__service_program *program; /* or */
    fds_model *service;
    const fds_events *events; /* of starting the program; or NULL */
    fds_net *net;
    fds_lane *lane;
    float *initial;            /* weights of the untrained network */
    fds__explainer *explainer; /* or */
    fds__probe *probe;
    fds__newcomers *newcomers;        /* opened for the first new player */
    const fds__new_players *new_ones; /* while they are asked about */
    fds__new_players read;            /* those of the data that was read last, */
    char read_path[FDS__PATH_MAX];    /* at this path, */
    uint64_t read_stamp;              /* as it then was */
    uint64_t read_seed;               /* of the coalitions of their models */
    fds__calibration calibration;
    uint32_t *player_labels; /* (players) */
    fds__fit_plans plans;
    fds__bank *first; /* the sub-models that the probe sees, or that answer by least squares */
    fds__bank *bank;  /* all sub-models, opened for its first answer */
    fds_dataset *samples;
    fds_inputs *reference; /* the same, normalised; made for the first score */
    float *raw;            /* (chunk, players) */
    size_t chunk;
    char error_source[80];
};

/* All sub-models answer. */
static inline bool run_is_by_all(const fds_run *run, fds__answerer by) {
    return by == FDS__ANSWERER_BANK || run->record.info.asks_all;
}

/* Sub-models answer by least squares, which have standard errors of their own. */
static inline bool run_has_jackknife(const fds_run *run, fds__answerer by) {
    return run_is_by_all(run, by) || run->record.report.choice.is_bank;
}

/* Whether the parameters beside `new_player` go with it. */
fds_status run_check_new(const fds_run *run, const fds_params *params, fds_error *err);
/* The new players of `new_player`, read and trained with once, and again when the data has changed. */
fds_status run_new_players(fds_run *run, const fds_params *params, const fds_events *events,
                           const fds__new_players **out, fds_error *err);

/* Opens the bank of all sub-models, once. */
fds_status run_open_bank(fds_run *run, fds_error *err);

#endif
