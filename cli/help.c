/* SPDX-License-Identifier: Apache-2.0
 * Help texts, made from the same tables that the parser reads. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

enum { LINE = 79, HELP_COLUMN = 28 };

void cli_wrap(const char *text, int at, int indent) {
    while (*text) {
        int len = (int)strcspn(text, " \n");
        bool fresh = at <= indent;
        if (!fresh && at + 1 + len > LINE) {
            putchar('\n');
            at = 0;
            fresh = true;
        }
        if (fresh)
            at += printf("%*s", indent - at, "");
        else
            at += printf(" ");
        at += printf("%.*s", len, text);
        text += len;
        if (*text == '\n') {
            putchar('\n');
            at = 0;
        }
        if (*text)
            text++;
    }
    putchar('\n');
}

static void print_options(const cli_option *options, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const cli_option *o = &options[i];
        int at = o->letter ? printf("  -%c, ", o->letter) : printf("      ");
        at += printf("--%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
        if (at > HELP_COLUMN - 2) {
            putchar('\n');
            at = 0;
        }
        cli_wrap(o->help, at, HELP_COLUMN);
    }
}

void cli_help(const cli_command *command) {
    printf("usage: fds %s %s\n\n", command->name, command->usage);
    cli_wrap(command->about, 0, 0);
    if (command->option_count)
        printf("\nOptions:\n");
    print_options(command->options, command->option_count);
    printf("\nOptions of every command:\n");
    size_t count;
    const cli_option *common = cli_common_options(&count);
    print_options(common, count);
    printf("\nExample%s:\n%s", strchr(command->examples, '\n')[1] ? "s" : "", command->examples);
}
