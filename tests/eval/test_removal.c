/* SPDX-License-Identifier: Apache-2.0
 * The value loss: against models trained one by one, whatever is removed; what is trained and what
 * is not; bits for any number of threads and after having been stopped; mistakes, and faults. */
#include "../utility/table_fixture.h"
#include "../utility/utility_fixture.h"
#include "eval/eval.h"

#include <float.h>

enum { MOST_PLAYERS = 130, MOST_INPUTS = 8, MOST_SHARES = 8 };

static const fds_removal ways[] = {FDS_REMOVAL_TOP, FDS_REMOVAL_BOTTOM, FDS_REMOVAL_KEEP_TOP};

/* One call of fds_value_loss: its data and what comes of it. */
typedef struct {
    const fds_utility *value;
    fds_removal way;
    double values[MOST_PLAYERS * MOST_INPUTS];
    size_t columns;
    uint32_t labels[MOST_INPUTS];
    double shares[MOST_SHARES];
    size_t share_count;
    unsigned threads;
    const fds_events *events;
    double losses[MOST_SHARES * MOST_INPUTS];
    size_t trained;
} call;

/* Values that differ from player to player and from column to column, and some shares. */
static call call_of(const fds_utility *value, fds_removal way, size_t columns, uint64_t seed) {
    static const double shares[] = {0, 0.1, 0.25, 0.5, 0.8, 1};
    call c = {
        .value = value, .way = way, .columns = columns, .share_count = COUNT(shares), .threads = 1};
    fds_rng rng = fds_rng_make(seed, 6000, 0, 0);
    assert_true(value->players <= MOST_PLAYERS && value->inputs <= MOST_INPUTS);
    for (size_t i = 0; i < value->players * columns; i++)
        c.values[i] = fds_rng_normal(&rng);
    for (size_t i = 0; i < value->inputs; i++)
        c.labels[i] = (uint32_t)fds_rng_below(&rng, value->classes);
    memcpy(c.shares, shares, sizeof shares);
    return c;
}

static fds_status try_call(call *c, fds_table *table, fds_error *err) {
    return fds_value_loss(table, c->way, c->values, c->columns, c->labels, c->shares,
                          c->share_count, c->threads, c->losses, &c->trained, c->events, err);
}

static fds_table *open_table(const fds_utility *value, const char *name) {
    fds_table *table = NULL;
    fds_error err = {0};
    expect_ok(fds_table_open(scratch_path(name), value, FDS_STORE_F32, NULL, &table, &err), &err);
    return table;
}

