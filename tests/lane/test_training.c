/* SPDX-License-Identifier: Apache-2.0
 * Layers that compute something else in training than in evaluation: gradients of whole mini-batches
 * against the reference and against finite differences, and answers with what training has kept. */
#include "fixture.h"

enum { MOST = 37 }; /* two groups and some more */

static const struct {
    const char *text;
    fds_shape shape;
    uint32_t classes;
} networks[] = {
    {"batchnorm,fc:3", {7, 1, 1}, 3},
    {"fc:9,batchnorm,relu,fc:4", {6, 1, 1}, 4},
    {"conv:5x3p1,batchnorm,relu,maxpool,fc:4", {2, 7, 6}, 4},
    {"batchnorm,conv:4x3s2,batchnorm,gelu,globalpool,fc:6,batchnorm,tanh,fc:3", {2, 9, 8}, 3},
    {"conv:4x3p1,batchnorm,relu,residual(conv:6x3p1s2,batchnorm,relu,conv:6x3p1,batchnorm),relu,"
     "residual(conv:6x3p1,batchnorm),relu,avgpool,fc:5",
     {1, 9, 10},
     5},
    {"embed:9x4,conv:5x3p1,batchnorm,relu,globalpool,fc:3", {7, 1, 1}, 3},
    {"embed:6x3,dropout:0.25,fc:4", {5, 1, 1}, 4},
    {"dropout:0.3,fc:30,relu,dropout:0.5,fc:4", {9, 1, 1}, 4},
    {"conv:4x3p1,batchnorm,gelu,dropout:0.25,conv:5x3s2,residual(batchnorm,tanh,dropout:0),"
     "globalpool,dropout:0.125,fc:3",
     {1, 7, 8},
     3},
};

/* A network with samples none of which, in a mini-batch of all, comes near to a kink. */
static subject subject_batch(size_t i, size_t count) {
    for (uint64_t seed = 10 * i + 1;; seed++) {
        subject t = subject_bare(networks[i].text, networks[i].shape, networks[i].classes, seed);
        t.s = samples_make(networks[i].shape, networks[i].classes, count);
        t.s.tokens = t.ref->layer[0].tokens;
        for (size_t k = 0; k < count; k++) {
            fds_rng rng = fds_rng_make(seed, 1000, k, 0);
            samples_draw(&t.s, k, &rng);
        }
        t.inputs = samples_inputs(&t.s, NULL, 0);
        ref_batch(t.ref, t.wd, t.s.xd, t.s.labels, NULL, count, NULL);
        if (t.ref->kink > 2e-6)
            return t;
        subject_free(&t);
    }
}

static double worst_gradient, worst_difference, worst_logits;

static void check_gradient(const subject *t, const float *got, double loss, const double *wanted,
                           double right_loss, const char *isa) {
    for (size_t k = 0; k < fds_net_tensors(t->net); k++) {
        fds_tensor_info tensor = fds_net_tensor(t->net, k);
        /* behind a batchnorm a bias has no effect: its gradient is rounding alone */
        double error =
            relative_error(got + tensor.offset, wanted + tensor.offset, tensor.count, 1e-2);
        if (!(error <= 1e-5))
            fail_msg("%s, %s, %zu samples: gradient of %s is off by %g", fds_net_text(t->net), isa,
                     t->s.count, tensor.name, error);
        worst_gradient = fmax(worst_gradient, error);
    }
    if (!(fabs(loss - right_loss) <= 1e-5 * fmax(1, right_loss)))
        fail_msg("%s, %s: loss %g instead of %g", fds_net_text(t->net), isa, loss, right_loss);
}

/* One number per channel (a sample of features) is among the mini-batches. */
static void mini_batches_agree_with_the_reference(void **state) {
    (void)state;
    const size_t counts[] = {1, 2, 3, 15, 16, 17, 32, MOST};
    for (size_t n = 0; n < COUNT(networks) * COUNT(counts); n++) {
        const size_t count = counts[n % COUNT(counts)];
        subject t = subject_batch(n / COUNT(counts), count);
        uint32_t members[MOST];
        for (uint32_t i = 0; i < count; i++)
            members[i] = i;
        double *wanted = need(t.weights, sizeof *wanted);
        float *got = need(t.weights, sizeof *got), *first = need(t.weights, sizeof *first);
        double right = ref_batch(t.ref, t.wd, t.s.xd, t.s.labels, NULL, count, wanted);
        for (size_t i = 0; i < COUNT(isa_names); i++) {
            if (!isa_use(isa_names[i]))
                continue;
            fds_lane *lane = subject_lane(&t);
            double loss = lane_gradient(lane, &t, members, count, got);
            check_gradient(&t, got, loss, wanted, right, isa_names[i]);
            if (i) /* the same bits on every instruction set */
                assert_memory_equal(got, first, t.weights * sizeof *got);
            memcpy(first, got, t.weights * sizeof *got);
            fds_lane_free(lane);
        }
        isa_reset();
        free(wanted);
        free(got);
        free(first);
        subject_free(&t);
    }
    print_message("# worst error: gradient %.1e\n", worst_gradient);
}

