/* SPDX-License-Identifier: Apache-2.0
 * fds fit: the main job. A service model, sub-models on coalitions of the players, their values, and an explainer
 * that answers for any input; all in one folder, the run. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cli_option own[] = {
    CLI_OWN('o', "output", output, "RUN", "output folder (required, except with --estimate)"),
    CLI_OWN(0, "estimate", estimate, NULL,
            "measure for a few seconds, print the expected time, memory and disk, and stop"),
    CLI_OWN_MPI,
};

static void print_seconds(const json_t *seconds) {
    const char *stage;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)seconds, stage, value)
        printf("  %-13s %9.2f s\n", stage, json_number_value(value));
}

/* The lines that are known before any work. */
static void print_before(const json_t *r) {
    char count[CLI_NUMBER_SIZE];
    cli_print_problem(r);
    if (*cli_get_text(r, "group")) {
        printf("%-*s ", CLI_WIDTH, "groups");
        if (cli_get_count(r, "groups")) /* an estimate does not count them */
            printf("%s ", cli_count(cli_get_count(r, "groups"), count));
        printf("by %s\n", cli_get_text(r, "group"));
    }
    printf("%-*s %s: %s, coalitions by %s, adjusted by %s\n", CLI_WIDTH, "method",
           cli_get_text(r, "method"), cli_get_text(r, "utility"), cli_get_text(r, "sampler"),
           cli_get_text(r, "adjust"));
    printf("%-*s %s samples that no player owns\n", CLI_WIDTH, "inputs",
           cli_count(cli_get_count(r, "inputs"), count));
}

static void print_estimate(const cli_args *args, const json_t *r) {
    (void)args;
    char text[CLI_NUMBER_SIZE],
        accuracy[240] = "not known: no measurement is near these parameters";
    double seconds = cli_get_number(r, "seconds.total");
    if (seconds < 100)
        printf("%-*s about %.0f s\n", CLI_WIDTH, "time", seconds);
    else if (seconds < 100 * 60)
        printf("%-*s about %.0f minutes\n", CLI_WIDTH, "time", seconds / 60);
    else
        printf("%-*s about %.1f hours\n", CLI_WIDTH, "time", seconds / 3600);
    print_seconds(cli_get(r, "seconds"));
    printf("%-*s %s\n", CLI_WIDTH, "sub-models", cli_count(cli_get_count(r, "sub_models"), text));
    if (json_is_object(cli_get(r, "until_error")))
        printf("%-*s the first round of --until-error %g; more may follow\n", CLI_WIDTH, "",
               cli_get_number(r, "until_error.wanted"));
    printf("%-*s %s\n", CLI_WIDTH, "memory", cli_bytes(cli_get_count(r, "memory"), text));
    printf("%-*s %s\n", CLI_WIDTH, "disk", cli_bytes(cli_get_count(r, "disk"), text));
    if (cli_get_number(r, "accuracy") > 0)
        snprintf(accuracy, sizeof accuracy,
                 "expect a correlation of %.2f with the true values (measured with %s)",
                 cli_get_number(r, "accuracy"), cli_get_text(r, "accuracy_of"));
    cli_wrap(accuracy, printf("%-*s", CLI_WIDTH, "accuracy"), CLI_WIDTH + 1);
    print_before(r);
}

static void print_explainer(const json_t *r) {
    const char *name = cli_get_text(r, "explainer"), *reason = cli_get_text(r, "explainer_reason");
    char count[CLI_NUMBER_SIZE], text[500];
    bool is_bank = strcmp(name, "bank") == 0;
    if (cli_get_count(r, "probes"))
        snprintf(text, sizeof text, "%s: %s sub-models answer%s", name,
                 cli_count(cli_get_count(r, "probes"), count),
                 is_bank ? ", by least squares" : ", and a map from them to values");
    else if (is_bank)
        snprintf(text, sizeof text, "bank: all sub-models answer");
    else
        snprintf(text, sizeof text, "%s, %llu epochs, best epoch: %llu", name,
                 (unsigned long long)cli_get_count(r, "epochs"),
                 (unsigned long long)cli_get_count(r, "best_epoch"));
    size_t used = strlen(text);
    if (*reason)
        snprintf(text + used, sizeof text - used, " (chosen because %s)", reason);
    cli_wrap(text, printf("%-*s", CLI_WIDTH, "explainer"), CLI_WIDTH + 1);
}

