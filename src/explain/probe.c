/* SPDX-License-Identifier: Apache-2.0
 *
 * The probing explainer. A value is a weighted sum of what all sub-models answer for the input, and
 * their answers depend on each other: from those of the first few hundred, the probes, a linear map
 * predicts what least squares would make of all of them,
 *
 *     phi_i = offset_i + sum_k map_ik v(s_k).
 *
 * There is one map for each label, learnt by ridge regression on the training inputs. Inputs for
 * which another label is predicted count less: they are many, and answers are mostly asked for the
 * predicted label. Validation inputs choose the strength of the ridge, one for all labels.
 *
 * The file is safetensors: "maps" (classes, players, probes) and "offsets" (classes, players).
 */
#include "explain/run.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

#define FORMAT "fds-probe 1"
enum { BLOCK = 128 }; /* inputs per matrix product */

static const double strengths[] = {0.1, 0.3, 1, 3, 10};
enum { STRENGTHS = sizeof strengths / sizeof *strengths };
static const double OTHER_WEIGHT = 0.1; /* of an input for which another label is predicted */

struct fds__probe {
    size_t probes, players;
    uint32_t classes;
    float *maps;    /* (classes, players, probes) */
    float *offsets; /* (classes, players) */
};

void fds__probe_free(fds__probe *probe) {
    if (!probe)
        return;
    fds__free(probe->maps);
    fds__free(probe->offsets);
    fds__free(probe);
}

static fds_status make(size_t probes, size_t players, uint32_t classes, fds__probe **out,
                       fds_error *err) {
    TRY(RESERVE(*out, 1, 1, err));
    **out = (fds__probe){.probes = probes, .players = players, .classes = classes};
    TRY(RESERVE((*out)->maps, classes * players, probes, err));
    return RESERVE((*out)->offsets, classes, players, err);
}

void fds__probe_run(const fds__probe *p, const double *answers, uint32_t label, double *values,
                    double *spread) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < p->players; i++) {
        const float *map = p->maps + (label * p->players + i) * p->probes;
        double value = (double)p->offsets[label * p->players + i];
        for (size_t k = 0; k < p->probes; k++)
            value += (double)map[k] * answers[k];
        values[i] = value;
    }
    for (size_t k = 0; k < p->probes; k++)
        sum += answers[k];
    for (size_t k = 0; k < p->probes; k++)
        squares += (answers[k] - sum / (double)p->probes) * (answers[k] - sum / (double)p->probes);
    *spread = squares / (double)p->probes;
}

/* ---- learning ---- */

/* Sums over the training inputs of one label, about their means. */
typedef struct {
    double *gram;  /* (probes, probes) */
    double *cross; /* (probes, players) */
    double *mean;  /* (probes) */
    double *value; /* (players) */
} sums;

typedef struct {
    const fds__training *data;
    const uint32_t *predicted; /* (inputs) */
    float *answers;            /* (inputs, classes, probes) */
    sums *sums;                /* (classes) */
    double *errors;            /* (strengths, classes): on validation inputs */
    const fds_events *events;
    fds__probe *probe;
    size_t chosen; /* among the strengths */
} teacher;

static fds_status read_answers(teacher *t, fds_error *err) {
    size_t probes = t->probe->probes, columns = t->data->inputs * t->data->classes;
    double start_s = fds__now_s();
    OWNED double *row = NULL;
    TRY(RESERVE(row, columns, 1, err));
    TRY(RESERVE(t->answers, probes, columns, err));
    for (size_t k = 0; k < probes; k++) {
        TRY(t->data->rows->read(t->data->rows->context, 0, k, 0, columns, row, err));
        for (size_t c = 0; c < columns; c++)
            t->answers[c * probes + k] = (float)row[c];
        TRY(fds__report(t->events, "explainer", "probes", k + 1, probes, start_s, err));
    }
    return FDS_OK;
}

/* Answers of the probes and values of the players for one label of input x. */
static void take_input(const teacher *t, uint32_t label, size_t x, double *answers,
                       double *values) {
    const fds__training *d = t->data;
    size_t probes = t->probe->probes, at = x * d->classes + label;
    for (size_t k = 0; k < probes; k++)
        answers[k] = (double)t->answers[at * probes + k];
    for (size_t i = 0; i < d->players; i++)
        values[i] = (double)d->targets[at * d->players + i];
}

/* Sums over all training inputs: first the means, then what is about them. a (BLOCK, probes) and
 * v (BLOCK, players) are scratch. */
