/* SPDX-License-Identifier: Apache-2.0
 * What results are made of: names that are safe to show, numbers, JSON, rankings of players. */
#include "cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_COLUMNS = 60, PLAYER_WIDTH = 20, LABEL_WIDTH = 10, PROVIDER_WIDTH = 12 };

fds_status cli_fail(fds_error *err, fds_status status, const char *format, ...) {
    char text[sizeof err->text]; /* aside: the arguments may point into err->text */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    err->status = status;
    memcpy(err->text, text, sizeof text);
    return status;
}

void *cli_alloc(size_t count, size_t size, fds_error *err) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        cli_fail(err, FDS_ERR_NOMEM, "out of memory (%zu items of %zu bytes)", count, size);
    return memory;
}

const char *cli_message(const char *text, char out[CLI_MESSAGE_SIZE]) {
    size_t used = 0;
    bool is_inside = false;
    for (; *text && used + 3 < CLI_MESSAGE_SIZE; text++) {
        if (*text == '`') {
            is_inside = !is_inside;
            if (is_inside) {
                out[used++] = '-';
                out[used++] = '-';
            }
        } else {
            out[used++] = is_inside && *text == '_' ? '-' : *text;
        }
    }
    out[used] = 0;
    return out;
}

/* ---- names ---- */

/* How many bytes the UTF-8 character at text has; 0 when it is not one, or is a control character,
 * which on a terminal could do anything. */
static int character(const unsigned char *text) {
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    int size = text[0] < 0x80 ? 1 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    if ((text[0] >= 0x80 && text[0] < 0xc0) || text[0] >= 0xf8)
        return 0;
    uint32_t code = size == 1 ? text[0] : text[0] & (0xffu >> (size + 1));
    for (int i = 1; i < size; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3fu);
    }
    bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    bool is_valid = code >= smallest[size] && code < 0x110000 && (code & ~0x7ffu) != 0xd800;
    return is_valid && !is_control ? size : 0;
}

int cli_columns(const char *text) {
    int columns = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at; columns++) {
        int size = character(at);
        at += size ? size : 1;
    }
    return columns;
}

const char *cli_name(const char *name, int width, char out[CLI_NAME_SIZE]) {
    int columns = cli_columns(name), room = width && width < NAME_COLUMNS ? width : NAME_COLUMNS;
    bool is_cut = columns > room;
    int kept = is_cut ? room - 3 : columns;
    char *to = out;
    const unsigned char *at = (const unsigned char *)name;
    for (int i = 0; i < kept; i++) {
        int size = character(at);
        if (size)
            to = (char *)memcpy(to, at, (size_t)size) + size;
        else
            *to++ = '?';
        at += size ? size : 1;
    }
    if (is_cut)
        to = (char *)memcpy(to, "...", 3) + 3;
    for (int i = is_cut ? room : columns; i < width; i++)
        *to++ = ' ';
    *to = 0;
    return out;
}

/* ---- numbers ---- */

const char *cli_count(uint64_t count, char out[CLI_NUMBER_SIZE]) {
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count), at = 0;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
    return out;
}

const char *cli_bytes(uint64_t bytes, char out[CLI_NUMBER_SIZE]) {
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 999.5; unit++)
        value /= 1000;
    snprintf(out, CLI_NUMBER_SIZE, "%.*f %s", unit && value < 99.95, value, units[unit]);
    return out;
}

/* ---- JSON ---- */

json_t *cli_json(const char *text, fds_error *err) {
    json_t *root = json_loads(text, 0, NULL);
    if (json_object_size(root) == 0) { /* "{}" is described where memory is short */
        json_decref(root);
        root = NULL;
        cli_fail(err, FDS_ERR_NOMEM, "out of memory for the description of the result");
    }
    return root;
}

const json_t *cli_get(const json_t *root, const char *path) {
    while (root && *path) {
        char key[64];
        size_t length = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)length, path);
        root = json_object_get(root, key);
        path += length + (path[length] == '.');
    }
    return root;
}

const char *cli_get_text(const json_t *root, const char *path) {
    const char *text = json_string_value(cli_get(root, path));
    return text ? text : "";
}

uint64_t cli_get_count(const json_t *root, const char *path) {
    return (uint64_t)json_integer_value(cli_get(root, path));
}

double cli_get_number(const json_t *root, const char *path) {
    const json_t *value = cli_get(root, path);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

bool cli_get_flag(const json_t *root, const char *path) {
    return json_is_true(cli_get(root, path));
}

fds_status cli_print_text(char *text, fds_error *err) {
    bool is_fine = text && fputs(text, stdout) >= 0 && putchar('\n') == '\n';
    fds_text_free(text);
    return is_fine ? FDS_OK : cli_fail(err, FDS_ERR_IO, "cannot write to standard output");
}

fds_status cli_print_json(json_t *root, fds_error *err) {
    if (!root)
        return cli_fail(err, FDS_ERR_NOMEM, "out of memory for the JSON result");
    bool is_fine = json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) == 0;
    json_decref(root);
    putchar('\n');
    return is_fine ? FDS_OK : cli_fail(err, FDS_ERR_IO, "cannot write to standard output");
}

