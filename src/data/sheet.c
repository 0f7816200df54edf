/* SPDX-License-Identifier: Apache-2.0
 * The columns of a CSV file.
 *
 *   id;label;provider;height;colour     the first line names the columns; one is the label, one may
 *   7;cat;Clinic A;25,1;red             be the provider, one an id; all others are features: numbers
 *   8;dog;Clinic B;;blue                or text; a field may be empty
 *
 * A file is scanned twice: first to count what each column has, then to read it. Where the separator
 * is not a comma, a comma in a number is a decimal point. */
#include "data/sheet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_COLUMNS = FDS__MAX_SIDE + 4 };

void sheet_free(sheet *s) {
    for (size_t c = 0; c < s->count; c++) {
        fds__free(s->columns[c].values);
        fds__free(s->columns[c].targets);
        fds__free(s->columns[c].texts.items);
    }
    fds__free(s->columns);
    fds__free(s->lines);
    fds__free(s->left_rows);
    fds__free(s->left_ids.items);
}

sheet_column *sheet_find(const sheet *s, sheet_role role) {
    for (size_t c = 0; c < s->count; c++)
        if (s->columns[c].role == role)
            return &s->columns[c];
    return NULL;
}

/* ---- fields ---- */

static fds__field trimmed(fds__field f) {
    for (; f.length && strchr(" \t", f.text[0]); f.text++)
        f.length--;
    for (; f.length && strchr(" \t", f.text[f.length - 1]);)
        f.length--;
    return f;
}

static bool is_word(const fds__field *f, const char *word) {
    return f->length == strlen(word) && strncasecmp(f->text, word, f->length) == 0;
}

/* What spreadsheets, R and Python write where there is no value. */
static bool is_missing(fds__field f) {
    static const char *const words[] = {"",     "na",   "n/a",  "#n/a", "nan",
                                        "null", "none", "<na>", "?"};
    f = trimmed(f);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_word(&f, words[i]))
            return true;
    return false;
}

/* A finite number in the notation of C; the decimal point may be a comma if that separates no
 * fields. */
static bool read_double(const sheet *s, fds__field f, double *out) {
    char text[64], *end;
    f = trimmed(f);
    if (!f.length || f.length >= sizeof text)
        return false;
    memcpy(text, f.text, f.length);
    text[f.length] = 0;
    char *comma = s->start.separator == ',' || strchr(text, '.') ? NULL : strchr(text, ',');
    if (comma)
        *comma = '.';
    if (text[strspn(text, "+-.0123456789eE")])
        return false;
    *out = strtod_l(text, &end, s->locale);
    return end != text && !*end && isfinite(*out);
}

static bool read_number(const sheet *s, fds__field f, float *out) {
    double number;
    bool is_number = read_double(s, f, &number);
    *out = is_number ? (float)number : NAN;
    return is_number && isfinite(*out);
}

/* 2024-01-31, 31.01.2024, 1/31/24, also with a time behind. */
static bool is_date(fds__field f) {
    f = trimmed(f);
    char text[16];
    int parts[3], used = 0;
    snprintf(text, sizeof text, "%.*s", (int)MIN(f.length, (size_t)15), f.text);
    for (const char *mark = "-./"; *mark; mark++) {
        char format[] = "%4d-%2d-%4d%n";
        format[3] = format[7] = *mark;
        if (sscanf(text, format, &parts[0], &parts[1], &parts[2], &used) == 3)
            return parts[0] > 0 && parts[1] > 0 && parts[2] > 0;
    }
    return false;
}

/* ---- the header ---- */

/* "a", "b", "c" and how they are separated, for messages. */
static const char *describe_columns(const sheet *s, char *out, size_t size) {
    size_t used = 0, shown = 0;
    for (; shown < s->count && shown < 12 && used < size - 80; shown++)
        used += (size_t)snprintf(out + used, size - used, "%s\"%.40s\"", shown ? ", " : "",
                                 s->columns[shown].name);
    if (shown < s->count)
        used += (size_t)snprintf(out + used, size - used, " and %zu more", s->count - shown);
    snprintf(out + used, size - used, ", separated by %s", fds__separator_name(s->start.separator));
    return out;
}

