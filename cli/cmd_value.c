/* SPDX-License-Identifier: Apache-2.0
 * fds value: what each player's data is worth for each test sample. The options and their mistakes;
 * the work is in value_*.c. */
#include "value.h"

#include <stdlib.h>
#include <string.h>

enum { TEST_DEFAULT = 200, TOP_DEFAULT = 10 };

static const cli_option value_table[] = {
    {CLI_ROW(STRING, value_options, output, 'o', "output", "FILE",
             "where the values go: .csv, .npy or .json, as it ends [no file]")},
    {CLI_ROW(STRING, value_options, method, 0, "method", "HOW",
             "exact: every coalition, for up to 20 players; ls: least squares on sampled ones; or "
             "the methods of others, listed above [ls]")},
    {CLI_ROW(STRING, value_options, players, 0, "players", "WHO", CLI_PLAYERS_HELP)},
    {CLI_ROW(UINT, value_options, test_count, 0, "test", "N",
             "test samples, as many of each class [200, or all when there are fewer; where DATA "
             "has no test part, a fifth of the samples is held back]"),
     .min = 1, .max = 4294967295.0},
    {CLI_ROW(CHOICE, value_options, sampler, 0, "sampler", "kernel|paired|leverage|gfds|gfds+",
             "how coalitions are drawn; gfds and gfds+ are the paper's group-wise games, with "
             "--method exact too [leverage]")},
    {CLI_ROW(UINT, value_options, coalitions, 0, "coalitions", "M",
             "ls: how many are drawn; all samplers but kernel draw pairs, so it must be even [20 "
             "times the players, at least 200]; group-testing, banzhaf: how many [by --epsilon "
             "and --delta]"),
     .min = 1, .max = MOST_COALITIONS},
    {CLI_ROW(UINT, value_options, permutations, 0, "orders", "N",
             "tmc, beta, gshapley, cs-shapley, freeshap: random orders of the players, at the most "
             "[1000; freeshap 200]"),
     .min = 1, .max = 100000000},
    {CLI_ROW(UINT, value_options, permutations, 0, "permutations", "N", "another name of --orders"),
     .min = 1, .max = 100000000},
    {CLI_ROW(FLOAT, value_options, until, 0, "until", "SHARE",
             "the same: stop when 100 orders change the values by less than this share; 0: never "
             "before --orders [0.05; freeshap 0]"),
     .max = 1000},
    {CLI_ROW(FLOAT, value_options, truncate, 0, "truncate", "SHARE",
             "tmc, beta, cs-shapley, freeshap: leave an order once its value was this near to that "
             "of all players, as a share of it, at six places running; 0: never [0.01; beta, "
             "freeshap 0]"),
     .max = 1000},
    {CLI_ROW(FLOAT, value_options, epsilon, 0, "epsilon", "E",
             "group-testing, banzhaf: the error of all values together (with --per-sample, of a "
             "test sample's), in Euclidean norm [10, 1: their bounds are wide]"),
     .max = 1000, .above = true},
    {CLI_ROW(FLOAT, value_options, delta, 0, "delta", "P",
             "group-testing, banzhaf: the probability of a greater error [0.1]"),
     .max = 1, .above = true},
    {CLI_ROW(CHOICE, value_options, form, 0, "form", "original|improved",
             "group-testing: improved compares with a player who adds nothing [original]")},
    {CLI_ROW(CHOICE, value_options, utility, 0, "utility", "accuracy|confidence|cross-entropy",
             "methods of others: what a sub-model is judged by [accuracy; knn: confidence]")},
    {CLI_ROW(FLAG, value_options, per_sample, 0, "per-sample", NULL,
             "methods of others: a value for each test sample, by the confidence in its label, "
             "instead of one for all")},
    {CLI_ROW(UINT, value_options, draw, 0, "draw", "N",
             "which coalitions or orders are drawn; another number, others, and all else the same "
             "[0]"),
     .max = CLI_EXACT_MAX},
    {CLI_ROW(STRING, value_options, value, 0, "value", "KIND",
             "what a coalition's samples are turned into: retrain, a network trained until it has "
             "converged; retrain:K, for K epochs; knn:K, nearest neighbours; kernel, kernel "
             "regression; entk, the same with the network's tangent kernel; entk:K, trained for K "
             "epochs [retrain:10; freeshap: entk]")},
    {CLI_ROW(
        STRING, value_options, adjust, 0, "adjust", "HOW",
        "with --method ls: none; shrink, values are drawn towards their group's mean; "
        "counts, and a fitted game of group sizes is used; knn:K, kernel or entk, and that cheap "
        "game as well [counts; shrink with gfds; none with gfds+]")},
    {CLI_ROW(STRING, value_options, group, 0, "group", "HOW", CLI_GROUP_HELP)},
    {CLI_ROW(CHOICE, value_options, target, 0, "target", "predicted|true|all",
             "which label of a test sample the values are for [predicted; true with one value a "
             "player]")},
    {CLI_ROW(FLAG, value_options, global, 0, "global", NULL,
             "one value a player, for the mean over the test samples; the methods of others do so "
             "anyway")},
    {CLI_ROW(STRING, value_options, table, 0, "table", "DIR",
             "where sub-models' answers are kept, to resume and to reuse [FILE.table beside the "
             "output; fds.table without -o]")},
    {CLI_ROW(CHOICE, value_options, store, 0, "store", "f32|f16",
             "how they are kept; f16 takes half the room, but may find labels alike of which one "
             "was likelier, and so change an accuracy [f32]")},
    {CLI_ROW(STRING, value_options, model, 0, "model", "NET", CLI_MODEL_HELP)},
    {CLI_ROW(FLOAT, value_options, lr, 0, "lr", "RATE", "learning rate [0.0001]"), .max = 1000,
     .above = true},
    {CLI_ROW(FLOAT, value_options, beta, 0, "beta", "B",
             "retrain:K trains at B times the learning rate [10]"),
     .max = 1000000, .above = true},
    {CLI_ROW(UINT, value_options, batch, 0, "batch", "N", "samples a mini-batch [16]"), .min = 1,
     .max = 65536},
    {CLI_ROW(CHOICE, value_options, optimizer, 0, "optimizer", "adam|sgd",
             "how the weights move [adam]")},
    {CLI_ROW(UINT, value_options, top, 0, "top", "N",
             "how many of the most valuable players are shown [10]"),
     .min = 1, .max = 1000000},
    {CLI_ROW(FLAG, value_options, dry_run, 0, "dry-run", NULL,
             "say what would be done and what it would take, and stop")},
    CLI_DATA_OPTIONS(value_options),
};

