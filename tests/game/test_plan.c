/* SPDX-License-Identifier: Apache-2.0
 * Plans: their form, nested plans of one seed, their last rows, plans of all coalitions, a
 * coalition's id, and every refusal. */
#include "fixture.h"

static bool is_equal(const fds_plan *a, size_t row_a, const fds_plan *b, size_t row_b) {
    size_t bytes = fds_coalition_words(fds_plan_players(a)) * sizeof(uint64_t);
    return memcmp(fds_plan_coalition(a, row_a), fds_plan_coalition(b, row_b), bytes) == 0;
}

/* ---- the form of a plan ---- */

static void every_plan_begins_with_none_and_all(void **state) {
    (void)state;
    static const size_t sizes[] = {2, 3, 63, 64, 65, 128, 1000};
    for (size_t s = 0; s < COUNT(sizes); s++) {
        size_t n = sizes[s];
        uint32_t *group_of = need(n, sizeof *group_of);
        for (size_t i = 0; i < n; i++)
            group_of[i] = i % 5 % (uint32_t)n;
        fds_groups *groups = make_groups(group_of, n);
        for (int sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_GFDS_PLUS; sampler++) {
            fds_plan *plan =
                sampled_plan((fds_sampler)sampler, n, sampler >= FDS_SAMPLER_GFDS ? groups : NULL,
                             n == 2 ? 2 : 6, 1);
            assert_int_equal(fds_plan_players(plan), n);
            assert_int_equal(fds_plan_rows(plan), n == 2 ? 4 : 8);
            assert_int_equal(plan_size(plan, 0), 0);
            assert_int_equal(plan_size(plan, 1), n);
            assert_true(fds_plan_weight(plan, 0) == 0 && fds_plan_weight(plan, 1) == 0);
            for (size_t row = 2; row < fds_plan_rows(plan); row++) {
                assert_true(plan_size(plan, row) > 0 && plan_size(plan, row) < n);
                assert_true(fds_plan_weight(plan, row) > 0);
                if (n % 64) /* bits beyond the players */
                    assert_true(fds_plan_coalition(plan, row)[n / 64] >> (n % 64) == 0);
            }
            assert_null(fds_plan_coalition(plan, fds_plan_rows(plan)));
            assert_true(fds_plan_weight(plan, fds_plan_rows(plan)) == 0);
            fds_plan_free(plan);
        }
        fds_groups_free(groups);
        free(group_of);
    }
    fds_plan_free(NULL);
}

/* Blank ones have no players in any row, the second too. */
static void a_blank_plan_is_blank(void **state) {
    (void)state;
    static const size_t rows[] = {0, 1, 2, 7};
    for (size_t i = 0; i < COUNT(rows); i++) {
        fds_plan *plan = NULL;
        fds_error err = {0};
        expect_ok(fds__plan_blank(70, rows[i], &plan, &err), &err);
        assert_int_equal(fds_plan_rows(plan), rows[i]);
        for (size_t row = 0; row < rows[i]; row++)
            assert_int_equal(plan_size(plan, row), 0);
        fds_plan_free(plan);
        plan = NULL;
        assert_int_equal(fds__plan_blank(0, rows[i], &plan, &err), FDS_ERR_USAGE);
        assert_int_equal(fds__plan_blank(70, FDS__MAX_ROWS + 1, &plan, &err), FDS_ERR_LIMIT);
        expect_in(err.text, "268435457 rows");
        assert_null(plan);
    }
}

static void pairs_are_complements(void **state) {
    (void)state;
    for (int sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_GFDS_PLUS; sampler++) {
        fds_groups *groups = groups_for((fds_sampler)sampler, 100);
        fds_plan *plan = sampled_plan((fds_sampler)sampler, 100, groups, 2000, 3);
        assert_int_equal(fds_plan_is_paired(plan), sampler != FDS_SAMPLER_KERNEL);
        for (size_t row = 0; fds_plan_is_paired(plan) && row < fds_plan_rows(plan); row += 2)
            for (size_t i = 0; i < 100; i++)
                assert_true(fds_coalition_has(fds_plan_coalition(plan, row), i) !=
                            fds_coalition_has(fds_plan_coalition(plan, row + 1), i));
        fds_plan_free(plan);
        fds_groups_free(groups);
    }
}

