/* SPDX-License-Identifier: Apache-2.0
 *
 * Players that a run has never seen. With factors (factors.c) a value is a product of what the network
 * says of the input and of a player's row h_i of H. A ridge regression predicts that row from the
 * player's own samples,
 *
 *     h = z' map,   z = (m / mean m)^power  mean over its m samples of  [e_y x (f / scale, 1), 1],
 *
 * where f are the inputs of the last layer of the service model, e_y says the label, and m is the
 * number of samples. Predictions of the service model are no part of z: of known players it has learnt
 * the labels by heart, of new ones it has not, and the two would not be alike.
 *
 * Ridge and power are those whose predictions are best for players that were left out, factors
 * weighted by their share in the values. Leaving one out needs no second regression. The standard error
 * of a predicted value is that of players left out, on validation inputs, among predictions of like
 * size: a tenth of them each.
 *
 * At most MOST players, evenly spaced, learn and are left out.
 *
 * The file is safetensors: "map" (numbers of z, rank) and "errors" (2, BINS): from which absolute value
 * on, and the root mean square error. Metadata: format "fds-newcomers 1"; players, of the run; scale,
 * power, mean_size; agreement, the mean correlation over players left out of predicted with
 * least-squares values.
 */
#include "explain/run.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "fds-newcomers 1"
enum { MOST = 1000, BINS = 10, CHUNK = 256 };

static const double powers[] = {0, 0.5, 1}, ridges[] = {1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1, 3};
enum { POWERS = sizeof powers / sizeof *powers, RIDGES = sizeof ridges / sizeof *ridges };

struct fds__newcomers {
    size_t players, rank, features; /* players: of the run */
    uint32_t classes;
    double scale, power, mean_size, agreement;
    float *map;             /* (size_of, rank) */
    float errors[2 * BINS]; /* absolute values from which on, and errors */
};

static size_t size_of(const fds__newcomers *c) { return c->classes * (c->features + 1) + 1; }

void fds__newcomers_free(fds__newcomers *c) {
    if (c)
        fds__free(c->map);
    fds__free(c);
}

double fds__newcomers_agreement(const fds__newcomers *c) { return c->agreement; }

/* ---- what a player's samples are like ---- */

/* Adds the mean of [e_y x (f, 1)] over samples of x to z, and returns the sum of the squares of f. */
static fds_status pool_samples(fds_lane *lane, const float *weights, const fds_inputs *x,
                               const uint32_t *labels, size_t features, double *z, double *squares,
                               fds_error *err) {
    OWNED float *f = NULL;
    TRY(RESERVE(f, MIN(x->count, (size_t)CHUNK), features, err));
    for (size_t first = 0; first < x->count; first += CHUNK) {
        size_t count = MIN(x->count - first, (size_t)CHUNK);
        TRY(fds__lane_features(lane, x, first, count, weights, f, err));
        for (size_t i = 0; i < count; i++) {
            double *own = z + labels[first + i] * (features + 1);
            for (size_t k = 0; k < features; k++) {
                own[k] += (double)f[i * features + k] / (double)x->count;
                *squares += (double)f[i * features + k] * (double)f[i * features + k];
            }
            own[features] += 1 / (double)x->count;
        }
    }
    return FDS_OK;
}

/* z (size_of), squares: of the features; labels (count). */
static fds_status pool(const fds_model *service, const fds_net *net, fds_lane *lane,
                       const fds_dataset *ds, const uint32_t *index, size_t count,
                       const uint32_t *labels, double *z, double *squares, fds_error *err) {
    const fds__model_info info = fds__model_get_info(service);
    fds_inputs *x = NULL;
    TRY(fds_inputs_create(ds, index, count, info.mean, info.std, &x, err));
    fds_status status = pool_samples(lane, fds__model_weights(service), x, labels,
                                     fds__net_features(net), z, squares, err);
    fds_inputs_free(x);
    return status;
}

