/* SPDX-License-Identifier: Apache-2.0
 * Losses of an explainer: gradients against finite differences, losses against their definition,
 * and both objectives against the closed-form regression of the least-squares values. */
#include "training_fixture.h"

#include <lapacke.h>

enum { PLAYERS = 13, LABELS = 3, BATCH = 4 }; /* nothing is a multiple of a vector */

static const toy_size gradient_size = {.inputs = 9,
                                       .validation = 2,
                                       .players = PLAYERS,
                                       .groups = 4,
                                       .classes = LABELS,
                                       .shape = {5, 1, 1},
                                       .sampler = FDS_SAMPLER_LEVERAGE,
                                       .coalitions = 60,
                                       .validation_coalitions = 20,
                                       .roughness = 0.2};

static learn_objective objective_for(const fds__training *training,
                                     const fds__explainer_params *params, uint32_t batch) {
    learn_objective objective;
    fds_error err;
    expect_ok(learn_objective_init(&objective, training, params, batch, &err), &err);
    return objective;
}

static double loss_at(learn_objective *objective, const uint32_t *inputs, const float *u,
                      float *gradient) {
    double loss;
    fds_error err;
    expect_ok(learn_objective_apply(objective, inputs, 3, 1, u, &loss, gradient, &err), &err);
    return loss;
}

/* ---- normalising ---- */

static void normalised_values_add_up_and_keep_their_differences(void **state) {
    (void)state;
    fds_rng rng = fds_rng_make(1, 99, 0, 0);
    for (size_t n = 1; n < 200; n += 7) {
        double values[200], before[200], sum = 0, total = uniform(&rng);
        for (size_t i = 0; i < n; i++)
            before[i] = values[i] = uniform(&rng);
        fds__normalise(total, n, values);
        for (size_t i = 0; i < n; i++) {
            sum += values[i];
            assert_true(fabs((values[i] - before[i]) - (values[0] - before[0])) < 1e-14);
        }
        assert_true(fabs(sum - total) < 1e-13);
    }
}

/* Whatever the network says, and in exact numbers where there are such. */
static void values_of_any_output_add_up(void **state) {
    (void)state;
    toy t;
    toy_make(&t, &gradient_size);
    fds_rng rng = fds_rng_make(2, 99, 0, 0);
    for (int by_group = 0; by_group < 2; by_group++) {
        fds__explainer_params params = {.is_by_group = by_group};
        learn_objective objective = objective_for(&t.training, &params, BATCH);
        size_t outputs = objective.outputs;
        assert_int_equal(outputs, LABELS * (by_group ? 4 : PLAYERS));
        float *u = need(outputs, sizeof *u);
        double phi[LABELS * PLAYERS];
        for (size_t i = 0; i < outputs; i++)
            u[i] = (float)(10 * uniform(&rng));
        learn_values(&objective, 5, u, phi);
        for (size_t y = 0; y < LABELS; y++) {
            double sum = 0, total = t.full[5 * LABELS + y] - t.empty[5 * LABELS + y];
            for (size_t i = 0; i < PLAYERS; i++)
                sum += phi[y * PLAYERS + i];
            assert_true(fabs(sum - total) < 1e-13);
            for (size_t i = 1; by_group && i < PLAYERS; i++)
                for (size_t j = 0; j < i; j++)
                    if (fds_groups_of(t.groups, i) == fds_groups_of(t.groups, j))
                        assert_true(phi[y * PLAYERS + i] == phi[y * PLAYERS + j]);
        }
        free(u);
        learn_objective_free(&objective);
    }
    double whole[] = {1, 2, 3, 6};
    fds__normalise(4, 4, whole);
    const double wanted[] = {-1, 0, 1, 4};
    assert_memory_equal(whole, wanted, sizeof whole);
    toy_free(&t);
}

/* ---- gradients ---- */

/* u and the step are exact in float; the losses are quadratic but for the penalty, for which the
 * step is small. */
