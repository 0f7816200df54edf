/* SPDX-License-Identifier: Apache-2.0
 *
 * Payments as text, written as they come: memory does not grow with their number.
 *
 *   csv    a line for each prediction and payee, the greatest value first:
 *              input,label,rule,rank,player,player_label,provider,group,samples,value,
 *              units,amount,amount_error,currency
 *   json   how the results were computed, then units, amount, decimals, currency, policy, paid_by,
 *          inputs (each with its shares), predictions, total_units, total_amount, misallocated,
 *          together (the shares of all inputs) and clusters (how their members divide these)
 *   jsonl  a line for each of these inputs, then one with everything else
 *
 * A summary has the sums only: in CSV lines whose input is "all", in JSON no inputs. Money is a whole
 * number of units, and again as a decimal number; its errors are numbers, null where not known. */
#include "pay/pay.h"

#include <math.h>
#include <strings.h>

typedef enum { CSV, JSON, JSONL } format;
static const char *const formats[] = {"csv", "json", "jsonl"};
enum { FORMATS = sizeof formats / sizeof *formats, BUFFER = 1 << 16 };

struct fds__pay_writer {
    format format;
    bool is_summary;
    fds__out *out; /* or write */
    fds_write_function write;
    void *user;
    fds__text text; /* not yet written */
    size_t *order;  /* (payees) */
    json_t *about;  /* of the first result, without its seconds */
    double seconds; /* of all; NaN: not known */
    size_t written; /* predictions */
};

void fds__pay_writer_free(fds__pay_writer *w) {
    if (!w)
        return;
    fds__out_abort(w->out);
    fds__free(w->text.data);
    fds__free(w->order);
    json_decref(w->about);
    fds__free(w);
}

static int find_format(const char *name) {
    for (int i = 0; i < FORMATS; i++)
        if (strcasecmp(name, formats[i]) == 0)
            return i;
    return -1;
}

fds_status fds__pay_writer_create(const char *name, bool is_summary, fds_write_function write,
                                  void *user, fds__pay_writer **out, fds_error *err) {
    int found = find_format(name);
    if (found < 0)
        return fds__fail(err, FDS_ERR_USAGE, "payments are written as csv, json or jsonl (got %s)",
                         name);
    TRY(NEW(*out, 1, err));
    **out = (fds__pay_writer){
        .format = (format)found, .is_summary = is_summary, .write = write, .user = user};
    return FDS_OK;
}

fds_status fds__pay_writer_open(const char *path, bool is_summary, fds__pay_writer **out,
                                fds_error *err) {
    const char *dot = strrchr(path, '.');
    if (!dot || find_format(dot + 1) < 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "%s: a file of payments must end in .csv, .json or .jsonl", path);
    fds__pay_writer *w;
    TRY(fds__pay_writer_create(dot + 1, is_summary, NULL, NULL, &w, err));
    fds_status status = fds__out_open(path, &w->out, err);
    if (status == FDS_OK)
        *out = w;
    else
        fds__pay_writer_free(w);
    return status;
}

/* Writes the text, if it has at least so many bytes. */
static fds_status flush(fds__pay_writer *w, size_t least, fds_error *err) {
    size_t used = w->text.used;
    if (w->text.is_failed)
        return fds__text_check(&w->text, err);
    if (used < least || !used)
        return FDS_OK;
    w->text.used = 0;
    if (w->out)
        return fds__out_write(w->out, w->text.data, used, err);
    return w->write(w->user, w->text.data, used)
               ? FDS_OK
               : fds__fail(err, FDS_ERR_IO, "cannot write the payments");
}

/* ---- CSV ---- */

static void add_field(fds__text *text, const char *field) {
    fds__text_csv(text, field ? field : "");
    fds__text_add(text, ",", 1);
}

static void add_input(fds__text *text, const fds_payment *p, size_t k) {
    const fds_result *r = p->result;
    char sample[32];
    bool has_name = k == SIZE_MAX || r->input_names[k] || r->samples[k] == FDS__UNKNOWN;
    if (!has_name)
        snprintf(sample, sizeof sample, "test sample %u", r->samples[k]);
    add_field(text, k == SIZE_MAX ? "all" : has_name ? fds_result_input(r, k) : sample);
    add_field(text, k == SIZE_MAX ? "" : fds_result_label(r, k));
    add_field(text, k == SIZE_MAX ? "" : fds_payment_rule(p, k));
}

