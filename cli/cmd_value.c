/* SPDX-License-Identifier: Apache-2.0
 * fds value: what each player's data is worth for the test samples. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOP = 10, LOWEST = 3, MOST_TABLES = 1000 };

static const cli_option own[] = {
    CLI_OWN('o', "output", output, "FILE",
            "output file of all values, .csv, .npy or .json [no file]"),
    CLI_OWN(0, "table", table, "DIR",
            "folder that keeps the predictions of sub-models, to resume and to reuse [FILE.table "
            "beside "
            "the output; without -o DATA.table, or DATA.2.table and so on if that one has other "
            "data or "
            "parameters]"),
    CLI_OWN(0, "top", top, "N", "number of most valuable players to show [10]"),
    CLI_OWN(0, "estimate", estimate, NULL,
            "print how many sub-models it would train, memory and disk, and stop"),
    CLI_OWN_MPI,
};

/* ---- the ranking ---- */

/* The unit of values; those of classes are called as they are. */
static const char *score_name(const char *score) {
    return strcmp(score, "squared") == 0  ? "squared error"
           : strcmp(score, "kernel") == 0 ? "kernel score"
                                          : score;
}

static void print_place(const fds_result *r, const cli_player_columns *w, size_t rank,
                        size_t player) {
    char text[CLI_NUMBER_SIZE];
    double error = fds_result_mean_error(r, player);
    cli_print_player(r, w, rank, player);
    printf("  %*s", cli_value_width(r), cli_value_text(r, fds_result_mean(r, player), text));
    if (!fds_result_is_exact(r) && !isnan(error))
        printf("  \u00b1 %s", cli_value_text(r, error, text));
    putchar('\n');
}

static fds_status print_ranking(const fds_result *r, const json_t *about, size_t top,
                                fds_error *err) {
    size_t n = fds_result_players(r), shown = n > top + LOWEST ? top : n;
    uint64_t tests = cli_get_count(about, "tests");
    const cli_player_columns w = cli_measure_players(r);
    const char *scorer = cli_get_text(about, "baseline.settings.scorer");
    size_t *order = cli_alloc(n, sizeof *order, err);
    if (!order)
        return FDS_ERR_NOMEM;
    fds_status status = fds_result_rank(r, SIZE_MAX, order, err);
    if (*scorer && fds_result_is_mean(r))
        printf("Value (in %s) on %llu test sample%s:\n", score_name(scorer),
               (unsigned long long)tests, tests == 1 ? "" : "s");
    else if (fds_result_is_regression(r))
        printf("Mean value (in %s) for the %s of %llu test sample%s:\n",
               score_name(cli_get_text(about, "score")),
               strcmp(cli_get_text(about, "target"), "true") == 0 ? "true target" : "prediction",
               (unsigned long long)tests, tests == 1 ? "" : "s");
    else
        printf("Mean value (in probability) for the %s label of %llu test sample%s:\n",
               strcmp(cli_get_text(about, "target"), "true") == 0 ? "true" : "predicted",
               (unsigned long long)tests, tests == 1 ? "" : "s");
    cli_print_players_head(&w);
    printf("  %*s%s\n", cli_value_width(r), "value",
           fds_result_is_exact(r) || isnan(fds_result_mean_error(r, 0)) ? "" : "  standard error");
    for (size_t i = 0; i < shown && status == FDS_OK; i++)
        print_place(r, &w, i, order[i]);
    if (shown < n)
        printf("   ...\n");
    for (size_t i = shown < n ? n - LOWEST : n; i < n && status == FDS_OK; i++)
        print_place(r, &w, i, order[i]);
    free(order);
    return status;
}

/* ---- how it was computed ---- */

static bool is_retrain(const char *utility) { return strncmp(utility, "retrain", 7) == 0; }

static void print_method(const json_t *about) {
    char count[CLI_NUMBER_SIZE];
    const json_t *set = cli_get(about, "baseline.settings");
    if (set) {
        printf("%-*s %s by %s%s\n", CLI_WIDTH, "method", cli_get_text(about, "method"),
               cli_get_text(set, "scorer"),
               cli_get_flag(set, "per_sample") ? " for each test sample" : " on the test samples");
        if (cli_get_count(set, "permutations")) {
            printf("%-*s at most %s", CLI_WIDTH, "",
                   cli_count(cli_get_count(set, "permutations"), count));
            printf(" permutations");
            if (cli_get_number(set, "until") > 0)
                printf(", until 100 change values by less than %g %%",
                       100 * cli_get_number(set, "until"));
            putchar('\n');
        }
    } else if (*cli_get_text(about, "sampling.sampler")) {
        printf("%-*s %s by %s, %s, adjusted by %s\n", CLI_WIDTH, "coalitions",
               cli_count(cli_get_count(about, "sampling.coalitions"), count),
               cli_get_text(about, "sampling.sampler"),
               cli_get_flag(about, "sampling.is_paired") ? "in pairs" : "singly",
               cli_get_text(about, "sampling.adjust"));
        cli_print_until(cli_get(about, "sampling.until_error"), "predictions");
    } else {
        printf("%-*s %s, all that exact values need\n", CLI_WIDTH, "coalitions",
               cli_count(cli_get_count(about, "game.coalitions"), count));
    }
}