static fds_status fail_no_column(const sheet *s, const char *name, const char *more,
                                 fds_error *err) {
    char columns[700], hint[FDS__HINT];
    const char **names = fds__alloc_zero(s->count + 1, sizeof *names);
    for (size_t c = 0; names && c < s->count; c++)
        names[c] = s->columns[c].name;
    fds_status status = fds__fail(
        err, FDS_ERR_FORMAT, "%s: line 1: no column is named \"%.60s\"; the columns are %s%s%s",
        s->path, name, describe_columns(s, columns, sizeof columns), more,
        names ? fds__hint(name, names, hint) : "");
    fds__free(names);
    return status;
}

static fds_status read_header(sheet *s, fds_error *err) {
    size_t capacity = 0, line = s->start.line;
    if (s->start.at >= s->start.end)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: empty; the first line must name the columns",
                         s->path);
    for (bool is_last = false; !is_last;) {
        fds__field field;
        void *columns = s->columns;
        if (s->count >= MOST_COLUMNS)
            return fds__fail(err, FDS_ERR_LIMIT, "%s: more than %d columns", s->path, MOST_COLUMNS);
        TRY(fds__scan_field(&s->start, &field, &is_last, err));
        fds_status status = fds__grow(&columns, &capacity, s->count + 1, sizeof *s->columns, err);
        s->columns = columns;
        TRY(status);
        sheet_column *column = &s->columns[s->count++];
        *column = (sheet_column){.name = fds__field_text(&field)};
        const char *fault = fds__name_fault(column->name);
        if (fault)
            return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu, column %zu: %s", s->path, line,
                             s->count, fault);
    }
    return FDS_OK;
}

/* Gives a role to the column with that name. */
static fds_status set_role(sheet *s, const char *name, sheet_role role, const char *more,
                           fds_error *err) {
    static const char *const words[] = {"a feature", "label", "provider", "id", "dropped"};
    sheet_column *found = NULL;
    for (size_t c = 0; c < s->count; c++) {
        if (strcmp(s->columns[c].name, name) != 0)
            continue;
        if (found)
            return fds__fail(err, FDS_ERR_FORMAT, "%s: line 1: two columns are named \"%.60s\"",
                             s->path, name);
        found = &s->columns[c];
    }
    if (!found)
        return fail_no_column(s, name, more, err);
    if (found->role != SHEET_FEATURE)
        return fds__fail(err, FDS_ERR_USAGE, "%s: column \"%.60s\" cannot be both %s and %s",
                         s->path, name, words[found->role], words[role]);
    found->role = role;
    return FDS_OK;
}

/* All columns of that name. */
static fds_status drop_column(sheet *s, const char *name, fds_error *err) {
    bool found = false;
    for (size_t c = 0; c < s->count; c++) {
        sheet_column *column = &s->columns[c];
        if (strcmp(column->name, name) != 0)
            continue;
        if (column->role != SHEET_FEATURE && column->role != SHEET_DROPPED)
            return set_role(s, name, SHEET_DROPPED, "", err); /* says why not */
        column->role = SHEET_DROPPED;
        found = true;
    }
    return found ? FDS_OK : fail_no_column(s, name, "", err);
}

static fds_status make_text(sheet *s, const char *name, fds_error *err) {
    for (size_t c = 0; c < s->count; c++)
        if (strcmp(s->columns[c].name, name) == 0) {
            s->columns[c].is_text = true;
            return FDS_OK;
        }
    return fail_no_column(s, name, "", err);
}

static bool has_column(const sheet *s, const char *name) {
    for (size_t c = 0; c < s->count; c++)
        if (strcmp(s->columns[c].name, name) == 0)
            return true;
    return false;
}

/* Copies the longest start of the list that names a column, or the first name; returns its bytes. */
static size_t longest_name(const sheet *s, const char *list, char *name, size_t size) {
    size_t first = strcspn(list, ","), length = strlen(list);
    while (true) {
        snprintf(name, size, "%.*s", (int)MIN(length, size - 1), list);
        if (length == first || has_column(s, fds__name_trim(name)))
            return length;
        while (list[--length] != ',')
            continue;
    }
}

