/* SPDX-License-Identifier: Apache-2.0
 *
 * Pays prediction after prediction: results go in, payments come out, and what rounding leaves is
 * carried from one to the next. The carry may be kept in a file from one command to the next:
 *
 *   format, version   "fds carry", 1
 *   of                what it belongs to: currency (or null), decimals, policy, paid_by, payees (each
 *                     with player, label, provider, group), players_checksum
 *   predictions       paid so far
 *   units             paid to each payee so far
 *   owed              to each payee, as text: whole units, rounded down, a point, and the fraction
 *                     in 16 hexadecimal digits; the sum of all is 0 up to rounding
 *   checksum          of everything else
 *
 * It is replaced after the payments have been written. A command that dies between the two can be
 * repeated: it pays the same once more. */
#include "pay/pay.h"

#include <math.h>
#include <stdlib.h>

enum { CARRY_VERSION = 1, MOST_WRITERS = 2, OWED_SIZE = 48 };
#define MOST_CARRY ((size_t)1 << 30) /* bytes of a file */

struct fds_payer {
    fds_payment *total; /* the sums, and the terms of all payments */
    fds__pay_by by;
    bool is_points;     /* every player must be one sample */
    int64_t sum;        /* of all predictions, where that is what is given */
    size_t predictions; /* as announced; 0: not known */
    size_t foreseen;
    bool is_summary;
    fds__carry *carry;
    char *path; /* of the carry; NULL: none */
    fds__file lock;
    size_t earlier;         /* predictions that the file says are paid */
    int64_t *earlier_units; /* (payees) */
    fds__pay_writer *writers[MOST_WRITERS];
    size_t writer_count;
};

static void free_writers(fds_payer *p) {
    for (size_t i = 0; i < p->writer_count; i++)
        fds__pay_writer_free(p->writers[i]);
    p->writer_count = 0;
}

void fds_payer_free(fds_payer *p) {
    if (!p)
        return;
    free_writers(p);
    fds__file_close(&p->lock);
    fds__carry_free(p->carry);
    fds_payment_free(p->total);
    fds__free(p->earlier_units);
    fds__free(p->path);
    fds__free(p);
}

/* ---- the terms ---- */

/* Reads what the parameters say about money; *sum is the whole sum, where that is given. */
static fds_status read_terms(const fds_params *params, fds_payment *terms, int64_t *sum,
                             fds_error *err) {
    if (!params || (!params->amount && !params->total))
        return fds__fail(
            err, FDS_ERR_USAGE,
            "`amount` is missing: money for each input, for example 100.00; or `total`, "
            "for all of them");
    if (params->amount && params->total)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`amount` and `total`: give money for each input or for all, not both");
    terms->is_total = params->total != NULL;
    terms->policy = (fds__policy)params->policy;
    return terms->is_total
               ? fds__money_read("total", params->total, params->currency, &terms->unit, sum, err)
               : fds__money_read("amount", params->amount, params->currency, &terms->unit,
                                 &terms->each, err);
}

fds_status fds_pay_check(const fds_params *params, fds_error *err) {
    fds_payment unused = {0};
    int64_t sum;
    return read_terms(params, &unused, &sum, err);
}

static fds_status open_lock(fds_payer *p, fds_error *err) {
    char path[FDS__PATH_MAX];
    if (snprintf(path, sizeof path, "%s.lock", p->path) >= (int)sizeof path)
        return fds__fail(err, FDS_ERR_USAGE, "`carry`: the path is too long");
    TRY(fds__file_open(&p->lock, path, FDS__ACCESS_CREATE, err));
    return fds__file_lock(&p->lock, p->path, err);
}

static fds_status open_payer(fds_payer *p, const fds_params *params, fds_error *err) {
    char text[32];
    int64_t all;
    TRY(NEW(p->total, 1, err));
    TRY(read_terms(params, p->total, &p->sum, err));
    p->by = (fds__pay_by)params->pay_by;
    p->is_points = fds__is_given(params, group_value) && params->group_value == 1;
    if (p->is_points)
        p->by = FDS__PAY_BY_PROVIDER;
    p->is_summary = params->summary;
    if (p->total->is_total && !p->predictions)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`total` needs the number of predictions that it is divided over");
    if (__builtin_mul_overflow(p->total->each, (int64_t)p->predictions, &all))
        return fds__fail(err, FDS_ERR_LIMIT, "`amount` %s for %zu inputs: the sum is too large",
                         fds_money_text(p->total->each, p->total->unit.decimals, text),
                         p->predictions);
    if (!params->carry)
        return FDS_OK;
    p->path = fds__strdup(params->carry);
    return p->path ? open_lock(p, err) : fds__fail_nomem(err, strlen(params->carry) + 1);
}

