/* SPDX-License-Identifier: Apache-2.0
 *
 * What was found on a data set, in sentences: which method leads, whether it is above the
 * references, and on how many samples and seeds a figure rests. Every number in them stands in
 * report.json beside them.
 *
 * "Above" and "behind" mean by more than two standard errors of the difference, which is taken
 * sample by sample where possible (entries.c). Methods that are not behind the leader are tied with
 * it.
 */
#include "report/report.h"

#include <math.h>
#include <string.h>

typedef struct finding {
    const json_t *data, *rows;
    const char *list, *utility, *removal, *set; /* of the entries; list "auc": of each row */
    size_t share;                               /* the place in an entry */
    int decimals;
    fds__text text;
} finding;

/* ---- entries ---- */

static const json_t *entry_of(const finding *f, const json_t *row) {
    if (strcmp(f->list, "auc") == 0)
        return json_is_object(report_at(row, "auc")) ? report_at(row, "auc") : NULL;
    return report_find_entry(row, f->list, f->utility, f->removal, f->set, NULL);
}

static const json_t *row_at(const finding *f, size_t r) { return json_array_get(f->rows, r); }
static const char *method_of(const json_t *row) { return report_text_of(row, "method"); }

/* Whether the difference from a reference is more than two standard errors; *errors: how many it
 * is. False where it is not known. */
static bool is_above(const finding *f, const json_t *row, const char *reference, double *errors) {
    const json_t *against =
        report_find(report_at(entry_of(f, row), "against"), "method", reference, NULL);
    const report_stat apart = report_stat_of(against, f->share);
    *errors = apart.mean == 0 ? 0 : apart.mean / apart.error;
    return *errors > REPORT_ERRORS;
}

/* Whether a row is behind the best one by more than two standard errors. */
static bool is_behind(const finding *f, const json_t *row) {
    const report_stat apart = report_stat_of(report_at(entry_of(f, row), "behind"), f->share);
    return apart.mean > REPORT_ERRORS * apart.error;
}

/* The row of the best method, or NULL. */
static const json_t *find_best(const finding *f) {
    const json_t *row;
    for (size_t r = 0; (row = row_at(f, r)); r++) {
        const json_t *best = report_at(entry_of(f, row), "behind/best");
        const char *method =
            json_string_value(json_is_array(best) ? json_array_get(best, f->share) : best);
        if (method)
            return report_find(f->rows, "method", method, NULL);
    }
    return NULL;
}

/* ---- words ---- */

static void say(finding *f, const char *words) { fds__text_add(&f->text, words, strlen(words)); }

/* Not -0.000. */
static void say_number(finding *f, double number) {
    bool is_zero = fabs(number) < 0.5 * pow(10, -f->decimals);
    fds__text_fixed(&f->text, f->decimals, is_zero ? 0 : number);
}

/* "4.9 standard errors", or "4.9" */
static void say_errors(finding *f, double errors, bool has_unit) {
    if (fabs(errors) > 99)
        say(f, "more than 99");
    else
        fds__text_fixed(&f->text, 1, fabs(errors));
    say(f, has_unit ? " standard errors" : "");
}

/* Before item i of "A, B and C". */
static void say_separator(finding *f, size_t i, size_t count) {
    say(f, i == 0 ? "" : i + 1 < count ? ", " : " and ");
}

/* Its name: titles have commas. */
static void say_method(finding *f, const json_t *row) {
    say(f, "`");
    say(f, method_of(row));
    say(f, "`");
}

/* "2.23 ± 0.29" */
static void say_mean(finding *f, const json_t *entry) {
    const report_stat stat = report_stat_of(entry, f->share);
    say_number(f, stat.mean);
    if (isfinite(stat.error)) {
        say(f, " ± ");
        say_number(f, stat.error);
    }
}

static void say_counted(finding *f, size_t count, const char *one) {
    report_counted(&f->text, count, one);
}

static size_t count_seeds(const json_t *entry) {
    const json_t *by_seed = report_at(entry, "by_seed");
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(by_seed); i++)
        count += !json_is_null(json_array_get(by_seed, i));
    return count;
}

