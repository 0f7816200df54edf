/* SPDX-License-Identifier: Apache-2.0
 * Predictions that are hashed together. Hashing takes most of the time of a verification, and that of one
 * prediction does not depend on others: so they wait for each other, and all processors hash them. */
#include "ledger/ledger.h"

typedef struct {
    ledger_entry entry;
    char *bytes; /* what its pointers point to */
    size_t capacity;
    ledger_parts parts;
    fds_status status; /* of hashing */
} waiting;

struct ledger_batch {
    waiting items[LEDGER_BATCH];
    size_t count;
    const ledger_state *state;
    const ledger_unit *unit;
};

fds_status ledger_batch_create(const ledger_state *state, const ledger_unit *unit,
                               ledger_batch **out, fds_error *err) {
    TRY(NEW(*out, 1, err));
    (*out)->state = state;
    (*out)->unit = unit;
    return FDS_OK;
}

void ledger_batch_free(ledger_batch *b) {
    for (size_t i = 0; b && i < LEDGER_BATCH; i++) {
        fds__free(b->items[i].bytes);
        ledger_parts_free(&b->items[i].parts);
    }
    fds__free(b);
}

size_t ledger_batch_count(const ledger_batch *b) { return b->count; }

/* ---- waiting ---- */

/* Texts with their NUL, and blobs, one after the other. */
static void copy_bytes(const ledger_entry *e, waiting *w) {
    char *at = w->bytes;
    const char **texts[] = {&w->entry.label, &w->entry.rule, &w->entry.text, &w->entry.key};
    fds__bytes *blobs[] = {&w->entry.fingerprint, &w->entry.answer, &w->entry.postings,
                           &w->entry.values,      &w->entry.errors, &w->entry.input};
    w->entry = *e;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (*texts[i]) {
            size_t size = strlen(*texts[i]) + 1;
            *texts[i] = memcpy(at, *texts[i], size);
            at += size;
        }
    for (size_t i = 0; i < sizeof blobs / sizeof *blobs; i++)
        if (blobs[i]->data) {
            blobs[i]->data = memcpy(at, blobs[i]->data, blobs[i]->size);
            at += blobs[i]->size;
        }
}

static size_t size_of(const ledger_entry *e) {
    const char *texts[] = {e->label, e->rule, e->text, e->key};
    size_t size = e->fingerprint.size + e->answer.size + e->postings.size + e->values.size +
                  e->errors.size + e->input.size;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        size += texts[i] ? strlen(texts[i]) + 1 : 0;
    return size;
}

fds_status ledger_batch_add(ledger_batch *b, const ledger_entry *e, fds_error *err) {
    assert(b->count < LEDGER_BATCH);
    waiting *w = &b->items[b->count];
    void *bytes = w->bytes;
    fds_status status = fds__grow(&bytes, &w->capacity, size_of(e) + 1, 1, err);
    w->bytes = bytes;
    TRY(status);
    copy_bytes(e, w);
    b->count++;
    return FDS_OK;
}

/* ---- hashing ---- */

/* The job of a batch before its own. */
typedef struct {
    ledger_batch *batch;
    fds_status (*beside)(void *context, fds_error *err);
    void *context;
} hashing;

/* A failure to hash belongs to its entry: those before it are checked first. */
static fds_status run_job(void *context, size_t job, unsigned worker, fds_error *err) {
    const hashing *h = context;
    (void)worker;
    if (job == 0)
        return h->beside(h->context, err);
    waiting *w = &h->batch->items[job - 1];
    w->status = ledger_parts_read(&w->parts, &w->entry, h->batch->state, h->batch->unit, NULL);
    return FDS_OK;
}

fds_status ledger_batch_hash(ledger_batch *b, fds_status (*beside)(void *, fds_error *),
                             void *context, fds_error *err) {
    hashing h = {b, beside, context};
    return fds__pool_run(0, 1 + b->count, run_job, &h, "verify", "entries", NULL, err);
}

fds_status ledger_batch_get(ledger_batch *b, size_t i, const ledger_entry **entry,
                            ledger_parts **parts) {
    *entry = &b->items[i].entry;
    *parts = &b->items[i].parts;
    return b->items[i].status;
}

void ledger_batch_clear(ledger_batch *b) { b->count = 0; }
