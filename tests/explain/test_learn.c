/* SPDX-License-Identifier: Apache-2.0
 * Training an explainer: it learns, keeps its best epoch, and ends with the same bits however often
 * it was interrupted; what it leaves behind can be read; damaged files are reported. */
#include "training_fixture.h"

#include <cblas.h>
#include <omp.h>

enum { N = 6, CLASSES = 2 };

static const toy_size small = {.inputs = 60,
                               .validation = 12,
                               .players = N,
                               .groups = 2,
                               .classes = CLASSES,
                               .shape = {6, 1, 1},
                               .sampler = FDS_SAMPLER_PAIRED,
                               .coalitions = 40,
                               .validation_coalitions = 20,
                               .roughness = 0.05};

static const fds__explainer_params quick = {.network = "mlp",
                                            .objective = FDS__OBJECTIVE_CLOSED,
                                            .lr = 3e-3f,
                                            .batch = 16,
                                            .epochs = 4,
                                            .draws = 8,
                                            .seed = 7,
                                            .threads = 1};

/* The same with as little network as there is. */
static fds__explainer_params tiny;

/* ---- events ---- */

typedef struct {
    size_t calls, stop_at; /* stop_at 0: never */
    size_t stop_writing;   /* at that report of a write; 0: never */
    uint64_t last, total;
    size_t warnings;
    char text[512];
} watch;

static bool on_progress(void *user, const fds_progress *p) {
    watch *w = user;
    assert_true(p->done <= p->total);
    if (strcmp(p->stage, "write") == 0) /* a checkpoint, or the finished explainer */
        return w->stop_writing && --w->stop_writing == 0;
    assert_string_equal(p->stage, "explainer");
    assert_string_equal(p->unit, "steps");
    w->last = p->done;
    w->total = p->total;
    return ++w->calls == w->stop_at;
}

static void on_log(void *user, fds_log_level level, const char *text) {
    watch *w = user;
    w->warnings += level == FDS_LOG_WARNING;
    snprintf(w->text, sizeof w->text, "%s", text);
}

/* A training in scratch; what it made is saved as name, unless that is NULL. */
static fds_status train(const toy *t, const fds__explainer_params *params, watch *w,
                        const char *name, fds__fit_report *learnt, fds_error *err) {
    fds_events events = {on_log, on_progress, w};
    fds__explainer *explainer = NULL;
    fds__fit_report mine = {0};
    fds_status status = fds__learn(&t->training, params, scratch, &events, &explainer, &mine, err);
    if (status == FDS_OK && name)
        expect_ok(fds__explainer_save(explainer, scratch_path(name), NULL, err), err);
    fds__explainer_free(explainer);
    if (status != FDS_OK)
        return status;
    if (learnt)
        *learnt = mine;
    return FDS_OK;
}

static void train_well(const toy *t, const fds__explainer_params *params, watch *w,
                       const char *name) {
    fds_error err;
    expect_ok(train(t, params, w, name, NULL, &err), &err);
}

/* ---- learning ---- */

/* The loss of values phi (validation, classes, players) on validation inputs and coalitions, from its definition. */
static double loss_of(const toy *t, const double *phi) {
    const fds__training *training = &t->training;
    size_t n = training->players, labels = training->classes,
           first = training->inputs - training->validation;
    double sum = 0, weights = 0;
    for (size_t row = 2; row < fds_plan_rows(t->validation_plan); row++) {
        double weight = fds_plan_weight(t->validation_plan, row);
        weights += weight;
        for (size_t c = 0; c < training->validation * labels; c++) {
            size_t column = first * labels + c;
            double off = t->validation_values.v[row * t->validation_values.columns + column] -
                         t->empty[column];
            for (size_t i = 0; i < n; i++)
                off -= fds_coalition_has(fds_plan_coalition(t->validation_plan, row), i)
                           ? phi[c * n + i]
                           : 0;
            sum += weight * off * off / (double)(training->validation * labels);
        }
    }
    return sum / weights;
}

/* The loss that is reported, computed anew from the answers of the explainer that was returned. */
static double loss_of_answers(fds__explainer *explainer, const toy *t) {
    const fds__training *training = &t->training;
    double *phi = answers_of(explainer, training, training->inputs - training->validation,
                             training->validation);
    double loss = loss_of(t, phi);
    free(phi);
    return loss;
}