static void job_free(value_job *j) {
    value_close_games(j);
    cli_setup_free(&j->setup);
    free(j->labels);
    free(j->values);
    free(j->errors);
    free(j->mean_values);
    free(j->mean_errors);
}

/* ---- before any work ---- */

static fds_status read_sampler(value_job *j, fds_error *err) {
    static const char *const names[] = {"kernel", "paired", "leverage", "gfds", "gfds+"};
    const value_options *o = j->o;
    j->sampler = FDS_SAMPLER_LEVERAGE;
    for (size_t i = 0; o->sampler && i < CLI_COUNT(names); i++)
        if (strcmp(o->sampler, names[i]) == 0)
            j->sampler = (fds_sampler)i;
    j->is_grouped = j->sampler == FDS_SAMPLER_GFDS || j->sampler == FDS_SAMPLER_GFDS_PLUS;
    const char *wrong = o->coalitions           ? "coalitions"
                        : o->draw != UINT64_MAX ? "draw"
                        : o->adjust             ? "adjust"
                                                : NULL;
    if (j->is_exact && wrong)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--%s belongs to --method ls: exact values look at every coalition", wrong);
    if (j->is_exact && o->sampler && !j->is_grouped)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--sampler %s: exact values look at every coalition; with --method exact "
                        "only gfds and gfds+ have a meaning",
                        o->sampler);
    if (!j->is_exact && j->sampler != FDS_SAMPLER_KERNEL && o->coalitions % 2)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--coalitions %llu: --sampler %s draws pairs of a coalition and its "
                        "complement: it must be an even number",
                        (unsigned long long)o->coalitions, names[j->sampler]);
    return FDS_OK;
}

/* "knn:5" */
static bool is_knn(const char *text) {
    if (strncmp(text, "knn:", 4) != 0)
        return false;
    size_t digits = strspn(text + 4, "0123456789");
    return digits > 0 && digits < 8 && !text[4 + digits] && strtoul(text + 4, NULL, 10) > 0;
}

