/* SPDX-License-Identifier: Apache-2.0
 * The normal equations of many unknowns as an operator, and conjugate gradients: ls_cg.h. */
#include "game/ls_cg.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

/* ---- coalitions as bits ---- */

static const uint64_t *coalition(const fds__design *d, size_t pair) {
    return fds__plan_bits(d->plan, 2 + pair * (d->plan->is_paired ? 2 : 1));
}

static fds_status pack(fds__cg *m, fds_error *err) {
    const fds__design *d = m->d;
    const size_t n = d->players, pairs = d->pairs;
    m->by_pair = (fds__bits){pairs, n, NULL};
    m->by_player = (fds__bits){n, pairs, NULL};
    TRY(NEW(m->by_pair.words, (n + 31) / 32 * pairs, err));
    TRY(NEW(m->by_player.words, (pairs + 31) / 32 * n, err));
    double start_s = fds__now_s();
    for (size_t p = 0; p < pairs; p++) {
        const uint64_t *bits = coalition(d, p);
        uint32_t *column = m->by_player.words + p / 32 * n;
        for (size_t j = 0; 32 * j < n; j++) {
            uint32_t word = (uint32_t)(bits[j / 2] >> (j % 2 * 32));
            m->by_pair.words[j * pairs + p] = word;
            for (; word; word &= word - 1)
                column[32 * j + (size_t)__builtin_ctz(word)] |= (uint32_t)1 << (p % 32);
        }
        if (p % 64 == 0)
            TRY(fds__design_report(d, "normal equations", p, start_s, err));
    }
    return fds__design_report(d, "normal equations", pairs, start_s, err);
}

/* ---- coarse and fine ---- */

/* The coarse part of a row: for each group its sum over the root of its size; then the steps. */
static void coarse_row(const fds__cg *m, size_t pair, double *steps, double *row) {
    const fds__design *d = m->d;
    const uint64_t *bits = coalition(d, pair);
    for (size_t w = 0; w < fds_coalition_words(d->players); w++)
        for (uint64_t left = bits[w]; left; left &= left - 1)
            row[m->group_of[64 * w + (size_t)__builtin_ctzll(left)]] += 1;
    double fine = 0;
    for (size_t g = 0; g < m->groups; g++) {
        double of = m->root[g] * m->root[g], in = row[g];
        fine += in * (of - in) / of; /* whatever is subtracted from each bit */
        row[g] = (in - of * m->centre) / m->root[g];
    }
    m->fine[pair] = fine;
    fds__design_steps(d, bits, steps);
    memcpy(row + m->groups, steps, (m->coarse - m->groups) * sizeof *row);
}

static fds_status make_coarse(fds__cg *m, fds_error *err) {
    const fds__design *d = m->d;
    OWNED double *steps = NULL;
    TRY(NEW(steps, d->features - d->players + 1, err));
    TRY(NEW(m->rows, d->pairs * m->coarse, err));
    TRY(NEW(m->fine, d->pairs, err));
    double start_s = fds__now_s();
    for (size_t p = 0; p < d->pairs; p++) {
        coarse_row(m, p, steps, m->rows + p * m->coarse);
        if (p % 64 == 0)
            TRY(fds__design_report(d, "groups", p, start_s, err));
    }
    return fds__design_report(d, "groups", d->pairs, start_s, err);
}

fds_status fds__cg_create(const fds__design *d, fds__cg *m, fds_error *err) {
    fds__isa_set set;
    TRY(fds__isa_choose(&set, err));
    *m = (fds__cg){.d = d,
                   .kernel = FDS__ISA_PICK(set, fds__bits),
                   .centre = d->plan->is_paired ? 0.5 : 0,
                   .groups = d->group_count,
                   .coarse = d->group_count + d->features - d->players};
    TRY(NEW(m->group_of, d->players, err));
    TRY(NEW(m->root, m->groups, err));
    for (size_t i = 0; i < d->players; i++) {
        m->group_of[i] = d->groups ? fds_groups_of(d->groups, i) : 0;
        m->root[m->group_of[i]]++;
    }
    for (size_t g = 0; g < m->groups; g++)
        m->root[g] = sqrt(m->root[g]);
    TRY(pack(m, err));
    return make_coarse(m, err);
}

void fds__cg_free(fds__cg *m) {
    fds__free(m->by_pair.words);
    fds__free(m->by_player.words);
    fds__free(m->group_of);
    fds__free(m->root);
    fds__free(m->rows);
    fds__free(m->fine);
}

