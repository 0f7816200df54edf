/* SPDX-License-Identifier: Apache-2.0
 *
 * Who players and samples are, apart from the rows of a file, which move when others come and go.
 *
 *   sample   SHA-256 of its provider's name, its class's name (of a regression its target), its shape
 *            and its values. Equal samples of one provider are numbered in the order of the rows, and
 *            the number is part of it: 0, 1, ...; so no other provider's samples have a part in it
 *   player   of one sample: that sample. A provider: its name says who it is, and SHA-256 of its name
 *            and its samples, in the order of their digests, what it has
 *
 * The first 8 bytes are the key of random numbers. */
#include "data/data.h"

#include <stdlib.h>
#include <string.h>

enum { DIGEST = 32 };

typedef struct {
    uint8_t digest[DIGEST];
    uint32_t sample;
} mark;

void fds__identities_free(fds__identities *identities) {
    if (!identities)
        return;
    fds__free(identities->samples);
    fds__free(identities->players);
    fds__free(identities->contents);
    fds__free(identities);
}

static uint64_t key_of(const uint8_t digest[DIGEST]) {
    uint64_t key = 0;
    for (int i = 0; i < 8; i++)
        key = key << 8 | digest[i];
    return key;
}

static const char *owner_of(const fds_dataset *ds, uint32_t sample) {
    return ds->provider_ids ? fds_dataset_provider_name(ds, ds->provider_ids[sample]) : "";
}

/* Texts with their NUL: none can be the beginning of another. */
static void digest_sample(const fds_dataset *ds, uint32_t i, uint8_t out[DIGEST]) {
    const char *owner = owner_of(ds, i), *label = ds->targets ? "" : ds->class_names[ds->labels[i]];
    const size_t size = ds->sample_size;
    const fds__bytes parts[] = {
        {"sample", 7},
        {owner, strlen(owner) + 1},
        {label, strlen(label) + 1},
        {ds->targets ? &ds->targets[i] : NULL, ds->targets ? sizeof *ds->targets : 0},
        {&ds->shape, sizeof ds->shape},
        {ds->bytes ? "bytes" : "floats", ds->bytes ? 6 : 7},
        {ds->bytes ? (const void *)(ds->bytes + i * size) : (const void *)(ds->floats + i * size),
         ds->bytes ? size : size * sizeof *ds->floats}};
    fds__sha256(parts, sizeof parts / sizeof *parts, out);
}

static int by_digest_then_sample(const void *left, const void *right) {
    const mark *a = left, *b = right;
    int order = memcmp(a->digest, b->digest, DIGEST);
    return order ? order : (a->sample > b->sample) - (a->sample < b->sample);
}

void fds__identity_numbered(const uint8_t first[DIGEST], uint32_t number, uint8_t out[DIGEST]) {
    fds__sha256((const fds__bytes[]){{first, DIGEST}, {&number, sizeof number}}, 2, out);
}

/* Numbers equal samples: the first keeps its digest. */
static void number_equal(mark *marks, size_t count) {
    for (size_t first = 0, end; first < count; first = end) {
        uint8_t same[DIGEST];
        memcpy(same, marks[first].digest, DIGEST);
        for (end = first + 1; end < count && !memcmp(marks[end].digest, same, DIGEST); end++) {
            uint8_t numbered[DIGEST];
            fds__identity_numbered(same, (uint32_t)(end - first), numbered);
            memcpy(marks[end].digest, numbered, DIGEST);
        }
    }
}

static int by_digest(const void *left, const void *right) { return memcmp(left, right, DIGEST); }

/* Sorts digests (count, 32). */
static void digest_provider(const char *name, uint8_t *digests, size_t count, uint8_t out[DIGEST]) {
    qsort(digests, count, DIGEST, by_digest);
    fds__sha256(
        (const fds__bytes[]){{"provider", 9}, {name, strlen(name) + 1}, {digests, count * DIGEST}},
        3, out);
}

/* Digests (samples of ds, 32) of all players' samples. */
static fds_status digest_samples(const fds_dataset *ds, const fds_players *players,
                                 const fds_events *events, uint8_t *out, fds_error *err) {
    enum { EACH = 256 };
    const double start_s = fds__now_s();
    const uint32_t *index;
    size_t count = fds__players_all_samples(players, &index);
    OWNED mark *marks = NULL;
    TRY(NEW(marks, count, err));
    for (size_t i = 0; i < count; i++) {
        if (i % EACH == 0)
            TRY(fds__report(events, "identify", "samples", i, count, start_s, err));
        marks[i].sample = index[i];
        digest_sample(ds, index[i], marks[i].digest);
    }
    qsort(marks, count, sizeof *marks, by_digest_then_sample);
    number_equal(marks, count);
    for (size_t i = 0; i < count; i++)
        memcpy(out + (size_t)marks[i].sample * DIGEST, marks[i].digest, DIGEST);
    return FDS_OK;
}

static fds_status fill(fds__identities *o, const fds_dataset *ds, const fds_players *players,
                       bool by_provider, const fds_events *events, fds_error *err) {
    const uint32_t *index;
    OWNED uint8_t *digests = NULL, *own = NULL;
    TRY(NEW(digests, ds->count * DIGEST, err));
    TRY(NEW(own, ds->count * DIGEST, err));
    TRY(digest_samples(ds, players, events, digests, err));
    for (size_t i = 0; i < ds->count; i++)
        o->samples[i] = key_of(digests + i * DIGEST);
    for (size_t p = 0; p < fds_players_count(players); p++) {
        size_t count = fds_players_samples(players, p, &index);
        for (size_t i = 0; i < count; i++)
            memcpy(own + i * DIGEST, digests + (size_t)index[i] * DIGEST, DIGEST);
        memcpy(o->contents[p], own, DIGEST);
        o->players[p] = key_of(own);
        if (!by_provider)
            continue;
        uint8_t who[DIGEST];
        digest_provider(fds_players_name(players, p), own, 0, who);
        digest_provider(fds_players_name(players, p), own, count, o->contents[p]);
        o->players[p] = key_of(who);
    }
    return FDS_OK;
}

fds_status fds__identities_create(const fds_dataset *ds, const fds_players *players,
                                  bool by_provider, const fds_events *events, fds__identities **out,
                                  fds_error *err) {
    const size_t n = fds_players_count(players);
    fds__identities *o;
    TRY(NEW(o, 1, err));
    fds_status status = NEW(o->samples, ds->count, err);
    if (status == FDS_OK)
        status = NEW(o->players, n, err);
    if (status == FDS_OK)
        status = NEW(o->contents, n, err);
    if (status == FDS_OK)
        status = fill(o, ds, players, by_provider, events, err);
    if (status == FDS_OK)
        *out = o;
    else
        fds__identities_free(o);
    return status;
}
