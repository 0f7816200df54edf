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
    const char *data, *method; /* at hand */
} comparison;

/* A number with its error, NaN where unknown. */
typedef struct figure {
    double mean, error;
} figure;

/* A difference of numbers without errors: a twentieth of them, or of what is little for measures
 * around 1. */
static bool is_large(double apart, double before, double after) {
    return apart > 0.05 * fmax(fmax(fabs(before), fabs(after)), 0.1);
}

static void tell(const comparison *c, const char *what, double before, double after,
                 double sigmas) {
    const fds_bench_change change = {c->data, c->method, what, before, after, sigmas};
    if (c->tell)
        c->tell(c->user, &change);
}

static void compare(comparison *c, const char *what, figure before, figure after) {
    if (isnan(before.mean) || isnan(after.mean))
        return;
    c->compared++;
    double apart = fabs(after.mean - before.mean), error = hypot(before.error, after.error);
    double sigmas = apart > 0 ? apart / error : 0;
    if (isnan(sigmas) ? is_large(apart, before.mean, after.mean) : sigmas > c->sigmas)
        tell(c, what, before.mean, after.mean, sigmas);
}

/* Something that is no number, in one of them alone. */
static void tell_missing(comparison *c, bool is_before) {
    c->compared++;
    tell(c, is_before ? "only before" : "only after", NAN, NAN, INFINITY);
}

/* ---- what was measured on ---- */

static void compare_exactly(comparison *c, const char *const *keys, const json_t *before,
                            const json_t *after) {
    for (; *keys; keys++)
        compare(c, *keys, (figure){report_number_of(before, *keys), 0},
                (figure){report_number_of(after, *keys), 0});
}

/* "network lenet5 before, mlp after" */
static fds_status compare_text(comparison *c, const char *key, const json_t *before,
                               const json_t *after, fds__text *what, fds_error *err) {
    const char *old = report_text_of(before, key), *new = report_text_of(after, key);
    if (!*old || !*new)
        return FDS_OK;
    c->compared++;
    if (strcmp(old, new) == 0)
        return FDS_OK;
    what->used = 0;
    const char *const parts[] = {key, " ", old, " before, ", new, " after"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        draw_markup(what, parts[i]);
    TRY(fds__text_check(what, err));
    tell(c, what->data, NAN, NAN, INFINITY);
    return FDS_OK;
}

static fds_status compare_settings(comparison *c, const json_t *before, const json_t *after,
                                   fds__text *what, fds_error *err) {
    static const char *const keys[] = {"coalitions", "permutations", "truth", "flipped", NULL};
    compare_exactly(c, keys, before, after);
    TRY(compare_text(c, "network", before, after, what, err));
    return compare_text(c, "explainer", before, after, what, err);
}

/* Seeds: how many there are, or the first that differs. */
static void compare_scope(comparison *c, const json_t *before, const json_t *after) {
    static const char *const keys[] = {"players", "tests", "inputs", NULL};
    const json_t *old = json_object_get(before, "seeds"), *new = json_object_get(after, "seeds");
    compare_exactly(c, keys, before, after);
    size_t count = json_array_size(old), at = 0;
    if (count != json_array_size(new)) {
        compare(c, "seeds", (figure){(double)count, 0}, (figure){(double)json_array_size(new), 0});
        return;
    }
    while (at + 1 < count && json_equal(json_array_get(old, at), json_array_get(new, at)))
        at++;
    compare(c, "seed", (figure){report_number_at(old, at), 0},
            (figure){report_number_at(new, at), 0});
}

/* ---- losses ---- */

static figure at_share(const json_t *entry, size_t k) {
    return (figure){report_number_at(json_object_get(entry, "mean"), k),
                    report_number_at(json_object_get(entry, "error"), k)};
}

/* "loss by retrain:10, top 10 %, correct" */
static fds_status name_loss(const json_t *entry, double share, fds__text *what, fds_error *err) {
    what->used = 0;
    fds__text_print(what, "loss by ");
    draw_markup(what, report_text_of(entry, "utility"));
    fds__text_print(what, ", %s ", report_text_of(entry, "removal"));
    fds__text_digits(what, 6, 100 * share);
    fds__text_print(what, " %%, %s", report_text_of(entry, "set"));
    return fds__text_check(what, err);
}

static fds_status compare_losses(comparison *c, const json_t *before, const json_t *after,
                                 const json_t *shares_before, const json_t *shares_after,
                                 fds__text *what, fds_error *err) {
    const json_t *list = json_object_get(before, "losses");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *old = json_array_get(list, i);
        const json_t *new =
            report_losses(after, report_text_of(old, "utility"), report_text_of(old, "removal"),
                          report_text_of(old, "set"), NULL);
        for (size_t k = 0; new &&k < json_array_size(shares_before); k++)
            for (size_t m = 0; m < json_array_size(shares_after); m++) {
                double share = report_number_at(shares_before, k);
                if (fabs(share - report_number_at(shares_after, m)) > 1e-9)
                    continue;
                TRY(name_loss(old, share, what, err));
                compare(c, what->data, at_share(old, k), at_share(new, m));
            }
    }
    return FDS_OK;
}