static void print_report(const cli_args *args, const json_t *r) {
    (void)args;
    const char *name = cli_get_text(r, "run"), *utility = cli_get_text(r, "utility");
    const char *words[] = {name, "--index", "0", "--utility", utility};
    bool is_program = strncmp(utility, "command:", 8) == 0; /* a run does not start it by itself */
    char count[CLI_NUMBER_SIZE], *run = cli_quote(is_program ? 5 : 3, words);
    printf("%-*s %s\n", CLI_WIDTH, "run", name);
    printf("%-*s fds explain %s\n", CLI_WIDTH, "next", run ? run : name);
    free(run);
    if (json_is_number(cli_get(r, "service_r2")))
        printf("%-*s R2 %.3f on the inputs, %.3f on %s test samples%s\n", CLI_WIDTH, "service",
               cli_get_number(r, "service_r2"), cli_get_number(r, "test.r2"),
               cli_count(cli_get_count(r, "test.count"), count),
               cli_get_flag(r, "test.set_aside") ? " set aside" : "");
    else
        printf("%-*s accuracy %.1f %% on the inputs, %.1f %% on %s test samples%s\n", CLI_WIDTH,
               "service", 100 * cli_get_number(r, "service_accuracy"),
               100 * cli_get_number(r, "test.accuracy"),
               cli_count(cli_get_count(r, "test.count"), count),
               cli_get_flag(r, "test.set_aside") ? " set aside" : "");
    print_explainer(r);
    if (!isnan(cli_get_number(r, "agreement")))
        printf("%-*s %.3f correlation with least squares on validation inputs\n", CLI_WIDTH,
               "agreement", cli_get_number(r, "agreement"));
    bool are_samples = strcmp(cli_get_text(r, "players.kind"), "samples") == 0; /* of one label */
    if (are_samples && !isnan(cli_get_number(r, "agreement_within_class")))
        printf("%-*s %.3f over the players of the predicted label\n", CLI_WIDTH, "",
               cli_get_number(r, "agreement_within_class"));
    printf("%-*s %s%s\n", CLI_WIDTH, "sub-models", cli_count(cli_get_count(r, "sub_models"), count),
           cli_get_flag(r, "models_kept") ? ", kept" : "");
    cli_print_until(cli_get(r, "until_error"), "inputs");
    print_before(r);
    printf("%-*s by stage%s\n", CLI_WIDTH, "time",
           cli_get_flag(r, "resumed") ? " (the run was resumed)" : "");
    print_seconds(cli_get(r, "seconds"));
}

static fds_status run(cli_args *args, fds_error *err) {
    fds_problem *problem;
    char *text = NULL;
    if (!args->output && !args->estimate)
        return cli_fail(err, FDS_ERR_USAGE,
                        "-o RUN is missing: the output folder, for example -o mnist.run");
    CLI_TRY(fds_fit_check(args->params, err));
    if (!args->estimate)
        CLI_TRY(cli_check_folder("-o", args->output, err));
    CLI_TRY(cli_ranks_begin(args, err));
    CLI_TRY(fds_problem_open(args->params, args->events, &problem, err));
    if (fds_ranks_number() > 0) {
        fds_status served = fds_fit_serve(problem, args->params, args->events, err);
        fds_problem_free(problem);
        return served;
    }
    fds_status status =
        args->estimate ? fds_fit_estimate(problem, args->params, args->events, &text, err)
                       : fds_fit(args->output, problem, args->params, args->events, &text, err);
    fds_problem_free(problem);
    CLI_TRY(status);
    return cli_show(args, text, args->estimate ? print_estimate : print_report, err);
}

const cli_command cli_fit = {
    .name = "fit",
    .job = "fit",
    .operand = "DATA",
    .missing = "name a fetched set or a path, for example: fds fit mnist -o mnist.run",
    .usage = "DATA -o RUN [options]",
    .summary = "train a model and an explainer: what explain and pay need",
    .about =
        "Trains a service model on the players' samples, and sub-models on coalitions of "
        "them; computes the players' Shapley values for a few thousand inputs, and trains an "
        "explainer to give them for any input. The run, a folder, is then all that fds "
        "explain and fds pay need.\n\n"
        "An interrupted or killed command, given again, goes on where it stopped and ends with "
        "the same bits. (Those of the explainer depend on --threads and on the kind of "
        "processor.)\n\n"
        "DATA is the name of a fetched set (fds data get) or a path, as for fds data show.",
    .examples = "  fds fit mnist --players 100 -o mnist.run\n"
                "  fds fit sales.csv --label outcome --provider shop --players providers \\\n"
                "      --method afds --keep-models -o shops.run\n",
    .own = own,
    .own_count = CLI_COUNT(own),
    .run = run,
};