/* What an explainer begins with: the efficient share for everyone. */
static double loss_of_equal_shares(const toy *t) {
    const fds__training *training = &t->training;
    size_t n = training->players, columns = training->validation * training->classes;
    size_t first = (training->inputs - training->validation) * training->classes;
    double *phi = need(columns * n, sizeof *phi);
    for (size_t i = 0; i < columns * n; i++)
        phi[i] = (t->full[first + i / n] - t->empty[first + i / n]) / (double)n;
    double loss = loss_of(t, phi);
    free(phi);
    return loss;
}

static double share_left(const toy *t, const fds__explainer_params *params, const char *name) {
    fds__fit_report learnt = {0};
    watch w = {0};
    fds_error err;
    expect_ok(train(t, params, &w, NULL, &learnt, &err), &err);
    assert_int_equal(w.last, w.total);
    double first = loss_of_equal_shares(t), left = learnt.loss / first;
    print_message("# %s: validation loss from %.3g to %.3g in %u epochs\n", name, first,
                  learnt.loss, learnt.epochs);
    return left;
}

static void training_lowers_the_validation_loss(void **state) {
    (void)state;
    toy_size size = small;
    size.inputs = 240;
    size.validation = 40;
    toy t;
    toy_make(&t, &size);
    fds__explainer_params params = quick;
    params.epochs = IS_SLOW_BUILD ? 40 : 60;
    assert_true(share_left(&t, &params, "closed") < 0.4);
    params.objective = FDS__OBJECTIVE_PAPER;
    assert_true(share_left(&t, &params, "paper") < 0.4);
    params.gamma = 0.01f;
    assert_true(share_left(&t, &params, "paper, gamma") < 0.5);
    toy_free(&t);
}

static const toy_size images = {.inputs = 40,
                                .validation = 8,
                                .players = N,
                                .groups = 2,
                                .classes = CLASSES,
                                .shape = {1, 8, 8},
                                .sampler = FDS_SAMPLER_PAIRED,
                                .coalitions = 40,
                                .validation_coalitions = 20,
                                .roughness = 0.3};

/* Few inputs and rough values: the validation loss soon rises again. The explainer's
 * answers must be those of the best epoch, batch norm's running statistics included. */
static void the_best_epoch_is_what_is_returned(void **state) {
    (void)state;
    toy t;
    toy_make(&t, &images);
    fds__explainer_params params = quick;
    params.network = "cnn";
    params.lr = 2e-3f;
    params.epochs = 12;
    fds__explainer *explainer = NULL;
    fds__fit_report learnt = {0};
    fds_error err;
    expect_ok(fds__learn(&t.training, &params, scratch, NULL, &explainer, &learnt, &err), &err);
    assert_int_equal(learnt.epochs, 12);
    fds__metric *metrics = NULL;
    size_t size;
    char *lines = scratch_read(scratch_path("metrics.jsonl"), &size);
    expect_ok(learn_metrics_parse("metrics.jsonl", lines, learnt.epochs, &metrics, &err), &err);
    free(lines);
    uint32_t best = 0;
    for (uint32_t i = 0; i < learnt.epochs; i++)
        if (metrics[i].validation_loss < metrics[best].validation_loss)
            best = i;
    assert_int_equal(learnt.best_epoch, best + 1);
    assert_true(best + 1 < learnt.epochs); /* else nothing was tested */
    assert_true(learnt.loss == metrics[best].validation_loss);
    fds__free(metrics);
    double again = loss_of_answers(explainer, &t);
    print_message("# best epoch %u of 12: loss %.6g, of the answers %.6g\n", best + 1, learnt.loss,
                  again);
    assert_true(fabs(again / learnt.loss - 1) < 1e-5);
    fds__explainer_free(explainer);
    toy_free(&t);
}