static void say_share(finding *f, size_t share) {
    fds__text_digits(&f->text, 4,
                     100 * report_number_at(report_at(f->data, "settings/shares"), share));
    say(f, " %");
}

/* ---- sentences ---- */

/* Whether a row is not behind the best, which is another one; AUCs on other terms do not count. */
static bool is_tied(const finding *f, const json_t *best, const json_t *row) {
    bool is_comparable =
        strcmp(f->list, "auc") != 0 || json_is_true(report_at(row, "auc_terms/is_equal"));
    return row != best && entry_of(f, row) && is_comparable &&
           !report_is_reference(method_of(row)) && !is_behind(f, row);
}

/* ", tied with `afds` and `ls`" */
static void say_tied(finding *f, const json_t *best) {
    enum { NAMED = 4 };
    const json_t *row;
    size_t tied = 0, i = 0;
    for (size_t r = 0; (row = row_at(f, r)); r++)
        tied += is_tied(f, best, row);
    if (!tied)
        return;
    say(f, ", tied with ");
    if (tied > NAMED) {
        say_counted(f, tied, "other method");
        return;
    }
    for (size_t r = 0; (row = row_at(f, r)); r++)
        if (is_tied(f, best, row)) {
            say_separator(f, i++, tied);
            say_method(f, row);
        }
}

/* "`ls` leads with 2.23 ± 0.29 (451 correctly classified test samples, 3 seeds), tied with `afds`." */
static void say_leader(finding *f, const json_t *best) {
    const json_t *entry = entry_of(f, best);
    say_method(f, best);
    say(f, " leads with ");
    say_mean(f, entry);
    say(f, " (");
    say_counted(f, (size_t)report_stat_of(entry, f->share).count,
                strcmp(f->set, "correct") == 0 ? "correctly classified test sample"
                                               : "test sample");
    say(f, ", ");
    say_counted(f, count_seeds(entry), "seed");
    say(f, ")");
    if (isfinite(report_stat_of(entry, f->share).error))
        say_tied(f, best);
    else
        say(f, ": too few to tell methods apart");
    say(f, ".");
}

static bool has_reference(const finding *f, const char *reference) {
    return entry_of(f, report_find(f->rows, "method", reference, NULL)) != NULL;
}

/* Whether some method is above a reference. */
static bool is_beaten(const finding *f, const char *reference) {
    const json_t *row;
    double unused;
    for (size_t r = 0; (row = row_at(f, r)); r++)
        if (!report_is_reference(method_of(row)) && is_above(f, row, reference, &unused))
            return true;
    return false;
}

/* "`same-label` (0.83)" */
static void say_reference(finding *f, const char *reference) {
    const json_t *row = report_find(f->rows, "method", reference, NULL);
    say_method(f, row);
    say(f, " (");
    say_number(f, report_stat_of(entry_of(f, row), f->share).mean);
    say(f, ")");
}

/* " It is 4.9 standard errors above `same-label` (0.83), 0.4 below `knn:5/sample` (1.76) and equal to
 * ...." */
static void say_references(finding *f, const json_t *best) {
    size_t count = 0, i = 0;
    bool has_unit = false;
    double errors;
    if (isnan(report_stat_of(entry_of(f, best), f->share).error))
        return;
    for (const char *const *name = report_references; *name; name++)
        count += has_reference(f, *name);
    for (const char *const *name = report_references; *name; name++) {
        if (!has_reference(f, *name))
            continue;
        is_above(f, best, *name, &errors);
        say(f, i ? "" : " It is ");
        say_separator(f, i, count);
        if (errors == 0 || isnan(errors))
            say(f, errors == 0 ? "equal to " : "by an unknown error from ");
        else {
            say_errors(f, errors, !has_unit);
            has_unit = true;
            say(f, errors > 0 ? " above " : " below ");
        }
        say_reference(f, *name);
        i++;
    }
    say(f, count ? "." : "");
}

