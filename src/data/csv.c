/* SPDX-License-Identifier: Apache-2.0
 * CSV (RFC 4180): a header line, then one sample per line.
 *
 *   label,provider,height,weight     one column is the label, one may be the provider,
 *   cat,"Clinic ""A""",25.1,4.2      all others are numbers; a text with , or " is quoted;
 *   dog,Clinic B,61,3.1e1            lines end in LF or CRLF; blank lines do not count
 *
 * Classes are the distinct labels, sorted: by value when all are integers, else by bytes. Fields
 * are split in place: each becomes a NUL-terminated text inside the file's bytes. */
#include "data/data.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const fds__blob *file;
    char *at, *end;
    size_t line; /* from 1 */
} scanner;

typedef struct {
    const char *path;
    fds__names columns;     /* these names lie in the file's bytes, as do labels and providers */
    size_t label, provider; /* columns; provider: columns.count when there is none */
    char **fields;          /* one line's, (columns.count) */
    fds__names labels, providers; /* (rows) */
    float *values;                /* (rows, features) */
    size_t rows, features, values_capacity;
    locale_t locale; /* C, whatever the program's own is */
} table;

/* ---- fields and lines ---- */

/* Splits off a quoted field; at is on the opening quote. *stop receives the byte after it. */
static fds_status cut_quoted(scanner *s, char **field, char *stop, fds_error *err) {
    size_t opened = s->line;
    char *write = ++s->at;
    *field = write;
    for (; s->at < s->end; s->at++) {
        if (*s->at == '"') {
            if (s->at[1] != '"')
                break;
            s->at++;
        }
        s->line += *s->at == '\n';
        *write++ = *s->at;
    }
    if (s->at >= s->end)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu: a quoted field is not closed",
                         s->file->path, opened);
    s->at++;
    *stop = s->at < s->end ? *s->at : '\n';
    *write = 0;
    return FDS_OK;
}

static fds_status cut_plain(scanner *s, char **field, char *stop, fds_error *err) {
    *field = s->at;
    while (s->at < s->end && !strchr(",\n\r\"", *s->at))
        s->at++;
    *stop = s->at < s->end ? *s->at : '\n';
    if (*stop == '"')
        return fds__fail(
            err, FDS_ERR_FORMAT,
            "%s: line %zu: a quote inside a field; quote the whole field and double the quote",
            s->file->path, s->line);
    return FDS_OK;
}

/* Splits off the next field; *last: it ends the line. */
static fds_status cut_field(scanner *s, char **field, bool *last, fds_error *err) {
    char stop = 0;
    if (s->at < s->end && *s->at == '"')
        TRY(cut_quoted(s, field, &stop, err));
    else
        TRY(cut_plain(s, field, &stop, err));
    bool crlf = stop == '\r' && s->at + 1 < s->end && s->at[1] == '\n';
    if (stop != ',' && stop != '\n' && !crlf)
        return fds__fail(
            err, FDS_ERR_FORMAT,
            "%s: line %zu: byte 0x%02x after a field; it must end in a comma or a new line",
            s->file->path, s->line, (unsigned char)stop);
    *s->at = 0; /* also at the very end, where the blob keeps a NUL */
    s->at += crlf ? 2 : 1;
    *last = stop != ',';
    s->line += *last;
    return FDS_OK;
}

static void skip_blank_lines(scanner *s) {
    for (;;) {
        size_t crlf = s->at < s->end && *s->at == '\r' && s->at + 1 < s->end && s->at[1] == '\n';
        if (s->at >= s->end || s->at[crlf] != '\n')
            return;
        s->at += crlf + 1;
        s->line++;
    }
}

/* ---- the header ---- */

static fds_status read_header(scanner *s, table *t, fds_error *err) {
    for (bool last = false; !last;) {
        char *name;
        if (t->columns.count >= FDS__MAX_SIDE + 2)
            return fds__fail(err, FDS_ERR_LIMIT, "%s: more than %u columns", t->path,
                             FDS__MAX_SIDE + 2);
        TRY(cut_field(s, &name, &last, err));
        name = fds__name_trim(name);
        TRY(fds__names_push(&t->columns, name, err));
        const char *fault = fds__name_fault(name);
        if (fault)
            return fds__fail(err, FDS_ERR_FORMAT, "%s: line 1, column %zu: %s", t->path,
                             t->columns.count, fault);
    }
    t->fields = fds__alloc_zero(t->columns.count, sizeof *t->fields);
    return t->fields ? FDS_OK : fds__fail_nomem(err, t->columns.count * sizeof *t->fields);
}

/* The number of the column with that name; columns.count: none. */
static fds_status find_column(const table *t, const char *name, size_t *column, fds_error *err) {
    *column = t->columns.count;
    for (size_t i = 0; i < t->columns.count; i++) {
        if (strcmp(t->columns.items[i], name) != 0)
            continue;
        if (*column != t->columns.count)
            return fds__fail(err, FDS_ERR_FORMAT, "%s: line 1: two columns are named \"%s\"",
                             t->path, name);
        *column = i;
    }
    return FDS_OK;
}

