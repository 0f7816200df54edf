/* SPDX-License-Identifier: Apache-2.0
 * CSV: one sample per line. sheet.c reads the columns, prepare.c makes features of them.
 *
 * In a regression, labels are targets: numbers. Otherwise classes are the distinct labels, sorted: by
 * value when all are integers, else by bytes. Classes and providers of a training and a test table are
 * numbered together; levels and means come from the training table, or from elsewhere (`prepared`). */
#include "data/sheet.h"

#include <stdlib.h>
#include <string.h>

/* Labels of which more than this share differ are no classes. */
static const double most_different = 0.5;
enum { FEW_ROWS = 20 };

typedef struct {
    sheet sheets[2];
    size_t count;
    fds__preparation *preparation;
} reading;

/* ---- numbering ---- */

/* Numbers the texts of a role in all tables together; the caller owns ids and names. */
static fds_status number_column(const reading *d, sheet_role role, const fds_events *events,
                                uint32_t **ids, fds__names *names, fds_error *err) {
    bool is_provider = role == SHEET_PROVIDER;
    const fds__numbering how = {.by_value = true,
                                .limit = is_provider ? FDS__MAX_PROVIDERS : FDS__MAX_CLASSES,
                                .what = is_provider ? "provider" : "class",
                                .source = d->sheets[0].path,
                                .events = events};
    size_t rows = 0, total = d->sheets[0].rows + d->sheets[1].rows;
    OWNED const char **texts = NULL;
    TRY(NEW(texts, total, err));
    TRY(NEW(*ids, total, err));
    for (size_t i = 0; i < d->count; rows += d->sheets[i++].rows) {
        const sheet_column *column = sheet_find(&d->sheets[i], role);
        for (size_t r = 0; r < d->sheets[i].rows; r++) /* a test table may lack the column */
            texts[rows + r] = column ? column->texts.items[r] : texts[0];
    }
    return fds__names_number(texts, total, &how, *ids, names, err);
}

static fds_status check_classes(const reading *d, size_t classes, fds_error *err) {
    const sheet *s = &d->sheets[0];
    if (s->rows < FEW_ROWS || (double)classes <= most_different * (double)s->rows)
        return FDS_OK;
    return fds__fail(
        err, FDS_ERR_FORMAT,
        "%s: column \"%.60s\" has %zu different values in %zu rows: these are no classes; "
        "fds value and fds fit take them as numbers to predict with --task regression; else "
        "choose another column with --label, or divide its numbers into a few ranges",
        s->path, sheet_find(s, SHEET_LABEL)->name, classes, s->rows);
}

/* Ids tell samples apart. */
static fds_status check_ids(const sheet *s, const fds_events *events, fds_error *err) {
    const sheet_column *column = sheet_find(s, SHEET_ID);
    const fds__numbering how = {
        .limit = FDS__MAX_PROVIDERS, .what = "id", .source = s->path, .events = events};
    OWNED uint32_t *ids = NULL;
    OWNED bool *is_seen = NULL;
    fds__names names = {0};
    TRY(NEW(ids, s->rows, err));
    TRY(NEW(is_seen, s->rows, err));
    fds_status status = fds__names_number((const char *const *)column->texts.items, s->rows, &how,
                                          ids, &names, err);
    fds__names_free(&names);
    for (size_t r = 0; r < s->rows && status == FDS_OK; r++) {
        if (is_seen[ids[r]])
            status = fds__fail(err, FDS_ERR_FORMAT,
                               "%s: column \"%.60s\": two rows have the id \"%.60s\"", s->path,
                               column->name, column->texts.items[r]);
        is_seen[ids[r]] = true;
    }
    return status;
}

/* ---- tables to datasets ---- */

typedef struct {
    /* (rows of all tables); labels: NULL in a regression, providers: NULL without any */
    uint32_t *labels, *providers;
    fds__names classes, provider_names;
} numbers;

static fds_status copy_left_out(const sheet *s, fds__left_out *out, fds_error *err) {
    if (!s->left_out)
        return FDS_OK;
    TRY(NEW(out->rows, s->left_out, err));
    memcpy(out->rows, s->left_rows, s->left_out * sizeof *out->rows);
    out->count = s->left_out;
    return s->left_ids.count ? fds__names_copy(s->left_ids.items, s->left_out, &out->names, err)
                             : FDS_OK;
}

