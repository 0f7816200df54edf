/* SPDX-License-Identifier: Apache-2.0
 *
 * The command, written on the public headers alone. A subcommand parses, calls, prints.
 *
 *   main.c   which subcommand, signals, exit codes      args.c   options and their mistakes
 *   help.c   help, manual pages, completion             print.c  names, numbers, tables, JSON
 *   check.c  whether an output can be written           cmd_*.c  the subcommands
 *
 * Most options are parameters of the library: their names, ranges, defaults and help come from its
 * table (fds_params_describe). A parameter "loss_bound" is the option --loss-bound.
 */
#ifndef FDS_CLI_H
#define FDS_CLI_H

#include "fds.h"
#include "fds/advanced.h"
#include "fds/eval.h"

#include <jansson.h>

#define CLI_TRY(call)                    \
    do {                                 \
        fds_status try_status_ = (call); \
        if (try_status_ != FDS_OK)       \
            return try_status_;          \
    } while (0)

#define CLI_COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- options ---- */

enum { CLI_ALARM = 3 }; /* exit code of an audit that alarms */

/* What the words of the command line say; texts stay those of main. */
typedef struct cli_args {
    const char *operand; /* the first argument that is no option */
    const char **more;   /* the others, where the subcommand takes several */
    size_t more_count;
    fds_params *params; /* NULL for a subcommand without a job */
    const char *output, *png, *table, *compare, *from, *export_task, *role, *account, *login;
    const char *top, *count, *columns; /* numbers, checked where they are used */
    const char *ref, *key, *since, *until, *reason, *operators, *format, *vkey, *period,
        *delta;                             /* of a ledger */
    const char *ledger, *report, *proposal; /* of an audit */
    const char *part;                       /* of a table: "3/8" */
    bool is_private, mpi, all, estimate, json, jsonl, quiet;
    int exit_code;       /* where nothing has failed */
    const char *command; /* the whole command line, quoted as a shell needs it */
    const fds_events *events;
} cli_args;

/* An option of the command's own. */
typedef struct cli_option {
    const char *name; /* without the dashes */
    char letter;      /* or 0 */
    size_t at;        /* offset in cli_args: of a bool where value is NULL, else of a text */
    const char *value, *help;
} cli_option;

#define CLI_OWN(letter_, name_, field, value_, help_)                                       \
    {                                                                                       \
        .name = name_, .letter = letter_, .at = offsetof(cli_args, field), .value = value_, \
        .help = help_                                                                       \
    }

typedef struct cli_command cli_command;
struct cli_command {
    const char *name;         /* "data show" */
    const char *job;          /* whose parameters are options; NULL: none */
    const char *operand;      /* "DATA"; NULL: it takes none */
    bool takes_more;          /* operands after the first */
    const char *instead;      /* a parameter that takes the place of the operand; or NULL */
    const char *missing;      /* after "DATA is missing: ", what would be right; NULL: it may be */
    const char *usage;        /* after the name, one line */
    const char *summary;      /* one line of fds --help */
    const char *about;        /* paragraphs of its own help, one per line; they are wrapped */
    void (*more_about)(void); /* prints more of them; or NULL */
    const char *examples;
    const cli_option *own;
    size_t own_count;
    fds_status (*run)(cli_args *args, fds_error *err);
};

extern const cli_command cli_data_get, cli_data_show, cli_data_audit, cli_train, cli_value, cli_fit,
    cli_explain, cli_pay, cli_bench, cli_serve, cli_serve_key, cli_serve_login, cli_audit,
    cli_audit_watch, cli_audit_duplicates, cli_audit_labels, cli_ledger[11], cli_privacy[2],
    cli_table[4], cli_update, cli_forget;
extern const cli_command *const cli_commands[]; /* NULL-terminated */

/* Fills args from the words after the name of the subcommand. */
fds_status cli_parse(const cli_command *command, int argc, char **argv, cli_args *args,
                     fds_error *err);
/* The options that every subcommand has beside the parameters. */
const cli_option *cli_every_option(size_t *count);
/* A number from 1 to most, usual where text is NULL. */
fds_status cli_number(const char *option, const char *text, size_t most, size_t usual, size_t *out,
                      fds_error *err);

/* ---- help ---- */

void cli_help(const cli_command *command);
void cli_help_all(void);
/* A manual page in roff (command NULL: of the whole); completion for "bash", "zsh" or "fish". */
void cli_man(const cli_command *command);
void cli_markdown(void); /* docs/parameters.md */
fds_status cli_completion(const char *shell, fds_error *err);
/* Prints text in lines of less than 80 columns, each beginning at column indent; at is the column
 * where the cursor is now. A newline in text begins a new line. */
void cli_wrap(const char *text, int at, int indent);

/* ---- results ---- */

__attribute__((format(printf, 3, 4))) fds_status cli_fail(fds_error *err, fds_status status,
                                                          const char *format, ...);
/* calloc; on failure NULL and err filled. */
void *cli_alloc(size_t count, size_t size, fds_error *err);
/* `loss_bound` in a message of the library becomes --loss-bound; returns out. */
enum { CLI_MESSAGE_SIZE = 1024 };
const char *cli_message(const char *text, char out[CLI_MESSAGE_SIZE]);