/* ---- what results are of ---- */

fds_status cli_show(const cli_args *args, char *text,
                    void (*print)(const cli_args *args, const json_t *report), fds_error *err) {
    fds_terminal_clear();
    if (args->json)
        return cli_print_text(text, err);
    json_t *report = cli_json(text, err);
    fds_text_free(text);
    if (!report)
        return FDS_ERR_NOMEM;
    print(args, report);
    json_decref(report);
    return FDS_OK;
}

void cli_print_until(const json_t *until, const char *of) {
    if (json_is_number(cli_get(until, "greatest")))
        printf("%-*s %.3g at most in 95 of 100 %s (--until-error %g%s)\n", CLI_WIDTH, "error",
               cli_get_number(until, "greatest"), of, cli_get_number(until, "wanted"),
               cli_get_flag(until, "is_reached") ? "" : ": not reached");
}

void cli_print_problem(const json_t *about) {
    uint64_t count = cli_get_count(about, "players.count");
    const char *kind = cli_get_text(about, "players.kind"); /* "samples" or "providers" */
    bool is_plural = count != 1;
    printf("%-*s %s\n", CLI_WIDTH, "data", cli_get_text(about, "data"));
    if (*cli_get_text(about, "network")) {
        printf("%-*s %s", CLI_WIDTH, "network", cli_get_text(about, "network"));
        if (cli_get_count(about, "weights"))
            printf(", %llu weights", (unsigned long long)cli_get_count(about, "weights"));
        putchar('\n');
    }
    printf("%-*s %llu %.*s", CLI_WIDTH, "players", (unsigned long long)count,
           (int)strlen(kind) - !is_plural, kind);
    if (strcmp(kind, "providers") == 0)
        printf(" with %llu samples", (unsigned long long)cli_get_count(about, "players.samples"));
    if (strcmp(cli_get_text(about, "group_value"), "points") == 0)
        printf(", whose values are added up by provider");
    putchar('\n');
}

char *cli_quote(int count, const char *const *words) {
    size_t size = 1;
    for (int i = 0; i < count; i++)
        size += strlen(words[i]) * 4 + 4; /* each letter may be a quote: '\'' */
    char *text = malloc(size), *at = text;
    for (int i = 0; text && i < count; i++) {
        bool is_plain = *words[i] && !strpbrk(words[i], " \t\n'\"\\$`*?[]{}()<>|&;#~!");
        at += sprintf(at, "%s%s", i ? " " : "", is_plain ? words[i] : "'");
        for (const char *c = words[i]; !is_plain && *c; c++)
            at += *c == '\'' ? sprintf(at, "'\\''") : sprintf(at, "%c", *c);
        if (!is_plain)
            at += sprintf(at, "'");
    }
    return text;
}

/* As wide as the widest name, between width and most. */
static int widen(int width, const char *name, int most) {
    int columns = cli_columns(name);
    return columns > most ? most : columns > width ? columns : width;
}

cli_player_columns cli_measure_players(const fds_result *r) {
    cli_player_columns w = {.player = 6, .label = 5, .is_regression = fds_result_is_regression(r)};
    w.label += w.is_regression; /* "target" */
    for (size_t i = 0; i < fds_result_players(r); i++) {
        const char *provider = fds_result_provider(r, i);
        w.player = widen(w.player, fds_result_player(r, i), PLAYER_WIDTH);
        w.label = widen(w.label, fds_result_player_label(r, i), LABEL_WIDTH);
        w.has_samples |= fds_result_player_samples(r, i) > 1;
        if (provider && strcmp(provider, fds_result_player(r, i)) != 0)
            w.provider = widen(w.provider ? w.provider : 8, provider, PROVIDER_WIDTH);
    }
    if (w.has_samples)
        w.label = 7;
    return w;
}

int cli_print_players_head(const cli_player_columns *w) {
    printf("rank  %-*s  %-*s", w->player, "player", w->label,
           w->has_samples     ? "samples"
           : w->is_regression ? "target"
                              : "label");
    if (w->provider)
        printf("  %-*s", w->provider, "provider");
    return 6 + w->player + 2 + w->label + (w->provider ? 2 + w->provider : 0);
}

void cli_print_player(const fds_result *r, const cli_player_columns *w, size_t rank,
                      size_t player) {
    char name[CLI_NAME_SIZE];
    const char *provider = fds_result_provider(r, player);
    printf("%4zu  %s", rank + 1, cli_name(fds_result_player(r, player), w->player, name));
    if (w->has_samples)
        printf("  %*zu", w->label, fds_result_player_samples(r, player));
    else
        printf("  %s", cli_name(fds_result_player_label(r, player), w->label, name));
    if (w->provider)
        printf("  %s", cli_name(provider ? provider : "", w->provider, name));
}

