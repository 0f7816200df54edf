/* SPDX-License-Identifier: Apache-2.0
 * The figure of inputs and their largest contributors: which pictures stand where, in which order,
 * which are framed, and what is refused. */
#include "fixture.h"

enum { SIDE = 4, SCALE = 28, ROWS = 2, PAPER = 248 };
/* As draw.c lays it out for pictures of 4 x 4 and class names of one letter. */
enum { LEFT = 20, TOP = 20, MARGINS = 32, TEXT = 13, LINE = 16, GAP = 16 };

static uint32_t text_width(const char *text) {
    uint32_t width = 0;
    fds_error err;
    expect_ok(draw_text_width(text, TEXT, &width, &err), &err);
    return width;
}

static uint32_t key_width(void) { return text_width("confidence") + 6; }
static uint32_t cell_width(void) { return 4 + key_width() + text_width("100.0 %") + GAP; }
static uint32_t cell_height(uint32_t lines) { return 8 + SIDE * SCALE + 8 + lines * LINE + GAP; }

static uint8_t pixel(size_t sample, size_t at) { return (uint8_t)((sample * 11 + at * 15) % 250); }

static task task_pictures(void) {
    static uint8_t bytes[SAMPLES * SIDE * SIDE];
    uint16_t labels[SAMPLES];
    task t = {.input_count = INPUTS, .params = quick("afds")};
    fds_error err;
    for (size_t i = 0; i < SAMPLES; i++) {
        labels[i] = i % CLASSES;
        for (size_t at = 0; at < SIDE * SIDE; at++)
            bytes[i * SIDE * SIDE + at] = pixel(i, at);
    }
    expect_ok(fds__dataset_create(SAMPLES, (fds_shape){1, SIDE, SIDE}, bytes, NULL, labels, CLASSES,
                                  NULL, &t.train, &err),
              &err);
    task_players(&t);
    for (uint32_t i = 0; i < INPUTS; i++)
        t.inputs[i] = PLAYERS + i;
    return t;
}

/* Input 0 is explained for label 0 and is taken for label 1; player 5 comes first, then 2 and 9,
 * which are equal. Input 1 is explained for the label that is predicted; all players are equal. */
static void fill_answers(answers *a) {
    memset(a, 0, sizeof *a);
    a->probs[1] = a->probs[CLASSES + 2] = 0.75f;
    a->labels[1] = 2;
    a->values[5] = 0.9;
    a->values[2] = a->values[9] = 0.5;
}

typedef struct {
    task t;
    fds_run *run;
    answers a;
    uint32_t index[ROWS], true_labels[ROWS];
} subject;

static void subject_make(subject *s) {
    s->t = task_pictures();
    fit(&s->t, scratch_path("run"));
    s->run = open_run(scratch_path("run"));
    fill_answers(&s->a);
    for (uint32_t i = 0; i < ROWS; i++) {
        s->index[i] = PLAYERS + INPUTS + 3 * i;
        s->true_labels[i] = i;
    }
}

static void subject_free(subject *s) {
    fds_run_free(s->run);
    task_free(&s->t);
}

static fds_status try_draw(subject *s, size_t count, const uint32_t *true_labels, bool has_probs,
                           uint32_t columns, fds_error *err) {
    fds__answers to = places(&s->a);
    to.probs = has_probs ? to.probs : NULL;
    return fds__run_draw(s->run, s->t.train, s->index, count, true_labels, &to, columns,
                         scratch_path("f.png"), err);
}

static fds__picture drawn(void) {
    fds__picture p;
    fds_error err;
    expect_ok(fds__picture_read(scratch_path("f.png"), &p, &err), &err);
    assert_int_equal(p.channels, 3);
    return p;
}

static const uint8_t *at(const fds__picture *p, uint32_t x, uint32_t y) {
    assert_true(x < p->width && y < p->height);
    return p->pixels + ((size_t)y * p->width + x) * 3;
}

static void expect_sample(const fds__picture *p, size_t sample, uint32_t left, uint32_t top) {
    for (uint32_t y = 0; y < SIDE; y++)
        for (uint32_t x = 0; x < SIDE; x++) {
            uint32_t right = left + x * SCALE + SCALE - 1, bottom = top + y * SCALE + SCALE - 1;
            assert_int_equal(*at(p, left + x * SCALE, top + y * SCALE),
                             pixel(sample, y * SIDE + x));
            assert_int_equal(*at(p, right, bottom), pixel(sample, y * SIDE + x));
        }
}

/* Whether a line below a picture, counted from 0, has a key and a text. */
static bool has_line(const fds__picture *p, uint32_t left, uint32_t top, uint32_t line) {
    uint32_t key = 0, text = 0;
    for (uint32_t y = 0; y < LINE; y++)
        for (uint32_t x = 0; x + GAP < cell_width(); x++) {
            bool has_ink = *at(p, left + x, top + SIDE * SCALE + 12 + line * LINE + y) < 150;
            *(x < key_width() ? &key : &text) += has_ink;
        }
    assert_true(!key == !text);
    return key > 20 && text > 3;
}

