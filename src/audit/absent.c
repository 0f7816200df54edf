/* SPDX-License-Identifier: Apache-2.0
 * The functions of audits where fds was built without ledgers: all say so. */
#include "base/base.h"
#include "fds/audit.h"

#include <math.h>

/* The parameters mean nothing here. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static fds_status fail(fds_error *err) {
    return fds__fail(err, FDS_ERR_UNSUPPORTED,
                     "fds was built without ledgers: install libsqlite3-dev and libsodium-dev "
                     "(scripts/deps build), and build it again");
}

const char *fds_audit_check_name(size_t i) { return NULL; }
fds_status fds_auditor_create(const fds_params *params, fds_auditor **out, fds_error *err) {
    return fail(err);
}
void fds_auditor_free(fds_auditor *auditor) {}
fds_status fds_auditor_take(fds_auditor *auditor, const fds_ledger *ledger, size_t most,
                            bool *is_over, fds_error *err) {
    return fail(err);
}
fds_status fds_auditor_report(const fds_auditor *auditor, char **json, fds_error *err) {
    return fail(err);
}
fds_status fds_auditor_verify(fds_auditor *auditor, const fds_ledger *ledger, const char *vkey,
                              const fds_events *events, fds_error *err) {
    return fail(err);
}
fds_status fds_auditor_share_verdict(fds_auditor *auditor, const fds_auditor *from,
                                     fds_error *err) {
    return fail(err);
}
fds_status fds_audit_ledger(const fds_ledger *ledger, const char *checks, const char *vkey,
                            const fds_params *params, const fds_events *events, char **json,
                            fds_error *err) {
    return fail(err);
}
fds_status fds_auditor_add_run(fds_auditor *auditor, const char *folder, fds_error *err) {
    return fail(err);
}
fds_status fds_audit_html(const char *json, char **html, fds_error *err) { return fail(err); }
fds_status fds_auditor_add_payees(fds_auditor *auditor, const fds_audit_payees *payees,
                                  fds_error *err) {
    return fail(err);
}
fds_status fds_auditor_add(fds_auditor *auditor, const fds_audit_prediction *prediction,
                           fds_error *err) {
    return fail(err);
}
double fds_auditor_evidence(const fds_auditor *auditor, const char *check, uint64_t *entry) {
    return NAN;
}
