/* SPDX-License-Identifier: Apache-2.0
 * A network's text: presets, grammar, shapes and limits. A message gives the position of a
 * mistake, counted in characters from 1. */
#include "fixture.h"

static const fds_shape mnist = {1, 28, 28};

static fds_status try_text(const char *text, fds_shape shape, uint32_t classes, fds_error *err) {
    fds_net *net = NULL;
    fds_status status = fds_net_create(text, shape, classes, &net, err);
    fds_net_free(net);
    return status;
}

static void expect_text(const char *text, fds_shape shape, uint32_t classes, const char *full,
                        size_t weights) {
    fds_net *net = NULL;
    fds_error err;
    expect_ok(fds_net_create(text, shape, classes, &net, &err), &err);
    assert_string_equal(fds_net_text(net), full);
    assert_int_equal(fds_net_weights(net), weights);
    fds_net_free(net);
    /* the full text stands for the same network */
    expect_ok(fds_net_create(full, shape, classes, &net, &err), &err);
    assert_string_equal(fds_net_text(net), full);
    assert_int_equal(fds_net_weights(net), weights);
    fds_net_free(net);
}

/* Numbers of weights as PyTorch counts them for the same modules. */
static void presets_are_written_out(void **state) {
    (void)state;
    expect_text("logistic", mnist, 10, "fc:10", 7850);
    expect_text("lenet5", mnist, 10,
                "conv:6x5p2,relu,maxpool,conv:16x5,relu,maxpool,fc:120,relu,fc:84,relu,fc:10",
                61706);
    expect_text("cnn", mnist, 10, "conv:16x5p2,relu,maxpool,conv:32x5p2,relu,maxpool,fc:10", 28938);
    fds_net *net;
    fds_error err;
    expect_ok(fds_net_create("mlp", (fds_shape){13, 1, 1}, 4, &net, &err), &err);
    expect_in(fds_net_text(net), "relu,fc:4");
    fds_net_free(net);
}

static void the_grammar_is_taken(void **state) {
    (void)state;
    expect_text("fc:classes", mnist, 2, "fc:2", 1570);
    expect_text("conv:3x1p0,fc:2", (fds_shape){1, 2, 2}, 2, "conv:3x1,fc:2", 6 + 26);
    expect_text("maxpool:2,fc:2", (fds_shape){1, 5, 4}, 2, "maxpool,fc:2", 10);
    expect_text("maxpool:3,fc:2", (fds_shape){1, 5, 7}, 2, "maxpool:3,fc:2", 6);
    expect_text("conv:3x2p1s1,fc:2", (fds_shape){1, 3, 3}, 2, "conv:3x2p1,fc:2", 15 + 98);
    expect_text("conv:3x2s2, conv:2x3p1s3 ,fc:2", (fds_shape){1, 9, 8}, 2,
                "conv:3x2s2,conv:2x3p1s3,fc:2", 15 + 56 + 18);
    expect_text("conv:3x1,tanh,avgpool:2,gelu,avgpool:3 , globalpool,fc:2", (fds_shape){1, 9, 8}, 2,
                "conv:3x1,tanh,avgpool,gelu,avgpool:3,globalpool,fc:2", 6 + 8);
    expect_text("conv:3x1, residual( conv:3x3p1 ,relu, conv:3x3p1 ) ,relu,fc:2",
                (fds_shape){1, 4, 4}, 2, "conv:3x1,residual(conv:3x3p1,relu,conv:3x3p1),relu,fc:2",
                6 + 84 + 84 + 98);
    expect_text("residual(conv:3x3p1s2,relu),fc:2", (fds_shape){2, 5, 4}, 2,
                "residual(conv:3x3p1s2,relu),fc:2", 57 + 9 + 38); /* 9: the projection */
    expect_text(" embed:9x4,globalpool,fc:2", (fds_shape){5, 1, 1}, 2, "embed:9x4,globalpool,fc:2",
                36 + 10);
    expect_text("embed:9x4,fc:2", (fds_shape){5, 1, 1}, 2, "embed:9x4,fc:2", 36 + 42);
    expect_text("embed:9x4,maxpool,fc:2", (fds_shape){1, 5, 6}, 2, "embed:9x4,maxpool,fc:2",
                36 + 50);
    expect_text("fc:5,residual(relu,fc:4),fc:2", (fds_shape){3, 1, 1}, 2,
                "fc:5,residual(relu,fc:4),fc:2", 20 + 24 + 24 + 10);
    expect_text("dropout:0.50,fc:5,dropout:0.125 ,batchnorm, dropout:0,fc:2", (fds_shape){3, 1, 1},
                2, "dropout:0.5,fc:5,dropout:0.125,batchnorm,dropout:0,fc:2", 20 + 20 + 12);
    expect_text("fc:5,relu,fc:classes", (fds_shape){7, 1, 1}, 3, "fc:5,relu,fc:3", 40 + 18);
}

