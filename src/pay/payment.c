/* SPDX-License-Identifier: Apache-2.0
 *
 * A payment for every prediction of a result: who is paid, how much, by which rule; and its file.
 *
 *   .csv   a line for each prediction and payee, the greatest value first:
 *              input,label,rule,rank,player,player_label,provider,samples,value,units,amount
 *   .json  how the result was computed, then units, amount, decimals, policy, paid_by, inputs (each
 *          with its shares) and together (the shares of all inputs)
 *
 * Money is a whole number of units throughout. Two providers are the same when their names in the
 * data agree byte by byte. */
#include "pay/pay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LEAST_DECIMALS = 2, MOST_DECIMALS = 9 };

struct fds_payment {
    const fds_result *result; /* must outlive it */
    int64_t amount;           /* for each prediction */
    int decimals;
    fds__policy policy;
    bool by_provider;
    size_t payees, *payee_of; /* (players) */
    size_t *first;            /* (payees) the first player of each */
    double *values;           /* (predictions + 1, payees): the last row has the sums */
    int64_t *shares;          /* the same */
    fds__pay_rule *rules;     /* (predictions) */
};

void fds_payment_free(fds_payment *p) {
    if (!p)
        return;
    fds__free(p->payee_of);
    fds__free(p->first);
    fds__free(p->values);
    fds__free(p->shares);
    fds__free(p->rules);
    fds__free(p);
}

/* ---- money ---- */

const char *fds_money_text(int64_t units, int decimals, char out[32]) {
    uint64_t size = units < 0 ? 0 - (uint64_t)units : (uint64_t)units, scale = 1;
    for (int i = 0; i < decimals; i++)
        scale *= 10;
    snprintf(out, 32, "%s%llu.%0*llu", units < 0 ? "-" : "", (unsigned long long)(size / scale),
             decimals, (unsigned long long)(size % scale));
    return out;
}

/* "100.5" is 10050 units of 2 decimals. */
static fds_status read_amount(fds_payment *p, const char *text, fds_error *err) {
    char most[32];
    size_t whole = strspn(text, "0123456789"), part = 0;
    if (text[whole] == '.')
        part = strspn(text + whole + 1, "0123456789");
    bool is_number = whole && !text[whole + (part ? 1 + part : 0)];
    p->decimals = part > LEAST_DECIMALS ? (int)part : LEAST_DECIMALS;
    if (!is_number || part > MOST_DECIMALS)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`amount` must be money such as 100 or 100.00, with at most %d decimals "
                         "(got %.60s)",
                         MOST_DECIMALS, text);
    for (size_t i = 0; i < whole + (size_t)p->decimals; i++) {
        int digit = i < whole ? text[i] - '0' : i < whole + part ? text[i + 1] - '0' : 0;
        p->amount = 10 * p->amount + digit;
        if (p->amount > (int64_t)FDS__EXACT_MAX)
            return fds__fail(err, FDS_ERR_USAGE, "`amount` must be at most %s (got %.60s)",
                             fds_money_text((int64_t)FDS__EXACT_MAX, p->decimals, most), text);
    }
    return FDS_OK;
}

/* ---- who is paid ---- */

static fds_status find_payees(fds_payment *p, fds_error *err) {
    const fds_result *r = p->result;
    p->payee_of = fds__alloc_zero(r->players, sizeof *p->payee_of);
    p->first = fds__alloc_zero(r->players, sizeof *p->first);
    if (!p->payee_of || !p->first)
        return fds__fail_nomem(err, r->players * sizeof *p->first);
    for (size_t i = 0; i < r->players; i++) {
        const char *provider = r->provider_names[i];
        if (p->by_provider && !provider)
            return fds__fail(err, FDS_ERR_USAGE, "`by` provider: the data names no providers");
        size_t payee = p->by_provider ? 0 : p->payees;
        while (payee < p->payees && strcmp(r->provider_names[p->first[payee]], provider) != 0)
            payee++;
        if (payee == p->payees)
            p->first[p->payees++] = i;
        p->payee_of[i] = payee;
    }
    return FDS_OK;
}

/* ---- paying ---- */

static fds_status fail_sum(const fds_payment *p, fds_error *err) {
    char text[32];
    return fds__fail(err, FDS_ERR_LIMIT, "`amount` %s for %zu inputs: the sum is too large",
                     fds_money_text(p->amount, p->decimals, text), p->result->predictions);
}

static fds_status pay_one(fds_payment *p, size_t k, fds_error *err) {
    const fds_result *r = p->result;
    double *values = p->values + k * p->payees, *sums = p->values + r->predictions * p->payees;
    int64_t *shares = p->shares + k * p->payees, *totals = p->shares + r->predictions * p->payees;
    for (size_t i = 0; i < r->players; i++)
        values[p->payee_of[i]] += r->values[k * r->players + i];
    TRY(fds__pay(values, p->payees, p->amount, p->policy, shares, &p->rules[k], err));
    for (size_t i = 0; i < p->payees; i++) {
        sums[i] += values[i];
        if (__builtin_add_overflow(totals[i], shares[i], &totals[i]))
            return fail_sum(p, err);
    }
    return FDS_OK;
}

