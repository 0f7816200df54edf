/* SPDX-License-Identifier: Apache-2.0
 * fds pay: money for a prediction, divided among those whose data it came from. Money is counted in
 * whole numbers of the smallest unit from beginning to end. */
#include "answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOP_DEFAULT = 10, LEAST_DECIMALS = 2, MOST_DECIMALS = 9, MONEY_SIZE = 32 };

typedef struct {
    cli_common common;
    fds_data_options data;
    answer_ask ask;
    const char *amount, *policy, *by, *output;
    bool all;
    uint64_t top; /* 0: not given */
} pay_options;

static const cli_option pay_table[] = {
    {CLI_ROW(STRING, pay_options, amount, 0, "amount", "MONEY",
             "what is paid for each input, such as 100.00: with as many decimals as are given, at "
             "least two; needed")},
    {CLI_ROW(CHOICE, pay_options, policy, 0, "policy", "clip|signed",
             "clip: negative values earn nothing, the others share in proportion; signed: "
             "negative values owe, as in the paper [clip]")},
    {CLI_ROW(CHOICE, pay_options, by, 0, "by", "player|provider",
             "who is paid; with provider the values of a provider's players are added up first "
             "[player]")},
    {CLI_ROW(UINT, pay_options, top, 0, "top", "N", "how many are shown, the best paid first [10]"),
     .min = 1, .max = 1000000},
    {CLI_ROW(FLAG, pay_options, all, 0, "all", NULL, "show everybody")},
    {CLI_ROW(STRING, pay_options, output, 'o', "output", "FILE",
             "where the shares of everybody go: .csv or .json, as it ends [no file]")},
    ANSWER_OPTIONS(pay_options),
};

/* A payment for each input. */
typedef struct {
    const pay_options *o;
    answer a;
    int64_t amount; /* of the smallest unit */
    int decimals;
    fds_policy policy;
    bool by_provider;

    size_t payees;
    size_t *payee_of;    /* (players) */
    const char **names;  /* (payees) */
    double *values;      /* (count, payees) */
    int64_t *shares;     /* (count, payees) */
    fds_pay_rule *rules; /* (count) */
    double *sum_values;  /* (payees) over all inputs */
    int64_t *sum_shares; /* (payees) */
    double *keys;        /* (payees) sum_shares, to rank by */
    size_t *order;       /* (payees) scratch */
} job;

static void job_free(job *j) {
    answer_free(&j->a);
    free(j->payee_of);
    free(j->names);
    free(j->values);
    free(j->shares);
    free(j->rules);
    free(j->sum_values);
    free(j->sum_shares);
    free(j->keys);
    free(j->order);
}

/* ---- money ---- */

/* "-1.05"; returns out. */
static const char *money(const job *j, int64_t units, char out[MONEY_SIZE]) {
    uint64_t size = units < 0 ? 0 - (uint64_t)units : (uint64_t)units, scale = 1;
    for (int i = 0; i < j->decimals; i++)
        scale *= 10;
    snprintf(out, MONEY_SIZE, "%s%llu.%0*llu", units < 0 ? "-" : "",
             (unsigned long long)(size / scale), j->decimals, (unsigned long long)(size % scale));
    return out;
}

/* "100.5" is 10050 units of 2 decimals. */
static fds_status read_amount(job *j, fds_error *err) {
    char most[MONEY_SIZE];
    const char *text = j->o->amount;
    size_t whole = strspn(text, "0123456789"), part = 0;
    if (text[whole] == '.')
        part = strspn(text + whole + 1, "0123456789");
    bool is_number = whole && !text[whole + (part ? 1 + part : 0)];
    j->decimals = part > LEAST_DECIMALS ? (int)part : LEAST_DECIMALS;
    if (!is_number || part > MOST_DECIMALS)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--amount %s: it must be money such as 100 or 100.00, with at most %d "
                        "decimals",
                        text, MOST_DECIMALS);
    j->amount = 0;
    for (size_t i = 0; i < whole + (size_t)j->decimals; i++) {
        size_t at = i < whole ? i : i + 1;
        int digit = i < whole + part ? text[at] - '0' : 0;
        j->amount = 10 * j->amount + digit;
        if (j->amount > (int64_t)CLI_EXACT_MAX)
            return cli_fail(err, FDS_ERR_USAGE, "--amount %s: it is too large, at most %s", text,
                            money(j, (int64_t)CLI_EXACT_MAX, most));
    }
    return FDS_OK;
}