static fds_status add_inputs(const teacher *t, uint32_t label, sums *s, double *a, double *v,
                             fds_error *err) {
    const fds__training *d = t->data;
    const size_t probes = t->probe->probes, n = d->players, train = d->inputs - d->validation;
    double total = 0;
    for (size_t x = 0; x < train; x++) {
        double weight = t->predicted[x] == label ? 1 : OTHER_WEIGHT;
        take_input(t, label, x, a, v);
        cblas_daxpy((int)probes, weight, a, 1, s->mean, 1);
        cblas_daxpy((int)n, weight, v, 1, s->value, 1);
        total += weight;
    }
    cblas_dscal((int)probes, 1 / total, s->mean, 1);
    cblas_dscal((int)n, 1 / total, s->value, 1);
    for (size_t first = 0; first < train; first += BLOCK) {
        size_t count = MIN(train - first, (size_t)BLOCK);
        for (size_t j = 0; j < count; j++) {
            double *answers = a + j * probes, *values = v + j * n;
            double root = sqrt(t->predicted[first + j] == label ? 1 : OTHER_WEIGHT);
            take_input(t, label, first + j, answers, values);
            for (size_t k = 0; k < probes; k++)
                answers[k] = root * (answers[k] - s->mean[k]);
            for (size_t i = 0; i < n; i++)
                values[i] = root * (values[i] - s->value[i]);
        }
        cblas_dsyrk(CblasRowMajor, CblasUpper, CblasTrans, (int)probes, (int)count, 1, a,
                    (int)probes, 1, s->gram, (int)probes);
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)probes, (int)n, (int)count, 1, a,
                    (int)probes, v, (int)n, 1, s->cross, (int)n);
        TRY(fds__pool_check(err));
    }
    return FDS_OK;
}

static fds_status sum_label(void *context, size_t label, unsigned worker, fds_error *err) {
    teacher *t = context;
    const size_t probes = t->probe->probes, n = t->data->players;
    sums *s = &t->sums[label];
    OWNED double *a = NULL, *v = NULL;
    (void)worker;
    TRY(RESERVE(a, BLOCK, probes, err));
    TRY(RESERVE(v, BLOCK, n, err));
    TRY(RESERVE(s->gram, probes, probes, err));
    TRY(RESERVE(s->cross, probes, n, err));
    TRY(RESERVE(s->mean, probes, 1, err));
    TRY(RESERVE(s->value, n, 1, err));
    return add_inputs(t, (uint32_t)label, s, a, v, err);
}

