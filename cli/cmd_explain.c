/* SPDX-License-Identifier: Apache-2.0
 * fds explain: what each player contributed to each prediction, from a fitted run. */
#include "answer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOP_DEFAULT = 5, FIGURE_COLUMNS = 10 };

typedef struct {
    cli_common common;
    fds_data_options data;
    answer_ask ask;
    const char *output, *png, *by;
    bool check;
    uint64_t top;
} explain_options;

static const cli_option explain_table[] = {
    {CLI_ROW(UINT, explain_options, top, 0, "top", "N",
             "how many players are shown, of the greatest and of the lowest contributors [5]"),
     .min = 1, .max = 1000000},
    {CLI_ROW(STRING, explain_options, output, 'o', "output", "FILE",
             "where the values of all players go: .csv, .npy or .json, as it ends [no file]")},
    {CLI_ROW(STRING, explain_options, png, 0, "png", "FILE",
             "draw a figure: a row an input, then its ten greatest contributors")},
    {CLI_ROW(CHOICE, explain_options, by, 0, "by", "explainer|bank",
             "who answers: the explainer, or the sub-models of a run fitted with --keep-models "
             "[explainer]")},
    {CLI_ROW(FLAG, explain_options, check, 0, "check", NULL,
             "ask those sub-models too, and print their values beside the explainer's")},
    ANSWER_OPTIONS(explain_options),
};

static fds_status check_options(const explain_options *o, const answer *a, fds_error *err) {
    CLI_TRY(answer_check(a, err));
    if (o->check && a->by == FDS_ANSWERER_BANK)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--check compares the explainer with the bank: not with --by bank");
    if (o->png)
        CLI_TRY(answer_check_output(a, "--png", o->png, err));
    if (!o->output)
        return FDS_OK;
    fds_status status = fds_values_check_path(o->output, err);
    if (status != FDS_OK)
        return cli_fail(err, status, "-o %s", err->text);
    return answer_check_output(a, "-o", o->output, err);
}

/* ---- files ---- */

/* (count, n) to (n, count), as files have values. */
static void turn(const double *from, size_t count, size_t n, double *to) {
    for (size_t i = 0; i < count; i++)
        for (size_t p = 0; p < n; p++)
            to[p * count + i] = from[i * n + p];
}

static fds_status save_turned(const answer *a, const char *path, double *values, double *errors,
                              const char **names, uint32_t *labels, fds_error *err) {
    size_t n = a->info.players;
    turn(a->answers.values, a->count, n, values);
    turn(a->answers.errors, a->count, n, errors);
    for (size_t i = 0; i < n; i++) {
        names[i] = fds_run_player_name(a->run, i);
        labels[i] = fds_run_player_label(a->run, i);
    }
    for (uint32_t c = 0; c < a->info.classes; c++)
        names[n + c] = fds_run_class_name(a->run, c);
    const fds_values all = {.players = n,
                            .player_names = names,
                            .player_labels = labels,
                            .classes = a->info.classes,
                            .class_names = names + n,
                            .tests = a->count,
                            .test_samples = a->index,
                            .target_labels = a->answers.labels,
                            .values = values,
                            .errors = errors};
    return fds_values_save(&all, path, err);
}

static fds_status save(const answer *a, const char *path, fds_error *err) {
    size_t n = a->info.players;
    double *values = cli_alloc(a->count * n, sizeof *values, err);
    double *errors = cli_alloc(a->count * n, sizeof *errors, err);
    const char **names = cli_alloc(n + a->info.classes, sizeof *names, err);
    uint32_t *labels = cli_alloc(n, sizeof *labels, err);
    fds_status status = values && errors && names && labels
                            ? save_turned(a, path, values, errors, names, labels, err)
                            : FDS_ERR_NOMEM;
    free(values);
    free(errors);
    free(names);
    free(labels);
    return status;
}

/* ---- text ---- */

