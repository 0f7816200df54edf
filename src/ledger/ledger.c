/* SPDX-License-Identifier: Apache-2.0
 * Creating and opening a ledger; its accounts. */
#include "ledger/ledger.h"

#include <unistd.h>

/* ---- closing ---- */

void fds_ledger_close(fds_ledger *l) {
    if (!l)
        return;
    for (size_t i = 0; i < LEDGER_QUERIES; i++)
        db_query_free(l->queries[i]);
    db_close(l->db);
    ledger_state_free(&l->state);
    log_key_forget(&l->key);
    fds__free(l->tree);
    fds__free(l->kept_tree);
    fds__free(l->leaves);
    fds__free(l->earnings);
    fds__free(l->postings);
    fds__free(l->hashes);
    fds__free(l->bytes.data);
    fds__free(l->text.data);
    fds__free(l->operators[0]);
    fds__free(l->operators[1]);
    fds__free(l);
}

static fds_status make(const char *path, fds_ledger **out, fds_error *err) {
    if (!path || !*path || strlen(path) >= FDS__PATH_MAX - 16)
        return fds__fail(err, FDS_ERR_USAGE, "a ledger needs a path");
    fds_ledger *l;
    TRY(NEW(l, 1, err));
    db_name(path, l->path, sizeof l->path);
    l->now_ms = ledger_system_ms;
    l->random = fds__random_secret;
    l->bits = &fds__system_bits;
    l->proposal = LEDGER_NONE;
    l->store = ledger_tiles(l);
    fds_status status = NEW(l->tree, 1, err);
    if (status == FDS_OK)
        status = NEW(l->kept_tree, 1, err);
    if (status == FDS_OK)
        *out = l;
    else
        fds_ledger_close(l);
    return status;
}

/* The given one, or PATH.key. */
static fds_status key_path(const fds_ledger *l, const char *key, char out[FDS__PATH_MAX],
                           fds_error *err) {
    if (!key && db_is_uri(l->path))
        return fds__fail(err, FDS_ERR_USAGE,
                         "`signing_key` is missing: name the file of the key that signs %s",
                         l->path);
    snprintf(out, FDS__PATH_MAX, "%.*s%s", FDS__PATH_MAX - 16, key ? key : l->path,
             key ? "" : ".key");
    return FDS_OK;
}

/* ---- what kind of ledger it is ---- */

static fds_status set_unit(fds_ledger *l, const char *currency, uint64_t decimals, fds_error *err) {
    fds__unit unit;
    int64_t none;
    TRY(fds__money_read("currency", "0", currency, &unit, &none, err));
    if ((int)decimals < unit.decimals)
        return fds__fail(err, FDS_ERR_USAGE, "`decimals` must be at least %d, as %s has (got %d)",
                         unit.decimals, unit.currency, (int)decimals);
    snprintf(l->unit.currency, sizeof l->unit.currency, "%s", unit.currency);
    l->unit.decimals = (int)decimals;
    l->unit.minor = 1;
    for (int i = unit.decimals; i < l->unit.decimals; i++)
        l->unit.minor *= 10;
    return FDS_OK;
}

fds_status ledger_put_meta(fds_ledger *l, const char *name, const char *value, fds_error *err) {
    db_query *q;
    TRY(ledger_query(l, LEDGER_Q_ADD_META, &q, err));
    db_bind_text(q, 1, name);
    db_bind_text(q, 2, value);
    return db_do(q, err);
}

static fds_status put_meta_number(fds_ledger *l, const char *name, int value, fds_error *err) {
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    return ledger_put_meta(l, name, text, err);
}

fds_status ledger_meta(const fds_ledger *l, const char *name, char *out, size_t size,
                       fds_error *err) {
    db_query *q;
    bool has_row;
    TRY(ledger_query(l, LEDGER_Q_META, &q, err));
    db_bind_text(q, 1, name);
    fds_status status = db_next(q, &has_row, err);
    const char *value = status == FDS_OK && has_row ? db_text(q, 0, NULL) : NULL;
    if (status == FDS_OK && !value)
        status = ledger_fail(l, err, "it does not say its %s", name);
    if (status == FDS_OK)
        snprintf(out, size, "%s", value);
    db_end(q);
    return status;
}