/* Calls set for every name of a list, separated by commas. Names may have commas themselves: in
 * quotes, or where no shorter name would do. */
static fds_status each_name(sheet *s, const char *list,
                            fds_status (*set)(sheet *, const char *, fds_error *), fds_error *err) {
    while (list && *list) {
        char name[FDS__PATH_MAX];
        size_t length = fds__name_quoted(list, name, sizeof name);
        if (!length)
            length = longest_name(s, list, name, sizeof name);
        TRY(set(s, fds__name_trim(name), err));
        list += length + (list[length] == ',');
    }
    return FDS_OK;
}

static fds_status set_roles(sheet *s, const fds__data_options *o, fds_error *err) {
    const char *label = o->label_column ? o->label_column : "label";
    s->is_regression = o->is_regression;
    TRY(set_role(s, label, SHEET_LABEL, "; give the column of labels with --label", err));
    bool is_provider = has_column(s, "provider") && strcmp(label, "provider") != 0;
    if (o->provider_column || is_provider)
        TRY(set_role(s, o->provider_column ? o->provider_column : "provider", SHEET_PROVIDER, "",
                     err));
    if (o->id_column)
        TRY(set_role(s, o->id_column, SHEET_ID, "", err));
    TRY(each_name(s, o->drop, drop_column, err));
    return o->categorical && strcmp(o->categorical, "auto") != 0
               ? each_name(s, o->categorical, make_text, err)
               : FDS_OK;
}

/* ---- lines ---- */

/* Reads a line into fields[count]. */
static fds_status scan_row(const sheet *s, fds__scanner *scan, fds__field *fields, fds_error *err) {
    size_t count = 0, line = scan->line;
    for (bool is_last = false; !is_last; count++) {
        fds__field field;
        TRY(fds__scan_field(scan, &field, &is_last, err));
        if (count < s->count)
            fields[count] = field;
    }
    if (count != s->count)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: line %zu: %zu fields, but the header has %zu (separated by %s)",
                         s->path, line, count, s->count, fds__separator_name(scan->separator));
    return FDS_OK;
}

static void count_field(const sheet *s, sheet_column *column, const fds__field *field,
                        size_t line) {
    float number;
    if (is_missing(*field)) {
        column->missing++;
    } else if (read_number(s, *field, &number)) {
        column->numbers++;
        column->counting += number == (float)s->rows || number == (float)s->rows + 1;
    } else {
        column->dates += is_date(*field);
        if (!column->other_line) {
            column->other_line = line;
            column->other = *field;
        }
    }
}

/* Calls take(s, fields, line) for every line; stage "read" of the events. */
typedef fds_status (*row_taker)(sheet *s, const fds__field *fields, size_t line, const void *how,
                                fds_error *err);

static fds_status each_row(sheet *s, row_taker take, const void *how, const fds_events *events,
                           fds_error *err) {
    OWNED fds__field *fields = NULL;
    fds__scanner scan = s->start;
    const char *start = scan.at, *reported = scan.at;
    double start_s = fds__now_s();
    TRY(NEW(fields, s->count, err));
    while (fds__scan_line(&scan)) {
        size_t line = scan.line;
        TRY(scan_row(s, &scan, fields, err));
        TRY(take(s, fields, line, how, err));
        if ((size_t)(scan.at - reported) < FDS__READ_STEP)
            continue;
        reported = scan.at;
        TRY(fds__report(events, "read", "bytes", (uint64_t)(scan.at - start),
                        (uint64_t)(scan.end - start), start_s, err));
    }
    return FDS_OK;
}

static fds_status count_row(sheet *s, const fds__field *fields, size_t line, const void *how,
                            fds_error *err) {
    (void)how;
    (void)err;
    for (size_t c = 0; c < s->count; c++)
        if (s->columns[c].role == SHEET_FEATURE)
            count_field(s, &s->columns[c], &fields[c], line);
    s->rows++;
    return FDS_OK;
}

