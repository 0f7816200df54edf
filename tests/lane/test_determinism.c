/* SPDX-License-Identifier: Apache-2.0
 * Same seed, same bits: whatever the instruction set, the threads, the order of the work, the order
 * in which samples are named, and the neighbours of an image in a call. */
#include "fixture.h"

static const struct {
    const char *text;
    fds_shape shape;
    uint32_t classes;
} networks[] = {
    {"lenet5", {1, 28, 28}, 10},
    {"conv:5x3p1,relu,maxpool,conv:7x2,relu,fc:33,relu,fc:classes", {3, 13, 11}, 7},
    {"conv:17x5p2,maxpool,relu,fc:classes", {3, 17, 5}, 5},
    {"conv:33x3p2,relu,maxpool:3,fc:classes", {2, 8, 10}, 4},
    {"fc:130,relu,fc:17,relu,fc:classes", {13, 1, 1}, 65},
    {"logistic", {1, 9, 9}, 3},
    {"conv:3x1,maxpool,maxpool:3,fc:classes", {2, 15, 18}, 4}, /* windows drop rows and columns */
    {"conv:5x4p2,relu,conv:3x3p2,maxpool,relu,maxpool,fc:classes", {1, 9, 12}, 3},
    {"conv:32x2,relu,conv:35x3p1,relu,maxpool,conv:33x3p2,fc:classes", {2, 10, 8}, 4}, /* wide */
};

enum { FIRST = IS_SLOW_BUILD }; /* without lenet5 then */

static subject subject_of(size_t i, size_t count) {
    subject t = subject_bare(networks[i].text, networks[i].shape, networks[i].classes, i);
    t.s = samples_normal(networks[i].shape, networks[i].classes, count, i);
    t.inputs = samples_inputs(&t.s, NULL, 0);
    return t;
}

static fds_train_params quick(fds_optimizer optimizer) {
    fds_train_params p = fds_train_params_default();
    p.optimizer = optimizer;
    p.lr = optimizer == FDS_OPTIMIZER_SGD ? 0.01f : 1e-3f;
    p.momentum = optimizer == FDS_OPTIMIZER_SGD ? 0.9f : 0;
    p.weight_decay = 1e-3f;
    p.epochs = 2;
    p.batch = 16;
    p.seed = 3;
    return p;
}

/* Trains a copy of the initial weights on members 0 .. count-1, or on those given. */
static float *train(const subject *t, fds_lane *lane, const uint32_t *members, size_t count,
                    const fds_train_params *params, fds_train_report *report) {
    uint32_t *all = need(count, sizeof *all);
    for (size_t i = 0; i < count; i++)
        all[i] = members ? members[i] : (uint32_t)i;
    float *w = need(t->weights, sizeof *w);
    memcpy(w, t->w, t->weights * sizeof *w);
    fds_error err;
    expect_ok(fds_lane_train(lane, t->inputs, all, count, params, w, report, NULL, &err), &err);
    free(all);
    return w;
}

static void instruction_sets_give_the_same_bits(void **state) {
    (void)state;
    for (size_t i = FIRST; i < COUNT(networks); i++)
        for (int optimizer = 0; optimizer < 2; optimizer++) {
            subject t = subject_of(i, 37); /* batches of 16, 16 and 5 */
            fds_train_params params = quick((fds_optimizer)optimizer);
            params.batch = i % 2 ? 16 : 37;
            float *first = NULL;
            fds_train_report first_report = {0};
            size_t outputs = t.s.count * t.s.classes;
            float *first_probs = need(outputs, sizeof *first_probs);
            for (size_t k = 0; k < COUNT(isa_names); k++) {
                if (!isa_use(isa_names[k]))
                    continue;
                fds_lane *lane = subject_lane(&t);
                fds_train_report report = {0};
                fds_error err;
                float *w = train(&t, lane, NULL, t.s.count, &params, &report);
                float *probs = need(outputs, sizeof *probs);
                expect_ok(fds_lane_predict(lane, t.inputs, 0, t.s.count, w, probs, &err), &err);
                if (!first) {
                    first = w;
                    first_report = report;
                    memcpy(first_probs, probs, outputs * sizeof *probs);
                    assert_memory_not_equal(w, t.w, t.weights * sizeof *w);
                } else {
                    if (memcmp(first, w, t.weights * sizeof *w) != 0)
                        fail_msg("%s: weights of %s differ", networks[i].text, isa_names[k]);
                    assert_memory_equal(probs, first_probs, outputs * sizeof *probs);
                    assert_true(report.last_loss == first_report.last_loss);
                    assert_true(report.first_loss == first_report.first_loss);
                    free(w);
                }
                free(probs);
                fds_lane_free(lane);
            }
            isa_reset();
            free(first);
            free(first_probs);
            subject_free(&t);
        }
}

