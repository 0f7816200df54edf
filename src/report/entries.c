/* SPDX-License-Identifier: Apache-2.0
 *
 * What is measured on test samples, joined over the cases of a data set, and how far methods are
 * apart.
 *
 * The lists of a row (report_lists) have an entry for each utility function, removal and set of test
 * samples. Its mean and sd are numbers, or lists of one number per share of the players; so are all
 * members that this file adds. The AUC of a row is such an entry too, but not in a list.
 *
 *   error     standard error of the mean
 *   by_seed   the mean of each case; null for a case without the entry
 *   against   for each reference, a method that others should beat: own mean minus that of the
 *             reference, with its standard error
 *   behind    the best method that is not a reference, and by how much this one is worse. Of AUCs,
 *             the best method on equal terms
 *
 * Two methods are measured on the same test samples of the same seeds, so their difference is taken
 * sample by sample. Without the samples, it is as uncertain as if they were independent.
 */
#include "report/report.h"

#include <math.h>
#include <string.h>

const char *const report_lists[] = {"losses", "losses_other_seed", "lds", "lds_other_seeds", NULL};
const char *const report_references[] = {"same-label", "knn:5/sample", "random", NULL};

bool report_is_reference(const char *method) {
    for (const char *const *name = report_references; *name; name++)
        if (strcmp(*name, method) == 0)
            return true;
    return false;
}

static void put(report_cases *g, json_t *object, const char *key, json_t *value) {
    g->is_failed |= !fds__json_put(object, key, value);
}

static void append(report_cases *g, json_t *list, json_t *value) {
    g->is_failed |= !fds__json_append(list, value);
}

/* ---- one entry ---- */

/* The row of a method in a case, or its utility function. */
static const json_t *holder_of(const report_cases *g, size_t i, const report_holder *of) {
    return report_find(report_at(g->cases[i], of->kind), of->key, of->name, NULL);
}

/* The entry of a holder's list that is like another one; what is not in a list, as it is. */
static const json_t *entry_like(const json_t *holder, const char *list, const json_t *like) {
    const json_t *entries = json_object_get(holder, list);
    if (!json_is_array(entries))
        return json_is_object(entries) ? entries : NULL;
    return report_find_entry(holder, list, report_text_of(like, "utility"),
                             report_text_of(like, "removal"), report_text_of(like, "set"), NULL);
}

/* How many numbers the members of an entry are; 0: a number that is not in a list. */
static size_t width_of(const json_t *entry) {
    return json_array_size(json_object_get(entry, "mean"));
}

/* A member of numbers[MAX(width, 1)]. */
static json_t *numbers_of(const double *numbers, size_t width) {
    return width ? report_numbers(numbers, width) : fds__json_real(*numbers);
}

/* Scratch for the members of an entry. */
typedef struct numbers {
    double *mean, *sd, *error;
    const char **best;
    double *all;
} numbers;

static bool numbers_make(numbers *n, size_t width) {
    size_t size = MAX(width, (size_t)1);
    *n = (numbers){.all = fds__alloc_zero(3 * size, sizeof *n->all),
                   .best = fds__alloc_zero(size, sizeof *n->best)};
    n->mean = n->all;
    n->sd = n->all + size;
    n->error = n->all + 2 * size;
    return n->all && n->best;
}

static void numbers_free(numbers *n) {
    fds__free(n->all);
    fds__free(n->best);
}

