/* SPDX-License-Identifier: Apache-2.0
 * The status table is what bindings and scripts rely on: numbers, names and exit codes are stable.
 * Error text survives odd arguments. */
#include "scratch.h"
#include "base/base.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* Written out once more by hand: a renumbering must fail here. */
static const struct {
    int number;
    const char *name;
    int exit_code;
} published[] = {
    {0, "OK", 0},
    {1, "ERR_USAGE", 2},
    {2, "ERR_NOMEM", 1},
    {3, "ERR_IO", 1},
    {4, "ERR_NOT_FOUND", 1},
    {5, "ERR_FORMAT", 1},
    {6, "ERR_SHAPE", 1},
    {7, "ERR_LIMIT", 1},
    {8, "ERR_CORRUPT", 1},
    {9, "ERR_UNSUPPORTED", 1},
    {10, "ERR_DIVERGED", 1},
    {11, "ERR_CANCELLED", 1},
    {12, "ERR_EXTERNAL", 1},
    {13, "ERR_CONFLICT", 2},
};

static void the_version_is_the_same_in_text_and_in_numbers(void **state) {
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", FDS_VERSION_MAJOR, FDS_VERSION_MINOR,
             FDS_VERSION_PATCH);
    assert_string_equal(FDS_VERSION, text);
    assert_string_equal(fds_version(), FDS_VERSION);
}

static void numbers_names_and_exit_codes_are_stable(void **state) {
    (void)state;
    size_t rows = 0;
#define FDS_X(name, number, exit_code, text) rows++;
    FDS_STATUS_TABLE(FDS_X)
#undef FDS_X
    assert_int_equal(rows, COUNT(published));
    for (size_t i = 0; i < COUNT(published); i++) {
        fds_status status = (fds_status)published[i].number;
        assert_string_equal(fds_status_name(status), published[i].name);
        assert_int_equal(fds_status_exit_code(status), published[i].exit_code);
    }
}

static void every_status_has_a_text_of_its_own(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(published); i++) {
        assert_true(strlen(fds_status_text((fds_status)i)) > 0);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(fds_status_text((fds_status)i), fds_status_text((fds_status)j));
    }
}

static void unknown_numbers_are_answered_as_failures(void **state) {
    (void)state;
    const int strange[] = {-1, 14, 1000, 0x7fffffff};
    for (size_t i = 0; i < COUNT(strange); i++) {
        assert_string_equal(fds_status_name((fds_status)strange[i]), "UNKNOWN");
        assert_true(strlen(fds_status_text((fds_status)strange[i])) > 0);
        assert_int_not_equal(fds_status_exit_code((fds_status)strange[i]), 0);
    }
}

static void fail_fills_the_error_and_returns_the_status(void **state) {
    (void)state;
    fds_error err = {0};
    assert_int_equal(fds__fail(&err, FDS_ERR_FORMAT, "%s: byte %zu", "a.idx", (size_t)7),
                     FDS_ERR_FORMAT);
    assert_int_equal(err.status, FDS_ERR_FORMAT);
    assert_string_equal(err.text, "a.idx: byte 7");
    assert_int_equal(fds__fail(NULL, FDS_ERR_SHAPE, "%d", 1), FDS_ERR_SHAPE);
}

/* Names come from data, and a control character could do anything to a terminal. */
static void text_may_be_made_from_itself(void **state) {
    (void)state;
    fds_error err = {0};
    fds__fail(&err, FDS_ERR_IO, "inner");
    fds__fail(&err, FDS_ERR_FORMAT, "outer: %s: %s", err.text, err.text);
    assert_string_equal(err.text, "outer: inner: inner");
    assert_int_equal(err.status, FDS_ERR_FORMAT);
}

static void long_text_is_cut_off_within_its_room(void **state) {
    (void)state;
    struct {
        fds_error err;
        char guard[8];
    } box = {.guard = "guarded"};
    char text[2000];
    for (size_t len = sizeof box.err.text - 3; len < sizeof box.err.text + 3; len++) {
        memset(text, 'x', sizeof text);
        text[len] = 0;
        fds__fail(&box.err, FDS_ERR_LIMIT, "%s", text);
        size_t kept = len < sizeof box.err.text ? len : sizeof box.err.text - 1;
        assert_int_equal(strlen(box.err.text), kept);
        assert_string_equal(box.guard, "guarded");
    }
    /* wrapping a full text in itself again and again keeps its beginning */
    for (int i = 0; i < 3; i++)
        fds__fail(&box.err, FDS_ERR_LIMIT, "%d: %s", i, box.err.text);
    assert_memory_equal(box.err.text, "2: 1: 0: xxx", 12);
    assert_int_equal(strlen(box.err.text), sizeof box.err.text - 1);
}

static void keep_log(void *user, fds_log_level level, const char *text) {
    snprintf(user, 600, "%d %s", (int)level, text);
}