/* ---- threads ---- */

enum { MODELS = 24, PLAYERS = 30 };

typedef struct {
    const subject *t;
    fds_lane *lanes[8];    /* one per worker */
    uint32_t turn[MODELS]; /* job to model: any order */
    float *weights[MODELS];
    fds_train_params params;
} workshop;

/* Model number m is trained on a subset that is a function of m alone. */
static fds_status train_model(void *context, size_t job, unsigned worker, fds_error *err) {
    workshop *shop = context;
    uint32_t m = shop->turn[job], members[PLAYERS];
    size_t count = 0;
    for (uint32_t i = 0; i < PLAYERS; i++) {
        fds_rng rng = fds_rng_make(m, 1004, i, 0);
        if (fds_rng_below(&rng, 2))
            members[count++] = i;
    }
    memcpy(shop->weights[m], shop->t->w, shop->t->weights * sizeof(float));
    return fds_lane_train(shop->lanes[worker], shop->t->inputs, members, count, &shop->params,
                          shop->weights[m], NULL, NULL, err);
}

static void run_shop(workshop *shop, unsigned threads, uint64_t shuffle) {
    fds_rng rng = fds_rng_make(shuffle, 1005, 0, 0);
    fds_error err;
    for (uint32_t i = 0; i < MODELS; i++) {
        shop->turn[i] = i;
        shop->weights[i] = need(shop->t->weights, sizeof(float));
    }
    fds_rng_shuffle(&rng, shop->turn, MODELS);
    for (unsigned i = 0; i < threads; i++)
        shop->lanes[i] = subject_lane(shop->t);
    expect_ok(fds__pool_run(threads, MODELS, train_model, shop, "train", "models", NULL, &err),
              &err);
    for (unsigned i = 0; i < threads; i++)
        fds_lane_free(shop->lanes[i]);
}

static void threads_and_the_order_of_jobs_do_not_matter(void **state) {
    (void)state;
    subject t = subject_of(1, PLAYERS);
    workshop one = {.t = &t, .params = quick(FDS_OPTIMIZER_ADAM)};
    run_shop(&one, 1, 1);
    for (unsigned threads = 2; threads <= 4; threads++) {
        workshop many = {.t = &t, .params = quick(FDS_OPTIMIZER_ADAM)};
        run_shop(&many, threads, threads);
        for (size_t m = 0; m < MODELS; m++) {
            assert_memory_equal(many.weights[m], one.weights[m], t.weights * sizeof(float));
            free(many.weights[m]);
        }
    }
    for (size_t m = 0; m < MODELS; m++)
        free(one.weights[m]);
    subject_free(&t);
}

/* ---- members and order ---- */

static void members_may_be_named_in_any_order(void **state) {
    (void)state;
    subject t = subject_of(1, 40);
    fds_lane *lane = subject_lane(&t);
    fds_train_params params = quick(FDS_OPTIMIZER_ADAM);
    uint32_t members[21];
    for (uint32_t i = 0; i < COUNT(members); i++)
        members[i] = i * 7 % 40;
    float *first = train(&t, lane, members, COUNT(members), &params, NULL);
    for (uint64_t again = 0; again < 5; again++) {
        fds_rng rng = fds_rng_make(again, 1006, 0, 0);
        fds_rng_shuffle(&rng, members, COUNT(members));
        float *w = train(&t, lane, members, COUNT(members), &params, NULL);
        assert_memory_equal(w, first, t.weights * sizeof *w);
        free(w);
    }
    free(first);
    fds_lane_free(lane);
    subject_free(&t);
}

