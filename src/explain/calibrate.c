/* SPDX-License-Identifier: Apache-2.0
 *
 * Standard errors of the explainer's values, from inputs that it has not seen. The error of a value
 * has two parts: the explainer's distance from the least-squares value, and that value's own
 * standard error. For each label and player, the mean square of both over the validation inputs; as
 * there are few of them for each label, it is shrunk towards the mean over all players in the same
 * relation to the label (of its class, or not).
 *
 * Large values have larger errors, and so have inputs on which the sub-models disagree. So the
 * squared error of a value is parts[0] + parts[1] base + parts[2] value^2, where base is the variance
 * of the probes' answers for this input or, for a network, which sees none, that mean square. The
 * parts are fitted for each relation: the label is the predicted one or not, and the player's or
 * not.
 *
 * errors.safetensors: tensors "errors" (2, classes, players), [0] for the label that is predicted,
 * [1] for others, and "parts" (4, 3); in the metadata the number of inputs, and the base: "spread" or
 * "mean". */
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

/* ---- how the error depends on the input ---- */

static size_t relation(bool is_other, bool is_same) { return 2 * is_other + is_same; }

static double variance(const double parts[FDS__PARTS], double base, double value) {
    return parts[0] + parts[1] * base + parts[2] * value * value;
}

static double base_of(const fds__comparison *d, const fds__calibration *c, size_t x, uint32_t y,
                      size_t i) {
    size_t at = ((d->predicted[x] != y) * d->classes + y) * d->players + i;
    return d->spreads ? d->spreads[x * d->classes + y] : c->errors[at] * c->errors[at];
}

/* One step towards the greatest likelihood of errors that are normal with the variance
 * sum_j parts_j terms_j: each part times sum(terms e^2 / variance^2) / sum(terms / variance), which
 * keeps it from falling below 0. */
static void improve_parts(const fds__comparison *d, const fds__calibration *c, bool is_other,
                          bool is_same, double parts[FDS__PARTS]) {
    double above[FDS__PARTS] = {0}, below[FDS__PARTS] = {0};
    for (size_t x = 0; x < d->inputs; x++)
        for (uint32_t y = 0; y < d->classes; y++) {
            if ((d->predicted[x] != y) != is_other)
                continue;
            for (size_t i = 0; i < d->players; i++) {
                if ((d->player_labels[i] == y) != is_same)
                    continue;
                double value = d->values[(x * d->classes + y) * d->players + i];
                double base = base_of(d, c, x, y, i), e = square(d, x, y, i);
                const double terms[FDS__PARTS] = {1, base, value * value};
                double v = variance(parts, base, value);
                for (int j = 0; j < FDS__PARTS && v > 0; j++) {
                    above[j] += terms[j] * e / (v * v);
                    below[j] += terms[j] / v;
                }
            }
        }
    for (int j = 0; j < FDS__PARTS; j++)
        parts[j] *= below[j] > 0 ? above[j] / below[j] : 0;
}

/* The mean square of the relation, or, where no input has it, of those nearest to it. */
static double nearest_mean(const fds__comparison *d, bool is_other, bool is_same) {
    double mean = pool(d, UINT32_MAX, is_other, is_same);
    if (mean < 0)
        mean = pool(d, UINT32_MAX, is_other, !is_same);
    if (mean < 0)
        mean = pool(d, UINT32_MAX, !is_other, is_same);
    return mean < 0 ? pool(d, UINT32_MAX, !is_other, !is_same) : mean;
}

/* A relation that no input has keeps the mean square alone. */
static fds_status fit_parts(const fds__comparison *d, const fds__calibration *c, size_t which,
                            const fds_events *events, double parts[FDS__PARTS], fds_error *err) {
    enum { STEPS = 100 };
    bool is_other = which / 2, is_same = which % 2; /* as relation() has it */
    double start_s = fds__now_s();
    bool is_there = pool(d, UINT32_MAX, is_other, is_same) > 0;
    parts[0] = nearest_mean(d, is_other, is_same);
    parts[1] = parts[2] = is_there ? 0.01 : 0;
    for (size_t step = 1; step <= STEPS && is_there; step++) {
        improve_parts(d, c, is_other, is_same, parts);
        if (step % 25 == 0)
            TRY(fds__report(events, "check", "steps", which * STEPS + step, 4 * STEPS, start_s,
                            err));
    }
    return FDS_OK;
}