static fds_status read_adjust(value_job *j, fds_error *err) {
    static const char *const words[] = {"none", "shrink", "counts", "kernel", "entk", NULL};
    const char *text = j->o->adjust;
    if (!text)
        text = j->is_exact                          ? "none"
               : !j->is_grouped                     ? "counts"
               : strcmp(j->o->sampler, "gfds") == 0 ? "shrink"
                                                    : "none";
    j->adjust_name = text;
    if (strcmp(text, "none") == 0)
        j->adjust = FDS_ADJUST_NONE;
    else if (strcmp(text, "shrink") == 0)
        j->adjust = FDS_ADJUST_SHRINK;
    else
        j->adjust = FDS_ADJUST_COUNTS;
    if (is_knn(text) || strcmp(text, "kernel") == 0 || strcmp(text, "entk") == 0)
        j->surrogate.kind = text;
    else if (j->adjust == FDS_ADJUST_COUNTS && strcmp(text, "counts") != 0) {
        char hint[CLI_HINT_SIZE];
        return cli_fail(err, FDS_ERR_USAGE,
                        "--adjust %s: it must be none, shrink, counts, knn:K (K from 1), kernel "
                        "or entk%s",
                        text, cli_hint(text, words, hint));
    }
    if (j->is_grouped && j->adjust == FDS_ADJUST_COUNTS)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--adjust %s: not with --sampler %s, where groups take part as wholes; "
                        "choose none or shrink",
                        text, j->o->sampler);
    if (j->setup.by_provider && is_knn(text))
        return cli_fail(err, FDS_ERR_USAGE,
                        "--adjust %s: its own values are known only where every player has one "
                        "sample, not with --players providers; choose counts, kernel or entk",
                        text);
    return FDS_OK;
}

static fds_status read_target(value_job *j, fds_error *err) {
    const value_options *o = j->o;
    const char *wrong = o->permutations    ? "orders"
                        : o->until >= 0    ? "until"
                        : o->truncate >= 0 ? "truncate"
                        : o->epsilon >= 0  ? "epsilon"
                        : o->delta >= 0    ? "delta"
                        : o->form          ? "form"
                        : o->utility       ? "utility"
                        : o->per_sample    ? "per-sample"
                                           : NULL;
    if (wrong)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--%s belongs to the methods of others, not to --method %s: see fds value "
                        "--help",
                        wrong, j->method);
    j->is_mean = o->global;
    j->target = o->target ? o->target : o->global ? "true" : "predicted";
    if (o->global && strcmp(j->target, "all") == 0)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--target all: not with --global, because the probabilities of all labels "
                        "sum to 1 and their mean says nothing; choose predicted or true");
    return FDS_OK;
}

/* An option that would change nothing is refused: whoever gives it expects something. */
static fds_status check_needed(value_job *j, fds_error *err) {
    const value_options *o = j->o;
    bool has_groups = j->is_grouped || (!j->is_exact && j->adjust != FDS_ADJUST_NONE);
    if (o->group && !has_groups)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--group belongs to --sampler gfds or gfds+, or to an --adjust other than "
                        "none");
    const char *kind = j->game.kind;
    bool by_model = has_groups && o->group && cli_is_by_model(o->group);
    bool has_training = value_has_training(kind) || value_has_training(j->surrogate.kind);
    bool has_network = value_has_network(kind) || value_has_network(j->surrogate.kind);
    /* as it is initialised */
    bool is_gradient = j->is_baseline && strcmp(j->method, "gshapley") == 0;
    j->setup.want.no_network = !has_network && !by_model && !is_gradient;
    const char *wrong = o->model && j->setup.want.no_network ? "model"
                        : has_training || by_model           ? NULL
                        : o->lr > 0                          ? "lr"
                        : o->beta > 0                        ? "beta"
                        : o->batch                           ? "batch"
                        : o->optimizer                       ? "optimizer"
                                                             : NULL;
    if (wrong)
        return cli_fail(err, FDS_ERR_USAGE, "--%s belongs to --value retrain: %s trains no network",
                        wrong, kind);
    if (o->beta > 0 && strcmp(kind, "retrain") == 0)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--beta belongs to --value retrain:K; retrain trains at the learning rate "
                        "itself");
    return FDS_OK;
}

static fds_status read_params(value_job *j, fds_error *err) {
    const value_options *o = j->o;
    fds_utility_params *p = &j->params;
    *p = fds_utility_params_default();
    if (o->lr > 0)
        p->train.lr = (float)o->lr;
    if (o->beta > 0)
        p->beta = (float)o->beta;
    if (o->batch)
        p->train.batch = (uint32_t)o->batch;
    if (o->optimizer && strcmp(o->optimizer, "sgd") == 0)
        p->train.optimizer = FDS_OPTIMIZER_SGD;
    p->train.seed = o->common.seed;
    j->store = o->store && strcmp(o->store, "f16") == 0 ? FDS_STORE_F16 : FDS_STORE_F32;
    if (o->value)
        p->kind = o->value;
    j->game.kind = p->kind;
    return fds_train_params_check(&p->train, err);
}

