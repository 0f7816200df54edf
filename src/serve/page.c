/* SPDX-License-Identifier: Apache-2.0
 * The files of the page, which are in the program itself: meson.build embeds them from web/. */
#include "serve/serve.h"

#define HTML "text/html; charset=utf-8"
#define SCRIPT "text/javascript; charset=utf-8"
#define STYLE "text/css; charset=utf-8"

/* Paths, types and the names that scripts/embed gives. */
#define FILES(FILE)                           \
    FILE("/", HTML, index_html)               \
    FILE("/style.css", STYLE, style_css)      \
    FILE("/api.js", SCRIPT, api_js)           \
    FILE("/app.js", SCRIPT, app_js)           \
    FILE("/audit.js", SCRIPT, audit_js)       \
    FILE("/auditor.js", SCRIPT, auditor_js)   \
    FILE("/chart.js", SCRIPT, chart_js)       \
    FILE("/customer.js", SCRIPT, customer_js) \
    FILE("/dom.js", SCRIPT, dom_js)           \
    FILE("/draw.js", SCRIPT, draw_js)         \
    FILE("/entries.js", SCRIPT, entries_js)   \
    FILE("/format.js", SCRIPT, format_js)     \
    FILE("/merkle.js", SCRIPT, merkle_js)     \
    FILE("/operator.js", SCRIPT, operator_js) \
    FILE("/provider.js", SCRIPT, provider_js) \
    FILE("/receipt.js", SCRIPT, receipt_js)   \
    FILE("/steps.js", SCRIPT, steps_js)       \
    FILE("/verify.js", SCRIPT, verify_js)

#define DECLARE(path, type, name) extern const char serve_##name[];
FILES(DECLARE)

#define ROW(path, type, name) {path, type, serve_##name},
static const struct { const char *path, *type, *text; } files[] = {FILES(ROW)};

bool serve_page_find(const char *path, const char **type, const char **text) {
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strcmp(path, files[i].path) == 0) {
            *type = files[i].type;
            *text = files[i].text;
            return true;
        }
    return false;
}