static void tensors_are_named_and_laid_out_as_in_pytorch(void **state) {
    (void)state;
    const struct {
        const char *name;
        uint32_t rank, dims[4];
    } wanted[] = {{"0.weight", 4, {6, 1, 5, 5}},  {"0.bias", 1, {6}},
                  {"3.weight", 4, {16, 6, 5, 5}}, {"3.bias", 1, {16}},
                  {"7.weight", 2, {120, 400}},    {"7.bias", 1, {120}}, /* 6 is the Flatten */
                  {"9.weight", 2, {84, 120}},     {"9.bias", 1, {84}},
                  {"11.weight", 2, {10, 84}},     {"11.bias", 1, {10}}};
    fds_net *net;
    fds_error err;
    expect_ok(fds_net_create("lenet5", mnist, 10, &net, &err), &err);
    assert_int_equal(fds_net_tensors(net), COUNT(wanted));
    size_t offset = 0;
    for (size_t i = 0; i < COUNT(wanted); i++) {
        fds_tensor_info t = fds_net_tensor(net, i);
        size_t count = 1;
        assert_string_equal(t.name, wanted[i].name);
        assert_int_equal(t.rank, wanted[i].rank);
        for (uint32_t d = 0; d < t.rank; d++) {
            assert_int_equal(t.dims[d], wanted[i].dims[d]);
            count *= t.dims[d];
        }
        assert_int_equal(t.offset, offset);
        assert_int_equal(t.count, count);
        offset += count;
    }
    assert_int_equal(offset, fds_net_weights(net));
    fds_net_free(net);
}

/* 416,520 multiply-adds, by hand; adding the biases is 6*784 + 16*100 + 214 more. */
static void tensors_of_a_block_are_named_body_and_skip(void **state) {
    (void)state;
    static const char *const wanted[] = {
        "0.weight",      "0.bias",        "1.body.0.weight", "1.body.0.bias", "1.body.2.weight",
        "1.body.2.bias", "1.skip.weight", "1.skip.bias",     "4.weight",      "4.bias"};
    fds_net *net;
    fds_error err;
    expect_ok(fds_net_create("conv:4x3,residual(conv:6x3p1s2,relu,conv:6x3p1),relu,fc:classes",
                             mnist, 10, &net, &err),
              &err);
    assert_int_equal(fds_net_tensors(net), COUNT(wanted));
    for (size_t i = 0; i < COUNT(wanted); i++)
        assert_string_equal(fds_net_tensor(net, i).name, wanted[i]);
    assert_int_equal(fds_net_tensor(net, 6).dims[0], 6); /* 1.skip.weight: (6, 4, 1, 1) */
    assert_int_equal(fds_net_tensor(net, 6).dims[1], 4);
    assert_int_equal(fds_net_tensor(net, 6).dims[3], 1);
    fds_net_free(net);
}

static void flops_are_those_of_the_definition(void **state) {
    (void)state;
    fds_net *net;
    fds_error err;
    expect_ok(fds_net_create("lenet5", mnist, 10, &net, &err), &err);
    uint64_t forward = fds_net_flops_forward(net), train = fds_net_flops_train(net);
    assert_true(forward >= 2 * 416520 && forward <= 2 * 416520 + 6518);
    /* backward: twice the forward, less the first layer's gradient by its input */
    assert_true(train >= 6 * 416520 - 2 * 117600 && train <= 3 * forward);
    fds_net_free(net);
}

