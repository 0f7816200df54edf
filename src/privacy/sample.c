/* SPDX-License-Identifier: Apache-2.0
 *
 * The samplers of Canonne, Kamath and Steinke (2020), on GMP's whole numbers. Numbers in comments are
 * those of the paper's algorithms.
 *
 * Everything is built from Bernoulli(a/b), which compares a uniform number in [0, 1) with a/b bit by
 * bit: two bits decide it on average, and it is exact for any a and b. All loops end with probability 1
 * and, because bits are 0 after a failure of their source, look at its status. */
#include "privacy/privacy.h"

#include <gmp.h>

/* Scratch of one call; all numbers have a place of their own, so that the inner loops do not allocate. */
typedef struct {
    privacy_stream *stream;
    mpz_t rest, low, high; /* of bernoulli, exp */
    mpz_t u, t, s, y, v;   /* of laplace */
    mpz_t num, den, whole; /* of gauss */
    mpz_t sigma2_num, sigma2_den;
} sampler;

static void begin(sampler *m, privacy_stream *stream) {
    m->stream = stream;
    mpz_inits(m->rest, m->low, m->high, m->u, m->t, m->s, m->y, m->v, m->num, m->den, m->whole,
              m->sigma2_num, m->sigma2_den, NULL);
}

static void end(sampler *m) {
    mpz_clears(m->rest, m->low, m->high, m->u, m->t, m->s, m->y, m->v, m->num, m->den, m->whole,
               m->sigma2_num, m->sigma2_den, NULL);
}

static bool has_bits(const sampler *m) { return m->stream->status == FDS_OK; }

static void set_u64(mpz_t out, uint64_t value) {
    mpz_import(out, 1, 1, sizeof value, 0, 0, &value);
}

/* ---- Bernoulli and uniform ---- */

/* True with probability num/den, for 0 <= num <= den. The bits of num/den come out of a long division;
 * a random bit that differs decides. */
static bool bernoulli(sampler *m, const mpz_t num, const mpz_t den) {
    if (mpz_cmp(num, den) >= 0)
        return true;
    mpz_set(m->rest, num);
    while (has_bits(m) && mpz_sgn(m->rest)) { /* 0: all further bits of num/den are 0 */
        mpz_mul_2exp(m->rest, m->rest, 1);
        unsigned of_ratio = mpz_cmp(m->rest, den) >= 0;
        if (of_ratio)
            mpz_sub(m->rest, m->rest, den);
        unsigned drawn = privacy_bit(m->stream);
        if (drawn != of_ratio)
            return drawn < of_ratio;
    }
    return false;
}

/* out uniform in 0 .. bound-1. */
static void below(sampler *m, const mpz_t bound, mpz_t out) {
    mpz_sub_ui(out, bound, 1);
    size_t bits = mpz_sgn(out) ? mpz_sizeinbase(out, 2) : 0;
    do {
        mpz_set_ui(out, 0);
        for (size_t i = 0; i < bits; i++) {
            mpz_mul_2exp(out, out, 1);
            if (privacy_bit(m->stream))
                mpz_setbit(out, 0);
        }
    } while (has_bits(m) && mpz_cmp(out, bound) >= 0);
}

/* ---- algorithm 1: Bernoulli(exp(-num/den)) ---- */

/* For num <= den: the first k whose Bernoulli(num / (den k)) fails is odd with that probability, the
 * series of the exponential. */
static bool exp_of_part(sampler *m, const mpz_t num, const mpz_t den) {
    unsigned long k = 1;
    for (; has_bits(m); k++) {
        mpz_mul_ui(m->high, den, k);
        if (!bernoulli(m, num, m->high))
            break;
    }
    return k % 2 == 1;
}

static bool exp_of_one(sampler *m) {
    mpz_set_ui(m->low, 1);
    return exp_of_part(m, m->low, m->low);
}

/* num is lost. */
static bool exp_of(sampler *m, mpz_t num, const mpz_t den) {
    while (has_bits(m) && mpz_cmp(num, den) > 0) {
        if (!exp_of_one(m))
            return false;
        mpz_sub(num, num, den);
    }
    return exp_of_part(m, num, den);
}

/* ---- algorithm 2: discrete Laplace of scale t/s ---- */

static void laplace(sampler *m, mpz_t out) {
    while (has_bits(m)) {
        below(m, m->t, m->u);
        if (!exp_of_part(m, m->u, m->t))
            continue;
        for (mpz_set_ui(m->v, 0); has_bits(m) && exp_of_one(m);)
            mpz_add_ui(m->v, m->v, 1);
        mpz_addmul(m->u, m->t, m->v); /* geometric with exp(-1/t) */
        mpz_fdiv_q(out, m->u, m->s);
        bool is_negative = privacy_bit(m->stream);
        if (is_negative && mpz_sgn(out) == 0)
            continue; /* 0 would come twice */
        if (is_negative)
            mpz_neg(out, out);
        return;
    }
}