static void a_longer_plan_begins_with_the_shorter(void **state) {
    (void)state;
    static const size_t players[] = {5, 8, 100};
    for (int sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_GFDS_PLUS; sampler++)
        for (size_t p = 0; p < COUNT(players); p++) {
            size_t n = players[p], longest = n == 5 ? 30 : n == 8 ? 254 : 3000;
            fds_groups *groups = groups_for((fds_sampler)sampler, n);
            fds_plan *whole = sampled_plan((fds_sampler)sampler, n, groups, longest, 11);
            for (size_t count = 2; count < longest; count += 2 * (1 + longest / 60)) {
                fds_plan *part = sampled_plan((fds_sampler)sampler, n, groups, count, 11);
                for (size_t row = 0; row < count + 2; row++)
                    assert_true(is_equal(part, row, whole, row));
                fds_plan_free(part);
            }
            fds_plan_free(whole);
            fds_groups_free(groups);
        }
}

static void another_seed_or_sampler_is_another_plan(void **state) {
    (void)state;
    fds_plan *plans[6];
    for (int i = 0; i < 6; i++)
        plans[i] = sampled_plan((fds_sampler)(i % 3), 100, NULL, 1000, (uint64_t)i / 3);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < i; j++) {
            size_t same = 0;
            for (size_t row = 2; row < 1002; row++)
                same += is_equal(plans[i], row, plans[j], row);
            assert_true(same < 50); /* single players are often met by chance */
        }
    for (int i = 0; i < 6; i++)
        fds_plan_free(plans[i]);
}

typedef struct {
    fds_plan *plans[20];
} crowd;

static fds_status make_one(void *context, size_t job, unsigned worker, fds_error *err) {
    (void)worker;
    crowd *c = context;
    return fds_plan_sample((fds_sampler)(job % 3), 70, NULL, 4000, 5, &c->plans[job], err);
}

static void plans_made_side_by_side_are_the_same(void **state) {
    (void)state;
    crowd c = {{0}};
    fds_error err;
    expect_ok(fds__pool_run(4, COUNT(c.plans), make_one, &c, "plans", "plans", NULL, &err), &err);
    for (size_t i = 0; i < COUNT(c.plans); i++) {
        fds_plan *alone = sampled_plan((fds_sampler)(i % 3), 70, NULL, 4000, 5);
        for (size_t row = 0; row < fds_plan_rows(alone); row++) {
            assert_true(is_equal(alone, row, c.plans[i], row));
            assert_true(fds_plan_weight(alone, row) == fds_plan_weight(c.plans[i], row));
        }
        fds_plan_free(alone);
        fds_plan_free(c.plans[i]);
    }
}

/* ---- groups ---- */

static void a_plan_outlives_its_groups(void **state) {
    (void)state;
    const uint32_t group_of[] = {0, 0, 1, 1};
    const double v[16] = {0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 2};
    double before[4], after[4];
    fds_groups *groups = make_groups(group_of, 4);
    fds_plan *plan = exact_plan(FDS_SAMPLER_GFDS, 4, groups);
    const array_game game = {4, 1, v};
    array_context context = {&game, plan};
    fds_rows rows = array_rows(&context);
    fds_error err;
    expect_ok(fds_exact(plan, &rows, 1, before, NULL, &err), &err);
    fds_groups_free(groups);
    expect_ok(fds_exact(plan, &rows, 1, after, NULL, &err), &err);
    assert_memory_equal(before, after, sizeof before);
    fds_plan_free(plan);
}

/* ---- all coalitions ---- */

static void exact_plans_have_every_coalition_in_its_place(void **state) {
    (void)state;
    for (size_t n = 1; n <= 10; n++) {
        fds_plan *plan = exact_plan(FDS_SAMPLER_KERNEL, n, NULL);
        assert_int_equal(fds_plan_rows(plan), 2 + ((size_t)1 << n));
        assert_int_equal(plan->block_count, 1);
        assert_int_equal(plan_size(plan, 0), 0);
        assert_int_equal(plan_size(plan, 1), n);
        assert_false(fds_plan_is_paired(plan));
        double sum = 0;
        for (size_t mask = 0; mask < (size_t)1 << n; mask++) {
            size_t row = plan->blocks[0].first + mask;
            assert_true(fds_plan_coalition(plan, row)[0] == mask);
            sum += fds_plan_weight(plan, row);
        }
        assert_true(fabs(sum - (double)(((size_t)1 << n) - 2)) < 1e-9);
        fds_plan_free(plan);
    }
}

