/* SPDX-License-Identifier: Apache-2.0
 * Malformed model files: each is answered with a status that names what is wrong. */
#include "model_fixture.h"

#include <math.h>

static size_t files_tried;

/* One black image is answered with probabilities. */
static void expect_usable(const fds_model *model) {
    fds__model_info info = fds__model_get_info(model);
    uint8_t *black = need((size_t)info.shape.channels * info.shape.height * info.shape.width, 1);
    float *probs = need(info.classes, sizeof *probs);
    fds_dataset *ds = NULL;
    fds_error err;
    const uint16_t label = 0;
    expect_ok(fds__dataset_create(1, info.shape, black, NULL, &label, 1, NULL, &ds, &err), &err);
    expect_ok(fds_model_predict(model, ds, NULL, 1, 1, probs, NULL, &err), &err);
    fds_dataset_free(ds);
    free(probs);
    free(black);
}

/* Loads bytes as a file. A model that is taken must be fit for use. */
static fds_status try_bytes(const char *bytes, size_t size, fds_error *err) {
    const char *path = scratch_path("tried");
    fds_model *model = NULL;
    memset(err, 0, sizeof *err);
    scratch_write(path, bytes, size);
    files_tried++;
    fds_status status = fds_model_load(path, &model, err);
    if (status != FDS_OK) {
        assert_null(model);
        assert_int_equal(err->status, status);
        expect_in(err->text, path);
        return status;
    }
    fds__model_info info = fds__model_get_info(model);
    assert_true(info.weights > 0 && info.classes > 0);
    for (uint32_t i = 0; i < info.classes; i++)
        assert_non_null(fds_model_class_name(model, i));
    expect_usable(model);
    fds_model_free(model);
    return FDS_OK;
}

static void every_flipped_bit_gives_a_status(void **state) {
    (void)state;
    model_file file = make_file();
    fds_error err;
    size_t taken = 0;
    for (size_t i = 0; i < file.size; i++) {
        const int masks[] = {0x01, 0x20, 0xff};
        for (size_t k = 0; k < COUNT(masks); k++) {
            file.bytes[i] = (char)(file.bytes[i] ^ masks[k]);
            fds_status status = try_bytes(file.bytes, file.size, &err);
            taken += status == FDS_OK;
            if (i < 8)
                assert_int_not_equal(status, FDS_OK);
            file.bytes[i] = (char)(file.bytes[i] ^ masks[k]);
        }
    }
    assert_true(taken > 100 && taken < files_tried); /* weights may have any finite value */
    expect_ok(try_bytes(file.bytes, file.size, &err), &err);
    free(file.bytes);
}

/* A model of a regression keeps the mean and the deviation of its targets. */
static void models_of_numbers_are_read_as_they_were(void **state) {
    (void)state;
    fds_dataset *ds = make_dataset();
    double targets[SAMPLES];
    for (size_t i = 0; i < SAMPLES; i++)
        targets[i] = 1000.0 + 10.0 * (double)fds_dataset_label(ds, i);
    fds_error err;
    expect_ok(fds_dataset_set_targets(ds, targets, &err), &err);
    fds_model *model = make_model(ds), *again = NULL;
    float a[SAMPLES], b[SAMPLES];
    double loss, r2, sum = 0;
    expect_ok(fds_model_save(model, scratch_path("numbers"), &err), &err);
    expect_ok(fds_model_load(scratch_path("numbers"), &again, &err), &err);
    expect_ok(fds_model_predict(model, ds, NULL, SAMPLES, 1, a, NULL, &err), &err);
    expect_ok(fds_model_predict(again, ds, NULL, SAMPLES, 2, b, NULL, &err), &err);
    assert_memory_equal(a, b, sizeof a);
    expect_ok(fds_model_score(again, ds, NULL, SAMPLES, 1, &loss, &r2, NULL, &err), &err);
    for (size_t i = 0; i < SAMPLES; i++)
        sum += pow((double)a[i] - targets[i], 2) / SAMPLES;
    assert_true(fabs(loss - sum) < 1e-9 * sum && r2 > 0.5 && r2 < 1); /* in units of the targets */
    assert_true(fds__model_get_info(again).is_regression);
    fds_dataset *classes = make_dataset();
    assert_int_equal(fds_model_score(again, classes, NULL, SAMPLES, 1, &loss, &r2, NULL, &err),
                     FDS_ERR_SHAPE);
    expect_in(err.text, "the model predicts numbers, but");
    fds_dataset_free(classes);
    fds_model_free(model);
    fds_model_free(again);
    fds_dataset_free(ds);
}