static void add_line(fds__text *text, const fds_payment *p, size_t k, size_t rank, size_t payee) {
    char money[32];
    int64_t units = fds_payment_share(p, k, payee);
    add_input(text, p, k);
    fds__text_print(text, "%zu,", rank + 1);
    for (int which = 0; which < FDS__NAMES; which++)
        add_field(text, fds__payees_name(p->payees, which, payee));
    if (p->payees->by == FDS__PAY_BY_PLAYER)
        fds__text_print(text, "%u", p->payees->samples[payee]);
    fds__text_add(text, ",", 1);
    fds__text_double(text, fds_payment_value(p, k, payee));
    fds__text_print(text, ",%lld,%s,", (long long)units,
                    fds_money_text(units, p->unit.decimals, money));
    double error = fds_payment_error(p, k, payee) / fds__money_scale(p->unit.decimals);
    fds__text_digits(text, 6, isnan(error) ? (double)NAN : error); /* NaN without a sign */
    fds__text_print(text, ",%s\n", p->unit.currency ? p->unit.currency : "");
}

static fds_status add_lines(fds__pay_writer *w, const fds_payment *p, size_t k, fds_error *err) {
    TRY(fds_payment_rank(p, k, w->order, err));
    for (size_t rank = 0; rank < p->payees->count; rank++) {
        add_line(&w->text, p, k, rank, w->order[rank]);
        TRY(flush(w, BUFFER, err));
    }
    return FDS_OK;
}

/* ---- JSON ---- */

/* Units as a number of money; null where not known. */
static json_t *json_money(const fds_payment *p, double units) {
    return fds__json_real(units / fds__money_scale(p->unit.decimals));
}

static json_t *json_share(const fds_payment *p, size_t k, size_t payee) {
    char text[32];
    int64_t units = fds_payment_share(p, k, payee);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:s, s:o}", "player",
                     fds__json_string(fds__payees_name(p->payees, FDS__NAME_PLAYER, payee)),
                     "label", fds__json_string(fds__payees_name(p->payees, FDS__NAME_LABEL, payee)),
                     "provider",
                     fds__json_string(fds__payees_name(p->payees, FDS__NAME_PROVIDER, payee)),
                     "group", fds__json_string(fds__payees_name(p->payees, FDS__NAME_GROUP, payee)),
                     "value", fds__json_real(fds_payment_value(p, k, payee)), "units",
                     (json_int_t)units, "amount", fds_money_text(units, p->unit.decimals, text),
                     "amount_error", json_money(p, fds_payment_error(p, k, payee)));
}

static json_t *json_shares(const fds__pay_writer *w, const fds_payment *p, size_t k) {
    json_t *list = json_array();
    bool is_whole = list && fds_payment_rank(p, k, w->order, NULL) == FDS_OK;
    for (size_t rank = 0; rank < p->payees->count && is_whole; rank++)
        is_whole = fds__json_append(list, json_share(p, k, w->order[rank]));
    return fds__json_keep_if(list, is_whole);
}

static json_t *json_input(const fds__pay_writer *w, const fds_payment *p, size_t k) {
    char text[32];
    json_t *input = fds__result_json_prediction(p->result, k);
    bool is_whole =
        input && fds__json_put(input, "rule", json_string(fds_payment_rule(p, k))) &&
        fds__json_put(input, "units", json_integer(p->amounts[k])) &&
        fds__json_put(input, "amount",
                      json_string(fds_money_text(p->amounts[k], p->unit.decimals, text))) &&
        fds__json_put(input, "misallocated", json_money(p, p->misallocated[k])) &&
        fds__json_put(input, "shares", json_shares(w, p, k));
    return fds__json_keep_if(input, is_whole);
}

/* How the results were computed, and what is the same for all predictions. */
static json_t *json_head(const fds__pay_writer *w, const fds_payment *p) {
    char text[32];
    json_t *head = json_deep_copy(w->about);
    json_t *terms = json_pack(
        "{s:o, s:o, s:i, s:o, s:s, s:s}", "units",
        p->is_total ? json_null() : json_integer(p->each), "amount",
        p->is_total ? json_null() : json_string(fds_money_text(p->each, p->unit.decimals, text)),
        "decimals", p->unit.decimals, "currency", fds__json_string(p->unit.currency), "policy",
        p->policy == FDS__POLICY_SIGNED ? "signed" : "clip", "paid_by",
        fds__pay_by_name(p->payees->by));
    bool is_whole = head && terms && json_object_update(head, terms) == 0;
    json_decref(terms);
    return fds__json_keep_if(head, is_whole);
}

