/* SPDX-License-Identifier: Apache-2.0
 * The option parser: --name value, --name=value, -o value, -ovalue, flags, and "--" before operands
 * that begin with a dash. Every mistake is answered with what would be right. */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORD = 64, MAX_OPTIONS = 64 };

const cli_option *cli_common_options(size_t *count) {
    static const cli_option common[] = {
        {CLI_ROW(UINT, cli_common, seed, 0, "seed", "N", "seed of every random choice [0]"),
         .max = CLI_EXACT_MAX},
        {CLI_ROW(UINT, cli_common, threads, 0, "threads", "N",
                 "0: one a processor, or as many as a run was fitted with; only the rounding of an "
                 "explainer depends on it [0]"),
         .max = 1024},
        {CLI_ROW(FLAG, cli_common, json, 0, "json", NULL,
                 "print the result as JSON, and nothing else")},
        {CLI_ROW(FLAG, cli_common, quiet, 'q', "quiet", NULL, "no progress and no notes")},
        {CLI_ROW(FLAG, cli_common, help, 'h', "help", NULL, "this text")},
    };
    *count = CLI_COUNT(common);
    return common;
}

/* ---- suggestions ---- */

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* How many letters must be inserted, left out, changed or swapped with their neighbour to make a
 * of b (optimal string alignment). */
static size_t distance(const char *a, const char *b) {
    size_t rows[3][MAX_WORD + 1], a_len = strlen(a), b_len = strlen(b);
    if (a_len > MAX_WORD || b_len > MAX_WORD)
        return SIZE_MAX;
    size_t *older = rows[0], *old = rows[1], *now = rows[2];
    for (size_t j = 0; j <= b_len; j++)
        old[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        now[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            now[j] = least(old[j - 1] + (a[i - 1] != b[j - 1]), least(old[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], older[j - 2] + 1);
        }
        size_t *free_row = older;
        older = old;
        old = now;
        now = free_row;
    }
    return old[b_len];
}

const char *cli_nearest(const char *word, const char *const *names) {
    size_t len = strlen(word), limit = len < 6 ? 1 : len / 3, best = limit + 1;
    const char *nearest = NULL;
    for (; *names; names++) {
        size_t d = distance(word, *names);
        if (len >= 3 && strncmp(word, *names, len) == 0)
            d = least(d, limit); /* the beginning of a name stands for it */
        if (d < best) {
            best = d;
            nearest = *names;
        }
    }
    return nearest;
}

const char *cli_hint(const char *word, const char *const *names, char out[CLI_HINT_SIZE]) {
    const char *nearest = cli_nearest(word, names);
    out[0] = 0;
    if (nearest)
        snprintf(out, CLI_HINT_SIZE, "; did you mean \"%s\"?", nearest);
    return out;
}

/* ---- finding an option ---- */

/* Option number i: the subcommand's own first, then the common ones; NULL after the last. */
static const cli_option *option_at(const cli_command *command, size_t i) {
    if (i < command->option_count)
        return &command->options[i];
    size_t count;
    const cli_option *common = cli_common_options(&count);
    i -= command->option_count;
    return i < count ? &common[i] : NULL;
}

static const cli_option *find_long(const cli_command *command, const char *name, size_t len) {
    const cli_option *option;
    for (size_t i = 0; (option = option_at(command, i)); i++)
        if (strlen(option->name) == len && memcmp(option->name, name, len) == 0)
            return option;
    return NULL;
}

static const cli_option *find_letter(const cli_command *command, char letter) {
    const cli_option *option;
    for (size_t i = 0; (option = option_at(command, i)); i++)
        if (option->letter == letter)
            return option;
    return NULL;
}

static fds_status fail_unknown(const cli_command *command, const char *word, fds_error *err) {
    const char *names[MAX_OPTIONS + 1] = {NULL};
    const cli_option *option;
    for (size_t i = 0; i < MAX_OPTIONS && (option = option_at(command, i)); i++)
        names[i] = option->name;
    char bare[MAX_WORD + 1]; /* the word without its dashes and "=value" */
    const char *start = word + strspn(word, "-");
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(start, "="), start);
    const char *nearest = cli_nearest(bare, names);
    if (nearest)
        return cli_fail(err, FDS_ERR_USAGE, "unknown option \"%s\": did you mean \"--%s\"?", word,
                        nearest);
    return cli_fail(err, FDS_ERR_USAGE, "unknown option \"%s\": see fds %s --help", word,
                    command->name);
}

/* ---- values ---- */

static fds_status fail_number(const cli_option *option, const char *text, fds_error *err) {
    const char *kind = option->type == CLI_UINT ? "whole number" : "number";
    if (option->above)
        return cli_fail(err, FDS_ERR_USAGE, "--%s %s: it must be a %s above %.16g, at most %.16g",
                        option->name, text, kind, option->min, option->max);
    return cli_fail(err, FDS_ERR_USAGE, "--%s %s: it must be a %s from %.16g to %.16g",
                    option->name, text, kind, option->min, option->max);
}

