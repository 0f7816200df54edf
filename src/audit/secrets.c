/* SPDX-License-Identifier: Apache-2.0
 *
 * The check "ledger": everything computed again, and whether the audited predictions are those that
 * nobody could choose. A note commits to the secret of a day before its first prediction; another one
 * reveals it once the day is over (docs/ledger.md). Then
 *   - the secret's hash and the share are those committed to, and no prediction of the day came before,
 *   - the audited predictions of the day are exactly those that the secret selects,
 *   - their rows hash to what the reveal says.
 * A second reveal of a day is a fault, and so is a secret that is not revealed two days after its own, and a row on a day without a commitment. Days with predictions and
 * without a commitment, after the first one that has it, are counted. */
#include "audit/audit.h"

#include <endian.h>
#include <stdarg.h>

enum { AT_ONCE = 1024, PAGE = 1000, LATE_DAYS = 2 };

typedef struct {
    const fds_ledger *ledger;
    const char *day;
    uint64_t first, end; /* entries of the day */
    uint8_t secret[32];
    uint64_t limit; /* below it an entry is selected */
    bool selects_all;
    uint64_t next; /* entries below are compared */
    char *fault;   /* what is wrong */
    size_t size;
} checked_day;

__attribute__((format(printf, 2, 3))) static fds_status accuse(checked_day *d, const char *format,
                                                               ...) {
    va_list args;
    int used = snprintf(d->fault, d->size, "audited predictions of %s: ", d->day);
    va_start(args, format);
    vsnprintf(d->fault + used, d->size - (size_t)used, format, args);
    va_end(args);
    return FDS_ERR_CANCELLED;
}

/* ---- the choice ---- */

static bool is_selected(const checked_day *d, uint64_t entry) {
    uint8_t digest[32];
    uint64_t number = htobe64(entry);
    fds__sha256((fds__bytes[]){{d->secret, sizeof d->secret}, {&number, sizeof number}}, 2, digest);
    memcpy(&number, digest, sizeof number);
    return d->selects_all || be64toh(number) < d->limit;
}

/* No prediction from d->next on and before end is selected: all that are come from rows. */
static fds_status skip_to(checked_day *d, uint64_t end, fds_error *err) {
    size_t found = AT_ONCE;
    while (found == AT_ONCE && d->next < end) {
        db_query *q;
        bool has_row = true;
        fds_status status = ledger_query(d->ledger, LEDGER_Q_PREDICTIONS, &q, err);
        TRY(status);
        db_bind_int(q, 1, (int64_t)d->next);
        db_bind_int(q, 2, (int64_t)end);
        db_bind_int(q, 3, AT_ONCE);
        for (found = 0; status == FDS_OK; found++) {
            status = db_next(q, &has_row, err);
            if (status != FDS_OK || !has_row)
                break;
            d->next = (uint64_t)db_int(q, 0) + 1;
            if (is_selected(d, d->next - 1))
                status = accuse(d, "the secret selects entry %llu, which has no row",
                                (unsigned long long)d->next - 1);
        }
        db_end(q);
        TRY(status);
    }
    d->next = end;
    return FDS_OK;
}

static fds_status compare_row(void *user, const fds_audited *row, fds_error *err) {
    checked_day *d = user;
    if (row->entry >= d->end)
        return FDS_ERR_CANCELLED;
    TRY(skip_to(d, row->entry, err));
    d->next = row->entry + 1;
    return is_selected(d, row->entry)
               ? FDS_OK
               : accuse(d, "entry %llu has a row, but the secret does not select it",
                        (unsigned long long)row->entry);
}

/* ---- one day ---- */

/* The first prediction of the day before an entry, or d->end. */
static fds_status find_prediction(const checked_day *d, uint64_t before, uint64_t *out,
                                  fds_error *err) {
    db_query *q;
    bool has_row = false;
    TRY(ledger_query(d->ledger, LEDGER_Q_PREDICTIONS, &q, err));
    db_bind_int(q, 1, (int64_t)d->first);
    db_bind_int(q, 2, (int64_t)MAX(before, d->first));
    db_bind_int(q, 3, 1);
    fds_status status = db_next(q, &has_row, err);
    *out = has_row ? (uint64_t)db_int(q, 0) : d->end;
    db_end(q);
    return status;
}

static fds_status check_commit(checked_day *d, const json_t *commit, int64_t ppm, fds_error *err) {
    uint8_t wanted[32] = {0}, digest[32];
    uint64_t at = (uint64_t)json_integer_value(json_object_get(commit, "index")), early;
    const json_t *share = json_object_get(commit, "share_ppm");
    if (!commit)
        return accuse(d, "nobody had committed to the secret");
    if (!json_is_integer(share) || json_integer_value(share) != ppm)
        return accuse(d, "the share is not the one that entry %llu has committed to",
                      (unsigned long long)at);
    fds__sha256(&(fds__bytes){d->secret, sizeof d->secret}, 1, digest);
    if (!fds__hex_read(json_string_value(json_object_get(commit, "hash")), wanted) ||
        memcmp(wanted, digest, sizeof digest) != 0)
        return accuse(d, "the secret is not the one that entry %llu has committed to",
                      (unsigned long long)at);
    TRY(find_prediction(d, MIN(at, d->end), &early, err));
    return early < d->end ? accuse(d, "entry %llu came before the commitment, entry %llu",
                                   (unsigned long long)early, (unsigned long long)at)
                          : FDS_OK;
}

