/* SPDX-License-Identifier: Apache-2.0
 *
 * Events for a person at a terminal: progress, notes and warnings on standard error.
 *
 * On a terminal one line is redrawn at most ten times a second:
 *     train [##########..........]  500/1000 epochs  812/s  0:01 left
 * Elsewhere (a log file, a pipe) a plain line is written at most every five seconds:
 *     train: 500 of 1000 epochs, 812/s, 0:01 left
 */
#include "base/base.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DRAW_INTERVAL_S 0.1
#define LINE_INTERVAL_S 5.0
enum { BAR_LEAST = 8, BAR_MOST = 40 };

static struct {
    bool is_drawn;
    double last_s; /* when something was last drawn */
} term;

/* "0:07", "12:34", "5:00:00", "3 days" */
static void format_time(double seconds, char *out, size_t size) {
    int s = seconds < 2.0 * 86400 ? (int)(seconds + 0.5) : 0;
    if (!(seconds < 100.0 * 86400))
        snprintf(out, size, "long");
    else if (seconds >= 2.0 * 86400)
        snprintf(out, size, "%.0f days", seconds / 86400);
    else if (s >= 3600)
        snprintf(out, size, "%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, size, "%d:%02d", s / 60, s % 60);
}

/* "0.12/s", "3.4/s", "812/s", "12000/s" */
static void format_rate(double rate, char *out, size_t size) {
    snprintf(out, size, "%.*f/s", rate < 1 ? 2 : rate < 10 ? 1 : 0, rate);
}

static int terminal_width(void) {
    struct winsize size;
    bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return is_known ? size.ws_col : 80;
}

static void draw_bar(const fds_progress *p, const char *rate, const char *left) {
    char tail[128], bar[BAR_MOST + 1];
    snprintf(tail, sizeof tail, "%llu/%llu %s  %s  %s left", (unsigned long long)p->done,
             (unsigned long long)p->total, p->unit, rate, left);
    /* the last column stays free: some terminals wrap as soon as it is written */
    int width = terminal_width() - 1;
    int space = width - (int)strlen(p->stage) - (int)strlen(tail) - 5;
    if (space < BAR_LEAST) {
        char line[192];
        snprintf(line, sizeof line, "%s %s", p->stage, tail);
        fprintf(stderr, "\r\033[K%.*s", width, line);
    } else {
        int size = MIN(space, BAR_MOST), full = (int)((double)p->done / (double)p->total * size);
        for (int i = 0; i < size; i++)
            bar[i] = i < full ? '#' : '.';
        bar[size] = 0;
        fprintf(stderr, "\r\033[K%s [%s]  %s", p->stage, bar, tail);
    }
    fflush(stderr);
}

static bool on_progress(void *user, const fds_progress *p) {
    (void)user;
    const char *kind = getenv("TERM");
    bool is_terminal = isatty(STDERR_FILENO) && kind && strcmp(kind, "dumb") != 0;
    double now_s = fds__now_s();
    if (!term.last_s)
        term.last_s = now_s;
    bool is_due = now_s - term.last_s >= (is_terminal ? DRAW_INTERVAL_S : LINE_INTERVAL_S);
    if (!is_due || !p->total || p->done > p->total)
        return false;
    term.last_s = now_s;
    char rate[32] = "-/s", left[32] = "?";
    double per_s = p->elapsed_s > 0 ? (double)p->done / p->elapsed_s : 0;
    if (per_s > 0) {
        format_rate(per_s, rate, sizeof rate);
        format_time((double)(p->total - p->done) / per_s, left, sizeof left);
    }
    if (is_terminal)
        draw_bar(p, rate, left);
    else
        fprintf(stderr, "%s: %llu of %llu %s, %s, %s left\n", p->stage, (unsigned long long)p->done,
                (unsigned long long)p->total, p->unit, rate, left);
    term.is_drawn = is_terminal;
    return false;
}

void fds_terminal_clear(void) {
    if (term.is_drawn)
        fprintf(stderr, "\r\033[K");
    term.is_drawn = false;
}

static void on_log(void *user, fds_log_level level, const char *text) {
    (void)user;
    fds_terminal_clear();
    fprintf(stderr, "fds: %s%s\n", level == FDS_LOG_WARNING ? "warning: " : "", text);
}

const fds_events *fds_events_terminal(void) {
    static const fds_events events = {.log = on_log, .progress = on_progress};
    return &events;
}
