/* SPDX-License-Identifier: Apache-2.0
 *
 * CS-Shapley (Schoch, Xu and Ji, "CS-Shapley: class-wise Shapley values for data valuation in
 * classification", NeurIPS 2022): what a player adds to its own class, in the presence of others.
 *
 * For a class c, T_c are the players of that label and an environment E is some of the others. The
 * utility of a coalition is
 *     v_c(S) = a_in(S) exp(a_out(S)),
 * a_in and a_out being the shares of all test samples that have label c, or another one, and are
 * correctly classified. The value of a player of T_c is its Shapley value in the game
 * S -> v_c(S + E) over T_c, averaged over environments, times the one number that makes the class's
 * values add up to a_in of all players.
 *
 * Estimated by random permutations. Each class walks its own members in the order of permutation t
 * of all players, together with one environment per permutation and class: of every other class
 * with players, a number uniform in 1 .. its size, then a uniform subset. The authors' program
 * draws in this way (their text averages over all sets of others with equal weights). The utility
 * of the environment alone is computed; their program has 0, as for a classifier that never saw the
 * label.
 *
 * Truncation: once v_c was near the utility of the whole class in the same environment at more than
 * five places in a row, the rest of the permutation adds 0, that is, both accuracies stay what they
 * were (in the authors' program a_out falls to 0).
 *
 * Normalisation divides by a sum. A class's values stay as they are when their sum is below 5 % of
 * the sum of their sizes: none of its test samples was ever correctly classified, or players harm
 * it as much as they help; a negative factor would reverse the ranking. Standard errors are
 * multiplied by the factor as if it were known.
 *
 * The utility of a class that no test sample has is always 0, and so are the values of its players:
 * they are not walked, and only take part in the environments of others. */
#include "baseline/baseline.h"

#include <math.h>
#include <string.h>

static const double least_sum = 0.05; /* in shares of the sum of sizes */

/* One class in one permutation. */
typedef struct {
    uint32_t label;
    const uint32_t *order; /* (count): its players in the order of the permutation */
    size_t count, walked;  /* places, and those walked */
    bool is_truncated;
    unsigned near;     /* places in a row that were near full */
    uint64_t *bits;    /* environment and players so far */
    double now, full;  /* v_c of these, and with all of the class */
    double *marginals; /* (players) of the permutation, shared by its classes */
} walk;

typedef struct {
    baseline_job *job;
    size_t words;
    size_t present, players; /* classes that have players and test samples; players of these */
    size_t *starts;          /* (classes + 1): where a class begins in members */
    uint32_t *members;       /* (players), by class, ascending within it */
    size_t *tests;           /* (classes): test samples */
    uint32_t *drawn;         /* (players): a permutation of all of them */
    size_t *next;            /* (classes): where the next of a class goes */
    uint32_t *permutations;  /* (BASELINE_ROUND, players), by class as members */
    double *marginals;       /* (BASELINE_ROUND, players) */
    walk *walks;             /* (BASELINE_ROUND, present) */
    size_t walk_count;       /* of this round */
    uint64_t *bits, *asked;  /* (BASELINE_ROUND, present, words) */
    double *answers;         /* (BASELINE_ROUND, present, classes) */
    baseline_means means;
    size_t skipped; /* places, in all permutations */
    double start_s;
} cs;

static size_t class_size(const cs *s, uint32_t label) {
    return s->starts[label + 1] - s->starts[label];
}

static bool is_walked(const cs *s, uint32_t label) {
    return class_size(s, label) > 0 && s->tests[label] > 0;
}

/* ---- utilities ---- */

static double class_utility(const cs *s, uint32_t label, const double *shares) {
    double out = 0;
    for (uint32_t y = 0; y < s->job->classes; y++)
        out += y == label ? 0 : shares[y];
    return shares[label] * exp(out);
}

static bool is_going(const walk *w) { return w->walked < w->count && !w->is_truncated; }

/* Asks for the coalitions of all walks that go on; with_class: with the rest of their class. The
 * answers are in the order of the walks. */
static fds_status ask_walks(cs *s, bool with_class, size_t *asked, fds_error *err) {
    *asked = 0;
    for (size_t i = 0; i < s->walk_count; i++) {
        const walk *w = &s->walks[i];
        if (!is_going(w))
            continue;
        uint64_t *bits = s->asked + (*asked)++ * s->words;
        memcpy(bits, w->bits, s->words * sizeof *bits);
        for (size_t j = 0; with_class && j < w->count; j++)
            fds__coalition_add(bits, w->order[j]);
    }
    const baseline_game *game = &s->job->game;
    return *asked > 0 ? game->ask(game->context, s->asked, *asked, s->answers, err) : FDS_OK;
}

/* ---- drawing ---- */

