/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a ledger of made-up predictions, quickly: for tests and benchmarks of audits.
 *
 *   make-ledger LEDGER PREDICTIONS PAYEES AUDITED [ROBBED [RUN]]
 *
 * One in AUDITED predictions has a row of what the bank says. ROBBED: a payee's number from 0, a tenth of
 * whose value the next one gets; -1: nobody. RUN: the folder of a run, for which predictions are made up
 * all the same. Four customers. Written on the public headers alone. */
#include "fds/engine.h"
#include "fds/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 4096, MOST_PAYEES = 1000, CUSTOMERS = 4 };

typedef struct {
    fds_ledger *ledger;
    size_t payees;
    uint64_t run, customers[CUSTOMERS], audited;
    int robbed;
    char sha256[65];         /* of the run */
    double *values, *errors; /* (BATCH, payees) */
    float *bank, *bank_errors;
    fds_charge *charges;
    fds_audited *rows;
} maker;

#define MAKE(call)                   \
    do {                             \
        fds_status status_ = (call); \
        if (status_ != FDS_OK)       \
            return status_;          \
    } while (0)

static fds_status open_ledger(maker *m, const char *path, fds_error *err) {
    char names[MOST_PAYEES][32];
    const char *payees[MOST_PAYEES];
    fds_params *params = fds_params_create("ledger");
    fds_status status = params ? fds_ledger_create(path, params, err) : FDS_ERR_NOMEM;
    fds_params_free(params);
    MAKE(status);
    MAKE(fds_ledger_open(path, FDS_LEDGER_WRITE, NULL, &m->ledger, err));
    for (size_t i = 0; i < m->payees; i++) {
        snprintf(names[i], sizeof names[i], "provider %zu", i);
        payees[i] = names[i];
    }
    fds_ledger_run run = {
        .name = "made-up", .sha256 = m->sha256, .payees = payees, .count = m->payees};
    MAKE(fds_ledger_add_run(m->ledger, &run, &m->run, err));
    for (int i = 0; i < CUSTOMERS; i++) {
        char name[32];
        snprintf(name, sizeof name, "customer %d", i);
        MAKE(fds_ledger_account(m->ledger, FDS_ACCOUNT_CUSTOMER, name, &m->customers[i], err));
        MAKE(fds_ledger_topup(m->ledger, m->customers[i], 1000000000000000, NULL, NULL, NULL, err));
    }
    return FDS_OK;
}

/* Values of about 1 that differ by payee and prediction; an explainer that is off by 3 %. */
static void make_up(maker *m, uint64_t number, size_t at) {
    fds_rng rng = fds_rng_make(1, 1, number, 0);
    double *values = m->values + at * m->payees, *errors = m->errors + at * m->payees;
    float *bank = m->bank + at * m->payees, *bank_errors = m->bank_errors + at * m->payees;
    for (size_t i = 0; i < m->payees; i++) {
        double truth = 0.5 + fds_rng_unit(&rng);
        values[i] = truth + 0.1 * (fds_rng_unit(&rng) - 0.5);
        errors[i] = 0.035;
        bank[i] = (float)truth;
        bank_errors[i] = 0.01F;
    }
    if (m->robbed >= 0) {
        double moved = values[m->robbed] / 10;
        values[m->robbed] -= moved;
        values[((size_t)m->robbed + 1) % m->payees] += moved;
    }
}