static fds_status read_method(value_job *j, fds_error *err) {
    j->method = j->o->method ? j->o->method : "ls";
    j->is_exact = strcmp(j->method, "exact") == 0;
    j->is_baseline = !j->is_exact && strcmp(j->method, "ls") != 0;
    if (j->is_baseline)
        return value_read_baseline(j, err);
    CLI_TRY(read_sampler(j, err));
    CLI_TRY(read_adjust(j, err));
    return read_target(j, err);
}

static fds_status check_options(value_job *j, fds_error *err) {
    const value_options *o = j->o;
    CLI_TRY(cli_setup_check(&j->setup, err));
    CLI_TRY(read_params(j, err));
    CLI_TRY(read_method(j, err));
    CLI_TRY(check_needed(j, err));
    if (!o->output)
        return FDS_OK;
    fds_status status = fds_values_check_path(o->output, err);
    if (status != FDS_OK)
        return cli_fail(err, status, "-o %s", err->text);
    return cli_check_output("-o", o->output, o->common.operand, err);
}

/* ---- the work ---- */

static fds_status run_job(value_job *j, fds_error *err) {
    CLI_TRY(check_options(j, err));
    CLI_TRY(cli_setup_make(&j->setup, j->term, err));
    CLI_TRY((j->is_baseline ? value_open_baseline : value_open_games)(j, err));
    if (j->o->dry_run)
        return value_show_plan(j, err);
    if (!j->is_baseline)
        CLI_TRY(value_fill_games(j, err));
    CLI_TRY((j->is_baseline ? value_run_baseline : value_solve)(j, err));
    CLI_TRY(value_save(j, err));
    cli_term_clear(j->term);
    return value_show(j, err);
}

static fds_status run_value(const cli_command *self, int argc, char **argv, fds_error *err) {
    value_options o = {.draw = UINT64_MAX,
                       .top = TOP_DEFAULT,
                       .until = -1,
                       .truncate = -1,
                       .epsilon = -1,
                       .delta = -1};
    cli_term term;
    CLI_TRY(cli_parse(self, argc, argv, &o, err));
    cli_term_init(&term, self, o.common.quiet);
    value_job j = {.o = &o,
                   .term = &term,
                   .setup.want = {.common = &o.common,
                                  .data = &o.data,
                                  .players = o.players,
                                  .model = o.model,
                                  .test_option = "--test",
                                  .test_count = o.test_count,
                                  .test_most = TEST_DEFAULT}};
    fds_status status = run_job(&j, err);
    cli_term_clear(&term);
    job_free(&j);
    return status;
}

const cli_command cli_value = {
    .name = "value",
    .operand = "DATA",
    .needs = "name a fetched set or a path, for example: fds value mnist -o values.csv",
    .usage = "DATA [-o FILE] [options]",
    .summary = "what each player's data is worth for each test sample",
    .about =
        "Trains sub-models on coalitions of the players, sees what each answers for the test "
        "samples, and works out every player's share in the probability of an answer: its "
        "Shapley value, with a standard error. The values for a test sample sum to what all "
        "players together add to the probability.\n\n"
        "Sub-models are kept in a table: a command that was interrupted goes on where it "
        "stopped, and more coalitions or other questions use what is there. The same seed "
        "gives the same values, bit for bit, with any number of threads.\n\n"
        "The methods of others (--method) give one value a player, by default for the accuracy "
        "on the test samples, or with --per-sample one for each test sample. They use the same "
        "sub-models and tables:\n"
        "loo            leave one out\n"
        "tmc            Data Shapley, by orders that are cut off\n"
        "gshapley       Data Shapley, by one pass of gradient descent\n"
        "group-testing  from random coalitions\n"
        "cs-shapley     class-wise Shapley; by accuracy only\n"
        "freeshap       Shapley values of kernel regression\n"
        "knn:K          exact values of K nearest neighbours\n"
        "knn:K@model    the same, on features of the service model\n"
        "banzhaf        Banzhaf values\n"
        "beta:A,B       Beta Shapley; beta:1,1 is the Shapley value\n"
        "random         to compare with, as is same-label\n\n"
        "DATA is the name of a fetched set (fds data get) or a path, as for fds data show.",
    .examples = "  fds value mnist --players 100 --test 50 --coalitions 1000 -o values.csv\n"
                "  fds value sales.csv --label outcome --provider shop --players providers \\\n"
                "      --method exact --global -o shops.csv\n"
                "  fds value mnist --method tmc --orders 200 --table mnist.table -o tmc.csv\n",
    .options = value_table,
    .option_count = CLI_COUNT(value_table),
    .run = run_value,
};