static void every_cut_off_file_is_refused(void **state) {
    (void)state;
    model_file file = make_file();
    fds_error err;
    for (size_t size = 0; size < file.size; size++)
        assert_int_equal(try_bytes(file.bytes, size, &err), FDS_ERR_FORMAT);
    file.bytes = realloc(file.bytes, file.size + 64);
    assert_non_null(file.bytes);
    memset(file.bytes + file.size, 0, 64);
    for (size_t more = 1; more <= 64; more++)
        assert_int_equal(try_bytes(file.bytes, file.size + more, &err), FDS_ERR_FORMAT);
    free(file.bytes);
}

static void lying_header_lengths_are_refused(void **state) {
    (void)state;
    model_file file = make_file();
    fds_error err;
    const uint64_t lies[] = {0,
                             1,
                             2,
                             file.header - 1,
                             file.header + 1,
                             file.header + 4,
                             file.size - 8,
                             file.size - 7,
                             file.size,
                             1u << 31,
                             UINT32_MAX,
                             (uint64_t)1 << 32 | file.header,
                             (uint64_t)1 << 63,
                             INT64_MAX,
                             UINT64_MAX,
                             UINT64_MAX - 7,
                             UINT64_MAX - 8 - file.header};
    for (size_t i = 0; i < COUNT(lies); i++) {
        memcpy(file.bytes, &lies[i], 8);
        if (lies[i] == file.header - 1) /* one blank less moves the data by a byte */
            assert_int_not_equal(try_bytes(file.bytes, file.size, &err), FDS_OK);
        else
            assert_int_equal(try_bytes(file.bytes, file.size, &err), FDS_ERR_FORMAT);
    }
    free(file.bytes);
}

/* A file with another header before the same data. */
static fds_status try_header(const model_file *file, const char *header, size_t length,
                             fds_error *err) {
    size_t data = file->size - 8 - file->header;
    char *bytes = need(8 + length + data, 1);
    uint64_t n = length;
    memcpy(bytes, &n, 8);
    memcpy(bytes + 8, header, length);
    memcpy(bytes + 8 + length, file->bytes + 8 + file->header, data);
    fds_status status = try_bytes(bytes, 8 + length + data, err);
    free(bytes);
    return status;
}

/* The header with one part of it replaced. */
static fds_status try_edit(const model_file *file, const char *from, const char *to,
                           fds_error *err) {
    size_t size = file->header + strlen(to) + 1;
    char *old = need(file->header + 1, 1), *edited = need(size, 1);
    memcpy(old, file->bytes + 8, file->header);
    const char *at = strstr(old, from);
    if (!at)
        fail_msg("the header has no %s: %s", from, old);
    snprintf(edited, size, "%.*s%s%s", (int)(at - old), old, to, at + strlen(from));
    fds_status status = try_header(file, edited, strlen(edited), err);
    free(old);
    free(edited);
    return status;
}

typedef struct {
    const char *from, *to, *named; /* named: what the message must say */
} edit;

static void refuse_edits(const edit *edits, size_t count) {
    model_file file = make_file();
    for (size_t i = 0; i < count; i++) {
        fds_error err;
        fds_status status = try_edit(&file, edits[i].from, edits[i].to, &err);
        if (status == FDS_OK || !strstr(err.text, edits[i].named))
            fail_msg("%s -> %s: %s: %s", edits[i].from, edits[i].to, fds_status_name(status),
                     err.text);
    }
    free(file.bytes);
}

