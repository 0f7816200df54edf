/* SPDX-License-Identifier: Apache-2.0
 * The paper's figure: a row an input, with its true label on the left; the input itself, with the
 * label p that the service model predicts and its probability below; then its greatest contributors
 * with o, the label their sample has, p, the label that the service model predicts for it, and s,
 * the Shapley value. Contributors of another label than the one explained are framed. */
#include "explain/run.h"

#include <string.h>

enum {
    MARGIN = 14,    /* around the figure */
    GAP = 14,       /* between cells */
    FRAME = 4,      /* width of a frame, which is drawn around a picture */
    CAPTION = 7,    /* between a picture and its first line */
    LEADING = 2,    /* between lines */
    LINES = 3,      /* below a picture */
    PICTURE = 112,  /* pictures are scaled up to at least this width: room for 9 large letters */
    LARGE = 2,      /* text, as a multiple of the font */
    LINE_SIZE = 80, /* bytes */
};

static const uint8_t orange[3] = {230, 120, 20};
static const char legend[] = "o: own label, p: predicted label, s: Shapley value; framed: the "
                             "own label is not the one explained";

typedef struct {
    fds_run *run;
    const fds__answers *answers;
    const uint32_t *true_labels; /* or NULL */
    size_t players;
    uint32_t classes, columns;
    uint32_t *predicted;        /* (players) label that the service model predicts */
    uint32_t *order;            /* (players) scratch */
    fds__brush inputs, samples; /* samples: the players' */
    uint32_t side;              /* width of the column of true labels; 0: none */
    uint32_t text, line;        /* scale and height of a line */
    uint32_t cell_width, cell_height;
    fds__picture canvas;
} figure;

static void figure_free(figure *f) {
    fds__free(f->predicted);
    fds__free(f->order);
    fds__free(f->canvas.pixels);
}

/* What the service model predicts for the players' samples. */
static fds_status predict(figure *f, fds_error *err) {
    size_t size;
    if (!fds__mul(f->players, f->classes * sizeof(float), &size))
        return fds__fail_nomem(err, SIZE_MAX);
    float *probs = fds__alloc(size);
    if (!probs)
        return fds__fail_nomem(err, size);
    fds_status status = fds_model_predict(fds_run_service(f->run), fds_run_samples(f->run), NULL,
                                          f->players, 0, probs, NULL, err);
    for (size_t i = 0; i < f->players && status == FDS_OK; i++)
        f->predicted[i] = fds__argmax_f32(probs + i * f->classes, f->classes);
    fds__free(probs);
    return status;
}

/* ---- layout ---- */

static size_t longest_class_name(const figure *f) {
    size_t longest = 0;
    for (uint32_t c = 0; c < f->classes; c++)
        longest = MAX(longest, strlen(fds__run_class_name(f->run, c)));
    return longest;
}

/* Large letters where the longest line, "p " and a class name, has room for them. */
static void measure(figure *f) {
    uint32_t letters = (uint32_t)MIN(longest_class_name(f), (size_t)LINE_SIZE);
    uint32_t width = MAX(f->inputs.width, f->samples.width);
    uint32_t height = MAX(f->inputs.height, f->samples.height);
    f->text = (letters + 2) * FDS__FONT_WIDTH * LARGE <= width ? LARGE : 1;
    f->line = FDS__FONT_HEIGHT * f->text + LEADING;
    f->side = f->true_labels ? MIN(letters * FDS__FONT_WIDTH * f->text, width) + GAP : 0;
    f->cell_width = width + 2 * FRAME + GAP;
    f->cell_height = FRAME + height + CAPTION + LINES * f->line + GAP;
}

static fds_status make_canvas(figure *f, size_t count, fds_error *err) {
    measure(f);
    uint64_t width = 2 * MARGIN + f->side + (uint64_t)(1 + f->columns) * f->cell_width;
    uint64_t height = 2 * MARGIN + (uint64_t)count * f->cell_height + FDS__FONT_HEIGHT;
    return fds__canvas_create(width, height, &f->canvas, err);
}

/* ---- drawing ---- */

static void draw_lines(figure *f, const fds__brush *brush, uint32_t left, uint32_t top,
                       char lines[LINES][LINE_SIZE]) {
    top += brush->height + CAPTION;
    for (uint32_t i = 0; i < LINES; i++)
        fds__canvas_text(&f->canvas, lines[i], f->text, left, top + i * f->line, brush->width);
}