static void gradients_agree_with_differences(const toy *t, const fds__explainer_params *params,
                                             const char *name) {
    static const uint32_t inputs[BATCH] = {6, 0, 3, 2};
    learn_objective objective = objective_for(&t->training, params, BATCH);
    size_t count = BATCH * objective.outputs;
    float *u = need(count, sizeof *u), *gradient = need(count, sizeof *u),
          *unused = need(count, sizeof *u);
    fds_rng rng = fds_rng_make(3, 99, 0, 0);
    for (size_t i = 0; i < count; i++)
        u[i] = (float)((double)fds_rng_below(&rng, 4096) / 1024 - 2);
    double most_slope = 0, most_off = 0, step = 0x1p-10;
    loss_at(&objective, inputs, u, gradient);
    for (size_t i = 0; i < count; i++) {
        float kept = u[i];
        u[i] = (float)(kept + step);
        double up = loss_at(&objective, inputs, u, unused);
        u[i] = (float)(kept - step);
        double down = loss_at(&objective, inputs, u, unused);
        u[i] = kept;
        most_slope = fmax(most_slope, fabs((double)gradient[i]));
        most_off = fmax(most_off, fabs((up - down) / (2 * step) - (double)gradient[i]));
    }
    print_message("# %s: gradients up to %.3g, differences off by %.2g\n", name, most_slope,
                  most_off);
    assert_true(most_slope > 0);
    assert_true(most_off <= 1e-6 * most_slope);
    free(u);
    free(gradient);
    free(unused);
    learn_objective_free(&objective);
}

static void every_gradient_agrees_with_finite_differences(void **state) {
    (void)state;
    toy t;
    toy_make(&t, &gradient_size);
    static const struct {
        const char *name;
        fds__objective objective;
        bool is_by_group;
        float gamma;
        uint32_t draws;
    } cases[] = {{"closed", FDS__OBJECTIVE_CLOSED, false, 0, 0},
                 {"closed, by group", FDS__OBJECTIVE_CLOSED, true, 0, 0},
                 {"closed, gamma", FDS__OBJECTIVE_CLOSED, false, 0.7f, 0},
                 {"paper", FDS__OBJECTIVE_PAPER, false, 0, 6},
                 {"paper, every row", FDS__OBJECTIVE_PAPER, false, 0, 60},
                 {"paper, by group", FDS__OBJECTIVE_PAPER, true, 0, 6},
                 {"paper, gamma", FDS__OBJECTIVE_PAPER, false, 0.7f, 6}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        fds__explainer_params params = {.objective = cases[i].objective,
                                        .is_by_group = cases[i].is_by_group,
                                        .gamma = cases[i].gamma,
                                        .draws = cases[i].draws,
                                        .seed = 5};
        gradients_agree_with_differences(&t, &params, cases[i].name);
    }
    toy_free(&t);
}

/* ---- factors ---- */

/* Orthonormal and orthogonal to 1: rows of the discrete cosine transform, as many as there can be. */
static float *cosines(size_t n) {
    float *h = need(n * (n - 1), sizeof *h);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k + 1 < n; k++)
            h[i * (n - 1) + k] =
                (float)(sqrt(2.0 / (double)n) *
                        cos(acos(-1) * (double)(k + 1) * ((double)i + 0.5) / (double)n));
    return h;
}

/* The training with factors, whose targets are coefficients; the caller frees both. */
static fds__training factorised(const toy *t, float **h, float **targets) {
    fds__training f = t->training;
    size_t n = PLAYERS, columns = f.inputs * f.classes;
    *h = cosines(n);
    *targets = need(columns * (n - 1), sizeof **targets);
    for (size_t c = 0; c < columns; c++)
        for (size_t k = 0; k + 1 < n; k++) {
            double sum = 0;
            for (size_t i = 0; i < n; i++)
                sum += (double)(*h)[i * (n - 1) + k] * (double)t->targets[c * n + i];
            (*targets)[c * (n - 1) + k] = (float)sum;
        }
    f.factors = *h;
    f.rank = n - 1;
    f.targets = *targets;
    f.groups = NULL;
    return f;
}

