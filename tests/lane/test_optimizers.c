/* SPDX-License-Identifier: Apache-2.0
 * A few steps of each optimizer against the formulas (those of PyTorch), computed here in double
 * from the reference's gradients:
 *   g <- g + decay w
 *   SGD:   v <- mu v + g (v = g at the first step);  w <- w - lr v
 *   Adam:  m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2;
 *          w <- w - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon) */
#include "fixture.h"

typedef struct {
    double *w, *m, *v; /* (weights) */
    bool *is_doubtful; /* a gradient so small that its float has no certain sign */
    double first_loss, last_loss;
} answer;

static void sgd_step(const fds_train_params *p, size_t n, const double *g, answer *a) {
    for (size_t i = 0; i < n; i++) {
        double d = g[i] + (double)p->weight_decay * a->w[i];
        a->m[i] = (double)p->momentum * a->m[i] + d;
        a->w[i] -= (double)p->lr * a->m[i];
    }
}

static void adam_step(const fds_train_params *p, size_t n, const double *g, unsigned t, answer *a) {
    double b1 = (double)p->beta1, b2 = (double)p->beta2;
    for (size_t i = 0; i < n; i++) {
        double d = g[i] + (double)p->weight_decay * a->w[i];
        a->m[i] = b1 * a->m[i] + (1 - b1) * d;
        a->v[i] = b2 * a->v[i] + (1 - b2) * d * d;
        a->w[i] -= (double)p->lr * (a->m[i] / (1 - pow(b1, t))) /
                   (sqrt(a->v[i] / (1 - pow(b2, t))) + (double)p->epsilon);
    }
}

/* Trains the reference on all samples, in the order that fds_inputs_order gives. */
static answer simulate(const subject *t, const fds_train_params *p) {
    answer a = {need(t->weights, sizeof(double)),
                need(t->weights, sizeof(double)),
                need(t->weights, sizeof(double)),
                need(t->weights, sizeof(bool)),
                0,
                0};
    memcpy(a.w, t->wd, t->weights * sizeof *a.w);
    double *g = need(t->weights, sizeof *g);
    uint32_t members[64], order[64];
    unsigned step = 0;
    fds_error err;
    for (uint32_t i = 0; i < t->s.count; i++)
        members[i] = i;
    for (uint32_t epoch = 0; epoch < p->epochs; epoch++) {
        double loss = 0;
        expect_ok(fds_inputs_order(t->inputs, members, t->s.count, p->seed, epoch, order, &err),
                  &err);
        for (size_t first = 0; first < t->s.count; first += p->batch) {
            size_t size = MIN((size_t)p->batch, t->s.count - first);
            memset(g, 0, t->weights * sizeof *g);
            for (size_t i = first; i < first + size; i++)
                loss += ref_loss(t->ref, a.w, t->s.xd + order[i] * t->s.size, t->s.labels[order[i]],
                                 1.0 / (double)size, g);
            double most = 0;
            for (size_t i = 0; i < t->weights; i++)
                most = fmax(most, fabs(g[i]));
            for (size_t i = 0; i < t->weights; i++)
                a.is_doubtful[i] |= g[i] != 0 && fabs(g[i]) < 1e-3 * most;
            if (p->optimizer == FDS_OPTIMIZER_SGD)
                sgd_step(p, t->weights, g, &a);
            else
                adam_step(p, t->weights, g, ++step, &a);
        }
        a.last_loss = loss / (double)t->s.count;
        if (epoch == 0)
            a.first_loss = a.last_loss;
    }
    free(g);
    return a;
}