/* Whether it has a table that ledgers of earlier versions lack. */
static fds_status has_meta(const fds_ledger *l, const char *name, bool *has, fds_error *err) {
    char value[16];
    fds_status found = ledger_meta(l, name, value, sizeof value, err);
    *has = found == FDS_OK;
    return found == FDS_ERR_CORRUPT ? FDS_OK : found;
}

static fds_status read_meta(fds_ledger *l, fds_error *err) {
    char format[16], currency[16], decimals[16], debts[16];
    TRY(ledger_meta(l, "format", format, sizeof format, err));
    if (strcmp(format, "1") != 0)
        return fds__fail(err, FDS_ERR_UNSUPPORTED,
                         "%s has format %s; this version of fds knows format %d", l->path, format,
                         LEDGER_FORMAT);
    TRY(ledger_meta(l, "currency", currency, sizeof currency, err));
    TRY(ledger_meta(l, "decimals", decimals, sizeof decimals, err));
    TRY(ledger_meta(l, "debts", debts, sizeof debts, err));
    TRY(ledger_meta(l, "origin", l->origin, sizeof l->origin, err));
    TRY(ledger_meta(l, "vkey", l->vkey, sizeof l->vkey, err));
    TRY(has_meta(l, "audited", &l->has_audited, err));
    TRY(has_meta(l, "waiting", &l->has_waiting, err));
    bool is_right = strlen(decimals) == 1 && *decimals >= '0' && *decimals <= '9' &&
                    (strcmp(debts, "0") == 0 || strcmp(debts, "1") == 0);
    l->state.has_debts = strcmp(debts, "1") == 0;
    if (!is_right || set_unit(l, currency, (uint64_t)(*decimals - '0'), NULL) != FDS_OK)
        return ledger_fail(l, err, "its currency (%s/%s) or debts (%s) are malformed", currency,
                           decimals, debts);
    return FDS_OK;
}

/* ---- creating ---- */

fds_status ledger_open_account(fds_ledger *l, fds_account_kind kind, const char *name, json_t *more,
                               fds_error *err) {
    db_query *q;
    json_t *root = json_object();
    bool is_whole = fds__json_put(root, "kind", json_string(ledger_kind_name(kind))) &&
                    fds__json_put(root, "name", json_string(name)) &&
                    (!more || json_object_update(root, more) == 0);
    OWNED char *text = is_whole ? fds__json_text(root, JSON_COMPACT) : NULL;
    json_decref(root);
    json_decref(more);
    if (!text)
        return fds__fail_json(err);
    TRY(ledger_state_add_account(&l->state, kind, name, err));
    TRY(ledger_query(l, LEDGER_Q_ADD_ACCOUNT, &q, err));
    db_bind_int(q, 1, (int64_t)l->state.account_count - 1);
    db_bind_text(q, 2, ledger_kind_name(kind));
    db_bind_text(q, 3, name);
    TRY(db_do(q, err));
    ledger_entry e = LEDGER_ENTRY(LEDGER_OPEN);
    e.text = text;
    return ledger_add(l, &e, NULL, 0, err);
}

/* Entry 0 says what kind of ledger it is: the log then vouches for it. */
static fds_status fill(fds_ledger *l, fds_error *err) {
    TRY(ledger_make_tables(l->db, err));
    TRY(put_meta_number(l, "format", LEDGER_FORMAT, err));
    TRY(ledger_put_meta(l, "currency", l->unit.currency, err));
    TRY(put_meta_number(l, "decimals", l->unit.decimals, err));
    TRY(put_meta_number(l, "debts", l->state.has_debts, err));
    TRY(ledger_put_meta(l, "origin", l->origin, err));
    TRY(ledger_put_meta(l, "vkey", l->vkey, err));
    TRY(ledger_put_meta(l, "audited", "1", err));
    TRY(ledger_put_meta(l, "waiting", "1", err));
    l->has_audited = l->has_waiting = true;
    json_t *about = json_pack("{s:i, s:s, s:i, s:b, s:s}", "format", LEDGER_FORMAT, "currency",
                              l->unit.currency, "decimals", l->unit.decimals, "debts",
                              (int)l->state.has_debts, "origin", l->origin);
    if (!about)
        return fds__fail_json(err);
    TRY(ledger_open_account(l, FDS_ACCOUNT_PLATFORM, "cash", about, err));
    return ledger_open_account(l, FDS_ACCOUNT_PLATFORM, "fees", NULL, err);
}

