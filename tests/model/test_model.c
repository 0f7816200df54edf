/* SPDX-License-Identifier: Apache-2.0
 * A trained model and its file: what is saved is what is loaded; failures on the way leave the old
 * file as it was. */
#include "model_fixture.h"

/* ---- what is saved is what is loaded ---- */

static void expect_same_model(const fds_model *a, const fds_model *b, const fds_dataset *ds) {
    fds__model_info x = fds__model_get_info(a), y = fds__model_get_info(b);
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
    fds__model_info info = fds__model_get_info(model);
    assert_string_equal(info.network, network_text);
    assert_int_equal(info.weights, WEIGHTS);
    assert_int_equal(strlen(info.sha256), 64);
    for (uint32_t i = 0; i < CLASSES; i++)
        assert_string_equal(fds_model_class_name(model, i), class_names[i]);
    assert_string_equal(fds_model_class_name(model, CLASSES), "?");
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
    fds__model_info info = fds__model_get_info(model);
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
    fds__dataset_info info = fds__dataset_get_info(ds);
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
    double mean_loss, accuracy;
    expect_ok(fds_model_score(model, ds, index, COUNT(index), 2, &mean_loss, &accuracy, NULL, &err),
              &err);
    assert_true(fabs(mean_loss - loss) < 1e-9);
    assert_true(fabs(accuracy - right / COUNT(index)) < 1e-12);
    expect_ok(fds_model_score(model, ds, NULL, SAMPLES, 0, NULL, &accuracy, NULL, &err), &err);
    assert_true(accuracy > 0.9); /* it has learnt something */
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
                     FDS_ERR_USAGE);
    assert_int_not_equal(fds_model_train(ds, beyond, 2, "mlp", &params, NULL, &none, NULL, &err),
                         FDS_OK);
    assert_int_equal(fds_model_train(ds, index, 2, "mlpx", &params, NULL, &none, NULL, &err),
                     FDS_ERR_USAGE);
    expect_in(err.text, "mlpx");
    params.batch = 0;
    assert_int_equal(fds_model_train(ds, index, 2, "mlp", &params, NULL, &none, NULL, &err),
                     FDS_ERR_USAGE);
    assert_null(none);
    assert_int_not_equal(fds_model_predict(model, ds, beyond, 2, 1, probs, NULL, &err), FDS_OK);
    assert_int_not_equal(fds_model_predict(model, ds, NULL, SAMPLES + 1, 1, probs, NULL, &err),
                         FDS_OK);
    const float floats[20] = {0};
    const uint16_t labels[4] = {0, 1, 2, 0};
    expect_ok(
        fds__dataset_create(4, (fds_shape){5, 1, 1}, NULL, floats, labels, 3, NULL, &other, &err),
        &err);
    assert_int_equal(fds_model_predict(model, other, NULL, 4, 1, probs, NULL, &err), FDS_ERR_SHAPE);
    double loss, accuracy;
    assert_int_equal(fds_model_score(model, other, NULL, 4, 1, &loss, &accuracy, NULL, &err),
                     FDS_ERR_SHAPE);
    assert_int_not_equal(fds_model_load(scratch_path("none"), &none, &err), FDS_OK);
    assert_int_not_equal(fds_model_load(scratch, &none, &err), FDS_OK);
    assert_int_equal(fds_model_save(model, scratch_path("no/folder"), &err), FDS_ERR_NOT_FOUND);
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
        fds__dataset_create(4, (fds_shape){1, 1, 1}, bytes, NULL, labels, 2, names, &ds, &err);
    if (status == FDS_OK)
        status = fds_model_train(ds, index, 4, "logistic", &params, NULL, &model, NULL, &err);
    if (status == FDS_OK)
        status = fds_model_save(model, scratch_path("model"), &err);
    if (status == FDS_ERR_NOMEM)
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
    expect_ok(fds__dataset_create(4, (fds_shape){1, 3, 3}, bytes, NULL, labels, 2, NULL, &ds, &err),
              &err);
    expect_ok(fds_model_train(ds, index, 4, "logistic", &params, NULL, &model, NULL, &err), &err);
    float probs[8];
    expect_ok(fds_model_predict(model, ds, NULL, 4, 1, probs, NULL, &err), &err);
    for (int i = 0; i < 8; i++)
        assert_true(probs[i] > 0.2f && probs[i] < 0.8f);
    fds_model_free(model);
    fds_dataset_free(ds);
}

