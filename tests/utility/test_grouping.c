/* SPDX-License-Identifier: Apache-2.0
 * Groups from labels, providers, models and files; files that are wrong are refused with the line
 * that is. */
#include "utility_fixture.h"

/* Every player in a group, and the groups named as wanted, player by player. */
static void expect_groups(const fds_groups *groups, const char *const *wanted, size_t players) {
    assert_int_equal(fds_groups_players(groups), players);
    for (size_t i = 0; i < players; i++)
        assert_string_equal(fds_groups_name(groups, fds_groups_of(groups, i)), wanted[i]);
}

/* ---- from the data ---- */

static void by_label_follows_the_labels(void **state) {
    (void)state;
    game g = game_digits(30, 1);
    fds_groups *groups = NULL;
    fds_error err;
    expect_ok(fds_groups_by_label(g.train, g.players, &groups, &err), &err);
    assert_int_equal(fds_groups_count(groups), 10);
    for (size_t i = 0; i < 30; i++) {
        const uint32_t *own;
        fds_players_samples(g.players, i, &own);
        assert_string_equal(
            fds_groups_name(groups, fds_groups_of(groups, i)),
            fds_dataset_class_name(g.train, fds__dataset_get_info(g.train).labels[*own]));
    }
    fds_groups_free(groups);
    game_free(&g);
}

static game game_of_csv(const char *text, bool is_points) {
    game g = {0};
    fds_error err;
    scratch_write(scratch_path("d.csv"), text, strlen(text));
    expect_ok(fds__data_open(scratch_path("d.csv"), NULL, NULL, &g.train, &g.test, &err), &err);
    size_t count = fds__dataset_get_info(g.train).count;
    expect_ok(is_points ? fds_players_points(g.train, NULL, count, &g.players, &err)
                        : fds_players_providers(g.train, NULL, count, &g.players, &err),
              &err);
    return g;
}

static const char three_owners[] = "x,label,provider\n"
                                   "1,cat,ann\n2,dog,ann\n3,dog,ann\n" /* mostly dogs */
                                   "4,dog,bob\n5,cat,bob\n"            /* a tie: the lower */
                                   "6,eel,cid\n";

static void by_label_takes_what_most_samples_have(void **state) {
    (void)state;
    game g = game_of_csv(three_owners, false);
    fds_groups *groups = NULL;
    fds_error err;
    const char *const wanted[] = {"dog", "cat", "eel"};
    expect_ok(fds_groups_by_label(g.train, g.players, &groups, &err), &err);
    expect_groups(groups, wanted, 3);
    fds_groups_free(groups);
    game_free(&g);
}

static void by_provider_follows_the_provider(void **state) {
    (void)state;
    game g = game_of_csv(three_owners, true);
    fds_groups *groups = NULL;
    fds_error err = {0};
    const char *const wanted[] = {"ann", "ann", "ann", "bob", "bob", "cid"};
    expect_ok(fds_groups_by_provider(g.train, g.players, &groups, &err), &err);
    assert_int_equal(fds_groups_count(groups), 3);
    expect_groups(groups, wanted, 6);
    fds_groups_free(groups);
    game h = game_of_csv(three_owners, false);
    expect_ok(fds_groups_by_provider(h.train, h.players, &groups, &err), &err);
    assert_int_equal(fds_groups_count(groups), 3);
    fds_groups_free(groups);
    /* players of one set, providers of another */
    game other = game_of_csv("x,label,provider\n1,a,q\n1,b,r\n1,a,q\n1,a,q\n1,b,q\n1,a,q\n", true);
    expect_failure(fds_groups_by_provider(other.train, h.players, &groups, &err), FDS_ERR_USAGE,
                   &err, "player ann has sample 0 of provider q and sample 1 of r");
    game_free(&other);
    other = game_of_csv("x,label,provider\n1,a,q\n1,b,r\n", true);
    expect_failure(fds_groups_by_provider(other.train, h.players, &groups, &err), FDS_ERR_USAGE,
                   &err, "the data has 2");
    expect_failure(fds_groups_by_label(other.train, h.players, &groups, &err), FDS_ERR_USAGE, &err,
                   "the data has 2");
    game_free(&other);
    other = game_of_csv("x,label\n1,a\n1,b\n", true);
    expect_failure(fds_groups_by_provider(other.train, other.players, &groups, &err), FDS_ERR_USAGE,
                   &err, "names no providers");
    game_free(&other);
    game_free(&g);
    game_free(&h);
}

