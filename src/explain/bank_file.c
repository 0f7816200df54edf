/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of a bank: the weights of every sub-model of a plan. All numbers little-endian.
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
 *     56  8  checksum of the value function's parameters
 *     64  8  checksum of bytes 0 to 63
 *   records, each of the same size, a multiple of 8, one for each different coalition of the plan
 *   in its order
 *      0  8  id of the coalition
 *      8     weights, f16, in the network's order
 *            zeros up to a multiple of 8
 *         8  checksum of the record's bytes before it
 *
 * Checksums are XXH3, 64 bits. Records are written in any order while sub-models are trained, each
 * to its own place. What is missing or damaged, for whatever reason, is trained again by the next
 * filling: the bytes in the end are the same.
 */
#include "explain/bank.h"

#include <math.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "banks are written as memory is");

#define MAGIC "fds-bank"
#define VERSION 1u
#define MOST_BYTES ((size_t)64 << 30)

static void put32(uint8_t *at, size_t value) { memcpy(at, &(uint32_t){(uint32_t)value}, 4); }
static void put64(uint8_t *at, uint64_t value) { memcpy(at, &value, sizeof value); }
static uint64_t get64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* ---- slots ---- */

fds_status fds__bank_slots_create(const fds_net *net, const fds_plan *plan, fds__bank_slots *out,
                                  fds_error *err) {
    size_t rows = fds_plan_rows(plan), size;
    fds__bank_slots s = {.weights = net->weights,
                         .record_size = 8 + (2 * net->weights + 7) / 8 * 8 + 8};
    if (rows > FDS__MAX_ROWS || !fds__mul(rows, s.record_size, &size) || size > MOST_BYTES)
        return fds__fail(err, FDS_ERR_LIMIT,
                         "%zu sub-models of %zu weights are too many to keep: at most %zu GiB",
                         rows, net->weights, MOST_BYTES >> 30);
    s.of_row = fds__alloc_zero(rows, sizeof *s.of_row);
    s.first = fds__alloc_zero(rows, sizeof *s.first);
    s.ids = fds__alloc_zero(rows, sizeof *s.ids);
    fds_status status = s.of_row && s.first && s.ids ? fds__slot_map_reserve(&s.index, rows, err)
                                                     : fds__fail_nomem(err, rows * sizeof *s.ids);
    if (status != FDS_OK) {
        fds__bank_slots_free(&s);
        return status;
    }
    for (size_t row = 0; row < rows; row++) {
        uint64_t id = fds_coalition_id(fds_plan_coalition(plan, row), fds_plan_players(plan));
        s.of_row[row] = (uint32_t)s.count;
        if (!fds__slot_map_add(&s.index, id, (uint32_t)s.count)) {
            fds__slot_map_find(&s.index, id, &s.of_row[row]);
            continue;
        }
        s.first[s.count] = (uint32_t)row;
        s.ids[s.count++] = id;
    }
    *out = s;
    return FDS_OK;
}

void fds__bank_slots_free(fds__bank_slots *slots) {
    fds__free(slots->of_row);
    fds__free(slots->first);
    fds__free(slots->ids);
    fds__slot_map_free(&slots->index);
    *slots = (fds__bank_slots){0};
}

static uint64_t offset_of(const fds__bank_slots *slots, size_t slot) {
    return FDS__BANK_HEADER + (uint64_t)slot * slots->record_size;
}

/* ---- header ---- */

static fds_status make_header(const fds_net *net, const fds_plan *plan,
                              const fds__bank_slots *slots, uint64_t parameters, uint8_t *header,
                              fds_error *err) {
    size_t length = strlen(net->text), words = fds_coalition_words(fds_plan_players(plan));
    uint8_t *about = fds__alloc(length + 16);
    if (!about)
        return fds__fail_nomem(err, length + 16);
    memcpy(about, net->text, length);
    put32(about + length, net->input.channels);
    put32(about + length + 4, net->input.height);
    put32(about + length + 8, net->input.width);
    put32(about + length + 12, net->classes);
    memcpy(header, MAGIC, 8);
    put32(header + 8, VERSION);
    put32(header + 12, fds_plan_players(plan));
    put64(header + 16, slots->weights);
    put64(header + 24, slots->record_size);
    put64(header + 32, slots->count);
    put64(header + 40, fds_checksum(about, length + 16));
    put64(header + 48, fds_checksum(plan->bits, fds_plan_rows(plan) * words * sizeof *plan->bits));
    put64(header + 56, parameters);
    put64(header + 64, fds_checksum(header, 64));
    fds__free(about);
    return FDS_OK;
}