static void print_place(const answer *a, const answer_widths *w, size_t i, size_t rank,
                        size_t player) {
    size_t at = i * a->info.players + player;
    answer_print_player(a, w, rank, player);
    printf("  %9.6f  \u00b1 %.6f", a->answers.values[at], a->answers.errors[at]);
    if (a->is_checked)
        printf("  %9.6f  \u00b1 %.6f", a->bank_values[at], a->bank_errors[at]);
    putchar('\n');
}

/* Of what the explainer and the bank say about the players, for one input. */
static double correlation(const answer *a, size_t i) {
    size_t n = a->info.players;
    const double *x = a->answers.values + i * n, *y = a->bank_values + i * n;
    double mx = 0, my = 0, xx = 0, xy = 0, yy = 0;
    for (size_t p = 0; p < n; p++) {
        mx += x[p] / (double)n;
        my += y[p] / (double)n;
    }
    for (size_t p = 0; p < n; p++) {
        xx += (x[p] - mx) * (x[p] - mx);
        xy += (x[p] - mx) * (y[p] - my);
        yy += (y[p] - my) * (y[p] - my);
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : NAN;
}

static void print_input(const explain_options *o, const answer *a, const answer_widths *w, size_t i,
                        const size_t *order) {
    size_t n = a->info.players, top = (size_t)o->top;
    size_t shown = n > 2 * top ? top : n;
    answer_print_input(a, i);
    if (a->is_checked)
        printf("correlation with the sub-models' answer: %.3f\n", correlation(a, i));
    answer_print_head(w);
    printf("  %9s  %s", "value", a->is_checked ? "\u00b1 error  " : "standard error");
    if (a->is_checked)
        printf("  %9s  \u00b1 error", "bank");
    putchar('\n');
    for (size_t rank = 0; rank < shown; rank++)
        print_place(a, w, i, rank, order[rank]);
    if (shown < n)
        printf("   ...\n");
    for (size_t rank = shown < n ? n - top : n; rank < n; rank++)
        print_place(a, w, i, rank, order[rank]);
}

static fds_status show_text(const explain_options *o, const answer *a, size_t *order,
                            fds_error *err) {
    const answer_widths w = answer_measure(a);
    answer_print(a);
    for (size_t i = 0; i < a->count; i++) {
        CLI_TRY(answer_rank(a->answers.values + i * a->info.players, a->info.players, order, err));
        print_input(o, a, &w, i, order);
    }
    if (o->output || o->png)
        putchar('\n');
    if (o->output)
        printf("values written to %s\n", o->output);
    if (o->png)
        printf("figure drawn in %s\n", o->png);
    return FDS_OK;
}

/* ---- JSON ---- */

static json_t *json_place(const answer *a, size_t i, size_t rank, size_t player) {
    size_t at = i * a->info.players + player;
    json_t *place =
        json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "rank", (json_int_t)(rank + 1), "player",
                  cli_json_text(fds_run_player_name(a->run, player)), "label",
                  cli_json_text(fds_run_class_name(a->run, fds_run_player_label(a->run, player))),
                  "provider", answer_json_text(fds_run_player_provider(a->run, player)), "value",
                  cli_json_real(a->answers.values[at]), "standard_error",
                  cli_json_real(a->answers.errors[at]));
    if (a->is_checked &&
        (json_object_set_new(place, "bank_value", cli_json_real(a->bank_values[at])) != 0 ||
         json_object_set_new(place, "bank_standard_error", cli_json_real(a->bank_errors[at])) !=
             0)) {
        json_decref(place);
        return NULL;
    }
    return place;
}

static json_t *json_input(const answer *a, size_t i, const size_t *order) {
    json_t *input = answer_json_input(a, i), *list = json_array();
    bool is_fine = input && list;
    for (size_t rank = 0; rank < a->info.players && is_fine; rank++)
        is_fine = json_array_append_new(list, json_place(a, i, rank, order[rank])) == 0;
    if (is_fine && a->is_checked)
        is_fine = json_object_set_new(input, "correlation", cli_json_real(correlation(a, i))) == 0;
    if (is_fine)
        is_fine = json_object_set(input, "ranking", list) == 0;
    json_decref(list);
    if (is_fine)
        return input;
    json_decref(input);
    return NULL;
}

