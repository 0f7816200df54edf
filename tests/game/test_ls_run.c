/* SPDX-License-Identifier: Apache-2.0
 * How the least squares run: the same bits on any number of threads, memory that does not grow with
 * the coalitions, and failures of reading, memory and arguments that are told and leave nothing. */
#include "ls_fixture.h"

#include <cblas.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

enum { N = 20, GROUPS = 4 };

/* ---- same bits ---- */

static void the_bits_do_not_depend_on_threads(void **state) {
    (void)state;
    static const size_t widths[] = {1, 511, 512, 513, 1300};
    fds_groups *groups = groups_in_turn(N, GROUPS);
    for (fds_sampler sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_LEVERAGE; sampler++) {
        fds_plan *plan = sampled_plan(sampler, N, NULL, 260, 1); /* more than a block of pairs */
        hash_game game = {plan, 0.5};
        for (size_t w = 0; w < COUNT(widths); w++) {
            size_t count = N * widths[w], bytes = 2 * count * sizeof(double);
            fds_rows rows = {widths[w], hash_read, &game};
            double *one = need(2 * count, sizeof *one), *many = need(2 * count, sizeof *many);
            for (fds_adjust adjust = FDS_ADJUST_NONE; adjust <= FDS_ADJUST_COUNTS; adjust++) {
                fds_ls_params params = {.adjust = adjust, .groups = groups};
                fds_ls_report first = solve_rows(plan, &rows, &params, 1, one, one + count);
                for (unsigned threads = 2; threads <= 4; threads++) {
                    memset(many, 0, bytes);
                    fds_ls_report report =
                        solve_rows(plan, &rows, &params, threads, many, many + count);
                    assert_memory_equal(one, many, bytes);
                    assert_memory_equal(&first, &report, sizeof report);
                }
            }
            free(one);
            free(many);
        }
        fds_plan_free(plan);
    }
    fds_groups_free(groups);
}

/* Errors and report may be left out; the values are the same. */
static void values_do_not_depend_on_what_else_is_asked_for(void **state) {
    (void)state;
    fds_plan *plan = sampled_plan(FDS_SAMPLER_LEVERAGE, N, NULL, 200, 1);
    hash_game game = {plan, 0.5};
    fds_rows rows = {7, hash_read, &game};
    double with[N * 7], without[N * 7], errors[N * 7];
    for (fds_adjust adjust = FDS_ADJUST_NONE; adjust <= FDS_ADJUST_COUNTS; adjust++) {
        fds_ls_params params = {.adjust = adjust};
        solve_rows(plan, &rows, &params, 1, with, errors);
        assert_int_equal(
            fds_least_squares(plan, &rows, &params, 1, without, NULL, NULL, NULL, NULL), FDS_OK);
        assert_memory_equal(with, without, sizeof with);
    }
    fds_plan_free(plan);
}

/* ---- reading ---- */

typedef struct {
    hash_game game; /* first, so that hash_read takes it */
    unsigned workers;
    size_t columns, rows, fail_at;
    atomic_size_t reads, wrong;
    atomic_bool busy[8];
    size_t last_memory;
} watch;

static size_t memory_in_use(void) {
#if defined __GLIBC__ && __GLIBC_PREREQ(2, 33)
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
#else
    return 0;
#endif
}

static fds_status watched_read(void *context, unsigned worker, size_t row, size_t first,
                               size_t count, double *out, fds_error *err) {
    watch *w = context;
    size_t number = atomic_fetch_add(&w->reads, 1) + 1;
    if (worker >= w->workers || row >= w->rows || count == 0 || first + count > w->columns) {
        atomic_fetch_add(&w->wrong, 1);
        return FDS_OK;
    }
    if (atomic_exchange(&w->busy[worker], true)) /* two at a time under one number */
        atomic_fetch_add(&w->wrong, 1);
    fds_status status = number == w->fail_at
                            ? fds__fail(err, FDS_ERR_IO, "row %zu: the disk is gone", row)
                            : hash_read(context, worker, row, first, count, out, err);
    if (w->workers == 1)
        w->last_memory = memory_in_use();
    atomic_store(&w->busy[worker], false);
    return status;
}