/* FDS_ERR_CORRUPT only for a header that is damaged. */
static fds_status check_header(const char *path, const uint8_t *header, const uint8_t *right,
                               fds_error *err) {
    static const struct {
        int first, size;
        const char *other;
    } parts[] = {
        {40, 8, "of another network"},
        {12, 4, "of another number of players"},
        {48, 8, "of other coalitions"},
        {56, 8, "trained in another way or on other samples"},
        {0, FDS__BANK_HEADER, "laid out in another way"},
    };
    if (memcmp(header, MAGIC, 8) != 0)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s is not a bank of sub-models: it does not begin with \"" MAGIC "\"",
                         path);
    if (get64(header + 64) != fds_checksum(header, 64))
        return fds__fail(
            err, FDS_ERR_CORRUPT,
            "%s: byte 64: the header's checksum does not agree; run the same fit again "
            "to repair it",
            path);
    if (memcmp(header + 8, right + 8, 4) != 0)
        return fds__fail(err, FDS_ERR_UNSUPPORTED,
                         "%s: byte 8: a bank of another version, this program has version %u", path,
                         VERSION);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (memcmp(header + parts[i].first, right + parts[i].first, (size_t)parts[i].size) != 0)
            return fds__fail(err, FDS_ERR_USAGE,
                             "%s: byte %d: it holds sub-models %s than asked for; use another file",
                             path, parts[i].first, parts[i].other);
    return FDS_OK;
}

/* ---- records ---- */

static fds_status write_record(const fds__bank_slots *slots, size_t slot, const float *weights,
                               uint8_t *record, fds_error *err) {
    size_t end = slots->record_size - 8;
    put64(record, slots->ids[slot]);
    put64(record + end - 8, 0); /* what of it is no weight is padding */
    for (size_t i = 0; i < slots->weights; i++) {
        uint16_t half = fds__half_from_float(weights[i]);
        if ((half & 0x7c00) == 0x7c00)
            return fds__fail(err, FDS_ERR_DIVERGED,
                             "weight %zu of a sub-model is %g, too large to be kept in 16 bits", i,
                             (double)weights[i]);
        memcpy(record + 8 + 2 * i, &half, 2);
    }
    put64(record + end, fds_checksum(record, end));
    return FDS_OK;
}

static fds__found check_record(const fds__bank_slots *slots, size_t slot, const uint8_t *record) {
    size_t end = slots->record_size - 8;
    if (get64(record) == 0 && get64(record + end) == 0)
        return FDS__FOUND_EMPTY;
    if (get64(record + end) != fds_checksum(record, end))
        return FDS__FOUND_DAMAGED;
    return get64(record) == slots->ids[slot] ? FDS__FOUND_GOOD : FDS__FOUND_FOREIGN;
}

/* ---- reading ---- */

typedef struct {
    const fds__bank_slots *slots;
    const uint32_t *order;
    fds__file *files;  /* one a worker */
    uint8_t **records; /* one a worker: (16, record_size) */
    uint16_t *groups;
} reader;

/* A group of 16: lanes without a sub-model stay 0. */
static fds_status read_group(void *context, size_t job, unsigned worker, fds_error *err) {
    reader *r = context;
    const fds__bank_slots *s = r->slots;
    fds__file *file = &r->files[worker];
    uint8_t *records = r->records[worker];
    size_t first = job * FDS__MANY_NETS, count = MIN(s->count - first, (size_t)FDS__MANY_NETS);
    TRY(fds__file_read_at(file, records, count * s->record_size, offset_of(s, first), err));
    for (size_t i = 0; i < count; i++) {
        fds__found found = check_record(s, first + i, records + i * s->record_size);
        unsigned long long at = offset_of(s, first + i);
        if (found == FDS__FOUND_FOREIGN)
            return fds__fail(err, FDS_ERR_USAGE,
                             "%s: record %zu (byte %llu) is of another coalition than the plan's",
                             file->path, first + i, at);
        if (found != FDS__FOUND_GOOD)
            return fds__fail(err, FDS_ERR_CORRUPT,
                             "%s: record %zu (byte %llu) is %s; run the same fit again to train it "
                             "anew",
                             file->path, first + i, at,
                             found == FDS__FOUND_EMPTY ? "missing" : "damaged");
    }
    uint16_t *to = r->groups + job * s->weights * FDS__MANY_NETS;
    const uint8_t *from = records + 8;
    for (size_t w = 0; w < s->weights; w++, to += FDS__MANY_NETS)
        for (size_t i = 0; i < count; i++)
            memcpy(to + i, from + i * s->record_size + 2 * (size_t)r->order[w], 2);
    return FDS_OK;
}

