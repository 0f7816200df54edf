/* SPDX-License-Identifier: Apache-2.0
 * Permutations, running means and the walkers' loop against plain re-computations. */
#include "asked_game.h"

/* ---- permutations ---- */

static void every_permutation_is_equally_likely(void **state) {
    (void)state;
    enum { DRAWS = 24000 };
    size_t seen[256] = {0}, different = 0;
    uint32_t order[4], again[4];
    for (uint64_t k = 0; k < DRAWS; k++) {
        baseline_permutation(7, k, 4, order);
        seen[order[0] << 6 | order[1] << 4 | order[2] << 2 | order[3]]++;
        assert_int_equal(1 << order[0] | 1 << order[1] | 1 << order[2] | 1 << order[3], 15);
    }
    for (size_t i = 0; i < COUNT(seen); i++) {
        different += seen[i] > 0;
        if (seen[i]) /* 1000 expected, standard deviation 31 */
            assert_true(seen[i] > 850 && seen[i] < 1150);
    }
    assert_int_equal(different, 24);
    baseline_permutation(7, 5, 4, order);
    baseline_permutation(7, 5, 4, again);
    assert_memory_equal(order, again, sizeof order);
    baseline_permutation(7, 0, 1, order);
    assert_int_equal(order[0], 0);
}

/* ---- means ---- */

enum { PLAYERS = 3, GAMES = 2, SIZE = PLAYERS * GAMES, ORDERS = 350 };

static double drawn[ORDERS][SIZE];

static void draw_marginals(void) {
    fds_rng rng = fds_rng_make(3, 2000, 0, 0);
    for (size_t t = 0; t < ORDERS; t++)
        for (size_t i = 0; i < SIZE; i++)
            drawn[t][i] =
                1000 + (double)i + uniform(&rng); /* far from 0: cancellation would show */
}

static double mean_of(size_t count, size_t i) {
    double sum = 0;
    for (size_t t = 0; t < count; t++)
        sum += drawn[t][i];
    return sum / (double)count;
}

static double error_of(size_t count, size_t i) {
    double mean = mean_of(count, i), sum = 0;
    for (size_t t = 0; t < count; t++)
        sum += (drawn[t][i] - mean) * (drawn[t][i] - mean);
    return sqrt(sum / (double)(count - 1) / (double)count);
}

/* The rule, at t permutations: player by player within a game, then over the games. */
static double change_at(size_t t) {
    double games = 0;
    for (size_t g = 0; g < GAMES; g++) {
        double sum = 0;
        for (size_t p = 0; p < PLAYERS; p++) {
            double now = mean_of(t, p * GAMES + g), before = mean_of(t - 100, p * GAMES + g);
            sum += fabs(now - before) / fabs(now);
        }
        games += sum / PLAYERS;
    }
    return games / GAMES;
}

typedef struct {
    fds_params params;
    fds__baseline_report report;
    double values[SIZE], errors[SIZE];
    baseline_job job;
    baseline_means means;
} mean_job;

static void make_means(mean_job *m) {
    fds_error err;
    *m = (mean_job){.params = {.permutations = ORDERS}};
    m->job = (baseline_job){.params = &m->params,
                            .players = PLAYERS,
                            .columns = GAMES,
                            .values = m->values,
                            .errors = m->errors,
                            .report = &m->report};
    m->means = baseline_means_make(&m->job);
    expect_ok(baseline_check_memory(&m->job, &err), &err);
}

static void finish(mean_job *m) {
    baseline_means_finish(&m->means, &m->job, PLAYERS, 0);
    assert_int_equal(m->report.permutations, m->means.count);
    assert_true(m->report.truncated == 0);
}

static void means_and_errors_are_those_of_two_passes(void **state) {
    (void)state;
    mean_job m;
    draw_marginals();
    make_means(&m);
    for (size_t t = 1; t <= ORDERS; t++) {
        baseline_means_add(&m.means, drawn[t - 1]);
        assert_int_equal(m.means.count, t);
        finish(&m);
        assert_false(m.report.has_converged); /* until is 0 */
        for (size_t i = 0; i < SIZE; i++) {
            assert_true(fabs(m.values[i] - mean_of(t, i)) < 1e-10);
            if (t == 1)
                assert_true(isnan(m.errors[i]));
            else
                assert_true(fabs(m.errors[i] - error_of(t, i)) < 1e-10);
        }
    }
    m.job.errors = NULL;
    finish(&m);
    baseline_job_free(&m.job);
}

