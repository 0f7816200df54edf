/* SPDX-License-Identifier: Apache-2.0
 * A trained model and its file: what is saved is what is loaded, a malformed file is answered with
 * a status, and a failure anywhere leaves the old file. */
#include "fixture.h"

static const char *const class_names[] = {"zero", "the \"first\" \\ one", "zw\xc3\xb6lf"};
static const char network_text[] = "conv:2x3,relu,maxpool,fc:3"; /* 6x6: conv 4x4, pool 2x2 */
enum { SAMPLES = 40, CLASSES = 3, SIDE = 6, WEIGHTS = 18 + 2 + 24 + 3 };

/* Bytes whose bright row tells the class: easy to learn. */
static fds_dataset *make_dataset(void) {
    uint8_t bytes[SAMPLES * SIDE * SIDE];
    uint16_t labels[SAMPLES];
    fds_rng rng = fds_rng_make(1, 1010, 0, 0);
    for (size_t i = 0; i < SAMPLES; i++) {
        labels[i] = (uint16_t)(i % CLASSES);
        for (size_t j = 0; j < SIDE * SIDE; j++)
            bytes[i * SIDE * SIDE + j] =
                (uint8_t)(fds_rng_below(&rng, 60) + (j / SIDE / 2 == labels[i] ? 180 : 0));
    }
    fds_dataset *ds = NULL;
    fds_error err;
    expect_ok(fds_dataset_create(SAMPLES, (fds_shape){1, SIDE, SIDE}, bytes, NULL, labels, CLASSES,
                                 class_names, &ds, &err),
              &err);
    return ds;
}

static fds_train_params quick(void) {
    fds_train_params p = fds_train_params_default();
    p.lr = 0.02f;
    p.epochs = 15;
    p.seed = 4;
    return p;
}

static fds_status train_on(const fds_dataset *ds, fds_model **model, fds_error *err) {
    uint32_t index[30];
    for (uint32_t i = 0; i < COUNT(index); i++)
        index[i] = i;
    fds_train_params params = quick();
    return fds_model_train(ds, index, COUNT(index), "conv:2x3,relu,maxpool,fc:classes", &params,
                           NULL, model, NULL, err);
}

static fds_model *make_model(const fds_dataset *ds) {
    fds_model *model = NULL;
    fds_error err;
    expect_ok(train_on(ds, &model, &err), &err);
    return model;
}

/* ---- what is saved is what is loaded ---- */

static void expect_same_model(const fds_model *a, const fds_model *b, const fds_dataset *ds) {
    fds_model_info x = fds_model_get_info(a), y = fds_model_get_info(b);
    assert_string_equal(x.network, y.network);
    assert_string_equal(x.sha256, y.sha256);
    assert_int_equal(x.classes, y.classes);
    assert_int_equal(x.weights, y.weights);
    assert_memory_equal(&x.shape, &y.shape, sizeof x.shape);
    assert_memory_equal(x.mean, y.mean, x.shape.channels * sizeof(float));
    assert_memory_equal(x.std, y.std, x.shape.channels * sizeof(float));
    for (uint32_t i = 0; i < x.classes; i++)
        assert_string_equal(fds_model_class_name(a, i), fds_model_class_name(b, i));
    float p[SAMPLES * CLASSES], q[SAMPLES * CLASSES];
    fds_error err;
    expect_ok(fds_model_predict(a, ds, NULL, SAMPLES, 1, p, NULL, &err), &err);
    expect_ok(fds_model_predict(b, ds, NULL, SAMPLES, 1, q, NULL, &err), &err);
    assert_memory_equal(p, q, sizeof p);
}

