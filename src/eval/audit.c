/* SPDX-License-Identifier: Apache-2.0
 *
 * K-fold valuation: a value for every sample of a dataset.
 *
 * The samples are parted into folds that share every class evenly. Each fold in turn is the test
 * set, and all samples outside it are players. In the game of test sample t of fold f, the utility
 * of a coalition is the share of t's label among its K samples nearest to t; features are
 * normalised by the players' own mean and standard deviation. phi(i, t) is the exact Shapley value
 * of player i (utility/knn.c). A sample is a player for every fold except its own, so that
 *
 *     value(i)  = mean over all t outside the fold of i of phi(i, t)
 *     error(i)  = standard deviation of these phi(i, t) / sqrt(their number)
 *
 * and no sample lacks a value because it was needed to test. What "the model says" of a sample is
 * the vote of its K nearest samples outside its fold. The value of a provider is the sum over its
 * samples; its error is that of a sum over test samples:
 *
 *     X(t) = sum over samples i of the provider, outside the fold of t, of phi(i, t) / tests(i)
 *     value = sum of X(t),  error = sqrt(n / (n - 1) sum (X(t) - mean X)^2)
 *
 * docs/data-audit.md says why this method, and how well it finds wrong labels.
 */
#include "eval/audit.h"

#include <math.h>
#include <stdlib.h>

enum { USUAL_FOLDS = 10, FEWEST_TESTS = 64, PROBED_TESTS = 16 };
/* Products of numbers between two looks at the events: under a second. */
#define WORK_PER_BLOCK 1e9
/* Bytes of the neighbours of a block. */
#define MEMORY_PER_BLOCK ((size_t)256 << 20)

/* ---- parameters ---- */

static bool has_network(const fds_params *params) {
    return strstr(params->utility, "@model") != NULL;
}

static fds_status check_params(const fds_params *params, fds_error *err) {
    const char *text = params->utility;
    if (strncmp(text, "knn:", 4) != 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`utility` must be knn:K or knn:K@model, for example knn:5 (got %.100s)",
                         text);
    if (params->model && !has_network(params))
        return fds__fail(
            err, FDS_ERR_USAGE,
            "`model` does not apply: `utility` %.60s trains no network; use knn:5@model", text);
    return FDS_OK;
}

static fds_status check_data(const fds_dataset *ds, const fds_params *params, fds_error *err) {
    size_t present = 0;
    OWNED bool *has = NULL;
    if (ds->targets)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "%s has targets, numbers to predict, and an audit needs classes; fds value "
            "computes values for targets",
            ds->source);
    TRY(NEW(has, ds->classes, err));
    for (size_t i = 0; i < ds->count; i++) {
        present += !has[ds->labels[i]];
        has[ds->labels[i]] = true;
    }
    if (present < 2)
        return fds__fail(err, FDS_ERR_USAGE,
                         "%s: all samples have one label; an audit needs at least two classes",
                         ds->source);
    if (fds__is_given(params, folds) && params->folds > ds->count)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`folds` must be at most %zu, one per sample (got %llu)", ds->count,
                         (unsigned long long)params->folds);
    return FDS_OK;
}

/* ---- one fold ---- */

typedef struct {
    fds_audit *a;
    fds__utility_params params;
    unsigned threads;
    const fds_events *events;
    double start_s;
    size_t done;       /* test samples */
    uint32_t *players; /* (count) of the fold at work, ascending */
    uint32_t *tests;   /* (count) the same */
    size_t player_count, test_count;
    double *phi;         /* (count) of one test sample, by player */
    double *by_provider; /* (providers): X(t) */
    double *squares;     /* (count) sums of squares of phi */
} work;

static void choose_fold(work *w, uint32_t fold) {
    w->player_count = w->test_count = 0;
    for (uint32_t i = 0; i < w->a->count; i++)
        if (w->a->fold[i] == fold)
            w->tests[w->test_count++] = i;
        else
            w->players[w->player_count++] = i;
}

/* The share as a double: 0.8, not 0.800000011920929. */
static double share_of(const fds_audit *a, float prob) {
    return (double)lround((double)prob * a->neighbours) / a->neighbours;
}

/* The label of most of the nearest samples; of several, the sample's own if it is among them. */
static void take_vote(fds_audit *a, uint32_t sample, const float *probs) {
    uint32_t own = a->ds->labels[sample], most = fds__argmax_f32(probs, a->ds->classes);
    a->predicted[sample] = probs[own] >= probs[most] ? own : most;
    a->probability[sample] = share_of(a, probs[a->predicted[sample]]);
    a->own_probability[sample] = share_of(a, probs[own]);
}