static json_t *join_entry(report_cases *g, const report_holder *of, const char *list,
                          const json_t *first) {
    static const char *const same[] = {"utility", "removal", "set", "coalitions"};
    size_t width = width_of(first);
    numbers n;
    double count = 0;
    json_t *out = json_object(), *by_seed = json_array();
    g->is_failed |= !numbers_make(&n, width);
    for (size_t k = 0; !g->is_failed && k < MAX(width, (size_t)1); k++) {
        for (size_t i = 0; i < g->count; i++)
            g->parts[i] = report_stat_of(entry_like(holder_of(g, i, of), list, first), k);
        report_stat all = report_pool(g->parts, g->count);
        count = fmax(count, all.count);
        n.mean[k] = all.mean;
        n.sd[k] = all.sd;
        n.error[k] = all.error;
    }
    for (size_t k = 0; k < sizeof same / sizeof *same; k++)
        if (json_object_get(first, same[k]))
            g->is_failed |= !fds__json_share(out, same[k], json_object_get(first, same[k]));
    put(g, out, "count", json_integer((json_int_t)count));
    if (!g->is_failed) {
        put(g, out, "mean", numbers_of(n.mean, width));
        put(g, out, "sd", numbers_of(n.sd, width));
        put(g, out, "error", numbers_of(n.error, width));
    }
    for (size_t i = 0; i < g->count; i++) {
        const json_t *entry = entry_like(holder_of(g, i, of), list, first);
        append(g, by_seed, entry ? json_incref(json_object_get(entry, "mean")) : json_null());
    }
    put(g, out, "by_seed", by_seed);
    numbers_free(&n);
    return out;
}

json_t *report_join_entries(report_cases *g, const report_holder *of, const char *list) {
    json_t *out = json_array();
    const json_t *entry;
    for (size_t i = 0; i < g->count; i++)
        for (size_t k = 0; (entry = json_array_get(json_object_get(holder_of(g, i, of), list), k));
             k++) {
            bool is_new = true;
            for (size_t before = 0; before < i; before++)
                is_new &= !entry_like(holder_of(g, before, of), list, entry);
            if (is_new)
                append(g, out, join_entry(g, of, list, entry));
        }
    return out;
}

/* ---- differences ---- */

/* The numbers of the single samples at a place, or NULL. */
static const json_t *samples_of(const json_t *entry, size_t k) {
    const json_t *samples = json_object_get(entry, "samples");
    return width_of(entry) ? json_array_get(samples, k) : samples;
}

static report_stat subtract_samples(const json_t *a, const json_t *b) {
    report_stat out = {0, 0, NAN, NAN};
    double squares = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < json_array_size(a); i++) {
            double apart = report_number_at(a, i) - report_number_at(b, i);
            if (isnan(apart))
                continue;
            out.count += !pass;
            out.mean += pass ? 0 : apart;
            squares += pass ? (apart - out.mean) * (apart - out.mean) : 0;
        }
        out.mean /= pass ? 1 : out.count; /* of nothing: not a number */
    }
    if (out.count > 1)
        out.sd = sqrt(squares / (out.count - 1));
    return out;
}

/* a minus b in one case. */
static report_stat subtract(const json_t *a, const json_t *b, size_t k) {
    const json_t *of_a = samples_of(a, k), *of_b = samples_of(b, k);
    if (json_array_size(of_a) && json_array_size(of_a) == json_array_size(of_b))
        return subtract_samples(of_a, of_b);
    report_stat left = report_stat_of(a, k), right = report_stat_of(b, k);
    return (report_stat){fmin(left.count, right.count), left.mean - right.mean,
                         hypot(left.sd, right.sd), NAN};
}

/* The difference of two methods over all cases that have both. */
static report_stat find_difference(report_cases *g, const char *list, const json_t *like,
                                   const char *a, const char *b, size_t k) {
    const report_holder left = report_row_of(a), right = report_row_of(b);
    for (size_t i = 0; i < g->count; i++) {
        const json_t *x = entry_like(holder_of(g, i, &left), list, like);
        const json_t *y = entry_like(holder_of(g, i, &right), list, like);
        g->parts[i] = x && y ? subtract(x, y, k) : (report_stat){0, NAN, NAN, NAN};
    }
    return report_pool(g->parts, g->count);
}

/* Whether less is better: what remains without the least valuable players, or with the most. */
static bool is_falling(const json_t *entry) {
    const char *removal = report_text_of(entry, "removal");
    return *removal && strcmp(removal, "top") != 0;
}