static json_t *json_tail(const fds__pay_writer *w, const fds_payment *sums) {
    char text[32];
    int64_t units = fds_payment_amount(sums, SIZE_MAX);
    json_t *tail = json_pack(
        "{s:I, s:I, s:s, s:o, s:o, s:o}", "predictions", (json_int_t)sums->paid, "total_units",
        (json_int_t)units, "total_amount", fds_money_text(units, sums->unit.decimals, text),
        "misallocated", json_money(sums, fds_payment_misallocated(sums, SIZE_MAX)), "together",
        json_shares(w, sums, SIZE_MAX), "clusters", fds__payment_clusters_json(sums));
    bool is_whole =
        tail && (isnan(w->seconds) || fds__json_put(tail, "seconds", json_real(w->seconds)));
    return fds__json_keep_if(tail, is_whole);
}

/* Adds a value between two texts, and frees it; NULL: out of memory. An object that goes on
 * (is_open) is left without its last brace, one that others began (goes_on) without its first. */
static fds_status add_json(fds__pay_writer *w, const char *before, json_t *json, bool goes_on,
                           bool is_open, const char *after, fds_error *err) {
    OWNED char *text = json ? fds__json_text(json, JSON_REAL_PRECISION(17)) : NULL;
    json_decref(json);
    if (!text)
        return fds__fail_json(err);
    fds__text_add(&w->text, before, strlen(before));
    fds__text_add(&w->text, text + goes_on, strlen(text) - goes_on - is_open);
    fds__text_add(&w->text, after, strlen(after));
    return flush(w, BUFFER, err);
}

/* ---- pieces ---- */

/* Before the first prediction. */
static fds_status begin(fds__pay_writer *w, const fds_payment *p, fds_error *err) {
    TRY(NEW(w->order, p->payees->count, err));
    w->about = p->result ? json_deep_copy(p->result->about) : json_object();
    if (!w->about)
        return fds__fail_json(err);
    json_object_del(w->about, "seconds");
    json_object_del(w->about, "clusters"); /* at the end, with money */
    if (w->format == CSV)
        fds__text_print(&w->text, "input,label,rule,rank,player,player_label,provider,group,"
                                  "samples,value,units,amount,amount_error,currency\n");
    if (w->format == JSON)
        TRY(add_json(w, "", json_head(w, p), false, true, w->is_summary ? "" : ",\n\"inputs\": [",
                     err));
    return FDS_OK;
}

static fds_status add_prediction(fds__pay_writer *w, const fds_payment *p, size_t k,
                                 fds_error *err) {
    if (w->is_summary)
        return FDS_OK;
    const char *before = w->format == JSONL ? "" : w->written ? ",\n" : "\n";
    w->written++;
    return w->format == CSV ? add_lines(w, p, k, err)
                            : add_json(w, before, json_input(w, p, k), false, false,
                                       w->format == JSONL ? "\n" : "", err);
}

fds_status fds__pay_writer_add(fds__pay_writer *w, const fds_payment *p, fds_error *err) {
    if (!w->about)
        TRY(begin(w, p, err));
    const json_t *seconds = json_object_get(p->result->about, "seconds");
    w->seconds += json_is_number(seconds) ? json_number_value(seconds) : (double)NAN;
    for (size_t k = 0; k < p->predictions; k++)
        TRY(add_prediction(w, p, k, err));
    return FDS_OK;
}

static fds_status add_end(fds__pay_writer *w, const fds_payment *sums, fds_error *err) {
    if (w->format == CSV)
        return w->is_summary ? add_lines(w, sums, SIZE_MAX, err) : FDS_OK;
    if (w->format == JSONL)
        TRY(add_json(w, "", json_head(w, sums), false, true, "", err));
    const char *before = w->format == JSON && !w->is_summary ? "],\n" : ", ";
    return add_json(w, before, json_tail(w, sums), true, false, "\n", err);
}

fds_status fds__pay_writer_finish(fds__pay_writer *w, const fds_payment *sums, fds_error *err) {
    if (!w->about)
        TRY(begin(w, sums, err));
    TRY(add_end(w, sums, err));
    return flush(w, 0, err);
}

fds_status fds__pay_writer_commit(fds__pay_writer *w, fds_error *err) {
    fds__out *out = w->out;
    w->out = NULL;
    return out ? fds__out_commit(out, err) : FDS_OK;
}
