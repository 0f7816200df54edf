/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of new players from sub-models that are trained with them. In the game of the n known players and
 * one new player i, the Shapley value of i is
 *
 *     phi_i = E v(S + i) - v(S),
 *
 * where the size of S is uniform in 0 .. n and S is uniform among the sets of known players of that size.
 * Small sets differ more from each other than large ones, and are drawn more often: the size is that of
 * t^2 (n + 1), rounded down, and the difference counts 2 t times, for one t of each of K equal parts of
 * 0 .. 1. So the mean of K is unbiased, with about half of the variance that uniform sizes have
 * (docs/many-players.md). New players share the sets S: K sub-models without, and K with each of them.
 * Where K is not below 2^n, all sets are taken, and the value is exact. Not so where a program answers with
 * noise: sets are drawn then too, and one that is drawn again is trained again, so that the spread of the
 * differences has all of the noise.
 *
 * The standard error is that of a mean of K independent numbers, which is too large, because their parts of
 * 0 .. 1 differ; Student's quantile takes the place of the normal one, because K is small.
 *
 * Networks keep their weights, and answer for any input later. A program answers for the inputs of one
 * question, and is started again for the next. */
#include "explain/new_game.h"

#include <math.h>
#include <string.h>

enum { MOST_EXACT = 20 }; /* players of which all sets are numbered */
#define MOST_MODELS ((size_t)1 << 20)

void fds__new_models_free(fds__new_models *m) {
    if (!m)
        return;
    fds__new_game_free(&m->game);
    fds__free(m->base_of);
    fds__free(m->bits);
    fds__free(m->shares);
    fds__free(m->weights);
    for (unsigned w = 0; m->lanes && w < m->workers; w++)
        fds_lane_free(m->lanes[w]);
    fds__free(m->lanes);
    fds__free(m);
}

size_t fds__new_models_drawn(const fds__new_models *m) { return m->strata; }
size_t fds__new_models_trained(const fds__new_models *m) { return m->bases; }
bool fds__new_models_are_all(const fds__new_models *m) { return m->is_exact; }
bool fds__new_models_are_noisy(const fds__new_models *m) { return m->is_noisy; }

/* A program that may answer the same question differently. */
static bool has_noise(const fds_run *run) {
    const json_t *utility = json_object_get(run->record.json, "utility");
    const char *noise = json_string_value(json_object_get(utility, "noise"));
    return noise && !strcmp(noise, "allowed");
}

static size_t words_of(const fds__new_models *m) {
    return fds_coalition_words(m->known + m->new_players);
}

/* Of base b come v(S) and then v(S + i) of each new player i. */
static size_t model_count(const fds__new_models *m) { return m->bases * (1 + m->new_players); }

/* ---- coalitions ---- */

/* Draws stratum k, and how much its difference counts. set (words) is empty before; order (known) is
 * scratch. */
static void draw_set(fds__new_models *m, uint64_t seed, size_t k, uint32_t *order, uint64_t *set) {
    fds_rng rng = fds_rng_make(seed, FDS__PURPOSE_NEW, k, 0);
    double t = ((double)k + fds_rng_unit(&rng)) / (double)m->strata;
    size_t size = MIN((size_t)(t * t * (double)(m->known + 1)), m->known);
    m->shares[k] = 2 * t / (double)m->strata;
    for (size_t i = 0; i < m->known; i++)
        order[i] = (uint32_t)i;
    fds_rng_shuffle(&rng, order, m->known);
    for (size_t i = 0; i < size; i++)
        fds__coalition_add(set, order[i]);
}

/* The place of the set behind the last among those before; its own: it is another, or has noise. */
static size_t find_set(const fds__new_models *m, size_t words) {
    const uint64_t *last = m->bits + m->bases * words;
    size_t b = m->is_noisy ? m->bases : 0;
    while (b < m->bases && memcmp(m->bits + b * words, last, words * sizeof *last) != 0)
        b++;
    return b;
}

/* s! (n - s)! / (n + 1)! */
static double share_of(size_t players, size_t size) {
    double ways = 1;
    for (size_t i = 0; i < size; i++)
        ways = ways * (double)(players - i) / (double)(i + 1);
    return 1 / (ways * (double)(players + 1));
}

static fds_status draw(fds__new_models *m, uint64_t seed, fds_error *err) {
    const size_t words = words_of(m);
    OWNED uint32_t *order = NULL;
    m->is_exact = !m->is_noisy && m->known <= MOST_EXACT && ((size_t)1 << m->known) <= m->strata;
    if (m->is_exact)
        m->strata = (size_t)1 << m->known;
    TRY(RESERVE(order, m->known, 1, err));
    TRY(RESERVE(m->base_of, m->strata, 1, err));
    TRY(RESERVE(m->bits, m->strata, words, err));
    TRY(RESERVE(m->shares, m->strata, 1, err));
    for (size_t k = 0; k < m->strata; k++) {
        uint64_t *set = m->bits + m->bases * words;
        memset(set, 0, words * sizeof *set);
        if (m->is_exact) {
            set[0] = k;
            m->shares[k] = share_of(m->known, fds_coalition_size(set, m->known));
        } else {
            draw_set(m, seed, k, order, set);
        }
        m->base_of[k] = (uint32_t)(m->is_exact ? k : find_set(m, words));
        m->bases += m->base_of[k] == m->bases;
    }
    return FDS_OK;
}