/* What counts is the sample's number in the dataset, not its place within inputs. */
static void inputs_may_be_laid_out_in_any_order(void **state) {
    (void)state;
    subject t = subject_of(1, 40);
    fds_lane *lane = subject_lane(&t);
    fds_train_params params = quick(FDS_OPTIMIZER_ADAM);
    const uint32_t members[] = {3, 9, 11, 20, 21, 22, 39};
    const uint32_t index[] = {22, 3, 39, 9, 21, 11, 20}; /* the same samples alone */
    float *first = train(&t, lane, members, COUNT(members), &params, NULL);
    subject alone = t;
    alone.inputs = samples_inputs(&t.s, index, COUNT(index));
    assert_int_equal(fds_inputs_count(alone.inputs), COUNT(index));
    float *w = train(&alone, lane, NULL, COUNT(index), &params, NULL);
    assert_memory_equal(w, first, t.weights * sizeof *w);
    free(w);
    free(first);
    fds_inputs_free(alone.inputs);
    fds_lane_free(lane);
    subject_free(&t);
}

static void the_order_of_a_subset_is_that_of_the_whole(void **state) {
    (void)state;
    enum { N = 200 };
    samples s = samples_normal((fds_shape){2, 1, 1}, 2, N, 1);
    fds_inputs *inputs = samples_inputs(&s, NULL, 0);
    uint32_t all[N], whole[N], before[N], subset[N], order[N];
    fds_error err;
    for (uint32_t i = 0; i < N; i++)
        all[i] = i;
    for (uint32_t epoch = 0; epoch < 5; epoch++) {
        expect_ok(fds_inputs_order(inputs, all, N, 7, epoch, whole, &err), &err);
        bool seen[N] = {false};
        for (size_t i = 0; i < N; i++) {
            assert_true(whole[i] < N && !seen[whole[i]]);
            seen[whole[i]] = true;
        }
        assert_memory_not_equal(whole, all, sizeof whole);
        if (epoch)
            assert_memory_not_equal(whole, before, sizeof whole); /* another epoch, another order */
        memcpy(before, whole, sizeof whole);
        fds_rng rng = fds_rng_make(epoch, 1007, 0, 0);
        size_t count = 0;
        bool in[N] = {false};
        for (uint32_t i = 0; i < N; i++)
            if ((in[i] = fds_rng_below(&rng, 3) == 0))
                subset[count++] = i;
        fds_rng_shuffle(&rng, subset, count);
        expect_ok(fds_inputs_order(inputs, subset, count, 7, epoch, order, &err), &err);
        size_t at = 0;
        for (size_t i = 0; i < N; i++)
            if (in[whole[i]])
                assert_int_equal(order[at++], whole[i]);
        assert_int_equal(at, count);
    }
    expect_ok(fds_inputs_order(inputs, all, N, 8, 0, order, &err), &err);
    expect_ok(fds_inputs_order(inputs, all, N, 7, 0, whole, &err), &err);
    assert_memory_not_equal(whole, order, sizeof whole); /* another seed, another order */
    expect_ok(fds_inputs_order(inputs, NULL, 0, 7, 0, NULL, &err), &err);
    const uint32_t beyond[] = {N};
    assert_int_not_equal(fds_inputs_order(inputs, beyond, 1, 7, 0, order, &err), FDS_OK);
    fds_inputs_free(inputs);
    samples_free(&s);
}

/* ---- prediction ---- */