static fds_status check_file(fds__file *file, const fds_net *net, const fds_plan *plan,
                             const fds__bank_slots *slots, fds_error *err) {
    uint8_t header[FDS__BANK_HEADER], right[FDS__BANK_HEADER];
    uint64_t size, records, wanted = offset_of(slots, slots->count);
    TRY(fds__file_size(file, &size, err));
    if (size < sizeof header)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: %llu bytes are too few for a bank of sub-models",
                         file->path, (unsigned long long)size);
    TRY(fds__file_read_at(file, header, sizeof header, 0, err));
    TRY(make_header(net, plan, slots, 0, right, err));
    /* the plan may be the beginning of that which was filled for: its records tell */
    memcpy(right + 32, header + 32, 8);
    memcpy(right + 48, header + 48, 24);
    TRY(check_header(file->path, header, right, err));
    records = get64(header + 32);
    if (records < slots->count)
        return fds__fail(err, FDS_ERR_USAGE, "%s holds %llu sub-models, the plan has %zu",
                         file->path, (unsigned long long)records, slots->count);
    if (size < wanted)
        return fds__fail(err, FDS_ERR_CORRUPT,
                         "%s has %llu bytes, %llu are needed; run the same fit again to repair it",
                         file->path, (unsigned long long)size, (unsigned long long)wanted);
    return FDS_OK;
}

fds_status fds__bank_read(const char *path, const fds_net *net, const fds_plan *plan,
                          const fds__bank_slots *slots, const uint32_t *order, unsigned threads,
                          uint16_t *groups, fds_error *err) {
    size_t jobs = (slots->count + FDS__MANY_NETS - 1) / FDS__MANY_NETS;
    unsigned workers = fds__pool_workers(threads, jobs);
    reader r = {.slots = slots, .order = order, .groups = groups};
    r.files = fds__alloc_zero(workers, sizeof *r.files);
    r.records = fds__alloc_zero(workers, sizeof *r.records);
    fds_status status = r.files && r.records ? FDS_OK : fds__fail_nomem(err, sizeof *r.files);
    for (unsigned i = 0; r.files && i < workers; i++)
        r.files[i].fd = -1;
    for (unsigned i = 0; i < workers && status == FDS_OK; i++) {
        r.records[i] = fds__alloc_aligned(FDS__MANY_NETS * slots->record_size);
        status = r.records[i] ? fds__file_open(&r.files[i], path, FDS__ACCESS_READ, err)
                              : fds__fail_nomem(err, FDS__MANY_NETS * slots->record_size);
    }
    if (status == FDS_OK)
        status = check_file(&r.files[0], net, plan, slots, err);
    if (status == FDS_OK)
        status = fds__pool_run(workers, jobs, read_group, &r, "read", "sub-models", NULL, err);
    for (unsigned i = 0; r.files && r.records && i < workers; i++) {
        fds__file_close(&r.files[i]);
        fds__free(r.records[i]);
    }
    fds__free(r.files);
    fds__free(r.records);
    return status;
}

/* ---- filling ---- */

/* One worker's own. */
typedef struct {
    fds__file file;
    uint8_t *record; /* (record_size) */
    float *probs;    /* (inputs, classes): answers that the table has already */
} hand;

typedef struct {
    const char *path;
    const fds_utility *value;
    const fds_plan *plan;
    fds__bank_slots slots;
    bool *is_good; /* (slots) */
    uint32_t *todo;
    hand *hands; /* (workers of the value function) */
} filler;

static size_t count_good(const filler *f) {
    size_t count = 0;
    for (size_t i = 0; i < f->slots.count; i++)
        count += f->is_good[i];
    return count;
}

