/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the tables of a PostgreSQL database are those of a ledger. Two lists of lines are compared:
 * one is read from the system's catalogs, the other follows from the statements that make the tables.
 * A new table to compare with could not be made on a standby, which auditors may well read.
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
                             "%s: its tables, constraints or triggers were changed: %s %s", name,
                             order > 0 ? "missing is" : "there is", order > 0 ? line : found);
    }
}

fds_status db_pg_check(db *d, const char *name, fds_status (*make)(db *d, fds_error *err),
                       fds_error *err) {
    OWNED sketch *wanted = NULL;
    db_query *q = NULL;
    TRY(NEW(wanted, 1, err));
    wanted->base.store = &sketch_store;
    TRY(make(&wanted->base, err));
    qsort(wanted->lines, wanted->count, sizeof *wanted->lines, compare_lines);
    TRY(db_prepare(d, catalog_sql, false, &q, err));
    db_bind_text(q, 1, wanted->tables);
    fds_status status = compare(wanted, q, name, err);
    db_end(q);
    db_query_free(q);
    return status;
}
