/* SPDX-License-Identifier: Apache-2.0
 * The Open Inference Protocol: requests as clients write them, every datatype and shape, every mistake,
 * and answers in both forms. */
#include "../base/scratch.h"

#include "serve/oip.h"

#include <math.h>

enum { CLASSES = 3, PLAYERS = 2 };

static const char *const classes[] = {"zero", "o\"ne", "zw\xc3\xb6lf"};
static const char *const players[] = {"p0", "p1"};
static const oip_limits limits = {.batch = 4, .json = 1 << 16};

/* Feature vectors of four. */
static const oip_model vectors = {.name = "m",
                                  .version = "v",
                                  .shape = {4, 1, 1},
                                  .classes = CLASSES,
                                  .players = PLAYERS,
                                  .payees = 1,
                                  .class_names = classes,
                                  .player_names = players,
                                  .payee_names = players};

static oip_model images(void) {
    oip_model m = vectors;
    m.shape = (fds_shape){1, 2, 2};
    m.is_image = true;
    return m;
}

static oip_model explained(void) {
    oip_model m = vectors;
    m.is_explained = m.is_paid = true;
    return m;
}

/* ---- requests ---- */

static fds_status parse(const oip_model *m, const char *json, oip_request *out, fds_error *err) {
    return oip_parse(m, &limits, json, strlen(json), SIZE_MAX, out, err);
}

static void expect_samples(const oip_model *m, const char *json, size_t count,
                           const float *wanted) {
    oip_request r;
    fds_error err = {0};
    fds_status status = parse(m, json, &r, &err);
    if (status != FDS_OK)
        fail_msg("%s: %s", json, err.text);
    assert_int_equal(r.count, count);
    for (size_t i = 0; i < count * fds__shape_size(m->shape); i++)
        assert_true(r.samples[i] == wanted[i]);
    oip_request_free(&r);
}

static void expect_refused(const oip_model *m, const char *json, fds_status wanted,
                           const char *phrase) {
    oip_request r;
    fds_error err = {0};
    fds_status status = parse(m, json, &r, &err);
    if (status != wanted || !strstr(err.text, phrase))
        fail_msg("%s: %s \"%s\" instead of \"%s\"", json, fds_status_name(status), err.text,
                 phrase);
    assert_null(r.samples);
}

#define INPUT(shape, type, data)                                                \
    "{\"inputs\":[{\"name\":\"input\",\"shape\":" shape ",\"datatype\":\"" type \
    "\",\"data\":" data "}]}"

static void data_is_flat_or_nested(void **state) {
    (void)state;
    const float wanted[] = {1, 2, 3, 4, 5, 6, 7, 8};
    expect_samples(&vectors, INPUT("[1,4]", "FP32", "[1,2,3,4]"), 1, wanted);
    expect_samples(&vectors, INPUT("[2,4]", "FP32", "[1,2,3,4,5,6,7,8]"), 2, wanted);
    expect_samples(&vectors, INPUT("[2,4]", "FP64", "[[1,2,3,4],[5,6,7,8]]"), 2, wanted);
    expect_samples(&vectors, INPUT("[1,4,1,1]", "FP32", "[[[[1]],[[2]],[[3]],[[4]]]]"), 1, wanted);
}

static void pictures_have_channels_rows_and_columns_or_are_flat(void **state) {
    (void)state;
    const oip_model m = images();
    const float wanted[] = {0, 0.25f, 0.5f, 1};
    expect_samples(&m, INPUT("[1,1,2,2]", "FP32", "[[[[0,0.25],[0.5,1]]]]"), 1, wanted);
    expect_samples(&m, INPUT("[1,2,2]", "FP32", "[[[0,0.25],[0.5,1]]]"), 1, wanted);
    expect_samples(&m, INPUT("[1,4]", "FP32", "[0,0.25,0.5,1]"), 1, wanted);
    const float bytes[] = {0, 51 / 255.0f, 1, 3 / 255.0f};
    expect_samples(&m, INPUT("[1,4]", "UINT8", "[0,51,255,3]"), 1, bytes);
    const float plain[] = {0, 51, 255, 3}; /* not of other datatypes, nor of vectors */
    expect_samples(&m, INPUT("[1,4]", "INT32", "[0,51,255,3]"), 1, plain);
    expect_samples(&vectors, INPUT("[1,4]", "UINT8", "[0,51,255,3]"), 1, plain);
}