static void training_stops_when_patience_is_at_an_end(void **state) {
    (void)state;
    toy t;
    toy_make(&t, &images);
    fds__explainer_params params = quick;
    params.lr = 1e-2f;
    params.epochs = 60;
    params.patience = 3;
    fds__fit_report learnt = {0};
    watch w = {0};
    fds_error err;
    expect_ok(train(&t, &params, &w, NULL, &learnt, &err), &err);
    print_message("# stopped after %u epochs, best %u\n", learnt.epochs, learnt.best_epoch);
    assert_int_equal(learnt.epochs, learnt.best_epoch + 3);
    assert_int_equal(w.last, w.total); /* a bar would be full */
    assert_true(learnt.epochs < 60);
    toy_free(&t);
}

/* Where the processor has it. */
static void bf16_learns_as_well_and_goes_on_to_the_same_bits(void **state) {
    (void)state;
    if (fds__deep_bf16_check(NULL) != FDS_OK) {
        expect_no_cpu_flag("avx512_bf16");
        SKIP_CASE("this processor has no bf16");
    }
    toy t;
    toy_make(&t, &small);
    fds__explainer_params params = quick;
    watch stopped = {.stop_at = 8}, w = {0};
    fds_error err;
    params.epochs = 10;
    double f32 = share_left(&t, &params, "f32");
    params.precision = FDS__PRECISION_BF16;
    assert_true(share_left(&t, &params, "bf16") < 1.2 * f32);
    train_well(&t, &params, &w, "whole");
    learn_checkpoint_s = 0;
    assert_int_equal(train(&t, &params, &stopped, NULL, NULL, &err), FDS_ERR_CANCELLED);
    train_well(&t, &params, &w, "again");
    learn_checkpoint_s = 2;
    assert_string_equal(hash_of(scratch_path("again")), hash_of(scratch_path("whole")));
    fds__explainer *loaded = NULL;
    expect_ok(
        fds__explainer_load(scratch_path("whole"), N, CLASSES, small.shape, NULL, 1, &loaded, &err),
        &err);
    assert_int_equal(fds__deep_get_params(learn_explainer_net(loaded))->precision,
                     FDS__PRECISION_BF16);
    fds__explainer_free(loaded);
    toy_free(&t);
}

/* More inputs than a batch: a short rest waits; fewer: the batch is as large as they are. */
static void batches_are_full(void **state) {
    (void)state;
    toy t;
    toy_make(&t, &small);
    fds__explainer_params params = quick;
    watch w = {0};
    params.batch = 20; /* of 48 */
    train_well(&t, &params, &w, NULL);
    assert_int_equal(w.total, 4 * 2);
    params.batch = 1000;
    train_well(&t, &params, &w, NULL);
    assert_int_equal(w.total, 4 * 1);
    toy_free(&t);
}

static void the_host_finds_its_settings_again(void **state) {
    (void)state;
    int blas = openblas_get_num_threads(), omp = omp_get_max_threads();
    watch stopped = {.stop_at = 3}, w = {0};
    fds_error err;
    toy t;
    toy_make(&t, &small);
    openblas_set_num_threads(2);
    omp_set_num_threads(3);
    omp_set_dynamic(1);
    assert_int_equal(train(&t, &quick, &stopped, NULL, NULL, &err), FDS_ERR_CANCELLED);
    assert_int_equal(openblas_get_num_threads(), 2);
    train_well(&t, &quick, &w, NULL);
    assert_int_equal(openblas_get_num_threads(), 2);
    assert_int_equal(omp_get_max_threads(), 3);
    assert_true(omp_get_dynamic());
    omp_set_dynamic(0);
    omp_set_num_threads(omp);
    openblas_set_num_threads(blas);
    toy_free(&t);
}

static void the_seed_decides(void **state) {
    (void)state;
    toy t;
    toy_make(&t, &small);
    for (fds__objective kind = FDS__OBJECTIVE_CLOSED; kind <= FDS__OBJECTIVE_PAPER; kind++) {
        fds__explainer_params params = quick;
        watch w = {0};
        params.objective = kind;
        train_well(&t, &params, &w, "a");
        train_well(&t, &params, &w, "b");
        params.seed++;
        train_well(&t, &params, &w, "c");
        assert_string_equal(hash_of(scratch_path("a")), hash_of(scratch_path("b")));
        assert_string_not_equal(hash_of(scratch_path("a")), hash_of(scratch_path("c")));
    }
    toy_free(&t);
}