static void close_database(fds_ledger *l) {
    for (size_t i = 0; i < LEDGER_QUERIES; i++) {
        db_query_free(l->queries[i]);
        l->queries[i] = NULL;
    }
    db_close(l->db);
    l->db = NULL;
}

/* The key is there before the commit: a ledger without one would be of no use. */
static fds_status create_with_key(fds_ledger *l, const char *path, const char *key,
                                  fds_error *err) {
    bool has_key = false;
    TRY(db_open(path, DB_CREATE, &l->db, err));
    fds_status status = ledger_begin(l, err);
    if (status == FDS_OK) {
        status = fill(l, err);
        if (status == FDS_OK)
            status = log_key_save(&l->key, key, err);
        has_key = status == FDS_OK;
        status = ledger_end(l, status, err);
    }
    if (status == FDS_OK && !db_is_uri(path))
        status = fds__dir_sync_parent(path, err);
    if (status == FDS_OK)
        return FDS_OK;
    close_database(l);
    db_remove(path);
    /* it stays if the ledger may be there: a database that does not answer any more */
    if (has_key && !(l->is_doubtful && db_is_uri(path)))
        unlink(key);
    return status;
}

static fds_status create(fds_ledger *l, const char *path, const fds_params *params,
                         fds_error *err) {
    char key[FDS__PATH_MAX];
    TRY(key_path(l, params->signing_key, key, err));
    TRY(set_unit(l, params->currency, params->decimals, err));
    l->state.has_debts = params->debts;
    l->can_write = true;
    TRY(log_key_make(params->origin, &l->key, err));
    snprintf(l->origin, sizeof l->origin, "%s", l->key.name);
    snprintf(l->vkey, sizeof l->vkey, "%s", l->key.vkey);
    return create_with_key(l, path, key, err);
}

fds_status fds_ledger_create(const char *path, const fds_params *params, fds_error *err) {
    fds_ledger *l;
    if (!params || params->job != FDS__JOB_LEDGER)
        return fds__fail(err, FDS_ERR_USAGE, "a ledger needs parameters of the job \"ledger\"");
    TRY(make(path, &l, err));
    fds_status status = create(l, path, params, err);
    fds_ledger_close(l);
    return status;
}

/* ---- opening ---- */

static fds_status load_accounts(fds_ledger *l, db_query *q, fds_error *err) {
    bool has_row;
    for (;;) {
        fds_account_kind kind;
        TRY(db_next(q, &has_row, err));
        if (!has_row)
            return FDS_OK;
        const char *kind_name = db_text(q, 1, NULL), *name = db_text(q, 2, NULL);
        size_t number = l->state.account_count;
        if (db_int(q, 0) != (int64_t)number || !kind_name || !name ||
            !ledger_kind_find(kind_name, &kind) ||
            ledger_state_find(&l->state, name) != LEDGER_NONE)
            return ledger_fail(l, err, "account %zu is malformed", number);
        TRY(ledger_state_add_account(&l->state, kind, name, err));
        l->state.accounts[number].balance = l->state.accounts[number].kept = db_int(q, 3);
    }
}

static fds_status load_runs(fds_ledger *l, db_query *q, fds_error *err) {
    bool has_row;
    for (;;) {
        size_t size, number = l->state.run_count;
        TRY(db_next(q, &has_row, err));
        if (!has_row)
            return FDS_OK;
        const char *sha256 = db_text(q, 1, NULL), *text = db_text(q, 3, NULL);
        if (db_int(q, 0) != (int64_t)number || !sha256 || !text)
            return ledger_fail(l, err, "run %zu is malformed", number);
        TRY(ledger_state_read_run(&l->state, text, err));
        ledger_run *r = l->state.runs[number];
        const void *carry = db_blob(q, 2, &size);
        if (strcmp(r->sha256, sha256) != 0 || size != r->count * sizeof *r->kept)
            return ledger_fail(l, err, "run %zu is malformed", number);
        memcpy(r->kept, carry, size);
        fds__carry_set(r->carry, r->kept);
    }
}