/* sums (groups, width) of x (n, width) over the groups, each over the root of its size */
static void group_sums(const fds__cg *m, const double *x, size_t width, double *sums) {
    memset(sums, 0, m->groups * width * sizeof *sums);
    for (size_t i = 0; i < m->d->players; i++) {
        double *to = sums + m->group_of[i] * width;
        for (size_t c = 0; c < width; c++)
            to[c] += x[i * width + c];
    }
    for (size_t g = 0; g < m->groups; g++)
        cblas_dscal((int)width, 1 / m->root[g], sums + g * width, 1);
}

/* x (n, width) = times (x - means) + spread, all of which sums (groups, width) are: old and new */
static void replace_means(const fds__cg *m, size_t width, double times, const double *old,
                          const double *new, double *x) {
    for (size_t i = 0; i < m->d->players; i++) {
        size_t g = m->group_of[i];
        const double *from = old + g * width, *to = new ? new + g *width : NULL;
        for (size_t c = 0; c < width; c++)
            x[i * width + c] =
                times * (x[i * width + c] - from[c] / m->root[g]) + (to ? to[c] / m->root[g] : 0);
    }
}

void fds__cg_make_fine(const fds__cg *m, size_t width, fds__cg_scratch *t, double *x) {
    group_sums(m, x, width, t->coarse);
    replace_means(m, width, 1, t->coarse, NULL, x);
}

/* ---- the operator ---- */

fds_status fds__cg_scratch_create(const fds__cg *m, size_t width, fds__cg_scratch *t,
                                  fds_error *err) {
    size_t f = m->d->features * width;
    assert(width % FDS__BITS_TILE == 0 && width <= FDS__CG_CHUNK);
    TRY(NEW(t->y, m->d->pairs * width + 3 * f + 2 * m->coarse * width + FDS__BITS_TABLE, err));
    t->residual = t->y + m->d->pairs * width;
    t->way = t->residual + f;
    t->h = t->way + f;
    t->coarse = t->h + f;
    t->table = t->coarse + 2 * m->coarse * width;
    return FDS_OK;
}

/* out (width) = sums of the rows of x (rows, width) */
static void column_sums(const double *x, size_t rows, size_t width, double *out) {
    memset(out, 0, width * sizeof *out);
    for (size_t i = 0; i < rows; i++)
        for (size_t c = 0; c < width; c++)
            out[c] += x[i * width + c];
}

fds_status fds__cg_predict(const fds__cg_stage *s, const double *x, size_t width,
                           fds__cg_scratch *t, double *y, fds_error *err) {
    const fds__cg *m = s->many;
    const size_t n = m->d->players, pairs = m->d->pairs, steps = s->size - n;
    double sums[FDS__CG_CHUNK];
    TRY(fds__bits_multiply(&m->by_pair, m->kernel, x, width, t->table, y, err));
    column_sums(x, n, width, sums);
    for (size_t p = 0; m->centre > 0 && p < pairs; p++)
        for (size_t c = 0; c < width; c++)
            y[p * width + c] -= m->centre * sums[c];
    if (steps)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)pairs, (int)width, (int)steps,
                    1, m->rows + m->groups, (int)m->coarse, x + n * width, (int)width, 1, y,
                    (int)width);
    return FDS_OK;
}

/* out = D'y; y has been weighted */
static fds_status sum_rows(const fds__cg_stage *s, const double *y, size_t width,
                           fds__cg_scratch *t, double *out, fds_error *err) {
    const fds__cg *m = s->many;
    const size_t n = m->d->players, pairs = m->d->pairs, steps = s->size - n;
    double sums[FDS__CG_CHUNK];
    TRY(fds__bits_multiply(&m->by_player, m->kernel, y, width, t->table, out, err));
    column_sums(y, pairs, width, sums);
    for (size_t i = 0; m->centre > 0 && i < n; i++)
        for (size_t c = 0; c < width; c++)
            out[i * width + c] -= m->centre * sums[c];
    if (steps)
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)steps, (int)width, (int)pairs, 1,
                    m->rows + m->groups, (int)m->coarse, y, (int)width, 0, out + n * width,
                    (int)width);
    return FDS_OK;
}

fds_status fds__cg_sum(const fds__cg_stage *s, const double *u, size_t width, fds__cg_scratch *t,
                       double *out, fds_error *err) {
    fds__weigh(u, s->many->d->pairs, width, s->weights, t->y);
    return sum_rows(s, t->y, width, t, out, err);
}

