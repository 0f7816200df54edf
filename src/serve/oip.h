/* SPDX-License-Identifier: Apache-2.0
 *
 * The Open Inference Protocol, version 2 over HTTP with the binary tensor extension, and version 1's
 * ":predict" and ":explain": bytes to samples, and answers to bytes. Nothing here reads or writes
 * anything but memory.
 *
 *   oip.c         requests: JSON, then raw little-endian tensors; checked against the model's shape
 *   oip_answer.c  answers, metadata and errors
 *
 * A mistake in a request is FDS_ERR_USAGE (HTTP 400), a request beyond a limit FDS_ERR_LIMIT (413).
 */
#ifndef FDS_SERVE_OIP_H
#define FDS_SERVE_OIP_H

#include "base/base.h"

enum {
    OIP_ID = 256,    /* bytes of a request's id */
    OIP_RANK = 8,    /* dimensions of a tensor */
    OIP_DEPTH = 16,  /* of JSON within JSON */
    OIP_TENSORS = 16 /* inputs, or outputs that are asked for */
};
#define OIP_INPUT "input"

/* What a model can answer, in the order in which it does. */
typedef enum oip_output {
    OIP_LABEL,         /* BYTES (batch): the predicted class */
    OIP_PROBABILITIES, /* FP32 (batch, classes) */
    OIP_PREDICTION,    /* FP64 (batch): of a regression, instead of both */
    OIP_VALUES,        /* FP64 (batch, players) */
    OIP_ERRORS,        /* FP64 (batch, players): standard errors, NaN or null where not known */
    OIP_SHARES,        /* FP64 (batch, payees): parts of the money, which add up to 1 */
    OIP_PLAYERS,       /* BYTES (players) */
    OIP_PAYEES,        /* BYTES (payees) */
    OIP_RECEIPT,       /* INT64 (batch): numbers of the ledger's entries */
    OIP_OUTPUTS
} oip_output;

/* A model as clients see it. Texts and arrays are its owner's. */
typedef struct oip_model {
    const char *name, *version;
    fds_shape shape;
    bool is_image; /* bytes are 0..255 for what networks see as 0..1 */
    bool is_regression, is_explained, is_paid;
    uint32_t classes;
    size_t players, payees;
    const char *const *class_names, *const *player_names, *const *payee_names;
} oip_model;

typedef struct oip_limits {
    size_t batch; /* samples of a request */
    size_t json;  /* bytes of its JSON */
} oip_limits;

/* A checked request. Free it by oip_request_free. */
typedef struct oip_request {
    size_t count;   /* samples, at least 1 */
    float *samples; /* (count, shape): finite */
    int64_t amount; /* parameter fds_amount, in units for each sample; 0: not given */
    char id[OIP_ID + 1];
    bool has_id, is_v1;
    struct {
        oip_output what;
        bool is_binary;
    } asked[OIP_OUTPUTS]; /* outputs in the order of the answer */
    size_t asked_count;
} oip_request;

/* ---- oip.c ---- */

bool oip_has_output(const oip_model *model, oip_output what);
const char *oip_output_name(oip_output what);
/* json_size: of the JSON before raw tensors, SIZE_MAX: body is all JSON. *out is empty after a
 * failure. */
fds_status oip_parse(const oip_model *model, const oip_limits *limits, const void *body,
                     size_t size, size_t json_size, oip_request *out, fds_error *err);
/* The same for {"instances": [...]}. */
fds_status oip_parse_v1(const oip_model *model, const oip_limits *limits, const void *body,
                        size_t size, oip_request *out, fds_error *err);
void oip_request_free(oip_request *request);

/* ---- oip_answer.c ---- */

/* What was computed for the samples of a request. Arrays that its outputs do not need may be NULL. */
typedef struct oip_answers {
    const uint32_t *labels;        /* (count) */
    const float *probs;            /* (count, classes) */
    const double *predictions;     /* (count) of a regression */
    const double *values, *errors; /* (count, players) */
    const double *shares;          /* (count, payees) */
} oip_answers;

/* The body of an answer, but for receipts: the numbers of entries are known only once they are paid.
 * holes[i] is where that of sample i goes: as digits in JSON, as 8 bytes behind it. */
typedef struct oip_body {
    fds__text text;
    size_t json_size; /* bytes before raw tensors; SIZE_MAX: it is all JSON */
    uint32_t *holes;
    size_t hole_count;
} oip_body;

fds_status oip_compose(const oip_model *model, const oip_request *request,
                       const oip_answers *answers, oip_body *out, fds_error *err);
void oip_body_free(oip_body *body);
/* The whole body with receipts[hole_count]. The caller fds__frees out->data. *json_size: as above. */
fds_status oip_finish(const oip_body *body, const uint64_t *receipts, fds__text *out,
                      size_t *json_size, fds_error *err);
/* A body as bytes to be kept, and back: u32 "FDSB", u64 json_size, u32 hole_count, u32 holes[], text.
 * FDS_ERR_CORRUPT if they are none. */
fds_status oip_pack(const oip_body *body, fds__text *out, fds_error *err);
fds_status oip_unpack(const void *data, size_t size, oip_body *out, fds_error *err);

void oip_write_string(fds__text *out, const char *text); /* as JSON, quoted */
void oip_write_metadata(fds__text *out, const oip_model *model);
void oip_write_error(fds__text *out, const char *message);

#endif
