/* SPDX-License-Identifier: Apache-2.0
 * Networks of one output: predictions and squared errors against the reference, gradients against its
 * finite differences, and the refusal of data that does not fit. */
#include "fixture.h"

static const struct {
    const char *text;
    fds_shape shape;
} nets[] = {
    {"fc:7,relu,fc:classes", {5, 1, 1}},
    {"fc:1", {3, 1, 1}},
    {"conv:3x3p1,relu,maxpool,fc:classes", {2, 6, 5}},
    {"fc:6,tanh,fc:1", {4, 1, 1}},
    {"residual(conv:2x3p1),gelu,globalpool,fc:1", {2, 5, 5}},
};
static const size_t counts[] = {1, 16, 21};

/* As subject_make, with a network for numbers and targets from the normal distribution. */
static subject make(size_t k, size_t count) {
    subject t = subject_make(nets[k].text, nets[k].shape, 1, count, 11 + k);
    fds_net_free(t.net);
    fds_error err;
    expect_ok(fds__net_create(nets[k].text, nets[k].shape, 0, true, &t.net, &err), &err);
    assert_int_equal(fds_net_weights(t.net), t.weights);
    t.inputs->targets = fds__alloc_zero(count, sizeof *t.inputs->targets);
    for (size_t i = 0; i < count; i++) {
        fds_rng rng = fds_rng_make(5, 1001, i, 0);
        t.inputs->targets[i] = (float)fds_rng_normal(&rng);
    }
    return t;
}

static double mean_squared_error(const subject *t, const double *weights) {
    double sum = 0;
    for (size_t i = 0; i < t->s.count; i++) {
        double away =
            *ref_forward(t->ref, weights, t->s.xd + i * t->s.size) - (double)t->inputs->targets[i];
        sum += away * away;
    }
    return sum / (double)t->s.count;
}

static void finite_differences(const subject *t, double *gradient) {
    const double step = 1e-6;
    double *w = need(t->weights, sizeof *w);
    memcpy(w, t->wd, t->weights * sizeof *w);
    for (size_t i = 0; i < t->weights; i++) {
        w[i] = t->wd[i] + step;
        double above = mean_squared_error(t, w);
        w[i] = t->wd[i] - step;
        gradient[i] = (above - mean_squared_error(t, w)) / (2 * step);
        w[i] = t->wd[i];
    }
    free(w);
}

static void expect_gradient(const subject *t) {
    uint32_t members[32];
    for (uint32_t i = 0; i < t->s.count; i++)
        members[i] = i;
    double *wanted = need(t->weights, sizeof *wanted);
    float *got = need(t->weights, sizeof *got);
    finite_differences(t, wanted);
    double loss = mean_squared_error(t, t->wd);
    for (size_t i = 0; i < COUNT(isa_names); i++) {
        if (!isa_use(isa_names[i]))
            continue;
        fds_lane *lane = subject_lane(t);
        double own = lane_gradient(lane, t, members, t->s.count, got);
        assert_true(fabs(own - loss) < 1e-5 * (1 + loss));
        double error = relative_error(got, wanted, t->weights, 1e-3);
        if (!(error < 1e-5))
            fail_msg("%s, %s, %zu samples: %g", isa_names[i], t->net->text, t->s.count, error);
        fds_lane_free(lane);
    }
    isa_reset();
    free(wanted);
    free(got);
}

static void gradients_are_finite_differences_of_the_squared_error(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT(nets); k++)
        for (size_t c = 0; c < COUNT(counts); c++) {
            subject t = make(k, counts[c]);
            expect_gradient(&t);
            subject_free(&t);
        }
}

static void predictions_are_the_output_itself(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT(nets); k++) {
        subject t = make(k, 21);
        fds_lane *lane = subject_lane(&t);
        float got[21];
        double wanted[21];
        fds_error err;
        expect_ok(fds_lane_predict(lane, t.inputs, 0, 21, t.w, got, &err), &err);
        for (size_t i = 0; i < 21; i++)
            wanted[i] = *ref_forward(t.ref, t.wd, t.s.xd + i * t.s.size);
        assert_true(relative_error(got, wanted, 21, 1e-3) < 1e-5);
        fds_lane_free(lane);
        subject_free(&t);
    }
}

