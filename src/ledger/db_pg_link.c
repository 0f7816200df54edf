/* SPDX-License-Identifier: Apache-2.0
 * The connection to a PostgreSQL server: making it, and making it again; settings, the lock of the
 * writer, statements without parameters; failures in our own words. */
#include "ledger/db_pg.h"

#include <stdlib.h>

#define LOCK_CLASS \
    0x66647300U /* "fds": the upper half of the lock's number; the lower: the schema */
enum {
    OLDEST_SERVER = 120000,
    LOCK_WAIT_MS = 3000,
    MESSAGE = 400,
};

/* ---- failures ---- */

bool db_pg_is_lost(const db_pg_link *d) { return PQstatus(d->conn) != CONNECTION_OK; }

/* What libpq or the server says, on one line and without the password. */
static const char *one_line(const db_pg_link *d, const char *said, char out[MESSAGE]) {
    const char *password = d->conn ? PQpass(d->conn) : NULL;
    size_t used = 0, secret = password ? strlen(password) : 0;
    while (*said && used < MESSAGE - 4) {
        if (secret && strncmp(said, password, secret) == 0) {
            memcpy(out + used, "***", 3);
            used += 3;
            said += secret;
        } else {
            out[used++] = *said == '\n' || *said == '\t' ? ' ' : *said;
            said++;
        }
    }
    while (used && out[used - 1] == ' ')
        used--;
    out[used] = 0;
    return out;
}

fds_status db_pg_fail(const db_pg_link *d, const PGresult *result, fds_error *err) {
    char text[MESSAGE];
    const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL,
               *said = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    one_line(d, said ? said : PQerrorMessage(d->conn), text);
    state = state ? state : "";
    if (db_pg_is_lost(d))
        return fds__fail(err, FDS_ERR_IO, "%s: the connection was lost: %s", d->name, text);
    if (!result)
        return fds__fail(err, FDS_ERR_NOMEM, "%s: %s", d->name, *text ? text : "out of memory");
    if (strcmp(state, "42P01") == 0) /* undefined_table */
        return fds__fail(err, FDS_ERR_NOT_FOUND, "%s has no ledger: %s. fds ledger init makes one",
                         d->name, text);
    if (strcmp(state, "42P07") == 0 || strcmp(state, "42723") == 0) /* duplicate table, function */
        return fds__fail(err, FDS_ERR_CONFLICT,
                         "%s has a ledger already: %s. Choose another database or schema", d->name,
                         text);
    if (strncmp(state, "XX00", 4) == 0 && state[4] > '0') /* data or index corrupted */
        return fds__fail(err, FDS_ERR_CORRUPT, "%s: %s", d->name, text);
    return fds__fail(err, FDS_ERR_IO, "%s: %s (PostgreSQL: %s)", d->name, text, state);
}

/* ---- statements on the connection ---- */

fds_status db_pg_drain(db_pg_link *d, fds_error *err) {
    fds_status status = FDS_OK;
    if (!d->queued)
        return FDS_OK;
    if (!PQpipelineSync(d->conn))
        status = db_pg_fail(d, NULL, err);
    bool is_over = status != FDS_OK;
    for (int nothing = 0; !is_over && nothing < 2;) { /* twice nothing: the connection is lost */
        PGresult *result = PQgetResult(d->conn);
        ExecStatusType is = PQresultStatus(result);
        nothing = result ? 0 : nothing + 1;
        is_over = is == PGRES_PIPELINE_SYNC;
        if (result && !is_over && is != PGRES_COMMAND_OK && status == FDS_OK)
            status = db_pg_fail(d, result, err); /* those after it are PGRES_PIPELINE_ABORTED */
        PQclear(result);
    }
    d->queued = 0;
    if (status == FDS_OK && (!is_over || !PQexitPipelineMode(d->conn)))
        status = db_pg_fail(d, NULL, err);
    else if (status != FDS_OK)
        PQexitPipelineMode(d->conn);
    return status;
}

fds_status db_pg_run(db_pg_link *d, const char *sql, PGresult **out, fds_error *err) {
    PGresult *result = PQexec(d->conn, sql);
    ExecStatusType is = PQresultStatus(result);
    fds_status status =
        is == PGRES_COMMAND_OK || is == PGRES_TUPLES_OK ? FDS_OK : db_pg_fail(d, result, err);
    if (status == FDS_OK && out)
        *out = result;
    else
        PQclear(result);
    return status;
}

/* ---- connecting ---- */

static void drop_notice(void *user, const PGresult *notice) { (void)user, (void)notice; }

/* A password that is not encoded would make part of it a port or a name, which libpq would tell. */
fds_status db_pg_check_uri(const db_pg_link *d, fds_error *err) {
    char *said = NULL;
    PQconninfoOption *options = PQconninfoParse(d->uri, &said);
    bool is_right = options != NULL;
    for (PQconninfoOption *o = options; o && o->keyword; o++) {
        if (o->val && strcmp(o->keyword, "port") == 0)
            is_right = is_right && !o->val[strspn(o->val, "0123456789,")];
        if (o->val && strcmp(o->keyword, "dbname") == 0)
            is_right = is_right && !strchr(o->val, '@');
    }
    PQconninfoFree(options);
    PQfreemem(said);
    return is_right ? FDS_OK
                    : fds__fail(err, FDS_ERR_USAGE,
                                "%s is no URI of PostgreSQL such as postgresql://host/database, or "
                                "a name or password in it is not percent-encoded",
                                d->name);
}

