/* SPDX-License-Identifier: Apache-2.0
 *
 * privacy: noise for differential privacy, and what it costs.
 *
 * The samplers are those of Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential
 * Privacy" (2020), in exact rational arithmetic: every probability is exactly as stated, so the
 * guarantee does not depend on how floating-point numbers are rounded. Without GMP they fail with
 * FDS_ERR_UNSUPPORTED; accounting works. docs/privacy.md has the proofs.
 */
#ifndef FDS_PRIVACY_H
#define FDS_PRIVACY_H

#include "base/base.h"

/* ---- random bits: bits.c ---- */

/* Where random bits come from. fill writes size bytes, at most 256. */
typedef struct fds__bits {
    fds_status (*fill)(void *context, void *out, size_t size, fds_error *err);
    void *context;
} fds__bits;

/* getrandom. Noise that people rely on takes these and no others; tests take others. */
extern const fds__bits fds__system_bits;

/* Bits of a source, one by one, the highest of a byte first. It lives as long as one call: no process
 * forks with bits in it that a child would use again. After a failure of the source all bits are 0. */
typedef struct privacy_stream {
    const fds__bits *source;
    uint8_t bytes[256];
    size_t next, count; /* bits */
    uint64_t taken;     /* bits, in all */
    fds_status status;
    fds_error *err;
} privacy_stream;

void privacy_stream_begin(privacy_stream *stream, const fds__bits *source, fds_error *err);
/* Forgets the bits that are left. Returns the failure of the source, if any. */
fds_status privacy_stream_end(privacy_stream *stream);
unsigned privacy_bit(privacy_stream *stream);

/* ---- samplers: sample.c, or absent.c ---- */

typedef enum fds__mechanism { FDS__LAPLACE, FDS__GAUSS } fds__mechanism;
const char *fds__mechanism_name(fds__mechanism mechanism); /* "laplace" */
bool fds__mechanism_find(const char *name, fds__mechanism *out);

/* A budget is counted in thousand-millionths, so that sums of it are exact. */
#define FDS__NANO UINT64_C(1000000000)

/* Noise of whole numbers that hides a change of at most `sensitivity`: for Laplace in L1, at the price
 * of epsilon = cost_nano / 1e9; for Gauss in L2, of rho = cost_nano / 1e9 (concentrated differential
 * privacy).
 *     Laplace  P(x) ~ exp(-|x| / b),        b = sensitivity / epsilon
 *     Gauss    P(x) ~ exp(-x^2 / 2 sigma^2), sigma^2 = sensitivity^2 / (2 rho) */
typedef struct fds__dp_noise {
    fds__mechanism mechanism;
    uint64_t sensitivity; /* at least 1 */
    uint64_t cost_nano;   /* at least 1 */
} fds__dp_noise;

/* FDS_ERR_USAGE: a scale above 2^50. Beyond it a draw could leave 64 bits; below, one does with a
 * probability of less than exp(-8000). */
fds_status fds__dp_check(const fds__dp_noise *noise, fds_error *err);
/* Draws count numbers, each independent of the others. */
fds_status fds__dp_draw(const fds__dp_noise *noise, const fds__bits *bits, int64_t *out,
                        size_t count, fds_error *err);
/* out (count) = in (count) + noise; the two may be one. FDS_ERR_LIMIT: a sum leaves 64 bits. */
fds_status fds__dp_add(const fds__dp_noise *noise, const fds__bits *bits, const int64_t *in,
                       int64_t *out, size_t count, fds_error *err);
/* The standard deviation: sqrt(2) b, sigma; of the continuous distribution, which for scales above 1 is
 * more than that of whole numbers by less than 4 %. */
double fds__dp_deviation(const fds__dp_noise *noise);
/* The number of grid steps nearest to x, of two the even one. Release whole numbers of steps: the
 * guarantee is about those. FDS_ERR_USAGE: x is not finite, step is not above 0, or it has no place in
 * 64 bits. */
fds_status fds__to_grid(double x, double step, int64_t *out, fds_error *err);

/* The parts, for tests; NULL-free arguments, num <= den. */
bool privacy_bernoulli(privacy_stream *stream, uint64_t num, uint64_t den);
bool privacy_bernoulli_exp(privacy_stream *stream, uint64_t num,
                           uint64_t den); /* of exp(-num/den) */
uint64_t privacy_below(privacy_stream *stream, uint64_t bound);
fds_status privacy_draw(privacy_stream *stream, const fds__dp_noise *noise, int64_t *out,
                        fds_error *err);

/* ---- what it costs: account.c ---- */

/* *sum += cost. FDS_ERR_LIMIT: it leaves 64 bits. */
fds_status fds__cost_add(uint64_t *sum, uint64_t cost_nano, fds_error *err);
/* rho-zCDP implies (epsilon, delta)-differential privacy (the paper's corollary 13): the delta for an
 * epsilon, and the least epsilon for a delta in (0, 1), which is rounded up. */
double fds__zcdp_delta(double rho, double epsilon);
double fds__zcdp_epsilon(double rho, double delta);
/* The greatest rho, in thousand-millionths, for which that epsilon is not above the given one; 0: even
 * the least is too much. */
uint64_t fds__zcdp_rho_nano(double epsilon, double delta);
/* epsilon-differential privacy implies rho = epsilon^2 / 2. */
double fds__pure_rho(double epsilon);
/* The epsilon of all releases together at this delta: pure ones, of which squares is the sum of
 * epsilon^2, and those of rho. The lesser of two bounds: adding epsilon, adding rho. delta 0: pure ones
 * only, infinite with others. */
double fds__epsilon_of(double pure, double squares, double rho, double delta);

#endif