/* ---- warming up and weights to start from ---- */

static void warming_up_changes_the_features_and_counts_as_steps(void **state) {
    (void)state;
    toy t;
    toy_make(&t, &small);
    fds__explainer_params params = quick;
    watch cold = {0}, warm = {0};
    params.epochs = 1;
    train_well(&t, &params, &cold, "cold");
    params.warm_up = true;
    train_well(&t, &params, &warm, "warm");
    assert_int_equal(cold.total, 3);
    assert_int_equal(warm.total, 3 + 10 * 3);
    assert_string_not_equal(hash_of(scratch_path("cold")), hash_of(scratch_path("warm")));
    toy_free(&t);
}

/* The features of a file are where training starts: with a rate of next to nothing they stay. */
static void training_starts_from_the_features_of_a_file(void **state) {
    (void)state;
    toy t;
    toy_make(&t, &small);
    fds__explainer_params params = quick;
    watch w = {0};
    train_well(&t, &params, &w, "features.safetensors");
    char path[512];
    snprintf(path, sizeof path, "%s", scratch_path("features.safetensors"));
    params.weights = path;
    params.seed = 99;
    params.lr = 1e-20f;
    train_well(&t, &params, &w, "b");
    fds__safetensors *a = NULL, *b = NULL;
    fds_error err = {0};
    expect_ok(fds__safetensors_read(path, &a, &err), &err);
    expect_ok(fds__safetensors_read(scratch_path("b"), &b, &err), &err);
    const fds__tensor *x = fds__safetensors_find(a, "layers.0.weight");
    const fds__tensor *y = fds__safetensors_find(b, "layers.0.weight");
    assert_non_null(x);
    assert_memory_equal(x->values, y->values, (size_t)x->dims[0] * x->dims[1] * sizeof(float));
    fds__safetensors_free(a);
    fds__safetensors_free(b);
    snprintf(path, sizeof path, "%s", scratch_path("none"));
    assert_int_equal(train(&t, &params, &w, NULL, NULL, &err), FDS_ERR_NOT_FOUND);
    toy_free(&t);
}

/* ---- interrupted ---- */

static void same_files(const char *name) {
    assert_string_equal(hash_of(scratch_path(name)), hash_of(scratch_path("whole")));
}

/* Interrupted at every call, then called again. */
static void interrupted_anywhere_it_ends_with_the_same_bits(const toy *t,
                                                            const fds__explainer_params *params,
                                                            size_t stride, const char *what) {
    watch w = {0};
    fds_error err;
    size_t stops = 0;
    train_well(t, params, &w, "whole");
    size_t calls = w.calls;
    char metrics[65], curves[65];
    strcpy(metrics, hash_of(scratch_path("metrics.jsonl")));
    strcpy(curves, hash_of(scratch_path("curves.svg")));
    expect_ok(fds__learn_forget(scratch, &err), &err);
    for (size_t at = 1; at <= calls; at += stride, stops++) {
        watch stopped = {.stop_at = at}, again = {0};
        assert_int_equal(train(t, params, &stopped, NULL, NULL, &err), FDS_ERR_CANCELLED);
        train_well(t, params, &again, "again");
        same_files("again");
        assert_string_equal(hash_of(scratch_path("metrics.jsonl")), metrics);
        assert_string_equal(hash_of(scratch_path("curves.svg")), curves);
        assert_int_equal(again.warnings, 0);
        assert_true(again.calls <= calls);
        expect_ok(fds__learn_forget(scratch, &err), &err);
    }
    /* and again and again, each time a little further */
    size_t tries = 0;
    for (fds_status status = FDS_ERR_CANCELLED; status == FDS_ERR_CANCELLED; tries++) {
        watch stopped = {.stop_at = 5};
        status = train(t, params, &stopped, "again", NULL, &err);
        assert_true(status == FDS_OK || status == FDS_ERR_CANCELLED);
        assert_true(tries < calls);
    }
    same_files("again");
    print_message("# %s: interrupted at %zu of %zu calls, then %zu times in a row\n", what, stops,
                  calls, tries - 1);
    assert_true(tries > 2);
    /* finished, and called again: nothing is left to do */
    watch done = {0};
    train_well(t, params, &done, "again");
    same_files("again");
    assert_int_equal(done.calls, 1);
    expect_ok(fds__learn_forget(scratch, &err), &err);
}