/* Makes the header good, and the file no longer than it should be. */
static fds_status begin_file(const filler *f, const fds_net *net, fds__file *file, uint64_t *size,
                             const fds_events *events, fds_error *err) {
    uint8_t header[FDS__BANK_HEADER] = {0}, right[FDS__BANK_HEADER];
    uint64_t end = offset_of(&f->slots, f->slots.count);
    const char *text = f->value->text;
    TRY(make_header(net, f->plan, &f->slots, fds_checksum(text, strlen(text)), right, err));
    TRY(fds__file_size(file, size, err));
    size_t there = (size_t)MIN(*size, (uint64_t)sizeof header);
    if (there)
        TRY(fds__file_read_at(file, header, there, 0, err));
    bool is_begun = there < sizeof header && memcmp(header, right, there) == 0; /* or new */
    fds_status status = is_begun ? FDS_ERR_CORRUPT : check_header(file->path, header, right, err);
    if (status != FDS_OK && status != FDS_ERR_CORRUPT)
        return status;
    if (status == FDS_ERR_CORRUPT) {
        if (!is_begun)
            fds__log(events, FDS_LOG_WARNING, "%s: the header is damaged; written again",
                     file->path);
        TRY(fds__file_write_at(file, right, sizeof right, 0, err));
        *size = MAX(*size, (uint64_t)sizeof right);
    }
    if (*size <= end)
        return FDS_OK;
    fds__log(events, FDS_LOG_WARNING, "%s: %llu bytes after the last record; cut off", file->path,
             (unsigned long long)(*size - end));
    *size = end;
    return fds__file_truncate(file, end, err);
}

/* Which records are whole. */
static fds_status find_good(filler *f, fds__file *file, uint64_t size, const fds_events *events,
                            fds_error *err) {
    const fds__bank_slots *s = &f->slots;
    size_t there = (size_t)((size - FDS__BANK_HEADER) / s->record_size);
    for (size_t i = 0; i < there; i++) {
        uint8_t *record = f->hands[0].record;
        TRY(fds__file_read_at(file, record, s->record_size, offset_of(s, i), err));
        fds__found found = check_record(s, i, record);
        f->is_good[i] = found == FDS__FOUND_GOOD;
        if (found == FDS__FOUND_DAMAGED || found == FDS__FOUND_FOREIGN)
            fds__log(events, FDS_LOG_WARNING,
                     "%s: record %zu (byte %llu) is damaged; trained again", file->path, i,
                     (unsigned long long)offset_of(s, i));
    }
    return FDS_OK;
}

static fds_status check_disk(const filler *f, fds_error *err) {
    uint64_t disk_free, needed = (f->slots.count - count_good(f)) * (uint64_t)f->slots.record_size;
    TRY(fds__disk_free(f->path, &disk_free, err));
    if (needed > disk_free)
        return fds__fail(err, FDS_ERR_IO,
                         "%s: %zu sub-models need %llu more bytes, the disk has %llu left: free "
                         "some space, or do not keep the sub-models",
                         f->path, f->slots.count, (unsigned long long)needed,
                         (unsigned long long)disk_free);
    return FDS_OK;
}

/* A sub-model was trained: into its place, unless that is filled. */
static fds_status take(void *context, unsigned worker, const uint64_t *coalition,
                       const float *weights, fds_error *err) {
    filler *f = context;
    hand *h = &f->hands[worker];
    uint32_t slot;
    if (!fds__slot_map_find(&f->slots.index, fds_coalition_id(coalition, f->value->players),
                            &slot) ||
        f->is_good[slot])
        return FDS_OK;
    TRY(write_record(&f->slots, slot, weights, h->record, err));
    TRY(fds__file_write_at(&h->file, h->record, f->slots.record_size, offset_of(&f->slots, slot),
                           err));
    f->is_good[slot] = true;
    return FDS_OK;
}

/* For a sub-model whose answers are in the table, but whose weights are lost. */
static fds_status train_again(void *context, size_t job, unsigned worker, fds_error *err) {
    filler *f = context;
    const uint64_t *coalition = fds_plan_coalition(f->plan, f->slots.first[f->todo[job]]);
    return fds_utility_eval(f->value, worker, coalition, f->hands[worker].probs, err);
}

static fds_status train_missing(filler *f, unsigned threads, const fds_events *events,
                                fds_error *err) {
    size_t count = 0;
    for (size_t i = 0; i < f->slots.count; i++)
        if (!f->is_good[i])
            f->todo[count++] = (uint32_t)i;
    if (!count)
        return FDS_OK;
    return fds__pool_run(MIN(fds__pool_workers(threads, count), f->value->workers), count,
                         train_again, f, "bank", "sub-models", events, err);
}

