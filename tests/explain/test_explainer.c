/* SPDX-License-Identifier: Apache-2.0
 * A trained explainer: the same bits from memory and from its file, alone and in company; files
 * that lie are found out. */
#include "training_fixture.h"

enum { N = 7, CLASSES = 3, INPUTS = 70 };

static const fds_shape image = {1, 8, 8};

static float *random_inputs(size_t count) {
    fds_rng rng = fds_rng_make(4, 99, 0, 0);
    float *x = need(count, sizeof *x);
    for (size_t i = 0; i < count; i++)
        x[i] = (float)fds_rng_normal(&rng);
    return x;
}

static fds_groups *three_groups(void) {
    static const uint32_t group_of[N] = {0, 1, 1, 0, 2, 1, 1};
    return make_groups(group_of, N);
}

/* An explainer of random weights; groups NULL: an output a player. */
static fds__explainer *any_explainer(const char *network, const fds_groups *groups) {
    fds__explainer *e = NULL;
    fds_error err;
    expect_ok(learn_explainer_create(network, FDS__PRECISION_F32, N, CLASSES, image, groups, NULL,
                                     0, 0.1 / 3, 1, &e, &err),
              &err);
    fds__deep *net = learn_explainer_net(e);
    fds_rng rng = fds_rng_make(5, 99, 0, 0);
    for (size_t i = 0; i < fds__deep_tensor_count(net); i++) {
        fds__deep_tensor t = fds__deep_tensor_at(net, i);
        float *values = need(t.count, sizeof *values);
        for (size_t j = 0; j < t.count; j++)
            values[j] = (float)(t.is_statistic ? 0.5 + fds_rng_unit(&rng) : 0.2 * uniform(&rng));
        expect_ok(fds__deep_write(net, i, FDS__DEEP_VALUE, values, &err), &err);
        free(values);
    }
    return e;
}

static float *run(fds__explainer *e, const float *x, size_t count) {
    float *values = need(count * CLASSES * N, sizeof *values);
    fds_error err;
    expect_ok(fds__explainer_run(e, x, count, NULL, values, &err), &err);
    return values;
}

static fds__explainer *load(const char *name, const fds_groups *groups) {
    fds__explainer *e = NULL;
    fds_error err;
    expect_ok(fds__explainer_load(scratch_path(name), N, CLASSES, image, groups, 1, &e, &err),
              &err);
    return e;
}

static void save(const fds__explainer *e, const char *name) {
    fds_error err;
    expect_ok(fds__explainer_save(e, scratch_path(name), NULL, &err), &err);
}

static void a_file_gives_the_same_bits(void **state) {
    (void)state;
    static const char *const networks[] = {"linear", "mlp", "cnn", "resnet18"};
    float *x = random_inputs(INPUTS * 64);
    fds_groups *groups = three_groups();
    for (size_t i = 0; i < COUNT(networks) - IS_SLOW_BUILD; i++)
        for (int by_group = 0; by_group < 2; by_group++) {
            fds__explainer *e = any_explainer(networks[i], by_group ? groups : NULL);
            size_t count = i == 3 ? 5 : INPUTS;
            save(e, "a");
            fds__explainer *f = load("a", groups);
            assert_string_equal(fds__deep_get_params(learn_explainer_net(f))->network, networks[i]);
            float *before = run(e, x, count), *after = run(f, x, count);
            assert_memory_equal(before, after, count * CLASSES * N * sizeof *before);
            save(f, "b");
            assert_string_equal(hash_of(scratch_path("a")), hash_of(scratch_path("b")));
            free(before);
            free(after);
            fds__explainer_free(e);
            fds__explainer_free(f);
        }
    fds_groups_free(groups);
    free(x);
}

/* One, all, or in runs of any length. */
static void answers_do_not_depend_on_company(void **state) {
    (void)state;
    static const char *const networks[] = {"linear", "mlp", "cnn", "resnet18"};
    static const size_t runs[] = {1, 2, 7, 64};
    float *x = random_inputs(INPUTS * 64);
    for (size_t i = 0; i < COUNT(networks) - IS_SLOW_BUILD; i++) {
        size_t count = i == 3 ? 5 : INPUTS;
        fds__explainer *e = any_explainer(networks[i], NULL);
        float *together = run(e, x, count);
        for (size_t r = 0; r < COUNT(runs); r++)
            for (size_t at = 0; at < count; at += runs[r]) {
                size_t now = MIN(runs[r], count - at);
                float *alone = run(e, x + at * 64, now);
                if (memcmp(alone, together + at * CLASSES * N, now * CLASSES * N * sizeof *alone))
                    fail_msg("%s: inputs %zu to %zu differ when explained %zu at a time",
                             networks[i], at, at + now, runs[r]);
                free(alone);
            }
        free(together);
        fds__explainer_free(e);
    }
    free(x);
}