fds_status fds_payer_create(const fds_params *params, size_t predictions, fds_payer **out,
                            fds_error *err) {
    fds_payer *p;
    TRY(NEW(p, 1, err));
    p->predictions = predictions;
    p->lock.fd = -1;
    fds_status status = open_payer(p, params, err);
    if (status == FDS_OK)
        *out = p;
    else
        fds_payer_free(p);
    return status;
}

/* The money for prediction k: a sum is divided so that the first k get sum * k / predictions,
 * rounded down. */
static fds_status amount_of(const fds_payer *p, size_t k, int64_t *out, fds_error *err) {
    fds__fixed sum = p->sum, count = (fds__fixed)MAX(p->predictions, 1), at = (fds__fixed)k;
    if (p->total->is_total && k >= p->predictions)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`total` is divided over %zu predictions: there is one more",
                         p->predictions);
    *out =
        p->total->is_total ? (int64_t)(sum * (at + 1) / count - sum * at / count) : p->total->each;
    return FDS_OK;
}

/* ---- the file of the carry ---- */

static json_t *describe_payees(const fds__payees *payees) {
    static const char *const keys[FDS__NAMES] = {"player", "label", "provider", "group"};
    json_t *list = json_array();
    bool is_whole = list;
    for (size_t i = 0; i < payees->count && is_whole; i++) {
        json_t *payee = json_object();
        bool has_all = payee;
        for (int which = 0; which < FDS__NAMES && has_all; which++)
            has_all = fds__json_put(payee, keys[which],
                                    fds__json_string(fds__payees_name(payees, which, i)));
        is_whole = fds__json_append(list, fds__json_keep_if(payee, has_all));
    }
    return fds__json_keep_if(list, is_whole);
}

static json_t *describe(const fds_payer *p) {
    const fds_payment *t = p->total;
    char checksum[17];
    snprintf(checksum, sizeof checksum, "%016llx", (unsigned long long)t->payees->checksum);
    return json_pack("{s:o, s:i, s:s, s:s, s:o, s:s}", "currency",
                     fds__json_string(t->unit.currency), "decimals", t->unit.decimals, "policy",
                     t->policy == FDS__POLICY_SIGNED ? "signed" : "clip", "paid_by",
                     fds__pay_by_name(p->by), "payees", describe_payees(t->payees),
                     "players_checksum", checksum);
}

static void write_owed(fds__fixed owed, char out[OWED_SIZE]) {
    snprintf(out, OWED_SIZE, "%lld.%016llx", (long long)(owed >> 64),
             (unsigned long long)(owed & (FDS__UNIT - 1)));
}

static bool read_owed(const char *text, fds__fixed *out) {
    char *point, *end, again[OWED_SIZE];
    long long whole = text ? strtoll(text, &point, 10) : 0;
    if (!text || *point != '.')
        return false;
    *out = whole * FDS__UNIT + (fds__fixed)strtoull(point + 1, &end, 16);
    write_owed(*out, again);
    return strcmp(text, again) == 0;
}

static json_t *json_carry(const fds_payer *p) {
    char text[OWED_SIZE];
    json_t *units = json_array(), *owed = json_array();
    bool is_whole = units && owed;
    for (size_t i = 0; i < p->total->payees->count && is_whole; i++) {
        write_owed(fds__carry_owed(p->carry, i), text);
        is_whole =
            fds__json_append(units, json_integer(p->earlier_units[i] +
                                                 fds_payment_share(p->total, SIZE_MAX, i))) &&
            fds__json_append(owed, json_string(text));
    }
    json_t *root =
        json_pack("{s:s, s:i, s:o, s:I, s:o, s:o}", "format", "fds carry", "version", CARRY_VERSION,
                  "of", describe(p), "predictions", (json_int_t)(p->earlier + p->total->paid),
                  "units", units, "owed", owed);
    return fds__json_keep_if(root, root && is_whole && fds__json_seal(root));
}

static fds_status write_carry(const fds_payer *p, fds_error *err) {
    json_t *root = json_carry(p);
    OWNED char *text = root ? fds__json_text(root, JSON_INDENT(1)) : NULL;
    json_decref(root);
    if (!text)
        return fds__fail_json(err);
    TRY(fds__out_sweep(p->path, err));
    return fds__file_write(p->path, text, strlen(text), err);
}