/* The same values, as outputs of a full head and as coefficients, have the same loss; and the gradient
 * by coefficients agrees with differences. */
static void factors_have_the_loss_of_their_values(void **state) {
    (void)state;
    static const uint32_t inputs[BATCH] = {6, 0, 3, 2};
    toy t;
    toy_make(&t, &gradient_size);
    toy f = t;
    float *h, *targets;
    f.training = factorised(&t, &h, &targets);
    for (int kind = 0; kind < 3; kind++) {
        fds__explainer_params params = {.objective =
                                            kind ? FDS__OBJECTIVE_PAPER : FDS__OBJECTIVE_CLOSED,
                                        .draws = kind == 1 ? 6 : 60,
                                        .seed = 5};
        learn_objective full = objective_for(&t.training, &params, BATCH);
        params.rank = PLAYERS - 1;
        gradients_agree_with_differences(&f, &params, kind ? "factors, paper" : "factors, closed");
        learn_objective less = objective_for(&f.training, &params, BATCH);
        float *u = need(BATCH * full.outputs, sizeof *u),
              *c = need(BATCH * less.outputs, sizeof *c),
              *unused = need(BATCH * full.outputs, sizeof *u);
        fds_rng rng = fds_rng_make(8, 99, 0, 0);
        for (size_t i = 0; i < BATCH * full.outputs; i++)
            u[i] = (float)uniform(&rng);
        for (size_t i = 0; i < BATCH * less.outputs; i++) {
            size_t column = i / (PLAYERS - 1), k = i % (PLAYERS - 1);
            double sum = 0;
            for (size_t p = 0; p < PLAYERS; p++)
                sum +=
                    (double)h[p * (PLAYERS - 1) + k] * full.scale * (double)u[column * PLAYERS + p];
            c[i] = (float)(sum / less.scale);
        }
        double a = loss_at(&full, inputs, u, unused), b = loss_at(&less, inputs, c, unused);
        if (!kind) { /* means over players and over factors, each in its own unit */
            a *= full.divisor * PLAYERS;
            b *= less.divisor * (PLAYERS - 1);
        }
        assert_true(fabs(a - b) < 1e-5 * a);
        learn_objective_free(&full);
        learn_objective_free(&less);
        free(u);
        free(c);
        free(unused);
    }
    free(h);
    free(targets);
    toy_free(&t);
}

/* The norm has no slope where all members agree, and none that means anything where they differ by
 * rounding: there the gradient must not depend on it. */
static void the_penalty_is_quiet_where_members_agree_but_for_rounding(void **state) {
    (void)state;
    toy t;
    toy_make(&t, &gradient_size);
    static const uint32_t inputs[BATCH] = {0, 1, 2, 3};
    float u[BATCH * LABELS * PLAYERS] = {0}, with[COUNT(u)], without[COUNT(u)];
    for (int rounded = 0; rounded < 2; rounded++) {
        for (size_t i = 0; rounded && i < COUNT(u); i++)
            u[i] = i % 2 ? 1 : 1 + 0x1p-23f;
        fds__explainer_params params = {.objective = FDS__OBJECTIVE_PAPER, .draws = 8, .gamma = 3};
        learn_objective objective = objective_for(&t.training, &params, BATCH);
        double a = loss_at(&objective, inputs, u, with);
        learn_objective_free(&objective);
        params.gamma = 0;
        objective = objective_for(&t.training, &params, BATCH);
        double b = loss_at(&objective, inputs, u, without);
        learn_objective_free(&objective);
        assert_true(fabs(a - b) < 1e-12);
        for (size_t i = 0; i < COUNT(u); i++)
            assert_true(fabs((double)(with[i] - without[i])) < 1e-6);
    }
    toy_free(&t);
}

