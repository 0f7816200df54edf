/* SPDX-License-Identifier: Apache-2.0
 *
 * How good an explainer is on what it has not seen: the paper's loss (v(s) - v(0) - s'phi)^2 on
 * validation inputs and validation coalitions, with the plan's weights. Nothing is random, so that
 * two epochs can be compared. The utilities are read once; an epoch is then a matrix product per
 * input. */
#include "explain/learn.h"

#include <cblas.h>
#include <math.h>

enum { TOGETHER = 64 }; /* inputs that the network answers at once */

static fds_status read_rows(learn_validation *h, fds_error *err) {
    const fds__training *training = h->training;
    size_t labels = training->classes, columns = training->validation * labels;
    size_t first = h->first * labels;
    for (size_t r = 0; r < h->rows; r++) {
        const uint64_t *bits = fds_plan_coalition(training->validation_plan, r + 2);
        h->weights_sum += fds_plan_weight(training->validation_plan, r + 2);
        learn_members(training, bits, h->phi);
        for (size_t i = 0; i < h->width; i++)
            h->members[r * h->width + i] = (float)h->phi[i];
        TRY(training->validation_rows->read(training->validation_rows->context, 0, r + 2, first,
                                            columns, h->read, err));
        for (size_t c = 0; c < columns; c++)
            h->v[c * h->rows + r] =
                (float)(h->read[c] - training->empty[first + c] -
                        learn_equal_share(training, bits, h->first + c / labels, c % labels));
    }
    if (!(h->weights_sum > 0))
        return fds__fail(err, FDS_ERR_USAGE,
                         "the plan has no validation coalition of positive weight");
    return FDS_OK;
}

fds_status learn_validation_init(learn_validation *h, const fds__training *training,
                                 fds_error *err) {
    size_t n = training->rank ? training->rank : training->players, labels = training->classes;
    *h = (learn_validation){.training = training,
                            .width = n,
                            .rows = fds_plan_rows(training->validation_plan) - 2,
                            .first = training->inputs - training->validation};
    TRY(RESERVE(h->members, h->rows, n, err));
    TRY(RESERVE(h->v, training->validation * labels, h->rows, err));
    TRY(RESERVE(h->read, training->validation, labels, err));
    TRY(RESERVE(h->phi, labels, n, err));
    TRY(RESERVE(h->phi32, labels, n, err));
    TRY(RESERVE(h->fit, labels, h->rows, err));
    return read_rows(h, err);
}

void learn_validation_free(learn_validation *h) {
    fds__free(h->members);
    fds__free(h->v);
    fds__free(h->read);
    fds__free(h->phi);
    fds__free(h->phi32);
    fds__free(h->fit);
}

uint64_t learn_validation_checksum(const learn_validation *h) {
    return fds_checksum(h->v,
                        h->training->validation * h->training->classes * h->rows * sizeof *h->v);
}

/* Sum over labels and coalitions of validation input number place. */
static double input_loss(learn_validation *h, const learn_objective *o, size_t place,
                         const float *u) {
    const fds__training *training = h->training;
    size_t n = h->width, labels = training->classes, rows = h->rows;
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
            loss += fds_plan_weight(training->validation_plan, r + 2) * off * off;
        }
    return loss;
}

fds_status learn_validation_loss(learn_validation *h, const learn_objective *o,
                                 fds__deep_infer *infer, double *loss, fds_error *err) {
    const fds__training *training = h->training;
    size_t sample = fds__shape_size(training->shape), outputs = o->outputs;
    float *u;
    TRY(RESERVE(u, TOGETHER, outputs, err));
    fds_status status = FDS_OK;
    double sum = 0;
    for (size_t at = 0; status == FDS_OK && at < training->validation; at += TOGETHER) {
        size_t count = MIN((size_t)TOGETHER, training->validation - at);
        status = fds__deep_infer_run(infer, training->x + (h->first + at) * sample, count, u, err);
        for (size_t i = 0; status == FDS_OK && i < count; i++)
            sum += input_loss(h, o, at + i, u + i * outputs);
    }
    fds__free(u);
    *loss = sum / (h->weights_sum * (double)(training->validation * training->classes));
    if (status == FDS_OK && !isfinite(*loss))
        status = fds__fail(err, FDS_ERR_DIVERGED,
                           "the explainer's loss on validation inputs is no longer finite: use a "
                           "smaller learning rate");
    return status;
}
