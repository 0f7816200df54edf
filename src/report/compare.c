/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares two report.json number by number: what differs by more than so many standard errors, and
 * what only one of them has. The error of a difference is the root of the sum of both squares; for
 * numbers that are one per seed it is sd / sqrt(count). Numbers without a known error, such as those
 * of one seed, count as different by more than a twentieth. Players, samples, seeds and settings
 * have no error: any difference counts. Times are not compared.
 */
#include "report/report.h"

#include <math.h>
#include <string.h>

typedef struct comparison {
    double sigmas;
    void (*tell)(void *user, const fds_bench_change *change);
    void *user;
    size_t compared;
    const char *data, *method; /* being compared */
    fds__text what;            /* scratch for names; it keeps a failure until the end */
} comparison;

static void tell(const comparison *c, const char *what, double before, double after,
                 double sigmas) {
    const fds_bench_change change = {c->data, c->method, what, before, after, sigmas};
    if (c->tell && !c->what.is_failed)
        c->tell(c->user, &change);
}

/* A difference of numbers without errors: a twentieth of them, or of 0.1 if they are smaller. */
static bool is_large(double apart, double before, double after) {
    return apart > 0.05 * fmax(fmax(fabs(before), fabs(after)), 0.1);
}

static void compare(comparison *c, const char *what, report_stat before, report_stat after) {
    if (isnan(before.mean) || isnan(after.mean))
        return;
    c->compared++;
    double apart = fabs(after.mean - before.mean), error = hypot(before.error, after.error);
    double sigmas = apart > 0 ? apart / error : 0;
    if (isnan(sigmas) ? is_large(apart, before.mean, after.mean) : sigmas > c->sigmas)
        tell(c, what, before.mean, after.mean, sigmas);
}

/* A method or data set that only one of them has. */
static void tell_missing(comparison *c, bool is_before) {
    c->compared++;
    tell(c, is_before ? "only before" : "only after", NAN, NAN, INFINITY);
}

/* ---- what was measured on ---- */

static void compare_exactly(comparison *c, const char *what, double before, double after) {
    compare(c, what, (report_stat){.mean = before}, (report_stat){.mean = after});
}

static void compare_numbers(comparison *c, const char *const *keys, const json_t *before,
                            const json_t *after) {
    for (; *keys; keys++)
        compare_exactly(c, *keys, report_number_of(before, *keys), report_number_of(after, *keys));
}

/* "network lenet5 before, mlp after" */
static void compare_text(comparison *c, const char *key, const json_t *before,
                         const json_t *after) {
    const char *old = report_text_of(before, key), *new = report_text_of(after, key);
    if (!*old || !*new)
        return;
    c->compared++;
    if (strcmp(old, new) == 0)
        return;
    const char *const parts[] = {key, " ", old, " before, ", new, " after"};
    c->what.used = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        draw_markup(&c->what, parts[i]);
    tell(c, c->what.data, NAN, NAN, INFINITY);
}

/* Seeds: how many there are, or the first that differs. */
static void compare_scope(comparison *c, const json_t *before, const json_t *after) {
    static const char *const sizes[] = {"players", "tests", "inputs", NULL};
    const json_t *old = json_object_get(before, "seeds"), *new = json_object_get(after, "seeds");
    size_t count = json_array_size(old), at = 0;
    compare_numbers(c, sizes, before, after);
    while (at + 1 < count && json_equal(json_array_get(old, at), json_array_get(new, at)))
        at++;
    if (count != json_array_size(new))
        compare_exactly(c, "seeds", (double)count, (double)json_array_size(new));
    else
        compare_exactly(c, "seed", report_number_at(old, at), report_number_at(new, at));
}

static void compare_settings(comparison *c, const json_t *before, const json_t *after) {
    static const char *const keys[] = {"coalitions", "permutations",  "truth",
                                       "lds",        "lds_seeds",     "loss_seeds",
                                       "flipped",    "flipped_seeds", NULL};
    compare_numbers(c, keys, before, after);
    compare_text(c, "network", before, after);
    compare_text(c, "explainer", before, after);
}

/* ---- losses ---- */

/* "loss by retrain:10, top 10 %, correct"; with all players, removal "": "loss by retrain:10,
 * correct" */
static const char *name_loss(comparison *c, const char *list, const char *utility,
                             const char *removal, double share, const char *set) {
    c->what.used = 0;
    draw_markup(&c->what, "loss by ");
    draw_markup(&c->what, utility);
    if (strcmp(list, "losses") != 0)
        draw_markup(&c->what, " of another seed");
    if (*removal) {
        fds__text_print(&c->what, ", %s ", removal);
        fds__text_digits(&c->what, 6, 100 * share);
        draw_markup(&c->what, " %");
    }
    fds__text_print(&c->what, ", %s", set);
    return c->what.data;
}

static void compare_losses(comparison *c, const char *list, const json_t *before,
                           const json_t *after, const json_t *shares_before,
                           const json_t *shares_after) {
    const json_t *old;
    for (size_t i = 0; (old = json_array_get(report_at(before, list), i)); i++) {
        const char *utility = report_text_of(old, "utility"),
                   *removal = report_text_of(old, "removal"), *set = report_text_of(old, "set");
        const json_t *new = report_find_entry(after, list, utility, removal, set, NULL);
        for (size_t k = 0; new &&k < json_array_size(shares_before); k++)
            for (size_t m = 0; m < json_array_size(shares_after); m++) {
                double share = report_number_at(shares_before, k);
                if (fabs(share - report_number_at(shares_after, m)) <= 1e-9)
                    compare(c, name_loss(c, list, utility, removal, share, set),
                            report_stat_of(old, k), report_stat_of(new, m));
            }
    }
}

