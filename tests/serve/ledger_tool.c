/* SPDX-License-Identifier: Apache-2.0
 * What the tests of a server need of a ledger, from outside the server:
 *   ledger-tool PATH create | topup ACCOUNT UNITS | balance ACCOUNT | size | verify */
#include "fds/ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fds_status create(const char *path, fds_error *err) {
    fds_params *params = fds_params_create("ledger");
    fds_status status = params ? fds_ledger_create(path, params, err) : FDS_ERR_NOMEM;
    fds_params_free(params);
    return status;
}

static fds_status topup(fds_ledger *ledger, const char *name, const char *units, fds_error *err) {
    uint64_t account, index;
    fds_status status = fds_ledger_account(ledger, FDS_ACCOUNT_CUSTOMER, name, &account, err);
    return status == FDS_OK ? fds_ledger_topup(ledger, account, strtoll(units, NULL, 10), NULL,
                                               NULL, &index, err)
                            : status;
}

static fds_status print_balance(const fds_ledger *ledger, const char *name, fds_error *err) {
    uint64_t account;
    fds_status status = fds_ledger_find(ledger, name, &account, err);
    if (status == FDS_OK)
        printf("%" PRId64 "\n", fds_ledger_balance(ledger, account));
    return status;
}

static fds_status use(int argc, char **argv, fds_error *err) {
    fds_ledger *ledger = NULL;
    bool writes = strcmp(argv[2], "topup") == 0;
    fds_status status =
        fds_ledger_open(argv[1], writes ? FDS_LEDGER_WRITE : FDS_LEDGER_READ, NULL, &ledger, err);
    if (status == FDS_OK && writes && argc == 5)
        status = topup(ledger, argv[3], argv[4], err);
    else if (status == FDS_OK && strcmp(argv[2], "balance") == 0 && argc == 4)
        status = print_balance(ledger, argv[3], err);
    else if (status == FDS_OK && strcmp(argv[2], "verify") == 0)
        status = fds_ledger_verify(ledger, NULL, NULL, NULL, err);
    else if (status == FDS_OK)
        printf("%" PRIu64 "\n", fds_ledger_size(ledger));
    fds_ledger_close(ledger);
    return status;
}

int main(int argc, char **argv) {
    fds_error err = {0};
    if (argc < 3)
        return 2;
    fds_status status =
        strcmp(argv[2], "create") == 0 ? create(argv[1], &err) : use(argc, argv, &err);
    if (status != FDS_OK)
        fprintf(stderr, "%s\n", err.text);
    return fds_status_exit_code(status);
}
