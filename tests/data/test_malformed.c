/* SPDX-License-Identifier: Apache-2.0
 * Damaged files, thousands of each format: cut off at every length, every bit flipped, headers that
 * lie. Each must return a status; run under ASan and UBSan this shows that none reads or writes
 * where it should not. A flipped pixel is still a picture, so success is allowed outside headers.
 */
#include "fixture.h"

#include <zlib.h>

/* Parses size bytes at data, a heap block of exactly that size and a NUL. */
typedef fds_status (*parser)(uint8_t *data, size_t size, fds_error *err);

typedef struct {
    const char *name;
    parser parse;
    size_t files, refused;
} trial;

static fds_status attempt(trial *t, const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size + 1);
    fds_error err = {0};
    assert_non_null(copy);
    if (size)
        memcpy(copy, data, size);
    copy[size] = 0;
    fds_status status = t->parse(copy, size, &err);
    free(copy);
    t->files++;
    t->refused += status != FDS_OK;
    if (status != FDS_OK) {
        assert_int_equal(err.status, status);
        assert_true(strlen(err.text) > 10);
    }
    return status;
}

/* Every length, every bit. Damage to the first header bytes must be noticed, except to byte
 * free_byte, which may change without harm (0: none). */
static void damage(trial *t, const uint8_t *valid, size_t size, size_t header, size_t free_byte) {
    uint8_t *data = malloc(size);
    assert_non_null(data);
    assert_int_equal(attempt(t, valid, size), FDS_OK);
    for (size_t length = 0; length < size; length++)
        if (attempt(t, valid, length) == FDS_OK && length < header)
            fail_msg("%s: cut off after %zu bytes, yet accepted", t->name, length);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        memcpy(data, valid, size);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        fds_status status = attempt(t, data, size);
        if (status == FDS_OK && bit / 8 < header && (!free_byte || bit / 8 != free_byte))
            fail_msg("%s: bit %zu of byte %zu is flipped, yet accepted", t->name, bit % 8, bit / 8);
    }
    free(data);
}

static void finish(const trial *t) {
    assert_true(t->files >= 1000);
    print_message("# %s: %zu damaged files, %zu refused, the rest read\n", t->name, t->files,
                  t->refused);
}

static fds_status close_dataset(fds_status status, fds_dataset **ds, fds_error *err) {
    if (status == FDS_OK)
        status = fds__dataset_finish(*ds, NULL, NULL, err);
    fds_dataset_free(*ds);
    return status;
}

/* ---- IDX ---- */

static uint8_t good_images[16 + 60], good_labels[8 + 5];

static fds_status parse_images(uint8_t *data, size_t size, fds_error *err) {
    fds__blob x = {"images", data, size, false},
              y = {"labels", good_labels, sizeof good_labels, false};
    fds_dataset *ds = NULL;
    return close_dataset(fds__idx_parse(&x, &y, &ds, err), &ds, err);
}

static fds_status parse_labels(uint8_t *data, size_t size, fds_error *err) {
    fds__blob x = {"images", good_images, sizeof good_images, false},
              y = {"labels", data, size, false};
    fds_dataset *ds = NULL;
    return close_dataset(fds__idx_parse(&x, &y, &ds, err), &ds, err);
}

static const uint32_t lies[] = {0,  1,      2,       3,          4,           5,
                                60, 0xffff, 0x10000, 0x7fffffff, 0x80000000u, 0xffffffffu};

static void idx(void **state) {
    (void)state;
    trial t = {.name = "IDX", .parse = parse_images};
    make_idx_images(good_images, 5, 3, 4);
    make_idx_labels(good_labels, 5, 3);
    damage(&t, good_images, sizeof good_images, 16, 0);
    uint8_t data[sizeof good_images];
    memcpy(data, good_images, sizeof data);
    for (size_t i = 0; i < COUNT(lies) * COUNT(lies) * COUNT(lies); i++) {
        uint32_t count = lies[i % COUNT(lies)], rows = lies[i / COUNT(lies) % COUNT(lies)];
        uint32_t columns = lies[i / COUNT(lies) / COUNT(lies)];
        put_u32(put_u32(put_u32(data + 4, count), rows), columns);
        bool right = count == 5 && (uint64_t)rows * columns == 12;
        assert_int_equal(attempt(&t, data, sizeof data) == FDS_OK, right);
    }
    t.parse = parse_labels;
    damage(&t, good_labels, sizeof good_labels, 8, 0);
    finish(&t);
}

/* ---- gzip ---- */

static fds_status parse_packed(uint8_t *data, size_t size, fds_error *err) {
    fds_dataset *ds = NULL, *test = NULL;
    put_file("train-images-idx3-ubyte.gz", data, size);
    fds_status status = fds__data_open(scratch, NULL, NULL, &ds, &test, err);
    fds_dataset_free(ds);
    return status;
}

static void gzip(void **state) {
    (void)state;
    trial t = {.name = "gzip", .parse = parse_packed};
    uint8_t images[16 + 64 * 5], packed[512];
    size_t size = make_idx_images(images, 5, 8, 8);
    z_stream z = {
        .next_in = images, .avail_in = (uInt)size, .next_out = packed, .avail_out = sizeof packed};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    put_file("train-labels-idx1-ubyte", good_labels, make_idx_labels(good_labels, 5, 3));
    damage(&t, packed, z.total_out, 2, 0);
    finish(&t);
}

/* ---- CIFAR-10 ---- */

static fds_status parse_cifar(uint8_t *data, size_t size, fds_error *err) {
    fds__blob batch = {"batch", data, size, false};
    fds_dataset *ds = NULL;
    return close_dataset(fds__cifar_parse(&batch, 1, &ds, err), &ds, err);
}

