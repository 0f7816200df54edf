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
    char **columns;                       /* names */
    size_t column_count, label, provider; /* provider: column_count when there is none */
    char **fields;                        /* one line's, (column_count) */
    char **labels;                        /* (rows) */
    char **providers;
    float *values; /* (rows, features) */
    size_t rows, features, labels_capacity, providers_capacity, values_capacity;
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
    void *columns = NULL;
    size_t capacity = 0;
    bool last = false;
    fds_status status = FDS_OK;
    while (status == FDS_OK && !last) {
        if (t->column_count >= FDS__MAX_SIDE + 2)
            status = fds__fail(err, FDS_ERR_LIMIT, "%s: more than %u columns", t->path,
                               FDS__MAX_SIDE + 2);
        else
            status = fds__grow(&columns, &capacity, t->column_count + 1, sizeof(char *), err);
        t->columns = columns;
        char **column = status == FDS_OK ? &t->columns[t->column_count] : NULL;
        if (status == FDS_OK)
            status = cut_field(s, column, &last, err);
        if (status == FDS_OK) {
            t->column_count++;
            const char *fault = fds__name_fault(*column = fds__name_trim(*column));
            if (fault)
                status = fds__fail(err, FDS_ERR_FORMAT, "%s: line 1, column %zu: %s", t->path,
                                   t->column_count, fault);
        }
    }
    if (status == FDS_OK && !(t->fields = fds__alloc_zero(t->column_count, sizeof(char *))))
        status = fds__fail_nomem(err, t->column_count * sizeof(char *));
    return status;
}

/* The number of the column with that name; column_count: none. */
static fds_status find_column(const table *t, const char *name, size_t *column, fds_error *err) {
    *column = t->column_count;
    for (size_t i = 0; i < t->column_count; i++) {
        if (strcmp(t->columns[i], name) != 0)
            continue;
        if (*column != t->column_count)
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
    if (t->label == t->column_count)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: line 1: no column is named \"%s\"; the first line must name the "
                         "columns, and one must be the label",
                         t->path, label);
    TRY(find_column(t, provider ? provider : "provider", &t->provider, err));
    if (!provider && t->provider == t->label)
        t->provider = t->column_count;
    bool has_provider = t->provider < t->column_count;
    if (provider && !has_provider)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line 1: no column is named \"%s\"", t->path,
                         provider);
    if (t->provider == t->label)
        return fds__fail(err, FDS_ERR_USAGE, "%s: column \"%s\" cannot be both label and provider",
                         t->path, label);
    t->features = t->column_count - 1 - has_provider;
    if (t->features == 0)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line 1: no columns with values", t->path);
    return FDS_OK;
}

/* ---- the lines ---- */

/* A decimal number in the C locale, whatever the program's own is. */
static fds_status parse_number(const table *t, size_t line, size_t column, locale_t locale,
                               float *value, fds_error *err) {
    const char *text = t->fields[column];
    char *end = NULL;
    size_t len = strspn(text, " +-.0123456789eE");
    if (text[len] == 0)
        *value = (float)strtod_l(text, &end, locale);
    while (end && *end == ' ')
        end++;
    if (!end || end == text || *end || !isfinite(*value))
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: line %zu, column \"%.60s\": \"%.60s\" is not a finite number%s",
                         t->path, line, t->columns[column], text,
                         text[len] ? "; if the column names the providers, use --provider, else "
                                     "remove the column"
                                   : "");
    return FDS_OK;
}

static fds_status keep_text(const table *t, size_t line, size_t column, char ***list,
                            size_t *capacity, fds_error *err) {
    char *name = fds__name_trim(t->fields[column]);
    const char *fault = *name ? fds__name_fault(name) : "empty";
    if (fault)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu, column \"%.60s\": %s", t->path, line,
                         t->columns[column], fault);
    void *items = *list;
    fds_status status = fds__grow(&items, capacity, t->rows + 1, sizeof(char *), err);
    *list = items;
    if (status == FDS_OK)
        (*list)[t->rows] = name;
    return status;
}

static fds_status read_fields(scanner *s, table *t, size_t line, fds_error *err) {
    size_t count = 0;
    for (bool last = false; !last; count++) {
        char *field;
        TRY(cut_field(s, &field, &last, err));
        if (count < t->column_count)
            t->fields[count] = field;
    }
    if (count != t->column_count)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu: %zu fields, but the header has %zu",
                         t->path, line, count, t->column_count);
    return FDS_OK;
}

static fds_status read_row(scanner *s, table *t, locale_t locale, fds_error *err) {
    size_t line = s->line, needed;
    TRY(read_fields(s, t, line, err));
    TRY(keep_text(t, line, t->label, &t->labels, &t->labels_capacity, err));
    if (t->provider < t->column_count)
        TRY(keep_text(t, line, t->provider, &t->providers, &t->providers_capacity, err));
    if (!fds__mul(t->rows + 1, t->features, &needed))
        return fds__fail(err, FDS_ERR_LIMIT, "%s: line %zu: too many values", t->path, line);
    void *values = t->values;
    fds_status status = fds__grow(&values, &t->values_capacity, needed, sizeof(float), err);
    t->values = values;
    TRY(status);
    float *out = t->values + t->rows * t->features;
    for (size_t c = 0; c < t->column_count; c++)
        if (c != t->label && c != t->provider)
            TRY(parse_number(t, line, c, locale, out++, err));
    t->rows++;
    return FDS_OK;
}