fds_status fds__calibrate(const fds__comparison *d, const fds_events *events, fds__calibration *out,
                          fds_error *err) {
    size_t each = d->classes * d->players;
    fds_status status = FDS_OK;
    bool is_finite = true;
    *out = (fds__calibration){.inputs = d->inputs, .by_spread = d->spreads};
    TRY(RESERVE(out->errors, 2, each, err));
    for (size_t other = 0; other < 2; other++)
        for (uint32_t y = 0; y < d->classes; y++)
            calibrate_label(d, y, other, out->errors + other * each + y * d->players);
    for (size_t i = 0; i < 2 * each; i++)
        is_finite = is_finite && isfinite(out->errors[i]);
    for (size_t r = 0; r < 4 && is_finite && status == FDS_OK; r++) {
        status = fit_parts(d, out, r, events, out->parts[r], err);
        for (int j = 0; j < FDS__PARTS; j++)
            is_finite = is_finite && isfinite(out->parts[r][j]);
    }
    if (is_finite && status == FDS_OK)
        return FDS_OK;
    fds__calibration_free(out); /* what cannot be read back must not be written */
    return status != FDS_OK
               ? status
               : fds__fail(err, FDS_ERR_DIVERGED,
                           "the explainer's values or the least squares' are not finite");
}

void fds__calibration_errors(const fds__calibration *c, uint32_t classes, size_t players,
                             const uint32_t *player_labels, bool is_other, uint32_t label,
                             double spread, const double *values, double *errors) {
    const double *mean = c->errors + (is_other * classes + label) * players;
    for (size_t i = 0; i < players; i++) {
        const double *parts = c->parts[relation(is_other, player_labels[i] == label)];
        double base = c->by_spread ? spread : mean[i] * mean[i];
        errors[i] = sqrt(variance(parts, base, values[i]));
    }
}

void fds__calibration_free(fds__calibration *calibration) {
    fds__free(calibration->errors);
    *calibration = (fds__calibration){0};
}

fds_status fds__calibration_save(const fds__calibration *c, uint32_t classes, size_t players,
                                 const char *path, fds_error *err) {
    size_t count = 2 * (size_t)classes * players;
    float *floats, parts[4 * FDS__PARTS];
    TRY(RESERVE(floats, count, 1, err));
    for (size_t i = 0; i < count; i++)
        floats[i] = (float)c->errors[i];
    for (size_t i = 0; i < 4 * FDS__PARTS; i++)
        parts[i] = (float)c->parts[i / FDS__PARTS][i % FDS__PARTS];
    char inputs[32];
    snprintf(inputs, sizeof inputs, "%zu", c->inputs);
    const fds__tensor tensors[] = {{"errors", 3, {2, classes, (uint32_t)players}, floats},
                                   {"parts", 2, {4, FDS__PARTS}, parts}};
    const fds__meta meta[] = {{"inputs", inputs}, {"base", c->by_spread ? "spread" : "mean"}};
    fds_status status = fds__safetensors_write(path, tensors, 2, meta, 2, NULL, err);
    fds__free(floats);
    return status;
}

fds_status fds__calibration_load(const char *path, uint32_t classes, size_t players,
                                 fds__calibration *out, fds_error *err) {
    fds__safetensors *file;
    *out = (fds__calibration){0};
    TRY(fds__safetensors_read(path, &file, err));
    const fds__tensor *t = fds__safetensors_find(file, "errors");
    const fds__tensor *parts = fds__safetensors_find(file, "parts");
    const char *inputs = fds__safetensors_meta(file, "inputs");
    const char *base = fds__safetensors_meta(file, "base");
    size_t count = 2 * (size_t)classes * players;
    fds_status status = FDS_OK;
    if (!t || t->rank != 3 || t->dims[0] != 2 || t->dims[1] != classes || t->dims[2] != players)
        status = fds__fail(err, FDS_ERR_SHAPE, "%s: it must have a tensor \"errors\" of 2x%ux%zu",
                           path, classes, players);
    else if (!parts || parts->rank != 2 || parts->dims[0] != 4 || parts->dims[1] != FDS__PARTS)
        status = fds__fail(err, FDS_ERR_SHAPE, "%s: it must have a tensor \"parts\" of 4x%d", path,
                           FDS__PARTS);
    else
        status = RESERVE(out->errors, count, 1, err);
    for (size_t i = 0; status == FDS_OK && i < count; i++) {
        out->errors[i] = t->values[i];
        if (!isfinite(out->errors[i]) || out->errors[i] < 0)
            status = fds__fail(err, FDS_ERR_FORMAT, "%s: error number %zu is %g", path, i,
                               out->errors[i]);
    }
    for (size_t i = 0; status == FDS_OK && i < 4 * FDS__PARTS; i++) {
        double part = out->parts[i / FDS__PARTS][i % FDS__PARTS] = parts->values[i];
        if (!isfinite(part) || part < 0)
            status = fds__fail(err, FDS_ERR_FORMAT, "%s: part number %zu is %g", path, i, part);
    }
    out->inputs = inputs ? (size_t)strtoull(inputs, NULL, 10) : 0;
    out->by_spread = base && strcmp(base, "spread") == 0;
    fds__safetensors_free(file);
    if (status != FDS_OK)
        fds__calibration_free(out);
    return status;
}
