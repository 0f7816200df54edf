/* SPDX-License-Identifier: Apache-2.0
 * The deep engine's arithmetic against the reference in double precision, and that against finite
 * differences: every kind of node in every form that the engine gives it, on sizes that are
 * multiples of nothing; whole networks; batch norm's statistics; answers; Adam. */
#include "deep_fixture.h"

/* ---- graphs of a few nodes ---- */

typedef struct {
    deep_kind kind;
    uint32_t in, other, channels, kernel, stride, padding;
    bool has_bias, has_relu;
} row;

typedef struct {
    const char *name;
    fds_shape input;
    row rows[16]; /* nodes from number 1; the last is a linear layer */
} small;

#define CONV(in, channels, kernel, stride, padding) \
    { DEEP_CONV, in, 0, channels, kernel, stride, padding, false, false }
#define CONV_BIAS_RELU(in, channels, kernel, stride, padding) \
    { DEEP_CONV, in, 0, channels, kernel, stride, padding, true, true }
#define NORM(in, has_relu) \
    { DEEP_NORM, in, 0, 0, 0, 0, 0, false, has_relu }
#define ADD(in, other) \
    { DEEP_ADD, in, other, 0, 0, 0, 0, false, true }
#define POOL(in, kernel, stride, padding) \
    { DEEP_MAXPOOL, in, 0, 0, kernel, stride, padding, false, false }
#define MEAN(in) \
    { DEEP_AVGPOOL, in, 0, 0, 0, 0, 0, false, false }
#define FC(in, outputs, has_relu) \
    { DEEP_FC, in, 0, outputs, 0, 0, 0, true, has_relu }

/* clang-format off */
static const small smalls[] = {
    {"linear", {13, 1, 1}, {FC(0, 5, false)}},
    {"linear with relu", {3, 4, 5}, {FC(0, 33, true), FC(1, 16, true), FC(2, 7, false)}},
    {"convolution with bias", {3, 7, 5}, {CONV_BIAS_RELU(0, 5, 3, 1, 1), FC(1, 3, false)}},
    {"convolutions with strides", {1, 9, 11}, {CONV_BIAS_RELU(0, 17, 5, 2, 2), CONV_BIAS_RELU(1, 19, 3, 2, 0), CONV_BIAS_RELU(2, 7, 1, 2, 0), FC(3, 4, false)}},
    {"pooling", {3, 11, 7}, {CONV_BIAS_RELU(0, 16, 3, 1, 1), POOL(1, 3, 2, 1), POOL(2, 2, 2, 0), MEAN(3), FC(4, 5, false)}},
    {"batch norm", {3, 6, 5}, {CONV(0, 16, 3, 1, 1), NORM(1, true), CONV(2, 11, 3, 2, 1), NORM(3, false), FC(4, 5, false)}},
    {"one tap folded from images", {3, 6, 5}, {CONV(0, 32, 3, 1, 1), NORM(1, true), CONV(2, 48, 1, 1, 0), NORM(3, true), CONV(4, 16, 1, 1, 0), NORM(5, true), CONV(6, 16, 3, 1, 1), NORM(7, true), MEAN(8), FC(9, 5, false)}},
    {"one tap with stride", {3, 7, 5}, {CONV(0, 32, 3, 1, 1), NORM(1, true), CONV(2, 48, 1, 2, 0), NORM(3, true), CONV(4, 32, 1, 2, 0), NORM(5, true), FC(6, 5, false)}},
    {"filters on 2 x 2", {3, 2, 2}, {CONV(0, 16, 3, 1, 1), NORM(1, true), CONV(2, 32, 3, 1, 1), NORM(3, true), CONV(4, 16, 3, 2, 1), NORM(5, true), CONV(6, 48, 3, 1, 1), NORM(7, true), CONV(8, 16, 5, 1, 2), NORM(9, false), FC(10, 5, false)}},
    {"filters on 4 x 3", {3, 4, 3}, {CONV(0, 16, 3, 1, 1), NORM(1, true), CONV(2, 32, 3, 2, 1), NORM(3, true), CONV_BIAS_RELU(4, 16, 3, 2, 1), FC(5, 5, false)}},
    {"identity", {3, 5, 4}, {CONV(0, 16, 3, 1, 1), NORM(1, true), CONV(2, 16, 3, 1, 1), NORM(3, true), CONV(4, 16, 3, 1, 1), NORM(5, false), ADD(6, 2), CONV(7, 16, 3, 1, 1), NORM(8, false), ADD(9, 7), FC(10, 5, false)}},
    {"bottleneck and shortcut", {3, 7, 6}, {CONV(0, 16, 3, 1, 1), NORM(1, true), POOL(2, 3, 2, 1), CONV(3, 16, 1, 1, 0), NORM(4, true), CONV(5, 16, 3, 2, 1), NORM(6, true), CONV(7, 64, 1, 1, 0), NORM(8, false), CONV(3, 64, 1, 2, 0), NORM(10, false), ADD(9, 11), CONV_BIAS_RELU(12, 32, 1, 1, 0), MEAN(13), FC(14, 6, false)}},
    {"folded added to images", {3, 6, 6}, {CONV(0, 16, 3, 1, 1), NORM(1, true), CONV(2, 32, 3, 2, 1), NORM(3, false), CONV(2, 32, 1, 2, 0), NORM(5, false), ADD(4, 6), FC(7, 5, false)}},
    {"images added to folded", {3, 6, 6}, {CONV(0, 32, 3, 1, 1), NORM(1, true), CONV(2, 32, 1, 1, 0), NORM(3, false), ADD(4, 2), FC(5, 5, false)}},
};
/* clang-format on */