static void the_reference_agrees_with_finite_differences(void **state) {
    (void)state;
    if (IS_SLOW_BUILD)
        SKIP_CASE("nothing but numbers: too slow under a sanitizer");
    const double h = 1e-5;
    for (size_t n = 0; n < COUNT(networks); n++) {
        subject t = subject_batch(n, 5);
        double *gradient = need(t.weights, sizeof *gradient), most = 0;
        ref_batch(t.ref, t.wd, t.s.xd, t.s.labels, NULL, 5, gradient);
        const size_t trained = t.weights - t.ref->statistics;
        for (size_t i = 0; i < trained; i++)
            most = fmax(most, fabs(gradient[i]));
        size_t used = 0;
        for (size_t i = 0; i < trained; i += 1 + trained / 150) {
            const double kept = t.wd[i], near = 1e-3 * most;
            double at[3]; /* the loss around here */
            for (int k = 0; k < 3; k++) {
                t.wd[i] = kept + (k - 1) * h;
                at[k] = ref_batch(t.ref, t.wd, t.s.xd, t.s.labels, NULL, 5, NULL);
            }
            t.wd[i] = kept;
            if (fabs(at[2] - 2 * at[1] + at[0]) / h > near)
                continue; /* a kink in between */
            double error = fabs((at[2] - at[0]) / (2 * h) - gradient[i]) / most;
            used++;
            if (!(error < 1e-4))
                fail_msg("%s: weight %zu: %g instead of %g", networks[n].text, i, gradient[i],
                         (at[2] - at[0]) / (2 * h));
            worst_difference = fmax(worst_difference, error);
        }
        assert_true(used > 20);
        free(gradient);
        subject_free(&t);
    }
    print_message("# worst error: %.1e\n", worst_difference);
}

/* Evaluation takes the running statistics: a sample's answer does not depend on its neighbours. */
static void evaluation_agrees_with_the_reference(void **state) {
    (void)state;
    for (size_t n = 0; n < COUNT(networks); n++) {
        subject t = subject_batch(n, MOST);
        const size_t classes = networks[n].classes;
        fds_lane *lane = subject_lane(&t);
        fds_error err;
        float *got = need(MOST * classes, sizeof *got), one[5];
        double *wanted = need(MOST * classes, sizeof *wanted);
        const uint32_t some[] = {3, 1, 4};
        float *gradient = need(t.weights, sizeof *gradient);
        lane_gradient(lane, &t, some, 3, gradient); /* leaves nothing behind */
        for (size_t i = 0; i < MOST; i++)
            memcpy(wanted + i * classes, ref_forward(t.ref, t.wd, t.s.xd + i * t.s.size),
                   classes * sizeof *wanted);
        expect_ok(fds_lane_logits(lane, t.inputs, 0, MOST, t.w, got, &err), &err);
        double error = relative_error(got, wanted, MOST * classes, 0);
        if (!(error <= 1e-5))
            fail_msg("%s: logits are off by %g", networks[n].text, error);
        worst_logits = fmax(worst_logits, error);
        expect_ok(fds_lane_logits(lane, t.inputs, 20, 1, t.w, one, &err), &err);
        assert_memory_equal(one, got + 20 * classes, classes * sizeof *one);
        free(got);
        free(wanted);
        free(gradient);
        fds_lane_free(lane);
        subject_free(&t);
    }
    print_message("# worst error: logits %.1e\n", worst_logits);
}

/* ---- training ---- */

