/* SPDX-License-Identifier: Apache-2.0
 * The command fds: finds the subcommand, runs it, and turns its status into an exit code:
 * 0 done, 1 failed, 2 wrong usage, 3 an audit that alarms, 128 + signal when it was interrupted. */
#include "cli.h"

#include "fds/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_SIGNAL = 128 };

#define LEDGER(i) &cli_ledger[i]
const cli_command *const cli_commands[] = {
    &cli_data_get,     &cli_data_show,   &cli_data_audit,
    &cli_fit,          &cli_explain,     &cli_pay,
    &cli_value,        &cli_train,       &cli_bench,
    &cli_serve,        &cli_serve_key,   &cli_serve_login,
    &cli_audit,        &cli_audit_watch, &cli_audit_duplicates,
    &cli_audit_labels, LEDGER(0),        LEDGER(1),
    LEDGER(2),         LEDGER(3),        LEDGER(4),
    LEDGER(5),         LEDGER(6),        LEDGER(7),
    LEDGER(8),         LEDGER(9),        LEDGER(10),
    &cli_privacy[0],   &cli_privacy[1],  &cli_table[0],
    &cli_table[1],     &cli_table[2],    &cli_table[3],
    &cli_update,       &cli_forget,      NULL};

/* ---- signals ---- */

static volatile sig_atomic_t signal_caught;

static void note_signal(int number) { signal_caught = number; }

static void catch_signals(void) {
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

/* ---- events ---- */

static const char *current; /* the subcommand's name */
static bool is_quiet;

static void on_log(void *user, fds_log_level level, const char *text) {
    char message[CLI_MESSAGE_SIZE];
    (void)user;
    if ((is_quiet || fds_ranks_number() > 0) && level == FDS_LOG_INFO)
        return;
    fds_terminal_clear();
    fprintf(stderr, "fds %s: %s%s\n", current, level == FDS_LOG_WARNING ? "warning: " : "",
            cli_message(text, message));
}

static bool on_progress(void *user, const fds_progress *progress) {
    (void)user;
    if (!is_quiet && fds_ranks_number() == 0)
        fds_events_terminal()->progress(NULL, progress);
    return signal_caught != 0;
}

/* ---- which command ---- */

static bool is_help(const char *word) {
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static const cli_command *find_command(const char *name) {
    for (size_t i = 0; cli_commands[i]; i++)
        if (strcmp(cli_commands[i]->name, name) == 0)
            return cli_commands[i];
    return NULL;
}

/* Whether word is the first of commands of two words. */
static bool is_group(const char *word) {
    size_t length = strlen(word);
    for (size_t i = 0; cli_commands[i]; i++)
        if (strncmp(cli_commands[i]->name, word, length) == 0 &&
            cli_commands[i]->name[length] == ' ')
            return true;
    return false;
}

/* "unknown command": suggests what may follow group ("" or "data"). */
static int fail_unknown(const char *group, const char *word) {
    char first[CLI_COUNT(cli_commands)][32];
    const char *names[CLI_COUNT(cli_commands) + 3] = {NULL};
    size_t count = 0, skip = *group ? strlen(group) + 1 : 0;
    for (size_t i = 0; cli_commands[i]; i++) {
        const char *name = cli_commands[i]->name;
        if (strncmp(name, group, strlen(group)) != 0)
            continue;
        snprintf(first[count], sizeof first[count], "%.*s", (int)strcspn(name + skip, " "),
                 name + skip);
        names[count] = first[count];
        count++;
    }
    if (!*group) {
        names[count++] = "help";
        names[count++] = "version";
        if (*word != '-')
            names[count++] = "completion";
    }
    const char *nearest = fds_nearest(word + strspn(word, "-"), names), *space = *group ? " " : "";
    fprintf(stderr, "fds%s%s: unknown %s \"%s\"", space, group, *word == '-' ? "option" : "command",
            word);
    if (nearest)
        fprintf(stderr, ": did you mean \"%s%s\"?\n", *word == '-' ? "--" : "", nearest);
    else
        fprintf(stderr, ": see fds%s%s --help\n", space, group);
    return EXIT_USAGE;
}

/* ---- running it ---- */

static int finish(const char *name, fds_status status, const fds_error *err) {
    char message[CLI_MESSAGE_SIZE];
    if (status == FDS_OK)
        return 0;
    if (signal_caught) {
        bool says_where = status == FDS_ERR_CANCELLED && err->text[0];
        fprintf(stderr, "fds %s: interrupted%s%s\n", name, says_where ? ": " : "",
                says_where ? cli_message(err->text, message) : "");
        return EXIT_SIGNAL + signal_caught;
    }
    fprintf(stderr, "fds %s: %s\n", name,
            err->text[0] ? cli_message(err->text, message) : fds_status_text(status));
    return fds_status_exit_code(status);
}

static char *command_line;

static int run(const cli_command *command, int argc, char **argv) {
    static const fds_events events = {.log = on_log, .progress = on_progress};
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (is_help(argv[i])) {
            cli_help(command);
            return 0;
        }
    }
    fds_error err = {0};
    cli_args args = {.more = calloc((size_t)argc + 1, sizeof *args.more), .events = &events};
    args.command = command_line ? command_line : "fds";
    args.params = command->job ? fds_params_create(command->job) : NULL;
    fds_status status = args.more && (args.params || !command->job)
                            ? cli_parse(command, argc, argv, &args, &err)
                            : FDS_ERR_NOMEM;
    current = command->name;
    is_quiet = args.quiet;
    catch_signals();
    if (status == FDS_OK)
        status = command->run(&args, &err);
    fds_terminal_clear();
    fds_params_free(args.params);
    free(args.more);
    return status == FDS_OK ? args.exit_code : finish(command->name, status, &err);
}

static int help_group(const char *group) {
    printf("usage: fds %s COMMAND ... [options]\n\n", group);
    const char *examples = NULL;
    for (size_t i = 0; cli_commands[i]; i++) {
        if (strncmp(cli_commands[i]->name, group, strlen(group)) != 0)
            continue;
        cli_wrap(cli_commands[i]->summary, printf("  fds %-22s", cli_commands[i]->name), 28);
        examples = examples ? examples : cli_commands[i]->examples;
    }
    printf("\nExample:\n%.*s\n", (int)strcspn(examples, "\n"), examples);
    return 0;
}

/* fds help [--man] [COMMAND...], fds help --markdown */
static int help(int argc, char **argv) {
    bool is_man = argc > 0 && strcmp(argv[0], "--man") == 0;
    char name[64] = "";
    if (argc == 1 && strcmp(argv[0], "--markdown") == 0) {
        cli_markdown();
        return 0;
    }
    for (int i = is_man; i < argc; i++)
        snprintf(name + strlen(name), sizeof name - strlen(name), "%s%s", *name ? " " : "",
                 argv[i]);
    const cli_command *command = find_command(name);
    if (*name && !command)
        return is_group(name) ? help_group(name) : fail_unknown("", name);
    if (is_man)
        cli_man(command);
    else if (command)
        cli_help(command);
    else
        cli_help_all();
    return 0;
}

static int dispatch(int argc, char **argv) {
    const char *first = argc > 1 ? argv[1] : NULL, *second = argc > 2 ? argv[2] : NULL;
    if (!first) {
        fprintf(stderr, "fds: a command is missing: see fds help\n");
        return EXIT_USAGE;
    }
    if (is_help(first) || strcmp(first, "help") == 0)
        return help(argc - 2, argv + 2);
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0 ||
        strcmp(first, "version") == 0) {
        printf("fds %s (engine: %s, processors: %u)\n", fds_version(), fds_isa(), fds_processors());
        return 0;
    }
    if (strcmp(first, "completion") == 0) {
        fds_error err = {0};
        return finish("completion", cli_completion(second, &err), &err);
    }
    char name[64]; /* of two words before one: fds serve, fds serve key */
    snprintf(name, sizeof name, "%s %s", first, second ? second : "");
    if (find_command(name))
        return run(find_command(name), argc - 3, argv + 3);
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
    return fail_unknown(first, second);
}

