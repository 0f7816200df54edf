/* SPDX-License-Identifier: Apache-2.0
 * fds explain: what each player contributed to each prediction, from a fitted run; and what it shares with pay. */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TOP = 5, FIGURE_COLUMNS = 10 };

static const cli_option own[] = {
    CLI_OWN('o', "output", output, "FILE",
            "output file of all values, .csv, .npy or .json [no file]"),
    CLI_OWN(0, "png", png, "FILE",
            "draw a figure: a row per input with its ten greatest contributors, or bars if inputs "
            "are no images"),
    CLI_OWN(0, "jsonl", jsonl, NULL,
            "answer line by line: each line of standard input is a new sample, a JSON object with "
            "the columns of the run's data or an array of its numbers; each answer is a line of "
            "JSON"),
    CLI_OWN(0, "top", top, "N", "number of greatest and of lowest contributors to show [5]"),
};

/* ---- what explain and pay share ---- */

fds_status cli_answer_check(const cli_args *args, fds_error *err) {
    static const char *const of_data[] = {"data", "label", "provider", "labels"};
    char index[16], rows[16], value[16];
    CLI_TRY(fds_params_get(args->params, "index", index, sizeof index, err));
    CLI_TRY(fds_params_get(args->params, "rows", rows, sizeof rows, err));
    bool has_index = strcmp(index, "auto") != 0, has_rows = strcmp(rows, "auto") != 0;
    bool has_new =
        fds_params_get(args->params, "new_player", value, sizeof value, NULL) == FDS_OK &&
        strcmp(value, "auto") != 0; /* which needs the data too; pay has none */
    if ((args->more_count > 0) + has_index + has_rows > 1)
        return cli_fail(err, FDS_ERR_USAGE, "give pictures, --index or --rows, only one of them");
    if (!args->more_count && !has_index && !has_rows)
        return cli_fail(err, FDS_ERR_USAGE,
                        "nothing to explain: give an image, --index or --rows, for example "
                        "--index 0");
    for (size_t i = 0; i < CLI_COUNT(of_data) && !has_index && !has_new; i++) {
        CLI_TRY(fds_params_get(args->params, of_data[i], value, sizeof value, err));
        if (strcmp(value, "auto") != 0)
            return cli_fail(err, FDS_ERR_USAGE, "--%s needs --index%s", of_data[i],
                            strcmp(of_data[i], "label") == 0
                                ? "; to explain another label: --target LABEL"
                                : "");
    }
    return FDS_OK;
}

/* ---- text ---- */

static void print_value(const fds_result *r, double value, double error) {
    char text[2][CLI_NUMBER_SIZE];
    printf("  %*s  \u00b1 %s", cli_value_width(r), cli_value_text(r, value, text[0]),
           cli_value_text(r, error, text[1]));
}

static void print_place(const fds_result *r, const cli_player_columns *w, bool has_check, size_t k,
                        size_t rank, size_t player) {
    cli_print_player(r, w, rank, player);
    print_value(r, fds_result_value(r, k, player), fds_result_error(r, k, player));
    if (has_check)
        print_value(r, fds_result_check(r, k, player), fds_result_check_error(r, k, player));
    putchar('\n');
}

static void print_input(const fds_result *r, const cli_player_columns *w, bool has_check, size_t k,
                        size_t top, const size_t *order) {
    /* "..." for one or two players saves nothing */
    size_t n = fds_result_players(r), shown = n > 2 * top + 2 ? top : n;
    cli_print_prediction(r, k);
    if (has_check)
        printf("correlation with the sub-models' answer: %.3f\n",
               fds_result_check_correlation(r, k));
    cli_print_players_head(w);
    printf("  %*s  %s", cli_value_width(r), "value",
           has_check ? "\u00b1 error  " : "standard error");
    if (has_check)
        printf("  %*s  \u00b1 error", cli_value_width(r), "bank");
    putchar('\n');
    for (size_t rank = 0; rank < shown; rank++)
        print_place(r, w, has_check, k, rank, order[rank]);
    if (shown < n)
        printf("   ...\n");
    for (size_t rank = shown < n ? n - top : n; rank < n; rank++)
        print_place(r, w, has_check, k, rank, order[rank]);
    putchar('\n');
}

