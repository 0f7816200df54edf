/* SPDX-License-Identifier: Apache-2.0
 *
 * The course of a training, epoch by epoch.
 *
 *   metrics.jsonl  one JSON object per line: {"epoch": 1, "lr": ..., "loss": ..., "validation_loss": ...}
 *   curves.svg     both losses by epoch, in two panels because their units differ, on
 *                  logarithmic scales; the best epoch is marked
 *
 * Numbers have the fewest digits that read back as the same bits, with a point in every locale. The picture's coordinates are whole numbers, half a pixel each.
 */
#include "explain/learn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- metrics.jsonl ---- */

void learn_metrics_print(const fds__metric *metrics, size_t count, fds__text *text) {
    for (size_t i = 0; i < count; i++) {
        fds__text_print(text, "{\"epoch\": %u, \"lr\": ", metrics[i].epoch);
        fds__text_float(text, metrics[i].lr);
        fds__text_print(text, ", \"loss\": ");
        fds__text_double(text, metrics[i].loss);
        fds__text_print(text, ", \"validation_loss\": ");
        fds__text_double(text, metrics[i].validation_loss);
        fds__text_print(text, "}\n");
    }
}

static bool read_metric(const char *line, size_t size, fds__metric *metric) {
    json_t *object = json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL);
    json_int_t epoch;
    double lr;
    bool is_right =
        object && json_unpack(object, "{s:I, s:F, s:F, s:F}", "epoch", &epoch, "lr", &lr, "loss",
                              &metric->loss, "validation_loss", &metric->validation_loss) == 0;
    if (is_right) {
        metric->epoch = (uint32_t)epoch;
        metric->lr = (float)lr;
    }
    json_decref(object);
    return is_right;
}

fds_status learn_metrics_parse(const char *where, const char *text, size_t count,
                               fds__metric **metrics, fds_error *err) {
    size_t most = MIN(count, strlen(text)); /* lines: a false count takes no memory */
    fds__metric *list;
    TRY(RESERVE(list, most, 1, err));
    size_t line = 0;
    bool is_right = true;
    for (const char *end; is_right && line < count && (end = strchr(text, '\n')); text = end + 1) {
        is_right =
            read_metric(text, (size_t)(end - text), &list[line]) && list[line].epoch == line + 1;
        line += is_right;
    }
    if (line < count || *text) {
        fds__free(list);
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: metrics, line %zu: there must be %zu lines, one per "
                         "epoch",
                         where, line + 1, count);
    }
    *metrics = list;
    return FDS_OK;
}

/* ---- curves.svg ---- */

enum {
    WIDTH = 1440,
    HEIGHT = 1040,
    LEFT = 170,
    RIGHT = 60,
    TOP = 130,
    PANEL = 350,
    GAP = 90,
    BOTTOM = TOP + 2 * PANEL + GAP,
    MAX_TICKS = 8,
};

typedef struct {
    const char *name, *colour;
    const fds__metric *metrics;
    size_t count;
    bool is_validation;
    int top;
    double low, high; /* of the axis */
} panel;

static double value_of(const panel *p, size_t i) {
    return p->is_validation ? p->metrics[i].validation_loss : p->metrics[i].loss;
}

/* The range of the values, with a margin; values of 0 lie at the bottom. */
static void set_range(panel *p) {
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < p->count; i++) {
        most = fmax(most, value_of(p, i));
        if (value_of(p, i) > 0)
            least = fmin(least, value_of(p, i));
    }
    if (!(most > 0))
        least = most = 1;
    least = fmax(least, most * 1e-9);
    double margin = fmax(pow(most / least, 0.05), 1.02);
    p->low = least / margin;
    p->high = most * margin;
}

static int y_of(const panel *p, double value) {
    double part = log(fmax(value, p->low) / p->low) / log(p->high / p->low);
    return p->top + PANEL - (int)lround(PANEL * part);
}

/* Epoch 1 lies at the left edge, the last one at the right; a single one in the middle. */
static int x_of(size_t epoch, size_t count) {
    double part = count > 1 ? (double)(epoch - 1) / (double)(count - 1) : 0.5;
    return LEFT + (int)lround((WIDTH - LEFT - RIGHT) * part);
}

/* Over a wide range powers of ten, or 1, 2 and 5 times those; else equal steps. */
static size_t find_ticks(const panel *p, double ticks[MAX_TICKS]) {
    static const double digits[] = {1, 2, 5};
    double decades = log10(p->high / p->low);
    size_t count = 0;
    if (decades < 0.7) {
        double step = draw_round_step((p->high - p->low) / 5);
        for (double k = ceil(p->low / step); k * step <= p->high && count < MAX_TICKS; k++)
            ticks[count++] = k * step;
        return count;
    }
    int stride = 1 + (int)(decades / MAX_TICKS);
    for (int power = (int)floor(log10(p->low)); power <= (int)log10(p->high) + 1; power++)
        for (int d = 0; d < (decades < 2.2 ? 3 : 1); d++) {
            double tick = digits[d] * pow(10, power);
            if (tick >= p->low && tick <= p->high && power % stride == 0 && count < MAX_TICKS)
                ticks[count++] = tick;
        }
    return count;
}