/* The way that the weights went, engine against formula, relative to the longest way. */
static void check(const char *text, fds_shape shape, fds_train_params p, double tolerance) {
    subject t = subject_make(text, shape, 3, 7, 11);
    answer a = simulate(&t, &p);
    for (size_t k = 0; k < COUNT(isa_names); k++) {
        if (!isa_use(isa_names[k]))
            continue;
        fds_lane *lane = subject_lane(&t);
        float *w = need(t.weights, sizeof *w);
        memcpy(w, t.w, t.weights * sizeof *w);
        const uint32_t members[] = {3, 1, 0, 6, 2, 5, 4};
        fds_train_report report;
        fds_error err;
        expect_ok(fds_lane_train(lane, t.inputs, members, 7, &p, w, &report, NULL, &err), &err);
        double way = 0, off = 0;
        size_t compared = 0;
        for (size_t i = 0; i < t.weights; i++) {
            if (p.optimizer == FDS_OPTIMIZER_ADAM && a.is_doubtful[i])
                continue;
            compared++;
            way = fmax(way, fabs(a.w[i] - t.wd[i]));
            off = fmax(off, fabs(a.w[i] - (double)w[i]));
        }
        assert_true(compared > t.weights / 2);
        if (!(off <= tolerance * way))
            fail_msg("%s, %s: off by %g of %g", text, isa_names[k], off, way);
        assert_int_equal(report.epochs, p.epochs);
        assert_false(report.converged);
        assert_true(fabs((double)report.first_loss - a.first_loss) < 1e-5 * (1 + a.first_loss));
        assert_true(fabs((double)report.last_loss - a.last_loss) < 1e-4 * (1 + a.last_loss));
        free(w);
        fds_lane_free(lane);
    }
    isa_reset();
    free(a.w);
    free(a.m);
    free(a.v);
    free(a.is_doubtful);
    subject_free(&t);
}

static void check_all(fds_train_params p, double tolerance) {
    p.batch = 3; /* of 7 samples: 3, 3, 1 */
    p.seed = 5;
    p.epochs = 1;
    check("fc:classes", (fds_shape){13, 1, 1}, p, tolerance);
    p.epochs = 3;
    check("fc:9,relu,fc:classes", (fds_shape){13, 1, 1}, p, tolerance);
    check("conv:5x3p1,relu,maxpool,fc:classes", (fds_shape){2, 7, 5}, p, tolerance);
    p.batch = 100; /* more than all samples: one step per epoch */
    check("fc:9,relu,fc:classes", (fds_shape){13, 1, 1}, p, tolerance);
    p.batch = 1;
    check("fc:classes", (fds_shape){13, 1, 1}, p, tolerance);
}

static fds_train_params sgd(float lr, float momentum, float decay) {
    fds_train_params p = fds_train_params_default();
    p.optimizer = FDS_OPTIMIZER_SGD;
    p.lr = lr;
    p.momentum = momentum;
    p.weight_decay = decay;
    return p;
}

static fds_train_params adam(float lr, float epsilon, float decay) {
    fds_train_params p = fds_train_params_default();
    p.lr = lr;
    p.epsilon = epsilon;
    p.weight_decay = decay;
    return p;
}

static void sgd_follows_the_gradient(void **state) {
    (void)state;
    check_all(sgd(0.05f, 0, 0), 1e-4);
}
static void sgd_with_momentum_keeps_its_speed(void **state) {
    (void)state;
    check_all(sgd(0.05f, 0.9f, 0), 1e-4);
}
static void sgd_adds_the_decay_to_the_gradient(void **state) {
    (void)state;
    check_all(sgd(0.05f, 0, 0.3f), 1e-4);
    check_all(sgd(0.05f, 0.7f, 0.3f), 1e-4);
}
static void adam_corrects_its_bias(void **state) {
    (void)state;
    check_all(adam(1e-3f, 1e-8f, 0), 2e-3);
}
static void adam_adds_epsilon_outside_the_root(void **state) {
    (void)state;
    check_all(adam(0.01f, 0.1f, 0), 1e-4);
    check_all(adam(0.01f, 3e-3f, 0), 1e-3);
}
static void adam_adds_the_decay_to_the_gradient(void **state) {
    (void)state;
    check_all(adam(0.01f, 0.1f, 0.5f), 1e-4);
}
static void adam_takes_other_betas(void **state) {
    (void)state;
    fds_train_params p = adam(0.01f, 0.1f, 0);
    p.beta1 = 0.5f;
    p.beta2 = 0.8f;
    check_all(p, 1e-4);
    p.beta1 = 0;
    p.beta2 = 0;
    check_all(p, 1e-4);
}