/* ---- what the columns are ---- */

/* Of numbers and text in one column, a few texts are mistakes. */
static bool is_text(const sheet_column *column, size_t rows) {
    return column->is_text || column->numbers < (rows - column->missing + 1) / 2;
}

static fds_status check_numbers(const sheet *s, const sheet_column *column, fds_error *err) {
    if (!column->other_line)
        return FDS_OK;
    return fds__fail(
        err, FDS_ERR_FORMAT,
        "%s: line %zu, column \"%.60s\": \"%.*s\" is not a finite number, but %zu other "
        "values of the column are; mend it, leave the column out with --drop, or take "
        "all of its values as text with --categorical",
        s->path, column->other_line, column->name, (int)MIN(column->other.length, (size_t)60),
        column->other.text, column->numbers);
}

static fds_status check_dates(const sheet *s, const sheet_column *column, fds_error *err) {
    if (column->is_text || column->dates * 2 < s->rows - column->missing || !column->dates)
        return FDS_OK;
    return fds__fail(
        err, FDS_ERR_FORMAT,
        "%s: line %zu, column \"%.60s\": \"%.*s\" is a date; turn dates into numbers that "
        "mean something, such as days since a certain day, or leave the column out with "
        "--drop",
        s->path, column->other_line, column->name, (int)MIN(column->other.length, (size_t)60),
        column->other.text);
}

/* Columns without a value, and unnamed ones that count the rows (pandas writes them), say
 * nothing. */
static const char *why_useless(const sheet *s, const sheet_column *column) {
    if (column->missing == s->rows)
        return "it has no values";
    bool is_unnamed = !*column->name || strncmp(column->name, "Unnamed: ", 9) == 0;
    return is_unnamed && column->counting == s->rows ? "it counts the rows" : NULL;
}

