/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a report of finished cases: report.html, report.csv and report.json in one folder, each
 * replaced as a whole, in that order. Nothing is written unless all three can be made.
 */
#include "report/report.h"

#include <string.h>

/* Makes paths of pictures inside the report's folder relative to it, so that it can be moved. */
static fds_status name_pictures(const json_t *report, const char *out, fds_error *err) {
    const json_t *data;
    json_t *picture;
    size_t length = strlen(out);
    while (length > 0 && out[length - 1] == '/')
        length--;
    for (size_t d = 0; (data = json_array_get(report_at(report, "data"), d)); d++)
        for (size_t i = 0; (picture = json_array_get(report_at(data, "pictures"), i)); i++) {
            const char *file = report_text_of(picture, "file");
            if (strncmp(file, out, length) != 0 || file[length] != '/')
                continue;
            file += length + strspn(file + length, "/");
            if (!fds__json_put(picture, "file", json_string(file)))
                return fds__fail_json(err);
        }
    return FDS_OK;
}

static fds_status make_json(const json_t *report, fds__text *json, fds_error *err) {
    char *text = fds__json_text(report, JSON_INDENT(1));
    if (!text)
        return fds__fail_json(err);
    fds__text_add(json, text, strlen(text));
    fds__text_add(json, "\n", 1);
    fds__free(text);
    return fds__text_check(json, err);
}

enum { FILES = 3 };
static const char *const names[FILES] = {"report.html", "report.csv", "report.json"};

static fds_status write_files(const char *out, const fds__text *texts, fds_error *err) {
    for (size_t i = 0; i < FILES; i++) {
        char path[FDS__PATH_MAX];
        TRY(fds__path_join(path, sizeof path, out, names[i], err));
        TRY(fds__out_sweep(path, err));
        TRY(fds__file_write(path, texts[i].data, texts[i].used, err));
    }
    return FDS_OK;
}

/* Under a lock, because it removes what killed processes have left. */
static fds_status lock_and_write(const char *out, const fds__text *texts, fds_error *err) {
    char path[FDS__PATH_MAX];
    fds__file lock;
    TRY(fds__mkdirs(out, err));
    TRY(fds__path_join(path, sizeof path, out, ".lock", err));
    TRY(fds__file_open(&lock, path, FDS__ACCESS_CREATE, err));
    fds_status status = fds__file_lock(&lock, out, err);
    if (status == FDS_OK)
        status = write_files(out, texts, err);
    fds__file_close(&lock);
    return status;
}

static fds_status make_files(const json_t *report, const char *out, fds__text *texts,
                             fds_error *err) {
    TRY(report_page(report, &texts[0], err));
    TRY(report_csv(report, &texts[1], err));
    TRY(name_pictures(report, out, err));
    TRY(make_json(report, &texts[2], err));
    return lock_and_write(out, texts, err);
}

fds_status fds_bench_report(const char *out, const char *const *dirs, size_t count,
                            const char *command, fds_error *err) {
    json_t *report;
    fds__text texts[FILES] = {{0}};
    TRY(report_join(dirs, count, command, &report, err));
    fds_status status = make_files(report, out, texts, err);
    json_decref(report);
    for (size_t i = 0; i < FILES; i++)
        fds__free(texts[i].data);
    return status;
}
