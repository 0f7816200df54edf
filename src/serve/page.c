/* SPDX-License-Identifier: Apache-2.0
 * The files of the page, which are in the program itself: meson.build embeds them from web/. */
#include "serve/serve.h"

#define HTML "text/html; charset=utf-8"
#define SCRIPT "text/javascript; charset=utf-8"
#define STYLE "text/css; charset=utf-8"

extern const char serve_index_html[], serve_app_js[], serve_style_css[];

static const struct {
    const char *path, *type, *text;
} files[] = {
    {"/", HTML, serve_index_html},
    {"/app.js", SCRIPT, serve_app_js},
    {"/style.css", STYLE, serve_style_css},
};

bool serve_page_find(const char *path, const char **type, const char **text) {
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strcmp(path, files[i].path) == 0) {
            *type = files[i].type;
            *text = files[i].text;
            return true;
        }
    return false;
}
