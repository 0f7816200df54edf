/* SPDX-License-Identifier: Apache-2.0
 * fds pay: money for predictions, divided among those whose data they came from. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TOP = 10, MONEY_SIZE = 32, FEW_UNITS = 1000 };
enum { LINE_COLUMNS = 80, LEAST_MONEY = 9, MOST_PAYEE = 30 };

static const cli_option own[] = {
    CLI_OWN('o', "output", output, "FILE",
            "output file of all shares, .csv, .json or .jsonl [no file]"),
    CLI_OWN(0, "top", top, "N", "number of payees to show, the best paid first [10]"),
    CLI_OWN(0, "all", all, NULL, "show all payees"),
    CLI_OWN(0, "jsonl", jsonl, NULL, "print a line of JSON for each input, and one of totals"),
};

typedef struct {
    const cli_args *args;
    fds_run *run;
    fds_input *input; /* NULL: pictures, which are opened block by block */
    size_t inputs;
    fds_payer *payer;
    fds_result *last;          /* answers that were paid last */
    double seconds;            /* of explaining */
    char by[16], currency[16]; /* currency: " USD", or empty */
    size_t top, *order;        /* order (payees) */
    bool is_summary, has_text;
    char carry[4096]; /* a path, or empty */
} job;

/* ---- text ---- */

static const char *money(const job *j, int64_t units, char out[MONEY_SIZE]) {
    return fds_money_text(units, fds_payment_decimals(fds_payer_total(j->payer)), out);
}

/* How wide the column of money must be. */
static int money_width(const job *j, const fds_payment *p, size_t k) {
    char text[MONEY_SIZE];
    int width = (int)strlen(money(j, fds_payment_amount(p, k), text));
    for (size_t i = 0; i < fds_payment_payees(p); i++) {
        int columns = (int)strlen(money(j, fds_payment_share(p, k, i), text));
        width = columns > width ? columns : width;
    }
    return width > LEAST_MONEY ? width : LEAST_MONEY;
}

static int payee_width(const fds_payment *p) {
    int width = 8;
    for (size_t i = 0; i < fds_payment_payees(p); i++) {
        int columns = cli_columns(fds_payment_payee(p, i));
        width = columns > width ? columns : width;
    }
    return width < MOST_PAYEE ? width : MOST_PAYEE;
}

/* Errors of small amounts have two more decimals than money. */
static void print_error(const fds_payment *p, size_t k, size_t who) {
    int decimals = fds_payment_decimals(p), more = fds_payment_amount(p, k) < FEW_UNITS ? 2 : 0;
    double error = fds_payment_error(p, k, who);
    for (int i = 0; i < decimals; i++)
        error /= 10;
    if (!isnan(error))
        printf("  \u00b1 %.*f", decimals + more, error);
}

/* Columns of players that leave room for a value, money and its error; else without providers. */
static cli_player_columns player_columns(const job *j, int money_columns) {
    cli_player_columns w = cli_measure_players(j->last);
    int used = 6 + w.player + 2 + w.label + 2 + w.provider;
    if (used + 2 + cli_value_width(j->last) + 2 + money_columns + 4 + money_columns >= LINE_COLUMNS)
        w.provider = 0;
    return w;
}

static void print_shares(const job *j, const fds_payment *p, size_t k) {
    char text[MONEY_SIZE], name[CLI_NAME_SIZE], others[64], number[CLI_NUMBER_SIZE];
    int width = money_width(j, p, k), named = payee_width(p), room = cli_value_width(j->last);
    const cli_player_columns w = player_columns(j, width);
    size_t payees = fds_payment_payees(p), shown = j->top < payees ? j->top : payees;
    bool by_player = strcmp(j->by, "player") == 0;
    int64_t total = fds_payment_amount(p, k), rest = total;
    bool are_small = true; /* sums may be large */
    for (size_t i = 0; i < payees; i++)
        are_small &= fds_payment_value(p, k, i) > -9.9 && fds_payment_value(p, k, i) < 99;
    int before = by_player ? cli_print_players_head(&w) : printf("rank  %-*s", named, j->by);
    printf("  %*s  %*s%s\n", room, "value", width, "share",
           isnan(fds_payment_misallocated(p, k)) ? "" : "  \u00b1 error");
    for (size_t rank = 0; rank < shown; rank++) {
        size_t who = j->order[rank];
        if (by_player)
            cli_print_player(j->last, &w, rank, who);
        else
            printf("%4zu  %s", rank + 1, cli_name(fds_payment_payee(p, who), named, name));
        rest -= fds_payment_share(p, k, who);
        double value = fds_payment_value(p, k, who);
        if (w.is_regression)
            printf("  %*s", room, cli_value_text(j->last, value, number));
        else
            printf("  %*.*f", room, are_small ? 6 : 3, value);
        printf("  %*s", width, money(j, fds_payment_share(p, k, who), text));
        print_error(p, k, who);
        putchar('\n');
    }
    snprintf(others, sizeof others, "... and %zu others", payees - shown);
    if (shown < payees)
        printf("      %-*s  %*s  %*s\n", before - 6, others, room, "", width, money(j, rest, text));
    printf("      %-*s  %*s  %*s\n", before - 6, "sum", room, "", width, money(j, total, text));
}