/* " At 10 %, 15 % and 20 %, no method beats `same-label`." Without all players, all are equal. */
static void say_unbeaten(finding *f) {
    size_t first = f->share, shares = json_array_size(report_at(f->data, "settings/shares"));
    size_t places = *f->removal ? shares : 1;
    for (const char *const *name = report_references; *name; name++) {
        size_t count = 0, i = 0;
        for (int pass = 0; pass < 2 && has_reference(f, *name); pass++)
            for (f->share = first; f->share < places; f->share++) {
                double share = report_number_at(report_at(f->data, "settings/shares"), f->share);
                if ((*f->removal && share >= 1) || is_beaten(f, *name))
                    continue;
                count += !pass;
                if (pass && *f->removal) {
                    say(f, i ? "" : " At ");
                    say_separator(f, i++, count);
                    say_share(f, f->share);
                }
            }
        f->share = first;
        if (count) {
            say(f, *f->removal ? ", no method beats " : " No method beats ");
            say_method(f, report_find(f->rows, "method", *name, NULL));
            say(f, ".");
        }
    }
}

/* ---- findings ---- */

/* Appends what was said, about something; forgets it. */
static bool keep(finding *f, json_t *list, const char *about) {
    bool is_whole = !f->text.is_failed;
    if (is_whole && f->text.used)
        is_whole = fds__json_append(
            list, json_pack("{s:s, s:o}", "about", about, "text", fds__json_string(f->text.data)));
    f->text.used = 0;
    return is_whole;
}

static bool add_losses(finding *f, json_t *list, const char *about) {
    char name[200];
    f->removal = "top";
    f->set = "correct";
    f->decimals = 2;
    if (!find_best(f))
        f->set = "all";
    const json_t *best = find_best(f);
    if (best) {
        say(f, "Without the most valuable ");
        say_share(f, f->share);
        say(f, " of the players, ");
        say_leader(f, best);
        say_references(f, best);
        if (isfinite(report_stat_of(entry_of(f, best), f->share).error))
            say_unbeaten(f);
    }
    snprintf(name, sizeof name, "%s, %s", about, report_models(f->utility));
    return keep(f, list, name);
}

/* " The values that stand for the truth score 0.781 ± 0.004." */
static void say_truth(finding *f) {
    const json_t *of = report_find(report_at(f->data, "utilities"), "utility", f->utility, NULL);
    const json_t *score = report_find_entry(of, f->list, f->utility, "", "", NULL);
    if (!isfinite(report_number_of(score, "mean")))
        return;
    say(f, " The values that stand for the truth score ");
    say_mean(f, score);
    say(f, ".");
}

static bool add_scores(finding *f, json_t *list, const char *about) {
    char name[200];
    f->removal = f->set = "";
    f->decimals = 3;
    const json_t *best = find_best(f);
    if (best) {
        say_leader(f, best);
        say_references(f, best);
        if (isfinite(report_stat_of(entry_of(f, best), 0).error))
            say_unbeaten(f);
        say_truth(f);
    }
    snprintf(name, sizeof name, "%s, %s", about, report_models(f->utility));
    return keep(f, list, name);
}

/* The methods of a utility function that correlate best with its truth, with the spread over
 * seeds, and what the truth is. */
static bool add_agreement(finding *f, json_t *list, const json_t *of) {
    const json_t *row, *best = NULL;
    char name[200];
    double most = NAN;
    f->decimals = 3;
    for (size_t r = 0; (row = row_at(f, r)); r++) {
        double mean = report_number_of(row, "agreement/correlation/mean");
        if (isnan(mean) || report_is_reference(method_of(row)) ||
            strcmp(report_text_of(row, "utility"), f->utility) != 0 || mean <= most)
            continue;
        best = row;
        most = mean;
    }
    if (best && isfinite(report_number_of(of, "truth/coalitions"))) {
        const json_t *stat = report_at(best, "agreement/correlation");
        say_method(f, best);
        say(f, " correlates best, ");
        say_number(f, most);
        if (isfinite(report_number_of(stat, "sd"))) {
            say(f, " with a standard deviation of ");
            say_number(f, report_number_of(stat, "sd"));
            say(f, " over ");
            say_counted(f, (size_t)report_number_of(stat, "count"), "seed");
        } else
            say(f, " (1 seed)");
        say(f, ". The truth is the mean of two least-squares solutions, with `counts`, on ");
        fds__text_fixed(&f->text, 0, report_number_of(of, "truth/coalitions"));
        say(f, " coalitions in all");
        if (isfinite(report_number_of(of, "truth/correlation/mean"))) {
            say(f, "; the two correlate ");
            say_number(f, report_number_of(of, "truth/correlation/mean"));
        }
        say(f, ".");
    }
    snprintf(name, sizeof name, "Agreement with the truth, %s", report_models(f->utility));
    return keep(f, list, name);
}

