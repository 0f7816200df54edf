/* SPDX-License-Identifier: Apache-2.0
 * PNG, JPEG, and folders of them. The files in png/ (5 x 4 pixels) were written without libpng;
 * their pixels are, with x, y from 0:   red 40 x, green 60 y, blue and gray (40 x + 60 y) mod 256.
 */
#include "fixture.h"

#include <sys/resource.h>

static void decode_file(const char *path, fds__picture *picture) {
    size_t size;
    fds_error err = {0};
    fds__blob file = {.path = path, .data = (uint8_t *)scratch_read(path, &size)};
    file.size = size;
    if (fds__picture_decode(&file, picture, &err) != FDS_OK)
        fail_msg("%s", err.text);
    free(file.data);
}

static void every_kind_of_png_becomes_8_bits_gray_or_colour(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint32_t channels;
    } files[] = {
        {"png/gray8.png", 1},    {"png/gray16.png", 1},         {"png/gray_alpha8.png", 1},
        {"png/rgb8.png", 3},     {"png/rgb16.png", 3},          {"png/rgba8.png", 3},
        {"png/palette8.png", 3}, {"png/palette8_alpha.png", 3}, {"png/rgb8_interlaced.png", 3}};
    for (size_t f = 0; f < COUNT(files); f++) {
        fds__picture p;
        decode_file(kept_path(files[f].name), &p);
        assert_true(p.width == 5 && p.height == 4);
        assert_int_equal(p.channels, files[f].channels);
        for (unsigned y = 0; y < 4; y++)
            for (unsigned x = 0; x < 5; x++) {
                unsigned both = (40 * x + 60 * y) % 256, colour[3] = {40 * x, 60 * y, both};
                const uint8_t *pixel = p.pixels + (y * 5 + x) * p.channels;
                for (unsigned c = 0; c < p.channels; c++)
                    assert_int_equal(pixel[c], p.channels == 1 ? both : colour[c]);
            }
        fds__free(p.pixels);
    }
}

static void few_bits_are_spread_over_the_whole_range(void **state) {
    (void)state;
    fds__picture p;
    decode_file(kept_path("png/gray1.png"), &p);
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(p.pixels[i], (i % 5 + i / 5) % 2 * 255);
    fds__free(p.pixels);
    decode_file(kept_path("png/gray4.png"), &p);
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(p.pixels[i], (i % 5 + 3 * (i / 5)) % 16 * 17);
    fds__free(p.pixels);
}

static void jpeg_comes_back_nearly(void **state) {
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        int channels = variant & 1 ? 3 : 1;
        fds__picture p;
        fds_error err = {0};
        fds__blob file = {.path = "a.jpg"};
        file.data = make_jpeg(20, 12, channels, variant & 2, &file.size);
        assert_int_equal(fds__picture_decode(&file, &p, &err), FDS_OK);
        assert_true(p.width == 20 && p.height == 12 && (int)p.channels == channels);
        for (int y = 0; y < 12; y++)
            for (int x = 0; x < 20; x++)
                for (int c = 0; c < channels; c++) {
                    int was = 40 + x * 4 + y * 2 + 30 * c;
                    int is = p.pixels[(y * 20 + x) * channels + c];
                    assert_in_range(is, was - 6, was + 6);
                }
        fds__free(p.pixels);
        free(file.data);
    }
}

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED 1
#endif

/* libjpeg keeps all of a progressive picture, here 15 MB, and may have 4 MB. */
static void a_jpeg_too_large_for_memory_is_not_called_damaged(void **state) {
    (void)state;
#ifndef SANITIZED /* they end the program when there is no memory */
    fds__picture p = {0};
    fds_error err = {0};
    fds__blob file = {.path = "a.jpg"};
    struct rlimit was, small;
    unsigned long pages = 0;
    file.data = make_jpeg(256, 30000, 1, true, &file.size);
    FILE *statm = fopen("/proc/self/statm", "r");
    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%lu", &pages), 1);
    fclose(statm);
    assert_int_equal(getrlimit(RLIMIT_AS, &was), 0);
    small = was;
    small.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + (4 << 20);
    assert_int_equal(setrlimit(RLIMIT_AS, &small), 0);
    fds_status status = fds__picture_decode(&file, &p, &err);
    assert_int_equal(setrlimit(RLIMIT_AS, &was), 0);
    assert_int_equal(status, FDS_ERR_NOMEM);
    expect_in(err.text, "a.jpg: out of memory");
    assert_int_equal(fds__picture_decode(&file, &p, &err), FDS_OK);
    fds__free(p.pixels);
    free(file.data);
#endif
}

