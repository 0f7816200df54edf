/* SPDX-License-Identifier: Apache-2.0
 * Parameters, inside the library: typed fields that are read as they are. params.def has the rows. */
#ifndef FDS_BASE_PARAMS_H
#define FDS_BASE_PARAMS_H

#include "fds.h"

#include <jansson.h>

/* The greatest whole number that every reader of JSON keeps exactly. */
#define FDS__EXACT_MAX 9007199254740991.0

enum fds__job {
    FDS__JOB_TRAIN = 1,
    FDS__JOB_VALUE = 2,
    FDS__JOB_FIT = 4,
    FDS__JOB_BENCH = 8,
    FDS__JOB_EXPLAIN = 16,
    FDS__JOB_PAY = 32,
    FDS__JOB_SHOW = 64,
    FDS__JOB_AUDIT = 128,
    FDS__JOB_LEDGER = 256,
    FDS__JOB_SERVE = 512,
    FDS__JOB_TRUST = 1024,
    FDS__JOB_PRIVACY = 2048,
    FDS__JOB_UPDATE = 4096,
    FDS__JOB_FORGET = 8192
};

/* The place of each field, for fds__is_given. */
enum fds__param_place {
#define PARAM(type, field, ...) FDS__PLACE_##field,
#define AGAIN(...)
#include "base/params.def"
#undef PARAM
#undef AGAIN
    FDS__PLACES
};

#define FDS__TYPE_FLAG bool
#define FDS__TYPE_TEXT const char *
#define FDS__TYPE_CHOICE int
#define FDS__TYPE_COUNT uint64_t
#define FDS__TYPE_REAL double

/* Plain values: a copy may be changed field by field; texts then belong to the original. */
struct fds_params {
    unsigned job;
    bool given[FDS__PLACES]; /* set by the caller, not by default */
    unsigned
        explainer_threads; /* of an explainer's training, on which its last bits depend; 0: threads */
    uint64_t round;        /* coalitions of this round of `until_error`; 0: of the first */
#define PARAM(type, field, ...) FDS__TYPE_##type field;
#define AGAIN(...)
#include "base/params.def"
#undef PARAM
#undef AGAIN
};

#define fds__is_given(params, field) ((params)->given[FDS__PLACE_##field])

/* The defaults of a job (enum fds__job), without memory of their own. */
fds_params fds__params_default(unsigned job);
/* Whether the method's name up to a colon is a word of list. */
bool fds__is_among(const char *method, const char *list);
/* What the parameters of networks that explain need: with auto, they choose one. */
#define FDS__NEED_NETWORK "explainer=auto|mlp|cnn|resnet18|resnet50|linear"
/* Whether a parameter was given that needs this. */
bool fds__params_need(const fds_params *params, const char *needs);

/* FDS_ERR_USAGE, naming the parameter, for one that was given and means nothing with this method, or
 * without another that it needs. takes: the parameters that a baseline names as its own, or NULL. */
fds_status fds__params_check(const fds_params *params, const char *method, const char *takes,
                             fds_error *err);
/* FDS_ERR_USAGE for a parameter that was given and is not among names, separated by blanks: it means
 * nothing together with the parameter `with`. */
fds_status fds__params_only(const fds_params *params, const char *names, const char *with,
                            fds_error *err);
/* The parameters that were given or have a default, by name; NULL: no memory. */
json_t *fds__params_json(const fds_params *params);
/* Those that were given, as texts that fds_params_set takes; NULL: no memory. */
json_t *fds__params_given(const fds_params *params);
/* A place in "a|b|c", or -1. */
int fds__choice_find(const char *choices, const char *word);
/* The word of a CHOICE field as the job's row has it; "" when it is -1. */
#define fds__choice(params, field) fds__choice_name(params, FDS__PLACE_##field)
const char *fds__choice_name(const fds_params *params, enum fds__param_place place);

/* '; did you mean "adam"?', or nothing; returns out. */
enum { FDS__HINT = 96 };
const char *fds__hint(const char *word, const char *const *names, char out[FDS__HINT]);

#endif