static void small_tensor(deep_graph *g, const char *part, uint32_t node, uint32_t rank,
                         const uint32_t *dims) {
    fds__deep_tensor *t = &g->tensors[g->tensor_count];
    *t = (fds__deep_tensor){.rank = rank, .count = 1, .is_statistic = part[0] == 'r'};
    for (uint32_t d = 0; d < rank; d++)
        t->count *= t->dims[d] = dims[d];
    snprintf(g->names[g->tensor_count++], DEEP_MAX_NAME, "%u.%s", node, part);
}

static void small_node(deep_graph *g, const row *r) {
    fds_shape in = g->nodes[r->in].shape;
    deep_node n = {.kind = r->kind,
                   .in = r->in,
                   .other = r->other,
                   .shape = in,
                   .kernel = {r->kernel, r->kernel},
                   .stride = r->stride,
                   .padding = {r->padding, r->padding},
                   .has_bias = r->has_bias,
                   .has_relu = r->has_relu,
                   .tensor = g->tensor_count};
    if (r->kernel) {
        n.shape.height = (in.height + 2 * r->padding - r->kernel) / r->stride + 1;
        n.shape.width = (in.width + 2 * r->padding - r->kernel) / r->stride + 1;
    }
    if (r->channels)
        n.shape.channels = r->channels;
    if (r->kind == DEEP_AVGPOOL || r->kind == DEEP_FC)
        n.shape.height = n.shape.width = 1;
    const uint32_t filter[] = {r->channels, in.channels, r->kernel, r->kernel};
    const uint32_t matrix[] = {r->channels, in.channels * in.height * in.width};
    if (r->kind == DEEP_CONV || r->kind == DEEP_FC) {
        small_tensor(g, "weight", g->count, r->kind == DEEP_CONV ? 4 : 2,
                     r->kind == DEEP_CONV ? filter : matrix);
        if (r->has_bias)
            small_tensor(g, "bias", g->count, 1, &r->channels);
    }
    const char *const parts[] = {"weight", "bias", "running_mean", "running_var"};
    for (int i = 0; r->kind == DEEP_NORM && i < 4; i++)
        small_tensor(g, parts[i], g->count, 1, &in.channels);
    g->nodes[g->count++] = n;
}

static deep_graph *small_graph(const small *s) {
    deep_graph *g = need(1, sizeof *g);
    g->nodes[0] = (deep_node){.kind = DEEP_INPUT, .shape = s->input};
    g->count = 1;
    for (const row *r = s->rows; r->kind != DEEP_INPUT; r++)
        small_node(g, r);
    return g;
}

/* ---- tests ---- */

static double worst_output, worst_gradient, worst_statistic, worst_difference;