/* The lines that are known before any work. */
static void print_before(const json_t *about) {
    cli_print_problem(about);
    if (cli_get_count(about, "groups.count"))
        printf("%-*s %llu by %s\n", CLI_WIDTH, "groups",
               (unsigned long long)cli_get_count(about, "groups.count"),
               cli_get_text(about, "groups.by"));
    if (*cli_get_text(about, "game.utility"))
        printf("%-*s %s", CLI_WIDTH, cli_get_flag(about, "is_for_labels") ? "labels by" : "utility",
               cli_get_text(about, "game.utility"));
    if (cli_get_number(about, "game.parameters.lr") > 0)
        printf(" at learning rate %g", cli_get_number(about, "game.parameters.lr"));
    if (*cli_get_text(about, "game.utility"))
        putchar('\n');
    print_method(about);
}

static void print_sub_models(const json_t *game, const char *name) {
    char computed[CLI_NUMBER_SIZE], there[CLI_NUMBER_SIZE];
    uint64_t missing = cli_get_count(game, "missing"), all = cli_get_count(game, "coalitions");
    double seconds = cli_get_number(game, "seconds");
    printf("%-*s %s %s", CLI_WIDTH, name, cli_count(missing, computed),
           is_retrain(cli_get_text(game, "utility")) ? "trained" : "computed");
    if (missing)
        printf(" in %.2f s (%.0f per second)", seconds,
               seconds > 0 ? (double)missing / seconds : 0);
    printf(", %s were there already\n", cli_count(all - missing, there));
}

static void print_fit(const json_t *about) {
    const json_t *fit = cli_get(about, "fit");
    if (!json_is_object(fit))
        return;
    if (cli_get_flag(fit, "is_complete"))
        printf("%-*s of all coalitions that there are\n", CLI_WIDTH, "fit");
    else
        printf("%-*s predicts %.1f %% of the variance of held-out coalitions\n", CLI_WIDTH, "fit",
               100 * cli_get_number(fit, "explained"));
    if (strcmp(cli_get_text(about, "sampling.adjust"), "none") != 0)
        printf("%-*s %g for the fitted game, %g for the rest\n", CLI_WIDTH, "shrinkage",
               cli_get_number(fit, "shrink"), cli_get_number(fit, "shrink_rest"));
    if (json_is_object(cli_get(about, "surrogate")))
        printf("%-*s %s, with a share of %.2f\n", CLI_WIDTH, "surrogate",
               cli_get_text(about, "surrogate.utility"), cli_get_number(fit, "surrogate_share"));
    if (cli_get_number(fit, "ridge") > 0)
        printf("%-*s %g\n", CLI_WIDTH, "ridge", cli_get_number(fit, "ridge"));
}

static void print_found(const json_t *found, bool has_table) {
    char asked[CLI_NUMBER_SIZE], trained[CLI_NUMBER_SIZE], walked[CLI_NUMBER_SIZE];
    if (has_table)
        printf("%-*s %s asked for, %s computed\n", CLI_WIDTH, "sub-models",
               cli_count(cli_get_count(found, "asked"), asked),
               cli_count(cli_get_count(found, "trained"), trained));
    if (cli_get_count(found, "permutations")) {
        printf("%-*s %s permutations", CLI_WIDTH, "walked",
               cli_count(cli_get_count(found, "permutations"), walked));
        if (cli_get_number(found, "truncated") > 0)
            printf(", %.0f %% of their places truncated", 100 * cli_get_number(found, "truncated"));
        if (!isnan(cli_get_number(found, "change")))
            printf(", last change %.1f %%", 100 * cli_get_number(found, "change"));
        printf("%s\n", cli_get_flag(found, "converged") ? ": converged" : "");
    }
    if (cli_get_number(found, "lr") > 0)
        printf("%-*s %.4g, found by trying\n", CLI_WIDTH, "rate", cli_get_number(found, "lr"));
    printf("%-*s %.2f s\n", CLI_WIDTH, "time", cli_get_number(found, "seconds"));
}