static void rows_are_asked_for_within_bounds_by_known_workers(void **state) {
    (void)state;
    static const size_t widths[] = {1, 255, 256, 257, 513, 1300};
    fds_plan *plan = sampled_plan(FDS_SAMPLER_LEVERAGE, N, NULL, 260, 1);
    for (size_t i = 0; i < COUNT(widths); i++)
        for (unsigned threads = 1; threads <= 4; threads++)
            for (fds_adjust adjust = FDS_ADJUST_NONE; adjust <= FDS_ADJUST_COUNTS; adjust++) {
                watch w = {.game = {plan, 0.5},
                           .workers = threads,
                           .columns = widths[i],
                           .rows = fds_plan_rows(plan)};
                fds_rows rows = {widths[i], watched_read, &w};
                double *values = need(2 * N * widths[i], sizeof *values);
                solve_rows(plan, &rows, &(fds_ls_params){.adjust = adjust}, threads, values,
                           values + N * widths[i]);
                assert_int_equal(w.wrong, 0);
                free(values);
            }
    fds_plan_free(plan);
}

/* Of the game and of its surrogate, each read in turn. */
static void a_failed_read_is_passed_on(void **state) {
    (void)state;
    enum { COUNT_OF_ROWS = 8, WIDTH = 515 };
    double *values = need(3 * N * WIDTH, sizeof *values);
    size_t failed = 0;
    fds_plan *plan = sampled_plan(FDS_SAMPLER_PAIRED, N, NULL, COUNT_OF_ROWS, 1);
    for (int of_surrogate = 0; of_surrogate < 2; of_surrogate++)
        for (size_t fail_at = 1;; fail_at++) {
            watch game = {.game = {plan, 0.5},
                          .workers = 2,
                          .columns = WIDTH,
                          .rows = COUNT_OF_ROWS + 2,
                          .fail_at = of_surrogate ? 0 : fail_at};
            watch surrogate = game;
            surrogate.fail_at = of_surrogate ? fail_at : 0;
            fds_rows rows = {WIDTH, watched_read, &game};
            fds_rows control = {WIDTH, watched_read, &surrogate};
            fds_ls_params params = {.adjust = FDS_ADJUST_COUNTS,
                                    .control = &control,
                                    .control_values = values + 2 * N * WIDTH};
            fds_error err = {0};
            fds_status status = fds_least_squares(plan, &rows, &params, 2, values,
                                                  values + N * WIDTH, NULL, NULL, &err);
            if (fail_at > (of_surrogate ? surrogate.reads : game.reads)) {
                expect_ok(status, &err);
                break;
            }
            failed++;
            expect_error(status, FDS_ERR_IO, &err, "the disk is gone");
        }
    print_message("# %zu reads failed, one at a time\n", failed);
    fds_plan_free(plan);
    free(values);
}

/* ---- memory ---- */

/* At the last read, when all is there. */
static size_t memory_with(fds_sampler sampler, fds_adjust adjust, size_t coalitions) {
    enum { WIDTH = 20 };
    fds_plan *plan = sampled_plan(sampler, N, NULL, coalitions, 1);
    watch w = {.game = {plan, 0.5}, .workers = 1, .columns = WIDTH, .rows = coalitions + 2};
    fds_rows rows = {WIDTH, watched_read, &w};
    double *values = need(2 * N * WIDTH, sizeof *values);
    size_t before = memory_in_use();
    solve_rows(plan, &rows, &(fds_ls_params){.adjust = adjust}, 1, values, values + N * WIDTH);
    assert_int_equal(w.wrong, 0);
    free(values);
    fds_plan_free(plan);
    return w.last_memory - before;
}

/* Four numbers a case, and nothing else. */
static void memory_does_not_grow_with_coalitions(void **state) {
    (void)state;
    if (IS_SLOW_BUILD || memory_in_use() == 0) /* sanitizers have an allocator of their own */
        SKIP_CASE("memory cannot be measured");
    for (fds_sampler sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_LEVERAGE; sampler++)
        for (fds_adjust adjust = FDS_ADJUST_NONE; adjust <= FDS_ADJUST_COUNTS; adjust++) {
            size_t few = memory_with(sampler, adjust, 4000);
            size_t more = memory_with(sampler, adjust, 12000) - few;
            size_t pairs = sampler == FDS_SAMPLER_KERNEL ? 8000 : 4000;
            print_message("# %s, %s: %zu bytes with 4,000 coalitions, %.1f for each case more\n",
                          sampler_names[sampler], adjust_names[adjust], few,
                          (double)more / (double)pairs);
            assert_true(more <= pairs * 4 * sizeof(double) + 4096 * 4);
        }
}

enum { FEW = 6 };
static fds_plan *few_plan;
static fds_groups *few_groups;

