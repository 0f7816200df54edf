/* SPDX-License-Identifier: Apache-2.0
 *
 * The command, written on fds.h alone. A subcommand is one function: parse, call the library,
 * print.
 *
 *   main.c    which subcommand, signals, exit codes     args.c  options and their mistakes
 *   help.c    help texts, from the same tables          term.c  progress, notes, warnings
 *   print.c   names, JSON, output files                 setup.c data, players, test samples
 *   groups.c  groups of players                         answer.c what explain and pay share
 *   cmd_*.c   the subcommands; value_*.c, fit_*.c and bench_*.c are parts of theirs
 */
#ifndef FDS_CLI_H
#define FDS_CLI_H

#include "fds.h"

#include <jansson.h>

#define CLI_TRY(call)                    \
    do {                                 \
        fds_status try_status_ = (call); \
        if (try_status_ != FDS_OK)       \
            return try_status_;          \
    } while (0)

#define CLI_COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- options ---- */

typedef enum cli_type {
    CLI_FLAG,   /* bool */
    CLI_STRING, /* const char * */
    CLI_CHOICE, /* const char *, one of the words of value, "adam|sgd" */
    CLI_UINT,   /* uint64_t from min to max */
    CLI_FLOAT,  /* double from min (above it, where above is set) to max */
} cli_type;

typedef struct cli_option {
    const char *name; /* without the dashes */
    char letter;      /* or 0 */
    cli_type type;
    size_t at;         /* offset of the variable in the subcommand's struct of options */
    const char *value; /* what the help calls its value; NULL for a flag */
    const char *help;
    double min, max;
    bool above;
} cli_option;

/* What every subcommand understands; the first member of its struct of options. */
typedef struct cli_common {
    const char *operand; /* the first argument that is no option */
    const char **more;   /* the others, where the subcommand has made room for as many as argc */
    size_t more_count;
    bool help, json, quiet;
    uint64_t seed, threads;
} cli_common;

/* Counts in JSON must survive readers that keep every number as a double. */
#define CLI_EXACT_MAX 9007199254740991.0

/* The fields of a row that every option has; a number's range follows it. */
#define CLI_ROW(kind, strct, member, letter_, name_, value_, help_)                      \
    .type = CLI_##kind, .at = offsetof(strct, member), .letter = letter_, .name = name_, \
    .value = value_, .help = help_

/* The options that say how DATA is read, for a struct with a member "fds_data_options data". */
#define CLI_DATA_OPTIONS(strct)                                                            \
    {CLI_ROW(STRING, strct, data.label_column, 0, "label", "COLUMN",                       \
             "CSV: the column of the labels [label]")},                                    \
        {CLI_ROW(STRING, strct, data.provider_column, 0, "provider", "COLUMN",             \
                 "CSV: the column of the providers [provider, where there is one]")},      \
    {                                                                                      \
        CLI_ROW(STRING, strct, data.labels_file, 0, "labels", "FILE",                      \
                "NPY: the labels of a single .npy file [the file beside it, by its name]") \
    }

typedef struct cli_command cli_command;
struct cli_command {
    const char *name;    /* "data show" */
    const char *operand; /* "DATA" */
    const char *needs;   /* after "DATA is missing: ", what would be right */
    const char *usage;   /* after the name, one line */
    const char *summary; /* one line of fds --help */
    const char *about;   /* paragraphs of its own help, one a line; they are wrapped */
    const char *examples;
    const cli_option *options;
    size_t option_count;
    fds_status (*run)(const cli_command *self, int argc, char **argv, fds_error *err);
};

extern const cli_command cli_data_get, cli_data_show, cli_train, cli_value, cli_fit, cli_explain,
    cli_pay, cli_bench;

/* Fills options (beginning with a cli_common) from argv[0 .. argc-1], the words after the name of
 * the subcommand. The strings stay the caller's. */
fds_status cli_parse(const cli_command *command, int argc, char **argv, void *options,
                     fds_error *err);
/* The options that every subcommand has, a table like a subcommand's own. */
const cli_option *cli_common_options(size_t *count);
/* The name most like word, or NULL when none is near. names ends with NULL. */
const char *cli_nearest(const char *word, const char *const *names);
/* '; did you mean "adam"?', or nothing when no name is near; returns out. */
#define CLI_HINT_SIZE 96
const char *cli_hint(const char *word, const char *const *names, char out[CLI_HINT_SIZE]);

void cli_help(const cli_command *command);
/* Prints text in lines of less than 80 columns, each beginning at column indent; at is the column
 * where the cursor is now. A newline in text begins a new line. */
void cli_wrap(const char *text, int at, int indent);

/* ---- progress, notes, warnings: all on stderr ---- */

typedef struct cli_term {
    const char *command;
    bool quiet, is_terminal, drawn;
    double last_s; /* when something was last drawn */
    fds_events events;
} cli_term;

/* events points into term: term must stay where it is. */
void cli_term_init(cli_term *term, const cli_command *command, bool quiet);
/* Takes the bar away; before anything else is printed. */
void cli_term_clear(cli_term *term);
__attribute__((format(printf, 2, 3))) void cli_note(cli_term *term, const char *format, ...);
__attribute__((format(printf, 2, 3))) void cli_warn(cli_term *term, const char *format, ...);