/* The coalition of a model: set (words). */
static void coalition_of(const fds__new_models *m, size_t model, uint64_t *set) {
    const size_t words = words_of(m), i = model % (1 + m->new_players);
    memcpy(set, m->bits + model / (1 + m->new_players) * words, words * sizeof *set);
    if (i)
        fds__coalition_add(set, m->known + i - 1);
}

/* ---- training ---- */

typedef struct {
    const fds__new_models *m;
    fds_utility *utility;
    size_t *at;     /* (workers) the model that each trains */
    uint64_t *sets; /* (workers, words) */
    float *probs;   /* (workers, inputs, classes) */
    double *
        answers; /* (models, inputs) utilities of the inputs' labels; NULL while networks are trained */
    const fds__new_question *question;
    size_t size; /* of probs, for each worker */
} work;

static fds_status keep_weights(void *context, unsigned worker, const uint64_t *coalition,
                               const float *weights, fds_error *err) {
    const work *w = context;
    const size_t count = fds_net_weights(w->m->net);
    (void)coalition, (void)err;
    memcpy(w->m->weights + w->at[worker] * count, weights, count * sizeof *weights);
    return FDS_OK;
}

static void keep_answers(const work *w, size_t model, const float *probs) {
    const fds__new_question *q = w->question;
    const size_t count = q->x->count, classes = w->size / count;
    for (size_t x = 0; x < count; x++)
        w->answers[model * count + x] = q->aim ? fds__aim_score(q->aim, x, (double)probs[x])
                                               : (double)probs[x * classes + q->labels[x]];
}

/* A network that is trained, a program that answers, or a trained network that answers. */
static fds_status run_model(void *context, size_t model, unsigned worker, fds_error *err) {
    const work *w = context;
    float *probs = w->probs + worker * w->size;
    if (!w->utility) {
        const float *weights = w->m->weights + model * fds_net_weights(w->m->net);
        TRY(fds_lane_predict(w->m->lanes[worker], w->question->x, 0, w->question->x->count, weights,
                             probs, err));
    } else {
        uint64_t *set = w->sets + worker * words_of(w->m);
        w->at[worker] = model;
        coalition_of(w->m, model, set);
        TRY(fds_utility_eval(w->utility, worker, set, probs, err));
    }
    if (w->answers)
        keep_answers(w, model, probs);
    return FDS_OK;
}

/* Runs all models of work, whose scratch it makes. inputs: of an answer. */
static fds_status run_all(work *w, size_t inputs, size_t classes, const char *stage,
                          const char *unit, const fds_events *events, fds_error *err) {
    const unsigned workers = w->m->workers;
    OWNED size_t *at = NULL;
    OWNED uint64_t *sets = NULL;
    OWNED float *probs = NULL;
    TRY(RESERVE(at, workers, 1, err));
    TRY(RESERVE(sets, workers, words_of(w->m), err));
    TRY(RESERVE(probs, workers, inputs * classes, err));
    w->at = at;
    w->sets = sets;
    w->probs = probs;
    w->size = inputs * classes;
    fds_status status =
        fds__pool_run(workers, model_count(w->m), run_model, w, stage, unit, events, err);
    if (status != FDS_OK && w->utility)
        fds__utility_log(w->utility, events);
    return status;
}

/* Any input does: the weights are wanted. */
static fds_status train_networks(const fds_run *run, fds__new_models *m, const fds_events *events,
                                 fds_error *err) {
    const uint32_t any = 0;
    work w = {.m = m};
    TRY(fds__new_game_utility(run, &m->game, m->game.all, &any, 1, events, m->workers, &w.utility,
                              err));
    const fds__sink sink = {keep_weights, &w};
    fds__utility_set_sink(w.utility, &sink);
    fds_status status =
        run_all(&w, 1, run->record.info.classes, "sub-models", "models", events, err);
    fds_utility_free(w.utility);
    fds__new_game_free(&m->game);
    return status;
}

static fds_status check_limits(const fds_run *run, const fds__new_models *m, fds_error *err) {
    const size_t models = model_count(m), weights = run->program ? 0 : fds_net_weights(run->net);
    if (weights > FDS__MAX_UTILITY_MEMORY / sizeof *m->weights / models)
        return fds__fail(err, FDS_ERR_LIMIT,
                         "`new_models`: %zu sub-models of %zu weights are more than %zu GiB: give "
                         "fewer, or fewer new players",
                         models, weights, FDS__MAX_UTILITY_MEMORY >> 30);
    return FDS_OK;
}

