/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole ledger for other programs: hledger, beancount, ledger and spreadsheets; and a copy of it.
 *
 * What the platform owes is a liability, which these programs count as negative: every amount is the
 * posting's with the other sign. cash is Assets:Cash, fees are Income:Fees, others are
 * Liabilities:Customers:NAME and Liabilities:Providers:NAME. Postings of 0 are left out. At the end
 * stands the balance of every account, which the program compares with its own.
 *
 * No two names become the same:
 *   hledger, ledger  letters, digits, and the characters _ . ' & / + stay, as do letters beyond ASCII
 *                    and single blanks between them; every byte of others becomes %XX
 *   beancount        letters and digits of ASCII stay; every byte of others becomes -XX. A name that then
 *                    does not begin with a capital letter or a digit gets X- in front
 */
#include "ledger/ledger.h"

#include <sys/stat.h>
#include <unistd.h>

enum { REPORT_EVERY = 256, AT_ONCE = 1 << 16 };

typedef struct export export;

/* A format: what stands at the beginning, for an entry, at the end. */
typedef struct {
    const char *name;
    void (*begin)(export *x);
    void (*open)(export *x, uint64_t account, const char *day);
    void (*entry)(export *x, const ledger_entry *e, const fds_posting *postings, size_t count);
    void (*end)(export *x, int64_t day);
} format;

struct export {
    const fds_ledger *ledger;
    const format *format;
    fds__text out;
    fds_posting *postings;
    size_t capacity;
    uint64_t accounts; /* opened so far */
};

/* ---- names ---- */

static bool is_alnum(char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Blanks and invisible characters of Unicode, which readers may take for the end of a name. */
static bool is_odd(uint32_t code) {
    return (code >= 0x80 && code <= 0xbf) || code == 0x1680 || code == 0x180e ||
           (code >= 0x2000 && code <= 0x206f) || code == 0x3000 ||
           (code >= 0xfe00 && code <= 0xfe0f) || code >= 0xfeff;
}

static void add_escaped(fds__text *out, char mark, const char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        fds__text_print(out, "%c%02X", mark, (unsigned)(uint8_t)bytes[i]);
}

static void add_plain_name(fds__text *out, const char *name) {
    for (const char *at = name; *at;) {
        uint32_t code;
        size_t size = MAX(fds__utf8(at, &code), 1);
        bool is_inner_blank = *at == ' ' && at > name && at[-1] != ' ' && at[1] && at[1] != ' ';
        bool stays =
            size > 1 ? !is_odd(code) : is_alnum(*at) || strchr("_.'&/+", *at) || is_inner_blank;
        if (stays)
            fds__text_add(out, at, size);
        else
            add_escaped(out, '%', at, size);
        at += size;
    }
}

static void add_bean_name(fds__text *out, const char *name) {
    if (!is_alnum(*name) || (*name >= 'a' && *name <= 'z'))
        fds__text_add(out, "X-", 2);
    for (; *name; name++) {
        if (is_alnum(*name))
            fds__text_add(out, name, 1);
        else
            add_escaped(out, '-', name, 1);
    }
}

static bool is_bean(const export *x) { return strcmp(x->format->name, "beancount") == 0; }

static void add_account(export *x, uint64_t account) {
    const ledger_account *a = &x->ledger->state.accounts[account];
    if (a->kind == FDS_ACCOUNT_PLATFORM) {
        fds__text_print(&x->out, "%s",
                        account == LEDGER_CASH   ? "Assets:Cash"
                        : account == LEDGER_FEES ? "Income:Fees"
                                                 : "Equity:Reserve");
        return;
    }
    fds__text_print(&x->out,
                    "Liabilities:%s:", a->kind == FDS_ACCOUNT_CUSTOMER ? "Customers" : "Providers");
    (is_bean(x) ? add_bean_name : add_plain_name)(&x->out, a->name);
}

static void add_amount(export *x, int64_t units) {
    char money[32];
    fds_money_text(-units, x->ledger->unit.decimals, money);
    fds__text_print(&x->out, "%s %s", money, x->ledger->unit.currency);
}

/* A text between quotes, or as a description: without what would end it. */
static void add_words(export *x, const char *text) {
    for (; *text; text++)
        if (strchr(";|\"\\", *text))
            fds__text_add(&x->out, "?", 1);
        else
            fds__text_add(&x->out, text, 1);
}

static void add_title(export *x, const ledger_entry *e) {
    fds__text_print(&x->out, "%s", ledger_entry_kinds[e->kind]);
    if (e->label) {
        fds__text_print(&x->out, " of ");
        add_words(x, e->label);
    }
    if (e->ref != LEDGER_NONE)
        fds__text_print(&x->out, " of entry %llu", (unsigned long long)e->ref);
}

static void add_postings(export *x, const fds_posting *postings, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!postings[i].units)
            continue;
        fds__text_print(&x->out, "    ");
        add_account(x, postings[i].account);
        fds__text_print(&x->out, "  ");
        add_amount(x, postings[i].units);
        fds__text_add(&x->out, "\n", 1);
    }
}