static fds_status print_payment(const job *j, const fds_payment *p, fds_error *err) {
    for (size_t k = 0; k < fds_result_predictions(j->last); k++) {
        const char *rule = fds_payment_rule(p, k);
        CLI_TRY(fds_payment_rank(p, k, j->order, err));
        cli_print_prediction(j->last, k);
        if (strcmp(rule, "clip") != 0 &&
            strcmp(rule, "signed") != 0) /* not what the policy itself says */
            cli_wrap(fds_payment_rule_text(p, k), printf("paid"), 5);
        print_shares(j, p, k);
        putchar('\n');
    }
    return FDS_OK;
}

/* How much of the money is probably misallocated. */
static void print_accuracy(const fds_payment *total) {
    double amount = (double)fds_payment_amount(total, SIZE_MAX),
           part = 100 * fds_payment_misallocated(total, SIZE_MAX) / amount;
    if (isnan(part) && amount > 0)
        printf("%-*s not known, because the errors of the values are not\n", CLI_WIDTH, "accuracy");
    else if (amount > 0)
        printf("%-*s about %.1f of each 100 are probably misallocated, by the errors\n", CLI_WIDTH,
               "accuracy", part);
}

static fds_status print_clusters(const fds_payment *total, fds_error *err) {
    char *text, name[CLI_NAME_SIZE];
    size_t i, k;
    json_t *cluster, *member;
    CLI_TRY(fds_payment_clusters(total, &text, err));
    json_t *about = cli_json(text, err);
    fds_text_free(text);
    if (!about)
        return FDS_ERR_NOMEM;
    json_array_foreach(cli_get(about, "clusters"), i, cluster) {
        printf("%-*s %s, divided by samples:\n", CLI_WIDTH, "cluster",
               cli_name(cli_get_text(cluster, "player"), 0, name));
        json_array_foreach(cli_get(cluster, "members"), k, member)
            printf("%-*s %s: %s\n", CLI_WIDTH, "", cli_name(cli_get_text(member, "name"), 0, name),
                   cli_get_text(member, "amount"));
    }
    json_decref(about);
    return FDS_OK;
}

static fds_status print_end(const job *j, fds_error *err) {
    const fds_payment *total = fds_payer_total(j->payer);
    char text[MONEY_SIZE], given[MONEY_SIZE], count[CLI_NUMBER_SIZE];
    if (j->inputs > 1 || j->is_summary) {
        CLI_TRY(fds_payment_rank(total, SIZE_MAX, j->order, err));
        printf("All %s input%s together:\n", cli_count(j->inputs, count),
               j->inputs == 1 ? "" : "s");
        print_shares(j, total, SIZE_MAX);
        putchar('\n');
    }
    CLI_TRY(fds_params_get(j->args->params, "total", given, sizeof given, err));
    int64_t all = fds_payment_amount(total, SIZE_MAX);
    if (strcmp(given, "auto") != 0)
        printf("%-*s %s%s for all inputs\n", CLI_WIDTH, "total", money(j, all, text), j->currency);
    else
        printf("%-*s %s%s for each input\n", CLI_WIDTH, "amount",
               money(j, all / (int64_t)j->inputs, text), j->currency);
    printf("%-*s %s\n", CLI_WIDTH, "rule", fds_payment_rule_text(total, SIZE_MAX));
    print_accuracy(total);
    CLI_TRY(print_clusters(total, err));
    return cli_print_answers(j->last, j->inputs, j->seconds, err);
}

/* The files, once they are in place. */
static void print_files(const job *j) {
    char count[CLI_NUMBER_SIZE];
    if (*j->carry)
        printf("%-*s %s: %s predictions so far\n", CLI_WIDTH, "carry", j->carry,
               cli_count(fds_payer_paid(j->payer), count));
    if (j->args->output)
        printf("%-*s %s\n", CLI_WIDTH, "written", j->args->output);
}

static bool print_text(void *user, const char *text, size_t size) {
    (void)user;
    return fwrite(text, 1, size, stdout) == size;
}

/* ---- answers ---- */

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static fds_status explain(void *user, size_t first, size_t count, const fds_events *events,
                          fds_result **out, fds_error *err) {
    job *j = user;
    fds_input *part;
    CLI_TRY(j->input ? fds_input_part(j->input, first, count, &part, err)
                     : fds_input_pictures(j->run, j->args->more + first, count, j->args->params,
                                          &part, err));
    double start_s = now_s();
    fds_status status = fds_run_explain(j->run, part, j->args->params, events, out, err);
    j->seconds += now_s() - start_s;
    fds_input_free(part);
    return status;
}

static fds_status show(void *user, fds_result *answers, const fds_payment *payment,
                       fds_error *err) {
    job *j = user;
    fds_terminal_clear();
    fds_result_free(j->last);
    j->last = answers;
    if (!j->order)
        j->order = cli_alloc(fds_payment_payees(payment), sizeof *j->order, err);
    if (!j->order)
        return FDS_ERR_NOMEM;
    return j->has_text && !j->is_summary ? print_payment(j, payment, err) : FDS_OK;
}