static void wrong_tensors_are_named(void **state) {
    (void)state;
    static const edit edits[] = {
        /* another type of number */
        {"\"F32\",\"shape\":[2,1", "\"F16\",\"shape\":[2,1", "0.weight"},
        {"\"F32\",\"shape\":[2,1", "\"F64\",\"shape\":[2,1", "0.weight"},
        {"\"F32\",\"shape\":[2,1", "\"\",\"shape\":[2,1", "0.weight"},
        {"\"F32\",\"shape\":[2,1", "32,\"shape\":[2,1", "0.weight"},
        {"\"F32\",\"shape\":[2,1", "null,\"shape\":[2,1", "0.weight"},
        {"\"dtype\":\"F32\",\"shape\":[2,1", "\"shape\":[2,1", "0.weight"},
        /* another place */
        {"[0,72]", "[0,76]", "0.weight"},
        {"[0,72]", "[72,0]", "0.weight"},
        {"[0,72]", "[-4,68]", "0.weight"},
        {"[0,72]", "[0,1000000]", "0.weight"},
        {"[0,72]", "[18446744073709551544,18446744073709551616]", ""}, /* not even a number */
        {"[0,72]", "[9223372036854775735,9223372036854775807]", "0.weight"},
        {"[0,72]", "[0.0,72.0]", "0.weight"},
        {"[0,72]", "[0]", "0.weight"},
        {"[0,72]", "[0,72,72]", "0.weight"},
        {"[0,72]", "\"0,72\"", "0.weight"},
        {"[0,72]", "[\"0\",\"72\"]", "0.weight"},
        {"[0,72]", "[4,76]", ""},
        {"[72,80]", "[64,72]", ""}, /* overlaps, and leaves a gap */
        {"[72,80]", "[0,8]", ""},
        {"[80,176]", "[92,188]", ""},
        {"[176,188]", "[180,192]", "4.bias"},
        /* another shape */
        {"[2,1,3,3]", "[1,2,3,3]", "0.weight"},
        {"[2,1,3,3]", "[2,1,9]", "0.weight"},
        {"[2,1,3,3]", "[18]", "0.weight"},
        {"[2,1,3,3]", "[2,1,3,3,1]", "0.weight"},
        {"[2,1,3,3]", "[2,1,3,4]", "0.weight"},
        {"[2,1,3,3]", "[2,1,-3,-3]", "0.weight"},
        {"[2,1,3,3]", "[2,1,3,3.0]", "0.weight"},
        {"[2,1,3,3]", "[]", "0.weight"},
        {"[2,1,3,3]", "[0,0,0,0]", "0.weight"},
        {"[2,1,3,3]", "[4294967296,4294967296,4294967296,18]", "0.weight"},
        {"[2,1,3,3]", "[65536,65536,65536,65536]", "0.weight"},
        {"[2,1,3,3]", "{}", "0.weight"},
        {"\"shape\":[3,8]", "\"shape\":[8,3]", "4.weight"},
        /* another name: one is missing, another too many */
        {"\"0.bias\"", "\"0.bia\"", "0.bias"},
        {"\"4.weight\"", "\"5.weight\"", "4.weight"},
        {"\"0.bias\"", "\"0.weight\"", ""}, /* twice the same */
        {"{\"__metadata__\"",
         "{\"surplus\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},\"__metadata__\"",
         "surplus"},
        {"{\"__metadata__\"", "{\"surplus\":5,\"__metadata__\"", "surplus"},
        {"{\"__metadata__\"", "{\"surplus\":null,\"__metadata__\"", "surplus"},
    };
    refuse_edits(edits, COUNT(edits));
}

