/* SPDX-License-Identifier: Apache-2.0
 * Answers batch by batch: memory does not grow with the number of inputs. */
#include "explain/run.h"

/* A program starts anew for each batch. */
enum { BATCH = 64, PROGRAM_BATCH = 1 << 14 };

fds_status fds_run_explain_each(fds_run *run, const fds_input *in, const fds_params *params,
                                fds_answered_function answered, void *user,
                                const fds_events *events, fds_error *err) {
    const size_t batch = fds__run_has_program(run) ? PROGRAM_BATCH : BATCH;
    fds__pass pass = fds__pass_begin(events, in->count);
    pass.unit = "inputs";
    const fds_events block = fds__pass_events(&pass);
    for (size_t count; pass.done < in->count; pass.done += count) {
        fds_input *part;
        fds_result *answers;
        count = MIN(batch, in->count - pass.done);
        TRY(fds_input_part(in, pass.done, count, &part, err));
        fds_status status = fds_run_explain(run, part, params, &block, &answers, err);
        fds_input_free(part);
        TRY(status);
        TRY(answered(user, answers, err));
    }
    return FDS_OK;
}
