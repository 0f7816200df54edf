/* SPDX-License-Identifier: Apache-2.0
 * Programs that answer over pipes: reading, writing, limits, ends, and what is left behind. */
#include "base/base.h"
#include "scratch.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

enum { MANY = 1 << 20 };

static fds__child none(void) { return (fds__child){.to = -1, .from = -1, .log = -1}; }

static fds__child begin(const char *command) {
    fds__child child = none();
    fds_error err;
    expect_ok(fds__child_start(&child, command, &err), &err);
    assert_true(child.pid > 0);
    return child;
}

static void expect_end(fds__child *child, double patience_s) {
    pid_t pid = child->pid;
    fds__child_stop(child, patience_s);
    assert_int_equal(child->pid, 0);
    assert_true(child->to == -1 && child->from == -1 && child->log == -1);
    assert_true(waitpid(pid, NULL, 0) == -1 && errno == ECHILD);
    fds__child_stop(child, 0); /* once more does nothing */
}

static void expect_failed(fds_status status, const fds_error *err, const char *part) {
    assert_int_equal(status, FDS_ERR_EXTERNAL);
    if (!strstr(err->text, part))
        fail_msg("\"%s\" does not say \"%s\"", err->text, part);
}

/* More than a pipe holds goes through, and comes back as it was. */
static void what_is_written_comes_back(void **state) {
    (void)state;
    fds__child child = begin("head -c 1048576 > copy; cat copy; rm copy");
    fds_error err;
    uint8_t *data = need(MANY, 1), *back = need(MANY, 1);
    for (size_t i = 0; i < MANY; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 13);
    expect_ok(fds__child_write(&child, data, MANY, 60, &err), &err);
    expect_ok(fds__child_read(&child, back, MANY, 60, &err), &err);
    assert_memory_equal(data, back, MANY);
    expect_end(&child, 10);
    free(data);
    free(back);
}

static void its_end_is_described(void **state) {
    (void)state;
    const struct {
        const char *command, *part;
    } ends[] = {{"exit 7", "exit code 7"},
                {"kill -9 $$", "signal 9"},
                {"exec >&-; exec sleep 100", "closed its standard output"},
                {"printf abc", "exit code 0"},
                {"printf abc; exec >&-; exec sleep 100", "in the middle of an answer"},
                {"no-such-program-at-all", "exit code 127"}};
    for (size_t i = 0; i < COUNT(ends); i++) {
        char data[16];
        fds_error err = {0};
        fds__child child = begin(ends[i].command);
        expect_failed(fds__child_read(&child, data, sizeof data, 60, &err), &err, ends[i].part);
        expect_end(&child, 0);
    }
}

/* Whatever the host does with SIGPIPE: here it would end the test. */
static void a_child_that_does_not_read_raises_no_signal(void **state) {
    (void)state;
    uint8_t *data = need(MANY, 1);
    fds_error err = {0};
    fds__child child = begin("exit 3");
    signal(SIGPIPE, SIG_DFL);
    expect_failed(fds__child_write(&child, data, MANY, 60, &err), &err, "exit code 3");
    expect_end(&child, 0);
    sigset_t pending;
    sigpending(&pending);
    assert_false(sigismember(&pending, SIGPIPE));
    free(data);
}

static void silence_has_a_limit(void **state) {
    (void)state;
    char data[4];
    uint8_t *many = need(MANY, 1);
    fds_error err = {0};
    fds__child child = begin("exec sleep 100");
    double start_s = fds__now_s();
    expect_failed(fds__child_read(&child, data, sizeof data, 0.1, &err), &err, "within 0.1 s");
    expect_failed(fds__child_write(&child, many, MANY, 0.1, &err), &err, "within 0.1 s");
    assert_true(fds__now_s() - start_s < 10);
    expect_end(&child, 0);
    free(many);
}

static void the_last_lines_of_its_log_are_kept(void **state) {
    (void)state;
    char data[4];
    fds_error err = {0};
    fds__child child = begin("i=0; while [ $i -lt 5000 ]; do echo line $i >&2; i=$((i + 1)); done; "
                             "printf last >&2; exit 1");
    assert_int_equal(fds__child_read(&child, data, sizeof data, 60, &err), FDS_ERR_EXTERNAL);
    assert_int_equal(fds__child_lines(&child), FDS__CHILD_LINES);
    assert_string_equal(fds__child_line(&child, 0), "line 4981");
    assert_string_equal(fds__child_line(&child, FDS__CHILD_LINES - 1), "last");
    expect_end(&child, 0);
    child = begin("echo one >&2; head -c 4 /dev/zero; echo two >&2; exec cat");
    expect_ok(fds__child_read(&child, data, sizeof data, 60, &err), &err);
    expect_end(&child, 10);
    assert_int_equal(fds__child_lines(&child), 2);
    assert_string_equal(fds__child_line(&child, 1), "two");
}

static void long_lines_are_cut(void **state) {
    (void)state;
    char data[1];
    fds_error err = {0};
    fds__child child = begin("head -c 100000 /dev/zero | tr '\\0' x >&2; echo >&2; echo end >&2");
    assert_int_equal(fds__child_read(&child, data, 1, 60, &err), FDS_ERR_EXTERNAL);
    expect_end(&child, 0);
    assert_int_equal(fds__child_lines(&child), 2);
    assert_int_equal(strlen(fds__child_line(&child, 0)), FDS__CHILD_LINE - 1);
    assert_string_equal(fds__child_line(&child, 1), "end");
}

