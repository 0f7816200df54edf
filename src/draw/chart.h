/* SPDX-License-Identifier: Apache-2.0
 * What the files that draw charts share: chart.c and bars.c. */
#ifndef FDS_DRAW_CHART_H
#define FDS_DRAW_CHART_H

#include "draw/draw.h"

/* A coordinate with at most one decimal, below 1e9. */
typedef struct draw_coordinate {
    char text[32];
} draw_coordinate;
draw_coordinate draw_at(double value);

/* One line; anchor: "start", "middle" or "end". */
void draw_svg_text(fds__text *svg, double x, double y, const char *anchor, const char *text);
void draw_svg_open(fds__text *svg, const char *classes, const char *title, double width,
                   double height);

#endif