/* Four bytes that belong to no tensor, before the last. */
static void gaps_between_tensors_are_refused(void **state) {
    (void)state;
    model_file file = make_file();
    fds_error err;
    file.bytes = realloc(file.bytes, file.size + 4);
    assert_non_null(file.bytes);
    memset(file.bytes + file.size, 0, 4);
    file.size += 4;
    assert_int_equal(try_edit(&file, "[176,188]", "[180,192]", &err), FDS_ERR_FORMAT);
    expect_in(err.text, "gap at byte 176");
    free(file.bytes);
}

static void wrong_metadata_is_named(void **state) {
    (void)state;
    static const edit edits[] = {
        {"\"fds.network\"", "\"fds.other\"", "fds.network"},
        {"conv:2x3,relu", "conv:2y3,relu", "character 7"},
        {"conv:2x3,relu", "conv:2x9,relu", "character 1"},
        {"conv:2x3,relu", "conv:3x3,relu", "0.weight"},
        {"maxpool,fc:3", "maxpool,fc:2", "character"},
        {"maxpool,fc:3", "maxpool,fc:1000000", "character"},
        {"maxpool,fc:3", "fc:3", "weight"},
        {"\"conv:2x3,relu,maxpool,fc:3\"", "5", "fds.network"},
        {"\"fds.input\"", "\"fds.inputs\"", "fds.input"},
        {"\"[1,6,6]\"", "\"[1,6]\"", "fds.input"},
        {"\"[1,6,6]\"", "\"[1,6,6,1]\"", "fds.input"},
        {"\"[1,6,6]\"", "\"[1,6,6.5]\"", "fds.input"},
        {"\"[1,6,6]\"", "\"[0,6,6]\"", "fds.input"},
        {"\"[1,6,6]\"", "\"[1,-6,6]\"", "fds.input"},
        {"\"[1,6,6]\"", "\"[1,1e30,6]\"", "fds.input"},
        {"\"[1,6,6]\"", "\"[65535,65535,65535]\"", ""},
        {"\"[1,6,6]\"", "\"[1,6,6\"", "fds.input"},
        {"\"[1,6,6]\"", "\"\"", "fds.input"},
        {"\"[1,6,6]\"", "\"{}\"", "fds.input"},
        {"\"[1,6,6]\"", "[1,6,6]", "fds.input"},
        {"\"[1,6,6]\"", "\"[1,6,\\\"6\\\"]\"", "fds.input"},
        {"\"[1,6,6]\"", "\"[2,6,6]\"", ""},
        {"\"fds.classes\"", "\"fds.class\"", "fds.classes"},
        {"[\\\"zero\\\",", "[", ""},
        {"[\\\"zero\\\",", "[5,", "fds.classes"},
        {"\"fds.mean\":\"[", "\"fds.mean\":\"[1,", "fds.mean"},
        {"\"fds.mean\":\"[", "\"fds.mean\":\"[null,", "fds.mean"},
        {"\"fds.mean\":\"[0.", "\"fds.mean\":\"[1e300", "fds.mean"},
        {"\"fds.std\":\"[0.", "\"fds.std\":\"[-0.", "fds.std"},
        {"\"fds.std\":\"[0.", "\"fds.std\":\"[0e", "fds.std"},
        {"\"fds.std\"", "\"fds.st\"", "fds.std"},
        {"\"__metadata__\":{", "\"__metadata__\":{\"x\":5,", "x"},
        {"\"__metadata__\"", "\"__metadat__\"", ""},
    };
    refuse_edits(edits, COUNT(edits));
}

static void headers_that_are_no_object_are_refused(void **state) {
    (void)state;
    model_file file = make_file();
    fds_error err;
    const char *headers[] = {"",
                             " ",
                             "{}",
                             "[]",
                             "5",
                             "null",
                             "{",
                             "}",
                             "{\"__metadata__\":[]}",
                             "{\"__metadata__\":{}}",
                             "{\"\\u0000\":1}",
                             "\xff\xfe{}",
                             "{} {}"};
    for (size_t i = 0; i < COUNT(headers); i++)
        assert_int_equal(try_header(&file, headers[i], strlen(headers[i]), &err), FDS_ERR_FORMAT);
    enum { DEEP = 200000 };
    char *deep = need(DEEP, 1);
    memset(deep, '[', DEEP);
    assert_int_equal(try_header(&file, deep, DEEP, &err), FDS_ERR_FORMAT);
    memset(deep, 0, DEEP);
    assert_int_equal(try_header(&file, deep, DEEP, &err), FDS_ERR_FORMAT);
    free(deep);
    free(file.bytes);
}

