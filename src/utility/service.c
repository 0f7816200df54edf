/* SPDX-License-Identifier: Apache-2.0
 *
 * The answers of a service model that was trained elsewhere (the parameter "service_probs"): a row of
 * probabilities for each sample of the data that test samples are taken from, or for each input of a
 * run. It says which label is predicted and how sure the model is; utilities are still those of
 * sub-models.
 *
 *   NPY   an array (rows, classes) of floats, classes in the order of the data
 *   CSV   order,cat,dog     a first line with texts names the columns: classes in any order, and
 *         A7,0.75,0.25      others, such as an id, which are not read; without such a line the
 *         A8,0.125,0.875    columns are the classes in the order of the data
 *
 * Fields of a CSV file are separated as in data (scan.c); rows are in the order of the samples. */
#include "utility/utility.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double SUM_SLACK = 1e-4; /* rounding, in the sum of a row */

typedef struct {
    const char *path;
    fds__service_form form;
    double *out;     /* (rows, classes) */
    locale_t locale; /* C, whatever the program's own is */
    /* of a CSV file: */
    uint32_t *class_of; /* (columns) or FDS__UNKNOWN: the column is not read */
    size_t columns, rows;
} service;

/* place: "row 7 (from 0)" or "line 9". */
static fds_status check_row(const service *s, const char *place, const double *probs,
                            fds_error *err) {
    double sum = 0;
    for (uint32_t y = 0; y < s->form.classes; y++) {
        if (!(probs[y] >= 0 && probs[y] <= 1))
            return fds__fail(err, FDS_ERR_FORMAT,
                             "%s: %s, class \"%.60s\": the probability is %g; it must be from 0 "
                             "to 1",
                             s->path, place, s->form.name_of(s->form.names, y), probs[y]);
        sum += probs[y];
    }
    if (fabs(sum - 1) > SUM_SLACK)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: %s: its probabilities sum to %.6g; they must sum to 1", s->path,
                         place, sum);
    return FDS_OK;
}

/* ---- NPY ---- */

static fds_status take(const service *s, const fds_dataset *probs, fds_error *err) {
    const uint32_t classes = s->form.classes;
    if (!probs->floats || probs->count != s->form.rows ||
        !fds__shape_equal(probs->shape, (fds_shape){classes, 1, 1}))
        return fds__fail(
            err, FDS_ERR_SHAPE,
            "%s: %zu rows of %zu %s; it must have a row of %u floats, one per class, for "
            "each of the %zu %s",
            s->path, probs->count, probs->sample_size, probs->floats ? "floats" : "bytes", classes,
            s->form.rows, s->form.of);
    for (size_t i = 0; i < s->form.rows * classes; i++)
        s->out[i] = (double)probs->floats[i];
    for (size_t i = 0; i < s->form.rows; i++) {
        char place[48];
        snprintf(place, sizeof place, "row %zu (from 0)", i);
        TRY(check_row(s, place, s->out + i * classes, err));
    }
    return FDS_OK;
}

static fds_status read_npy(const service *s, fds__blob *file, fds_error *err) {
    fds_dataset *probs = NULL;
    fds_status status = fds__npy_values(file, &probs, err);
    if (status == FDS_OK)
        status = take(s, probs, err);
    fds_dataset_free(probs);
    return status;
}

/* ---- CSV ---- */

/* A number in the notation of C; the decimal point may be a comma if that separates no fields. */
static bool read_number(const service *s, char *text, char separator, double *out) {
    char *end, *comma = separator == ',' ? NULL : strchr(text, ',');
    if (comma)
        *comma = '.';
    if (!*text || text[strspn(text, "+-.0123456789eE")])
        return false;
    *out = strtod_l(text, &end, s->locale);
    return !*end;
}

