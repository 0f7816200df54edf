/* SPDX-License-Identifier: Apache-2.0
 * One call of a method, without the checks of fds__baseline. */
#ifndef FDS_TEST_RUN_JOB_H
#define FDS_TEST_RUN_JOB_H

#include "baseline/baseline.h"

static inline fds_status run_job(const baseline_method *method, baseline_job *job, fds_error *err) {
    fds_status status = method->run(job, err);
    baseline_job_free(job);
    return status;
}

#endif
