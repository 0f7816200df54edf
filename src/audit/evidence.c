/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics that may be looked at after every prediction.
 *
 * Bets (a testing martingale; Waudby-Smith and Ramdas, "Estimating means of bounded random variables by
 * betting", JRSS B 2024; mixtures: Robbins 1970). Hypothesis: E[x_t | past] <= 0, where x_t >= -low_t and
 * low_t is known before x_t. A gambler stakes the share s of its capital on x_t > 0, so that the capital
 * becomes the product of 1 + lambda_t x_t with lambda_t = s / scale_t <= 1 / low_t, known before x_t. Under
 * the hypothesis each factor has a mean of at most 1: the capital is a supermartingale that begins at 1,
 * and by Ville's inequality it ever reaches 1/p with probability p at most. That also holds for a mean
 * of such capitals with fixed weights, and here there are several stakes, as nobody knows the best one,
 * and several beginnings, at steps 0, 128, 256, 512, ...: what goes wrong late is found although earlier
 * stakes were lost. Beginning j has the weight 1/((j+1)(j+2)); what has not begun keeps its capital.
 * scale_t is the mean of earlier bounds low, but at least low_t: stakes then suit the usual size of x,
 * and are reduced where more could be lost.
 *
 * Bounds of a mean (predictable plug-in empirical Bernstein, the same paper, theorem 2; one-sided: Fan,
 * Grama and Liu 2015). For x_t >= -low_t and any predictable m_t, the product of
 * exp(lambda_t (x_t - mu_t) - (x_t - m_t)^2 psi(lambda_t)), psi(l) = (-log(1 - l B) - l B) / B^2, is a
 * supermartingale if x_t - m_t >= -B and l B < 1. So at all times, with probability 1 - p, the weighted
 * mean of the mu_t is at least (sum lambda x - log(1/p) - sum (x - m)^2 psi) / sum lambda.
 *
 * Ranks (conformal martingale; Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World").
 * If numbers are exchangeable, the rank of the newest among all so far, equal ones in random order, is
 * uniform and independent of the ranks before. So p_t = (above + u (equal + 1)) / (count + 1) is uniform
 * on (0, 1), and bets on small p_t, of mean 1 for a uniform p, give a martingale. Numbers are rounded to
 * 1 of 65,536 fixed values first, so that memory does not grow: a function of exchangeable numbers is
 * exchangeable.
 */
#include "audit/audit.h"

#include <math.h>

/* ---- bets ---- */

enum { FIRST_RESTART = 128 };
#define MOST_CAPITAL 1e30F   /* more is cut off: alarms are long given by then */
#define LEAST_CAPITAL 1e-30F /* less is given up: it would be slow to compute with, and is lost */

static const double stakes[AUDIT_STAKES] = {0.9, 0.4, 0.15, 0.05};

/* The number of beginnings after so many steps: at 0, 128, 256, 512, ... */
static unsigned starts_after(uint64_t steps) {
    uint64_t doubled = steps / FIRST_RESTART;
    unsigned starts = doubled ? 65 - (unsigned)__builtin_clzll(doubled) : 1;
    return MIN(starts, (unsigned)AUDIT_STARTS);
}

/* The stakes of one beginning, side by side. */
typedef float lanes __attribute__((vector_size(AUDIT_STAKES * sizeof(float))));
typedef int32_t masks __attribute__((vector_size(AUDIT_STAKES * sizeof(int32_t))));

/* What has begun takes the factors. */
static void multiply(audit_bet *b, const double factors[AUDIT_STAKES]) {
    unsigned starts = starts_after(b->steps++);
    lanes by, most, least;
    for (; b->starts < starts; b->starts++)
        for (int s = 0; s < AUDIT_STAKES; s++)
            b->capital[b->starts][s] = 1;
    for (int s = 0; s < AUDIT_STAKES; s++) {
        by[s] = (float)factors[s];
        most[s] = MOST_CAPITAL;
        least[s] = LEAST_CAPITAL;
    }
    for (unsigned j = 0; j < starts; j++) {
        lanes capital;
        memcpy(&capital, b->capital[j], sizeof capital);
        capital *= by;
        masks is_less = capital<most, is_left = capital> least; /* -1 or 0 */
        capital = (lanes)(((masks)capital & is_less & is_left) | ((masks)most & ~is_less));
        memcpy(b->capital[j], &capital, sizeof capital);
    }
}

double audit_bet_value(const audit_bet *b) {
    lanes sum = {0};
    for (unsigned j = 0; j < b->starts; j++) {
        lanes capital;
        memcpy(&capital, b->capital[j], sizeof capital);
        sum += capital * (1 / ((float)(j + 1) * (float)(j + 2)));
    }
    double mean = 0;
    for (int s = 0; s < AUDIT_STAKES; s++)
        mean += (double)sum[s] / AUDIT_STAKES;
    return mean + 1.0 / (b->starts + 1); /* what has not begun */
}

void audit_bet_mean(audit_bet *b, double x, double low) {
    double factors[AUDIT_STAKES];
    double usual = b->steps ? b->lows / (double)b->steps : 0, scale = MAX(usual, low);
    assert(x >= -low * (1 + 1e-9));
    for (int s = 0; s < AUDIT_STAKES; s++)
        factors[s] = scale > 0 ? 1 + stakes[s] * x / scale : x > 0 ? 1 + stakes[s] : 1;
    b->lows += low;
    multiply(b, factors);
}

void audit_bet_rank(audit_bet *b, double p) {
    double factors[AUDIT_STAKES];
    for (int s = 0; s < AUDIT_STAKES; s++)
        factors[s] = 1 + stakes[s] * (1 - 2 * p);
    multiply(b, factors);
}

/* Power bets, e p^(e-1): more is won by the smallest ranks. */
void audit_bet_power(audit_bet *b, double p) {
    static const double powers[AUDIT_STAKES] = {0.2, 0.4, 0.6, 0.8};
    double factors[AUDIT_STAKES], size = log(MAX(p, 1e-12));
    for (int s = 0; s < AUDIT_STAKES; s++)
        factors[s] = powers[s] * exp((powers[s] - 1) * size);
    multiply(b, factors);
}

/* ---- bounds of a mean ---- */

void audit_bound_step(audit_bound *b, double x, double low, double p) {
    double mean = b->count > 0 ? b->sum / b->count : 0, n = b->count + 1;
    b->most = MAX(b->most, low + MAX(mean, 0));
    if (!(b->most > 0)) {
        b->count++;
        b->sum += x;
        return;
    }
    double variance = (b->most * b->most / 16 + b->squares) / n;
    double lambda = MIN(sqrt(2 * log(1 / p) / (variance * n * log(1 + n))), 0.5 / b->most);
    double stake = lambda * b->most;
    b->weight += lambda;
    b->weighted += lambda * x;
    b->penalty += (x - mean) * (x - mean) * (-log1p(-stake) - stake) / (b->most * b->most);
    b->count++;
    b->sum += x;
    b->squares += (x - mean) * (x - b->sum / b->count);
}

double audit_bound_low(const audit_bound *b, double p) {
    return b->weight > 0 ? (b->weighted - log(1 / p) - b->penalty) / b->weight : -INFINITY;
}

/* ---- ranks ---- */

/* The upper 16 bits of a float, in the order of numbers. */
static size_t place_of(double score) {
    float rounded = (float)score;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    return (bits >> 31 ? ~bits : bits | 0x80000000U) >> 16;
}

static uint64_t count_to(const audit_bag *b, size_t end) { /* of the places below end */
    uint64_t sum = 0;
    for (; end; end &= end - 1)
        sum += b->tree[end];
    return sum;
}

void audit_bag_add(audit_bag *b, double score) {
    for (size_t at = place_of(score) + 1; at <= AUDIT_PLACES; at += at & -at)
        b->tree[at]++;
    b->count++;
}

double audit_bag_rank(const audit_bag *b, double score, double u) {
    size_t place = place_of(score);
    uint64_t below = count_to(b, place), equal = count_to(b, place + 1) - below;
    uint64_t above = b->count - below - equal;
    return ((double)above + u * (double)(equal + 1)) / (double)(b->count + 1);
}

fds_status audit_bag_create(audit_bag *b, fds_error *err) {
    *b = (audit_bag){0};
    return NEW(b->tree, AUDIT_PLACES + 1, err);
}

/* ---- what became of it ---- */

void audit_series_note(audit_series *s, uint64_t entry, double e) {
    if (s->seen++ % MAX(s->stride, 1) != 0)
        return;
    if (s->count == AUDIT_POINTS) { /* every second one stays */
        for (size_t i = 0; i < AUDIT_POINTS / 2; i++)
            s->points[i] = s->points[2 * i];
        s->count = AUDIT_POINTS / 2;
        s->stride = MAX(s->stride, 1) * 2;
    }
    s->points[s->count++] = (audit_point){entry, e};
}