/* A file's names reach terminals through messages; none of them may steer one. */
static void messages_have_no_control_characters(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"\x1b[31mred\x07", "?[31mred?"},
        {"two\nlines\tand\r", "two\nlines\tand?"},
        {"\x7f \xc2\x9b"
         "2J",
         "? ?2J"},
        {"M\xfcller", "M?ller"},
        {"M\xc3\xbcller, \xe2\x82\xac, \xf0\x9f\x98\x80",
         "M\xc3\xbcller, \xe2\x82\xac, \xf0\x9f\x98\x80"},
        {"\xc0\x9b \xed\xa0\x80 \xf4\x90\x80\x80 \xe2\x82", "?? ??? ???? ??"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char seen[600], logged[600];
        fds_events events = {.log = keep_log, .user = seen};
        fds_error err = {0};
        fds__fail(&err, FDS_ERR_FORMAT, "%s", cases[i][0]);
        assert_string_equal(err.text, cases[i][1]);
        fds__log(&events, FDS_LOG_WARNING, "%s", cases[i][0]);
        snprintf(logged, sizeof logged, "1 %s", cases[i][1]);
        assert_string_equal(seen, logged);
    }
}

static void errno_becomes_the_right_status(void **state) {
    (void)state;
    const struct {
        int number;
        fds_status status;
    } cases[] = {{ENOENT, FDS_ERR_NOT_FOUND},
                 {ENOMEM, FDS_ERR_NOMEM},
                 {EACCES, FDS_ERR_IO},
                 {ENOSPC, FDS_ERR_IO}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        fds_error err;
        errno = cases[i].number;
        assert_int_equal(fds__fail_errno(&err, "open", "some/file"), cases[i].status);
        expect_in(err.text, "cannot open some/file: ");
        expect_in(err.text, strerror(cases[i].number));
    }
    fds_error err;
    assert_int_equal(fds__fail_nomem(&err, 12345), FDS_ERR_NOMEM);
    expect_in(err.text, "12345 bytes");
}

static bool keep_progress(void *user, const fds_progress *progress) {
    *(fds_progress *)user = *progress;
    return progress->done == 3;
}

static void reports_reach_the_callback_and_can_cancel(void **state) {
    (void)state;
    fds_progress seen = {0};
    fds_events events = {.progress = keep_progress, .user = &seen};
    fds_error err = {0};
    assert_int_equal(fds__report(&events, "train", "epochs", 2, 9, fds__now_s() - 1, &err), FDS_OK);
    assert_string_equal(seen.stage, "train");
    assert_string_equal(seen.unit, "epochs");
    assert_int_equal(seen.done, 2);
    assert_int_equal(seen.total, 9);
    assert_true(seen.elapsed_s >= 1 && seen.elapsed_s < 60);
    assert_string_equal(err.text, "");
    assert_int_equal(fds__report(&events, "train", "epochs", 3, 9, 0, &err), FDS_ERR_CANCELLED);
    assert_string_equal(err.text, "train: cancelled after 3 of 9 epochs");
    assert_int_equal(fds__report(NULL, "train", "epochs", 3, 9, 0, &err), FDS_OK);
    assert_int_equal(fds__report(&(fds_events){0}, "train", "epochs", 3, 9, 0, &err), FDS_OK);
}

static void logs_reach_the_callback_cut_to_a_line(void **state) {
    (void)state;
    char seen[600] = "", text[2000];
    fds_events events = {.log = keep_log, .user = seen};
    fds__log(&events, FDS_LOG_WARNING, "%d of %s", 3, "them");
    assert_string_equal(seen, "1 3 of them");
    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = 0;
    fds__log(&events, FDS_LOG_INFO, "%s", text);
    assert_int_equal(strlen(seen), 2 + 511);
    fds__log(NULL, FDS_LOG_INFO, "nobody listens");
    fds__log(&(fds_events){0}, FDS_LOG_INFO, "nobody listens");
}

/* Misuse by another room ends the program where it happens, not in a damaged file later. */
static void misuse_is_caught_by_assertions(void **state) {
    (void)state;
    for (int mistake = 0; mistake < 3; mistake++) {
        int ended;
        pid_t child = fork();
        if (child == 0) {
            fds__file closed = {.fd = -1};
            setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
            signal(SIGABRT, SIG_DFL); /* cmocka catches it */
            close(STDERR_FILENO);
            if (mistake == 0)
                fds__fail(NULL, FDS_OK, "no failure");
            else if (mistake == 1)
                fds__file_write_at(&closed, "x", 1, 0, NULL);
            else
                fds__text_fixed(&(fds__text){0}, 31, 1);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &ended, 0), child);
        assert_true(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGABRT);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_version_is_the_same_in_text_and_in_numbers),
        cmocka_unit_test(numbers_names_and_exit_codes_are_stable),
        cmocka_unit_test(every_status_has_a_text_of_its_own),
        cmocka_unit_test(unknown_numbers_are_answered_as_failures),
        cmocka_unit_test(fail_fills_the_error_and_returns_the_status),
        cmocka_unit_test(text_may_be_made_from_itself),
        cmocka_unit_test(long_text_is_cut_off_within_its_room),
        cmocka_unit_test(messages_have_no_control_characters),
        cmocka_unit_test(errno_becomes_the_right_status),
        cmocka_unit_test(reports_reach_the_callback_and_can_cancel),
        cmocka_unit_test(logs_reach_the_callback_cut_to_a_line),
        cmocka_unit_test(misuse_is_caught_by_assertions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