/* SGD without momentum on the reference, in the engine's order of samples. */
static void simulate(const subject *t, const fds_train_params *p, double *w) {
    const size_t count = t->s.count, trained = t->weights - t->ref->statistics;
    double *g = need(t->weights, sizeof *g), *x = need(count * t->s.size, sizeof *x);
    uint16_t labels[MOST];
    uint32_t members[MOST], order[MOST];
    for (uint32_t i = 0; i < count; i++)
        members[i] = i;
    memcpy(w, t->wd, t->weights * sizeof *w);
    for (uint32_t epoch = 0; epoch < p->epochs; epoch++) {
        fds_error err;
        expect_ok(fds_inputs_order(t->inputs, members, count, p->seed, epoch, order, &err), &err);
        t->ref->seed = p->seed, t->ref->epoch = epoch;
        for (size_t i = 0; i < count; i++) {
            memcpy(x + i * t->s.size, t->s.xd + order[i] * t->s.size, t->s.size * sizeof *x);
            labels[i] = t->s.labels[order[i]];
        }
        for (size_t first = 0; first < count; first += p->batch) {
            const size_t size = MIN(count - first, (size_t)p->batch);
            ref_batch(t->ref, w, x + first * t->s.size, labels + first, order + first, size, g);
            for (size_t i = 0; i < t->weights; i++)
                w[i] += i < trained ? -(double)p->lr * g[i] : 0.1 * (g[i] - w[i]);
        }
    }
    free(g);
    free(x);
}

/* The last mini-batch has one sample. A lane that has seen other samples gives the same bits. */
static void training_keeps_running_statistics(void **state) {
    (void)state;
    for (size_t n = 0; n < COUNT(networks); n++) {
        subject t = subject_batch(n, 35);
        fds_train_params p = fds_train_params_default();
        p.optimizer = FDS_OPTIMIZER_SGD;
        p.lr = 0.02f, p.momentum = 0, p.epochs = 3, p.batch = 17, p.seed = 8;
        double *wanted = need(t.weights, sizeof *wanted);
        float *w = need(t.weights, sizeof *w), *again = need(t.weights, sizeof *again);
        uint32_t members[35];
        for (uint32_t i = 0; i < 35; i++)
            members[i] = i;
        simulate(&t, &p, wanted);
        fds_lane *lane = subject_lane(&t);
        for (int round = 0; round < 2; round++) {
            fds_error err;
            memcpy(w, t.w, t.weights * sizeof *w);
            expect_ok(fds_lane_train(lane, t.inputs, members, 35, &p, w, NULL, NULL, &err), &err);
            if (round)
                assert_memory_equal(w, again, t.weights * sizeof *w);
            memcpy(again, w, t.weights * sizeof *w);
            expect_ok(fds_lane_train(lane, t.inputs, members, 20, &p, w, NULL, NULL, &err), &err);
        }
        double error = relative_error(again, wanted, t.weights, 0);
        if (!(error < 1e-5))
            fail_msg("%s: weights after training are off by %g", networks[n].text, error);
        free(wanted);
        free(w);
        free(again);
        fds_lane_free(lane);
        subject_free(&t);
    }
}

static void the_tangent_kernel_refuses_batchnorm(void **state) {
    (void)state;
    subject t = subject_batch(1, 2);
    float kernel[4];
    fds_error err = {0};
    assert_int_equal(fds__net_tangent(t.net, t.w, t.inputs, t.inputs, 1, kernel, NULL, &err),
                     FDS_ERR_UNSUPPORTED);
    expect_in(err.text, "does not know batchnorm; use a network without it");
    subject_free(&t);
}

static void wrong_tokens_are_named(void **state) {
    (void)state;
    subject t = subject_make("embed:7x3,globalpool,fc:2", (fds_shape){4, 1, 1}, 2, 5, 1);
    fds_lane *lane = subject_lane(&t);
    fds_error err = {0};
    const float wrong[] = {7, -1, 2.5f, NAN, INFINITY, 1e30f};
    const uint32_t all[] = {0, 1, 2, 3, 4};
    fds_train_params p = fds_train_params_default();
    float out[10], kernel[25];
    for (size_t i = 0; i < COUNT(wrong); i++) {
        t.inputs->values[3 * 4 + 1] = wrong[i];
        assert_int_equal(fds_lane_predict(lane, t.inputs, 0, 5, t.w, out, &err), FDS_ERR_SHAPE);
        expect_in(err.text, "sample 3: token 1 is ");
        expect_in(err.text, "but embed takes whole numbers from 0 to 6");
        assert_int_equal(fds_lane_train(lane, t.inputs, all, 5, &p, t.w, NULL, NULL, &err),
                         FDS_ERR_SHAPE);
    }
    expect_ok(fds_lane_predict(lane, t.inputs, 0, 3, t.w, out, &err), &err);
    assert_int_equal(fds__net_tangent(t.net, t.w, t.inputs, t.inputs, 1, kernel, NULL, &err),
                     FDS_ERR_UNSUPPORTED);
    expect_in(err.text, "does not know embed");
    fds_lane_free(lane);
    subject_free(&t);
}