static void neighbours_do_not_change_an_answer(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT(isa_names); k++)
        for (size_t i = FIRST; i < COUNT(networks); i++) {
            if (!isa_use(isa_names[k]))
                continue;
            size_t count = 35;
            subject t = subject_of(i, count);
            fds_lane *lane = subject_lane(&t);
            size_t classes = t.s.classes;
            float *all = need(count * classes, sizeof *all),
                  *some = need(count * classes, sizeof *some);
            fds_error err;
            for (int logits = 0; logits < 2; logits++) {
                fds_status (*ask)(fds_lane *, const fds_inputs *, size_t, size_t, const float *,
                                  float *, fds_error *) =
                    logits ? fds_lane_logits : fds_lane_predict;
                expect_ok(ask(lane, t.inputs, 0, count, t.w, all, &err), &err);
                for (size_t step = 1; step <= 19; step += 6) /* 1, 7, 13, 19 at a time */
                    for (size_t first = 0; first < count; first += step) {
                        size_t size = MIN(step, count - first);
                        expect_ok(ask(lane, t.inputs, first, size, t.w, some, &err), &err);
                        assert_memory_equal(some, all + first * classes,
                                            size * classes * sizeof *some);
                    }
            }
            free(all);
            free(some);
            fds_lane_free(lane);
            subject_free(&t);
        }
    isa_reset();
}

/* A lane keeps nothing from one call to the next that could change an answer: gradients of batches
 * of all sizes, larger after smaller and smaller after larger, are those of a lane that is new. */
static void the_past_of_a_lane_does_not_matter(void **state) {
    (void)state;
    const size_t sizes[] = {1, 16, 2, 33, 3, 17, 1, 7, 4, 32, 5, 1, 8, 9, 2, 16};
    for (size_t k = 0; k < COUNT(isa_names); k++)
        for (size_t i = FIRST; i < COUNT(networks); i++) {
            if (!isa_use(isa_names[k]))
                continue;
            subject t = subject_of(i, 33);
            fds_lane *old = subject_lane(&t);
            uint32_t members[33];
            float *used = need(t.weights, sizeof *used), *fresh = need(t.weights, sizeof *fresh);
            float *probs = need(33 * t.s.classes, sizeof *probs);
            for (uint32_t j = 0; j < 33; j++)
                members[j] = 32 - j;
            for (size_t n = 0; n < COUNT(sizes); n++) {
                fds_lane *new = subject_lane(&t);
                fds_error err;
                double used_loss = lane_gradient(old, &t, members, sizes[n], used);
                double fresh_loss = lane_gradient(new, &t, members, sizes[n], fresh);
                if (memcmp(used, fresh, t.weights * sizeof *used) != 0 || used_loss != fresh_loss)
                    fail_msg("%s, %s: batch of %zu after one of %zu", networks[i].text,
                             isa_names[k], sizes[n], n ? sizes[n - 1] : 0);
                expect_ok(fds_lane_predict(old, t.inputs, n, 33 - n, t.w, probs, &err), &err);
                fds_lane_free(new);
            }
            free(used);
            free(fresh);
            free(probs);
            fds_lane_free(old);
            subject_free(&t);
        }
    isa_reset();
}

/* Not even infinities: a model that diverged leaves nothing to the next one. */
static void divergence_does_not_reach_the_next_model(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT(isa_names); k++) {
        if (!isa_use(isa_names[k]))
            continue;
        subject t = subject_bare("conv:6x5p2,maxpool,conv:16x5,maxpool,fc:classes",
                                 (fds_shape){1, 17, 18}, 10, 5);
        t.s = samples_normal((fds_shape){1, 17, 18}, 10, 32, 5);
        t.inputs = samples_inputs(&t.s, NULL, 0);
        fds_lane *used = subject_lane(&t), *fresh = subject_lane(&t);
        fds_train_params wild = quick(FDS_OPTIMIZER_SGD), tame = quick(FDS_OPTIMIZER_SGD);
        wild.lr = 1e12f;
        uint32_t all[32];
        float *w = need(t.weights, sizeof *w);
        fds_error err;
        for (uint32_t i = 0; i < COUNT(all); i++)
            all[i] = i;
        for (size_t count = 1; count < 16; count++) {
            memcpy(w, t.w, t.weights * sizeof *w);
            assert_int_equal(fds_lane_train(used, t.inputs, all, 32, &wild, w, NULL, NULL, &err),
                             FDS_ERR_DIVERGED);
            float *a = train(&t, used, NULL, count, &tame, NULL);
            float *b = train(&t, fresh, NULL, count, &tame, NULL);
            assert_memory_equal(a, b, t.weights * sizeof *a);
            free(a);
            free(b);
        }
        free(w);
        fds_lane_free(used);
        fds_lane_free(fresh);
        subject_free(&t);
    }
    isa_reset();
}