/* ---- hledger and ledger ---- */

static void hledger_begin(export *x) {
    int decimals = x->ledger->unit.decimals;
    fds__text_print(&x->out, "commodity 1000.%.*s %s\n", decimals, "000000000",
                    x->ledger->unit.currency);
}

static void ledger_begin_file(export *x) {
    fds__text_print(&x->out, "commodity %s\n", x->ledger->unit.currency);
}

static void journal_open(export *x, uint64_t account, const char *day) {
    (void)day;
    fds__text_print(&x->out, "account ");
    add_account(x, account);
    fds__text_add(&x->out, "\n", 1);
}

static void journal_entry(export *x, const ledger_entry *e, const fds_posting *postings,
                          size_t count) {
    char day[LEDGER_TIME];
    fds__text_print(&x->out, "\n%s * (%llu) ", ledger_day_text(e->at_ms / LEDGER_DAY_MS, day),
                    (unsigned long long)e->index);
    add_title(x, e);
    fds__text_add(&x->out, "\n", 1);
    add_postings(x, postings, count);
}

static void journal_end(export *x, int64_t day) {
    char text[LEDGER_TIME];
    fds__text_print(&x->out, "\n%s * balances\n", ledger_day_text(day, text));
    for (uint64_t i = 0; i < x->ledger->state.account_count; i++) {
        fds__text_print(&x->out, "    ");
        add_account(x, i);
        fds__text_print(&x->out, "  0 %s = ", x->ledger->unit.currency);
        add_amount(x, x->ledger->state.accounts[i].balance);
        fds__text_add(&x->out, "\n", 1);
    }
}

/* ---- beancount ---- */

static void bean_begin(export *x) {
    fds__text_print(&x->out, "option \"operating_currency\" \"%s\"\n", x->ledger->unit.currency);
}

static void bean_open(export *x, uint64_t account, const char *day) {
    fds__text_print(&x->out, "%s open ", day);
    add_account(x, account);
    fds__text_print(&x->out, " %s\n", x->ledger->unit.currency);
}

static void bean_entry(export *x, const ledger_entry *e, const fds_posting *postings,
                       size_t count) {
    char day[LEDGER_TIME];
    fds__text_print(&x->out, "\n%s * \"", ledger_day_text(e->at_ms / LEDGER_DAY_MS, day));
    add_title(x, e);
    fds__text_print(&x->out, "\"\n    entry: %llu\n", (unsigned long long)e->index);
    add_postings(x, postings, count);
}

