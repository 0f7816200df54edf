/* SPDX-License-Identifier: Apache-2.0
 * A small dataset, a model trained on it, and its file, for the tests of models. */
#ifndef FDS_TEST_MODEL_FIXTURE_H
#define FDS_TEST_MODEL_FIXTURE_H

#include "../lane/fixture.h"
#include "model/model.h"

static const char *const class_names[] = {"zero", "the \"first\" \\ one", "zw\xc3\xb6lf"};
static const char network_text[] = "conv:2x3,relu,maxpool,fc:3"; /* 6x6: conv 4x4, pool 2x2 */
enum { SAMPLES = 40, CLASSES = 3, SIDE = 6, WEIGHTS = 18 + 2 + 24 + 3 };

/* Bytes whose bright row tells the class: easy to learn. */
static inline fds_dataset *make_dataset(void) {
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
    expect_ok(fds__dataset_create(SAMPLES, (fds_shape){1, SIDE, SIDE}, bytes, NULL, labels, CLASSES,
                                  class_names, &ds, &err),
              &err);
    return ds;
}

static inline fds_train_params quick(void) {
    fds_train_params p = fds_train_params_default();
    p.lr = 0.02f;
    p.epochs = 15;
    p.seed = 4;
    return p;
}

static inline fds_status train_on(const fds_dataset *ds, fds_model **model, fds_error *err) {
    uint32_t index[30];
    for (uint32_t i = 0; i < COUNT(index); i++)
        index[i] = i;
    fds_train_params params = quick();
    return fds_model_train(ds, index, COUNT(index), "conv:2x3,relu,maxpool,fc:classes", &params,
                           NULL, model, NULL, err);
}

static inline fds_model *make_model(const fds_dataset *ds) {
    fds_model *model = NULL;
    fds_error err;
    expect_ok(train_on(ds, &model, &err), &err);
    return model;
}

typedef struct {
    char *bytes;
    size_t size, header; /* header: its length; the data follow at 8 + header */
} model_file;

static inline model_file make_file(void) {
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

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

#endif
