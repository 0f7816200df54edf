/* SPDX-License-Identifier: Apache-2.0
 * The functions of the ledger where fds was built without SQLite or libsodium: all say so. */
#include "base/base.h"
#include "fds/ledger.h"

/* The parameters mean nothing here. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static fds_status fail(fds_error *err) {
    return fds__fail(err, FDS_ERR_UNSUPPORTED,
                     "fds was built without ledgers: install libsqlite3-dev and libsodium-dev "
                     "(scripts/deps build), and build it again");
}

fds_status fds_ledger_create(const char *path, const fds_params *params, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_open(const char *path, fds_ledger_access access, const char *key,
                           fds_ledger **out, fds_error *err) {
    return fail(err);
}
void fds_ledger_close(fds_ledger *ledger) {}
const char *fds_ledger_name(const fds_ledger *ledger) { return ""; }
const char *fds_ledger_currency(const fds_ledger *ledger) { return ""; }
int fds_ledger_decimals(const fds_ledger *ledger) { return 0; }
int64_t fds_ledger_minor(const fds_ledger *ledger) { return 1; }
uint64_t fds_ledger_size(const fds_ledger *ledger) { return 0; }
fds_status fds_ledger_units(const fds_ledger *ledger, const char *text, int64_t *units,
                            fds_error *err) {
    return fail(err);
}
const char *fds_ledger_vkey(const fds_ledger *ledger) { return ""; }
fds_status fds_ledger_account(fds_ledger *ledger, fds_account_kind kind, const char *name,
                              uint64_t *account, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_find(const fds_ledger *ledger, const char *name, uint64_t *account,
                           fds_error *err) {
    return fail(err);
}
uint64_t fds_ledger_accounts(const fds_ledger *ledger) { return 0; }
const char *fds_ledger_account_name(const fds_ledger *ledger, uint64_t account) { return ""; }
fds_account_kind fds_ledger_account_kind(const fds_ledger *ledger, uint64_t account) {
    return FDS_ACCOUNT_PLATFORM;
}
int64_t fds_ledger_balance(const fds_ledger *ledger, uint64_t account) { return 0; }
fds_status fds_ledger_add_run(fds_ledger *ledger, const fds_ledger_run *run, uint64_t *number,
                              fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_charge(fds_ledger *ledger, fds_charge *charges, size_t count,
                             fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_charge_keeping(fds_ledger *ledger, fds_charge *charges, size_t count,
                                     fds_keep_function keep, void *user, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_waiting(const fds_ledger *ledger, uint64_t from, size_t most,
                              fds_waiting_function take, void *user, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_waiting_count(const fds_ledger *ledger, uint64_t *count, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_drop_waiting(fds_ledger *ledger, const char *before_day, uint64_t *count,
                                   fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_add_audited(fds_ledger *ledger, const fds_audited *rows, size_t count,
                                  fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_audited(const fds_ledger *ledger, uint64_t from, fds_audited_function take,
                              void *user, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_audited_day(const fds_ledger *ledger, const char *day, uint64_t *rows,
                                  uint8_t sha256[32], fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_settle(fds_ledger *ledger, fds_error *err) { return fail(err); }
fds_status fds_ledger_repeat(fds_ledger *ledger, fds_charge *charge, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_topup(fds_ledger *ledger, uint64_t customer, int64_t units, const char *ref,
                            const char *key, uint64_t *index, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_payout(fds_ledger *ledger, uint64_t account, int64_t minimum, const char *ref,
                             const char *key, int64_t *units, uint64_t *index, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_correct(fds_ledger *ledger, uint64_t of, const fds_posting *postings,
                              size_t count, const char *reason, const char *const operators[2],
                              const char *key, uint64_t *index, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_set_by(fds_ledger *ledger, const fds_ledger_by *by, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_pay(fds_ledger *ledger, const fds_posting *payouts, size_t count,
                          const char *ref, const char *key, uint64_t *indexes, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_note(fds_ledger *ledger, const char *json, const char *key, uint64_t *index,
                           fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_find_key(const fds_ledger *ledger, uint64_t account, const char *key,
                               uint64_t *index, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_entries(const fds_ledger *ledger, const fds_ledger_listing *what, char **json,
                              fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_earned(const fds_ledger *ledger, uint64_t account, int64_t *units,
                             uint64_t *count, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_sum(fds_ledger *ledger, fds_ledger_totals *out, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_entry(const fds_ledger *ledger, uint64_t index, uint64_t viewer, char **json,
                            fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_statement(const fds_ledger *ledger, uint64_t account, const char *from,
                                const char *to, fds_write_function write, void *user,
                                fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_statement_part(const fds_ledger *ledger, uint64_t account, const char *from,
                                     const char *to, fds_ledger_cursor *at, size_t most,
                                     fds_write_function write, void *user, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_earnings(const fds_ledger *ledger, uint64_t account, char **json,
                               fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_export(const fds_ledger *ledger, const char *format, const char *path,
                             const fds_events *events, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_backup(const fds_ledger *ledger, const char *path, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_snapshot(const fds_ledger *ledger, const char *path, fds_ledger_pause pause,
                               void *user, fds_ledger **out, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_verify(const fds_ledger *ledger, const char *vkey, const fds_events *events,
                             char **report, fds_error *err) {
    return fail(err);
}
void fds_ledger_privacy_of(const fds_ledger *ledger, fds_ledger_privacy *out) {
    *out = (fds_ledger_privacy){0};
}
fds_status fds_ledger_set_private(fds_ledger *ledger, const fds_params *params, uint64_t *index,
                                  fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_release(fds_ledger *ledger, const char *period, const fds_events *events,
                              uint64_t *index, fds_error *err) {
    return fail(err);
}
int64_t fds_ledger_released(const fds_ledger *ledger, uint64_t account) { return 0; }
fds_status fds_ledger_released_statements(const fds_ledger *ledger, uint64_t account,
                                          const char *period, fds_ledger_release_function take,
                                          void *user, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_budget(const fds_ledger *ledger, double delta, char **json, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_checkpoint(const fds_ledger *ledger, char **note, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_log_file(const fds_ledger *ledger, const char *path, void **data,
                               size_t *size, fds_error *err) {
    return fail(err);
}
fds_status fds_ledger_receipt(const fds_ledger *ledger, uint64_t index, uint64_t account,
                              char **proof, fds_error *err) {
    return fail(err);
}
fds_status fds_log_watch(const char *from, const char *vkey, const char *kept, uint64_t *old_size,
                         uint64_t *size, fds_error *err) {
    return fail(err);
}
fds_status fds_receipt_verify(const char *proof, size_t size, const char *vkey, char **json,
                              fds_error *err) {
    return fail(err);
}
