/* SPDX-License-Identifier: Apache-2.0
 * fds serve: runs behind HTTP, until SIGTERM or SIGINT.  fds serve key: a key for one who may ask.
 * fds serve login: a name and a password for one who uses the page. */
#include "cli.h"

#include "fds/serve.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { WAIT_MS = 100, MOST_PASSWORD = 1100 };

/* ---- fds serve ---- */

static volatile sig_atomic_t has_hung_up;

static void note_hang_up(int number) {
    (void)number;
    has_hung_up = 1;
}

static void print_line(void *user, const char *line) {
    (void)user;
    fprintf(stderr, "%s\n", line);
}

/* Until a signal asks to stop; what SIGHUP brings is in the log. */
static void wait_for_end(const cli_args *args, fds_server *server) {
    const fds_progress nothing = {.stage = "serve", .unit = "requests"}; /* of 0: not shown */
    while (!args->events->progress(args->events->user, &nothing)) {
        if (has_hung_up) {
            has_hung_up = 0;
            fds_server_reload(server, NULL);
        }
        poll(NULL, 0, WAIT_MS); /* a signal ends it early */
    }
}

static fds_status run(cli_args *args, fds_error *err) {
    fds_server *server = NULL;
    struct sigaction hang_up = {.sa_handler = note_hang_up, .sa_flags = SA_RESTART};
    sigemptyset(&hang_up.sa_mask);
    sigaction(SIGHUP, &hang_up, NULL);
    CLI_TRY(fds_server_start(args->params, args->quiet ? NULL : print_line, NULL, &server, err));
    if (args->json)
        printf("{\"address\": \"%s\", \"port\": %u}\n", fds_server_address(server),
               fds_server_port(server));
    else
        printf("%s\n", fds_server_address(server));
    fflush(stdout); /* whoever started us waits for it */
    wait_for_end(args, server);
    fds_server_stop(server);
    return FDS_OK;
}

const cli_command cli_serve = {
    .name = "serve",
    .job = "serve",
    .usage = "--model NAME=RUN... [options]",
    .summary = "answer and explain predictions over HTTP",
    .about =
        "Serves runs by the Open Inference Protocol, which the clients of Triton, KServe and "
        "MLServer speak. The model NAME answers label and probabilities; NAME.explain also says "
        "what each player contributed. With a ledger every prediction is paid before it is "
        "answered, and the providers of the data are credited. Prints its address, then a line of "
        "JSON per request on standard error. SIGTERM answers what has begun and ends; SIGHUP opens "
        "runs and keys anew. docs/serve.md has the endpoints.",
    .examples = "  fds serve --model mnist=mnist.run\n"
                "  fds serve --model mnist=mnist.run --keys keys.jsonl --ledger mnist.ledger "
                "--price 0.01\n",
    .run = run,
};

/* ---- fds serve key ---- */

static const cli_option key_own[] = {
    CLI_OWN(0, "role", role, "customer|provider|auditor|operator",
            "what the key is for [customer]"),
    CLI_OWN(0, "account", account, "NAME",
            "whose key it is: the customer in the ledger (required)"),
};

static fds_status run_key(cli_args *args, fds_error *err) {
    char key[FDS_SERVE_KEY];
    const char *role = args->role ? args->role : "customer";
    if (!args->account)
        return cli_fail(err, FDS_ERR_USAGE, "--account is missing: whose key is it?");
    CLI_TRY(fds_serve_key_add(args->operand, role, args->account, key, err));
    if (args->json)
        return cli_print_json(
            json_pack("{s:s, s:s, s:s}", "role", role, "account", args->account, "key", key), err);
    if (!args->quiet)
        fprintf(stderr, "fds serve key: keep it; it is not stored, and cannot be shown again\n");
    puts(key);
    return FDS_OK;
}

