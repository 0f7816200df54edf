/* SPDX-License-Identifier: Apache-2.0
 * fds bench: lists as the options have them, and the result in a terminal. The numbers are those
 * of report.json. */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 26, SHOWN_SHARES = 4 };

/* ---- lists ---- */

fds_status bench_read_methods(const char *text, bench_lists *lists, fds_error *err) {
    size_t size = strlen(text) + 1, count = 0;
    char *at = lists->text = cli_alloc(size, 1, err);
    if (!at)
        return FDS_ERR_NOMEM;
    memcpy(at, text, size);
    while (*(at += strspn(at, ", "))) {
        if (count == BENCH_MOST)
            return cli_fail(err, FDS_ERR_USAGE, "--methods: more than %d of them", BENCH_MOST);
        lists->methods[count++] = at;
        at += strcspn(at, ", ");
        while (at[0] == ',' && at[1] >= '0' && at[1] <= '9') /* "beta:4,1" */
            at += 1 + strcspn(at + 1, ", ");
        if (*at)
            *at++ = 0;
    }
    if (!count)
        return cli_fail(err, FDS_ERR_USAGE, "--methods \"%s\": it names none", text);
    return FDS_OK;
}

fds_status bench_read_shares(const char *text, bench_lists *lists, fds_error *err) {
    double last = 0;
    for (const char *at = text; *at;) {
        char *end;
        double share = strtod(at, &end);
        if (end == at || (*end && *end != ',') || !(share > last && share <= 100) ||
            lists->share_count == BENCH_MOST)
            return cli_fail(err, FDS_ERR_USAGE,
                            "--remove %s: it must be up to %d rising numbers above 0, at most 100, "
                            "with commas between them: 5,10,20",
                            text, BENCH_MOST);
        lists->shares[lists->share_count++] = share / 100;
        last = share;
        at = *end ? end + 1 : end;
    }
    return FDS_OK;
}

/* ---- report.json ---- */

static fds_status read_report(const char *folder, json_t **out, fds_error *err) {
    char path[8192];
    json_error_t error;
    snprintf(path, sizeof path, "%s/report.json", folder);
    *out = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!*out)
        return cli_fail(err, FDS_ERR_FORMAT, "%s: line %d: %s", path, error.line, error.text);
    return FDS_OK;
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* object[first][second], a number, or NaN. */
static double number_of(const json_t *object, const char *first, const char *second) {
    const json_t *value = json_object_get(json_object_get(object, first), second);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* The losses of a row by its own value function, most valuable removed, rightly predicted. */
static const json_t *own_losses(const json_t *row) {
    size_t i;
    json_t *losses;
    json_array_foreach(json_object_get(row, "losses"), i, losses) {
        if (strcmp(text_of(losses, "utility"), text_of(row, "utility")) == 0 &&
            strcmp(text_of(losses, "removal"), "top") == 0 &&
            strcmp(text_of(losses, "set"), "correct") == 0)
            return losses;
    }
    return NULL;
}

/* ---- tables ---- */

/* In width columns, blank where there is none. */
static void print_number(double value, int width, int decimals) {
    if (isnan(value))
        printf("%*s", width, "");
    else
        printf("%*.*f", width, decimals, value);
}

/* Seconds and milliseconds with three figures that matter. */
static void print_time(double value, int width) {
    print_number(value, width, value < 10 ? 2 : value < 100 ? 1 : 0);
}

/* Whether a row is judged by other models than most. */
static bool is_converged(const json_t *row) {
    return strcmp(text_of(row, "utility"), "retrain") == 0;
}

static void print_row(const json_t *row, size_t shares) {
    char name[CLI_NAME_SIZE];
    const json_t *losses = own_losses(row), *means = json_object_get(losses, "mean");
    printf("%s%s", cli_name(text_of(row, "method"), NAME - 2, name),
           is_converged(row) ? " *" : "  ");
    for (size_t i = 0; i < shares; i++) {
        const json_t *mean = json_array_get(means, i);
        print_number(json_is_number(mean) ? json_number_value(mean) : NAN, 7, 2);
    }
    print_number(number_of(json_object_get(row, "agreement"), "correlation", "mean"), 7, 3);
    print_time(number_of(json_object_get(row, "timing"), "prepare_s", "mean"), 9);
    print_time(number_of(json_object_get(row, "timing"), "answer_ms", "mean"), 9);
    putchar('\n');
}

static void print_data(const json_t *data) {
    const json_t *shares = json_object_get(json_object_get(data, "settings"), "shares");
    size_t shown = json_array_size(shares), i;
    shown = shown < SHOWN_SHARES ? shown : SHOWN_SHARES;
    printf("\n%s: %lld players, %lld test samples, %zu seed%s\n", text_of(data, "name"),
           (long long)json_integer_value(json_object_get(data, "players")),
           (long long)json_integer_value(json_object_get(data, "tests")),
           json_array_size(json_object_get(data, "seeds")),
           json_array_size(json_object_get(data, "seeds")) == 1 ? "" : "s");
    printf("%-*s", NAME, "");
    for (i = 0; i < shown; i++)
        printf("%5.3g %%", 100 * json_number_value(json_array_get(shares, i)));
    printf("%7s%9s%9s\n", "truth", "seconds", "ms");
    json_t *row;
    bool has_converged = false;
    json_array_foreach(json_object_get(data, "rows"), i, row) {
        print_row(row, shown);
        has_converged |= is_converged(row);
    }
    if (has_converged)
        printf("* by converged models, whose losses are greater; the others by 10 epochs\n");
}

fds_status bench_show(const char *folder, bool is_json, fds_error *err) {
    json_t *report, *data;
    size_t i;
    CLI_TRY(read_report(folder, &report, err));
    if (is_json)
        return cli_json_print(report, err);
    printf("value loss on rightly predicted test samples, by the share of players removed\n"
           "truth: correlation with it; seconds to prepare; ms for a new sample\n");
    json_array_foreach(json_object_get(report, "data"), i, data) { print_data(data); }
    printf("\nreport  %s/report.html\n", folder);
    json_decref(report);
    return FDS_OK;
}

/* ---- what has changed ---- */

static void tell_change(void *user, const fds_bench_change *c) {
    size_t *count = user;
    char data[CLI_NAME_SIZE], method[CLI_NAME_SIZE], what[CLI_NAME_SIZE];
    if (!(*count)++)
        putchar('\n');
    printf("%s  %s  %s\n", cli_name(c->data, 14, data), cli_name(c->method, 16, method),
           cli_name(c->what, 44, what));
    if (isnan(c->before))
        return; /* the line above says it all */
    printf("    %.4g -> %.4g", c->before, c->after);
    if (isfinite(c->sigmas))
        printf(", %.1f standard errors", c->sigmas);
    else if (isnan(c->sigmas))
        printf(", of unknown error");
    putchar('\n');
}

fds_status bench_show_changes(const char *before, const char *folder, fds_error *err) {
    enum { SIGMAS = 3 };
    char after[8192];
    size_t count = 0, compared;
    snprintf(after, sizeof after, "%s/report.json", folder);
    CLI_TRY(fds_bench_compare(before, after, SIGMAS, tell_change, &count, &compared, err));
    char all[CLI_NUMBER_SIZE];
    printf("\n%zu of %s figures differ from %s\n"
           "by more than %d standard errors, or by more than 5 %% where these are not known\n",
           count, cli_count(compared, all), before, SIGMAS);
    return FDS_OK;
}
