/* SPDX-License-Identifier: Apache-2.0
 * The bank of sub-models: its answers are those of least squares on the table, its file survives
 * whatever happens to it, and mistakes are told by name. */
#include "../utility/utility_fixture.h"
#include "explain/run.h"

#include <signal.h>
#include <sys/wait.h>

/* ---- a filled bank ---- */

enum { INPUTS = 15, CLASSES = 3, PLAYERS = 9 };

typedef struct {
    game g;
    fds_utility *value;
    fds_plan *plan;
    fds_groups *groups;
} subject;

static fds_plan *paired(size_t players, size_t count, uint64_t seed) {
    fds_plan *plan = NULL;
    fds_error err;
    expect_ok(fds_plan_sample(FDS_SAMPLER_PAIRED, players, NULL, count, seed, &plan, &err), &err);
    return plan;
}

/* Vectors; the coalitions of so small a game repeat themselves. network: NULL for the usual one. */
static subject make_subject_of(const char *network, size_t coalitions) {
    subject s = {.g = game_vectors(PLAYERS, INPUTS, CLASSES, 1)};
    fds__utility_params params = smaller("retrain:3");
    fds_error err;
    params.network = network ? network : params.network;
    s.value = make_value(&s.g, &params, 3);
    s.plan = paired(PLAYERS, coalitions, 4);
    expect_ok(fds_groups_by_label(s.g.train, s.g.players, &s.groups, &err), &err);
    return s;
}

static subject make_subject(size_t coalitions) { return make_subject_of(NULL, coalitions); }

/* Not plain: its sub-models are evaluated one by one, with running statistics of their own. */
static const char normalised[] =
    "fc:6,batchnorm,tanh,residual(fc:6,dropout:0.25,batchnorm),gelu,fc:classes";

static void free_subject(subject *s) {
    fds_groups_free(s->groups);
    fds_plan_free(s->plan);
    fds_utility_free(s->value);
    game_free(&s->g);
}

static fds_status try_fill(const subject *s, const fds_plan *plan, unsigned threads,
                           const fds_events *events, fds_error *err) {
    fds_table *table = NULL;
    fds_status status =
        fds_table_open(scratch_path("table"), s->value, FDS_STORE_F32, events, &table, err);
    if (status == FDS_OK)
        status = fds__bank_fill(scratch_path("bank"), s->value, table, plan, threads, events, err);
    fds_table_free(table);
    return status;
}

static void fill(const subject *s, unsigned threads) {
    fds_error err;
    expect_ok(try_fill(s, s->plan, threads, NULL, &err), &err);
}

static fds__bank_file the_file(const subject *s) {
    const char *text = s->value->text;
    return (fds__bank_file){scratch_path("bank"), fds__utility_network(s->value),
                            fds_checksum(text, strlen(text))};
}

static fds_status try_open(const subject *s, const fds_plan *plan, unsigned threads,
                           fds__bank **bank, fds_error *err) {
    fds_ls_params params = {.adjust = FDS_ADJUST_COUNTS, .groups = s->groups};
    fds_ls_report strengths = {.shrink = 5, .shrink_rest = 10};
    const fds__bank_file file = the_file(s);
    return fds__bank_open(&file, plan, &params, &strengths, threads, bank, err);
}

static fds__bank *open_bank(const subject *s, unsigned threads) {
    fds__bank *bank = NULL;
    fds_error err;
    expect_ok(try_open(s, s->plan, threads, &bank, &err), &err);
    return bank;
}

static void some_labels(uint32_t *labels) {
    for (uint32_t i = 0; i < INPUTS; i++)
        labels[i] = i * 2 % CLASSES;
}

/* ---- answers ---- */

/* Values and errors by least squares on the table, (inputs, players), with the strengths chosen. */
static fds_ls_report solve_table(const subject *s, const fds_ls_params *params,
                                 const uint32_t *labels, double *values, double *errors) {
    fds_table *table = NULL;
    fds_table_view *view = NULL;
    fds_ls_report report;
    fds_error err;
    double by_player[2][PLAYERS * INPUTS];
    expect_ok(fds_table_open(scratch_path("table"), s->value, FDS_STORE_F32, NULL, &table, &err),
              &err);
    expect_ok(fds_table_view_create(table, s->plan, labels, false, 1, &view, &err), &err);
    fds_rows rows = fds_table_view_rows(view);
    expect_ok(fds_least_squares(s->plan, &rows, params, 1, by_player[0], by_player[1], &report,
                                NULL, &err),
              &err);
    for (size_t x = 0; x < INPUTS; x++)
        for (size_t i = 0; i < PLAYERS; i++) {
            values[x * PLAYERS + i] = by_player[0][i * INPUTS + x];
            errors[x * PLAYERS + i] = by_player[1][i * INPUTS + x];
        }
    fds_table_view_free(view);
    fds_table_free(table);
    return report;
}