static fds_status take_carry(fds_payer *p, const json_t *root, fds_error *err) {
    const json_t *units = json_object_get(root, "units"), *owed = json_object_get(root, "owed");
    size_t count = p->total->payees->count;
    fds__fixed sum = 0;
    OWNED fds__fixed *all = NULL;
    TRY(NEW(all, count, err));
    bool is_good = json_array_size(units) == count && json_array_size(owed) == count;
    for (size_t i = 0; i < count && is_good; i++) {
        const json_t *paid = json_array_get(units, i);
        const fds__fixed most = (fds__fixed)count * FDS__UNIT;
        p->earlier_units[i] = json_integer_value(paid);
        is_good = read_owed(json_string_value(json_array_get(owed, i)), &all[i]) &&
                  all[i] <= most && all[i] >= -most && json_is_integer(paid) &&
                  llabs(p->earlier_units[i]) <= (long long)FDS__EXACT_MAX;
        sum += is_good ? all[i] : 0;
    }
    const json_int_t predictions = json_integer_value(json_object_get(root, "predictions"));
    is_good = is_good && predictions >= 0;
    if (!is_good || sum > 0 || sum < -FDS__UNIT / 2)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: \"owed\" must have a text such as 0.8000000000000000 for each of %zu "
                         "payees, with the sum 0",
                         p->path, count);
    p->earlier = (size_t)predictions;
    fds__carry_set(p->carry, all);
    return FDS_OK;
}

static fds_status check_carry(const fds_payer *p, json_t *root, fds_error *err) {
    char difference[300];
    const char *format = json_string_value(json_object_get(root, "format"));
    if (!format || strcmp(format, "fds carry") != 0 ||
        json_integer_value(json_object_get(root, "version")) != CARRY_VERSION)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: this is not a carry of version %d", p->path,
                         CARRY_VERSION);
    TRY(fds__json_unseal(p->path, root, err));
    json_t *now = describe(p);
    bool differs = now && fds__json_difference(json_object_get(root, "of"), now, "carry",
                                               difference, sizeof difference);
    json_decref(now);
    if (!now)
        return fds__fail_json(err);
    return differs ? fds__fail(err, FDS_ERR_USAGE, "%s: it is of other payments: %s", p->path,
                               difference)
                   : FDS_OK;
}

static fds_status read_carry(fds_payer *p, fds_error *err) {
    json_t *root;
    if (!fds__path_exists(p->path)) /* the first payments */
        return FDS_OK;
    TRY(fds__json_read(p->path, MOST_CARRY, &root, err));
    fds_status status = check_carry(p, root, err);
    if (status == FDS_OK)
        status = take_carry(p, root, err);
    json_decref(root);
    return status;
}

/* ---- paying ---- */

static fds_status check_points(const fds_result *r, fds_error *err) {
    for (size_t i = 0; i < r->players; i++)
        if (r->player_sizes[i] != 1)
            return fds__fail(
                err, FDS_ERR_USAGE,
                "`group_value` points: player \"%.100s\" has %u samples, and their own "
                "values are not known; fit a run with `group_value` points",
                fds_result_player(r, i), r->player_sizes[i]);
    return FDS_OK;
}

/* The first result says who the payees are; others must have the same. */
static fds_status meet(fds_payer *p, const fds_result *r, fds_error *err) {
    if (p->carry)
        return fds__payees_check(p->total->payees, r, err);
    if (p->is_points)
        TRY(check_points(r, err));
    TRY(fds__payees_create(r, p->by, &p->total->payees, err));
    TRY(fds__payment_reserve(p->total, err));
    TRY(NEW(p->earlier_units, p->total->payees->count, err));
    TRY(fds__carry_create(p->total->payees->count, &p->carry, err));
    return p->path ? read_carry(p, err) : FDS_OK;
}

/* The values of payees for prediction k of a result, and their standard errors: values and errors
 * (payees), 0 before. Players' errors are taken as independent. */
static void add_up(const fds__payees *payees, const fds_result *r, size_t k, double *values,
                   double *errors) {
    for (size_t i = 0; i < r->players; i++) {
        size_t payee = payees->payee_of[i], at = k * r->players + i;
        values[payee] += r->values[at];
        errors[payee] += r->errors[at] * r->errors[at];
    }
    for (size_t i = 0; i < payees->count; i++)
        errors[i] = sqrt(errors[i]);
}

fds_status fds_payer_foresee(fds_payer *p, const fds_result *r, fds_error *err) {
    if (p->path)
        return fds__fail(err, FDS_ERR_USAGE, "`carry`: there is no end to foresee");
    TRY(meet(p, r, err));
    size_t n = p->total->payees->count;
    OWNED double *values = NULL;
    TRY(NEW(values, 2 * n, err));
    for (size_t k = 0; k < r->predictions; k++) {
        int64_t amount = 0;
        TRY(amount_of(p, p->foreseen++, &amount, err));
        memset(values, 0, 2 * n * sizeof *values);
        add_up(p->total->payees, r, k, values, values + n);
        TRY(fds__carry_foresee(p->carry, values, amount, p->total->policy, err));
    }
    return FDS_OK;
}

