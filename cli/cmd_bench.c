/* SPDX-License-Identifier: Apache-2.0
 * fds bench: methods compared on data, with a report. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME = 19, SHOWN_SHARES = 4, FOLDER_SIZE = 4096 };

static const char *const paper_sets[] = {"mnist", "cifar10", "fashion-mnist"};

static const cli_option own[] = {
    CLI_OWN('o', "output", output, "FOLDER",
            "output folder: the report and all its data [DATA.report]"),
    CLI_OWN(0, "compare", compare, "JSON",
            "report.json of an earlier run: show what has changed beyond noise"),
    CLI_OWN(0, "export-task", export_task, "FOLDER",
            "write players, test samples and wrong labels of each case as NPY files for other "
            "programs, and stop; --values compares what these compute"),
    CLI_OWN_MPI,
};

/* ---- report.json ---- */

static fds_status read_report(const char *folder, json_t **out, fds_error *err) {
    char path[8192];
    json_error_t error;
    snprintf(path, sizeof path, "%s/report.json", folder);
    *out = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!*out)
        return cli_fail(err, FDS_ERR_FORMAT, "%s: line %d: %s", path, error.line, error.text);
    return FDS_OK;
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* object[first][second], a number, or NaN. */
static double number_of(const json_t *object, const char *first, const char *second) {
    const json_t *value = json_object_get(json_object_get(object, first), second);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* The losses of a row by its own utility function, most valuable removed, correctly classified. */
static const json_t *own_losses(const json_t *row) {
    size_t i;
    json_t *losses;
    json_array_foreach(json_object_get(row, "losses"), i, losses) {
        if (strcmp(text_of(losses, "utility"), text_of(row, "utility")) == 0 &&
            strcmp(text_of(losses, "removal"), "top") == 0 &&
            strcmp(text_of(losses, "set"), "correct") == 0)
            return losses;
    }
    return NULL;
}

/* The score of a row by models of the game's own seed and the row's own utility function, or NaN. */
static double own_score(const json_t *row) {
    size_t i;
    json_t *score;
    json_array_foreach(json_object_get(row, "lds"), i, score) {
        if (strcmp(text_of(score, "utility"), text_of(row, "utility")) == 0 &&
            json_is_number(json_object_get(score, "mean")))
            return json_number_value(json_object_get(score, "mean"));
    }
    return NAN;
}

/* ---- tables ---- */

/* In width columns, blank where there is none. */
static void print_number(double value, int width, int decimals) {
    if (isnan(value))
        printf("%*s", width, "");
    else
        printf("%*.*f", width, decimals, value);
}

/* Seconds and milliseconds with three figures that matter. */
static void print_time(double value, int width) {
    print_number(value, width, value < 10 ? 2 : value < 100 ? 1 : 0);
}

/* Whether a row is evaluated by other models than most. */
static bool is_converged(const json_t *row) {
    return strcmp(text_of(row, "utility"), "retrain") == 0;
}

static void print_row(const json_t *row, size_t shares) {
    char name[CLI_NAME_SIZE];
    const json_t *losses = own_losses(row), *means = json_object_get(losses, "mean");
    printf("%s%s", cli_name(text_of(row, "method"), NAME - 2, name),
           is_converged(row) ? " *" : "  ");
    for (size_t i = 0; i < shares; i++) {
        const json_t *mean = json_array_get(means, i);
        print_number(json_is_number(mean) ? json_number_value(mean) : NAN, 7, 2);
    }
    print_number(own_score(row), 7, 3);
    print_number(number_of(json_object_get(row, "agreement"), "correlation", "mean"), 7, 3);
    print_time(number_of(json_object_get(row, "timing"), "prepare_s", "mean"), 9);
    print_time(number_of(json_object_get(row, "timing"), "answer_ms", "mean"), 9);
    putchar('\n');
}

/* Of what was found, what value loss says; the page has the rest. */
static void print_findings(const json_t *data) {
    static const char about[] = "Value loss, ";
    size_t i;
    json_t *finding;
    json_array_foreach(json_object_get(data, "findings"), i, finding) {
        if (strncmp(text_of(finding, "about"), about, strlen(about)) != 0)
            continue;
        printf("\nBy %s:\n", text_of(finding, "about") + strlen(about));
        cli_wrap(text_of(finding, "text"), 0, 2);
    }
}

static void print_data(const json_t *data) {
    const json_t *shares = json_object_get(json_object_get(data, "settings"), "shares");
    size_t shown = json_array_size(shares), i;
    shown = shown < SHOWN_SHARES ? shown : SHOWN_SHARES;
    printf("\n%s: %lld players, %lld test samples, %zu seed%s\n", text_of(data, "name"),
           (long long)json_integer_value(json_object_get(data, "players")),
           (long long)json_integer_value(json_object_get(data, "tests")),
           json_array_size(json_object_get(data, "seeds")),
           json_array_size(json_object_get(data, "seeds")) == 1 ? "" : "s");
    printf("%-*s", NAME, "");
    for (i = 0; i < shown; i++)
        printf("%5.3g %%", 100 * json_number_value(json_array_get(shares, i)));
    printf("%7s%7s%9s%9s\n", "lds", "truth", "seconds", "ms");
    json_t *row;
    bool has_converged = false;
    json_array_foreach(json_object_get(data, "rows"), i, row) {
        print_row(row, shown);
        has_converged |= is_converged(row);
    }
    if (has_converged)
        printf("* by converged models, whose losses are greater; the others by 10 epochs\n");
    print_findings(data);
}

static fds_status show_report(const char *folder, bool is_json, fds_error *err) {
    json_t *report, *data;
    size_t i;
    CLI_TRY(read_report(folder, &report, err));
    if (is_json)
        return cli_print_json(report, err);
    printf("value loss on correctly classified test samples, by share of players removed\n"
           "lds: linear datamodeling score; truth: correlation with it; seconds to prepare;\n"
           "ms for a new sample\n");
    json_array_foreach(json_object_get(report, "data"), i, data) { print_data(data); }
    printf("\nreport  %s/report.html\n", folder);
    json_decref(report);
    return FDS_OK;
}

/* ---- what has changed ---- */

static void tell_change(void *user, const fds_bench_change *c) {
    size_t *count = user;
    char data[CLI_NAME_SIZE], method[CLI_NAME_SIZE], what[CLI_NAME_SIZE];
    if (!(*count)++)
        putchar('\n');
    printf("%s  %s  %s\n", cli_name(c->data, 14, data), cli_name(c->method, 16, method),
           cli_name(c->what, 44, what));
    if (isnan(c->before))
        return; /* the line above says it all */
    printf("    %.4g -> %.4g", c->before, c->after);
    if (isfinite(c->sigmas))
        printf(", %.1f standard errors", c->sigmas);
    else if (isnan(c->sigmas))
        printf(", of unknown error");
    putchar('\n');
}

static fds_status show_changes(const char *before, const char *folder, fds_error *err) {
    enum { SIGMAS = 3 };
    char after[8192];
    size_t count = 0, compared;
    snprintf(after, sizeof after, "%s/report.json", folder);
    CLI_TRY(fds_bench_compare(before, after, SIGMAS, tell_change, &count, &compared, err));
    char all[CLI_NUMBER_SIZE];
    printf("\n%zu of %s figures differ from %s\n"
           "by more than %d standard errors, or by more than 5 %% where these are not known\n",
           count, cli_count(compared, all), before, SIGMAS);
    return FDS_OK;
}

/* ---- before any work ---- */

static void ignore_change(void *user, const fds_bench_change *change) {
    (void)user;
    (void)change;
}

/* A report compared with itself has no changes: all that shows is whether it is one. */
static fds_status check_compare(const cli_args *args, const char *folder, fds_error *err) {
    char written[FOLDER_SIZE + 16];
    struct stat old, new;
    size_t unused;
    if (!args->compare)
        return FDS_OK;
    if (args->json)
        return cli_fail(err, FDS_ERR_USAGE, "--compare is for people: it does not go with --json");
    snprintf(written, sizeof written, "%s/report.json", folder);
    if (stat(args->compare, &old) == 0 && stat(written, &new) == 0 && old.st_dev == new.st_dev &&
        old.st_ino == new.st_ino)
        return cli_fail(
            err, FDS_ERR_USAGE,
            "--compare %s: this command writes that very file; copy it first, or use another -o",
            args->compare);
    return fds_bench_compare(args->compare, args->compare, 0, ignore_change, NULL, &unused, err);
}

/* "paper" stands for the paper's sets. */
static fds_status list_sets(const cli_args *args, const char ***out, size_t *count,
                            fds_error *err) {
    const char **sets =
        cli_alloc((args->more_count + 1) * CLI_COUNT(paper_sets), sizeof *sets, err);
    if (!sets)
        return FDS_ERR_NOMEM;
    *count = 0;
    for (size_t i = 0; i <= args->more_count; i++) {
        const char *word = i ? args->more[i - 1] : args->operand;
        if (strcmp(word, "paper") != 0)
            sets[(*count)++] = word;
        for (size_t s = 0; strcmp(word, "paper") == 0 && s < CLI_COUNT(paper_sets); s++)
            sets[(*count)++] = paper_sets[s];
    }
    *out = sets;
    return FDS_OK;
}

/* ---- all of it ---- */

static fds_status show_export(const cli_args *args, fds_error *err) {
    fds_terminal_clear();
    if (args->json)
        return cli_print_json(json_pack("{s:s}", "folder", args->export_task), err);
    printf("written  %s: a folder per case, described in its task.json\n", args->export_task);
    return FDS_OK;
}

static fds_status work(const cli_args *args, const char *folder, fds_error *err) {
    const char **sets;
    size_t count;
    CLI_TRY(list_sets(args, &sets, &count, err));
    fds_status status =
        args->export_task
            ? fds_bench_export(args->export_task, sets, count, args->params, args->events, err)
            : fds_bench(folder, sets, count, args->params, args->command, args->events, err);
    free(sets);
    CLI_TRY(status);
    if (args->export_task)
        return show_export(args, err);
    if (fds_ranks_number() > 0)
        return FDS_OK;
    fds_terminal_clear();
    CLI_TRY(show_report(folder, args->json, err));
    return args->compare ? show_changes(args->compare, folder, err) : FDS_OK;
}

static fds_status run(cli_args *args, fds_error *err) {
    char folder[FOLDER_SIZE];
    cli_name_folder(args, "report", folder, sizeof folder);
    CLI_TRY(cli_check_folder("-o", folder, err));
    if (args->export_task)
        CLI_TRY(cli_check_folder("--export-task", args->export_task, err));
    CLI_TRY(check_compare(args, folder, err));
    if (!args->export_task)
        CLI_TRY(cli_ranks_begin(args, err));
    return work(args, folder, err);
}

const cli_command cli_bench = {
    .name = "bench",
    .job = "bench",
    .operand = "DATA",
    .takes_more = true,
    .missing = "name fetched sets or paths, or \"paper\" for the paper's, for example: fds bench "
               "paper --quick",
    .usage = "(DATA... | paper) [options]",
    .summary = "compare methods on your data, with a report",
    .about =
        "Computes the values of the players of each data set by every method. Then, for each "
        "test sample, removes the players with the highest values, trains again, and measures how "
        "much the prediction suffers (the paper's value loss). Also measures the linear "
        "datamodeling score (LDS), the agreement with reference values, the flipped labels found, "
        "seconds and sub-models. FOLDER/report.html says what was found and shows all of it in one "
        "file; report.json and report.csv have every number.\n\n"
        "\"paper\" stands for mnist, cifar10 and fashion-mnist. A command that was interrupted or "
        "killed goes on where it stopped; numbers do not depend on --threads, since explainers "
        "are always trained on two.\n\n"
        "Methods: fds, afds, gfds, gfds+; bank, ls; the paper's baselines loo, tmc, "
        "group-testing, cs-shapley, freeshap; freeshap/sample, knn:5/sample; and the controls "
        "same-label and random.",
    .examples = "  fds bench paper --quick\n"
                "  fds bench mnist --methods afds,tmc,random --seeds 1 -o few.report\n"
                "  fds bench sales.csv --label outcome --compare before/report.json\n"
                "  fds bench iris.csv --quick --export-task iris.task\n"
                "  fds bench iris.csv --quick --values mine=values.npy\n"
                "  mpirun -n 3 fds bench mnist --seeds 3 --threads 1 -o mnist.report\n",
    .own = own,
    .own_count = CLI_COUNT(own),
    .run = run,
};