static fds_status run_with_everything(fds_error *err) {
    enum { WIDTH = 3 };
    hash_game game = {few_plan, 0.5}, other = {few_plan, 0.1};
    fds_rows rows = {WIDTH, hash_read, &game}, control = {WIDTH, hash_read, &other};
    double values[FEW * WIDTH], errors[FEW * WIDTH], known[FEW * WIDTH] = {0};
    fds_ls_params params = {.adjust = FDS_ADJUST_COUNTS,
                            .groups = few_groups,
                            .control = &control,
                            .control_values = known};
    return fds_least_squares(few_plan, &rows, &params, 1, values, errors, NULL, NULL, err);
}

static void every_failed_allocation_is_told_and_leaves_nothing(void **state) {
    (void)state;
    few_groups = groups_in_turn(FEW, 2);
    few_plan = sampled_plan(FDS_SAMPLER_LEVERAGE, FEW, NULL, 20, 1);
    each_allocation_fails("least squares", run_with_everything);
    fds_groups_free(few_groups);
    fds_plan_free(few_plan);
}

/* ---- arguments ---- */

typedef struct {
    fds_plan *plan;
    hash_game game;
    fds_rows rows;
    fds_ls_params params;
} call;

static call make_call(fds_plan *plan, hash_game *game) {
    *game = (hash_game){plan, 0.5};
    return (call){.plan = plan, .rows = {2, hash_read, game}};
}

static void expect_refused(const call *c, fds_status wanted, const char *words) {
    double values[64];
    fds_error err = {0};
    expect_error(
        fds_least_squares(c->plan, &c->rows, &c->params, 1, values, NULL, NULL, NULL, &err), wanted,
        &err, words);
}

static void what_does_not_fit_together_is_refused(void **state) {
    (void)state;
    hash_game game;
    fds_plan *plan = sampled_plan(FDS_SAMPLER_PAIRED, 8, NULL, 40, 1),
             *exact = exact_plan(FDS_SAMPLER_KERNEL, 8, NULL);
    fds_groups *wrong = groups_in_turn(9, 3), *groups = groups_in_turn(8, 3);
    call c = make_call(exact, &game);
    expect_refused(&c, FDS_ERR_USAGE, "sampled");
    c = make_call(plan, &game);
    c.rows.columns = 0;
    expect_refused(&c, FDS_ERR_USAGE, "no columns");
    c = make_call(plan, &game);
    c.params = (fds_ls_params){.adjust = FDS_ADJUST_SHRINK, .groups = wrong};
    expect_refused(&c, FDS_ERR_SHAPE, "9 players");
    c = make_call(plan, &game);
    fds_rows narrow = {1, hash_read, &game};
    double known[16] = {0};
    c.params = (fds_ls_params){.control = &narrow, .control_values = known};
    expect_refused(&c, FDS_ERR_SHAPE, "surrogate");
    c.params = (fds_ls_params){.control = &c.rows};
    expect_refused(&c, FDS_ERR_SHAPE, "surrogate");
    c.params = (fds_ls_params){.control_values = known};
    expect_refused(&c, FDS_ERR_SHAPE, "surrogate");
    for (fds_sampler sampler = FDS_SAMPLER_GFDS; sampler <= FDS_SAMPLER_GFDS_PLUS; sampler++) {
        fds_plan *grouped = sampled_plan(sampler, 8, groups, 40, 1);
        c = make_call(grouped, &game);
        c.params = (fds_ls_params){.adjust = FDS_ADJUST_COUNTS, .groups = groups};
        expect_refused(&c, FDS_ERR_USAGE, "counts");
        fds_plan_free(grouped);
    }
    fds_plan *large = sampled_plan(FDS_SAMPLER_PAIRED, 16385, NULL, 2, 1);
    fds_groups *many = groups_in_turn(16385, 5000);
    c = make_call(large, &game);
    c.params = (fds_ls_params){.adjust = FDS_ADJUST_SHRINK, .groups = many};
    expect_refused(&c, FDS_ERR_LIMIT, "16385 unknowns");
    fds_error err = {0};
    expect_error(fds_least_squares_check(large, &c.params, &err), FDS_ERR_LIMIT, &err, "16385");
    fds_groups_free(many);
    fds_plan_free(large);
    fds_plan_free(plan);
    fds_plan_free(exact);
    fds_groups_free(wrong);
    fds_groups_free(groups);
}