static void every_network_goes_on_to_the_same_bits(void **state) {
    (void)state;
    toy t;
    learn_checkpoint_s = 0;
    toy_make(&t, &small);
    fds__explainer_params params = quick;
    params.network = "linear";
    interrupted_anywhere_it_ends_with_the_same_bits(&t, &params, 1, "linear, closed");
    params.network = "mlp";
    params.objective = FDS__OBJECTIVE_PAPER;
    params.threads = 2;
    interrupted_anywhere_it_ends_with_the_same_bits(&t, &params, 12, "mlp, paper, 2 threads");
    params.threads = 1;
    params.warm_up = true;
    interrupted_anywhere_it_ends_with_the_same_bits(&t, &params, 7, "mlp, paper, warm-up");
    toy_free(&t);
    toy_make(&t, &images);
    params.network = "cnn";
    params.is_by_group = true;
    params.patience = 2;
    interrupted_anywhere_it_ends_with_the_same_bits(&t, &params, 11,
                                                    "cnn, paper, by group, warm-up");
    toy_free(&t);
    learn_checkpoint_s = 2;
}

static void a_quick_training_leaves_no_checkpoint(void **state) {
    (void)state;
    toy t;
    toy_make(&t, &small);
    watch w = {0};
    train_well(&t, &quick, &w, NULL);
    assert_int_equal(scratch_entries(), 2); /* metrics.jsonl, curves.svg */
    fds_error err;
    expect_ok(fds__learn_forget(scratch, &err), &err);
    toy_free(&t);
}

/* The checkpoint before stays, and training goes on from it. */
static void interrupted_while_a_checkpoint_is_written_it_ends_with_the_same_bits(void **state) {
    (void)state;
    toy t;
    fds__explainer_params params = quick;
    fds_error err;
    toy_make(&t, &small);
    params.network = "mlp";
    watch whole = {0};
    train_well(&t, &params, &whole, "whole");
    learn_checkpoint_s = 0;
    for (size_t at = 1; at < 6; at++) {
        watch stopped = {.stop_writing = at}, again = {0};
        expect_ok(fds__learn_forget(scratch, &err), &err);
        assert_int_equal(train(&t, &params, &stopped, NULL, NULL, &err), FDS_ERR_CANCELLED);
        assert_int_equal(stopped.stop_writing, 0);
        train_well(&t, &params, &again, "again");
        same_files("again");
        assert_int_equal(again.warnings, 0);
        assert_true(again.calls <= whole.calls);
    }
    expect_ok(fds__learn_forget(scratch, &err), &err);
    learn_checkpoint_s = 2;
    toy_free(&t);
}

/* ---- checkpoints that cannot be used ---- */

static void leave_checkpoint(const toy *t, const fds__explainer_params *params) {
    watch w = {.stop_at = 8}; /* two epochs of three steps are made */
    fds_error err;
    learn_checkpoint_s = 0;
    expect_ok(fds__learn_forget(scratch, &err), &err);
    assert_int_equal(train(t, params, &w, NULL, NULL, &err), FDS_ERR_CANCELLED);
    assert_int_equal(access(scratch_path("checkpoint.safetensors"), F_OK), 0);
}

static void expect_anew(const toy *t, const fds__explainer_params *params, const char *words) {
    watch w = {0};
    train_well(t, params, &w, "again");
    if (w.warnings != 1)
        fail_msg("%zu warnings (%s) instead of one that says \"%s\"", w.warnings, w.text, words);
    expect_in(w.text, words);
    expect_in(w.text, "from the beginning");
    assert_int_equal(w.calls, 4 * 3 + 1); /* all steps were made */
}