/* ---- line by line ---- */

/* Lines of standard input. A FILE would not hear a signal while it waits. */
typedef struct {
    char *data;
    size_t used, capacity, line; /* line: bytes of the current one, with its end */
} lines;

/* Waits for input, until a signal asks to stop. */
static fds_status wait_for_input(const cli_args *args, fds_error *err) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    const fds_progress nothing = {.stage = "wait", .unit = "lines"}; /* of 0: not shown */
    int ready;
    do {
        if (args->events->progress(args->events->user, &nothing))
            return cli_fail(err, FDS_ERR_CANCELLED, "no more lines are read");
        ready = poll(&input, 1, 200);
    } while (ready == 0 || (ready < 0 && errno == EINTR));
    return FDS_OK;
}

/* The next line, NUL-terminated in place; NULL: there is none. */
static fds_status next_line(const cli_args *args, lines *in, char **out, fds_error *err) {
    char *end;
    memmove(in->data, in->data + in->line, in->used - in->line);
    in->used -= in->line;
    in->line = 0;
    *out = NULL;
    for (ssize_t got = 1; !(end = memchr(in->data, '\n', in->used)) && got > 0;) {
        if (in->used + 1 >= in->capacity) {
            char *grown = realloc(in->data, in->capacity * 2);
            if (!grown)
                return cli_fail(err, FDS_ERR_NOMEM, "out of memory");
            in->data = grown;
            in->capacity *= 2;
        }
        CLI_TRY(wait_for_input(args, err));
        got = read(STDIN_FILENO, in->data + in->used, in->capacity - in->used - 1);
        in->used += got > 0 ? (size_t)got : 0;
    }
    in->line = end ? (size_t)(end - in->data) + 1 : in->used;
    in->data[end ? in->line - 1 : in->used] = 0;
    *out = in->line ? in->data : NULL;
    return FDS_OK;
}