static fds_status read_rows(scanner *s, table *t, locale_t locale, const fds_events *events,
                            fds_error *err) {
    const char *start = s->at, *reported = s->at;
    double start_s = fds__now_s();
    for (skip_blank_lines(s); s->at < s->end; skip_blank_lines(s)) {
        TRY(read_row(s, t, locale, err));
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
    char *text = (char *)file->data;
    if (strlen(text) != file->size)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: byte %zu: NUL in a text file", file->path,
                         strlen(text));
    scanner s = {file, text, text + file->size, 1};
    s.at += fds__utf8_mark(file->data, file->size);
    TRY(read_header(&s, t, err));
    TRY(find_columns(t, options, err));
    locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!locale)
        return fds__fail_nomem(err, sizeof locale);
    fds_status status = read_rows(&s, t, locale, events, err);
    freelocale(locale);
    return status;
}

/* ---- tables to datasets ---- */

static fds_status check_same_columns(const table *a, const table *b, fds_error *err) {
    bool same =
        a->column_count == b->column_count && a->label == b->label && a->provider == b->provider;
    for (size_t i = 0; same && i < a->column_count; i++)
        same = strcmp(a->columns[i], b->columns[i]) == 0;
    return same ? FDS_OK
                : fds__fail(err, FDS_ERR_SHAPE, "%s and %s must have the same columns", a->path,
                            b->path);
}

/* Numbers the labels (or providers) of all tables together; the caller owns ids and names. */
static fds_status number_column(const table *tables, size_t count, bool providers, uint32_t **ids,
                                fds__names *names, fds_error *err) {
    size_t rows = 0;
    for (size_t i = 0; i < count; i++)
        rows += tables[i].rows;
    const char **texts = fds__alloc_zero(rows, sizeof *texts);
    *ids = fds__alloc_zero(rows, sizeof **ids);
    fds_status status = texts && *ids ? FDS_OK : fds__fail_nomem(err, rows * sizeof *texts);
    rows = 0;
    for (size_t i = 0; i < count && status == FDS_OK; i++) {
        char **list = providers ? tables[i].providers : tables[i].labels;
        for (size_t r = 0; r < tables[i].rows; r++)
            texts[rows++] = list[r];
    }
    if (status == FDS_OK)
        status =
            fds__names_number(texts, rows, true, providers ? FDS__MAX_PROVIDERS : FDS__MAX_CLASSES,
                              providers ? "provider" : "class", tables[0].path, *ids, names, err);
    fds__free(texts);
    return status;
}

/* The names of the columns that are neither label nor provider. */
static fds_status copy_feature_names(const table *t, char ***out, fds_error *err) {
    for (size_t c = 0, f = 0; c < t->column_count; c++)
        if (c != t->label && c != t->provider)
            t->fields[f++] = t->columns[c];
    return fds__names_copy(&(fds__names){t->fields, t->features}, out, err);
}

/* Takes the table's values over: a large table must not be in memory twice. */
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
    TRY(fds__names_copy(classes, &ds->class_names, err));
    ds->classes = (uint32_t)classes->count;
    TRY(copy_feature_names(t, &ds->feature_names, err));
    if (!provider_ids)
        return FDS_OK;
    ds->provider_ids = fds__alloc(t->rows * sizeof *provider_ids);
    if (!ds->provider_ids)
        return fds__fail_nomem(err, t->rows * sizeof *provider_ids);
    memcpy(ds->provider_ids, provider_ids, t->rows * sizeof *provider_ids);
    TRY(fds__names_copy(providers, &ds->provider_names, err));
    ds->providers = (uint32_t)providers->count;
    return FDS_OK;
}

static fds_status make_datasets(table *tables, size_t count, fds_dataset **out, fds_error *err) {
    uint32_t *labels = NULL, *provider_ids = NULL;
    fds__names classes = {0}, providers = {0};
    fds_status status = number_column(tables, count, false, &labels, &classes, err);
    if (status == FDS_OK && tables[0].providers)
        status = number_column(tables, count, true, &provider_ids, &providers, err);
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
    fds__free(t->columns);
    fds__free(t->fields);
    fds__free(t->labels);
    fds__free(t->providers);
    fds__free(t->values);
}

fds_status fds__csv_parse(fds__blob *files, size_t count, const fds__data_options *options,
                          const fds_events *events, fds_dataset **out, fds_error *err) {
    assert(count == 1 || count == 2);
    table tables[2] = {{0}};
    fds_dataset *made[2] = {0};
    fds_status status = FDS_OK;
    for (size_t i = 0; i < count && status == FDS_OK; i++) {
        status = read_table(&files[i], options, events, &tables[i], err);
        if (status == FDS_OK && tables[i].rows == 0)
            status =
                fds__fail(err, FDS_ERR_SHAPE, "%s: no samples below the header", files[i].path);
    }
    if (status == FDS_OK && count == 2)
        status = check_same_columns(&tables[0], &tables[1], err);
    if (status == FDS_OK)
        status = make_datasets(tables, count, made, err);
    for (size_t i = 0; i < 2; i++) {
        free_table(&tables[i]);
        if (status != FDS_OK)
            fds_dataset_free(made[i]);
        else if (i < count)
            out[i] = made[i];
    }
    return status;
}
