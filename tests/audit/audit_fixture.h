/* SPDX-License-Identifier: Apache-2.0
 * Made-up predictions of a run with five providers: what was paid by, and what the bank says. */
#ifndef FDS_TEST_AUDIT_FIXTURE_H
#define FDS_TEST_AUDIT_FIXTURE_H

#include "../ledger/ledger_fixture.h"

#include "audit/audit.h"

enum { PROVIDERS = 5 };
static const char *const provider_names[PROVIDERS] = {"north", "south", "west", "east", "polar"};

/* One made-up prediction; all arrays are its own. */
typedef struct {
    float values[PROVIDERS], errors[PROVIDERS], bank[PROVIDERS], bank_errors[PROVIDERS];
    char label[2];
    double score;
} made_up;

/* How it is dishonest; zeroes: it is not. */
typedef struct {
    int robbed;           /* provider number + 1 */
    double share;         /* of its money that the next one gets */
    double errors, noise; /* factors, 0: 1 */
    double strange;       /* added to scores */
    int fed;              /* provider number + 1 whose share is doubled */
} fault;

static inline made_up make_up(uint64_t seed, uint64_t i, const fault *f) {
    fds_rng rng = fds_rng_make(seed, 95, i, 0);
    made_up m = {.label = {(char)('0' + fds_rng_below(&rng, 3)), 0}};
    double noise = f->noise > 0 ? f->noise : 1;
    for (int k = 0; k < PROVIDERS; k++) {
        double truth = 0.1 + 0.1 * k + 0.1 * fds_rng_unit(&rng) + (m.label[0] - '0' == k) * 0.2;
        m.bank[k] = (float)(truth + 0.005 * fds_rng_normal(&rng));
        m.values[k] = (float)(truth + 0.02 * noise * fds_rng_normal(&rng));
        m.errors[k] = (float)(0.021 * (f->errors > 0 ? f->errors : 1));
        m.bank_errors[k] = 0.005F;
    }
    if (f->robbed) {
        float moved = m.values[f->robbed - 1] * (float)f->share;
        m.values[f->robbed - 1] -= moved;
        m.values[f->robbed % PROVIDERS] += moved;
    }
    if (f->fed)
        m.values[f->fed - 1] *= 2;
    m.score = fds_rng_normal(&rng) + f->strange;
    return m;
}

static inline fds_params *trust(const char *const *pairs) {
    fds_error err = {0};
    fds_params *params = fds_params_create("trust");
    assert_non_null(params);
    for (; pairs && *pairs; pairs += 2)
        expect_ok(fds_params_set(params, pairs[0], pairs[1], &err), &err);
    return params;
}
#define TRUST_PARAMS(...) trust((const char *const[]){__VA_ARGS__, NULL})

static inline json_t *report_of(const fds_auditor *a) {
    fds_error err = {0};
    char *text = NULL;
    json_t *root = NULL;
    expect_ok(fds_auditor_report(a, &text, &err), &err);
    expect_ok(fds__json_parse("report", text, strlen(text), &root, &err), &err);
    fds_text_free(text);
    return root;
}

static inline json_t *check_of(const json_t *report, const char *name) {
    const json_t *list = json_object_get(report, "checks");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(list, i), "check")), name) == 0)
            return json_array_get(list, i);
    return NULL;
}

static inline const char *verdict_of(const json_t *report, const char *name) {
    return json_string_value(json_object_get(check_of(report, name), "verdict"));
}

#endif