static void exact_group_plans_have_a_block_for_each_game(void **state) {
    (void)state;
    enum { N = 70 };
    uint32_t group_of[N];
    for (uint32_t i = 0; i < N; i++)
        group_of[i] = i < 2 ? 0 : i < 11 ? 1 + i % 3 : i < 14 ? 4 : 5 + i % 7; /* 12 groups */
    fds_groups *groups = make_groups(group_of, N);
    fds_plan *plan = exact_plan(FDS_SAMPLER_GFDS, N, groups);
    size_t first = 2, all = fds_groups_count(groups);
    assert_int_equal(all, 12);
    assert_int_equal(plan->block_count, all);
    for (size_t b = 0; b < all; b++) {
        const uint32_t *members;
        const fds__block *block = &plan->blocks[b];
        assert_int_equal(block->first, first);
        assert_int_equal(block->owner, b);
        assert_int_equal(block->players, fds_groups_members(groups, b, &members) + all - 1);
        for (size_t mask = 0; mask < (size_t)1 << block->players; mask += 1 + mask / 50)
            assert_int_equal(small_mask(plan, first + mask, groups, b), mask);
        first += (size_t)1 << block->players;
    }
    assert_int_equal(fds_plan_rows(plan), first);
    fds_plan_free(plan);
    plan = exact_plan(FDS_SAMPLER_GFDS_PLUS, N, groups);
    assert_int_equal(fds_plan_rows(plan), 2 + (1 << 12));
    for (size_t mask = 0; mask < 1 << 12; mask++)
        assert_int_equal(small_mask(plan, plan->blocks[0].first + mask, groups, all), mask);
    fds_plan_free(plan);
    fds_groups_free(groups);
}

/* ---- the last rows of a plan ---- */

/* Whether a row's coalition is among rows 2 .. end-1. */
static bool is_among(const fds_plan *plan, size_t end, const fds_plan *of, size_t row) {
    for (size_t other = 2; other < end; other++)
        if (is_equal(plan, other, of, row))
            return true;
    return false;
}

/* The tail from first on, by its definition: the rows of the long plan, in their order and with
 * their weights, but for those which the short one has. */
static void check_tail(fds_sampler sampler, size_t n, const fds_groups *groups, size_t count,
                       size_t more) {
    fds_plan *plan = sampled_plan(sampler, n, groups, count + more, 51), *tail = NULL;
    size_t first = 2 + count, row = 2, step = fds_plan_is_paired(plan) ? 2 : 1;
    fds_error err;
    expect_ok(fds__plan_tail(plan, first, &tail, &err), &err);
    assert_int_equal(fds_plan_players(tail), n);
    assert_int_equal(fds_plan_is_paired(tail), fds_plan_is_paired(plan));
    assert_int_equal(plan_size(tail, 0), 0);
    assert_int_equal(plan_size(tail, 1), n);
    assert_true(fds_plan_weight(tail, 0) == 0 && fds_plan_weight(tail, 1) == 0);
    for (size_t at = first; at < fds_plan_rows(plan); at += step) {
        if (is_among(plan, first, plan, at))
            continue;
        for (size_t i = 0; i < step; i++, row++) {
            assert_true(row < fds_plan_rows(tail) && is_equal(tail, row, plan, at + i));
            assert_true(fds_plan_weight(tail, row) == fds_plan_weight(plan, at + i));
            assert_false(is_among(plan, first, tail, row));
        }
    }
    assert_int_equal(fds_plan_rows(tail), row);
    assert_true(row > 2);
    fds_plan_free(plan);
    fds_plan_free(tail);
}