static void print_diagnostics(const json_t *about, const cli_args *args) {
    const json_t *found = cli_get(about, "baseline.found");
    uint64_t tests = cli_get_count(about, "tests");
    print_before(about);
    if (json_is_object(found)) {
        print_found(found, cli_get_count(about, "game.coalitions") > 0);
    } else {
        print_sub_models(cli_get(about, "game"), "sub-models");
        if (json_is_object(cli_get(about, "surrogate")))
            print_sub_models(cli_get(about, "surrogate"), cli_get_text(about, "surrogate.utility"));
    }
    printf("%-*s %llu samples%s", CLI_WIDTH, "test", (unsigned long long)tests,
           cli_get_flag(about, "tests_set_aside") ? " set aside" : "");
    if (json_is_integer(cli_get(about, "correctly_classified")))
        printf(", %.1f %% correctly classified",
               100.0 * cli_get_number(about, "correctly_classified") / (double)tests);
    if (json_is_number(cli_get(about, "mean_squared_error")))
        printf(", mean squared error %.6g", cli_get_number(about, "mean_squared_error"));
    putchar('\n');
    if (*cli_get_text(about, "score") && json_is_number(cli_get(about, "utility_with_all")))
        printf("%-*s %.6g with no players, %.6g with all\n", CLI_WIDTH, "utility",
               cli_get_number(about, "utility_with_none"),
               cli_get_number(about, "utility_with_all"));
    else if (!json_is_object(found))
        printf("%-*s %.4f with no players, %.4f with all\n", CLI_WIDTH, "probability",
               cli_get_number(about, "probability_with_none"),
               cli_get_number(about, "probability_with_all"));
    print_fit(about);
    if (json_is_object(cli_get(about, "privacy")))
        printf("%-*s (%g, %g)-differentially private towards each other player\n"
               "%-*s noise of %.3g on each count; each command spends as much again\n",
               CLI_WIDTH, "privacy", cli_get_number(about, "privacy.epsilon"),
               cli_get_number(about, "privacy.delta"), CLI_WIDTH, "",
               cli_get_number(about, "privacy.sigma"));
    if (cli_get_number(about, "noise") > 0)
        printf("%-*s %.2g standard deviation of an answer\n", CLI_WIDTH, "noise",
               cli_get_number(about, "noise"));
    if (*cli_get_text(about, "game.table"))
        printf("%-*s %s\n", CLI_WIDTH, "table", cli_get_text(about, "game.table"));
    if (args->output)
        printf("%-*s %s\n", CLI_WIDTH, "written", args->output);
}

/* ---- what it would take ---- */

static void print_cost(const json_t *about, const json_t *game, const char *name) {
    char all[CLI_NUMBER_SIZE], missing[CLI_NUMBER_SIZE], disk[CLI_NUMBER_SIZE],
        left[CLI_NUMBER_SIZE];
    uint64_t coalitions = cli_get_count(game, "coalitions"),
             lacking = cli_get_count(game, "missing");
    bool is_most = json_is_object(cli_get(about, "baseline"));
    printf("%-*s %s%s %s (%s are there already)\n", CLI_WIDTH, name, is_most ? "at most " : "",
           cli_count(is_most ? coalitions : lacking, missing),
           is_retrain(cli_get_text(game, "utility")) ? "sub-models to train"
                                                     : "coalitions to compute",
           cli_count(coalitions - lacking, all));
    printf("%-*s %s%s (%s free)\n", CLI_WIDTH, "disk", is_most ? "up to " : "",
           cli_bytes(cli_get_count(game, "disk"), disk),
           cli_bytes(cli_get_count(game, "disk_free"), left));
}

static void print_estimate(const cli_args *args, const json_t *about) {
    char memory[CLI_NUMBER_SIZE];
    print_before(about);
    if (cli_get_count(about, "game.coalitions"))
        print_cost(about, cli_get(about, "game"), "to do");
    if (json_is_object(cli_get(about, "surrogate")))
        print_cost(about, cli_get(about, "surrogate"), cli_get_text(about, "surrogate.utility"));
    if (json_is_object(cli_get(about, "sampling.until_error")))
        printf("%-*s the first round of --until-error %g; more may follow\n", CLI_WIDTH, "",
               cli_get_number(about, "sampling.until_error.wanted"));
    if (cli_get_count(about, "memory"))
        printf("%-*s %s\n", CLI_WIDTH, "memory", cli_bytes(cli_get_count(about, "memory"), memory));
    if (args->output)
        printf("%-*s %s\n", CLI_WIDTH, "would write", args->output);
}

/* ---- all of it ---- */

static fds_status show(const cli_args *args, const fds_result *r, size_t top, fds_error *err) {
    json_t *about = cli_json(fds_result_describe(r), err);
    if (!about)
        return FDS_ERR_NOMEM;
    fds_status status = print_ranking(r, about, top, err);
    putchar('\n');
    print_diagnostics(about, args);
    json_decref(about);
    return status;
}

