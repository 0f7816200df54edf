/* SPDX-License-Identifier: Apache-2.0
 *
 * How far an explainer's values are from those of least squares on all coalitions, for the predicted
 * label of validation inputs. */
#include "explain/run.h"

#include <math.h>

void fds__comparison_free(fds__comparison *c) {
    fds__free(c->values);
    fds__free(c->targets);
    fds__free(c->errors);
    fds__free(c->spreads);
    fds__free(c->stated);
    *c = (fds__comparison){0};
}

fds_status fds__comparison_agreement(const fds__comparison *c, bool is_within, double *agreement,
                                     fds_error *err) {
    size_t counted = 0;
    double sum = 0;
    OWNED bool *is_in = NULL;
    TRY(RESERVE(is_in, c->players, 1, err));
    for (size_t x = 0; x < c->inputs; x++) {
        size_t at = (x * c->classes + c->predicted[x]) * c->players;
        for (size_t i = 0; i < c->players; i++)
            is_in[i] = !is_within || c->player_labels[i] == c->predicted[x];
        double r = fds__correlation(c->values + at, c->targets + at, is_in, c->players);
        if (!isnan(r)) {
            sum += r;
            counted++;
        }
    }
    *agreement = counted ? sum / (double)counted : NAN;
    return FDS_OK;
}

double fds__clipped_share(double value, double total, size_t players) {
    return total > 0 ? MAX(value, 0.0) / total : 1 / (double)players;
}

double fds__positive_sum(const double *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += MAX(values[i], 0.0);
    return sum;
}

double fds__comparison_misallocated(const fds__comparison *c) {
    double moved = 0; /* from one player to another: it is missing there and too much here */
    for (size_t x = 0; x < c->inputs; x++) {
        size_t at = (x * c->classes + c->predicted[x]) * c->players;
        const double *values = c->values + at, *targets = c->targets + at;
        double paid = fds__positive_sum(values, c->players),
               due = fds__positive_sum(targets, c->players);
        for (size_t i = 0; i < c->players; i++)
            moved += fabs(fds__clipped_share(values[i], paid, c->players) -
                          fds__clipped_share(targets[i], due, c->players));
    }
    return moved / 2 / (double)c->inputs;
}
