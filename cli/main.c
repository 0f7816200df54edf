/* SPDX-License-Identifier: Apache-2.0
 * The command fds: finds the subcommand, runs it, and turns its status into an exit code:
 * 0 done, 1 failed, 2 wrong usage, 128 + signal when it was interrupted. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_SIGNAL = 128 };

static const cli_command *const commands[] = {&cli_data_get, &cli_data_show, &cli_train,
                                              &cli_value,    &cli_fit,       &cli_explain,
                                              &cli_pay,      &cli_bench};

/* ---- fds --help ---- */

/* One line for each command whose name begins with group. */
static void list_commands(const char *group) {
    size_t len = strlen(group);
    for (size_t i = 0; i < CLI_COUNT(commands); i++) {
        if (strncmp(commands[i]->name, group, len) != 0)
            continue;
        char call[64];
        snprintf(call, sizeof call, "%s %s", commands[i]->name, commands[i]->operand);
        cli_wrap(commands[i]->summary, printf("  fds %-18s", call), 24);
    }
}

static void help_all(void) {
    printf("fds %s: what every training-data provider contributed to a prediction\n\n"
           "usage: fds COMMAND ... [options]\n\n",
           FDS_VERSION);
    list_commands("");
    printf("\n"
           "  fds COMMAND --help    a command's options, with an example\n"
           "  fds --version         the version, and what the engine runs on\n\n"
           "Example:\n"
           "  fds data get mnist\n"
           "  fds data show mnist --png digits.png\n"
           "  fds fit mnist --players 100 -o mnist.run\n"
           "  fds explain mnist.run --index 0..9 --png figure.png\n"
           "  fds pay mnist.run --index 0 --amount 100.00\n");
}

static int help_group(const char *group) {
    printf("usage: fds %s COMMAND ... [options]\n\n", group);
    list_commands(group);
    printf("\nExample:\n  fds data show mnist\n");
    return 0;
}

/* ---- which command ---- */

static bool is_help(const char *word) {
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static const cli_command *find_command(const char *name) {
    for (size_t i = 0; i < CLI_COUNT(commands); i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

/* Whether word is the first of commands of two words. */
static bool is_group(const char *word) {
    size_t len = strlen(word);
    for (size_t i = 0; i < CLI_COUNT(commands); i++)
        if (strncmp(commands[i]->name, word, len) == 0 && commands[i]->name[len] == ' ')
            return true;
    return false;
}

/* "unknown command": suggests what may follow group ("" or "data"). */
static int fail_unknown(const char *group, const char *word) {
    char first[CLI_COUNT(commands)][32];
    const char *names[CLI_COUNT(commands) + 3] = {NULL};
    size_t count = 0, skip = *group ? strlen(group) + 1 : 0;
    for (size_t i = 0; i < CLI_COUNT(commands); i++) {
        const char *name = commands[i]->name;
        if (strncmp(name, group, strlen(group)) != 0)
            continue;
        snprintf(first[i], sizeof first[i], "%.*s", (int)strcspn(name + skip, " "), name + skip);
        names[count++] = first[i];
    }
    if (!*group) {
        names[count++] = "--help";
        names[count++] = "--version";
    }
    const char *nearest = cli_nearest(word, names), *space = *group ? " " : "";
    fprintf(stderr, "fds%s%s: unknown %s \"%s\"", space, group, *word == '-' ? "option" : "command",
            word);
    if (nearest)
        fprintf(stderr, ": did you mean \"%s\"?\n", nearest);
    else
        fprintf(stderr, ": see fds%s%s --help\n", space, group);
    return EXIT_USAGE;
}

/* ---- running it ---- */

static int run(const cli_command *command, int argc, char **argv) {
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (is_help(argv[i])) {
            cli_help(command);
            return 0;
        }
    }
    cli_catch_signals();
    fds_error err = {0};
    fds_status status = command->run(command, argc, argv, &err);
    if (status == FDS_OK)
        return 0;
    if (cli_signal()) {
        bool says_where = status == FDS_ERR_CANCELLED && err.text[0];
        fprintf(stderr, "fds %s: interrupted%s%s\n", command->name, says_where ? ": " : "",
                says_where ? err.text : "");
        return EXIT_SIGNAL + cli_signal();
    }
    fprintf(stderr, "fds %s: %s\n", command->name,
            err.text[0] ? err.text : fds_status_text(status));
    return fds_status_exit_code(status);
}

static int dispatch(int argc, char **argv) {
    const char *first = argc > 1 ? argv[1] : NULL, *second = argc > 2 ? argv[2] : NULL;
    if (!first) {
        fprintf(stderr, "fds: a command is missing: see fds --help\n");
        return EXIT_USAGE;
    }
    if (is_help(first)) {
        help_all();
        return 0;
    }
    if (strcmp(first, "--version") == 0) {
        printf("fds %s (engine: %s, processors: %u)\n", FDS_VERSION, fds_isa(), fds_processors());
        return 0;
    }
    if (find_command(first))
        return run(find_command(first), argc - 2, argv + 2);
    if (!is_group(first))
        return fail_unknown("", first);
    if (!second) {
        fprintf(stderr, "fds %s: a command is missing: see fds %s --help\n", first, first);
        return EXIT_USAGE;
    }
    if (is_help(second))
        return help_group(first);
    char name[64];
    snprintf(name, sizeof name, "%s %s", first, second);
    if (find_command(name))
        return run(find_command(name), argc - 3, argv + 3);
    return fail_unknown(first, second);
}

/* Where the caller closed a standard descriptor, a file of ours would get its number and be
 * overwritten by what is printed. */
static void open_standard_descriptors(void) {
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv) {
    open_standard_descriptors();
    int code = dispatch(argc, argv);
    /* a full disk shows only now */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "fds: cannot write to standard output: %s\n", strerror(errno));
        return code ? code : EXIT_FAILED;
    }
    return code;
}
