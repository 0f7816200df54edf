/* SPDX-License-Identifier: Apache-2.0
 * Noise on sums: its size, its limits, and adding it without overflow. */
#include "privacy/privacy.h"

#include <math.h>

#define MOST_SCALE 0x1p50

static const char *const names[] = {[FDS__LAPLACE] = "laplace", [FDS__GAUSS] = "gauss"};

const char *fds__mechanism_name(fds__mechanism mechanism) { return names[mechanism]; }

bool fds__mechanism_find(const char *name, fds__mechanism *out) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) {
            *out = (fds__mechanism)i;
            return true;
        }
    return false;
}

/* b, or sigma */
static double scale(const fds__dp_noise *noise) {
    double cost = (double)noise->cost_nano / (double)FDS__NANO;
    return noise->mechanism == FDS__LAPLACE ? (double)noise->sensitivity / cost
                                            : (double)noise->sensitivity / sqrt(2 * cost);
}

double fds__dp_deviation(const fds__dp_noise *noise) {
    return noise->mechanism == FDS__LAPLACE ? sqrt(2) * scale(noise) : scale(noise);
}

fds_status fds__dp_check(const fds__dp_noise *noise, fds_error *err) {
    if (noise->sensitivity == 0 || noise->cost_nano == 0)
        return fds__fail(err, FDS_ERR_USAGE, "noise needs a sensitivity and a cost above 0");
    if (scale(noise) > MOST_SCALE)
        return fds__fail(err, FDS_ERR_USAGE,
                         "noise of that size does not fit 64 bits: take a larger epsilon, a lower "
                         "price or fewer predictions per customer");
    return FDS_OK;
}

fds_status fds__dp_add(const fds__dp_noise *noise, const fds__bits *bits, const int64_t *in,
                       int64_t *out, size_t count, fds_error *err) {
    OWNED int64_t *drawn = NULL;
    TRY(NEW(drawn, count, err));
    TRY(fds__dp_draw(noise, bits, drawn, count, err));
    for (size_t i = 0; i < count; i++)
        if (__builtin_add_overflow(in[i], drawn[i], &drawn[i]))
            return fds__fail(err, FDS_ERR_LIMIT, "a sum with its noise does not fit 64 bits");
    memcpy(out, drawn, count * sizeof *out);
    return FDS_OK;
}

fds_status fds__to_grid(double x, double step, int64_t *out, fds_error *err) {
    double steps = nearbyint(x / step); /* the default rounding: to nearest, ties to even */
    if (!(step > 0) || !isfinite(step) || !isfinite(x) || !(fabs(steps) < 0x1p62))
        return fds__fail(err, FDS_ERR_USAGE, "a number has no place on the grid");
    *out = (int64_t)steps;
    return FDS_OK;
}