static void forget(const char *name) {
    nftw(scratch_path(name), scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* In a table of its own. */
static void run_call(call *c) {
    fds_error err = {0};
    fds_table *table = open_table(c->value, "table");
    expect_ok(try_call(c, table, &err), &err);
    fds_table_free(table);
    forget("table");
}

static void expect_same(const call *a, const call *b) {
    assert_memory_equal(a->losses, b->losses,
                        a->share_count * a->value->inputs * sizeof *a->losses);
}

/* ---- the reference ---- */

/* Whether player i takes part once count players are removed or added: from how many are before it,
 * without sorting. */
static bool takes_part(const call *c, size_t column, size_t i, size_t count) {
    size_t n = c->value->players, before = 0;
    double own = c->values[i * c->columns + column];
    for (size_t j = 0; j < n; j++) {
        double other = c->values[j * c->columns + column];
        before += other > own || (other == own && j < i);
    }
    return c->way == FDS_REMOVAL_TOP      ? before >= count
           : c->way == FDS_REMOVAL_BOTTOM ? before < n - count
                                          : before < count;
}

static double naive_loss(const call *c, size_t count, size_t input) {
    uint64_t coalition[(MOST_PLAYERS + 63) / 64] = {0};
    float *probs = need(c->value->inputs * c->value->classes, sizeof *probs);
    fds_error err = {0};
    for (size_t i = 0; i < c->value->players; i++)
        if (takes_part(c, c->columns == 1 ? 0 : input, i, count))
            coalition[i / 64] |= (uint64_t)1 << i % 64;
    expect_ok(fds_utility_eval(c->value, 0, coalition, probs, &err), &err);
    double p = probs[input * c->value->classes + c->labels[input]];
    free(probs);
    return -log(p > (double)FLT_MIN ? p : (double)FLT_MIN);
}

/* counts: whole players of each share. */
static void expect_naive(const call *c, const size_t *counts) {
    for (size_t k = 0; k < c->share_count; k++)
        for (size_t i = 0; i < c->value->inputs; i++) {
            double got = c->losses[k * c->value->inputs + i], wanted = naive_loss(c, counts[k], i);
            if (got != wanted)
                fail_msg("way %d, share %g, input %zu: %.17g, not %.17g", (int)c->way, c->shares[k],
                         i, got, wanted);
        }
}

/* ---- losses ---- */

static void losses_are_those_of_models_without_the_removed(void **state) {
    (void)state;
    static const char *const kinds[] = {"knn:3", "retrain:2"};
    static const size_t counts[] = {0, 1, 3, 5, 8, 10}; /* 2.5 players are 3 */
    game g = game_vectors(10, 5, 3, 5);
    for (size_t k = 0; k < COUNT(kinds); k++) {
        fds__utility_params p = smaller(kinds[k]);
        fds_utility *value = make_value(&g, &p, 1);
        for (size_t w = 0; w < COUNT(ways); w++)
            for (size_t columns = 1; columns <= 5; columns += 4) {
                call c = call_of(value, ways[w], columns, k);
                run_call(&c);
                expect_naive(&c, counts);
            }
        fds_utility_free(value);
    }
    game_free(&g);
}

/* The share of inputs whose likeliest label is the true one, by the same models. */
static double naive_accuracy(const call *c, size_t count) {
    uint64_t coalition[(MOST_PLAYERS + 63) / 64] = {0};
    size_t classes = c->value->classes, correct = 0;
    float *probs = need(c->value->inputs * classes, sizeof *probs);
    fds_error err = {0};
    for (size_t i = 0; i < c->value->players; i++)
        if (takes_part(c, 0, i, count))
            coalition[i / 64] |= (uint64_t)1 << i % 64;
    expect_ok(fds_utility_eval(c->value, 0, coalition, probs, &err), &err);
    for (size_t i = 0; i < c->value->inputs; i++) {
        size_t best = 0;
        for (size_t y = 1; y < classes; y++)
            best = probs[i * classes + y] > probs[i * classes + best] ? y : best;
        correct += best == c->labels[i];
    }
    free(probs);
    return (double)correct / (double)c->value->inputs;
}

static void accuracies_are_those_of_models_without_the_removed(void **state) {
    (void)state;
    static const size_t counts[] = {0, 1, 3, 5, 8, 10};
    game g = game_vectors(10, 5, 3, 5);
    fds__utility_params p = smaller("retrain:2");
    fds_utility *value = make_value(&g, &p, 1);
    fds_table *table = open_table(value, "table");
    for (size_t w = 0; w < COUNT(ways); w++) {
        call c = call_of(value, ways[w], 1, w);
        double accuracy[MOST_SHARES];
        fds_error err = {0};
        expect_ok(eval_removal_accuracy(table, c.way, c.values, c.labels, c.shares, c.share_count,
                                        1, accuracy, NULL, &err),
                  &err);
        for (size_t k = 0; k < c.share_count; k++)
            assert_true(accuracy[k] == naive_accuracy(&c, counts[k]));
    }
    fds_table_free(table);
    fds_utility_free(value);
    game_free(&g);
}

/* Players who own several samples go as one. */
static void providers_are_removed_whole(void **state) {
    (void)state;
    static const size_t counts[] = {0, 0, 1, 2, 2, 3};
    game g = game_providers(30, 4, 2, 3);
    fds__utility_params p = smaller("knn:5");
    fds_utility *value = make_value(&g, &p, 1);
    assert_int_equal(value->players, 3);
    for (size_t w = 0; w < COUNT(ways); w++) {
        call c = call_of(value, ways[w], 4, 7);
        run_call(&c);
        expect_naive(&c, counts);
    }
    fds_utility_free(value);
    game_free(&g);
}

static void coalitions_of_several_words(void **state) {
    (void)state;
    static const size_t counts[] = {0, 13, 33, 65, 104, 130};
    fake f;
    fake_make(&f, 130, 3, 2, 1);
    for (size_t w = 0; w < COUNT(ways); w++)
        for (size_t columns = 1; columns <= 3; columns += 2) {
            call c = call_of(&f.value, ways[w], columns, 2);
            run_call(&c);
            expect_naive(&c, counts);
        }
}

/* Of equal values the lower number is the greater; zero has no sign; infinite ones are in order. */
static void ties_go_by_number(void **state) {
    (void)state;
    static const double values[] = {0, -0.0, 3, INFINITY, 3, -INFINITY, 3, 0};
    static const size_t counts[] = {0, 1, 2, 4, 6, 8};
    static const size_t order[] = {3, 2, 4, 6, 0, 1, 7, 5};
    fake f;
    fake_make(&f, 8, 2, 2, 1);
    for (size_t w = 0; w < COUNT(ways); w++) {
        call c = call_of(&f.value, ways[w], 1, 2);
        memcpy(c.values, values, sizeof values);
        run_call(&c);
        expect_naive(&c, counts);
        uint64_t left = 0; /* two are removed or added */
        for (size_t i = 0; i < 8; i++)
            if (ways[w] == FDS_REMOVAL_TOP ? i >= 2 : ways[w] == FDS_REMOVAL_BOTTOM ? i < 6 : i < 2)
                left |= (uint64_t)1 << order[i];
        for (size_t i = 0; i < 2; i++)
            assert_true(c.losses[2 * 2 + i] ==
                        -log((double)fake_prob(&f.value, &left, i * 2 + c.labels[i])));
    }
}

/* To the nearest whole number, halves up, also where a share has no exact binary form. */
static void shares_are_rounded_to_whole_players(void **state) {
    (void)state;
    static const struct {
        size_t players;
        double share;
        size_t count;
    } cases[] = {
        {5, 0.5, 3},    {5, 0.499, 2},    {5, 0.0999, 0},    {5, 0.1, 1},     {5, 0.9, 5},
        {50, 0.29, 15}, {100, 0.145, 15}, {100, 0.07, 7},    {100, 0.29, 29}, {100, 0.005, 1},
        {3, 1, 3},      {3, 0, 0},        {130, 0.999, 130}, {1, 0.5, 1},     {1, 0.49, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        fake f;
        fds_error err = {0};
        fake_make(&f, cases[i].players, 2, 2, 1);
        fds_table *table = open_table(&f.value, "table");
        for (size_t w = 0; w < COUNT(ways); w++) {
            call c = call_of(&f.value, ways[w], 2, i);
            c.shares[0] = cases[i].share;
            c.share_count = 1;
            expect_ok(try_call(&c, table, &err), &err);
            expect_naive(&c, &cases[i].count);
        }
        fds_table_free(table);
        forget("table");
    }
}

/* Nobody answers 0 (nearest neighbours): the greatest loss there is. Certainty is 0, not -0. */
static void losses_have_bounds(void **state) {
    (void)state;
    game g = game_vectors(6, 4, 2, 5);
    fds__utility_params p = smaller("knn:1");
    fds_utility *value = make_value(&g, &p, 1);
    float probs[4 * 2];
    call c = call_of(value, FDS_REMOVAL_KEEP_TOP, 4, 1);
    eval(value, 0, everyone(&g), probs);
    for (size_t i = 0; i < 4; i++)
        c.labels[i] = probs[i * 2 + 1] == 1;
    run_call(&c);
    for (size_t i = 0; i < 4; i++) {
        assert_true(c.losses[i] == -log((double)FLT_MIN));
        assert_true(c.losses[i] > 87.3 && c.losses[i] < 87.4);
        assert_true(c.losses[5 * 4 + i] == 0 && !signbit(c.losses[5 * 4 + i]));
    }
    fds_utility_free(value);
    game_free(&g);
}

/* ---- what is trained ---- */

static void equal_coalitions_are_trained_once(void **state) {
    (void)state;
    fake f;
    fds_error err = {0};
    fake_make(&f, 10, 4, 2, 1);
    fds_table *table = open_table(&f.value, "table");
    call c = call_of(&f.value, FDS_REMOVAL_TOP, 4, 3);
    c.shares[2] = 0.3; /* no halves: what is removed and what remains are rounded alike */
    for (size_t p = 0; p < 10; p++)
        for (size_t i = 0; i < 2; i++) {
            double place = (double)((p + 5 * i) % 10);
            c.values[p * 4 + i] = place;
            c.values[p * 4 + 2 + i] = 7 * place - 1; /* columns 2 and 3: in other units */
        }
    expect_ok(try_call(&c, table, &err), &err);
    assert_int_equal(c.trained, 2 * 4 + 2); /* two columns, four shares; everyone; nobody */
    assert_int_equal(f.calls, c.trained);
    call again = c;
    expect_ok(try_call(&again, table, &err), &err);
    assert_int_equal(again.trained, 0);
    expect_same(&c, &again);
    again.way = FDS_REMOVAL_BOTTOM; /* of the order turned round: the same players remain */
    for (size_t i = 0; i < 40; i++)
        again.values[i] = -again.values[i];
    expect_ok(try_call(&again, table, &err), &err);
    assert_int_equal(again.trained, 0);
    expect_same(&c, &again);
    again.way = FDS_REMOVAL_KEEP_TOP; /* of the others */
    for (size_t k = 0; k < again.share_count; k++)
        again.shares[k] = 1 - again.shares[k];
    expect_ok(try_call(&again, table, &err), &err);
    assert_int_equal(again.trained, 0);
    expect_same(&c, &again);
    fds_table_free(table);
}

/* Without everyone and nobody, unless they are wanted; and shares in any order, and none. */
static void nothing_else_is_trained(void **state) {
    (void)state;
    fake f;
    fds_error err = {0};
    fake_make(&f, 10, 4, 2, 1);
    fds_table *table = open_table(&f.value, "table");
    call c = call_of(&f.value, FDS_REMOVAL_TOP, 1, 3);
    c.share_count = 0;
    expect_ok(try_call(&c, table, &err), &err);
    assert_int_equal(c.trained, 0);
    c.share_count = 1;
    c.shares[0] = 0.3;
    expect_ok(try_call(&c, table, &err), &err);
    assert_int_equal(c.trained, 1);
    static const double shares[] = {0.3, 0.2, 0.3, 0.31};
    static const size_t counts[] = {3, 2, 3, 3};
    memcpy(c.shares, shares, sizeof shares);
    c.share_count = 4;
    expect_ok(try_call(&c, table, &err), &err);
    assert_int_equal(c.trained, 1);
    expect_naive(&c, counts);
    assert_int_equal(fds_value_loss(table, c.way, c.values, 1, c.labels, c.shares, 4, 1, c.losses,
                                    NULL, NULL, NULL),
                     FDS_OK);
    fds_table_free(table);
}

/* ---- bits ---- */

static void threads_change_no_bit(void **state) {
    (void)state;
    game g = game_vectors(9, 6, 3, 8);
    fds__utility_params p = smaller("retrain:2");
    fds_utility *value = make_value(&g, &p, 3);
    for (size_t w = 0; w < COUNT(ways); w++) {
        call one = call_of(value, ways[w], 6, w);
        run_call(&one);
        for (unsigned threads = 2; threads <= 3; threads++) {
            call more = one;
            more.threads = threads;
            memset(more.losses, 0xa5, sizeof more.losses);
            run_call(&more);
            expect_same(&one, &more);
            assert_int_equal(one.trained, more.trained);
        }
    }
    fds_utility_free(value);
    game_free(&g);
}

typedef struct {
    uint64_t stop_at, last, total;
} stopper;

static bool stop(void *user, const fds_progress *progress) {
    stopper *s = user;
    assert_string_equal(progress->unit, "sub-models");
    s->last = progress->done;
    s->total = progress->total;
    return s->stop_at && progress->done >= s->stop_at;
}

static void a_call_that_was_stopped_goes_on(void **state) {
    (void)state;
    game g = game_vectors(9, 6, 3, 8);
    fds__utility_params p = smaller("retrain:2");
    fds_utility *value = make_value(&g, &p, 2);
    stopper s = {0};
    fds_events events = {.progress = stop, .user = &s};
    call whole = call_of(value, FDS_REMOVAL_TOP, 6, 1);
    whole.events = &events;
    run_call(&whole);
    assert_true(whole.trained > 20);
    assert_int_equal(s.last, whole.trained); /* all in one stage */
    assert_int_equal(s.total, whole.trained);
    for (unsigned threads = 1; threads <= 2; threads++) {
        call c = whole;
        fds_error err = {0};
        fds_table *table = open_table(value, "table");
        memset(c.losses, 0xa5, sizeof c.losses);
        c.threads = threads;
        s.stop_at = 7;
        expect_failure(try_call(&c, table, &err), FDS_ERR_CANCELLED, &err, "");
        fds_table_free(table); /* another process goes on */
        table = open_table(value, "table");
        s.stop_at = 0;
        expect_ok(try_call(&c, table, &err), &err);
        assert_true(c.trained < whole.trained);
        assert_true(threads > 1 || c.trained > 0); /* one thread hears it at once */
        expect_same(&whole, &c);
        fds_table_free(table);
        forget("table");
    }
    fds_utility_free(value);
    game_free(&g);
}

/* ---- mistakes ---- */

static void wrong_way(call *c) { c->way = (fds_removal)3; }
static void negative_way(call *c) { c->way = (fds_removal)-1; }
static void low_share(call *c) { c->shares[2] = -0.01; }
static void high_share(call *c) { c->shares[2] = 1.01; }
static void percent(call *c) { c->shares[5] = 5; }
static void no_share(call *c) { c->shares[2] = NAN; }
static void two_columns(call *c) { c->columns = 2; }
static void no_columns(call *c) { c->columns = 0; }
static void high_label(call *c) { c->labels[3] = 2; }
static void no_value(call *c) { c->values[7 * 4 + 2] = NAN; }

static void mistakes_are_named_before_any_work(void **state) {
    (void)state;
    static const struct {
        void (*spoil)(call *);
        fds_status status;
        const char *words;
    } cases[] = {
        {wrong_way, FDS_ERR_USAGE, "no removal number 3"},
        {negative_way, FDS_ERR_USAGE, "no removal number -1"},
        {low_share, FDS_ERR_USAGE, "share 2 of the players must be from 0 to 1 (got -0.01)"},
        {high_share, FDS_ERR_USAGE, "share 2 of the players must be from 0 to 1 (got 1.01)"},
        {percent, FDS_ERR_USAGE, "share 5 of the players must be from 0 to 1 (got 5)"},
        {no_share, FDS_ERR_USAGE, "share 2 of the players must be from 0 to 1 (got nan)"},
        {two_columns, FDS_ERR_SHAPE, "values have 2 columns, but the table has 4 inputs"},
        {no_columns, FDS_ERR_SHAPE, "values have 0 columns, but the table has 4 inputs"},
        {high_label, FDS_ERR_USAGE, "input 3: label 2, but there are 2 classes"},
        {no_value, FDS_ERR_USAGE, "the value of player 7 in column 2 is not a number"},
    };
    fake f;
    fake_make(&f, 10, 4, 2, 1);
    fds_table *table = open_table(&f.value, "table");
    for (size_t i = 0; i < COUNT(cases); i++) {
        call c = call_of(&f.value, FDS_REMOVAL_TOP, 4, 1);
        fds_error err = {0};
        cases[i].spoil(&c);
        expect_failure(try_call(&c, table, &err), cases[i].status, &err, cases[i].words);
        assert_int_equal(try_call(&c, table, NULL), cases[i].status);
    }
    assert_int_equal(f.calls, 0);
    fds_table_free(table);
}

static void more_shares_than_there_can_be_are_refused(void **state) {
    (void)state;
    enum { SHARES = 1 << 17, INPUTS = 1 << 12 };
    fake f;
    fds_error err = {0};
    fake_make(&f, 2, INPUTS, 2, 1);
    fds_table *table = open_table(&f.value, "table");
    double *values = need(2 * INPUTS, sizeof *values), *shares = need(SHARES, sizeof *shares);
    uint32_t *labels = need(INPUTS, sizeof *labels);
    expect_failure(fds_value_loss(table, FDS_REMOVAL_KEEP_TOP, values, INPUTS, labels, shares,
                                  SHARES, 1, NULL, NULL, NULL, &err),
                   FDS_ERR_LIMIT, &err, "536870912 rows");
    assert_int_equal(f.calls, 0);
    free(values);
    free(shares);
    free(labels);
    fds_table_free(table);
}

static void a_table_of_16_bits_is_refused(void **state) {
    (void)state;
    fake f;
    fds_error err = {0};
    fds_table *table = NULL;
    fake_make(&f, 10, 4, 2, 1);
    call c = call_of(&f.value, FDS_REMOVAL_TOP, 4, 1);
    expect_ok(fds_table_open(scratch_path("table"), &f.value, FDS_STORE_F16, NULL, &table, &err),
              &err);
    expect_failure(try_call(&c, table, &err), FDS_ERR_USAGE, &err, "no numbers below 6e-8");
    assert_int_equal(f.calls, 0);
    fds_table_free(table);
}

/* A sub-model that fails ends the call; those before it are kept. */
static void a_sub_model_that_fails_is_reported(void **state) {
    (void)state;
    fake f;
    fds_error err = {0};
    fake_make(&f, 10, 4, 2, 1);
    call c = call_of(&f.value, FDS_REMOVAL_TOP, 4, 1), whole = c;
    run_call(&whole);
    fds_table *table = open_table(&f.value, "table");
    f.calls = 0;
    f.fail_at = 6;
    expect_failure(try_call(&c, table, &err), FDS_ERR_DIVERGED, &err, "told to fail");
    f.fail_at = 0;
    expect_ok(try_call(&c, table, &err), &err);
    assert_int_equal(c.trained, whole.trained - 5);
    expect_same(&whole, &c);
    fds_table_free(table);
}

/* ---- faults ---- */

/* The nth call of a kind fails in one call, and the next ends as if nothing had been. */
static bool survives(const call *whole, fds__fault_kind kind, uint64_t nth) {
    call c = *whole;
    fds_error err = {0};
    fds_table *table = open_table(c.value, "table");
    memset(c.losses, 0xa5, sizeof c.losses);
    fds__fault_arm(kind, nth);
    fds_status status = try_call(&c, table, &err);
    bool was_hit = fds__fault_arm(kind, 0) >= nth;
    if (was_hit) {
        assert_int_equal(status, kind == FDS__FAULT_ALLOC ? FDS_ERR_NOMEM : FDS_ERR_IO);
        assert_int_equal(err.status, status);
        assert_true(err.text[0]);
        status = try_call(&c, table, &err);
    }
    expect_ok(status, &err);
    expect_same(whole, &c);
    fds_table_free(table);
    forget("table");
    return was_hit;
}

static void faults_leak_nothing_and_can_be_overcome(void **state) {
    (void)state;
    fake f;
    fake_make(&f, 10, 4, 2, 1);
    call whole = call_of(&f.value, FDS_REMOVAL_TOP, 4, 1);
    run_call(&whole);
    for (int kind = FDS__FAULT_ALLOC; kind <= FDS__FAULT_IO; kind++) {
        uint64_t nth = 1;
        while (survives(&whole, (fds__fault_kind)kind, nth))
            nth++;
        print_message("# %llu %s failed, one at a time\n", (unsigned long long)nth - 1,
                      kind == FDS__FAULT_ALLOC ? "allocations" : "file operations");
        assert_true(nth > 5);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(losses_are_those_of_models_without_the_removed),
        IN_SCRATCH(accuracies_are_those_of_models_without_the_removed),
        IN_SCRATCH(providers_are_removed_whole),
        IN_SCRATCH(coalitions_of_several_words),
        IN_SCRATCH(ties_go_by_number),
        IN_SCRATCH(shares_are_rounded_to_whole_players),
        IN_SCRATCH(losses_have_bounds),
        IN_SCRATCH(equal_coalitions_are_trained_once),
        IN_SCRATCH(nothing_else_is_trained),
        IN_SCRATCH(threads_change_no_bit),
        IN_SCRATCH(a_call_that_was_stopped_goes_on),
        IN_SCRATCH(mistakes_are_named_before_any_work),
        IN_SCRATCH(more_shares_than_there_can_be_are_refused),
        IN_SCRATCH(a_table_of_16_bits_is_refused),
        IN_SCRATCH(a_sub_model_that_fails_is_reported),
        IN_SCRATCH(faults_leak_nothing_and_can_be_overcome),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
