/* SPDX-License-Identifier: Apache-2.0
 *
 * How good an explainer is on what it has not seen: the paper's loss (v(s) - v(0) - s'phi)^2 on
 * inputs and coalitions kept out, with the plan's weights. Nothing is drawn, so that two epochs can
 * be compared. The utilities are read once; an epoch is then a matrix product for each input. */
#include "explain/learn.h"

#include <cblas.h>
#include <math.h>

enum { TOGETHER = 64 }; /* inputs that the network answers at once */

struct learn_held {
    const fds_lesson *lesson;
    size_t rows, first; /* first: of the inputs kept out */
    double weights_sum;
    float *members;     /* (rows, players) 0 or 1 */
    float *v;           /* (held, classes, rows) v(s) - v(0) */
    double *read, *phi; /* (held, classes) of one row; (classes, players) of one input */
    float *phi32, *fit; /* (classes, players), (classes, rows) of one input */
};

static fds_status read_rows(learn_held *h, fds_error *err) {
    const fds_lesson *lesson = h->lesson;
    size_t n = lesson->players, columns = lesson->held * lesson->classes;
    size_t first = h->first * lesson->classes;
    for (size_t r = 0; r < h->rows; r++) {
        const uint64_t *bits = fds_plan_coalition(lesson->held_plan, r + 2);
        h->weights_sum += fds_plan_weight(lesson->held_plan, r + 2);
        for (size_t i = 0; i < n; i++)
            h->members[r * n + i] = fds_coalition_has(bits, i);
        FDS_TRY(lesson->held_rows->read(lesson->held_rows->context, 0, r + 2, first, columns,
                                        h->read, err));
        for (size_t c = 0; c < columns; c++)
            h->v[c * h->rows + r] = (float)(h->read[c] - lesson->empty[first + c]);
    }
    if (!(h->weights_sum > 0))
        return fds_fail(err, FDS_USAGE,
                        "the plan of coalitions kept out has none of positive weight");
    return FDS_OK;
}

static fds_status make(learn_held *h, fds_error *err) {
    const fds_lesson *lesson = h->lesson;
    size_t n = lesson->players, labels = lesson->classes, columns = lesson->held * labels, count;
    if (!fds_mul(columns, h->rows, &count))
        return fds_fail(err, FDS_LIMIT, "%zu coalitions of %zu inputs kept out are too many",
                        h->rows, lesson->held);
    h->members = fds_alloc_zero(h->rows, n * sizeof *h->members);
    h->v = fds_alloc_zero(count, sizeof *h->v);
    h->read = fds_alloc_zero(columns, sizeof *h->read);
    h->phi = fds_alloc_zero(labels * n, sizeof *h->phi);
    h->phi32 = fds_alloc_zero(labels * n, sizeof *h->phi32);
    h->fit = fds_alloc_zero(labels * h->rows, sizeof *h->fit);
    if (!h->members || !h->v || !h->read || !h->phi || !h->phi32 || !h->fit)
        return fds_fail_nomem(err, count * sizeof *h->v);
    return read_rows(h, err);
}

fds_status learn_held_create(const fds_lesson *lesson, learn_held **out, fds_error *err) {
    learn_held *h = fds_alloc_zero(1, sizeof *h);
    if (!h)
        return fds_fail_nomem(err, sizeof *h);
    h->lesson = lesson;
    h->rows = fds_plan_rows(lesson->held_plan) - 2;
    h->first = lesson->inputs - lesson->held;
    fds_status status = make(h, err);
    if (status != FDS_OK) {
        learn_held_free(h);
        return status;
    }
    *out = h;
    return FDS_OK;
}

void learn_held_free(learn_held *h) {
    if (!h)
        return;
    fds_free(h->members);
    fds_free(h->v);
    fds_free(h->read);
    fds_free(h->phi);
    fds_free(h->phi32);
    fds_free(h->fit);
    fds_free(h);
}

uint64_t learn_held_checksum(const learn_held *h) {
    return fds_checksum(h->v, h->lesson->held * h->lesson->classes * h->rows * sizeof *h->v);
}

/* Sum over labels and coalitions of one input, number place of those kept out. */
static double input_loss(learn_held *h, const learn_objective *o, size_t place, const float *u) {
    const fds_lesson *lesson = h->lesson;
    size_t n = lesson->players, labels = lesson->classes, rows = h->rows;
    const float *v = h->v + place * labels * rows;
    double loss = 0;
    learn_values(o, h->first + place, u, h->phi);
    for (size_t i = 0; i < labels * n; i++)
        h->phi32[i] = (float)h->phi[i];
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)labels, (int)rows, (int)n, 1,
                h->phi32, (int)n, h->members, (int)n, 0, h->fit, (int)rows);
    for (size_t y = 0; y < labels; y++)
        for (size_t r = 0; r < rows; r++) {
            double off = (double)v[y * rows + r] - (double)h->fit[y * rows + r];
            loss += fds_plan_weight(lesson->held_plan, r + 2) * off * off;
        }
    return loss;
}

fds_status learn_held_loss(learn_held *h, const learn_objective *o, fds_deep_infer *infer,
                           double *loss, fds_error *err) {
    const fds_lesson *lesson = h->lesson;
    size_t sample = fds_shape_size(lesson->shape), outputs = learn_objective_outputs(o);
    float *u = fds_alloc(TOGETHER * outputs * sizeof *u);
    if (!u)
        return fds_fail_nomem(err, TOGETHER * outputs * sizeof *u);
    fds_status status = FDS_OK;
    double sum = 0;
    for (size_t at = 0; status == FDS_OK && at < lesson->held; at += TOGETHER) {
        size_t count = FDS_MIN((size_t)TOGETHER, lesson->held - at);
        status = fds_deep_infer_run(infer, lesson->x + (h->first + at) * sample, count, u, err);
        for (size_t i = 0; status == FDS_OK && i < count; i++)
            sum += input_loss(h, o, at + i, u + i * outputs);
    }
    fds_free(u);
    *loss = sum / (h->weights_sum * (double)(lesson->held * lesson->classes));
    if (status == FDS_OK && !isfinite(*loss))
        status = fds_fail(err, FDS_DIVERGED,
                          "the explainer's loss on inputs kept out is no longer finite: use a "
                          "smaller learning rate");
    return status;
}
