/* SPDX-License-Identifier: Apache-2.0
 *
 * Two report.json compared, number by number: what both have, and what differs between them by more
 * than so many standard errors. The error of a difference is the root of the sum of both squares;
 * of numbers that are one a seed, sd / sqrt(count) is theirs. Numbers without a known error, those
 * of one seed, are left out; times are not compared. What was measured on, players, samples and
 * seeds, has no error: any difference is told.
 */
#include "eval/report.h"

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

static void compare(comparison *c, const char *what, figure before, figure after) {
    if (isnan(before.mean) || isnan(after.mean) || isnan(before.error) || isnan(after.error))
        return;
    c->compared++;
    double apart = fabs(after.mean - before.mean);
    double sigmas = apart > 0 ? apart / hypot(before.error, after.error) : 0;
    if (!(sigmas > c->sigmas))
        return;
    const fds_bench_change change = {c->data, c->method, what, before.mean, after.mean, sigmas};
    if (c->tell)
        c->tell(c->user, &change);
}

/* ---- what was measured on ---- */

/* Seeds: how many there are, or the first that differs. */
static void compare_scope(comparison *c, const json_t *before, const json_t *after) {
    static const char *const keys[] = {"players", "tests", "inputs"};
    const json_t *old = json_object_get(before, "seeds"), *new = json_object_get(after, "seeds");
    c->method = "";
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        compare(c, keys[k], (figure){eval_number_of(before, keys[k]), 0},
                (figure){eval_number_of(after, keys[k]), 0});
    size_t count = json_array_size(old), at = 0;
    if (count != json_array_size(new)) {
        compare(c, "seeds", (figure){(double)count, 0}, (figure){(double)json_array_size(new), 0});
        return;
    }
    while (at + 1 < count && json_equal(json_array_get(old, at), json_array_get(new, at)))
        at++;
    compare(c, "seed", (figure){eval_number_at(old, at), 0}, (figure){eval_number_at(new, at), 0});
}

/* ---- losses ---- */

static figure at_share(const json_t *entry, size_t k) {
    return (figure){eval_number_at(json_object_get(entry, "mean"), k),
                    eval_number_at(json_object_get(entry, "error"), k)};
}

/* "loss by retrain:10, top 10 %, right" */
static fds_status name_loss(const json_t *entry, double share, fds_text *what, fds_error *err) {
    what->used = 0;
    fds_text_print(what, "loss by ");
    eval_html(what, eval_text_of(entry, "value"));
    fds_text_print(what, ", %s ", eval_text_of(entry, "way"));
    fds_text_digits(what, 6, 100 * share);
    fds_text_print(what, " %%, %s", eval_text_of(entry, "set"));
    return fds_text_check(what, err);
}

static fds_status compare_losses(comparison *c, const json_t *before, const json_t *after,
                                 const json_t *shares_before, const json_t *shares_after,
                                 fds_text *what, fds_error *err) {
    const json_t *list = json_object_get(before, "losses");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *old = json_array_get(list, i);
        const json_t *new =
            eval_losses_find(after, eval_text_of(old, "value"), eval_text_of(old, "way"),
                             eval_text_of(old, "set"), NULL);
        for (size_t k = 0; new &&k < json_array_size(shares_before); k++)
            for (size_t m = 0; m < json_array_size(shares_after); m++) {
                double share = eval_number_at(shares_before, k);
                if (fabs(share - eval_number_at(shares_after, m)) > 1e-9)
                    continue;
                FDS_TRY(name_loss(old, share, what, err));
                compare(c, what->data, at_share(old, k), at_share(new, m));
            }
    }
    return FDS_OK;
}

