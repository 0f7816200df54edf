/* SPDX-License-Identifier: Apache-2.0
 *
 * Computing the coalitions of a plan that a table lacks.
 *
 * Before any work, the missing coalitions, each once and in the plan's order, receive the empty
 * slots in ascending order. A worker then writes each record to its slot, in any order: the bytes
 * in the end are the same for any number of threads. An interrupted fill leaves empty slots; the
 * next one gives them to the same coalitions, since the order is the same.
 *
 * A part computes every k-th of the plan's different coalitions, and writes each to the slot that a
 * fill of an empty table by one process gives it. So the parts of a plan together have the records of
 * that table, and each has holes where those of the others belong.
 *
 * A worker syncs its segment every few seconds, and before it opens another; no worker waits for
 * another. fds__table_sync syncs the last segment of each: at once, or, where many small fills
 * follow each other, after a few seconds.
 */
#include "utility/table.h"

/* A coalition to compute. */
typedef struct {
    uint32_t row, slot;
    bool is_done;
} task;

typedef struct {
    task *tasks;
    size_t count, different; /* tasks; different coalitions in the plan */
    uint64_t end;            /* one more than the highest slot of a task */
    size_t created;          /* segments that do not exist yet */
} work_list;

/* ---- the list of work ---- */

static fds_status list_missing(const fds_table *table, const fds_plan *plan, const fds_part *part,
                               fds__slot_map *seen, work_list *list, fds_error *err) {
    size_t rows = fds_plan_rows(plan), capacity = 0;
    void *tasks = NULL;
    uint32_t unused;
    TRY(fds__slot_map_reserve(seen, rows, err));
    for (size_t row = 0; row < rows; row++) {
        uint64_t id = fds_coalition_id(fds_plan_coalition(plan, row), table->layout.players);
        size_t number = seen->count;
        if (!fds__slot_map_add(seen, id, 0) || !fds__part_has(part, number))
            continue;
        list->different++;
        if (fds__slot_map_find(&table->index, id, &unused))
            continue;
        TRY(fds__grow(&tasks, &capacity, list->count + 1, sizeof(task), err));
        list->tasks = tasks;
        list->tasks[list->count++] = (task){.row = (uint32_t)row, .slot = (uint32_t)number};
    }
    return FDS_OK;
}

/* The slot of a part's record is another coalition's: the table does not begin with this plan. */
static fds_status fail_taken(const fds_table *table, uint64_t slot, fds_error *err) {
    return fds__fail(err, FDS_ERR_CONFLICT,
                     "%s: record %llu is of a coalition that the plan does not have there; compute "
                     "the parts of another plan in another folder",
                     table->dir, (unsigned long long)slot);
}

static fds_status give_slots(const fds_table *table, const fds_part *part, work_list *list,
                             fds_error *err) {
    uint64_t slot = 0, segment = UINT64_MAX;
    for (size_t i = 0; i < list->count; i++, slot++) {
        if (part)
            slot = list->tasks[i].slot;
        if (part && fds__table_is_filled(table, slot))
            return fail_taken(table, slot, err);
        while (fds__table_is_filled(table, slot))
            slot++;
        list->tasks[i].slot = (uint32_t)slot;
        if (segment != slot / table->layout.records) {
            segment = slot / table->layout.records;
            list->created += segment >= table->segments;
        }
    }
    list->end = slot;
    if (list->count && segment >= FDS__MAX_SEGMENTS)
        return fds__fail(err, FDS_ERR_LIMIT,
                         "%s: the plan takes %llu segments, at most %u are allowed", table->dir,
                         (unsigned long long)segment + 1, FDS__MAX_SEGMENTS);
    return FDS_OK;
}

/* The caller frees list->tasks, even after a failure. */
static fds_status list_work(const fds_table *table, const fds_plan *plan, const fds_part *part,
                            work_list *list, fds_error *err) {
    *list = (work_list){0};
    TRY(fds__table_check_plan(table, plan, err));
    if (fds_plan_rows(plan) > FDS__MAX_ROWS)
        return fds__fail(err, FDS_ERR_LIMIT, "a plan of %zu rows, at most %zu are allowed",
                         fds_plan_rows(plan), FDS__MAX_ROWS);
    fds__slot_map seen = {0};
    fds_status status = list_missing(table, plan, part, &seen, list, err);
    fds__slot_map_free(&seen);
    return status == FDS_OK ? give_slots(table, part, list, err) : status;
}