/* allowance: greater for the many layers between an input and its effect */
static void check_graph(const char *name, const deep_graph *g, uint32_t batch, unsigned threads,
                        double allowance) {
    subject t = subject_make(g, batch, threads, FDS__PRECISION_F32, batch);
    double error = subject_forward(&t);
    if (!(error <= 2e-6 * allowance))
        fail_msg("%s, batch %u, %u threads: output is off by %g", name, batch, threads, error);
    worst_output = fmax(worst_output, error);
    subject_backward(&t);
    for (uint32_t i = 0; i < g->tensor_count; i++) {
        error = subject_error(&t, i);
        if (!(error <= 1e-5 * allowance))
            fail_msg("%s, batch %u, %u threads: %s %s is off by %g", name, batch, threads,
                     g->tensors[i].is_statistic ? "statistic" : "gradient of", g->names[i], error);
        double *worst = g->tensors[i].is_statistic ? &worst_statistic : &worst_gradient;
        *worst = fmax(*worst, error);
    }
    subject_free(&t);
}

static void every_node_agrees_with_the_reference(void **state) {
    (void)state;
    const uint32_t batches[] = {4, 17};
    for (size_t i = 0; i < COUNT(smalls); i++) {
        deep_graph *g = small_graph(&smalls[i]);
        for (size_t k = 0; k < COUNT(batches); k++)
            check_graph(smalls[i].name, g, batches[k], 1 + (i + k) % 2, 1);
        free(g);
    }
    print_message("# worst: outputs %.1e, gradients %.1e, statistics %.1e\n", worst_output,
                  worst_gradient, worst_statistic);
}

/* The loss sum(d * outputs) moved by a small change of one weight. */
static double difference(subject *t, double *weight) {
    const double h = 1e-6;
    double kept = *weight, sums[2] = {0};
    for (int side = 0; side < 2; side++) {
        *weight = kept + (side ? h : -h);
        const double *out = deep_ref_forward(t->ref, t->x, true, true);
        for (size_t k = 0; k < t->outputs; k++)
            sums[side] += t->d[k] * out[k];
    }
    *weight = kept;
    return (sums[1] - sums[0]) / (2 * h);
}

static void the_reference_agrees_with_finite_differences(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(smalls); i++) {
        deep_graph *g = small_graph(&smalls[i]);
        subject t = subject_make(g, 3, 1, FDS__PRECISION_F32, 5);
        deep_ref_forward(t.ref, t.x, true, true);
        deep_ref_backward(t.ref, t.d);
        for (uint32_t k = 0; k < g->tensor_count; k++) {
            double most = 1e-3;
            for (size_t j = 0; j < g->tensors[k].count; j++)
                most = fmax(most, fabs(t.ref->gradients[k][j]));
            for (size_t j = 0; !g->tensors[k].is_statistic && j < g->tensors[k].count;
                 j += 1 + g->tensors[k].count / 3) {
                double analytic = t.ref->gradients[k][j];
                double error = fabs(difference(&t, &t.ref->values[k][j]) - analytic) / most;
                if (!(error <= 1e-5))
                    fail_msg("%s: derivative by %s %zu is off by %g", smalls[i].name, g->names[k],
                             j, error);
                worst_difference = fmax(worst_difference, error);
            }
        }
        subject_free(&t);
        free(g);
    }
    print_message("# worst: %.1e\n", worst_difference);
}

typedef struct {
    const char *network;
    fds__head head;
    fds_shape input;
    uint32_t batch;
    bool is_large;
} whole;

static const whole wholes[] = {
    {"mlp", FDS__HEAD_EXPLAIN, {29, 1, 1}, 5, false},
    {"mlp", FDS__HEAD_CLASSIFY, {2, 3, 5}, 3, false},
    {"cnn", FDS__HEAD_EXPLAIN, {1, 9, 7}, 3, false},
    {"cnn", FDS__HEAD_CLASSIFY, {3, 7, 5}, 4, false},
    {"resnet18", FDS__HEAD_EXPLAIN, {3, 7, 5}, 8, true},
};

static void whole_networks_agree_with_the_reference(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(wholes); i++) {
        const whole *w = &wholes[i];
        fds_error err;
        if (w->is_large && IS_SLOW_BUILD)
            continue;
        fds__deep_params params = {w->network,         w->head, w->input,       6, w->batch, 1,
                                   FDS__PRECISION_F32, 1,       FDS__DEEP_TRAIN};
        deep_graph *g = need(1, sizeof *g);
        expect_ok(deep_graph_build(&params, g, &err), &err);
        check_graph(w->network, g, w->batch, 1 + i % 2, w->is_large ? 20 : 2);
        free(g);
    }
    print_message("# worst: outputs %.1e, gradients %.1e, statistics %.1e\n", worst_output,
                  worst_gradient, worst_statistic);
}

