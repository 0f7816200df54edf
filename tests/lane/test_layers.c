/* SPDX-License-Identifier: Apache-2.0
 * The engine's arithmetic against the reference in double precision and against finite differences:
 * every kind of layer, sizes that are multiples of nothing, every size of a mini-batch up to two
 * vectors and one sample, every instruction set. */
#include "fixture.h"

enum { MOST = IS_SLOW_BUILD ? 17 : 33 };

typedef struct {
    const char *text;
    fds_shape shape;
    uint32_t classes;
    bool every_batch; /* sizes 1 .. 33, else a spread */
    bool is_slow;     /* generic sees the smallest batches only, differences fewer places */
} network;

static const network networks[] = {
    {"lenet5", {1, 28, 28}, 10, false, true},
    {"cnn", {3, 32, 32}, 10, false, true},
    {"conv:5x3p1,relu,maxpool,conv:7x2,relu,fc:33,relu,fc:7", {3, 13, 11}, 7, true, false},
    {"mlp", {13, 1, 1}, 10, true, false},
    {"logistic", {13, 1, 1}, 3, true, false},
    {"fc:1,relu,fc:2", {13, 1, 1}, 2, false, false},
    {"fc:130,relu,fc:17,relu,fc:65", {13, 1, 1}, 65, false, false},
    {"fc:7,fc:5,relu,fc:3", {1, 5, 5}, 3, false, false},
    {"fc:classes", {1, 1, 1}, 2, false, false},
    {"fc:128,relu,fc:129,relu,fc:31,fc:64", {2, 3, 7}, 64, false, false},
    {"conv:9x2,relu,maxpool:3,fc:130,relu,fc:3", {1, 7, 9}, 3, false, false},
    {"conv:17x5p2,maxpool,relu,fc:5", {3, 17, 5}, 5, false, false},
    {"conv:1x1,relu,fc:2", {1, 7, 9}, 2, true, false},
    {"conv:33x3p2,relu,maxpool:3,fc:4", {2, 8, 10}, 4, false, false},
    {"conv:3x7p3,relu,conv:5x5p1,relu,maxpool,fc:6", {1, 11, 13}, 6, false, false},
    {"conv:7x7,relu,fc:9", {3, 7, 7}, 9, false, false},
    {"conv:5x3p2,relu,conv:9x3p1,relu,conv:1x1,relu,maxpool,fc:11", {1, 9, 7}, 11, false, false},
    {"maxpool,conv:4x3,relu,fc:3", {3, 12, 10}, 3, false, false},
    {"maxpool:3,fc:5", {1, 10, 11}, 5, false, false},
    {"relu,fc:4", {5, 3, 2}, 4, false, false},
    {"conv:2x1,conv:3x2p1,relu,maxpool,maxpool:3,fc:2", {2, 14, 17}, 2, false, false},
    {"conv:16x3p1,relu,conv:17x3p1,relu,maxpool,fc:10", {1, 15, 15}, 10, false, false},
    {"conv:6x5p4,relu,maxpool,fc:3", {1, 1, 1}, 3, false, false},
    {"conv:3x2p1,relu,maxpool:1,fc:2", {1, 3, 1}, 2, false, false},
    {"conv:33x1,relu,conv:7x1,maxpool,fc:19,relu,fc:101", {9, 4, 5}, 101, false, false},
    {"conv:5x7p2,relu,maxpool:3,conv:17x2p1,relu,fc:13", {5, 9, 23}, 13, false, false},
    {"conv:3x2,relu,conv:5x7p3,relu,fc:4", {2, 9, 8}, 4, true, false},
    {"conv:4x4p3,conv:6x4p1,relu,conv:3x6p5,maxpool,fc:5", {1, 8, 9}, 5, true, false},
    {"conv:18x2p1,relu,conv:19x5p4,maxpool,conv:2x3,relu,fc:3", {7, 4, 6}, 3, false, false},
    {"conv:3x1,maxpool,maxpool,fc:2", {1, 6, 7}, 2, true, false}, /* rows and columns dropped */
    {"conv:5x3p1s2,relu,conv:7x3p1s2,relu,maxpool,fc:6", {2, 13, 14}, 6, true, false},
    {"conv:4x5p2s3,conv:3x2s4,relu,fc:3", {1, 29, 31}, 3, false, false},
    {"maxpool,conv:6x1s2,relu,conv:5x7p3s2,fc:4", {3, 17, 20}, 4, false, false},
    {"conv:3x2p1s3,relu,conv:2x3p2s5,relu,fc:2", {2, 8, 9}, 2, false, false},
    {"conv:5x3p1,tanh,avgpool,conv:7x3p1,gelu,avgpool:3,fc:6", {2, 13, 14}, 6, true, false},
    {"avgpool:3,conv:6x3s2,gelu,globalpool,fc:9,tanh,fc:4", {3, 20, 25}, 4, false, false},
    {"tanh,fc:17,gelu,fc:5", {9, 1, 1}, 5, true, false},
    {"conv:4x3,globalpool,relu,fc:3", {1, 9, 6}, 3, false, false},
    {"conv:4x1,avgpool:1,maxpool,gelu,relu,fc:3", {2, 5, 7}, 3, false, false},
    {"conv:5x3p1,residual(conv:5x3p1,relu,conv:5x3p1),relu,fc:4", {2, 7, 8}, 4, true, false},
    {"residual(conv:6x3p1s2,gelu,conv:6x3p1),relu,residual(relu),globalpool,fc:3",
     {2, 9, 8},
     3,
     true,
     false},
    {"conv:4x3,residual(relu,conv:7x1),residual(conv:7x2p1,maxpool),fc:9,residual(tanh,fc:5),"
     "residual(relu,fc:5,fc:5),relu,fc:3",
     {1, 9, 10},
     3,
     false,
     false},
    {"residual(maxpool,tanh),conv:3x2,residual(avgpool),fc:2", {2, 10, 8}, 2, false, false},
    /* wide convolutions, of 3x3 from 32 channels or more to as many */
    {"conv:32x2,conv:33x3p1,relu,fc:3", {2, 5, 8}, 3, true, false},
    {"conv:34x1,relu,conv:32x3,conv:47x3p2,maxpool:3,relu,fc:4", {3, 9, 7}, 4, false, false},
    {"conv:32x1,conv:32x3p2,conv:65x3,maxpool,fc:2", {1, 3, 2}, 2, false, false},
    {"conv:48x3p1,relu,conv:64x3p1,relu,maxpool,conv:32x3p1,globalpool,fc:5",
     {3, 9, 6},
     5,
     false,
     true},
    {"conv:32x1,residual(conv:32x3p1,relu,conv:40x3p1),relu,fc:3", {2, 6, 7}, 3, false, false},
    /* embeddings of tokens: features, and an image */
    {"embed:7x5,globalpool,fc:3", {6, 1, 1}, 3, true, false},
    {"embed:11x3,fc:4", {5, 1, 1}, 4, true, false},
    {"embed:40x9,conv:6x3p1,relu,globalpool,fc:5,tanh,fc:2", {13, 1, 1}, 2, false, false},
    {"embed:3x4,conv:5x3p1,gelu,maxpool,fc:3", {1, 5, 6}, 3, false, false},
    {"embed:2x1,residual(tanh,conv:3x1),fc:2", {1, 1, 1}, 2, false, false},
    {"conv:8x3,relu,fc:1", {1, 5, 4}, 1, false, false}, /* one class: no loss, no gradient */
};