/* Losses with all players. */
static fds_status compare_bases(comparison *c, const json_t *before, const json_t *after,
                                fds__text *what, fds_error *err) {
    const json_t *of, *old;
    c->method = "(all players)";
    for (size_t u = 0; (of = json_array_get(report_at(before, "utilities"), u)); u++) {
        const char *utility = report_text_of(of, "utility");
        const json_t *other = report_find(report_at(after, "utilities"), "utility", utility, NULL);
        for (size_t i = 0; (old = json_array_get(report_at(of, "losses"), i)); i++) {
            const char *set = report_text_of(old, "set");
            const json_t *new = report_find(report_at(other, "losses"), "set", set, NULL);
            what->used = 0;
            fds__text_print(what, "loss by ");
            draw_markup(what, utility);
            fds__text_print(what, ", %s", set);
            TRY(fds__text_check(what, err));
            compare(c, what->data,
                    (figure){report_number_of(old, "mean"), report_number_of(old, "error")},
                    (figure){report_number_of(new, "mean"), report_number_of(new, "error")});
        }
    }
    return FDS_OK;
}

/* ---- one number per seed ---- */

static figure stat_figure(const json_t *stat) {
    return (figure){report_number_of(stat, "mean"),
                    report_number_of(stat, "sd") / sqrt(report_number_of(stat, "count"))};
}

static void compare_stats(comparison *c, const json_t *before, const json_t *after) {
    static const char *const stats[][2] = {
        {"agreement/correlation", "correlation with the truth"},
        {"agreement/class_correlation", "correlation within the class"},
        {"agreement/relative_error", "relative error"},
        {"agreement/efficiency_gap", "efficiency gap"},
        {"auc", "AUC of mislabel detection"},
        {"sub_models", "sub-models"}};
    for (size_t i = 0; i < sizeof stats / sizeof *stats; i++)
        compare(c, stats[i][1], stat_figure(report_at(before, stats[i][0])),
                stat_figure(report_at(after, stats[i][0])));
}

/* ---- all of it ---- */

static fds_status compare_data(comparison *c, const json_t *before, const json_t *after,
                               fds__text *what, fds_error *err) {
    const json_t *rows = json_object_get(before, "rows"), *others = json_object_get(after, "rows");
    c->method = "";
    compare_scope(c, before, after);
    TRY(compare_settings(c, report_at(before, "settings"), report_at(after, "settings"), what,
                         err));
    TRY(compare_bases(c, before, after, what, err));
    for (size_t r = 0; r < json_array_size(rows); r++) {
        const json_t *old = json_array_get(rows, r);
        c->method = report_text_of(old, "method");
        const json_t *new = report_find(others, "method", c->method, NULL);
        if (!new) {
            tell_missing(c, true);
            continue;
        }
        TRY(compare_losses(c, old, new, report_at(before, "settings/shares"),
                           report_at(after, "settings/shares"), what, err));
        compare_stats(c, old, new);
    }
    for (size_t r = 0; r < json_array_size(others); r++) {
        c->method = report_text_of(json_array_get(others, r), "method");
        if (!report_find(rows, "method", c->method, NULL))
            tell_missing(c, false);
    }
    return FDS_OK;
}

static fds_status compare_all(comparison *c, const json_t *before, const json_t *after,
                              fds__text *what, fds_error *err) {
    for (size_t d = 0; d < json_array_size(before); d++) {
        const json_t *old = json_array_get(before, d);
        c->data = report_text_of(old, "name");
        c->method = "";
        const json_t *new = report_find(after, "name", c->data, NULL);
        if (new)
            TRY(compare_data(c, old, new, what, err));
        else
            tell_missing(c, true);
    }
    c->method = "";
    for (size_t d = 0; d < json_array_size(after); d++) {
        c->data = report_text_of(json_array_get(after, d), "name");
        if (!report_find(before, "name", c->data, NULL))
            tell_missing(c, false);
    }
    return FDS_OK;
}

fds_status fds_bench_compare(const char *before_path, const char *after_path, double sigmas,
                             void (*on_change)(void *user, const fds_bench_change *change),
                             void *user, size_t *compared, fds_error *err) {
    if (!(sigmas >= 0))
        return fds__fail(err, FDS_ERR_USAGE, "the number of standard errors must be at least 0");
    comparison c = {.sigmas = sigmas, .tell = on_change, .user = user};
    json_t *before = NULL, *after = NULL;
    fds__text what = {0};
    fds_status status = report_read(before_path, &before, err);
    if (status == FDS_OK)
        status = report_read(after_path, &after, err);
    if (status == FDS_OK)
        status = compare_all(&c, json_object_get(before, "data"), json_object_get(after, "data"),
                             &what, err);
    if (status == FDS_OK && compared)
        *compared = c.compared;
    json_decref(before);
    json_decref(after);
    fds__free(what.data);
    return status;
}
