/* SPDX-License-Identifier: Apache-2.0
 * Help, manual pages and completion, made from the same tables that the parser reads. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

enum { LINE = 79, HELP_COLUMN = 28, OPTION_SIZE = 96, HELP_SIZE = 700 };

void cli_wrap(const char *text, int at, int indent) {
    while (*text) {
        int length = (int)strcspn(text, " \n");
        bool is_fresh = at <= indent;
        if (!is_fresh && at + 1 + length > LINE) {
            putchar('\n');
            at = 0;
            is_fresh = true;
        }
        at += is_fresh ? printf("%*s", indent - at, "") : printf(" ");
        at += printf("%.*s", length, text);
        text += length;
        if (*text == '\n') {
            putchar('\n');
            at = 0;
        }
        if (*text)
            text++;
    }
    putchar('\n');
}

/* ---- one option, of either kind ---- */

typedef struct {
    char letter;
    char call[OPTION_SIZE]; /* "--loss-bound LOSS" */
    char help[HELP_SIZE];   /* with the default behind it */
    fds_level level;
} line;

static void describe_own(const cli_option *o, fds_level level, line *out) {
    *out = (line){.letter = o->letter, .level = level};
    snprintf(out->call, sizeof out->call, "--%s%s%s", o->name, o->value ? " " : "",
             o->value ? o->value : "");
    snprintf(out->help, sizeof out->help, "%s", o->help);
}

static void describe_param(const fds_param_info *p, line *out) {
    char text[HELP_SIZE], dashed[CLI_MESSAGE_SIZE];
    const char *usual = p->standard ? p->standard : p->automatic;
    *out = (line){.level = p->level};
    int used = snprintf(out->call, sizeof out->call, "--%s", p->name);
    for (char *at = out->call + 2; *at; at++)
        *at = *at == '_' ? '-' : *at;
    if (p->value)
        snprintf(out->call + used, sizeof out->call - (size_t)used, " %s", p->value);
    snprintf(text, sizeof text, "%s%s%s%s", p->help, usual ? " [" : "", usual ? usual : "",
             usual ? "]" : "");
    snprintf(out->help, sizeof out->help, "%.*s", HELP_SIZE - 1, cli_message(text, dashed));
}

/* Calls show for every option of the command, the command's own first. */
static void each_option(const cli_command *command,
                        void (*show)(const line *line, const void *user), const void *user) {
    size_t count;
    const cli_option *every = cli_every_option(&count);
    fds_param_info param;
    line l;
    for (size_t i = 0; i < command->own_count; i++) {
        describe_own(&command->own[i], FDS_LEVEL_COMMON, &l);
        show(&l, user);
    }
    for (size_t i = 0; command->job && fds_params_describe(command->job, i, &param); i++) {
        if (param.level == FDS_LEVEL_OPERAND)
            continue;
        describe_param(&param, &l);
        show(&l, user);
    }
    for (size_t i = 0; i < count; i++) {
        describe_own(&every[i], FDS_LEVEL_EVERY, &l);
        show(&l, user);
    }
    l = (line){.letter = 'h', .call = "--help", .help = "show this text", .level = FDS_LEVEL_EVERY};
    show(&l, user);
}

/* ---- help ---- */

static void print_option(const line *l, const void *user) {
    if (l->level != *(const fds_level *)user)
        return;
    int at = l->letter ? printf("  -%c, ", l->letter) : printf("      ");
    at += printf("%s", l->call);
    if (at > HELP_COLUMN - 2) {
        putchar('\n');
        at = 0;
    }
    cli_wrap(l->help, at, HELP_COLUMN);
}

static void count_level(const line *l, const void *user) {
    size_t *counts = *(size_t *const *)user;
    counts[l->level]++;
}

void cli_help(const cli_command *command) {
    static const struct {
        fds_level level;
        const char *title;
    } parts[] = {{FDS_LEVEL_COMMON, "Options"},
                 {FDS_LEVEL_EVERY, "Options of every command"},
                 {FDS_LEVEL_ADVANCED, "Advanced options"}};
    size_t counts[4] = {0}, *pointer = counts;
    each_option(command, count_level, &pointer);
    printf("usage: fds %s %s\n\n", command->name, command->usage);
    cli_wrap(command->about, 0, 0);
    if (command->more_about)
        command->more_about();
    printf("\nExample%s:\n%s", strchr(command->examples, '\n')[1] ? "s" : "", command->examples);
    for (size_t i = 0; i < CLI_COUNT(parts); i++) {
        if (!counts[parts[i].level])
            continue;
        printf("\n%s:\n", parts[i].title);
        each_option(command, print_option, &parts[i].level);
    }
}