static bool wanted(const network *n, size_t batch) {
    const size_t spread[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33};
    if (IS_SLOW_BUILD)
        return batch == 3 || (!n->is_slow && (batch == 1 || batch == 8 || batch == 17));
    bool in_spread = n->every_batch;
    for (size_t i = 0; i < COUNT(spread); i++)
        in_spread |= batch == spread[i];
    return in_spread;
}

/* One lane for each instruction set that there is; NULL for the others. */
static void lanes_make(const subject *t, fds_lane *lanes[3]) {
    for (size_t i = 0; i < 3; i++)
        lanes[i] = isa_use(isa_names[i]) ? subject_lane(t) : NULL;
    isa_reset();
}

static double worst_logits, worst_gradient, worst_loss, worst_difference;

/* What the reference has added up over samples 0 .. batch-1. */
typedef struct {
    double *gradient, loss;
    double most[2 * REF_MAX_LAYERS]; /* by tensor: the greatest that one sample contributed */
} sums;

static void sums_add(const subject *t, size_t i, double *gradient, sums *sum) {
    memset(gradient, 0, t->weights * sizeof *gradient);
    sum->loss += ref_loss(t->ref, t->wd, t->s.xd + i * t->s.size, t->s.labels[i], 1, gradient);
    for (size_t k = 0; k < fds_net_tensors(t->net); k++) {
        fds_tensor_info tensor = fds_net_tensor(t->net, k);
        for (size_t j = tensor.offset; j < tensor.offset + tensor.count; j++) {
            sum->gradient[j] += gradient[j];
            sum->most[k] = fmax(sum->most[k], fabs(gradient[j]));
        }
    }
}