static void damaged_checkpoints_are_told_and_not_used(void **state) {
    (void)state;
    toy t;
    toy_make(&t, &small);
    watch w = {0};
    size_t size;
    train_well(&t, &tiny, &w, "whole");
    leave_checkpoint(&t, &tiny);
    char *good = scratch_read(scratch_path("checkpoint.safetensors"), &size);
    for (size_t i = 0; i < 40; i++) { /* a byte changed, from the first to the last */
        size_t at = i * (size - 1) / 39;
        char *bad = need(size, 1);
        memcpy(bad, good, size);
        bad[at] ^= 0x11;
        scratch_write(scratch_path("checkpoint.safetensors"), bad, size);
        expect_anew(&t, &tiny, "checkpoint.safetensors");
        same_files("again");
        free(bad);
    }
    for (size_t part = 0; part < size; part += size / 10) { /* cut off */
        scratch_write(scratch_path("checkpoint.safetensors"), good, part);
        expect_anew(&t, &tiny, "checkpoint.safetensors");
        same_files("again");
    }
    free(good);
    learn_checkpoint_s = 2;
    toy_free(&t);
}

static void a_checkpoint_of_another_training_is_not_used(void **state) {
    (void)state;
    toy t;
    toy_make(&t, &small);
    fds__explainer_params others[] = {tiny, tiny, tiny, tiny, tiny};
    others[0].lr *= 2;
    others[1].seed++;
    others[2].batch = 15;
    others[3].is_by_group = true;
    others[4].network = "mlp";
    for (size_t i = 0; i < COUNT(others); i++) {
        leave_checkpoint(&t, &tiny);
        expect_anew(&t, &others[i], "other settings or data");
        leave_checkpoint(&t, &tiny);
        watch w = {0};
        train_well(&t, &others[i], &w, NULL); /* overwrites what it could not use */
    }
    float *const changed[] = {t.x + 3, t.targets + 5};
    double *const numbers[] = {t.full + 1,
                               t.validation_values.v + 3 * t.validation_values.columns - 1};
    for (size_t i = 0; i < 4; i++) {
        leave_checkpoint(&t, &tiny);
        if (i < 2)
            *changed[i] += 0.01f;
        else
            *numbers[i - 2] += 0.01;
        expect_anew(&t, &tiny, "other settings or data");
    }
    fds__explainer_params paper = tiny;
    paper.objective = FDS__OBJECTIVE_PAPER;
    leave_checkpoint(&t, &paper);
    t.values.v[5 * t.values.columns + 2] += 0.01;
    expect_anew(&t, &paper, "other settings or data");
    learn_checkpoint_s = 2;
    toy_free(&t);
}

/* ---- failures ---- */

/* Each write of a checkpoint that fails is told; the training goes on from the one before. */
static void a_failed_write_leaves_the_last_checkpoint(void **state) {
    (void)state;
    toy t;
    toy_make(&t, &small);
    fds_error err = {0};
    watch w = {0};
    size_t failed = 0;
    learn_checkpoint_s = 0;
    train_well(&t, &tiny, &w, "whole");
    expect_ok(fds__learn_forget(scratch, &err), &err);
    for (uint64_t nth = 1;; nth += IS_SLOW_BUILD ? 11 : 3, failed++) {
        watch now = {0};
        fds__fault_arm(FDS__FAULT_IO, nth);
        fds_status status = train(&t, &tiny, &now, NULL, NULL, &err);
        if (fds__fault_arm(FDS__FAULT_IO, 0) < nth) {
            expect_ok(status, &err);
            break;
        }
        assert_int_equal(status, FDS_ERR_IO);
        watch again = {0};
        train_well(&t, &tiny, &again, "again");
        same_files("again");
        expect_ok(fds__learn_forget(scratch, &err), &err);
    }
    print_message("# %zu calls to the file system failed, one at a time\n", failed);
    assert_true(failed > 3);
    learn_checkpoint_s = 2;
    toy_free(&t);
}

static toy alloc_toy;

static fds_status learn_once(fds_error *err) {
    fds__explainer_params params = quick;
    watch w = {0};
    params.network = "linear";
    params.objective = FDS__OBJECTIVE_PAPER;
    params.epochs = 2;
    fds_status status = train(&alloc_toy, &params, &w, NULL, NULL, err);
    fds__learn_forget(scratch, NULL);
    return status;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    toy_make(&alloc_toy, &small);
    learn_checkpoint_s = 0;
    each_allocation_fails("fds_learn", learn_once);
    learn_checkpoint_s = 2;
    toy_free(&alloc_toy);
}

