/* SPDX-License-Identifier: Apache-2.0
 * The files of the page, which are in the program itself: meson.build embeds them from web/. */
#include "serve/serve.h"

#define HTML "text/html; charset=utf-8"
#define SCRIPT "text/javascript; charset=utf-8"
#define STYLE "text/css; charset=utf-8"

/* Paths, types and the names that scripts/embed gives. */
#define FILES(X)                           \
    X("/", HTML, index_html)               \
    X("/style.css", STYLE, style_css)      \
    X("/api.js", SCRIPT, api_js)           \
    X("/app.js", SCRIPT, app_js)           \
    X("/audit.js", SCRIPT, audit_js)       \
    X("/auditor.js", SCRIPT, auditor_js)   \
    X("/chart.js", SCRIPT, chart_js)       \
    X("/checks.js", SCRIPT, checks_js)     \
    X("/customer.js", SCRIPT, customer_js) \
    X("/dom.js", SCRIPT, dom_js)           \
    X("/draw.js", SCRIPT, draw_js)         \
    X("/entries.js", SCRIPT, entries_js)   \
    X("/format.js", SCRIPT, format_js)     \
    X("/merkle.js", SCRIPT, merkle_js)     \
    X("/operator.js", SCRIPT, operator_js) \
    X("/provider.js", SCRIPT, provider_js) \
    X("/receipt.js", SCRIPT, receipt_js)   \
    X("/steps.js", SCRIPT, steps_js)       \
    X("/verify.js", SCRIPT, verify_js)

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
