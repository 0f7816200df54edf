/* SPDX-License-Identifier: Apache-2.0
 *
 * A small ledger to test with: the customers acme and bolt, and a run of three providers. It is a file;
 * or, where FDS_TEST_POSTGRES is the URI of a database, a schema of it (tests/ledger/postgres.py). */
#ifndef FDS_TEST_LEDGER_FIXTURE_H
#define FDS_TEST_LEDGER_FIXTURE_H

#include "../base/scratch.h"

#include "ledger/ledger.h"

#include <math.h>

enum { PAYEES = 3 };
static const char *const payees[PAYEES] = {"north", "south", "west"};
#define SHA_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define SHA_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static const char *database; /* NULL: files */

/* For cases about files alone. */
#define NEED_A_FILE                           \
    do {                                      \
        if (database)                         \
            SKIP_CASE("this is about files"); \
    } while (0)

/* main begins with it. */
static inline void choose_store(void) { database = getenv("FDS_TEST_POSTGRES"); }

/* The URI of the schema that stands for a file. */
static inline const char *place(const char *path, bool is_new) {
    static char uri[1024];
    static unsigned long long made;
    char sql[64];
    unsigned long long hash = 5381;
    fds_error err = {0};
    db *d = NULL;
    if (!database)
        return path;
    for (const char *at = path; *at; at++)
        hash = hash * 33 + (unsigned char)*at;
    snprintf(uri, sizeof uri, "%s&options=-csearch_path%%3Ds%llu", database, hash);
    snprintf(sql, sizeof sql, "CREATE SCHEMA IF NOT EXISTS s%llu", hash);
    if (is_new && made != hash) {
        made = hash;
        expect_ok(db_open(database, DB_WRITE, &d, &err), &err);
        expect_ok(db_run(d, sql, &err), &err);
        db_close(d);
    }
    return uri;
}

static inline const char *key_of(const char *path) {
    static char key[600];
    snprintf(key, sizeof key, "%s.key", path);
    return key;
}

static inline fds_status create_with(const char *path, const char *const *pairs, fds_error *err) {
    fds_params *params = fds_params_create("ledger");
    if (!params)
        return FDS_ERR_NOMEM;
    fds_status status = FDS_OK;
    for (; status == FDS_OK && pairs && *pairs; pairs += 2)
        status = fds_params_set(params, pairs[0], pairs[1], err);
    if (status == FDS_OK && database)
        status = fds_params_set(params, "signing_key", key_of(path), err);
    if (status == FDS_OK)
        status = fds_ledger_create(place(path, true), params, err);
    fds_params_free(params);
    return status;
}
#define CREATE(path, ...) create_with(path, (const char *const[]){__VA_ARGS__, NULL}, &err)

static inline fds_ledger *open_as(const char *path, fds_ledger_access access) {
    fds_ledger *l = NULL;
    fds_error err = {0};
    expect_ok(fds_ledger_open(place(path, false), access, database ? key_of(path) : NULL, &l, &err),
              &err);
    return l;
}

static inline uint64_t customer(fds_ledger *l, const char *name) {
    uint64_t account = 0;
    fds_error err = {0};
    expect_ok(fds_ledger_account(l, FDS_ACCOUNT_CUSTOMER, name, &account, &err), &err);
    return account;
}

static inline uint64_t find(const fds_ledger *l, const char *name) {
    uint64_t account = 0;
    fds_error err = {0};
    expect_ok(fds_ledger_find(l, name, &account, &err), &err);
    return account;
}

static inline int64_t balance(const fds_ledger *l, const char *name) {
    return fds_ledger_balance(l, find(l, name));
}

static inline uint64_t add_run(fds_ledger *l, const char *sha256, const char *policy,
                               uint32_t fee_ppm) {
    uint64_t number = 0;
    fds_error err = {0};
    fds_ledger_run run = {.name = "mnist",
                          .sha256 = sha256,
                          .payees = payees,
                          .count = PAYEES,
                          .policy = policy,
                          .fee_ppm = fee_ppm};
    expect_ok(fds_ledger_add_run(l, &run, &number, &err), &err);
    return number;
}

static inline void topup(fds_ledger *l, const char *name, int64_t units) {
    fds_error err = {0};
    expect_ok(fds_ledger_topup(l, customer(l, name), units, NULL, NULL, NULL, &err), &err);
}

static const double some_values[PAYEES] = {0.5, 0.25, 0.125};
static const double some_errors[PAYEES] = {0.01, 0.02, 0.04};

static inline fds_charge charge_of(const fds_ledger *l, uint64_t run, const char *name,
                                   int64_t amount, const char *key) {
    fds_charge c = {.run = run,
                    .customer = find(l, name),
                    .amount = amount,
                    .label = "6",
                    .confidence = 0.75,
                    .values = some_values,
                    .errors = some_errors,
                    .key = key};
    memset(c.input, 7, sizeof c.input);
    return c;
}

/* Charges one; the status is that of the charge. */
static inline fds_status charge(fds_ledger *l, fds_charge *c) {
    fds_error err = {0};
    expect_ok(fds_ledger_charge(l, c, 1, &err), &err);
    return c->status;
}

static inline void verify(const fds_ledger *l) {
    fds_error err = {0};
    expect_ok(fds_ledger_verify(l, NULL, NULL, NULL, &err), &err);
}

/* A ledger in the scratch folder with 10 dollars of acme, and run 0 with a fee of a tenth. */
static inline fds_ledger *small_ledger(void) {
    fds_error err = {0};
    expect_ok(CREATE(scratch_path("l.db"), "origin", "example.com/test"), &err);
    fds_ledger *l = open_as(scratch_path("l.db"), FDS_LEDGER_WRITE);
    topup(l, "acme", 10000000);
    add_run(l, SHA_A, NULL, 100000);
    return l;
}

static inline fds_ledger *reopen(fds_ledger *l) {
    fds_ledger_close(l);
    return open_as(scratch_path("l.db"), FDS_LEDGER_WRITE);
}

#endif