/* The engine's gradient of samples 0 .. batch-1, given in reverse, against the reference's mean:
 * relative to the tensor's greatest value or, where samples nearly cancel each other (a tensor may
 * be a single number), to the greatest term of the mean. */
static void check_gradient(const subject *t, fds_lane *lane, const char *isa, size_t batch,
                           const sums *sum, double tolerance) {
    uint32_t members[MOST];
    for (size_t i = 0; i < batch; i++)
        members[i] = (uint32_t)(batch - 1 - i);
    float *got = need(t->weights, sizeof *got);
    double *mean = need(t->weights, sizeof *mean), loss = NAN;
    for (size_t i = 0; i < t->weights; i++) {
        mean[i] = sum->gradient[i] / (double)batch;
        got[i] = NAN; /* every place must be written */
    }
    loss = lane_gradient(lane, t, members, batch, got);
    for (size_t i = 0; i < fds_net_tensors(t->net); i++) {
        fds_tensor_info tensor = fds_net_tensor(t->net, i);
        double error = relative_error(got + tensor.offset, mean + tensor.offset, tensor.count,
                                      sum->most[i] / (double)batch);
        if (!(error <= tolerance))
            fail_msg("%s, %s, batch %zu: gradient of %s is off by %g", fds_net_text(t->net), isa,
                     batch, tensor.name, error);
        worst_gradient = fmax(worst_gradient, error);
    }
    double error = fabs(loss - sum->loss / (double)batch) / fmax(1, sum->loss / (double)batch);
    if (!(error <= tolerance))
        fail_msg("%s, %s, batch %zu: loss is off by %g", fds_net_text(t->net), isa, batch, error);
    worst_loss = fmax(worst_loss, error);
    free(got);
    free(mean);
}

static void check_gradients(const network *n, const subject *t, fds_lane *const lanes[3],
                            double tolerance) {
    sums sum = {.gradient = need(t->weights, sizeof(double))};
    double *gradient = need(t->weights, sizeof *gradient);
    for (size_t batch = 1; batch <= t->s.count; batch++) {
        sums_add(t, batch - 1, gradient, &sum);
        for (size_t i = 0; i < 3 && wanted(n, batch); i++)
            if (lanes[i] && !(n->is_slow && i == 0 && batch > 3))
                check_gradient(t, lanes[i], isa_names[i], batch, &sum, tolerance);
    }
    free(sum.gradient);
    free(gradient);
}

/* Logits and probabilities of all samples at once. */
static void check_outputs(const subject *t, fds_lane *const lanes[3]) {
    size_t count = t->s.count, classes = t->s.classes;
    double *logits = need(count * classes, sizeof *logits);
    double *probs = need(count * classes, sizeof *probs);
    float *got = need(count * classes, sizeof *got);
    for (size_t i = 0; i < count; i++) {
        double *row = logits + i * classes, sum = 0;
        memcpy(row, ref_forward(t->ref, t->wd, t->s.xd + i * t->s.size), classes * sizeof *row);
        for (size_t c = 0; c < classes; c++)
            sum += exp(row[c]);
        for (size_t c = 0; c < classes; c++)
            probs[i * classes + c] = exp(row[c]) / sum;
    }
    for (size_t i = 0; i < 3; i++) {
        if (!lanes[i])
            continue;
        fds_error err;
        expect_ok(fds_lane_logits(lanes[i], t->inputs, 0, count, t->w, got, &err), &err);
        double error = relative_error(got, logits, count * classes, 0);
        worst_logits = fmax(worst_logits, error);
        if (!(error <= 1e-5))
            fail_msg("%s, %s: logits are off by %g", fds_net_text(t->net), isa_names[i], error);
        expect_ok(fds_lane_predict(lanes[i], t->inputs, 0, count, t->w, got, &err), &err);
        error = relative_error(got, probs, count * classes, 0);
        if (!(error <= 1e-5))
            fail_msg("%s, %s: probabilities are off by %g", fds_net_text(t->net), isa_names[i],
                     error);
    }
    free(logits);
    free(probs);
    free(got);
}

