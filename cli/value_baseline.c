/* SPDX-License-Identifier: Apache-2.0
 * fds value with the method of others: which options belong to it, what it works on, its values,
 * and its own lines of the result. */
#include "value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which options belong to which method ---- */

#define BY_COALITIONS "group-testing banzhaf"
#define BY_ORDERS "tmc beta gshapley cs-shapley freeshap"
#define BY_TABLE "loo tmc beta cs-shapley " BY_COALITIONS
#define BY_FUNCTION BY_TABLE " freeshap knn" /* those that have a value function */
#define OURS "ls exact "                     /* which check their own options themselves */

/* Whether the part of the method's name before ":" is a word of list. */
static bool is_among(const char *method, const char *list) {
    size_t length = strcspn(method, ":");
    for (const char *at = list; *at; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");
        if (word == length && memcmp(at, method, length) == 0)
            return true;
        at += word;
    }
    return false;
}

/* "a b c" as "a, b or c"; returns out. */
static const char *join(const char *list, char *out, size_t size) {
    size_t used = 0;
    for (const char *at = list; *at && used < size; at++) {
        const char *then = strchr(at + 1, ' ') ? ", " : " or ";
        used += (size_t)snprintf(out + used, size - used, "%.*s", *at == ' ' ? 4 : 1,
                                 *at == ' ' ? then : at);
    }
    return out;
}

/* The labels to be explained are those that a model of all players predicts. */
static bool wants_predicted(const value_job *j) {
    return j->o->per_sample && !(j->o->target && strcmp(j->o->target, "true") == 0);
}

/* Options of no meaning for the method are refused: whoever gives one expects something. */
static fds_status check_belonging(const value_job *j, fds_error *err) {
    const value_options *o = j->o;
    /* how a model is trained: methods without a value function have one only for the labels */
    bool has_model = wants_predicted(j);
    const struct {
        const char *option, *methods;
        bool is_given;
    } rows[] = {
        {"sampler", "ls exact", o->sampler},
        {"adjust", "ls", o->adjust},
        {"group", "ls exact", o->group},
        {"coalitions", "ls " BY_COALITIONS, o->coalitions},
        {"orders", BY_ORDERS, o->permutations},
        {"until", BY_ORDERS, o->until >= 0},
        {"truncate", "tmc beta cs-shapley freeshap", o->truncate >= 0},
        {"epsilon", BY_COALITIONS, o->epsilon >= 0},
        {"delta", BY_COALITIONS, o->delta >= 0},
        {"form", "group-testing", o->form},
        {"draw", "ls " BY_COALITIONS " " BY_ORDERS " random", o->draw != UINT64_MAX},
        {"value", OURS BY_TABLE " freeshap", o->value},
        {"table", OURS BY_TABLE, o->table},
        {"store", OURS BY_TABLE, o->store},
        {"model", OURS BY_FUNCTION " gshapley", o->model && !has_model},
        {"lr", OURS BY_FUNCTION, o->lr > 0 && !has_model},
        {"beta", OURS BY_FUNCTION, o->beta > 0 && !has_model},
        {"batch", OURS BY_FUNCTION, o->batch && !has_model},
        {"optimizer", OURS BY_FUNCTION, o->optimizer && !has_model},
    };
    char list[256];
    for (size_t i = 0; i < CLI_COUNT(rows); i++)
        if (rows[i].is_given && !is_among(j->method, rows[i].methods))
            return cli_fail(err, FDS_ERR_USAGE, "--%s does not belong to --method %s, but to %s",
                            rows[i].option, j->method, join(rows[i].methods, list, sizeof list));
    return FDS_OK;
}

/* ---- what the options say ---- */

static fds_status read_scorer(value_job *j, fds_error *err) {
    const value_options *o = j->o;
    static const char *const names[] = {"accuracy", "confidence", "cross-entropy"};
    j->is_mean = !o->per_sample;
    for (size_t i = 0; o->utility && i < CLI_COUNT(names); i++)
        if (strcmp(o->utility, names[i]) == 0)
            j->baseline.scorer = (fds_scorer)i;
    if (!o->per_sample)
        return FDS_OK;
    if (o->global)
        return cli_fail(err, FDS_ERR_USAGE, "--global and --per-sample exclude each other");
    if (o->utility && j->baseline.scorer != FDS_SCORER_CONFIDENCE)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--utility %s is of many test samples; with --per-sample each is judged by "
                        "the confidence in its label",
                        o->utility);
    j->baseline.scorer = FDS_SCORER_EACH_SAMPLE;
    return FDS_OK;
}