static void a_model_comes_back_from_its_file(void **state) {
    (void)state;
    fds_dataset *ds = make_dataset();
    fds_model *model = make_model(ds), *loaded = NULL;
    fds_error err;
    fds_model_info info = fds_model_get_info(model);
    assert_string_equal(info.network, network_text);
    assert_int_equal(info.weights, WEIGHTS);
    assert_int_equal(strlen(info.sha256), 64);
    for (uint32_t i = 0; i < CLASSES; i++)
        assert_string_equal(fds_model_class_name(model, i), class_names[i]);
    assert_null(fds_model_class_name(model, CLASSES));
    expect_ok(fds_model_save(model, scratch_path("a"), &err), &err);
    expect_ok(fds_model_load(scratch_path("a"), &loaded, &err), &err);
    expect_same_model(model, loaded, ds);
    /* and a file saved from it has the same bytes, as has one of the same training */
    expect_ok(fds_model_save(loaded, scratch_path("b"), &err), &err);
    fds_model *again = make_model(ds);
    expect_ok(fds_model_save(again, scratch_path("c"), &err), &err);
    size_t sizes[3];
    char *files[] = {scratch_read(scratch_path("a"), &sizes[0]),
                     scratch_read(scratch_path("b"), &sizes[1]),
                     scratch_read(scratch_path("c"), &sizes[2])};
    for (int i = 1; i < 3; i++) {
        assert_int_equal(sizes[i], sizes[0]);
        assert_memory_equal(files[i], files[0], sizes[0]);
    }
    for (int i = 0; i < 3; i++)
        free(files[i]);
    assert_int_equal(scratch_entries(), 3);
    fds_model_free(model);
    fds_model_free(loaded);
    fds_model_free(again);
    fds_model_free(NULL);
    fds_dataset_free(ds);
}

/* The file holds the weights in the layout of PyTorch: the reference, fed with them and with
 * samples normalised as the file says, gives the same probabilities. */
static void the_file_is_what_pytorch_would_read(void **state) {
    (void)state;
    fds_dataset *ds = make_dataset();
    fds_model *model = make_model(ds);
    fds_model_info info = fds_model_get_info(model);
    fds_error err;
    expect_ok(fds_model_save(model, scratch_path("m"), &err), &err);
    size_t size;
    char *file = scratch_read(scratch_path("m"), &size), sha256[65];
    uint64_t header;
    memcpy(&header, file, 8);
    assert_int_equal(header % 8, 0);
    assert_int_equal(size, 8 + header + WEIGHTS * sizeof(float));
    fds_sha256_hex(file + 8 + header, WEIGHTS * sizeof(float), sha256);
    assert_string_equal(sha256, info.sha256);
    double w[WEIGHTS];
    for (size_t i = 0; i < WEIGHTS; i++) {
        float value;
        memcpy(&value, file + 8 + header + i * sizeof value, sizeof value);
        w[i] = value;
    }
    file[8 + header] = 0;
    expect_in(file + 8, "\"0.weight\":{\"dtype\":\"F32\",\"shape\":[2,1,3,3],"
                        "\"data_offsets\":[0,72]}");
    expect_in(file + 8,
              "\"4.weight\":{\"dtype\":\"F32\",\"shape\":[3,8],\"data_offsets\":[80,176]}");
    free(file);
    double mean = 0, squares = 0, n = 30 * SIDE * SIDE;
    float x[SIDE * SIDE], probs[SAMPLES * CLASSES];
    for (size_t i = 0; i < 30; i++) {
        fds_dataset_sample(ds, i, x);
        for (size_t j = 0; j < SIDE * SIDE; j++) {
            mean += (double)x[j] / n;
            squares += (double)x[j] * (double)x[j] / n;
        }
    }
    assert_true(fabs((double)info.mean[0] - mean) < 1e-6);
    assert_true(fabs((double)info.std[0] - sqrt(squares - mean * mean)) < 1e-6);
    expect_ok(fds_model_predict(model, ds, NULL, SAMPLES, 1, probs, NULL, &err), &err);
    ref_net *ref = ref_create(network_text, 1, SIDE, SIDE);
    assert_non_null(ref);
    for (size_t i = 0; i < SAMPLES; i++) {
        double xd[SIDE * SIDE];
        fds_dataset_sample(ds, i, x);
        for (size_t j = 0; j < SIDE * SIDE; j++)
            xd[j] = ((double)x[j] - (double)info.mean[0]) / (double)info.std[0];
        for (size_t k = 0; k < CLASSES; k++)
            assert_true(fabs((double)probs[i * CLASSES + k] -
                             exp(-ref_loss(ref, w, xd, k, 1, NULL))) < 1e-5);
    }
    ref_free(ref);
    fds_model_free(model);
    fds_dataset_free(ds);
}