static fds_status check_rows(checked_day *d, const json_t *reveal, fds_error *err) {
    uint64_t rows;
    uint8_t wanted[32] = {0}, found[32];
    fds_status status = fds_ledger_audited(d->ledger, d->first, compare_row, d, err);
    if (status != FDS_ERR_CANCELLED || *d->fault)
        TRY(status);
    TRY(skip_to(d, d->end, err));
    TRY(fds_ledger_audited_day(d->ledger, d->day, &rows, found, err));
    if (rows != (uint64_t)json_integer_value(json_object_get(reveal, "rows")) ||
        !fds__hex_read(json_string_value(json_object_get(reveal, "sha256")), wanted) ||
        memcmp(wanted, found, sizeof found) != 0)
        return accuse(d, "the %llu rows are not those of the reveal", (unsigned long long)rows);
    return FDS_OK;
}

static fds_status find_entries(checked_day *d, int64_t day, fds_error *err) {
    TRY(ledger_first_at(d->ledger, day * LEDGER_DAY_MS, &d->first, err));
    return ledger_first_at(d->ledger, (day + 1) * LEDGER_DAY_MS, &d->end, err);
}

static fds_status check_day(checked_day *d, const json_t *commit, const json_t *reveal,
                            fds_error *err) {
    int64_t day, ppm = json_integer_value(json_object_get(reveal, "share_ppm"));
    if (!ledger_day_read(d->day, &day) ||
        !fds__hex_read(json_string_value(json_object_get(reveal, "secret")), d->secret) ||
        ppm < 0 || ppm > 1000000)
        return accuse(d, "the note that reveals the secret is malformed");
    if (json_object_get(reveal, "other"))
        return accuse(d, "the secret was revealed twice");
    TRY(find_entries(d, day, err));
    if ((uint64_t)json_integer_value(json_object_get(reveal, "index")) < d->end)
        return accuse(d, "the secret was revealed before the day was over");
    d->next = d->first;
    d->selects_all = ppm == 1000000;
    __extension__ typedef unsigned __int128 u128;
    d->limit = (uint64_t)(((u128)(uint64_t)ppm << 64) / 1000000);
    TRY(check_commit(d, commit, ppm, err));
    return check_rows(d, reveal, err);
}

/* ---- all days ---- */

/* Keeps the first note of a day, and in it that there is another one; they come the newest first. */
static bool keep_first(json_t *by_day, const char *day, json_t *note) {
    return (!json_object_get(by_day, day) || fds__json_put(note, "other", json_true())) &&
           fds__json_share(by_day, day, note);
}

/* Notes of a page by day, with the numbers of their entries. */
static fds_status sort_notes(const json_t *list, json_t *commits, json_t *reveals, fds_error *err) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        json_t *text = json_object_get(entry, "text");
        const char *kind = json_string_value(json_object_get(text, "audit")),
                   *day = json_string_value(json_object_get(text, "day"));
        bool is_commit = kind && strcmp(kind, "commit") == 0,
             is_reveal = kind && strcmp(kind, "reveal") == 0;
        if (!day || (!is_commit && !is_reveal))
            continue;
        if (!fds__json_put(text, "index", json_incref(json_object_get(entry, "index"))) ||
            !keep_first(is_commit ? commits : reveals, day, text))
            return fds__fail_json(err);
    }
    return FDS_OK;
}

static fds_status read_notes(const fds_ledger *l, json_t *commits, json_t *reveals,
                             fds_error *err) {
    fds_ledger_listing what = {.account = UINT64_MAX,
                               .kind = "audit",
                               .before = UINT64_MAX,
                               .limit = PAGE,
                               .viewer = UINT64_MAX};
    for (bool has_more = true; has_more;) {
        char *text = NULL;
        json_t *page = NULL;
        TRY(fds_ledger_entries(l, &what, &text, err));
        fds_status status = fds__json_parse("entries", text, strlen(text), &page, err);
        fds_text_free(text);
        if (status == FDS_OK)
            status = sort_notes(json_object_get(page, "entries"), commits, reveals, err);
        has_more = json_is_true(json_object_get(page, "more"));
        what.before = (uint64_t)json_integer_value(json_object_get(page, "before"));
        json_decref(page);
        TRY(status);
    }
    return FDS_OK;
}

static fds_status take_first(void *user, const fds_audited *row, fds_error *err) {
    (void)err;
    *(uint64_t *)user = row->entry;
    return FDS_ERR_CANCELLED;
}