static void read_numbers(value_job *j) {
    const value_options *o = j->o;
    fds_baseline_params *p = &j->baseline;
    p->permutations = o->permutations ? (size_t)o->permutations : p->permutations;
    p->coalitions = o->coalitions ? (size_t)o->coalitions : p->coalitions;
    p->until = o->until >= 0 ? o->until : p->until;
    p->truncate = o->truncate >= 0 ? o->truncate : p->truncate;
    p->epsilon = o->epsilon >= 0 ? o->epsilon : p->epsilon;
    p->delta = o->delta >= 0 ? o->delta : p->delta;
    p->is_improved = o->form && strcmp(o->form, "improved") == 0;
    p->seed = value_draw_seed(j);
    p->threads = value_threads(j);
}

/* Whose answers decide which labels are predicted and what coalitions are worth; NULL: nobody's. */
static const char *value_kind(const value_job *j) {
    if (is_among(j->method, "knn"))
        return j->method;
    if (is_among(j->method, "freeshap") && !j->o->value)
        return "entk";
    return is_among(j->method, BY_FUNCTION) || wants_predicted(j) ? j->params.kind : NULL;
}

bool value_is_for_labels(const value_job *j) {
    return j->is_baseline && j->game.kind && !is_among(j->method, BY_FUNCTION);
}

static fds_status refuse_method(const char *method, fds_error *err) {
    const char *names[32] = {"exact", "ls"};
    char list[256] = "exact, ls", hint[CLI_HINT_SIZE];
    size_t count = 2, length = strlen(list);
    if (strncmp(method, "knn", 3) == 0 || strncmp(method, "beta", 4) == 0) /* what is missing */
        return cli_fail(err, FDS_ERR_USAGE, "--method: %s", err->text);
    for (const char *const *name = fds_baseline_methods(); *name && count + 1 < CLI_COUNT(names);
         name++) {
        names[count++] = *name;
        length += (size_t)snprintf(list + length, sizeof list - length, ", %s", *name);
    }
    return cli_fail(err, FDS_ERR_USAGE, "--method %s: it must be one of %s%s", method, list,
                    cli_hint(method, names, hint));
}

fds_status value_read_baseline(value_job *j, fds_error *err) {
    const value_options *o = j->o;
    if (fds_baseline_params_default(j->method, &j->baseline, err) != FDS_OK)
        return refuse_method(j->method, err);
    CLI_TRY(check_belonging(j, err));
    CLI_TRY(read_scorer(j, err));
    read_numbers(j);
    j->game.kind = value_kind(j);
    if (j->game.kind)
        j->params.kind = j->game.kind;
    if (is_among(j->method, "freeshap") && strncmp(j->game.kind, "entk", 4) != 0)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--value %s: freeshap works on the network's tangent kernel: entk, or "
                        "entk:K, of the network trained for K epochs",
                        j->game.kind);
    j->target = o->target ? o->target : o->per_sample ? "predicted" : "true";
    if (strcmp(j->target, "all") == 0)
        return cli_fail(err, FDS_ERR_USAGE, "--target all belongs to --method ls or exact");
    if (strcmp(j->target, "predicted") == 0 && !o->per_sample)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--target predicted belongs to --per-sample: %s is of the true labels",
                        value_scorer_name(j));
    if (j->setup.by_provider && is_among(j->method, "knn"))
        return cli_fail(err, FDS_ERR_USAGE,
                        "--method %s: its values are known only where every player has one sample, "
                        "not with --players providers",
                        j->method);
    enum { MANY = 1 << 20 }; /* where the number of players is not known yet */
    return fds_baseline_check(&j->baseline, j->setup.wanted ? j->setup.wanted : MANY, err);
}

/* ---- the work ---- */

fds_status value_open_baseline(value_job *j, fds_error *err) {
    CLI_TRY(fds_baseline_check(&j->baseline, fds_players_count(j->setup.players), err));
    double start_s = cli_now_s();
    CLI_TRY(value_open_game(j, fds_baseline_needs_table(j->method), err));
    j->game.seconds = cli_now_s() - start_s;
    return FDS_OK;
}