/* Adds the values of all players for one test sample. */
static void take_values(work *w) {
    fds_audit *a = w->a;
    for (uint32_t p = 0; p < a->ds->providers; p++)
        w->by_provider[p] = 0;
    for (size_t i = 0; i < w->player_count; i++) {
        uint32_t player = w->players[i];
        a->values[player] += w->phi[i];
        w->squares[player] += w->phi[i] * w->phi[i];
        if (a->ds->provider_ids)
            w->by_provider[a->ds->provider_ids[player]] += w->phi[i] / (double)a->tests[player];
    }
    for (uint32_t p = 0; p < a->ds->providers; p++) {
        a->providers[p].value += w->by_provider[p];
        a->providers[p].error += w->by_provider[p] * w->by_provider[p]; /* a sum of squares yet */
    }
}

/* All players together, the coalition of every bit. */
static fds_status vote_block(work *w, const fds_utility *utility, const uint32_t *tests,
                             size_t count, fds_error *err) {
    OWNED uint64_t *all = NULL;
    OWNED float *probs = NULL;
    TRY(NEW(all, fds_coalition_words(w->player_count), err));
    TRY(NEW(probs, count * w->a->ds->classes, err));
    for (size_t i = 0; i < w->player_count; i++)
        all[i / 64] |= (uint64_t)1 << (i % 64);
    TRY(fds_utility_eval(utility, 0, all, probs, err));
    for (size_t i = 0; i < count; i++)
        take_vote(w->a, tests[i], probs + i * w->a->ds->classes);
    return FDS_OK;
}

static fds_status value_block(work *w, const fds_players *players, const uint32_t *tests,
                              size_t count, fds_error *err) {
    fds_utility *utility = NULL;
    const fds_dataset *ds = w->a->ds;
    TRY(fds__utility_create(&w->params, ds, players, ds, tests, count, w->threads, &utility, err));
    fds_status status = vote_block(w, utility, tests, count, err);
    for (size_t i = 0; i < count && status == FDS_OK; i++) {
        status = fds__utility_knn_label(utility, i, ds->labels[tests[i]], w->phi, err);
        if (status == FDS_OK)
            take_values(w);
    }
    fds_utility_free(utility);
    return status;
}

/* A network of its own would be trained for each block. */
static size_t block_size(const work *w) {
    double pairs = (double)w->player_count * (double)w->a->ds->sample_size;
    size_t by_time =
        w->a->has_network ? SIZE_MAX : (size_t)MAX(WORK_PER_BLOCK / pairs, FEWEST_TESTS);
    return MAX(MIN(by_time, MEMORY_PER_BLOCK / (w->player_count * sizeof(uint32_t))), 1);
}

static fds_status value_fold(work *w, uint32_t fold, fds_error *err) {
    fds_players *players = NULL;
    choose_fold(w, fold);
    TRY(fds_players_points(w->a->ds, w->players, w->player_count, &players, err));
    fds_status status = FDS_OK;
    size_t block = block_size(w);
    for (size_t first = 0; first < w->test_count && status == FDS_OK; first += block) {
        size_t count = MIN(block, w->test_count - first);
        status = value_block(w, players, w->tests + first, count, err);
        w->done += count;
        if (status == FDS_OK)
            status =
                fds__report(w->events, "value", "samples", w->done, w->a->count, w->start_s, err);
    }
    fds_players_free(players);
    return status;
}

/* ---- all folds ---- */

static double error_of(double sum, double squares, double count) {
    return count > 1 ? sqrt(MAX(squares - sum * sum / count, 0) / (count - 1) / count) : NAN;
}

static void finish_values(work *w) {
    fds_audit *a = w->a;
    for (size_t i = 0; i < a->count; i++) {
        double tests = (double)a->tests[i];
        a->errors[i] = error_of(a->values[i], w->squares[i], tests);
        a->values[i] /= tests;
        a->suspects += a->values[i] < 0;
        a->clear_suspects += a->values[i] + 2 * a->errors[i] < 0;
        a->accuracy += (a->predicted[i] == a->ds->labels[i]) / (double)a->count;
    }
    for (size_t i = 0; a->ds->provider_ids && i < a->count; i++) {
        audit_provider *p = &a->providers[a->ds->provider_ids[i]];
        p->samples++;
        p->suspects += a->values[i] < 0;
    }
    for (uint32_t p = 0; p < a->ds->providers; p++) /* a sum over tests, not their mean */
        a->providers[p].error =
            (double)a->count *
            error_of(a->providers[p].value, a->providers[p].error, (double)a->count);
}