/* out += penalty x, and the sum of x at every place */
static void add_penalty(const fds__cg_stage *s, const double *x, size_t width, fds__cg_scratch *t,
                        double *out) {
    const fds__cg *m = s->many;
    const size_t n = m->d->players;
    const double ridge = s->penalty.ridge, shrink = s->penalty.shrink;
    double all[FDS__CG_CHUNK], of_players[FDS__CG_CHUNK];
    column_sums(x, s->size, width, all);
    column_sums(x, n, width, of_players);
    group_sums(m, x, width, t->coarse);
    for (size_t i = 0; i < s->size; i++) {
        const double *mean = i < n ? t->coarse + m->group_of[i] * width : NULL;
        double root = i < n ? m->root[m->group_of[i]] : 1;
        for (size_t c = 0; c < width; c++) {
            double own = x[i * width + c];
            out[i * width + c] +=
                s->sum * all[c] +
                (mean ? ridge * (own - of_players[c] / (double)n) + shrink * (own - mean[c] / root)
                      : own);
        }
    }
}

/* out = H x */
static fds_status apply(const fds__cg_stage *s, const double *x, size_t width, fds__cg_scratch *t,
                        double *out, fds_error *err) {
    TRY(fds__cg_predict(s, x, width, t, t->y, err));
    fds__weigh(t->y, s->many->d->pairs, width, s->weights, t->y);
    TRY(sum_rows(s, t->y, width, t, out, err));
    add_penalty(s, x, width, t, out);
    return FDS_OK;
}

/* z = r, preconditioned */
static void precondition(const fds__cg_stage *s, const double *r, size_t width, fds__cg_scratch *t,
                         double *z) {
    const fds__cg *m = s->many;
    const size_t n = m->d->players, q = s->coarse;
    double *old = t->coarse, *new = t->coarse + m->coarse *width;
    group_sums(m, r, width, old);
    memcpy(new, old, m->groups * width * sizeof *new);
    memcpy(new + m->groups *width, r + n * width, (s->size - n) * width * sizeof *new);
    cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, (int)q,
                (int)width, 1, s->factor, (int)q, new, (int)width);
    cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasTrans, CblasNonUnit, (int)q, (int)width,
                1, s->factor, (int)q, new, (int)width);
    memcpy(z, r, n * width * sizeof *z);
    double fine = s->mean + s->penalty.ridge + s->penalty.shrink;
    replace_means(m, width, fine > 0 ? 1 / fine : 0, old, new, z);
    memcpy(z + n * width, new + m->groups *width, (s->size - n) * width * sizeof *z);
}

/* ---- conjugate gradients, each column by itself ---- */

/* out (width) = x'y of each column */
static void inner(const double *x, const double *y, size_t rows, size_t width, double *out) {
    memset(out, 0, width * sizeof *out);
    for (size_t i = 0; i < rows; i++)
        for (size_t c = 0; c < width; c++)
            out[c] += x[i * width + c] * y[i * width + c];
}

/* x += scale y, column by column */
static void add_scaled(double *x, const double *scale, const double *y, size_t rows, size_t width,
                       double sign) {
    for (size_t i = 0; i < rows; i++)
        for (size_t c = 0; c < width; c++)
            x[i * width + c] += sign * scale[c] * y[i * width + c];
}

fds_status fds__cg_solve(const fds__cg_stage *s, const double *b, size_t width, double tolerance,
                         fds__cg_scratch *t, double *x, fds_error *err) {
    const size_t size = s->size;
    double goal[FDS__CG_CHUNK], left[FDS__CG_CHUNK], next[FDS__CG_CHUNK], step[FDS__CG_CHUNK];
    double *r = t->residual, *p = t->way, *h = t->h;
    precondition(s, b, width, t, h);
    inner(b, h, size, width, goal);
    TRY(apply(s, x, width, t, h, err));
    for (size_t i = 0; i < size * width; i++)
        r[i] = b[i] - h[i];
    precondition(s, r, width, t, p);
    inner(r, p, size, width, left);
    for (size_t done = 0;; done++) {
        bool is_solved = true;
        for (size_t c = 0; c < width; c++)
            is_solved = is_solved && !(left[c] > tolerance * tolerance * goal[c]);
        if (is_solved)
            return FDS_OK;
        if (done == s->most)
            return fds__fail(err, FDS_ERR_DIVERGED,
                             "least squares: the coalitions do not distinguish all players; use "
                             "more coalitions");
        TRY(apply(s, p, width, t, h, err));
        inner(p, h, size, width, step);
        for (size_t c = 0; c < width; c++)
            step[c] = step[c] > 0 ? left[c] / step[c] : 0;
        add_scaled(x, step, p, size, width, 1);
        add_scaled(r, step, h, size, width, -1);
        precondition(s, r, width, t, h);
        inner(r, h, size, width, next);
        for (size_t c = 0; c < width; c++) {
            step[c] = left[c] > 0 ? next[c] / left[c] : 0;
            left[c] = next[c];
        }
        for (size_t i = 0; i < size; i++)
            for (size_t c = 0; c < width; c++)
                p[i * width + c] = h[i * width + c] + step[c] * p[i * width + c];
    }
}

