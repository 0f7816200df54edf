/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of a set of data in report.json, joined from its cases: what is measured on test
 * samples is pooled over all samples of all seeds, what is one number a seed is averaged over the
 * seeds that have it. Whatever was measured in no case is null. A result of NULL is want of memory.
 */
#include "report/report.h"

#include <math.h>
#include <string.h>

/* ---- one number a case ---- */

/* {mean, sd, count} of the parts, or null. */
static json_t *describe_stat(const report_cases *g) {
    report_stat all = report_pool(g->parts, g->count);
    if (isnan(all.mean))
        return json_null();
    return json_pack("{s:f, s:o, s:I}", "mean", all.mean, "sd", fds__json_real(all.sd), "count",
                     (json_int_t)all.count);
}

/* One number a case: rows[method].outer.key, or rows[method].key where outer is NULL. */
static json_t *join_number(const report_cases *g, const char *method, const char *outer,
                           const char *key) {
    for (size_t i = 0; i < g->count; i++) {
        const json_t *row =
            report_find(json_object_get(g->cases[i], "rows"), "method", method, NULL);
        const json_t *from = outer ? json_object_get(row, outer) : row;
        g->parts[i] = (report_stat){1, report_number_of(from, key), NAN, NAN};
    }
    return describe_stat(g);
}

static json_t *join_agreement(const report_cases *g, const char *method) {
    static const char *const keys[] = {"correlation", "class_correlation", "relative_error",
                                       "efficiency_gap"};
    json_t *out = json_object();
    bool is_whole = out != NULL, is_empty = true;
    for (size_t k = 0; is_whole && k < 4; k++) {
        json_t *stat = join_number(g, method, "agreement", keys[k]);
        is_empty &= json_is_null(stat);
        is_whole = fds__json_put(out, keys[k], stat);
    }
    out = fds__json_keep_if(out, is_whole && !is_empty);
    return out || !is_whole ? out : json_null();
}

/* How many orders of the players were walked, and whether all seeds ended by the method's own rule;
 * null where it has none. */
static json_t *join_orders(const report_cases *g, const char *method) {
    json_t *walked = join_number(g, method, "permutations", "sampled");
    json_t *has_converged = json_null();
    if (!walked || json_is_null(walked))
        return walked;
    for (size_t i = 0; i < g->count; i++) {
        const json_t *row =
            report_find(json_object_get(g->cases[i], "rows"), "method", method, NULL);
        json_t *flag = json_object_get(json_object_get(row, "permutations"), "has_converged");
        if (json_is_boolean(flag) && !json_is_false(has_converged))
            has_converged = flag;
    }
    return json_pack("{s:o, s:O}", "sampled", walked, "has_converged", has_converged);
}

static const json_t *timing_of(const report_cases *g, size_t i, const char *method) {
    const json_t *rows = json_object_get(g->cases[i], "rows");
    return json_object_get(report_find(rows, "method", method, NULL), "timing");
}

/* Seconds of a method that was broken off and went on lack a part: they count only where there are
 * no others. */
static json_t *join_timing(const report_cases *g, const char *method) {
    static const char *const keys[] = {"prepare_s", "answer_ms"};
    bool has_whole = false, has_any = false;
    for (size_t i = 0; i < g->count; i++) {
        const json_t *timing = timing_of(g, i, method);
        has_any |= json_is_object(timing);
        has_whole |= json_is_false(json_object_get(timing, "was_resumed"));
    }
    if (!has_any)
        return json_null();
    json_t *out = json_object();
    bool is_whole = out != NULL;
    for (size_t k = 0; is_whole && k < 2; k++) {
        for (size_t i = 0; i < g->count; i++) {
            const json_t *timing = timing_of(g, i, method);
            bool counts =
                k == 1 || !has_whole || json_is_false(json_object_get(timing, "was_resumed"));
            double number = counts ? report_number_of(timing, keys[k]) : NAN;
            g->parts[i] = (report_stat){1, number, NAN, NAN};
        }
        is_whole = fds__json_put(out, keys[k], describe_stat(g));
    }
    is_whole = is_whole && fds__json_put(out, "was_resumed", json_boolean(!has_whole));
    return fds__json_keep_if(out, is_whole);
}

/* ---- losses ---- */

/* The means of the parts, which have been filled in for one share. */
static json_t *list_means(const report_cases *g) {
    json_t *list = json_array();
    bool is_whole = list != NULL;
    for (size_t i = 0; is_whole && i < g->count; i++)
        is_whole = fds__json_append(list, fds__json_real(g->parts[i].mean));
    return fds__json_keep_if(list, is_whole);
}

