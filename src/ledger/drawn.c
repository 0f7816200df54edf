/* SPDX-License-Identifier: Apache-2.0
 *
 * Statements that were drawn, in files beside the signing key: a database that is restored from a backup
 * forgets its last releases, and must not draw them a second time. KEY.privacy-2026-11 is
 *
 *   {"privacy":"drawn","period":"2026-11","from":"2026-11-01","to":"2026-11-30",
 *    "statements":{"north":50168605,...}}
 *
 * with units of all providers, readable by its owner alone. It is on the disk before the release is
 * entered, and is never replaced. A release of days that a file has enters that file's statements, and
 * draws nothing: so it is after a crash between the two, and after a backup was restored. A key signs
 * one ledger, so these files are of it and of its copies. */
#include "ledger/ledger.h"

enum { MOST_BYTES = 64 << 20 };

typedef struct {
    char path[FDS__PATH_MAX];
    json_t *root;
    const char *period;
    int64_t from, to;
} drawn_file;

static fds_status read_drawn(const char *path, drawn_file *out, fds_error *err) {
    OWNED uint8_t *data = NULL;
    size_t size;
    *out = (drawn_file){.root = NULL};
    snprintf(out->path, sizeof out->path, "%s", path);
    TRY(fds__file_read_secret(path, MOST_BYTES, &data, &size, err));
    TRY(fds__json_parse(path, (const char *)data, size, &out->root, err));
    const char *from = json_string_value(json_object_get(out->root, "from")),
               *to = json_string_value(json_object_get(out->root, "to"));
    out->period = json_string_value(json_object_get(out->root, "period"));
    if (out->period && from && to && ledger_day_read(from, &out->from) &&
        ledger_day_read(to, &out->to) && json_is_object(json_object_get(out->root, "statements")))
        return FDS_OK;
    json_decref(out->root);
    out->root = NULL;
    return fds__fail(err, FDS_ERR_CORRUPT, "%s: these are not drawn statements", path);
}

static void name_file(const fds_ledger *l, const char *period, char out[FDS__PATH_MAX]) {
    snprintf(out, FDS__PATH_MAX, "%.*s.privacy-%.20s", FDS__PATH_MAX - 64, l->key_path, period);
}

/* The file of the first period that is over and has one, of those that the ledger has not released;
 * root NULL: none. */
static fds_status find_first(const fds_ledger *l, drawn_file *out, fds_error *err) {
    const ledger_privacy *p = &l->state.privacy;
    int64_t today = MAX(l->now_ms(), l->state.at_ms) / LEDGER_DAY_MS, from, to;
    char period[LEDGER_TIME], path[FDS__PATH_MAX];
    *out = (drawn_file){.root = NULL};
    for (int64_t day = p->released + 1; day < today; day = to + 1) {
        ledger_day_text(day, period);
        if (!p->is_daily)
            period[7] = 0; /* 2026-11-17 */
        TRY(ledger_period_read(p, period, &from, &to, err));
        name_file(l, period, path);
        if (fds__path_exists(path))
            return read_drawn(path, out, err);
    }
    return FDS_OK;
}

/* The statements of a file, if it is of these days and of these providers. */
static fds_status take_drawn(const fds_ledger *l, const drawn_file *file, ledger_drawn *d,
                             fds_error *err) {
    const json_t *statements = json_object_get(file->root, "statements");
    if (strcmp(file->period, d->period) != 0 || file->from != d->from || file->to != d->to)
        return fds__fail(
            err, FDS_ERR_CONFLICT,
            "%s: the statements of %.20s were drawn, and %s lacks their release: it is "
            "an older copy. Restore a newer one, or release %.20s first, for the same "
            "days: what was drawn is used again",
            file->path, file->period, l->path, file->period);
    bool is_same = json_object_size(statements) == d->count;
    for (size_t i = 0; i < d->count && is_same; i++) {
        const json_t *units = json_object_get(statements, l->state.accounts[d->providers[i]].name);
        is_same = json_is_integer(units);
        d->statements[i] = json_integer_value(units);
    }
    if (!is_same)
        return fds__fail(err, FDS_ERR_CONFLICT,
                         "%s: the statements of %.20s were drawn for other providers than %s has: "
                         "it is an older copy. Restore a newer one, or open the accounts that are "
                         "missing",
                         file->path, file->period, l->path);
    d->is_drawn = true;
    return FDS_OK;
}

fds_status ledger_drawn_find(const fds_ledger *l, ledger_drawn *drawn, fds_error *err) {
    drawn_file file;
    drawn->is_drawn = false;
    TRY(find_first(l, &file, err));
    fds_status status = file.root ? take_drawn(l, &file, drawn, err) : FDS_OK;
    json_decref(file.root);
    return status;
}

fds_status ledger_drawn_keep(const fds_ledger *l, const ledger_drawn *d, fds_error *err) {
    char path[FDS__PATH_MAX], from[LEDGER_TIME], to[LEDGER_TIME];
    json_t *statements = json_object();
    bool ok = statements != NULL;
    for (size_t i = 0; i < d->count && ok; i++)
        ok = fds__json_put(statements, l->state.accounts[d->providers[i]].name,
                           json_integer(d->statements[i]));
    json_t *root = ok ? json_pack("{s:s, s:s, s:s, s:s, s:O}", "privacy", "drawn", "period",
                                  d->period, "from", ledger_day_text(d->from, from), "to",
                                  ledger_day_text(d->to, to), "statements", statements)
                      : NULL;
    OWNED char *text = root ? fds__json_text(root, JSON_COMPACT) : NULL;
    json_decref(root);
    json_decref(statements);
    if (!text)
        return fds__fail_json(err);
    name_file(l, d->period, path);
    return fds__file_write_secret(path, text, strlen(text), err);
}