/* scratch (payees) */
static fds_status pay_one(fds_payer *p, fds_payment *payment, size_t k, double *scratch,
                          fds_error *err) {
    size_t n = p->total->payees->count;
    double *values = payment->values + k * n;
    memset(scratch, 0, n * sizeof *scratch);
    add_up(p->total->payees, payment->result, k, values, scratch);
    TRY(amount_of(p, p->total->paid, &payment->amounts[k], err));
    TRY(fds__carry_pay(p->carry, values, payment->amounts[k], payment->policy,
                       payment->shares + k * n, &payment->rules[k], err));
    payment->misallocated[k] = fds__pay_errors(values, scratch, n, payment->amounts[k],
                                               payment->rules[k], payment->errors + k * n);
    TRY(fds__payment_add(p->total, payment, k, err));
    return fds__payment_add(payment, payment, k, err);
}

static fds_status pay_all(fds_payer *p, fds_payment *payment, fds_error *err) {
    OWNED double *scratch = NULL;
    TRY(NEW(scratch, payment->payees->count, err));
    for (size_t k = 0; k < payment->predictions; k++)
        TRY(pay_one(p, payment, k, scratch, err));
    for (size_t i = 0; i < p->writer_count; i++)
        TRY(fds__pay_writer_add(p->writers[i], payment, err));
    return FDS_OK;
}

fds_status fds_payer_pay(fds_payer *p, const fds_result *r, fds_payment **out, fds_error *err) {
    fds_payment *payment;
    TRY(meet(p, r, err));
    TRY(fds__payment_create(p->total, r, &payment, err));
    fds_status status = pay_all(p, payment, err);
    if (status == FDS_OK && out)
        *out = payment;
    else
        fds_payment_free(payment);
    return status;
}

fds_status fds_pay(const fds_result *r, const fds_params *params, fds_payment **out,
                   fds_error *err) {
    fds_payer *p;
    if (params && params->carry)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`carry` is for payers, which finish: fds_payer_create");
    TRY(fds_payer_create(params, r->predictions, &p, err));
    fds_status status = fds_payer_foresee(p, r, err);
    if (status == FDS_OK)
        status = fds_payer_pay(p, r, out, err);
    fds_payer_free(p);
    return status;
}

const fds_payment *fds_payer_total(const fds_payer *p) { return p->total; }

double fds_payer_owed(const fds_payer *p, size_t payee) {
    return p->carry && payee < p->total->payees->count
               ? (double)fds__carry_owed(p->carry, payee) / (double)FDS__UNIT
               : (double)NAN;
}

size_t fds_payer_paid(const fds_payer *p) { return p->earlier + p->total->paid; }

/* ---- writing ---- */

static fds_status check_room(const fds_payer *p, fds_error *err) {
    return p->writer_count < MOST_WRITERS && !p->total->paid
               ? FDS_OK
               : fds__fail(err, FDS_ERR_USAGE, "at most %d outputs, named before the first payment",
                           MOST_WRITERS);
}

fds_status fds_payer_save(fds_payer *p, const char *path, fds_error *err) {
    TRY(check_room(p, err));
    TRY(fds__pay_writer_open(path, p->is_summary, &p->writers[p->writer_count], err));
    p->writer_count++;
    return FDS_OK;
}

fds_status fds_payer_print(fds_payer *p, const char *format, fds_write_function write, void *user,
                           fds_error *err) {
    TRY(check_room(p, err));
    TRY(fds__pay_writer_create(format, p->is_summary, write, user, &p->writers[p->writer_count],
                               err));
    p->writer_count++;
    return FDS_OK;
}

fds_status fds_payer_finish(fds_payer *p, fds_error *err) {
    if (!p->total->paid)
        return fds__fail(err, FDS_ERR_USAGE, "nothing was paid");
    if (p->total->is_total && p->total->paid < p->predictions)
        return fds__fail(err, FDS_ERR_USAGE, "`total` is for %zu predictions, but %zu were paid",
                         p->predictions, p->total->paid);
    for (size_t i = 0; i < p->writer_count; i++)
        TRY(fds__pay_writer_finish(p->writers[i], p->total, err));
    for (size_t i = 0; i < p->writer_count; i++)
        TRY(fds__pay_writer_commit(p->writers[i], err));
    free_writers(p);
    return p->path ? write_carry(p, err) : FDS_OK;
}

bool fds__payer_has_carry(const fds_payer *payer) { return payer->path != NULL; }
