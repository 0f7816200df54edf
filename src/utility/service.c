/* SPDX-License-Identifier: Apache-2.0
 *
 * The answers of a service model that was trained elsewhere (the parameter "service_probs"): an NPY
 * array (samples, classes) of probabilities, a row for each sample of the data that test samples are
 * taken from, or for each input of a run. It says which label is predicted and how sure the model is; utilities are still those
 * of sub-models. */
#include "utility/utility.h"

#include <math.h>
#include <string.h>

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

static fds_status take(const char *path, const fds_dataset *probs, size_t rows, uint32_t classes,
                       const char *of, double *out, fds_error *err) {
    const fds_shape s = probs->shape;
    if (!probs->floats || probs->count != rows || !fds__shape_equal(s, (fds_shape){classes, 1, 1}))
        return fds__fail(
            err, FDS_ERR_SHAPE,
            "%s: %zu rows of %zu %s; it must have a row of %u floats, one per class, for "
            "each of the %zu %s",
            path, probs->count, probs->sample_size, probs->floats ? "floats" : "bytes", classes,
            rows, of);
    for (size_t i = 0; i < rows; i++)
        TRY(check_row(path, i, probs->floats + i * classes, classes, err));
    for (size_t i = 0; i < rows * classes; i++)
        out[i] = (double)probs->floats[i];
    return FDS_OK;
}

fds_status fds__service_load(const char *path, size_t rows, uint32_t classes, const char *of,
                             double *out, fds_error *err) {
    fds__blob file = {.path = path};
    fds_dataset *probs = NULL;
    TRY(fds__file_read_gz(path, FDS__MAX_FILE, NULL, &file.data, &file.size, err));
    fds_status status = fds__npy_values(&file, &probs, err);
    fds__free(file.data);
    if (status == FDS_OK)
        status = take(path, probs, rows, classes, of, out, err);
    fds_dataset_free(probs);
    return status;
}

fds_status fds__service_read(const fds_problem *p, const fds_params *params, fds__labels *out,
                             fds_error *err) {
    const size_t classes = p->train->classes;
    OWNED double *all = NULL;
    if (!params->service_probs)
        return FDS_OK;
    if (p->train->targets)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`service_probs` needs classes, and `task` regression has none");
    TRY(NEW(all, p->test->count * classes, err));
    TRY(fds__service_load(params->service_probs, p->test->count, (uint32_t)classes,
                          p->has_test_part ? "samples of the test part" : "samples of the data",
                          all, err));
    TRY(NEW(out->service, p->test_count * classes, err));
    for (size_t i = 0; i < p->test_count; i++)
        memcpy(out->service + i * classes, all + p->tests[i] * classes, classes * sizeof *all);
    return FDS_OK;
}