static fds_status make_room(const fds_run *run, fds__new_models *m, fds_error *err) {
    const size_t models = model_count(m), weights = fds_net_weights(run->net);
    m->net = run->net;
    TRY(RESERVE(m->weights, models, weights, err));
    TRY(RESERVE(m->lanes, m->workers, 1, err));
    for (unsigned w = 0; w < m->workers; w++)
        TRY(fds_lane_create(m->net, &m->lanes[w], err));
    return FDS_OK;
}

static void announce(const fds__new_models *m, bool is_program, const fds_events *events) {
    fds__log(events, FDS_LOG_INFO,
             "%zu sub-models are trained%s: for %zu %scoalitions of the run's %zu players, "
             "without and with each of %zu new player%s%s",
             model_count(m), is_program ? " by the program" : "", m->bases,
             m->is_noisy ? "" : "different ", m->known, m->new_players,
             m->new_players == 1 ? "" : "s",
             m->is_exact ? "; these are all, and the values exact" : "");
}

fds_status fds__new_models_train(const fds_run *run, const fds_params *params, size_t strata,
                                 uint64_t seed, const fds_dataset *more,
                                 const fds_players *new_ones, const fds_events *events,
                                 fds__new_models **out, fds_error *err) {
    fds__new_models *m;
    TRY(RESERVE(m, 1, 1, err));
    *out = m;
    m->known = run->record.info.players;
    m->new_players = new_ones ? fds_players_count(new_ones) : 1;
    m->is_noisy = has_noise(run);
    m->strata = strata;
    m->workers = MAX(run->threads, 1u);
    if (strata > MOST_MODELS / (1 + m->new_players))
        return fds__fail(
            err, FDS_ERR_LIMIT,
            "`new_models`: %zu for each of %zu new players: at most %zu sub-models are "
            "trained",
            strata, m->new_players, MOST_MODELS);
    TRY(draw(m, seed, err));
    TRY(check_limits(run, m, err));
    TRY(fds__new_game_open(run, params, more, new_ones, events, &m->game, err));
    announce(m, run->program, events);
    if (run->program)
        return FDS_OK;
    TRY(make_room(run, m, err));
    return train_networks(run, m, events, err);
}

/* ---- values ---- */

/* Student's 97.5 % quantile of so many degrees of freedom, at least 7, over the normal one; within 0.4 %
 * (Cornish-Fisher). */
static double student(double freedom) {
    const double z = 1.959963985, z2 = z * z;
    return 1 + (z2 + 1) / (4 * freedom) + ((5 * z2 + 16) * z2 + 3) / (96 * freedom * freedom);
}

/* The value of new player i for input x of inputs, from answers (models, inputs). */
static double find_value(const fds__new_models *m, const double *answers, size_t inputs, size_t x,
                         size_t i, double *error) {
    const double count = (double)m->strata;
    double value = 0, squares = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t k = 0; k < m->strata; k++) {
            const double *of = answers + m->base_of[k] * (1 + m->new_players) * inputs + x;
            double part = m->shares[k] * (of[(1 + i) * inputs] - of[0]);
            if (pass)
                squares += (count * part - value) * (count * part - value);
            else
                value += part;
        }
    *error = m->is_exact ? 0 : student(count - 1) * sqrt(squares / (count - 1) / count);
    return value;
}

/* Asking trained networks is no stage of its own, but hears that it is to stop. */
static bool listen(void *user, const fds_progress *progress) {
    const fds_events *to = user;
    fds_progress same = *progress;
    same.done = 0;
    return to->progress(to->user, &same);
}

static fds_status ask(const fds_run *run, work *w, fds_error *err) {
    const fds__new_question *q = w->question;
    const size_t classes = run->record.info.classes;
    const fds_events *to = run->events;
    fds_events quiet = {.progress = to && to->progress ? listen : NULL,
                        .user = (void *)(uintptr_t)to};
    if (w->m->weights)
        return run_all(w, q->x->count, classes, "explain", "inputs", &quiet, err);
    TRY(fds__new_game_utility(run, &w->m->game, q->ds, q->index, q->x->count, to, w->m->workers,
                              &w->utility, err));
    fds_status status = run_all(w, q->x->count, classes, "sub-models", "models", to, err);
    fds_utility_free(w->utility);
    return status;
}

fds_status fds__new_models_value(const fds_run *run, const fds__new_models *m,
                                 const fds__new_question *question, double *values, double *errors,
                                 fds_error *err) {
    const size_t inputs = question->x->count;
    OWNED double *answers = NULL;
    TRY(RESERVE(answers, model_count(m), inputs, err));
    work w = {.m = m, .question = question, .answers = answers};
    TRY(ask(run, &w, err));
    for (size_t x = 0; x < inputs; x++)
        for (size_t i = 0; i < m->new_players; i++) {
            double error;
            values[x * m->new_players + i] = find_value(m, answers, inputs, x, i, &error);
            if (errors)
                errors[x * m->new_players + i] = error;
        }
    return FDS_OK;
}
