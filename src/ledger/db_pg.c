/* SPDX-License-Identifier: Apache-2.0
 *
 * A ledger in a PostgreSQL database: its tables are in the first schema of the connection's
 * search_path.
 *
 * One process writes: it holds an advisory lock, named after the schema, for as long as its session
 * lasts. Readers see one moment of the database (REPEATABLE READ) and wait for nobody. Every commit
 * waits for the server's disk (synchronous_commit).
 *
 * A connection may be lost. Outside of transactions it is made again, the lock is taken again, and the
 * statement is repeated; db_was_lost tells that others may have written meanwhile. Within a
 * transaction everything fails, and the server rolls back. If it is lost during COMMIT, the outcome is
 * known once the lock is had again: the old session has ended then, so that what it did is final.
 *
 * Statements of a transaction that give no rows go to the server without waiting for their outcome
 * (libpq's pipeline mode). The next one that gives rows, or the commit, waits for all of them, and
 * fails if one has failed.
 */
#include "ledger/db_pg.h"

#include <endian.h>
#include <stdlib.h>

enum {
    MOST_PARAMETERS = 24, /* of a query */
    MOST_QUEUED = 256,    /* statements whose outcome is not known yet */
    ROWS_AT_ONCE = 64,    /* of a long query */
};
enum { OID_BYTEA = 17, OID_INT8 = 20, OID_TEXT = 25, OID_FLOAT8 = 701 }; /* of pg_type, forever */

typedef struct {
    db_query base;
    char name[16];
    char *sql;
    bool is_long;
    unsigned connection; /* on which it is prepared; 0: none */
    int count;           /* of parameters */
    const char *values[MOST_PARAMETERS];
    int sizes[MOST_PARAMETERS], formats[MOST_PARAMETERS];
    uint64_t numbers[MOST_PARAMETERS]; /* in the order of the network */
    bool is_too_large;                 /* a parameter */
    PGresult *result;                  /* NULL: not executed */
    int row;
    bool has_begun; /* the transaction of its cursor */
} pg_query;

/* ---- opening ---- */

static void rollback(db *base) {
    db_pg_link *d = (db_pg_link *)base;
    if ((d->is_open || d->is_reading) && !db_pg_is_lost(d)) {
        db_pg_drain(d, NULL);
        db_pg_run(d, "ROLLBACK", NULL, NULL);
    }
    d->is_open = d->is_reading = false;
}

static void close_database(db *base) {
    db_pg_link *d = (db_pg_link *)base;
    rollback(base);
    PQfinish(d->conn);
    if (d->uri)
        explicit_bzero(d->uri, strlen(d->uri));
    fds__free(d->uri);
    fds__free(d);
}

static fds_status open_database(const char *path, db_access access, db **out, fds_error *err) {
    db_pg_link *d;
    TRY(NEW(d, 1, err));
    d->base.store = &db_pg;
    d->access = access;
    db_name(path, d->name, sizeof d->name);
    d->uri = fds__strdup(path);
    fds_status status = d->uri ? db_pg_check_uri(d, err) : fds__fail_nomem(err, strlen(path) + 1);
    if (status == FDS_OK)
        status = db_pg_connect(d, err);
    if (status == FDS_OK)
        *out = &d->base;
    else
        close_database(&d->base);
    return status;
}

/* ---- statements without parameters ---- */

