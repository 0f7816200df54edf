/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages between fds and a program of the user's (docs/external.md).
 *
 * A frame is 8 bytes, the length of the rest, little-endian, and then one safetensors file
 * (base/safetensors.c). The fields of a message are the texts of the file's metadata, "type" among
 * them:
 *
 *   to the program    hello   protocol, folder, samples, players, inputs, classes, shape, seed; task
 *                             ("regression") if it is one
 *                     eval    id, seed; tensor "samples" (count) I32: positions in samples.npy
 *   from the program  ready   protocol, name, fingerprint
 *                     answer  id; tensor "probabilities" (inputs, classes) F32, or of a regression
 *                             "predictions" (inputs) F32
 *                     error   text, retry ("true" or "false")
 *
 * Whatever a program sends is judged here and nowhere else.
 */
#include "utility/external.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define EXTRA_BYTES ((size_t)1 << 20) /* of a frame, besides the probabilities */
static const double SUM_SLACK = 1e-4; /* rounding, in the sum of an input's probabilities */
static const char *const WHOSE = "its message";

/* ---- writing ---- */

static fds_status pack(const fds__tensor *tensor, const fds__meta *meta, size_t meta_count,
                       uint8_t **frame, size_t *size, fds_error *err) {
    TRY(fds__safetensors_pack("I32", tensor, tensor ? 1 : 0, meta, meta_count, 8, frame, size,
                              err));
    uint64_t length = *size - 8;
    memcpy(*frame, &length, 8);
    return FDS_OK;
}

fds_status fds__message_hello(const fds__hello *h, uint8_t **frame, size_t *size, fds_error *err) {
    enum { NUMBERS = 7 };
    char text[NUMBERS][64];
    snprintf(text[0], sizeof text[0], "%d", FDS__PROTOCOL);
    snprintf(text[1], sizeof text[1], "%zu", h->samples);
    snprintf(text[2], sizeof text[2], "%zu", h->players);
    snprintf(text[3], sizeof text[3], "%zu", h->inputs);
    snprintf(text[4], sizeof text[4], "%u", h->classes);
    snprintf(text[5], sizeof text[5], "%u,%u,%u", h->shape.channels, h->shape.height,
             h->shape.width);
    snprintf(text[6], sizeof text[6], "%" PRIu64, h->seed);
    const fds__meta meta[] = {{"type", "hello"},     {"protocol", text[0]}, {"folder", h->folder},
                              {"samples", text[1]},  {"players", text[2]},  {"inputs", text[3]},
                              {"classes", text[4]},  {"shape", text[5]},    {"seed", text[6]},
                              {"task", "regression"}};
    return pack(NULL, meta, sizeof meta / sizeof *meta - !h->is_regression, frame, size, err);
}

fds_status fds__message_eval(uint64_t id, uint64_t seed, const uint32_t *samples, size_t count,
                             uint8_t **frame, size_t *size, fds_error *err) {
    char text[2][32];
    snprintf(text[0], sizeof text[0], "%" PRIu64, id);
    snprintf(text[1], sizeof text[1], "%" PRIu64, seed);
    const fds__meta meta[] = {{"type", "eval"}, {"id", text[0]}, {"seed", text[1]}};
    const fds__tensor tensor = {
        "samples", 1, {(uint32_t)count}, (const float *)(const void *)samples};
    return pack(&tensor, meta, sizeof meta / sizeof *meta, frame, size, err);
}

/* ---- reading ---- */

fds_status fds__message_length(const uint8_t head[8], size_t probabilities, size_t *size,
                               fds_error *err) {
    const uint64_t most = probabilities * sizeof(float) + EXTRA_BYTES;
    uint64_t length;
    memcpy(&length, head, 8);
    if (length < 8 || length > most)
        return fds__fail(err, FDS_ERR_EXTERNAL,
                         "it announced a message of %" PRIu64 " bytes, which must be 8 to %" PRIu64
                         "; does it print anything else to its standard output?",
                         length, most);
    *size = (size_t)length;
    return FDS_OK;
}

/* Opens a message; what is not one is the program's fault. */
static fds_status open_message(uint8_t *data, size_t size, fds__safetensors **out, fds_error *err) {
    fds_error why = {0};
    fds_status status = fds__safetensors_parse(WHOSE, data, size, out, &why);
    if (status == FDS_OK && !fds__safetensors_meta(*out, "type")) {
        fds__safetensors_free(*out);
        return fds__fail(err, FDS_ERR_EXTERNAL, "%s has no \"type\" in its __metadata__", WHOSE);
    }
    return status == FDS_OK ? FDS_OK
                            : fds__fail(err, status == FDS_ERR_NOMEM ? status : FDS_ERR_EXTERNAL,
                                        "%s", why.text);
}

static fds_status check_type(const fds__safetensors *m, const char *wanted, bool *is_fatal,
                             fds_error *err) {
    const char *type = fds__safetensors_meta(m, "type"), *text = fds__safetensors_meta(m, "text"),
               *retry = fds__safetensors_meta(m, "retry");
    if (strcmp(type, "error") == 0) {
        *is_fatal = retry && strcmp(retry, "false") == 0;
        return fds__fail(err, FDS_ERR_EXTERNAL, "it says: %.300s", text ? text : "(nothing)");
    }
    return strcmp(type, wanted) == 0
               ? FDS_OK
               : fds__fail(err, FDS_ERR_EXTERNAL, "it sent a message of type \"%.40s\", not \"%s\"",
                           type, wanted);
}