static void scores_are_those_of_the_probabilities(void **state) {
    (void)state;
    fds_dataset *ds = make_dataset();
    fds_model *model = make_model(ds);
    fds_dataset_info info = fds_dataset_get_info(ds);
    const uint32_t index[] = {39, 3, 3, 17, 30, 31, 32};
    float all[SAMPLES * CLASSES], some[COUNT(index) * CLASSES];
    fds_error err;
    expect_ok(fds_model_predict(model, ds, NULL, SAMPLES, 2, all, NULL, &err), &err);
    expect_ok(fds_model_predict(model, ds, index, COUNT(index), 0, some, NULL, &err), &err);
    double loss = 0, right = 0;
    for (size_t i = 0; i < COUNT(index); i++) {
        const float *p = all + index[i] * CLASSES;
        assert_memory_equal(some + i * CLASSES, p, CLASSES * sizeof *p);
        assert_true(fabs((double)p[0] + (double)p[1] + (double)p[2] - 1) < 1e-6);
        size_t top = p[0] >= p[1] && p[0] >= p[2] ? 0 : p[1] >= p[2] ? 1 : 2;
        loss -= log((double)p[info.labels[index[i]]]) / COUNT(index);
        right += top == info.labels[index[i]];
    }
    fds_score score;
    expect_ok(fds_model_score(model, ds, index, COUNT(index), 2, &score, NULL, &err), &err);
    assert_int_equal(score.count, COUNT(index));
    assert_true(fabs(score.loss - loss) < 1e-9);
    assert_true(fabs(score.accuracy - right / COUNT(index)) < 1e-12);
    expect_ok(fds_model_score(model, ds, NULL, SAMPLES, 0, &score, NULL, &err), &err);
    assert_true(score.accuracy > 0.9); /* it has learnt something */
    fds_model_free(model);
    fds_dataset_free(ds);
}

static void wrong_arguments_are_refused(void **state) {
    (void)state;
    fds_dataset *ds = make_dataset(), *other = NULL;
    fds_model *model = make_model(ds), *none = NULL;
    fds_error err = {0};
    fds_train_params params = quick();
    const uint32_t index[] = {0, 1}, beyond[] = {0, SAMPLES};
    float probs[2 * SAMPLES * CLASSES];
    assert_int_equal(fds_model_train(ds, index, 0, "mlp", &params, NULL, &none, NULL, &err),
                     FDS_USAGE);
    assert_int_not_equal(fds_model_train(ds, beyond, 2, "mlp", &params, NULL, &none, NULL, &err),
                         FDS_OK);
    assert_int_equal(fds_model_train(ds, index, 2, "mlpx", &params, NULL, &none, NULL, &err),
                     FDS_USAGE);
    expect_in(err.text, "mlpx");
    params.batch = 0;
    assert_int_equal(fds_model_train(ds, index, 2, "mlp", &params, NULL, &none, NULL, &err),
                     FDS_USAGE);
    assert_null(none);
    assert_int_not_equal(fds_model_predict(model, ds, beyond, 2, 1, probs, NULL, &err), FDS_OK);
    assert_int_not_equal(fds_model_predict(model, ds, NULL, SAMPLES + 1, 1, probs, NULL, &err),
                         FDS_OK);
    const float floats[20] = {0};
    const uint16_t labels[4] = {0, 1, 2, 0};
    expect_ok(
        fds_dataset_create(4, (fds_shape){5, 1, 1}, NULL, floats, labels, 3, NULL, &other, &err),
        &err);
    assert_int_equal(fds_model_predict(model, other, NULL, 4, 1, probs, NULL, &err), FDS_SHAPE);
    fds_score score;
    assert_int_equal(fds_model_score(model, other, NULL, 4, 1, &score, NULL, &err), FDS_SHAPE);
    assert_int_not_equal(fds_model_load(scratch_path("none"), &none, &err), FDS_OK);
    assert_int_not_equal(fds_model_load(scratch, &none, &err), FDS_OK);
    assert_int_equal(fds_model_save(model, scratch_path("no/folder"), &err), FDS_NOT_FOUND);
    fds_dataset_free(other);
    fds_dataset_free(ds);
    fds_model_free(model);
}

