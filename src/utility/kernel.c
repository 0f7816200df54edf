/* SPDX-License-Identifier: Apache-2.0
 *
 * "kernel": kernel ridge regression on the coalition's samples, a cheap stand-in for a network that
 * was trained on them. With Y one row a sample, 1 at its label and 0 elsewhere, less 1/classes,
 *
 *     (K_SS + ridge I) B = Y_S        scores(x) = K_xS B        v = probabilities(scores)
 *
 * The two choices that make it resemble a network, similarity() and probabilities(), are a function
 * each. All kernel values are computed once; a coalition costs one Cholesky factorisation, done
 * here and not by a library, whose bits would depend on the processor. No samples: all
 * scores are 0 and all labels alike. */
#include "utility/utility.h"

#include <math.h>

/* What resembled LeNet-5 after 10 epochs on MNIST most, of several tried. */
static const double RIDGE = 0.5;     /* of the mean of K's diagonal */
static const double SHARPNESS = 4.0; /* of the softmax: scores lie within about +-1 */
static const double PI = 3.14159265358979323846;

typedef struct {
    double *factor;    /* (samples, samples): K_SS + ridge I, then its Cholesky factor */
    double *b;         /* (samples, classes) */
    double *scores;    /* (classes) */
    uint32_t *members; /* (samples) */
} desk;

typedef struct {
    const fds_value_data *data;
    double ridge;
    double *between; /* (samples, samples) */
    double *inputs;  /* (inputs, samples) */
    desk *desks;     /* (workers) */
} kernel;

/* ---- the two choices ---- */

/* The neural tangent kernel of a wide network with one hidden layer of ReLU, both layers trained,
 * on inputs of length 1: with the angle t between a and b,
 *     cos t (pi - t) / pi  +  (sin t + cos t (pi - t)) / pi.
 * An input of length 0 counts as at right angles to all others. aa, ab, bb: inner products. */
static double similarity(double aa, double ab, double bb) {
    double u = aa > 0 && bb > 0 ? ab / (sqrt(aa) * sqrt(bb)) : aa == bb ? 1.0 : 0.0;
    u = FDS_MAX(-1.0, FDS_MIN(1.0, u));
    double rest = PI - acos(u);
    return (2 * u * rest + sqrt(1 - u * u)) / PI;
}

/* Softmax of the scores, sharpened; scores are overwritten. */
static void probabilities(double *scores, uint32_t classes, float *probs) {
    double most = scores[0], sum = 0;
    for (uint32_t y = 1; y < classes; y++)
        most = FDS_MAX(most, scores[y]);
    for (uint32_t y = 0; y < classes; y++)
        sum += scores[y] = exp(SHARPNESS * (scores[y] - most));
    for (uint32_t y = 0; y < classes; y++)
        probs[y] = (float)(scores[y] / sum);
}

/* ---- making and freeing ---- */

static void kernel_free(void *self) {
    kernel *k = self;
    if (!k)
        return;
    for (unsigned w = 0; k->desks && w < k->data->workers; w++) {
        fds_free(k->desks[w].factor);
        fds_free(k->desks[w].b);
        fds_free(k->desks[w].scores);
        fds_free(k->desks[w].members);
    }
    fds_free(k->desks);
    fds_free(k->between);
    fds_free(k->inputs);
    fds_free(k);
}

/* Bytes in all; false beyond the limit. samples, inputs and classes each fit 32 bits. */
static bool count_bytes(const fds_value_data *data, size_t *bytes) {
    size_t n = data->samples->count, m = data->inputs->count;
    double desks = ((double)n + data->classes) * (double)n * data->workers;
    if (((double)n * (double)(n + m) + desks) * sizeof(double) > (double)FDS_MAX_VALUE_MEMORY)
        return false;
    *bytes =
        sizeof(kernel) + n * (n + m) * sizeof(double) +
        data->workers * (sizeof(desk) + (n * (n + data->classes) + data->classes) * sizeof(double) +
                         n * sizeof(uint32_t));
    return true;
}

static fds_status allocate(kernel *k, size_t bytes, fds_error *err) {
    const fds_value_data *data = k->data;
    size_t n = data->samples->count;
    k->between = fds_alloc_zero(n * n, sizeof *k->between);
    k->inputs = fds_alloc_zero(data->inputs->count * n, sizeof *k->inputs);
    k->desks = fds_alloc_zero(data->workers, sizeof *k->desks);
    bool right = k->between && k->inputs && k->desks;
    for (unsigned w = 0; right && w < data->workers; w++) {
        desk *d = &k->desks[w];
        d->factor = fds_alloc_zero(n * n, sizeof *d->factor);
        d->b = fds_alloc_zero(n * data->classes, sizeof *d->b);
        d->scores = fds_alloc_zero(data->classes, sizeof *d->scores);
        d->members = fds_alloc_zero(n, sizeof *d->members);
        right = d->factor && d->b && d->scores && d->members;
    }
    return right ? FDS_OK : fds_fail_nomem(err, bytes);
}

/* between[j] of one sample or input with samples 0 .. count-1; squares: of their lengths. */
static void compare(const float *x, const fds_inputs *samples, const double *squares, size_t count,
                    double *between) {
    double xx = fds_value_dot(x, x, samples->size);
    for (size_t j = 0; j < count; j++) {
        double product = fds_value_dot(x, samples->values + j * samples->size, samples->size);
        between[j] = similarity(xx, product, squares[j]);
    }
}