static void every_mistake_is_answered_with_its_place(void **state) {
    (void)state;
    const struct {
        const char *text;
        unsigned place;
    } cases[] = {
        {"", 1},
        {",", 1},
        {"fc:10,", 7},
        {",fc:10", 1},
        {"relu,,fc:10", 6},
        {"lenet", 1},
        {"lenet5,fc:10", 1}, /* a preset stands alone */
        {"relu,lenet5", 6},
        {"Relu,fc:10", 1},
        {"conv,fc:10", 1},
        {"conv:,fc:10", 6},
        {"conv:6,fc:10", 7},
        {"conv:6x,fc:10", 8},
        {"conv:x5,fc:10", 6},
        {"conv:0x5,fc:10", 6},
        {"conv:6x0,fc:10", 8},
        {"conv:6x5p,fc:10", 10},
        {"conv:6x5q2,fc:10", 9},
        {"conv:6x5p2p2,fc:10", 11},
        {"conv:6x5s0,fc:10", 10},
        {"conv:6x5p2s,fc:10", 12},
        {"conv:6x5s2p2,fc:10", 11}, /* the padding comes first */
        {"conv:6x5s256,fc:10", 10},
        {"conv:6X5,fc:10", 7},
        {"conv:-6x5,fc:10", 6},
        {"conv:+6x5,fc:10", 6},
        {"conv:99999999999999999999x5,fc:10", 6},
        {"conv:6x99999999999999999999,fc:10", 8},
        {"conv:6x5p99999999999999999999,fc:10", 10},
        {"relu:2,fc:10", 5},
        {"relux,fc:10", 5},
        {"maxpool:,fc:10", 9},
        {"maxpool:0,fc:10", 9},
        {"maxpool:x,fc:10", 9},
        {"maxpool2,fc:10", 8},
        {"dropout,fc:10", 1},
        {"dropout:,fc:10", 9},
        {"dropout:1,fc:10", 9},
        {"dropout:.5,fc:10", 9},
        {"dropout:0.,fc:10", 9},
        {"dropout:0.1234,fc:10", 9},
        {"dropout:0.5x,fc:10", 12},
        {"embed,fc:10", 1},
        {"embed:5,fc:10", 8},
        {"embed:0x3,fc:10", 7},
        {"embed:5x0,fc:10", 9},
        {"embed:1048577x3,fc:10", 7},
        {"embed:1048576x65535,fc:10", 1},
        {"relu,embed:5x3,fc:10", 6},
        {"residual(embed:5x3),fc:10", 10},
        {"batchnorm:2,fc:10", 10},
        {"residual,fc:10", 1},
        {"residual(),fc:10", 10},
        {"residual(,relu),fc:10", 10},
        {"residual(relu,),fc:10", 15},
        {"residual(relu", 14}, /* no end */
        {"residual(relu,fc:10", 15},
        {"residual(relu;tanh),fc:10", 14},
        {"relu),fc:10", 5},
        {"residual(relu)relu,fc:10", 15},
        {"residual(relu,residual(relu)),fc:10", 15}, /* one in another */
        {"fc:3,residual(fc:10)", 15},                /* does not end in fc */
        {"relu,residual(fc:4),fc:10", 15},           /* flattens within the block */
        {"relu,residual(conv:2x12),fc:10", 6},       /* 28 x 28 to 17 x 17: no stride */
        {"avgpool:0,fc:10", 9},
        {"avgpool:29,fc:10", 1},
        {"globalpool:2,fc:10", 11},
        {"tanh:1,fc:10", 5},
        {"gelus,fc:10", 5},
        {"fc:4,avgpool,fc:10", 6},
        {"fc:4,globalpool,fc:10", 6},
        {"relu,fc", 6},
        {"relu,fc:", 9},
        {"relu,fc:0", 9},
        {"relu,fc:class", 9},
        {"relu,fc:classesx", 16},
        {"relu,fc:10x", 11},
        {"relu,fc:18446744073709551626", 9}, /* 2^64 + 10 */
        {"relu,fc:4294967306", 9},           /* 2^32 + 10 */
        {"relu,fc:9", 6},                    /* not one output per class */
        {"relu,fc:10,relu", 12},             /* does not end in fc */
        {"relu", 1},
        {"conv:6x5,relu", 10},
        {"fc:10;relu", 6},
        {"fc:10\nrelu", 6},
        {"fc:4,conv:2x1,fc:10", 6}, /* an image layer after fc */
        {"fc:4,maxpool,fc:10", 6},
        {"conv:2x29,fc:10", 1}, /* does not fit 28 x 28 */
        {"relu,conv:2x33p2,fc:10", 6},
        {"maxpool:29,fc:10", 1},
        {"maxpool:14,maxpool:3,fc:10", 12},
        {"maxpool,maxpool,maxpool,maxpool,maxpool,fc:10", 33}, /* 28 14 7 3 1 */
        {"lenet5", 0},                                         /* well: see below */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        fds_error err = {0};
        fds_status status = try_text(cases[i].text, mnist, 10, &err);
        if (!cases[i].place) {
            expect_ok(status, &err);
            continue;
        }
        char place[32];
        snprintf(place, sizeof place, "character %u:", cases[i].place);
        if (status == FDS_OK || status != err.status)
            fail_msg("\"%s\": status %s", cases[i].text, fds_status_name(status));
        if (!strstr(err.text, place))
            fail_msg("\"%s\": expected %s but: %s", cases[i].text, place, err.text);
    }
}