static void every_datatype_keeps_to_its_range(void **state) {
    (void)state;
    static const struct {
        const char *type, *least, *most, *below, *above; /* below, above: refused */
        double low, high;
    } types[] = {
        {"BOOL", "false", "true", "-1", "2", 0, 1},
        {"UINT8", "0", "255", "-1", "256", 0, 255},
        {"UINT16", "0", "65535", "-1", "65536", 0, 65535},
        {"UINT32", "0", "4294967295", "-1", "4294967296", 0, 4294967295.0},
        {"UINT64", "0", "9223372036854775807", "-1", "1.5", 0, 9223372036854775807.0},
        {"INT8", "-128", "127", "-129", "128", -128, 127},
        {"INT16", "-32768", "32767", "-32769", "32768", -32768, 32767},
        {"INT32", "-2147483648", "2147483647", "-2147483649", "2147483648", -2147483648.0,
         2147483647},
        {"INT64", "-9223372036854775807", "9223372036854775807", "\"1\"", "0.5",
         -9223372036854775807.0, 9223372036854775807.0},
        {"FP16", "-1.5", "2", "null", "true", -1.5, 2},
        {"FP32", "-1e38", "1e38", "-1e39", "1e39", -1e38, 1e38},
        {"FP64", "-1e38", "1e38", "-1e300", "1e300", -1e38, 1e38},
    };
    for (size_t i = 0; i < COUNT(types); i++) {
        char json[300];
        const float wanted[] = {(float)types[i].low, (float)types[i].high, 0, 1};
        const char *const *wrong = (const char *const[]){types[i].below, types[i].above};
        snprintf(json, sizeof json, INPUT("[1,4]", "%s", "[%s,%s,0,1]"), types[i].type,
                 types[i].least, types[i].most);
        expect_samples(&vectors, json, 1, wanted);
        for (size_t k = 0; k < 2; k++) {
            snprintf(json, sizeof json, INPUT("[1,4]", "%s", "[0,0,0,%s]"), types[i].type,
                     wrong[k]);
            expect_refused(&vectors, json, FDS_ERR_USAGE, "number 3 (from 0)");
        }
    }
}

