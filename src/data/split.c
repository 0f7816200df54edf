/* SPDX-License-Identifier: Apache-2.0
 * Choosing samples: balanced by class, or by their numbers.
 *
 * Every sample has a random key that depends on (seed, sample) alone. Sorted by key, the samples of
 * a class have ranks 0, 1, 2, ... All samples sorted by (rank, key) form a list of which every
 * prefix is as balanced as the classes allow. A choice of count samples is the prefix of that
 * length: choices of one seed are nested. */
#include "data/data.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NAMED = 1000000 }; /* samples of one list */

typedef struct {
    uint64_t key;
    uint32_t sample, group; /* group: first the class, then the rank within it */
} ticket;

static int by_group_then_key(const void *left, const void *right) {
    const ticket *a = left, *b = right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->sample < b->sample ? -1 : a->sample > b->sample;
}

/* A ticket for each sample, by class and then by key. */
static void make_tickets(const fds_dataset *ds, uint64_t seed, ticket *tickets) {
    for (uint32_t i = 0; i < ds->count; i++) {
        fds_rng rng = fds_rng_make(seed, FDS__PURPOSE_SPLIT, i, 0);
        tickets[i] = (ticket){fds_rng_u64(&rng), i, ds->labels[i]};
    }
    qsort(tickets, ds->count, sizeof *tickets, by_group_then_key);
}

fds_status fds__split_part(const fds_dataset *ds, size_t first, size_t count, uint64_t seed,
                           uint32_t *index, fds_error *err) {
    if (count == 0 || count > ds->count - first)
        return fds__fail(err, FDS_ERR_USAGE, "%s: cannot choose %zu samples: must be 1 to %zu",
                         ds->source, count, ds->count - first);
    ticket *tickets = fds__alloc_zero(ds->count, sizeof *tickets);
    if (!tickets)
        return fds__fail_nomem(err, ds->count * sizeof *tickets);
    make_tickets(ds, seed, tickets);
    uint32_t class = UINT32_MAX, rank = 0;
    for (size_t i = 0; i < ds->count; i++) {
        rank = tickets[i].group == class ? rank + 1 : 0;
        class = tickets[i].group;
        tickets[i].group = rank;
    }
    qsort(tickets, ds->count, sizeof *tickets, by_group_then_key);
    for (size_t i = 0; i < count; i++)
        index[i] = tickets[first + i].sample;
    fds__samples_sort(index, count);
    fds__free(tickets);
    return FDS_OK;
}

fds_status fds_split_balanced(const fds_dataset *ds, size_t count, uint64_t seed, uint32_t *index,
                              fds_error *err) {
    return fds__split_part(ds, 0, count, seed, index, err);
}

fds_status fds_split_test(const fds_dataset *ds, size_t test_count, uint64_t seed, uint32_t *train,
                          uint32_t *test, fds_error *err) {
    if (test_count == 0 || test_count >= ds->count)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "%s: cannot hold out %zu test samples: must be 1 to %zu, so that one sample "
            "remains",
            ds->source, test_count, ds->count - 1);
    TRY(fds__split_part(ds, 0, test_count, seed, test, err));
    return fds__split_part(ds, test_count, ds->count - test_count, seed, train, err);
}

fds_status fds__split_folds(const fds_dataset *ds, uint32_t folds, uint64_t seed, uint32_t *fold,
                            fds_error *err) {
    if (folds < 2 || folds > ds->count)
        return fds__fail(err, FDS_ERR_USAGE, "%s: %u folds of %zu samples: must be 2 to %zu",
                         ds->source, folds, ds->count, ds->count);
    OWNED ticket *tickets = NULL;
    TRY(NEW(tickets, ds->count, err));
    make_tickets(ds, seed, tickets);
    for (size_t i = 0; i < ds->count; i++) /* dealt like cards, class by class */
        fold[tickets[i].sample] = (uint32_t)(i % folds);
    return FDS_OK;
}

/* ---- by number ---- */

static fds_status fail_index(const char *text, fds_error *err) {
    return fds__fail(
        err, FDS_ERR_USAGE,
        "`index` must be a number, a range such as 0..9, or several of them separated by commas "
        "(got %.100s)",
        text);
}

/* Reads a number from 0 to 2^32-1 at *at, and moves *at behind it. */
static bool read_number(const char **at, uint64_t *out) {
    size_t digits = strspn(*at, "0123456789");
    if (digits < 1 || digits > 10)
        return false;
    *out = strtoull(*at, NULL, 10);
    *at += digits;
    return *out <= UINT32_MAX;
}

/* The caller frees *list after a failure too. */
static fds_status read_list(const char *text, void **list, size_t *count, fds_error *err) {
    size_t capacity = 0;
    const char *at = text;
    *count = 0;
    do {
        uint64_t first, last;
        if (!read_number(&at, &first))
            return fail_index(text, err);
        last = first;
        if (strncmp(at, "..", 2) == 0) {
            at += 2;
            if (!read_number(&at, &last) || last < first)
                return fail_index(text, err);
        }
        if (*count + (last - first) >= MOST_NAMED)
            return fds__fail(err, FDS_ERR_USAGE,
                             "`index` must name at most %d samples (got %.100s)", MOST_NAMED, text);
        TRY(fds__grow(list, &capacity, *count + (size_t)(last - first) + 1, sizeof(uint32_t), err));
        for (uint64_t i = first; i <= last; i++)
            ((uint32_t *)*list)[(*count)++] = (uint32_t)i;
    } while (*at++ == ',');
    return at[-1] ? fail_index(text, err) : FDS_OK;
}

fds_status fds__samples_list(const char *text, uint32_t **out, size_t *count, fds_error *err) {
    void *list = NULL;
    fds_status status = read_list(text, &list, count, err);
    if (status == FDS_OK)
        *out = list;
    else
        fds__free(list);
    return status;
}