/* The utility function serves a limited number of threads. */
static unsigned workers_for(const fds_table *table, unsigned threads, size_t count) {
    return MIN(fds__pool_workers(threads, count), MAX(table->utility->workers, 1u));
}

fds_status fds_table_estimate(const fds_table *table, const fds_plan *plan, unsigned threads,
                              fds_table_cost *cost, fds_error *err) {
    return fds__table_estimate_part(table, plan, NULL, threads, cost, err);
}

fds_status fds__table_estimate_part(const fds_table *table, const fds_plan *plan,
                                    const fds_part *part, unsigned threads, fds_table_cost *cost,
                                    fds_error *err) {
    const fds__layout *layout = &table->layout;
    work_list list;
    uint64_t disk_free;
    fds_status status = list_work(table, plan, part, &list, err);
    fds__free(list.tasks);
    TRY(status);
    TRY(fds__disk_free(table->dir, &disk_free, err));
    /* per worker answers and a record while filling, a window while reading; and the index */
    uint64_t workers = workers_for(table, threads, list.count);
    uint64_t each = layout->values * sizeof(float) + layout->record_size;
    uint64_t segment = FDS__SEGMENT_HEADER + (uint64_t)layout->records * layout->record_size;
    uint64_t all = FDS__SEGMENT_HEADER + (uint64_t)list.different * layout->record_size;
    enum { INDEX_BYTES = 60 }; /* at most, per missing coalition */
    *cost = (fds_table_cost){
        .coalitions = list.different,
        .missing = list.count,
        .disk = (uint64_t)list.count * layout->record_size + list.created * FDS__SEGMENT_HEADER,
        .disk_free = disk_free,
        .memory = workers * (each + MIN(segment, all)) + list.count * INDEX_BYTES,
    };
    return FDS_OK;
}

/* ---- the work ---- */

typedef struct {
    fds_table *table;
    const fds_plan *plan;
    task *tasks;
    fds__record_writer *writers;
} filling;

/* Opens a segment, and writes the header of a new one. */
static fds_status enter_segment(const fds_table *table, fds__record_writer *w, uint32_t number,
                                fds__access access, fds_error *err) {
    char path[FDS__PATH_MAX];
    uint64_t size;
    TRY(fds__table_segment_path(table, number, path, err));
    TRY(fds__record_writer_open(w, path, access, number, err));
    TRY(fds__file_size(&w->file, &size, err));
    if (size >= FDS__SEGMENT_HEADER)
        return FDS_OK;
    fds__record_form form = fds__segment_form(&table->layout, number);
    return fds__record_begin(&w->file, &form, err);
}

/* Makes all segments before the work, so that no worker waits for the sync of the folder. */
static fds_status make_segments(const filling *f, size_t count, fds_error *err) {
    size_t records = f->table->layout.records;
    for (size_t i = 0; i < count; i++) {
        size_t number = f->tasks[i].slot / records;
        if (i && number == f->tasks[i - 1].slot / records)
            continue;
        TRY(enter_segment(f->table, &f->writers[0], (uint32_t)number, FDS__ACCESS_CREATE, err));
        fds__file_close(&f->writers[0].file);
    }
    return FDS_OK;
}

/* The record of a task, in the worker's scratch. */
static fds_status make_record(void *context, size_t job, unsigned worker, const uint8_t **record,
                              fds_error *err) {
    filling *f = context;
    fds__record_writer *w = &f->writers[worker];
    const uint64_t *coalition = fds_plan_coalition(f->plan, f->tasks[job].row);
    TRY(fds_utility_eval(f->table->utility, worker, coalition, w->probs, err));
    *record = w->record;
    return fds__segment_put(&f->table->layout, coalition, w->probs, w->record, err);
}

