/* SPDX-License-Identifier: Apache-2.0
 * Many networks on a few inputs: every answer has the bits that the lane engine gives. */
#include "fixture.h"
#include "lane/lane.h"

/* 16 networks with weights as 16 bits keep them: w (16, weights), and group as fds__many_run wants
 * them. */
static void random_group(const fds_net *net, const uint32_t *order, float *w, uint16_t *group) {
    for (size_t l = 0; l < FDS__MANY_NETS; l++) {
        float *own = w + l * net->weights;
        fds_net_init(net, 70 + l, own);
        for (size_t i = 0; i < net->weights; i++) {
            own[i] *= i % 5 ? 2.0f : 1e-4f; /* some so small that a half has fewer digits */
            own[i] = (float)fds__half_to_double(fds__half_from_float(own[i]));
        }
        for (size_t i = 0; i < net->weights; i++)
            group[i * FDS__MANY_NETS + l] = fds__half_from_float(own[order[i]]);
    }
}

static void expect_bits_of_the_lane(const fds_net *net, const fds_inputs *inputs) {
    fds__many *many = NULL;
    fds_lane *lane = NULL;
    fds_error err;
    expect_ok(fds__many_create(net, 2, &many, &err), &err);
    expect_ok(fds_lane_create(net, &lane, &err), &err);
    size_t size = fds__many_input_size(many), count = inputs->count;
    float *w = need(FDS__MANY_NETS * net->weights, sizeof *w);
    uint16_t *group = fds__alloc_aligned(FDS__MANY_NETS * net->weights * sizeof *group);
    float *wide = fds__alloc_aligned(count * size * sizeof *wide);
    float *right = need(count * net->classes, sizeof *right);
    random_group(net, fds__many_order(many), w, group);
    for (size_t i = 0; i < count; i++)
        fds__many_spread(many, inputs->values + i * inputs->size, wide + i * size);
    for (size_t together = count; together > 0; together = together > 4 ? 4 : together - 1) {
        const float *probs = fds__many_run(many, together % 2, group, wide, together);
        assert_non_null(probs);
        for (size_t l = 0; l < FDS__MANY_NETS; l++) {
            expect_ok(
                fds_lane_predict(lane, inputs, 0, together, w + l * net->weights, right, &err),
                &err);
            for (size_t i = 0; i < together * net->classes; i++)
                if (probs[i * FDS__MANY_NETS + l] != right[i])
                    fail_msg("%s, %s: %.9g, the lane engine says %.9g", fds_isa(), net->text,
                             (double)probs[i * FDS__MANY_NETS + l], (double)right[i]);
        }
    }
    free(w);
    free(right);
    fds__free(group);
    fds__free(wide);
    fds_lane_free(lane);
    fds__many_free(many);
}

static void answers_have_the_bits_of_the_lane_engine(void **state) {
    (void)state;
    static const struct {
        const char *text;
        fds_shape shape;
    } nets[] = {
        {"lenet5", {1, 28, 28}},
        {"logistic", {1, 5, 7}},
        {"relu,fc:9,relu,fc:classes", {2, 3, 3}},
        {"conv:5x3p1,relu,conv:7x2,maxpool:3,relu,fc:classes", {3, 9, 11}},
        {"maxpool,conv:1x3p2,conv:9x1,relu,relu,maxpool:1,fc:17,fc:classes", {2, 13, 10}},
        {"conv:5x3p1s2,relu,conv:7x2s3,maxpool,fc:classes", {3, 19, 21}},
        {"conv:32x1,relu,conv:34x3p1,maxpool,fc:classes", {2, 5, 7}}, /* wide */
        {"conv:5x3p1,tanh,avgpool,conv:7x2,gelu,globalpool,fc:classes", {2, 9, 10}},
        {"residual(conv:6x3p1s2,gelu,conv:6x3p1),relu,residual(relu),fc:classes", {2, 9, 8}},
        {"conv:4x3p1,batchnorm,relu,residual(conv:6x3p1s2,batchnorm),fc:classes", {2, 9, 9}},
        {"dropout:0.5,fc:12,tanh,dropout:0.25,fc:classes", {4, 3, 1}},
        {"conv:4x4p3,maxpool:2,fc:33,relu,fc:classes", {1, 8, 17}},
    };
    for (size_t k = IS_SLOW_BUILD ? 1 : 0; k < COUNT(nets); k++) {
        fds_net *net = NULL;
        fds_error err;
        expect_ok(fds_net_create(nets[k].text, nets[k].shape, 10, &net, &err), &err);
        samples s = samples_normal(nets[k].shape, 10, FDS__MANY_INPUTS, 3);
        fds_inputs *inputs = samples_inputs(&s, NULL, 0);
        for (size_t i = 0; i < COUNT(isa_names); i++)
            if (isa_use(isa_names[i]))
                expect_bits_of_the_lane(net, inputs);
        isa_reset();
        fds_inputs_free(inputs);
        samples_free(&s);
        fds_net_free(net);
    }
}

static void every_failed_allocation_is_reported(void **state) {
    (void)state;
    fds_net *net = NULL;
    fds__many *many = NULL;
    fds_error err;
    expect_ok(fds_net_create("logistic", (fds_shape){1, 5, 7}, 10, &net, &err), &err);
    for (uint64_t nth = 1; nth <= 7; nth++) {
        fds__fault_arm(FDS__FAULT_ALLOC, nth);
        assert_int_equal(fds__many_create(net, 2, &many, &err), nth <= 6 ? FDS_ERR_NOMEM : FDS_OK);
    }
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    fds__many_free(many);
    fds__many_free(NULL);
    fds_net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_have_the_bits_of_the_lane_engine),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