/* row: the first of the sheet's rows in the numbers. */
static fds_status make_dataset(const reading *d, const sheet *s, const numbers *n, size_t row,
                               fds_dataset **out, fds_error *err) {
    const sheet_column *id = sheet_find(s, SHEET_ID);
    fds__names names = {0};
    fds_shape shape = {(uint32_t)d->preparation->features, 1, 1};
    TRY(fds__dataset_new(s->path, s->rows, shape, false, out, err));
    fds_dataset *ds = *out; /* the caller frees it on failure */
    fds__prepare_apply(d->preparation, s, ds->floats);
    for (size_t i = 0; n->labels && i < s->rows; i++)
        ds->labels[i] = (uint16_t)n->labels[row + i];
    TRY(NEW(ds->sample_lines, s->rows, err));
    memcpy(ds->sample_lines, s->lines, s->rows * sizeof *s->lines);
    TRY(copy_left_out(s, &ds->left_out, err));
    fds_status status = fds__prepare_names(d->preparation, &names, err);
    if (status == FDS_OK)
        status = fds__names_copy(names.items, names.count, &ds->feature_names, err);
    fds__names_free(&names);
    if (status == FDS_OK && id)
        status = fds__names_copy(id->texts.items, s->rows, &ds->sample_names, err);
    TRY(status);
    TRY(n->labels ? fds__dataset_set_classes(ds, n->classes.items, n->classes.count, err)
                  : fds_dataset_set_targets(ds, sheet_find(s, SHEET_LABEL)->targets, err));
    return n->providers && sheet_find(s, SHEET_PROVIDER)
               ? fds__dataset_set_providers(ds, n->providers + row, n->provider_names.items,
                                            (uint32_t)n->provider_names.count, err)
               : FDS_OK;
}

static fds_status make_datasets(const reading *d, const fds_events *events, fds_dataset **out,
                                fds_error *err) {
    numbers n = {0};
    fds_status status = FDS_OK;
    if (!d->sheets[0].is_regression)
        status = number_column(d, SHEET_LABEL, events, &n.labels, &n.classes, err);
    if (status == FDS_OK && n.labels)
        status = check_classes(d, n.classes.count, err);
    if (status == FDS_OK && sheet_find(&d->sheets[0], SHEET_PROVIDER))
        status = number_column(d, SHEET_PROVIDER, events, &n.providers, &n.provider_names, err);
    size_t row = 0;
    for (size_t i = 0; i < d->count && status == FDS_OK; row += d->sheets[i++].rows) {
        if (sheet_find(&d->sheets[i], SHEET_ID))
            status = check_ids(&d->sheets[i], events, err);
        if (status == FDS_OK)
            status = make_dataset(d, &d->sheets[i], &n, row, &out[i], err);
    }
    fds__free(n.labels);
    fds__free(n.providers);
    fds__names_free(&n.classes);
    fds__names_free(&n.provider_names);
    return status;
}

static fds_status read_sheets(reading *d, const fds__blob *files, const fds__data_options *options,
                              const fds_events *events, fds_error *err) {
    for (size_t i = 0; i < d->count; i++) {
        sheet *s = &d->sheets[i];
        TRY(sheet_open(&files[i], options->separator, s, err));
        TRY(i                   ? sheet_follow(s, &d->sheets[0], err)
            : options->prepared ? sheet_choose_prepared(s, options, err)
                                : sheet_choose(s, options, events, err));
        TRY(sheet_read(s, options->missing, events, err));
    }
    if (!options->prepared)
        return fds__prepare_learn(&d->sheets[0], events, &d->preparation, err);
    fds__prepare_warn(options->prepared, &d->sheets[0], events);
    return fds__preparation_copy(options->prepared, &d->preparation, err);
}

fds_status fds__csv_parse(fds__blob *files, size_t count, const fds__data_options *options,
                          const fds_events *events, fds_dataset **out, fds_error *err) {
    assert((count == 1 || count == 2) && !out[0] && !out[count - 1]);
    const fds__data_options standard = {0};
    reading d = {.count = count};
    fds_status status = read_sheets(&d, files, options ? options : &standard, events, err);
    if (status == FDS_OK)
        status = make_datasets(&d, events, out, err);
    if (status == FDS_OK) {
        out[0]->preparation = d.preparation;
        d.preparation = NULL;
    }
    for (size_t i = 0; i < count; i++) {
        sheet_free(&d.sheets[i]);
        if (status != FDS_OK)
            fds__dataset_drop(&out[i]);
    }
    fds__preparation_free(d.preparation);
    return status;
}
