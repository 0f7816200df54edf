/* SPDX-License-Identifier: Apache-2.0
 *
 * The paper's figure, one row per input. First the input, with its true label, the label that the
 * service model predicts, its confidence in it, and the label explained where that is another one.
 * Then the input's largest contributors, each with the label of its sample, the label that the
 * service model predicts for it, and its Shapley value. A frame marks contributors whose label is
 * not the one explained. For players with several samples there is draw_result instead.
 */
#include "explain/run.h"

enum {
    MARGIN = 16,   /* around the figure */
    GAP = 16,      /* between cells */
    FRAME = 4,     /* width of a frame, which is drawn around a picture */
    CAPTION = 8,   /* between a picture and its first line */
    SPACE = 6,     /* between a key and what follows it */
    TEXT = 13,     /* size of captions */
    PICTURE = 112, /* pictures are scaled up to at least this width */
    WIDEST = 160,  /* longer class names end in "…" */
};

static const uint8_t orange[3] = {230, 120, 20};

typedef struct {
    fds_run *run;
    const fds__answers *answers;
    const uint32_t *true_labels; /* or NULL */
    size_t players;
    uint32_t classes, columns;
    uint32_t *predicted;        /* (players) label that the service model predicts */
    size_t *order;              /* (players) by falling value */
    draw_brush inputs, samples; /* samples: the players' */
    uint32_t lines;             /* of a caption */
    uint32_t key, text;         /* widths of the two columns of a caption */
    uint32_t cell_width, cell_height;
    fds__picture canvas;
    uint32_t left, top, line; /* of the current picture, and of its caption */
    fds__text number;         /* scratch */
    fds_error *err;
} figure;

/* The label with the greatest probability for input i, the one explained where there are none. */
static uint32_t predicted_label(const figure *f, size_t i) {
    const float *probs = f->answers->probs;
    return probs ? fds__argmax_f32(probs + i * f->classes, f->classes) : f->answers->labels[i];
}

/* What the service model predicts for the players' samples. */
static fds_status predict(figure *f, fds_error *err) {
    float *probs;
    TRY(RESERVE(probs, f->players, f->classes, err));
    fds_status status =
        fds__run_predict(f->run, fds_run_samples(f->run), NULL, f->players, 0, probs, NULL, err);
    for (size_t i = 0; i < f->players && status == FDS_OK; i++)
        f->predicted[i] = fds__argmax_f32(probs + i * f->classes, f->classes);
    fds__free(probs);
    return status;
}

/* ---- layout ---- */

static fds_status widen(const char *text, uint32_t *widest, fds_error *err) {
    uint32_t width;
    TRY(draw_text_width(text, TEXT, &width, err));
    *widest = MAX(*widest, width);
    return FDS_OK;
}

static fds_status measure(figure *f, size_t count, fds_error *err) {
    uint32_t width = MAX(f->inputs.width, f->samples.width);
    uint32_t height = MAX(f->inputs.height, f->samples.height);
    bool has_other = false;
    for (size_t i = 0; i < count; i++)
        has_other |= predicted_label(f, i) != f->answers->labels[i];
    f->lines = 3 + (f->true_labels && has_other);
    TRY(widen("confidence", &f->key, err)); /* the longest key */
    f->key += SPACE;
    TRY(widen("100.0 %", &f->text, err));
    for (uint32_t c = 0; c < f->classes && f->text < WIDEST; c++)
        TRY(widen(fds__run_class_name(f->run, c), &f->text, err));
    f->text = MIN(f->text, (uint32_t)WIDEST);
    f->cell_width = MAX(width + 2 * FRAME, FRAME + f->key + f->text) + GAP;
    f->cell_height = 2 * FRAME + height + CAPTION + f->lines * draw_line_height(TEXT) + GAP;
    return FDS_OK;
}

static fds_status make_canvas(figure *f, size_t count, fds_error *err) {
    TRY(measure(f, count, err));
    uint64_t width = 2 * MARGIN + (uint64_t)(1 + f->columns) * f->cell_width;
    uint64_t height = 2 * MARGIN + (uint64_t)count * f->cell_height + draw_line_height(TEXT);
    return draw_canvas_create(width, height, &f->canvas, err);
}

/* ---- drawing ---- */

/* The next line of the caption below the current picture. */
static fds_status draw_line(figure *f, const char *key, const char *text) {
    static const draw_type soft = {TEXT, draw_soft, false}, ink = {TEXT, draw_ink, false};
    uint32_t top =
        f->top + f->samples.height + FRAME + CAPTION + f->line++ * draw_line_height(TEXT);
    TRY(draw_canvas_text(&f->canvas, key, &soft, f->left, top, f->key, f->err));
    return draw_canvas_text(&f->canvas, text, &ink, f->left + f->key, top, f->text, f->err);
}

