/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernel ridge regression on the coalition's samples, for any kernel. Y has a row for each sample,
 * 1 at its label and 0 elsewhere, minus a constant:
 *
 *     (K_SS + ridge I) B = Y_S        scores(x) = K_xS B        v = softmax(sharpness scores)
 *
 * For a dataset of targets Y has one column, the standardised targets, and the score is the
 * prediction.
 *
 * kernel.c and entk.c fill in all kernel values, once; a coalition then costs one Cholesky
 * factorisation. It is done here, since the bits of a library's would depend on the processor.
 * Without samples all scores are 0 and all labels equally likely.
 *
 * A kernel is positive semidefinite, so only rounding, of the kernel or of the factorisation, makes
 * a pivot less than the ridge: such a pivot is replaced by the ridge. */
#include "utility/utility.h"

#include <math.h>

/* A worker's scratch, made when it first evaluates: FreeShap uses the kernel alone and never does. */
struct fds__regression_worker {
    double *b;         /* (samples, classes) */
    double *scores;    /* (classes) */
    uint32_t *members; /* (samples) */
    double factor[];   /* (samples, samples): K_SS + ridge I, then its factor; then the others */
};

/* ---- making and freeing ---- */

void fds__regression_free(void *self) {
    fds__regression *r = self;
    if (!r)
        return;
    for (unsigned w = 0; r->workers && w < r->data->workers; w++)
        fds__free(r->workers[w]);
    fds__free(r->workers);
    fds__free(r->between);
    fds__free(r->inputs);
    fds__free(r);
}

static size_t worker_bytes(const fds__utility_data *data) {
    size_t n = data->samples->count, numbers = n * (n + data->classes) + data->classes;
    return sizeof(struct fds__regression_worker) + numbers * sizeof(double) + n * sizeof(uint32_t);
}

/* The total; false beyond the limit. samples, inputs and classes each fit 32 bits. */
static bool count_bytes(const fds__utility_data *data, size_t *bytes) {
    size_t n = data->samples->count, m = data->inputs->count;
    double workers = ((double)n + data->classes) * (double)n * data->workers;
    if (((double)n * (double)(n + m) + workers) * sizeof(double) > (double)FDS__MAX_UTILITY_MEMORY)
        return false;
    *bytes = sizeof(fds__regression) + n * (n + m) * sizeof(double) +
             data->workers * (sizeof(struct fds__regression_worker *) + worker_bytes(data));
    return true;
}

static fds_status find_worker(const fds__regression *r, unsigned worker,
                              struct fds__regression_worker **out, fds_error *err) {
    const size_t n = r->data->samples->count, classes = r->data->classes;
    struct fds__regression_worker *d = r->workers[worker];
    if (!d) {
        d = r->workers[worker] = fds__alloc_zero(1, worker_bytes(r->data));
        if (!d)
            return fds__fail_nomem(err, worker_bytes(r->data));
        d->b = d->factor + n * n;
        d->scores = d->b + n * classes;
        d->members = (uint32_t *)(d->scores + classes);
    }
    *out = d;
    return FDS_OK;
}

fds_status fds__regression_create(fds__utility_making *making, fds__regression **out,
                                  fds_error *err) {
    const fds__utility_data *data = making->data;
    if (!count_bytes(data, &making->memory))
        return fds__fail(err, FDS_ERR_LIMIT,
                         "kernels of %zu samples and %zu inputs for %u workers take more than %zu "
                         "bytes",
                         data->samples->count, data->inputs->count, data->workers,
                         FDS__MAX_UTILITY_MEMORY);
    const size_t n = data->samples->count;
    fds__regression *r;
    TRY(NEW(r, 1, err));
    *out = making->self = r;
    r->data = data;
    TRY(NEW(r->between, n * n, err));
    TRY(NEW(r->inputs, data->inputs->count * n, err));
    return NEW(r->workers, data->workers, err);
}

/* ---- answering ---- */

void fds__regression_step(double *a, size_t n, size_t k, double pivot) {
    assert(pivot > 0);
    double *row = a + k * n;
    const double root = sqrt(pivot);
    for (size_t j = k; j < n; j++)
        row[j] /= root;
    for (size_t i = k + 1; i < n; i++)
        fds__utility_add(n - i, -row[i], row + i, a + i * n + i);
}

/* The upper factor U of U'U, (n, n), replaces the upper half of a. */
static void factorise(double *a, size_t n, double ridge) {
    for (size_t k = 0; k < n; k++) {
        a[k * n + k] = MAX(a[k * n + k], ridge);
        fds__regression_step(a, n, k, a[k * n + k]);
    }
}

/* b (n, columns) becomes the solution of U'U x = b. */
static void solve(const double *u, size_t n, double *b, size_t columns) {
    for (size_t k = 0; k < n; k++) {
        for (size_t c = 0; c < columns; c++)
            b[k * columns + c] /= u[k * n + k];
        for (size_t i = k + 1; i < n; i++)
            fds__utility_add(columns, -u[k * n + i], b + k * columns, b + i * columns);
    }
    for (size_t k = n; k-- > 0;) {
        for (size_t i = k + 1; i < n; i++)
            fds__utility_add(columns, -u[k * n + i], b + i * columns, b + k * columns);
        for (size_t c = 0; c < columns; c++)
            b[k * columns + c] /= u[k * n + k];
    }
}

static void gather(const fds__regression *r, struct fds__regression_worker *d, size_t count) {
    const size_t n = r->data->samples->count, classes = r->data->classes;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i; j < count; j++)
            d->factor[i * count + j] = r->between[d->members[i] * n + d->members[j]];
        d->factor[i * count + i] += r->ridge;
        if (r->data->is_regression) {
            d->b[i] = (double)r->data->samples->targets[d->members[i]];
            continue;
        }
        for (size_t y = 0; y < classes; y++)
            d->b[i * classes + y] = -r->shift;
        d->b[i * classes + r->data->samples->labels[d->members[i]]] += 1.0;
    }
}

void fds__regression_probs(const fds__regression *r, double *scores) {
    const uint32_t classes = r->data->classes;
    double most = scores[0], sum = 0;
    for (uint32_t y = 1; y < classes; y++)
        most = MAX(most, scores[y]);
    for (uint32_t y = 0; y < classes; y++)
        sum += scores[y] = exp(r->sharpness * (scores[y] - most));
    for (uint32_t y = 0; y < classes; y++)
        scores[y] /= sum;
}

fds_status fds__regression_eval(const void *self, unsigned worker, const uint64_t *coalition,
                                float *probs, fds_error *err) {
    const fds__regression *r = self;
    const size_t n = r->data->samples->count, classes = r->data->classes;
    struct fds__regression_worker *d = NULL;
    TRY(find_worker(r, worker, &d, err));
    size_t count = fds__utility_members(r->data, coalition, d->members);
    gather(r, d, count);
    factorise(d->factor, count, r->ridge);
    solve(d->factor, count, d->b, classes);
    for (size_t x = 0; x < r->data->inputs->count; x++) {
        for (size_t y = 0; y < classes; y++)
            d->scores[y] = 0;
        for (size_t i = 0; i < count; i++)
            fds__utility_add(classes, r->inputs[x * n + d->members[i]], d->b + i * classes,
                             d->scores);
        if (!r->data->is_regression)
            fds__regression_probs(r, d->scores);
        for (size_t y = 0; y < classes; y++)
            probs[x * classes + y] = (float)d->scores[y];
    }
    return FDS_OK;
}

const fds__regression *fds__utility_regression(const fds_utility *utility) {
    return utility->kind->eval == fds__regression_eval ? utility->self : NULL;
}