static fds_status show_json(const explain_options *o, const answer *a, size_t *order,
                            fds_error *err) {
    json_t *root = answer_json(a), *list = json_array();
    bool is_fine = root && list;
    for (size_t i = 0; i < a->count && is_fine; i++) {
        const double *values = a->answers.values + i * a->info.players;
        is_fine = answer_rank(values, a->info.players, order, err) == FDS_OK &&
                  json_array_append_new(list, json_input(a, i, order)) == 0;
    }
    is_fine = is_fine && json_object_set(root, "inputs", list) == 0 &&
              json_object_set_new(root, "file", answer_json_text(o->output)) == 0 &&
              json_object_set_new(root, "png", answer_json_text(o->png)) == 0;
    json_decref(list);
    if (!is_fine) {
        json_decref(root);
        root = NULL;
    }
    return cli_json_print(root, err);
}

/* ---- all of it ---- */

static fds_status show(const explain_options *o, const answer *a, fds_error *err) {
    size_t *order = cli_alloc(a->info.players, sizeof *order, err);
    fds_status status = !order           ? FDS_ERR_NOMEM
                        : o->common.json ? show_json(o, a, order, err)
                                         : show_text(o, a, order, err);
    free(order);
    return status;
}

static fds_status run_answer(const explain_options *o, answer *a, fds_error *err) {
    CLI_TRY(check_options(o, a, err));
    CLI_TRY(answer_open(a, err));
    if (o->by && strcmp(o->by, "explainer") == 0 && a->by == FDS_ANSWERER_BANK)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--by explainer: %s has none, its sub-models answer themselves",
                        o->common.operand);
    if (o->png && !a->info.is_image)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--png: %s was fitted on feature vectors, not on images",
                        o->common.operand);
    CLI_TRY(answer_solve(a, err));
    if (o->output)
        CLI_TRY(save(a, o->output, err));
    if (o->png)
        CLI_TRY(fds_run_draw(a->run, a->inputs, a->index, a->count, a->truth, &a->answers,
                             FIGURE_COLUMNS, o->png, err));
    return show(o, a, err);
}

static fds_status run_explain(const cli_command *self, int argc, char **argv, fds_error *err) {
    explain_options o = {.top = TOP_DEFAULT};
    cli_term term;
    o.common.more = cli_alloc((size_t)argc, sizeof *o.common.more, err);
    fds_status status = o.common.more ? cli_parse(self, argc, argv, &o, err) : FDS_ERR_NOMEM;
    cli_term_init(&term, self, o.common.quiet);
    answer a = {.common = &o.common,
                .data = &o.data,
                .ask = &o.ask,
                .term = &term,
                .by =
                    o.by && strcmp(o.by, "bank") == 0 ? FDS_ANSWERER_BANK : FDS_ANSWERER_EXPLAINER,
                .is_checked = o.check};
    if (status == FDS_OK)
        status = run_answer(&o, &a, err);
    cli_term_clear(&term);
    answer_free(&a);
    free(o.common.more);
    return status;
}

const cli_command cli_explain = {
    .name = "explain",
    .operand = "RUN",
    .needs = "name the folder that fds fit made, for example: fds explain mnist.run --index 0",
    .usage = "RUN (IMAGE... | --index WHICH) [options]",
    .summary = "what each player contributed to a prediction, from a fitted run",
    .about = "Asks the service model of a run for its prediction, and the run's explainer what "
             "every player's data contributed to it: the Shapley values of the predicted label's "
             "probability, with standard errors. Nothing is trained. The values for an input sum "
             "to what all players together add to the probability.\n\n" ANSWER_ABOUT,
    .examples = "  fds explain mnist.run --index 0..9 --png figure.png\n"
                "  fds explain mnist.run seven.png --target 1 -o values.csv\n",
    .options = explain_table,
    .option_count = CLI_COUNT(explain_table),
    .run = run_explain,
};