/* The group, too: a child of the child ends with it. */
static void its_own_children_end_with_it(void **state) {
    (void)state;
    char text[32] = "";
    fds_error err = {0};
    fds__child child = begin("sleep 1000 & printf '%08d' $!; wait");
    expect_ok(fds__child_read(&child, text, 8, 60, &err), &err);
    pid_t grandchild = (pid_t)strtol(text, NULL, 10);
    assert_int_equal(kill(grandchild, 0), 0);
    expect_end(&child, 0);
    for (int i = 0; i < 200 && kill(grandchild, 0) == 0; i++) {
        char path[64], line[256] = "";
        snprintf(path, sizeof path, "/proc/%d/stat", (int)grandchild);
        FILE *file = fopen(path, "r");
        if (!file || !fgets(line, sizeof line, file) || strstr(line, ") Z")) {
            if (file)
                fclose(file);
            return; /* ended, though nobody has asked for it yet */
        }
        fclose(file);
        usleep(10000);
    }
    assert_int_not_equal(kill(grandchild, 0), 0);
}

static void it_gets_the_time_to_end_by_itself(void **state) {
    (void)state;
    fds__child child = begin("cat > /dev/null; echo done > ended");
    expect_end(&child, 10);
    assert_true(fds__path_exists("ended"));
    unlink("ended");
}

static void its_environment_has_one_thread(void **state) {
    (void)state;
    char data[5] = "";
    fds_error err = {0};
    setenv("OMP_NUM_THREADS", "64", 1);
    fds__child child = begin("printf \"$OMP_NUM_THREADS $PYTHONHASHSEED \"; "
                             "env | grep -c ^OMP_NUM_THREADS=");
    expect_ok(fds__child_read(&child, data, 4, 60, &err), &err);
    assert_memory_equal(data, "1 0 ", 4);
    expect_ok(fds__child_read(&child, data, 1, 60, &err), &err);
    assert_int_equal(data[0], '1');
    unsetenv("OMP_NUM_THREADS");
    expect_end(&child, 10);
}

/* A descriptor of another child's pipe would keep that one from seeing the end of its input. */
static void it_inherits_no_pipes_of_others(void **state) {
    (void)state;
    char data[1];
    fds_error err = {0};
    fds__child other = begin("cat; echo x"), child = begin("exec cat");
    fds__child_hang_up(&other);
    expect_ok(fds__child_read(&other, data, 1, 20, &err), &err);
    expect_end(&other, 10);
    expect_end(&child, 10);
}

static bool is_late(void *user, const fds_progress *progress) {
    (void)progress;
    return fds__now_s() > *(double *)user;
}

static fds_status read_in_pool(void *context, size_t job, unsigned worker, fds_error *err) {
    char data[1];
    (void)job, (void)worker;
    return fds__child_read(context, data, 1, 1000, err);
}

static void waiting_for_it_can_be_cancelled(void **state) {
    (void)state;
    fds_error err = {0};
    fds__child child = begin("exec sleep 1000");
    double start_s = fds__now_s(), until_s = start_s + 0.2;
    const fds_events events = {.progress = is_late, .user = &until_s};
    assert_int_equal(fds__pool_run(1, 1, read_in_pool, &child, "ask", "answers", &events, &err),
                     FDS_ERR_CANCELLED);
    assert_true(fds__now_s() - start_s < 5);
    expect_end(&child, 0);
}

static void every_failed_call_is_survived(void **state) {
    (void)state;
    for (int kind = FDS__FAULT_ALLOC; kind <= FDS__FAULT_IO; kind++)
        for (uint64_t n = 1; n <= 3; n++) {
            fds__child child = none();
            fds_error err = {0};
            fds__fault_arm((fds__fault_kind)kind, n);
            fds_status status = fds__child_start(&child, "exec cat", &err);
            bool has_failed = fds__fault_arm((fds__fault_kind)kind, 0) >= n;
            assert_int_equal(status != FDS_OK, has_failed);
            fds__child_stop(&child, 0);
        }
}

static int enter_scratch(void **state) {
    int failed = scratch_setup(state);
    return failed || chdir(scratch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_comes_back),
        cmocka_unit_test(its_end_is_described),
        cmocka_unit_test(a_child_that_does_not_read_raises_no_signal),
        cmocka_unit_test(silence_has_a_limit),
        cmocka_unit_test(the_last_lines_of_its_log_are_kept),
        cmocka_unit_test(long_lines_are_cut),
        cmocka_unit_test(its_own_children_end_with_it),
        cmocka_unit_test(it_gets_the_time_to_end_by_itself),
        cmocka_unit_test(its_environment_has_one_thread),
        cmocka_unit_test(it_inherits_no_pipes_of_others),
        cmocka_unit_test(waiting_for_it_can_be_cancelled),
        cmocka_unit_test(every_failed_call_is_survived),
    };
    return cmocka_run_group_tests(tests, enter_scratch, scratch_teardown);
}
