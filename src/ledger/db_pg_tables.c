/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of a PostgreSQL database as a whole: whether they are those of a ledger, and copies of them.
 *
 * To check them, two lists of lines are compared: one is read from the system's catalogs, the other
 * follows from the statements that make the tables. New tables to compare with could not be made on a
 * standby, which auditors may well read.
 *
 *   table entry (r, p)                           an ordinary table that survives a crash
 *   column entry.label text collate C
 *   constraint of entry: UNIQUE (customer, key)
 *   trigger entry_protect of entry (58, A): BEGIN ...
 *
 * Further indexes are allowed: they change nothing. */
#include "ledger/db_pg.h"

#include <stdarg.h>
#include <stdlib.h>

enum { MOST_LINES = 128, LINE = 240, MOST_TABLES = 400 };

typedef struct {
    db base;
    char lines[MOST_LINES][LINE];
    size_t count;
    char tables[MOST_TABLES]; /* "meta account entry" */
} sketch;

/* BEFORE, DELETE, UPDATE, TRUNCATE; fires in sessions of replication too */
#define PROTECT_TYPE "58, A"

static const char *const catalog_sql =
    "WITH t AS (SELECT oid, relname::text AS name, relkind, relpersistence FROM pg_class WHERE "
    " relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND "
    " relname::text = ANY(string_to_array($1, ' ')) AND relkind NOT IN ('i', 'S')) "
    "SELECT line FROM ("
    " SELECT 'table ' || name || ' (' || relkind::text || ', ' || relpersistence::text || ')' FROM "
    "t"
    " UNION ALL "
    " SELECT 'column ' || name || '.' || attname::text || ' ' || format_type(atttypid, atttypmod) "
    "||"
    "  coalesce((SELECT ' collate ' || collname::text FROM pg_collation c WHERE c.oid = "
    "attcollation"
    "  AND collname <> 'default'), '') || CASE WHEN attnotnull THEN ' not null' ELSE '' END"
    "  FROM t JOIN pg_attribute ON attrelid = t.oid WHERE attnum > 0 AND NOT attisdropped"
    " UNION ALL "
    " SELECT 'constraint of ' || name || ': ' || pg_get_constraintdef(c.oid) FROM t JOIN"
    "  pg_constraint c ON conrelid = t.oid WHERE contype <> 'n'"
    " UNION ALL "
    " SELECT 'trigger ' || tgname::text || ' of ' || name || ' (' || tgtype || ', ' ||"
    "  tgenabled::text || '): ' || prosrc FROM t JOIN pg_trigger ON tgrelid = t.oid JOIN pg_proc p"
    "  ON p.oid = tgfoid WHERE NOT tgisinternal"
    " UNION ALL "
    " SELECT 'rule ' || rulename::text || ' of ' || name FROM t JOIN pg_rewrite ON ev_class = t.oid"
    ") AS all_lines(line) ORDER BY line COLLATE \"C\"";

/* ---- what make makes ---- */

__attribute__((format(printf, 2, 3))) static void add(sketch *s, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (s->count < MOST_LINES)
        vsnprintf(s->lines[s->count++], LINE, format, args);
    va_end(args);
}

static const char *type_name(const char *item) {
    static const char *const types[][2] = {{" INTEGER", "bigint"},
                                           {" REAL", "double precision"},
                                           {" BLOB", "bytea"},
                                           {" TEXT", "text collate C"}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strstr(item, types[i][0]))
            return types[i][1];
    return "?";
}

/* "name TEXT NOT NULL UNIQUE" or "PRIMARY KEY(account, day, label)". */
static void add_item(sketch *s, const char *table, const char *item) {
    const char *list = strchr(item, '('), *references = strstr(item, "REFERENCES ");
    int name = (int)strcspn(item, " (");
    bool is_key = strstr(item, "PRIMARY KEY") != NULL, is_unique = strstr(item, "UNIQUE") != NULL;
    const char *constraint = is_key ? "PRIMARY KEY" : "UNIQUE";
    if (strncmp(item, "PRIMARY KEY", 11) == 0 || strncmp(item, "UNIQUE", 6) == 0) {
        add(s, "constraint of %s: %s %s", table, constraint, list ? list : "");
        return;
    }
    add(s, "column %s.%.*s %s%s", table, name, item, type_name(item),
        is_key || strstr(item, "NOT NULL") ? " not null" : "");
    if (is_key || is_unique)
        add(s, "constraint of %s: %s (%.*s)", table, constraint, name, item);
    if (references)
        add(s, "constraint of %s: FOREIGN KEY (%.*s) %s", table, name, item, references);
}

/* "entry(idx INTEGER PRIMARY KEY, kind TEXT NOT NULL, ...) STRICT" */
static void add_table(sketch *s, const char *text) {
    char table[64], item[LINE];
    size_t used = 0;
    snprintf(table, sizeof table, "%.*s", (int)strcspn(text, "("), text);
    snprintf(s->tables + strlen(s->tables), sizeof s->tables - strlen(s->tables), "%s%s",
             *s->tables ? " " : "", table);
    add(s, "table %s (r, p)", table);
    const char *at = text + strlen(table) + 1;
    for (int depth = 1; *at && depth; at++) {
        depth += (*at == '(') - (*at == ')');
        if (depth == 0 || (depth == 1 && *at == ',')) {
            item[used] = 0;
            add_item(s, table, item);
            used = 0;
        } else if (used < sizeof item - 1 && (used || *at != ' ')) {
            item[used++] = *at;
        }
    }
}