/* A case's own entry for a method (NULL: with all players), value function, way and set. */
static const json_t *entry_of(const report_cases *g, size_t i, const char *method,
                              const char *value, const char *way, const char *set) {
    const json_t *found;
    if (method) {
        found = report_find(json_object_get(g->cases[i], "rows"), "method", method, NULL);
        return report_losses(found, value, way, set, NULL);
    }
    found = report_find(json_object_get(g->cases[i], "utilities"), "utility", value, NULL);
    return report_find(json_object_get(found, "losses"), "set", set, NULL);
}

/* One of the losses with all players, from the first case's entry that names its set. */
static json_t *join_base(const report_cases *g, const char *value, const json_t *first) {
    const char *set = report_text_of(first, "set");
    for (size_t i = 0; i < g->count; i++) {
        const json_t *entry = entry_of(g, i, NULL, value, NULL, set);
        g->parts[i] =
            (report_stat){entry ? report_number_of(entry, "count") : 0,
                          report_number_of(entry, "mean"), report_number_of(entry, "sd"), NAN};
    }
    report_stat all = report_pool(g->parts, g->count);
    return json_pack("{s:s, s:I, s:o, s:o, s:o, s:o}", "set", set, "count", (json_int_t)all.count,
                     "mean", fds__json_real(all.mean), "sd", fds__json_real(all.sd), "error",
                     fds__json_real(all.error), "by_seed", list_means(g));
}

/* The means of each case by share, [[...], ...]; null for a case that has none. */
static json_t *list_by_seed(const report_cases *g, const char *method, const char *value,
                            const char *way, const char *set) {
    json_t *list = json_array();
    bool is_whole = list != NULL;
    for (size_t i = 0; is_whole && i < g->count; i++) {
        const json_t *entry = entry_of(g, i, method, value, way, set);
        json_t *means = entry ? json_incref(json_object_get(entry, "mean")) : json_null();
        is_whole = fds__json_append(list, means);
    }
    return fds__json_keep_if(list, is_whole);
}

/* One entry of a row's losses, from the first case's that names its value, way and set. */
static json_t *join_loss(const report_cases *g, const char *method, const json_t *first) {
    const char *value = report_text_of(first, "utility"), *way = report_text_of(first, "removal");
    const char *set = report_text_of(first, "set");
    size_t shares = json_array_size(json_object_get(first, "mean"));
    json_t *mean = json_array(), *sd = json_array(), *error = json_array();
    bool is_whole = true;
    double count = 0;
    for (size_t k = 0; is_whole && k < shares; k++) {
        for (size_t i = 0; i < g->count; i++) {
            const json_t *entry = entry_of(g, i, method, value, way, set);
            g->parts[i] = (report_stat){entry ? report_number_of(entry, "count") : 0,
                                        report_number_at(json_object_get(entry, "mean"), k),
                                        report_number_at(json_object_get(entry, "sd"), k), NAN};
        }
        report_stat all = report_pool(g->parts, g->count);
        count = fmax(count, all.count);
        is_whole = fds__json_append(mean, fds__json_real(all.mean)) &&
                   fds__json_append(sd, fds__json_real(all.sd)) &&
                   fds__json_append(error, fds__json_real(all.error));
    }
    if (!is_whole) {
        json_decref(mean);
        json_decref(sd);
        json_decref(error);
        return NULL;
    }
    return json_pack("{s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o}", "utility", value, "removal", way,
                     "set", set, "count", (json_int_t)count, "mean", mean, "sd", sd, "error", error,
                     "by_seed", list_by_seed(g, method, value, way, set));
}

/* Every entry of the losses of a method (NULL: of judged[value]) that any case has, once. */
static json_t *join_losses(const report_cases *g, const char *method, const char *value) {
    json_t *out = json_array();
    bool is_whole = out != NULL;
    for (size_t i = 0; is_whole && i < g->count; i++) {
        const json_t *holder =
            method ? report_find(json_object_get(g->cases[i], "rows"), "method", method, NULL)
                   : report_find(json_object_get(g->cases[i], "utilities"), "utility", value, NULL);
        const json_t *list = json_object_get(holder, "losses");
        for (size_t k = 0; is_whole && k < json_array_size(list); k++) {
            const json_t *entry = json_array_get(list, k);
            bool is_new = true;
            for (size_t before = 0; before < i; before++)
                is_new &=
                    !entry_of(g, before, method, method ? report_text_of(entry, "utility") : value,
                              report_text_of(entry, "removal"), report_text_of(entry, "set"));
            if (is_new)
                is_whole = fds__json_append(out, method ? join_loss(g, method, entry)
                                                        : join_base(g, value, entry));
        }
    }
    return fds__json_keep_if(out, is_whole);
}

