/* SPDX-License-Identifier: Apache-2.0
 *
 * Standard errors of the explainer's values, from inputs that it has not seen. The error of a value
 * has two parts: the explainer's distance from the least-squares value, and that value's own
 * standard error. For each label and player, the mean square of both over the validation inputs; as
 * there are few of them for each label, it is shrunk towards the mean over all players in the same
 * relation to the label (of its class, or not).
 *
 * errors.safetensors: one tensor "errors" (2, classes, players), [0] for the label that is
 * predicted, [1] for others, and the number of inputs in the metadata. */
#include "explain/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PRIOR = 5 }; /* inputs that the mean over similar players is worth */

static double square(const fds__comparison *d, size_t input, uint32_t label, size_t player) {
    size_t at = (input * d->classes + label) * d->players + player;
    double miss = d->values[at] - d->targets[at];
    return miss * miss + d->errors[at] * d->errors[at];
}

/* Mean squares of players in a relation to the label (of its class: is_same), over the inputs for
 * which the label's role is as given; label UINT32_MAX: over all labels. -1: there are none. */
static double pool(const fds__comparison *d, uint32_t only, bool is_other, bool is_same) {
    double sum = 0;
    size_t count = 0;
    for (size_t x = 0; x < d->inputs; x++)
        for (uint32_t y = 0; y < d->classes; y++) {
            if ((only != UINT32_MAX && only != y) || (d->predicted[x] != y) != is_other)
                continue;
            for (size_t i = 0; i < d->players; i++)
                if ((d->player_labels[i] == y) == is_same) {
                    sum += square(d, x, y, i);
                    count++;
                }
        }
    return count ? sum / (double)count : -1;
}

static void calibrate_label(const fds__comparison *d, uint32_t label, bool is_other,
                            double *errors) {
    double prior[2];
    for (int same = 0; same < 2; same++) {
        prior[same] = pool(d, label, is_other, same);
        if (prior[same] < 0)
            prior[same] = pool(d, UINT32_MAX, is_other, same);
        prior[same] = MAX(prior[same], 0.0);
    }
    for (size_t i = 0; i < d->players; i++) {
        double sum = PRIOR * prior[d->player_labels[i] == label];
        size_t count = PRIOR;
        for (size_t x = 0; x < d->inputs; x++)
            if ((d->predicted[x] != label) == is_other) {
                sum += square(d, x, label, i);
                count++;
            }
        errors[i] = sqrt(sum / (double)count);
    }
}

fds_status fds__calibrate(const fds__comparison *d, fds__calibration *out, fds_error *err) {
    size_t each = d->classes * d->players;
    *out = (fds__calibration){.inputs = d->inputs};
    TRY(RESERVE(out->errors, 2, each, err));
    for (size_t other = 0; other < 2; other++)
        for (uint32_t y = 0; y < d->classes; y++)
            calibrate_label(d, y, other, out->errors + other * each + y * d->players);
    /* what cannot be read back must not be written */
    for (size_t i = 0; i < 2 * each; i++)
        if (!isfinite(out->errors[i])) {
            fds__calibration_free(out);
            return fds__fail(err, FDS_ERR_DIVERGED,
                             "the explainer's values or the least squares' are not finite");
        }
    return FDS_OK;
}

void fds__calibration_free(fds__calibration *calibration) {
    fds__free(calibration->errors);
    *calibration = (fds__calibration){0};
}

fds_status fds__calibration_save(const fds__calibration *c, uint32_t classes, size_t players,
                                 const char *path, fds_error *err) {
    size_t count = 2 * (size_t)classes * players;
    float *floats;
    TRY(RESERVE(floats, count, 1, err));
    for (size_t i = 0; i < count; i++)
        floats[i] = (float)c->errors[i];
    char inputs[32];
    snprintf(inputs, sizeof inputs, "%zu", c->inputs);
    const fds__tensor tensor = {"errors", 3, {2, classes, (uint32_t)players}, floats};
    const fds__meta meta = {"inputs", inputs};
    fds_status status = fds__safetensors_write(path, &tensor, 1, &meta, 1, err);
    fds__free(floats);
    return status;
}

fds_status fds__calibration_load(const char *path, uint32_t classes, size_t players,
                                 fds__calibration *out, fds_error *err) {
    fds__safetensors *file;
    *out = (fds__calibration){0};
    TRY(fds__safetensors_read(path, &file, err));
    const fds__tensor *t = fds__safetensors_find(file, "errors");
    const char *inputs = fds__safetensors_meta(file, "inputs");
    size_t count = 2 * (size_t)classes * players;
    fds_status status = FDS_OK;
    if (!t || t->rank != 3 || t->dims[0] != 2 || t->dims[1] != classes || t->dims[2] != players)
        status = fds__fail(err, FDS_ERR_SHAPE, "%s: it must have a tensor \"errors\" of 2x%ux%zu",
                           path, classes, players);
    else
        status = RESERVE(out->errors, count, 1, err);
    for (size_t i = 0; status == FDS_OK && i < count; i++) {
        out->errors[i] = t->values[i];
        if (!isfinite(out->errors[i]) || out->errors[i] < 0)
            status = fds__fail(err, FDS_ERR_FORMAT, "%s: error number %zu is %g", path, i,
                               out->errors[i]);
    }
    out->inputs = inputs ? (size_t)strtoull(inputs, NULL, 10) : 0;
    fds__safetensors_free(file);
    if (status != FDS_OK)
        fds__calibration_free(out);
    return status;
}
