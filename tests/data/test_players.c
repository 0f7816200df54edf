/* SPDX-License-Identifier: Apache-2.0
 * Players: points in the caller's order, providers of uneven sizes with their samples ascending. */
#include "fixture.h"

static fds_dataset *shop(void) {
    fds_dataset *train, *test;
    put_text("a.csv", "x,label,provider\n"
                      "0,a,large\n1,a,small\n2,b,large\n3,b,large\n4,a,absent\n5,b,large\n6,a,mid\n"
                      "7,a,mid\n");
    open_ok(scratch_path("a.csv"), NULL, &train, &test);
    return train;
}

static void expect_samples(const fds_players *p, size_t i, const char *name, size_t count,
                           const uint32_t *samples) {
    const uint32_t *index = NULL;
    assert_string_equal(fds_players_name(p, i), name);
    assert_int_equal(fds_players_samples(p, i, &index), count);
    assert_memory_equal(index, samples, count * sizeof *index);
}

static void every_point_is_a_player_in_the_order_given(void **state) {
    (void)state;
    fds_dataset *ds = shop();
    fds_players *p = NULL;
    fds_error err = {0};
    uint32_t index[3] = {6, 0, 2};
    assert_int_equal(fds_players_points(ds, index, 3, &p, &err), FDS_OK);
    fds_dataset_free(ds); /* the players do not need it any more */
    assert_int_equal(fds_players_count(p), 3);
    expect_samples(p, 0, "sample 6", 1, (uint32_t[]){6});
    expect_samples(p, 1, "sample 0", 1, (uint32_t[]){0});
    expect_samples(p, 2, "sample 2", 1, (uint32_t[]){2});
    const uint32_t *none;
    assert_int_equal(fds_players_samples(p, 3, &none), 0);
    assert_string_equal(fds_players_name(p, 3), "?");
    fds_players_free(p);
    fds_players_free(NULL);
}

static void providers_own_what_is_chosen_of_theirs(void **state) {
    (void)state;
    fds_dataset *ds = shop();
    fds_players *p = NULL;
    fds_error err = {0};
    uint32_t index[7] = {7, 5, 3, 2, 1, 0, 6};
    assert_int_equal(fds_players_providers(ds, index, 7, &p, &err), FDS_OK);
    fds_dataset_free(ds);
    assert_int_equal(fds_players_count(p), 3); /* "absent" has none of these */
    expect_samples(p, 0, "large", 4, (uint32_t[]){0, 2, 3, 5});
    expect_samples(p, 1, "mid", 2, (uint32_t[]){6, 7});
    expect_samples(p, 2, "small", 1, (uint32_t[]){1});
    fds_players_free(p);
}

static void no_index_means_the_first_samples(void **state) {
    (void)state;
    fds_dataset *ds = shop();
    fds_players *p = NULL;
    fds_error err = {0};
    assert_int_equal(fds_players_points(ds, NULL, 8, &p, &err), FDS_OK);
    assert_int_equal(fds_players_count(p), 8);
    expect_samples(p, 7, "sample 7", 1, (uint32_t[]){7});
    fds_players_free(p);
    assert_int_equal(fds_players_providers(ds, NULL, 4, &p, &err), FDS_OK);
    assert_int_equal(fds_players_count(p), 2);
    expect_samples(p, 0, "large", 3, (uint32_t[]){0, 2, 3});
    expect_samples(p, 1, "small", 1, (uint32_t[]){1});
    fds_players_free(p);
    assert_int_equal(fds_players_points(ds, NULL, 9, &p, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_players_providers(ds, NULL, 9, &p, &err), FDS_ERR_USAGE);
    fds_dataset_free(ds);
}

static void wrong_choices_are_refused(void **state) {
    (void)state;
    fds_dataset *ds = shop(), *train, *test;
    fds_players *p = NULL;
    fds_error err = {0};
    assert_int_equal(fds_players_points(ds, (uint32_t[]){1, 1}, 2, &p, &err), FDS_ERR_USAGE);
    expect_in(err.text, "sample 1 is chosen twice");
    assert_int_equal(fds_players_points(ds, (uint32_t[]){8}, 1, &p, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_players_points(ds, (uint32_t[]){1}, 0, &p, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_players_providers(ds, (uint32_t[]){2, 0, 2}, 3, &p, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_players_providers(ds, (uint32_t[]){9}, 1, &p, &err), FDS_ERR_USAGE);
    open_ok(kept_path("mnist"), NULL, &train, &test);
    assert_int_equal(fds_players_providers(train, (uint32_t[]){1}, 1, &p, &err), FDS_ERR_USAGE);
    expect_in(err.text, "has no providers");
    assert_null(p);
    fds_dataset_free(ds);
    fds_dataset_free(train);
    fds_dataset_free(test);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_point_is_a_player_in_the_order_given),
        TEST(providers_own_what_is_chosen_of_theirs),
        TEST(no_index_means_the_first_samples),
        TEST(wrong_choices_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