static double farthest(const double *a, const double *b, size_t count) {
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, fabs(a[i] - b[i]));
    return most;
}

/* 16 bits change a probability by less than 1e-3; the values are of the same order. */
static void expect_answers_of_the_table(const char *network) {
    enum { SIZE = INPUTS * PLAYERS };
    subject s = make_subject_of(network, 200);
    uint32_t labels[INPUTS];
    some_labels(labels);
    fill(&s, 2);
    for (fds_adjust adjust = FDS_ADJUST_NONE; adjust <= FDS_ADJUST_CONTROL; adjust++) {
        fds_ls_params params = {.adjust = adjust, .groups = s.groups};
        double right[2][SIZE], got[2][SIZE];
        fds__bank *bank = NULL;
        fds_error err;
        fds_ls_report report = solve_table(&s, &params, labels, right[0], right[1]);
        const fds__bank_file file = the_file(&s);
        expect_ok(fds__bank_open(&file, s.plan, &params, &report, 2, &bank, &err), &err);
        expect_ok(
            fds__bank_explain(bank, s.value->data->inputs, labels, NULL, got[0], got[1], &err),
            &err);
        double off = farthest(got[0], right[0], SIZE), off_error = farthest(got[1], right[1], SIZE);
        print_message("# adjust %d: values differ by at most %.2g, errors by %.2g\n", (int)adjust,
                      off, off_error);
        assert_true(off < 1e-3 && off_error < 1e-3);
        assert_true(off > 0); /* it is not the table that answers */
        fds__bank_free(bank);
    }
    free_subject(&s);
}

static void answers_are_those_of_least_squares_on_the_table(void **state) {
    (void)state;
    expect_answers_of_the_table(NULL);
}

static void answers_with_batchnorm_are_those_of_least_squares_on_the_table(void **state) {
    (void)state;
    expect_answers_of_the_table(normalised);
}

static void expect_bits_for_any_threads_and_company(const char *network) {
    enum { SIZE = INPUTS * PLAYERS };
    subject s = make_subject_of(network, 60);
    uint32_t labels[INPUTS];
    double first[2 * SIZE];
    fds_error err;
    some_labels(labels);
    fill(&s, 1);
    for (unsigned threads = 1; threads <= 3; threads++) {
        double all[2 * SIZE], alone[2 * PLAYERS];
        fds__bank *bank = open_bank(&s, threads);
        expect_ok(
            fds__bank_explain(bank, s.value->data->inputs, labels, NULL, all, all + SIZE, &err),
            &err);
        if (threads == 1)
            memcpy(first, all, sizeof all);
        assert_memory_equal(first, all, sizeof all);
        for (size_t x = 0; x < INPUTS; x++) {
            fds_inputs one = *s.value->data->inputs;
            one.values += x * one.size;
            one.count = 1;
            expect_ok(fds__bank_explain(bank, &one, labels + x, NULL, alone,
                                        x % 2 ? alone + PLAYERS : NULL, &err),
                      &err);
            assert_memory_equal(alone, all + x * PLAYERS, PLAYERS * sizeof *all);
            if (x % 2)
                assert_memory_equal(alone + PLAYERS, all + SIZE + x * PLAYERS,
                                    PLAYERS * sizeof *all);
        }
        fds__bank_free(bank);
    }
    free_subject(&s);
}

static void bits_do_not_depend_on_threads_or_company(void **state) {
    (void)state;
    expect_bits_for_any_threads_and_company(NULL);
}

static void nor_do_bits_with_batchnorm(void **state) {
    (void)state;
    expect_bits_for_any_threads_and_company(normalised);
}