static fds_status load(fds_ledger *l, enum ledger_query which,
                       fds_status (*read)(fds_ledger *, db_query *, fds_error *), fds_error *err) {
    db_query *q;
    TRY(ledger_query(l, which, &q, err));
    fds_status status = read(l, q, err);
    db_end(q);
    return status;
}

/* The newest checkpoint is of these entries, and signed by this log. */
static fds_status check_log(fds_ledger *l, fds_error *err) {
    OWNED char *note = NULL;
    uint64_t size;
    log_hash signed_root;
    TRY(fds_ledger_checkpoint(l, &note, err));
    TRY(log_checkpoint_open(note, strlen(note), l->vkey, &size, &signed_root, err));
    fds_status status = log_tree_open(l->tree, l->state.size, &l->store, err);
    if (status == FDS_ERR_NOT_FOUND)
        return ledger_fail(l, err, "a tile of its log is missing");
    TRY(status);
    log_hash root = log_tree_root(l->tree);
    if (size != l->state.size || !log_equal(&root, &signed_root))
        return ledger_fail(l, err, "its newest checkpoint is of %llu entries, or of others",
                           (unsigned long long)size);
    return FDS_OK;
}

static fds_status load_all(fds_ledger *l, fds_error *err) {
    TRY(load(l, LEDGER_Q_ACCOUNTS, load_accounts, err));
    TRY(load(l, LEDGER_Q_RUNS, load_runs, err));
    if (l->state.account_count <= LEDGER_FEES)
        return ledger_fail(l, err, "it has no accounts for cash and fees");
    TRY(ledger_read_size(l, &l->state.size, &l->state.at_ms, err));
    TRY(ledger_privacy_load(l, err));
    return check_log(l, err);
}

fds_status ledger_load(fds_ledger *l, fds_error *err) {
    ledger_state old = l->state;
    *l->kept_tree = *l->tree;
    l->state = (ledger_state){.has_debts = old.has_debts};
    fds_status status = load_all(l, err);
    ledger_state_free(status == FDS_OK ? &old : &l->state);
    if (status != FDS_OK) {
        l->state = old;
        *l->tree = *l->kept_tree;
    }
    return status;
}

static fds_status load_key(fds_ledger *l, const char *key, fds_error *err) {
    char path[FDS__PATH_MAX];
    TRY(key_path(l, key, path, err));
    TRY(log_key_load(path, &l->key, err));
    if (strcmp(l->key.vkey, l->vkey) != 0)
        return fds__fail(err, FDS_ERR_CONFLICT, "%s is not the key of %s, which is signed by %s",
                         path, l->path, l->vkey);
    return FDS_OK;
}

static fds_status open_ledger(fds_ledger *l, const char *path, fds_ledger_access access,
                              const char *key, fds_error *err) {
    l->can_write = access == FDS_LEDGER_WRITE;
    TRY(db_open(path, l->can_write ? DB_WRITE : DB_READ, &l->db, err));
    if (!l->can_write)
        TRY(db_begin(l->db, err)); /* all that it reads is of one moment */
    TRY(read_meta(l, err));
    if (l->can_write)
        TRY(load_key(l, key, err));
    return ledger_load(l, err);
}

fds_status fds_ledger_open(const char *path, fds_ledger_access access, const char *key,
                           fds_ledger **out, fds_error *err) {
    fds_ledger *l;
    TRY(make(path, &l, err));
    fds_status status = open_ledger(l, path, access, key, err);
    if (status == FDS_OK)
        *out = l;
    else
        fds_ledger_close(l);
    return status;
}

/* ---- what it is, and its accounts ---- */

const char *fds_ledger_name(const fds_ledger *l) { return l->path; }
const char *fds_ledger_currency(const fds_ledger *l) { return l->unit.currency; }
int fds_ledger_decimals(const fds_ledger *l) { return l->unit.decimals; }
int64_t fds_ledger_minor(const fds_ledger *l) { return l->unit.minor; }
uint64_t fds_ledger_size(const fds_ledger *l) { return l->state.size; }
const char *fds_ledger_vkey(const fds_ledger *l) { return l->vkey; }
uint64_t fds_ledger_accounts(const fds_ledger *l) { return l->state.account_count; }