/* No and all players as a plan, in which all of them are one group. */
static fds_status plan_ends(value_job *j, fds_error *err) {
    size_t n = fds_players_count(j->setup.players);
    uint32_t *same = cli_alloc(n, sizeof *same, err);
    fds_groups *groups = NULL;
    fds_status status = same ? fds_groups_create(same, n, NULL, &groups, err) : FDS_ERR_NOMEM;
    if (status == FDS_OK)
        status = fds_plan_exact(FDS_SAMPLER_GFDS_PLUS, n, groups, &j->plan, err);
    fds_groups_free(groups);
    free(same);
    return status;
}

/* What no and all players answer, by a value function without a table, and from that the labels. */
static fds_status ask_labels(value_job *j, fds_error *err) {
    const fds_utility_info info = fds_utility_get_info(j->game.value);
    size_t size = info.inputs * info.classes;
    float *probs = cli_alloc(size, sizeof *probs, err);
    double *answers = cli_alloc(2 * size, sizeof *answers, err);
    fds_status status = probs && answers ? FDS_OK : FDS_ERR_NOMEM;
    for (size_t row = 0; row < 2 && status == FDS_OK; row++) {
        status = fds_utility_eval(j->game.value, 0, fds_plan_coalition(j->plan, row), probs, err);
        for (size_t i = 0; i < size && status == FDS_OK; i++)
            answers[row * size + i] = (double)probs[i];
    }
    if (status == FDS_OK)
        value_choose_labels(j, answers, answers + size, info.classes);
    free(probs);
    free(answers);
    return status;
}

/* The same from the table, where there is one. */
static fds_status find_labels(value_job *j, fds_error *err) {
    if (!j->game.value)
        return FDS_OK;
    CLI_TRY(plan_ends(j, err));
    if (!j->game.table)
        return ask_labels(j, err);
    CLI_TRY(fds_table_fill(j->game.table, j->plan, value_threads(j), &j->term->events, err));
    return value_find_labels(j, err);
}

/* The mean over test samples, for the ranking; its error does not follow from theirs. */
static void average(value_job *j, size_t columns) {
    for (size_t i = 0; i < fds_players_count(j->setup.players); i++) {
        for (size_t c = 0; c < columns; c++)
            j->mean_values[i] += j->values[i * columns + c] / (double)columns;
        j->mean_errors[i] = columns == 1 ? j->errors[i] : (double)NAN;
    }
}

/* Exact values are shown without errors. */
static void forget_errors(value_job *j) {
    free(j->errors);
    free(j->mean_errors);
    j->errors = j->mean_errors = NULL;
}

static fds_status run(value_job *j, size_t columns, fds_error *err) {
    const cli_setup *s = &j->setup;
    bool is_predicted = strcmp(j->target, "predicted") == 0;
    value_choose_labels(j, NULL, NULL, 0);
    if (is_predicted) /* else how many that are is told afterwards, when most of it is there */
        CLI_TRY(find_labels(j, err));
    fds_utility_params value = j->params;
    value.network = s->network;
    const fds_baseline_data data = {.train = s->train,
                                    .players = s->players,
                                    .test = cli_setup_tested(s),
                                    .inputs = s->test_samples,
                                    .input_count = s->test_count,
                                    .labels = j->labels,
                                    .value = &value,
                                    .table = j->game.table,
                                    .made = j->game.value};
    CLI_TRY(
        fds_baseline(&j->baseline, &data, j->values, j->errors, &j->found, &j->term->events, err));
    if (!j->game.table && !value_is_for_labels(j))
        j->found.seconds += j->game.seconds;
    average(j, columns);
    if (is_among(j->method, "loo knn"))
        forget_errors(j);
    return is_predicted ? FDS_OK : find_labels(j, err);
}

fds_status value_run_baseline(value_job *j, fds_error *err) {
    size_t n = fds_players_count(j->setup.players), columns = j->is_mean ? 1 : j->setup.test_count;
    j->labels = cli_alloc(j->setup.test_count, sizeof *j->labels, err);
    j->values = cli_alloc(n * columns, sizeof *j->values, err);
    j->errors = cli_alloc(n * columns, sizeof *j->errors, err);
    j->mean_values = cli_alloc(n, sizeof *j->mean_values, err);
    j->mean_errors = cli_alloc(n, sizeof *j->mean_errors, err);
    if (!j->labels || !j->values || !j->errors || !j->mean_values || !j->mean_errors)
        return FDS_ERR_NOMEM;
    fds_status status = run(j, columns, err);
    if (status == FDS_ERR_CANCELLED && j->game.table)
        return cli_fail(err, status, "its sub-models are kept in %s; the same command goes on",
                        j->game.dir);
    return status;
}