/* ---- what is left behind ---- */

static void metrics_are_read_back_to_the_bit(void **state) {
    (void)state;
    const fds__metric metrics[] = {
        {1, 1e-3f, 0.1, 1.0 / 3}, {2, 3.3333e-5f, 1e-300, 12345.678901}, {3, 0, 0, 7e22}};
    fds__text text = {0};
    fds_error err;
    learn_metrics_print(metrics, COUNT(metrics), &text);
    expect_in(text.data, "{\"epoch\": 1, \"lr\": 0.001, \"loss\": 0.1, \"validation_loss\": 0.333");
    fds__metric *read = NULL;
    expect_ok(learn_metrics_parse("x", text.data, COUNT(metrics), &read, &err), &err);
    for (size_t i = 0; i < COUNT(metrics); i++) {
        assert_int_equal(read[i].epoch, metrics[i].epoch);
        assert_true(read[i].lr == metrics[i].lr && read[i].loss == metrics[i].loss &&
                    read[i].validation_loss == metrics[i].validation_loss);
    }
    fds__free(read);
    expect_error(learn_metrics_parse("x", text.data, 2, &read, &err), FDS_ERR_FORMAT, &err,
                 "line 3");
    expect_error(learn_metrics_parse("x", text.data, 4, &read, &err), FDS_ERR_FORMAT, &err,
                 "line 4");
    text.data[2] = '?';
    expect_error(learn_metrics_parse("x", text.data, 3, &read, &err), FDS_ERR_FORMAT, &err,
                 "line 1");
    fds__free(text.data);
}

/* Any course a training can take gives a picture within its frame. */
static void curves_of_any_training_are_drawn(void **state) {
    (void)state;
    static const double scales[] = {1, 0, 1e-30, 1e9};
    for (size_t i = 0; i < COUNT(scales); i++)
        for (size_t count = 1; count < 300; count = 3 * count + 1) {
            fds__metric *metrics = need(count, sizeof *metrics);
            for (size_t e = 0; e < count; e++)
                metrics[e] = (fds__metric){(uint32_t)e + 1, 0.1f, scales[i] / (double)(e + 1),
                                           scales[i] * (e % 2 ? 1 : 1e-3)};
            fds_error err;
            expect_ok(learn_curves_write(scratch, metrics, count, (uint32_t)count, &err), &err);
            size_t size;
            char *svg = scratch_read(scratch_path("curves.svg"), &size);
            assert_true(size > 7 && strcmp(svg + size - 7, "</svg>\n") == 0);
            assert_non_null(strstr(svg, ">epoch<"));
            assert_null(strstr(svg, "nan"));
            assert_null(strstr(svg, "inf"));
            assert_null(strstr(svg, "\"-"));
            free(svg);
            free(metrics);
        }
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void) {
    tiny = quick;
    tiny.network = "linear";
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(training_lowers_the_validation_loss),
        IN_SCRATCH(the_best_epoch_is_what_is_returned),
        IN_SCRATCH(training_stops_when_patience_is_at_an_end),
        IN_SCRATCH(bf16_learns_as_well_and_goes_on_to_the_same_bits),
        IN_SCRATCH(batches_are_full),
        IN_SCRATCH(the_host_finds_its_settings_again),
        IN_SCRATCH(the_seed_decides),
        IN_SCRATCH(warming_up_changes_the_features_and_counts_as_steps),
        IN_SCRATCH(training_starts_from_the_features_of_a_file),
        IN_SCRATCH(every_network_goes_on_to_the_same_bits),
        IN_SCRATCH(interrupted_while_a_checkpoint_is_written_it_ends_with_the_same_bits),
        IN_SCRATCH(a_quick_training_leaves_no_checkpoint),
        IN_SCRATCH(damaged_checkpoints_are_told_and_not_used),
        IN_SCRATCH(a_checkpoint_of_another_training_is_not_used),
        IN_SCRATCH(a_failed_write_leaves_the_last_checkpoint),
        IN_SCRATCH(every_allocation_may_fail),
        IN_SCRATCH(metrics_are_read_back_to_the_bit),
        IN_SCRATCH(curves_of_any_training_are_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
