/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of a plan, read from a table.
 *
 * Each worker maps one segment at a time and unmaps it before it maps the next: memory is bounded
 * by workers x the size of a segment, whatever the number of rows. Neighbouring rows of a plan are
 * mostly in one segment. Records were checked on opening, or written since; reading a row compares
 * only its coalition.
 */
#include "utility/table.h"

#include <string.h>

typedef struct {
    const uint8_t *map; /* NULL: none */
    size_t size;
    uint32_t segment;
} window;

struct fds_table_view {
    const fds_table *table;
    const fds_plan *plan;
    const uint32_t *labels;
    const fds__aim *aim; /* or NULL */
    bool is_mean;
    size_t columns;
    uint32_t *slots; /* (rows) */
    window *windows; /* (workers) */
    unsigned workers;
};

static void close_window(window *w) {
    fds__file_unmap(w->map, w->size);
    *w = (window){0};
}

/* Maps the segment of a slot up to the end of the file, which must contain the record. */
static fds_status open_window(window *w, const fds_table *table, uint32_t slot, fds_error *err) {
    const fds__layout *layout = &table->layout;
    char path[FDS__PATH_MAX];
    fds__file file;
    uint64_t size = 0, end = fds__layout_offset(layout, slot) + layout->record_size;
    close_window(w);
    w->segment = (uint32_t)(slot / layout->records);
    TRY(fds__table_segment_path(table, w->segment, path, err));
    TRY(fds__file_open(&file, path, FDS__ACCESS_READ, err));
    fds_status status = fds__file_size(&file, &size, err);
    size = MIN(size, FDS__SEGMENT_HEADER + (uint64_t)layout->records * layout->record_size);
    if (status == FDS_OK && size < end)
        status = fds__fail(err, FDS_ERR_IO,
                           "%s ends at byte %llu instead of %llu: it was cut off while in use",
                           path, (unsigned long long)size, (unsigned long long)end);
    if (status == FDS_OK)
        status = fds__file_map(&file, (size_t)size, &w->map, err);
    fds__file_close(&file);
    w->size = (size_t)size;
    return status;
}

/* The record of a row, in the worker's window. */
static fds_status find_record(fds_table_view *view, unsigned worker, size_t row,
                              const uint8_t **record, fds_error *err) {
    const fds_table *table = view->table;
    const fds__layout *layout = &table->layout;
    window *w = &view->windows[worker];
    uint32_t slot = view->slots[row];
    uint64_t offset = fds__layout_offset(layout, slot);
    if (!w->map || w->segment != slot / layout->records || w->size < offset + layout->record_size)
        TRY(open_window(w, table, slot, err));
    *record = w->map + offset;
    if (memcmp(fds__segment_coalition(*record), fds_plan_coalition(view->plan, row),
               8 * layout->words) != 0)
        return fds__fail(err, FDS_ERR_CORRUPT,
                         "%s: record %zu of segment %u is not that of row %zu: it was changed "
                         "while in use",
                         table->dir, slot % layout->records, w->segment, row);
    return FDS_OK;
}

static double labelled(const fds_table_view *view, const uint8_t *record, size_t input) {
    const fds__layout *layout = &view->table->layout;
    double value;
    fds__segment_get(layout, record, input * layout->classes + view->labels[input], 1, &value);
    return view->aim ? fds__aim_score(view->aim, input, value) : value;
}

static fds_status read_row(void *context, unsigned worker, size_t row, size_t first, size_t count,
                           double *out, fds_error *err) {
    fds_table_view *view = context;
    const uint8_t *record;
    if (worker >= view->workers || row >= fds_plan_rows(view->plan) || first > view->columns ||
        count > view->columns - first)
        return fds__fail(err, FDS_ERR_USAGE,
                         "worker %u, row %zu, columns %zu to %zu: there are %u workers, %zu rows "
                         "and %zu columns",
                         worker, row, first, first + count, view->workers,
                         fds_plan_rows(view->plan), view->columns);
    TRY(find_record(view, worker, row, &record, err));
    size_t inputs = view->table->layout.inputs;
    if (!view->labels) {
        fds__segment_get(&view->table->layout, record, first, count, out);
    } else if (!view->is_mean) {
        for (size_t i = 0; i < count; i++)
            out[i] = labelled(view, record, first + i);
    } else if (count) {
        double sum = 0;
        for (size_t i = 0; i < inputs; i++)
            sum += labelled(view, record, i);
        out[0] = sum / (double)inputs;
    }
    return FDS_OK;
}

/* ---- making one ---- */

static fds_status check_labels(const fds__layout *layout, const uint32_t *labels, bool is_mean,
                               fds_error *err) {
    if (is_mean && !labels)
        return fds__fail(err, FDS_ERR_USAGE, "the mean over inputs takes a label for each of them");
    for (size_t i = 0; labels && i < layout->inputs; i++)
        if (labels[i] >= layout->classes)
            return fds__fail(err, FDS_ERR_USAGE, "input %zu: label %u, there are %u classes", i,
                             labels[i], layout->classes);
    return FDS_OK;
}

static fds_status find_slots(fds_table_view *view, fds_error *err) {
    const fds_table *table = view->table;
    TRY(NEW(view->slots, fds_plan_rows(view->plan), err));
    for (size_t row = 0; row < fds_plan_rows(view->plan); row++) {
        const uint64_t *coalition = fds_plan_coalition(view->plan, row);
        if (!fds__slot_map_find(&table->index, fds_coalition_id(coalition, table->layout.players),
                                &view->slots[row]))
            return fds__fail(err, FDS_ERR_NOT_FOUND,
                             "%s: row %zu of the plan is not in the table; fill the table first",
                             table->dir, row);
    }
    return FDS_OK;
}

fds_status fds_table_view_create(const fds_table *table, const fds_plan *plan,
                                 const uint32_t *labels, bool is_mean, unsigned workers,
                                 fds_table_view **out, fds_error *err) {
    const fds__layout *layout = &table->layout;
    TRY(fds__table_check_plan(table, plan, err));
    TRY(check_labels(layout, labels, is_mean, err));
    fds_table_view *view;
    TRY(NEW(view, 1, err));
    *view = (fds_table_view){.table = table,
                             .plan = plan,
                             .labels = labels,
                             .is_mean = is_mean,
                             .columns = !labels   ? layout->values
                                        : is_mean ? 1
                                                  : layout->inputs,
                             .workers = workers ? workers : fds_processors()};
    fds_status status = NEW(view->windows, view->workers, err);
    if (status == FDS_OK)
        status = find_slots(view, err);
    if (status == FDS_OK)
        *out = view;
    else
        fds_table_view_free(view);
    return status;
}

void fds__table_view_aim(fds_table_view *view, const fds__aim *aim) {
    view->aim = aim && aim->targets ? aim : NULL;
}

fds_rows fds_table_view_rows(fds_table_view *view) {
    return (fds_rows){view->columns, read_row, view};
}

void fds_table_view_free(fds_table_view *view) {
    if (!view)
        return;
    for (unsigned i = 0; view->windows && i < view->workers; i++)
        close_window(&view->windows[i]);
    fds__free(view->windows);
    fds__free(view->slots);
    fds__free(view);
}