static void draw_axis(const panel *p, fds__text *svg) {
    double ticks[MAX_TICKS];
    size_t count = find_ticks(p, ticks);
    fds__text_print(svg, "<text x=\"%d\" y=\"%d\" fill=\"%s\">%s</text>\n", LEFT, p->top - 20,
                    p->colour, p->name);
    for (size_t i = 0; i < count; i++) {
        int y = y_of(p, ticks[i]);
        fds__text_print(svg,
                        "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"#e3e3e3\" "
                        "stroke-width=\"2\"/><text x=\"%d\" y=\"%d\" text-anchor=\"end\">",
                        LEFT, WIDTH - RIGHT, y, y, LEFT - 16, y + 9);
        fds__text_digits(svg, 3, ticks[i]);
        fds__text_print(svg, "</text>\n");
    }
    fds__text_print(svg,
                    "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#7d8597\" "
                    "stroke-width=\"2\"/>\n",
                    LEFT, p->top, p->top + PANEL, WIDTH - RIGHT);
}

static void add_curve(const panel *p, uint32_t best_epoch, fds__text *svg) {
    int x = x_of(best_epoch, p->count);
    fds__text_print(svg,
                    "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"#7d8597\" "
                    "stroke-width=\"2\" stroke-dasharray=\"8 8\"/>\n<polyline points=\"",
                    x, x, p->top, p->top + PANEL);
    for (size_t i = 0; i < p->count; i++)
        fds__text_print(svg, "%s%d,%d", i ? " " : "", x_of(i + 1, p->count),
                        y_of(p, value_of(p, i)));
    fds__text_print(
        svg, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"5\" stroke-linejoin=\"round\"/>\n",
        p->colour);
    fds__text_print(svg, "<circle cx=\"%d\" cy=\"%d\" r=\"9\" fill=\"%s\"/>\n", x,
                    y_of(p, value_of(p, best_epoch - 1)), p->colour);
}

static void draw_epochs(size_t count, fds__text *svg) {
    size_t step = (size_t)MAX(draw_round_step((double)count / 10), 1.0);
    for (size_t epoch = 1; epoch <= count; epoch = epoch / step * step + step)
        fds__text_print(svg, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%zu</text>\n",
                        x_of(epoch, count), BOTTOM + 40, epoch);
    fds__text_print(svg, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">epoch</text>\n",
                    (LEFT + WIDTH - RIGHT) / 2, BOTTOM + 86);
}

static void draw(const fds__metric *metrics, size_t count, uint32_t best_epoch, fds__text *svg) {
    panel panels[] = {
        {"training loss (objective)", "#3d5a80", metrics, count, false, TOP, 0, 0},
        {"validation loss on held-out inputs and coalitions, (v(s) − v(∅) − sᵀφ)²", "#0b6e4f",
         metrics, count, true, TOP + PANEL + GAP, 0, 0},
    };
    fds__text_print(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
        "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"26\">\n"
        "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n"
        "<text x=\"%d\" y=\"50\" font-size=\"30\">Training of the explainer, best epoch "
        "%u of %zu</text>\n",
        WIDTH / 2, HEIGHT / 2, WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT, best_epoch, count);
    for (size_t i = 0; i < 2; i++) {
        set_range(&panels[i]);
        draw_axis(&panels[i], svg);
        add_curve(&panels[i], best_epoch, svg);
    }
    draw_epochs(count, svg);
    fds__text_print(svg, "</svg>\n");
}

/* Writes the text into dir unless it failed before; frees it. */
static fds_status put_file(const char *dir, const char *name, fds__text *text, fds_error *err) {
    char path[FDS__PATH_MAX];
    fds_status status = fds__text_check(text, err);
    if (status == FDS_OK)
        status = fds__path_join(path, sizeof path, dir, name, err);
    if (status == FDS_OK)
        status = fds__file_write(path, text->data, text->used, err);
    fds__free(text->data);
    return status;
}

fds_status learn_curves_write(const char *dir, const fds__metric *metrics, size_t count,
                              uint32_t best_epoch, fds_error *err) {
    fds__text lines = {0}, svg = {0};
    learn_metrics_print(metrics, count, &lines);
    TRY(put_file(dir, "metrics.jsonl", &lines, err));
    draw(metrics, count, best_epoch, &svg);
    return put_file(dir, "curves.svg", &svg, err);
}