/* ---- from a model ---- */

static fds_model *sure_model(const game *g, size_t count) {
    uint32_t index[128];
    fds_model *model = NULL;
    fds_error err;
    for (uint32_t i = 0; i < count; i++)
        index[i] = i;
    fds_train_params p = fds_train_params_default();
    p.lr = 0.05f;
    p.epochs = 60;
    expect_ok(fds_model_train(g->train, index, count, "logistic", &p, NULL, &model, NULL, &err),
              &err);
    return model;
}

/* Where the model is sure of every sample, its groups are those it tells apart. */
static void by_model_puts_together_what_the_model_cannot_tell_apart(void **state) {
    (void)state;
    game g = game_of_csv("x,label,provider\n-9,a,p\n-8,a,q\n-7,a,p\n7,b,r\n8,b,s\n9,b,r\n", true);
    fds_model *model = sure_model(&g, 6);
    fds_groups *groups = NULL;
    fds_error err = {0};
    for (size_t count = 0; count <= 2; count += 2) { /* 0: the root of 6 is 2 */
        expect_ok(fds_groups_by_model(model, g.train, g.players, count, 3, &groups, &err), &err);
        assert_int_equal(fds_groups_count(groups), 2);
        for (size_t i = 0; i < 6; i++)
            assert_int_equal(fds_groups_of(groups, i), i / 3);
        fds_groups_free(groups);
    }
    expect_ok(fds_groups_by_model(model, g.train, g.players, 6, 3, &groups, &err), &err);
    assert_int_equal(fds_groups_count(groups), 6);
    fds_groups_free(groups);
    expect_failure(fds_groups_by_model(model, g.train, g.players, 7, 3, &groups, &err),
                   FDS_ERR_USAGE, &err, "7 groups for 6 players");
    fds_players_free(g.players); /* players of several samples: p, q are of a; r, s of b */
    expect_ok(fds_players_providers(g.train, NULL, 6, &g.players, &err), &err);
    expect_ok(fds_groups_by_model(model, g.train, g.players, 2, 3, &groups, &err), &err);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(fds_groups_of(groups, i), i / 2);
    fds_groups_free(groups);
    fds_model_free(model);
    game_free(&g);
}

/* ---- from a file ---- */

static fds_status read_text(const char *text, size_t size, const fds_players *players,
                            fds_groups **groups, fds_error *err) {
    scratch_write(scratch_path("groups.csv"), text, size);
    return fds_groups_read(scratch_path("groups.csv"), players, groups, err);
}

static void a_file_gives_each_player_its_group(void **state) {
    (void)state;
    game g = game_of_csv(three_owners, false);
    const char *const texts[] = {
        "ann,north\nbob,south\ncid,north\n",
        "player,group\ncid,north\nann,north\nbob,south",
        "# who is where\n\n  ann , north\r\n\r\n\tbob,south \r\n#bob,west\ncid,north\r\n",
        "#\n player , group \nann,north\n\n\nbob,south\ncid,north\n\n",
        "\xef\xbb\xbfplayer,group\r\nann,north\r\nbob,south\r\ncid,north\r\n", /* a spreadsheet's */
    };
    const char *const wanted[] = {"north", "south", "north"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        fds_groups *groups = NULL;
        fds_error err;
        expect_ok(read_text(texts[i], strlen(texts[i]), g.players, &groups, &err), &err);
        assert_int_equal(fds_groups_count(groups), 2);
        expect_groups(groups, wanted, 3);
        fds_groups_free(groups);
    }
    game_free(&g);
}