/* JSON is UTF-8: names that are not cannot be kept, and the message says so. */
static void names_that_are_not_utf8_are_refused_for_what_they_are(void **state) {
    (void)state;
    const uint8_t bytes[4] = {0, 1, 2, 3};
    const uint16_t labels[4] = {0, 1, 0, 1};
    const uint32_t index[] = {0, 1, 2, 3};
    const char *const names[] = {"caf\xe9", "tea"}; /* Latin-1 */
    fds_dataset *ds = NULL;
    fds_model *model = NULL;
    fds_error err = {0};
    fds_train_params params = quick();
    fds_status status =
        fds_dataset_create(4, (fds_shape){1, 1, 1}, bytes, NULL, labels, 2, names, &ds, &err);
    if (status == FDS_OK)
        status = fds_model_train(ds, index, 4, "logistic", &params, NULL, &model, NULL, &err);
    if (status == FDS_OK)
        status = fds_model_save(model, scratch_path("model"), &err);
    if (status == FDS_NOMEM)
        fail_msg("a wrong name is called: %s", err.text);
    fds_model_free(model);
    fds_dataset_free(ds);
}

/* Samples that are all alike have no spread to divide by. */
static void constant_samples_can_be_learnt_from(void **state) {
    (void)state;
    const uint8_t bytes[4 * 9] = {0};
    const uint16_t labels[4] = {0, 1, 0, 1};
    const uint32_t index[] = {0, 1, 2, 3};
    fds_dataset *ds = NULL;
    fds_model *model = NULL;
    fds_error err;
    fds_train_params params = quick();
    expect_ok(fds_dataset_create(4, (fds_shape){1, 3, 3}, bytes, NULL, labels, 2, NULL, &ds, &err),
              &err);
    expect_ok(fds_model_train(ds, index, 4, "logistic", &params, NULL, &model, NULL, &err), &err);
    float probs[8];
    expect_ok(fds_model_predict(model, ds, NULL, 4, 1, probs, NULL, &err), &err);
    for (int i = 0; i < 8; i++)
        assert_true(probs[i] > 0.2f && probs[i] < 0.8f);
    fds_model_free(model);
    fds_dataset_free(ds);
}