static void cross_entropy_and_its_gradient(void **state) {
    (void)state;
    enum { COUNT_ = 3, CLASSES = 5 };
    uint16_t labels[] = {4, 0, 2, 2};
    fds__training training = {.labels = labels, .classes = CLASSES};
    static const uint32_t inputs[COUNT_] = {3, 0, 1};
    float u[COUNT_ * CLASSES], gradient[COUNT(u)], unused[COUNT(u)];
    for (size_t i = 0; i < COUNT(u); i++)
        u[i] = (float)((int)(i * 37 % 19) - 9) / 8 + (i < CLASSES ? 600 : 0);
    double loss = learn_cross_entropy(&training, inputs, COUNT_, u, gradient), wanted = 0;
    for (size_t b = 0; b < COUNT_; b++) {
        double sum = 0;
        for (size_t y = 0; y < CLASSES; y++)
            sum += exp((double)u[b * CLASSES + y] - (double)u[b * CLASSES + labels[inputs[b]]]);
        wanted += log(sum) / COUNT_;
    }
    assert_true(fabs(loss - wanted) < 1e-12);
    for (size_t i = 0; i < COUNT(u); i++) {
        float kept = u[i], step = 0x1p-7f;
        u[i] = kept + step;
        double up = learn_cross_entropy(&training, inputs, COUNT_, u, unused);
        u[i] = kept - step;
        double down = learn_cross_entropy(&training, inputs, COUNT_, u, unused);
        u[i] = kept;
        assert_true(fabs((up - down) / (2 * (double)step) - (double)gradient[i]) < 1e-5);
    }
}

/* ---- what is drawn ---- */

/* The mean over many steps is the loss over every row by weight; complements come in pairs. */
static void draws_have_the_mean_of_the_whole_plan(void **state) {
    (void)state;
    toy t;
    toy_make(&t, &gradient_size);
    enum { DRAWS = 20, STEPS = 3000 };
    static const uint32_t inputs[BATCH] = {1, 2, 3, 4};
    float u[BATCH * LABELS * PLAYERS], gradient[COUNT(u)];
    for (size_t i = 0; i < COUNT(u); i++)
        u[i] = (float)(i % 7) - 3;
    fds__explainer_params params = {.objective = FDS__OBJECTIVE_PAPER, .draws = 60};
    learn_objective all = objective_for(&t.training, &params, BATCH);
    params.draws = DRAWS;
    learn_objective some = objective_for(&t.training, &params, BATCH);
    double wanted = loss_at(&all, inputs, u, gradient), sum = 0, square = 0, loss, again;
    fds_error err;
    for (uint32_t step = 0; step < STEPS; step++) {
        expect_ok(learn_objective_apply(&some, inputs, 0, step, u, &loss, gradient, &err), &err);
        sum += loss / STEPS;
        square += loss * loss / STEPS;
    }
    double error = sqrt((square - sum * sum) / STEPS);
    print_message("# mean loss of %d steps %.6g +- %.2g, of the whole plan %.6g\n", STEPS, sum,
                  error, wanted);
    assert_true(fabs(sum - wanted) < 4 * error);
    /* the same step draws the same, another one something else */
    expect_ok(learn_objective_apply(&some, inputs, 0, STEPS - 1, u, &again, gradient, &err), &err);
    assert_true(again == loss);
    expect_ok(learn_objective_apply(&some, inputs, 1, STEPS - 1, u, &again, gradient, &err), &err);
    assert_true(again != loss);
    learn_objective_free(&all);
    learn_objective_free(&some);
    toy_free(&t);
}

