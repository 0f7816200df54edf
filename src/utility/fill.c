/* SPDX-License-Identifier: Apache-2.0
 *
 * Computing what a plan asks for and a table lacks.
 *
 * The missing coalitions, in the plan's order and each once, are given the empty slots in ascending
 * order before any is computed. A worker then writes its record straight to its place, in whatever
 * order the work is done: the bytes in the end are the same for any number of threads. And because
 * the slots are given out in the plan's order, the slots that an interrupted run left empty are
 * given out again to the very coalitions they were meant for.
 *
 * Each worker syncs the segment it writes in every few seconds, and when it goes on to another; no
 * worker waits for another. The segments they are in at the end are synced by fds__table_sync: at
 * once, or, where many small fills follow each other, after a few seconds.
 */
#include "utility/table.h"

/* A coalition to be computed. */
typedef struct {
    uint32_t row, slot;
    bool is_done;
} task;

typedef struct {
    task *tasks;
    size_t count, different; /* tasks; different coalitions in the plan */
    uint64_t end;            /* one more than the highest slot given out */
    size_t touched, created; /* segments to be written in; of them, not yet there */
} work_list;

/* ---- what is to be done ---- */

static fds_status list_missing(const fds_table *table, const fds_plan *plan, fds__slot_map *seen,
                               work_list *list, fds_error *err) {
    size_t rows = fds_plan_rows(plan), players = table->layout.players, capacity = 0;
    void *tasks = NULL;
    uint32_t unused;
    fds_status status = fds__slot_map_reserve(seen, rows, err);
    for (size_t row = 0; row < rows && status == FDS_OK; row++) {
        uint64_t id = fds_coalition_id(fds_plan_coalition(plan, row), players);
        if (!fds__slot_map_add(seen, id, 0) || fds__slot_map_find(&table->index, id, &unused))
            continue;
        status = fds__grow(&tasks, &capacity, list->count + 1, sizeof(task), err);
        if (status == FDS_OK)
            ((task *)tasks)[list->count++] = (task){.row = (uint32_t)row};
    }
    list->tasks = tasks;
    list->different = seen->count;
    return status;
}

static fds_status give_slots(const fds_table *table, work_list *list, fds_error *err) {
    uint64_t slot = 0, segment = UINT64_MAX;
    for (size_t i = 0; i < list->count; i++, slot++) {
        while (fds__table_is_filled(table, slot))
            slot++;
        list->tasks[i].slot = (uint32_t)slot;
        if (segment != slot / table->layout.records) {
            segment = slot / table->layout.records;
            list->touched++;
            list->created += segment >= table->segments;
        }
    }
    list->end = slot;
    if (list->count && segment >= FDS__MAX_SEGMENTS)
        return fds__fail(err, FDS_ERR_LIMIT, "%s: %llu segments are needed, at most %u are allowed",
                         table->dir, (unsigned long long)segment + 1, FDS__MAX_SEGMENTS);
    return FDS_OK;
}

/* The caller frees list->tasks, even after a failure. */
static fds_status list_work(const fds_table *table, const fds_plan *plan, work_list *list,
                            fds_error *err) {
    *list = (work_list){0};
    if (fds_plan_players(plan) != table->layout.players)
        return fds__fail(err, FDS_ERR_SHAPE, "the plan is of %zu players, the table %s of %zu",
                         fds_plan_players(plan), table->dir, table->layout.players);
    if (fds_plan_rows(plan) > FDS__MAX_ROWS)
        return fds__fail(err, FDS_ERR_LIMIT, "a plan of %zu rows, at most %zu are allowed",
                         fds_plan_rows(plan), FDS__MAX_ROWS);
    fds__slot_map seen = {0};
    fds_status status = list_missing(table, plan, &seen, list, err);
    fds__slot_map_free(&seen);
    return status == FDS_OK ? give_slots(table, list, err) : status;
}

/* The value function has room for so many threads and no more. */
static unsigned workers_for(const fds_table *table, unsigned threads, size_t count) {
    return MIN(fds__pool_workers(threads, count), MAX(table->value->workers, 1u));
}