static int by_bytes(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Features are known by the names of their columns. */
static fds_status check_names(const sheet *s, fds_error *err) {
    OWNED const char **names = NULL;
    size_t count = 0;
    TRY(NEW(names, s->count, err));
    for (size_t c = 0; c < s->count; c++)
        if (s->columns[c].role == SHEET_FEATURE)
            names[count++] = s->columns[c].name;
    qsort(names, count, sizeof *names, by_bytes);
    for (size_t i = 1; i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return fds__fail(err, FDS_ERR_FORMAT,
                             "%s: line 1: two columns are named \"%.60s\"; rename one", s->path,
                             names[i]);
    return FDS_OK;
}

static fds_status choose_features(sheet *s, const fds_events *events, fds_error *err) {
    size_t features = 0;
    for (size_t c = 0; c < s->count; c++) {
        sheet_column *column = &s->columns[c];
        if (column->role != SHEET_FEATURE)
            continue;
        const char *why = why_useless(s, column);
        if (why) {
            fds__log(events, FDS_LOG_WARNING, "%s: column \"%.60s\" is left out: %s", s->path,
                     column->name, why);
            column->role = SHEET_DROPPED;
            continue;
        }
        TRY(check_dates(s, column, err));
        column->is_text = is_text(column, s->rows);
        if (!column->is_text)
            TRY(check_numbers(s, column, err));
        if (column->missing)
            fds__log(events, FDS_LOG_INFO, "%s: column \"%.60s\": %zu of %zu values are missing",
                     s->path, column->name, column->missing, s->rows);
        features++;
    }
    TRY(check_names(s, err));
    return features ? FDS_OK
                    : fds__fail(err, FDS_ERR_FORMAT, "%s: line 1: no columns with values", s->path);
}

fds_status sheet_open(const fds__blob *file, char separator, sheet *s, fds_error *err) {
    *s = (sheet){.path = file->path};
    s->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* takes no memory */
    TRY(fds__scan_begin(file, separator, &s->start, err));
    return read_header(s, err);
}

fds_status sheet_choose(sheet *s, const fds__data_options *options, const fds_events *events,
                        fds_error *err) {
    TRY(set_roles(s, options, err));
    TRY(each_row(s, count_row, NULL, events, err));
    if (!s->rows)
        return fds__fail(err, FDS_ERR_SHAPE, "%s: no samples below the header", s->path);
    return choose_features(s, events, err);
}

/* The column with that name that has no role yet. */
static sheet_column *find_free(sheet *s, const char *name) {
    for (size_t c = 0; c < s->count; c++)
        if (s->columns[c].role == SHEET_DROPPED && strcmp(s->columns[c].name, name) == 0)
            return &s->columns[c];
    return NULL;
}

static fds_status take_column(sheet *s, const char *name, sheet_role role, bool is_text,
                              const char *of, fds_error *err) {
    sheet_column *found = find_free(s, name);
    if (!found) {
        char more[FDS__PATH_MAX + 64];
        snprintf(more, sizeof more, "; it must have the same columns as %s", of);
        return fail_no_column(s, name, more, err);
    }
    found->role = role;
    found->is_text = is_text;
    return FDS_OK;
}

static void drop_all(sheet *s) {
    for (size_t c = 0; c < s->count; c++)
        s->columns[c].role = SHEET_DROPPED;
}

fds_status sheet_follow(sheet *s, const sheet *first, fds_error *err) {
    drop_all(s);
    s->is_regression = first->is_regression;
    for (size_t f = 0; f < first->count; f++) {
        const sheet_column *of = &first->columns[f];
        bool is_needed = of->role == SHEET_FEATURE || of->role == SHEET_LABEL;
        if (is_needed || (of->role != SHEET_DROPPED && find_free(s, of->name)))
            TRY(take_column(s, of->name, of->role, of->is_text, first->path, err));
    }
    return FDS_OK;
}

static fds_status take_features(sheet *s, const fds__preparation *p, fds_error *err) {
    for (size_t c = 0; c < p->count; c++)
        TRY(take_column(s, p->columns[c].name, SHEET_FEATURE, p->columns[c].is_text,
                        "the data of the run", err));
    return FDS_OK;
}

fds_status sheet_choose_prepared(sheet *s, const fds__data_options *options, fds_error *err) {
    fds__data_options roles = *options;
    roles.drop = roles.categorical =
        NULL; /* all columns but those of the preparation are dropped */
    if (roles.id_column && !has_column(s, roles.id_column))
        roles.id_column = NULL;
    TRY(set_roles(s, &roles, err));
    for (size_t c = 0; c < s->count; c++)
        if (s->columns[c].role == SHEET_FEATURE)
            s->columns[c].role = SHEET_DROPPED;
    return take_features(s, options->prepared, err);
}

fds_status sheet_prepare(sheet *s, const fds__preparation *p, fds_error *err) {
    drop_all(s);
    TRY(take_features(s, p, err));
    return p->id && find_free(s, p->id) ? take_column(s, p->id, SHEET_ID, false, "", err) : FDS_OK;
}

/* ---- the values ---- */

static fds_status keep_name(const sheet *s, sheet_column *column, const fds__field *field,
                            size_t line, fds_error *err) {
    char *name = fds__field_text(field);
    const char *fault = *name ? fds__name_fault(name) : "empty";
    if (fault)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu, column \"%.60s\": %s", s->path, line,
                         column->name, fault);
    return fds__names_push(&column->texts, name, err);
}

static fds_status keep_target(const sheet *s, sheet_column *column, const fds__field *field,
                              size_t line, fds_error *err) {
    double number;
    if (is_missing(*field))
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: line %zu, column \"%.60s\": the target is missing; --missing drop "
                         "leaves the row out",
                         s->path, line, column->name);
    if (!read_double(s, *field, &number))
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: line %zu, column \"%.60s\": \"%.*s\" is not a finite number, and "
                         "--task regression needs one; without it, labels are classes",
                         s->path, line, column->name, (int)MIN(field->length, (size_t)60),
                         field->text);
    void *targets = column->targets;
    fds_status status =
        fds__grow(&targets, &column->targets_capacity, s->rows + 1, sizeof number, err);
    column->targets = targets;
    if (status == FDS_OK)
        column->targets[s->rows] = number;
    return status;
}