/* Numbers so large that the answer overflows must not come back as an answer. */
static void answers_that_are_no_numbers_are_refused(void **state) {
    (void)state;
    const float floats[4] = {-1, 1, -2, 2}, huge[2] = {1, 3e38f};
    const uint16_t labels[4] = {0, 1, 0, 1};
    const uint32_t index[] = {0, 1, 2, 3};
    fds_dataset *ds = NULL, *odd = NULL;
    fds_model *model = NULL;
    fds_error err;
    double loss, accuracy;
    fds_train_params params = quick();
    params.lr = 0.5f;
    params.epochs = 50;
    expect_ok(
        fds__dataset_create(4, (fds_shape){1, 1, 1}, NULL, floats, labels, 2, NULL, &ds, &err),
        &err);
    expect_ok(fds__dataset_create(2, (fds_shape){1, 1, 1}, NULL, huge, labels, 2, NULL, &odd, &err),
              &err);
    expect_ok(fds_model_train(ds, index, 4, "mlp", &params, NULL, &model, NULL, &err), &err);
    assert_int_equal(fds_model_score(model, odd, NULL, 2, 1, &loss, &accuracy, NULL, &err),
                     FDS_ERR_DIVERGED);
    assert_non_null(strstr(err.text, "sample 1"));
    fds_model_free(model);
    fds_dataset_free(ds);
    fds_dataset_free(odd);
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
                assert_int_equal(status, FDS_ERR_DIVERGED);
                expect_in(err.text, "learning rate");
                assert_null(model);
            }
            fds_model_free(model);
        }
    fds_dataset_free(ds);
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
    const fds__fault_kind kinds[] = {FDS__FAULT_ALLOC, FDS__FAULT_IO};
    for (size_t k = 0; k < COUNT(kinds); k++) {
        fds_error err;
        fds__fault_arm(kinds[k], 0);
        expect_ok(train_and_save(ds, path, &err), &err);
        uint64_t calls = fds__fault_arm(kinds[k], 0);
        assert_true(calls >= 6);
        for (uint64_t n = 1; n <= calls; n++) {
            scratch_write(path, "old", 3);
            memset(&err, 0, sizeof err);
            fds__fault_arm(kinds[k], n);
            fds_status status = train_and_save(ds, path, &err);
            fds__fault_arm(kinds[k], 0);
            assert_int_equal(status, kinds[k] == FDS__FAULT_IO ? FDS_ERR_IO : FDS_ERR_NOMEM);
            assert_int_equal(err.status, status);
            assert_true(err.text[0] != 0);
            assert_int_equal(scratch_entries(), 1);
            /* the last call of all syncs the folder: by then the new file stands, complete */
            if (kinds[k] == FDS__FAULT_IO && n == calls) {
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
    const fds__fault_kind kinds[] = {FDS__FAULT_ALLOC, FDS__FAULT_IO};
    for (size_t k = 0; k < COUNT(kinds); k++) {
        fds_model *model = NULL;
        fds_error err;
        fds__fault_arm(kinds[k], 0);
        expect_ok(fds_model_load(path, &model, &err), &err);
        uint64_t calls = fds__fault_arm(kinds[k], 0);
        fds_model_free(model);
        assert_true(calls >= 2);
        for (uint64_t n = 1; n <= calls; n++) {
            model = NULL;
            fds__fault_arm(kinds[k], n);
            fds_status status = fds_model_load(path, &model, &err);
            fds__fault_arm(kinds[k], 0);
            assert_int_equal(status, kinds[k] == FDS__FAULT_IO ? FDS_ERR_IO : FDS_ERR_NOMEM);
            assert_null(model);
        }
    }
}

static void predicting_survives_every_failed_allocation(void **state) {
    (void)state;
    fds_dataset *ds = make_dataset();
    fds_model *model = make_model(ds);
    double loss, accuracy;
    fds_error err;
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    expect_ok(fds_model_score(model, ds, NULL, SAMPLES, 1, &loss, &accuracy, NULL, &err), &err);
    uint64_t calls = fds__fault_arm(FDS__FAULT_ALLOC, 0);
    for (uint64_t n = 1; n <= calls; n++) {
        fds__fault_arm(FDS__FAULT_ALLOC, n);
        assert_int_equal(fds_model_score(model, ds, NULL, SAMPLES, 1, &loss, &accuracy, NULL, &err),
                         FDS_ERR_NOMEM);
    }
    fds__fault_arm(FDS__FAULT_ALLOC, 0);
    fds_model_free(model);
    fds_dataset_free(ds);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(a_model_comes_back_from_its_file),
        IN_SCRATCH(the_file_is_what_pytorch_would_read),
        IN_SCRATCH(scores_are_those_of_the_probabilities),
        IN_SCRATCH(wrong_arguments_are_refused),
        IN_SCRATCH(names_that_are_not_utf8_are_refused_for_what_they_are),
        IN_SCRATCH(constant_samples_can_be_learnt_from),
        IN_SCRATCH(answers_that_are_no_numbers_are_refused),
        IN_SCRATCH(divergence_is_reported),
        IN_SCRATCH(any_failure_leaves_the_old_file),
        IN_SCRATCH(loading_survives_every_failure),
        IN_SCRATCH(predicting_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