/* Losses with all players. */
static fds_status compare_judged(comparison *c, const json_t *before, const json_t *after,
                                 fds_text *what, fds_error *err) {
    const json_t *judged = json_object_get(before, "judged");
    c->method = "(all players)";
    for (size_t j = 0; j < json_array_size(judged); j++) {
        const json_t *judge = json_array_get(judged, j), *list = json_object_get(judge, "losses");
        const char *value = eval_text_of(judge, "value");
        const json_t *other =
            eval_list_find(json_object_get(after, "judged"), "value", value, NULL);
        for (size_t i = 0; i < json_array_size(list); i++) {
            const json_t *old = json_array_get(list, i);
            const char *set = eval_text_of(old, "set");
            const json_t *new = eval_list_find(json_object_get(other, "losses"), "set", set, NULL);
            what->used = 0;
            fds_text_print(what, "loss by ");
            eval_html(what, value);
            fds_text_print(what, ", %s", set);
            FDS_TRY(fds_text_check(what, err));
            compare(c, what->data,
                    (figure){eval_number_of(old, "mean"), eval_number_of(old, "error")},
                    (figure){eval_number_of(new, "mean"), eval_number_of(new, "error")});
        }
    }
    return FDS_OK;
}

/* ---- one number a seed ---- */

static figure stat_figure(const json_t *stat) {
    return (figure){eval_number_of(stat, "mean"),
                    eval_number_of(stat, "sd") / sqrt(eval_number_of(stat, "count"))};
}

static void compare_stats(comparison *c, const json_t *before, const json_t *after) {
    static const struct {
        const char *outer, *key, *what;
    } stats[] = {{"agreement", "correlation", "correlation with the truth"},
                 {"agreement", "within", "correlation within the class"},
                 {"agreement", "relative_error", "relative error"},
                 {"agreement", "gap", "gap"},
                 {NULL, "area", "area for wrong labels"},
                 {NULL, "sub_models", "sub-models"}};
    for (size_t i = 0; i < sizeof stats / sizeof *stats; i++) {
        const char *outer = stats[i].outer, *key = stats[i].key;
        compare(c, stats[i].what,
                stat_figure(json_object_get(outer ? json_object_get(before, outer) : before, key)),
                stat_figure(json_object_get(outer ? json_object_get(after, outer) : after, key)));
    }
}

/* ---- all of it ---- */

static fds_status compare_data(comparison *c, const json_t *before, const json_t *after,
                               fds_text *what, fds_error *err) {
    const json_t *rows = json_object_get(before, "rows");
    compare_scope(c, before, after);
    FDS_TRY(compare_judged(c, before, after, what, err));
    for (size_t r = 0; r < json_array_size(rows); r++) {
        const json_t *old = json_array_get(rows, r);
        c->method = eval_text_of(old, "method");
        const json_t *new =
            eval_list_find(json_object_get(after, "rows"), "method", c->method, NULL);
        FDS_TRY(compare_losses(
            c, old, new, json_object_get(json_object_get(before, "settings"), "shares"),
            json_object_get(json_object_get(after, "settings"), "shares"), what, err));
        compare_stats(c, old, new);
    }
    return FDS_OK;
}

fds_status fds_bench_compare(const char *before_path, const char *after_path, double sigmas,
                             void (*tell)(void *user, const fds_bench_change *change), void *user,
                             size_t *compared, fds_error *err) {
    if (!(sigmas >= 0))
        return fds_fail(err, FDS_USAGE, "a number of standard errors must be at least 0");
    comparison c = {.sigmas = sigmas, .tell = tell, .user = user};
    json_t *before = NULL, *after = NULL;
    fds_text what = {0};
    fds_status status = eval_report_read(before_path, &before, err);
    if (status == FDS_OK)
        status = eval_report_read(after_path, &after, err);
    const json_t *list = json_object_get(before, "data");
    for (size_t d = 0; status == FDS_OK && d < json_array_size(list); d++) {
        const json_t *old = json_array_get(list, d);
        c.data = eval_text_of(old, "name");
        const json_t *new = eval_list_find(json_object_get(after, "data"), "name", c.data, NULL);
        if (new)
            status = compare_data(&c, old, new, &what, err);
    }
    if (status == FDS_OK && compared)
        *compared = c.compared;
    json_decref(before);
    json_decref(after);
    fds_free(what.data);
    return status;
}