static void without_memory_a_mini_batch_is_not_begun(void **state) {
    (void)state;
    subject t = subject_batch(1, 33);
    fds_train_params p = fds_train_params_default();
    uint32_t members[33];
    for (uint32_t i = 0; i < 33; i++)
        members[i] = i;
    p.batch = 33;
    p.epochs = 1;
    fds_lane *lane = subject_lane(&t);
    for (uint64_t nth = 1; nth <= 4; nth++) {
        fds__fault_arm(FDS__FAULT_ALLOC, nth);
        assert_int_equal(fds_lane_train(lane, t.inputs, members, 33, &p, t.w, NULL, NULL, NULL),
                         nth <= 3 ? FDS_ERR_NOMEM : FDS_OK);
        fds_lane_free(lane);
        fds__fault_arm(FDS__FAULT_ALLOC, 0);
        lane = subject_lane(&t);
    }
    fds_lane_free(lane);
    subject_free(&t);
}

/* ---- a small residual network on real digits ---- */

#define RESNET                                                                                 \
    "conv:8x3p1,batchnorm,relu,residual(conv:8x3p1,batchnorm,relu,conv:8x3p1,batchnorm),relu," \
    "residual(conv:16x3p1s2,batchnorm,relu,conv:16x3p1,batchnorm),relu,"                       \
    "residual(conv:16x3p1s2,batchnorm,relu,conv:16x3p1,batchnorm),relu,globalpool,fc:classes"

static void a_residual_network_learns_digits_and_survives_its_file(void **state) {
    (void)state;
    enum { DIGITS = IS_SLOW_BUILD ? 48 : 200 };
    char folder[FDS__PATH_MAX];
    fds_dataset *train, *test;
    fds_model *model, *loaded;
    fds_train_report report;
    fds_error err;
    snprintf(folder, sizeof folder, "%s/mnist", getenv("FDS_TEST_DATA"));
    expect_ok(fds__data_open(folder, NULL, NULL, &train, &test, &err), &err);
    uint32_t index[DIGITS];
    fds_train_params p = fds_train_params_default();
    p.lr = 0.01f, p.epochs = IS_SLOW_BUILD ? 1 : 30;
    expect_ok(fds_split_balanced(train, DIGITS, 1, index, &err), &err);
    expect_ok(fds_model_train(train, index, DIGITS, RESNET, &p, NULL, &model, &report, &err), &err);
    double accuracy, again, control;
    const size_t tests = fds__dataset_get_info(test).count;
    expect_ok(fds_model_score(model, test, NULL, tests, 1, NULL, &accuracy, NULL, &err), &err);
    /* the control: the same samples and steps without hidden layers */
    fds_model *logistic;
    expect_ok(fds_model_train(train, index, DIGITS, "logistic", &p, NULL, &logistic, NULL, &err),
              &err);
    expect_ok(fds_model_score(logistic, test, NULL, tests, 1, NULL, &control, NULL, &err), &err);
    fds_model_free(logistic);
    const char *path = scratch_path("resnet.safetensors");
    expect_ok(fds_model_save(model, path, &err), &err);
    expect_ok(fds_model_load(path, &loaded, &err), &err);
    assert_string_equal(fds_model_sha256(loaded), fds_model_sha256(model));
    expect_ok(fds_model_score(loaded, test, NULL, tests, 3, NULL, &again, NULL, &err), &err);
    assert_true(accuracy == again);
    print_message("# loss %.3f to %.3f, accuracy %.3f (logistic %.3f)\n", (double)report.first_loss,
                  (double)report.last_loss, accuracy, control);
    if (!IS_SLOW_BUILD)
        assert_true(report.last_loss < report.first_loss / 10 && accuracy > 0.7 &&
                    accuracy > control);
    fds_model_free(model);
    fds_model_free(loaded);
    fds_dataset_free(train);
    fds_dataset_free(test);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mini_batches_agree_with_the_reference),
        cmocka_unit_test(the_reference_agrees_with_finite_differences),
        cmocka_unit_test(evaluation_agrees_with_the_reference),
        cmocka_unit_test(training_keeps_running_statistics),
        cmocka_unit_test(the_tangent_kernel_refuses_batchnorm),
        cmocka_unit_test(wrong_tokens_are_named),
        cmocka_unit_test(without_memory_a_mini_batch_is_not_begun),
        cmocka_unit_test_setup_teardown(a_residual_network_learns_digits_and_survives_its_file,
                                        scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