static void cifar(void **state) {
    (void)state;
    trial t = {.name = "CIFAR-10", .parse = parse_cifar};
    uint8_t data[CIFAR_RECORD];
    make_cifar(data, 0, 1);
    damage(&t, data, sizeof data, 0, 0);
    assert_int_equal(t.refused, CIFAR_RECORD + 4); /* every length; a label of 16, 32, 64, 128 */
    finish(&t);
}

/* ---- NPY ---- */

static char npy_labels[512];
static size_t npy_labels_size;

static fds_status parse_npy(uint8_t *data, size_t size, fds_error *err) {
    fds__blob x = {"x", data, size, false},
              y = {"y", (uint8_t *)npy_labels, npy_labels_size, false};
    fds_dataset *ds = NULL;
    return close_dataset(fds__npy_parse(&x, &y, &ds, err), &ds, err);
}

static fds_status parse_npy_labels(uint8_t *data, size_t size, fds_error *err) {
    size_t values_size;
    uint8_t *values = (uint8_t *)scratch_read(kept_path("npy/nchw_u1.npy"), &values_size);
    fds__blob x = {"x", values, values_size, false}, y = {"y", data, size, false};
    fds_dataset *ds = NULL;
    fds_status status = close_dataset(fds__npy_parse(&x, &y, &ds, err), &ds, err);
    free(values);
    return status;
}

static void npy_lies(trial *t) {
    for (size_t i = 0; i < COUNT(lies) * COUNT(lies) * COUNT(lies) * 2; i++) {
        char data[256] = "\x93NUMPY\x02";
        size_t n = COUNT(lies);
        snprintf(data + 12, sizeof data - 12,
                 "{'descr': '%s', 'fortran_order': False, 'shape': (%u, %u, %u)}",
                 i & 1 ? "<f8" : "|u1", lies[i / 2 % n], lies[i / 2 / n % n], lies[i / 2 / n / n]);
        size_t length = strlen(data + 12);
        data[8] = (char)length;
        attempt(t, (uint8_t *)data, 12 + length + 96);
    }
}

static void npy(void **state) {
    (void)state;
    static const char *const files[] = {"npy/nchw_u1.npy", "npy/features_f8.npy",
                                        "npy/features_f4_v2.npy", "npy/nchw_u1_fortran.npy"};
    trial t = {.name = "NPY", .parse = parse_npy};
    size_t size;
    char *labels = scratch_read(kept_path("npy/labels_i8.npy"), &npy_labels_size);
    assert_true(npy_labels_size <= sizeof npy_labels);
    memcpy(npy_labels, labels, npy_labels_size);
    for (size_t f = 0; f < COUNT(files); f++) {
        uint8_t *data = (uint8_t *)scratch_read(kept_path(files[f]), &size);
        /* {'descr': ' is followed by the mark of byte order, which may turn into another valid one;
         * so may version 2 into 3 */
        damage(&t, data, size, data[6] == 1 ? 128 : 0, 10 + 11);
        free(data);
    }
    npy_lies(&t);
    t.parse = parse_npy_labels;
    damage(&t, (uint8_t *)labels, npy_labels_size, 128, 10 + 11);
    free(labels);
    finish(&t);
}

/* ---- CSV ---- */

static fds_status parse_csv(uint8_t *data, size_t size, fds_error *err) {
    fds__blob table = {"table", data, size, false};
    fds_dataset *ds = NULL;
    return close_dataset(fds__csv_parse(&table, 1, NULL, NULL, &ds, err), &ds, err);
}

static void csv(void **state) {
    (void)state;
    static const char text[] = "label,provider,height,weight\r\n"
                               "cat,\"Clinic \"\"A\"\"\",25.1,4.2\r\n"
                               "\"dog, large\",Clinic B,-61,3.1e1\n"
                               "\"cat\",\"two  words\",\"7\",0";
    trial t = {.name = "CSV", .parse = parse_csv};
    damage(&t, (const uint8_t *)text, sizeof text - 1, 5, 0);
    uint8_t data[sizeof text - 1];
    for (size_t i = 0; i < sizeof data; i++)
        for (size_t b = 0; b < 7; b++) {
            memcpy(data, text, sizeof data);
            data[i] = (uint8_t) "\"\n\r,\0 x"[b];
            attempt(&t, data, sizeof data);
        }
    finish(&t);
}

/* ---- pictures ---- */

static fds_status parse_picture(uint8_t *data, size_t size, fds_error *err) {
    fds__blob file = {"picture", data, size, false};
    fds__picture picture = {0};
    fds_status status = fds__picture_decode(&file, &picture, err);
    assert_int_equal(picture.pixels != NULL, status == FDS_OK);
    fds__free(picture.pixels);
    return status;
}

static void png(void **state) {
    (void)state;
    static const char *const files[] = {"png/rgb8.png", "png/palette8_alpha.png", "png/gray4.png",
                                        "png/rgb8_interlaced.png"};
    trial t = {.name = "PNG", .parse = parse_picture};
    for (size_t f = 0; f < COUNT(files); f++) {
        size_t size;
        uint8_t *data = (uint8_t *)scratch_read(kept_path(files[f]), &size);
        damage(&t, data, size, size, 0); /* every chunk has a checksum: nothing goes unnoticed */
        free(data);
    }
    finish(&t);
}

static void jpeg(void **state) {
    (void)state;
    trial t = {.name = "JPEG", .parse = parse_picture};
    for (int variant = 0; variant < 4; variant++) {
        size_t size;
        uint8_t *data = make_jpeg(16, 16, variant & 1 ? 3 : 1, variant & 2, &size);
        damage(&t, data, size, 3, 0);
        free(data);
    }
    finish(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(idx), TEST(gzip), TEST(cifar), TEST(npy),
                                       TEST(csv), TEST(png),  TEST(jpeg)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
