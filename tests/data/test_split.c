/* SPDX-License-Identifier: Apache-2.0
 * Splits: balanced, nested, a function of the seed alone; classes that run out. */
#include "fixture.h"

#include <math.h>

enum { SAMPLES = 120 };

/* 100 samples of class 0, 15 of class 1, 5 of class 2, mixed. */
static fds_dataset *uneven(void) {
    uint8_t bytes[SAMPLES] = {0};
    uint16_t labels[SAMPLES];
    for (int i = 0; i < SAMPLES; i++)
        labels[i] = i % 24 == 7 ? 2 : i % 8 == 3 ? 1 : 0;
    fds_dataset *ds = NULL;
    fds_error err = {0};
    assert_int_equal(
        fds__dataset_create(SAMPLES, (fds_shape){1, 1, 1}, bytes, NULL, labels, 3, NULL, &ds, &err),
        FDS_OK);
    return ds;
}

static void count_classes(const fds_dataset *ds, const uint32_t *index, size_t count,
                          size_t counts[3]) {
    counts[0] = counts[1] = counts[2] = 0;
    for (size_t i = 0; i < count; i++) {
        assert_true(index[i] < ds->count);
        assert_true(i == 0 || index[i] > index[i - 1]); /* ascending, so none twice */
        counts[ds->labels[index[i]]]++;
    }
}

static void every_choice_is_as_balanced_as_the_classes_allow(void **state) {
    (void)state;
    fds_dataset *ds = uneven();
    uint32_t index[SAMPLES];
    size_t counts[3];
    fds_error err = {0};
    for (size_t count = 1; count <= SAMPLES; count++) {
        assert_int_equal(fds_split_balanced(ds, count, 5, index, &err), FDS_OK);
        count_classes(ds, index, count, counts);
        /* no class is behind another by more than one, unless it has run out */
        static const size_t all[3] = {100, 15, 5};
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++)
                assert_true(counts[a] + 1 >= counts[b] || counts[a] == all[a]);
    }
    fds_dataset_free(ds);
}

/* A prefix of T samples of n has T n_c / n of a class, up to one. */
static void proportional_choices_follow_the_frequencies(void **state) {
    (void)state;
    fds_dataset *ds = uneven();
    uint32_t index[SAMPLES], rest[SAMPLES];
    size_t counts[3];
    static const size_t all[3] = {100, 15, 5};
    fds_error err = {0};
    for (size_t count = 1; count <= SAMPLES; count++) {
        const fds__split_how how = {.seed = 5, .is_proportional = true};
        expect_ok(fds__split(ds, &how, 0, count, index, &err), &err);
        count_classes(ds, index, count, counts);
        for (int c = 0; c < 3; c++) {
            double wanted = (double)count * (double)all[c] / SAMPLES;
            assert_true(fabs((double)counts[c] - wanted) <= 1);
        }
        if (count == SAMPLES)
            break;
        /* what is left out appears in no other choice */
        const fds__split_how others = {.seed = 5, .without = index, .left_out = count};
        expect_ok(fds__split(ds, &others, 0, SAMPLES - count, rest, &err), &err);
        count_classes(ds, rest, SAMPLES - count, counts);
        for (size_t i = 0; i < SAMPLES - count; i++)
            assert_false(fds__samples_has(index, count, rest[i]));
        assert_int_equal(fds__split(ds, &others, 1, SAMPLES - count, rest, &err), FDS_ERR_USAGE);
    }
    const fds__split_how how = {.seed = 5, .is_proportional = true};
    expect_ok(fds__split(ds, &how, 0, 24, index, &err), &err);
    count_classes(ds, index, 24, counts);
    assert_true(counts[0] == 20 && counts[1] == 3 && counts[2] == 1);
    fds_dataset_free(ds);
}

/* The program of docs/game.md gives this list. */
static void the_proportional_list_is_that_of_the_definition(void **state) {
    (void)state;
    static const uint16_t labels[] = {0, 1, 0, 0, 0, 0, 1, 0, 0, 2};
    static const uint32_t list[] = {5, 4, 1, 3, 9, 0, 2, 6, 7, 8};
    const uint8_t bytes[10] = {0};
    fds_dataset *ds = NULL;
    fds_error err = {0};
    const fds__split_how how = {.seed = 7, .is_proportional = true};
    expect_ok(
        fds__dataset_create(10, (fds_shape){1, 1, 1}, bytes, NULL, labels, 3, NULL, &ds, &err),
        &err);
    for (size_t i = 0; i < 10; i++) {
        uint32_t one;
        expect_ok(fds__split(ds, &how, i, 1, &one, &err), &err);
        assert_int_equal(one, list[i]);
    }
    fds_dataset_free(ds);
}

static void choices_of_one_seed_are_nested(void **state) {
    (void)state;
    fds_dataset *ds = uneven();
    uint32_t small[SAMPLES], large[SAMPLES];
    fds_error err = {0};
    for (size_t count = 1; count < SAMPLES; count++) {
        assert_int_equal(fds_split_balanced(ds, count, 9, small, &err), FDS_OK);
        assert_int_equal(fds_split_balanced(ds, count + 1, 9, large, &err), FDS_OK);
        for (size_t i = 0, k = 0; i < count; i++, k++) {
            k += large[k] != small[i];
            assert_int_equal(large[k], small[i]);
        }
    }
    fds_dataset_free(ds);
}