static void a_png_written_is_the_png_read_and_always_the_same_bytes(void **state) {
    (void)state;
    for (uint32_t channels = 1; channels <= 3; channels += 2) {
        fds__picture p;
        size_t size, again_size;
        put_png("a.png", 17, 9, channels);
        put_png("b.png", 17, 9, channels);
        decode_file(scratch_path("a.png"), &p);
        assert_true(p.width == 17 && p.height == 9 && p.channels == channels);
        for (uint32_t y = 0; y < 9; y++)
            for (uint32_t x = 0; x < 17; x++)
                for (uint32_t c = 0; c < channels; c++)
                    assert_int_equal(p.pixels[(y * 17 + x) * channels + c],
                                     (uint8_t)(x * 16 + y * 5 + c * 80));
        fds__free(p.pixels);
        char *one = scratch_read(scratch_path("a.png"), &size);
        char *two = scratch_read(scratch_path("b.png"), &again_size);
        assert_int_equal(size, again_size);
        assert_memory_equal(one, two, size);
        free(one);
        free(two);
    }
}

static void class_folders_become_classes_in_the_order_of_their_bytes(void **state) {
    (void)state;
    fds_dataset *train, *test;
    put_folder("dog");
    put_folder("Cat");
    put_folder("10");
    put_folder("9");
    put_png("dog/1.png", 6, 5, 1);
    put_png("dog/2.PNG", 6, 5, 1);
    put_png("Cat/x.png", 6, 5, 1);
    put_png("10/x.png", 6, 5, 1);
    put_png("9/x.png", 6, 5, 1);
    put_text("dog/notes.txt", "not a picture");
    put_text("README", "not a class");
    put_text("classes.txt", "\n"); /* of no meaning here */
    open_ok(scratch, NULL, &train, &test);
    assert_null(test);
    expect_shape(train, 5, 1, 5, 6);
    static const char *const names[] = {"10", "9", "Cat", "dog"};
    assert_int_equal(fds__dataset_get_info(train).classes, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_string_equal(fds_dataset_class_name(train, i), names[i]);
    static const uint16_t labels[] = {0, 1, 2, 3, 3};
    for (int i = 0; i < 5; i++)
        assert_int_equal(train->labels[i], labels[i]);
    assert_int_equal(train->bytes[6 + 2], (uint8_t)(2 * 16 + 5));
    fds_dataset_free(train);
}

static void class_folders_with_unclear_names_are_refused(void **state) {
    (void)state;
    static const char *const names[][2] = {{"Gr\xfcn", "/Gr?n: the name is not UTF-8"},
                                           {"cat ", "/cat : the name begins or ends with white"},
                                           {"\x1b[2J", "/?[2J: the name has a control"}};
    for (size_t i = 0; i < COUNT(names); i++) {
        char picture[32];
        put_folder(names[i][0]);
        snprintf(picture, sizeof picture, "%s/x.png", names[i][0]);
        put_png(picture, 6, 5, 1);
        open_fails(scratch, NULL, FDS_ERR_FORMAT, names[i][1]);
        unlink(scratch_path(picture));
        assert_int_equal(rmdir(scratch_path(names[i][0])), 0);
    }
}

static void expect_owner(const fds_dataset *ds, size_t sample, const char *name) {
    assert_string_equal(fds_dataset_provider_name(ds, ds->provider_ids[sample]), name);
}

static void folders_of_providers_hold_class_folders(void **state) {
    (void)state;
    fds_dataset *train, *test;
    static const char *const files[] = {"train/North/cat/1.png", "train/North/dog/1.png",
                                        "train/South/cat/1.png", "test/cat/9.png"};
    put_folder("train/North/cat");
    put_folder("train/North/dog");
    put_folder("train/South/cat");
    put_folder("test/cat");
    for (size_t i = 0; i < COUNT(files); i++)
        put_png(files[i], 4, 4, 1);
    open_ok(scratch, NULL, &train, &test);
    expect_shape(train, 3, 1, 4, 4);
    assert_int_equal(train->classes, 2);
    assert_int_equal(train->providers, 2);
    expect_owner(train, 1, "North");
    expect_owner(train, 2, "South");
    assert_int_equal(train->labels[1], 1);
    assert_string_equal(train->sample_names[2], "South/cat/1.png");
    assert_null(test->provider_ids);
    fds_dataset_free(train);
    fds_dataset_free(test);
    open_ok(scratch_path("train"), NULL, &train,
            &test); /* the folder itself, without a test part */
    assert_int_equal(train->providers, 2);
    fds_dataset_free(train);
    char slashed[512];
    snprintf(slashed, sizeof slashed, "%s/", scratch_path("train"));
    open_ok(slashed, NULL, &train, &test);
    assert_string_equal(train->sample_names[2], "South/cat/1.png");
    fds_dataset_free(train);
    put_png("train/South/logo.png", 4, 4, 1);
    open_fails(scratch, NULL, FDS_ERR_FORMAT, "/South and, deeper, in");
    assert_int_equal(unlink(scratch_path("train/South/logo.png")), 0);
    put_folder("train/So\x01uth/cat");
    put_png("train/So\x01uth/cat/1.png", 4, 4, 1);
    open_fails(scratch, NULL, FDS_ERR_FORMAT, "control character");
}

static void owners_of_pictures_are_known_by_path_or_name(void **state) {
    (void)state;
    fds_dataset *train, *test;
    char path[512];
    snprintf(path, sizeof path, "%s", scratch_path("owners.csv"));
    fds__data_options options = {.owners_file = path};
    put_folder("set/cat");
    put_folder("set/dog");
    put_png("set/cat/1.png", 4, 4, 1);
    put_png("set/cat/2.png", 4, 4, 1);
    put_png("set/dog/1.png", 4, 4, 1);
    put_text("owners.csv", "file,owner\ncat/1.png,A\n2.png,B\ndog/1.png,A\n");
    open_ok(scratch_path("set"), &options, &train, &test);
    expect_owner(train, 0, "A");
    expect_owner(train, 1, "B");
    expect_owner(train, 2, "A");
    fds_dataset_free(train);
    put_text("owners.csv", "0,A\n1.png,B\n"); /* two pictures have that name */
    open_fails(scratch_path("set"), &options, FDS_ERR_FORMAT,
               "\"1.png\" is ambiguous: it may be \"cat/1.png\" or \"dog/1.png\"; give the folder "
               "as well");
}

static void one_colour_picture_makes_all_of_both_parts_colour(void **state) {
    (void)state;
    fds_dataset *train, *test;
    put_folder("train/a");
    put_folder("train/b");
    put_folder("test/b");
    put_folder("test/c");
    put_png("train/a/1.png", 4, 4, 1);
    put_png("train/b/1.png", 4, 4, 1);
    put_png("test/c/1.png", 4, 4, 3);
    size_t size;
    uint8_t *jpeg = make_jpeg(4, 4, 1, false, &size);
    put_file("test/b/1.jpeg", jpeg, size);
    free(jpeg);
    open_ok(scratch, NULL, &train, &test);
    expect_shape(train, 2, 3, 4, 4);
    expect_shape(test, 2, 3, 4, 4);
    assert_int_equal(fds__dataset_get_info(train).classes, 3);
    assert_int_equal(train->labels[1], 1);
    assert_int_equal(test->labels[1], 2);
    for (int c = 0; c < 3; c++) {
        assert_int_equal(train->bytes[16 * c + 1], 16);              /* gray, repeated */
        assert_int_equal(test->bytes[48 + 16 * c + 1], 16 + 80 * c); /* planes, not interleaved */
    }
    fds_dataset_free(train);
    fds_dataset_free(test);
}

static void pictures_that_do_not_fit_are_named(void **state) {
    (void)state;
    put_folder("a");
    put_png("a/1.png", 4, 4, 1);
    put_png("a/2.png", 4, 5, 1);
    open_fails(scratch, NULL, FDS_ERR_SHAPE, "a/2.png: 4 x 5 pixels");
    put_text("a/2.png", "GIF89a");
    open_fails(scratch, NULL, FDS_ERR_FORMAT, "a/2.png: byte 0: neither PNG nor JPEG");
    size_t size;
    uint8_t *jpeg = make_jpeg(40, 40, 3, false, &size);
    put_file("a/2.png", jpeg, size / 2);
    free(jpeg);
    open_fails(scratch, NULL, FDS_ERR_FORMAT, "damaged JPEG");
    put_folder("empty/train/x");
    open_fails(scratch_path("empty"), NULL, FDS_ERR_NOT_FOUND, "class folders");
}

/* The header alone says 60,000 x 60,000 pixels: no memory is taken for what is not there. */
static void a_png_that_lies_about_its_size_is_refused(void **state) {
    (void)state;
    size_t size;
    uint8_t *data = (uint8_t *)scratch_read(kept_path("png/rgb8.png"), &size);
    static const uint32_t sides[][2] = {{8000, 8000}, {60000, 60000}, {70000, 4}, {0, 4}};
    for (size_t s = 0; s < COUNT(sides); s++) {
        put_u32(put_u32(data + 16, sides[s][0]), sides[s][1]);
        uint32_t crc = 0xffffffffu;
        for (int i = 12; i < 29; i++) {
            crc ^= data[i];
            for (int bit = 0; bit < 8; bit++)
                crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        }
        put_u32(data + 29, ~crc);
        fds__blob file = {"lie.png", data, size, false};
        fds__picture p;
        fds_error err = {0};
        assert_int_not_equal(fds__picture_decode(&file, &p, &err), FDS_OK);
        assert_null(p.pixels);
    }
    free(data);
}

static fds_dataset *pictures_of(fds_shape shape, const char *const *paths, size_t count) {
    fds_error err = {0};
    fds_dataset *ds = NULL;
    expect_ok(fds__data_pictures(paths, count, shape, 7, false, &ds, &err), &err);
    expect_shape(ds, count, shape.channels, shape.height, shape.width);
    assert_int_equal(fds__dataset_get_info(ds).classes, 7);
    return ds;
}

static void single_pictures_become_samples_of_the_shape_asked_for(void **state) {
    (void)state;
    char gray[512], colour[512];
    snprintf(gray, sizeof gray, "%s", kept_path("png/gray8.png"));
    snprintf(colour, sizeof colour, "%s", kept_path("png/rgb8.png"));
    const char *const paths[] = {gray, colour};
    fds_dataset *one = pictures_of((fds_shape){1, 4, 5}, paths, 2);
    fds_dataset *three = pictures_of((fds_shape){3, 4, 5}, paths, 2);
    for (unsigned i = 0; i < 20; i++) {
        unsigned red = 40 * (i % 5), green = 60 * (i / 5), both = (red + green) % 256;
        assert_int_equal(one->bytes[i], both);
        double luma = 0.299 * red + 0.587 * green + 0.114 * both;
        assert_in_range(one->bytes[20 + i], (unsigned)luma, (unsigned)luma + 1);
        unsigned planes[3] = {red, green, both};
        for (unsigned c = 0; c < 3; c++) {
            assert_int_equal(three->bytes[20 * c + i], both);
            assert_int_equal(three->bytes[60 + 20 * c + i], planes[c]);
        }
    }
    fds_dataset_free(one);
    fds_dataset_free(three);
}

static void white_stays_white_when_colour_becomes_gray(void **state) {
    (void)state;
    uint8_t white[12];
    memset(white, 255, sizeof white);
    const fds__picture picture = {2, 2, 3, white};
    assert_int_equal(fds__png_write(&picture, scratch_path("w.png"), NULL), FDS_OK);
    const char *const path[] = {scratch_path("w.png")};
    fds_dataset *ds = pictures_of((fds_shape){1, 2, 2}, path, 1);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(ds->bytes[i], 255);
    fds_dataset_free(ds);
}

static void refuse_picture(const char *name, fds_shape shape, fds_status status, const char *part) {
    fds_error err = {0};
    fds_dataset *ds = NULL;
    const char *const paths[] = {scratch_path("good.png"), scratch_path(name)};
    assert_int_equal(fds__data_pictures(paths, 2, shape, 10, false, &ds, &err), status);
    expect_in(err.text, part);
    assert_null(ds);
}

static void single_pictures_that_do_not_fit_are_named(void **state) {
    (void)state;
    const fds_shape shape = {1, 5, 4};
    put_png("good.png", 4, 5, 1);
    put_png("turned.png", 5, 4, 1);
    put_text("letter.png", "dear");
    put_text("empty.png", "");
    put_folder("folder.png");
    refuse_picture("turned.png", shape, FDS_ERR_SHAPE, "turned.png: 5 x 4 pixels");
    refuse_picture("letter.png", shape, FDS_ERR_FORMAT, "letter.png: byte 0: neither PNG nor JPEG");
    refuse_picture("empty.png", shape, FDS_ERR_FORMAT, "empty.png");
    refuse_picture("folder.png", shape, FDS_ERR_FORMAT, "folder.png");
    refuse_picture("none.png", shape, FDS_ERR_NOT_FOUND, "none.png");
    refuse_picture("good.png", (fds_shape){4, 5, 4}, FDS_ERR_SHAPE, "4 x 5 x 4");
    fds_dataset *ds = NULL;
    assert_int_equal(fds__data_pictures(NULL, 0, shape, 10, false, &ds, NULL), FDS_ERR_SHAPE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_kind_of_png_becomes_8_bits_gray_or_colour),
        TEST(few_bits_are_spread_over_the_whole_range),
        TEST(jpeg_comes_back_nearly),
        TEST(a_jpeg_too_large_for_memory_is_not_called_damaged),
        TEST(a_png_written_is_the_png_read_and_always_the_same_bytes),
        TEST(class_folders_become_classes_in_the_order_of_their_bytes),
        TEST(class_folders_with_unclear_names_are_refused),
        TEST(folders_of_providers_hold_class_folders),
        TEST(owners_of_pictures_are_known_by_path_or_name),
        TEST(one_colour_picture_makes_all_of_both_parts_colour),
        TEST(pictures_that_do_not_fit_are_named),
        TEST(a_png_that_lies_about_its_size_is_refused),
        TEST(single_pictures_become_samples_of_the_shape_asked_for),
        TEST(white_stays_white_when_colour_becomes_gray),
        TEST(single_pictures_that_do_not_fit_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