/* ---- before any work ---- */

static fds_status check_options(job *j, fds_error *err) {
    const pay_options *o = j->o;
    if (!o->amount)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--amount is missing: what is paid for each input, for "
                        "example --amount 100.00");
    CLI_TRY(read_amount(j, err));
    CLI_TRY(answer_check(&j->a, err));
    if (o->all && o->top)
        return cli_fail(err, FDS_ERR_USAGE, "--all shows everybody: not with --top");
    if (!o->output)
        return FDS_OK;
    const char *dot = strrchr(o->output, '.');
    if (!dot || (strcmp(dot, ".csv") != 0 && strcmp(dot, ".json") != 0))
        return cli_fail(err, FDS_ERR_USAGE, "-o %s: it must end in .csv or .json", o->output);
    return answer_check_output(&j->a, "-o", o->output, err);
}

/* ---- who is paid ---- */

static fds_status make_payees(job *j, fds_error *err) {
    size_t n = j->a.info.players;
    j->payee_of = cli_alloc(n, sizeof *j->payee_of, err);
    j->names = cli_alloc(n, sizeof *j->names, err);
    if (!j->payee_of || !j->names)
        return FDS_ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        const char *name = j->by_provider ? fds_run_player_provider(j->a.run, i)
                                          : fds_run_player_name(j->a.run, i);
        if (!name)
            return cli_fail(err, FDS_ERR_USAGE,
                            "--by provider: the players of %s belong to no providers, its data "
                            "names none",
                            j->o->common.operand);
        size_t payee = j->by_provider ? 0 : j->payees;
        while (payee < j->payees && strcmp(j->names[payee], name) != 0)
            payee++;
        if (payee == j->payees)
            j->names[j->payees++] = name;
        j->payee_of[i] = payee;
    }
    return FDS_OK;
}

/* ---- paying ---- */

static fds_status make_arrays(job *j, fds_error *err) {
    size_t all = j->a.count * j->payees;
    j->values = cli_alloc(all, sizeof *j->values, err);
    j->shares = cli_alloc(all, sizeof *j->shares, err);
    j->rules = cli_alloc(j->a.count, sizeof *j->rules, err);
    j->sum_values = cli_alloc(j->payees, sizeof *j->sum_values, err);
    j->sum_shares = cli_alloc(j->payees, sizeof *j->sum_shares, err);
    j->keys = cli_alloc(j->payees, sizeof *j->keys, err);
    j->order = cli_alloc(j->payees, sizeof *j->order, err);
    bool has_all =
        j->values && j->shares && j->rules && j->sum_values && j->sum_shares && j->keys && j->order;
    return has_all ? FDS_OK : FDS_ERR_NOMEM;
}

static fds_status pay_input(job *j, size_t i, fds_error *err) {
    size_t n = j->a.info.players;
    double *values = j->values + i * j->payees;
    int64_t *shares = j->shares + i * j->payees;
    for (size_t p = 0; p < n; p++)
        values[j->payee_of[p]] += j->a.answers.values[i * n + p];
    CLI_TRY(fds_pay(values, j->payees, j->amount, j->policy, shares, &j->rules[i], err));
    for (size_t k = 0; k < j->payees; k++) {
        j->sum_values[k] += values[k];
        if (__builtin_add_overflow(j->sum_shares[k], shares[k], &j->sum_shares[k]))
            return cli_fail(err, FDS_ERR_LIMIT, "--amount %s for %zu inputs is too large in sum",
                            j->o->amount, j->a.count);
    }
    return FDS_OK;
}

