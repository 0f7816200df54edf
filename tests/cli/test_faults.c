/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole of `fds train`, `fds value`, `fds explain` and `fds pay`, in this process: every allocation and
 * every file operation made to fail, one after the other. Each time the command must end with exit
 * code 1 and a message, and the old output must stand. Leaks show where the tests are built with
 * the address sanitizer. Jansson's allocations fail too, but where it reads: its parser may go on
 * then with a character less, and nobody can tell. */
#include "../base/scratch.h"

#include "base/base.h"

#include <fcntl.h>
#include <jansson.h>

/* The command's own main, under another name (see meson.build). */
int fds_main(int argc, char **argv);

/* A call of the command, and what it leaves in the folder. */
typedef struct {
    char **argv;
    int argc;
    const char *output;
    const char *table; /* a folder that is taken away before each call; NULL: none */
    void (*check)(const char *output);
} call;

/* Runs the command with both outputs in files; returns its exit code. */
static int run_command(const call *c) {
    int kept[2] = {dup(1), dup(2)};
    const char *names[2] = {"stdout", "stderr"};
    if (c->table)
        nftw(c->table, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        int fd = open(scratch_path(names[i]), O_WRONLY | O_CREAT | O_TRUNC, 0666);
        assert_true(fd >= 0);
        dup2(fd, i + 1);
        close(fd);
    }
    int code = fds_main(c->argc, c->argv);
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

/* Makes every call of one kind fail once; says how many there were. */
static uint64_t fail_each(fds__fault_kind kind, const call *c) {
    char prefix[32];
    snprintf(prefix, sizeof prefix, "fds %s: ", c->argv[1]);
    fds__fault_arm(kind, 0);
    assert_int_equal(run_command(c), 0);
    uint64_t calls = fds__fault_arm(kind, 0);
    for (uint64_t n = 1; n <= calls; n++) {
        char text[1024];
        scratch_write(c->output, "old", 3);
        fds__fault_arm(kind, n);
        int code = run_command(c);
        fds__fault_arm(kind, 0);
        size_t said = message(text, sizeof text);
        /* the last file operation syncs the folder: by then the new file stands, complete */
        bool replaced = kind == FDS__FAULT_IO && n == calls;
        if (code != 1 || said <= strlen(prefix) || strncmp(text, prefix, strlen(prefix)) != 0)
            fail_msg("call %llu of %llu: exit code %d: %s", (unsigned long long)n,
                     (unsigned long long)calls, code, text);
        if (replaced)
            c->check(c->output);
        else
            scratch_expect(c->output, "old");
        /* the output, stdout, stderr, the table: nothing half-written */
        bool has_table = c->table && access(c->table, F_OK) == 0;
        assert_int_equal(scratch_entries(), has_table ? 4 : 3);
    }
    return calls;
}

static void fail_all(const call *c, bool reads_json, uint64_t least_allocations,
                     uint64_t least_operations) {
    if (!reads_json)
        json_set_alloc_funcs(fds__alloc, fds__free);
    uint64_t allocations = fail_each(FDS__FAULT_ALLOC, c);
    json_set_alloc_funcs(malloc, free);
    uint64_t operations = fail_each(FDS__FAULT_IO, c);
    print_message("# %llu allocations and %llu file operations failed in turn\n",
                  (unsigned long long)allocations, (unsigned long long)operations);
    assert_true(allocations > least_allocations && operations > least_operations);
}

static void check_model(const char *path) {
    fds_model *model = NULL;
    assert_int_equal(fds_model_load(path, &model, NULL), FDS_OK);
    fds_model_free(model);
}

static void train_survives_every_failure(void **state) {
    (void)state;
    char data[512], output[512];
    snprintf(data, sizeof data, "%s/mnist", getenv("FDS_TEST_DATA"));
    snprintf(output, sizeof output, "%s", scratch_path("m.safetensors"));
    char *argv[] = {"fds", "train",    data, "-o",        output, "--players", "10",    "--model",
                    "mlp", "--epochs", "1",  "--threads", "1",    "--quiet",   "--json"};
    const call c = {argv, COUNT(argv), output, NULL, check_model};
    fail_all(&c, false, 50, 10);
}

/* Features that tell two classes apart: sub-models of a few microseconds. */
static void write_data(const char *path) {
    char text[4096];
    size_t used = (size_t)snprintf(text, sizeof text, "x,y,label\n");
    for (int i = 0; i < 40; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%d,%d,%c\n", i % 2 * 3 + i % 7,
                                 i % 5, 'a' + i % 2);
    scratch_write(path, text, used);
}

static void check_values(const char *path) {
    size_t size;
    char *text = scratch_read(path, &size);
    assert_true(size > 2 && text[0] == '{' && strcmp(text + size - 2, "}\n") == 0);
    free(text);
}

/* The data lies elsewhere, so that the folder holds only what the command writes. */
static void fail_value(const char *method, const char *adjust, uint64_t least_allocations,
                       uint64_t least_operations) {
    char data[512], output[512], table[512];
    snprintf(data, sizeof data, "%s.csv", scratch);
    snprintf(output, sizeof output, "%s", scratch_path("values.json"));
    snprintf(table, sizeof table, "%s", scratch_path("values.json.table"));
    write_data(data);
    char *argv[] = {"fds",      "value",
                    data,       "-o",
                    output,     "--players",
                    "4",        "--test",
                    "3",        "--utility",
                    "knn:2",    "--threads",
                    "1",        "--json",
                    "--quiet",  "--quiet",
                    "--method", (char *)(uintptr_t)method,
                    "--adjust", (char *)(uintptr_t)adjust};
    const call c = {argv, COUNT(argv) - (adjust ? 0 : 2), output, table, check_values};
    fail_all(&c, false, least_allocations, least_operations);
    unlink(data);
}

static void exact_values_survive_every_failure(void **state) {
    (void)state;
    fail_value("exact", NULL, 50, 20);
}

static void least_squares_survive_every_failure(void **state) {
    (void)state;
    fail_value("ls", "counts", 50, 20);
}

/* A run lies elsewhere too; it is fitted once, and only looked at. */
static void fail_asking(char **argv, int argc, char *run) {
    char data[512];
    snprintf(data, sizeof data, "%s.csv", scratch);
    write_data(data);
    char *fit[] = {"fds", "fit",       data,       "-o",          run,      "--players",
                   "8",   "--inputs",  "20",       "--method",    "afds",   "--epochs",
                   "1",   "--model",   "logistic", "--explainer", "linear", "--explainer-epochs",
                   "1",   "--threads", "1",        "--quiet"};
    char output[512];
    snprintf(output, sizeof output, "%s", scratch_path("values.json"));
    const call fitting = {fit, COUNT(fit), output, NULL, NULL};
    assert_int_equal(run_command(&fitting), 0);
    const call c = {argv, argc, output, NULL, check_values};
    fail_all(&c, true, 50, 10);
    nftw(run, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    unlink(data);
}

static void explaining_survives_every_failure(void **state) {
    (void)state;
    char output[512], run[512];
    snprintf(run, sizeof run, "%s.run", scratch);
    snprintf(output, sizeof output, "%s", scratch_path("values.json"));
    char *argv[] = {"fds",  "explain",   run, "--index", "0..2",  "-o",
                    output, "--threads", "1", "--quiet", "--json"};
    fail_asking(argv, COUNT(argv), run);
}

static void paying_survives_every_failure(void **state) {
    (void)state;
    char output[512], run[512];
    snprintf(run, sizeof run, "%s.run", scratch);
    snprintf(output, sizeof output, "%s", scratch_path("values.json"));
    char *argv[] = {"fds", "pay",  run,    "--index", "0..2",      "--total", "0.10",
                    "-o",  output, "--by", "group",   "--threads", "1",       "--quiet"};
    fail_asking(argv, COUNT(argv), run);
}

int main(void) {
    setenv("OMP_WAIT_POLICY", "passive", 1); /* else fds fit would start this program once more */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(train_survives_every_failure, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(exact_values_survive_every_failure, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(least_squares_survive_every_failure, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(explaining_survives_every_failure, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(paying_survives_every_failure, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