/* The closed form: a network of one layer on whole batches falls to the least-squares solution. */
static void training_ends_at_least_squares(void **state) {
    (void)state;
    samples s = samples_normal((fds_shape){2, 1, 1}, 1, 8, 3);
    fds_inputs *inputs = samples_inputs(&s, NULL, 0);
    inputs->targets = fds__alloc_zero(8, sizeof *inputs->targets);
    for (size_t i = 0; i < 8; i++) /* of a linear function, which the network can be */
        inputs->targets[i] = 2 * s.x[2 * i] - s.x[2 * i + 1] + 0.5f;
    fds_net *net = NULL;
    fds_lane *lane = NULL;
    fds_error err;
    expect_ok(fds__net_create("logistic", s.shape, 0, true, &net, &err), &err);
    assert_string_equal(fds_net_text(net), "fc:1");
    expect_ok(fds_lane_create(net, &lane, &err), &err);
    float w[3];
    uint32_t members[] = {0, 1, 2, 3, 4, 5, 6, 7};
    fds_train_params p = fds_train_params_default();
    fds_train_report report;
    p.optimizer = FDS_OPTIMIZER_SGD;
    p.lr = 0.1f;
    p.epochs = 2000;
    fds_net_init(net, 1, w);
    expect_ok(fds_lane_train(lane, inputs, members, 8, &p, w, &report, NULL, &err), &err);
    assert_true(fabsf(w[0] - 2) < 1e-4f && fabsf(w[1] + 1) < 1e-4f && fabsf(w[2] - 0.5f) < 1e-4f);
    assert_true(report.last_loss < 1e-8f && report.first_loss > 0.1f);
    fds_lane_free(lane);
    fds_net_free(net);
    fds_inputs_free(inputs);
    samples_free(&s);
}

/* The bits of a bank's answers are tested for classes; here, that they are not put through softmax. */
static void many_networks_predict_as_one(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT(nets); k++) {
        subject t = make(k, FDS__MANY_INPUTS);
        fds__many *many = NULL;
        fds_error err;
        expect_ok(fds__many_create(t.net, 1, &many, &err), &err);
        size_t size = fds__many_input_size(many);
        uint16_t *group = fds__alloc_aligned(FDS__MANY_NETS * t.weights * sizeof *group);
        float *wide = fds__alloc_aligned(FDS__MANY_INPUTS * size * sizeof *wide);
        memset(wide, 0, FDS__MANY_INPUTS * size * sizeof *wide);
        for (size_t i = 0; i < t.weights; i++)
            t.w[i] = (float)fds__half_to_double(fds__half_from_float(t.w[i]));
        for (size_t i = 0; i < t.weights * FDS__MANY_NETS; i++)
            group[i] = fds__half_from_float(t.w[fds__many_order(many)[i / FDS__MANY_NETS]]);
        for (size_t i = 0; i < FDS__MANY_INPUTS; i++)
            fds__many_spread(many, t.inputs->values + i * t.s.size, wide + i * size);
        const float *got = fds__many_run(many, 0, group, wide, FDS__MANY_INPUTS);
        float right[FDS__MANY_INPUTS];
        fds_lane *lane = subject_lane(&t);
        expect_ok(fds_lane_predict(lane, t.inputs, 0, FDS__MANY_INPUTS, t.w, right, &err), &err);
        assert_non_null(got);
        for (size_t i = 0; i < FDS__MANY_INPUTS * FDS__MANY_NETS; i++)
            assert_true(got[i] == right[i / FDS__MANY_NETS]);
        fds_lane_free(lane);
        fds__free(group);
        fds__free(wide);
        fds__many_free(many);
        subject_free(&t);
    }
}

static void networks_and_samples_must_be_of_one_task(void **state) {
    (void)state;
    fds_error err;
    fds_net *net = NULL;
    const fds_shape shape = {3, 1, 1};
    assert_int_equal(fds__net_create("fc:2", shape, 0, true, &net, &err), FDS_ERR_USAGE);
    expect_in(err.text, "the last layer of a regression must have one output: fc:1");
    subject t = make(1, 4);
    fds_lane *lane = subject_lane(&t);
    const fds_train_params p = fds_train_params_default();
    uint32_t members[] = {0, 1};
    fds__free(t.inputs->targets);
    t.inputs->targets = NULL;
    assert_int_equal(fds_lane_train(lane, t.inputs, members, 2, &p, t.w, NULL, NULL, &err),
                     FDS_ERR_SHAPE);
    expect_in(err.text, "the network predicts numbers, but the samples have labels");
    fds_lane_free(lane);
    subject_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_finite_differences_of_the_squared_error),
        cmocka_unit_test(predictions_are_the_output_itself),
        cmocka_unit_test(training_ends_at_least_squares),
        cmocka_unit_test(many_networks_predict_as_one),
        cmocka_unit_test(networks_and_samples_must_be_of_one_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
