/* SPDX-License-Identifier: Apache-2.0
 * What was paid for the predictions of a result: who, how much, by which rule, and the sums. */
#include "pay/pay.h"

#include <math.h>

void fds_payment_free(fds_payment *p) {
    if (!p)
        return;
    fds__payees_free(p->payees);
    fds__free(p->amounts);
    fds__free(p->misallocated);
    fds__free(p->values);
    fds__free(p->errors);
    fds__free(p->shares);
    fds__free(p->rules);
    fds__free(p);
}

fds_status fds__payment_reserve(fds_payment *p, fds_error *err) {
    size_t rows = p->predictions + 1, all;
    if (!fds__mul(rows, p->payees->count, &all))
        return fds__fail_nomem(err, SIZE_MAX);
    TRY(NEW(p->amounts, rows, err));
    TRY(NEW(p->misallocated, rows, err));
    TRY(NEW(p->values, all, err));
    TRY(NEW(p->errors, all, err));
    TRY(NEW(p->shares, all, err));
    return NEW(p->rules, rows, err);
}

fds_status fds__payment_create(const fds_payment *like, const fds_result *result, fds_payment **out,
                               fds_error *err) {
    fds_payment *p;
    TRY(NEW(p, 1, err));
    *p = (fds_payment){.result = result,
                       .payees = fds__payees_share(like->payees),
                       .unit = like->unit,
                       .policy = like->policy,
                       .is_total = like->is_total,
                       .each = like->each,
                       .predictions = result->predictions};
    fds_status status = fds__payment_reserve(p, err);
    if (status == FDS_OK)
        *out = p;
    else
        fds_payment_free(p);
    return status;
}

static fds_status fail_sum(const fds_payment *p, fds_error *err) {
    char text[32];
    return fds__fail(err, FDS_ERR_LIMIT, "`amount` %s for %zu inputs: the sum is too large",
                     fds_money_text(p->each, p->unit.decimals, text), p->paid + 1);
}

fds_status fds__payment_add(fds_payment *sums, const fds_payment *p, size_t k, fds_error *err) {
    size_t n = p->payees->count, from = k * n, to = sums->predictions * n;
    if (__builtin_add_overflow(sums->amounts[sums->predictions], p->amounts[k],
                               &sums->amounts[sums->predictions]))
        return fail_sum(sums, err);
    sums->misallocated[sums->predictions] += p->misallocated[k];
    for (size_t i = 0; i < n; i++) {
        sums->values[to + i] += p->values[from + i];
        sums->errors[to + i] += p->errors[from + i];
        if (__builtin_add_overflow(sums->shares[to + i], p->shares[from + i],
                                   &sums->shares[to + i]))
            return fail_sum(sums, err);
    }
    sums->paid++;
    return FDS_OK;
}

/* ---- reading ---- */

size_t fds_payment_payees(const fds_payment *p) { return p->payees ? p->payees->count : 0; }
int fds_payment_decimals(const fds_payment *p) { return p->unit.decimals; }
const char *fds_payment_currency(const fds_payment *p) { return p->unit.currency; }

const char *fds_payment_payee(const fds_payment *p, size_t payee) {
    static const int name_of[] = {FDS__NAME_PLAYER, FDS__NAME_PROVIDER, FDS__NAME_GROUP};
    return payee < fds_payment_payees(p)
               ? fds__payees_name(p->payees, name_of[p->payees->by], payee)
               : "?";
}

/* The row of a prediction, or (SIZE_MAX) of the sums; SIZE_MAX: there is none. */
static size_t row_of(const fds_payment *p, size_t k) {
    if (!p->payees || (k != SIZE_MAX && k >= p->predictions))
        return SIZE_MAX;
    return k == SIZE_MAX ? p->predictions : k;
}

/* Where the payee's numbers of a row are; SIZE_MAX: nowhere. */
static size_t place_of(const fds_payment *p, size_t k, size_t payee) {
    size_t row = row_of(p, k);
    return row == SIZE_MAX || payee >= p->payees->count ? SIZE_MAX : row * p->payees->count + payee;
}

int64_t fds_payment_amount(const fds_payment *p, size_t k) {
    size_t row = row_of(p, k);
    return row == SIZE_MAX ? 0 : p->amounts[row];
}

int64_t fds_payment_share(const fds_payment *p, size_t k, size_t payee) {
    size_t place = place_of(p, k, payee);
    return place == SIZE_MAX ? 0 : p->shares[place];
}

double fds_payment_value(const fds_payment *p, size_t k, size_t payee) {
    size_t place = place_of(p, k, payee);
    return place == SIZE_MAX ? (double)NAN : p->values[place];
}

double fds_payment_error(const fds_payment *p, size_t k, size_t payee) {
    size_t place = place_of(p, k, payee);
    return place == SIZE_MAX ? (double)NAN : p->errors[place];
}

double fds_payment_misallocated(const fds_payment *p, size_t k) {
    size_t row = row_of(p, k);
    return row == SIZE_MAX ? (double)NAN : p->misallocated[row];
}

const char *fds_payment_rule(const fds_payment *p, size_t k) {
    static const char *const names[] = {"clip", "signed", "clip-for-signed", "evenly"};
    return k < p->predictions ? names[p->rules[k]] : "?";
}

const char *fds_payment_rule_text(const fds_payment *p, size_t k) {
    return fds__pay_rule_text(k < p->predictions                ? p->rules[k]
                              : p->policy == FDS__POLICY_SIGNED ? FDS__PAY_RULE_SIGNED
                                                                : FDS__PAY_RULE_CLIP);
}

/* By falling sum of shares, or by falling value in one prediction. */
fds_status fds_payment_rank(const fds_payment *p, size_t k, size_t *order, fds_error *err) {
    if (row_of(p, k) == SIZE_MAX)
        return fds__fail(err, FDS_ERR_USAGE, "prediction %zu: there are %zu", k, p->predictions);
    OWNED double *keys = NULL;
    TRY(NEW(keys, p->payees->count, err));
    for (size_t i = 0; i < p->payees->count; i++)
        keys[i] = k == SIZE_MAX ? (double)fds_payment_share(p, k, i) : fds_payment_value(p, k, i);
    return fds__rank(keys, p->payees->count, order, err);
}

/* ---- as text ---- */

static bool add_text(void *user, const char *text, size_t size) {
    fds__text_add(user, text, size);
    return !((fds__text *)user)->is_failed;
}

static fds_status write_all(fds__pay_writer *w, const fds_payment *p, fds_error *err) {
    fds_status status = p->result ? fds__pay_writer_add(w, p, err)
                                  : fds__fail(err, FDS_ERR_USAGE,
                                              "totals of a payer have no predictions to write; the "
                                              "payer itself writes them");
    if (status == FDS_OK)
        status = fds__pay_writer_finish(w, p, err);
    if (status == FDS_OK)
        status = fds__pay_writer_commit(w, err);
    fds__pay_writer_free(w);
    return status;
}

fds_status fds_payment_json(const fds_payment *p, char **out, fds_error *err) {
    fds__pay_writer *w;
    fds__text text = {0};
    TRY(fds__pay_writer_create("json", false, add_text, &text, &w, err));
    fds_status status = write_all(w, p, err);
    if (status == FDS_OK)
        *out = text.data;
    else
        fds__free(text.data);
    return status;
}

fds_status fds_payment_save(const fds_payment *p, const char *path, fds_error *err) {
    fds__pay_writer *w;
    TRY(fds__pay_writer_open(path, false, &w, err));
    return write_all(w, p, err);
}
