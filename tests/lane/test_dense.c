/* SPDX-License-Identifier: Apache-2.0
 * A fully connected layer: bit for bit the chain that it promises, near the sum in double precision,
 * the same for a sample alone and in company, on each instruction set. */
#include "fixture.h"
#include "lane/lane.h"

#include <math.h>

static float *random_floats(size_t count, uint64_t seed) {
    fds_rng rng = fds_rng_make(seed, 5001, 0, 0);
    float *x = need(count, sizeof *x);
    for (size_t i = 0; i < count; i++)
        x[i] = (float)fds_rng_normal(&rng);
    return x;
}

static void expect_layer(size_t inputs, size_t outputs, size_t count, bool is_relu) {
    size_t x_row = inputs + 3; /* rows may be further apart than they are long */
    float *w = random_floats(outputs * inputs, 1), *bias = random_floats(outputs, 2);
    float *x = random_floats(count * x_row, 3);
    fds__dense *layer = NULL;
    fds_error err;
    expect_ok(fds__dense_create(inputs, outputs, w, bias, is_relu, &layer, &err), &err);
    size_t width = fds__dense_width(layer);
    assert_true(width >= outputs && width < outputs + 16);
    float *y = need(count * width, sizeof *y), *alone = need(width, sizeof *alone);
    fds__dense_run(layer, x, x_row, count, y);
    for (size_t k = 0; k < count; k++) {
        for (size_t o = 0; o < outputs; o++) {
            float chain = bias[o];
            double sum = (double)bias[o], size = fabs(sum);
            for (size_t i = 0; i < inputs; i++) {
                double term = (double)x[k * x_row + i] * (double)w[o * inputs + i];
                chain = fmaf(x[k * x_row + i], w[o * inputs + i], chain);
                sum += term;
                size += fabs(term);
            }
            float got = y[k * width + o];
            assert_true(got == (is_relu && chain <= 0 ? 0 : chain));
            if (!is_relu || got > 0)
                assert_true(fabs((double)got - sum) <= 1e-6 * size);
        }
        fds__dense_run(layer, x + k * x_row, x_row, 1, alone);
        assert_memory_equal(alone, y + k * width, width * sizeof *y);
    }
    free(w);
    free(bias);
    free(x);
    free(y);
    free(alone);
    fds__dense_free(layer);
}

static void a_layer_is_one_chain_per_number(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 3, 16, 64, 65, 100}, counts[] = {1, 2, 7, 64};
    for (size_t isa = 0; isa < COUNT(isa_names); isa++) {
        if (!isa_use(isa_names[isa]))
            continue;
        for (size_t i = 0; i < COUNT(sizes); i++)
            for (size_t o = 0; o < COUNT(sizes); o++)
                for (size_t c = 0; c < COUNT(counts); c++)
                    expect_layer(sizes[i], sizes[o], counts[c], (i + o + c) % 2);
        expect_layer(784, 130, 5, false);
    }
    isa_reset();
}

static void nothing_is_fine(void **state) {
    (void)state;
    fds__dense *layer = NULL;
    fds_error err;
    float one = 1;
    expect_ok(fds__dense_create(1, 1, &one, &one, false, &layer, &err), &err);
    fds__dense_run(layer, NULL, 1, 0, NULL);
    fds__dense_free(layer);
    fds__dense_free(NULL);
    assert_int_equal(fds__dense_create(SIZE_MAX / 2, 16, &one, &one, false, &layer, &err),
                     FDS_ERR_LIMIT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_is_one_chain_per_number),
        cmocka_unit_test(nothing_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