/* From the definition, in plain loops. */
static void the_paper_loss_is_what_it_says(void **state) {
    (void)state;
    toy t;
    toy_make(&t, &gradient_size);
    static const uint32_t inputs[BATCH] = {6, 5, 0, 1};
    float u[BATCH * LABELS * PLAYERS], gradient[COUNT(u)];
    for (size_t i = 0; i < COUNT(u); i++)
        u[i] = (float)(i % 5) / 4 - 0.5f;
    fds__explainer_params params = {.objective = FDS__OBJECTIVE_PAPER, .draws = 1000};
    learn_objective objective = objective_for(&t.training, &params, BATCH);
    double got = loss_at(&objective, inputs, u, gradient), sum = 0, weights = 0, square = 0;
    double phi[LABELS * PLAYERS];
    for (size_t i = 0; i < 7 * LABELS; i++)
        square += (t.full[i] - t.empty[i]) * (t.full[i] - t.empty[i]) / (7 * LABELS);
    for (size_t row = 2; row < fds_plan_rows(t.plan); row++)
        weights += fds_plan_weight(t.plan, row);
    for (size_t b = 0; b < BATCH; b++) {
        learn_values(&objective, inputs[b], u + b * LABELS * PLAYERS, phi);
        for (size_t y = 0; y < LABELS; y++)
            for (size_t row = 2; row < fds_plan_rows(t.plan); row++) {
                size_t column = inputs[b] * LABELS + y;
                double off = t.values.v[row * t.rows.columns + column] - t.empty[column];
                for (size_t i = 0; i < PLAYERS; i++)
                    off -= fds_coalition_has(fds_plan_coalition(t.plan, row), i)
                               ? phi[y * PLAYERS + i]
                               : 0;
                sum += fds_plan_weight(t.plan, row) * off * off;
            }
    }
    double wanted = sum / (weights * BATCH * LABELS * square);
    assert_true(fabs(got / wanted - 1) < 1e-12);
    learn_objective_free(&objective);
    toy_free(&t);
}

/* ---- the same minimiser ---- */

enum { FEATURES = 4, INPUTS = 44, HELD = 4, TRAIN = INPUTS - HELD, N = 7, CLASSES = 2 };

static const toy_size linear_size = {.inputs = INPUTS,
                                     .validation = HELD,
                                     .players = N,
                                     .classes = CLASSES,
                                     .shape = {FEATURES, 1, 1},
                                     .sampler = FDS_SAMPLER_PAIRED,
                                     .coalitions = 40,
                                     .validation_coalitions = 10,
                                     .roughness = 1};

/* Regression of the targets, less the even share of what they add up to, on (x, 1). */
static void regress(const toy *t, double *values) {
    double design[INPUTS * (FEATURES + 1)], rest[INPUTS * CLASSES * N], fitted[COUNT(rest)];
    double room[TRAIN * (FEATURES + 1)];
    for (size_t i = 0; i < INPUTS; i++) {
        for (size_t f = 0; f < FEATURES; f++)
            design[i * (FEATURES + 1) + f] = t->x[i * FEATURES + f];
        design[i * (FEATURES + 1) + FEATURES] = 1;
        for (size_t j = 0; j < CLASSES * N; j++) {
            size_t column = i * CLASSES + j / N;
            rest[i * CLASSES * N + j] =
                t->targets[i * CLASSES * N + j] - (t->full[column] - t->empty[column]) / N;
        }
    }
    memcpy(fitted, rest, sizeof rest);
    memcpy(room, design, sizeof room);
    assert_int_equal(LAPACKE_dgels(LAPACK_ROW_MAJOR, 'N', TRAIN, FEATURES + 1, CLASSES * N, room,
                                   FEATURES + 1, fitted, CLASSES * N),
                     0);
    for (size_t i = 0; i < INPUTS; i++)
        for (size_t j = 0; j < CLASSES * N; j++) {
            size_t column = i * CLASSES + j / N;
            double sum = (t->full[column] - t->empty[column]) / N;
            for (size_t f = 0; f <= FEATURES; f++)
                sum += design[i * (FEATURES + 1) + f] * fitted[f * CLASSES * N + j];
            values[i * CLASSES * N + j] = sum;
        }
}