static fds_status pay_all(fds_payment *p, fds_error *err) {
    size_t all = (p->result->predictions + 1) * p->payees;
    int64_t total;
    p->values = fds__alloc_zero(all, sizeof *p->values);
    p->shares = fds__alloc_zero(all, sizeof *p->shares);
    p->rules = fds__alloc_zero(p->result->predictions, sizeof *p->rules);
    if (!p->values || !p->shares || !p->rules)
        return fds__fail_nomem(err, all * sizeof *p->values);
    if (__builtin_mul_overflow(p->amount, (int64_t)p->result->predictions, &total))
        return fail_sum(p, err);
    for (size_t k = 0; k < p->result->predictions; k++)
        TRY(pay_one(p, k, err));
    return FDS_OK;
}

fds_status fds_pay_check(const fds_params *params, fds_error *err) {
    fds_payment unused = {0};
    if (!params || !params->amount)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`amount` is missing: money for each input, for example 100.00");
    return read_amount(&unused, params->amount, err);
}

fds_status fds_pay(const fds_result *result, const fds_params *params, fds_payment **out,
                   fds_error *err) {
    TRY(fds_pay_check(params, err));
    fds_payment *p = fds__alloc_zero(1, sizeof *p);
    if (!p)
        return fds__fail_nomem(err, sizeof *p);
    p->result = result;
    p->policy = (fds__policy)params->policy;
    p->by_provider = params->pay_by == 1;
    fds_status status = read_amount(p, params->amount, err);
    if (status == FDS_OK)
        status = find_payees(p, err);
    if (status == FDS_OK)
        status = pay_all(p, err);
    if (status != FDS_OK)
        fds_payment_free(p);
    else
        *out = p;
    return status;
}

/* ---- reading ---- */

size_t fds_payment_payees(const fds_payment *p) { return p->payees; }
int fds_payment_decimals(const fds_payment *p) { return p->decimals; }
int64_t fds_payment_amount(const fds_payment *p) { return p->amount; }

const char *fds_payment_payee(const fds_payment *p, size_t payee) {
    if (payee >= p->payees)
        return "?";
    return p->by_provider ? p->result->provider_names[p->first[payee]]
                          : p->result->player_names[p->first[payee]];
}

/* Where the payee's numbers of a prediction, or (SIZE_MAX) their sums, are; SIZE_MAX: nowhere. */
static size_t place_of(const fds_payment *p, size_t k, size_t payee) {
    size_t row = k == SIZE_MAX ? p->result->predictions : k;
    bool is_there = payee < p->payees && (k < p->result->predictions || k == SIZE_MAX);
    return is_there ? row * p->payees + payee : SIZE_MAX;
}

int64_t fds_payment_share(const fds_payment *p, size_t k, size_t payee) {
    size_t place = place_of(p, k, payee);
    return place == SIZE_MAX ? 0 : p->shares[place];
}

double fds_payment_value(const fds_payment *p, size_t k, size_t payee) {
    size_t place = place_of(p, k, payee);
    return place == SIZE_MAX ? (double)NAN : p->values[place];
}

const char *fds_payment_rule(const fds_payment *p, size_t k) {
    static const char *const names[] = {"clip", "signed", "clip-for-signed", "evenly"};
    return k < p->result->predictions ? names[p->rules[k]] : "?";
}

const char *fds_payment_rule_text(const fds_payment *p, size_t k) {
    return k < p->result->predictions
               ? fds__pay_rule_text(p->rules[k])
               : fds__pay_rule_text(p->policy == FDS__POLICY_SIGNED ? FDS__PAY_RULE_SIGNED
                                                                    : FDS__PAY_RULE_CLIP);
}

/* By falling sum of shares, or by falling value in one prediction. */
fds_status fds_payment_rank(const fds_payment *p, size_t k, size_t *order, fds_error *err) {
    if (k != SIZE_MAX && k >= p->result->predictions)
        return fds__fail(err, FDS_ERR_USAGE, "prediction %zu: there are %zu", k,
                         p->result->predictions);
    double *keys = fds__alloc_zero(p->payees, sizeof *keys);
    if (!keys)
        return fds__fail_nomem(err, p->payees * sizeof *keys);
    for (size_t i = 0; i < p->payees; i++)
        keys[i] = k == SIZE_MAX ? (double)fds_payment_share(p, k, i) : fds_payment_value(p, k, i);
    fds_status status = fds__rank(keys, p->payees, order, err);
    fds__free(keys);
    return status;
}

/* ---- JSON ---- */

static json_t *json_share(const fds_payment *p, size_t k, size_t payee) {
    const fds_result *r = p->result;
    size_t player = p->first[payee];
    char text[32];
    int64_t units = fds_payment_share(p, k, payee);
    return json_pack("{s:o, s:o, s:o, s:o, s:I, s:s}", "player",
                     fds__json_string(p->by_provider ? NULL : r->player_names[player]), "label",
                     fds__json_string(p->by_provider ? NULL : fds_result_player_label(r, player)),
                     "provider", fds__json_string(r->provider_names[player]), "value",
                     fds__json_real(fds_payment_value(p, k, payee)), "units", (json_int_t)units,
                     "amount", fds_money_text(units, p->decimals, text));
}