/* Types as PostgreSQL calls them; texts are ordered as SQLite does it. */
static fds_status translate(const char *sql, fds__text *out, fds_error *err) {
    static const char *const words[][2] = {{"INTEGER", "BIGINT"},
                                           {"REAL", "DOUBLE PRECISION"},
                                           {"BLOB", "BYTEA"},
                                           {"TEXT", "TEXT COLLATE \"C\""},
                                           {"STRICT", ""}};
    while (*sql) {
        size_t length = strspn(sql, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        const char *word = NULL;
        for (size_t i = 0; length && !word && i < sizeof words / sizeof *words; i++)
            if (strlen(words[i][0]) == length && strncmp(sql, words[i][0], length) == 0)
                word = words[i][1];
        length += !length;
        fds__text_add(out, word ? word : sql, word ? strlen(word) : length);
        sql += length;
    }
    fds__text_add(out, "", 1);
    return fds__text_check(out, err);
}

static fds_status run(db *base, const char *sql, fds_error *err) {
    fds__text translated = {0};
    fds_status status = translate(sql, &translated, err);
    if (status == FDS_OK)
        status = db_pg_ready((db_pg_link *)base, err);
    if (status == FDS_OK)
        status = db_pg_run((db_pg_link *)base, translated.data, NULL, err);
    fds__free(translated.data);
    return status;
}

static fds_status protect(db *base, const char *table, fds_error *err) {
    char sql[600];
    TRY(db_pg_ready((db_pg_link *)base, err));
    snprintf(sql, sizeof sql,
             "CREATE FUNCTION %s_protect() RETURNS trigger LANGUAGE plpgsql AS $$%s$$; CREATE "
             "TRIGGER %s_protect BEFORE UPDATE OR DELETE OR TRUNCATE ON %s FOR EACH "
             "STATEMENT EXECUTE FUNCTION %s_protect(); ALTER TABLE %s ENABLE ALWAYS TRIGGER "
             "%s_protect",
             table, DB_PG_PROTECT, table, table, table, table, table);
    return db_pg_run((db_pg_link *)base, sql, NULL, err);
}

/* Outside of transactions, once more if the connection turns out to be lost. */
static fds_status run_again(db_pg_link *d, const char *sql, fds_error *err) {
    TRY(db_pg_ready(d, err));
    fds_status status = db_pg_run(d, sql, NULL, err);
    if (status == FDS_OK || !db_pg_is_lost(d))
        return status;
    TRY(db_pg_ready(d, err));
    return db_pg_run(d, sql, NULL, err);
}

#define BEGIN_READING "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

static fds_status begin(db *base, fds_error *err) {
    db_pg_link *d = (db_pg_link *)base;
    TRY(run_again(
        d, d->access == DB_READ ? BEGIN_READING : "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
        err));
    d->is_open = true;
    return FDS_OK;
}

static fds_status commit(db *base, fds_error *err) {
    db_pg_link *d = (db_pg_link *)base;
    PGresult *result = NULL;
    fds_status status = db_pg_ready(d, err);
    if (status == FDS_OK)
        status = db_pg_run(d, "COMMIT", &result, err);
    /* a transaction that has failed is rolled back by COMMIT, which then says so */
    if (status == FDS_OK && strcmp(PQcmdStatus(result), "COMMIT") != 0)
        status = fds__fail(err, FDS_ERR_IO, "%s: the transaction was rolled back", d->name);
    PQclear(result);
    if (status != FDS_OK)
        rollback(base);
    d->is_open = false;
    return status;
}

/* With the lock, nothing of the session that was lost is under way. */
static fds_status settle(db *base, fds_error *err) { return db_pg_ready((db_pg_link *)base, err); }

static bool was_lost(db *base) {
    db_pg_link *d = (db_pg_link *)base;
    bool was = d->was_lost;
    d->was_lost = false;
    return was;
}

static fds_status check(db *base, db_make make, fds_error *err) {
    return db_pg_check(base, ((db_pg_link *)base)->name, make, err);
}

/* ---- queries ---- */

static void query_free(db_query *base) {
    pg_query *q = (pg_query *)base;
    PQclear(q->result);
    fds__free(q->sql);
    fds__free(q);
}

static fds_status prepare(db *base, const char *sql, bool is_long, db_query **out, fds_error *err) {
    db_pg_link *d = (db_pg_link *)base;
    pg_query *q;
    TRY(NEW(q, 1, err));
    q->base.db = base;
    q->is_long = is_long;
    snprintf(q->name, sizeof q->name, "q%u", d->queries++);
    q->sql = fds__strdup(sql);
    if (!q->sql) {
        query_free(&q->base);
        return fds__fail_nomem(err, strlen(sql) + 1);
    }
    for (const char *at = sql; (at = strchr(at, '$')); at++)
        q->count = MAX(q->count, atoi(at + 1));
    *out = &q->base;
    return FDS_OK;
}

static void bind(db_query *base, int at, const db_value *value) {
    pg_query *q = (pg_query *)base;
    int i = at - 1;
    q->formats[i] = 1; /* binary */
    q->is_too_large |= value->size > INT32_MAX;
    if (value->type == DB_INT || value->type == DB_REAL) {
        uint64_t bits = (uint64_t)value->number;
        if (value->type == DB_REAL)
            memcpy(&bits, &value->real, sizeof bits);
        q->numbers[i] = htobe64(bits);
        q->values[i] = (const char *)&q->numbers[i];
        q->sizes[i] = sizeof bits;
    } else {
        q->values[i] = value->type == DB_NULL ? NULL : value->data;
        q->sizes[i] = (int)value->size;
    }
}

/* On this connection; the server chooses the types of parameters by their columns. */
static fds_status prepare_now(db_pg_link *d, pg_query *q, fds_error *err) {
    if (q->is_too_large)
        return fds__fail(err, FDS_ERR_LIMIT, "%s: a text or blob is too large", d->name);
    if (q->connection == d->connections)
        return FDS_OK;
    TRY(db_pg_ready(d, err)); /* waits for what is queued */
    PGresult *result = PQprepare(d->conn, q->name, q->sql, q->count, NULL);
    fds_status status =
        PQresultStatus(result) == PGRES_COMMAND_OK ? FDS_OK : db_pg_fail(d, result, err);
    PQclear(result);
    if (status == FDS_OK)
        q->connection = d->connections;
    return status;
}

/* Of another type a column would look like null. */
static fds_status check_types(const db_pg_link *d, const pg_query *q, fds_error *err) {
    for (int i = 0; i < PQnfields(q->result); i++) {
        unsigned type = PQftype(q->result, i);
        if (type != OID_INT8 && type != OID_FLOAT8 && type != OID_TEXT && type != OID_BYTEA)
            return fds__fail(err, FDS_ERR_CORRUPT, "%s: the column \"%s\" has type %u", d->name,
                             PQfname(q->result, i), type);
    }
    return FDS_OK;
}

/* The next rows of a long query. */
static fds_status fetch(db_pg_link *d, pg_query *q, fds_error *err) {
    char sql[64];
    TRY(db_pg_ready(d, err));
    snprintf(sql, sizeof sql, "FETCH FORWARD %d FROM %s", ROWS_AT_ONCE, q->name);
    PQclear(q->result);
    q->result = PQexecParams(d->conn, sql, 0, NULL, NULL, NULL, NULL, 1);
    return PQresultStatus(q->result) == PGRES_TUPLES_OK ? check_types(d, q, err)
                                                        : db_pg_fail(d, q->result, err);
}

static fds_status open_cursor(db_pg_link *d, pg_query *q, fds_error *err) {
    fds__text sql = {0};
    TRY(db_pg_ready(d, err));
    if (!d->is_open && !d->is_reading) {
        TRY(db_pg_run(d, BEGIN_READING, NULL, err));
        q->has_begun = d->is_reading = true;
    }
    fds__text_print(&sql, "DECLARE %s NO SCROLL CURSOR FOR %s", q->name, q->sql);
    fds__text_add(&sql, "", 1);
    fds_status status = fds__text_check(&sql, err);
    if (status == FDS_OK)
        status = db_pg_run(d, sql.data, NULL, err);
    fds__free(sql.data);
    return status == FDS_OK ? fetch(d, q, err) : status;
}

static fds_status execute_once(db_pg_link *d, pg_query *q, fds_error *err) {
    if (q->is_long)
        return open_cursor(d, q, err);
    TRY(db_pg_ready(d, err)); /* on a new connection it is to be prepared again */
    TRY(prepare_now(d, q, err));
    q->result = PQexecPrepared(d->conn, q->name, q->count, q->values, q->sizes, q->formats, 1);
    ExecStatusType is = PQresultStatus(q->result);
    return is == PGRES_TUPLES_OK || is == PGRES_COMMAND_OK ? check_types(d, q, err)
                                                           : db_pg_fail(d, q->result, err);
}

/* Forgets its rows. */
static void close_result(db_pg_link *d, pg_query *q) {
    char sql[32];
    snprintf(sql, sizeof sql, "CLOSE %s", q->name);
    if (q->has_begun)
        rollback(&d->base);
    else if (q->is_long && q->result && d->is_open && !db_pg_is_lost(d) &&
             db_pg_drain(d, NULL) == FDS_OK)
        db_pg_run(d, sql, NULL, NULL);
    PQclear(q->result);
    q->result = NULL;
    q->has_begun = false;
    q->row = 0;
}

static fds_status execute(db_pg_link *d, pg_query *q, fds_error *err) {
    bool is_alone = !d->is_open && !d->is_reading;
    fds_status status = execute_once(d, q, err);
    if (status != FDS_OK && is_alone && db_pg_is_lost(d)) {
        close_result(d, q);
        status = execute_once(d, q, err);
    }
    if (status != FDS_OK)
        close_result(d, q);
    return status;
}

static fds_status next(db_query *base, bool *has_row, fds_error *err) {
    db_pg_link *d = (db_pg_link *)base->db;
    pg_query *q = (pg_query *)base;
    *has_row = false;
    if (!q->result)
        TRY(execute(d, q, err));
    else
        q->row++;
    if (q->is_long && q->row == ROWS_AT_ONCE) {
        q->row = 0;
        TRY(fetch(d, q, err));
    }
    *has_row = q->row < PQntuples(q->result);
    return FDS_OK;
}

static void end(db_query *base) {
    pg_query *q = (pg_query *)base;
    close_result((db_pg_link *)base->db, q);
    memset(q->values, 0, sizeof q->values);
    q->is_too_large = false;
}

/* Queued in a transaction; alone, it is waited for. */
static fds_status execute_only(db_query *base, fds_error *err) {
    db_pg_link *d = (db_pg_link *)base->db;
    pg_query *q = (pg_query *)base;
    if (!d->is_open) /* not again, if it may have been done */
        return execute_once(d, q, err);
    TRY(prepare_now(d, q, err));
    if (!d->queued && !PQenterPipelineMode(d->conn))
        return db_pg_fail(d, NULL, err);
    if (!PQsendQueryPrepared(d->conn, q->name, q->count, q->values, q->sizes, q->formats, 1))
        return db_pg_fail(d, NULL, err);
    return ++d->queued < MOST_QUEUED ? FDS_OK : db_pg_drain(d, err);
}

static void column(const db_query *base, int i, db_value *out) {
    const pg_query *q = (const pg_query *)base;
    if (PQgetisnull(q->result, q->row, i))
        return;
    const char *data = PQgetvalue(q->result, q->row, i);
    size_t size = (size_t)PQgetlength(q->result, q->row, i);
    unsigned type = PQftype(q->result, i);
    uint64_t bits;
    if (type == OID_TEXT || type == OID_BYTEA) {
        *out = (db_value){.type = type == OID_TEXT ? DB_TEXT : DB_BLOB, .data = data, .size = size};
    } else if ((type == OID_INT8 || type == OID_FLOAT8) && size == sizeof bits) {
        memcpy(&bits, data, sizeof bits);
        bits = be64toh(bits);
        *out = (db_value){.type = DB_INT, .number = (int64_t)bits};
        if (type == OID_FLOAT8) {
            *out = (db_value){.type = DB_REAL};
            memcpy(&out->real, &bits, sizeof bits);
        }
    }
}

const db_store db_pg = {
    .open = open_database,
    .close = close_database,
    .run = run,
    .protect = protect,
    .begin = begin,
    .commit = commit,
    .settle = settle,
    .rollback = rollback,
    .was_lost = was_lost,
    .copy = db_pg_copy,
    .check = check,
    .prepare = prepare,
    .query_free = query_free,
    .bind = bind,
    .next = next,
    .end = end,
    .execute = execute_only,
    .column = column,
};