/* Losses with all players. */
static void compare_bases(comparison *c, const json_t *before, const json_t *after) {
    const json_t *of, *old;
    c->method = "(all players)";
    for (size_t u = 0; (of = json_array_get(report_at(before, "utilities"), u)); u++) {
        const char *utility = report_text_of(of, "utility");
        const json_t *other = report_find(report_at(after, "utilities"), "utility", utility, NULL);
        for (size_t i = 0; (old = json_array_get(report_at(of, "losses"), i)); i++) {
            const char *set = report_text_of(old, "set");
            const json_t *new = report_find(report_at(other, "losses"), "set", set, NULL);
            compare(c, name_loss(c, "losses", utility, "", 0, set), report_stat_of(old, 0),
                    report_stat_of(new, 0));
        }
    }
}

/* Linear datamodeling scores. */
static void compare_scores(comparison *c, const char *list, const char *what, const json_t *before,
                           const json_t *after) {
    const json_t *old;
    for (size_t i = 0; (old = json_array_get(report_at(before, list), i)); i++) {
        const char *utility = report_text_of(old, "utility");
        c->what.used = 0;
        draw_markup(&c->what, what);
        draw_markup(&c->what, utility);
        compare(c, c->what.data, report_stat_of(old, 0),
                report_stat_of(report_find_entry(after, list, utility, "", "", NULL), 0));
    }
}

/* ---- one number per seed ---- */

static void compare_stats(comparison *c, const json_t *before, const json_t *after) {
    static const char *const stats[][2] = {
        {"agreement/correlation", "correlation with the truth"},
        {"agreement/class_correlation", "correlation within the class"},
        {"agreement/relative_error", "relative error"},
        {"agreement/efficiency_gap", "efficiency gap"},
        {"auc", "AUC of mislabel detection"},
        {"sub_models", "sub-models"}};
    for (size_t i = 0; i < sizeof stats / sizeof *stats; i++)
        compare(c, stats[i][1], report_stat_of(report_at(before, stats[i][0]), 0),
                report_stat_of(report_at(after, stats[i][0]), 0));
}

/* ---- all of it ---- */

static void compare_data(comparison *c, const json_t *before, const json_t *after) {
    const json_t *rows = json_object_get(before, "rows"), *others = json_object_get(after, "rows");
    const json_t *old, *new;
    compare_scope(c, before, after);
    compare_settings(c, report_at(before, "settings"), report_at(after, "settings"));
    compare_bases(c, before, after);
    for (size_t r = 0; (old = json_array_get(rows, r)); r++) {
        c->method = report_text_of(old, "method");
        new = report_find(others, "method", c->method, NULL);
        if (new) {
            for (size_t i = 0; i < 2; i++)
                compare_losses(c, report_lists[i], old, new, report_at(before, "settings/shares"),
                               report_at(after, "settings/shares"));
            compare_scores(c, "lds", "LDS by ", old, new);
            compare_scores(c, "lds_other_seeds", "LDS by other seeds of ", old, new);
            compare_stats(c, old, new);
        } else
            tell_missing(c, true);
    }
    for (size_t r = 0; (new = json_array_get(others, r)); r++) {
        c->method = report_text_of(new, "method");
        if (!report_find(rows, "method", c->method, NULL))
            tell_missing(c, false);
    }
}

static void compare_all(comparison *c, const json_t *before, const json_t *after) {
    const json_t *old, *new;
    for (size_t d = 0; (old = json_array_get(before, d)); d++) {
        c->data = report_text_of(old, "name");
        c->method = "";
        new = report_find(after, "name", c->data, NULL);
        if (new)
            compare_data(c, old, new);
        else
            tell_missing(c, true);
    }
    c->method = "";
    for (size_t d = 0; (new = json_array_get(after, d)); d++) {
        c->data = report_text_of(new, "name");
        if (!report_find(before, "name", c->data, NULL))
            tell_missing(c, false);
    }
}

fds_status fds_bench_compare(const char *before_path, const char *after_path, double sigmas,
                             void (*on_change)(void *user, const fds_bench_change *change),
                             void *user, size_t *compared, fds_error *err) {
    if (!(sigmas >= 0))
        return fds__fail(err, FDS_ERR_USAGE, "the number of standard errors must be at least 0");
    comparison c = {.sigmas = sigmas, .tell = on_change, .user = user};
    json_t *before = NULL, *after = NULL;
    fds_status status = report_read(before_path, &before, err);
    if (status == FDS_OK)
        status = report_read(after_path, &after, err);
    if (status == FDS_OK) {
        compare_all(&c, json_object_get(before, "data"), json_object_get(after, "data"));
        status = c.what.is_failed ? fds__text_check(&c.what, err) : FDS_OK;
    }
    if (status == FDS_OK && compared)
        *compared = c.compared;
    json_decref(before);
    json_decref(after);
    fds__free(c.what.data);
    return status;
}