/* The one input of an answer as a line of JSON; number: of the line that asked, from 1. */
static fds_status print_line(const fds_result *r, size_t number, fds_error *err) {
    char *text = NULL;
    CLI_TRY(fds_result_json(r, &text, err));
    json_t *json = json_loads(text, 0, NULL);
    json_t *input = json_array_get(json_object_get(json, "inputs"), 0);
    bool is_numbered = json_object_set_new(input, "line", json_integer((json_int_t)number)) == 0;
    char *line = is_numbered ? json_dumps(input, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
    json_decref(json);
    fds_text_free(text);
    if (!line)
        return cli_fail(err, FDS_ERR_NOMEM, "out of memory");
    bool is_printed = puts(line) >= 0 && fflush(stdout) == 0;
    free(line);
    return is_printed ? FDS_OK : cli_fail(err, FDS_ERR_IO, "cannot write to standard output");
}

static fds_status answer_line(const cli_args *args, fds_run *run, const char *text, size_t number,
                              fds_error *err) {
    fds_input *input = NULL;
    fds_result *result = NULL;
    fds_status status = fds_input_json(run, text, &input, err);
    if (status == FDS_OK)
        status = fds_run_explain(run, input, args->params, args->events, &result, err);
    if (status == FDS_OK)
        status = print_line(result, number, err);
    fds_result_free(result);
    fds_input_free(input);
    return status;
}

/* A line that cannot be answered is answered by {"error": text, "line": number}; the next one may be
 * right. A mistake that all lines would have ends the command before the first. */
static fds_status answer_lines(const cli_args *args, fds_error *err) {
    fds_run *run = NULL;
    char *line = NULL, message[CLI_MESSAGE_SIZE];
    size_t number = 0;
    lines in = {.data = cli_alloc(1 << 16, 1, err), .capacity = 1 << 16};
    fds_status status =
        in.data ? fds_run_open(args->operand, args->params, &run, err) : FDS_ERR_NOMEM;
    if (status == FDS_OK)
        status = fds_run_explain_prepare(run, args->params, args->events, err);
    while (status == FDS_OK && (status = next_line(args, &in, &line, err)) == FDS_OK && line) {
        number++;
        if (!line[strspn(line, " \t\r\n")])
            continue;
        status = answer_line(args, run, line, number, err);
        if (status == FDS_OK || status == FDS_ERR_IO || status == FDS_ERR_NOMEM ||
            status == FDS_ERR_CANCELLED)
            continue;
        json_t *json = json_pack("{s:s, s:I}", "error", cli_message(err->text, message), "line",
                                 (json_int_t)number);
        status = json_dumpf(json, stdout, JSON_COMPACT) == 0 && puts("") >= 0 && fflush(stdout) == 0
                     ? FDS_OK
                     : cli_fail(err, FDS_ERR_IO, "cannot write to standard output");
        json_decref(json);
    }
    free(in.data);
    fds_run_free(run);
    return status;
}

/* ---- all of it ---- */

typedef struct {
    const cli_args *args;
    fds_run *run;
    fds_input *input;
    size_t inputs, done;
    fds_result_writer *file, *text; /* or NULL */
    fds_result *last;               /* answers that were shown last */
    size_t top, *order;             /* order (players) */
    bool has_check;
    double seconds, since_s; /* of explaining; when it went on */
} job;

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool print_piece(void *user, const char *text, size_t size) {
    (void)user;
    return fwrite(text, 1, size, stdout) == size;
}

static fds_status show_text(job *j, fds_error *err) {
    const cli_player_columns w = cli_measure_players(j->last);
    if (!j->order)
        j->order = cli_alloc(fds_result_players(j->last), sizeof *j->order, err);
    if (!j->order)
        return FDS_ERR_NOMEM;
    for (size_t k = 0; k < fds_result_predictions(j->last); k++) {
        CLI_TRY(fds_result_rank(j->last, k, j->order, err));
        print_input(j->last, &w, j->has_check, k, j->top, j->order);
    }
    return FDS_OK;
}

/* JSON comes before the file, which is replaced once nothing else can fail; text comes after it. */
static fds_status show(void *user, fds_result *answers, fds_error *err) {
    job *j = user;
    fds_result_free(j->last);
    j->last = answers;
    j->done += fds_result_predictions(answers);
    j->seconds += now_s() - j->since_s;
    fds_terminal_clear();
    bool is_last = j->done == j->inputs;
    if (j->text)
        CLI_TRY(fds_result_writer_add(j->text, answers, err));
    if (j->text && is_last)
        CLI_TRY(fds_result_writer_finish(j->text, err));
    if (j->file)
        CLI_TRY(fds_result_writer_add(j->file, answers, err));
    if (j->file && is_last)
        CLI_TRY(fds_result_writer_finish(j->file, err));
    if (!j->text)
        CLI_TRY(show_text(j, err));
    j->since_s = now_s();
    return FDS_OK;
}

/* A figure needs all answers at once. */
static fds_status draw(job *j, fds_error *err) {
    fds_result *all;
    CLI_TRY(fds_run_explain(j->run, j->input, j->args->params, j->args->events, &all, err));
    fds_status status = fds_run_draw(j->run, j->input, all, FIGURE_COLUMNS, j->args->png, err);
    if (status == FDS_OK)
        return show(j, all, err);
    fds_result_free(all);
    return status;
}

static fds_status print_end(job *j, fds_error *err) {
    const cli_args *args = j->args;
    if (j->text)
        return putchar('\n') == '\n' ? FDS_OK
                                     : cli_fail(err, FDS_ERR_IO, "cannot write to standard output");
    CLI_TRY(cli_print_answers(j->last, j->inputs, j->seconds, err));
    if (args->output)
        printf("%-*s %s\n", CLI_WIDTH, "written", args->output);
    if (args->png)
        printf("%-*s %s\n", CLI_WIDTH, "figure", args->png);
    return FDS_OK;
}

static fds_status work(job *j, fds_error *err) {
    const cli_args *args = j->args;
    char check[8];
    CLI_TRY(fds_params_get(args->params, "check", check, sizeof check, err));
    j->has_check = strcmp(check, "true") == 0;
    CLI_TRY(fds_run_open(args->operand, args->params, &j->run, err));
    CLI_TRY(args->more_count ? fds_input_pictures(j->run, args->more, args->more_count,
                                                  args->params, &j->input, err)
                             : fds_input_open(j->run, args->params, args->events, &j->input, err));
    j->inputs = fds_input_count(j->input);
    if (args->output)
        CLI_TRY(fds_result_writer_open(args->output, j->inputs, &j->file, err));
    if (args->json)
        CLI_TRY(fds_result_writer_print(j->inputs, print_piece, NULL, &j->text, err));
    j->since_s = now_s();
    CLI_TRY(args->png
                ? draw(j, err)
                : fds_run_explain_each(j->run, j->input, args->params, show, j, args->events, err));
    return print_end(j, err);
}

static void free_job(job *j) {
    free(j->order);
    fds_result_writer_free(j->file);
    fds_result_writer_free(j->text);
    fds_result_free(j->last);
    fds_input_free(j->input);
    fds_run_free(j->run);
}

static fds_status run(cli_args *args, fds_error *err) {
    job j = {.args = args};
    if (args->jsonl) {
        char index[8], rows[8];
        CLI_TRY(fds_params_get(args->params, "index", index, sizeof index, err));
        CLI_TRY(fds_params_get(args->params, "rows", rows, sizeof rows, err));
        if (args->json || args->png || args->output || args->more_count ||
            strcmp(index, "auto") != 0 || strcmp(rows, "auto") != 0)
            return cli_fail(err, FDS_ERR_USAGE,
                            "--jsonl reads samples from standard input and prints their answers; "
                            "leave out images, --index, --rows, --json, --png and -o");
        return answer_lines(args, err);
    }
    CLI_TRY(cli_answer_check(args, err));
    CLI_TRY(cli_number("top", args->top, 1000000, TOP, &j.top, err));
    if (args->png)
        CLI_TRY(cli_check_output("--png", args->png, ".png", args, err));
    if (args->output)
        CLI_TRY(cli_check_output("-o", args->output, ".csv|.npy|.json", args, err));
    fds_status status = work(&j, err);
    free_job(&j);
    return status;
}

const cli_command cli_explain = {
    .name = "explain",
    .job = "explain",
    .operand = "RUN",
    .takes_more = true,
    .missing = "name the folder that fds fit made, for example: fds explain mnist.run --index 0",
    .usage = "RUN (IMAGE... | --index WHICH | --rows FILE) [options]",
    .summary = "show what each player contributed to a prediction",
    .about = "Prints the prediction of a run's service model, and how much every player's data "
             "contributed to it: the Shapley values of the predicted label's probability, with "
             "standard errors. Trains nothing, except for --new-player. The values for an input "
             "sum to what all players together "
             "add to the probability.\n\n" CLI_ANSWER_ABOUT,
    .examples = "  fds explain mnist.run --index 0..9 --png figure.png\n"
                "  fds explain mnist.run seven.png --target 1 -o values.csv\n"
                "  fds explain sales.run --rows new.csv --png bars.png\n"
                "  echo '{\"price\": 9.5}' | fds explain sales.run --jsonl\n",
    .own = own,
    .own_count = CLI_COUNT(own),
    .run = run,
};