/* The units of z. */
static void finish_z(const fds__newcomers *c, size_t samples, double power, double *z) {
    double size = pow((double)samples / c->mean_size, power);
    for (size_t y = 0; y < c->classes; y++)
        for (size_t k = 0; k <= c->features; k++)
            z[y * (c->features + 1) + k] *= k < c->features ? size / c->scale : size;
    z[size_of(c) - 1] = size;
}

/* ---- learning ---- */

typedef struct {
    const fds__newcomer_job *job;
    fds__newcomers *c;
    fds_net *net;
    fds_lane *lane;
    size_t n, size;
    size_t *sizes;              /* (n) samples */
    double *raw, *z;            /* (n, size) with power 0, and with the power that is tried */
    double *kernel, *spectrum;  /* (n, n) then its eigenvectors as rows; (n) */
    double *h, *weighted;       /* (n, rank), and by the factors' share */
    double *turned, *fit, *off; /* (n, rank) */
    double *left, *best;        /* (n, rank) rows predicted for players left out */
    double *shares;             /* (rank) roots of the mean squares of the coefficients */
} learner;

static size_t player_at(const learner *l, size_t i) { return i * l->job->factors->players / l->n; }

static fds_status pool_players(learner *l, fds_error *err) {
    const fds__newcomer_job *j = l->job;
    double squares = 0, start_s = fds__now_s();
    size_t samples = 0;
    for (size_t i = 0; i < l->n; i++) {
        const uint32_t *index;
        size_t count = fds_players_samples(j->problem->players, player_at(l, i), &index);
        OWNED uint32_t *labels = NULL;
        TRY(RESERVE(labels, count, 1, err));
        for (size_t s = 0; s < count; s++)
            labels[s] = j->problem->train->labels[index[s]];
        TRY(pool(j->service, l->net, l->lane, j->problem->train, index, count, labels,
                 l->raw + i * l->size, &squares, err));
        l->sizes[i] = count;
        samples += count;
        TRY(fds__report(j->events, "new players", "players", i + 1, l->n, start_s, err));
    }
    l->c->mean_size = (double)samples / (double)l->n;
    l->c->scale = squares > 0 ? sqrt(squares / (double)samples) : 1;
    return FDS_OK;
}

static void take_factors(learner *l) {
    const fds__newcomer_job *j = l->job;
    size_t rank = j->factors->rank;
    for (size_t c = 0; c < j->columns; c++)
        for (size_t k = 0; k < rank; k++)
            l->shares[k] += (double)j->coefficients[c * rank + k] *
                            (double)j->coefficients[c * rank + k] / (double)j->columns;
    for (size_t k = 0; k < rank; k++)
        l->shares[k] = sqrt(l->shares[k]);
    for (size_t i = 0; i < l->n * rank; i++) {
        l->h[i] = (double)j->factors->h[player_at(l, i / rank) * rank + i % rank];
        l->weighted[i] = l->h[i] * l->shares[i % rank];
    }
}

static double ridge_of(const learner *l, double ridge) {
    double mean = 0;
    for (size_t i = 0; i < l->n; i++)
        mean += fmax(l->spectrum[i], 0) / (double)l->n;
    return ridge * mean + 1e-300;
}

/* The kernel of a power, by its eigenvectors. */
static fds_status decompose(learner *l, double power, fds_error *err) {
    int n = (int)l->n, size = (int)l->size;
    OWNED double *work = NULL;
    TRY(RESERVE(work, l->n, 36, err));
    memcpy(l->z, l->raw, l->n * l->size * sizeof *l->z);
    for (size_t i = 0; i < l->n; i++)
        finish_z(l->c, l->sizes[i], power, l->z + i * l->size);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, n, size, 1, l->z, size, l->z, size, 0,
                l->kernel, n);
    if (LAPACKE_dsyev_work(LAPACK_COL_MAJOR, 'V', 'L', n, l->kernel, n, l->spectrum, work, 36 * n))
        return fds__fail(err, FDS_ERR_DIVERGED, "the samples of the players have no finite kernel");
    return FDS_OK;
}

