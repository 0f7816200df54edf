/* SPDX-License-Identifier: Apache-2.0
 * The option parser: --name value, --name=value, -o value, -ovalue, flags, and "--" before operands
 * that begin with a dash. The library checks the values of its parameters. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_WORD = 64, MAX_OPTIONS = 96 };

const cli_option *cli_every_option(size_t *count) {
    static const cli_option every[] = {
        CLI_OWN(0, "json", json, NULL, "print the result as JSON, and nothing else"),
        CLI_OWN('q', "quiet", quiet, NULL, "no progress and no notes"),
    };
    *count = CLI_COUNT(every);
    return every;
}

/* ---- finding an option ---- */

/* An option of either kind. */
typedef struct {
    const cli_option *own;
    fds_param_info param; /* where own is NULL */
    char name[MAX_WORD];  /* with dashes */
} option;

static bool option_at(const cli_command *command, size_t i, option *out) {
    size_t every_count;
    const cli_option *every = cli_every_option(&every_count);
    size_t own_count = command->own_count + every_count;
    *out = (option){0};
    if (i < own_count) {
        out->own = i < command->own_count ? &command->own[i] : &every[i - command->own_count];
        snprintf(out->name, sizeof out->name, "%s", out->own->name);
        return true;
    }
    i -= own_count;
    do /* the operand is no option */
        if (!command->job || !fds_params_describe(command->job, i++, &out->param))
            return false;
    while (out->param.level == FDS_LEVEL_OPERAND);
    snprintf(out->name, sizeof out->name, "%s", out->param.name);
    for (char *at = out->name; *at; at++)
        *at = *at == '_' ? '-' : *at;
    return true;
}

static bool find_option(const cli_command *command, const char *name, size_t length, char letter,
                        option *out) {
    for (size_t i = 0; i < MAX_OPTIONS && option_at(command, i, out); i++)
        if (letter ? out->own && out->own->letter == letter
                   : strlen(out->name) == length && memcmp(out->name, name, length) == 0)
            return true;
    return false;
}

/* Where no guarantee can be had: why. */
static fds_status fail_private(const cli_command *command, fds_error *err) {
    const char *why =
        strcmp(command->name, "explain") == 0 || strcmp(command->name, "pay") == 0
            ? "the values of a single prediction are about that prediction alone, and noise that "
              "hides it hides them too; statements of many can be private: fds privacy on"
            : "replacing one provider's data can change another's value by up to 1, against values "
              "of about 1/n, because every sub-model is trained on it: noise that hides a provider "
              "hides all values";
    return cli_fail(err, FDS_ERR_USAGE, "--private is refused: %s", why);
}

static fds_status fail_unknown(const cli_command *command, const char *word, fds_error *err) {
    option options[MAX_OPTIONS];
    const char *names[MAX_OPTIONS + 2] = {NULL};
    size_t count = 0;
    while (count < MAX_OPTIONS && option_at(command, count, &options[count])) {
        names[count] = options[count].name;
        count++;
    }
    names[count] = "help";
    char bare[MAX_WORD + 1]; /* the word without its dashes and "=value" */
    const char *start = word + strspn(word, "-");
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(start, "="), start);
    if (strcmp(bare, "task") == 0) /* of other commands */
        return cli_fail(err, FDS_ERR_USAGE,
                        "--task does not apply: fds %s needs classes; values for numbers to "
                        "predict are computed by fds value DATA --task regression",
                        command->name);
    if (strcmp(bare, "private") == 0 && command->job)
        return fail_private(command, err);
    const char *nearest = fds_nearest(bare, names);
    if (nearest)
        return cli_fail(err, FDS_ERR_USAGE, "unknown option \"%s\": did you mean \"--%s\"?", word,
                        nearest);
    return cli_fail(err, FDS_ERR_USAGE, "unknown option \"%s\": see fds %s --help", word,
                    command->name);
}

/* ---- the command line ---- */

static bool is_flag(const option *o) {
    return o->own ? !o->own->value : strcmp(o->param.type, "flag") == 0;
}

static const char *value_name(const option *o) { return o->own ? o->own->value : o->param.value; }

/* Whether the next word is an option's value. A word with a dash is most likely the next option,
 * its value forgotten; a negative number is a value, to be refused as one. */
static bool is_value(const char *word) {
    return word && (word[0] != '-' || !word[1] || strchr("0123456789.", word[1]));
}