static void the_change_is_computed_every_hundred_permutations(void **state) {
    (void)state;
    mean_job m;
    draw_marginals();
    make_means(&m);
    m.params.until = 1e-9;
    for (size_t t = 1; t <= ORDERS; t++) {
        baseline_means_add(&m.means, drawn[t - 1]);
        size_t left = ORDERS - t, to_look = 100 - t % 100;
        finish(&m);
        if (t < 200) {
            assert_true(isnan(m.report.change));
            assert_int_equal(baseline_means_next(&m.means, &m.params, 1000), to_look);
            assert_int_equal(baseline_means_next(&m.means, &m.params, 1), 1);
            continue;
        }
        double wanted = change_at(t / 100 * 100);
        assert_true(fabs(m.report.change - wanted) < 1e-9 * wanted);
        m.params.until = wanted * 1.001;
        finish(&m);
        assert_true(m.report.has_converged);
        assert_int_equal(baseline_means_next(&m.means, &m.params, 1000), 0);
        m.params.until = wanted * 0.999;
        assert_int_equal(baseline_means_next(&m.means, &m.params, 1000), MIN(left, to_look));
        m.params.until = 0; /* all permutations */
        assert_int_equal(baseline_means_next(&m.means, &m.params, 1000), MIN(left, to_look));
    }
    baseline_job_free(&m.job);
}

static void players_who_add_nothing_do_not_change(void **state) {
    (void)state;
    double zeros[SIZE] = {0};
    mean_job m;
    make_means(&m);
    for (size_t t = 0; t < 200; t++)
        baseline_means_add(&m.means, zeros);
    finish(&m);
    assert_true(m.report.change == 0);
    for (size_t i = 0; i < SIZE; i++)
        assert_true(m.values[i] == 0 && m.errors[i] == 0);
    baseline_job_free(&m.job);
}

/* ---- walkers ---- */

/* Prefixes of a game that is an array; every order whose first player is odd ends after `short_end`
 * places. Values beyond the end are left as they are. */
typedef struct {
    asked_game asked;
    size_t short_end;
    uint32_t fail_player; /* permutations that begin with it fail; UINT32_MAX: none */
} array_walk;

static fds_status walk_array(void *context, unsigned worker, const uint32_t *order, double *values,
                             size_t *end, fds_error *err) {
    array_walk *w = context;
    const array_game *g = &w->asked.game;
    (void)worker;
    if (order[0] == w->fail_player)
        return fds__fail(err, FDS_ERR_DIVERGED, "player %u must fail", order[0]);
    *end = order[0] % 2 ? w->short_end : g->players;
    size_t mask = 0;
    for (size_t place = 0; place <= *end; place++) {
        memcpy(values + place * g->columns, g->v + mask * g->columns, g->columns * sizeof *values);
        if (place < *end)
            mask |= (size_t)1 << order[place];
    }
    return FDS_OK;
}

typedef struct {
    double values[5 * 3], errors[5 * 3];
    fds__baseline_report report;
} walked;

enum { N = 5, COLUMNS = 3 };

static fds_status walk_with(array_walk *w, const fds_params *params, const fds_events *events,
                            walked *out, fds_error *err) {
    baseline_job job = {.params = params,
                        .players = N,
                        .columns = COLUMNS,
                        .values = out->values,
                        .errors = out->errors,
                        .report = &out->report,
                        .events = events};
    fds_status status = baseline_walk(&job, walk_array, w, err);
    baseline_job_free(&job);
    return status;
}

static fds_status walk(array_walk *w, const fds_params *params, walked *out, fds_error *err) {
    return walk_with(w, params, NULL, out, err);
}

/* The same sum over the permutations, place by place. */
static size_t plain_walk(const array_walk *w, uint64_t seed, size_t permutations, double *values) {
    size_t skipped = 0;
    memset(values, 0, N * COLUMNS * sizeof *values);
    for (uint64_t t = 0; t < permutations; t++) {
        uint32_t order[N];
        baseline_permutation(seed, t, N, order);
        size_t mask = 0, end = order[0] % 2 ? w->short_end : N;
        skipped += N - end;
        for (size_t place = 0; place < end; place++) {
            size_t next = mask | (size_t)1 << order[place];
            for (size_t c = 0; c < COLUMNS; c++)
                values[order[place] * COLUMNS + c] +=
                    (w->asked.game.v[next * COLUMNS + c] - w->asked.game.v[mask * COLUMNS + c]) /
                    (double)permutations;
            mask = next;
        }
    }
    return skipped;
}

static array_walk random_walk(size_t short_end) {
    fds_rng rng = fds_rng_make(4, 2000, 0, 0);
    double *v = random_values(((size_t)1 << N) * COLUMNS, &rng);
    return (array_walk){
        .asked = {.game = {N, COLUMNS, v}}, .short_end = short_end, .fail_player = UINT32_MAX};
}

static void walks_end_where_they_say(void **state) {
    (void)state;
    for (size_t end = 0; end <= N; end++) {
        array_walk w = random_walk(end);
        fds_params params = {.permutations = 130, .seed = 9, .threads = 2};
        walked out;
        double wanted[N * COLUMNS];
        fds_error err;
        expect_ok(walk(&w, &params, &out, &err), &err);
        size_t skipped = plain_walk(&w, 9, 130, wanted);
        expect_near(out.values, wanted, N * COLUMNS, 1e-13, "walk");
        assert_int_equal(out.report.permutations, 130);
        assert_true(fabs(out.report.truncated - (double)skipped / (130.0 * N)) < 1e-15);
        assert_true(isnan(out.report.change));
        assert_false(out.report.has_converged);
        free((void *)(uintptr_t)w.asked.game.v);
    }
}