fds_status fds_table_estimate(const fds_table *table, const fds_plan *plan, unsigned threads,
                              fds_table_cost *need, fds_error *err) {
    const fds__layout *layout = &table->layout;
    work_list list;
    uint64_t disk_free;
    fds_status status = list_work(table, plan, &list, err);
    fds__free(list.tasks);
    if (status == FDS_OK)
        status = fds__disk_free(table->dir, &disk_free, err);
    if (status != FDS_OK)
        return status;
    /* a worker's answers and record while filling, its window while reading; the index */
    uint64_t workers = workers_for(table, threads, list.count);
    uint64_t each = layout->values * sizeof(float) + layout->record_size;
    uint64_t segment = FDS__SEGMENT_HEADER + (uint64_t)layout->records * layout->record_size;
    uint64_t all = FDS__SEGMENT_HEADER + (uint64_t)list.different * layout->record_size;
    enum { INDEX_BYTES = 60 }; /* for each coalition that is missing, at the most */
    *need = (fds_table_cost){
        .coalitions = list.different,
        .missing = list.count,
        .disk = (uint64_t)list.count * layout->record_size + list.created * FDS__SEGMENT_HEADER,
        .disk_free = disk_free,
        .memory = workers * (each + MIN(segment, all)) + list.count * INDEX_BYTES,
    };
    return FDS_OK;
}

/* ---- doing it ---- */

/* One worker's own: the segment it writes in, and room for a sub-model's answers. */
typedef struct {
    fds__file file;
    uint32_t segment;
    double synced_s;
    float *probs;    /* (inputs, classes) */
    uint8_t *record; /* (record_size) */
} hand;

typedef struct {
    fds_table *table;
    const fds_plan *plan;
    task *tasks;
    hand *hands;
} crew;

/* Makes the segments that do not exist yet, so that workers find them. */
static fds_status make_segments(fds_table *table, const work_list *list, bool *is_disk_full,
                                fds_error *err) {
    uint8_t header[FDS__SEGMENT_HEADER];
    char path[FDS__PATH_MAX];
    size_t records = table->layout.records;
    bool is_any_new = false;
    for (size_t i = 0; i < list->count; i++) {
        uint32_t number = (uint32_t)(list->tasks[i].slot / records);
        if (i && number == list->tasks[i - 1].slot / records)
            continue;
        fds__file file;
        uint64_t size;
        TRY(fds__table_segment_path(table, number, path, err));
        TRY(fds__file_open(&file, path, FDS__ACCESS_CREATE, err));
        fds_status status = fds__file_size(&file, &size, err);
        if (status == FDS_OK && size < sizeof header) {
            is_any_new = true;
            fds__segment_header(&table->layout, number, header);
            status = fds__file_write_at(&file, header, sizeof header, 0, err);
        }
        *is_disk_full |= file.is_disk_full;
        fds__file_close(&file);
        TRY(status);
        table->segments = MAX(table->segments, number + 1);
    }
    return is_any_new ? fds__dir_sync(table->dir, err) : FDS_OK;
}

static fds_status enter_segment(hand *h, const fds_table *table, uint32_t number, fds_error *err) {
    char path[FDS__PATH_MAX];
    if (h->file.fd >= 0 && h->segment == number)
        return FDS_OK;
    if (h->file.fd >= 0)
        TRY(fds__file_sync(&h->file, err));
    fds__file_close(&h->file);
    TRY(fds__table_segment_path(table, number, path, err));
    TRY(fds__file_open(&h->file, path, FDS__ACCESS_UPDATE, err));
    h->segment = number;
    h->synced_s = fds__now_s();
    return FDS_OK;
}

static fds_status compute(void *context, size_t job, unsigned worker, fds_error *err) {
    crew *c = context;
    const fds_table *table = c->table;
    const fds__layout *layout = &table->layout;
    hand *h = &c->hands[worker];
    task *t = &c->tasks[job];
    const uint64_t *coalition = fds_plan_coalition(c->plan, t->row);
    TRY(fds_utility_eval(table->value, worker, coalition, h->probs, err));
    TRY(fds__record_write(layout, coalition, h->probs, h->record, err));
    TRY(enter_segment(h, table, (uint32_t)(t->slot / layout->records), err));
    TRY(fds__file_write_at(&h->file, h->record, layout->record_size,
                           fds__layout_offset(layout, t->slot), err));
    t->is_done = true;
    if (fds__now_s() - h->synced_s < table->sync_every_s)
        return FDS_OK;
    TRY(fds__file_sync(&h->file, err));
    h->synced_s = fds__now_s();
    return FDS_OK;
}

static fds_status hire(hand *hands, unsigned count, const fds__layout *layout, fds_error *err) {
    for (unsigned i = 0; i < count; i++)
        hands[i].file.fd = -1;
    for (unsigned i = 0; i < count; i++) {
        hands[i].probs = fds__alloc_aligned(layout->values * sizeof(float));
        hands[i].record = fds__alloc_aligned(layout->record_size);
        if (!hands[i].probs || !hands[i].record)
            return fds__fail_nomem(err, layout->values * sizeof(float));
    }
    return FDS_OK;
}