static void mistakes_are_named(void **state) {
    (void)state;
    static const struct {
        const char *json, *phrase;
    } wrong[] = {
        {"", "empty"},
        {"{", "JSON: line 1"},
        {"[]", "must be a JSON object"},
        {"{\"id\":1,\"id\":2}", "duplicate"},
        {"{}", "\"inputs\" must be an array of one input"},
        {"{\"inputs\":[]}", "one input"},
        {"{\"inputs\":[1]}", "the name \"input\""},
        {"{\"inputs\":{\"name\":\"input\"}}", "one input"},
        {"{\"inputs\":[{\"name\":\"x\"}]}", "the name \"input\" (got \"x\")"},
        {"{\"inputs\":[{\"name\":\"input\"}]}", "no \"datatype\""},
        {"{\"inputs\":[{\"name\":\"input\",\"datatype\":\"FP32\"}]}", "\"shape\" must be"},
        {INPUT("[1,4]", "BYTES", "[1,2,3,4]"), "BYTES is not accepted"},
        {INPUT("[1,4]", "FP23", "[1,2,3,4]"), "did you mean \"FP32\""},
        {INPUT("[1,4]", "BF16", "[1,2,3,4]"), "unknown datatype"},
        {INPUT("[4]", "FP32", "[1,2,3,4]"), "shape [4]: it must be [batch, 4]"},
        {INPUT("[0,4]", "FP32", "[]"), "shape [0, 4]"},
        {INPUT("[1,5]", "FP32", "[1,2,3,4,5]"), "shape [1, 5]"},
        {INPUT("[1,2,2]", "FP32", "[1,2,3,4]"), "shape [1, 2, 2]"},
        {INPUT("[-1,4]", "FP32", "[1,2,3,4]"), "item 0 must be an integer from 0"},
        {INPUT("[1.0,4]", "FP32", "[1,2,3,4]"), "item 0 must be"},
        {INPUT("[]", "FP32", "[1]"), "\"shape\" must be"},
        {INPUT("[1,1,1,1,1,1,1,1,4]", "FP32", "[1,2,3,4]"), "\"shape\" must be"},
        {INPUT("[1,9223372036854775807]", "FP32", "[1]"), "shape [1, 9223372036854775807]"},
        {INPUT("[1,4]", "FP32", "[1,2,3]"), "has 3 numbers, but the shape needs 4"},
        {INPUT("[1,4]", "FP32", "[1,2,3,4,5]"), "has 5 numbers"},
        {INPUT("[1,4]", "FP32", "3"), "\"data\" must be an array"},
        {INPUT("[1,4]", "FP32", "[1,2,3,\"4\"]"), "number 3 (from 0) of the data is no number"},
        {INPUT("[1,4]", "FP32", "[1,2,[3],4]"), "array where a number belongs"},
        {INPUT("[1,4]", "FP32", "[[1,2,3]]"), "does not follow the shape"},
        {INPUT("[1,4]", "FP32", "[[1,2,3,4],[1,2,3,4]]"), "2 items instead of 1"},
        {INPUT("[1,4]", "FP32", "[1,2,3,1e999]"), "overflow"},
        {"{\"id\":7,\"inputs\":[]}", "\"id\" must be a string"},
        {"{\"parameters\":[],\"inputs\":[]}", "must be an object"},
        {"{\"parameters\":{\"a\":[1]},\"inputs\":[]}", "a string, a number or a boolean"},
        {"{\"parameters\":{\"a\":null},\"inputs\":[]}", "a string, a number or a boolean"},
        {"{\"parameters\":{\"binary_data_output\":1},\"inputs\":[]}", "true or false"},
        {"{\"parameters\":{\"fds_amount\":0},\"inputs\":[]}", "whole number of units"},
        {"{\"parameters\":{\"fds_amount\":1.5},\"inputs\":[]}", "whole number of units"},
        {"{\"parameters\":{\"fds_amount\":9223372036854775807},\"inputs\":[]}", "whole number"},
        {"{\"outputs\":{},\"inputs\":[]}", "\"outputs\" must be an array"},
        {"{\"outputs\":[{}],\"inputs\":[]}", "no output \"\""},
        {"{\"outputs\":[{\"name\":\"lable\"}],\"inputs\":[]}", "did you mean \"label\""},
        {"{\"outputs\":[{\"name\":\"values\"}],\"inputs\":[]}", "m has no output \"values\""},
        {"{\"outputs\":[{\"name\":\"label\"},{\"name\":\"label\"}],\"inputs\":[]}", "twice"},
        {"{\"outputs\":[{\"name\":\"label\",\"parameters\":{\"classification\":2}}]}",
         "not supported"},
        {"{\"outputs\":[{\"name\":\"label\",\"parameters\":{\"shared_memory_region\":\"a\"}}]}",
         "not supported"},
        {"[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", "nested more than"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++)
        expect_refused(&vectors, wrong[i].json, FDS_ERR_USAGE, wrong[i].phrase);
    expect_refused(&vectors, INPUT("[5,4]", "FP32", "[]"), FDS_ERR_LIMIT, "at most 4");
    const oip_limits small = {.batch = 4, .json = 10};
    oip_request r;
    fds_error err = {0};
    assert_int_equal(oip_parse(&vectors, &small, "{          }", 12, SIZE_MAX, &r, &err),
                     FDS_ERR_LIMIT);
}

static void brackets_in_texts_do_not_nest(void **state) {
    (void)state;
    const float wanted[] = {1, 2, 3, 4};
    expect_samples(&vectors,
                   "{\"id\":\"[[[[[[[[[[[[[[[[[[[[\\\"[[\",\"inputs\":[{\"name\":\"input\","
                   "\"shape\":[1,4],\"datatype\":\"FP32\",\"data\":[1,2,3,4]}]}",
                   1, wanted);
}

/* ---- raw tensors ---- */

static fds_status parse_raw(const oip_model *m, const char *json, const void *raw, size_t size,
                            oip_request *out, fds_error *err) {
    char body[4096];
    size_t json_size = strlen(json);
    memcpy(body, json, json_size);
    memcpy(body + json_size, raw, size);
    return oip_parse(m, &limits, body, json_size + size, json_size, out, err);
}

/* As the Python client of Triton sends it: compact JSON whose members are in this order, and all
 * outputs as raw tensors. */
static void a_request_of_tritons_client_is_understood(void **state) {
    (void)state;
    const float raw[] = {1.5f, -2, 3e-20f, 4, 5, 6, 7, 8};
    oip_request r;
    fds_error err = {0};
    expect_ok(
        parse_raw(&vectors,
                  "{\"id\":\"7\",\"inputs\":[{\"name\":\"input\",\"shape\":[2,4],\"datatype\":"
                  "\"FP32\",\"parameters\":{\"binary_data_size\":32}}],\"parameters\":{"
                  "\"binary_data_output\":true}}",
                  raw, sizeof raw, &r, &err),
        &err);
    assert_int_equal(r.count, 2);
    assert_memory_equal(r.samples, raw, sizeof raw);
    assert_string_equal(r.id, "7");
    assert_int_equal(r.asked_count, 2);
    assert_true(r.asked[0].is_binary && r.asked[1].is_binary);
    oip_request_free(&r);
    expect_ok(parse_raw(&vectors,
                        "{\"inputs\":[{\"name\":\"input\",\"shape\":[2,4],\"datatype\":\"FP32\","
                        "\"parameters\":{\"binary_data_size\":32}}],\"outputs\":[{\"name\":"
                        "\"probabilities\",\"parameters\":{\"binary_data\":true}},{\"name\":"
                        "\"label\",\"parameters\":{\"binary_data\":false}}]}",
                        raw, sizeof raw, &r, &err),
              &err);
    assert_int_equal(r.asked_count, 2);
    assert_int_equal(r.asked[0].what, OIP_PROBABILITIES);
    assert_true(r.asked[0].is_binary && !r.asked[1].is_binary && !r.has_id);
    oip_request_free(&r);
}

static void raw_numbers_of_every_datatype_are_read(void **state) {
    (void)state;
    static const uint16_t halves[] = {0x3c00, 0xc000, 0x3555, 0x0001}; /* 1, -2, 1/3, 2^-24 */
    static const double doubles[] = {0.1, -1, 1e30, 0};
    static const struct {
        const char *type;
        const void *raw;
        size_t size;
        double wanted[4];
    } cases[] = {
        {"BOOL", "\0\1\0\7", 1, {0, 1, 0, 1}},
        {"UINT8", "\0\1\177\377", 1, {0, 1, 127, 255}},
        {"INT8", "\0\1\177\377", 1, {0, 1, 127, -1}},
        {"UINT16", "\1\0\0\1\377\377\0\200", 2, {1, 256, 65535, 32768}},
        {"INT16", "\1\0\0\1\377\377\0\200", 2, {1, 256, -1, -32768}},
        {"UINT32",
         "\1\0\0\0\0\0\0\200\377\377\377\377\0\0\0\0",
         4,
         {1, 2147483648.0, 4294967295.0, 0}},
        {"INT32", "\1\0\0\0\0\0\0\200\377\377\377\377\0\0\0\0", 4, {1, -2147483648.0, -1, 0}},
        {"UINT64",
         "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\200\377\377\377\377\377\377\377\377\0\0\0\0\0\0\0",
         8,
         {1, 9223372036854775808.0, 18446744073709551615.0, 0}},
        {"INT64",
         "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\200\377\377\377\377\377\377\377\377\0\0\0\0\0\0\0",
         8,
         {1, -9223372036854775808.0, -1, 0}},
        {"FP16", halves, 2, {1, -2, 0.333251953125, 5.9604644775390625e-08}},
        {"FP64", doubles, 8, {0.1, -1, 1e30, 0}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char json[300];
        oip_request r;
        fds_error err = {0};
        snprintf(json, sizeof json,
                 "{\"inputs\":[{\"name\":\"input\",\"shape\":[1,4],\"datatype\":\"%s\","
                 "\"parameters\":{\"binary_data_size\":%zu}}]}",
                 cases[i].type, 4 * cases[i].size);
        expect_ok(parse_raw(&vectors, json, cases[i].raw, 4 * cases[i].size, &r, &err), &err);
        for (size_t k = 0; k < 4; k++)
            assert_true(r.samples[k] == (float)cases[i].wanted[k]);
        oip_request_free(&r);
    }
}

static void raw_tensors_fit_exactly(void **state) {
    (void)state;
    const float raw[] = {1, 2, 3, 4, INFINITY};
    static const struct {
        const char *given, *phrase;
        size_t size;
    } wrong[] = {
        {"\"parameters\":{\"binary_data_size\":15}", "must be 16", 16},
        {"\"parameters\":{\"binary_data_size\":-16}", "must be 16", 16},
        {"\"parameters\":{\"binary_data_size\":\"16\"}", "must be 16", 16},
        {"\"parameters\":{\"binary_data_size\":16}", "15 bytes follow the JSON instead of 16", 15},
        {"\"parameters\":{\"binary_data_size\":16}", "17 bytes follow", 17},
        {"\"parameters\":{\"binary_data_size\":16},\"data\":[1]", "both", 16},
        {"\"data\":[1,2,3,4]", "no input has \"binary_data_size\"", 16},
    };
    oip_request r;
    fds_error err = {0};
    char json[300];
    for (size_t i = 0; i < COUNT(wrong); i++) {
        snprintf(json, sizeof json,
                 "{\"inputs\":[{\"name\":\"input\",\"shape\":[1,4],\"datatype\":\"FP32\",%s}]}",
                 wrong[i].given);
        assert_int_equal(parse_raw(&vectors, json, raw, wrong[i].size, &r, &err), FDS_ERR_USAGE);
        if (!strstr(err.text, wrong[i].phrase))
            fail_msg("%s: %s", json, err.text);
    }
    const char *good = "{\"inputs\":[{\"name\":\"input\",\"shape\":[1,4],\"datatype\":\"FP32\","
                       "\"parameters\":{\"binary_data_size\":16}}]}";
    assert_int_equal(parse_raw(&vectors, good, raw + 1, 16, &r, &err), FDS_ERR_USAGE);
    assert_non_null(strstr(err.text, "number 3 (from 0) of the data is not finite"));
    assert_int_equal(parse(&vectors, good, &r, &err), FDS_ERR_USAGE);
    assert_non_null(strstr(err.text, "Inference-Header-Content-Length"));
    assert_int_equal(oip_parse(&vectors, &limits, good, 10, 11, &r, &err), FDS_ERR_USAGE);
    assert_non_null(strstr(err.text, "is 11, but the body has 10"));
}

/* ---- version 1 ---- */

static void instances_are_samples(void **state) {
    (void)state;
    const oip_model m = images();
    const char *good[] = {"{\"instances\":[[1,2,3,4],[5,6,7,8]]}",
                          "{\"instances\":[[[1,2],[3,4]],[[5,6],[7,8]]]}",
                          "{\"instances\":[[[[1,2],[3,4]]],[[[5,6],[7,8]]]]}",
                          ("{\"instances\":[{\"input\":[1,2,3,4]},[5,6,7,8]],"
                           "\"parameters\":{\"fds_amount\":12}}")};
    const char *wrong[] = {"{}",
                           "{\"instances\":[]}",
                           "{\"instances\":[1]}",
                           "{\"instances\":[[1,2,3]]}",
                           "{\"instances\":[[1,2,3,4],[1,2,3]]}",
                           "{\"instances\":[[1,2,3,4],[[1,2],[3,4]]]}",
                           "{\"instances\":[{\"x\":[1,2,3,4]}]}",
                           "{\"instances\":[[1,2,3,\"4\"]]}"};
    oip_request r;
    fds_error err = {0};
    for (size_t i = 0; i < COUNT(good); i++) {
        expect_ok(oip_parse_v1(&m, &limits, good[i], strlen(good[i]), &r, &err), &err);
        assert_int_equal(r.count, 2);
        assert_int_equal(r.amount, i == 3 ? 12 : 0);
        for (size_t k = 0; k < 8; k++)
            assert_true(r.samples[k] == (float)(k + 1));
        oip_request_free(&r);
    }
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_equal(oip_parse_v1(&m, &limits, wrong[i], strlen(wrong[i]), &r, &err),
                         FDS_ERR_USAGE);
    oip_model single = vectors; /* one number is a sample */
    single.shape = (fds_shape){1, 1, 1};
    const char *numbers = "{\"instances\":[3,[4]]}";
    expect_ok(oip_parse_v1(&single, &limits, numbers, strlen(numbers), &r, &err), &err);
    assert_true(r.samples[0] == 3 && r.samples[1] == 4);
    oip_request_free(&r);
}

/* ---- answers ---- */

static const uint32_t labels[] = {1, 2};
static const float probs[] = {0.1f, 0.75f, 0.15f, 0, 0.25f, 0.75f};
static const double values[] = {0.5, -0.25, 1e-7, 3};
static const double errors[] = {0.125, NAN, 0, 1};
static const double shares[] = {1, 1};
static const oip_answers answers = {
    .labels = labels, .probs = probs, .values = values, .errors = errors, .shares = shares};

static oip_request asked(const oip_model *m, const char *outputs) {
    char json[600];
    oip_request r;
    fds_error err = {0};
    snprintf(json, sizeof json,
             "{%s\"inputs\":[{\"name\":\"input\",\"shape\":[2,4],\"datatype\":\"FP32\",\"data\":"
             "[1,2,3,4,5,6,7,8]}]}",
             outputs);
    expect_ok(parse(m, json, &r, &err), &err);
    return r;
}

static fds__text finish(const oip_model *m, oip_request *r, size_t *json_size) {
    const uint64_t receipts[] = {7, 12345};
    oip_body body, kept;
    fds__text text = {0}, packed = {0}, again = {0};
    size_t size;
    fds_error err = {0};
    expect_ok(oip_compose(m, r, &answers, &body, &err), &err);
    expect_ok(oip_finish(&body, receipts, &text, json_size, &err), &err);
    /* what is kept gives the same */
    expect_ok(oip_pack(&body, &packed, &err), &err);
    expect_ok(oip_unpack(packed.data, packed.used, &kept, &err), &err);
    expect_ok(oip_finish(&kept, receipts, &again, &size, &err), &err);
    assert_int_equal(size, *json_size);
    assert_int_equal(again.used, text.used);
    assert_memory_equal(again.data, text.data, text.used);
    oip_body_free(&kept);
    for (size_t cut = 0; cut < packed.used && cut < 32; cut++)
        if (oip_unpack(packed.data, cut, &kept, &err) == FDS_OK) /* a shorter text is one too */
            oip_body_free(&kept);
    fds__free(packed.data);
    fds__free(again.data);
    oip_body_free(&body);
    oip_request_free(r);
    return text;
}

static void answers_as_json(void **state) {
    (void)state;
    size_t json_size;
    oip_request r = asked(&vectors, "\"id\":\"a\\\"b\",");
    fds__text text = finish(&vectors, &r, &json_size);
    assert_string_equal(
        text.data,
        "{\"model_name\":\"m\",\"model_version\":\"v\",\"id\":\"a\\\"b\",\"outputs\":[{\"name\":"
        "\"label\",\"datatype\":\"BYTES\",\"shape\":[2],\"data\":[\"o\\\"ne\",\"zw\xc3\xb6lf\"]},{"
        "\"name\":\"probabilities\",\"datatype\":\"FP32\",\"shape\":[2,3],\"data\":[0.1,0.75,0.15,"
        "0,"
        "0.25,0.75]}]}");
    assert_true(json_size == SIZE_MAX);
    fds__free(text.data);
    const oip_model m = explained();
    r = asked(&m,
              "\"outputs\":[{\"name\":\"receipt\"},{\"name\":\"errors\"},{\"name\":\"players\"}],");
    text = finish(&m, &r, &json_size);
    assert_string_equal(
        text.data,
        "{\"model_name\":\"m\",\"model_version\":\"v\",\"outputs\":[{\"name\":\"receipt\","
        "\"datatype\":\"INT64\",\"shape\":[2],\"data\":[7,12345]},{\"name\":\"errors\","
        "\"datatype\":\"FP64\",\"shape\":[2,2],\"data\":[0.125,null,0,1]},{\"name\":\"players\","
        "\"datatype\":\"BYTES\",\"shape\":[2],\"data\":[\"p0\",\"p1\"]}]}");
    fds__free(text.data);
}

static void answers_as_raw_tensors(void **state) {
    (void)state;
    const oip_model m = explained();
    size_t json_size;
    oip_request r =
        asked(&m, "\"outputs\":[{\"name\":\"label\",\"parameters\":{\"binary_data\":true}},"
                  "{\"name\":\"values\",\"parameters\":{\"binary_data\":true}},"
                  "{\"name\":\"receipt\",\"parameters\":{\"binary_data\":true}}],");
    fds__text text = finish(&m, &r, &json_size);
    const char *json =
        "{\"model_name\":\"m\",\"model_version\":\"v\",\"outputs\":[{\"name\":\"label\","
        "\"datatype\":\"BYTES\",\"shape\":[2],\"parameters\":{\"binary_data_size\":18}},{\"name\":"
        "\"values\",\"datatype\":\"FP64\",\"shape\":[2,2],\"parameters\":{\"binary_data_size\":32}}"
        ","
        "{\"name\":\"receipt\",\"datatype\":\"INT64\",\"shape\":[2],\"parameters\":{"
        "\"binary_data_size\":16}}]}";
    assert_int_equal(json_size, strlen(json));
    assert_memory_equal(text.data, json, json_size);
    assert_int_equal(text.used, json_size + 18 + 32 + 16);
    const char *raw = text.data + json_size;
    assert_memory_equal(raw, "\4\0\0\0o\"ne\6\0\0\0zw\xc3\xb6lf", 18);
    assert_memory_equal(raw + 18, values, sizeof values);
    assert_memory_equal(raw + 18 + 32, "\7\0\0\0\0\0\0\0\x39\x30\0\0\0\0\0\0", 16);
    fds__free(text.data);
}

static void a_receipt_in_json_lengthens_the_head_of_raw_tensors(void **state) {
    (void)state;
    const oip_model m = explained();
    size_t json_size;
    oip_request r = asked(&m, "\"outputs\":[{\"name\":\"receipt\"},{\"name\":\"values\","
                              "\"parameters\":{\"binary_data\":true}}],");
    fds__text text = finish(&m, &r, &json_size);
    assert_int_equal(text.used, json_size + sizeof values);
    assert_memory_equal(text.data + json_size, values, sizeof values);
    assert_true(text.data[json_size - 1] == '}');
    assert_non_null(strstr(text.data, "\"data\":[7,12345]"));
    fds__free(text.data);
}

static void answers_of_version_1(void **state) {
    (void)state;
    const oip_model m = explained();
    const char *json = "{\"instances\":[[1,2,3,4],[5,6,7,8]]}";
    size_t json_size;
    oip_request r;
    fds_error err = {0};
    expect_ok(oip_parse_v1(&vectors, &limits, json, strlen(json), &r, &err), &err);
    fds__text text = finish(&vectors, &r, &json_size);
    assert_string_equal(text.data,
                        "{\"predictions\":[{\"label\":\"o\\\"ne\",\"probabilities\":[0.1,"
                        "0.75,0.15]},{\"label\":\"zw\xc3\xb6lf\",\"probabilities\":[0,"
                        "0.25,0.75]}]}");
    fds__free(text.data);
    expect_ok(oip_parse_v1(&m, &limits, json, strlen(json), &r, &err), &err);
    text = finish(&m, &r, &json_size);
    assert_non_null(strstr(text.data, "{\"explanations\":[{\"label\":"));
    assert_non_null(strstr(text.data,
                           "\"values\":[0.5,-0.25],\"errors\":[0.125,null],\"shares\":[1],"
                           "\"receipt\":7},{"));
    assert_non_null(strstr(text.data, "\"receipt\":12345}],\"players\":[\"p0\",\"p1\"],\"payees\":["
                                      "\"p0\"]}"));
    fds__free(text.data);
}

static void metadata_and_errors(void **state) {
    (void)state;
    const oip_model m = images();
    oip_model regression = explained();
    regression.is_regression = true;
    fds__text text = {0};
    oip_write_metadata(&text, &m);
    assert_string_equal(
        text.data,
        "{\"name\":\"m\",\"versions\":[\"v\"],\"platform\":\"fds\",\"inputs\":[{\"name\":\"input\","
        "\"datatype\":\"FP32\",\"shape\":[-1,1,2,2]}],\"outputs\":[{\"name\":\"label\","
        "\"datatype\":"
        "\"BYTES\",\"shape\":[-1]},{\"name\":\"probabilities\",\"datatype\":\"FP32\",\"shape\":[-1,"
        "3]"
        "}]}");
    text.used = 0;
    oip_write_metadata(&text, &regression);
    assert_non_null(strstr(text.data,
                           "\"shape\":[-1,4]}],\"outputs\":[{\"name\":\"prediction\","
                           "\"datatype\":\"FP64\",\"shape\":[-1]},{\"name\":\"values\""));
    assert_null(strstr(text.data, "label"));
    text.used = 0;
    oip_write_error(&text, "a \"b\"\n\x01\xff");
    assert_string_equal(text.data, "{\"error\":\"a \\\"b\\\"\\u000a\\u0001?\"}");
    fds__free(text.data);
}

static void damaged_kept_answers_are_refused(void **state) {
    (void)state;
    oip_body body;
    fds_error err = {0};
    static const char hole_outside[] = "FDSB\377\377\377\377\377\377\377\377\1\0\0\0\5\0\0\0abc",
                      too_many[] = "FDSB\377\377\377\377\377\377\377\377\377\0\0\0abc",
                      json_outside[] = "FDSB\11\0\0\0\0\0\0\0\0\0\0\0abc",
                      other[] = "FDSC\377\377\377\377\377\377\377\377\0\0\0\0abc";
    assert_int_equal(oip_unpack("", 0, &body, &err), FDS_ERR_CORRUPT);
    assert_int_equal(oip_unpack(hole_outside, sizeof hole_outside - 1, &body, &err),
                     FDS_ERR_CORRUPT);
    assert_int_equal(oip_unpack(too_many, sizeof too_many - 1, &body, &err), FDS_ERR_CORRUPT);
    assert_int_equal(oip_unpack(json_outside, sizeof json_outside - 1, &body, &err),
                     FDS_ERR_CORRUPT);
    assert_int_equal(oip_unpack(other, sizeof other - 1, &body, &err), FDS_ERR_CORRUPT);
}

static void failed_allocations_leave_nothing_behind(void **state) {
    (void)state;
    const oip_model m = explained();
    const char *json = INPUT("[1,4]", "FP32", "[1,2,3,4]");
    for (uint64_t nth = 1;; nth++) {
        oip_request r;
        oip_body body = {.json_size = SIZE_MAX};
        fds__text text = {0};
        size_t size;
        fds_error err = {0};
        fds__fault_arm(FDS__FAULT_ALLOC, nth);
        fds_status status = parse(&m, json, &r, &err);
        if (status == FDS_OK)
            status = oip_compose(&m, &r, &answers, &body, &err);
        if (status == FDS_OK)
            status = oip_finish(&body, (const uint64_t[]){1}, &text, &size, &err);
        uint64_t calls = fds__fault_arm(FDS__FAULT_ALLOC, 0);
        fds__free(text.data);
        oip_body_free(&body);
        oip_request_free(&r);
        if (calls < nth) {
            assert_int_equal(status, FDS_OK);
            break;
        }
        assert_int_equal(status, FDS_ERR_NOMEM);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_is_flat_or_nested),
        cmocka_unit_test(pictures_have_channels_rows_and_columns_or_are_flat),
        cmocka_unit_test(every_datatype_keeps_to_its_range),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(brackets_in_texts_do_not_nest),
        cmocka_unit_test(a_request_of_tritons_client_is_understood),
        cmocka_unit_test(raw_numbers_of_every_datatype_are_read),
        cmocka_unit_test(raw_tensors_fit_exactly),
        cmocka_unit_test(instances_are_samples),
        cmocka_unit_test(answers_as_json),
        cmocka_unit_test(answers_as_raw_tensors),
        cmocka_unit_test(a_receipt_in_json_lengthens_the_head_of_raw_tensors),
        cmocka_unit_test(answers_of_version_1),
        cmocka_unit_test(metadata_and_errors),
        cmocka_unit_test(damaged_kept_answers_are_refused),
        cmocka_unit_test(failed_allocations_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