static void walks_stop_when_values_have_settled(void **state) {
    (void)state;
    array_walk w = random_walk(N);
    fds_params params = {.permutations = 100000, .until = 0.2, .seed = 9, .threads = 1};
    walked out;
    fds_error err;
    expect_ok(walk(&w, &params, &out, &err), &err);
    assert_true(out.report.has_converged && out.report.change < 0.2);
    assert_true(out.report.permutations >= 200 && out.report.permutations % 100 == 0);
    double wanted[N * COLUMNS];
    plain_walk(&w, 9, out.report.permutations, wanted);
    expect_near(out.values, wanted, N * COLUMNS, 1e-13, "settled");
    params.permutations = out.report.permutations - 100; /* had not settled then */
    expect_ok(walk(&w, &params, &out, &err), &err);
    assert_false(out.report.has_converged);
    free((void *)(uintptr_t)w.asked.game.v);
}

static void threads_change_no_bit_of_a_walk(void **state) {
    (void)state;
    array_walk w = random_walk(2);
    walked first, out;
    fds_error err;
    for (unsigned threads = 1; threads <= 4; threads++) {
        fds_params params = {.permutations = 217, .seed = 2, .threads = threads};
        memset(&out, 0, sizeof out);
        expect_ok(walk(&w, &params, &out, &err), &err);
        if (threads == 1)
            first = out;
        assert_memory_equal(first.values, out.values, sizeof out.values);
        assert_memory_equal(first.errors, out.errors, sizeof out.errors);
    }
    free((void *)(uintptr_t)w.asked.game.v);
}

static bool stop_at_once(void *user, const fds_progress *progress) {
    *(fds_progress *)user = *progress;
    return true;
}

static fds_status look_at_nothing(void *context, unsigned worker, const uint32_t *order,
                                  double *values, size_t *end, fds_error *err) {
    (void)context, (void)worker, (void)order, (void)values, (void)err;
    *end = 0;
    return FDS_OK;
}

/* However large permutations are, no worker is without one. */
static void a_round_has_a_permutation_for_every_worker(void **state) {
    (void)state;
    const size_t columns = (size_t)1 << 20; /* four permutations of one player have 64 MiB */
    double *values = need(columns, sizeof *values);
    for (unsigned threads = 1; threads <= 6; threads += 5) {
        fds_params params = {.permutations = 200, .threads = threads};
        fds__baseline_report report;
        fds_progress seen;
        fds_events events = {.progress = stop_at_once, .user = &seen};
        baseline_job job = {.params = &params,
                            .players = 1,
                            .columns = columns,
                            .values = values,
                            .report = &report,
                            .events = &events};
        fds_error err;
        assert_int_equal(baseline_walk(&job, look_at_nothing, NULL, &err), FDS_ERR_CANCELLED);
        baseline_job_free(&job);
        assert_int_equal(seen.done, threads == 1 ? 4 : 6);
    }
    free(values);
}

static void failures_and_cancelling_end_a_walk(void **state) {
    (void)state;
    array_walk w = random_walk(N);
    fds_params params = {.permutations = 200, .seed = 2, .threads = 2};
    walked out;
    fds_error err = {0};
    fds_progress seen;
    fds_events events = {.progress = stop_at_once, .user = &seen};
    assert_int_equal(walk_with(&w, &params, &events, &out, &err), FDS_ERR_CANCELLED);
    assert_int_equal(seen.done, BASELINE_ROUND);
    assert_int_equal(seen.total, 200);
    w.fail_player = 3;
    expect_error(walk(&w, &params, &out, &err), FDS_ERR_DIVERGED, &err, "player 3 must fail");
    free((void *)(uintptr_t)w.asked.game.v);
}

static fds_status small_walk(fds_error *err) {
    array_walk w = random_walk(2);
    fds_params params = {.permutations = 60, .seed = 2, .threads = 1};
    walked out;
    fds_status status = walk(&w, &params, &out, err);
    free((void *)(uintptr_t)w.asked.game.v);
    return status;
}

static void a_walk_survives_out_of_memory(void **state) {
    (void)state;
    each_allocation_fails("a walk", small_walk);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_permutation_is_equally_likely),
        cmocka_unit_test(means_and_errors_are_those_of_two_passes),
        cmocka_unit_test(the_change_is_computed_every_hundred_permutations),
        cmocka_unit_test(players_who_add_nothing_do_not_change),
        cmocka_unit_test(walks_end_where_they_say),
        cmocka_unit_test(walks_stop_when_values_have_settled),
        cmocka_unit_test(threads_change_no_bit_of_a_walk),
        cmocka_unit_test(a_round_has_a_permutation_for_every_worker),
        cmocka_unit_test(failures_and_cancelling_end_a_walk),
        cmocka_unit_test(a_walk_survives_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