/* One label's values are those among all labels'. */
static void a_label_is_asked_for_alone(void **state) {
    (void)state;
    static const char *const networks[] = {"linear", "mlp", "cnn"};
    fds_groups *groups = three_groups();
    float *x = random_inputs(INPUTS * 64), *some = need(INPUTS * N, sizeof *some);
    uint32_t labels[INPUTS];
    fds_error err;
    for (size_t k = 0; k < INPUTS; k++)
        labels[k] = (uint32_t)(k * k) % CLASSES;
    for (size_t i = 0; i < 2 * COUNT(networks); i++) {
        fds__explainer *e = any_explainer(networks[i / 2], i % 2 ? groups : NULL);
        float *all = run(e, x, INPUTS);
        expect_ok(fds__explainer_run(e, x, INPUTS, labels, some, &err), &err);
        for (size_t k = 0; k < INPUTS; k++)
            assert_memory_equal(some + k * N, all + (k * CLASSES + labels[k]) * N,
                                N * sizeof *some);
        free(all);
        fds__explainer_free(e);
    }
    free(some);
    free(x);
    fds_groups_free(groups);
}

static void no_inputs_have_no_answers(void **state) {
    (void)state;
    fds__explainer *e = any_explainer("linear", NULL);
    assert_int_equal(fds__explainer_run(e, NULL, 0, NULL, NULL, NULL), FDS_OK);
    fds__explainer_free(e);
    fds__explainer_free(NULL);
}

/* A group's output is what its members get together. */
static void a_group_divides_evenly(void **state) {
    (void)state;
    fds_groups *groups = three_groups();
    float *x = random_inputs(64);
    fds__explainer *e = any_explainer("mlp", groups);
    fds__deep_infer *infer = NULL;
    fds_error err;
    float u[CLASSES * 3], *values = run(e, x, 1);
    expect_ok(fds__deep_infer_create(learn_explainer_net(e), 1, &infer, &err), &err);
    expect_ok(fds__deep_infer_run(infer, x, 1, u, &err), &err);
    for (size_t y = 0; y < CLASSES; y++)
        for (size_t g = 0; g < 3; g++) {
            const uint32_t *members;
            size_t count = fds_groups_members(groups, g, &members);
            double sum = 0;
            for (size_t i = 0; i < count; i++) {
                assert_true(values[y * N + members[i]] == values[y * N + members[0]]);
                sum += (double)values[y * N + members[i]];
            }
            double right = 0.1 / 3 * (double)u[y * 3 + g];
            assert_true(fabs(sum - right) < 1e-5 * (1 + fabs(right)));
        }
    fds__deep_infer_free(infer);
    free(values);
    free(x);
    fds__explainer_free(e);
    fds_groups_free(groups);
}

/* ---- files ---- */

static fds_status try_load(const char *name, size_t players, uint32_t classes, fds_shape shape,
                           const fds_groups *groups, fds_error *err) {
    fds__explainer *e = NULL;
    *err = (fds_error){0};
    fds_status status =
        fds__explainer_load(scratch_path(name), players, classes, shape, groups, 1, &e, err);
    fds__explainer_free(e);
    return status;
}

static void a_file_for_something_else_is_refused(void **state) {
    (void)state;
    fds_groups *groups = three_groups();
    static const uint32_t other_of[N] = {0, 1, 1, 0, 2, 1, 3};
    fds_groups *others = make_groups(other_of, N);
    fds__explainer *e = any_explainer("mlp", NULL), *by_group = any_explainer("mlp", groups);
    fds_shape flat = {64, 1, 1};
    fds_error err;
    save(e, "a");
    save(by_group, "g");
    expect_error(try_load("a", N + 1, CLASSES, image, NULL, &err), FDS_ERR_SHAPE, &err, "players");
    expect_error(try_load("a", N, CLASSES + 1, image, NULL, &err), FDS_ERR_SHAPE, &err, "classes");
    expect_error(try_load("a", N, CLASSES, flat, NULL, &err), FDS_ERR_SHAPE, &err, "shape");
    expect_error(try_load("g", N, CLASSES, image, NULL, &err), FDS_ERR_SHAPE, &err, "groups");
    expect_error(try_load("g", N, CLASSES, image, others, &err), FDS_ERR_SHAPE, &err, "outputs");
    assert_int_equal(try_load("g", N, CLASSES, image, groups, &err), FDS_OK);
    assert_int_equal(try_load("none", N, CLASSES, image, NULL, &err), FDS_ERR_NOT_FOUND);
    fds__explainer_free(e);
    fds__explainer_free(by_group);
    fds_groups_free(groups);
    fds_groups_free(others);
}

/* The file with one text in its header replaced by another of the same length. */
static void lie(const char *good, size_t size, const char *from, const char *to) {
    char *bad = need(size, 1);
    memcpy(bad, good, size);
    assert_int_equal(strlen(from), strlen(to));
    char *at = memmem(bad, size, from, strlen(from));
    assert_non_null(at);
    memcpy(at, to, strlen(to));
    scratch_write(scratch_path("bad"), bad, size);
    free(bad);
}

/* The bytes of a good file; the caller frees them. */
static char *good_file(const char *network, size_t *size) {
    fds__explainer *e = any_explainer(network, NULL);
    save(e, "good");
    fds__explainer_free(e);
    return scratch_read(scratch_path("good"), size);
}