/* The features, against the output of the layer before the last, or the sample itself. */
static void check_features(const subject *t, fds_lane *const lanes[3]) {
    const ref_layer *last = &t->ref->layer[t->ref->layers - 1];
    const size_t count = t->s.count, size = last->in_c * last->in_h * last->in_w;
    double *wanted_features = need(count * size, sizeof *wanted_features);
    float *got = need(count * size, sizeof *got);
    assert_int_equal(fds__net_features(t->net), size);
    for (size_t i = 0; i < count; i++) {
        const double *x = t->s.xd + i * t->s.size;
        ref_forward(t->ref, t->wd, x);
        memcpy(wanted_features + i * size, t->ref->layers > 1 ? last[-1].out : x,
               size * sizeof *wanted_features);
    }
    for (size_t i = 0; i < 3; i++) {
        if (!lanes[i])
            continue;
        fds_error err;
        expect_ok(fds__lane_features(lanes[i], t->inputs, 0, count, t->w, got, &err), &err);
        double error = relative_error(got, wanted_features, count * size, 0);
        if (!(error <= 1e-5))
            fail_msg("%s, %s: features are off by %g", fds_net_text(t->net), isa_names[i], error);
    }
    free(wanted_features);
    free(got);
}

static void every_network_agrees_with_the_reference(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(networks); i++) {
        const network *n = &networks[i];
        subject t = subject_make(n->text, n->shape, n->classes, MOST, i + 1);
        fds_lane *lanes[3];
        lanes_make(&t, lanes);
        check_outputs(&t, lanes);
        check_features(&t, lanes);
        check_gradients(n, &t, lanes, 1e-5);
        for (size_t j = 0; j < 3; j++)
            fds_lane_free(lanes[j]);
        subject_free(&t);
    }
    print_message("# worst error: logits %.1e, gradient %.1e, loss %.1e\n", worst_logits,
                  worst_gradient, worst_loss);
}

/* ---- finite differences ---- */

static double mean_loss(const subject *t, const double *weights) {
    double loss = 0;
    for (size_t i = 0; i < t->s.count; i++)
        loss += ref_loss(t->ref, weights, t->s.xd + i * t->s.size, t->s.labels[i], 1, NULL);
    return loss / (double)t->s.count;
}

/* A few places of one tensor: the engine's gradient, and the reference's own, against differences
 * of the reference's loss. A place next to a kink, where the differences to either side disagree,
 * says nothing. Returns how many did say something. */
static size_t check_differences(subject *t, fds_tensor_info tensor, const float *gradient,
                                const double *reference, size_t places, fds_rng *rng) {
    const double h = 1e-6;
    double here = mean_loss(t, t->wd), most = 0;
    size_t used = 0;
    for (size_t i = tensor.offset; i < tensor.offset + tensor.count; i++)
        most = fmax(most, fabs(reference[i]));
    for (size_t p = 0; p < places; p++) {
        size_t at = tensor.offset + fds_rng_below(rng, tensor.count);
        double kept = t->wd[at];
        t->wd[at] = kept + h;
        double right = (mean_loss(t, t->wd) - here) / h;
        t->wd[at] = kept - h;
        double left = (here - mean_loss(t, t->wd)) / h;
        t->wd[at] = kept;
        if (fabs(right - left) > 1e-3 * most + 1e-8)
            continue;
        used++;
        double central = (right + left) / 2, slack = 1e-9; /* of the subtraction */
        double engine_off = fabs(gradient[at] - central) - slack;
        if (!(engine_off <= 1e-3 * most) || fabs(reference[at] - central) > 1e-4 * most + slack)
            fail_msg("%s: %s at %zu: engine %g, reference %g, difference quotient %g",
                     fds_net_text(t->net), tensor.name, at - tensor.offset, gradient[at],
                     reference[at], central);
        if (most > 0)
            worst_difference = fmax(worst_difference, engine_off / most);
    }
    return used;
}

