/* SPDX-License-Identifier: Apache-2.0
 * Stands for the ledger until it is there. */
#include "serve/serve.h"

static fds_status none(fds_error *err) {
    return fds__fail(err, FDS_ERR_UNSUPPORTED, "fds was built without a ledger");
}
fds_status fds_ledger_open(const char *path, fds_ledger_access access, const char *key,
                           fds_ledger **out, fds_error *err) {
    (void)path, (void)access, (void)key, (void)out;
    return none(err);
}
void fds_ledger_close(fds_ledger *ledger) { (void)ledger; }
int fds_ledger_decimals(const fds_ledger *ledger) { return ledger ? 6 : 2; }
fds_status fds_ledger_account(fds_ledger *ledger, fds_account_kind kind, const char *name,
                              uint64_t *account, fds_error *err) {
    (void)ledger, (void)kind, (void)name, (void)account;
    return none(err);
}
fds_status fds_ledger_find(const fds_ledger *ledger, const char *name, uint64_t *account,
                           fds_error *err) {
    (void)ledger, (void)name, (void)account;
    return none(err);
}
fds_account_kind fds_ledger_account_kind(const fds_ledger *ledger, uint64_t account) {
    (void)ledger, (void)account;
    return FDS_ACCOUNT_PLATFORM;
}
int64_t fds_ledger_balance(const fds_ledger *ledger, uint64_t account) {
    (void)ledger, (void)account;
    return 0;
}
fds_status fds_ledger_add_run(fds_ledger *ledger, const fds_ledger_run *run, uint64_t *number,
                              fds_error *err) {
    (void)ledger, (void)run, (void)number;
    return none(err);
}
fds_status fds_ledger_charge(fds_ledger *ledger, fds_charge *charges, size_t count,
                             fds_error *err) {
    (void)ledger, (void)charges, (void)count;
    return none(err);
}
fds_status fds_ledger_log_file(const fds_ledger *ledger, const char *path, void **data,
                               size_t *size, fds_error *err) {
    (void)ledger, (void)path, (void)data, (void)size;
    return none(err);
}