/* ---- the result ---- */

const char *value_scorer_name(const value_job *j) {
    static const char *const names[] = {"accuracy", "confidence", "cross-entropy", "confidence"};
    return names[j->baseline.scorer];
}

void value_print_baseline_plan(const value_job *j, int width) {
    const fds_baseline_params *p = &j->baseline;
    char count[CLI_NUMBER_SIZE];
    printf("%-*s %s by %s%s\n", width, "method", j->method, value_scorer_name(j),
           j->is_mean ? " on the test samples" : " for each test sample");
    if (is_among(j->method, BY_ORDERS)) {
        printf("%-*s at most %s", width, "orders", cli_count(p->permutations, count));
        if (p->until > 0)
            printf(", until values change by less than %g %% in 100", 100 * p->until);
        putchar('\n');
    }
    if (is_among(j->method, BY_COALITIONS) && p->coalitions)
        printf("%-*s %s\n", width, "coalitions", cli_count(p->coalitions, count));
    else if (is_among(j->method, BY_COALITIONS))
        printf("%-*s by its bound, with epsilon %g and delta %g\n", width, "coalitions", p->epsilon,
               p->delta);
}

void value_print_baseline(const value_job *j, int width) {
    const fds_baseline_report *r = &j->found;
    const cli_setup *s = &j->setup;
    char asked[CLI_NUMBER_SIZE], trained[CLI_NUMBER_SIZE], permutations[CLI_NUMBER_SIZE];
    if (j->game.table)
        printf("%-*s %s asked for, %s %s\n", width, "sub-models", cli_count(r->asked, asked),
               cli_count(r->trained, trained),
               value_is_retrain(j->game.kind) ? "trained" : "computed");
    if (r->permutations) {
        printf("%-*s %s orders", width, "walked", cli_count(r->permutations, permutations));
        if (r->truncated > 0)
            printf(", %.0f %% of their places cut off", 100 * r->truncated);
        if (isfinite(r->change))
            printf(", last change %.1f %%", 100 * r->change);
        printf("%s\n", r->has_converged ? ": converged" : "");
    }
    if (r->lr > 0)
        printf("%-*s %.4g, found by trying\n", width, "rate", r->lr);
    printf("%-*s %.2f s\n", width, "time", r->seconds);
    printf("%-*s %zu samples%s", width, "test", s->test_count, s->test ? "" : " held back");
    if (j->game.value)
        printf(", %.1f %% predicted rightly", 100.0 * (double)j->right / (double)s->test_count);
    putchar('\n');
    if (j->game.table)
        printf("%-*s %s\n", width, "table", j->game.dir);
    if (j->o->output)
        printf("%-*s %s\n", width, "written", j->o->output);
}

json_t *value_json_baseline(const value_job *j, bool is_done) {
    const fds_baseline_params *p = &j->baseline;
    const fds_baseline_report *r = &j->found;
    bool has_bound = is_among(j->method, BY_COALITIONS) && !p->coalitions;
    const char *form =
        is_among(j->method, "group-testing") ? (p->is_improved ? "improved" : "original") : NULL;
    json_t *settings = json_pack(
        "{s:s, s:b, s:I, s:o, s:o, s:I, s:o, s:o, s:o, s:I}", "utility", value_scorer_name(j),
        "per_sample", !j->is_mean, "orders", (json_int_t)p->permutations, "until",
        cli_json_real(p->until), "truncate", cli_json_real(p->truncate), "coalitions",
        (json_int_t)p->coalitions, "epsilon", has_bound ? cli_json_real(p->epsilon) : json_null(),
        "delta", has_bound ? cli_json_real(p->delta) : json_null(), "form",
        form ? json_string(form) : json_null(), "draw", (json_int_t)value_draw(j));
    json_t *found =
        !is_done ? json_null()
                 : json_pack("{s:I, s:I, s:I, s:o, s:o, s:b, s:o, s:o}", "asked",
                             (json_int_t)r->asked, "trained", (json_int_t)r->trained, "orders",
                             (json_int_t)r->permutations, "truncated", cli_json_real(r->truncated),
                             "change", cli_json_real(r->change), "converged", r->has_converged,
                             "lr", r->lr > 0 ? cli_json_real(r->lr) : json_null(), "seconds",
                             cli_json_real(r->seconds));
    return json_pack("{s:o, s:o}", "settings", settings, "found", found);
}
