/* SPDX-License-Identifier: Apache-2.0
 * Pictures scaled. The expected numbers are PyTorch's: interpolate(mode="bilinear", antialias=True)
 * of the pixels (37 x + 91 y + 13 x y) mod 256. */
#include "fixture.h"

#include <math.h>

static fds__picture make_picture(uint32_t width, uint32_t height, uint32_t channels) {
    fds__picture p = {width, height, channels, fds__alloc((size_t)width * height * channels)};
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            for (uint32_t c = 0; c < channels; c++)
                p.pixels[(y * width + x) * channels + c] =
                    (uint8_t)((37 * x + 91 * y + 13 * x * y + 50 * c) % 256);
    return p;
}

static void pictures_are_scaled_as_by_pytorch(void **state) {
    (void)state;
    static const struct {
        fds__size from, to;
        double expected[15];
    } cases[] = {
        {{5, 3}, {2, 2}, {76, 129.2045, 162.3636, 138.9773}},
        {{2, 2}, {4, 3}, {0, 9.25, 27.75, 37, 45.5, 56.375, 78.125, 89, 91, 103.5, 128.5, 141}},
        {{7, 5},
         {3, 5},
         {31.7143, 111, 190.2857, 133.8571, 165.7059, 92.1429, 181.1429, 130.0588, 158.5714,
          82.1429, 169.7059, 151.8571, 129.4286, 119, 108.5714}},
        {{3, 4},
         {5, 2},
         {65, 83.5143, 111.2857, 117.1143, 121, 98.2857, 124.9714, 165, 139.2, 122}},
        {{4, 3}, {4, 3}, {0, 37, 74, 111, 91, 141, 191, 241, 182, 245, 52, 115}},
    };
    for (size_t k = 0; k < COUNT(cases); k++) {
        fds__picture p = make_picture(cases[k].from.width, cases[k].from.height, 1);
        fds__size to = cases[k].to;
        assert_int_equal(fds__picture_resize(&p, to, NULL), FDS_OK);
        assert_int_equal(p.width, to.width);
        assert_int_equal(p.height, to.height);
        for (size_t i = 0; i < (size_t)to.width * to.height; i++)
            assert_true(fabs(p.pixels[i] - cases[k].expected[i]) <= 0.501);
        fds__free(p.pixels);
    }
}

/* Each channel by itself, and a white picture stays white. */
static void channels_do_not_mix(void **state) {
    (void)state;
    fds__picture p = make_picture(9, 8, 3);
    memset(p.pixels, 255, (size_t)9 * 8 * 3);
    for (size_t i = 0; i < (size_t)9 * 8; i++)
        p.pixels[3 * i + 1] = 100;
    assert_int_equal(fds__picture_resize(&p, (fds__size){4, 20}, NULL), FDS_OK);
    for (size_t i = 0; i < (size_t)4 * 20 * 3; i++)
        assert_int_equal(p.pixels[i], i % 3 == 1 ? 100 : 255);
    fds__free(p.pixels);
}

static void a_size_is_a_width_and_a_height(void **state) {
    (void)state;
    fds__size size;
    assert_int_equal(fds__size_parse("32x24", &size, NULL), FDS_OK);
    assert_int_equal(size.width, 32);
    assert_int_equal(size.height, 24);
    assert_int_equal(fds__size_parse(NULL, &size, NULL), FDS_OK);
    assert_int_equal(size.width, 0);
    static const char *const wrong[] = {"",     "32",   "32x",   "x32",        "0x4",
                                        "4x0",  "-3x4", "4x4x4", "4 x 4",      "99999x1",
                                        "4x+4", "4x4 ", "1e2x3", "65535x65535"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        fds_error err = {0};
        assert_int_equal(fds__size_parse(wrong[i], &size, &err), FDS_ERR_USAGE);
        expect_in(err.text, "for example 32x32");
    }
}

static void folders_of_all_sizes_are_scaled_to_one(void **state) {
    (void)state;
    fds_dataset *train, *test;
    put_folder("a");
    put_folder("b");
    put_png("a/1.png", 4, 4, 1);
    put_png("a/2.png", 9, 5, 1);
    put_png("b/3.png", 1, 1, 1);
    open_fails(scratch, NULL, FDS_ERR_SHAPE, "`resize` 4x4");
    const fds__data_options options = {.size = {6, 3}};
    open_ok(scratch, &options, &train, &test);
    expect_shape(train, 3, 1, 3, 6);
    fds_dataset_free(train);
    put_text("table.csv", "x,label\n1,a\n2,b\n");
    open_fails(scratch_path("table.csv"), &options, FDS_ERR_USAGE,
               "--resize is only for folders of pictures");
}

static void one_picture_is_scaled_only_if_asked(void **state) {
    (void)state;
    fds_dataset *ds = NULL;
    fds_error err = {0};
    put_png("large.png", 12, 12, 3);
    const char *const path[] = {scratch_path("large.png")};
    const fds_shape shape = {1, 4, 5};
    assert_int_equal(fds__data_pictures(path, 1, shape, 2, false, &ds, &err), FDS_ERR_SHAPE);
    expect_in(err.text, "large.png: 12 x 12 pixels");
    expect_in(err.text, "`resize`");
    expect_ok(fds__data_pictures(path, 1, shape, 2, true, &ds, &err), &err);
    expect_shape(ds, 1, 1, 4, 5);
    fds_dataset_free(ds);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(pictures_are_scaled_as_by_pytorch),   TEST(channels_do_not_mix),
        TEST(a_size_is_a_width_and_a_height),      TEST(folders_of_all_sizes_are_scaled_to_one),
        TEST(one_picture_is_scaled_only_if_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
