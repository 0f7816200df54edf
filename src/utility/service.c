/* SPDX-License-Identifier: Apache-2.0
 *
 * The answers of a service model that was trained elsewhere (the parameter "service_probs"): an NPY
 * array (samples, classes) of probabilities, row i for sample i of the data that test samples are
 * taken from. It says which label is predicted and how sure the model is; utilities are still those
 * of sub-models. */
#include "utility/utility.h"

#include <math.h>

static const double SUM_SLACK = 1e-4; /* rounding, in the sum of a row */

static fds_status check_row(const char *path, size_t row, const float *probs, uint32_t classes,
                            fds_error *err) {
    double sum = 0;
    for (uint32_t y = 0; y < classes; y++) {
        if (!(probs[y] >= 0 && probs[y] <= 1))
            return fds__fail(err, FDS_ERR_FORMAT,
                             "%s: row %zu, class %u (from 0): the probability is %g; it must be "
                             "from 0 to 1",
                             path, row, y, (double)probs[y]);
        sum += (double)probs[y];
    }
    if (fabs(sum - 1) > SUM_SLACK)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: row %zu (from 0): its probabilities sum to %.6g; they must sum to 1",
                         path, row, sum);
    return FDS_OK;
}

static fds_status take(const fds_problem *p, const char *path, const fds_dataset *probs,
                       fds__labels *out, fds_error *err) {
    const uint32_t classes = p->train->classes;
    const fds_shape s = probs->shape;
    if (!probs->floats || probs->count != p->test->count ||
        !fds__shape_equal(s, (fds_shape){classes, 1, 1}))
        return fds__fail(
            err, FDS_ERR_SHAPE,
            "%s: %zu rows of %zu %s; it must have a row of %u floats, one per class, for "
            "each of the %zu samples of %s",
            path, probs->count, probs->sample_size, probs->floats ? "floats" : "bytes", classes,
            p->test->count, p->has_test_part ? "the test part" : "the data");
    for (size_t i = 0; i < probs->count; i++)
        TRY(check_row(path, i, probs->floats + i * classes, classes, err));
    TRY(NEW(out->service, p->test_count * classes, err));
    for (size_t i = 0; i < p->test_count * classes; i++)
        out->service[i] =
            (double)probs->floats[(size_t)p->tests[i / classes] * classes + i % classes];
    return FDS_OK;
}

fds_status fds__service_read(const fds_problem *p, const fds_params *params, fds__labels *out,
                             fds_error *err) {
    fds__blob file = {.path = params->service_probs};
    fds_dataset *probs = NULL;
    if (!file.path)
        return FDS_OK;
    if (p->train->targets)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`service_probs` needs classes, and `task` regression has none");
    TRY(fds__file_read_gz(file.path, FDS__MAX_FILE, NULL, &file.data, &file.size, err));
    fds_status status = fds__npy_values(&file, &probs, err);
    fds__free(file.data);
    if (status == FDS_OK)
        status = take(p, file.path, probs, out, err);
    fds_dataset_free(probs);
    return status;
}