static fds_status assign(const option *o, const char *value, cli_args *args, fds_error *err) {
    if (!o->own && !is_flag(o) && strchr(value, '\n'))
        return cli_fail(err, FDS_ERR_USAGE, "--%s: the value has a line break; remove it", o->name);
    if (!o->own)
        return fds_params_set(args->params, o->param.name, is_flag(o) ? "true" : value, err);
    void *field = (char *)args + o->own->at;
    if (is_flag(o))
        *(bool *)field = true;
    else if (!*value)
        return cli_fail(err, FDS_ERR_USAGE, "--%s is empty; it must be %s", o->name, o->own->value);
    else
        *(const char **)field = value;
    return FDS_OK;
}

/* Takes the option at argv[*i], and its value from there or from the word after it. */
static fds_status parse_option(const cli_command *command, int argc, char **argv, int *i,
                               cli_args *args, fds_error *err) {
    const char *word = argv[*i], *value = NULL;
    bool is_long = word[1] == '-';
    size_t length = is_long ? strcspn(word + 2, "=") : 0;
    option o;
    bool is_known = find_option(command, word + 2, length, is_long ? 0 : word[1], &o);
    if (is_long)
        value = word[2 + length] ? word + 2 + length + 1 : NULL;
    else
        value = word[2] ? word + 2 : NULL;
    if (!is_known || (!is_long && is_flag(&o) && value)) /* "-quiet" */
        return fail_unknown(command, word, err);
    if (is_flag(&o) && value)
        return cli_fail(err, FDS_ERR_USAGE, "--%s takes no value: write --%s alone", o.name,
                        o.name);
    if (!is_flag(&o) && !value) {
        value = *i + 1 < argc ? argv[*i + 1] : NULL;
        if (!is_value(value))
            return cli_fail(err, FDS_ERR_USAGE, "--%s needs a value: --%s %s", o.name, o.name,
                            value_name(&o));
        ++*i;
    }
    return assign(&o, value, args, err);
}

static fds_status take_operand(const cli_command *command, const char *word, cli_args *args,
                               fds_error *err) {
    const char *shown = strstr(word, "://") ? "..." : word; /* a URI may have a password */
    if (!command->operand)
        return cli_fail(err, FDS_ERR_USAGE, "\"%s\" is no option: see fds %s --help", shown,
                        command->name);
    if (args->operand && command->takes_more) {
        args->more[args->more_count++] = word;
        return FDS_OK;
    }
    if (args->operand)
        return cli_fail(err, FDS_ERR_USAGE, "\"%s\" is one argument too many: only one %s", shown,
                        command->operand);
    args->operand = word;
    bool is_param = command->job && strcmp(command->operand, "DATA") == 0;
    return is_param && *word ? fds_params_set(args->params, "data", word, err) : FDS_OK;
}

/* The operand, or the parameter that takes its place, but not both. */
static fds_status check_operand(const cli_command *command, const cli_args *args, fds_error *err) {
    char instead[MAX_WORD] = "";
    bool is_there = args->operand && *args->operand;
    if (command->instead)
        fds_params_get(args->params, command->instead, instead, sizeof instead, NULL);
    bool has_other = *instead && strcmp(instead, "auto") != 0;
    if (has_other && is_there)
        return cli_fail(err, FDS_ERR_USAGE, "--%s takes the place of %s (got %s): give one of them",
                        command->instead, command->operand, args->operand);
    if (command->operand && command->missing && !is_there && !has_other)
        return cli_fail(err, FDS_ERR_USAGE, "%s is missing: %s", command->operand,
                        command->missing);
    return FDS_OK;
}

fds_status cli_parse(const cli_command *command, int argc, char **argv, cli_args *args,
                     fds_error *err) {
    bool only_operands = false;
    for (int i = 0; i < argc; i++) {
        if (!only_operands && strcmp(argv[i], "--") == 0)
            only_operands = true;
        else if (!only_operands && argv[i][0] == '-' && argv[i][1])
            CLI_TRY(parse_option(command, argc, argv, &i, args, err));
        else
            CLI_TRY(take_operand(command, argv[i], args, err));
    }
    return check_operand(command, args, err);
}

fds_status cli_number(const char *option_name, const char *text, size_t most, size_t usual,
                      size_t *out, fds_error *err) {
    char *end = NULL;
    unsigned long long value = text ? strtoull(text, &end, 10) : usual;
    if (text && (*text < '0' || *text > '9' || *end || value < 1 || value > most))
        return cli_fail(err, FDS_ERR_USAGE, "--%s must be a whole number from 1 to %zu (got %s)",
                        option_name, most, text);
    *out = (size_t)value;
    return FDS_OK;
}