/* The fields of a line as texts; the caller frees texts->items, not the texts. */
static fds_status read_line(fds__scanner *scan, fds__names *texts, fds_error *err) {
    texts->count = 0;
    for (bool is_last = false; !is_last;) {
        fds__field field;
        TRY(fds__scan_field(scan, &field, &is_last, err));
        TRY(fds__names_push(texts, fds__field_text(&field), err));
    }
    return FDS_OK;
}

static uint32_t find_class(const service *s, const char *name) {
    uint32_t y = 0;
    while (y < s->form.classes && strcmp(s->form.name_of(s->form.names, y), name) != 0)
        y++;
    return y < s->form.classes ? y : FDS__UNKNOWN;
}

/* Whether the first of so many lines names columns. Classes may be numbers, so a line of their names
 * alone is a header too, if there is one line more than rows are needed. */
static bool is_header(const service *s, const fds__names *texts, size_t lines, char separator) {
    bool has_text = false, are_classes = texts->count == s->form.classes;
    for (size_t c = 0; c < texts->count; c++) {
        double number;
        char copy[64];
        snprintf(copy, sizeof copy, "%s", texts->items[c]);
        has_text |= !read_number(s, copy, separator, &number);
        are_classes &= find_class(s, texts->items[c]) != FDS__UNKNOWN;
    }
    return has_text || (are_classes && lines == s->form.rows + 1);
}

/* Which column has which class. */
static fds_status read_header(service *s, size_t line, const fds__names *texts, fds_error *err) {
    OWNED size_t *column_of = NULL; /* (classes) from 1 */
    TRY(NEW(column_of, s->form.classes, err));
    for (size_t c = 0; c < s->columns; c++) {
        uint32_t y = s->class_of[c] = find_class(s, texts->items[c]);
        if (y == FDS__UNKNOWN)
            continue;
        if (column_of[y])
            return fds__fail(err, FDS_ERR_FORMAT,
                             "%s: line %zu: columns %zu and %zu have the class \"%.60s\"", s->path,
                             line, column_of[y], c + 1, texts->items[c]);
        column_of[y] = c + 1;
    }
    for (uint32_t y = 0; y < s->form.classes; y++)
        if (!column_of[y])
            return fds__fail(err, FDS_ERR_FORMAT,
                             "%s: line %zu: no column is named \"%.60s\"; there must be one for "
                             "each of the %u classes",
                             s->path, line, s->form.name_of(s->form.names, y), s->form.classes);
    return FDS_OK;
}

static fds_status fail_rows(const service *s, const char *more, fds_error *err) {
    return fds__fail(err, FDS_ERR_SHAPE,
                     "%s: %s%zu rows of probabilities; it must have one for each of the %zu %s",
                     s->path, more, s->rows, s->form.rows, s->form.of);
}

static fds_status read_row(service *s, size_t line, char separator, const fds__names *texts,
                           fds_error *err) {
    char place[48];
    if (texts->count != s->columns)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu: %zu fields; there must be %zu%s",
                         s->path, line, texts->count, s->columns,
                         s->rows ? ", as in the lines before" : "");
    if (s->rows == s->form.rows)
        return fail_rows(s, "more than ", err);
    double *probs = s->out + s->rows++ * s->form.classes;
    for (size_t c = 0; c < s->columns; c++) {
        uint32_t y = s->class_of[c];
        char text[64];
        snprintf(text, sizeof text, "%s", texts->items[c]);
        if (y != FDS__UNKNOWN && (!read_number(s, texts->items[c], separator, &probs[y]) ||
                                  !(probs[y] >= 0 && probs[y] <= 1)))
            return fds__fail(
                err, FDS_ERR_FORMAT,
                "%s: line %zu, column %zu (class \"%.60s\"): \"%s\" is no probability; "
                "it must be a number from 0 to 1",
                s->path, line, c + 1, s->form.name_of(s->form.names, y), text);
    }
    snprintf(place, sizeof place, "line %zu", line);
    return check_row(s, place, probs, err);
}