static fds_status keep_record(void *context, size_t job, unsigned worker, const uint8_t *record,
                              fds_error *err) {
    filling *f = context;
    const fds_table *table = f->table;
    const fds__layout *layout = &table->layout;
    fds__record_writer *w = &f->writers[worker];
    task *t = &f->tasks[job];
    uint32_t number = (uint32_t)(t->slot / layout->records);
    if (record != w->record)
        memcpy(w->record, record, layout->record_size);
    if (w->file.fd < 0 || w->number != number)
        TRY(enter_segment(table, w, number, FDS__ACCESS_UPDATE, err));
    return fds__record_writer_put(w, layout->record_size, fds__layout_offset(layout, t->slot),
                                  table->sync_every_s, &t->is_done, err);
}

static fds_status compute(void *context, size_t job, unsigned worker, fds_error *err) {
    const uint8_t *record;
    TRY(make_record(context, job, worker, &record, err));
    return keep_record(context, job, worker, record, err);
}

/* A second answer of another process must be the first one, unless answers have noise. */
static fds_status compare_record(void *context, size_t job, const uint8_t *record, fds_error *err) {
    const filling *f = context;
    const fds__layout *layout = &f->table->layout;
    const task *t = &f->tasks[job];
    char path[FDS__PATH_MAX];
    fds__file file;
    OWNED uint8_t *kept = NULL;
    if (fds__utility_is_noisy(f->table->utility))
        return FDS_OK;
    TRY(NEW(kept, layout->record_size, err));
    TRY(fds__table_segment_path(f->table, (uint32_t)(t->slot / layout->records), path, err));
    TRY(fds__file_open(&file, path, FDS__ACCESS_READ, err));
    fds_status status = fds__file_read_at(&file, kept, layout->record_size,
                                          fds__layout_offset(layout, t->slot), err);
    fds__file_close(&file);
    TRY(status);
    return memcmp(kept, record, layout->record_size) == 0
               ? FDS_OK
               : fds__fail(err, FDS_ERR_CORRUPT,
                           "%s: two processes computed record %zu, and not alike", path,
                           t->slot % layout->records);
}

/* By this process and the others of its job. */
static fds_status run_ranks(filling *f, size_t count, unsigned workers, const fds_events *events,
                            fds_error *err) {
    OWNED uint32_t *rows = NULL, *segments = NULL;
    TRY(NEW(rows, count, err));
    TRY(NEW(segments, count, err));
    for (size_t i = 0; i < count; i++) {
        rows[i] = f->tasks[i].row;
        segments[i] = (uint32_t)(f->tasks[i].slot / f->table->layout.records);
    }
    const fds__ranks_work work = {.plan = f->plan,
                                  .count = count,
                                  .rows = rows,
                                  .segments = segments,
                                  .workers = workers,
                                  .context = f,
                                  .compute = make_record,
                                  .keep = keep_record,
                                  .compare = compare_record};
    return fds__ranks_run(&work, events, err);
}

/* Runs the tasks, and notes which segments to sync, even after a failure. */
static fds_status run_tasks(filling *f, size_t count, unsigned workers, const fds_events *events,
                            bool *is_disk_full, fds_error *err) {
    fds_table *table = f->table;
    const fds__layout *layout = &table->layout;
    bool has_ranks = fds__ranks_serve_table(table, f->plan);
    unsigned writers = workers + has_ranks;
    fds_status status =
        fds__record_writers_create(writers, layout->record_size, layout->values, &f->writers, err);
    if (status == FDS_OK)
        status = make_segments(f, count, err);
    if (status == FDS_OK && has_ranks)
        status = run_ranks(f, count, workers, events, err);
    else if (status == FDS_OK)
        status = fds__pool_run(workers, count, compute, f, "utilities", "sub-models", events, err);
    for (unsigned i = 0; f->writers && i < writers; i++) {
        const fds__record_writer *w = &f->writers[i];
        if (w->file.fd < 0)
            continue;
        table->unsynced = table->unsynced_end ? MIN(table->unsynced, w->number) : w->number;
        table->unsynced_end = MAX(table->unsynced_end, w->number + 1);
    }
    *is_disk_full |= fds__record_writers_free(f->writers, writers);
    return status;
}