/* A worker is done; what it wrote in its last segment is to be synced. */
static void dismiss(fds_table *table, hand *h) {
    if (h->file.fd >= 0) {
        table->unsynced = table->unsynced_end ? MIN(table->unsynced, h->segment) : h->segment;
        table->unsynced_end = MAX(table->unsynced_end, h->segment + 1);
    }
    fds__file_close(&h->file);
    fds__free(h->probs);
    fds__free(h->record);
}

/* Runs the tasks; what was written is known to the table, whether or not something failed. */
static fds_status run_tasks(crew *c, size_t count, unsigned workers, const fds_events *events,
                            bool *is_disk_full, fds_error *err) {
    c->hands = fds__alloc_zero(workers, sizeof *c->hands);
    if (!c->hands)
        return fds__fail_nomem(err, workers * sizeof *c->hands);
    fds_status status = hire(c->hands, workers, &c->table->layout, err);
    if (status == FDS_OK)
        status = fds__pool_run(workers, count, compute, c, "utilities", "sub-models", events, err);
    for (unsigned i = 0; i < workers; i++) {
        *is_disk_full |= c->hands[i].file.is_disk_full;
        dismiss(c->table, &c->hands[i]);
    }
    fds__free(c->hands);
    return status;
}

/* Enters what was written; room for it was made before. */
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
        done++;
    }
    return done;
}

/* Tries all, and tells of the first failure. */
static fds_status sync_segments(fds_table *table, bool *is_disk_full, fds_error *err) {
    fds_status status = FDS_OK;
    for (uint32_t number = table->unsynced; number < table->unsynced_end; number++) {
        char path[FDS__PATH_MAX];
        fds__file file = {.fd = -1};
        fds_error *told = status == FDS_OK ? err : NULL;
        fds_status one = fds__table_segment_path(table, number, path, told);
        if (one == FDS_OK)
            one = fds__file_open(&file, path, FDS__ACCESS_UPDATE, told);
        if (one == FDS_OK)
            one = fds__file_sync(&file, told);
        *is_disk_full |= file.is_disk_full;
        fds__file_close(&file);
        status = status == FDS_OK ? one : status;
    }
    table->unsynced = table->unsynced_end = 0;
    table->synced_s = fds__now_s();
    return status;
}

fds_status fds__table_sync(fds_table *table, fds_error *err) {
    bool is_disk_full = false;
    return table->unsynced_end ? sync_segments(table, &is_disk_full, err) : FDS_OK;
}

static fds_status fill(fds_table *table, const fds_plan *plan, const work_list *list,
                       unsigned workers, bool is_synced, const fds_events *events, fds_error *err) {
    bool is_disk_full = false;
    crew c = {.table = table, .plan = plan, .tasks = list->tasks};
    TRY(fds__table_reserve(table, list->end, err));
    TRY(fds__slot_map_reserve(&table->index, table->index.count + list->count, err));
    fds_status status = make_segments(table, list, &is_disk_full, err);
    if (status == FDS_OK)
        status = run_tasks(&c, list->count, workers, events, &is_disk_full, err);
    if (is_synced || fds__now_s() - table->synced_s >= table->sync_every_s) {
        fds_status synced = sync_segments(table, &is_disk_full, status == FDS_OK ? err : NULL);
        status = status == FDS_OK ? synced : status;
    }
    size_t done = enter_done(table, plan, list);
    if (status == FDS_ERR_IO && is_disk_full)
        return fds__fail(
            err, FDS_ERR_IO,
            "%s: the disk is full: %zu of %zu sub-models are kept; free some space and "
            "run the same command again",
            table->dir, list->different - list->count + done, list->different);
    return status;
}

static fds_status fill_missing(fds_table *table, const fds_plan *plan, unsigned threads,
                               bool is_synced, const fds_events *events, fds_error *err) {
    work_list list;
    fds_status status = list_work(table, plan, &list, err);
    if (status == FDS_OK && list.count)
        status = fill(table, plan, &list, workers_for(table, threads, list.count), is_synced,
                      events, err);
    fds__free(list.tasks);
    return status;
}

fds_status fds_table_fill(fds_table *table, const fds_plan *plan, unsigned threads,
                          const fds_events *events, fds_error *err) {
    return fill_missing(table, plan, threads, true, events, err);
}

fds_status fds__table_fill_more(fds_table *table, const fds_plan *plan, unsigned threads,
                                const fds_events *events, fds_error *err) {
    return fill_missing(table, plan, threads, false, events, err);
}