/* Predicts each player's row of target (n, rank) without that player: left. Returns the squared error. */
static double leave_out(learner *l, double ridge, const double *target, double *left) {
    int n = (int)l->n, rank = (int)l->job->factors->rank;
    double strength = ridge_of(l, ridge), error = 0;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, rank, n, 1, l->kernel, n, target,
                rank, 0, l->turned, rank);
    for (size_t j = 0; j < l->n; j++)
        cblas_dscal(rank, fmax(l->spectrum[j], 0) / (fmax(l->spectrum[j], 0) + strength),
                    l->turned + j * (size_t)rank, 1);
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, rank, n, 1, l->kernel, n, l->turned,
                rank, 0, l->fit, rank);
    for (size_t i = 0; i < l->n; i++) {
        double own = 0; /* the weight of the player's own row */
        for (size_t j = 0; j < l->n; j++) {
            double w = fmax(l->spectrum[j], 0), u = l->kernel[j * l->n + i];
            own += u * u * w / (w + strength);
        }
        for (size_t k = 0; k < (size_t)rank; k++) {
            size_t at = i * (size_t)rank + k;
            double off = (target[at] - l->fit[at]) / fmax(1 - own, 1e-9);
            left[at] = target[at] - off;
            error += off * off;
        }
    }
    return error;
}

/* map = z' (kernel + ridge)^-1 h */
static fds_status solve(learner *l, double ridge, fds_error *err) {
    int n = (int)l->n, rank = (int)l->job->factors->rank, size = (int)l->size;
    OWNED double *map = NULL;
    TRY(RESERVE(map, l->size, (size_t)rank, err));
    double strength = ridge_of(l, ridge);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, rank, n, 1, l->kernel, n, l->h, rank,
                0, l->turned, rank);
    for (size_t j = 0; j < l->n; j++)
        cblas_dscal(rank, 1 / (fmax(l->spectrum[j], 0) + strength), l->turned + j * (size_t)rank,
                    1);
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, rank, n, 1, l->kernel, n, l->turned,
                rank, 0, l->fit, rank);
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, size, rank, n, 1, l->z, size, l->fit, rank,
                0, map, rank);
    TRY(RESERVE(l->c->map, l->size, (size_t)rank, err));
    for (size_t i = 0; i < l->size * (size_t)rank; i++)
        l->c->map[i] = (float)map[i];
    return FDS_OK;
}

static fds_status choose(learner *l, fds_error *err) {
    double least = INFINITY, ridge = 1;
    size_t same = l->sizes[0];
    bool are_alike = true;
    for (size_t i = 0; i < l->n; i++)
        are_alike &= l->sizes[i] == same;
    for (size_t p = 0; p < (are_alike ? 1 : POWERS); p++) {
        TRY(fds__report(l->job->events, "new players", "kernels", p + 1, POWERS, fds__now_s(),
                        err));
        TRY(decompose(l, powers[p], err));
        for (size_t r = 0; r < RIDGES; r++) {
            double error = leave_out(l, ridges[r], l->weighted, l->left);
            if (!(error < least))
                continue;
            least = error;
            ridge = ridges[r];
            l->c->power = powers[p];
        }
    }
    if (!isfinite(least))
        return fds__fail(err, FDS_ERR_DIVERGED, "the samples of the players predict no factors");
    TRY(decompose(l, l->c->power, err));
    leave_out(l, ridge, l->h, l->best);
    return solve(l, ridge, err);
}

/* ---- errors of players left out ---- */

typedef struct {
    double size, off;
} miss;

static int by_size(const void *a, const void *b) {
    const miss *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return (x->off > y->off) - (x->off < y->off);
}

static void bin(miss *misses, size_t count, float *errors) {
    qsort(misses, count, sizeof *misses, by_size);
    for (size_t b = 0; b < BINS; b++) {
        size_t first = b * count / BINS, end = (b + 1) * count / BINS;
        double sum = 0;
        for (size_t i = first; i < end; i++)
            sum += misses[i].off * misses[i].off;
        errors[b] = b && first < count ? (float)misses[first].size : 0;
        errors[BINS + b] = end > first ? (float)sqrt(sum / (double)(end - first))
                           : b         ? errors[BINS + b - 1]
                                       : 0;
    }
}