/* Words as a shell takes them, quoted where needed; the caller frees them. NULL: no memory. */
char *cli_quote(int count, const char *const *words);
/* A name from data, in exactly width columns (0: as many as it needs, at most 60): cut with "..."
 * where too long, padded on the right, control characters shown as "?". Returns out. */
#define CLI_NAME_SIZE 256
const char *cli_name(const char *name, int width, char out[CLI_NAME_SIZE]);
int cli_columns(const char *text); /* how many columns it takes */
/* "2,002" and "16.1 MB"; both return out. */
#define CLI_NUMBER_SIZE 32
const char *cli_count(uint64_t count, char out[CLI_NUMBER_SIZE]);
const char *cli_bytes(uint64_t bytes, char out[CLI_NUMBER_SIZE]);

/* Parses what the library describes as JSON; on failure NULL and err filled. */
json_t *cli_json(const char *text, fds_error *err);
/* Members of objects in objects, "game.coalitions"; "", 0, NaN and NULL where there are none. */
const json_t *cli_get(const json_t *root, const char *path);
const char *cli_get_text(const json_t *root, const char *path);
uint64_t cli_get_count(const json_t *root, const char *path);
double cli_get_number(const json_t *root, const char *path);
bool cli_get_flag(const json_t *root, const char *path);
/* Shows a report of the library, and frees it: as it is with --json, else by print. */
fds_status cli_show(const cli_args *args, char *text,
                    void (*print)(const cli_args *args, const json_t *report), fds_error *err);
/* Prints a text of the library, or an object with members added to it, on stdout. */
fds_status cli_print_text(char *text, fds_error *err); /* frees it */
/* Saves values if asked to, prints them, as JSON or by show, and frees them. */
fds_status cli_give(const cli_args *args, fds_result *result, size_t top,
                    fds_status (*show)(const cli_args *args, const fds_result *result, size_t top,
                                       fds_error *err),
                    fds_error *err);
fds_status cli_print_json(json_t *root, fds_error *err); /* lets go of it; NULL: no memory */

/* The lines on data, network, players and groups. */
enum { CLI_WIDTH = 11 };
/* What --until-error has reached, for predictions or inputs; nothing without it. */
void cli_print_until(const json_t *until, const char *of);
void cli_print_problem(const json_t *about);

/* A ranking of players; widths come from all of them. */
typedef struct cli_columns_of_players {
    int player, label, provider; /* 0: no such column */
    bool is_regression;
    bool has_samples; /* players have several samples: their number stands for the label */
} cli_player_columns;
cli_player_columns cli_measure_players(const fds_result *result);
/* Both end without a newline, after the last of these columns; the return value is their width. */
int cli_print_players_head(const cli_player_columns *columns);
void cli_print_player(const fds_result *result, const cli_player_columns *columns, size_t rank,
                      size_t player);
/* What was predicted for an input and is explained. */
void cli_print_prediction(const fds_result *result, size_t prediction);
/* A value as it is shown, and the width of a column of them. Those of a regression may be of any size. */
const char *cli_value_text(const fds_result *result, double value, char out[CLI_NUMBER_SIZE]);
int cli_value_width(const fds_result *result);
/* The lines about the run and its answers; seconds: NaN for those of the result. */
fds_status cli_print_answers(const fds_result *result, size_t inputs, double seconds,
                             fds_error *err);

/* ---- checks before any work ---- */

/* Whether path can be written: it ends in one of endings (".csv|.npy"; NULL: anything), its folder is
 * there and takes files, it is no folder or device itself, and it is none of the inputs. */
fds_status cli_check_output(const char *option, const char *path, const char *endings,
                            const cli_args *args, fds_error *err);
/* The same for a folder, which need not be there. */
fds_status cli_check_folder(const char *option, const char *path, fds_error *err);

/* The output folder: that of -o, else DATA.ending here, without DATA's own ending. */
void cli_name_folder(const cli_args *args, const char *ending, char *folder, size_t size);

/* ---- MPI ---- */

#define CLI_OWN_MPI                                                                         \
    CLI_OWN(0, "mpi", mpi, NULL,                                                            \
            "divide the work among the processes of an MPI job (mpirun -n 8 fds ...); the " \
            "default under Open MPI's mpirun")
/* Joins the job, if this is a process of one. */
fds_status cli_ranks_begin(const cli_args *args, fds_error *err);

/* ---- what update and forget share ---- */

/* The lines on sub-models that were reused and trained, and on the problem. */
void cli_print_reused(const json_t *report);

/* ---- fds value --utilities ---- */

/* Values of games from a file; top: how many players to show. */
fds_status cli_value_utilities(const cli_args *args, size_t top, fds_error *err);

/* ---- what explain and pay share ---- */

fds_status cli_answer_check(const cli_args *args, fds_error *err);
#define CLI_ANSWER_ABOUT                                                                           \
    "RUN is a folder that fds fit has made. IMAGE is a PNG or JPEG file of the size of the run's " \
    "samples; --rows takes new samples from a CSV or NPY file; --index takes samples of the "      \
    "run's "                                                                                       \
    "data, whose true labels are known."

#endif