void cli_catch_signals(void);
/* The signal that asked the command to stop, or 0. */
int cli_signal(void);
double cli_now_s(void);

/* ---- results ---- */

__attribute__((format(printf, 3, 4))) fds_status cli_fail(fds_error *err, fds_status status,
                                                          const char *format, ...);
/* calloc; on failure NULL and err filled. */
void *cli_alloc(size_t count, size_t size, fds_error *err);

/* A name from data, in exactly width columns (0: as many as it needs, at most 60): cut with "..."
 * where too long, padded on the right, control characters shown as "?". Returns out. */
#define CLI_NAME_SIZE 256
const char *cli_name(const char *name, int width, char out[CLI_NAME_SIZE]);
int cli_columns(const char *text); /* how many columns it takes */

/* "2,002" and "16.1 MB"; both return out. */
#define CLI_NUMBER_SIZE 32
const char *cli_count(uint64_t count, char out[CLI_NUMBER_SIZE]);
const char *cli_bytes(uint64_t bytes, char out[CLI_NUMBER_SIZE]);

/* What the process holds in memory now, and the most that it has held. */
uint64_t cli_resident_bytes(uint64_t *peak);

/* JSON of any text and any number: bytes that are not UTF-8 become "?", NaN and infinity null. */
json_t *cli_json_text(const char *text);
json_t *cli_json_real(double value);
json_t *cli_json_float(float value); /* 0.1f as 0.1, not as 0.100000001490 */
/* Prints root on stdout and frees it; NULL stands for no memory. */
fds_status cli_json_print(json_t *root, fds_error *err);

/* Finds out before any work whether path can be written: its folder is there and takes files, it
 * is no folder or device itself, and it is not the data. option is named in the error. */
fds_status cli_check_output(const char *option, const char *path, const char *data, fds_error *err);
/* The same for a folder, which need not be there. */
fds_status cli_check_folder(const char *option, const char *path, fds_error *err);
/* Writes all of text in the place of an old file, or leaves that as it was. */
fds_status cli_write_file(const char *path, const char *text, size_t size, fds_error *err);
/* fds_data_open, with a suggestion where the name is nearly that of a known set. */
fds_status cli_open_data(const char *where, const fds_data_options *options, fds_dataset **train,
                         fds_dataset **test, fds_error *err);

/* ---- data, players and test samples ---- */

/* The help of --players and --model, which several commands have. */
#define CLI_PLAYERS_HELP                                                                         \
    "whose samples it learns from: N samples, as many of each class, each a player; all: every " \
    "sample a player; providers: every provider a player [100, or all when there are fewer]"
#define CLI_MODEL_HELP                                                                          \
    "lenet5, cnn, mlp, logistic, or layers such as conv:8x3p1,relu,maxpool,fc:classes [lenet5 " \
    "for images, mlp otherwise]"

/* What the options ask for; NULL and 0 where nothing is given. */
typedef struct cli_want {
    const cli_common *common;
    const fds_data_options *data;
    const char *players, *model;
    const char *test_option; /* the name of the option for test_count */
    uint64_t test_count;
    uint64_t test_most; /* where test_count is not given, at most so many; 0: all */
    bool no_network;    /* none is needed */
    bool has_inputs;    /* samples that no player owns are needed as inputs of an explainer */
    uint64_t input_count;
    uint64_t player_most, input_most; /* in the same way; 0: as fds fit has them */
} cli_want;

typedef struct cli_setup {
    cli_want want;
    bool by_provider;
    size_t wanted; /* players, where a number is given */

    fds_dataset *train, *test; /* test: NULL when DATA has none */
    const char *network;
    size_t weights;                                  /* of the network; 0: there is none */
    uint32_t *samples, *held_samples, *test_samples; /* test_samples: NULL when all are tested */
    size_t sample_count, held, test_count; /* held: samples of train kept back for testing */
    uint32_t *inputs;
    size_t input_count;
    fds_players *players;
} cli_setup;

/* The mistakes that show without the data. */
fds_status cli_setup_check(cli_setup *setup, fds_error *err);
/* Opens the data and chooses; warns of classes and providers left without a sample, unless term is
 * NULL. */
fds_status cli_setup_make(cli_setup *setup, cli_term *term, fds_error *err);
void cli_setup_free(cli_setup *setup);
/* What the test samples are of: the test part, or DATA itself where it has none. */
const fds_dataset *cli_setup_tested(const cli_setup *setup);
const char *cli_setup_kind(const cli_setup *setup); /* of players: "points" or "providers" */
/* The lines on data, network and players, with names padded to width; the last as JSON. */
void cli_setup_print(const cli_setup *setup, int width);
json_t *cli_setup_json_players(const cli_setup *setup);

/* ---- groups of players ---- */

#define CLI_GROUP_HELP                                                                     \
    "groups of players: label, provider, model (k-means on the service model's answers), " \
    "model:N, or a file of lines PLAYER,GROUP [label]"

/* Whether players are grouped by a model: "model" or "model:N". */
bool cli_is_by_model(const char *by);
/* by: as --group has it. params: how a service model is trained, where one is needed. */
fds_status cli_groups_make(const char *by, const cli_setup *setup, const fds_utility_params *params,
                           cli_term *term, fds_groups **out, fds_error *err);

#endif