/* The first of so many lines: a header, or the first row. */
static fds_status begin(service *s, size_t line, size_t lines, char separator,
                        const fds__names *texts, fds_error *err) {
    s->columns = texts->count;
    TRY(NEW(s->class_of, s->columns, err));
    if (is_header(s, texts, lines, separator))
        return read_header(s, line, texts, err);
    if (s->columns != s->form.classes)
        return fds__fail(err, FDS_ERR_SHAPE,
                         "%s: line %zu: %zu numbers; there must be %u, one per class, or a first "
                         "line that names the columns",
                         s->path, line, s->columns, s->form.classes);
    for (size_t c = 0; c < s->columns; c++)
        s->class_of[c] = (uint32_t)c;
    return read_row(s, line, separator, texts, err);
}

static fds_status count_lines(fds__scanner scan, size_t *lines, fds_error *err) {
    for (*lines = 0; fds__scan_line(&scan); ++*lines)
        for (bool is_last = false; !is_last;) {
            fds__field field;
            TRY(fds__scan_field(&scan, &field, &is_last, err));
        }
    return FDS_OK;
}

static fds_status read_lines(service *s, const fds__blob *file, fds__names *texts, fds_error *err) {
    fds__scanner scan;
    size_t lines;
    TRY(fds__scan_begin(file, 0, &scan, err));
    TRY(count_lines(scan, &lines, err));
    while (fds__scan_line(&scan)) {
        size_t line = scan.line;
        TRY(read_line(&scan, texts, err));
        TRY(s->columns ? read_row(s, line, scan.separator, texts, err)
                       : begin(s, line, lines, scan.separator, texts, err));
    }
    return s->rows == s->form.rows ? FDS_OK : fail_rows(s, "", err);
}

static fds_status read_csv(service *s, const fds__blob *file, fds_error *err) {
    fds__names texts = {0};
    s->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* takes no memory */
    fds_status status = read_lines(s, file, &texts, err);
    fds__free(texts.items);
    fds__free(s->class_of);
    return status;
}

/* ---- both ---- */

fds_status fds__service_parse(fds__blob *file, const fds__service_form *form, double *out,
                              fds_error *err) {
    service s = {.path = file->path, .form = *form, .out = out};
    bool is_npy = file->size >= 6 && memcmp(file->data, "\x93NUMPY", 6) == 0;
    return is_npy ? read_npy(&s, file, err) : read_csv(&s, file, err);
}

fds_status fds__service_load(const char *path, const fds__service_form *form, double *out,
                             fds_error *err) {
    fds__blob file = {.path = path};
    TRY(fds__file_read_gz(path, FDS__MAX_FILE, NULL, &file.data, &file.size, err));
    fds_status status = fds__service_parse(&file, form, out, err);
    fds__free(file.data);
    return status;
}

static const char *class_name(const void *names, uint32_t y) {
    return fds_dataset_class_name(names, y);
}

fds_status fds__service_read(const fds_problem *p, const fds_params *params, fds__labels *out,
                             fds_error *err) {
    const size_t classes = p->train->classes;
    OWNED double *all = NULL;
    if (!params->service_probs)
        return FDS_OK;
    if (p->train->targets)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`service_probs` needs classes, and `task` regression has none");
    const fds__service_form form = {.rows = p->test->count,
                                    .classes = (uint32_t)classes,
                                    .of = p->has_test_part ? "samples of the test part"
                                                           : "samples of the data",
                                    .names = p->train,
                                    .name_of = class_name};
    TRY(NEW(all, p->test->count * classes, err));
    TRY(fds__service_load(params->service_probs, &form, all, err));
    TRY(NEW(out->service, p->test_count * classes, err));
    for (size_t i = 0; i < p->test_count; i++)
        memcpy(out->service + i * classes, all + p->tests[i] * classes, classes * sizeof *all);
    return FDS_OK;
}
