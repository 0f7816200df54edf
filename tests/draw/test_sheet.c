/* SPDX-License-Identifier: Apache-2.0
 * The contact sheet: its pixels are the samples', its bytes are always the same. */
#include "../data/fixture.h"
#include "draw/draw.h"

static void read_sheet(const char *path, fds__picture *picture) {
    fds_error err = {0};
    fds__blob file = {.path = path};
    file.data = (uint8_t *)scratch_read(path, &file.size);
    assert_int_equal(fds__picture_decode(&file, picture, &err), FDS_OK);
    free(file.data);
}

/* Where the first picture begins, how large it is drawn, and the distance to the next. */
enum { LEFT = 12, TOP = 12, SCALE = 3, SIDE = 28 * SCALE, NEXT_X = SIDE + 10, NEXT_Y = SIDE + 30 };

static void pixels_on_the_sheet_are_those_of_the_samples(void **state) {
    (void)state;
    fds_dataset *train, *test;
    fds__picture p;
    fds_error err = {0};
    static const uint32_t index[5] = {7, 0, 299, 12, 3};
    open_ok(kept_path("mnist"), NULL, &train, &test);
    assert_int_equal(fds_dataset_draw(train, index, 5, 3, scratch_path("a.png"), &err), FDS_OK);
    read_sheet(scratch_path("a.png"), &p);
    assert_int_equal(p.width, 2 * 12 + 3 * NEXT_X - 10);
    assert_int_equal(p.height, 2 * 12 + 2 * NEXT_Y - 10);
    for (unsigned i = 0; i < 5; i++)
        for (unsigned y = 0; y < SIDE; y++)
            for (unsigned x = 0; x < SIDE; x++) {
                const uint8_t *pixel = p.pixels + 3 * ((TOP + i / 3 * NEXT_Y + y) * p.width + LEFT +
                                                       i % 3 * NEXT_X + x);
                uint8_t value = train->bytes[index[i] * 784 + y / SCALE * 28 + x / SCALE];
                assert_true(pixel[0] == value && pixel[1] == value && pixel[2] == value);
            }
    unsigned ink = 0; /* of the label below the first picture */
    for (unsigned y = TOP + SIDE + 1; y < TOP + NEXT_Y; y++)
        for (unsigned x = LEFT; x < LEFT + SIDE; x++)
            ink += p.pixels[3 * (y * p.width + x)] < 100;
    assert_in_range(ink, 5, 60);
    fds__free(p.pixels);
    size_t size, again;
    assert_int_equal(fds_dataset_draw(train, index, 5, 3, scratch_path("b.png"), &err), FDS_OK);
    char *one = scratch_read(scratch_path("a.png"), &size);
    char *two = scratch_read(scratch_path("b.png"), &again);
    assert_int_equal(size, again);
    assert_memory_equal(one, two, size);
    free(one);
    free(two);
    fds_dataset_free(train);
    fds_dataset_free(test);
}

static void colours_floats_and_long_names_are_drawn(void **state) {
    (void)state;
    float floats[3 * 4] = {-1e38f, 3e38f, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2};
    uint16_t label = 0;
    const char *name = "a name that is far too long for the picture above it";
    fds_dataset *ds = NULL;
    fds__picture p;
    fds_error err = {0};
    assert_int_equal(
        fds__dataset_create(1, (fds_shape){3, 2, 2}, NULL, floats, &label, 1, &name, &ds, &err),
        FDS_OK);
    assert_int_equal(fds_dataset_draw(ds, NULL, 1, 10, scratch_path("a.png"), &err), FDS_OK);
    read_sheet(scratch_path("a.png"), &p);
    assert_int_equal(p.width, 2 * 12 + 80); /* as many columns as pictures */
    const uint8_t *first = p.pixels + 3 * (12 * p.width + 12), *second = first + 3 * 40;
    assert_true(first[0] == 0 && second[0] == 255 && first[1] == 64);
    fds__free(p.pixels);
    fds_dataset_free(ds);
}

/* Text stays in its box: what is too long is cut, what is not UTF-8 is replaced. */
static void text_is_fitted_into_its_box(void **state) {
    (void)state;
    enum { WIDTH = 100, HEIGHT = 40, X = 10, Y = 8, BOX = 70, SIZE = 13 };
    static const draw_type type = {SIZE, draw_ink, true};
    char longest[2000];
    for (size_t i = 0; i + 2 < sizeof longest; i += 2)
        memcpy(longest + i, "é", 3);
    const char *const texts[] = {"7", "a name that is too long", longest, "M\xfcller \xff", "日本"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        fds__picture p;
        fds_error err = {0};
        unsigned ink = 0;
        assert_int_equal(draw_canvas_create(WIDTH, HEIGHT, &p, &err), FDS_OK);
        assert_int_equal(draw_canvas_text(&p, texts[i], &type, X, Y, BOX, &err), FDS_OK);
        for (unsigned y = 0; y < HEIGHT; y++)
            for (unsigned x = 0; x < WIDTH; x++) {
                bool is_changed = p.pixels[3 * (y * WIDTH + x)] != draw_paper[0];
                bool is_in_box = x >= X && x < X + BOX && y >= Y && y < Y + draw_line_height(SIZE);
                assert_true(!is_changed || is_in_box);
                ink += is_changed;
            }
        assert_in_range(ink, 15, BOX * draw_line_height(SIZE) / 2);
        fds__free(p.pixels);
    }
}

static void what_cannot_be_drawn_is_refused(void **state) {
    (void)state;
    fds_dataset *train, *test;
    fds_error err = {0};
    uint32_t outside = 300;
    open_ok(kept_path("mnist"), NULL, &train, &test);
    const char *path = scratch_path("a.png");
    assert_int_equal(fds_dataset_draw(train, NULL, 1, 0, path, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_dataset_draw(train, NULL, 0, 1, path, &err), FDS_ERR_USAGE);
    assert_int_equal(fds_dataset_draw(train, &outside, 1, 1, path, &err), FDS_ERR_USAGE);
    uint32_t many[1000] = {0};
    assert_int_equal(fds_dataset_draw(train, many, 1000, 1, path, &err), FDS_ERR_LIMIT);
    assert_int_equal(fds_dataset_draw(train, NULL, 1, 1, scratch_path("no/such/a.png"), &err),
                     FDS_ERR_NOT_FOUND);
    fds_dataset_free(train);
    fds_dataset_free(test);
    put_text("a.csv", "label,x\na,1\n");
    open_ok(scratch_path("a.csv"), NULL, &train, &test);
    assert_int_equal(fds_dataset_draw(train, NULL, 1, 1, path, &err), FDS_ERR_USAGE);
    expect_in(err.text, "feature vectors");
    fds_dataset_free(train);
    assert_int_equal(scratch_entries(), 1); /* nothing but the CSV file */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(pixels_on_the_sheet_are_those_of_the_samples),
        TEST(colours_floats_and_long_names_are_drawn),
        TEST(text_is_fitted_into_its_box),
        TEST(what_cannot_be_drawn_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