void fds__cg_constrain(const fds__cg_stage *s, const double *total, size_t width, double *x) {
    double sums[FDS__CG_CHUNK];
    column_sums(x, s->size, width, sums);
    for (size_t c = 0; c < width; c++)
        sums[c] = ((total ? total[c] : 0) - sums[c]) / s->ones_sum;
    for (size_t i = 0; i < s->size; i++)
        for (size_t c = 0; c < width; c++)
            x[i * width + c] += s->ones[i] * sums[c];
}

/* ---- stages ---- */

fds_status fds__cg_stage_create(const fds__cg *m, bool with_steps, fds__cg_stage *s,
                                fds_error *err) {
    const fds__design *d = m->d;
    *s = (fds__cg_stage){.many = m,
                         .with_steps = with_steps,
                         .size = with_steps ? d->features : d->players,
                         .coarse = with_steps ? m->coarse : m->groups,
                         .weights = with_steps ? d->mild : d->kernel,
                         .most = FDS__CG_TRIAL};
    enum { BLOCK = FDS__LS_BLOCK };
    const int q = (int)s->coarse, of = (int)m->coarse;
    OWNED double *weighted = NULL;
    TRY(NEW(s->gram, s->coarse * s->coarse, err));
    TRY(NEW(s->factor, s->coarse * s->coarse, err));
    TRY(NEW(s->ones, s->size, err));
    TRY(NEW(weighted, BLOCK * m->coarse, err));
    double start_s = fds__now_s(), fine = 0;
    for (size_t first = 0; first < d->pairs; first += BLOCK) {
        size_t count = MIN(d->pairs - first, (size_t)BLOCK);
        const double *rows = m->rows + first * m->coarse;
        fds__weigh(rows, count, m->coarse, s->weights + first, weighted);
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, q, q, (int)count, 1, rows, of,
                    weighted, of, 1, s->gram, q);
        for (size_t p = first; p < first + count; p++)
            fine += s->weights[p] * m->fine[p];
        TRY(fds__design_report(d, "groups", first + count, start_s, err));
    }
    s->mean = d->players > m->groups ? fine / (double)(d->players - m->groups) : 0;
    return FDS_OK;
}

void fds__cg_stage_free(fds__cg_stage *s) {
    fds__free(s->gram);
    fds__free(s->factor);
    fds__free(s->ones);
}

/* The sum of the unknowns from coarse unknown j. */
static double coarse_one(const fds__cg *m, size_t j) { return j < m->groups ? m->root[j] : 1; }

static fds_status factorise(fds__cg_stage *s, fds_error *err) {
    const fds__cg *m = s->many;
    const size_t q = s->coarse, n = m->d->players;
    double trace = s->mean * (double)(n - m->groups);
    for (size_t j = 0; j < q; j++)
        trace += s->gram[j * q + j];
    s->sum = trace / (double)s->size / (double)s->size;
    memcpy(s->factor, s->gram, q * q * sizeof *s->gram);
    for (size_t i = 0; i < q; i++) {
        s->factor[i * q + i] += i < m->groups ? s->penalty.ridge : 1;
        for (size_t j = 0; j < q; j++) {
            double both = coarse_one(m, i) * coarse_one(m, j);
            bool are_groups = i < m->groups && j < m->groups;
            s->factor[i * q + j] +=
                s->sum * both - (are_groups ? s->penalty.ridge * both / (double)n : 0);
        }
    }
    /* the lower triangle by rows is the upper one by columns */
    if (LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', (int)q, s->factor, (int)q) == 0)
        return FDS_OK;
    return fds__fail(err, FDS_ERR_DIVERGED,
                     "least squares: the coalitions do not distinguish all groups; use more "
                     "coalitions");
}

fds_status fds__cg_stage_penalise(fds__cg_stage *s, fds__penalty penalty, double tolerance,
                                  fds__cg_scratch *t, fds_error *err) {
    enum { WIDTH = FDS__BITS_TILE };
    OWNED double *b = NULL;
    TRY(NEW(b, 2 * s->size * WIDTH, err));
    double *x = b + s->size * WIDTH;
    s->penalty = penalty;
    TRY(factorise(s, err));
    for (size_t i = 0; i < s->size; i++)
        b[i * WIDTH] = 1;
    precondition(s, b, WIDTH, t, x);
    if (tolerance > 0)
        TRY(fds__cg_solve(s, b, WIDTH, tolerance, t, x, err));
    s->ones_sum = 0;
    for (size_t i = 0; i < s->size; i++) {
        s->ones[i] = x[i * WIDTH];
        s->ones_sum += s->ones[i];
    }
    return FDS_OK;
}