static void a_tail_is_what_the_shorter_plan_has_not_seen(void **state) {
    (void)state;
    static const size_t sizes[] = {6, 14, 64, 65, 130}, counts[] = {2, 20, 60};
    for (int sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_GFDS_PLUS; sampler++)
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (size_t c = 0; c < COUNT(counts); c++) {
                bool is_small =
                    sampler == FDS_SAMPLER_GFDS_PLUS || (sampler != FDS_SAMPLER_LEVERAGE && s == 0);
                if (sampler == FDS_SAMPLER_LEVERAGE && s == 0 && counts[c] == 60)
                    continue; /* six players have 62 coalitions */
                uint32_t group_of[130];
                for (uint32_t i = 0; i < sizes[s]; i++)
                    group_of[i] = i % (sampler == FDS_SAMPLER_GFDS_PLUS ? 6 : 3);
                fds_groups *groups =
                    sampler >= FDS_SAMPLER_GFDS ? make_groups(group_of, sizes[s]) : NULL;
                check_tail((fds_sampler)sampler, sizes[s], groups, counts[c], is_small ? 200 : 40);
                fds_groups_free(groups);
            }
}

/* A game that both parts have seen all of leaves nothing to keep out. */
static void a_tail_without_rows_is_refused(void **state) {
    (void)state;
    static const uint32_t group_of[] = {0, 1, 2, 0};
    fds_groups *groups = make_groups(group_of, 4);
    for (int sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_GFDS_PLUS; sampler++) {
        const fds_groups *given = sampler >= FDS_SAMPLER_GFDS ? groups : NULL;
        bool is_leverage = sampler == FDS_SAMPLER_LEVERAGE; /* which has no coalition twice */
        fds_plan *plan = sampled_plan((fds_sampler)sampler, 4, given, is_leverage ? 14 : 2000, 52);
        fds_plan *tail = NULL;
        fds_error err;
        expect_error(fds__plan_tail(plan, is_leverage ? 16 : 1902, &tail, &err), FDS_ERR_USAGE,
                     &err, "no coalitions remain for validation");
        assert_null(tail);
        assert_int_equal(fds__plan_tail(plan, is_leverage ? 16 : 1902, &tail, NULL), FDS_ERR_USAGE);
        fds_plan_free(plan);
    }
    fds_groups_free(groups);
}

/* ---- identity ---- */

static void an_id_is_the_set_however_it_was_made(void **state) {
    (void)state;
    uint64_t ids[32];
    for (uint64_t mask = 0; mask < 32; mask++) {
        ids[mask] = fds_coalition_id(&mask, 5);
        for (uint64_t other = 0; other < mask; other++)
            assert_true(ids[mask] != ids[other]);
        assert_true(ids[mask] != fds_coalition_id(&mask, 6)); /* another game's set */
        uint64_t longer[2] = {mask, 0};
        assert_true(ids[mask] != fds_coalition_id(longer, 65));
    }
    for (int sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_GFDS_PLUS + 1; sampler++) {
        bool is_exact = sampler > FDS_SAMPLER_GFDS_PLUS;
        fds_groups *groups = is_exact ? NULL : groups_for((fds_sampler)sampler, 5);
        fds_plan *plan = is_exact ? exact_plan(FDS_SAMPLER_KERNEL, 5, NULL)
                                  : sampled_plan((fds_sampler)sampler, 5, groups, 30, 31);
        for (size_t row = 0; row < fds_plan_rows(plan); row++) {
            const uint64_t *bits = fds_plan_coalition(plan, row);
            assert_true(fds_coalition_id(bits, 5) == ids[bits[0]]);
        }
        fds_plan_free(plan);
        fds_groups_free(groups);
    }
}

/* ---- large games ---- */

static void tens_of_thousands_of_players(void **state) {
    (void)state;
    const size_t n = 50000;
    for (int sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_GFDS_PLUS; sampler++) {
        fds_groups *groups = groups_for((fds_sampler)sampler, n);
        fds_plan *plan = sampled_plan((fds_sampler)sampler, n, groups, 40, 41);
        size_t members = 0;
        for (size_t row = 2; row < fds_plan_rows(plan); row++)
            members += plan_size(plan, row);
        if (sampler != FDS_SAMPLER_KERNEL)
            assert_int_equal(members, 20 * n); /* pairs */
        fds_plan_free(plan);
        fds_groups_free(groups);
    }
}

/* 40,000 rows of 100 players are drawn in a fraction of a second. */
static void drawing_a_plan_is_quick(void **state) {
    (void)state;
    for (int sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_GFDS_PLUS; sampler++) {
        fds_groups *groups = groups_for((fds_sampler)sampler, 100);
        double start_s = fds__now_s();
        fds_plan *plan = sampled_plan((fds_sampler)sampler, 100, groups, 40000, 42);
        print_message("# sampler %d: %.1f ms\n", sampler, 1e3 * (fds__now_s() - start_s));
        if (!IS_SLOW_BUILD)
            assert_true(fds__now_s() - start_s < 1);
        fds_plan_free(plan);
        fds_groups_free(groups);
    }
}