static void divergence_is_reported(void **state) {
    (void)state;
    fds_dataset *ds = make_dataset();
    const uint32_t index[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const float rates[] = {1e10f, 1e30f, 3e38f};
    for (size_t i = 0; i < COUNT(rates); i++)
        for (int optimizer = 0; optimizer < 2; optimizer++) {
            fds_train_params params = quick();
            params.optimizer = (fds_optimizer)optimizer;
            params.lr = rates[i];
            params.momentum = 0.9f;
            fds_model *model = NULL;
            fds_error err = {0};
            fds_status status =
                fds_model_train(ds, index, COUNT(index), "mlp", &params, NULL, &model, NULL, &err);
            /* where it happens to stay finite, so are its answers */
            if (status == FDS_OK) {
                float probs[SAMPLES * CLASSES];
                expect_ok(fds_model_predict(model, ds, NULL, SAMPLES, 1, probs, NULL, &err), &err);
                for (size_t j = 0; j < COUNT(probs); j++)
                    assert_true(isfinite(probs[j]));
                assert_true(rates[i] < 1e30f);
            } else {
                assert_int_equal(status, FDS_DIVERGED);
                expect_in(err.text, "learning rate");
                assert_null(model);
            }
            fds_model_free(model);
        }
    fds_dataset_free(ds);
}

/* ---- malformed files ---- */

typedef struct {
    char *bytes;
    size_t size, header; /* header: its length; the data follow at 8 + header */
} model_file;

static model_file make_file(void) {
    fds_dataset *ds = make_dataset();
    fds_model *model = make_model(ds);
    fds_error err;
    model_file file = {0};
    expect_ok(fds_model_save(model, scratch_path("good"), &err), &err);
    file.bytes = scratch_read(scratch_path("good"), &file.size);
    uint64_t header;
    memcpy(&header, file.bytes, 8);
    file.header = (size_t)header;
    fds_model_free(model);
    fds_dataset_free(ds);
    return file;
}

static size_t files_tried;

/* One black image is answered with probabilities. */
static void expect_usable(const fds_model *model) {
    fds_model_info info = fds_model_get_info(model);
    uint8_t *black = need((size_t)info.shape.channels * info.shape.height * info.shape.width, 1);
    float *probs = need(info.classes, sizeof *probs);
    fds_dataset *ds = NULL;
    fds_error err;
    const uint16_t label = 0;
    expect_ok(fds_dataset_create(1, info.shape, black, NULL, &label, 1, NULL, &ds, &err), &err);
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
    fds_model_info info = fds_model_get_info(model);
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

static void every_cut_off_file_is_refused(void **state) {
    (void)state;
    model_file file = make_file();
    fds_error err;
    for (size_t size = 0; size < file.size; size++)
        assert_int_equal(try_bytes(file.bytes, size, &err), FDS_FORMAT);
    file.bytes = realloc(file.bytes, file.size + 64);
    assert_non_null(file.bytes);
    memset(file.bytes + file.size, 0, 64);
    for (size_t more = 1; more <= 64; more++)
        assert_int_equal(try_bytes(file.bytes, file.size + more, &err), FDS_FORMAT);
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
            assert_int_equal(try_bytes(file.bytes, file.size, &err), FDS_FORMAT);
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
    char *old = need(file->header + 1, 1), *edited = need(file->header + strlen(to) + 1, 1);
    memcpy(old, file->bytes + 8, file->header);
    const char *at = strstr(old, from);
    if (!at)
        fail_msg("the header has no %s: %s", from, old);
    sprintf(edited, "%.*s%s%s", (int)(at - old), old, to, at + strlen(from));
    fds_status status = try_header(file, edited, strlen(edited), err);
    free(old);
    free(edited);
    return status;
}

static void wrong_tensors_are_named(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *named;
    } edits[] = {
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
    model_file file = make_file();
    for (size_t i = 0; i < COUNT(edits); i++) {
        fds_error err;
        fds_status status = try_edit(&file, edits[i].from, edits[i].to, &err);
        if (status == FDS_OK || !strstr(err.text, edits[i].named))
            fail_msg("%s -> %s: %s: %s", edits[i].from, edits[i].to, fds_status_name(status),
                     err.text);
    }
    free(file.bytes);
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
    assert_int_equal(try_edit(&file, "[176,188]", "[180,192]", &err), FDS_FORMAT);
    expect_in(err.text, "gap at byte 176");
    free(file.bytes);
}

static void wrong_metadata_is_named(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *named;
    } edits[] = {
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
    model_file file = make_file();
    for (size_t i = 0; i < COUNT(edits); i++) {
        fds_error err;
        fds_status status = try_edit(&file, edits[i].from, edits[i].to, &err);
        if (status == FDS_OK || !strstr(err.text, edits[i].named))
            fail_msg("%s -> %s: %s: %s", edits[i].from, edits[i].to, fds_status_name(status),
                     err.text);
    }
    free(file.bytes);
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
        assert_int_equal(try_header(&file, headers[i], strlen(headers[i]), &err), FDS_FORMAT);
    enum { DEEP = 200000 };
    char *deep = need(DEEP, 1);
    memset(deep, '[', DEEP);
    assert_int_equal(try_header(&file, deep, DEEP, &err), FDS_FORMAT);
    memset(deep, 0, DEEP);
    assert_int_equal(try_header(&file, deep, DEEP, &err), FDS_FORMAT);
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
        assert_int_equal(try_bytes(file.bytes, file.size, &err), FDS_FORMAT);
        expect_in(err.text, "0.bias");
        memcpy(at, kept, 4);
    }
    free(file.bytes);
}

/* ---- failures on the way ---- */

static fds_status train_and_save(const fds_dataset *ds, const char *path, fds_error *err) {
    fds_model *model = NULL;
    fds_status status = train_on(ds, &model, err);
    if (status == FDS_OK)
        status = fds_model_save(model, path, err);
    else
        assert_null(model);
    fds_model_free(model);
    return status;
}

/* Leaks show where the tests are built with the address sanitizer. */
static void any_failure_leaves_the_old_file(void **state) {
    (void)state;
    fds_dataset *ds = make_dataset();
    const char *path = scratch_path("model");
    const fds_fault_kind kinds[] = {FDS_FAULT_ALLOC, FDS_FAULT_IO};
    for (size_t k = 0; k < COUNT(kinds); k++) {
        fds_error err;
        fds_fault_arm(kinds[k], 0);
        expect_ok(train_and_save(ds, path, &err), &err);
        uint64_t calls = fds_fault_arm(kinds[k], 0);
        assert_true(calls >= 6);
        for (uint64_t n = 1; n <= calls; n++) {
            scratch_write(path, "old", 3);
            memset(&err, 0, sizeof err);
            fds_fault_arm(kinds[k], n);
            fds_status status = train_and_save(ds, path, &err);
            fds_fault_arm(kinds[k], 0);
            assert_int_equal(status, kinds[k] == FDS_FAULT_IO ? FDS_IO : FDS_NOMEM);
            assert_int_equal(err.status, status);
            assert_true(err.text[0] != 0);
            assert_int_equal(scratch_entries(), 1);
            /* the last call of all syncs the folder: by then the new file stands, complete */
            if (kinds[k] == FDS_FAULT_IO && n == calls) {
                fds_model *model = NULL;
                expect_ok(fds_model_load(path, &model, &err), &err);
                fds_model_free(model);
            } else {
                scratch_expect(path, "old");
            }
        }
    }
    fds_dataset_free(ds);
}

static void loading_survives_every_failure(void **state) {
    (void)state;
    free(make_file().bytes);
    const char *path = scratch_path("good");
    const fds_fault_kind kinds[] = {FDS_FAULT_ALLOC, FDS_FAULT_IO};
    for (size_t k = 0; k < COUNT(kinds); k++) {
        fds_model *model = NULL;
        fds_error err;
        fds_fault_arm(kinds[k], 0);
        expect_ok(fds_model_load(path, &model, &err), &err);
        uint64_t calls = fds_fault_arm(kinds[k], 0);
        fds_model_free(model);
        assert_true(calls >= 2);
        for (uint64_t n = 1; n <= calls; n++) {
            model = NULL;
            fds_fault_arm(kinds[k], n);
            fds_status status = fds_model_load(path, &model, &err);
            fds_fault_arm(kinds[k], 0);
            assert_int_equal(status, kinds[k] == FDS_FAULT_IO ? FDS_IO : FDS_NOMEM);
            assert_null(model);
        }
    }
}

static void predicting_survives_every_failed_allocation(void **state) {
    (void)state;
    fds_dataset *ds = make_dataset();
    fds_model *model = make_model(ds);
    fds_score score;
    fds_error err;
    fds_fault_arm(FDS_FAULT_ALLOC, 0);
    expect_ok(fds_model_score(model, ds, NULL, SAMPLES, 1, &score, NULL, &err), &err);
    uint64_t calls = fds_fault_arm(FDS_FAULT_ALLOC, 0);
    for (uint64_t n = 1; n <= calls; n++) {
        fds_fault_arm(FDS_FAULT_ALLOC, n);
        assert_int_equal(fds_model_score(model, ds, NULL, SAMPLES, 1, &score, NULL, &err),
                         FDS_NOMEM);
    }
    fds_fault_arm(FDS_FAULT_ALLOC, 0);
    fds_model_free(model);
    fds_dataset_free(ds);
}

static int count_files(void **state) {
    int failed = scratch_teardown(state);
    print_message("# %zu malformed files tried so far\n", files_tried);
    return failed;
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(a_model_comes_back_from_its_file),
        IN_SCRATCH(the_file_is_what_pytorch_would_read),
        IN_SCRATCH(scores_are_those_of_the_probabilities),
        IN_SCRATCH(wrong_arguments_are_refused),
        IN_SCRATCH(names_that_are_not_utf8_are_refused_for_what_they_are),
        IN_SCRATCH(constant_samples_can_be_learnt_from),
        IN_SCRATCH(divergence_is_reported),
        IN_SCRATCH(every_flipped_bit_gives_a_status),
        IN_SCRATCH(every_cut_off_file_is_refused),
        IN_SCRATCH(lying_header_lengths_are_refused),
        IN_SCRATCH(wrong_tensors_are_named),
        IN_SCRATCH(gaps_between_tensors_are_refused),
        IN_SCRATCH(wrong_metadata_is_named),
        IN_SCRATCH(headers_that_are_no_object_are_refused),
        cmocka_unit_test_setup_teardown(weights_that_are_no_numbers_are_refused, scratch_setup,
                                        count_files),
        IN_SCRATCH(any_failure_leaves_the_old_file),
        IN_SCRATCH(loading_survives_every_failure),
        IN_SCRATCH(predicting_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
