/* SPDX-License-Identifier: Apache-2.0
 * A private ledger in the scratch folder, with a clock that the test sets and noise from Philox. */
#ifndef FDS_TEST_PRIVATE_FIXTURE_H
#define FDS_TEST_PRIVATE_FIXTURE_H

#include "../ledger/ledger_fixture.h"

static int64_t clock_ms;
static inline int64_t tell_time(void) { return clock_ms; }
/* Noon of a day, "2096-10-05". */
static inline void set_day(const char *day) {
    int64_t number = 0;
    assert_true(ledger_day_read(day, &number));
    clock_ms = number * LEDGER_DAY_MS + LEDGER_DAY_MS / 2;
}

static fds_rng philox;
static inline fds_status fill_from_philox(void *context, void *out, size_t size, fds_error *err) {
    uint8_t *bytes = out;
    (void)context, (void)err;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = fds_rng_u64(&philox);
        memcpy(bytes + i, &word, 8);
    }
    return FDS_OK;
}
static const fds__bits philox_bits = {.fill = fill_from_philox};

static inline fds_status make_private(fds_ledger *l, const char *const *pairs, fds_error *err) {
    fds_params *params = fds_params_create("privacy");
    fds_status status = FDS_OK;
    assert_non_null(params);
    for (; status == FDS_OK && *pairs; pairs += 2)
        status = fds_params_set(params, pairs[0], pairs[1], err);
    if (status == FDS_OK)
        status = fds_ledger_set_private(l, params, NULL, err);
    fds_params_free(params);
    return status;
}
#define MAKE_PRIVATE(l, ...) make_private(l, (const char *const[]){__VA_ARGS__, NULL}, &err)

/* The clock and the bits are not in the file. */
static inline fds_ledger *with_clock(fds_ledger *l) {
    l->now_ms = tell_time;
    l->bits = &philox_bits;
    return l;
}

/* acme and bolt have 1000 dollars each, and the run no fee. Prices are a cent at most. */
static inline fds_ledger *private_ledger(const char *name, const char *const *pairs) {
    fds_error err = {0};
    philox = fds_rng_make(18, 4, 0, 0);
    expect_ok(CREATE(scratch_path(name), "origin", "example.com/test"), &err);
    fds_ledger *l = with_clock(open_as(scratch_path(name), FDS_LEDGER_WRITE));
    topup(l, "acme", 1000000000);
    topup(l, "bolt", 1000000000);
    expect_ok(make_private(l, pairs, &err), &err);
    add_run(l, SHA_A, NULL, 0);
    return l;
}
#define A_CENT ((const char *const[]){"price_limit", "0.01", NULL})

/* A prediction with one value for each of the three providers. */
static inline void predict(fds_ledger *l, const char *name, int64_t amount, double north,
                           double south, double west) {
    const double values[PAYEES] = {north, south, west};
    fds_charge c = charge_of(l, 0, name, amount, NULL);
    c.values = values;
    assert_int_equal(charge(l, &c), FDS_OK);
}

static inline fds_status take_units(void *user, const char *period, const char *last, int64_t units,
                                    uint64_t entry, fds_error *err) {
    (void)period, (void)last, (void)entry, (void)err;
    *(int64_t *)user = units;
    return FDS_OK;
}

static inline int64_t stated(const fds_ledger *l, const char *name, const char *period) {
    int64_t units = INT64_MIN;
    fds_error err = {0};
    expect_ok(fds_ledger_released_statements(l, find(l, name), period, take_units, &units, &err),
              &err);
    return units;
}

static inline fds_ledger *again(fds_ledger *l, const char *name) {
    fds_ledger_close(l);
    return with_clock(open_as(scratch_path(name), FDS_LEDGER_WRITE));
}

#endif
