/* SPDX-License-Identifier: Apache-2.0
 * Databases: which store a path belongs to, what messages call it, and the calls of the store. */
#include "ledger/db_store.h"

/* ---- paths ---- */

bool db_is_uri(const char *path) {
    return strncmp(path, "postgresql:", 11) == 0 || strncmp(path, "postgres:", 9) == 0;
}

static void add(char *out, size_t size, const char *part, size_t length) {
    size_t used = strlen(out);
    snprintf(out + used, size - used, "%.*s", (int)length, part);
}

/* "?name=value&name=value": values of passwords are left out. Names may be encoded. */
static void add_parameters(char *out, size_t size, const char *part) {
    while (*part) {
        size_t name = strcspn(part, "="), whole = 1;
        while (part[whole] && part[whole] != '&')
            whole++;
        bool is_secret =
            name < whole && (memmem(part, name, "password", 8) || memchr(part, '%', name));
        add(out, size, part, is_secret ? name + 1 : whole);
        if (is_secret)
            add(out, size, "***", 3);
        part += whole;
    }
}

void db_name(const char *path, char *out, size_t size) {
    *out = 0;
    if (!db_is_uri(path)) {
        add(out, size, path, strlen(path));
        return;
    }
    const char *begin = strstr(path, "://");
    if (!begin) { /* nothing that libpq takes */
        add(out, size, "postgresql:...", 14);
        return;
    }
    /* A password that ought to be encoded, and is not, may have any character but the last "@". */
    const char *colon = strchr(begin + 3, ':'), *at = strrchr(begin, '@');
    if (colon && at && colon < at) {
        add(out, size, path, (size_t)(colon + 1 - path));
        add(out, size, "***", 3);
        path = at;
    }
    size_t place = strcspn(path, "?");
    add(out, size, path, place);
    add_parameters(out, size, path + place);
}

/* ---- databases ---- */

fds_status db_open(const char *path, db_access access, db **out, fds_error *err) {
    if (!db_is_uri(path))
        return db_sqlite.open(path, access, out, err);
#ifdef FDS_POSTGRES
    return db_pg.open(path, access, out, err);
#else
    return fds__fail(
        err, FDS_ERR_UNSUPPORTED,
        "fds was built without PostgreSQL: install libpq-dev (scripts/deps build), and "
        "build it again");
#endif
}

void db_close(db *d) {
    if (d)
        d->store->close(d);
}

void db_remove(const char *path) {
    if (!db_is_uri(path))
        db_sqlite.remove(path);
}

fds_status db_run(db *d, const char *sql, fds_error *err) { return d->store->run(d, sql, err); }
fds_status db_protect(db *d, const char *table, fds_error *err) {
    return d->store->protect(d, table, err);
}
fds_status db_begin(db *d, fds_error *err) { return d->store->begin(d, err); }
fds_status db_commit(db *d, fds_error *err) { return d->store->commit(d, err); }
fds_status db_settle(db *d, fds_error *err) { return d->store->settle(d, err); }
void db_rollback(db *d) { d->store->rollback(d); }
bool db_was_lost(db *d) { return d->store->was_lost(d); }
fds_status db_copy(db *d, db_make make, const char *path, db_pause pause, void *user,
                   fds_error *err) {
    return d->store->copy(d, make, path, pause, user, err);
}
fds_status db_check(db *d, db_make make, fds_error *err) { return d->store->check(d, make, err); }

/* ---- queries ---- */

fds_status db_prepare(db *d, const char *sql, bool is_long, db_query **out, fds_error *err) {
    return d->store->prepare(d, sql, is_long, out, err);
}

void db_query_free(db_query *q) {
    if (q)
        q->db->store->query_free(q);
}

static void bind(db_query *q, int at, db_value value) { q->db->store->bind(q, at, &value); }

void db_bind_int(db_query *q, int at, int64_t value) {
    bind(q, at, (db_value){.type = DB_INT, .number = value});
}
void db_bind_real(db_query *q, int at, double value) {
    bind(q, at, (db_value){.type = DB_REAL, .real = value});
}
void db_bind_text(db_query *q, int at, const char *text) {
    bind(q, at,
         (db_value){
             .type = text ? DB_TEXT : DB_NULL, .data = text, .size = text ? strlen(text) : 0});
}
void db_bind_blob(db_query *q, int at, const void *data, size_t size) {
    bind(q, at, (db_value){.type = data ? DB_BLOB : DB_NULL, .data = data, .size = size});
}
void db_bind_null(db_query *q, int at) { bind(q, at, (db_value){.type = DB_NULL}); }

fds_status db_next(db_query *q, bool *has_row, fds_error *err) {
    return q->db->store->next(q, has_row, err);
}

void db_end(db_query *q) { q->db->store->end(q); }

fds_status db_do(db_query *q, fds_error *err) {
    fds_status status = q->db->store->execute(q, err);
    db_end(q);
    return status;
}

/* ---- columns ---- */

static db_value column_of(const db_query *q, int column) {
    db_value value = {.type = DB_NULL};
    q->db->store->column(q, column, &value);
    return value;
}

db_type db_type_of(const db_query *q, int column) { return column_of(q, column).type; }
int64_t db_int(const db_query *q, int column) { return column_of(q, column).number; }
double db_real(const db_query *q, int column) { return column_of(q, column).real; }

const char *db_text(const db_query *q, int column, size_t *size) {
    db_value value = column_of(q, column);
    if (size)
        *size = value.type == DB_TEXT ? value.size : 0;
    return value.type == DB_TEXT ? value.data : NULL;
}

const void *db_blob(const db_query *q, int column, size_t *size) {
    db_value value = column_of(q, column);
    bool is_blob = value.type == DB_BLOB && value.size;
    *size = is_blob ? value.size : 0;
    return is_blob ? value.data : "";
}