static void every_gradient_agrees_with_finite_differences(void **state) {
    (void)state;
    if (IS_SLOW_BUILD)
        SKIP_CASE("nothing but numbers: too slow under a sanitizer");
    size_t used = 0, tried = 0;
    for (size_t i = 0; i < COUNT(networks); i++) {
        const network *n = &networks[i];
        subject t = subject_make(n->text, n->shape, n->classes, n->is_slow ? 1 : 3, 100 + i);
        fds_lane *lane = subject_lane(&t);
        const uint32_t members[] = {0, 1, 2};
        float *gradient = need(t.weights, sizeof *gradient);
        double *reference = need(t.weights, sizeof *reference);
        lane_gradient(lane, &t, members, t.s.count, gradient);
        for (size_t s = 0; s < t.s.count; s++)
            ref_loss(t.ref, t.wd, t.s.xd + s * t.s.size, t.s.labels[s], 1.0 / (double)t.s.count,
                     reference);
        fds_rng rng = fds_rng_make(i, 1001, 0, 0);
        for (size_t j = 0; j < fds_net_tensors(t.net); j++) {
            tried += 24;
            used += check_differences(&t, fds_net_tensor(t.net, j), gradient, reference, 24, &rng);
        }
        fds_lane_free(lane);
        free(gradient);
        free(reference);
        subject_free(&t);
    }
    assert_true(used > tried * 9 / 10);
    print_message("# worst error: %.1e over %zu places\n", worst_difference, used);
}

/* ---- ties ---- */

/* Small whole numbers as weights and values make every sum exact, in float as in double, and equal
 * values in pooling windows and zeros before relu frequent: the rules for both decide the gradient.
 */
static void check_ties(const char *text, fds_shape shape, bool constant, uint64_t seed) {
    network n = {.text = text, .shape = shape, .classes = 3, .every_batch = true};
    subject t = subject_bare(text, shape, n.classes, seed);
    fds_rng rng = fds_rng_make(seed, 1002, 0, 0);
    for (size_t i = 0; i + 2 < fds_net_tensors(t.net); i++) { /* all but the last layer's */
        fds_tensor_info tensor = fds_net_tensor(t.net, i);
        for (size_t j = tensor.offset; j < tensor.offset + tensor.count; j++)
            t.wd[j] = t.w[j] = (float)fds_rng_below(&rng, 3) - 1;
    }
    t.s = samples_make(shape, n.classes, MOST);
    for (size_t i = 0; i < MOST; i++) {
        float value = (float)fds_rng_below(&rng, 3);
        for (size_t j = i * t.s.size; j < (i + 1) * t.s.size; j++)
            t.s.xd[j] = t.s.x[j] = constant ? value : (float)fds_rng_below(&rng, 3) - 1;
        t.s.labels[i] = (uint16_t)fds_rng_below(&rng, n.classes);
    }
    t.inputs = samples_inputs(&t.s, NULL, 0);
    fds_lane *lanes[3];
    lanes_make(&t, lanes);
    check_outputs(&t, lanes);
    check_gradients(&n, &t, lanes, 1e-5);
    for (size_t j = 0; j < 3; j++)
        fds_lane_free(lanes[j]);
    subject_free(&t);
}

static void ties_follow_the_first_maximum_and_zero_is_off(void **state) {
    (void)state;
    for (int constant = 0; constant < 2; constant++) {
        check_ties("conv:4x1,maxpool,fc:3", (fds_shape){2, 6, 6}, constant, 1);
        check_ties("conv:5x1,relu,maxpool:3,fc:3", (fds_shape){3, 7, 11}, constant, 2);
        check_ties("conv:3x3p1,maxpool,relu,fc:3", (fds_shape){1, 9, 8}, constant, 3);
        check_ties("conv:3x2p1,relu,maxpool,conv:4x3p2,maxpool,fc:3", (fds_shape){2, 9, 7},
                   constant, 4);
        check_ties("conv:32x1,relu,conv:33x3p1,relu,maxpool,fc:3", (fds_shape){1, 6, 7}, constant,
                   6);
        check_ties("fc:9,relu,fc:3", (fds_shape){7, 1, 1}, constant, 5);
    }
}

/* ---- what the calls promise around the arithmetic ---- */