static fds_status hire(filler *f, fds_error *err) {
    size_t answers = f->value->inputs * f->value->classes;
    f->is_good = fds__alloc_zero(f->slots.count, sizeof *f->is_good);
    f->todo = fds__alloc_zero(f->slots.count, sizeof *f->todo);
    f->hands = fds__alloc_zero(f->value->workers, sizeof *f->hands);
    if (!f->is_good || !f->todo || !f->hands)
        return fds__fail_nomem(err, f->value->workers * sizeof *f->hands);
    for (unsigned i = 0; i < f->value->workers; i++)
        f->hands[i].file.fd = -1;
    for (unsigned i = 0; i < f->value->workers; i++) {
        hand *h = &f->hands[i];
        h->record = fds__alloc_aligned(f->slots.record_size);
        h->probs = fds__alloc_zero(answers, sizeof *h->probs);
        if (!h->record || !h->probs)
            return fds__fail_nomem(err, f->slots.record_size);
        TRY(fds__file_open(&h->file, f->path, FDS__ACCESS_UPDATE, err));
    }
    return FDS_OK;
}

static fds_status dismiss(filler *f, fds_status status, fds_error *err) {
    bool is_disk_full = false;
    for (unsigned i = 0; f->hands && i < f->value->workers; i++) {
        is_disk_full |= f->hands[i].file.is_disk_full;
        fds__file_close(&f->hands[i].file);
        fds__free(f->hands[i].record);
        fds__free(f->hands[i].probs);
    }
    if (status == FDS_ERR_IO && is_disk_full)
        status = fds__fail(err, FDS_ERR_IO,
                           "%s: the disk is full: %zu of %zu sub-models are kept; free some space "
                           "and run the same command again",
                           f->path, count_good(f), f->slots.count);
    fds__free(f->hands);
    fds__free(f->is_good);
    fds__free(f->todo);
    fds__bank_slots_free(&f->slots);
    return status;
}

static fds_status fill(filler *f, const fds_net *net, fds__file *file, fds_table *table,
                       unsigned threads, const fds_events *events, fds_error *err) {
    uint64_t size;
    TRY(fds__bank_slots_create(net, f->plan, &f->slots, err));
    TRY(hire(f, err));
    TRY(begin_file(f, net, file, &size, events, err));
    TRY(find_good(f, file, size, events, err));
    TRY(check_disk(f, err));
    fds__utility_set_sink(f->value, &(fds__sink){take, f});
    fds_status status = fds_table_fill(table, f->plan, threads, events, err);
    if (status == FDS_OK)
        status = train_missing(f, threads, events, err);
    fds__utility_set_sink(f->value, NULL);
    fds_status synced = fds__file_sync(file, status == FDS_OK ? err : NULL);
    return status == FDS_OK ? synced : status;
}

/* So that a new file outlives a loss of power. */
static fds_status sync_folder(const char *path, fds_error *err) {
    char dir[FDS__PATH_MAX];
    snprintf(dir, sizeof dir, "%s", path);
    char *slash = strrchr(dir, '/');
    if (slash)
        slash[slash == dir] = 0;
    return fds__dir_sync(slash ? dir : ".", err);
}

fds_status fds__bank_fill(const char *path, const fds_utility *value, fds_table *table,
                          const fds_plan *plan, unsigned threads, const fds_events *events,
                          fds_error *err) {
    const fds_net *net = fds__utility_network(value);
    if (!net)
        return fds__fail(err, FDS_ERR_UNSUPPORTED,
                         "only sub-models that are networks can be kept: use \"retrain\" or "
                         "\"retrain:K\"");
    if (fds__table_utility(table) != value)
        return fds__fail(err, FDS_ERR_USAGE, "%s: the table is of another value function", path);
    if (fds_plan_players(plan) != value->players)
        return fds__fail(err, FDS_ERR_SHAPE,
                         "the plan is of %zu players, the value function of %zu",
                         fds_plan_players(plan), value->players);
    filler f = {.path = path, .value = value, .plan = plan};
    fds__file file;
    TRY(fds__file_open(&file, path, FDS__ACCESS_CREATE, err));
    fds_status status = fds__file_lock(&file, path, err);
    if (status == FDS_OK)
        status = sync_folder(path, err);
    if (status == FDS_OK)
        status = fill(&f, net, &file, table, threads, events, err);
    status = dismiss(&f, status, err);
    fds__file_close(&file);
    return status;
}
