/* SPDX-License-Identifier: Apache-2.0
 * Numbering distinct names: their order, many of them, and cancelling. */
#include "fixture.h"

enum { MANY = 700000, DISTINCT = 300007 }; /* three runs of the sort, the last one short */

/* Text i is the number i * 17 mod DISTINCT, with an n in front if is_text. */
static char (*make_texts(const char **texts, bool is_text))[12] {
    char(*bytes)[12] = need(MANY, sizeof *bytes);
    for (size_t i = 0; i < MANY; i++) {
        snprintf(bytes[i], sizeof *bytes, "%s%zu", is_text ? "n" : "", i * 17 % DISTINCT);
        texts[i] = bytes[i];
    }
    return bytes;
}

static void many_names_are_numbered_in_order(void **state) {
    (void)state;
    const char **texts = need(MANY, sizeof *texts);
    uint32_t *ids = need(MANY, sizeof *ids);
    for (int is_text = 0; is_text < 2; is_text++) {
        const fds__numbering how = {.by_value = true, .limit = DISTINCT, .source = "test"};
        char(*bytes)[12] = make_texts(texts, is_text);
        fds__names names;
        fds_error err = {0};
        expect_ok(fds__names_number(texts, MANY, &how, ids, &names, &err), &err);
        assert_int_equal(names.count, DISTINCT);
        for (size_t i = 0; i < MANY; i++)
            assert_string_equal(names.items[ids[i]], texts[i]);
        for (size_t i = 1; i < DISTINCT; i++)
            assert_true(is_text ? strcmp(names.items[i - 1], names.items[i]) < 0
                                : (size_t)atoi(names.items[i]) == i);
        fds__names_free(&names);
        free(bytes);
    }
    free(texts);
    free(ids);
}

typedef struct {
    int seen, stop_at;
} counter;

static bool count_reports(void *user, const fds_progress *progress) {
    counter *c = user;
    assert_string_equal(progress->stage, "sort");
    assert_true(progress->done < progress->total);
    return ++c->seen == c->stop_at;
}

/* At the first, the fourth ... report. */
static void numbering_is_cancelled_at_once(void **state) {
    (void)state;
    const char **texts = need(MANY, sizeof *texts);
    uint32_t *ids = need(MANY, sizeof *ids);
    char(*bytes)[12] = make_texts(texts, true);
    counter c = {0};
    const fds_events events = {.progress = count_reports, .user = &c};
    const fds__numbering how = {.limit = DISTINCT, .source = "test", .events = &events};
    fds__names names;
    fds_error err = {0};
    expect_ok(fds__names_number(texts, MANY, &how, ids, &names, &err), &err);
    fds__names_free(&names);
    int reports = c.seen;
    assert_true(reports >= 8);
    for (int at = 1; at <= reports; at += 3) {
        c = (counter){.stop_at = at};
        assert_int_equal(fds__names_number(texts, MANY, &how, ids, &names, &err),
                         FDS_ERR_CANCELLED);
        assert_int_equal(c.seen, at);
        assert_null(names.items);
    }
    free(bytes);
    free(texts);
    free(ids);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_names_are_numbered_in_order),
        cmocka_unit_test(numbering_is_cancelled_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
