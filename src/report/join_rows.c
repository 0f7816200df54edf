/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of a set of data in report.json, joined from its cases: what is measured on test
 * samples is pooled over all samples of all seeds, what is one number per seed is averaged over the
 * seeds that have it. Whatever no case has measured is null. Where memory runs out, g->is_failed is
 * set and a result lacks something.
 */
#include "report/report.h"

#include <math.h>
#include <string.h>

static void put(report_cases *g, json_t *object, const char *key, json_t *value) {
    g->is_failed |= !fds__json_put(object, key, value);
}

static void append(report_cases *g, json_t *list, json_t *value) {
    g->is_failed |= !fds__json_append(list, value);
}

/* ---- one number per case ---- */

/* The row of a method in a case, or NULL. */
static const json_t *row_of(const report_cases *g, size_t i, const char *method) {
    return report_find(report_at(g->cases[i], "rows"), "method", method, NULL);
}

static const json_t *utility_of(const report_cases *g, size_t i, const char *utility) {
    return report_find(report_at(g->cases[i], "utilities"), "utility", utility, NULL);
}

/* {mean, sd, count} of the parts, or null. */
static json_t *describe_stat(const report_cases *g) {
    report_stat all = report_pool(g->parts, g->count);
    if (isnan(all.mean))
        return json_null();
    return json_pack("{s:f, s:o, s:I}", "mean", all.mean, "sd", fds__json_real(all.sd), "count",
                     (json_int_t)all.count);
}

/* The number at a path in the rows of a method. */
static json_t *join_number(const report_cases *g, const char *method, const char *path) {
    for (size_t i = 0; i < g->count; i++)
        g->parts[i] = (report_stat){1, report_number_of(row_of(g, i, method), path), NAN, NAN};
    return describe_stat(g);
}

static json_t *join_agreement(report_cases *g, const char *method) {
    static const char *const paths[] = {"agreement/correlation", "agreement/class_correlation",
                                        "agreement/relative_error", "agreement/efficiency_gap"};
    json_t *out = json_object();
    bool is_empty = true;
    for (size_t i = 0; i < 4; i++) {
        json_t *stat = join_number(g, method, paths[i]);
        is_empty &= json_is_null(stat);
        put(g, out, strchr(paths[i], '/') + 1, stat);
    }
    if (!is_empty)
        return out;
    json_decref(out);
    return json_null();
}

/* How many permutations were sampled, and whether all seeds ended by the method's own rule; null
 * where it has none. */
static json_t *join_permutations(const report_cases *g, const char *method) {
    json_t *sampled = join_number(g, method, "permutations/sampled");
    const json_t *has_converged = json_null();
    if (!sampled || json_is_null(sampled))
        return sampled;
    for (size_t i = 0; i < g->count; i++) {
        const json_t *flag = report_at(row_of(g, i, method), "permutations/has_converged");
        if (json_is_boolean(flag) && !json_is_false(has_converged))
            has_converged = flag;
    }
    return json_pack("{s:o, s:O}", "sampled", sampled, "has_converged", has_converged);
}

/* Seconds of a method that was interrupted and resumed lack a part: they count only where there are
 * no others. */
static json_t *join_timing(report_cases *g, const char *method) {
    bool has_whole = false, has_any = false;
    for (size_t i = 0; i < g->count; i++) {
        const json_t *timing = report_at(row_of(g, i, method), "timing");
        has_any |= json_is_object(timing);
        has_whole |= json_is_false(report_at(timing, "was_resumed"));
    }
    if (!has_any)
        return json_null();
    json_t *out = json_object();
    for (size_t i = 0; i < g->count; i++) {
        const json_t *timing = report_at(row_of(g, i, method), "timing");
        bool counts = !has_whole || json_is_false(report_at(timing, "was_resumed"));
        g->parts[i] =
            (report_stat){1, counts ? report_number_of(timing, "prepare_s") : NAN, NAN, NAN};
    }
    put(g, out, "prepare_s", describe_stat(g));
    put(g, out, "answer_ms", join_number(g, method, "timing/answer_ms"));
    put(g, out, "was_resumed", json_boolean(!has_whole));
    return out;
}

/* ---- losses ---- */

/* A case's own entry that is like one of the losses of a method (NULL: with all players). */
static const json_t *entry_like(const report_cases *g, size_t i, const char *method,
                                const char *utility, const json_t *loss) {
    const char *set = report_text_of(loss, "set");
    if (method)
        return report_losses(row_of(g, i, method), report_text_of(loss, "utility"),
                             report_text_of(loss, "removal"), set, NULL);
    return report_find(report_at(utility_of(g, i, utility), "losses"), "set", set, NULL);
}

/* One of the losses with all players, from the first case that has it. */
static json_t *join_base(report_cases *g, const char *utility, const json_t *first) {
    json_t *by_seed = json_array();
    for (size_t i = 0; i < g->count; i++) {
        g->parts[i] = report_stat_of(entry_like(g, i, NULL, utility, first), 0);
        append(g, by_seed, fds__json_real(g->parts[i].mean));
    }
    report_stat all = report_pool(g->parts, g->count);
    return json_pack("{s:s, s:I, s:o, s:o, s:o, s:o}", "set", report_text_of(first, "set"), "count",
                     (json_int_t)all.count, "mean", fds__json_real(all.mean), "sd",
                     fds__json_real(all.sd), "error", fds__json_real(all.error), "by_seed",
                     by_seed);
}