const char *fds_ledger_account_name(const fds_ledger *l, uint64_t account) {
    return account < l->state.account_count ? l->state.accounts[account].name : "?";
}

fds_account_kind fds_ledger_account_kind(const fds_ledger *l, uint64_t account) {
    return account < l->state.account_count ? l->state.accounts[account].kind
                                            : FDS_ACCOUNT_PLATFORM;
}

int64_t fds_ledger_balance(const fds_ledger *l, uint64_t account) {
    return account < l->state.account_count ? l->state.accounts[account].balance : 0;
}

fds_status ledger_check_account(const fds_ledger *l, uint64_t account, fds_error *err) {
    if (account < l->state.account_count)
        return FDS_OK;
    return fds__fail(err, FDS_ERR_USAGE, "%s has no account %llu: the last one is %zu", l->path,
                     (unsigned long long)account, l->state.account_count - 1);
}

fds_status fds_ledger_find(const fds_ledger *l, const char *name, uint64_t *account,
                           fds_error *err) {
    OWNED const char **names = NULL;
    char hint[FDS__HINT];
    uint64_t found = ledger_state_find(&l->state, name ? name : "");
    if (found != LEDGER_NONE) {
        *account = found;
        return FDS_OK;
    }
    TRY(NEW(names, l->state.account_count + 1, err));
    for (size_t i = 0; i < l->state.account_count; i++)
        names[i] = l->state.accounts[i].name;
    return fds__fail(err, FDS_ERR_NOT_FOUND, "%s has no account \"%.100s\"%s", l->path,
                     name ? name : "", fds__hint(name ? name : "", names, hint));
}

fds_status fds_ledger_account(fds_ledger *l, fds_account_kind kind, const char *name,
                              uint64_t *account, fds_error *err) {
    if (kind != FDS_ACCOUNT_CUSTOMER && kind != FDS_ACCOUNT_PROVIDER)
        return fds__fail(err, FDS_ERR_USAGE, "a new account is of a customer or of a provider");
    TRY(ledger_check_word("the name of an account", name, LEDGER_NAME, err));
    TRY(ledger_settle(l, err));
    uint64_t found = ledger_state_find(&l->state, name);
    if (found != LEDGER_NONE && l->state.accounts[found].kind != kind)
        return fds__fail(err, FDS_ERR_CONFLICT, "%.200s is the account of a %s, not of a %s", name,
                         ledger_kind_name(l->state.accounts[found].kind), ledger_kind_name(kind));
    if (found == LEDGER_NONE) {
        TRY(ledger_begin(l, err));
        TRY(ledger_end(l, ledger_open_account(l, kind, name, NULL, err), err));
        found = l->state.account_count - 1;
    }
    *account = found;
    return FDS_OK;
}

fds_status fds_ledger_units(const fds_ledger *l, const char *text, int64_t *units, fds_error *err) {
    const char *digits = text ? text + (*text == '-') : "";
    size_t whole = strspn(digits, "0123456789"),
           part = digits[whole] == '.' ? strspn(digits + whole + 1, "0123456789") : 0;
    bool is_money = whole && !digits[whole + (part ? 1 + part : 0)];
    int64_t sum = 0;
    if (!is_money || part > (size_t)l->unit.decimals)
        return fds__fail(err, FDS_ERR_USAGE,
                         "an amount must be money such as 10.00, with at most %d decimals (got "
                         "%.60s)",
                         l->unit.decimals, text ? text : "");
    for (size_t i = 0; i < whole + (size_t)l->unit.decimals; i++) {
        size_t at = i < whole ? i : i + 1; /* over the point */
        int digit = i < whole + part ? digits[at] - '0' : 0;
        if (__builtin_mul_overflow(sum, 10, &sum) || __builtin_add_overflow(sum, digit, &sum))
            return fds__fail(err, FDS_ERR_LIMIT, "an amount of %.60s is too large", text);
    }
    *units = *text == '-' ? -sum : sum;
    return FDS_OK;
}