static void lies_are_found_and_named(void **state) {
    (void)state;
    fds_error err;
    size_t size;
    char *good = good_file("mlp", &size);
    static const struct {
        const char *from, *to, *words;
        fds_status status;
    } lies[] = {
        {"fds-explainer 1", "fds-explainer 2", "format", FDS_ERR_FORMAT},
        {"\"network\":\"mlp\"", "\"network\":\"mlq\"", "mlq", FDS_ERR_FORMAT},
        {"\"network\":\"mlp\"", "\"network\":\"cnn\"", "layers.0.conv.weight", FDS_ERR_FORMAT},
        {"\"network\":", "\"netwark\":", "network", FDS_ERR_FORMAT},
        {"\"scale\":\"0.", "\"scale\":\"-.", "scale", FDS_ERR_FORMAT},
        {"\"scale\":\"0.0333", "\"scale\":\"nan333", "scale", FDS_ERR_FORMAT},
        {"\"scale\":\"0.0333", "\"scale\":\"000000", "scale", FDS_ERR_FORMAT},
        {"\"f32\"", "\"f31\"", "f31", FDS_ERR_FORMAT},
        {"layers.1.bias", "layers.1.bios", "layers.1.bias", FDS_ERR_FORMAT},
        {"[1024,64]", "[64,1024]", "layers.0.weight", FDS_ERR_SHAPE},
        {"\"players\":\"7\"", "\"players\":\"8\"", "players", FDS_ERR_SHAPE},
        {"\"outputs\":\"21\"", "\"outputs\":\"22\"", "outputs", FDS_ERR_SHAPE},
    };
    for (size_t i = 0; i < COUNT(lies); i++) {
        lie(good, size, lies[i].from, lies[i].to);
        expect_error(try_load("bad", N, CLASSES, image, NULL, &err), lies[i].status, &err,
                     lies[i].words);
        expect_in(err.text, scratch_path("bad"));
    }
    free(good);
}

static void a_file_that_is_cut_off_is_refused(void **state) {
    (void)state;
    fds_error err;
    size_t size;
    char *good = good_file("linear", &size);
    for (size_t part = 0; part < size; part += 1 + part / 16) {
        scratch_write(scratch_path("bad"), good, part);
        assert_int_equal(try_load("bad", N, CLASSES, image, NULL, &err), FDS_ERR_FORMAT);
        expect_in(err.text, scratch_path("bad"));
    }
    free(good);
}

static void weights_that_are_no_numbers_are_refused(void **state) {
    (void)state;
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < COUNT(odd); i++) {
        fds__explainer *e = any_explainer("mlp", NULL);
        fds__deep *net = learn_explainer_net(e);
        fds_error err;
        float bias[1024] = {[200] = odd[i]};
        assert_string_equal(fds__deep_tensor_at(net, 1).name, "layers.0.bias");
        assert_int_equal(fds__deep_tensor_at(net, 1).count, COUNT(bias));
        expect_ok(fds__deep_write(net, 1, FDS__DEEP_VALUE, bias, &err), &err);
        save(e, "bad");
        expect_error(try_load("bad", N, CLASSES, image, NULL, &err), FDS_ERR_FORMAT, &err,
                     "layers.0.bias");
        fds__explainer_free(e);
    }
}

static fds_status save_and_load(fds_error *err) {
    fds_groups *groups = NULL;
    fds__explainer *e = NULL, *f = NULL;
    static const uint32_t group_of[N] = {0, 1, 1, 0, 2, 1, 1};
    float x[64] = {0}, values[CLASSES * N];
    fds_status status = fds_groups_create(group_of, N, NULL, &groups, err);
    if (status == FDS_OK)
        status = learn_explainer_create("linear", FDS__PRECISION_F32, N, CLASSES, image, groups,
                                        NULL, 0, 0.1, 1, &e, err);
    if (status == FDS_OK)
        status = fds__explainer_save(e, scratch_path("a"), NULL, err);
    if (status == FDS_OK)
        status = fds__explainer_load(scratch_path("a"), N, CLASSES, image, groups, 1, &f, err);
    if (status == FDS_OK)
        status = fds__explainer_run(f, x, 1, NULL, values, err);
    fds__explainer_free(e);
    fds__explainer_free(f);
    fds_groups_free(groups);
    return status;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    each_allocation_fails("explainer", save_and_load);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(a_file_gives_the_same_bits),
        IN_SCRATCH(answers_do_not_depend_on_company),
        IN_SCRATCH(a_label_is_asked_for_alone),
        IN_SCRATCH(no_inputs_have_no_answers),
        IN_SCRATCH(a_group_divides_evenly),
        IN_SCRATCH(a_file_for_something_else_is_refused),
        IN_SCRATCH(lies_are_found_and_named),
        IN_SCRATCH(a_file_that_is_cut_off_is_refused),
        IN_SCRATCH(weights_that_are_no_numbers_are_refused),
        IN_SCRATCH(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
