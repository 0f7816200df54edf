/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole of `fds train`, in this process: every allocation (jansson's too) and every file
 * operation made to fail, one after the other. Each time the command must end with exit code 1 and
 * a message, and the old output must stand. Leaks show where the tests are built with the address
 * sanitizer. */
#include "../base/scratch.h"

#include "base/base.h"

#include <fcntl.h>
#include <jansson.h>

/* The command's own main, under another name (see meson.build). */
int fds_main(int argc, char **argv);

/* Runs the command with both outputs in files; returns its exit code. */
static int run_command(char **argv, int argc) {
    int kept[2] = {dup(1), dup(2)};
    const char *names[2] = {"stdout", "stderr"};
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        int fd = open(scratch_path(names[i]), O_WRONLY | O_CREAT | O_TRUNC, 0666);
        assert_true(fd >= 0);
        dup2(fd, i + 1);
        close(fd);
    }
    int code = fds_main(argc, argv);
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        dup2(kept[i], i + 1);
        close(kept[i]);
    }
    return code;
}

static size_t message(char *text, size_t size) {
    FILE *file = fopen(scratch_path("stderr"), "rb");
    assert_non_null(file);
    size_t got = fread(text, 1, size - 1, file);
    text[got] = 0;
    fclose(file);
    return got;
}

/* Makes every call of one kind fail once in argv; says how many there were. */
static uint64_t fail_each(fds_fault_kind kind, char **argv, int argc, const char *output) {
    fds_fault_arm(kind, 0);
    assert_int_equal(run_command(argv, argc), 0);
    uint64_t calls = fds_fault_arm(kind, 0);
    for (uint64_t n = 1; n <= calls; n++) {
        char text[1024];
        scratch_write(output, "old", 3);
        fds_fault_arm(kind, n);
        int code = run_command(argv, argc);
        fds_fault_arm(kind, 0);
        size_t said = message(text, sizeof text);
        /* the last file operation syncs the folder: by then the new file stands, complete */
        bool replaced = kind == FDS_FAULT_IO && n == calls;
        if (code != 1 || said < 12 || strncmp(text, "fds train: ", 11) != 0)
            fail_msg("call %llu of %llu: exit code %d: %s", (unsigned long long)n,
                     (unsigned long long)calls, code, text);
        if (replaced) {
            fds_model *model = NULL;
            assert_int_equal(fds_model_load(output, &model, NULL), FDS_OK);
            fds_model_free(model);
        } else {
            scratch_expect(output, "old");
        }
        assert_int_equal(scratch_entries(),
                         3); /* the output, stdout, stderr: nothing half-written */
    }
    return calls;
}

static void train_survives_every_failure(void **state) {
    (void)state;
    char data[512], output[512];
    snprintf(data, sizeof data, "%s/mnist", getenv("FDS_TEST_DATA"));
    snprintf(output, sizeof output, "%s", scratch_path("model"));
    char *argv[] = {"fds",     "train", data,       "-o", output,      "--players", "10",
                    "--model", "mlp",   "--epochs", "1",  "--threads", "1",         "--quiet"};
    uint64_t allocations = fail_each(FDS_FAULT_ALLOC, argv, COUNT(argv), output);
    uint64_t operations = fail_each(FDS_FAULT_IO, argv, COUNT(argv), output);
    print_message("# %llu allocations and %llu file operations failed in turn\n",
                  (unsigned long long)allocations, (unsigned long long)operations);
    assert_true(allocations > 50 && operations > 10);
}

int main(void) {
    json_set_alloc_funcs(fds_alloc, fds_free);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(train_survives_every_failure, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
