/* SPDX-License-Identifier: Apache-2.0
 * Every allocation or file operation of a piece of work made to fail, one after the other. */
#ifndef FDS_TEST_FAULTS_H
#define FDS_TEST_FAULTS_H

#include "scratch.h"

#include "base/base.h"

/* Runs work with the 1st, 2nd, 3rd ... call of a kind failing, until there is no such call; check
 * (or NULL) looks at what a failure left, told whether it was the last call of all. Returns how many
 * calls there are. */
static inline uint64_t each_fault(fds__fault_kind kind, fds_status (*work)(void *, fds_error *),
                                  void (*check)(void *, bool is_last), void *with) {
    fds_error err = {0};
    fds__fault_arm(kind, 0);
    expect_ok(work(with, &err), &err);
    uint64_t calls = fds__fault_arm(kind, 0);
    for (uint64_t nth = 1; nth <= calls; nth++) {
        err = (fds_error){0};
        fds__fault_arm(kind, nth);
        fds_status status = work(with, &err);
        fds__fault_arm(kind, 0);
        fds_status wanted = kind == FDS__FAULT_ALLOC ? FDS_ERR_NOMEM : FDS_ERR_IO;
        if (status != wanted)
            fail_msg("call %lu of %lu failed: %s, not %s: %s", (unsigned long)nth,
                     (unsigned long)calls, fds_status_name(status), fds_status_name(wanted),
                     err.text);
        assert_int_equal(err.status, status);
        assert_true(err.text[0]);
        if (check)
            check(with, nth == calls);
    }
    return calls;
}

#endif
