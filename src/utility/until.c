/* SPDX-License-Identifier: Apache-2.0
 *
 * How many coalitions values need for a standard error (`until_error`): rounds, each of which has the
 * coalitions of the one before and more.
 *
 * What must be small is the greatest standard error of a prediction, because the greatest values, which
 * money follows, have the greatest errors; in 95 of 100 predictions, because a few odd inputs would cost
 * everybody else's time. Errors fall as one over the root of the number of coalitions, which says how
 * large the next round must be. They are estimates: looking after every few coalitions would stop at a
 * lucky one, so a round is a quarter larger than the last one or more, and at most four times as large. */
#include "utility/utility.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 1 << 24 }; /* coalitions, unless the user says how many */
static const double least_growth = 1.25, most_growth = 4, margin = 1.05, share = 0.95;

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double fds__until_greatest(const double *errors, size_t players, size_t stride) {
    double greatest = 0;
    for (size_t i = 0; i < players; i++)
        greatest = MAX(greatest, errors[i * stride]);
    return greatest;
}

size_t fds__until_first(size_t players, size_t usual) {
    enum { PER_PLAYER = 4, LEAST = 200 }; /* fewer per player need a ridge (fds__ls_are_few) */
    return MIN(usual, MAX(PER_PLAYER * players, (size_t)LEAST));
}

void fds__until_begin(fds__until *u, const fds_params *params, size_t first, size_t most) {
    most = MIN(most, params->coalitions ? (size_t)params->coalitions : (size_t)MOST);
    *u = (fds__until){.wanted = params->until_error, .most = most, .count = MIN(first, most)};
}

bool fds__until_measure(fds__until *u, double *greatest, size_t predictions, bool is_ridged,
                        const fds_events *events) {
    qsort(greatest, predictions, sizeof *greatest, compare);
    u->error = greatest[(size_t)ceil(share * (double)predictions) - 1];
    u->rounds++;
    u->is_reached = u->error <= u->wanted && !is_ridged;
    if (u->is_reached)
        return true;
    if (u->floor >= u->wanted) {
        fds__log(events, FDS_LOG_WARNING,
                 "`until_error` %g is not reached: the noise of the program's answers alone makes "
                 "standard errors of %.3g, which more than these %zu coalitions do not lower",
                 u->wanted, u->floor, u->count);
        return true;
    }
    if (u->count >= u->most) {
        fds__log(events, FDS_LOG_WARNING,
                 "`until_error` %g is not reached with %zu coalitions, the most that there may be: "
                 "the greatest "
                 "standard error of a prediction is up to %.3g%s",
                 u->wanted, u->count, u->error,
                 is_ridged ? ", and a ridge makes it too small" : "");
        return true;
    }
    double growth = is_ridged ? most_growth
                              : margin * (pow(u->error, 2) - pow(u->floor, 2)) /
                                    (pow(u->wanted, 2) - pow(u->floor, 2));
    double next = MIN(MAX(growth, least_growth), most_growth) * (double)u->count;
    size_t count = MAX((size_t)next / 2 * 2, u->count + 2);
    count = MIN(count, u->most);
    fds__log(events, FDS_LOG_INFO,
             "%zu coalitions: the greatest standard error of a prediction is up to %.3g; going on "
             "to %zu",
             u->count, u->error, count);
    u->count = count;
    return false;
}

fds_status fds__until_refuse(const fds_params *params, fds_error *err) {
    return params->until_error > 0
               ? fds__fail(err, FDS_ERR_USAGE,
                           "`until_error` finds the number of coalitions as it goes, so the work "
                           "cannot be divided "
                           "among processes; give `coalitions` alone, or use one process")
               : FDS_OK;
}

json_t *fds__until_json(const fds__until *u) {
    return json_pack("{s:f, s:I, s:f, s:b}", "wanted", u->wanted, "most", (json_int_t)u->most,
                     "greatest", u->error, "is_reached", u->is_reached);
}