static fds_status measure(learner *l, fds_error *err) {
    const fds__newcomer_job *j = l->job;
    size_t rank = j->factors->rank, inputs = j->validation, known = 0;
    OWNED miss *misses = NULL;
    OWNED float *coefficients = NULL;
    OWNED double *pair = NULL;
    TRY(RESERVE(misses, inputs, l->n, err));
    TRY(RESERVE(coefficients, inputs, rank, err));
    TRY(RESERVE(pair, 2, l->n, err));
    TRY(fds__explainer_coefficients(j->explainer, j->x, inputs, j->predicted, coefficients, err));
    for (size_t x = 0; x < inputs; x++) {
        size_t column = j->first_column + x * l->c->classes + j->predicted[x];
        double share = j->totals[x * l->c->classes + j->predicted[x]] / (double)l->c->players;
        for (size_t i = 0; i < l->n; i++) {
            pair[i] = share;
            for (size_t k = 0; k < rank; k++)
                pair[i] += (double)coefficients[x * rank + k] * l->best[i * rank + k];
            pair[l->n + i] = j->values[player_at(l, i) * j->stride + column];
            misses[x * l->n + i] = (miss){fabs(pair[i]), pair[i] - pair[l->n + i]};
        }
        double r = fds__correlation(pair, pair + l->n, NULL, l->n);
        if (isfinite(r)) {
            l->c->agreement += r;
            known++;
        }
    }
    l->c->agreement = known ? l->c->agreement / (double)known : 0;
    bin(misses, inputs * l->n, l->c->errors);
    return FDS_OK;
}

static fds_status learn(learner *l, fds_error *err) {
    const fds__model_info info = fds__model_get_info(l->job->service);
    size_t rank = l->job->factors->rank;
    TRY(fds__net_create(info.network, info.shape, info.classes, false, &l->net, err));
    TRY(fds_lane_create(l->net, &l->lane, err));
    l->c->features = fds__net_features(l->net);
    l->size = size_of(l->c);
    TRY(RESERVE(l->sizes, l->n, 1, err));
    TRY(RESERVE(l->raw, l->n, l->size, err));
    TRY(RESERVE(l->z, l->n, l->size, err));
    TRY(RESERVE(l->kernel, l->n, l->n, err));
    TRY(RESERVE(l->spectrum, l->n, 1, err));
    double **const tables[] = {&l->h, &l->weighted, &l->turned, &l->fit, &l->left, &l->best};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        TRY(RESERVE(*tables[i], l->n, rank, err));
    TRY(RESERVE(l->shares, rank, 1, err));
    TRY(pool_players(l, err));
    take_factors(l);
    TRY(choose(l, err));
    return measure(l, err);
}

fds_status fds__newcomers_learn(const fds__newcomer_job *job, fds__newcomers **out,
                                fds_error *err) {
    learner l = {.job = job, .n = MIN(job->factors->players, (size_t)MOST)};
    TRY(RESERVE(*out, 1, 1, err));
    l.c = *out;
    **out = (fds__newcomers){.players = job->factors->players,
                             .rank = job->factors->rank,
                             .classes = job->problem->train->classes};
    fds__blas_begin();
    fds_status status = learn(&l, err);
    fds__blas_end();
    fds_lane_free(l.lane);
    fds_net_free(l.net);
    fds__free(l.sizes);
    double *const all[] = {l.raw,    l.z,   l.kernel, l.spectrum, l.h,     l.weighted,
                           l.turned, l.fit, l.left,   l.best,     l.shares};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        fds__free(all[i]);
    return status;
}

/* ---- answers ---- */

fds_status fds__newcomers_predict(const fds__newcomers *c, const fds_model *service,
                                  const fds_net *net, fds_lane *lane, const fds_dataset *ds,
                                  const uint32_t *index, size_t count, const uint32_t *labels,
                                  double *h, fds_error *err) {
    OWNED double *z = NULL;
    double unused = 0;
    TRY(RESERVE(z, size_of(c), 1, err));
    TRY(pool(service, net, lane, ds, index, count, labels, z, &unused, err));
    finish_z(c, count, c->power, z);
    memset(h, 0, c->rank * sizeof *h);
    for (size_t i = 0; i < size_of(c); i++)
        for (size_t k = 0; k < c->rank; k++)
            h[k] += z[i] * (double)c->map[i * c->rank + k];
    return FDS_OK;
}

