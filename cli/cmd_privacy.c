/* SPDX-License-Identifier: Apache-2.0
 * fds privacy ...: private ledgers. docs/privacy.md explains what they promise. */
#include "cli.h"
#include "fds/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cli_option on_own[] = {
    CLI_OWN(0, "signing-key", from, "FILE", "the signing key [LEDGER.key]")};
static const cli_option budget_own[] = {
    CLI_OWN(0, "delta", delta, "D", "also as (epsilon, delta), for this delta [1e-6]")};

static void print_promise(const fds_ledger *l) {
    fds_ledger_privacy p;
    char limit[32], deviation[32];
    int decimals = fds_ledger_decimals(l);
    fds_ledger_privacy_of(l, &p);
    printf("each %s: statements with discrete %s noise, standard deviation %s %s\n", p.periods,
           p.mechanism, fds_money_text((int64_t)(p.deviation + 0.5), decimals, deviation),
           fds_ledger_currency(l));
    printf("epsilon %g", p.epsilon);
    if (p.delta > 0)
        printf(", delta %g (rho %g)", p.delta, p.rho);
    if (p.per_customer)
        printf(" for a customer, of whom %llu predictions count,",
               (unsigned long long)p.per_customer);
    else
        printf(" for a prediction");
    printf(" of at most %s\n", fds_money_text(p.price_limit, decimals, limit));
    printf(
        "this is about what is predicted: how many predictions there are, and when, is public\n");
}

static fds_status run_on(cli_args *args, fds_error *err) {
    fds_ledger *l;
    uint64_t index;
    CLI_TRY(fds_ledger_open(args->operand, FDS_LEDGER_WRITE, args->from, &l, err));
    fds_status status = fds_ledger_set_private(l, args->params, &index, err);
    if (status == FDS_OK && args->json)
        status = cli_print_json(json_pack("{s:I}", "entry", (json_int_t)index), err);
    else if (status == FDS_OK)
        print_promise(l);
    fds_ledger_close(l);
    return status;
}

static void print_cost(const char *what, const json_t *cost) {
    printf("%-10s", what);
    if (cli_get(cost, "epsilon"))
        printf("  epsilon %.9g, or", cli_get_number(cost, "epsilon"));
    else
        printf("  rho %.9g, that is", cli_get_number(cost, "rho"));
    printf(" (%.4g, %g)\n", cli_get_number(cost, "epsilon_at_delta"),
           cli_get_number(cost, "delta"));
}

static void explain_budget(bool is_of_customers) {
    const char *what = is_of_customers ? "a customer's predictions" : "a prediction";
    printf("How many predictions there were, and when, is public.\n"
           "each: %s against free ones; against others, to one provider\n"
           "replaced: against others, to providers who pool their statements\n",
           what);
    if (is_of_customers)
        printf("a customer is in every period: together counts\n");
    else
        printf("at once: so many predictions of one customer, against free ones\n"
               "a prediction is in one period: each counts. Customers are not protected as such\n");
}

static void print_budget(const cli_args *args, const json_t *report) {
    const json_t *releases = cli_get(report, "releases");
    (void)args;
    if (!cli_get_flag(report, "private")) {
        printf("not private: nothing was spent\n");
        return;
    }
    printf("period      from        to            entry  %s\n",
           strcmp(cli_get_text(report, "mechanism"), "laplace") == 0 ? "epsilon" : "rho");
    for (size_t i = 0; i < json_array_size(releases); i++) {
        const json_t *row = json_array_get(releases, i);
        const char *unit = cli_get(row, "epsilon") ? "epsilon" : "rho";
        printf("%-10s  %-10s  %-10s  %7llu  %.9g%s\n", cli_get_text(row, "period"),
               cli_get_text(row, "from"), cli_get_text(row, "to"),
               (unsigned long long)cli_get_count(row, "entry"), cli_get_number(row, unit),
               cli_get_flag(row, "released") ? "" : "  (charged, not drawn yet)");
    }
    print_cost("each", cli_get(report, "each"));
    print_cost("replaced", cli_get(report, "replaced"));
    const json_t *several = cli_get(report, "several");
    for (size_t i = 0; i < json_array_size(several); i++) {
        const json_t *row = json_array_get(several, i);
        char name[32];
        snprintf(name, sizeof name, "%llu at once",
                 (unsigned long long)cli_get_count(row, "predictions"));
        print_cost(name, row);
    }
    print_cost("together", cli_get(report, "together"));
    explain_budget(cli_get_count(report, "per_customer") > 0);
}

static fds_status run_budget(cli_args *args, fds_error *err) {
    fds_ledger *l;
    char *report = NULL, *end = NULL;
    double delta = args->delta ? strtod(args->delta, &end) : 1e-6;
    if (args->delta && (end == args->delta || *end))
        return cli_fail(err, FDS_ERR_USAGE, "--delta must be a number (got %s)", args->delta);
    CLI_TRY(fds_ledger_open(args->operand, FDS_LEDGER_READ, NULL, &l, err));
    fds_status status = fds_ledger_budget(l, delta, &report, err);
    fds_ledger_close(l);
    CLI_TRY(status);
    return cli_show(args, report, print_budget, err);
}

const cli_command cli_privacy[] = {
    {.name = "privacy on",
     .job = "privacy",
     .operand = "LEDGER",
     .missing = "for example: fds privacy on shop.db --price-limit 0.01",
     .usage = "LEDGER --price-limit MONEY [options]",
     .summary = "make a ledger private, before its first prediction",
     .about = "From then on providers learn statements with noise and nothing else of what their "
              "data has earned, so that nobody can tell from them what a prediction was about. "
              "How many there are, and when, is public. It cannot be changed or undone.",
     .examples = "  fds privacy on shop.db --price-limit 0.01\n"
                 "  fds privacy on shop.db --price-limit 0.01 --per-customer 100 --epsilon 0.33\n",
     .own = on_own,
     .own_count = CLI_COUNT(on_own),
     .run = run_on},
    {.name = "privacy budget",
     .operand = "LEDGER",
     .missing = "for example: fds privacy budget shop.db",
     .usage = "LEDGER [options]",
     .summary = "show what statements have cost in privacy",
     .about = "Lists the periods whose statements were charged, and what they cost each and "
              "together.",
     .examples = "  fds privacy budget shop.db\n",
     .own = budget_own,
     .own_count = CLI_COUNT(budget_own),
     .run = run_budget},
};