/* Full batches of Adam at a falling rate, from 0 to convergence. */
static void minimise(const toy *t, const fds__explainer_params *params, double *values) {
    enum { STEPS = 1500 };
    learn_objective objective = objective_for(&t->training, params, TRAIN);
    fds__deep_params about = {.network = "linear",
                              .head = FDS__HEAD_EXPLAIN,
                              .input = t->training.shape,
                              .outputs = CLASSES * N,
                              .batch = TRAIN,
                              .threads = 1};
    fds__deep *net = NULL;
    fds__deep_infer *infer = NULL;
    fds_error err;
    uint32_t inputs[TRAIN];
    static float u[INPUTS * CLASSES * N], gradient[TRAIN * CLASSES * N];
    for (uint32_t i = 0; i < TRAIN; i++)
        inputs[i] = i;
    expect_ok(fds__deep_create(&about, &net, &err), &err);
    for (int step = 0; step < STEPS; step++) {
        fds__adam adam = {.lr = (float)(0.05 * (1 + cos(acos(-1) * step / STEPS)) / 2),
                          .beta1 = 0.9f,
                          .beta2 = 0.999f,
                          .epsilon = 1e-8f};
        expect_ok(fds__deep_forward(net, t->x, NULL, u, &err), &err);
        loss_at(&objective, inputs, u, gradient);
        expect_ok(fds__deep_backward(net, gradient, &err), &err);
        expect_ok(fds__deep_step(net, &adam, &err), &err);
    }
    expect_ok(fds__deep_infer_create(net, 16, &infer, &err), &err);
    expect_ok(fds__deep_infer_run(infer, t->x, INPUTS, u, &err), &err);
    for (size_t i = 0; i < INPUTS; i++)
        learn_values(&objective, i, u + i * CLASSES * N, values + i * CLASSES * N);
    fds__deep_infer_free(infer);
    fds__deep_free(net);
    learn_objective_free(&objective);
}

/* v has a large part that no linear explainer can follow: the losses are far from 0 and from each
 * other, and yet they agree on the minimiser, the regression of the least-squares values. */
static void both_objectives_reach_the_regression_of_the_values(void **state) {
    (void)state;
    toy t;
    toy_make(&t, &linear_size);
    static double wanted[INPUTS * CLASSES * N], got[COUNT(wanted)];
    regress(&t, wanted);
    double norm = 0;
    for (size_t i = 0; i < COUNT(wanted); i++)
        norm += wanted[i] * wanted[i];
    for (fds__objective kind = FDS__OBJECTIVE_CLOSED; kind <= FDS__OBJECTIVE_PAPER; kind++) {
        fds__explainer_params params = {.objective = kind, .draws = 40};
        minimise(&t, &params, got);
        double off = 0;
        for (size_t i = 0; i < COUNT(wanted); i++)
            off += (got[i] - wanted[i]) * (got[i] - wanted[i]);
        print_message("# %s: relative distance to the regression %.2g\n",
                      kind == FDS__OBJECTIVE_CLOSED ? "closed" : "paper", sqrt(off / norm));
        assert_true(sqrt(off / norm) < 1e-3);
    }
    toy_free(&t);
}

/* ---- scales ---- */

static void the_start_is_the_mean_target(void **state) {
    (void)state;
    toy t;
    toy_make(&t, &gradient_size);
    for (int by_group = 0; by_group < 2; by_group++) {
        fds__explainer_params params = {.is_by_group = by_group};
        learn_objective objective = objective_for(&t.training, &params, 1);
        size_t each = objective.outputs / LABELS;
        for (size_t y = 0; y < LABELS; y++)
            for (size_t g = 0; g < each; g++) {
                double mean = 0;
                for (size_t x = 0; x < 7; x++)
                    for (size_t i = 0; i < PLAYERS; i++)
                        if ((by_group ? fds_groups_of(t.groups, i) : i) == g)
                            mean += (double)t.targets[(x * LABELS + y) * PLAYERS + i] / 7;
                double start = objective.scale * (double)objective.start[y * each + g];
                assert_true(fabs(start - mean) < 1e-6);
            }
        learn_objective_free(&objective);
    }
    toy_free(&t);
}

