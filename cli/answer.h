/* SPDX-License-Identifier: Apache-2.0
 *
 * What fds explain and fds pay share: a run, inputs from pictures or from data, the values of all
 * players for each, and tables of players by rank. */
#ifndef FDS_CLI_ANSWER_H
#define FDS_CLI_ANSWER_H

#include "cli.h"

typedef struct answer_ask {
    const char *index, *from, *target;
} answer_ask;

/* For a struct with members "fds_data_options data" and "answer_ask ask". */
#define ANSWER_OPTIONS(strct)                                                                    \
    {CLI_ROW(STRING, strct, ask.index, 0, "index", "WHICH",                                      \
             "samples of the data's test part (of the data itself, where it has none): 7, 0..9 " \
             "or 3,5,8")},                                                                       \
        {CLI_ROW(STRING, strct, ask.target, 0, "target", "LABEL",                                \
                 "which label's probability is explained: predicted, true, or the name of a "    \
                 "class [predicted]")},                                                          \
        {CLI_ROW(STRING, strct, ask.from, 0, "data", "DATA",                                     \
                 "with --index: where the data is now [where it was when the run was fitted]")}, \
        CLI_DATA_OPTIONS(strct)

#define ANSWER_ABOUT                                                                           \
    "RUN is a folder that fds fit has made. IMAGE is a PNG or JPEG file of the size that the " \
    "run's samples have; --index takes samples of its data instead, whose true labels are known."

typedef struct answer {
    const cli_common *common;
    const fds_data_options *data;
    const answer_ask *ask;
    cli_term *term;
    fds_answerer by;
    bool is_checked; /* ask the bank as well */

    fds_run *run;
    fds_run_info info;
    fds_dataset *train, *test, *pictures;
    const fds_dataset *inputs; /* one of them */
    uint32_t *index;           /* (count) samples of inputs */
    size_t count;
    uint32_t *truth;                   /* (count) true labels; NULL: not known */
    fds_answers answers;               /* all arrays */
    double *bank_values, *bank_errors; /* (count, players); NULL: not asked for */
    double seconds;                    /* that answering took */
} answer;

/* The mistakes that show without the run. */
fds_status answer_check(const answer *a, fds_error *err);
/* Opens the run and the inputs. */
fds_status answer_open(answer *a, fds_error *err);
/* All values. */
fds_status answer_solve(answer *a, fds_error *err);
void answer_free(answer *a);

/* FDS_ERR_USAGE when a path to be written is one of the pictures to be read, and as cli_check_output.
 */
fds_status answer_check_output(const answer *a, const char *option, const char *path,
                               fds_error *err);
static inline unsigned answer_threads(const answer *a) { return (unsigned)a->common->threads; }

/* "test sample 7", "sample 7" or the picture's path; returns out. */
#define ANSWER_NAME_SIZE 4200
const char *answer_input(const answer *a, size_t i, char out[ANSWER_NAME_SIZE]);
uint32_t answer_predicted(const answer *a, size_t i);
/* Indices 0 .. count-1 by falling value, those of equal values by number. */
fds_status answer_rank(const double *values, size_t count, size_t *order, fds_error *err);

/* The lines about the run and the answers; of an input: what was predicted and is explained. */
void answer_print(const answer *a);
void answer_print_input(const answer *a, size_t i);
/* The same as the beginning of a JSON object. */
json_t *answer_json(const answer *a);
json_t *answer_json_input(const answer *a, size_t i);
json_t *answer_json_text(const char *text_or_null);

/* Columns for players, as wide as their names need. */
typedef struct answer_widths {
    int player, label, provider; /* 0: no such column */
} answer_widths;

answer_widths answer_measure(const answer *a);
/* Both end without a newline, after the last of these columns. */
void answer_print_head(const answer_widths *w);
void answer_print_player(const answer *a, const answer_widths *w, size_t rank, size_t player);

#endif