static void samples_go_by_name_or_number(void **state) {
    (void)state;
    game g = game_of_csv(three_owners, true);
    const char text[] = "0,a\nsample 1,a\n2,caf\xe9\nsample 3,a\n4,a\n5,b b\n"; /* any bytes */
    const char *const wanted[] = {"a", "a", "caf\xe9", "a", "a", "b b"};
    fds_groups *groups = NULL;
    fds_error err;
    expect_ok(read_text(text, sizeof text - 1, g.players, &groups, &err), &err);
    expect_groups(groups, wanted, 6);
    fds_groups_free(groups);
    game_free(&g);
}

/* A player's name may have a comma in it, or be that of the heading. */
static void odd_names_are_found(void **state) {
    (void)state;
    game g = game_of_csv("x,label,provider\n1,a,\"Lee, Ann\"\n2,b,player\n", false);
    const char text[] = "player,group\nLee, Ann,x\n";
    const char *const wanted[] = {"x", "group"};
    fds_groups *groups = NULL;
    fds_error err;
    expect_ok(read_text(text, sizeof text - 1, g.players, &groups, &err), &err);
    expect_groups(groups, wanted, 2);
    fds_groups_free(groups);
    game_free(&g);
}

static void wrong_files_are_refused_with_the_line(void **state) {
    (void)state;
    game g = game_of_csv(three_owners, false);
    char longest[300], too_long[300];
    memset(longest, 'g', sizeof longest);
    snprintf(too_long, sizeof too_long, "ann,%.256s\n", longest);
    const struct {
        const char *text, *part;
    } wrong[] = {
        {"", "player \"ann\" is missing"},
        {"ann,a\nbob,b\n", "player \"cid\" is missing"},
        {"ann,a\n\ndan,b\n", "line 3: there is no player \"dan\""},
        {"ann,a\n# again\nbob,a\nann,b\n", "line 4: player \"ann\" is already in line 1"},
        {"ann,a\nbob\n", "line 2: expected \"PLAYER,GROUP\", not \"bob\""},
        {"ann,\n", "line 1: a group's name must have 1 to 255 bytes, not 0"},
        {",a\n", "line 1: there is no player \"\""},
        {",\n", "line 1"},
        {"ann,a\nplayer,group\n", "line 2: there is no player \"player\""},
        {"player,group\nplayer,group\n", "line 2: there is no player \"player\""},
        {"Ann,a\n", "line 1: there is no player \"Ann\""},
        {too_long, "line 1: a group's name must have 1 to 255 bytes, not 256"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        fds_groups *groups = NULL;
        fds_error err = {0};
        expect_failure(read_text(wrong[i].text, strlen(wrong[i].text), g.players, &groups, &err),
                       FDS_ERR_FORMAT, &err, wrong[i].part);
        expect_in(err.text, "groups.csv");
        assert_null(groups);
    }
    fds_groups *groups = NULL;
    fds_error err = {0};
    expect_failure(read_text("ann,a\nb\0b,a\n", 12, g.players, &groups, &err), FDS_ERR_FORMAT, &err,
                   "line 2: a NUL");
    expect_failure(read_text("ann,a\n\0", 7, g.players, &groups, &err), FDS_ERR_FORMAT, &err,
                   "line 2: a NUL");
    assert_int_equal(fds_groups_read(scratch_path("none"), g.players, &groups, &err),
                     FDS_ERR_NOT_FOUND);
    expect_failure(fds_groups_read(scratch, g.players, &groups, &err), FDS_ERR_FORMAT, &err,
                   scratch);
    game_free(&g);
}

/* Bytes changed, cut and doubled at random: an answer or a refusal, never more. */
static void damaged_files_do_no_harm(void **state) {
    (void)state;
    game g = game_of_csv(three_owners, false);
    const char good[] = "player,group\nann,north\n# no\nbob,south\ncid,north\n";
    const char *const names[] = {"ann", "bob", "cid"};
    const char bytes[] = {0, '\n', ',', '#', ' ', '\r', 'a', (char)0xff};
    size_t read = 0;
    for (uint64_t trial = 0; trial < 5000; trial++) {
        fds_rng rng = fds_rng_make(1, 2007, trial, 0);
        size_t size = fds_rng_below(&rng, 4) ? sizeof good - 1 : fds_rng_below(&rng, sizeof good);
        char *text = malloc(size + 1); /* no byte more than is promised */
        assert_non_null(text);
        memcpy(text, good, size);
        text[size] = 0;
        for (size_t i = fds_rng_below(&rng, 3); i > 0 && size > 0; i--)
            text[fds_rng_below(&rng, size)] = bytes[fds_rng_below(&rng, sizeof bytes)];
        fds_groups *groups = NULL;
        fds_error err = {0};
        fds_status status = fds__groups_parse("x", text, size, names, 3, &groups, &err);
        assert_true(status == FDS_OK || status == FDS_ERR_FORMAT);
        assert_true((status == FDS_OK) == (groups != NULL));
        read += status == FDS_OK;
        fds_groups_free(groups);
        free(text);
    }
    assert_true(read > 500 && read < 4500);
    game_free(&g);
}

/* ---- faults ---- */

enum { WAYS = 4 };
static fds_status make(size_t way, const game *g, const fds_model *model, fds_groups **groups,
                       fds_error *err) {
    switch (way) {
    case 0:
        return fds_groups_by_label(g->train, g->players, groups, err);
    case 1:
        return fds_groups_by_provider(g->train, g->players, groups, err);
    case 2:
        return fds_groups_by_model(model, g->train, g->players, 2, 1, groups, err);
    default:
        return fds_groups_read(scratch_path("groups.csv"), g->players, groups, err);
    }
}

static void every_failure_on_the_way_is_survived(void **state) {
    (void)state;
    game g = game_of_csv(three_owners, false);
    fds_model *model = sure_model(&g, 6);
    const char text[] = "ann,a\nbob,b\ncid,a\n";
    scratch_write(scratch_path("groups.csv"), text, sizeof text - 1);
    const fds__fault_kind kinds[] = {FDS__FAULT_ALLOC, FDS__FAULT_IO};
    for (size_t way = 0; way < WAYS; way++)
        for (size_t k = 0; k < COUNT(kinds); k++) {
            fds_groups *groups = NULL;
            fds_error err = {0};
            fds__fault_arm(kinds[k], 0);
            expect_ok(make(way, &g, model, &groups, &err), &err);
            uint64_t calls = fds__fault_arm(kinds[k], 0);
            fds_groups_free(groups);
            for (uint64_t n = 1; n <= calls; n++) {
                groups = NULL;
                fds__fault_arm(kinds[k], n);
                fds_status status = make(way, &g, model, &groups, &err);
                fds__fault_arm(kinds[k], 0);
                assert_int_equal(status, k ? FDS_ERR_IO : FDS_ERR_NOMEM);
                assert_null(groups);
            }
        }
    fds_model_free(model);
    game_free(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_label_follows_the_labels),
        IN_SCRATCH(by_label_takes_what_most_samples_have),
        IN_SCRATCH(by_provider_follows_the_provider),
        IN_SCRATCH(by_model_puts_together_what_the_model_cannot_tell_apart),
        IN_SCRATCH(a_file_gives_each_player_its_group),
        IN_SCRATCH(samples_go_by_name_or_number),
        IN_SCRATCH(odd_names_are_found),
        IN_SCRATCH(wrong_files_are_refused_with_the_line),
        IN_SCRATCH(damaged_files_do_no_harm),
        IN_SCRATCH(every_failure_on_the_way_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
