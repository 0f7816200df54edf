/* SPDX-License-Identifier: Apache-2.0
 *
 * Sub-models from the bank of a run with other players: the records of coalitions whose members both
 * runs have, with the same samples. Only the id of a record changes, which numbers players. */
#include "explain/run.h"

#include <string.h>

typedef struct {
    fds__file from, to;
    fds__record_form old, form;
    fds__slot_map index; /* of from: id to record */
    fds__bank_slots slots;
    bool *is_good; /* (slots) of to */
    uint64_t *bits;
    uint8_t *record;
    size_t kept;
} copier;

static fds_status note_old(void *context, uint64_t number, const uint8_t *record,
                           const char **fault, fds_error *err) {
    copier *c = context;
    (void)fault;
    TRY(fds__slot_map_reserve(&c->index, c->index.count + 1, err));
    fds__slot_map_add(&c->index, fds__get64(record), (uint32_t)number);
    return FDS_OK;
}

static fds_status note_new(void *context, uint64_t number, const uint8_t *record,
                           const char **fault, fds_error *err) {
    copier *c = context;
    (void)record, (void)fault, (void)err;
    c->is_good[number] = true;
    return FDS_OK;
}

/* Of another network there is nothing to take. */
static bool is_same_network(const copier *c) {
    return c->old.records && c->old.record_size == c->form.record_size &&
           memcmp(c->old.header + 40, c->form.header + 40, 8) == 0;
}

static fds_status copy(copier *c, const fds__reuse *map, const fds_events *events, fds_error *err) {
    const double start_s = fds__now_s();
    const size_t players = fds_plan_players(c->slots.plan), size = c->form.record_size;
    for (size_t slot = 0; slot < c->slots.count; slot++) {
        const uint64_t *coalition = fds_plan_coalition(c->slots.plan, c->slots.first[slot]);
        uint32_t number;
        if (!fds__reuse_coalition(map, players, coalition, c->bits) ||
            !fds__slot_map_find(&c->index, fds_coalition_id(c->bits, map->from_players), &number))
            continue;
        c->kept++;
        if (c->is_good[slot])
            continue;
        TRY(fds__file_read_at(&c->from, c->record, size, fds__record_offset(&c->old, number), err));
        fds__put64(c->record, fds_coalition_id(coalition, players));
        fds__record_seal(c->record, size);
        TRY(fds__file_write_at(&c->to, c->record, size, fds__record_offset(&c->form, slot), err));
        TRY(fds__report(events, "reuse", "kept sub-models", slot + 1, c->slots.count, start_s,
                        err));
    }
    return fds__file_sync(&c->to, err);
}

static fds_status merge(copier *c, const char *path, const char *from, const fds_utility *utility,
                        const fds_plan *plan, const fds__reuse *map, const fds_events *events,
                        fds_error *err) {
    const fds_net *net = fds__utility_network(utility);
    TRY(fds__lock_source(from, from, &c->from, err)); /* a bank is its own lock */
    TRY(fds__bank_slots_init(&c->slots, net, plan, err));
    TRY(fds__bank_form(net, &c->slots, fds_checksum(utility->text, strlen(utility->text)), &c->form,
                       err));
    TRY(fds__bank_read_form(&c->from, &c->old, err));
    if (!is_same_network(c))
        return FDS_OK;
    c->old.take = note_old;
    c->form.take = note_new;
    c->old.context = c->form.context = c;
    TRY(fds__record_read_all(&c->from, &c->old, events, err));
    TRY(RESERVE(c->is_good, c->slots.count, 1, err));
    TRY(RESERVE(c->bits, fds_coalition_words(map->from_players), 1, err));
    TRY(RESERVE(c->record, c->form.record_size, 1, err));
    TRY(fds__file_open(&c->to, path, FDS__ACCESS_CREATE, err));
    TRY(fds__file_lock(&c->to, path, err));
    TRY(fds__record_repair(&c->to, &c->form, events, err));
    return copy(c, map, events, err);
}

fds_status fds__bank_reuse(const char *path, const char *from, const fds_utility *utility,
                           const fds_plan *plan, const fds__reuse *map, const fds_events *events,
                           size_t *records, size_t *kept, fds_error *err) {
    copier c = {.slots = {0}};
    *records = *kept = 0;
    if (!fds__path_exists(from))
        return FDS_OK;
    c.from.fd = c.to.fd = -1;
    fds_status status = merge(&c, path, from, utility, plan, map, events, err);
    *records = c.index.count;
    *kept = c.kept;
    fds__file_close(&c.from);
    fds__file_close(&c.to);
    fds__slot_map_free(&c.index);
    fds__bank_slots_free(&c.slots);
    fds__free(c.is_good);
    fds__free(c.bits);
    fds__free(c.record);
    return status;
}

/* ---- more coalitions of the same run ---- */

/* Whether the bank is of another plan. */
static fds_status is_of_other_plan(const char *path, const fds_utility *utility,
                                   const fds_plan *plan, bool *is_other, fds_error *err) {
    fds__file file;
    fds__bank_slots slots;
    fds__record_form form, right;
    TRY(fds__bank_slots_init(&slots, fds__utility_network(utility), plan, err));
    fds_status status = fds__bank_form(fds__utility_network(utility), &slots, 0, &right, err);
    if (status == FDS_OK &&
        (status = fds__file_open(&file, path, FDS__ACCESS_READ, err)) == FDS_OK) {
        status = fds__bank_read_form(&file, &form, err);
        fds__file_close(&file);
    }
    *is_other = status == FDS_OK && form.records &&
                memcmp(form.header + FDS__BANK_PLAN, right.header + FDS__BANK_PLAN, 8) != 0;
    fds__bank_slots_free(&slots);
    return status;
}

fds_status fds__bank_extend(const char *path, const fds_utility *utility, const fds_plan *plan,
                            const fds_events *events, fds_error *err) {
    const size_t n = fds_plan_players(plan);
    char earlier[FDS__PATH_MAX];
    OWNED uint32_t *same = NULL;
    bool is_other = false;
    size_t records, kept;
    if (snprintf(earlier, sizeof earlier, "%s.earlier", path) >= (int)sizeof earlier)
        return fds__fail(err, FDS_ERR_USAGE, "path too long: %.100s...", path);
    if (!fds__path_exists(earlier)) {
        if (fds__path_exists(path))
            TRY(is_of_other_plan(path, utility, plan, &is_other, err));
        if (!is_other)
            return FDS_OK;
        TRY(fds__file_rename(path, earlier, err));
    }
    TRY(RESERVE(same, n, 1, err));
    for (size_t p = 0; p < n; p++)
        same[p] = (uint32_t)p;
    const fds__reuse map = {.players = same, .from_players = n};
    TRY(fds__bank_reuse(path, earlier, utility, plan, &map, events, &records, &kept, err));
    return fds__file_remove(earlier, err);
}