static fds_status compare_all(kernel *k, fds_error *err) {
    const fds_inputs *samples = k->data->samples, *inputs = k->data->inputs;
    const size_t n = samples->count, size = samples->size;
    double diagonal = 0, *squares = fds_alloc_zero(n, sizeof *squares);
    if (!squares)
        return fds_fail_nomem(err, n * sizeof *squares);
    for (size_t i = 0; i < n; i++) {
        const float *x = samples->values + i * size;
        squares[i] = fds_value_dot(x, x, size);
        compare(x, samples, squares, i + 1, k->between + i * n);
        for (size_t j = 0; j < i; j++)
            k->between[j * n + i] = k->between[i * n + j];
        diagonal += k->between[i * n + i];
    }
    for (size_t i = 0; i < inputs->count; i++)
        compare(inputs->values + i * size, samples, squares, n, k->inputs + i * n);
    k->ridge = RIDGE * diagonal / (double)n;
    fds_free(squares);
    return FDS_OK;
}

static bool describe(json_t *about) {
    json_t *part = json_pack("{s:s, s:f, s:f}", "similarity", "ntk of relu, one hidden layer",
                             "ridge", RIDGE, "sharpness", SHARPNESS);
    bool right = part && json_object_update(about, part) == 0;
    json_decref(part);
    return right;
}

fds_status fds_kernel_create(fds_value_making *making, fds_error *err) {
    if (!count_bytes(making->data, &making->memory))
        return fds_fail(err, FDS_LIMIT,
                        "kernels of %zu samples and %zu inputs for %u workers take more than %zu "
                        "bytes",
                        making->data->samples->count, making->data->inputs->count,
                        making->data->workers, FDS_MAX_VALUE_MEMORY);
    kernel *k = fds_alloc_zero(1, sizeof *k);
    if (!k)
        return fds_fail_nomem(err, sizeof *k);
    k->data = making->data;
    fds_status status = allocate(k, making->memory, err);
    if (status == FDS_OK && !describe(making->about))
        status = fds_fail_nomem(err, 1);
    if (status == FDS_OK)
        status = compare_all(k, err);
    if (status != FDS_OK) {
        kernel_free(k);
        return status;
    }
    making->self = k;
    return FDS_OK;
}

/* ---- answering ---- */

/* y += a x. Every loop below is made of these: vectors change no bit of it. */
static void add_scaled(size_t count, double a, const double *restrict x, double *restrict y) {
    for (size_t i = 0; i < count; i++)
        y[i] += a * x[i];
}

/* The upper factor U of U'U, (n, n), in the place of the upper half of a. Returns n, or the row
 * at which a is found not to be positive definite. */
static size_t factorise(double *a, size_t n) {
    for (size_t k = 0; k < n; k++) {
        double *row = a + k * n, pivot = row[k];
        if (!(pivot > 0))
            return k;
        for (size_t j = k; j < n; j++)
            row[j] /= sqrt(pivot);
        for (size_t i = k + 1; i < n; i++)
            add_scaled(n - i, -row[i], row + i, a + i * n + i);
    }
    return n;
}

/* b (n, columns) becomes the solution of U'U x = b. */
static void solve(const double *u, size_t n, double *b, size_t columns) {
    for (size_t k = 0; k < n; k++) {
        for (size_t c = 0; c < columns; c++)
            b[k * columns + c] /= u[k * n + k];
        for (size_t i = k + 1; i < n; i++)
            add_scaled(columns, -u[k * n + i], b + k * columns, b + i * columns);
    }
    for (size_t k = n; k-- > 0;) {
        for (size_t i = k + 1; i < n; i++)
            add_scaled(columns, -u[k * n + i], b + i * columns, b + k * columns);
        for (size_t c = 0; c < columns; c++)
            b[k * columns + c] /= u[k * n + k];
    }
}

static void gather(const kernel *k, desk *d, size_t count) {
    const size_t n = k->data->samples->count, classes = k->data->classes;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i; j < count; j++)
            d->factor[i * count + j] = k->between[d->members[i] * n + d->members[j]];
        d->factor[i * count + i] += k->ridge;
        for (size_t y = 0; y < classes; y++)
            d->b[i * classes + y] = -1.0 / (double)classes;
        d->b[i * classes + k->data->samples->labels[d->members[i]]] += 1.0;
    }
}

static fds_status kernel_eval(const void *self, unsigned worker, const uint64_t *coalition,
                              float *probs, fds_error *err) {
    const kernel *k = self;
    const fds_value_data *data = k->data;
    const size_t n = data->samples->count, classes = data->classes;
    desk *d = &k->desks[worker];
    size_t count = fds_value_members(data, coalition, d->members);
    gather(k, d, count);
    size_t done = factorise(d->factor, count);
    if (done < count)
        return fds_fail(err, FDS_DIVERGED, "sample %u: the kernel is not positive definite there",
                        data->samples->ids[d->members[done]]);
    solve(d->factor, count, d->b, classes);
    for (size_t x = 0; x < data->inputs->count; x++) {
        for (size_t y = 0; y < classes; y++)
            d->scores[y] = 0;
        for (size_t i = 0; i < count; i++)
            add_scaled(classes, k->inputs[x * n + d->members[i]], d->b + i * classes, d->scores);
        probabilities(d->scores, data->classes, probs + x * classes);
    }
    return FDS_OK;
}

const fds_value_kind fds_kernel_kind = {.eval = kernel_eval, .free = kernel_free};