static void the_largest_contributors_stand_in_order(void **state) {
    (void)state;
    static const size_t order[ROWS][3] = {{5, 2, 9}, {0, 1, 2}};
    static subject s;
    fds_error err;
    subject_make(&s);
    expect_ok(try_draw(&s, ROWS, s.true_labels, true, 3, &err), &err);
    fds__picture p = drawn();
    assert_int_equal(p.width, MARGINS + 4 * cell_width());
    assert_int_equal(p.height, MARGINS + ROWS * cell_height(4) + LINE);
    for (uint32_t i = 0; i < ROWS; i++) {
        uint32_t left = LEFT, top = TOP + i * cell_height(4);
        expect_sample(&p, s.index[i], left, top);
        for (uint32_t line = 0; line < 4; line++) /* the last: another label is explained */
            assert_true(has_line(&p, left, top, line) == (line < 3 || i == 0));
        left += GAP / 2;
        for (uint32_t k = 0; k < 3; k++) {
            left += cell_width();
            expect_sample(&p, order[i][k], left, top);
            bool is_framed = *at(&p, left - 2, top + 50) != PAPER;
            assert_true(is_framed == (order[i][k] % CLASSES != s.a.labels[i]));
            for (uint32_t line = 0; line < 4; line++)
                assert_true(has_line(&p, left, top, line) == (line < 3));
        }
    }
    fds__free(p.pixels);
    subject_free(&s);
}

static void what_is_not_given_is_not_drawn(void **state) {
    (void)state;
    static subject s;
    fds_error err;
    subject_make(&s);
    expect_ok(try_draw(&s, 1, NULL, false, PLAYERS + 3, &err), &err); /* more than there are */
    fds__picture p = drawn();
    assert_int_equal(p.width, MARGINS + (1 + PLAYERS) * cell_width());
    assert_int_equal(p.height, MARGINS + cell_height(3) + LINE);
    expect_sample(&p, s.index[0], LEFT, TOP);
    for (uint32_t line = 0; line < 3; line++) /* neither label nor confidence */
        assert_true(has_line(&p, LEFT, TOP, line) == (line == 0));
    fds__free(p.pixels);
    subject_free(&s);
}

static void mistakes_are_told(void **state) {
    (void)state;
    enum { MANY = 400 };
    static subject s;
    static double values[MANY * PLAYERS];
    uint32_t many[MANY] = {0}, labels[MANY] = {0};
    fds_error err;
    subject_make(&s);
    expect_failure(try_draw(&s, ROWS, NULL, true, 0, &err), FDS_ERR_USAGE, &err, "one column");
    s.index[1] = SAMPLES;
    assert_int_not_equal(try_draw(&s, ROWS, NULL, true, 3, &err), FDS_OK);
    const fds__answers to = {.labels = labels, .values = values};
    expect_failure(
        fds__run_draw(s.run, s.t.train, many, MANY, NULL, &to, 3, scratch_path("f.png"), &err),
        FDS_ERR_LIMIT, &err, "too large");
    expect_failure(
        fds__run_draw(s.run, s.t.train, many, 1, NULL, &to, 3, scratch_path("none/f.png"), &err),
        FDS_ERR_NOT_FOUND, &err, "none/f.png");
    fds_dataset *vectors = clouds(3, 1);
    expect_failure(
        fds__run_draw(s.run, vectors, NULL, 1, NULL, &to, 3, scratch_path("f.png"), &err),
        FDS_ERR_USAGE, &err, "only images");
    assert_false(fds__path_exists(scratch_path("f.png")));
    fds_dataset_free(vectors);
    subject_free(&s);
}

/* Every allocation and every file operation fails once. */
static void faults_leave_no_picture(void **state) {
    (void)state;
    static subject s;
    fds_error err;
    subject_make(&s);
    for (int kind = 0; kind < 2; kind++)
        for (uint64_t nth = 1;; nth++) {
            unlink(scratch_path("f.png"));
            err = (fds_error){0};
            fds__fault_arm((fds__fault_kind)kind, nth);
            fds_status status = try_draw(&s, ROWS, s.true_labels, true, 3, &err);
            if (fds__fault_arm((fds__fault_kind)kind, 0) < nth) {
                expect_ok(status, &err);
                assert_true(nth > 3);
                break;
            }
            if (status == FDS_OK || err.status != status || !*err.text)
                fail_msg("fault %d, %lu: %s: %s", kind, (unsigned long)nth, fds_status_name(status),
                         err.text);
        }
    subject_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(the_largest_contributors_stand_in_order),
        IN_SCRATCH(what_is_not_given_is_not_drawn),
        IN_SCRATCH(mistakes_are_told),
        IN_SCRATCH(faults_leave_no_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