static fds_status pay_all(job *j, fds_error *err) {
    int64_t total;
    CLI_TRY(make_arrays(j, err));
    if (__builtin_mul_overflow(j->amount, (int64_t)j->a.count, &total))
        return cli_fail(err, FDS_ERR_LIMIT, "--amount %s for %zu inputs is too large in sum",
                        j->o->amount, j->a.count);
    for (size_t i = 0; i < j->a.count; i++)
        CLI_TRY(pay_input(j, i, err));
    for (size_t k = 0; k < j->payees; k++)
        j->keys[k] = (double)j->sum_shares[k];
    return FDS_OK;
}

/* ---- text ---- */

static const char *rule_name(fds_pay_rule rule) {
    static const char *const names[] = {"clip", "signed", "clip-for-signed", "evenly"};
    return names[rule];
}

/* Whether it is what the policy itself says. */
static bool is_plain(fds_pay_rule rule) {
    return rule == FDS_PAY_RULE_CLIP || rule == FDS_PAY_RULE_SIGNED;
}

static int payee_width(const job *j) {
    int width = 8;
    for (size_t i = 0; i < j->payees; i++) {
        int columns = cli_columns(j->names[i]);
        width = columns > width ? columns : width;
    }
    return width < 30 ? width : 30;
}

/* How wide the column of money must be. */
static int money_width(const job *j, const int64_t *shares, int64_t total) {
    char text[MONEY_SIZE];
    int width = (int)strlen(money(j, total, text));
    for (size_t k = 0; k < j->payees; k++) {
        int columns = (int)strlen(money(j, shares[k], text));
        width = columns > width ? columns : width;
    }
    return width > 9 ? width : 9;
}

/* Prints the columns before the value, of one payee or (SIZE_MAX) their heading; says how wide they
 * are. */
static int print_payee(const job *j, const answer_widths *w, size_t rank, size_t who) {
    char name[CLI_NAME_SIZE];
    if (j->by_provider) {
        int width = payee_width(j);
        if (who == SIZE_MAX)
            return printf("rank  %-*s", width, "provider");
        printf("%4zu  %s", rank + 1, cli_name(j->names[who], width, name));
        return 6 + width;
    }
    if (who == SIZE_MAX)
        answer_print_head(w);
    else
        answer_print_player(&j->a, w, rank, who);
    return 6 + w->player + 2 + w->label + (w->provider ? 2 + w->provider : 0);
}

static void print_shares(const job *j, const double *values, const int64_t *shares, int64_t total) {
    const answer_widths w = answer_measure(&j->a);
    char text[MONEY_SIZE], others[64];
    int width = money_width(j, shares, total);
    size_t top = j->o->top ? (size_t)j->o->top : TOP_DEFAULT;
    size_t shown = j->o->all || j->payees < top ? j->payees : top;
    int64_t rest = total;
    int before = print_payee(j, &w, 0, SIZE_MAX);
    printf("  %9s  %*s\n", "value", width, "share");
    for (size_t rank = 0; rank < shown; rank++) {
        size_t who = j->order[rank];
        print_payee(j, &w, rank, who);
        printf("  %9.6f  %*s\n", values[who], width, money(j, shares[who], text));
        rest -= shares[who];
    }
    snprintf(others, sizeof others, "... and %zu others", j->payees - shown);
    if (shown < j->payees)
        printf("      %-*s  %9s  %*s\n", before - 6, others, "", width, money(j, rest, text));
    printf("      %-*s  %9s  %*s\n", before - 6, "sum", "", width, money(j, total, text));
}

static fds_status show_text(job *j, fds_error *err) {
    const answer *a = &j->a;
    char text[MONEY_SIZE];
    answer_print(a);
    printf("%-8s %s for each input\n", "amount", money(j, j->amount, text));
    printf("%-8s %s\n", "rule",
           fds_pay_rule_text(j->policy == FDS_POLICY_SIGNED ? FDS_PAY_RULE_SIGNED
                                                            : FDS_PAY_RULE_CLIP));
    for (size_t i = 0; i < a->count; i++) {
        const double *values = j->values + i * j->payees;
        CLI_TRY(answer_rank(values, j->payees, j->order, err));
        answer_print_input(a, i);
        if (!is_plain(j->rules[i]))
            cli_wrap(fds_pay_rule_text(j->rules[i]), printf("paid"), 5);
        print_shares(j, values, j->shares + i * j->payees, j->amount);
    }
    if (a->count > 1) {
        CLI_TRY(answer_rank(j->keys, j->payees, j->order, err));
        printf("\nAll %zu inputs together:\n", a->count);
        print_shares(j, j->sum_values, j->sum_shares, j->amount * (int64_t)a->count);
    }
    if (j->o->output)
        printf("\nshares written to %s\n", j->o->output);
    return FDS_OK;
}