/* Permutation number t of all players, divided by class. */
static void draw_permutation(cs *s, uint64_t t, uint32_t *permutations) {
    size_t n = s->job->players;
    baseline_permutation(s->job->params->seed, t, n, s->drawn);
    memcpy(s->next, s->starts, s->job->classes * sizeof *s->next);
    for (size_t i = 0; i < n; i++)
        permutations[s->next[s->job->player_labels[s->drawn[i]]]++] = s->drawn[i];
}

/* Each member of another class in turn is taken with probability (places left) / (members left). */
static void draw_environment(const cs *s, uint64_t t, uint32_t label, uint64_t *bits) {
    fds_rng rng = fds_rng_make(s->job->params->seed, FDS__PURPOSE_SUBSET, t, (uint64_t)label + 1);
    memset(bits, 0, s->words * sizeof *bits);
    for (uint32_t y = 0; y < s->job->classes; y++) {
        size_t size = class_size(s, y);
        if (y == label || size == 0)
            continue;
        size_t left = 1 + fds_rng_below(&rng, size);
        for (size_t j = 0; j < size; j++)
            if (fds_rng_below(&rng, size - j) < left) {
                fds__coalition_add(bits, s->members[s->starts[y] + j]);
                left--;
            }
    }
}

/* ---- a round of permutations ---- */

static void draw_round(cs *s, size_t first, size_t permutations) {
    size_t n = s->job->players;
    s->walk_count = 0;
    memset(s->marginals, 0, permutations * n * sizeof *s->marginals);
    for (size_t t = 0; t < permutations; t++) {
        draw_permutation(s, first + t, s->permutations + t * n);
        for (uint32_t y = 0; y < s->job->classes; y++) {
            if (!is_walked(s, y))
                continue;
            uint64_t *bits = s->bits + s->walk_count * s->words;
            draw_environment(s, first + t, y, bits);
            walk w = {.label = y, .count = class_size(s, y), .bits = bits};
            w.order = s->permutations + t * n + s->starts[y];
            w.marginals = s->marginals + t * n;
            s->walks[s->walk_count++] = w;
        }
    }
}

/* The environments alone and, for the truncation, with the whole class. */
static fds_status begin_walks(cs *s, fds_error *err) {
    size_t asked, columns = s->job->game.columns;
    TRY(ask_walks(s, false, &asked, err)); /* all go on: answers and walks agree */
    for (size_t i = 0; i < asked; i++)
        s->walks[i].now = class_utility(s, s->walks[i].label, s->answers + i * columns);
    if (s->job->params->truncate <= 0)
        return FDS_OK;
    TRY(ask_walks(s, true, &asked, err));
    for (size_t i = 0; i < asked; i++)
        s->walks[i].full = class_utility(s, s->walks[i].label, s->answers + i * columns);
    return FDS_OK;
}

/* The next player of a walk has joined; value is v_c with it. */
static void take_step(const fds_params *params, walk *w, double value) {
    w->marginals[w->order[w->walked++]] = value - w->now;
    w->now = value;
    w->is_truncated = !baseline_walks_on(params, 1, &value, &w->full, &w->near);
}

/* One more player in every walk that goes on. */
static fds_status step_walks(cs *s, size_t *asked, fds_error *err) {
    for (size_t i = 0; i < s->walk_count; i++)
        if (is_going(&s->walks[i]))
            fds__coalition_add(s->walks[i].bits, s->walks[i].order[s->walks[i].walked]);
    TRY(ask_walks(s, false, asked, err));
    const double *shares = s->answers;
    for (size_t i = 0; i < s->walk_count; i++)
        if (is_going(&s->walks[i])) {
            take_step(s->job->params, &s->walks[i], class_utility(s, s->walks[i].label, shares));
            shares += s->job->game.columns;
        }
    return FDS_OK;
}

static fds_status walk_round(cs *s, size_t first, size_t permutations, fds_error *err) {
    size_t total = s->job->params->permutations * s->players, done = first * s->players, asked = 1;
    draw_round(s, first, permutations);
    TRY(begin_walks(s, err));
    for (; asked > 0; done += asked) {
        TRY(step_walks(s, &asked, err));
        TRY(fds__report(s->job->events, "permutations", "places", done + asked, total, s->start_s,
                        err));
    }
    for (size_t i = 0; i < s->walk_count; i++)
        s->skipped += s->walks[i].count - s->walks[i].walked;
    for (size_t t = 0; t < permutations; t++)
        baseline_means_add(&s->means, s->marginals + t * s->job->players);
    return FDS_OK;
}

/* ---- results ---- */

static void normalise(const cs *s, uint32_t label, double a_in) {
    baseline_job *job = s->job;
    double sum = 0, sizes = 0;
    for (size_t j = s->starts[label]; j < s->starts[label + 1]; j++) {
        sum += job->values[s->members[j]];
        sizes += fabs(job->values[s->members[j]]);
    }
    if (!(sum > 0 && sum >= least_sum * sizes)) {
        fds__log(
            job->events, FDS_LOG_WARNING,
            "cs-shapley: the values of class %s add up to %g, too little to divide by: they are "
            "not normalised",
            fds_dataset_class_name(job->data->problem->train, label), sum);
        return;
    }
    for (size_t j = s->starts[label]; j < s->starts[label + 1]; j++) {
        job->values[s->members[j]] *= a_in / sum;
        if (job->errors)
            job->errors[s->members[j]] *= a_in / sum;
    }
}