static fds_status draw_label(figure *f, const char *key, uint32_t label) {
    return draw_line(f, key, fds__run_class_name(f->run, label));
}

static fds_status draw_figure(figure *f, const char *key, int decimals, double number,
                              const char *unit) {
    f->number.used = 0;
    draw_number(&f->number, decimals, number);
    draw_markup(&f->number, unit);
    TRY(fds__text_check(&f->number, f->err));
    return draw_line(f, key, f->number.data);
}

static fds_status draw_input(figure *f, size_t i, size_t sample) {
    const fds__answers *a = f->answers;
    uint32_t predicted = predicted_label(f, i);
    draw_canvas_sample(&f->canvas, &f->inputs, sample, f->left, f->top);
    f->line = 0;
    if (f->true_labels)
        TRY(draw_label(f, "label", f->true_labels[i]));
    TRY(draw_label(f, "predicted", predicted));
    if (a->probs)
        TRY(draw_figure(f, "confidence", 1, 100 * (double)a->probs[i * f->classes + predicted],
                        " %"));
    return predicted != a->labels[i] ? draw_label(f, "explained", a->labels[i]) : FDS_OK;
}

static void draw_frame(figure *f, uint32_t width, uint32_t height) {
    draw_canvas_fill(&f->canvas, f->left - FRAME, f->top - FRAME, width + 2 * FRAME,
                     height + 2 * FRAME, orange);
}

static fds_status draw_contributor(figure *f, size_t i, size_t player) {
    uint32_t label = fds__run_player_label(f->run, player);
    if (label != f->answers->labels[i])
        draw_frame(f, f->samples.width, f->samples.height);
    draw_canvas_sample(&f->canvas, &f->samples, player, f->left, f->top);
    f->line = 0;
    TRY(draw_label(f, "label", label));
    TRY(draw_label(f, "predicted", f->predicted[player]));
    return draw_figure(f, "value", 3, f->answers->values[i * f->players + player], "");
}

static fds_status draw_row(figure *f, size_t i, size_t sample) {
    f->top = MARGIN + FRAME + (uint32_t)i * f->cell_height;
    f->left = MARGIN + FRAME;
    TRY(draw_input(f, i, sample));
    TRY(fds__rank(f->answers->values + i * f->players, f->players, f->order, f->err));
    f->left += GAP / 2; /* sets the input apart */
    for (uint32_t k = 0; k < f->columns; k++) {
        f->left += f->cell_width;
        TRY(draw_contributor(f, i, f->order[k]));
    }
    return FDS_OK;
}

/* What the frame means. */
static fds_status draw_legend(figure *f) {
    static const draw_type type = {TEXT, draw_soft, false};
    uint32_t line = draw_line_height(TEXT), side = line - 2 * FRAME, left;
    f->left = MARGIN + FRAME;
    f->top = f->canvas.height - MARGIN - line + FRAME;
    draw_frame(f, side, side);
    draw_canvas_fill(&f->canvas, f->left, f->top, side, side, draw_paper);
    left = f->left + side + FRAME + SPACE;
    return draw_canvas_text(&f->canvas, "label differs from the one explained", &type, left,
                            f->top - FRAME, f->canvas.width - MARGIN - left, f->err);
}

static fds_status draw(figure *f, const uint32_t *index, size_t count, const char *png_path,
                       fds_error *err) {
    TRY(RESERVE(f->predicted, f->players, 1, err));
    TRY(RESERVE(f->order, f->players, 1, err));
    TRY(make_canvas(f, count, err));
    TRY(predict(f, err));
    for (size_t i = 0; i < count; i++)
        TRY(draw_row(f, i, index ? index[i] : i));
    TRY(draw_legend(f));
    return fds__png_write(&f->canvas, png_path, err);
}

fds_status fds__run_draw(fds_run *run, const fds_dataset *ds, const uint32_t *index, size_t count,
                         const uint32_t *true_labels, const fds__answers *answers, uint32_t columns,
                         const char *png_path, fds_error *err) {
    const fds__run_info info = fds__run_get_info(run);
    figure f = {.run = run,
                .answers = answers,
                .true_labels = true_labels,
                .err = err,
                .players = info.players,
                .classes = info.classes,
                .columns = (uint32_t)MIN((size_t)columns, info.players)};
    if (columns == 0)
        return fds__fail(err, FDS_ERR_USAGE, "the figure needs at least one column");
    TRY(draw_brush_make(ds, index, count, PICTURE, &f.inputs, err));
    TRY(draw_brush_make(fds_run_samples(run), NULL, info.players, PICTURE, &f.samples, err));
    fds_status status = draw(&f, index, count, png_path, err);
    fds__free(f.predicted);
    fds__free(f.order);
    fds__free(f.number.data);
    fds__free(f.canvas.pixels);
    return status;
}
