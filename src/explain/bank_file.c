/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of a bank: the weights of every sub-model of a plan. It is a file of records as
 * utility/record.c specifies them, with one record for each different coalition of the plan, in its
 * order.
 *
 *   header, 72 bytes
 *      0  8  "fds-bank"
 *      8  4  version, 1
 *     12  4  players
 *     16  8  weights of a sub-model
 *     24  8  size of a record
 *     32  8  records
 *     40  8  checksum of the network: its text, then channels, height, width and classes (4 bytes
 *            each)
 *     48  8  checksum of the plan's coalitions, W words each
 *     56  8  checksum of the utility function's parameters
 *     64  8  checksum of bytes 0 to 63
 *   record
 *      0  8  id of the coalition
 *      8     weights, f16, in the network's order
 *            zeros up to a multiple of 8
 *         8  checksum of the bytes before it
 */
#include "explain/run.h"

#include <math.h>
#include <string.h>

#define MAGIC "fds-bank"
#define MOST_BYTES ((size_t)64 << 30)

/* ---- slots ---- */

fds_status fds__bank_slots_init(fds__bank_slots *out, const fds_net *net, const fds_plan *plan,
                                fds_error *err) {
    size_t rows = fds_plan_rows(plan), size;
    *out = (fds__bank_slots){.plan = plan,
                             .weights = net->weights,
                             .record_size = 8 + (2 * net->weights + 7) / 8 * 8 + 8};
    if (rows > FDS__MAX_ROWS || !fds__mul(rows, out->record_size, &size) || size > MOST_BYTES)
        return fds__fail(err, FDS_ERR_LIMIT,
                         "%zu sub-models of %zu weights are too many to keep: at most %zu GiB",
                         rows, net->weights, MOST_BYTES >> 30);
    TRY(RESERVE(out->of_row, rows, 1, err));
    TRY(RESERVE(out->first, rows, 1, err));
    TRY(fds__slot_map_number(&out->index, plan, out->of_row, err));
    for (size_t row = 0; row < rows; row++)
        if (out->of_row[row] == out->count)
            out->first[out->count++] = (uint32_t)row;
    return FDS_OK;
}

void fds__bank_slots_free(fds__bank_slots *slots) {
    fds__free(slots->of_row);
    fds__free(slots->first);
    fds__slot_map_free(&slots->index);
}

static const uint64_t *coalition_of(const fds__bank_slots *slots, size_t slot) {
    assert(slot < slots->count);
    return fds_plan_coalition(slots->plan, slots->first[slot]);
}

static uint64_t id_of(const fds__bank_slots *slots, size_t slot) {
    return fds_coalition_id(coalition_of(slots, slot), fds_plan_players(slots->plan));
}

static uint64_t offset_of(const fds__bank_slots *slots, size_t slot) {
    return FDS__BANK_HEADER + (uint64_t)slot * slots->record_size;
}

/* ---- header ---- */

const char *fds__bank_difference(const uint8_t *first, const uint8_t *second, int *at) {
    static const struct {
        int first, size;
        const char *other;
    } parts[] = {
        {40, 8, "of another network"},
        {12, 4, "of another number of players"},
        {48, 8, "of other coalitions"},
        {56, 8, "trained in another way or on other samples"},
        {0, FDS__BANK_HEADER, "in another layout"},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        *at = parts[i].first;
        if (memcmp(first + *at, second + *at, (size_t)parts[i].size) != 0)
            return parts[i].other;
    }
    return NULL;
}

fds_status fds__bank_permit(const fds__record_form *form, const char *path, const uint8_t *header,
                            fds__found found, fds_error *err) {
    if (memcmp(header, MAGIC, 8) != 0)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s is not a bank of sub-models: it does not begin with \"" MAGIC "\"",
                         path);
    if (found == FDS__FOUND_DAMAGED)
        return FDS_OK;
    if (memcmp(header + 8, form->header + 8, 4) != 0)
        return fds__fail(err, FDS_ERR_UNSUPPORTED,
                         "%s: byte 8: a bank of another version; this program reads version %d",
                         path, FDS__BANK_VERSION);
    int at;
    const char *other = fds__bank_difference(form->header, header, &at);
    return other
               ? fds__fail(err, FDS_ERR_USAGE,
                           "%s: byte %d: its sub-models are %s; use another file", path, at, other)
               : FDS_OK;
}