/* One entry of a row's losses, from the first case that has it. by_seed: the means of each case by
 * share, null for a case without the entry. */
static json_t *join_loss(report_cases *g, const char *method, const json_t *first) {
    json_t *mean = json_array(), *sd = json_array(), *error = json_array(), *by_seed = json_array();
    double count = 0;
    for (size_t k = 0; k < json_array_size(report_at(first, "mean")); k++) {
        for (size_t i = 0; i < g->count; i++)
            g->parts[i] = report_stat_of(entry_like(g, i, method, NULL, first), k);
        report_stat all = report_pool(g->parts, g->count);
        count = fmax(count, all.count);
        append(g, mean, fds__json_real(all.mean));
        append(g, sd, fds__json_real(all.sd));
        append(g, error, fds__json_real(all.error));
    }
    for (size_t i = 0; i < g->count; i++) {
        const json_t *entry = entry_like(g, i, method, NULL, first);
        append(g, by_seed, entry ? json_incref(json_object_get(entry, "mean")) : json_null());
    }
    return json_pack("{s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o}", "utility",
                     report_text_of(first, "utility"), "removal", report_text_of(first, "removal"),
                     "set", report_text_of(first, "set"), "count", (json_int_t)count, "mean", mean,
                     "sd", sd, "error", error, "by_seed", by_seed);
}

/* Every entry of the losses of a method (NULL: of a utility function) that any case has, once. */
static json_t *join_losses(report_cases *g, const char *method, const char *utility) {
    json_t *out = json_array();
    for (size_t i = 0; i < g->count; i++) {
        const json_t *holder = method ? row_of(g, i, method) : utility_of(g, i, utility), *entry;
        for (size_t k = 0; (entry = json_array_get(report_at(holder, "losses"), k)); k++) {
            bool is_new = true;
            for (size_t before = 0; before < i; before++)
                is_new &= !entry_like(g, before, method, utility, entry);
            if (is_new)
                append(g, out, method ? join_loss(g, method, entry) : join_base(g, utility, entry));
        }
    }
    return out;
}

/* ---- rows ---- */

/* The paper's figures are for so many players. */
static json_t *describe_paper(const report_cases *g, const char *method) {
    const json_t *data = report_at(g->cases[0], "data");
    const report_paper_row *row = report_paper_find(report_text_of(data, "name"), method);
    if (!row || report_number_of(data, "players") != REPORT_PAPER_PLAYERS)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o}", "shares",
                     report_numbers(report_paper_shares, REPORT_PAPER_SHARES), "mean",
                     report_numbers(row->mean, REPORT_PAPER_SHARES), "sd",
                     report_numbers(row->sd, REPORT_PAPER_SHARES), "seconds",
                     row->seconds > 0 ? json_real(row->seconds) : json_null());
}

static json_t *join_row(report_cases *g, const json_t *first) {
    const char *method = report_text_of(first, "method");
    static const char *const same[] = {"method", "title", "kind", "is_per_sample", "utility"};
    json_t *out = json_object();
    for (size_t k = 0; k < sizeof same / sizeof *same; k++)
        g->is_failed |= !fds__json_share(out, same[k], json_object_get(first, same[k]));
    put(g, out, "losses", join_losses(g, method, NULL));
    put(g, out, "agreement", join_agreement(g, method));
    put(g, out, "auc", join_number(g, method, "auc"));
    put(g, out, "sub_models", join_number(g, method, "sub_models"));
    put(g, out, "permutations", join_permutations(g, method));
    put(g, out, "timing", join_timing(g, method));
    put(g, out, "paper", describe_paper(g, method));
    return out;
}

/* How well the halves of the truth agree, over the seeds that have one. */
static json_t *join_truth(const report_cases *g, const char *utility) {
    const json_t *coalitions = NULL;
    for (size_t i = 0; i < g->count; i++) {
        const json_t *truth = report_at(utility_of(g, i, utility), "truth");
        g->parts[i] = (report_stat){1, report_number_of(truth, "correlation"), NAN, NAN};
        if (!coalitions)
            coalitions = json_object_get(truth, "coalitions");
    }
    if (!coalitions)
        return json_null();
    return json_pack("{s:O, s:o}", "coalitions", coalitions, "correlation", describe_stat(g));
}

static json_t *join_utility(report_cases *g, const json_t *first) {
    const char *utility = report_text_of(first, "utility");
    return json_pack("{s:s, s:o, s:o}", "utility", utility, "losses", join_losses(g, NULL, utility),
                     "truth", join_truth(g, utility));
}

/* The entries of the list key of all cases, each once by its member name, as make joins them. */
static json_t *join_list(report_cases *g, const char *key, const char *name,
                         json_t *(*make)(report_cases *g, const json_t *first)) {
    json_t *out = json_array();
    const json_t *entry;
    for (size_t i = 0; i < g->count; i++)
        for (size_t k = 0; (entry = json_array_get(report_at(g->cases[i], key), k)); k++)
            if (!report_find(out, name, report_text_of(entry, name), NULL))
                append(g, out, make(g, entry));
    return out;
}

json_t *report_join_utilities(report_cases *g) {
    return join_list(g, "utilities", "utility", join_utility);
}
json_t *report_join_rows(report_cases *g) { return join_list(g, "rows", "method", join_row); }