/* ---- the host's OpenBLAS ---- */

static fds_status solve_or_fail(bool must_fail) {
    watch w = {.game = {few_plan, 0.5},
               .workers = 2,
               .columns = 600,
               .rows = fds_plan_rows(few_plan),
               .fail_at = must_fail ? 30 : 0};
    fds_rows rows = {600, watched_read, &w};
    double values[2 * FEW * 600];
    return fds_least_squares(few_plan, &rows, &(fds_ls_params){.adjust = FDS_ADJUST_COUNTS}, 2,
                             values, values + FEW * 600, NULL, NULL, NULL);
}

static void *solve_often(void *unused) {
    for (int i = 0; i < 20; i++)
        solve_or_fail(i % 2);
    return unused;
}

static void openblas_has_the_threads_that_it_had_before(void **state) {
    (void)state;
    int before = openblas_get_num_threads();
    pthread_t threads[3];
    few_plan = sampled_plan(FDS_SAMPLER_LEVERAGE, FEW, NULL, 20, 1);
    openblas_set_num_threads(2);
    assert_int_equal(solve_or_fail(false), FDS_OK);
    assert_int_equal(openblas_get_num_threads(), 2);
    assert_int_equal(solve_or_fail(true), FDS_ERR_IO);
    assert_int_equal(openblas_get_num_threads(), 2);
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, solve_often, NULL), 0);
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(openblas_get_num_threads(), 2);
    openblas_set_num_threads(before);
    fds_plan_free(few_plan);
}

static void a_forked_child_finds_the_same_values(void **state) {
    (void)state;
    enum { WIDTH = 3 };
    few_plan = sampled_plan(FDS_SAMPLER_LEVERAGE, FEW, NULL, 20, 1);
    hash_game game = {few_plan, 0.5};
    fds_rows rows = {WIDTH, hash_read, &game};
    double here[FEW * WIDTH], there[FEW * WIDTH];
    fds_ls_params params = {.adjust = FDS_ADJUST_COUNTS};
    solve_rows(few_plan, &rows, &params, 2, here, NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        fds_least_squares(few_plan, &rows, &params, 2, there, NULL, NULL, NULL, NULL);
        _exit(memcmp(here, there, sizeof here) != 0);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    fds_plan_free(few_plan);
}

/* ---- progress ---- */

typedef struct {
    uint64_t calls, done, total;
    bool stop;
} seen;

static bool see(void *user, const fds_progress *progress) {
    seen *s = user;
    s->calls++;
    s->done = progress->done;
    s->total = progress->total;
    return s->stop;
}

static void progress_is_told_and_may_stop_the_work(void **state) {
    (void)state;
    enum { WIDTH = 1300 };
    fds_plan *plan = sampled_plan(FDS_SAMPLER_LEVERAGE, N, NULL, 100, 1);
    hash_game game = {plan, 0.5};
    fds_rows rows = {WIDTH, hash_read, &game};
    double *values = need(N * WIDTH, sizeof *values);
    seen s = {.stop = false};
    fds_events events = {.progress = see, .user = &s};
    fds_ls_params params = {.adjust = FDS_ADJUST_NONE};
    fds_error err = {0};
    expect_ok(fds_least_squares(plan, &rows, &params, 1, values, NULL, NULL, &events, &err), &err);
    assert_true(s.calls > 0 && s.done == s.total);
    s.stop = true;
    assert_int_equal(fds_least_squares(plan, &rows, &params, 1, values, NULL, NULL, &events, &err),
                     FDS_ERR_CANCELLED);
    fds_plan_free(plan);
    free(values);
}

typedef struct {
    const char *stop_in;      /* the stage whose second call cancels, or NULL */
    uint64_t calls_there;     /* of that stage */
    uint64_t stages, done;    /* how often another stage began; of the present one */
    char stage[32];           /* the present one */
    double last_s, longest_s; /* processor time of the last call, and between two of them */
    bool not_rising;
} listener;

/* Of this process: other processes do not count. */
static double processor_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool listen_in(void *user, const fds_progress *p) {
    listener *l = user;
    l->longest_s = fmax(l->longest_s, processor_s() - l->last_s);
    l->last_s = processor_s();
    if (strcmp(l->stage, p->stage) != 0) {
        snprintf(l->stage, sizeof l->stage, "%s", p->stage);
        l->stages++;
    } else if (strcmp(p->stage, "least squares") == 0) {
        l->not_rising |= p->done < l->done;
    }
    l->done = p->done;
    return l->stop_in && strcmp(p->stage, l->stop_in) == 0 && ++l->calls_there == 2;
}

static fds_status solve_listening(listener *l, size_t n, size_t coalitions, fds_error *err) {
    enum { WIDTH = 40 };
    fds_plan *plan = sampled_plan(FDS_SAMPLER_LEVERAGE, n, NULL, coalitions, 1);
    hash_game game = {plan, 0.5};
    fds_rows rows = {WIDTH, hash_read, &game};
    fds_events events = {.progress = listen_in, .user = l};
    double *values = need(2 * n * WIDTH, sizeof *values);
    l->last_s = processor_s();
    fds_status status =
        fds_least_squares(plan, &rows, &(fds_ls_params){.adjust = FDS_ADJUST_COUNTS}, 1, values,
                          values + n * WIDTH, NULL, &events, err);
    l->longest_s = fmax(l->longest_s, processor_s() - l->last_s);
    free(values);
    fds_plan_free(plan);
    return status;
}

static void every_stage_hears_a_cancellation_within_a_second(void **state) {
    (void)state;
    static const char *const stages[] = {"normal equations", "shrinkage", "leverage",
                                         "least squares"};
    fds_error err = {0};
    for (size_t i = 0; i < COUNT(stages); i++) {
        listener l = {.stop_in = stages[i]};
        expect_error(solve_listening(&l, 20, 600, &err), FDS_ERR_CANCELLED, &err, stages[i]);
    }
    listener l = {0};
    expect_ok(solve_listening(&l, IS_SLOW_BUILD ? 100 : 800, 3000, &err), &err);
    print_message("# %llu stages, at most %.2f s between two calls\n", (unsigned long long)l.stages,
                  l.longest_s);
    assert_false(l.not_rising);
    assert_true(l.longest_s < 1);
}

typedef struct {
    hash_game game; /* first, so that hash_read takes it */
    atomic_size_t reads;
} slow_game;

/* Only the calling thread, number 0, tells of progress; others are slow. */
static fds_status slow_read(void *context, unsigned worker, size_t row, size_t first, size_t count,
                            double *out, fds_error *err) {
    slow_game *g = context;
    if (worker > 0) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        atomic_fetch_add(&g->reads, 1);
    }
    return hash_read(context, worker, row, first, count, out, err);
}