fds_status fds__bank_form(const fds_net *net, const fds__bank_slots *slots, uint64_t parameters,
                          fds__record_form *form, fds_error *err) {
    const fds_plan *plan = slots->plan;
    size_t length = strlen(net->text);
    uint8_t *about = fds__alloc(length + 16), *header = form->header;
    if (!about)
        return fds__fail_nomem(err, length + 16);
    *form = (fds__record_form){.header_size = FDS__BANK_HEADER,
                               .record_size = slots->record_size,
                               .records = slots->count,
                               .permit = fds__bank_permit};
    memcpy(about, net->text, length);
    fds__put32(about + length, net->input.channels);
    fds__put32(about + length + 4, net->input.height);
    fds__put32(about + length + 8, net->input.width);
    fds__put32(about + length + 12, net->classes);
    memcpy(header, MAGIC, 8);
    fds__put32(header + 8, FDS__BANK_VERSION);
    fds__put32(header + 12, fds_plan_players(plan));
    fds__put64(header + 16, slots->weights);
    fds__put64(header + 24, slots->record_size);
    fds__put64(header + 32, slots->count);
    fds__put64(header + 40, fds_checksum(about, length + 16));
    fds__put64(header + 48, fds_checksum(plan->bits, fds_plan_rows(plan) * plan->words * 8));
    fds__put64(header + 56, parameters);
    fds__record_seal(header, FDS__BANK_HEADER);
    fds__free(about);
    return FDS_OK;
}

/* ---- records ---- */

static fds_status put_record(const fds__bank_slots *slots, size_t slot, const float *weights,
                             uint8_t *record, fds_error *err) {
    fds__put64(record, id_of(slots, slot));
    fds__put64(record + slots->record_size - 16, 0); /* the padding, if there is any */
    for (size_t i = 0; i < slots->weights; i++) {
        uint16_t half = fds__half_from_float(weights[i]);
        if ((half & 0x7c00) == 0x7c00)
            return fds__fail(err, FDS_ERR_DIVERGED,
                             "weight %zu of a sub-model is %g, too large for 16 bits", i,
                             (double)weights[i]);
        memcpy(record + 8 + 2 * i, &half, 2);
    }
    fds__record_seal(record, slots->record_size);
    return FDS_OK;
}

/* ---- reading ---- */

typedef struct {
    const fds__bank_slots *slots;
    const uint32_t *order;
    fds__file *file;
    uint8_t *records; /* (workers, 16, record_size) */
    uint16_t *groups;
} reader;

/* A group of 16: lanes without a sub-model stay 0. */
static fds_status read_group(void *context, size_t job, unsigned worker, fds_error *err) {
    reader *r = context;
    const fds__bank_slots *s = r->slots;
    fds__file *file = r->file;
    uint8_t *records = r->records + worker * FDS__MANY_NETS * s->record_size;
    size_t first = job * FDS__MANY_NETS, count = MIN(s->count - first, (size_t)FDS__MANY_NETS);
    TRY(fds__file_read_at(file, records, count * s->record_size, offset_of(s, first), err));
    for (size_t i = 0; i < count; i++) {
        const uint8_t *record = records + i * s->record_size;
        fds__found found = fds__record_check(record, s->record_size);
        unsigned long long at = offset_of(s, first + i);
        if (found != FDS__FOUND_GOOD)
            return fds__fail(err, FDS_ERR_CORRUPT,
                             "%s: record %zu (byte %llu) is %s; run the same fit again to repair "
                             "it",
                             file->path, first + i, at,
                             found == FDS__FOUND_EMPTY ? "missing" : "damaged");
        if (fds__get64(record) != id_of(s, first + i))
            return fds__fail(err, FDS_ERR_USAGE,
                             "%s: record %zu (byte %llu) is of a coalition that the plan does not "
                             "have there",
                             file->path, first + i, at);
    }
    uint16_t *to = r->groups + job * s->weights * FDS__MANY_NETS;
    const uint8_t *from = records + 8;
    for (size_t w = 0; w < s->weights; w++, to += FDS__MANY_NETS)
        for (size_t i = 0; i < count; i++)
            memcpy(to + i, from + i * s->record_size + 2 * (size_t)r->order[w], 2);
    return FDS_OK;
}

