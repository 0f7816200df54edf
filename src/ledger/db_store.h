/* SPDX-License-Identifier: Apache-2.0
 * What a store of ledgers offers. db.h says what each call means. */
#ifndef FDS_LEDGER_DB_STORE_H
#define FDS_LEDGER_DB_STORE_H

#include "ledger/db.h"

/* A parameter or a column. */
typedef struct db_value {
    db_type type;
    int64_t number;
    double real;
    const void *data; /* of a text or blob */
    size_t size;
} db_value;

typedef struct db_store {
    fds_status (*open)(const char *path, db_access access, db **out, fds_error *err);
    void (*close)(db *d);
    void (*remove)(const char *path);
    fds_status (*run)(db *d, const char *sql, fds_error *err);
    fds_status (*protect)(db *d, const char *table, fds_error *err);
    fds_status (*begin)(db *d, fds_error *err);
    fds_status (*commit)(db *d, fds_error *err);
    fds_status (*settle)(db *d, fds_error *err);
    void (*rollback)(db *d);
    bool (*was_lost)(db *d);
    fds_status (*copy)(db *d, db_make make, const char *path, db_pause pause, void *user,
                       fds_error *err);
    fds_status (*check)(db *d, db_make make, fds_error *err);
    fds_status (*prepare)(db *d, const char *sql, bool is_long, db_query **out, fds_error *err);
    void (*query_free)(db_query *query);
    void (*bind)(db_query *query, int at, const db_value *value);
    fds_status (*next)(db_query *query, bool *has_row, fds_error *err);
    void (*end)(db_query *query);
    fds_status (*execute)(db_query *query, fds_error *err); /* db_do */
    void (*column)(const db_query *query, int column, db_value *out);
} db_store;

/* The first members of what a store makes of them. */
struct db {
    const db_store *store;
};
struct db_query {
    db *db;
};

extern const db_store db_sqlite;
extern const db_store db_pg; /* where there is libpq */

#endif