/* The place is right also in a text longer than a message. */
static void long_texts_keep_the_place(void **state) {
    (void)state;
    char text[1000] = "";
    for (int i = 0; i < 50; i++)
        strcat(text, "relu,            ");
    strcat(text, "bad");
    fds_error err = {0};
    assert_int_equal(try_text(text, mnist, 10, &err), FDS_ERR_USAGE);
    char place[32];
    snprintf(place, sizeof place, "character %zu:", strlen(text) - 2);
    expect_in(err.text, place);
}

/* count times the layer, and fc:10 at the end */
static fds_status try_layers(const char *layer, size_t count, fds_error *err) {
    char *text = need(count * (strlen(layer) + 1) + 16, 1);
    for (size_t i = 0; i < count; i++) {
        strcat(text, layer);
        strcat(text, ",");
    }
    strcat(text, "fc:10");
    fds_status status = try_text(text, mnist, 10, err);
    free(text);
    return status;
}

static void there_is_a_limit_on_everything(void **state) {
    (void)state;
    fds_error err = {0};
    expect_ok(try_layers("relu", FDS__MAX_LAYERS - 1, &err), &err);
    assert_int_not_equal(try_layers("relu", FDS__MAX_LAYERS, &err), FDS_OK);
    assert_int_not_equal(try_layers("fc:1000", 5000, &err), FDS_OK);
    assert_int_not_equal(try_text("conv:65535x255p254,fc:10", mnist, 10, &err), FDS_OK);
    assert_int_not_equal(try_text("fc:1000000,fc:1000000,fc:10", mnist, 10, &err), FDS_OK);
    const fds_shape bad[] = {{0, 1, 1},
                             {1, 0, 1},
                             {1, 1, 0},
                             {UINT32_MAX, UINT32_MAX, UINT32_MAX},
                             {1u << 16, 1u << 16, 1u << 16},
                             {1u << 31, 2, 1},
                             {1, 1, UINT32_MAX}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        err.text[0] = 0;
        assert_int_not_equal(try_text("fc:10", bad[i], 10, &err), FDS_OK);
        assert_true(err.text[0] != 0);
        assert_int_not_equal(try_text("conv:3x3p2,fc:10", bad[i], 10, &err), FDS_OK);
    }
    assert_int_not_equal(try_text("fc:classes", mnist, 0, &err), FDS_OK);
    assert_int_not_equal(try_text("fc:classes", mnist, UINT32_MAX, &err), FDS_OK);
}