static fds_status check_file(fds__file *file, const fds__bank_file *what,
                             const fds__bank_slots *slots, fds_error *err) {
    uint8_t header[FDS__BANK_HEADER];
    fds__record_form form;
    uint64_t size, end = offset_of(slots, slots->count);
    TRY(fds__file_size(file, &size, err));
    if (size < sizeof header)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: %llu bytes are too few for a bank of sub-models",
                         file->path, (unsigned long long)size);
    TRY(fds__file_read_at(file, header, sizeof header, 0, err));
    TRY(fds__bank_form(what->net, slots, what->parameters, &form, err));
    /* the file may be of a plan that begins with this one: its records show that */
    memcpy(form.header + 32, header + 32, 8);
    memcpy(form.header + 48, header + 48, 8);
    fds__record_seal(form.header, FDS__BANK_HEADER);
    fds__found found = fds__record_check(header, sizeof header);
    TRY(fds__bank_permit(&form, file->path, header, found, err));
    if (found != FDS__FOUND_GOOD)
        return fds__fail(err, FDS_ERR_CORRUPT,
                         "%s: byte 64: the checksum of the header is wrong; run the same fit again "
                         "to repair it",
                         file->path);
    uint64_t records = fds__get64(header + 32);
    if (records < slots->count)
        return fds__fail(err, FDS_ERR_USAGE, "%s has %llu sub-models, the plan has %zu", file->path,
                         (unsigned long long)records, slots->count);
    if (size < end)
        return fds__fail(
            err, FDS_ERR_CORRUPT,
            "%s ends at byte %llu instead of %llu; run the same fit again to repair it", file->path,
            (unsigned long long)size, (unsigned long long)end);
    return FDS_OK;
}

fds_status fds__bank_read(const fds__bank_file *what, const fds__bank_slots *slots,
                          const uint32_t *order, unsigned threads, uint16_t *groups,
                          fds_error *err) {
    size_t jobs = (slots->count + FDS__MANY_NETS - 1) / FDS__MANY_NETS;
    unsigned workers = fds__pool_workers(threads, jobs);
    size_t bytes = workers * FDS__MANY_NETS * slots->record_size;
    fds__file file;
    TRY(fds__file_open(&file, what->path, FDS__ACCESS_READ, err));
    reader r = {slots, order, &file, fds__alloc(bytes), groups};
    fds_status status =
        r.records ? check_file(&file, what, slots, err) : fds__fail_nomem(err, bytes);
    if (status == FDS_OK)
        status = fds__pool_run(workers, jobs, read_group, &r, "read", "sub-models", NULL, err);
    fds__free(r.records);
    fds__file_close(&file);
    return status;
}

/* ---- filling ---- */

typedef struct {
    const char *path;
    const fds_utility *utility;
    const fds_part *part; /* NULL: all of the plan */
    fds__bank_slots slots;
    bool *is_good; /* (slots) */
    uint32_t *todo;
    fds__record_writer *writers; /* (workers of the utility function) */
} filler;

static size_t count_good(const filler *f) {
    size_t count = 0;
    for (size_t i = 0; i < f->slots.count; i++)
        count += f->is_good[i];
    return count;
}

/* The slots of the part without a good record: todo; the return value is how many. */
static size_t list_missing(filler *f) {
    size_t count = 0;
    for (size_t i = 0; i < f->slots.count; i++)
        if (!f->is_good[i] && fds__part_has(f->part, i))
            f->todo[count++] = (uint32_t)i;
    return count;
}

/* A good record of the file. */
static fds_status find_record(void *context, uint64_t number, const uint8_t *record,
                              const char **fault, fds_error *err) {
    (void)err;
    filler *f = context;
    f->is_good[number] = fds__get64(record) == id_of(&f->slots, (size_t)number);
    *fault = f->is_good[number] ? NULL : FDS__RECORD_DAMAGED;
    return FDS_OK;
}

static fds_status repair(filler *f, const fds_net *net, fds__file *file, const fds_events *events,
                         fds_error *err) {
    fds__record_form form;
    const char *text = f->utility->text;
    TRY(fds__bank_form(net, &f->slots, fds_checksum(text, strlen(text)), &form, err));
    form.take = find_record;
    form.context = f;
    return fds__record_repair(file, &form, events, err);
}

static fds_status check_disk(filler *f, fds_error *err) {
    uint64_t disk_free, bytes = list_missing(f) * (uint64_t)f->slots.record_size;
    TRY(fds__disk_free(f->path, &disk_free, err));
    if (bytes > disk_free)
        return fds__fail(err, FDS_ERR_IO,
                         "%s: %zu sub-models take %llu more bytes, the disk has %llu left: free "
                         "some space, or do not keep the sub-models",
                         f->path, f->slots.count, (unsigned long long)bytes,
                         (unsigned long long)disk_free);
    return FDS_OK;
}

