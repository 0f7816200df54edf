/* SPDX-License-Identifier: Apache-2.0
 * The tangent kernel: products of gradients that are taken apart weight by weight in double
 * precision, for any number of threads, any instruction set and any other inputs of the call. */
#include "base/base.h"
#include "fixture.h"

static const struct {
    const char *text;
    fds_shape shape;
    uint32_t classes;
} networks[] = {
    {"logistic", {1, 3, 4}, 3},
    {"fc:9,relu,fc:17,relu,fc:classes", {7, 1, 1}, 4},
    {"conv:3x3p1,relu,maxpool,conv:4x2,relu,fc:6,relu,fc:classes", {2, 7, 6}, 3},
    {"conv:5x4p2,maxpool,relu,fc:classes", {1, 8, 9}, 2},
    {"maxpool,conv:3x1,relu,conv:2x3p2,fc:classes", {2, 9, 8}, 5},
    {"conv:7x5,relu,fc:classes", {3, 6, 5}, 17},
    {"conv:4x3p1,tanh,avgpool,conv:3x2,gelu,globalpool,fc:5,tanh,fc:classes", {2, 7, 6}, 3},
    {"residual(conv:3x3p1s2,relu,conv:3x3p1),relu,fc:5,residual(relu,fc:4),fc:classes",
     {2, 6, 7},
     3},
    {"conv:3x3,tanh,dropout:0.5,fc:classes", {1, 5, 4}, 2},
    {"conv:3x3p1s2,relu,conv:4x1s2,fc:classes", {2, 7, 10}, 3},
};

static float *tangent(const subject *t, const fds_inputs *a, const fds_inputs *b,
                      unsigned threads) {
    float *kernel = need(a->count * b->count, sizeof *kernel);
    fds_error err;
    expect_ok(fds__net_tangent(t->net, t->w, a, b, threads, kernel, NULL, &err), &err);
    return kernel;
}

static subject subject_of(size_t i, size_t count) {
    return subject_make(networks[i].text, networks[i].shape, networks[i].classes, count, i);
}

/* Inputs first, first + 2, ... of a subject's. */
static fds_inputs *every_other(const subject *t, uint32_t first, size_t count) {
    uint32_t *index = need(count, sizeof *index);
    for (size_t i = 0; i < count; i++)
        index[i] = first + 2 * (uint32_t)i;
    fds_inputs *inputs = samples_inputs(&t->s, index, count);
    free(index);
    return inputs;
}

/* ---- the definition ---- */

/* Every output's derivative by every weight, of one sample: (weights, classes). In one weight alone
 * a network is made of straight lines, so that differences have no error but rounding. */
static void differentiate(const subject *t, size_t sample, double *out) {
    const double h = 1e-7;
    const size_t classes = t->ref->classes;
    const double *x = t->s.xd + sample * t->s.size;
    for (size_t i = 0; i < t->weights; i++) {
        const double kept = t->wd[i];
        t->wd[i] = kept + h;
        memcpy(out + i * classes, ref_forward(t->ref, t->wd, x), classes * sizeof *out);
        t->wd[i] = kept - h;
        const double *below = ref_forward(t->ref, t->wd, x);
        for (size_t c = 0; c < classes; c++)
            out[i * classes + c] = (out[i * classes + c] - below[c]) / (2 * h);
        t->wd[i] = kept;
    }
}

static void the_kernel_is_that_of_the_gradients(void **state) {
    (void)state;
    enum { A = 19, B = IS_SLOW_BUILD ? 21 : 103 }; /* neither whole groups nor whole blocks */
    for (size_t n = 0; n < COUNT(networks); n++) {
        subject t = subject_of(n, B);
        uint32_t first[A];
        for (uint32_t i = 0; i < A; i++)
            first[i] = i;
        fds_inputs *a = samples_inputs(&t.s, first, A);
        const size_t size = t.weights * networks[n].classes;
        double *gradients = need(B * size, sizeof *gradients), wanted[A * B];
        for (size_t i = 0; i < B; i++)
            differentiate(&t, i, gradients + i * size);
        for (size_t i = 0; i < A * B; i++) {
            const double *g = gradients + i / B * size, *h = gradients + i % B * size;
            wanted[i] = 0;
            for (size_t k = 0; k < size; k++)
                wanted[i] += g[k] * h[k] / networks[n].classes;
        }
        float *kernel = tangent(&t, a, t.inputs, 1);
        double off = relative_error(kernel, wanted, A * B, 0);
        if (!(off < 2e-6))
            fail_msg("%s: off by %g", networks[n].text, off);
        free(kernel);
        free(gradients);
        fds_inputs_free(a);
        subject_free(&t);
    }
}

/* ---- the same bits ---- */