/* A balance holds at the beginning of its day. */
static void bean_end(export *x, int64_t day) {
    char text[LEDGER_TIME];
    fds__text_add(&x->out, "\n", 1);
    for (uint64_t i = 0; i < x->ledger->state.account_count; i++) {
        fds__text_print(&x->out, "%s balance ", ledger_day_text(day + 1, text));
        add_account(x, i);
        fds__text_print(&x->out, "  ");
        add_amount(x, x->ledger->state.accounts[i].balance);
        fds__text_add(&x->out, "\n", 1);
    }
}

/* ---- CSV: postings as the ledger has them, positive where the platform owes more ---- */

static void csv_begin(export *x) {
    fds__text_print(&x->out, "entry,date,kind,label,account,account_kind,amount,currency\n");
}

static void csv_entry(export *x, const ledger_entry *e, const fds_posting *postings, size_t count) {
    char time[LEDGER_TIME], money[32];
    for (size_t i = 0; i < count; i++) {
        if (!postings[i].units)
            continue;
        const ledger_account *a = &x->ledger->state.accounts[postings[i].account];
        fds__text_print(&x->out, "%llu,%s,%s,", (unsigned long long)e->index,
                        ledger_time_text(e->at_ms, time), ledger_entry_kinds[e->kind]);
        fds__text_csv(&x->out, e->label ? e->label : "");
        fds__text_add(&x->out, ",", 1);
        fds__text_csv(&x->out, a->name);
        fds__text_print(&x->out, ",%s,%s,%s\n", ledger_kind_name(a->kind),
                        fds_money_text(postings[i].units, x->ledger->unit.decimals, money),
                        x->ledger->unit.currency);
    }
}

static const format formats[] = {
    {"hledger", hledger_begin, journal_open, journal_entry, journal_end},
    {"beancount", bean_begin, bean_open, bean_entry, bean_end},
    {"ledger", ledger_begin_file, journal_open, journal_entry, journal_end},
    {"csv", csv_begin, NULL, csv_entry, NULL},
};
enum { FORMATS = sizeof formats / sizeof *formats };

/* ---- all entries ---- */

static fds_status export_entry(export *x, const ledger_entry *e, fds_error *err) {
    char day[LEDGER_TIME];
    size_t count;
    if (e->kind == LEDGER_OPEN && x->format->open)
        x->format->open(x, MIN(x->accounts, x->ledger->state.account_count - 1),
                        ledger_day_text(e->at_ms / LEDGER_DAY_MS, day));
    x->accounts += e->kind == LEDGER_OPEN;
    TRY(ledger_postings_decode(e, x->ledger->state.account_count, &x->postings, &x->capacity,
                               &count, err));
    bool has_money = false;
    for (size_t i = 0; i < count; i++)
        has_money |= x->postings[i].units != 0;
    if (has_money)
        x->format->entry(x, e, x->postings, count);
    return fds__text_check(&x->out, err);
}

static fds_status export_row(export *x, const db_query *row, fds__out *file, fds_error *err) {
    ledger_entry e;
    TRY(ledger_entry_read(row, &e, err));
    TRY(export_entry(x, &e, err));
    if (x->out.used < AT_ONCE)
        return FDS_OK;
    size_t size = x->out.used;
    x->out.used = 0;
    return fds__out_write(file, x->out.data, size, err);
}

static fds_status export_all(export *x, fds__out *file, const fds_events *events, fds_error *err) {
    const fds_ledger *l = x->ledger;
    db_query *q;
    bool has_row = true;
    double start_s = fds__now_s();
    TRY(ledger_query(l, LEDGER_Q_ALL, &q, err));
    x->format->begin(x);
    fds_status status = FDS_OK;
    for (uint64_t done = 0; status == FDS_OK; done++) {
        if (done % REPORT_EVERY == 0)
            status = fds__report(events, "export", "entries", done, l->state.size, start_s, err);
        if (status == FDS_OK)
            status = db_next(q, &has_row, err);
        if (status != FDS_OK || !has_row)
            break;
        status = export_row(x, q, file, err);
    }
    db_end(q);
    TRY(status);
    if (x->format->end)
        x->format->end(x, l->state.at_ms / LEDGER_DAY_MS);
    TRY(fds__text_check(&x->out, err));
    return fds__out_write(file, x->out.data, x->out.used, err);
}