static fds_status allocate(work *w, fds_error *err) {
    fds_audit *a = w->a;
    TRY(NEW(a->fold, a->count, err));
    TRY(NEW(a->tests, a->count, err));
    TRY(NEW(a->values, a->count, err));
    TRY(NEW(a->errors, a->count, err));
    TRY(NEW(a->predicted, a->count, err));
    TRY(NEW(a->probability, a->count, err));
    TRY(NEW(a->own_probability, a->count, err));
    TRY(NEW(a->twin, a->count, err));
    TRY(NEW(a->order, a->count, err));
    TRY(NEW(a->providers, a->ds->providers, err));
    TRY(NEW(w->players, a->count, err));
    TRY(NEW(w->tests, a->count, err));
    TRY(NEW(w->phi, a->count, err));
    TRY(NEW(w->squares, a->count, err));
    return NEW(w->by_provider, a->ds->providers, err);
}

static fds_status deal_folds(work *w, const fds_params *params, fds_error *err) {
    fds_audit *a = w->a;
    a->folds = (uint32_t)MIN(fds__is_given(params, folds) ? params->folds : USUAL_FOLDS, a->count);
    TRY(fds__split_folds(a->ds, a->folds, params->seed, a->fold, err));
    OWNED size_t *sizes = NULL;
    TRY(NEW(sizes, a->folds, err));
    for (size_t i = 0; i < a->count; i++)
        sizes[a->fold[i]]++;
    for (size_t i = 0; i < a->count; i++)
        a->tests[i] = a->count - sizes[a->fold[i]];
    return FDS_OK;
}

/* From the lowest value to the highest. */
static fds_status rank(fds_audit *a, double *scratch, fds_error *err) {
    for (size_t i = 0; i < a->count; i++)
        scratch[i] = -a->values[i];
    return fds__rank(scratch, a->count, a->order, err);
}

static fds_status value_all(work *w, fds_error *err) {
    for (uint32_t f = 0; f < w->a->folds; f++)
        TRY(value_fold(w, f, err));
    finish_values(w);
    TRY(audit_find_twins(w->a, err));
    return rank(w->a, w->phi, err);
}

/* Seconds of the whole, from a few test samples of the first fold. */
static fds_status probe(work *w, double *seconds, fds_error *err) {
    fds_players *players = NULL;
    choose_fold(w, 0);
    TRY(fds_players_points(w->a->ds, w->players, w->player_count, &players, err));
    size_t more = MIN(w->test_count, (size_t)PROBED_TESTS);
    double times[3] = {fds__now_s()};
    fds_status status = value_block(w, players, w->tests, 1, err);
    times[1] = fds__now_s();
    if (status == FDS_OK && more > 1)
        status = value_block(w, players, w->tests, more, err);
    times[2] = fds__now_s();
    fds_players_free(players);
    double once = times[1] - times[0];
    double each = more > 1 ? MAX(times[2] - times[1] - once, 0) / (double)(more - 1) : once;
    size_t blocks = w->a->folds * ((w->test_count + block_size(w) - 1) / block_size(w));
    *seconds = (double)blocks * once + (double)w->a->count * each;
    return status;
}

static uint64_t memory_of(const work *w) {
    const fds_dataset *ds = w->a->ds;
    size_t tests = MIN(block_size(w), w->test_count);
    return (uint64_t)ds->count * ds->sample_size * (ds->bytes ? 5 : 8) + /* as read, normalised */
           (uint64_t)tests * w->player_count * sizeof(uint32_t) + (uint64_t)ds->count * 120;
}

