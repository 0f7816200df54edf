/* SPDX-License-Identifier: Apache-2.0
 * A result, inside the library: the functions that compute values set the fields. */
#ifndef FDS_BASE_RESULT_H
#define FDS_BASE_RESULT_H

#include "fds.h"

#include <jansson.h>

enum { FDS__INPUT_NAME = 4200 };
#define FDS__UNKNOWN UINT32_MAX /* of a label */

struct fds_result {
    char *method;
    bool is_mean; /* one prediction: the mean over tests */
    bool is_exact;
    bool has_all_labels; /* classes predictions per test */
    bool has_shares;     /* rankings in JSON have the share of each player too */
    size_t players, predictions;
    uint32_t classes;
    size_t class_count;      /* for which there is memory */
    bool is_regression;      /* labels are targets: classes are numbers, as many as are in use */
    char **player_names;     /* (players) */
    char **provider_names;   /* (players), or NULL each */
    uint32_t *player_labels; /* (players) most frequent label of its samples */
    uint32_t *player_sizes;  /* (players) how many samples */
    uint32_t *player_groups; /* (players) group in the run, or FDS__UNKNOWN */
    char **class_names;      /* (classes); in a regression (players + 3 predictions) */
    double *numbers;         /* the same, of a regression; or NULL */
    char **input_names;      /* (predictions), or NULL each: "test sample 7" */
    uint32_t *samples;       /* (predictions) number of the test sample, or FDS__UNKNOWN */
    uint32_t *labels;        /* (predictions) label that the values explain */
    uint32_t *predicted, *truth;   /* (predictions), or FDS__UNKNOWN */
    double *confidence;            /* (predictions) probability of the predicted label, or NaN */
    double *empty, *full;          /* (predictions) utility of no and of all players, or NaN */
    double *values, *errors;       /* (predictions, players) */
    double *means, *mean_errors;   /* (players) over all predictions */
    double *checks, *check_errors; /* (predictions, players) from the bank, or NULL */
    json_t *about;                 /* how it was computed */
    char *text;                    /* about, made by the first fds_result_describe */
};

/* All arrays, numbers 0, labels and samples unknown, probabilities NaN, names NULL. */
fds_status fds__result_create(const char *method, size_t players, size_t predictions,
                              uint32_t classes, fds_result **out, fds_error *err);
/* Copies of a player's or class's name; provider may be NULL. */
fds_status fds__result_name_player(fds_result *result, size_t player, const char *name,
                                   const char *provider, uint32_t label, size_t samples,
                                   fds_error *err);
fds_status fds__result_name_class(fds_result *result, uint32_t label, const char *name,
                                  fds_error *err);
fds_status fds__result_name_input(fds_result *result, size_t prediction, const char *name,
                                  fds_error *err);
/* Makes a result without classes one of a regression, and a number one of its labels. */
fds_status fds__result_regression(fds_result *result, fds_error *err);
fds_status fds__result_number(fds_result *result, double number, uint32_t *label, fds_error *err);
/* A label as JSON: its name, or its number; label FDS__UNKNOWN: null. */
json_t *fds__result_json_label(const fds_result *result, uint32_t label);
/* Replaces a result of players with providers by one of the providers: their values are the sums of
 * those of their players, their errors the roots of the sums of squares. On failure it stays. */
fds_status fds__result_by_provider(fds_result **result, fds_error *err);
/* Means of values over predictions; their errors are known for one prediction only. */
void fds__result_average(fds_result *result);
/* A prediction without its players: input, sample, predicted, confidence, ...; NULL: no memory. */
json_t *fds__result_json_prediction(const fds_result *result, size_t prediction);
/* FDS_ERR_USAGE when a path ends in none of .csv, .npy, .json. */
fds_status fds__result_check_path(const char *path, fds_error *err);

#endif