/* ---- algorithm 3: discrete Gauss of variance sigma2 ---- */

/* A Laplace number y of scale t is taken with probability exp(-(|y| - sigma2/t)^2 / (2 sigma2)); with
 * sigma2 = p/q that is exp(-(|y| t q - p)^2 / (2 p q t^2)). */
static void gauss(sampler *m, mpz_t out) {
    while (has_bits(m)) {
        laplace(m, out);
        mpz_abs(m->num, out);
        mpz_mul(m->num, m->num, m->whole);
        mpz_sub(m->num, m->num, m->sigma2_num);
        mpz_mul(m->num, m->num, m->num);
        if (exp_of(m, m->num, m->den))
            return;
    }
}

/* Parameters of the samplers, lowest terms not needed. */
static void prepare(sampler *m, const fds__dp_noise *noise) {
    mpz_t nano;
    mpz_init(nano);
    set_u64(nano, FDS__NANO);
    set_u64(m->t, noise->sensitivity);
    set_u64(m->s, noise->cost_nano);
    if (noise->mechanism == FDS__LAPLACE) {
        mpz_mul(m->t, m->t, nano);
    } else {
        mpz_mul(m->sigma2_num, m->t, m->t);
        mpz_mul(m->sigma2_num, m->sigma2_num, nano);
        mpz_mul_ui(m->sigma2_den, m->s, 2);
        mpz_fdiv_q(m->t, m->sigma2_num, m->sigma2_den);
        mpz_sqrt(m->t, m->t);
        mpz_add_ui(m->t, m->t, 1); /* floor(sigma) + 1 */
        mpz_set_ui(m->s, 1);
        mpz_mul(m->whole, m->t, m->sigma2_den);
        mpz_mul(m->den, m->whole, m->t);
        mpz_mul(m->den, m->den, m->sigma2_num);
        mpz_mul_ui(m->den, m->den, 2);
    }
    /* lowest terms: fewer bits for the uniform numbers */
    mpz_gcd(nano, m->t, m->s);
    mpz_divexact(m->t, m->t, nano);
    mpz_divexact(m->s, m->s, nano);
    mpz_clear(nano);
}

/* ---- for others ---- */

static fds_status draw_one(sampler *m, const fds__dp_noise *noise, int64_t *out, fds_error *err) {
    if (noise->mechanism == FDS__LAPLACE)
        laplace(m, m->y);
    else
        gauss(m, m->y);
    if (!has_bits(m))
        return m->stream->status;
    if (!mpz_fits_slong_p(m->y))
        return fds__fail(err, FDS_ERR_LIMIT, "noise does not fit 64 bits");
    *out = mpz_get_si(m->y);
    return FDS_OK;
}
_Static_assert(sizeof(long) == sizeof(int64_t), "mpz_get_si gives 64 bits");

fds_status privacy_draw(privacy_stream *stream, const fds__dp_noise *noise, int64_t *out,
                        fds_error *err) {
    sampler m;
    begin(&m, stream);
    prepare(&m, noise);
    fds_status status = draw_one(&m, noise, out, err);
    end(&m);
    return status;
}

bool privacy_bernoulli(privacy_stream *stream, uint64_t num, uint64_t den) {
    sampler m;
    begin(&m, stream);
    set_u64(m.num, num);
    set_u64(m.den, den);
    bool is_true = bernoulli(&m, m.num, m.den);
    end(&m);
    return is_true;
}

bool privacy_bernoulli_exp(privacy_stream *stream, uint64_t num, uint64_t den) {
    sampler m;
    begin(&m, stream);
    set_u64(m.num, num);
    set_u64(m.den, den);
    bool is_true = exp_of(&m, m.num, m.den);
    end(&m);
    return is_true;
}

uint64_t privacy_below(privacy_stream *stream, uint64_t bound) {
    sampler m;
    begin(&m, stream);
    set_u64(m.t, bound);
    below(&m, m.t, m.u);
    uint64_t out = mpz_get_ui(m.u);
    end(&m);
    return out;
}

fds_status fds__dp_draw(const fds__dp_noise *noise, const fds__bits *bits, int64_t *out,
                        size_t count, fds_error *err) {
    privacy_stream stream;
    sampler m;
    TRY(fds__dp_check(noise, err));
    privacy_stream_begin(&stream, bits, err);
    begin(&m, &stream);
    prepare(&m, noise);
    fds_status status = FDS_OK;
    for (size_t i = 0; i < count && status == FDS_OK; i++)
        status = draw_one(&m, noise, &out[i], err);
    end(&m);
    fds_status of_bits = privacy_stream_end(&stream);
    return status != FDS_OK ? status : of_bits;
}
