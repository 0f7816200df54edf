/* SPDX-License-Identifier: Apache-2.0
 * fds pay: money for a prediction, divided among those whose data it came from. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOP = 10, MONEY_SIZE = 32, LEAST_MONEY = 9, MOST_PAYEE = 30 };

static const cli_option own[] = {
    CLI_OWN('o', "output", output, "FILE", "output file of all shares, .csv or .json [no file]"),
    CLI_OWN(0, "top", top, "N", "number of payees to show, the best paid first [10]"),
    CLI_OWN(0, "all", all, NULL, "show all payees"),
};

typedef struct {
    const cli_args *args;
    const fds_result *result;
    const fds_payment *payment;
    bool by_provider;
    size_t shown;
    size_t *order; /* (payees) */
} view;

static const char *money(const view *v, int64_t units, char out[MONEY_SIZE]) {
    return fds_money_text(units, fds_payment_decimals(v->payment), out);
}

/* How wide the column of money must be. */
static int money_width(const view *v, size_t k, int64_t total) {
    char text[MONEY_SIZE];
    int width = (int)strlen(money(v, total, text));
    for (size_t i = 0; i < fds_payment_payees(v->payment); i++) {
        int columns = (int)strlen(money(v, fds_payment_share(v->payment, k, i), text));
        width = columns > width ? columns : width;
    }
    return width > LEAST_MONEY ? width : LEAST_MONEY;
}

static int payee_width(const view *v) {
    int width = 8;
    for (size_t i = 0; i < fds_payment_payees(v->payment); i++) {
        int columns = cli_columns(fds_payment_payee(v->payment, i));
        width = columns > width ? columns : width;
    }
    return width < MOST_PAYEE ? width : MOST_PAYEE;
}

static void print_shares(const view *v, size_t k, int64_t total) {
    const cli_player_columns w = cli_measure_players(v->result);
    char text[MONEY_SIZE], name[CLI_NAME_SIZE], others[64];
    int width = money_width(v, k, total), named = payee_width(v);
    size_t payees = fds_payment_payees(v->payment);
    int64_t rest = total;
    int before =
        v->by_provider ? printf("rank  %-*s", named, "provider") : cli_print_players_head(&w);
    printf("  %9s  %*s\n", "value", width, "share");
    for (size_t rank = 0; rank < v->shown; rank++) {
        size_t who = v->order[rank];
        if (v->by_provider)
            printf("%4zu  %s", rank + 1, cli_name(fds_payment_payee(v->payment, who), named, name));
        else
            cli_print_player(v->result, &w, rank, who);
        rest -= fds_payment_share(v->payment, k, who);
        printf("  %9.6f  %*s\n", fds_payment_value(v->payment, k, who), width,
               money(v, fds_payment_share(v->payment, k, who), text));
    }
    snprintf(others, sizeof others, "... and %zu others", payees - v->shown);
    if (v->shown < payees)
        printf("      %-*s  %9s  %*s\n", before - 6, others, "", width, money(v, rest, text));
    printf("      %-*s  %9s  %*s\n", before - 6, "sum", "", width, money(v, total, text));
}

static fds_status show_text(const view *v, fds_error *err) {
    const fds_payment *p = v->payment;
    size_t count = fds_result_predictions(v->result);
    int64_t amount = fds_payment_amount(p);
    char text[MONEY_SIZE];
    for (size_t k = 0; k < count; k++) {
        const char *rule = fds_payment_rule(p, k);
        CLI_TRY(fds_payment_rank(p, k, v->order, err));
        cli_print_prediction(v->result, k);
        if (strcmp(rule, "clip") != 0 &&
            strcmp(rule, "signed") != 0) /* not what the policy itself says */
            cli_wrap(fds_payment_rule_text(p, k), printf("paid"), 5);
        print_shares(v, k, amount);
        putchar('\n');
    }
    if (count > 1) {
        CLI_TRY(fds_payment_rank(p, SIZE_MAX, v->order, err));
        printf("All %zu inputs together:\n", count);
        print_shares(v, SIZE_MAX, amount * (int64_t)count);
        putchar('\n');
    }
    printf("%-*s %s for each input\n", CLI_WIDTH, "amount", money(v, amount, text));
    printf("%-*s %s\n", CLI_WIDTH, "rule", fds_payment_rule_text(p, SIZE_MAX));
    CLI_TRY(cli_print_answers(v->result, err));
    if (v->args->output)
        printf("%-*s %s\n", CLI_WIDTH, "written", v->args->output);
    return FDS_OK;
}

static fds_status show(const cli_args *args, const fds_result *result, const fds_payment *payment,
                       size_t top, fds_error *err) {
    char by[16], *text = NULL;
    size_t payees = fds_payment_payees(payment);
    if (args->json) {
        CLI_TRY(fds_payment_json(payment, &text, err));
        return cli_print_text(text, err);
    }
    CLI_TRY(fds_params_get(args->params, "by", by, sizeof by, err));
    view v = {.args = args,
              .result = result,
              .payment = payment,
              .by_provider = strcmp(by, "provider") == 0,
              .shown = args->all || payees < top ? payees : top,
              .order = cli_alloc(payees, sizeof *v.order, err)};
    fds_status status = v.order ? show_text(&v, err) : FDS_ERR_NOMEM;
    free(v.order);
    return status;
}

static fds_status work(const cli_args *args, cli_answer *a, size_t top, fds_error *err) {
    fds_payment *payment;
    CLI_TRY(cli_answer_make(args, a, err));
    CLI_TRY(fds_pay(a->result, args->params, &payment, err));
    fds_status status = args->output ? fds_payment_save(payment, args->output, err) : FDS_OK;
    if (status == FDS_OK)
        status = show(args, a->result, payment, top, err);
    fds_payment_free(payment);
    return status;
}

static fds_status run(cli_args *args, fds_error *err) {
    cli_answer a = {0};
    size_t top;
    CLI_TRY(fds_pay_check(args->params, err));
    CLI_TRY(cli_answer_check(args, err));
    CLI_TRY(cli_number("top", args->top, 1000000, TOP, &top, err));
    if (args->all && args->top)
        return cli_fail(err, FDS_ERR_USAGE, "--all shows everybody: it does not go with --top");
    if (args->output)
        CLI_TRY(cli_check_output("-o", args->output, ".csv|.json", args, err));
    fds_status status = work(args, &a, top, err);
    cli_answer_free(&a);
    return status;
}

const cli_command cli_pay = {
    .name = "pay",
    .job = "pay",
    .operand = "RUN",
    .takes_more = true,
    .missing = "name the folder that fds fit made, for example: fds pay mnist.run --index 0 "
               "--amount 100.00",
    .usage = "RUN (IMAGE... | --index WHICH) --amount MONEY [options]",
    .summary = "divide money for a prediction among players or providers",
    .about =
        "Divides an amount of money for each input in proportion to the values of fds explain. The "
        "shares add up to the amount exactly: the units left by rounding down go to the payees "
        "with the largest remainders.\n\n" CLI_ANSWER_ABOUT,
    .examples = "  fds pay mnist.run --index 0 --amount 100.00\n"
                "  fds pay shops.run --index 0..99 --amount 0.25 --by provider -o pay.csv\n",
    .own = own,
    .own_count = CLI_COUNT(own),
    .run = run,
};