/* Days that were committed to, and are not revealed though they are long over. */
static fds_status find_late(checked_day *d, const json_t *commits, const json_t *reveals) {
    const char *day;
    json_t *commit;
    json_object_foreach((json_t *)(uintptr_t)commits, day, commit) {
        int64_t number;
        d->day = day;
        if (!json_object_get(reveals, day) && ledger_day_read(day, &number) &&
            number + LATE_DAYS < d->ledger->state.at_ms / LEDGER_DAY_MS)
            return accuse(d, "the secret is not revealed yet");
    }
    return FDS_OK;
}

/* Days without a commitment: no prediction of theirs may have been audited, as it was chosen by hand. */
static fds_status check_uncovered(fds_auditor *a, checked_day *d, const json_t *commits,
                                  fds_error *err) {
    const fds_ledger *l = d->ledger;
    bool has_begun = false;
    uint64_t found;
    for (uint64_t next = 0; next < l->state.size; next = d->end) {
        char name[LEDGER_TIME];
        ledger_entry e;
        db_query *row;
        TRY(ledger_entry_get(l, next, &e, &row, err));
        int64_t day = e.at_ms / LEDGER_DAY_MS;
        db_end(row);
        d->day = ledger_day_text(day, name);
        TRY(find_entries(d, day, err));
        TRY(find_prediction(d, d->end, &found, err));
        has_begun |= json_object_get(commits, d->day) != NULL;
        if (found == d->end || json_object_get(commits, d->day))
            continue;
        a->open_days += has_begun;
        found = d->end;
        fds_status status = fds_ledger_audited(l, d->first, take_first, &found, err);
        if (status != FDS_ERR_CANCELLED)
            TRY(status);
        if (found < d->end)
            return accuse(d, "entry %llu has a row, but nobody had committed to a secret",
                          (unsigned long long)found);
    }
    return FDS_OK;
}

static fds_status check_days(fds_auditor *a, const fds_ledger *l, const json_t *commits,
                             const json_t *reveals, const fds_events *events, char *fault,
                             size_t size, fds_error *err) {
    const char *day;
    json_t *reveal;
    double start_s = fds__now_s();
    json_object_foreach((json_t *)(uintptr_t)reveals, day, reveal) {
        checked_day d = {.ledger = l, .day = day, .fault = fault, .size = size};
        TRY(fds__report(events, "secrets", "days", a->days, json_object_size(reveals), start_s,
                        err));
        fds_status status = check_day(&d, json_object_get(commits, day), reveal, err);
        if (*fault)
            return FDS_OK;
        TRY(status);
        a->days++;
    }
    checked_day rest = {.ledger = l, .fault = fault, .size = size};
    if (find_late(&rest, commits, reveals) != FDS_OK)
        return FDS_OK;
    fds_status status = check_uncovered(a, &rest, commits, err);
    return *fault ? FDS_OK : status;
}

static fds_status check_secrets(fds_auditor *a, const fds_ledger *l, const fds_events *events,
                                char *fault, size_t size, fds_error *err) {
    json_t *commits = json_object(), *reveals = json_object();
    fds_status status = commits && reveals ? FDS_OK : fds__fail_json(err);
    a->days = a->open_days = 0;
    if (status == FDS_OK)
        status = read_notes(l, commits, reveals, err);
    if (status == FDS_OK)
        status = check_days(a, l, commits, reveals, events, fault, size, err);
    json_decref(commits);
    json_decref(reveals);
    return status;
}

static fds_status set_fault(fds_auditor *a, const char *fault, fds_error *err) {
    char *copy = fds__strdup(fault);
    if (!copy)
        return fds__fail_nomem(err, strlen(fault) + 1);
    fds__free(a->ledger_fault);
    a->ledger_fault = copy;
    return FDS_OK;
}

fds_status fds_auditor_verify(fds_auditor *a, const fds_ledger *l, const char *vkey,
                              const fds_events *events, fds_error *err) {
    fds_error why = {0};
    char fault[sizeof why.text] = "";
    fds_status status = fds_ledger_verify(l, vkey, events, NULL, &why);
    if (status == FDS_ERR_CORRUPT)
        snprintf(fault, sizeof fault, "%s", why.text);
    else if (status != FDS_OK)
        return fds__fail(err, status, "%s", why.text);
    if (!*fault)
        TRY(check_secrets(a, l, events, fault, sizeof fault, err));
    TRY(set_fault(a, fault, err));
    a->checks[AUDIT_LEDGER].predictions = fds_ledger_size(l);
    a->checks[AUDIT_LEDGER].alarm_at = *fault ? 0 : LEDGER_NONE;
    return FDS_OK;
}

fds_status fds_auditor_share_verdict(fds_auditor *a, const fds_auditor *from, fds_error *err) {
    if (!from->ledger_fault)
        return FDS_OK;
    TRY(set_fault(a, from->ledger_fault, err));
    a->days = from->days;
    a->open_days = from->open_days;
    a->checks[AUDIT_LEDGER].predictions = from->checks[AUDIT_LEDGER].predictions;
    a->checks[AUDIT_LEDGER].alarm_at = from->checks[AUDIT_LEDGER].alarm_at;
    return FDS_OK;
}