/* Through the public calls: three steps of each rule, weights and answers afterwards. */
static void check_training(const whole *w, const fds__adam *adam, const char *rule) {
    fds_error err;
    fds__deep *net = NULL;
    fds__deep_infer *infer = NULL;
    fds__deep_params params = {w->network,         w->head, w->input,       6, w->batch, 2,
                               FDS__PRECISION_F32, 3,       FDS__DEEP_TRAIN};
    expect_ok(fds__deep_create(&params, &net, &err), &err);
    subject t = subject_of_net(net, 7);
    float *out = need(t.outputs, sizeof *out);
    double moved = 0;
    for (int step = 0; step < 3; step++) {
        deep_ref_forward(t.ref, t.x, true, false);
        deep_ref_backward(t.ref, t.d);
        deep_ref_adam(t.ref, adam);
        expect_ok(fds__deep_forward(net, t.x, NULL, out, &err), &err);
        expect_ok(fds__deep_backward(net, t.d, &err), &err);
        expect_ok(fds__deep_step(net, adam, &err), &err);
    }
    assert_int_equal(fds__deep_steps(net), 3);
    for (uint32_t i = 0; i < t.graph->tensor_count; i++) {
        double error = net_error(net, &t, i);
        if (!(error <= 2e-4))
            fail_msg("%s, %s: %s is off by %g after three steps", w->network, rule,
                     t.graph->names[i], error);
        moved = fmax(moved, error);
    }
    expect_ok(fds__deep_infer_create(net, 2, &infer, &err), &err);
    expect_ok(fds__deep_infer_run(infer, t.x, w->batch, out, &err), &err);
    double error = relative_error(out, deep_ref_forward(t.ref, t.x, false, true), t.outputs, 0);
    print_message("# %s, %s: weights within %.1e, answers within %.1e\n", w->network, rule, moved,
                  error);
    assert_true(error <= 2e-4);
    fds__deep_infer_free(infer);
    free(out);
    subject_free(&t); /* whose graph is the network's */
    fds__deep_free(net);
}

static void training_and_answers_agree_with_the_reference(void **state) {
    (void)state;
    /* a large epsilon: else steps along derivatives that are 0 but for rounding are as long as
     * others */
    const fds__adam rules[] = {
        {.lr = 0.01f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-2f},
        {.lr = 0.01f, .beta1 = 0.8f, .beta2 = 0.99f, .epsilon = 1e-2f, .weight_decay = 0.1f},
        {.lr = 0.01f,
         .beta1 = 0.9f,
         .beta2 = 0.999f,
         .epsilon = 1e-2f,
         .weight_decay = 0.1f,
         .decoupled = true},
    };
    const char *const names[] = {"Adam", "Adam with decay", "AdamW"};
    for (size_t i = 0; i < COUNT(wholes); i++)
        for (size_t k = 0; k < COUNT(rules); k++)
            if (!wholes[i].is_large && (i == 2 || k == i % COUNT(rules))) /* one has them all */
                check_training(&wholes[i], &rules[k], names[k]);
}

/* bf16 keeps 8 bits. In gradients a few relus are on the other side, hence their mean error. */
static void bf16_stays_near_f32(void **state) {
    (void)state;
    double worst = 0;
    for (size_t i = 0; i < COUNT(smalls); i++) {
        deep_graph *g = small_graph(&smalls[i]);
        /* 5: see is_unsafe in describe.c */
        subject t = subject_make(g, i % 2 ? 8 : 5, 2, FDS__PRECISION_BF16, 6);
        double error = subject_forward(&t);
        if (!(error <= 2e-2))
            fail_msg("%s: outputs in bf16 are off by %g", smalls[i].name, error);
        worst = fmax(worst, error);
        subject_backward(&t);
        for (uint32_t k = 0; k < g->tensor_count; k++) {
            error = subject_error_rms(&t, k);
            if (!(error <= 0.25))
                fail_msg("%s: gradient of %s in bf16 is off by %g", smalls[i].name, g->names[k],
                         error);
        }
        subject_free(&t);
        free(g);
    }
    print_message("# worst output: %.1e\n", worst);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_node_agrees_with_the_reference),
        cmocka_unit_test(the_reference_agrees_with_finite_differences),
        cmocka_unit_test(whole_networks_agree_with_the_reference),
        cmocka_unit_test(training_and_answers_agree_with_the_reference),
        cmocka_unit_test(bf16_stays_near_f32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