/* A fit keeps more coalitions than it learns from. */
static void a_plan_that_the_file_begins_with_is_answered_for(void **state) {
    (void)state;
    subject s = make_subject(60);
    fds_plan *beginning = paired(PLAYERS, 40, 4), *longer = paired(PLAYERS, 100, 4);
    fds__bank *bank = NULL;
    fds_error err;
    fill(&s, 2);
    expect_ok(try_open(&s, beginning, 2, &bank, &err), &err);
    fds__bank_free(bank);
    bank = NULL;
    expect_failure(try_open(&s, longer, 2, &bank, &err), FDS_ERR_USAGE, &err, "bank has");
    fds_plan_free(beginning);
    fds_plan_free(longer);
    free_subject(&s);
}

/* ---- the file ---- */

typedef struct {
    char *data;
    size_t size;
} bytes;

static bytes take_bytes(void) {
    bytes b;
    b.data = scratch_read(scratch_path("bank"), &b.size);
    return b;
}

static void expect_bytes(const bytes *right, const char *after) {
    bytes now = take_bytes();
    if (now.size != right->size || memcmp(now.data, right->data, now.size) != 0)
        fail_msg("%s: other bytes than if nothing had happened", after);
    free(now.data);
}

static void remove_table(void) {
    nftw(scratch_path("table"), scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* tests/data/records has a bank of an earlier build (91d59f5). */
static void a_file_of_an_earlier_build_is_read_and_written_to_the_byte(void **state) {
    (void)state;
    subject s = make_subject(20);
    char path[512];
    bytes old;
    snprintf(path, sizeof path, "%s/records/models.bank", getenv("FDS_TEST_DATA"));
    old.data = scratch_read(path, &old.size);
    scratch_write(scratch_path("bank"), old.data, old.size);
    fds__bank_free(open_bank(&s, 1));
    fill(&s, 1);
    expect_bytes(&old, "read and filled");
    remove_table();
    unlink(scratch_path("bank"));
    fill(&s, 2);
    expect_bytes(&old, "written");
    free(old.data);
    free_subject(&s);
}

static void the_bytes_do_not_depend_on_threads(void **state) {
    (void)state;
    subject s = make_subject(40);
    fill(&s, 1);
    bytes right = take_bytes();
    for (unsigned threads = 2; threads <= 3; threads++) {
        remove_table();
        unlink(scratch_path("bank"));
        fill(&s, threads);
        expect_bytes(&right, "more threads");
        fill(&s, threads); /* nothing is left to do */
        expect_bytes(&right, "filled twice");
    }
    free(right.data);
    free_subject(&s);
}

/* With the table whole, and with the table gone as well. */
static void whatever_is_missing_or_damaged_is_trained_again(void **state) {
    (void)state;
    subject s = make_subject(20);
    fill(&s, 2);
    bytes right = take_bytes();
    fds__bank *bank = NULL;
    fds_error err;
    for (size_t size = 0; size <= right.size; size += size < 200 ? 9 : 41) { /* cut off */
        scratch_write(scratch_path("bank"), right.data, size);
        if (size < right.size)
            assert_int_not_equal(try_open(&s, s.plan, 1, &bank, &err), FDS_OK);
        if (size % 2)
            remove_table();
        fill(&s, 2);
        expect_bytes(&right, "cut off");
    }
    for (size_t at = 8; at < right.size; at += at < 100 ? 7 : 31) { /* a bit is turned */
        right.data[at] ^= 16;
        scratch_write(scratch_path("bank"), right.data, right.size);
        right.data[at] ^= 16;
        expect_failure(try_open(&s, s.plan, 1, &bank, &err), FDS_ERR_CORRUPT, &err, "bank");
        fill(&s, 1);
        expect_bytes(&right, "a bit turned");
    }
    char *longer = need(right.size + 5, 1);
    memcpy(longer, right.data, right.size);
    scratch_write(scratch_path("bank"), longer, right.size + 5);
    fill(&s, 1);
    expect_bytes(&right, "bytes at the end");
    unlink(scratch_path("bank"));
    fill(&s, 3);
    expect_bytes(&right, "removed");
    bank = open_bank(&s, 2);
    fds__bank_free(bank);
    free(longer);
    free(right.data);
    free_subject(&s);
}

/* What a loss of power may leave: records that reached the disk before the header did. */
static void a_header_of_zeros_is_that_of_a_new_file(void **state) {
    (void)state;
    subject s = make_subject(20);
    fds_error err;
    fds__bank *bank = NULL;
    char header[72];
    fill(&s, 1);
    bytes right = take_bytes();
    memcpy(header, right.data, sizeof header);
    memset(right.data, 0, sizeof header);
    scratch_write(scratch_path("bank"), right.data, right.size);
    memcpy(right.data, header, sizeof header);
    expect_failure(try_open(&s, s.plan, 1, &bank, &err), FDS_ERR_FORMAT, &err, "is not a bank");
    fill(&s, 1);
    expect_bytes(&right, "a header of zeros");
    free(right.data);
    free_subject(&s);
}

static unsigned kill_at;

static bool kill_in_time(void *context, const fds_progress *progress) {
    (void)context;
    if (progress->done >= kill_at)
        kill(getpid(), SIGKILL);
    return false;
}

static void a_killed_filling_goes_on(void **state) {
    (void)state;
    subject s = make_subject(20);
    fill(&s, 1);
    bytes right = take_bytes();
    fds_events events = {.progress = kill_in_time};
    for (kill_at = 1; kill_at < 20; kill_at += 6) {
        if (kill_at % 4 == 1)
            remove_table();
        unlink(scratch_path("bank"));
        pid_t child = fork();
        if (child == 0) {
            fds_error err;
            try_fill(&s, s.plan, 1, &events, &err);
            _exit(1);
        }
        int how;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFSIGNALED(how));
        fill(&s, 2);
        expect_bytes(&right, "killed");
    }
    free(right.data);
    free_subject(&s);
}

/* ---- mistakes ---- */

static void other_files_are_told_apart(void **state) {
    (void)state;
    subject s = make_subject(20), other = make_subject(20);
    fds__utility_params params = smaller("retrain:3");
    fds__bank *bank = NULL;
    fds_error err;
    fds_utility_free(other.value);
    fds_plan_free(other.plan);

    expect_failure(try_open(&s, s.plan, 1, &bank, &err), FDS_ERR_NOT_FOUND, &err, "bank");
    scratch_write(scratch_path("bank"), "PK", 2);
    expect_failure(try_fill(&s, s.plan, 1, NULL, &err), FDS_ERR_FORMAT, &err, "bank is not a bank");
    char text[500] = "Something else, which is long enough for a header.";
    scratch_write(scratch_path("bank"), text, sizeof text);
    expect_failure(try_fill(&s, s.plan, 1, NULL, &err), FDS_ERR_FORMAT, &err, "bank is not a bank");
    expect_failure(try_open(&s, s.plan, 1, &bank, &err), FDS_ERR_FORMAT, &err,
                   "bank is not a bank");
    unlink(scratch_path("bank"));

    fill(&s, 1);
    bytes right = take_bytes();
    other.plan = paired(PLAYERS, 20, 5);
    expect_failure(try_fill(&s, other.plan, 1, NULL, &err), FDS_ERR_USAGE, &err,
                   "of other coalitions");
    expect_failure(try_open(&s, other.plan, 1, &bank, &err), FDS_ERR_USAGE, &err, "bank");

    params.network = "fc:6,relu,fc:classes";
    other.value = make_value(&s.g, &params, 1);
    expect_failure(try_open(&other, s.plan, 1, &bank, &err), FDS_ERR_USAGE, &err,
                   "another network");
    remove_table();
    expect_failure(try_fill(&other, s.plan, 1, NULL, &err), FDS_ERR_USAGE, &err, "another network");
    fds_utility_free(other.value);
    params = smaller("retrain:4");
    other.value = make_value(&s.g, &params, 1);
    expect_failure(try_open(&other, s.plan, 1, &bank, &err), FDS_ERR_USAGE, &err, "in another way");
    remove_table();
    expect_failure(try_fill(&other, s.plan, 1, NULL, &err), FDS_ERR_USAGE, &err, "in another way");

    memcpy(text, right.data, 72); /* another version, with a checksum that agrees */
    text[8] = 2;
    memcpy(text + 64, &(uint64_t){fds_checksum(text, 64)}, 8);
    scratch_write(scratch_path("bank"), text, 72);
    expect_failure(try_open(&s, s.plan, 1, &bank, &err), FDS_ERR_UNSUPPORTED, &err, "version");
    free(right.data);
    free_subject(&s);
    free_subject(&other);
}

static void odd_plans_and_inputs_are_told(void **state) {
    (void)state;
    subject s = make_subject(60);
    fds__bank *bank = NULL;
    fds_error err;
    double values[INPUTS * PLAYERS];
    uint32_t labels[INPUTS] = {0};
    fds_plan *small_plan = paired(4, 10, 1);
    fill(&s, 1);
    expect_failure(try_open(&s, small_plan, 1, &bank, &err), FDS_ERR_SHAPE, &err, "players");
    bank = open_bank(&s, 1);
    fds_inputs x;
    float odd[3] = {0, NAN, 0}, huge[3];
    x = (fds_inputs){.count = 1, .size = 3, .shape = {3, 1, 1}, .classes = CLASSES, .values = odd};
    expect_failure(fds__bank_explain(bank, &x, labels, NULL, values, NULL, &err), FDS_ERR_USAGE,
                   &err, "input 0: value 1");
    x.values = huge;
    fds_status status = FDS_OK;
    for (int signs = 0; signs < 8 && status == FDS_OK; signs++) { /* some hidden value overflows */
        for (int i = 0; i < 3; i++)
            huge[i] = signs >> i & 1 ? -3e38f : 3e38f;
        status = fds__bank_explain(bank, &x, labels, NULL, values, NULL, &err);
    }
    expect_failure(status, FDS_ERR_DIVERGED, &err, "bank: sub-models ");
    fds__bank_free(bank);
    fds_plan_free(small_plan);
    free_subject(&s);
}

/* ---- faults ---- */

static fds_status use_bank(const subject *s, fds_error *err) {
    double values[INPUTS * PLAYERS], errors[INPUTS * PLAYERS];
    uint32_t labels[INPUTS] = {0};
    fds__bank *bank = NULL;
    fds_status status = try_fill(s, s->plan, 1, NULL, err);
    if (status == FDS_OK)
        status = try_open(s, s->plan, 1, &bank, err);
    if (status == FDS_OK)
        status = fds__bank_explain(bank, s->value->data->inputs, labels, NULL, values, errors, err);
    fds__bank_free(bank);
    return status;
}

/* Each attempt begins with a table that has all and a bank of which a part is lost. */
static void every_fault_is_told_and_leaves_nothing_behind(void **state) {
    (void)state;
    static const char *const kinds[] = {"allocations", "file operations"};
    subject s = make_subject(10);
    fds_error err;
    expect_ok(use_bank(&s, &err), &err);
    bytes right = take_bytes();
    for (int kind = 0; kind < 2; kind++)
        for (uint64_t nth = 1;; nth++) {
            err = (fds_error){0};
            if (nth % 3 == 0)
                unlink(scratch_path("bank"));
            else
                scratch_write(scratch_path("bank"), right.data, right.size - 300);
            if (nth % 3 == 1)
                remove_table();
            fds__fault_arm((fds__fault_kind)kind, nth);
            fds_status status = use_bank(&s, &err);
            if (fds__fault_arm((fds__fault_kind)kind, 0) < nth) {
                expect_ok(status, &err);
                print_message("# %lu %s failed, one at a time\n", (unsigned long)nth - 1,
                              kinds[kind]);
                break;
            }
            if (status == FDS_OK || err.status != status || !*err.text)
                fail_msg("%s number %lu fails, yet it ends with %s: %s", kinds[kind],
                         (unsigned long)nth, fds_status_name(status), err.text);
            assert_null(s.value->data->sink);
            expect_ok(use_bank(&s, &err), &err);
            expect_bytes(&right, "a fault");
        }
    free(right.data);
    free_subject(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(answers_are_those_of_least_squares_on_the_table),
        IN_SCRATCH(answers_with_batchnorm_are_those_of_least_squares_on_the_table),
        IN_SCRATCH(bits_do_not_depend_on_threads_or_company),
        IN_SCRATCH(nor_do_bits_with_batchnorm),
        IN_SCRATCH(a_plan_that_the_file_begins_with_is_answered_for),
        IN_SCRATCH(a_file_of_an_earlier_build_is_read_and_written_to_the_byte),
        IN_SCRATCH(the_bytes_do_not_depend_on_threads),
        IN_SCRATCH(whatever_is_missing_or_damaged_is_trained_again),
        IN_SCRATCH(a_header_of_zeros_is_that_of_a_new_file),
        IN_SCRATCH(a_killed_filling_goes_on),
        IN_SCRATCH(other_files_are_told_apart),
        IN_SCRATCH(odd_plans_and_inputs_are_told),
        IN_SCRATCH(every_fault_is_told_and_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
