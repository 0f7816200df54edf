/* SPDX-License-Identifier: Apache-2.0
 * What the tests of the table share: a utility function whose answers are a hash of the coalition,
 * which counts its calls and can be told to fail or to dawdle, and tables filled with it. */
#ifndef FDS_TEST_TABLE_FIXTURE_H
#define FDS_TEST_TABLE_FIXTURE_H

#include "utility/table.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct fake {
    fds_utility value; /* what tables are opened with */
    char text[200];
    atomic_uint calls;
    unsigned fail_at;    /* the call that fails; 0: none */
    unsigned dawdle_us;  /* at most so long, from call to call another time */
    bool is_nan;         /* answers that are no numbers */
    void (*watch)(void); /* called within each call; may be NULL */
} fake;

/* A number in [0, 1) with 20 bits, so that it is exact in f32. */
static inline float fake_prob(const fds_utility *value, const uint64_t *coalition, size_t i) {
    uint64_t mixed[3] = {fds_coalition_id(coalition, value->players), i,
                         fds_checksum(value->text, strlen(value->text))};
    return (float)(fds_checksum(mixed, sizeof mixed) >> 44) * 0x1p-20f;
}

static inline fds_status fake_eval(const void *self, unsigned worker, const uint64_t *coalition,
                                   float *probs, fds_error *err) {
    fake *f = (fake *)(uintptr_t)self;
    unsigned call = atomic_fetch_add(&f->calls, 1) + 1;
    (void)worker;
    if (f->dawdle_us)
        usleep((useconds_t)(fds_checksum(&call, sizeof call) % f->dawdle_us));
    if (f->watch)
        f->watch();
    if (call == f->fail_at)
        return fds__fail(err, FDS_ERR_DIVERGED, "call %u was told to fail", call);
    for (size_t i = 0; i < f->value.inputs * f->value.classes; i++)
        probs[i] = f->is_nan ? NAN : fake_prob(&f->value, coalition, i);
    return FDS_OK;
}

static const fds__utility_kind fake_kind = {.eval = fake_eval};

static inline void fake_make(fake *f, size_t players, size_t inputs, uint32_t classes, int seed) {
    memset(f, 0, sizeof *f);
    snprintf(f->text, sizeof f->text,
             "{\"kind\":\"fake\",\"seed\":%d,\"train\":{\"lr\":0.001,\"epochs\":10}}", seed);
    f->value = (fds_utility){.kind = &fake_kind,
                             .self = f,
                             .players = players,
                             .inputs = inputs,
                             .classes = classes,
                             .memory = 1000,
                             .workers = 8,
                             .text = f->text};
}

#endif