static fds_status keep_feature(const sheet *s, sheet_column *column, const fds__field *field,
                               size_t line, bool is_allowed, fds_error *err) {
    bool is_absent = is_missing(*field);
    float number = NAN;
    if (is_absent && !is_allowed)
        return fds__fail(
            err, FDS_ERR_FORMAT,
            "%s: line %zu, column \"%.60s\": the value is missing; --missing mean fills "
            "in the mean and says where, --missing drop leaves the row out",
            s->path, line, column->name);
    if (column->is_text && is_absent)
        return fds__names_push(&column->texts, column->name + strlen(column->name), err);
    if (column->is_text)
        return keep_name(s, column, field, line, err);
    if (!is_absent && !read_number(s, *field, &number))
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: line %zu, column \"%.60s\": \"%.*s\" is not a finite number", s->path,
                         line, column->name, (int)MIN(field->length, (size_t)60), field->text);
    void *values = column->values;
    fds_status status =
        fds__grow(&values, &column->values_capacity, s->rows + 1, sizeof *column->values, err);
    column->values = values;
    if (status == FDS_OK)
        column->values[s->rows] = number;
    return status;
}

static fds_status keep_line(sheet *s, size_t line, fds_error *err) {
    void *lines = s->lines;
    fds_status status = fds__grow(&lines, &s->lines_capacity, s->rows + 1, sizeof *s->lines, err);
    s->lines = lines;
    if (status == FDS_OK)
        s->lines[s->rows++] = (uint32_t)MIN(line, (size_t)UINT32_MAX);
    return status;
}

/* A row that becomes no sample, which lists of owners may still name. */
static fds_status leave_out(sheet *s, const fds__field *fields, fds_error *err) {
    void *rows = s->left_rows;
    fds_status status =
        fds__grow(&rows, &s->left_capacity, s->left_out + 1, sizeof *s->left_rows, err);
    s->left_rows = rows;
    TRY(status);
    s->left_rows[s->left_out] = (uint32_t)(s->rows + s->left_out);
    s->left_out++;
    const sheet_column *id = sheet_find(s, SHEET_ID);
    return id ? fds__names_push(&s->left_ids, fds__field_text(&fields[id - s->columns]), err)
              : FDS_OK;
}

static fds_status read_row(sheet *s, const fds__field *fields, size_t line, const void *how,
                           fds_error *err) {
    fds__missing missing = *(const fds__missing *)how;
    bool is_whole = true;
    for (size_t c = 0; c < s->count; c++) {
        sheet_role role = s->columns[c].role;
        bool is_value = role == SHEET_FEATURE || (role == SHEET_LABEL && s->is_regression);
        /* a label may be "none" */
        bool is_absent = is_value ? is_missing(fields[c]) : trimmed(fields[c]).length == 0;
        is_whole = is_whole && (role == SHEET_DROPPED || !is_absent);
    }
    if (!is_whole && missing == FDS__MISSING_DROP)
        return leave_out(s, fields, err);
    for (size_t c = 0; c < s->count; c++) {
        sheet_column *column = &s->columns[c];
        if (column->role == SHEET_FEATURE)
            TRY(keep_feature(s, column, &fields[c], line, missing == FDS__MISSING_MEAN, err));
        else if (column->role == SHEET_LABEL && s->is_regression)
            TRY(keep_target(s, column, &fields[c], line, err));
        else if (column->role != SHEET_DROPPED)
            TRY(keep_name(s, column, &fields[c], line, err));
    }
    return keep_line(s, line, err);
}

fds_status sheet_read(sheet *s, fds__missing missing, const fds_events *events, fds_error *err) {
    s->rows = 0;
    TRY(each_row(s, read_row, &missing, events, err));
    if (!s->rows)
        return fds__fail(err, FDS_ERR_SHAPE, "%s: no samples below the header%s", s->path,
                         s->left_out ? " without missing values" : "");
    if (s->left_out)
        fds__log(events, FDS_LOG_WARNING, "%s: %zu of %zu rows are left out: values are missing",
                 s->path, s->left_out, s->rows + s->left_out);
    return FDS_OK;
}