static fds_status find_format(const char *name, const format **out, fds_error *err) {
    const char *names[FORMATS + 1] = {NULL};
    char hint[FDS__HINT];
    for (size_t i = 0; i < FORMATS; i++) {
        names[i] = formats[i].name;
        if (name && strcmp(name, names[i]) == 0) {
            *out = &formats[i];
            return FDS_OK;
        }
    }
    name = name ? name : "";
    return fds__fail(err, FDS_ERR_USAGE,
                     "a format must be hledger, beancount, ledger or csv (got %.60s)%s", name,
                     fds__hint(name, names, hint));
}

fds_status fds_ledger_export(const fds_ledger *l, const char *format_name, const char *path,
                             const fds_events *events, fds_error *err) {
    export x = {.ledger = l};
    fds__out *file;
    TRY(find_format(format_name, &x.format, err));
    TRY(fds__out_open(path, &file, err));
    fds_status status = export_all(&x, file, events, err);
    fds__free(x.out.data);
    fds__free(x.postings);
    if (status == FDS_OK)
        return fds__out_commit(file, err);
    fds__out_abort(file);
    return status;
}

/* ---- a copy ---- */

static fds_status sync_file(const char *path, fds_error *err) {
    fds__file file;
    TRY(fds__file_open(&file, path, FDS__ACCESS_UPDATE, err));
    fds_status status = fds__file_sync(&file, err);
    fds__file_close(&file);
    return status;
}

/* Also by another name. */
static bool is_same_file(const char *a, const char *b) {
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

fds_status fds_ledger_backup(const fds_ledger *l, const char *path, fds_error *err) {
    char partial[FDS__PATH_MAX];
    if (!path || !*path || strlen(path) >= FDS__PATH_MAX - 16 || is_same_file(path, l->path))
        return fds__fail(err, FDS_ERR_USAGE, "a copy needs a path of its own (got %.60s)",
                         path ? path : "none");
    snprintf(partial, sizeof partial, "%.*s.partial", FDS__PATH_MAX - 16, path);
    unlink(partial);
    fds_status status = db_copy(l->db, ledger_tables_of(l), partial, NULL, NULL, err);
    if (status == FDS_OK)
        status = sync_file(partial, err);
    if (status == FDS_OK && rename(partial, path) != 0)
        status = fds__fail_errno(err, "replace", path);
    if (status == FDS_OK)
        return fds__dir_sync_parent(path, err);
    unlink(partial);
    return status;
}

/* The copy has no name once it is open, and goes with its last user. */
static fds_status open_copy(const fds_ledger *l, fds_ledger_pause pause, void *user,
                            fds_ledger **out, fds_error *err) {
    char path[FDS__PATH_MAX];
    int size = snprintf(path, sizeof path, "%s.snapshot", l->path);
    if (size >= (int)sizeof path)
        return fds__fail(err, FDS_ERR_USAGE, "%.60s...: too long", l->path);
    unlink(path); /* of a process that has died */
    fds_status status = db_copy(l->db, ledger_tables_of(l), path, pause, user, err);
    if (status == FDS_OK)
        status = fds_ledger_open(path, FDS_LEDGER_READ, NULL, out, err);
    unlink(path);
    return status;
}

fds_status fds_ledger_snapshot(const fds_ledger *l, const char *path, fds_ledger_pause pause,
                               void *user, fds_ledger **out, fds_error *err) {
    if (db_is_uri(path))
        return fds_ledger_open(path, FDS_LEDGER_READ, NULL, out, err);
    TRY(open_copy(l, pause, user, out, err));
    snprintf((*out)->path, sizeof(*out)->path, "%s", l->path); /* messages are about that one */
    return FDS_OK;
}