static void weights_that_are_no_numbers_are_refused(void **state) {
    (void)state;
    model_file file = make_file();
    const float strange[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < COUNT(strange); i++) {
        fds_error err;
        char *at = file.bytes + 8 + file.header + 18 * sizeof(float), kept[4]; /* 0.bias */
        memcpy(kept, at, 4);
        memcpy(at, &strange[i], 4);
        assert_int_equal(try_bytes(file.bytes, file.size, &err), FDS_ERR_FORMAT);
        expect_in(err.text, "0.bias");
        memcpy(at, kept, 4);
    }
    free(file.bytes);
}

/* Wherever it stands in a long tensor, of which blocks are looked at together. */
static void the_first_value_that_is_no_number_is_named(void **state) {
    (void)state;
    enum { COUNT_OF = 2500 };
    static const size_t places[] = {0, 15, 1023, 1024, 2047, 2048, COUNT_OF - 1};
    static const float strange[] = {NAN, INFINITY, -INFINITY};
    const uint32_t dims[4] = {COUNT_OF};
    char path[FDS__PATH_MAX], part[40];
    float *values = need(COUNT_OF, sizeof *values);
    fds_error err;
    snprintf(path, sizeof path, "%s", scratch_path("t.safetensors"));
    for (size_t i = 0; i < COUNT_OF; i++)
        values[i] = (float)i - 7;
    for (size_t k = 0; k <= COUNT(places) * COUNT(strange); k++) { /* and once none */
        bool has_one = k < COUNT(places) * COUNT(strange);
        size_t at = places[k % COUNT(places)];
        float kept = values[at];
        fds__tensor t = {.name = "t", .rank = 1, .dims = {COUNT_OF}, .values = values};
        fds__safetensors *file;
        if (has_one)
            values[at] = strange[k / COUNT(places)];
        if (has_one && at < COUNT_OF - 1)
            values[COUNT_OF - 1] = NAN; /* a later one */
        expect_ok(fds__safetensors_write(path, &t, 1, NULL, 0, NULL, &err), &err);
        expect_ok(fds__safetensors_read(path, &file, &err), &err);
        fds_status status = fds__safetensors_check(path, file, "it", "t", 1, dims, &err);
        fds__safetensors_free(file);
        assert_int_equal(status, has_one ? FDS_ERR_FORMAT : FDS_OK);
        if (has_one) {
            snprintf(part, sizeof part, "value %zu is infinite", at);
            expect_in(err.text, part);
        }
        values[COUNT_OF - 1] = (float)COUNT_OF - 8;
        values[at] = kept;
    }
    free(values);
}

static int count_files(void **state) {
    int failed = scratch_teardown(state);
    print_message("# %zu malformed files tried so far\n", files_tried);
    return failed;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(every_flipped_bit_gives_a_status),
        IN_SCRATCH(models_of_numbers_are_read_as_they_were),
        IN_SCRATCH(every_cut_off_file_is_refused),
        IN_SCRATCH(lying_header_lengths_are_refused),
        IN_SCRATCH(wrong_tensors_are_named),
        IN_SCRATCH(gaps_between_tensors_are_refused),
        IN_SCRATCH(wrong_metadata_is_named),
        IN_SCRATCH(headers_that_are_no_object_are_refused),
        cmocka_unit_test_setup_teardown(the_first_value_that_is_no_number_is_named, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(weights_that_are_no_numbers_are_refused, scratch_setup,
                                        count_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