void cli_help_all(void) {
    printf("fds %s: what every training-data provider contributed to a prediction\n\n"
           "usage: fds COMMAND ... [options]\n\n",
           fds_version());
    for (size_t i = 0; cli_commands[i]; i++) {
        char call[64];
        snprintf(call, sizeof call, "%s %s", cli_commands[i]->name,
                 cli_commands[i]->operand ? cli_commands[i]->operand : "");
        if (strncmp(call, "ledger ", 7) != 0) /* too many to be listed here */
            cli_wrap(cli_commands[i]->summary, printf("  fds %-22s", call), 28);
    }
    printf("  fds ledger COMMAND        keep accounts of customers and providers: see\n"
           "                            fds ledger --help\n");
    printf("\n"
           "  fds help COMMAND          a command's options, with examples\n"
           "  fds version               the version, and what the engine runs on\n"
           "  fds completion SHELL      completion for bash, zsh or fish\n\n"
           "Example:\n"
           "  fds data get mnist\n"
           "  fds fit mnist --players 100 -o mnist.run\n"
           "  fds explain mnist.run --index 0..9 --png figure.png\n"
           "  fds pay mnist.run --index 0 --amount 100.00\n");
}

/* ---- manual pages ---- */

/* roff takes lines that begin with a dot or a quote for commands, and eats backslashes. */
static void put_roff(const char *text) {
    bool is_start = true;
    for (; *text; text++) {
        if (is_start && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        if (*text == '-')
            fputs("\\-", stdout);
        else if (*text == '\\')
            fputs("\\e", stdout);
        else
            putchar(*text);
        is_start = *text == '\n';
    }
}

static void man_option(const line *l, const void *user) {
    (void)user;
    printf(".TP\n.B ");
    if (l->letter)
        printf("\\-%c, ", l->letter);
    put_roff(l->call);
    putchar('\n');
    put_roff(l->help);
    putchar('\n');
}

static void man_head(const char *name, const char *summary) {
    char page[64]; /* "fds-data-get" */
    snprintf(page, sizeof page, "fds%s%s", *name ? "-" : "", name);
    for (char *at = page; *at; at++)
        *at = *at == ' ' ? '-' : *at;
    printf(".TH \"%s\" 1 \"\" \"fds %s\"\n.SH NAME\n%s \\- ", page, fds_version(), page);
    put_roff(summary);
    printf("\n.SH SYNOPSIS\n.B fds%s%s\n", *name ? " " : "", name);
}

void cli_man(const cli_command *command) {
    if (!command) {
        man_head("", "what every training-data provider contributed to a prediction");
        printf("COMMAND ... [options]\n.SH COMMANDS\n");
        for (size_t i = 0; cli_commands[i]; i++) {
            printf(".TP\n.B fds %s\n", cli_commands[i]->name);
            put_roff(cli_commands[i]->summary);
            putchar('\n');
        }
        return;
    }
    man_head(command->name, command->summary);
    put_roff(command->usage);
    printf("\n.SH DESCRIPTION\n");
    put_roff(command->about);
    printf("\n.SH OPTIONS\n");
    each_option(command, man_option, NULL);
    printf(".SH EXAMPLES\n.nf\n");
    put_roff(command->examples);
    printf(".fi\n");
}

/* ---- docs/parameters.md ---- */

/* A cell of a table: a bar would end it. */
static void put_cell(const char *text) {
    for (; text && *text; text++)
        *text == '|' ? fputs("\\|", stdout) : putchar(*text);
    fputs(" | ", stdout);
}

static void markdown_param(const fds_param_info *p) {
    char range[64] = "";
    const char *usual = p->standard ? p->standard : p->automatic;
    if (strcmp(p->type, "count") == 0 || strcmp(p->type, "real") == 0)
        snprintf(range, sizeof range, "%s %.16g to %.16g", p->is_above ? "above" : "from", p->min,
                 p->max);
    printf("| `%s` | ", p->name);
    put_cell(p->value ? p->value : "true|false");
    put_cell(range);
    put_cell(usual ? usual : strcmp(p->type, "flag") == 0 ? "false" : "");
    printf("%s%s%s%s |\n", p->help, p->methods ? " (methods: " : "", p->methods ? p->methods : "",
           p->methods ? ")" : "");
}

void cli_markdown(void) {
    printf("# Parameters\n\n"
           "`fds help --markdown` prints this page from the table that the library checks "
           "parameters by.\n"
           "A program sets a parameter by its name, `fds_params_set(params, \"loss_bound\", "
           "\"0.1\", &err)`;\n"
           "in the command it is an option, `--loss-bound 0.1`. Where a parameter belongs to some "
           "methods only,\n"
           "the help names them; `@` stands for the baselines that take it: see "
           "[baselines.md](baselines.md).\n");
    for (size_t i = 0; cli_commands[i]; i++) {
        fds_param_info param;
        if (!cli_commands[i]->job)
            continue;
        printf("\n## %s\n`fds %s`: %s.\n\n"
               "| name | values | range | default | help |\n"
               "| --- | --- | --- | --- | --- |\n",
               cli_commands[i]->job, cli_commands[i]->name, cli_commands[i]->summary);
        for (size_t k = 0; fds_params_describe(cli_commands[i]->job, k, &param); k++)
            markdown_param(&param);
    }
}

/* ---- completion ---- */

static void complete_option(const line *l, const void *user) {
    (void)user;
    printf("%.*s ", (int)strcspn(l->call, " "), l->call);
}

static void complete_fish(const line *l, const void *user) {
    const char *name = user;
    printf("complete -c fds -n '__fish_seen_subcommand_from %s' -l %.*s%s\n", name,
           (int)strcspn(l->call + 2, " "), l->call + 2, strchr(l->call, ' ') ? " -r" : "");
}

/* "data" for "data show": the word that completion looks for. */
static int first_word(const char *name) { return (int)strcspn(name, " "); }

static void put_word(const char *name) { fwrite(name, 1, (size_t)first_word(name), stdout); }

static void bash(void) {
    printf("_fds() {\n    local word=\"${COMP_WORDS[COMP_CWORD]}\" options=\"\"\n    case "
           "\"${COMP_WORDS[1]}\" in\n");
    for (size_t i = 0; cli_commands[i]; i++) {
        const char *name = cli_commands[i]->name;
        if (i && strncmp(name, cli_commands[i - 1]->name, (size_t)first_word(name) + 1) == 0)
            continue; /* "data get" and "data show" share a word */
        fputs("    ", stdout);
        put_word(name);
        fputs(") options=\"", stdout);
        for (size_t k = i; cli_commands[k]; k++)
            if (strncmp(cli_commands[k]->name, name, (size_t)first_word(name) + 1) == 0)
                each_option(cli_commands[k], complete_option, NULL);
        for (size_t k = i; strchr(name, ' ') && cli_commands[k]; k++)
            if (strncmp(cli_commands[k]->name, name, (size_t)first_word(name) + 1) == 0)
                printf("%s ", strchr(cli_commands[k]->name, ' ') + 1);
        printf("\" ;;\n");
    }
    printf("    *) options=\"");
    for (size_t i = 0; cli_commands[i]; i++) {
        const char *name = cli_commands[i]->name;
        bool is_new =
            !i || strncmp(name, cli_commands[i - 1]->name, (size_t)first_word(name) + 1) != 0;
        if (is_new) {
            put_word(name);
            putchar(' ');
        }
    }
    printf("help version completion\" ;;\n    esac\n"
           "    if [[ $word == -* || $COMP_CWORD -le 2 ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n    fi\n}\n"
           "complete -o default -F _fds fds\n");
}

static void fish(void) {
    for (size_t i = 0; cli_commands[i]; i++) {
        char word[32];
        snprintf(word, sizeof word, "%.*s", first_word(cli_commands[i]->name),
                 cli_commands[i]->name);
        printf("complete -c fds -n __fish_use_subcommand -a %s -d '%s'\n", word,
               cli_commands[i]->summary);
        each_option(cli_commands[i], complete_fish, word);
    }
}

fds_status cli_completion(const char *shell, fds_error *err) {
    if (shell && strcmp(shell, "bash") == 0) {
        bash();
    } else if (shell && strcmp(shell, "zsh") == 0) {
        printf("#compdef fds\nautoload -U +X bashcompinit && bashcompinit\n");
        bash();
    } else if (shell && strcmp(shell, "fish") == 0) {
        fish();
    } else {
        return cli_fail(err, FDS_ERR_USAGE,
                        "name a shell: bash, zsh or fish, for example: fds completion bash");
    }
    return FDS_OK;
}