const cli_command cli_serve_key = {
    .name = "serve key",
    .operand = "FILE",
    .missing = "name the file of keys, for example: fds serve key keys.jsonl --account acme",
    .usage = "FILE --account NAME [--role ROLE]",
    .summary = "make a key for one who may ask a server",
    .about = "Prints a new key, and adds its SHA-256 to a file of keys, which fds serve takes by "
             "--keys and reads again on SIGHUP. To withdraw a key, remove its line.",
    .examples = "  fds serve key keys.jsonl --account acme\n"
                "  fds serve key keys.jsonl --role operator --account alice\n",
    .own = key_own,
    .own_count = CLI_COUNT(key_own),
    .run = run_key,
};

/* ---- fds serve login ---- */

static const cli_option login_own[] = {
    CLI_OWN(0, "name", login, "NAME", "the login (required)"),
    CLI_OWN(0, "role", role, "customer|provider|auditor|operator",
            "what the login is for [customer]"),
    CLI_OWN(0, "account", account, "NAME", "whose account it is [that of the login's name]"),
};

/* A line without its newline; false: there is none, or it is too long. */
static bool read_line(char line[MOST_PASSWORD]) {
    if (!fgets(line, MOST_PASSWORD, stdin))
        return false;
    size_t size = strcspn(line, "\r\n");
    bool is_whole = line[size] != 0;
    line[size] = 0;
    return is_whole || size < MOST_PASSWORD - 1;
}

/* From a terminal, which does not show it. */
static bool ask(const char *question, const struct termios *shown, char line[MOST_PASSWORD]) {
    struct termios hidden = *shown;
    hidden.c_lflag &= ~(tcflag_t)ECHO;
    fputs(question, stderr);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
    bool is_read = read_line(line);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, shown);
    fputc('\n', stderr);
    return is_read;
}

static fds_status read_password(char password[MOST_PASSWORD], fds_error *err) {
    struct termios shown;
    char again[MOST_PASSWORD];
    bool is_terminal = tcgetattr(STDIN_FILENO, &shown) == 0;
    bool is_read = is_terminal
                       ? ask("password: ", &shown, password) && ask("again: ", &shown, again)
                       : read_line(password);
    bool is_same = !is_terminal || !is_read || strcmp(password, again) == 0;
    explicit_bzero(again, sizeof again);
    if (!is_read)
        return cli_fail(err, FDS_ERR_USAGE, "the password is missing, or too long");
    return is_same ? FDS_OK : cli_fail(err, FDS_ERR_USAGE, "the two passwords differ");
}

static fds_status run_login(cli_args *args, fds_error *err) {
    char password[MOST_PASSWORD];
    const char *role = args->role ? args->role : "customer";
    if (!args->login)
        return cli_fail(err, FDS_ERR_USAGE, "--name is missing: who logs in?");
    CLI_TRY(read_password(password, err));
    fds_status status =
        fds_serve_login_add(args->operand, role, args->account, args->login, password, err);
    explicit_bzero(password, sizeof password);
    CLI_TRY(status);
    const char *account = args->account ? args->account : args->login;
    if (args->json)
        return cli_print_json(
            json_pack("{s:s, s:s, s:s}", "role", role, "account", account, "login", args->login),
            err);
    if (!args->quiet)
        printf("%s logs in as %s of %s\n", args->login, role, account);
    return FDS_OK;
}

const cli_command cli_serve_login = {
    .name = "serve login",
    .operand = "FILE",
    .missing = "name the file of keys, for example: fds serve login keys.jsonl --name ann",
    .usage = "FILE --name NAME [--role ROLE] [--account NAME]",
    .summary = "give a name and a password to one who uses the page",
    .about =
        "Asks for a password twice, or reads it as one line from standard input, and adds the "
        "login with the password's argon2id to a file of keys, which fds serve takes by --keys "
        "and reads again on SIGHUP. To withdraw a login, remove its line; SIGHUP then ends its "
        "sessions.",
    .examples = "  fds serve login keys.jsonl --name ann --role operator\n"
                "  fds serve login keys.jsonl --name north@example.com --role provider "
                "--account north\n",
    .own = login_own,
    .own_count = CLI_COUNT(login_own),
    .run = run_login,
};