static fds_status check_server(db_pg_link *d, const PGresult *about, fds_error *err) {
    if (PQserverVersion(d->conn) < OLDEST_SERVER)
        return fds__fail(err, FDS_ERR_UNSUPPORTED, "%s: PostgreSQL 12 or later is needed", d->name);
    if (PQntuples(about) != 1)
        return fds__fail(err, FDS_ERR_NOT_FOUND,
                         "%s: no schema of its search_path exists: create one", d->name);
    if (strcmp(PQgetvalue(about, 0, 1), "UTF8") != 0)
        return fds__fail(err, FDS_ERR_UNSUPPORTED,
                         "%s: the encoding of the database must be UTF8 (it is %s)", d->name,
                         PQgetvalue(about, 0, 1));
    if (d->access != DB_READ && strcmp(PQgetvalue(about, 0, 2), "on") != 0)
        return fds__fail(err, FDS_ERR_UNSUPPORTED,
                         "%s: its server has fsync turned off, and may lose what it has committed",
                         d->name);
    if (d->access != DB_READ && strcmp(PQgetvalue(about, 0, 3), "off") != 0)
        return fds__fail(err, FDS_ERR_CONFLICT,
                         "%s can only be read: it is a standby, or read-only by its settings",
                         d->name);
    return FDS_OK;
}

static fds_status configure(db_pg_link *d, fds_error *err) {
    PGresult *about;
    TRY(db_pg_run(d,
                  "SET standard_conforming_strings = on; SET synchronous_commit = on; "
                  "SET timezone = 'UTC'; SET row_security = off; "
                  /* so that it soon notices when we are gone, and releases the lock */
                  "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; "
                  "SET tcp_keepalives_count = 3; "
                  "SELECT set_config('search_path', quote_ident(current_schema()), false)",
                  NULL, err));
    TRY(db_pg_run(d,
                  "SELECT oid, current_setting('server_encoding'), current_setting('fsync'), "
                  "current_setting('transaction_read_only') FROM pg_namespace WHERE nspname = "
                  "current_schema()",
                  &about, err));
    fds_status status = check_server(d, about, err);
    if (status == FDS_OK)
        d->schema = strtoul(PQgetvalue(about, 0, 0), NULL, 10);
    PQclear(about);
    return status;
}

static fds_status fail_busy(db_pg_link *d, fds_error *err) {
    char sql[300], process[32] = "unknown";
    PGresult *found = NULL;
    snprintf(
        sql, sizeof sql,
        "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = %u AND "
        "objid = %lu AND objsubid = 1 AND database = (SELECT oid FROM pg_database WHERE "
        "datname = current_database())",
        LOCK_CLASS, d->schema);
    if (db_pg_run(d, sql, &found, NULL) == FDS_OK && PQntuples(found) == 1)
        snprintf(process, sizeof process, "%s", PQgetvalue(found, 0, 0));
    PQclear(found);
    return fds__fail(err, FDS_ERR_CONFLICT,
                     "%s is open for writing in another process (server process %s): only one can "
                     "write it",
                     d->name, process);
}

/* A session of ours that was lost, or of a process that was killed, may hold it for a moment. */
static fds_status take_lock(db_pg_link *d, fds_error *err) {
    char sql[160];
    snprintf(sql, sizeof sql,
             "SET lock_timeout = %d; SELECT pg_advisory_lock(%llu); RESET lock_timeout",
             LOCK_WAIT_MS, (unsigned long long)LOCK_CLASS << 32 | d->schema);
    fds_status status = db_pg_run(d, sql, NULL, err);
    return status == FDS_OK || db_pg_is_lost(d) ? status : fail_busy(d, err);
}

fds_status db_pg_connect(db_pg_link *d, fds_error *err) {
    /* those before the URI are defaults: it may set them */
    static const char *const names[] = {
        "connect_timeout",           "keepalives_idle",  "keepalives_interval",
        "keepalives_count",          "tcp_user_timeout", "dbname",
        "fallback_application_name", "client_encoding",  NULL};
    const char *const values[] = {"10", "30", "10", "3", "30000", d->uri, "fds", "UTF8", NULL};
    char text[MESSAGE];
    PQfinish(d->conn);
    d->conn = PQconnectdbParams(names, values, 1);
    d->queued = 0;
    fds_status status = FDS_OK;
    if (db_pg_is_lost(d))
        status = fds__fail(err, FDS_ERR_IO, "cannot connect to %s: %s", d->name,
                           one_line(d, PQerrorMessage(d->conn), text));
    PQsetNoticeReceiver(d->conn, drop_notice, NULL);
    if (status == FDS_OK)
        status = configure(d, err);
    if (status == FDS_OK && d->access != DB_READ)
        status = take_lock(d, err);
    if (status == FDS_OK) {
        d->connections++;
    } else {
        PQfinish(d->conn);
        d->conn = NULL; /* which libpq takes for a lost one */
    }
    return status;
}

fds_status db_pg_ready(db_pg_link *d, fds_error *err) {
    if (!db_pg_is_lost(d))
        return db_pg_drain(d, err);
    if (d->is_open || d->is_reading || d->access == DB_READ)
        return fds__fail(err, FDS_ERR_IO, "%s: the connection was lost", d->name);
    d->was_lost = true;
    return db_pg_connect(d, err);
}