const char *cli_value_text(const fds_result *r, double value, char out[CLI_NUMBER_SIZE]) {
    snprintf(out, CLI_NUMBER_SIZE, fds_result_is_regression(r) ? "%.6g" : "%.6f", value);
    return out;
}

int cli_value_width(const fds_result *r) { return fds_result_is_regression(r) ? 12 : 9; }

/* The numbers of a regression. */
static void print_regression(const fds_result *r, size_t k) {
    const char *truth = fds_result_truth(r, k), *predicted = fds_result_predicted(r, k);
    char name[CLI_NAME_SIZE], none[CLI_NUMBER_SIZE], all[CLI_NUMBER_SIZE];
    printf("%s: prediction %s", cli_name(fds_result_input(r, k), 0, name),
           predicted ? predicted : "?");
    if (truth)
        printf(", true target %s", truth);
    printf("\nutility for the target %s: %s with no players, %s with all\n", fds_result_label(r, k),
           cli_value_text(r, fds_result_empty(r, k), none),
           cli_value_text(r, fds_result_full(r, k), all));
}

void cli_print_prediction(const fds_result *r, size_t k) {
    char name[CLI_NAME_SIZE];
    if (fds_result_is_regression(r)) {
        print_regression(r, k);
        return;
    }
    const char *truth = fds_result_truth(r, k), *predicted = fds_result_predicted(r, k);
    printf("%s: ", cli_name(fds_result_input(r, k), 0, name));
    printf("label %s", cli_name(predicted ? predicted : "?", 0, name));
    printf(" with %.1f %%", 100 * fds_result_confidence(r, k));
    if (truth)
        printf(", true label %s", cli_name(truth, 0, name));
    printf("\nprobability of label %s: ", cli_name(fds_result_label(r, k), 0, name));
    printf("%.4f with no players, %.4f with all\n", fds_result_empty(r, k), fds_result_full(r, k));
}

/* The new players of an answer, and what was trained with them. */
static void print_new(const json_t *about) {
    char count[CLI_NUMBER_SIZE], different[CLI_NUMBER_SIZE];
    const uint64_t players = cli_get_count(about, "new_players"),
                   models = cli_get_count(about, "new_models");
    if (players)
        printf("; %s new player%s of %s", cli_count(players, count), players == 1 ? "" : "s",
               cli_get_text(about, "new_player"));
    putchar('\n');
    if (models)
        printf("%-*s %s with each new player, for %s sets drawn\n", CLI_WIDTH, "sub-models",
               cli_count(cli_get_count(about, "trained_models"), different),
               cli_count(models, count));
}

fds_status cli_print_answers(const fds_result *r, size_t inputs, double seconds, fds_error *err) {
    json_t *about = cli_json(fds_result_describe(r), err);
    if (!about)
        return FDS_ERR_NOMEM;
    char count[CLI_NUMBER_SIZE];
    const char *by = cli_get_text(about, "by");
    bool by_bank = strcmp(by, "bank") == 0, by_explainer = !*by || strcmp(by, "explainer") == 0,
         has_check = *cli_get_text(about, "check_errors");
    printf("%-*s %s: %s, %s players of %s", CLI_WIDTH, "run", cli_get_text(about, "run"),
           cli_get_text(about, "method"), cli_count(cli_get_count(about, "players"), count),
           cli_get_text(about, "data"));
    print_new(about);
    printf("%-*s %s input%s by ", CLI_WIDTH, "answers", cli_count(inputs, count),
           inputs == 1 ? "" : "s");
    printf("%s%s in %.1f ms\n",
           by_bank        ? "the sub-models"
           : by_explainer ? cli_get_text(about, "explainer")
                          : by,
           has_check ? " and the sub-models" : "",
           1000 * (isnan(seconds) ? cli_get_number(about, "seconds") : seconds));
    printf("%-*s %s\n", CLI_WIDTH, "errors", cli_get_text(about, "errors"));
    if (has_check)
        printf("%-*s %s (sub-models)\n", CLI_WIDTH, "", cli_get_text(about, "check_errors"));
    json_decref(about);
    return FDS_OK;
}

fds_status cli_give(const cli_args *args, fds_result *result, size_t top,
                    fds_status (*show)(const cli_args *args, const fds_result *result, size_t top,
                                       fds_error *err),
                    fds_error *err) {
    char *text = NULL;
    fds_terminal_clear();
    fds_status status = args->json ? fds_result_json(result, &text, err) : FDS_OK;
    if (status == FDS_OK && args->output)
        status = fds_result_save(result, args->output, err);
    if (status == FDS_OK)
        status = args->json ? cli_print_text(text, err) : show(args, result, top, err);
    else
        fds_text_free(text);
    fds_result_free(result);
    return status;
}