static void the_seed_decides_and_nothing_else(void **state) {
    (void)state;
    fds_dataset *ds = uneven();
    uint32_t one[30], two[30];
    fds_error err = {0};
    size_t different = 0;
    assert_int_equal(fds_split_balanced(ds, 30, 1, one, &err), FDS_OK);
    assert_int_equal(fds_split_balanced(ds, 30, 1, two, &err), FDS_OK);
    assert_memory_equal(one, two, sizeof one);
    for (uint64_t seed = 2; seed < 12; seed++) {
        assert_int_equal(fds_split_balanced(ds, 30, seed, two, &err), FDS_OK);
        different += memcmp(one, two, sizeof one) != 0;
    }
    assert_int_equal(different, 10);
    fds_dataset_free(ds);
}

/* Each sample of a class is chosen about equally often: 4 of 100, 6,000 times. */
static void no_sample_is_favoured(void **state) {
    (void)state;
    fds_dataset *ds = uneven();
    uint32_t index[12], chosen[SAMPLES] = {0};
    for (uint64_t seed = 0; seed < 6000; seed++) {
        assert_int_equal(fds_split_balanced(ds, 12, seed, index, NULL), FDS_OK);
        for (int i = 0; i < 12; i++)
            chosen[index[i]]++;
    }
    for (int i = 0; i < SAMPLES; i++)
        if (ds->labels[i] == 0)
            assert_in_range(chosen[i], 240 - 76, 240 + 76); /* five standard deviations */
    fds_dataset_free(ds);
}

static void test_and_rest_are_all_samples_once(void **state) {
    (void)state;
    fds_dataset *ds = uneven();
    uint32_t train[SAMPLES], test[SAMPLES];
    size_t counts[3];
    bool seen[SAMPLES] = {false};
    fds_error err = {0};
    assert_int_equal(fds_split_test(ds, 15, 3, train, test, &err), FDS_OK);
    count_classes(ds, test, 15, counts);
    assert_true(counts[0] == 5 && counts[1] == 5 && counts[2] == 5);
    count_classes(ds, train, SAMPLES - 15, counts);
    for (int i = 0; i < SAMPLES; i++) {
        uint32_t sample = i < 15 ? test[i] : train[i - 15];
        assert_false(seen[sample]);
        seen[sample] = true;
    }
    fds_dataset_free(ds);
}

static void folds_share_every_class_evenly(void **state) {
    (void)state;
    fds_dataset *ds = uneven();
    uint32_t fold[SAMPLES], again[SAMPLES], other[SAMPLES];
    fds_error err = {0};
    for (uint32_t folds = 2; folds <= SAMPLES; folds += 7) {
        size_t counts[SAMPLES][3] = {{0}};
        assert_int_equal(fds__split_folds(ds, folds, 3, fold, &err), FDS_OK);
        for (size_t i = 0; i < SAMPLES; i++) {
            assert_true(fold[i] < folds);
            counts[fold[i]][ds->labels[i]]++;
        }
        for (uint32_t f = 0; f < folds; f++)
            for (int c = 0; c < 3; c++) {
                static const size_t all[3] = {100, 15, 5};
                assert_in_range(counts[f][c], all[c] / folds, all[c] / folds + 1);
            }
    }
    assert_int_equal(fds__split_folds(ds, 10, 3, fold, &err), FDS_OK);
    assert_int_equal(fds__split_folds(ds, 10, 3, again, &err), FDS_OK);
    assert_int_equal(fds__split_folds(ds, 10, 4, other, &err), FDS_OK);
    assert_memory_equal(fold, again, sizeof fold);
    assert_memory_not_equal(fold, other, sizeof fold);
    assert_int_equal(fds__split_folds(ds, 1, 3, fold, &err), FDS_ERR_USAGE);
    assert_int_equal(fds__split_folds(ds, SAMPLES + 1, 3, fold, &err), FDS_ERR_USAGE);
    expect_in(err.text, "2 to 120");
    fds_dataset_free(ds);
}

static void impossible_numbers_are_refused(void **state) {
    (void)state;
    fds_dataset *ds = uneven();
    uint32_t a[SAMPLES + 1], b[SAMPLES + 1];
    fds_error err = {0};
    assert_int_equal(fds_split_balanced(ds, 0, 1, a, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_split_balanced(ds, SAMPLES + 1, 1, a, &err), FDS_ERR_USAGE);
    expect_in(err.text, "1 to 120");
    assert_int_equal(fds_split_test(ds, 0, 1, a, b, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_split_test(ds, SAMPLES, 1, a, b, &err), FDS_ERR_USAGE);
    expect_in(err.text, "1 to 119");
    fds_dataset_free(ds);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_choice_is_as_balanced_as_the_classes_allow),
        TEST(proportional_choices_follow_the_frequencies),
        TEST(the_proportional_list_is_that_of_the_definition),
        TEST(choices_of_one_seed_are_nested),
        TEST(the_seed_decides_and_nothing_else),
        TEST(no_sample_is_favoured),
        TEST(test_and_rest_are_all_samples_once),
        TEST(folds_share_every_class_evenly),
        TEST(impossible_numbers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