/* " On their own terms: `fds` 0.922 and `freeshap` 0.994 (ahead)." */
static void say_own_terms(finding *f) {
    const json_t *row;
    size_t count = 0, i = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t r = 0; (row = row_at(f, r)); r++) {
            const json_t *area = entry_of(f, row);
            const report_stat behind = report_stat_of(report_at(area, "behind"), 0);
            if (!area || report_kind_of(row) == REPORT_CONTROL ||
                json_is_true(report_at(row, "auc_terms/is_equal")))
                continue;
            count += !pass;
            if (!pass)
                continue;
            say(f, i ? "" : " On their own terms: ");
            say_separator(f, i++, count);
            say_method(f, row);
            say(f, " ");
            say_number(f, report_number_of(area, "mean"));
            say(f, behind.mean < -REPORT_ERRORS * behind.error ? " (ahead)" : "");
        }
    say(f, count ? "." : "");
}

/* "On equal terms, `ls` finds wrong labels best: AUC 0.967, standard deviation 0.020 over 5 flips of
 * labels, tied with `afds`." */
static void say_finder(finding *f, const json_t *best) {
    const json_t *stat = entry_of(f, best);
    say(f, "On equal terms, ");
    say_method(f, best);
    say(f, " finds wrong labels best: AUC ");
    say_number(f, report_number_of(stat, "mean"));
    if (isfinite(report_number_of(stat, "sd"))) {
        say(f, ", standard deviation ");
        say_number(f, report_number_of(stat, "sd"));
    }
    say(f, " over ");
    say_counted(f, (size_t)report_number_of(stat, "count"), "flip");
    say(f, " of labels");
    if (isfinite(report_number_of(stat, "sd")))
        say_tied(f, best);
    else
        say(f, ": too few to tell methods apart");
    say(f, ".");
    say_own_terms(f);
}

static bool add_areas(finding *f, json_t *list) {
    f->list = "auc";
    f->decimals = 3;
    const json_t *best = find_best(f);
    if (best)
        say_finder(f, best);
    return keep(f, list, "Wrong labels");
}

/* What is measured on test samples, in this order. */
static const struct {
    const char *list, *about;
    bool (*add)(finding *f, json_t *list, const char *about);
} parts[] = {{"losses", "Value loss", add_losses},
             {"losses_other_seed", "Value loss from other initial networks", add_losses},
             {"lds", "LDS by models of the same seed", add_scores},
             {"lds_other_seeds", "LDS by the mean over other seeds", add_scores}};

json_t *report_findings(const json_t *data) {
    finding f = {.data = data, .rows = report_at(data, "rows")};
    const json_t *utilities = report_at(data, "utilities"), *of;
    json_t *list = json_array();
    bool is_whole = list != NULL;
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)
        for (size_t u = 0; is_whole && (of = json_array_get(utilities, u)); u++) {
            f.list = parts[p].list;
            f.utility = report_text_of(of, "utility");
            is_whole = parts[p].add(&f, list, parts[p].about);
        }
    for (size_t u = 0; is_whole && (of = json_array_get(utilities, u)); u++) {
        f.utility = report_text_of(of, "utility");
        is_whole = add_agreement(&f, list, of);
    }
    is_whole = is_whole && add_areas(&f, list);
    fds__free(f.text.data);
    return fds__json_keep_if(list, is_whole);
}
