/* SPDX-License-Identifier: Apache-2.0
 * Progress, notes and warnings, all on stderr; and the signals that end a long call.
 *
 * On a terminal one line is redrawn at most ten times a second:
 *     train [##########..........]  500/1000 epochs  812/s  0:01 left
 * Elsewhere (a log file, a pipe) a plain line is written at most every five seconds:
 *     train: 500 of 1000 epochs, 812/s, 0:01 left
 */
#include "cli.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define DRAW_INTERVAL_S 0.1
#define LINE_INTERVAL_S 5.0
enum { BAR_LEAST = 8, BAR_MOST = 40 };

double cli_now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- signals ---- */

static volatile sig_atomic_t signal_caught;

static void note_signal(int number) { signal_caught = number; }

int cli_signal(void) { return signal_caught; }

void cli_catch_signals(void) {
    static const int numbers[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < CLI_COUNT(numbers); i++) {
        struct sigaction old, act = {.sa_handler = note_signal};
        /* the second signal of a kind ends the command at once, whatever it is doing */
        act.sa_flags = (int)(SA_RESETHAND | SA_RESTART);
        sigemptyset(&act.sa_mask);
        /* ignored by whoever started us, as in a background job: it stays ignored */
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &act, NULL);
    }
}

/* ---- the bar ---- */

/* "0:07", "12:34", "5:00:00", "3 days" */
static void format_time(double seconds, char *out, size_t size) {
    if (!(seconds < 100.0 * 86400))
        snprintf(out, size, "long");
    else if (seconds >= 2.0 * 86400)
        snprintf(out, size, "%.0f days", seconds / 86400);
    else {
        int s = (int)(seconds + 0.5);
        if (s >= 3600)
            snprintf(out, size, "%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60);
        else
            snprintf(out, size, "%d:%02d", s / 60, s % 60);
    }
}

/* "0.12/s", "3.4/s", "812/s", "12000/s" */
static void format_rate(double rate, char *out, size_t size) {
    int digits = rate < 1 ? 2 : rate < 10 ? 1 : 0;
    snprintf(out, size, "%.*f/s", digits, rate);
}

static int terminal_width(void) {
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col : 80;
}

static void draw_bar(const fds_progress *p, const char *rate, const char *left) {
    char tail[128], bar[BAR_MOST + 1];
    snprintf(tail, sizeof tail, "%llu/%llu %s  %s  %s left", (unsigned long long)p->done,
             (unsigned long long)p->total, p->unit, rate, left);
    /* the last column stays free: some terminals wrap as soon as it is written */
    int width = terminal_width() - 1;
    int room = width - (int)strlen(p->stage) - (int)strlen(tail) - 5;
    if (room < BAR_LEAST) {
        char line[192];
        snprintf(line, sizeof line, "%s %s", p->stage, tail);
        fprintf(stderr, "\r\033[K%.*s", width, line);
    } else {
        int size = room < BAR_MOST ? room : BAR_MOST;
        int full = (int)((double)p->done / (double)p->total * size);
        for (int i = 0; i < size; i++)
            bar[i] = i < full ? '#' : '.';
        bar[size] = 0;
        fprintf(stderr, "\r\033[K%s [%s]  %s", p->stage, bar, tail);
    }
    fflush(stderr);
}

static bool on_progress(void *user, const fds_progress *p) {
    cli_term *term = user;
    double now_s = cli_now_s();
    bool is_due = now_s - term->last_s >= (term->is_terminal ? DRAW_INTERVAL_S : LINE_INTERVAL_S);
    if (term->quiet || !is_due || !p->total || p->done > p->total)
        return signal_caught != 0;
    term->last_s = now_s;
    char rate[32] = "-/s", left[32] = "?";
    double per_s = p->elapsed_s > 0 ? (double)p->done / p->elapsed_s : 0;
    if (per_s > 0) {
        format_rate(per_s, rate, sizeof rate);
        format_time((double)(p->total - p->done) / per_s, left, sizeof left);
    }
    if (term->is_terminal)
        draw_bar(p, rate, left);
    else
        fprintf(stderr, "%s: %llu of %llu %s, %s, %s left\n", p->stage, (unsigned long long)p->done,
                (unsigned long long)p->total, p->unit, rate, left);
    term->drawn = term->is_terminal;
    return signal_caught != 0;
}

void cli_term_clear(cli_term *term) {
    if (term->drawn)
        fprintf(stderr, "\r\033[K");
    term->drawn = false;
}

/* ---- words ---- */

static void on_log(void *user, fds_log_level level, const char *text) {
    if (level == FDS_LOG_WARNING)
        cli_warn(user, "%s", text);
    else
        cli_note(user, "%s", text);
}

static void say(cli_term *term, const char *kind, const char *format, va_list args) {
    cli_term_clear(term);
    fprintf(stderr, "fds %s: %s", term->command, kind);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

void cli_note(cli_term *term, const char *format, ...) {
    if (term->quiet)
        return;
    va_list args;
    va_start(args, format);
    say(term, "", format, args);
    va_end(args);
}

void cli_warn(cli_term *term, const char *format, ...) {
    va_list args;
    va_start(args, format);
    say(term, "warning: ", format, args);
    va_end(args);
}

void cli_term_init(cli_term *term, const cli_command *command, bool quiet) {
    const char *kind = getenv("TERM");
    *term = (cli_term){.command = command->name,
                       .quiet = quiet,
                       .is_terminal = isatty(STDERR_FILENO) && kind && strcmp(kind, "dumb") != 0,
                       .last_s = cli_now_s(),
                       .events = {.log = on_log, .progress = on_progress, .user = term}};
}