/* ---- JSON ---- */

static json_t *json_share(const job *j, size_t who, double value, int64_t units) {
    char text[MONEY_SIZE];
    const fds_run *run = j->a.run;
    bool by_provider = j->by_provider;
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:I, s:s}", "player",
        by_provider ? json_null() : cli_json_text(j->names[who]), "label",
        by_provider ? json_null()
                    : cli_json_text(fds_run_class_name(run, fds_run_player_label(run, who))),
        "provider",
        answer_json_text(by_provider ? j->names[who] : fds_run_player_provider(run, who)), "value",
        cli_json_real(value), "units", (json_int_t)units, "amount", money(j, units, text));
}

/* Everybody, the greatest of keys first. */
static json_t *json_shares(const job *j, const double *keys, const double *values,
                           const int64_t *shares, fds_error *err) {
    json_t *list = json_array();
    bool is_fine = list && answer_rank(keys, j->payees, j->order, err) == FDS_OK;
    for (size_t rank = 0; rank < j->payees && is_fine; rank++) {
        size_t who = j->order[rank];
        is_fine = json_array_append_new(list, json_share(j, who, values[who], shares[who])) == 0;
    }
    if (is_fine)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *json_input(const job *j, size_t i, fds_error *err) {
    json_t *input = answer_json_input(&j->a, i);
    const double *values = j->values + i * j->payees;
    json_t *paid = json_pack("{s:s, s:o}", "rule", rule_name(j->rules[i]), "shares",
                             json_shares(j, values, values, j->shares + i * j->payees, err));
    if (!input || !paid || json_object_update(input, paid) != 0) {
        json_decref(input);
        input = NULL;
    }
    json_decref(paid);
    return input;
}

static json_t *json_all(const job *j, fds_error *err) {
    char text[MONEY_SIZE];
    json_t *root = answer_json(&j->a), *list = json_array();
    bool is_fine = root && list;
    for (size_t i = 0; i < j->a.count && is_fine; i++)
        is_fine = json_array_append_new(list, json_input(j, i, err)) == 0;
    json_t *paid =
        is_fine
            ? json_pack("{s:I, s:s, s:i, s:s, s:s, s:O, s:o, s:o}", "units", (json_int_t)j->amount,
                        "amount", money(j, j->amount, text), "decimals", j->decimals, "policy",
                        j->policy == FDS_POLICY_SIGNED ? "signed" : "clip", "paid_by",
                        j->by_provider ? "provider" : "player", "inputs", list, "together",
                        json_shares(j, j->keys, j->sum_values, j->sum_shares, err), "file",
                        answer_json_text(j->o->output))
            : NULL;
    json_decref(list);
    if (!paid || json_object_update(root, paid) != 0) {
        json_decref(root);
        root = NULL;
    }
    json_decref(paid);
    return root;
}

/* ---- files ---- */

/* A field of a CSV file, in quotes where it needs them. */
static void put_field(FILE *file, const char *text) {
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', file);
        fputc(*text, file);
    }
    fputc('"', file);
}

