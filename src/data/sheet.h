/* SPDX-License-Identifier: Apache-2.0
 * A CSV file as columns, and how columns become the features of samples.
 *
 *   sheet.c    columns of numbers and of text, chosen and checked
 *   prepare.c  numbers, levels and missing values to features
 *   csv.c      both together: datasets */
#ifndef FDS_SHEET_H
#define FDS_SHEET_H

#include "data/data.h"

#include <locale.h>

typedef enum {
    SHEET_FEATURE,
    SHEET_LABEL,
    SHEET_PROVIDER,
    SHEET_ID,
    SHEET_DROPPED,
} sheet_role;

typedef struct sheet_column {
    char *name;
    sheet_role role;
    bool is_text;                             /* a feature of levels instead of numbers */
    size_t numbers, missing, dates, counting; /* fields; counting: equal to the row's number */
    size_t other_line;                        /* the first that is neither number nor missing */
    fds__field other;                         /* the same */
    float *values;                            /* (rows) of a feature of numbers; missing: NaN */
    size_t values_capacity;
    fds__names texts; /* (rows) otherwise, in the file's bytes; missing: "" */
    double *targets;  /* (rows) of the labels of a regression */
    size_t targets_capacity;
} sheet_column;

typedef struct sheet {
    const char *path;
    fds__scanner start; /* at the first line of values */
    sheet_column *columns;
    size_t count, rows;
    size_t left_out;     /* rows with missing values */
    uint32_t *left_rows; /* (left_out) which of all rows, from 0 */
    fds__names left_ids; /* (left_out) in the file's bytes, where there is a column of ids */
    size_t left_capacity;
    uint32_t *lines; /* (rows) where each begins in the file, from 1 */
    size_t lines_capacity;
    bool is_regression; /* labels are numbers */
    locale_t locale;    /* C, whatever the program's own is */
} sheet;

/* Reads the header. The file must outlive the sheet. The caller frees it after a failure too. */
fds_status sheet_open(const fds__blob *file, char separator, sheet *s, fds_error *err);
/* Finds the columns that the options name, and decides what the others are: numbers, levels, or
 * nothing that a network can use. */
fds_status sheet_choose(sheet *s, const fds__data_options *options, const fds_events *events,
                        fds_error *err);
/* The same for a preparation, whose columns are the features. */
fds_status sheet_choose_prepared(sheet *s, const fds__data_options *options, fds_error *err);
/* The same as in another sheet, by the names of columns. */
fds_status sheet_follow(sheet *s, const sheet *first, fds_error *err);
/* The features of a preparation, and the ids where there are any. */
fds_status sheet_prepare(sheet *s, const fds__preparation *p, fds_error *err);
/* Reads the values, and makes texts of bytes of the file. */
fds_status sheet_read(sheet *s, fds__missing missing, const fds_events *events, fds_error *err);
/* The column with a role, or NULL. */
sheet_column *sheet_find(const sheet *s, sheet_role role);
void sheet_free(sheet *s);

/* ---- prepare.c ---- */

/* A column of numbers is one feature. A column of text is a feature for each level, 1 where a sample
 * has it and 0 elsewhere; one more stands for the rare levels. Where values are missing, a feature
 * says so; a missing number is the mean of the others. */
typedef struct {
    char *name;
    bool is_text, has_missing, has_rare;
    float mean;        /* of numbers */
    fds__names levels; /* of text: those that are not rare, in order */
} prepared_column;

struct fds__preparation {
    char *id;       /* the column that names samples; or NULL */
    char separator; /* of the training table */
    prepared_column *columns;
    size_t count, features;
};

/* Learns levels and means from the rows of s. */
fds_status fds__prepare_learn(const sheet *s, const fds_events *events, fds__preparation **out,
                              fds_error *err);
/* The names of all features; the caller owns them. */
fds_status fds__prepare_names(const fds__preparation *p, fds__names *out, fds_error *err);
/* out (rows, features). Levels that p does not know are rare, or none of its levels. */
void fds__prepare_apply(const fds__preparation *p, const sheet *s, float *out);
/* Tells of missing values and unknown levels. */
void fds__prepare_warn(const fds__preparation *p, const sheet *s, const fds_events *events);

#endif