/* Whoever started us may have closed the standard descriptors: files must not get their numbers. */
static void open_standard_files(void) {
    for (int fd = 0; fd >= 0 && fd <= STDERR_FILENO;)
        fd = open("/dev/null", O_RDWR) + 1;
}

/* OpenMP's threads spin for 3 ms while they wait for each other. Beside other busy processes that
 * makes training an explainer tens of times slower; 100 us cost little on an idle machine. libgomp
 * reads how long only when it is loaded, so the program starts itself once more. */
static void shorten_waits(char **argv) {
    if (!getenv("GOMP_SPINCOUNT") && !getenv("OMP_WAIT_POLICY") &&
        setenv("GOMP_SPINCOUNT", "10000", 0) == 0)
        execv("/proc/self/exe", argv); /* if that fails, only the waits are longer */
}

int main(int argc, char **argv) {
    if (argc > 1 && (strcmp(argv[1], "fit") == 0 || strcmp(argv[1], "bench") == 0 ||
                     strcmp(argv[1], "update") == 0 || strcmp(argv[1], "forget") == 0))
        shorten_waits(argv);
    open_standard_files();
    if (argc > 0)
        argv[0] = "fds";
    command_line = cli_quote(argc, (const char *const *)argv);
    int code = dispatch(argc, argv);
    free(command_line);
    /* a full disk shows only now */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "fds: cannot write to standard output: %s\n", strerror(errno));
        code = code ? code : EXIT_FAILED;
    }
    fds_ranks_end(code);
    return code;
}