/* seconds: NULL to value; else only to estimate. */
static fds_status audit(const fds_dataset *ds, const fds_params *params, const fds_events *events,
                        fds_audit *a, double *seconds, uint64_t *memory, fds_error *err) {
    a->ds = ds;
    a->count = ds->count;
    a->utility = fds__strdup(params->utility);
    if (!a->utility)
        return fds__fail_nomem(err, strlen(params->utility) + 1);
    a->has_network = has_network(params);
    a->neighbours = (uint32_t)strtoul(params->utility + 4, NULL, 10);
    a->seed = params->seed;
    work w = {.a = a,
              .params = fds__utility_params_default(),
              .threads = (unsigned)params->threads,
              .events = events,
              .start_s = fds__now_s()};
    w.params.kind = a->utility;
    w.params.network = params->model ? params->model : ds->is_image ? "lenet5" : "mlp";
    w.params.train.seed = params->seed;
    fds_status status = check_data(ds, params, err);
    if (status == FDS_OK)
        status = allocate(&w, err);
    if (status == FDS_OK)
        status = deal_folds(&w, params, err);
    if (status == FDS_OK)
        status = seconds ? probe(&w, seconds, err) : value_all(&w, err);
    if (status == FDS_OK && memory)
        *memory = memory_of(&w);
    a->seconds = fds__now_s() - w.start_s;
    fds__free(w.players);
    fds__free(w.tests);
    fds__free(w.phi);
    fds__free(w.squares);
    fds__free(w.by_provider);
    return status;
}

/* ---- the public functions ---- */

void fds_audit_free(fds_audit *a) {
    if (!a)
        return;
    fds__free(a->fold);
    fds__free(a->tests);
    fds__free(a->values);
    fds__free(a->errors);
    fds__free(a->predicted);
    fds__free(a->probability);
    fds__free(a->own_probability);
    fds__free(a->twin);
    fds__free(a->order);
    fds__free(a->providers);
    fds__free(a->utility);
    fds_dataset_free(a->own);
    fds__free(a);
}

fds_status fds_audit_create(const fds_dataset *ds, const fds_params *params,
                            const fds_events *events, fds_audit **out, fds_error *err) {
    fds_audit *a;
    TRY(check_params(params, err));
    TRY(NEW(a, 1, err));
    fds_status status = audit(ds, params, events, a, NULL, NULL, err);
    if (status == FDS_OK)
        *out = a;
    else
        fds_audit_free(a);
    return status;
}

/* The part of the data that params name. */
static fds_status open_part(const fds_params *params, const fds_events *events, fds_dataset **out,
                            fds_error *err) {
    fds_dataset *parts[2] = {NULL, NULL};
    if (fds__is_given(params, copies_alpha))
        return fds__fail(err, FDS_ERR_USAGE,
                         "`alpha` is for fds audit duplicates and fds audit labels alone");
    if (!params->data)
        return fds__fail(err, FDS_ERR_USAGE, "`data` is missing: name a fetched set or a path");
    TRY(fds_data_open(params->data, params, events, &parts[0], &parts[1], err));
    int chosen = params->part == 1;
    fds_status status = FDS_OK;
    if (!parts[chosen])
        status = fds__fail(err, FDS_ERR_USAGE,
                           "%s: no test part: leave `part` out, and every sample is audited",
                           parts[0]->source);
    else if (parts[1])
        fds__log(events, FDS_LOG_INFO,
                 "the %s part is audited; `part` %s is for the other, of %zu samples",
                 chosen ? "test" : "training", chosen ? "train" : "test", parts[!chosen]->count);
    if (status == FDS_OK) {
        *out = parts[chosen];
        parts[chosen] = NULL;
    }
    fds_dataset_free(parts[0]);
    fds_dataset_free(parts[1]);
    return status;
}

fds_status fds_audit_open(const fds_params *params, const fds_events *events, fds_audit **out,
                          fds_error *err) {
    fds_dataset *ds = NULL;
    TRY(check_params(params, err));
    TRY(open_part(params, events, &ds, err));
    fds_status status = fds_audit_create(ds, params, events, out, err);
    if (status == FDS_OK)
        (*out)->own = ds;
    else
        fds_dataset_free(ds);
    return status;
}

fds_status fds_audit_estimate(const fds_params *params, const fds_events *events, char **json,
                              fds_error *err) {
    fds_dataset *ds = NULL;
    fds_audit *a;
    double seconds;
    uint64_t memory;
    TRY(check_params(params, err));
    TRY(open_part(params, events, &ds, err));
    fds_status status = NEW(a, 1, err);
    if (status == FDS_OK)
        status = audit(ds, params, events, a, &seconds, &memory, err);
    if (status == FDS_OK) {
        json_t *about = audit_describe(a);
        bool is_whole = about && fds__json_put(about, "seconds", fds__json_real(seconds)) &&
                        fds__json_put(about, "memory", json_integer((json_int_t)memory));
        *json = is_whole ? fds__json_text(about, JSON_INDENT(1)) : NULL;
        status = *json ? FDS_OK : fds__fail_json(err);
        json_decref(about);
    }
    fds_audit_free(a);
    fds_dataset_free(ds);
    return status;
}
