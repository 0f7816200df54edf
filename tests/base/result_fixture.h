/* SPDX-License-Identifier: Apache-2.0
 * What the tests of results and payments share: a result made by hand, and readers of CSV and JSON
 * that know nothing of the writers. */
#ifndef FDS_TEST_RESULT_FIXTURE_H
#define FDS_TEST_RESULT_FIXTURE_H

#include "comma.h"
#include "faults.h"

#include <jansson.h>
#include <math.h>

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

static inline fds_result *new_result(size_t players, size_t predictions, uint32_t classes) {
    fds_result *r = NULL;
    fds_error err = {0};
    expect_ok(fds__result_create("ls", players, predictions, classes, &r, &err), &err);
    return r;
}

static inline void name_player(fds_result *r, size_t i, const char *name, const char *provider,
                               uint32_t label, size_t samples) {
    fds_error err = {0};
    expect_ok(fds__result_name_player(r, i, name, provider, label, samples, &err), &err);
}

static inline void name_class(fds_result *r, uint32_t label, const char *name) {
    fds_error err = {0};
    expect_ok(fds__result_name_class(r, label, name, &err), &err);
}

static inline void name_input(fds_result *r, size_t k, const char *name) {
    fds_error err = {0};
    expect_ok(fds__result_name_input(r, k, name, &err), &err);
}

/* ---- CSV, RFC 4180 ---- */

/* The next field at *at, copied; *ends_line says what followed it. The caller frees it. */
static inline char *csv_field(const char **at, bool *ends_line) {
    bool is_quoted = **at == '"';
    const char *from = *at + is_quoted, *end = from;
    if (is_quoted)
        for (; *end != '"' || end[1] == '"'; end += *end == '"' ? 2 : 1)
            assert_true(*end);
    else
        end += strcspn(end, ",\n");
    char *field = need((size_t)(end - from) + 1, 1);
    for (char *to = field; from < end; from++) {
        *to++ = *from;
        from += is_quoted && *from == '"'; /* the second of two */
    }
    end += is_quoted;
    *ends_line = *end == '\n';
    assert_true(*end == ',' || *end == '\n');
    *at = end + 1;
    return field;
}

typedef struct {
    size_t rows, columns;
    char **fields; /* (rows, columns), the header first */
} csv;

static inline csv csv_read(const char *path) {
    size_t size, capacity = 0, count = 0;
    char *data = scratch_read(path, &size);
    csv table = {0};
    for (const char *at = data; *at;) {
        bool ends_line;
        if (count == capacity) {
            capacity = 2 * capacity + 64;
            table.fields = realloc(table.fields, capacity * sizeof *table.fields);
            assert_non_null(table.fields);
        }
        table.fields[count++] = csv_field(&at, &ends_line);
        if (ends_line) {
            table.columns = table.rows++ ? table.columns : count;
            assert_int_equal(count, table.rows * table.columns);
        }
    }
    free(data);
    return table;
}

static inline const char *csv_at(const csv *table, size_t row, const char *column) {
    for (size_t i = 0; i < table->columns; i++)
        if (strcmp(table->fields[i], column) == 0)
            return table->fields[row * table->columns + i];
    fail_msg("there is no column %s", column);
    return NULL;
}

static inline void csv_free(csv *table) {
    for (size_t i = 0; i < table->rows * table->columns; i++)
        free(table->fields[i]);
    free(table->fields);
}

/* ---- JSON ---- */

static inline json_t *load_text(const char *text) {
    json_error_t mistake;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &mistake);
    if (!root)
        fail_msg("line %d: %s: %s", mistake.line, mistake.text, text);
    return root;
}

static inline json_t *load_file(const char *path) {
    size_t size;
    char *text = scratch_read(path, &size);
    json_t *root = load_text(text);
    free(text);
    return root;
}

static inline const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    if (!text)
        fail_msg("there is no text \"%s\"", key);
    return text;
}

static inline json_int_t int_of(const json_t *object, const char *key) {
    const json_t *number = json_object_get(object, key);
    if (!json_is_integer(number))
        fail_msg("there is no whole number \"%s\"", key);
    return json_integer_value(number);
}

static inline double real_of(const json_t *object, const char *key) {
    const json_t *number = json_object_get(object, key);
    if (!json_is_number(number))
        fail_msg("there is no number \"%s\"", key);
    return json_number_value(number);
}

#endif