static bool stop_values(void *user, const fds_progress *p) {
    (void)user;
    return strcmp(p->stage, "least squares") == 0;
}

static void a_cancellation_reaches_all_threads(void **state) {
    (void)state;
    enum { WIDTH = 1200, ROWS = 4000 };
    fds_plan *plan = sampled_plan(FDS_SAMPLER_LEVERAGE, N, NULL, ROWS, 1);
    slow_game game = {.game = {plan, 0.5}};
    fds_rows rows = {WIDTH, slow_read, &game};
    fds_events events = {.progress = stop_values};
    double *values = need(N * WIDTH, sizeof *values);
    fds_error err = {0};
    expect_error(fds_least_squares(plan, &rows, &(fds_ls_params){.adjust = FDS_ADJUST_NONE}, 3,
                                   values, NULL, NULL, &events, &err),
                 FDS_ERR_CANCELLED, &err, "blocks");
    print_message("# %zu reads of the other threads\n", atomic_load(&game.reads));
    assert_true(atomic_load(&game.reads) < ROWS / 2);
    free(values);
    fds_plan_free(plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bits_do_not_depend_on_threads),
        cmocka_unit_test(values_do_not_depend_on_what_else_is_asked_for),
        cmocka_unit_test(rows_are_asked_for_within_bounds_by_known_workers),
        cmocka_unit_test(a_failed_read_is_passed_on),
        cmocka_unit_test(memory_does_not_grow_with_coalitions),
        cmocka_unit_test(every_failed_allocation_is_told_and_leaves_nothing),
        cmocka_unit_test(what_does_not_fit_together_is_refused),
        cmocka_unit_test(openblas_has_the_threads_that_it_had_before),
        cmocka_unit_test(a_forked_child_finds_the_same_values),
        cmocka_unit_test(progress_is_told_and_may_stop_the_work),
        cmocka_unit_test(a_cancellation_reaches_all_threads),
        cmocka_unit_test(every_stage_hears_a_cancellation_within_a_second),
    };
    return cmocka_run_group_tests_name("game/ls_run", tests, NULL, NULL);
}
