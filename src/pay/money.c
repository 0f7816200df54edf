/* SPDX-License-Identifier: Apache-2.0
 * Money as text: amounts, their decimals, currencies. */
#include "pay/pay.h"

#include <strings.h>

enum { LEAST_DECIMALS = 2, MOST_DECIMALS = 9 };

static const struct {
    const char code[4];
    int decimals;
} currencies[] = {
#define CURRENCY(code, decimals) {#code, decimals},
#include "pay/currencies.def"
#undef CURRENCY
};
enum { CURRENCIES = sizeof currencies / sizeof *currencies };

const char *fds_money_text(int64_t units, int decimals, char out[32]) {
    uint64_t size = units < 0 ? 0 - (uint64_t)units : (uint64_t)units, scale = 1;
    for (int i = 0; i < decimals; i++)
        scale *= 10;
    const char *sign = units < 0 ? "-" : "";
    unsigned long long whole = size / scale, part = size % scale;
    if (decimals)
        snprintf(out, 32, "%s%llu.%0*llu", sign, whole, decimals, part);
    else
        snprintf(out, 32, "%s%llu", sign, whole);
    return out;
}

double fds__money_scale(int decimals) {
    double scale = 1;
    while (decimals-- > 0)
        scale *= 10;
    return scale;
}

/* Sets the currency's decimals. */
static fds_status find_currency(const char *code, fds__unit *unit, fds_error *err) {
    const char *names[CURRENCIES + 1] = {NULL};
    char hint[FDS__HINT];
    for (size_t i = 0; i < CURRENCIES; i++) {
        names[i] = currencies[i].code;
        if (strcasecmp(code, currencies[i].code) == 0) {
            *unit = (fds__unit){currencies[i].code, currencies[i].decimals};
            return FDS_OK;
        }
    }
    return fds__fail(err, FDS_ERR_USAGE,
                     "`currency` must be a code of ISO 4217 such as USD, EUR or JPY (got %.60s)%s",
                     code, fds__hint(code, names, hint));
}

/* Digits after the point of a text; -1: it is no amount of money. */
static int decimals_of(const char *text) {
    size_t whole = strspn(text, "0123456789"), part = 0;
    if (text[whole] == '.')
        part = strspn(text + whole + 1, "0123456789");
    bool is_number = whole && !text[whole + (part ? 1 + part : 0)];
    return is_number && part <= MOST_DECIMALS ? (int)part : -1;
}

static fds_status check_decimals(const char *name, const char *text, const fds__unit *unit,
                                 fds_error *err) {
    int decimals = decimals_of(text);
    if (decimals < 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`%s` must be money such as 100 or 100.00, with at most %d decimals "
                         "(got %.60s)",
                         name, MOST_DECIMALS, text);
    if (decimals > unit->decimals)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`%s` must have at most %d decimals, as %s has (got %.60s)", name,
                         unit->decimals, unit->currency, text);
    return FDS_OK;
}

fds_status fds__money_read(const char *name, const char *text, const char *currency,
                           fds__unit *unit, int64_t *amount, fds_error *err) {
    char most[32];
    *unit = (fds__unit){NULL, MAX(decimals_of(text), LEAST_DECIMALS)};
    if (currency)
        TRY(find_currency(currency, unit, err));
    TRY(check_decimals(name, text, unit, err));
    int zeros = unit->decimals - decimals_of(text);
    const char *at = text;
    for (*amount = 0; *at || zeros > 0; at += *at != 0) {
        if (*at == '.')
            continue;
        zeros -= *at == 0;
        *amount = 10 * *amount + (*at ? *at - '0' : 0);
        if (*amount > (int64_t)FDS__EXACT_MAX)
            return fds__fail(err, FDS_ERR_USAGE, "`%s` must be at most %s (got %.60s)", name,
                             fds_money_text((int64_t)FDS__EXACT_MAX, unit->decimals, most), text);
    }
    return FDS_OK;
}
