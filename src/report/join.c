/* SPDX-License-Identifier: Apache-2.0
 *
 * report.json (docs/bench.md) from case.json files. Cases of one data set, which differ only in
 * their seeds, become one entry: what is measured on test samples is pooled over all samples of all
 * seeds, what is one number per seed is averaged over the seeds that have it, and what no case has
 * measured is null. Data sets, rows and utility functions keep the order in which they first appear.
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

/* The AUC is one number for each flip of labels, of which a case has several. */
static json_t *join_areas(const report_cases *g, const char *method) {
    for (size_t i = 0; i < g->count; i++)
        g->parts[i] = report_stat_of(report_at(row_of(g, i, method), "auc"), 0);
    return describe_stat(g);
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

/* On which terms the AUC was measured. */
static json_t *join_terms(const report_cases *g, const char *method) {
    const json_t *is_equal = NULL;
    for (size_t i = 0; i < g->count && !is_equal; i++)
        is_equal = report_at(row_of(g, i, method), "auc_terms/is_equal");
    if (!is_equal)
        return json_null();
    return json_pack("{s:O, s:o}", "is_equal", is_equal, "sub_models",
                     join_number(g, method, "auc_terms/sub_models"));
}

/* How many permutations were sampled, and whether the method's own rule stopped it in all seeds;
 * null where it has none. */
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

/* The seconds of an interrupted method lack a part: they count only where there are no others. */
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

/* ---- rows ---- */

/* What the paper reports, which is for REPORT_PAPER_PLAYERS players. */
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
    const report_holder row = report_row_of(method);
    for (const char *const *list = report_lists; *list; list++)
        put(g, out, *list, report_join_entries(g, &row, *list));
    put(g, out, "curves", report_join_curves(g, method, first));
    put(g, out, "agreement", join_agreement(g, method));
    put(g, out, "auc", join_areas(g, method));
    put(g, out, "auc_terms", join_terms(g, method));
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
    const report_holder of = report_utility_of(utility);
    json_t *out = json_pack("{s:s}", "utility", utility);
    for (const char *const *list = report_lists; *list; list++)
        put(g, out, *list, report_join_entries(g, &of, *list));
    put(g, out, "truth", join_truth(g, utility));
    return out;
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

/* ---- a data set ---- */

/* Pictures of the first case that has any; only those whose files are there. */
static json_t *join_pictures(report_cases *g) {
    json_t *out = json_array();
    const json_t *picture;
    for (size_t i = 0; i < g->count && json_array_size(out) == 0; i++)
        for (size_t k = 0; (picture = json_array_get(report_at(g->cases[i], "pictures"), k)); k++) {
            char path[FDS__PATH_MAX];
            if (fds__path_join(path, sizeof path, g->dirs[i], report_text_of(picture, "file"),
                               NULL) != FDS_OK)
                continue;
            json_t *file = fds__json_string(path);
            if (file && !fds__path_exists(json_string_value(file)))
                json_decref(file);
            else
                append(g, out,
                       json_pack("{s:s, s:o}", "method", report_text_of(picture, "method"), "file",
                                 file));
        }
    return out;
}

/* How often labels were flipped, in all cases together. */
static json_t *count_flips(const report_cases *g) {
    json_int_t count = 0;
    for (size_t i = 0; i < g->count; i++)
        if (report_number_of(g->cases[i], "settings/flipped") > 0)
            count += json_integer_value(report_at(g->cases[i], "settings/flipped_seeds"));
    return json_integer(count);
}

/* The settings of a case without its seed. Truth, flipped labels and loss_seeds may be 0 in some
 * seeds: then they are those of the first case that has them. */
static json_t *join_settings(report_cases *g, size_t i) {
    json_t *out = json_object(), *value;
    const char *key;
    json_object_foreach((json_t *)(uintptr_t)report_at(g->cases[i], "settings"), key, value) {
        if (strcmp(key, "flipped_seeds") == 0) {
            put(g, out, key, count_flips(g));
            continue;
        }
        bool may_be_zero = strcmp(key, "truth") == 0 || strcmp(key, "flipped") == 0 ||
                           strcmp(key, "loss_seeds") == 0;
        for (size_t k = 0; may_be_zero && json_number_value(value) == 0 && k < g->count; k++) {
            json_t *other = json_object_get(report_at(g->cases[k], "settings"), key);
            value = other ? other : value;
        }
        if (strcmp(key, "seed") != 0)
            g->is_failed |= !fds__json_share(out, key, value);
    }
    g->is_failed |= !out;
    return out;
}

static fds_status fail_difference(const report_cases *g, size_t i, const char *what,
                                  fds_error *err) {
    return fds__fail(err, FDS_ERR_USAGE,
                     "%s/case.json: %s; cases of \"%.60s\" in one report may differ in their seeds "
                     "alone",
                     g->dirs[i], what, report_text_of(g->cases[i], "data/name"));
}

static fds_status check_settings(report_cases *g, size_t i, fds_error *err) {
    json_t *before = join_settings(g, 0), *now = join_settings(g, i);
    char what[300];
    fds_status status = FDS_OK;
    if (g->is_failed)
        status = fds__fail_json(err);
    else if (fds__json_difference(before, now, "first case", what, sizeof what))
        status = fail_difference(g, i, what, err);
    json_decref(before);
    json_decref(now);
    return status;
}

/* Rows of one method say the same about it in all cases. */
static fds_status check_rows(const report_cases *g, size_t i, size_t before, fds_error *err) {
    static const char *const same[] = {"title", "kind", "is_per_sample", "utility"};
    const json_t *row;
    for (size_t r = 0; (row = json_array_get(report_at(g->cases[i], "rows"), r)); r++) {
        const char *method = report_text_of(row, "method");
        const json_t *other =
            report_find(report_at(g->cases[before], "rows"), "method", method, NULL);
        for (size_t k = 0; other && k < sizeof same / sizeof *same; k++)
            if (!json_equal(json_object_get(row, same[k]), json_object_get(other, same[k]))) {
                char what[300];
                snprintf(what, sizeof what, "rows[%zu].%s is not that of \"%.60s\" in %.100s", r,
                         same[k], method, g->dirs[before]);
                return fail_difference(g, i, what, err);
            }
    }
    return FDS_OK;
}

static json_int_t seed_of(const json_t *of_case) {
    return json_integer_value(report_at(of_case, "settings/seed"));
}

static fds_status check_group(report_cases *g, fds_error *err) {
    for (size_t i = 1; i < g->count; i++) {
        char what[300];
        for (size_t before = 0; before < i; before++)
            if (seed_of(g->cases[before]) == seed_of(g->cases[i])) {
                snprintf(what, sizeof what, "seed %lld is also that of %.200s",
                         (long long)seed_of(g->cases[i]), g->dirs[before]);
                return fail_difference(g, i, what, err);
            }
        if (fds__json_difference(report_at(g->cases[0], "data"), report_at(g->cases[i], "data"),
                                 "first case", what, sizeof what))
            return fail_difference(g, i, what, err);
        TRY(check_settings(g, i, err));
        for (size_t before = 0; before < i; before++)
            TRY(check_rows(g, i, before, err));
    }
    return FDS_OK;
}

static fds_status join_group(report_cases *g, json_t **out, fds_error *err) {
    TRY(check_group(g, err));
    json_t *data = json_object(), *seeds = json_array(), *value;
    const char *key;
    json_object_foreach((json_t *)(uintptr_t)report_at(g->cases[0], "data"), key, value)
        g->is_failed |= !fds__json_share(data, key, value);
    for (size_t i = 0; i < g->count; i++)
        append(g, seeds, json_integer(seed_of(g->cases[i])));
    put(g, data, "seeds", seeds);
    put(g, data, "settings", join_settings(g, 0));
    put(g, data, "utilities", join_list(g, "utilities", "utility", join_utility));
    json_t *rows = join_list(g, "rows", "method", join_row);
    report_join_differences(g, rows);
    put(g, data, "rows", rows);
    put(g, data, "pictures", join_pictures(g));
    put(g, data, "findings", report_findings(data));
    *out = fds__json_keep_if(data, !g->is_failed);
    return *out ? FDS_OK : fds__fail_json(err);
}

/* ---- all of it ---- */

/* The machine of the first case. is_mixed: a case has another one, or another version. */
static json_t *join_machine(json_t *const *cases, size_t count) {
    static const char *const keys[] = {"processor", "processors", "instructions", "threads"};
    const json_t *first = json_object_get(cases[0], "machine");
    json_t *out = json_object();
    bool is_whole = out != NULL, is_mixed = false;
    for (size_t k = 0; is_whole && k < sizeof keys / sizeof *keys; k++)
        is_whole = fds__json_share(out, keys[k], json_object_get(first, keys[k]));
    for (size_t i = 0; i < count; i++)
        is_mixed |= strcmp(report_text_of(cases[i], "fds"), FDS_VERSION) != 0 ||
                    !json_equal(json_object_get(cases[i], "machine"), first) ||
                    json_is_true(json_object_get(first, "is_mixed"));
    is_whole = is_whole && fds__json_put(out, "is_mixed", json_boolean(is_mixed));
    return fds__json_keep_if(out, is_whole);
}

static const char *name_of(const json_t *of_case) { return report_text_of(of_case, "data/name"); }

/* Joins the cases of each name. */
static fds_status join_cases(json_t *const *cases, const char *const *dirs, size_t count,
                             report_cases *g, json_t *list, fds_error *err) {
    for (size_t i = 0; i < count; i++) {
        json_t *data;
        g->count = 0;
        for (size_t k = 0; k < count; k++)
            if (strcmp(name_of(cases[k]), name_of(cases[i])) == 0) {
                g->cases[g->count] = cases[k];
                g->dirs[g->count++] = dirs[k];
            }
        if (g->cases[0] != cases[i]) /* joined with an earlier one */
            continue;
        TRY(join_group(g, &data, err));
        if (!fds__json_append(list, data))
            return fds__fail_json(err);
    }
    return FDS_OK;
}

static fds_status read_cases(const char *const *dirs, size_t count, json_t **cases,
                             fds_error *err) {
    for (size_t i = 0; i < count; i++) {
        char path[FDS__PATH_MAX];
        TRY(fds__path_join(path, sizeof path, dirs[i], "case.json", err));
        TRY(report_case_read(path, &cases[i], err));
    }
    return FDS_OK;
}

fds_status report_join(const char *const *dirs, size_t count, const char *command, json_t **out,
                       fds_error *err) {
    if (count == 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "a report needs the folder of at least one finished case");
    json_t **cases = fds__alloc_zero(count, sizeof *cases), *list = json_array(), *report = NULL;
    report_cases g = {fds__alloc_zero(count, sizeof *g.cases),
                      fds__alloc_zero(count, sizeof *g.dirs),
                      fds__alloc_zero(count, sizeof *g.parts), 0, false};
    fds_status status = cases && list && g.cases && g.dirs && g.parts
                            ? read_cases(dirs, count, cases, err)
                            : fds__fail_json(err);
    if (status == FDS_OK)
        status = join_cases(cases, dirs, count, &g, list, err);
    if (status == FDS_OK) {
        report = json_pack("{s:s, s:s, s:o, s:o, s:O}", "fds", FDS_VERSION, "kind",
                           "fds bench report", "command", fds__json_string(command ? command : ""),
                           "machine", join_machine(cases, count), "data", list);
        status = report ? FDS_OK : fds__fail_json(err);
    }
    for (size_t i = 0; cases && i < count; i++)
        json_decref(cases[i]);
    json_decref(list);
    fds__free(cases);
    fds__free(g.cases);
    fds__free(g.dirs);
    fds__free(g.parts);
    *out = report;
    return status;
}
