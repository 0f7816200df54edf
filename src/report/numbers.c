/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers out of case.json and report.json, and their statistics over seeds.
 *
 * Seed g has n_g samples with mean m_g and standard deviation s_g. Over all seeds, exactly as over
 * all single samples:
 *
 *     n = sum n_g        mean = sum n_g m_g / n
 *     sd^2 = sum ((n_g - 1) s_g^2 + n_g (m_g - mean)^2) / (n - 1)
 *
 * Sums go in the order in which the parts are given.
 */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- looking things up ---- */

const json_t *report_at(const json_t *json, const char *path) {
    while (json && *path) {
        char key[48];
        size_t length = strcspn(path, "/");
        snprintf(key, sizeof key, "%.*s", (int)length, path);
        json = json_is_array(json) ? json_array_get(json, strtoul(key, NULL, 10))
                                   : json_object_get(json, key);
        path += length + (path[length] == '/');
    }
    return json;
}

const char *report_text_of(const json_t *json, const char *path) {
    const char *text = json_string_value(report_at(json, path));
    return text ? text : "";
}

static double number_or_nan(const json_t *json) {
    return json_is_number(json) ? json_number_value(json) : NAN;
}

double report_number_of(const json_t *json, const char *path) {
    return number_or_nan(report_at(json, path));
}

double report_number_at(const json_t *list, size_t at) {
    return number_or_nan(json_array_get(list, at));
}

report_stat report_stat_of(const json_t *json, size_t at) {
    static const char *const keys[] = {"count", "mean", "sd", "error"};
    double numbers[4];
    for (size_t i = 0; i < 4; i++) {
        const json_t *member = json_object_get(json, keys[i]);
        numbers[i] = json_is_array(member) ? report_number_at(member, at) : number_or_nan(member);
    }
    if (!json_object_get(json, "error"))
        numbers[3] = numbers[2] / sqrt(numbers[0]);
    return (report_stat){numbers[0], numbers[1], numbers[2], numbers[3]};
}

json_t *report_numbers(const double *numbers, size_t count) {
    json_t *list = json_array();
    bool is_whole = true;
    for (size_t i = 0; i < count; i++)
        is_whole &= fds__json_append(list, fds__json_real(numbers[i]));
    return fds__json_keep_if(list, is_whole);
}

const json_t *report_find(const json_t *list, const char *key, const char *text, size_t *at) {
    const json_t *entry;
    size_t i = 0;
    while ((entry = json_array_get(list, i)) && strcmp(report_text_of(entry, key), text) != 0)
        i++;
    if (at)
        *at = i;
    return entry;
}

const json_t *report_find_entry(const json_t *row, const char *list, const char *utility,
                                const char *removal, const char *set, size_t *at) {
    const json_t *entry;
    size_t i = 0;
    while ((entry = json_array_get(report_at(row, list), i)) &&
           (strcmp(report_text_of(entry, "utility"), utility) != 0 ||
            strcmp(report_text_of(entry, "removal"), removal) != 0 ||
            strcmp(report_text_of(entry, "set"), set) != 0))
        i++;
    if (at)
        *at = i;
    return entry;
}

double report_paper_at(const json_t *row, double share, size_t *at) {
    const json_t *shares = report_at(row, "paper/shares");
    for (size_t k = 0; k < json_array_size(shares); k++)
        if (fabs(report_number_at(shares, k) - share) < 1e-9) {
            if (at)
                *at = k;
            return report_number_at(report_at(row, "paper/mean"), k);
        }
    return NAN;
}

static const char *const kinds[REPORT_KINDS] = {"ours", "beyond", "paper", "other", "control"};

const char *report_kind_name(report_kind kind) { return kinds[kind]; }

report_kind report_kind_of(const json_t *row) {
    unsigned kind = 0;
    while (kind < REPORT_CONTROL && strcmp(report_text_of(row, "kind"), kinds[kind]) != 0)
        kind++;
    return (report_kind)kind;
}

/* ---- statistics ---- */

/* The parts that have a mean, each as often as it has samples, or each once. */
static report_stat gather(const report_stat *parts, size_t count, bool is_each_once) {
    report_stat out = {0, 0, NAN, NAN};
    double squares = 0;
    for (size_t g = 0; g < count; g++)
        if (parts[g].count > 0 && !isnan(parts[g].mean)) {
            double weight = is_each_once ? 1 : parts[g].count;
            out.count += weight;
            out.mean += weight * parts[g].mean;
        }
    out.mean /= out.count; /* of nothing: not a number */
    for (size_t g = 0; g < count; g++)
        if (parts[g].count > 0 && !isnan(parts[g].mean)) {
            double weight = is_each_once ? 1 : parts[g].count, apart = parts[g].mean - out.mean;
            squares += weight * apart * apart;
            if (weight > 1)
                squares += (weight - 1) * parts[g].sd * parts[g].sd;
        }
    if (out.count > 1)
        out.sd = sqrt(squares / (out.count - 1));
    out.error = out.sd / sqrt(out.count);
    return out;
}

report_stat report_pool(const report_stat *parts, size_t count) {
    report_stat out = gather(parts, count, false);
    /* fmax leaves out what is not a number */
    out.error = fmax(out.error, gather(parts, count, true).error);
    return out;
}