/* A constant start has a loss of about 1 in the closed objective: that is its unit. */
static void the_unit_of_the_closed_loss_is_what_a_constant_reaches(void **state) {
    (void)state;
    toy t;
    toy_make(&t, &gradient_size);
    fds__explainer_params params = {.objective = FDS__OBJECTIVE_CLOSED};
    learn_objective objective = objective_for(&t.training, &params, 7);
    uint32_t inputs[] = {0, 1, 2, 3, 4, 5, 6};
    float u[7 * LABELS * PLAYERS], gradient[COUNT(u)];
    for (size_t x = 0; x < 7; x++)
        memcpy(u + x * LABELS * PLAYERS, objective.start, LABELS * PLAYERS * sizeof *u);
    double loss = loss_at(&objective, inputs, u, gradient);
    assert_true(loss > 0.5 && loss <= 1 + 1e-6);
    learn_objective_free(&objective);
    toy_free(&t);
}

/* A game in which nothing ever happens has no scale of its own. */
static void a_game_without_values_has_finite_losses(void **state) {
    (void)state;
    toy t;
    toy_make(&t, &gradient_size);
    size_t columns = t.rows.columns;
    memset(t.full, 0, columns * sizeof *t.full);
    memset(t.empty, 0, columns * sizeof *t.empty);
    memset(t.targets, 0, columns * PLAYERS * sizeof *t.targets);
    memset(t.values.v, 0, fds_plan_rows(t.plan) * columns * sizeof *t.values.v);
    static const uint32_t inputs[BATCH] = {0, 1, 2, 3};
    float u[BATCH * LABELS * PLAYERS] = {0}, gradient[COUNT(u)];
    for (fds__objective kind = FDS__OBJECTIVE_CLOSED; kind <= FDS__OBJECTIVE_PAPER; kind++) {
        fds__explainer_params params = {.objective = kind, .draws = 4};
        learn_objective objective = objective_for(&t.training, &params, BATCH);
        assert_true(loss_at(&objective, inputs, u, gradient) == 0);
        learn_objective_free(&objective);
    }
    toy_free(&t);
}

static void losses_that_are_not_finite_are_told(void **state) {
    (void)state;
    toy t;
    toy_make(&t, &gradient_size);
    static const uint32_t inputs[BATCH] = {0, 1, 2, 3};
    float u[BATCH * LABELS * PLAYERS] = {0}, gradient[COUNT(u)];
    u[3] = INFINITY;
    fds__explainer_params params = {.objective = FDS__OBJECTIVE_CLOSED};
    learn_objective objective = objective_for(&t.training, &params, BATCH);
    double loss;
    fds_error err = {0};
    expect_error(learn_objective_apply(&objective, inputs, 6, 0, u, &loss, gradient, &err),
                 FDS_ERR_DIVERGED, &err, "epoch 7");
    learn_objective_free(&objective);
    toy_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normalised_values_add_up_and_keep_their_differences),
        cmocka_unit_test(values_of_any_output_add_up),
        cmocka_unit_test(every_gradient_agrees_with_finite_differences),
        cmocka_unit_test(factors_have_the_loss_of_their_values),
        cmocka_unit_test(the_penalty_is_quiet_where_members_agree_but_for_rounding),
        cmocka_unit_test(cross_entropy_and_its_gradient),
        cmocka_unit_test(draws_have_the_mean_of_the_whole_plan),
        cmocka_unit_test(the_paper_loss_is_what_it_says),
        cmocka_unit_test(both_objectives_reach_the_regression_of_the_values),
        cmocka_unit_test(the_start_is_the_mean_target),
        cmocka_unit_test(the_unit_of_the_closed_loss_is_what_a_constant_reaches),
        cmocka_unit_test(a_game_without_values_has_finite_losses),
        cmocka_unit_test(losses_that_are_not_finite_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