static void wrong_arguments_are_refused(void **state) {
    (void)state;
    subject t = subject_make("fc:3", (fds_shape){4, 1, 1}, 3, 5, 1);
    subject other = subject_make("fc:3", (fds_shape){5, 1, 1}, 3, 5, 1);
    fds_lane *lane = subject_lane(&t);
    fds_error err = {0};
    float out[15];
    const uint32_t beyond[] = {5};
    assert_int_not_equal(fds_lane_logits(lane, t.inputs, 3, 3, t.w, out, &err), FDS_OK);
    assert_int_not_equal(fds_lane_predict(lane, t.inputs, SIZE_MAX, 2, t.w, out, &err), FDS_OK);
    assert_int_equal(fds_lane_predict(lane, t.inputs, 5, 0, t.w, out, &err), FDS_OK);
    assert_int_equal(fds_lane_predict(lane, other.inputs, 0, 1, t.w, out, &err), FDS_ERR_SHAPE);
    fds_train_params params = fds_train_params_default();
    fds_train_report report;
    assert_int_not_equal(
        fds_lane_train(lane, t.inputs, beyond, 1, &params, t.w, &report, NULL, &err), FDS_OK);
    assert_int_equal(
        fds_lane_train(lane, other.inputs, beyond, 0, &params, t.w, &report, NULL, &err),
        FDS_ERR_SHAPE);
    fds_lane_free(lane);
    fds_lane_free(NULL);
    fds_inputs_free(NULL);
    fds_net_free(NULL);
    subject_free(&t);
    subject_free(&other);
}

static void lanes_that_cannot_be_made_are_refused(void **state) {
    (void)state;
    subject t = subject_bare("fc:3", (fds_shape){4, 1, 1}, 3, 1);
    fds_lane *lane = NULL;
    fds_error err = {0};
    setenv("FDS_ISA", "mmx", 1);
    assert_int_equal(fds_lane_create(t.net, &lane, &err), FDS_ERR_UNSUPPORTED);
    expect_in(err.text, "mmx");
    assert_null(lane);
    isa_reset();
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    fds_lane_free(subject_lane(&t));
    uint64_t calls = fds__fault_arm(FDS__FAULT_ALLOC, 0);
    for (uint64_t n = 1; n <= calls; n++) {
        fds__fault_arm(FDS__FAULT_ALLOC, n);
        assert_int_equal(fds_lane_create(t.net, &lane, &err), FDS_ERR_NOMEM);
    }
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    assert_null(lane);
    subject_free(&t);
}

static void initial_weights_are_uniform_within_the_fan_in(void **state) {
    (void)state;
    subject t = subject_bare("lenet5", (fds_shape){1, 28, 28}, 10, 1);
    float *again = need(t.weights, sizeof *again), *other = need(t.weights, sizeof *other);
    fds_net_init(t.net, 1, again);
    fds_net_init(t.net, 2, other);
    assert_memory_equal(again, t.w, t.weights * sizeof *again);
    size_t fan_in = 0;
    for (size_t i = 0; i < fds_net_tensors(t.net); i++) {
        fds_tensor_info tensor = fds_net_tensor(t.net, i);
        if (tensor.rank > 1)
            fan_in = tensor.count / tensor.dims[0];
        double bound = 1 / sqrt((double)fan_in), squares = 0, product = 0;
        for (size_t j = tensor.offset; j < tensor.offset + tensor.count; j++) {
            assert_true(fabs(t.wd[j]) <= bound * (1 + 1e-6));
            squares += t.wd[j] * t.wd[j] / bound / bound;
            product += t.wd[j] * (double)other[j] / bound / bound;
        }
        /* E[u^2] = 1/3 with variance 4/45; two seeds have nothing in common: variance 1/9 */
        double n = (double)tensor.count;
        assert_true(fabs(squares / n - 1.0 / 3) < 4 * sqrt(4 / 45.0 / n));
        assert_true(fabs(product / n) < 4 * sqrt(1 / 9.0 / n));
    }
    free(again);
    free(other);
    subject_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_network_agrees_with_the_reference),
        cmocka_unit_test(every_gradient_agrees_with_finite_differences),
        cmocka_unit_test(ties_follow_the_first_maximum_and_zero_is_off),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(lanes_that_cannot_be_made_are_refused),
        cmocka_unit_test(initial_weights_are_uniform_within_the_fan_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