/* ---- epochs ---- */

static void no_members_leave_the_weights(void **state) {
    (void)state;
    subject t = subject_of(1, 5);
    fds_lane *lane = subject_lane(&t);
    fds_train_params params = quick(FDS_OPTIMIZER_ADAM);
    fds_train_report report = {.epochs = 99};
    float *w = train(&t, lane, NULL, 0, &params, &report);
    assert_memory_equal(w, t.w, t.weights * sizeof *w);
    assert_int_equal(report.epochs, 0);
    free(w);
    fds_lane_free(lane);
    subject_free(&t);
}

/* The mean loss of each epoch, one training for each number of epochs: the first e epochs of a
 * longer training are those of a shorter. */
static void losses_of(const subject *t, fds_lane *lane, fds_train_params params, uint32_t epochs,
                      float *losses) {
    params.converge = false;
    for (uint32_t e = 1; e <= epochs; e++) {
        fds_train_report report;
        params.epochs = e;
        free(train(t, lane, NULL, t->s.count, &params, &report));
        assert_int_equal(report.epochs, e);
        assert_true(e == 1 || report.first_loss == losses[0]);
        losses[e - 1] = report.last_loss;
    }
}

/* The rule as fds.h states it; *converged tells whether it stopped before the cap. */
static uint32_t stop_epoch(const fds_train_params *p, const float *losses, bool *converged) {
    float best = INFINITY;
    uint32_t stale = 0;
    *converged = true;
    for (uint32_t e = 0; e < p->epochs; e++) {
        if (losses[e] < p->loss_bound)
            return e + 1;
        stale = losses[e] < best - p->min_delta ? 0 : stale + 1;
        best = stale ? best : losses[e];
        if (stale >= p->patience)
            return e + 1;
    }
    *converged = false;
    return p->epochs;
}

static void training_to_convergence_stops_as_stated(void **state) {
    (void)state;
    enum { CAP = 30 };
    subject t = subject_of(4, 12);
    fds_lane *lane = subject_lane(&t);
    fds_train_params base = quick(FDS_OPTIMIZER_ADAM);
    base.lr = 5e-3f;
    base.epochs = CAP;
    float losses[CAP];
    losses_of(&t, lane, base, CAP, losses);
    assert_true(losses[CAP - 1] < losses[0] / 2);
    base.converge = true;
    const struct {
        float bound, delta;
        uint32_t patience;
    } cases[] = {{0, 0, 1000},                            /* never: the cap */
                 {(losses[9] + losses[10]) / 2, 0, 1000}, /* by the bound, within */
                 {losses[0] * 2, 0, 1000},                /* by the bound, at once */
                 {0, 1000, 1},                            /* nothing is improvement enough */
                 {0, 1000, 7},
                 {0, 0.5f, 2},
                 {0, losses[3] - losses[4], 1},
                 {0, losses[0] / 3, 4}};
    size_t stopped_by_rule = 0;
    for (size_t i = 0; i < COUNT(cases); i++) {
        fds_train_params p = base, plain = base;
        p.loss_bound = cases[i].bound;
        p.min_delta = cases[i].delta;
        p.patience = cases[i].patience;
        fds_train_report report;
        bool converged;
        uint32_t epochs = stop_epoch(&p, losses, &converged);
        float *w = train(&t, lane, NULL, t.s.count, &p, &report);
        if (report.epochs != epochs || report.converged != converged)
            fail_msg("case %zu: stopped after %u epochs, expected %u", i, report.epochs, epochs);
        assert_true(report.last_loss == losses[epochs - 1]);
        plain.converge = false;
        plain.epochs = epochs;
        float *same = train(&t, lane, NULL, t.s.count, &plain, NULL);
        assert_memory_equal(w, same, t.weights * sizeof *w);
        free(w);
        free(same);
        stopped_by_rule += converged;
    }
    assert_true(stopped_by_rule >= 5 && stopped_by_rule < COUNT(cases));
    fds_lane_free(lane);
    subject_free(&t);
}