static fds_status find_columns(table *t, const fds__data_options *options, fds_error *err) {
    const char *label = options && options->label_column ? options->label_column : "label";
    const char *provider = options ? options->provider_column : NULL;
    TRY(find_column(t, label, &t->label, err));
    if (t->label == t->columns.count)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: line 1: no column is named \"%s\"; the first line must name the "
                         "columns, and one must be the label",
                         t->path, label);
    TRY(find_column(t, provider ? provider : "provider", &t->provider, err));
    if (!provider && t->provider == t->label)
        t->provider = t->columns.count;
    bool has_provider = t->provider < t->columns.count;
    if (provider && !has_provider)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line 1: no column is named \"%s\"", t->path,
                         provider);
    if (t->provider == t->label)
        return fds__fail(err, FDS_ERR_USAGE, "%s: column \"%s\" cannot be both label and provider",
                         t->path, label);
    t->features = t->columns.count - 1 - has_provider;
    if (t->features == 0)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line 1: no columns with values", t->path);
    return FDS_OK;
}

/* ---- the lines ---- */

static fds_status parse_number(const table *t, size_t line, size_t column, float *value,
                               fds_error *err) {
    const char *text = t->fields[column];
    char *end = NULL;
    size_t len = strspn(text, " +-.0123456789eE");
    if (text[len] == 0)
        *value = (float)strtod_l(text, &end, t->locale);
    while (end && *end == ' ')
        end++;
    if (!end || end == text || *end || !isfinite(*value))
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: line %zu, column \"%.60s\": \"%.60s\" is not a finite number%s",
                         t->path, line, t->columns.items[column], text,
                         text[len] ? "; if the column names the providers, use --provider, else "
                                     "remove the column"
                                   : "");
    return FDS_OK;
}

static fds_status keep_text(const table *t, size_t line, size_t column, fds__names *list,
                            fds_error *err) {
    char *name = fds__name_trim(t->fields[column]);
    const char *fault = *name ? fds__name_fault(name) : "empty";
    if (fault)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu, column \"%.60s\": %s", t->path, line,
                         t->columns.items[column], fault);
    return fds__names_push(list, name, err);
}

static fds_status read_fields(scanner *s, table *t, size_t line, fds_error *err) {
    size_t count = 0;
    for (bool last = false; !last; count++) {
        char *field;
        TRY(cut_field(s, &field, &last, err));
        if (count < t->columns.count)
            t->fields[count] = field;
    }
    if (count != t->columns.count)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu: %zu fields, but the header has %zu",
                         t->path, line, count, t->columns.count);
    return FDS_OK;
}

static fds_status read_row(scanner *s, table *t, fds_error *err) {
    size_t line = s->line, needed;
    TRY(read_fields(s, t, line, err));
    TRY(keep_text(t, line, t->label, &t->labels, err));
    if (t->provider < t->columns.count)
        TRY(keep_text(t, line, t->provider, &t->providers, err));
    if (!fds__mul(t->rows + 1, t->features, &needed))
        return fds__fail(err, FDS_ERR_LIMIT, "%s: line %zu: too many values", t->path, line);
    void *values = t->values;
    fds_status status = fds__grow(&values, &t->values_capacity, needed, sizeof(float), err);
    t->values = values;
    TRY(status);
    float *out = t->values + t->rows * t->features;
    for (size_t c = 0; c < t->columns.count; c++)
        if (c != t->label && c != t->provider)
            TRY(parse_number(t, line, c, out++, err));
    t->rows++;
    return FDS_OK;
}

static fds_status read_rows(scanner *s, table *t, const fds_events *events, fds_error *err) {
    const char *start = s->at, *reported = s->at;
    double start_s = fds__now_s();
    for (skip_blank_lines(s); s->at < s->end; skip_blank_lines(s)) {
        TRY(read_row(s, t, err));
        if ((size_t)(s->at - reported) < FDS__READ_STEP)
            continue;
        reported = s->at;
        TRY(fds__report(events, "read", "bytes", (uint64_t)(s->at - start),
                        (uint64_t)(s->end - start), start_s, err));
    }
    return FDS_OK;
}

static fds_status read_table(fds__blob *file, const fds__data_options *options,
                             const fds_events *events, table *t, fds_error *err) {
    t->path = file->path;
    t->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* takes no memory */
    char *text = (char *)file->data;
    if (strlen(text) != file->size)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: byte %zu: NUL in a text file", file->path,
                         strlen(text));
    scanner s = {file, text, text + file->size, 1};
    s.at += fds__utf8_mark(file->data, file->size);
    TRY(read_header(&s, t, err));
    TRY(find_columns(t, options, err));
    TRY(read_rows(&s, t, events, err));
    return t->rows ? FDS_OK
                   : fds__fail(err, FDS_ERR_SHAPE, "%s: no samples below the header", t->path);
}