/* ---- refusals ---- */

static void mistakes_are_named(void **state) {
    (void)state;
    fds_error err = {0};
    fds_plan *plan;
    const uint32_t two[] = {0, 1, 0, 1}, one[] = {0, 0, 0, 0};
    fds_groups *groups = make_groups(two, 4), *single = make_groups(one, 4);
    const struct {
        fds_sampler sampler;
        size_t players;
        const fds_groups *groups;
        size_t count;
        fds_status status;
        const char *words;
    } pairs[] = {
        {FDS_SAMPLER_KERNEL, 0, NULL, 2, FDS_ERR_USAGE, "at least one"},
        {FDS_SAMPLER_KERNEL, FDS__MAX_PLAYERS + 1, NULL, 2, FDS_ERR_LIMIT, "1048577 players"},
        {FDS_SAMPLER_KERNEL, 1, NULL, 2, FDS_ERR_USAGE, "v(all) - v(none)"},
        {FDS_SAMPLER_LEVERAGE, 1, NULL, 2, FDS_ERR_USAGE, "v(all) - v(none)"},
        {(fds_sampler)5, 4, NULL, 2, FDS_ERR_USAGE, "no sampler number 5"},
        {(fds_sampler)-1, 4, NULL, 2, FDS_ERR_USAGE, "no sampler number -1"},
        {FDS_SAMPLER_KERNEL, 4, NULL, 0, FDS_ERR_USAGE, "0 coalitions"},
        {FDS_SAMPLER_PAIRED, 4, NULL, 3, FDS_ERR_USAGE, "even"},
        {FDS_SAMPLER_LEVERAGE, 4, NULL, 5, FDS_ERR_USAGE, "even"},
        {FDS_SAMPLER_GFDS, 4, groups, 7, FDS_ERR_USAGE, "even"},
        {FDS_SAMPLER_GFDS_PLUS, 4, groups, 1, FDS_ERR_USAGE, "even"},
        {FDS_SAMPLER_KERNEL, 4, NULL, FDS__MAX_ROWS - 1, FDS_ERR_LIMIT, "268435455 coalitions"},
        {FDS_SAMPLER_KERNEL, 4, NULL, SIZE_MAX, FDS_ERR_LIMIT, "coalitions"},
        {FDS_SAMPLER_LEVERAGE, 4, NULL, 16, FDS_ERR_LIMIT, "only 14"},
        {FDS_SAMPLER_GFDS, 4, NULL, 2, FDS_ERR_USAGE, "need groups"},
        {FDS_SAMPLER_GFDS_PLUS, 4, NULL, 2, FDS_ERR_USAGE, "need groups"},
        {FDS_SAMPLER_PAIRED, 4, groups, 2, FDS_ERR_USAGE, "only GFDS"},
        {FDS_SAMPLER_GFDS, 5, groups, 2, FDS_ERR_SHAPE, "of 4 players, the plan is for 5"},
        {FDS_SAMPLER_GFDS_PLUS, 4, single, 2, FDS_ERR_USAGE, "one group is one player"},
    };
    for (size_t i = 0; i < COUNT(pairs); i++) {
        expect_error(fds_plan_sample(pairs[i].sampler, pairs[i].players, pairs[i].groups,
                                     pairs[i].count, 1, &plan, &err),
                     pairs[i].status, &err, pairs[i].words);
        assert_int_equal(fds_plan_sample(pairs[i].sampler, pairs[i].players, pairs[i].groups,
                                         pairs[i].count, 1, &plan, NULL),
                         pairs[i].status);
    }
    fds_groups_free(groups);
    fds_groups_free(single);
}

