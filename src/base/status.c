/* SPDX-License-Identifier: Apache-2.0
 * Names and texts of the status table, error texts, log and progress. */
#include "base.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

typedef struct {
    fds_status status;
    int exit_code;
    const char *name, *text;
} status_row;

static const status_row rows[] = {
#define FDS_X(name, number, exit_code, text) {FDS_##name, exit_code, #name, text},
    FDS_STATUS_TABLE(FDS_X)
#undef FDS_X
};

static const status_row *row_of(fds_status status) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].status == status)
            return &rows[i];
    static const status_row unknown = {FDS_ERR_USAGE, 1, "UNKNOWN", "unknown status"};
    return &unknown;
}

const char *fds_version(void) { return FDS_VERSION; }

const char *fds_status_name(fds_status status) { return row_of(status)->name; }
const char *fds_status_text(fds_status status) { return row_of(status)->text; }
int fds_status_exit_code(fds_status status) { return row_of(status)->exit_code; }

fds_status fds__fail(fds_error *err, fds_status status, const char *format, ...) {
    assert(status != FDS_OK);
    if (err) {
        /* the arguments may point into err->text itself: format elsewhere, then copy */
        char text[sizeof err->text];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        fds__text_sanitize(text);
        err->status = status;
        strcpy(err->text, text);
    }
    return status;
}

fds_status fds__fail_nomem(fds_error *err, size_t size) {
    return fds__fail(err, FDS_ERR_NOMEM, "out of memory (%zu bytes)", size);
}

fds_status fds__fail_errno(fds_error *err, const char *verb, const char *path) {
    int number = errno;
    fds_status status = number == ENOENT   ? FDS_ERR_NOT_FOUND
                        : number == ENOMEM ? FDS_ERR_NOMEM
                                           : FDS_ERR_IO;
    return fds__fail(err, status, "cannot %s %s: %s", verb, path, strerror(number));
}

void fds__log(const fds_events *events, fds_log_level level, const char *format, ...) {
    if (!events || !events->log)
        return;
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fds__text_sanitize(text);
    events->log(events->user, level, text);
}

fds_status fds__report(const fds_events *events, const char *stage, const char *unit, uint64_t done,
                       uint64_t total, double start_s, fds_error *err) {
    assert(stage && unit);
    if (!events || !events->progress)
        return FDS_OK;
    fds_progress progress = {stage, unit, done, total, fds__now_s() - start_s};
    if (events->progress(events->user, &progress))
        return fds__fail(err, FDS_ERR_CANCELLED, "%s: cancelled after %llu of %llu %s", stage,
                         (unsigned long long)done, (unsigned long long)total, unit);
    return FDS_OK;
}

double fds__now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- passes ---- */

static bool on_progress(void *user, const fds_progress *progress) {
    const fds__pass *pass = user;
    fds_progress whole = *progress;
    if (pass->unit && strcmp(pass->unit, progress->unit) != 0)
        return pass->to->progress(pass->to->user, progress);
    whole.done += pass->done;
    whole.total = pass->total;
    whole.elapsed_s = fds__now_s() - pass->start_s;
    return pass->to->progress(pass->to->user, &whole);
}

static void on_log(void *user, fds_log_level level, const char *text) {
    const fds__pass *pass = user;
    pass->to->log(pass->to->user, level, text);
}

fds__pass fds__pass_begin(const fds_events *to, size_t total) {
    return (fds__pass){.to = to, .total = total, .start_s = fds__now_s()};
}

fds_events fds__pass_events(fds__pass *pass) {
    return (fds_events){.log = pass->to && pass->to->log ? on_log : NULL,
                        .progress = pass->to && pass->to->progress ? on_progress : NULL,
                        .user = pass};
}