static void without_memory_there_is_no_network(void **state) {
    (void)state;
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    expect_ok(try_text("lenet5", mnist, 10, NULL), NULL);
    uint64_t calls = fds__fault_arm(FDS__FAULT_ALLOC, 0);
    assert_true(calls > 0);
    for (uint64_t n = 1; n <= calls; n++) {
        fds__fault_arm(FDS__FAULT_ALLOC, n);
        assert_int_equal(try_text("lenet5", mnist, 10, NULL), FDS_ERR_NOMEM);
    }
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
}

/* Any text gives a status; one that is taken is taken again as it was written out. */
static void check_any(const char *text, fds_shape shape, size_t *taken) {
    fds_net *net = NULL;
    fds_error err = {0};
    fds_status status = fds_net_create(text, shape, 10, &net, &err);
    if (status != FDS_OK) {
        assert_int_equal(status, err.status);
        assert_true(err.text[0] != 0);
        assert_null(net);
        return;
    }
    ++*taken;
    size_t weights = fds_net_weights(net);
    char *full = strdup(fds_net_text(net));
    fds_net_free(net);
    expect_ok(fds_net_create(full, shape, 10, &net, &err), &err);
    assert_string_equal(fds_net_text(net), full);
    assert_int_equal(fds_net_weights(net), weights);
    fds_net_free(net);
    free(full);
}

static void garbage_is_answered_with_a_status(void **state) {
    (void)state;
    static const char *const words[] = {
        "conv:",      "relu",      "maxpool",     "avgpool",
        "globalpool", "tanh",      "gelu",        "s2",
        "fc:",        "classes",   "x",           "p",
        ":",          ",",         ",",           " ",
        "1",          "2",         "5",           "0",
        "10",         "residual(", ")",           "residual(relu,conv:3x3p1s2)",
        "batchnorm",  "embed:5x3", "dropout:0.5", "4294967295",
        "lenet5",     "fc:10",     "conv:3x3p1",  "\xff",
        "%s%n"};
    size_t taken = 0;
    for (uint64_t i = 0; i < 10000; i++) {
        fds_rng rng = fds_rng_make(1, 1003, i, 0);
        fds_shape shape = {1 + (uint32_t)fds_rng_below(&rng, 3),
                           1 + (uint32_t)fds_rng_below(&rng, 30),
                           1 + (uint32_t)fds_rng_below(&rng, 30)};
        char text[400] = "";
        uint64_t parts = fds_rng_below(&rng, 12);
        for (uint64_t p = 0; p < parts && i % 3 == 0; p++) /* words in any order */
            strcat(text, words[fds_rng_below(&rng, COUNT(words))]);
        for (uint64_t p = 0; p < parts * 3 && i % 3 == 1; p++) /* any bytes */
            text[p] = (char)(1 + fds_rng_below(&rng, 255));
        if (i % 3 == 2) { /* a good text with a few bytes changed */
            strcpy(text, "conv:6x5p2s2,tanh,avgpool,conv:16x3,relu,maxpool:3,fc:12,relu,fc:10");
            for (uint64_t p = 0; p <= parts % 3; p++)
                text[fds_rng_below(&rng, strlen(text))] =
                    "0123456789:,xps cfr"[fds_rng_below(&rng, 19)];
        }
        check_any(text, shape, &taken);
    }
    assert_true(taken > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets_are_written_out),
        cmocka_unit_test(the_grammar_is_taken),
        cmocka_unit_test(tensors_are_named_and_laid_out_as_in_pytorch),
        cmocka_unit_test(tensors_of_a_block_are_named_body_and_skip),
        cmocka_unit_test(flops_are_those_of_the_definition),
        cmocka_unit_test(every_mistake_is_answered_with_its_place),
        cmocka_unit_test(long_texts_keep_the_place),
        cmocka_unit_test(there_is_a_limit_on_everything),
        cmocka_unit_test(without_memory_there_is_no_network),
        cmocka_unit_test(garbage_is_answered_with_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