/* The map of a label, map (probes, players), with a ridge. gram (probes, probes) is scratch. */
static fds_status solve(const sums *s, size_t probes, size_t players, double ridge, double *gram,
                        double *map, fds_error *err) {
    memcpy(gram, s->gram, probes * probes * sizeof *gram);
    memcpy(map, s->cross, probes * players * sizeof *map);
    for (size_t k = 0; k < probes; k++)
        gram[k * probes + k] += ridge;
    /* the upper triangle by rows is the lower one by columns */
    if (LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', (int)probes, gram, (int)probes) != 0)
        return fds__fail(err, FDS_ERR_DIVERGED, "the answers of the sub-models are not finite");
    /* gram = L L', and L is the transpose of the upper triangle by rows */
    cblas_dtrsm(CblasRowMajor, CblasLeft, CblasUpper, CblasTrans, CblasNonUnit, (int)probes,
                (int)players, 1, gram, (int)probes, map, (int)players);
    cblas_dtrsm(CblasRowMajor, CblasLeft, CblasUpper, CblasNoTrans, CblasNonUnit, (int)probes,
                (int)players, 1, gram, (int)probes, map, (int)players);
    return FDS_OK;
}

/* Squared errors of a map on the validation inputs for which the label is predicted. */
static double score(const teacher *t, uint32_t label, const sums *s, const double *map, double *a,
                    double *v) {
    const fds__training *d = t->data;
    const size_t probes = t->probe->probes, n = d->players;
    double sum = 0;
    for (size_t x = d->inputs - d->validation; x < d->inputs; x++) {
        if (t->predicted[x] != label)
            continue;
        take_input(t, label, x, a, v);
        cblas_daxpy((int)probes, -1, s->mean, 1, a, 1);
        cblas_daxpy((int)n, -1, s->value, 1, v, 1);
        cblas_dgemv(CblasRowMajor, CblasTrans, (int)probes, (int)n, -1, map, (int)n, a, 1, 1, v, 1);
        sum += cblas_ddot((int)n, v, 1, v, 1);
    }
    return sum;
}

/* Tries every strength for a label, or, once one is chosen, keeps its map. */
static fds_status learn_label(void *context, size_t label, unsigned worker, fds_error *err) {
    teacher *t = context;
    fds__probe *p = t->probe;
    const size_t probes = p->probes, n = p->players;
    const sums *s = &t->sums[label];
    OWNED double *gram = NULL, *map = NULL, *a = NULL, *v = NULL;
    (void)worker;
    TRY(RESERVE(gram, probes, probes, err));
    TRY(RESERVE(map, probes, n, err));
    TRY(RESERVE(a, probes, 1, err));
    TRY(RESERVE(v, n, 1, err));
    if (t->chosen == STRENGTHS) {
        for (size_t i = 0; i < STRENGTHS; i++) {
            TRY(fds__pool_check(err));
            TRY(solve(s, probes, n, strengths[i], gram, map, err));
            t->errors[i * p->classes + label] = score(t, (uint32_t)label, s, map, a, v);
        }
        return FDS_OK;
    }
    TRY(solve(s, probes, n, strengths[t->chosen], gram, map, err));
    for (size_t i = 0; i < n; i++) {
        double offset = s->value[i];
        for (size_t k = 0; k < probes; k++) {
            p->maps[(label * n + i) * probes + k] = (float)map[k * n + i];
            offset -= map[k * n + i] * s->mean[k];
        }
        p->offsets[label * n + i] = (float)offset;
    }
    return FDS_OK;
}

static size_t choose(const teacher *t) {
    size_t best = 0;
    double least = INFINITY;
    for (size_t i = 0; i < STRENGTHS; i++) {
        double sum = 0;
        for (uint32_t y = 0; y < t->probe->classes; y++)
            sum += t->errors[i * t->probe->classes + y];
        if (sum < least) {
            least = sum;
            best = i;
        }
    }
    return best;
}

static fds_status teach(teacher *t, unsigned threads, fds_error *err) {
    uint32_t classes = t->data->classes;
    TRY(RESERVE(t->errors, STRENGTHS, classes, err));
    TRY(RESERVE(t->sums, classes, 1, err));
    TRY(read_answers(t, err));
    TRY(fds__pool_run(threads, classes, sum_label, t, "explainer", "labels", t->events, err));
    t->chosen = STRENGTHS;
    TRY(fds__pool_run(threads, classes, learn_label, t, "explainer", "labels", t->events, err));
    t->chosen = choose(t);
    return fds__pool_run(threads, classes, learn_label, t, "explainer", "labels", t->events, err);
}

fds_status fds__probe_learn(const fds__training *data, size_t probes, const uint32_t *predicted,
                            unsigned threads, const fds_events *events, fds__probe **out,
                            fds_error *err) {
    teacher t = {.data = data, .predicted = predicted, .events = events};
    fds_status status = make(probes, data->players, data->classes, out, err);
    t.probe = *out;
    fds__blas_begin();
    if (status == FDS_OK)
        status = teach(&t, threads, err);
    fds__blas_end();
    for (uint32_t y = 0; t.sums && y < data->classes; y++) {
        fds__free(t.sums[y].gram);
        fds__free(t.sums[y].cross);
        fds__free(t.sums[y].mean);
        fds__free(t.sums[y].value);
    }
    fds__free(t.sums);
    fds__free(t.errors);
    fds__free(t.answers);
    return status;
}

/* ---- the file ---- */

fds_status fds__probe_save(const fds__probe *p, const char *path, fds_error *err) {
    const uint32_t classes = p->classes, players = (uint32_t)p->players;
    const fds__tensor tensors[] = {
        {"maps", 3, {classes, players, (uint32_t)p->probes}, p->maps},
        {"offsets", 2, {classes, players}, p->offsets},
    };
    const fds__meta meta = {"format", FORMAT};
    return fds__safetensors_write(path, tensors, 2, &meta, 1, NULL, err);
}

static fds_status take_tensor(const char *path, const fds__safetensors *file, const char *name,
                              const uint32_t dims[3], uint32_t rank, float *out, fds_error *err) {
    const fds__tensor *t = fds__safetensors_find(file, name);
    size_t count = 1;
    bool fits = t && t->rank == rank;
    for (uint32_t i = 0; i < rank; i++) {
        fits = fits && t->dims[i] == dims[i];
        count *= dims[i];
    }
    if (!fits)
        return fds__fail(err, FDS_ERR_SHAPE,
                         "%s: it must have a tensor \"%s\" for %u classes, %u players and %u "
                         "sub-models",
                         path, name, dims[0], dims[1], dims[2]);
    for (size_t i = 0; i < count; i++)
        if (!isfinite(t->values[i]))
            return fds__fail(err, FDS_ERR_FORMAT, "%s: \"%s\", number %zu is not finite", path,
                             name, i);
    memcpy(out, t->values, count * sizeof *out);
    return FDS_OK;
}

fds_status fds__probe_load(const char *path, size_t probes, size_t players, uint32_t classes,
                           fds__probe **out, fds_error *err) {
    const uint32_t dims[3] = {classes, (uint32_t)players, (uint32_t)probes};
    fds__safetensors *file;
    TRY(fds__safetensors_read(path, &file, err));
    const char *format = fds__safetensors_meta(file, "format");
    fds_status status = make(probes, players, classes, out, err);
    if (status == FDS_OK && (!format || strcmp(format, FORMAT) != 0))
        status = fds__fail(err, FDS_ERR_FORMAT, "%s: \"format\" must be \"" FORMAT "\"", path);
    if (status == FDS_OK)
        status = take_tensor(path, file, "maps", dims, 3, (*out)->maps, err);
    if (status == FDS_OK)
        status = take_tensor(path, file, "offsets", dims, 2, (*out)->offsets, err);
    fds__safetensors_free(file);
    return status;
}