static fds_status finish(cs *s, fds_error *err) {
    baseline_job *job = s->job;
    memset(s->bits, 0, s->words * sizeof *s->bits);
    fds__coalition_complement(s->bits, job->players, s->bits);
    TRY(job->game.ask(job->game.context, s->bits, 1, s->answers, err));
    baseline_means_finish(&s->means, job, s->players, s->skipped);
    for (uint32_t y = 0; y < job->classes; y++)
        if (is_walked(s, y))
            normalise(s, y, s->answers[y]);
    return FDS_OK;
}

/* For each permutation the environments alone and every place; a truncated one asks for the whole
 * class in place of what it skips. */
static double most(const fds_params *params, size_t players, uint32_t classes) {
    return 1 + (double)params->permutations * (double)(players + MIN((size_t)classes, players));
}

/* ---- the whole ---- */

/* Which classes are walked; warns of those that cannot be. */
static void count_tests(cs *s) {
    const baseline_job *job = s->job;
    for (size_t i = 0; i < job->data->problem->test_count; i++)
        s->tests[job->data->labels[i]]++;
    for (uint32_t y = 0; y < job->classes; y++) {
        s->present += is_walked(s, y);
        s->players += is_walked(s, y) ? class_size(s, y) : 0;
        if (class_size(s, y) > 0 && s->tests[y] == 0)
            fds__log(
                job->events, FDS_LOG_WARNING,
                "cs-shapley: no test sample has the label %s: the values of its players are 0; "
                "use more test samples",
                fds_dataset_class_name(job->data->problem->train, y));
    }
}

/* Which players are of which class. */
static fds_status divide_players(cs *s, fds_error *err) {
    baseline_job *job = s->job;
    s->starts = baseline_alloc(job, (size_t)job->classes + 1, 1, sizeof *s->starts);
    s->next = baseline_alloc(job, job->classes, 1, sizeof *s->next);
    s->tests = baseline_alloc(job, job->classes, 1, sizeof *s->tests);
    s->members = baseline_alloc(job, job->players, 1, sizeof *s->members);
    TRY(baseline_check_memory(job, err));
    for (size_t i = 0; i < job->players; i++)
        s->starts[job->player_labels[i] + 1]++;
    for (uint32_t y = 0; y < job->classes; y++)
        s->starts[y + 1] += s->starts[y];
    memcpy(s->next, s->starts, job->classes * sizeof *s->next);
    for (size_t i = 0; i < job->players; i++)
        s->members[s->next[job->player_labels[i]]++] = (uint32_t)i;
    return FDS_OK;
}

static fds_status reserve(cs *s, fds_error *err) {
    baseline_job *job = s->job;
    size_t n = job->players, walks = BASELINE_ROUND * s->present + 1; /* one for v(N), at the end */
    s->drawn = baseline_alloc(job, n, 1, sizeof *s->drawn);
    s->permutations = baseline_alloc(job, n, BASELINE_ROUND, sizeof *s->permutations);
    s->marginals = baseline_alloc(job, n, BASELINE_ROUND, sizeof *s->marginals);
    s->walks = baseline_alloc(job, walks, 1, sizeof *s->walks);
    s->bits = baseline_alloc(job, walks, s->words, sizeof *s->bits);
    s->asked = baseline_alloc(job, walks, s->words, sizeof *s->asked);
    s->answers = baseline_alloc(job, walks, job->classes, sizeof *s->answers);
    s->means = baseline_means_make(job);
    return baseline_check_memory(job, err);
}

static fds_status run(baseline_job *job, fds_error *err) {
    cs s = {.job = job, .words = fds_coalition_words(job->players), .start_s = fds__now_s()};
    size_t count;
    TRY(divide_players(&s, err));
    count_tests(&s);
    TRY(reserve(&s, err));
    while ((count = baseline_means_next(&s.means, job->params, BASELINE_ROUND)) > 0)
        TRY(walk_round(&s, s.means.count, count, err));
    return finish(&s, err);
}

const baseline_method baseline_cs_shapley = {
    .name = "cs-shapley",
    .about = "class-wise Shapley; by accuracy only",
    .takes = "permutations until truncate draw",
    .by_class = true,
    .scorers = 1 << FDS__SCORER_ACCURACY,
    .why = "its utility combines the accuracies in one class and in the others; use accuracy",
    .permutations = 1000,
    .until = 0.05,
    .truncate = 0.01,
    .needs_classes = true,
    .run = run,
    .most = most,
};