static json_t *json_shares(const fds_payment *p, size_t k) {
    json_t *list = json_array();
    size_t *order = fds__alloc_zero(p->payees, sizeof *order);
    bool is_whole = list && order && fds_payment_rank(p, k, order, NULL) == FDS_OK;
    for (size_t rank = 0; rank < p->payees && is_whole; rank++)
        is_whole = fds__json_append(list, json_share(p, k, order[rank]));
    fds__free(order);
    return fds__json_keep_if(list, is_whole);
}

static json_t *json_input(const fds_payment *p, size_t k) {
    json_t *input = fds__result_json_prediction(p->result, k);
    bool is_whole = input && fds__json_put(input, "rule", json_string(fds_payment_rule(p, k))) &&
                    fds__json_put(input, "shares", json_shares(p, k));
    return fds__json_keep_if(input, is_whole);
}

static json_t *json_all(const fds_payment *p) {
    char text[32];
    json_t *root = json_deep_copy(p->result->about), *list = json_array();
    bool is_whole = root && list;
    for (size_t k = 0; k < p->result->predictions && is_whole; k++)
        is_whole = fds__json_append(list, json_input(p, k));
    json_t *paid =
        json_pack("{s:I, s:s, s:i, s:s, s:s, s:o, s:o}", "units", (json_int_t)p->amount, "amount",
                  fds_money_text(p->amount, p->decimals, text), "decimals", p->decimals, "policy",
                  p->policy == FDS__POLICY_SIGNED ? "signed" : "clip", "paid_by",
                  p->by_provider ? "provider" : "player", "inputs", list, "together",
                  json_shares(p, SIZE_MAX));
    is_whole = is_whole && paid && json_object_update(root, paid) == 0;
    json_decref(paid);
    return fds__json_keep_if(root, is_whole);
}

fds_status fds_payment_json(const fds_payment *p, char **out, fds_error *err) {
    json_t *root = json_all(p);
    *out = root ? fds__json_text(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(root);
    return *out ? FDS_OK : fds__fail_json(err);
}

/* ---- files ---- */

static void add_share(const fds_payment *p, size_t k, size_t rank, size_t payee, fds__text *text) {
    const fds_result *r = p->result;
    size_t player = p->first[payee], at = k * p->payees + payee;
    const char *provider = r->provider_names[player];
    char money[32], sample[32], place[32], samples[32];
    snprintf(sample, sizeof sample, "test sample %u", r->samples[k]);
    snprintf(place, sizeof place, "%zu", rank + 1);
    snprintf(samples, sizeof samples, "%u", r->player_sizes[player]);
    bool has_name = r->input_names[k] || r->samples[k] == FDS__UNKNOWN;
    const char *fields[] = {has_name ? fds_result_input(r, k) : sample,
                            fds_result_label(r, k),
                            fds_payment_rule(p, k),
                            place,
                            p->by_provider ? "" : r->player_names[player],
                            p->by_provider ? "" : fds_result_player_label(r, player),
                            provider ? provider : "",
                            p->by_provider ? "" : samples};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        fds__text_csv(text, fields[i]);
        fds__text_add(text, ",", 1);
    }
    fds__text_double(text, p->values[at]);
    fds__text_print(text, ",%lld,%s\n", (long long)p->shares[at],
                    fds_money_text(p->shares[at], p->decimals, money));
}

static fds_status csv_text(const fds_payment *p, char **out, fds_error *err) {
    fds__text text = {0};
    size_t *order = fds__alloc_zero(p->payees, sizeof *order);
    fds_status status = order ? FDS_OK : fds__fail_nomem(err, p->payees * sizeof *order);
    fds__text_print(
        &text, "input,label,rule,rank,player,player_label,provider,samples,value,units,amount\n");
    for (size_t k = 0; k < p->result->predictions && status == FDS_OK; k++) {
        status = fds_payment_rank(p, k, order, err);
        for (size_t rank = 0; rank < p->payees && status == FDS_OK; rank++)
            add_share(p, k, rank, order[rank], &text);
    }
    fds__text_add(&text, "", 1);
    if (status == FDS_OK)
        status = fds__text_check(&text, err);
    fds__free(order);
    *out = text.data;
    return status;
}

fds_status fds_payment_save(const fds_payment *p, const char *path, fds_error *err) {
    const char *dot = strrchr(path, '.');
    bool is_csv = dot && strcasecmp(dot, ".csv") == 0;
    char *text = NULL;
    if (!is_csv && (!dot || strcasecmp(dot, ".json") != 0))
        return fds__fail(err, FDS_ERR_USAGE, "%s: a file of payments must end in .csv or .json",
                         path);
    fds_status status = is_csv ? csv_text(p, &text, err) : fds_payment_json(p, &text, err);
    if (status == FDS_OK)
        status = fds__file_write(path, text, strlen(text), err);
    fds__free(text);
    return status;
}
