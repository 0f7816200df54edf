/* SPDX-License-Identifier: Apache-2.0
 * Events for a person, into a pipe: plain lines, not too many, without anything that moves a
 * cursor. The clock is the test's own. */
#include "scratch.h"

#include "base/base.h"

#include <fcntl.h>
#include <time.h>

static double now_s = 1000;

/* In the place of the library's. */
int clock_gettime(clockid_t clock, struct timespec *out) {
    (void)clock;
    out->tv_sec = (time_t)now_s;
    out->tv_nsec = (long)((now_s - (double)out->tv_sec) * 1e9);
    return 0;
}

static int pipe_ends[2], kept;

static void catch_errors(void) {
    fflush(stderr);
    assert_int_equal(pipe(pipe_ends), 0);
    assert_int_equal(fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK), 0);
    kept = dup(STDERR_FILENO);
    assert_true(kept >= 0 && dup2(pipe_ends[1], STDERR_FILENO) >= 0);
}

/* What came since the last call, in a place that the next call uses again. */
static const char *caught(void) {
    static char text[4096];
    fflush(stderr);
    ssize_t size = read(pipe_ends[0], text, sizeof text - 1);
    text[size > 0 ? size : 0] = 0;
    return text;
}

static int begin(void **state) {
    (void)state;
    catch_errors();
    /* the line that is due by now, so that each test begins with none */
    now_s += 100;
    fds_progress p = {"a", "b", 1, 2, 1};
    fds_events_terminal()->progress(NULL, &p);
    now_s += 100;
    fds_events_terminal()->progress(NULL, &p);
    caught();
    return 0;
}

static int end(void **state) {
    (void)state;
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    return 0;
}

static void progress_at(double time_s, uint64_t done, uint64_t total, double elapsed_s) {
    fds_progress p = {"train", "epochs", done, total, elapsed_s};
    now_s = time_s;
    assert_false(fds_events_terminal()->progress(NULL, &p)); /* it never asks to stop */
}

static void notes_and_warnings_are_lines(void **state) {
    (void)state;
    const fds_events *events = fds_events_terminal();
    events->log(events->user, FDS_LOG_INFO, "a note");
    assert_string_equal(caught(), "fds: a note\n");
    events->log(events->user, FDS_LOG_WARNING, "90 % are missing %s %n");
    assert_string_equal(caught(), "fds: warning: 90 % are missing %s %n\n");
    fds_terminal_clear(); /* there is no bar */
    assert_string_equal(caught(), "");
    assert_ptr_equal(events, fds_events_terminal());
}

static void a_line_comes_every_five_seconds(void **state) {
    (void)state;
    double start_s = now_s;
    progress_at(start_s + 1, 10, 1000, 1);
    progress_at(start_s + 4.9, 490, 1000, 4.9);
    assert_string_equal(caught(), "");
    progress_at(start_s + 5, 500, 1000, 5);
    assert_string_equal(caught(), "train: 500 of 1000 epochs, 100/s, 0:05 left\n");
    progress_at(start_s + 9, 900, 1000, 9);
    progress_at(start_s + 9.5, 1000, 1000, 9.5);
    assert_string_equal(caught(), "");
    progress_at(start_s + 10, 1000, 1000, 10);
    assert_string_equal(caught(), "train: 1000 of 1000 epochs, 100/s, 0:00 left\n");
}

static void rates_and_times_suit_their_size(void **state) {
    (void)state;
    static const struct {
        uint64_t done, total;
        double elapsed_s;
        const char *text;
    } cases[] = {
        {0, 10, 5, "-/s, ? left"},
        {0, 10, 0, "-/s, ? left"},
        {1, 10, 0, "-/s, ? left"},
        {1, 100, 8, "0.12/s, 13:12 left"},
        {34, 44, 10, "3.4/s, 0:03 left"},
        {12000, 12000, 1, "12000/s, 0:00 left"},
        {1, 18001, 1, "1.0/s, 5:00:00 left"},
        {1, 172800, 1, "1.0/s, 47:59:59 left"},
        {1, 172801, 1, "1.0/s, 2 days left"},
        {1, 8640000, 1, "1.0/s, 100 days left"},
        {1, 8640001, 1, "1.0/s, long left"},
        {1, UINT64_MAX, 1e6, "0.00/s, long left"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        progress_at(now_s + 10, cases[i].done, cases[i].total, cases[i].elapsed_s);
        expect_in(caught(), cases[i].text);
    }
}

static void nonsense_is_not_shown(void **state) {
    (void)state;
    progress_at(now_s + 10, 0, 0, 1);
    progress_at(now_s + 10, 5, 4, 1);
    assert_string_equal(caught(), "");
    progress_at(now_s, 4, 4, 1); /* nor does it delay the next line */
    expect_in(caught(), "4 of 4");
}

static void no_line_moves_the_cursor(void **state) {
    (void)state;
    setenv("TERM", "xterm", 1);
    progress_at(now_s + 10, 1, 2, 1);
    fds__log(fds_events_terminal(), FDS_LOG_WARNING, "the first is \"%s\"",
             "\x1b[2J\r\x7f\xc2\x9b"
             "2J \xc3\xa4\xc2\xa0");
    fds_terminal_clear();
    const char *text = caught();
    for (const char *at = text; *at; at++)
        assert_true((unsigned char)*at >= 0x20 || *at == '\n');
    expect_in(text, "fds: warning: the first is \"?[2J?"
                    "??2J \xc3\xa4\xc2\xa0\"\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(notes_and_warnings_are_lines),    TEST(a_line_comes_every_five_seconds),
        TEST(rates_and_times_suit_their_size), TEST(nonsense_is_not_shown),
        TEST(no_line_moves_the_cursor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