/* ---- tables to datasets ---- */

static fds_status check_same_columns(const table *a, const table *b, fds_error *err) {
    bool same =
        a->columns.count == b->columns.count && a->label == b->label && a->provider == b->provider;
    for (size_t i = 0; same && i < a->columns.count; i++)
        same = strcmp(a->columns.items[i], b->columns.items[i]) == 0;
    return same ? FDS_OK
                : fds__fail(err, FDS_ERR_SHAPE, "%s and %s must have the same columns", a->path,
                            b->path);
}

/* Numbers the labels (or providers) of all tables together; the caller owns ids and names. */
static fds_status number_column(const table *tables, size_t count, bool providers,
                                const fds_events *events, uint32_t **ids, fds__names *names,
                                fds_error *err) {
    const fds__numbering how = {.by_value = true,
                                .limit = providers ? FDS__MAX_PROVIDERS : FDS__MAX_CLASSES,
                                .what = providers ? "provider" : "class",
                                .source = tables[0].path,
                                .events = events};
    size_t rows = 0, total = tables[0].rows + (count == 2 ? tables[1].rows : 0);
    const char **texts = fds__alloc_zero(total, sizeof *texts);
    *ids = fds__alloc_zero(total, sizeof **ids);
    for (size_t i = 0; i < count && texts; rows += tables[i++].rows)
        memcpy(texts + rows, providers ? tables[i].providers.items : tables[i].labels.items,
               tables[i].rows * sizeof *texts);
    fds_status status = texts && *ids ? fds__names_number(texts, total, &how, *ids, names, err)
                                      : fds__fail_nomem(err, total * sizeof *texts);
    fds__free(texts);
    return status;
}

/* Takes the table's values over: a large table must not be in memory twice. provider_ids NULL: no
 * providers. */
static fds_status make_dataset(table *t, const uint32_t *labels, const fds__names *classes,
                               const uint32_t *provider_ids, const fds__names *providers,
                               fds_dataset **out, fds_error *err) {
    fds_shape shape = {(uint32_t)t->features, 1, 1};
    TRY(fds__dataset_new(t->path, t->rows, shape, false, out, err));
    fds_dataset *ds = *out; /* the caller frees it on failure */
    fds__free(ds->floats);
    ds->floats = t->values;
    t->values = NULL;
    for (size_t i = 0; i < t->rows; i++)
        ds->labels[i] = (uint16_t)labels[i];
    for (size_t c = 0, f = 0; c < t->columns.count; c++)
        if (c != t->label && c != t->provider)
            t->fields[f++] = t->columns.items[c];
    TRY(fds__names_copy(t->fields, t->features, &ds->feature_names, err));
    TRY(fds__dataset_set_classes(ds, classes->items, classes->count, err));
    return provider_ids ? fds__dataset_set_providers(ds, provider_ids, providers->items,
                                                     (uint32_t)providers->count, err)
                        : FDS_OK;
}

static fds_status make_datasets(table *tables, size_t count, const fds_events *events,
                                fds_dataset **out, fds_error *err) {
    uint32_t *labels = NULL, *provider_ids = NULL;
    fds__names classes = {0}, providers = {0};
    fds_status status = number_column(tables, count, false, events, &labels, &classes, err);
    if (status == FDS_OK && tables[0].providers.count)
        status = number_column(tables, count, true, events, &provider_ids, &providers, err);
    size_t row = 0;
    for (size_t i = 0; i < count && status == FDS_OK; row += tables[i++].rows)
        status = make_dataset(&tables[i], labels + row, &classes,
                              provider_ids ? provider_ids + row : NULL, &providers, &out[i], err);
    fds__free(labels);
    fds__free(provider_ids);
    fds__names_free(&classes);
    fds__names_free(&providers);
    return status;
}

static void free_table(table *t) {
    fds__free(t->columns.items);
    fds__free(t->fields);
    fds__free(t->labels.items);
    fds__free(t->providers.items);
    fds__free(t->values);
}

fds_status fds__csv_parse(fds__blob *files, size_t count, const fds__data_options *options,
                          const fds_events *events, fds_dataset **out, fds_error *err) {
    assert((count == 1 || count == 2) && !out[0] && !out[count - 1]);
    table tables[2] = {{0}};
    fds_status status = FDS_OK;
    for (size_t i = 0; i < count && status == FDS_OK; i++)
        status = read_table(&files[i], options, events, &tables[i], err);
    if (status == FDS_OK && count == 2)
        status = check_same_columns(&tables[0], &tables[1], err);
    if (status == FDS_OK)
        status = make_datasets(tables, count, events, out, err);
    for (size_t i = 0; i < count; i++) {
        free_table(&tables[i]);
        if (status != FDS_OK)
            fds__dataset_drop(&out[i]);
    }
    return status;
}
