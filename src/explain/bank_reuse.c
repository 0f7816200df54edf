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

/* Finds the records of the other bank, which must be of the run's parameters. */
static fds_status read_old(copier *c, const char *from, uint64_t parameters,
                           const fds_events *events, fds_error *err) {
    TRY(fds__lock_source(from, from, &c->from, err)); /* a bank is its own lock */
    TRY(fds__bank_read_form(&c->from, &c->old, err));
    if (!is_same_network(c))
        return FDS_OK;
    if (fds__get64(c->old.header + FDS__BANK_PARAMETERS) != parameters)
        return fds__fail(err, FDS_ERR_CORRUPT,
                         "%s: byte %d: its sub-models were trained in another way or on other "
                         "samples than the run says",
                         from, FDS__BANK_PARAMETERS);
    c->old.take = note_old;
    c->old.context = c;
    return fds__record_read_all(&c->from, &c->old, events, err);
}

/* No answer depends on it: what is damaged can be trained again. */
static fds_status try_old(copier *c, const char *from, uint64_t parameters,
                          const fds_events *events, fds_error *err) {
    fds_error why;
    fds_status status = read_old(c, from, parameters, events, &why);
    if (status == FDS_OK)
        return FDS_OK;
    if (status != FDS_ERR_CORRUPT && status != FDS_ERR_FORMAT)
        return fds__fail(err, status, "%s", why.text);
    fds__log(events, FDS_LOG_WARNING, "%s; the sub-models to keep are trained again", why.text);
    fds__slot_map_free(&c->index);
    c->index = (fds__slot_map){0};
    return FDS_OK;
}

static fds_status merge(copier *c, const char *path, const char *from, uint64_t parameters,
                        const fds_utility *utility, const fds_plan *plan, const fds__reuse *map,
                        const fds_events *events, fds_error *err) {
    const fds_net *net = fds__utility_network(utility);
    TRY(fds__bank_slots_init(&c->slots, net, plan, err));
    TRY(fds__bank_form(net, &c->slots, fds_checksum(utility->text, strlen(utility->text)), &c->form,
                       err));
    TRY(try_old(c, from, parameters, events, err));
    if (!c->index.count)
        return FDS_OK;
    c->form.take = note_new;
    c->form.context = c;
    TRY(RESERVE(c->is_good, c->slots.count, 1, err));
    TRY(RESERVE(c->bits, fds_coalition_words(map->from_players), 1, err));
    TRY(RESERVE(c->record, c->form.record_size, 1, err));
    TRY(fds__file_open(&c->to, path, FDS__ACCESS_CREATE, err));
    TRY(fds__file_lock(&c->to, path, err));
    TRY(fds__record_repair(&c->to, &c->form, events, err));
    return copy(c, map, events, err);
}

fds_status fds__bank_reuse(const char *path, const char *from, uint64_t parameters,
                           const fds_utility *utility, const fds_plan *plan, const fds__reuse *map,
                           const fds_events *events, size_t *records, size_t *kept,
                           fds_error *err) {
    copier c = {.slots = {0}};
    *records = *kept = 0;
    if (!fds__path_exists(from))
        return FDS_OK;
    c.from.fd = c.to.fd = -1;
    fds_status status = merge(&c, path, from, parameters, utility, plan, map, events, err);
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

/* Whether the file is a bank of another plan of the same sub-models. A fill repairs a damaged header, and
 * refuses everything else. */
static fds_status is_of_other_plan(const char *path, const fds__record_form *right, bool *is_other,
                                   fds_error *err) {
    fds__file file;
    uint8_t header[FDS__BANK_HEADER];
    uint64_t size;
    TRY(fds__file_open(&file, path, FDS__ACCESS_READ, err));
    fds_status status = fds__file_size(&file, &size, err);
    if (status == FDS_OK && size >= sizeof header) {
        status = fds__file_read_at(&file, header, sizeof header, 0, err);
        *is_other =
            status == FDS_OK && fds__record_check(header, sizeof header) == FDS__FOUND_GOOD &&
            memcmp(header, right->header, 16) == 0 && /* a bank, of so many players */
            memcmp(header + 40, right->header + 40, 8) == 0 &&
            memcmp(header + FDS__BANK_PLAN, right->header + FDS__BANK_PLAN, 8) != 0 &&
            memcmp(header + FDS__BANK_PARAMETERS, right->header + FDS__BANK_PARAMETERS, 8) == 0;
    }
    fds__file_close(&file);
    return status;
}

static fds_status make_form(const fds_utility *utility, const fds_plan *plan, uint64_t parameters,
                            fds__record_form *out, fds_error *err) {
    const fds_net *net = fds__utility_network(utility);
    fds__bank_slots slots;
    fds_status status = fds__bank_slots_init(&slots, net, plan, err);
    if (status == FDS_OK)
        status = fds__bank_form(net, &slots, parameters, out, err);
    fds__bank_slots_free(&slots);
    return status;
}

fds_status fds__bank_extend(const char *path, const fds_utility *utility, const fds_plan *plan,
                            const fds_events *events, fds_error *err) {
    const size_t n = fds_plan_players(plan);
    char earlier[FDS__PATH_MAX];
    OWNED uint32_t *same = NULL;
    const uint64_t parameters = fds_checksum(utility->text, strlen(utility->text));
    bool is_other = false;
    size_t records, kept;
    if (snprintf(earlier, sizeof earlier, "%s.earlier", path) >= (int)sizeof earlier)
        return fds__fail(err, FDS_ERR_USAGE, "path too long: %.100s...", path);
    if (!fds__path_exists(earlier)) {
        fds__record_form right;
        TRY(make_form(utility, plan, parameters, &right, err));
        if (fds__path_exists(path))
            TRY(is_of_other_plan(path, &right, &is_other, err));
        if (!is_other)
            return FDS_OK;
        TRY(fds__file_rename(path, earlier, err));
    }
    TRY(RESERVE(same, n, 1, err));
    for (size_t p = 0; p < n; p++)
        same[p] = (uint32_t)p;
    const fds__reuse map = {.players = same, .from_players = n};
    TRY(fds__bank_reuse(path, earlier, parameters, utility, plan, &map, events, &records, &kept,
                        err));
    return fds__file_remove(earlier, err);
}