static fds_status parse_uint(const cli_option *option, const char *text, uint64_t *out,
                             fds_error *err) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    /* strtoull itself would take " 5", "+5" and "-5" */
    if (*text < '0' || *text > '9' || *end || errno || (double)value < option->min ||
        (double)value > option->max)
        return fail_number(option, text, err);
    *out = value;
    return FDS_OK;
}

static fds_status parse_float(const cli_option *option, const char *text, double *out,
                              fds_error *err) {
    char *end;
    double value = strtod(text, &end);
    if (!*text || strspn(text, "0123456789.eE+-") != strlen(text) || *end || !isfinite(value) ||
        value < option->min || (option->above && value == option->min) || value > option->max)
        return fail_number(option, text, err);
    *out = value;
    return FDS_OK;
}

static fds_status parse_choice(const cli_option *option, const char *text, const char **out,
                               fds_error *err) {
    char words[MAX_WORD + 1];
    const char *choices[8] = {NULL};
    snprintf(words, sizeof words, "%s", option->value);
    char *rest = words, *word;
    for (size_t i = 0; i < 7 && (word = strsep(&rest, "|")); i++)
        choices[i] = word;
    for (size_t i = 0; choices[i]; i++) {
        if (strcmp(choices[i], text) == 0) {
            *out = text;
            return FDS_OK;
        }
    }
    char hint[CLI_HINT_SIZE];
    return cli_fail(err, FDS_ERR_USAGE, "--%s %s: it must be one of %s%s", option->name, text,
                    option->value, cli_hint(text, choices, hint));
}

static fds_status parse_value(const cli_option *option, const char *text, void *options,
                              fds_error *err) {
    void *out = (char *)options + option->at;
    switch (option->type) {
    case CLI_FLAG:
        *(bool *)out = true;
        return FDS_OK;
    case CLI_STRING:
        if (!*text)
            return cli_fail(err, FDS_ERR_USAGE, "--%s is empty: it needs a value, --%s %s",
                            option->name, option->name, option->value);
        *(const char **)out = text;
        return FDS_OK;
    case CLI_CHOICE:
        return parse_choice(option, text, out, err);
    case CLI_UINT:
        return parse_uint(option, text, out, err);
    case CLI_FLOAT:
        return parse_float(option, text, out, err);
    }
    return FDS_OK;
}

/* ---- the command line ---- */

/* Whether the next word is an option's value. A word with a dash is most likely the next option,
 * its value forgotten; a negative number is a value, to be refused as one. */
static bool is_value(const char *word) {
    if (!word)
        return false;
    return word[0] != '-' || !word[1] || strchr("0123456789.", word[1]);
}

/* Takes the option at argv[*i], and its value from there or from the word after it. */
static fds_status parse_option(const cli_command *command, int argc, char **argv, int *i,
                               void *options, fds_error *err) {
    const char *word = argv[*i], *value = NULL;
    const cli_option *option;
    if (word[1] == '-') {
        size_t len = strcspn(word + 2, "=");
        option = find_long(command, word + 2, len);
        value = word[2 + len] ? word + 2 + len + 1 : NULL;
    } else {
        option = find_letter(command, word[1]);
        value = word[2] ? word + 2 : NULL;
        if (option && option->type == CLI_FLAG && value)
            option = NULL; /* "-quiet" */
    }
    if (!option)
        return fail_unknown(command, word, err);
    if (option->type == CLI_FLAG && value)
        return cli_fail(err, FDS_ERR_USAGE, "--%s takes no value: write --%s alone", option->name,
                        option->name);
    if (option->type != CLI_FLAG && !value) {
        const char *next = *i + 1 < argc ? argv[*i + 1] : NULL;
        if (!is_value(next))
            return cli_fail(err, FDS_ERR_USAGE, "--%s needs a value: --%s %s", option->name,
                            option->name, option->value);
        value = next;
        ++*i;
    }
    return parse_value(option, value, options, err);
}

fds_status cli_parse(const cli_command *command, int argc, char **argv, void *options,
                     fds_error *err) {
    cli_common *common = options;
    bool only_operands = false;
    for (int i = 0; i < argc; i++) {
        if (!only_operands && strcmp(argv[i], "--") == 0) {
            only_operands = true;
        } else if (!only_operands && argv[i][0] == '-' && argv[i][1]) {
            CLI_TRY(parse_option(command, argc, argv, &i, options, err));
        } else if (common->operand && common->more) {
            common->more[common->more_count++] = argv[i];
        } else if (common->operand) {
            return cli_fail(err, FDS_ERR_USAGE,
                            "\"%s\" is one argument too many: only one %s, \"%s\"", argv[i],
                            command->operand, common->operand);
        } else {
            common->operand = argv[i];
        }
    }
    if (!common->operand || !*common->operand)
        return cli_fail(err, FDS_ERR_USAGE, "%s is missing: %s", command->operand, command->needs);
    return FDS_OK;
}