static void the_number_of_epochs_does_not_allocate(void **state) {
    (void)state;
    for (size_t i = FIRST; i < COUNT(networks); i++) {
        subject t = subject_of(i, 20);
        fds_lane *lane = subject_lane(&t);
        uint64_t calls[2];
        for (int k = 0; k < 2; k++) {
            fds_train_params params = quick(FDS_OPTIMIZER_ADAM);
            params.epochs = k ? 20 : 1;
            params.batch = 3;
            fds__fault_arm(FDS__FAULT_ALLOC, 0);
            float *w = train(&t, lane, NULL, i ? t.s.count : 4, &params, NULL);
            calls[k] = fds__fault_arm(FDS__FAULT_ALLOC, 0);
            free(w);
        }
        assert_true(calls[0] <= 1); /* memory for the order of the members, used again later */
        assert_int_equal(calls[1], 0);
        float *probs = need(t.s.count * t.s.classes, sizeof *probs);
        fds_error err;
        expect_ok(fds_lane_predict(lane, t.inputs, 0, t.s.count, t.w, probs, &err), &err);
        assert_int_equal(fds__fault_arm(FDS__FAULT_ALLOC, 0), 0);
        free(probs);
        fds_lane_free(lane);
        subject_free(&t);
    }
}

/* ---- events ---- */

typedef struct {
    uint64_t calls, last, total, cancel_at;
} watch;

static bool watch_epochs(void *user, const fds_progress *progress) {
    watch *w = user;
    w->calls++;
    w->last = progress->done;
    w->total = progress->total;
    return w->cancel_at && progress->done >= w->cancel_at;
}

static void epochs_are_reported_and_can_be_cancelled(void **state) {
    (void)state;
    subject t = subject_of(5, 9);
    fds_lane *lane = subject_lane(&t);
    fds_train_params params = quick(FDS_OPTIMIZER_SGD);
    params.epochs = 12;
    const uint32_t members[] = {0, 1, 2, 3};
    watch w = {0};
    fds_events events = {.progress = watch_epochs, .user = &w};
    fds_error err = {0};
    expect_ok(fds_lane_train(lane, t.inputs, members, 4, &params, t.w, NULL, &events, &err), &err);
    assert_int_equal(w.calls, 12);
    assert_int_equal(w.last, 12);
    assert_int_equal(w.total, 12);
    w = (watch){.cancel_at = 3};
    assert_int_equal(fds_lane_train(lane, t.inputs, members, 4, &params, t.w, NULL, &events, &err),
                     FDS_ERR_CANCELLED);
    assert_int_equal(w.calls, 3);
    fds_lane_free(lane);
    subject_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instruction_sets_give_the_same_bits),
        cmocka_unit_test(threads_and_the_order_of_jobs_do_not_matter),
        cmocka_unit_test(members_may_be_named_in_any_order),
        cmocka_unit_test(inputs_may_be_laid_out_in_any_order),
        cmocka_unit_test(the_order_of_a_subset_is_that_of_the_whole),
        cmocka_unit_test(neighbours_do_not_change_an_answer),
        cmocka_unit_test(the_past_of_a_lane_does_not_matter),
        cmocka_unit_test(divergence_does_not_reach_the_next_model),
        cmocka_unit_test(no_members_leave_the_weights),
        cmocka_unit_test(training_to_convergence_stops_as_stated),
        cmocka_unit_test(the_number_of_epochs_does_not_allocate),
        cmocka_unit_test(epochs_are_reported_and_can_be_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