/* Adds the records written to the index; returns how many. */
static size_t enter_done(fds_table *table, const fds_plan *plan, const work_list *list) {
    size_t done = 0;
    for (size_t i = 0; i < list->count; i++) {
        const task *t = &list->tasks[i];
        if (!t->is_done)
            continue;
        fds__slot_map_add(&table->index,
                          fds_coalition_id(fds_plan_coalition(plan, t->row), table->layout.players),
                          t->slot);
        fds__table_mark(table, t->slot);
        table->segments = MAX(table->segments, (uint32_t)(t->slot / table->layout.records) + 1);
        done++;
    }
    return done;
}

static fds_status sync_segment(const fds_table *table, uint32_t number, bool *is_disk_full,
                               fds_error *err) {
    char path[FDS__PATH_MAX];
    fds__file file;
    TRY(fds__table_segment_path(table, number, path, err));
    if (!fds__path_exists(path))
        return FDS_OK; /* a part has no record there */
    TRY(fds__file_open(&file, path, FDS__ACCESS_UPDATE, err));
    fds_status status = fds__file_sync(&file, err);
    *is_disk_full |= file.is_disk_full;
    fds__file_close(&file);
    return status;
}

/* Tries all of them; the error is that of the first failure. */
static fds_status sync_segments(fds_table *table, bool *is_disk_full, fds_error *err) {
    fds_status status = FDS_OK;
    for (uint32_t number = table->unsynced; number < table->unsynced_end; number++) {
        fds_error *first = status == FDS_OK ? err : NULL;
        fds_status synced = sync_segment(table, number, is_disk_full, first);
        status = status == FDS_OK ? synced : status;
    }
    table->unsynced = table->unsynced_end = 0;
    table->unsynced_bytes = 0;
    table->synced_s = fds__now_s();
    return status;
}

fds_status fds__table_sync(fds_table *table, fds_error *err) {
    bool is_disk_full = false;
    return table->unsynced_end ? sync_segments(table, &is_disk_full, err) : FDS_OK;
}

static bool is_sync_due(const fds_table *table) {
    return table->unsynced_bytes >= FDS__SYNC_BYTES ||
           fds__now_s() - table->synced_s >= table->sync_every_s;
}

static fds_status fill(fds_table *table, const fds_plan *plan, const work_list *list,
                       unsigned workers, bool is_synced, const fds_events *events, fds_error *err) {
    bool is_disk_full = false;
    filling f = {.table = table, .plan = plan, .tasks = list->tasks};
    TRY(fds__table_reserve(table, list->end, err));
    TRY(fds__slot_map_reserve(&table->index, table->index.count + list->count, err));
    fds_status status = run_tasks(&f, list->count, workers, events, &is_disk_full, err);
    table->unsynced_bytes += list->count * table->layout.record_size;
    if (is_synced || is_sync_due(table)) {
        fds_status synced = sync_segments(table, &is_disk_full, status == FDS_OK ? err : NULL);
        status = status == FDS_OK ? synced : status;
    }
    size_t done = enter_done(table, plan, list);
    if (status == FDS_ERR_IO && is_disk_full)
        return fds__record_fail_full(table->dir, list->different - list->count + done,
                                     list->different, err);
    return status;
}

static fds_status fill_missing(fds_table *table, const fds_plan *plan, const fds_part *part,
                               unsigned threads, bool is_synced, const fds_events *events,
                               fds_error *err) {
    work_list list;
    fds_status status = list_work(table, plan, part, &list, err);
    if (status == FDS_OK && list.count)
        status = fill(table, plan, &list, workers_for(table, threads, list.count), is_synced,
                      events, err);
    fds__free(list.tasks);
    if (status != FDS_OK)
        fds__utility_log(table->utility, events);
    return status;
}

fds_status fds_table_fill(fds_table *table, const fds_plan *plan, unsigned threads,
                          const fds_events *events, fds_error *err) {
    return fill_missing(table, plan, NULL, threads, true, events, err);
}

fds_status fds_table_fill_part(fds_table *table, const fds_plan *plan, fds_part part,
                               unsigned threads, const fds_events *events, fds_error *err) {
    TRY(fds__part_check(&part, err));
    return fill_missing(table, plan, &part, threads, true, events, err);
}

fds_status fds__table_fill_more(fds_table *table, const fds_plan *plan, unsigned threads,
                                const fds_events *events, fds_error *err) {
    return fill_missing(table, plan, NULL, threads, false, events, err);
}