double fds__newcomers_error(const fds__newcomers *c, double value) {
    size_t b = BINS - 1;
    while (b && !(fabs(value) >= (double)c->errors[b]))
        b--;
    return (double)c->errors[BINS + b];
}

size_t fds__newcomers_rank(const fds__newcomers *c) { return c->rank; }

/* ---- file ---- */

enum { NUMBERS = 4 };
static const char *const names[NUMBERS] = {"scale", "power", "mean_size", "agreement"};

fds_status fds__newcomers_save(const fds__newcomers *c, const char *path, fds_error *err) {
    const double numbers[NUMBERS] = {c->scale, c->power, c->mean_size, c->agreement};
    char texts[NUMBERS][FDS__NUMBER], players[FDS__NUMBER];
    fds__meta meta[NUMBERS + 2] = {{"format", FORMAT}, {"players", players}};
    snprintf(players, sizeof players, "%zu", c->players);
    for (size_t i = 0; i < NUMBERS; i++) {
        fds__write_double(numbers[i], texts[i]);
        meta[i + 2] = (fds__meta){names[i], texts[i]};
    }
    const fds__tensor tensors[] = {
        {"map", 2, {(uint32_t)size_of(c), (uint32_t)c->rank}, c->map},
        {"errors", 2, {2, BINS}, (float *)c->errors},
    };
    return fds__safetensors_write(path, tensors, 2, meta, NUMBERS + 2, NULL, err);
}

static fds_status read_file(fds__newcomers *c, const char *path, const fds__safetensors *file,
                            fds_error *err) {
    const char *format = fds__safetensors_meta(file, "format");
    const char *players = fds__safetensors_meta(file, "players");
    double *const numbers[NUMBERS] = {&c->scale, &c->power, &c->mean_size, &c->agreement};
    if (!format || strcmp(format, FORMAT) != 0)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: metadata \"format\" must be \"%s\"", path,
                         FORMAT);
    if (!players || strtoull(players, NULL, 10) != c->players)
        return fds__fail(err, FDS_ERR_SHAPE, "%s: metadata \"players\" must be \"%zu\"", path,
                         c->players);
    for (size_t i = 0; i < NUMBERS; i++) {
        const char *text = fds__safetensors_meta(file, names[i]);
        char *end = NULL;
        *numbers[i] = text ? fds__read_double(text, &end) : NAN;
        if (!isfinite(*numbers[i]) || end == text || *end || (i % 2 == 0 && !(*numbers[i] > 0)))
            return fds__fail(err, FDS_ERR_FORMAT, "%s: metadata \"%s\" is no such number", path,
                             names[i]);
    }
    const uint32_t map[4] = {(uint32_t)size_of(c), (uint32_t)c->rank}, errors[4] = {2, BINS};
    TRY(fds__safetensors_check(path, file, "a map of new players", "map", 2, map, err));
    TRY(fds__safetensors_check(path, file, "a map of new players", "errors", 2, errors, err));
    TRY(RESERVE(c->map, size_of(c), c->rank, err));
    memcpy(c->map, fds__safetensors_find(file, "map")->values,
           size_of(c) * c->rank * sizeof *c->map);
    memcpy(c->errors, fds__safetensors_find(file, "errors")->values, sizeof c->errors);
    return FDS_OK;
}

fds_status fds__newcomers_load(const char *path, size_t players, size_t rank, uint32_t classes,
                               size_t features, fds__newcomers **out, fds_error *err) {
    fds__safetensors *file;
    TRY(fds__safetensors_read(path, &file, err));
    fds_status status = RESERVE(*out, 1, 1, err);
    if (status == FDS_OK) {
        **out = (fds__newcomers){
            .players = players, .rank = rank, .classes = classes, .features = features};
        status = read_file(*out, path, file, err);
    }
    fds__safetensors_free(file);
    return status;
}