/* The second training with a lane starts from nothing: no momentum is left from the first. */
static void no_state_is_left_from_one_training_to_the_next(void **state) {
    (void)state;
    const fds_train_params params[] = {sgd(0.05f, 0.9f, 0), adam(0.01f, 1e-8f, 0)};
    for (size_t k = 0; k < COUNT(params); k++) {
        subject t =
            subject_make("conv:5x3p1,relu,maxpool,fc:classes", (fds_shape){2, 7, 5}, 3, 7, 11);
        fds_lane *lane = subject_lane(&t);
        const uint32_t members[] = {0, 1, 2, 3, 4, 5, 6};
        float *first = need(t.weights, sizeof *first), *second = need(t.weights, sizeof *second);
        memcpy(first, t.w, t.weights * sizeof *first);
        memcpy(second, t.w, t.weights * sizeof *second);
        fds_error err;
        expect_ok(fds_lane_train(lane, t.inputs, members, 7, &params[k], first, NULL, NULL, &err),
                  &err);
        expect_ok(fds_lane_train(lane, t.inputs, members, 7, &params[k], second, NULL, NULL, &err),
                  &err);
        assert_memory_equal(first, second, t.weights * sizeof *first);
        assert_memory_not_equal(first, t.w, t.weights * sizeof *first);
        free(first);
        free(second);
        fds_lane_free(lane);
        subject_free(&t);
    }
}

static void defaults_are_those_that_are_documented(void **state) {
    (void)state;
    fds_train_params p = fds_train_params_default();
    assert_int_equal(p.optimizer, FDS_OPTIMIZER_ADAM);
    assert_true(p.lr == 1e-3f && p.batch == 16 && p.epochs == 10 && !p.converge);
    assert_true(p.loss_bound == 0.01f && p.min_delta == 1e-4f && p.patience == 10);
    assert_true(p.beta1 == 0.9f && p.beta2 == 0.999f && p.epsilon == 1e-8f && p.weight_decay == 0);
    expect_ok(fds_train_params_check(&p, NULL), NULL);
}

static void every_wrong_parameter_is_named(void **state) {
    (void)state;
    const fds_train_params good = fds_train_params_default();
    struct {
        fds_train_params params;
        const char *word;
    } cases[32];
    size_t count = 0;
#define WRONG(field, value, named)           \
    do {                                     \
        cases[count].params = good;          \
        cases[count].params.field = (value); \
        cases[count++].word = (named);       \
    } while (0)
    WRONG(lr, 0, "lr");
    WRONG(lr, -1, "lr");
    WRONG(lr, NAN, "lr");
    WRONG(lr, INFINITY, "lr");
    WRONG(beta1, 1, "beta1");
    WRONG(beta1, -0.1f, "beta1");
    WRONG(beta2, 1, "beta2");
    WRONG(beta2, NAN, "beta2");
    WRONG(epsilon, -1, "epsilon");
    WRONG(epsilon, NAN, "epsilon");
    WRONG(weight_decay, -1, "decay");
    WRONG(weight_decay, NAN, "decay");
    WRONG(batch, 0, "batch");
    WRONG(epochs, 0, "epochs");
    WRONG(optimizer, (fds_optimizer)7, "optimi");
    for (size_t i = 0; i < count; i++) {
        fds_error err = {0};
        fds_status status = fds_train_params_check(&cases[i].params, &err);
        if (status != FDS_ERR_USAGE || !strstr(err.text, cases[i].word))
            fail_msg("case %zu, %s: %s: %s", i, cases[i].word, fds_status_name(status), err.text);
    }
    fds_error err = {0};
    fds_train_params p = sgd(0.1f, -0.5f, 0);
    assert_int_equal(fds_train_params_check(&p, &err), FDS_ERR_USAGE);
    expect_in(err.text, "momentum");
    p = good;
    p.converge = true;
    p.patience = 0;
    assert_int_equal(fds_train_params_check(&p, &err), FDS_ERR_USAGE);
    expect_in(err.text, "patience");
    p = good;
    p.converge = true;
    p.min_delta = NAN;
    assert_int_equal(fds_train_params_check(&p, &err), FDS_ERR_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sgd_follows_the_gradient),
        cmocka_unit_test(sgd_with_momentum_keeps_its_speed),
        cmocka_unit_test(sgd_adds_the_decay_to_the_gradient),
        cmocka_unit_test(adam_corrects_its_bias),
        cmocka_unit_test(adam_adds_epsilon_outside_the_root),
        cmocka_unit_test(adam_adds_the_decay_to_the_gradient),
        cmocka_unit_test(adam_takes_other_betas),
        cmocka_unit_test(no_state_is_left_from_one_training_to_the_next),
        cmocka_unit_test(defaults_are_those_that_are_documented),
        cmocka_unit_test(every_wrong_parameter_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
