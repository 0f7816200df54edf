/* SPDX-License-Identifier: Apache-2.0
 * Choosing samples: balanced by class, by the frequencies of classes, or by their numbers.
 *
 * Every sample has a random key that depends on (seed, sample) alone. Sorted by key, the samples of
 * a class have ranks 0, 1, 2, ... All samples sorted by (rank, key) form the balanced list, of which
 * every prefix is as balanced as the classes allow. Sorted by ((rank + 1/2) / size of the class, key)
 * they form the proportional list: every prefix has the classes in the shares of the whole, up to
 * rounding. A choice of count samples is the prefix of that length: choices of one seed are nested. */
#include "data/data.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NAMED = 1000000 }; /* samples of one list */

typedef struct {
    uint64_t key;
    uint32_t sample, class, rank; /* rank: within the class */
    uint32_t size;                /* of the class in a proportional list; 0: balanced */
} ticket;

static int by_key(const ticket *a, const ticket *b) {
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->sample < b->sample ? -1 : a->sample > b->sample;
}

static int by_class_then_key(const void *left, const void *right) {
    const ticket *a = left, *b = right;
    return a->class != b->class ? (a->class < b->class ? -1 : 1) : by_key(a, b);
}

static int by_place_then_key(const void *left, const void *right) {
    const ticket *a = left, *b = right;
    uint64_t x = a->rank, y = b->rank;
    if (a->size) { /* (2 rank + 1) / (2 size), without a division */
        x = (2 * x + 1) * b->size;
        y = (2 * y + 1) * a->size;
    }
    return x != y ? (x < y ? -1 : 1) : by_key(a, b);
}

/* A ticket for each sample that is not left out, by class and then by key; returns how many. */
static size_t make_tickets(const fds_dataset *ds, const fds__split_how *how, ticket *tickets) {
    size_t used = 0;
    for (uint32_t i = 0; i < ds->count; i++) {
        fds_rng rng = fds_rng_make(how->seed, FDS__PURPOSE_SPLIT, i, 0);
        if (!fds__samples_has(how->without, how->left_out, i))
            tickets[used++] = (ticket){fds_rng_u64(&rng), i, ds->labels[i], 0, 0};
    }
    qsort(tickets, used, sizeof *tickets, by_class_then_key);
    return used;
}

/* Ranks within classes, of tickets in the order of their classes. */
static void rank_tickets(ticket *tickets, size_t count, bool is_proportional) {
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first; end < count && tickets[end].class == tickets[first].class; end++)
            tickets[end].rank = (uint32_t)(end - first);
        for (size_t i = first; i < end; i++)
            tickets[i].size = is_proportional ? (uint32_t)(end - first) : 0;
    }
}

fds_status fds__split(const fds_dataset *ds, const fds__split_how *how, size_t first, size_t count,
                      uint32_t *index, fds_error *err) {
    size_t have = ds->count - how->left_out;
    if (count == 0 || first > have || count > have - first)
        return fds__fail(err, FDS_ERR_USAGE, "%s: cannot choose %zu samples: must be 1 to %zu",
                         ds->source, count, first > have ? 0 : have - first);
    ticket *tickets = fds__alloc_zero(ds->count, sizeof *tickets);
    if (!tickets)
        return fds__fail_nomem(err, ds->count * sizeof *tickets);
    size_t used = make_tickets(ds, how, tickets);
    assert(used == have);
    rank_tickets(tickets, used, how->is_proportional);
    qsort(tickets, used, sizeof *tickets, by_place_then_key);
    for (size_t i = 0; i < count; i++)
        index[i] = tickets[first + i].sample;
    fds__samples_sort(index, count);
    fds__free(tickets);
    return FDS_OK;
}

fds_status fds__split_part(const fds_dataset *ds, size_t first, size_t count, uint64_t seed,
                           uint32_t *index, fds_error *err) {
    return fds__split(ds, &(fds__split_how){.seed = seed}, first, count, index, err);
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
    make_tickets(ds, &(fds__split_how){.seed = seed}, tickets);
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