/* The method with the best mean at a place, or NULL. */
static const char *find_best(const json_t *rows, const char *list, const json_t *like, size_t k) {
    const char *best = NULL;
    double most = NAN;
    const json_t *row;
    for (size_t r = 0; (row = json_array_get(rows, r)); r++) {
        double mean = report_stat_of(entry_like(row, list, like), k).mean;
        mean = is_falling(like) ? -mean : mean;
        if (report_is_reference(report_text_of(row, "method")) || isnan(mean) ||
            (strcmp(list, "auc") == 0 && !json_is_true(report_at(row, "auc_terms/is_equal"))))
            continue;
        if (!best || mean > most) {
            best = report_text_of(row, "method");
            most = mean;
        }
    }
    return best;
}

static void add_against(report_cases *g, const json_t *rows, const char *list, const char *method,
                        json_t *entry, numbers *n) {
    json_t *out = json_array();
    for (const char *const *name = report_references; *name; name++) {
        const json_t *row = report_find(rows, "method", *name, NULL);
        if (strcmp(*name, method) == 0 || !entry_like(row, list, entry))
            continue;
        for (size_t k = 0; k < MAX(width_of(entry), (size_t)1); k++) {
            report_stat apart = find_difference(g, list, entry, method, *name, k);
            n->mean[k] = apart.mean;
            n->error[k] = apart.error;
        }
        append(g, out,
               json_pack("{s:s, s:o, s:o}", "method", *name, "mean",
                         numbers_of(n->mean, width_of(entry)), "error",
                         numbers_of(n->error, width_of(entry))));
    }
    put(g, entry, "against", out);
}

static void add_behind(report_cases *g, const json_t *rows, const char *list, const char *method,
                       json_t *entry, numbers *n) {
    size_t width = width_of(entry);
    json_t *best = json_array();
    for (size_t k = 0; k < MAX(width, (size_t)1); k++) {
        report_stat apart = {0, NAN, NAN, NAN};
        n->best[k] = find_best(rows, list, entry, k);
        if (n->best[k])
            apart = find_difference(g, list, entry, n->best[k], method, k);
        n->mean[k] = is_falling(entry) ? 0 - apart.mean : apart.mean;
        n->error[k] = apart.error;
        append(g, best, n->best[k] ? json_string(n->best[k]) : json_null());
    }
    if (!width) {
        json_decref(best);
        best = *n->best ? json_string(*n->best) : json_null();
    }
    put(g, entry, "behind",
        json_pack("{s:o, s:o, s:o}", "best", best, "mean", numbers_of(n->mean, width), "error",
                  numbers_of(n->error, width)));
}

static void add_differences(report_cases *g, const json_t *rows, const char *list,
                            const char *method, json_t *entry) {
    numbers n;
    g->is_failed |= !numbers_make(&n, width_of(entry));
    if (!g->is_failed) {
        add_against(g, rows, list, method, entry, &n);
        add_behind(g, rows, list, method, entry, &n);
    }
    numbers_free(&n);
}

void report_join_differences(report_cases *g, json_t *rows) {
    json_t *row, *entry;
    for (size_t r = 0; (row = json_array_get(rows, r)); r++) {
        const char *method = report_text_of(row, "method");
        for (const char *const *list = report_lists; *list; list++)
            for (size_t k = 0; (entry = json_array_get(json_object_get(row, *list), k)); k++)
                add_differences(g, rows, *list, method, entry);
        entry = json_object_get(row, "auc");
        if (json_is_object(entry))
            add_differences(g, rows, "auc", method, entry);
    }
}

bool report_is_ahead(const json_t *rows, const char *list, const json_t *row, const json_t *entry,
                     size_t at) {
    const json_t *best = report_at(entry, "behind/best"), *other;
    const char *name = json_string_value(json_is_array(best) ? json_array_get(best, at) : best);
    if (!name || strcmp(name, report_text_of(row, "method")) != 0)
        return false;
    for (size_t r = 0; (other = json_array_get(rows, r)); r++) {
        const json_t *its = entry_like(other, list, entry);
        const report_stat behind = report_stat_of(report_at(its, "behind"), at);
        if (other != row && its && !(behind.mean > REPORT_ERRORS * behind.error))
            return false;
    }
    return true;
}
