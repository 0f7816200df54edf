/* SPDX-License-Identifier: Apache-2.0
 * What the tests of data share: small files of every format, and opening them with expectations. */
#ifndef FDS_TEST_DATA_FIXTURE_H
#define FDS_TEST_DATA_FIXTURE_H

#include "../base/scratch.h"
#include "data/data.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

/* A path below tests/data. */
static inline const char *kept_path(const char *name) {
    static char path[512];
    const char *dir = getenv("FDS_TEST_DATA");
    assert_non_null(dir);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static inline void put_file(const char *name, const void *data, size_t size) {
    scratch_write(scratch_path(name), data, size);
}

static inline void put_text(const char *name, const char *text) {
    put_file(name, text, strlen(text));
}

static inline void put_folder(const char *name) {
    fds_error err = {0};
    assert_int_equal(fds__mkdirs(scratch_path(name), &err), FDS_OK);
}

/* How many entries a folder has, hidden ones too; 0 where there is no such folder. */
static inline size_t entries_in(const char *path) {
    DIR *dir = opendir(path);
    size_t count = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    if (dir)
        closedir(dir);
    return count;
}

static inline uint8_t *put_u32(uint8_t *at, uint32_t value) {
    for (int i = 0; i < 4; i++)
        *at++ = (uint8_t)(value >> (24 - 8 * i));
    return at;
}

/* An IDX file of count images; pixel k of image i is (7 * i + k) mod 256. Returns its size. */
static inline size_t make_idx_images(uint8_t *out, uint32_t count, uint32_t rows,
                                     uint32_t columns) {
    uint8_t *at = put_u32(put_u32(put_u32(put_u32(out, 0x803), count), rows), columns);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < rows * columns; k++)
            *at++ = (uint8_t)(7 * i + k);
    return (size_t)(at - out);
}

/* Label i is i mod classes. */
static inline size_t make_idx_labels(uint8_t *out, uint32_t count, uint32_t classes) {
    uint8_t *at = put_u32(put_u32(out, 0x801), count);
    for (uint32_t i = 0; i < count; i++)
        *at++ = (uint8_t)(i % classes);
    return (size_t)(at - out);
}

static inline void put_idx(const char *images, const char *labels, uint32_t count, uint32_t rows,
                           uint32_t columns, uint32_t classes) {
    uint8_t data[4096];
    put_file(images, data, make_idx_images(data, count, rows, columns));
    put_file(labels, data, make_idx_labels(data, count, classes));
}

enum { CIFAR_RECORD = 3073 };

/* count records; record i has label (first + i) mod 10 and byte k is (first + i + k) mod 256. */
static inline size_t make_cifar(uint8_t *out, unsigned first, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        uint8_t *record = out + (size_t)i * CIFAR_RECORD;
        record[0] = (uint8_t)((first + i) % 10);
        for (unsigned k = 0; k < CIFAR_RECORD - 1; k++)
            record[1 + k] = (uint8_t)(first + i + k);
    }
    return (size_t)count * CIFAR_RECORD;
}

static inline void put_cifar(const char *name, unsigned first, unsigned count) {
    static uint8_t data[4 * CIFAR_RECORD];
    put_file(name, data, make_cifar(data, first, count));
}

/* A folder "from" that fds_data_get takes as cifar10: two records in each batch, and their sums;
 * batch i begins with record first + 10 i. */
static inline void put_cifar_source_from(unsigned first) {
    char text[1024], name[64], sum[65];
    size_t used = 0, size;
    put_folder("from");
    for (unsigned i = 0; i < 6; i++) {
        snprintf(name, sizeof name, i < 5 ? "from/data_batch_%u.bin" : "from/test_batch.bin",
                 i + 1);
        put_cifar(name, first + 10 * i, 2);
        char *data = scratch_read(scratch_path(name), &size);
        fds_sha256_hex(data, size, sum);
        free(data);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s  %s\n", sum, name + 5);
    }
    put_text("from/SHA256SUMS", text);
}

static inline void put_cifar_source(void) { put_cifar_source_from(0); }

static inline void open_ok(const char *where, const fds__data_options *options, fds_dataset **train,
                           fds_dataset **test) {
    fds_error err = {0};
    *train = *test = NULL;
    if (fds__data_open(where, options, NULL, train, test, &err) != FDS_OK)
        fail_msg("%s: %s", where, err.text);
    assert_non_null(*train);
}

/* Opening fails with that status and a message that says part. */
static inline void open_fails(const char *where, const fds__data_options *options,
                              fds_status status, const char *part) {
    fds_error err = {0};
    fds_dataset *train = NULL, *test = NULL;
    fds_status got = fds__data_open(where, options, NULL, &train, &test, &err);
    if (got != status)
        fail_msg("%s: status %s, not %s: %s", where, fds_status_name(got), fds_status_name(status),
                 err.text);
    expect_in(err.text, part);
    assert_int_equal(err.status, status);
    assert_null(train);
    assert_null(test);
}

static inline void expect_shape(const fds_dataset *ds, size_t count, uint32_t channels,
                                uint32_t height, uint32_t width) {
    fds__dataset_info info = fds__dataset_get_info(ds);
    assert_int_equal(info.count, count);
    assert_int_equal(info.shape.channels, channels);
    assert_int_equal(info.shape.height, height);
    assert_int_equal(info.shape.width, width);
}

/* A picture whose pixel (x, y), channel c is (x * 16 + y * 5 + c * 80) mod 256, as a PNG file. */
static inline void put_png(const char *name, uint32_t width, uint32_t height, uint32_t channels) {
    static uint8_t pixels[64 * 64 * 3];
    assert_true(width <= 64 && height <= 64);
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            for (uint32_t c = 0; c < channels; c++)
                pixels[(y * width + x) * channels + c] = (uint8_t)(x * 16 + y * 5 + c * 80);
    fds_error err = {0};
    fds__picture picture = {width, height, channels, pixels};
    assert_int_equal(fds__png_write(&picture, scratch_path(name), &err), FDS_OK);
}

/* A JPEG file in memory; the caller frees it. */
uint8_t *make_jpeg(uint32_t width, uint32_t height, int channels, bool progressive, size_t *size);

#endif