static fds_status take_text(const fds__safetensors *m, const char *key, char out[FDS__PROGRAM_NAME],
                            fds_error *err) {
    const char *text = fds__safetensors_meta(m, key);
    if (!text || !*text || strlen(text) >= FDS__PROGRAM_NAME)
        return fds__fail(err, FDS_ERR_EXTERNAL,
                         "its message \"ready\" needs a \"%s\" of 1 to %d characters", key,
                         FDS__PROGRAM_NAME - 1);
    strcpy(out, text);
    return FDS_OK;
}

static fds_status read_ready(const fds__safetensors *m, char name[FDS__PROGRAM_NAME],
                             char fingerprint[FDS__PROGRAM_NAME], fds_error *err) {
    const char *protocol = fds__safetensors_meta(m, "protocol");
    bool unused;
    TRY(check_type(m, "ready", &unused, err));
    if (!protocol || strcmp(protocol, "1") != 0)
        return fds__fail(err, FDS_ERR_EXTERNAL,
                         "it speaks protocol \"%.20s\"; this version of fds speaks \"%d\"",
                         protocol ? protocol : "", FDS__PROTOCOL);
    TRY(take_text(m, "name", name, err));
    return take_text(m, "fingerprint", fingerprint, err);
}

fds_status fds__message_ready(uint8_t *data, size_t size, char name[FDS__PROGRAM_NAME],
                              char fingerprint[FDS__PROGRAM_NAME], fds_error *err) {
    fds__safetensors *m;
    TRY(open_message(data, size, &m, err));
    fds_status status = read_ready(m, name, fingerprint, err);
    fds__safetensors_free(m);
    return status;
}

/* The probabilities of one input. */
static fds_status check_row(const fds__answer_form *form, size_t input, const float *row,
                            fds_error *err) {
    double sum = 0;
    for (uint32_t y = 0; y < form->classes; y++) {
        if (!(row[y] >= 0 && row[y] <= 1))
            return fds__fail(err, FDS_ERR_EXTERNAL,
                             "input %zu, class %u: the probability is %g; it must be from 0 to 1",
                             input, y, (double)row[y]);
        if (row[y] != 0 && !form->has_class[y])
            return fds__fail(err, FDS_ERR_EXTERNAL,
                             "input %zu, class %u: the probability is %g; it must be 0, because "
                             "the coalition has no sample of that class",
                             input, y, (double)row[y]);
        sum += (double)row[y];
    }
    if (fabs(sum - 1) > SUM_SLACK)
        return fds__fail(err, FDS_ERR_EXTERNAL,
                         "input %zu: its probabilities sum to %.6g; they must sum to 1", input,
                         sum);
    return FDS_OK;
}

static fds_status read_predictions(const fds__safetensors *m, size_t inputs, float *predictions,
                                   fds_error *err) {
    const fds__tensor *t = fds__safetensors_find(m, "predictions");
    if (!t)
        return fds__fail(err, FDS_ERR_EXTERNAL,
                         "its answer has no tensor \"predictions\" of type F32");
    if (t->rank != 1 || t->dims[0] != inputs)
        return fds__fail(err, FDS_ERR_EXTERNAL,
                         "its predictions have %u dimensions, the first of %u; they must have one, "
                         "of %zu inputs",
                         t->rank, t->dims[0], inputs);
    for (size_t i = 0; i < inputs; i++)
        if (!isfinite(t->values[i]))
            return fds__fail(err, FDS_ERR_EXTERNAL,
                             "input %zu: the prediction is %g; it must be a finite number", i,
                             (double)t->values[i]);
    memcpy(predictions, t->values, inputs * sizeof *predictions);
    return FDS_OK;
}

static fds_status read_answer(const fds__safetensors *m, const fds__answer_form *form, float *probs,
                              bool *is_fatal, fds_error *err) {
    const fds__tensor *t = fds__safetensors_find(m, "probabilities");
    const char *id = fds__safetensors_meta(m, "id");
    char wanted[32];
    TRY(check_type(m, "answer", is_fatal, err));
    snprintf(wanted, sizeof wanted, "%" PRIu64, form->id);
    if (!id || strcmp(id, wanted) != 0)
        return fds__fail(err, FDS_ERR_EXTERNAL, "it answered question \"%.20s\" instead of \"%s\"",
                         id ? id : "", wanted);
    if (form->is_regression)
        return read_predictions(m, form->inputs, probs, err);
    if (!t)
        return fds__fail(err, FDS_ERR_EXTERNAL,
                         "its answer has no tensor \"probabilities\" of type F32");
    if (t->rank != 2 || t->dims[0] != form->inputs || t->dims[1] != form->classes)
        return fds__fail(err, FDS_ERR_EXTERNAL,
                         "its probabilities have the shape (%u, %u) in %u dimensions; it must be "
                         "(%zu, %u): inputs, classes",
                         t->dims[0], t->dims[1], t->rank, form->inputs, form->classes);
    for (size_t i = 0; i < form->inputs; i++)
        TRY(check_row(form, i, t->values + i * form->classes, err));
    memcpy(probs, t->values, form->inputs * form->classes * sizeof *probs);
    return FDS_OK;
}

fds_status fds__message_answer(uint8_t *data, size_t size, const fds__answer_form *form,
                               float *probs, bool *is_fatal, fds_error *err) {
    fds__safetensors *m;
    *is_fatal = false;
    TRY(open_message(data, size, &m, err));
    fds_status status = read_answer(m, form, probs, is_fatal, err);
    fds__safetensors_free(m);
    return status;
}