/* ---- all of it ---- */

static fds_status open_job(job *j, fds_error *err) {
    const cli_args *args = j->args;
    CLI_TRY(fds_run_open(args->operand, args->params, &j->run, err));
    char service[8];
    CLI_TRY(fds_params_get(args->params, "service_probs", service, sizeof service, err));
    if (!args->more_count)
        CLI_TRY(fds_input_open(j->run, args->params, args->events, &j->input, err));
    else if (strcmp(service, "auto") != 0) /* a file with a row for each of all pictures */
        CLI_TRY(
            fds_input_pictures(j->run, args->more, args->more_count, args->params, &j->input, err));
    j->inputs = j->input ? fds_input_count(j->input) : args->more_count;
    CLI_TRY(fds_payer_create(args->params, j->inputs, &j->payer, err));
    const char *code = fds_payment_currency(fds_payer_total(j->payer));
    snprintf(j->currency, sizeof j->currency, "%s%s", code ? " " : "", code ? code : "");
    if (args->output)
        CLI_TRY(fds_payer_save(j->payer, args->output, err));
    if (!j->has_text)
        CLI_TRY(fds_payer_print(j->payer, args->json ? "json" : "jsonl", print_text, NULL, err));
    return FDS_OK;
}

static fds_status work(job *j, fds_error *err) {
    CLI_TRY(open_job(j, err));
    CLI_TRY(fds_payer_run(j->payer, j->inputs, explain, show, j, j->args->events, err));
    if (j->has_text)
        CLI_TRY(print_end(j, err));
    CLI_TRY(fds_payer_finish(j->payer, err));
    if (j->has_text)
        print_files(j);
    return FDS_OK;
}

static void free_job(job *j) {
    free(j->order);
    fds_payer_free(j->payer);
    fds_result_free(j->last);
    fds_input_free(j->input);
    fds_run_free(j->run);
}

static fds_status check(const cli_args *args, job *j, fds_error *err) {
    char value[16];
    char summary[8];
    CLI_TRY(fds_pay_check(args->params, err));
    CLI_TRY(cli_answer_check(args, err));
    CLI_TRY(cli_number("top", args->top, 1000000, TOP, &j->top, err));
    if (args->all && args->top)
        return cli_fail(err, FDS_ERR_USAGE, "--all shows everybody: it does not go with --top");
    if (args->json && args->jsonl)
        return cli_fail(err, FDS_ERR_USAGE, "--json and --jsonl: choose one of them");
    if (args->output)
        CLI_TRY(cli_check_output("-o", args->output, ".csv|.json|.jsonl", args, err));
    CLI_TRY(fds_params_get(args->params, "carry", j->carry, sizeof j->carry, err));
    if (strcmp(j->carry, "auto") == 0)
        *j->carry = 0;
    else
        CLI_TRY(cli_check_output("--carry", j->carry, ".json", args, err));
    if (args->output && strcmp(args->output, j->carry) == 0)
        return cli_fail(err, FDS_ERR_USAGE, "-o and --carry: %s cannot be both", j->carry);
    CLI_TRY(fds_params_get(args->params, "summary", summary, sizeof summary, err));
    CLI_TRY(fds_params_get(args->params, "by", j->by, sizeof j->by, err));
    CLI_TRY(fds_params_get(args->params, "group_value", value, sizeof value, err));
    if (strcmp(value, "points") == 0) /* of providers */
        snprintf(j->by, sizeof j->by, "provider");
    j->is_summary = strcmp(summary, "true") == 0;
    j->has_text = !args->json && !args->jsonl;
    j->top = args->all ? SIZE_MAX : j->top;
    return FDS_OK;
}

static fds_status run(cli_args *args, fds_error *err) {
    job j = {.args = args};
    CLI_TRY(check(args, &j, err));
    fds_status status = work(&j, err);
    free_job(&j);
    return status;
}

const cli_command cli_pay = {
    .name = "pay",
    .job = "pay",
    .operand = "RUN",
    .takes_more = true,
    .missing = "name the folder that fds fit made, for example: fds pay mnist.run --index 0 "
               "--amount 100.00",
    .usage = "RUN (IMAGE... | --index WHICH | --rows FILE) --amount MONEY",
    .summary = "divide money for predictions among players or providers",
    .about =
        "Divides an amount of money for each input in proportion to the values of fds explain. The "
        "shares of an input add up to its amount exactly. Units left by rounding go to the payees "
        "that are owed most, so that the total of every payee ends within one unit of its exact "
        "total, however many inputs there are.\n\n" CLI_ANSWER_ABOUT,
    .examples = "  fds pay mnist.run --index 0 --amount 100.00\n"
                "  fds pay shops.run --index 0..99 --total 25 --by provider -o pay.csv\n"
                "  fds pay mnist.run --index 0..9999 --amount 0.01 --currency EUR --summary\n",
    .own = own,
    .own_count = CLI_COUNT(own),
    .run = run,
};