static fds_status sketch_run(db *base, const char *sql, fds_error *err) {
    (void)err;
    for (const char *at = sql; (at = strstr(at, "CREATE TABLE "));) {
        at += strlen("CREATE TABLE ");
        add_table((sketch *)base, at);
    }
    return FDS_OK;
}

static fds_status sketch_protect(db *base, const char *table, fds_error *err) {
    (void)err;
    add((sketch *)base, "trigger %s_protect of %s (" PROTECT_TYPE "): %s", table, table,
        DB_PG_PROTECT);
    return FDS_OK;
}

static const db_store sketch_store = {.run = sketch_run, .protect = sketch_protect};

/* ---- comparing ---- */

static int compare_lines(const void *a, const void *b) { return strcmp(a, b); }

static fds_status compare(const sketch *wanted, db_query *q, const char *name, fds_error *err) {
    for (size_t i = 0;; i++) {
        bool has_row;
        TRY(db_next(q, &has_row, err));
        const char *found = has_row ? db_text(q, 0, NULL) : NULL,
                   *line = i < wanted->count ? wanted->lines[i] : NULL;
        if (!found && !line)
            return FDS_OK;
        int order = !found ? 1 : !line ? -1 : strcmp(found, line);
        if (order != 0)
            return fds__fail(err, FDS_ERR_CORRUPT,
                             "%s: its tables, constraints or triggers were changed. %s: %s", name,
                             order > 0 ? "Missing" : "Not of a ledger", order > 0 ? line : found);
    }
}

static fds_status draw(sketch **out, db_make make, fds_error *err) {
    TRY(NEW(*out, 1, err));
    (*out)->base.store = &sketch_store;
    return make(&(*out)->base, err);
}

fds_status db_pg_check(db *d, const char *name, db_make make, fds_error *err) {
    OWNED sketch *wanted = NULL;
    db_query *q = NULL;
    TRY(draw(&wanted, make, err));
    qsort(wanted->lines, wanted->count, sizeof *wanted->lines, compare_lines);
    TRY(db_prepare(d, catalog_sql, false, &q, err));
    db_bind_text(q, 1, wanted->tables);
    fds_status status = compare(wanted, q, name, err);
    db_end(q);
    db_query_free(q);
    return status;
}

/* ---- copying ---- */

static int count_columns(const sketch *s, const char *table) {
    char begin[LINE];
    int count = 0;
    snprintf(begin, sizeof begin, "column %s.", table);
    for (size_t i = 0; i < s->count; i++)
        count += strncmp(s->lines[i], begin, strlen(begin)) == 0;
    return count;
}

static void bind_column(db_query *to, const db_query *from, int i) {
    const void *data;
    size_t size;
    switch (db_type_of(from, i)) {
    case DB_INT:
        db_bind_int(to, i + 1, db_int(from, i));
        break;
    case DB_REAL:
        db_bind_real(to, i + 1, db_real(from, i));
        break;
    case DB_TEXT:
        db_bind_text(to, i + 1, db_text(from, i, NULL));
        break;
    case DB_BLOB:
        data = db_blob(from, i, &size);
        db_bind_blob(to, i + 1, data, size);
        break;
    default:
        break; /* null */
    }
}

static fds_status copy_rows(db_query *from, db_query *to, int columns, fds_error *err) {
    for (;;) {
        bool has_row;
        TRY(db_next(from, &has_row, err));
        if (!has_row)
            return FDS_OK;
        for (int i = 0; i < columns; i++)
            bind_column(to, from, i);
        TRY(db_do(to, err));
    }
}

static fds_status copy_table(db *from, db *to, const char *table, int columns, fds_error *err) {
    char sql[LINE];
    db_query *rows = NULL, *insert = NULL;
    snprintf(sql, sizeof sql, "SELECT * FROM %s", table);
    TRY(db_prepare(from, sql, true, &rows, err));
    snprintf(sql, sizeof sql, "INSERT INTO %s VALUES(", table);
    for (int i = 1; i <= columns; i++)
        snprintf(sql + strlen(sql), sizeof sql - strlen(sql), "$%d%s", i, i < columns ? "," : ")");
    fds_status status = db_prepare(to, sql, false, &insert, err);
    if (status == FDS_OK)
        status = copy_rows(rows, insert, columns, err);
    db_end(rows);
    db_query_free(rows);
    db_query_free(insert);
    return status;
}

/* In the order in which they are made: rows that others refer to come first. */
static fds_status copy_tables(const sketch *s, db *from, db *to, fds_error *err) {
    for (const char *at = s->tables; *at;) {
        char table[64];
        int length = (int)strcspn(at, " ");
        snprintf(table, sizeof table, "%.*s", length, at);
        TRY(copy_table(from, to, table, count_columns(s, table), err));
        at += length + (at[length] == ' ');
    }
    return FDS_OK;
}

fds_status db_pg_copy(db *d, db_make make, const char *path, db_pause pause, void *user,
                      fds_error *err) {
    (void)pause; /* others have connections of their own */
    (void)user;
    OWNED sketch *s = NULL;
    db *to = NULL;
    TRY(draw(&s, make, err));
    TRY(db_sqlite.open(path, DB_CREATE, &to, err));
    fds_status status = db_begin(to, err);
    if (status == FDS_OK)
        status = make(to, err);
    if (status == FDS_OK)
        status = copy_tables(s, d, to, err);
    if (status == FDS_OK)
        status = db_commit(to, err);
    db_close(to);
    return status;
}