static void draw_input(figure *f, size_t i, size_t sample, uint32_t left, uint32_t top) {
    char lines[LINES][LINE_SIZE] = {""};
    uint32_t explained = f->answers->labels[i], predicted = explained;
    if (f->answers->probs) {
        const float *probs = f->answers->probs + i * f->classes;
        predicted = fds__argmax_f32(probs, f->classes);
        snprintf(lines[1], LINE_SIZE, "%.1f %%", 100 * (double)probs[predicted]);
    }
    snprintf(lines[0], LINE_SIZE, "p %s", fds__run_class_name(f->run, predicted));
    if (predicted != explained)
        snprintf(lines[2], LINE_SIZE, "for %s", fds__run_class_name(f->run, explained));
    fds__canvas_sample(&f->canvas, &f->inputs, sample, left, top);
    draw_lines(f, &f->inputs, left, top, lines);
}

static void draw_frame(figure *f, const fds__brush *brush, uint32_t left, uint32_t top) {
    fds__canvas_fill(&f->canvas, left - FRAME, top - FRAME, brush->width + 2 * FRAME,
                     brush->height + 2 * FRAME, orange);
}

static void draw_contributor(figure *f, size_t i, size_t player, uint32_t left, uint32_t top) {
    char lines[LINES][LINE_SIZE];
    uint32_t own = fds__run_player_label(f->run, player);
    snprintf(lines[0], LINE_SIZE, "o %s", fds__run_class_name(f->run, own));
    snprintf(lines[1], LINE_SIZE, "p %s", fds__run_class_name(f->run, f->predicted[player]));
    snprintf(lines[2], LINE_SIZE, "s %.3f", f->answers->values[i * f->players + player]);
    if (own != f->answers->labels[i])
        draw_frame(f, &f->samples, left, top);
    fds__canvas_sample(&f->canvas, &f->samples, player, left, top);
    draw_lines(f, &f->samples, left, top, lines);
}

/* Puts the columns greatest contributors first, those of equal values by number. */
static void rank(figure *f, const double *values) {
    for (uint32_t p = 0; p < f->players; p++)
        f->order[p] = p;
    for (uint32_t at = 0; at < f->columns; at++) {
        uint32_t best = at;
        for (uint32_t k = at + 1; k < f->players; k++) {
            double a = values[f->order[k]], b = values[f->order[best]];
            if (a > b || (a == b && f->order[k] < f->order[best]))
                best = k;
        }
        uint32_t chosen = f->order[best];
        f->order[best] = f->order[at];
        f->order[at] = chosen;
    }
}

static void draw_row(figure *f, size_t i, size_t sample) {
    uint32_t top = MARGIN + FRAME + (uint32_t)i * f->cell_height, left = MARGIN;
    if (f->true_labels)
        fds__canvas_text(&f->canvas, fds__run_class_name(f->run, f->true_labels[i]), f->text, left,
                         top + (f->inputs.height - f->line) / 2, f->side - GAP);
    left += f->side + FRAME;
    draw_input(f, i, sample, left, top);
    rank(f, f->answers->values + i * f->players);
    for (uint32_t k = 0; k < f->columns; k++) {
        left += f->cell_width;
        /* half a gap more on the right of the input sets it apart */
        draw_contributor(f, i, f->order[k], left + GAP / 2, top);
    }
}

static fds_status draw(figure *f, const uint32_t *index, size_t count, const char *png_path,
                       fds_error *err) {
    f->predicted = fds__alloc_zero(f->players, sizeof *f->predicted);
    f->order = fds__alloc_zero(f->players, sizeof *f->order);
    if (!f->predicted || !f->order)
        return fds__fail_nomem(err, f->players * sizeof *f->order);
    TRY(make_canvas(f, count, err));
    TRY(predict(f, err));
    for (size_t i = 0; i < count; i++)
        draw_row(f, i, index ? index[i] : i);
    fds__canvas_text(&f->canvas, legend, 1, MARGIN,
                     f->canvas.height - MARGIN - FDS__FONT_HEIGHT + LEADING,
                     f->canvas.width - 2 * MARGIN);
    return fds__png_write(&f->canvas, png_path, err);
}

fds_status fds__run_draw(fds_run *run, const fds_dataset *ds, const uint32_t *index, size_t count,
                         const uint32_t *true_labels, const fds__answers *answers, uint32_t columns,
                         const char *png_path, fds_error *err) {
    const fds__run_info info = fds__run_get_info(run);
    figure f = {.run = run,
                .answers = answers,
                .true_labels = true_labels,
                .players = info.players,
                .classes = info.classes,
                .columns = (uint32_t)MIN((size_t)columns, info.players)};
    if (columns == 0)
        return fds__fail(err, FDS_ERR_USAGE, "the figure needs at least one column");
    TRY(fds__brush_make(ds, index, count, PICTURE, &f.inputs, err));
    TRY(fds__brush_make(fds_run_samples(run), NULL, info.players, PICTURE, &f.samples, err));
    fds_status status = draw(&f, index, count, png_path, err);
    figure_free(&f);
    return status;
}