static void put_share(const job *j, FILE *file, size_t i, size_t who) {
    char text[MONEY_SIZE], input[ANSWER_NAME_SIZE];
    const fds_run *run = j->a.run;
    size_t at = i * j->payees + who;
    const char *provider = j->by_provider ? j->names[who] : fds_run_player_provider(run, who);
    const char *fields[] = {
        answer_input(&j->a, i, input),
        fds_run_class_name(run, j->a.answers.labels[i]),
        rule_name(j->rules[i]),
        j->by_provider ? "" : j->names[who],
        j->by_provider ? "" : fds_run_class_name(run, fds_run_player_label(run, who)),
        provider ? provider : "",
    };
    for (size_t f = 0; f < CLI_COUNT(fields); f++) {
        put_field(file, fields[f]);
        fputc(',', file);
    }
    fprintf(file, "%.17g,%lld,%s\n", j->values[at], (long long)j->shares[at],
            money(j, j->shares[at], text));
}

static fds_status save_csv(const job *j, fds_error *err) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return cli_fail(err, FDS_ERR_NOMEM, "out of memory for %s", j->o->output);
    fputs("input,label,rule,player,player_label,provider,value,units,amount\n", file);
    for (size_t i = 0; i < j->a.count; i++)
        for (size_t who = 0; who < j->payees; who++)
            put_share(j, file, i, who);
    bool is_whole = fclose(file) == 0 && text;
    fds_status status = is_whole
                            ? cli_write_file(j->o->output, text, size, err)
                            : cli_fail(err, FDS_ERR_NOMEM, "out of memory for %s", j->o->output);
    free(text);
    return status;
}

static fds_status save_json(const job *j, fds_error *err) {
    json_t *root = json_all(j, err);
    char *text = root ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(root);
    fds_status status = text ? cli_write_file(j->o->output, text, strlen(text), err)
                             : cli_fail(err, FDS_ERR_NOMEM, "out of memory for %s", j->o->output);
    free(text);
    return status;
}

static fds_status save(const job *j, fds_error *err) {
    const char *dot = j->o->output ? strrchr(j->o->output, '.') : NULL;
    if (!dot)
        return FDS_OK;
    return strcmp(dot, ".csv") == 0 ? save_csv(j, err) : save_json(j, err);
}

/* ---- all of it ---- */

static fds_status run_job(job *j, fds_error *err) {
    CLI_TRY(check_options(j, err));
    CLI_TRY(answer_open(&j->a, err));
    CLI_TRY(make_payees(j, err));
    CLI_TRY(answer_solve(&j->a, err));
    CLI_TRY(pay_all(j, err));
    CLI_TRY(save(j, err));
    return j->o->common.json ? cli_json_print(json_all(j, err), err) : show_text(j, err);
}

static fds_status run_pay(const cli_command *self, int argc, char **argv, fds_error *err) {
    pay_options o = {0};
    cli_term term;
    o.common.more = cli_alloc((size_t)argc, sizeof *o.common.more, err);
    fds_status status = o.common.more ? cli_parse(self, argc, argv, &o, err) : FDS_ERR_NOMEM;
    cli_term_init(&term, self, o.common.quiet);
    job j = {.o = &o,
             .a = {.common = &o.common, .data = &o.data, .ask = &o.ask, .term = &term},
             .policy =
                 o.policy && strcmp(o.policy, "signed") == 0 ? FDS_POLICY_SIGNED : FDS_POLICY_CLIP,
             .by_provider = o.by && strcmp(o.by, "provider") == 0};
    if (status == FDS_OK)
        status = run_job(&j, err);
    cli_term_clear(&term);
    job_free(&j);
    free(o.common.more);
    return status;
}

const cli_command cli_pay = {
    .name = "pay",
    .operand = "RUN",
    .needs = "name the folder that fds fit made, for example: fds pay mnist.run --index 0 "
             "--amount 100.00",
    .usage = "RUN (IMAGE... | --index WHICH) --amount MONEY [options]",
    .summary = "divide money for a prediction among those whose data it came from",
    .about = "Divides an amount of money for each input by the values that fds explain gives. The "
             "shares add up to the amount to the last unit: what does not divide goes to those "
             "with the largest remainders.\n\n" ANSWER_ABOUT,
    .examples = "  fds pay mnist.run --index 0 --amount 100.00\n"
                "  fds pay shops.run --index 0..99 --amount 0.25 --by provider -o pay.csv\n",
    .options = pay_table,
    .option_count = CLI_COUNT(pay_table),
    .run = run_pay,
};