static void enumerations_that_are_too_large_are_refused(void **state) {
    (void)state;
    fds_error err = {0};
    fds_plan *plan;
    uint32_t group_of[60];
    expect_error(fds_plan_exact(FDS_SAMPLER_KERNEL, 21, NULL, &plan, &err), FDS_ERR_LIMIT, &err,
                 "21 players");
    expect_error(fds_plan_exact(FDS_SAMPLER_KERNEL, 0, NULL, &plan, &err), FDS_ERR_USAGE, &err,
                 "no players");
    for (uint32_t i = 0; i < 60; i++)
        group_of[i] = i;
    fds_groups *groups = make_groups(group_of, 21);
    expect_error(fds_plan_exact(FDS_SAMPLER_GFDS_PLUS, 21, groups, &plan, &err), FDS_ERR_LIMIT,
                 &err, "21 groups");
    expect_error(fds_plan_exact(FDS_SAMPLER_PAIRED, 21, groups, &plan, &err), FDS_ERR_USAGE, &err,
                 "only GFDS");
    expect_error(fds_plan_exact(FDS_SAMPLER_GFDS, 20, groups, &plan, &err), FDS_ERR_SHAPE, &err,
                 "21 players");
    fds_groups_free(groups);
    for (uint32_t i = 0; i < 60; i++)
        group_of[i] = i < 2 ? 0 : 1;
    groups = make_groups(group_of, 60);
    expect_error(fds_plan_exact(FDS_SAMPLER_GFDS, 60, groups, &plan, &err), FDS_ERR_LIMIT, &err,
                 "(group 1): its members and the other groups are 59 players");
    assert_non_null(strstr(err.text, "least squares"));
    fds_groups_free(groups);
    for (uint32_t i = 0; i < 60; i++)
        group_of[i] = i % 10; /* ten games of 15 players */
    groups = make_groups(group_of, 60);
    plan = exact_plan(FDS_SAMPLER_GFDS, 60, groups);
    fds_plan_free(plan);
    fds_groups_free(groups);
    for (uint32_t i = 0; i < 60; i++)
        group_of[i] = i < 40 ? i % 5 : 5 + i % 8; /* 13 groups, five of games of 20 players */
    groups = make_groups(group_of, 60);
    expect_error(fds_plan_exact(FDS_SAMPLER_GFDS, 60, groups, &plan, &err), FDS_ERR_LIMIT, &err,
                 "13 groups");
    fds_groups_free(groups);
}

static fds_status make_all(fds_error *err) {
    static const uint32_t group_of[] = {0, 1, 0, 1, 1};
    fds_groups *groups;
    TRY(fds_groups_create(group_of, 5, NULL, &groups, err));
    fds_status status = FDS_OK;
    for (int sampler = FDS_SAMPLER_KERNEL; status == FDS_OK && sampler <= FDS_SAMPLER_GFDS_PLUS;
         sampler++) {
        const fds_groups *given = sampler >= FDS_SAMPLER_GFDS ? groups : NULL;
        fds_plan *sampled = NULL, *exact = NULL, *tail = NULL;
        status = fds_plan_sample((fds_sampler)sampler, 5, given, 10, 1, &sampled, err);
        if (status == FDS_OK)
            status = fds_plan_exact((fds_sampler)sampler, 5, given, &exact, err);
        if (status == FDS_OK && sampler != FDS_SAMPLER_GFDS_PLUS) /* two groups are one pair */
            status = fds__plan_tail(sampled, 4, &tail, err);
        fds_plan_free(tail);
        fds_plan_free(sampled);
        fds_plan_free(exact);
    }
    fds_groups_free(groups);
    return status;
}

static void allocations_may_fail(void **state) {
    (void)state;
    each_allocation_fails("plans", make_all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_plan_begins_with_none_and_all),
        cmocka_unit_test(a_blank_plan_is_blank),
        cmocka_unit_test(pairs_are_complements),
        cmocka_unit_test(a_longer_plan_begins_with_the_shorter),
        cmocka_unit_test(another_seed_or_sampler_is_another_plan),
        cmocka_unit_test(plans_made_side_by_side_are_the_same),
        cmocka_unit_test(a_plan_outlives_its_groups),
        cmocka_unit_test(exact_plans_have_every_coalition_in_its_place),
        cmocka_unit_test(exact_group_plans_have_a_block_for_each_game),
        cmocka_unit_test(a_tail_is_what_the_shorter_plan_has_not_seen),
        cmocka_unit_test(a_tail_without_rows_is_refused),
        cmocka_unit_test(an_id_is_the_set_however_it_was_made),
        cmocka_unit_test(tens_of_thousands_of_players),
        cmocka_unit_test(drawing_a_plan_is_quick),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(enumerations_that_are_too_large_are_refused),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