/* Writes a sub-model after its training, unless the file has it. */
static fds_status take(void *context, unsigned worker, const uint64_t *coalition,
                       const float *weights, fds_error *err) {
    filler *f = context;
    fds__record_writer *w = &f->writers[worker];
    uint32_t slot;
    if (!fds__slot_map_find(&f->slots.index, fds_coalition_id(coalition, f->utility->players),
                            &slot) ||
        f->is_good[slot])
        return FDS_OK;
    TRY(put_record(&f->slots, slot, weights, w->record, err));
    return fds__record_writer_put(w, f->slots.record_size, offset_of(&f->slots, slot),
                                  FDS__RECORD_SYNC_S, &f->is_good[slot], err);
}

/* Trains a sub-model whose answers the table has, but whose weights are lost. */
static fds_status train_again(void *context, size_t job, unsigned worker, fds_error *err) {
    filler *f = context;
    return fds_utility_eval(f->utility, worker, coalition_of(&f->slots, f->todo[job]),
                            f->writers[worker].probs, err);
}

static fds_status train_missing(filler *f, unsigned threads, const fds_events *events,
                                fds_error *err) {
    size_t count = list_missing(f);
    if (!count)
        return FDS_OK;
    return fds__pool_run(MIN(fds__pool_workers(threads, count), f->utility->workers), count,
                         train_again, f, "bank", "sub-models", events, err);
}

/* One for each worker, and one for what other ranks train. */
static unsigned writer_count(const filler *f) {
    return f->utility->workers + (fds_ranks_count() > 1);
}

static fds_status prepare(filler *f, fds_error *err) {
    TRY(RESERVE(f->is_good, f->slots.count, 1, err));
    TRY(RESERVE(f->todo, f->slots.count, 1, err));
    TRY(fds__record_writers_create(writer_count(f), f->slots.record_size,
                                   f->utility->inputs * f->utility->classes, &f->writers, err));
    for (unsigned i = 0; i < writer_count(f); i++)
        TRY(fds__record_writer_open(&f->writers[i], f->path, FDS__ACCESS_UPDATE, 0, err));
    return FDS_OK;
}

static fds_status fill(filler *f, const fds_net *net, const fds_plan *plan, fds__file *file,
                       fds_table *table, unsigned threads, const fds_events *events,
                       fds_error *err) {
    TRY(fds__bank_slots_init(&f->slots, net, plan, err));
    TRY(prepare(f, err));
    TRY(repair(f, net, file, events, err));
    TRY(check_disk(f, err));
    fds__utility_set_sink(f->utility, &(fds__sink){take, f});
    fds_status status = f->part ? fds_table_fill_part(table, plan, *f->part, threads, events, err)
                                : fds_table_fill(table, plan, threads, events, err);
    if (status == FDS_OK)
        status = train_missing(f, threads, events, err);
    fds__utility_set_sink(f->utility, NULL);
    fds_status synced = fds__file_sync(file, status == FDS_OK ? err : NULL);
    return status == FDS_OK ? synced : status;
}

static fds_status finish(filler *f, fds_status status, fds_error *err) {
    bool is_disk_full = fds__record_writers_free(f->writers, writer_count(f));
    if (status == FDS_ERR_IO && is_disk_full)
        status = fds__record_fail_full(f->path, count_good(f), f->slots.count, err);
    fds__free(f->is_good);
    fds__free(f->todo);
    fds__bank_slots_free(&f->slots);
    return status;
}

fds_status fds__bank_fill(const char *path, const fds_utility *utility, fds_table *table,
                          const fds_plan *plan, unsigned threads, const fds_events *events,
                          fds_error *err) {
    return fds__bank_fill_part(path, utility, table, plan, NULL, threads, events, err);
}

fds_status fds__bank_fill_part(const char *path, const fds_utility *utility, fds_table *table,
                               const fds_plan *plan, const fds_part *part, unsigned threads,
                               const fds_events *events, fds_error *err) {
    const fds_net *net = fds__utility_network(utility);
    assert(net && fds__table_utility(table) == utility);
    assert(fds_plan_players(plan) == utility->players);
    filler f = {.path = path, .utility = utility, .part = part};
    fds__file file;
    TRY(fds__file_open(&file, path, FDS__ACCESS_CREATE, err));
    fds_status status = fds__file_lock(&file, path, err);
    if (status == FDS_OK)
        status = fill(&f, net, plan, &file, table, threads, events, err);
    status = finish(&f, status, err);
    fds__file_close(&file);
    return status;
}