/* ---- rows ---- */

/* The paper's figures are of so many players. */
static json_t *describe_paper(const json_t *data, const char *method) {
    const report_paper_row *row = report_paper_find(report_text_of(data, "name"), method);
    if (!row || report_number_of(data, "players") != REPORT_PAPER_PLAYERS)
        return json_null();
    json_t *shares = json_array(), *mean = json_array(), *sd = json_array();
    bool is_whole = true;
    for (size_t k = 0; is_whole && k < REPORT_PAPER_SHARES; k++)
        is_whole = fds__json_append(shares, json_real(report_paper_shares[k])) &&
                   fds__json_append(mean, json_real(row->mean[k])) &&
                   fds__json_append(sd, json_real(row->sd[k]));
    if (!is_whole) {
        json_decref(shares);
        json_decref(mean);
        json_decref(sd);
        return NULL;
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "shares", shares, "mean", mean, "sd", sd, "seconds",
                     row->seconds > 0 ? json_real(row->seconds) : json_null());
}

static json_t *join_row(const report_cases *g, const json_t *first) {
    const char *method = report_text_of(first, "method");
    static const char *const same[] = {"method", "title", "kind", "is_per_sample", "utility"};
    json_t *out = json_object();
    bool is_whole = out != NULL;
    for (size_t k = 0; is_whole && k < sizeof same / sizeof *same; k++)
        is_whole = fds__json_share(out, same[k], json_object_get(first, same[k]));
    is_whole =
        is_whole && fds__json_put(out, "losses", join_losses(g, method, NULL)) &&
        fds__json_put(out, "agreement", join_agreement(g, method)) &&
        fds__json_put(out, "auc", join_number(g, method, NULL, "auc")) &&
        fds__json_put(out, "sub_models", join_number(g, method, NULL, "sub_models")) &&
        fds__json_put(out, "permutations", join_orders(g, method)) &&
        fds__json_put(out, "timing", join_timing(g, method)) &&
        fds__json_put(out, "paper", describe_paper(json_object_get(g->cases[0], "data"), method));
    return fds__json_keep_if(out, is_whole);
}

/* The entries of the list key of all cases, each once by its member name, as make joins them. */
static json_t *join_list(const report_cases *g, const char *key, const char *name,
                         json_t *(*make)(const report_cases *g, const json_t *first)) {
    json_t *out = json_array();
    bool is_whole = out != NULL;
    for (size_t i = 0; is_whole && i < g->count; i++) {
        const json_t *list = json_object_get(g->cases[i], key);
        for (size_t k = 0; is_whole && k < json_array_size(list); k++) {
            const json_t *entry = json_array_get(list, k);
            if (!report_find(out, name, report_text_of(entry, name), NULL))
                is_whole = fds__json_append(out, make(g, entry));
        }
    }
    return fds__json_keep_if(out, is_whole);
}

/* How well the halves of the truth agree, over the seeds that have one. */
static json_t *join_truth(const report_cases *g, const char *value) {
    const json_t *coalitions = NULL;
    for (size_t i = 0; i < g->count; i++) {
        const json_t *judged = json_object_get(g->cases[i], "utilities");
        const json_t *truth = json_object_get(report_find(judged, "utility", value, NULL), "truth");
        g->parts[i] = (report_stat){1, report_number_of(truth, "correlation"), NAN, NAN};
        if (!coalitions)
            coalitions = json_object_get(truth, "coalitions");
    }
    if (!coalitions)
        return json_null();
    return json_pack("{s:O, s:o}", "coalitions", coalitions, "correlation", describe_stat(g));
}

static json_t *join_judge(const report_cases *g, const json_t *first) {
    const char *value = report_text_of(first, "utility");
    return json_pack("{s:s, s:o, s:o}", "utility", value, "losses", join_losses(g, NULL, value),
                     "truth", join_truth(g, value));
}

/* ---- both lists ---- */

json_t *report_join_utilities(const report_cases *g) {
    return join_list(g, "utilities", "utility", join_judge);
}
json_t *report_join_rows(const report_cases *g) { return join_list(g, "rows", "method", join_row); }