static fds_status add_batch(maker *m, uint64_t first, size_t count, fds_error *err) {
    static const char *const labels[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    size_t rows = 0;
    for (size_t i = 0; i < count; i++) {
        make_up(m, first + i, i);
        m->charges[i] = (fds_charge){.run = m->run,
                                     .customer = m->customers[(first + i) % CUSTOMERS],
                                     .amount = 10000,
                                     .label = labels[(first + i) / CUSTOMERS % 10],
                                     .confidence = 0.9,
                                     .values = m->values + i * m->payees,
                                     .errors = m->errors + i * m->payees};
    }
    MAKE(fds_ledger_charge(m->ledger, m->charges, count, err));
    for (size_t i = 0; i < count; i++)
        if (m->audited && (first + i) % m->audited == 0)
            m->rows[rows++] = (fds_audited){.entry = m->charges[i].index,
                                            .values = m->bank + i * m->payees,
                                            .errors = m->bank_errors + i * m->payees,
                                            .score = (double)((first + i) * 7919 % 1000)};
    return rows ? fds_ledger_add_audited(m->ledger, m->rows, rows, err) : FDS_OK;
}

/* A commitment for today, and for tomorrow if midnight is near; nothing is revealed here. */
static fds_status commit(maker *m, fds_error *err) {
    for (int day = 0; day < 2; day++) {
        time_t when = time(NULL) + day * 86400;
        struct tm parts;
        char text[200], name[16];
        gmtime_r(&when, &parts);
        strftime(name, sizeof name, "%Y-%m-%d", &parts);
        snprintf(text, sizeof text,
                 "{\"audit\":\"commit\",\"day\":\"%s\",\"hash\":\"%064d\",\"share_ppm\":%u}", name,
                 0, (unsigned)(1000000 / m->audited));
        MAKE(fds_ledger_note(m->ledger, text, NULL, NULL, err));
    }
    return FDS_OK;
}

static fds_status make_all(maker *m, const char *path, uint64_t count, fds_error *err) {
    MAKE(open_ledger(m, path, err));
    if (m->audited)
        MAKE(commit(m, err));
    for (uint64_t done = 0; done < count;) {
        size_t batch = count - done < BATCH ? (size_t)(count - done) : BATCH;
        MAKE(add_batch(m, done, batch, err));
        done += batch;
    }
    return FDS_OK;
}

static fds_status name_run(maker *m, const char *folder, fds_error *err) {
    fds_run *run;
    fds_params *params = fds_params_create("explain");
    fds_status status = params ? fds_run_open(folder, params, &run, err) : FDS_ERR_NOMEM;
    fds_params_free(params);
    MAKE(status);
    const char *text = fds_run_describe(run);
    fds_sha256_hex(text, strlen(text), m->sha256);
    fds_run_free(run);
    return FDS_OK;
}

int main(int argc, char **argv) {
    fds_error err = {0};
    if (argc < 5) {
        fprintf(stderr, "usage: make-ledger LEDGER PREDICTIONS PAYEES AUDITED [ROBBED [RUN]]\n");
        return 2;
    }
    maker m = {.payees = (size_t)atoll(argv[3]),
               .audited = (uint64_t)atoll(argv[4]),
               .robbed = argc > 5 ? atoi(argv[5]) : -1};
    if (m.payees < 1 || m.payees > MOST_PAYEES || m.robbed >= (int)m.payees)
        return 2;
    m.values = malloc(BATCH * m.payees * sizeof *m.values);
    m.errors = malloc(BATCH * m.payees * sizeof *m.errors);
    m.bank = malloc(BATCH * m.payees * sizeof *m.bank);
    m.bank_errors = malloc(BATCH * m.payees * sizeof *m.bank_errors);
    m.charges = malloc(BATCH * sizeof *m.charges);
    m.rows = malloc(BATCH * sizeof *m.rows);
    bool has_memory = m.values && m.errors && m.bank && m.bank_errors && m.charges && m.rows;
    memset(m.sha256, '0', sizeof m.sha256 - 1);
    fds_status status = argc > 6 ? name_run(&m, argv[6], &err) : FDS_OK;
    if (status == FDS_OK)
        status = has_memory ? make_all(&m, argv[1], (uint64_t)atoll(argv[2]), &err) : FDS_ERR_NOMEM;
    fds_ledger_close(m.ledger);
    void *all[] = {m.values, m.errors, m.bank, m.bank_errors, m.charges, m.rows};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    if (status != FDS_OK)
        fprintf(stderr, "make-ledger: %s\n", err.text);
    return status == FDS_OK ? 0 : 1;
}