/* Without a file, tables of different questions lie beside each other: DATA.table, DATA.2.table... */
static void name_table(const cli_args *args, unsigned number, char out[4200]) {
    const char *start = strrchr(args->operand, '/');
    start = start && start[1] ? start + 1 : args->operand;
    if (args->table)
        snprintf(out, 4200, "%s", args->table);
    else if (args->output)
        snprintf(out, 4200, "%s.table", args->output);
    else if (number > 1)
        snprintf(out, 4200, "%.*s.%u.table", (int)strcspn(start, "./"), start, number);
    else
        snprintf(out, 4200, "%.*s.table", (int)strcspn(start, "./"), start);
}

static bool is_shapley(const fds_params *params) {
    char method[64] = "";
    fds_params_get(params, "method", method, sizeof method, NULL);
    return strcmp(method, "ls") == 0 || strcmp(method, "exact") == 0;
}

/* An estimate in *text, or values in *result; in the first table that is free or of this question. */
static fds_status compute(const cli_args *args, const fds_problem *problem, char **text,
                          fds_result **result, fds_error *err) {
    char table[4200];
    fds_status status = FDS_ERR_CONFLICT;
    for (unsigned number = 1; number <= MOST_TABLES; number++) {
        name_table(args, number, table);
        status = args->estimate
                     ? fds_value_estimate(problem, args->params, table, args->events, text, err)
                     : (is_shapley(args->params) ? fds_shapley : fds_baseline)(
                           problem, args->params, table, args->events, result, err);
        if (status != FDS_ERR_CONFLICT || args->table || args->output)
            break;
    }
    return status;
}

static fds_status work(const cli_args *args, const fds_problem *problem, size_t top,
                       fds_error *err) {
    char *text = NULL;
    fds_result *result = NULL;
    CLI_TRY(compute(args, problem, &text, &result, err));
    if (args->estimate)
        return cli_show(args, text, print_estimate, err);
    return cli_give(args, result, top, show, err);
}

static fds_status run(cli_args *args, fds_error *err) {
    fds_problem *problem;
    size_t top;
    CLI_TRY(cli_number("top", args->top, 1000000, TOP, &top, err));
    if (args->output)
        CLI_TRY(cli_check_output("-o", args->output, ".csv|.npy|.json", args, err));
    CLI_TRY(fds_value_check(args->params, args->table, err));
    if (!args->operand)
        return cli_value_utilities(args, top, err);
    if (!is_shapley(args->params) && args->mpi)
        return cli_fail(err, FDS_ERR_USAGE, "--mpi needs --method ls or exact");
    CLI_TRY(cli_ranks_begin(args, err));
    CLI_TRY(fds_problem_open(args->params, args->events, &problem, err));
    fds_status status = fds_ranks_number() > 0
                            ? fds_shapley_serve(problem, args->params, args->events, err)
                            : work(args, problem, top, err);
    fds_problem_free(problem);
    return status;
}

static void list_baselines(void) {
    printf("\n");
    cli_wrap("Baselines (--method) give one value per player, by default for the accuracy on the "
             "test samples, or with --per-sample one for each test sample. They use the same "
             "sub-models and tables:",
             0, 0);
    for (const char *const *name = fds_baseline_methods(); *name; name++)
        cli_wrap(fds_baseline_about(*name), printf("  %-14s", *name), 17);
}

const cli_command cli_value = {
    .name = "value",
    .job = "value",
    .operand = "DATA",
    .instead = "utilities",
    .missing = "name a fetched set or a path, for example: fds value mnist -o values.csv",
    .usage = "DATA|--utilities FILE [-o FILE] [options]",
    .summary = "compute the values of all players, by any method",
    .about =
        "Trains sub-models on coalitions of the players, records their predictions for the "
        "test samples, and computes the Shapley value of every player, with a standard error: "
        "its share in the probability of the predicted label. The values for a test sample "
        "sum to what all players together add to that probability.\n\n"
        "A table keeps the predictions of the sub-models: an interrupted command, given "
        "again, goes on where it stopped, and more coalitions or other questions use what is "
        "there. The same seed gives the same values, bit for bit, with any number of "
        "threads.\n\n"
        "DATA is the name of a fetched set (fds data get) or a path, as for fds data show. With "
        "--utilities FILE there is no data and no training: the file has the coalitions of a "
        "game of yours and what they are worth.",
    .more_about = list_baselines,
    .examples = "  fds value mnist --players 100 --test 50 --coalitions 1000 -o values.csv\n"
                "  fds value sales.csv --label outcome --provider shop --players providers \\\n"
                "      --method exact --global -o shops.csv\n"
                "  fds value houses.csv --task regression --label price --players providers\n"
                "  fds value mnist --method tmc --permutations 200 -o tmc.csv\n"
                "  fds value --utilities game.json --group 'Ann=Ann1+Ann2'\n",
    .own = own,
    .own_count = CLI_COUNT(own),
    .run = run,
};