static void threads_and_instruction_sets_do_not_matter(void **state) {
    (void)state;
    enum { ALL = 110 }; /* more than one block */
    for (size_t n = 0; n < COUNT(networks); n++) {
        subject t = subject_of(n, ALL);
        fds_inputs *a = every_other(&t, 1, 35);
        float *wanted = tangent(&t, a, t.inputs, 1);
        for (size_t k = 0; k < COUNT(isa_names); k++) {
            if (!isa_use(isa_names[k]))
                continue;
            for (unsigned threads = 1; threads <= 4; threads += 3) {
                float *kernel = tangent(&t, a, t.inputs, threads);
                assert_memory_equal(kernel, wanted, 35 * ALL * sizeof *kernel);
                free(kernel);
            }
        }
        isa_reset();
        free(wanted);
        fds_inputs_free(a);
        subject_free(&t);
    }
}

static void neighbours_and_sides_do_not_matter(void **state) {
    (void)state;
    subject t = subject_of(2, 110);
    fds_inputs *a = every_other(&t, 1, 20), *b = every_other(&t, 0, 7);
    float *all = tangent(&t, t.inputs, t.inputs, 2), *some = tangent(&t, a, b, 1);
    for (size_t i = 0; i < 110; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(all[i * 110 + j] == all[j * 110 + i]);
    for (size_t i = 0; i < 20; i++)
        for (size_t j = 0; j < 7; j++)
            assert_true(some[i * 7 + j] == all[(2 * i + 1) * 110 + 2 * j]);
    free(all);
    free(some);
    fds_inputs_free(a);
    fds_inputs_free(b);
    subject_free(&t);
}

/* 16 samples have 33 MB of gradients: those of the larger set are not all kept at once. */
static void more_than_can_be_kept_comes_in_turns(void **state) {
    (void)state;
    if (IS_SLOW_BUILD)
        SKIP_CASE("too slow under a sanitizer");
    enum { MANY = 70, FEW = 3 };
    subject t = subject_bare("conv:16x5,relu,fc:classes", (fds_shape){16, 5, 5}, 80, 1);
    t.s = samples_normal((fds_shape){16, 5, 5}, 80, MANY, 1);
    t.inputs = samples_inputs(&t.s, NULL, 0);
    fds_inputs *few = every_other(&t, 5, FEW);
    float *one = tangent(&t, t.inputs, few, 1), *two = tangent(&t, few, t.inputs, 1);
    for (size_t i = 0; i < MANY; i++)
        for (size_t j = 0; j < FEW; j++)
            assert_true(one[i * FEW + j] == two[j * MANY + i]);
    free(one);
    free(two);
    fds_inputs_free(few);
    subject_free(&t);
}

/* ---- trouble ---- */

static void other_shapes_are_refused(void **state) {
    (void)state;
    subject t = subject_of(0, 3), u = subject_of(1, 3);
    float kernel[9];
    fds_error err = {0};
    assert_int_equal(fds__net_tangent(t.net, t.w, t.inputs, u.inputs, 1, kernel, NULL, &err),
                     FDS_ERR_SHAPE);
    expect_in(err.text, "the network takes samples of 1x3x4, not 7x1x1");
    assert_int_equal(fds__net_tangent(t.net, t.w, u.inputs, t.inputs, 1, kernel, NULL, &err),
                     FDS_ERR_SHAPE);
    subject_free(&t);
    subject_free(&u);
}

static void what_is_no_number_is_told(void **state) {
    (void)state;
    subject t = subject_of(1, 20);
    float kernel[20 * 20];
    fds_error err = {0};
    t.inputs->values[17 * 7] = INFINITY;
    assert_int_equal(fds__net_tangent(t.net, t.w, t.inputs, t.inputs, 1, kernel, NULL, &err),
                     FDS_ERR_DIVERGED);
    expect_in(err.text, "samples 0 and 17");
    subject_free(&t);
}

static void without_memory_nothing_is_left_behind(void **state) {
    (void)state;
    subject t = subject_of(2, 20);
    float kernel[20 * 20];
    fds_error err = {0};
    for (uint64_t nth = 1;; nth++) {
        fds__fault_arm(FDS__FAULT_ALLOC, nth);
        fds_status status = fds__net_tangent(t.net, t.w, t.inputs, t.inputs, 1, kernel, NULL, &err);
        if (fds__fault_arm(FDS__FAULT_ALLOC, 0) < nth) {
            expect_ok(status, &err);
            assert_true(nth > 5);
            break;
        }
        assert_int_equal(status, FDS_ERR_NOMEM);
    }
    subject_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernel_is_that_of_the_gradients),
        cmocka_unit_test(threads_and_instruction_sets_do_not_matter),
        cmocka_unit_test(neighbours_and_sides_do_not_matter),
        cmocka_unit_test(more_than_can_be_kept_comes_in_turns),
        cmocka_unit_test(other_shapes_are_refused),
        cmocka_unit_test(what_is_no_number_is_told),
        cmocka_unit_test(without_memory_nothing_is_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
