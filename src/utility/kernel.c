/* SPDX-License-Identifier: Apache-2.0
 *
 * "kernel": kernel ridge regression (regression.c) on the coalition's samples, a cheap substitute
 * for a network trained on them. Three choices make it resemble one: the similarity of two samples,
 * the ridge, and the sharpness of the softmax. Targets are 1 at the label and 0 elsewhere, minus
 * 1/classes. */
#include "utility/utility.h"

#include <math.h>

/* Of the values tried, these come closest to LeNet-5 after 10 epochs on MNIST. */
static const double RIDGE = 0.5;     /* of the mean of K's diagonal */
static const double SHARPNESS = 4.0; /* of the softmax: scores lie within about +-1 */
static const double PI = 3.14159265358979323846;

/* The neural tangent kernel of a wide network with one hidden layer of ReLU, both layers trained,
 * on inputs of length 1: with the angle t between a and b,
 *     cos t (pi - t) / pi  +  (sin t + cos t (pi - t)) / pi.
 * An input of length 0 is taken to be at right angles to all others. aa, ab, bb: inner products. */
static double similarity(double aa, double ab, double bb) {
    double u = aa > 0 && bb > 0 ? ab / (sqrt(aa) * sqrt(bb)) : aa == bb ? 1.0 : 0.0;
    u = MAX(-1.0, MIN(1.0, u));
    double rest = PI - acos(u);
    return (2 * u * rest + sqrt(1 - u * u)) / PI;
}

/* between[j] of one sample or input with samples 0 .. count-1; squares: of their lengths. */
static void compare(const float *x, const fds_inputs *samples, const double *squares, size_t count,
                    double *between) {
    double xx = fds__utility_dot(x, x, samples->size);
    for (size_t j = 0; j < count; j++) {
        double product = fds__utility_dot(x, samples->values + j * samples->size, samples->size);
        between[j] = similarity(xx, product, squares[j]);
    }
}

static fds_status compare_all(fds__regression *r, fds_error *err) {
    const fds_inputs *samples = r->data->samples, *inputs = r->data->inputs;
    const size_t n = samples->count, size = samples->size;
    double diagonal = 0;
    OWNED double *squares = NULL;
    TRY(NEW(squares, n, err));
    for (size_t i = 0; i < n; i++) {
        const float *x = samples->values + i * size;
        squares[i] = fds__utility_dot(x, x, size);
        compare(x, samples, squares, i + 1, r->between + i * n);
        for (size_t j = 0; j < i; j++)
            r->between[j * n + i] = r->between[i * n + j];
        diagonal += r->between[i * n + i];
    }
    for (size_t i = 0; i < inputs->count; i++)
        compare(inputs->values + i * size, samples, squares, n, r->inputs + i * n);
    r->ridge = RIDGE * diagonal / (double)n;
    r->shift = 1.0 / (double)r->data->classes;
    r->sharpness = SHARPNESS;
    return FDS_OK;
}

fds_status fds__kernel_create(fds__utility_making *making, fds_error *err) {
    fds__regression *r;
    TRY(fds__regression_create(making, &r, err));
    TRY(fds__utility_about(making->about,
                           json_pack("{s:s, s:f, s:f}", "similarity",
                                     "ntk of relu, one hidden layer", "ridge", RIDGE, "sharpness",
                                     SHARPNESS),
                           err));
    return compare_all(r, err);
}

const fds__utility_kind fds__kernel_kind = {.eval = fds__regression_eval,
                                            .free = fds__regression_free};
