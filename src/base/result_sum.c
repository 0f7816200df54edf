/* SPDX-License-Identifier: Apache-2.0
 * A result of single samples becomes one of their providers, whose values are sums. */
#include "base/base.h"

#include <math.h>
#include <string.h>

typedef struct {
    const fds_result *from;
    fds_result *to;
    size_t *provider_of; /* (players of from) */
} adding;

/* Numbers providers by their first player; returns how many there are. */
static fds_status number_providers(const fds_result *r, size_t *provider_of, size_t *count,
                                   fds_error *err) {
    OWNED size_t *first = NULL;
    TRY(NEW(first, r->players, err));
    *count = 0;
    for (size_t i = 0; i < r->players; i++) {
        if (!r->provider_names[i])
            return fds__fail(err, FDS_ERR_USAGE,
                             "`group_value` points: the data names no providers");
        size_t p = 0;
        while (p < *count && strcmp(r->provider_names[first[p]], r->provider_names[i]) != 0)
            p++;
        if (p == *count)
            first[(*count)++] = i;
        provider_of[i] = p;
    }
    return FDS_OK;
}

/* The commonest label of a provider's players, the lowest of several; of a regression their mean. */
static fds_status label_provider(const adding *a, size_t provider, size_t *votes, uint32_t *label,
                                 fds_error *err) {
    const fds_result *r = a->from;
    double sum = 0, size = 0;
    uint32_t best = 0;
    memset(votes, 0, r->classes * sizeof *votes);
    for (size_t i = 0; i < r->players; i++)
        if (a->provider_of[i] == provider) {
            uint32_t own = r->player_labels[i];
            sum += r->is_regression ? r->numbers[own] * r->player_sizes[i] : 0;
            size += r->player_sizes[i];
            votes[own] += r->player_sizes[i];
        }
    for (uint32_t c = 1; c < r->classes; c++)
        best = votes[c] > votes[best] ? c : best;
    *label = best;
    return r->is_regression ? fds__result_number(a->to, sum / size, label, err) : FDS_OK;
}

static fds_status name_providers(const adding *a, fds_error *err) {
    const fds_result *r = a->from;
    OWNED size_t *votes = NULL, *sizes = NULL;
    TRY(NEW(votes, r->classes, err));
    TRY(NEW(sizes, a->to->players, err));
    for (size_t i = 0; i < r->players; i++)
        sizes[a->provider_of[i]] += r->player_sizes[i];
    for (size_t i = r->players; i-- > 0;) { /* the first player of each comes last */
        size_t p = a->provider_of[i];
        if (!a->to->player_names[p])
            TRY(fds__result_name_player(a->to, p, r->provider_names[i], r->provider_names[i], 0,
                                        sizes[p], err));
    }
    for (size_t p = 0; p < a->to->players; p++)
        TRY(label_provider(a, p, votes, &a->to->player_labels[p], err));
    return FDS_OK;
}

/* The number of a label in the new result. */
static fds_status copy_label(const adding *a, uint32_t label, uint32_t *out, fds_error *err) {
    *out = label;
    return a->from->is_regression && label < a->from->classes
               ? fds__result_number(a->to, a->from->numbers[label], out, err)
               : FDS_OK;
}

static fds_status copy_predictions(const adding *a, fds_error *err) {
    const fds_result *r = a->from;
    fds_result *to = a->to;
    for (uint32_t c = 0; c < r->classes && !r->is_regression; c++)
        TRY(fds__result_name_class(to, c, r->class_names[c], err));
    for (size_t k = 0; k < r->predictions; k++) {
        TRY(fds__result_name_input(to, k, r->input_names[k], err));
        to->samples[k] = r->samples[k];
        TRY(copy_label(a, r->labels[k], &to->labels[k], err));
        TRY(copy_label(a, r->predicted[k], &to->predicted[k], err));
        TRY(copy_label(a, r->truth[k], &to->truth[k], err));
        to->confidence[k] = r->confidence[k];
        to->empty[k] = r->empty[k];
        to->full[k] = r->full[k];
    }
    return FDS_OK;
}

/* Sums, and the roots of sums of squares, of count rows. */
static void add_up(const adding *a, size_t rows, const double *values, const double *errors,
                   double *sums, double *sum_errors) {
    size_t n = a->from->players, m = a->to->players;
    for (size_t k = 0; k < rows; k++) {
        for (size_t i = 0; i < n; i++) {
            size_t at = k * m + a->provider_of[i];
            sums[at] += values[k * n + i];
            sum_errors[at] += errors[k * n + i] * errors[k * n + i];
        }
        for (size_t p = 0; p < m; p++)
            sum_errors[k * m + p] = sqrt(sum_errors[k * m + p]);
    }
}

static fds_status fill(const adding *a, fds_error *err) {
    const fds_result *r = a->from;
    fds_result *to = a->to;
    to->is_mean = r->is_mean;
    to->is_exact = r->is_exact;
    to->has_all_labels = r->has_all_labels;
    if (r->is_regression)
        TRY(fds__result_regression(to, err));
    TRY(name_providers(a, err));
    TRY(copy_predictions(a, err));
    add_up(a, r->predictions, r->values, r->errors, to->values, to->errors);
    add_up(a, 1, r->means, r->mean_errors, to->means, to->mean_errors);
    json_decref(to->about);
    to->about = json_deep_copy(r->about);
    return to->about && fds__json_put(to->about, "group_value", json_string("points"))
               ? FDS_OK
               : fds__fail_json(err);
}

fds_status fds__result_by_provider(fds_result **result, fds_error *err) {
    const fds_result *r = *result;
    OWNED size_t *provider_of = NULL;
    size_t count;
    adding a = {.from = r};
    TRY(NEW(provider_of, r->players, err));
    TRY(number_providers(r, provider_of, &count, err));
    TRY(fds__result_create(r->method, count, r->predictions, r->is_regression ? 0 : r->classes,
                           &a.to, err));
    a.provider_of = provider_of;
    fds_status status = fill(&a, err);
    if (status == FDS_OK) {
        fds_result_free(*result);
        *result = a.to;
    } else {
        fds_result_free(a.to);
    }
    return status;
}
