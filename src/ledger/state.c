/* SPDX-License-Identifier: Apache-2.0
 * Accounts, balances, runs and their carries in memory: what the entries of a ledger add up to. A
 * transaction changes them at once; if it fails, they are set back to what the database has. */
#include "ledger/ledger.h"

static const char *const kinds[] = {"platform", "customer", "provider"};
static const char *const policies[] = {"clip", "signed"};

const char *ledger_kind_name(fds_account_kind kind) { return kinds[kind]; }

bool ledger_kind_find(const char *name, fds_account_kind *out) {
    for (int i = 0; i < 3; i++)
        if (strcmp(name, kinds[i]) == 0) {
            *out = (fds_account_kind)i;
            return true;
        }
    return false;
}

const char *ledger_policy_name(fds__policy policy) { return policies[policy]; }

bool ledger_policy_find(const char *name, fds__policy *out) {
    for (int i = 0; i < 2; i++)
        if (strcmp(name, policies[i]) == 0) {
            *out = (fds__policy)i;
            return true;
        }
    return false;
}

/* ---- names ---- */

/* Where the name is, or the empty place where it belongs. */
static size_t slot_of(const ledger_state *s, const char *name) {
    size_t at = (size_t)fds_checksum(name, strlen(name)) & (s->slot_count - 1);
    while (s->slots[at] && strcmp(s->accounts[s->slots[at] - 1].name, name) != 0)
        at = (at + 1) & (s->slot_count - 1);
    return at;
}

uint64_t ledger_state_find(const ledger_state *s, const char *name) {
    size_t found = s->slot_count ? s->slots[slot_of(s, name)] : 0;
    return found ? found - 1 : LEDGER_NONE;
}

static void fill_slots(ledger_state *s) {
    memset(s->slots, 0, s->slot_count * sizeof *s->slots);
    for (size_t i = 0; i < s->account_count; i++)
        s->slots[slot_of(s, s->accounts[i].name)] = i + 1;
}

/* At most half of the places are taken. */
static fds_status grow_slots(ledger_state *s, fds_error *err) {
    if (s->slot_count >= 2 * (s->account_count + 1))
        return FDS_OK;
    size_t *slots, count = MAX(64, 2 * s->slot_count);
    TRY(NEW(slots, count, err));
    fds__free(s->slots);
    s->slots = slots;
    s->slot_count = count;
    fill_slots(s);
    return FDS_OK;
}

/* ---- accounts ---- */

fds_status ledger_state_add_account(ledger_state *s, fds_account_kind kind, const char *name,
                                    fds_error *err) {
    void *accounts = s->accounts, *touched = s->touched;
    fds_status status =
        fds__grow(&accounts, &s->account_capacity, s->account_count + 1, sizeof *s->accounts, err);
    s->accounts = accounts;
    TRY(status);
    /* every account may be touched: nothing can fail after a posting was checked */
    status =
        fds__grow(&touched, &s->touched_capacity, s->account_count + 1, sizeof *s->touched, err);
    s->touched = touched;
    TRY(status);
    TRY(grow_slots(s, err));
    char *copy = fds__strdup(name);
    if (!copy)
        return fds__fail_nomem(err, strlen(name) + 1);
    s->accounts[s->account_count] = (ledger_account){.kind = kind, .name = copy};
    s->slots[slot_of(s, name)] = s->account_count + 1;
    s->account_count++;
    return FDS_OK;
}

/* ---- runs ---- */

void ledger_run_free(ledger_run *r) {
    if (!r)
        return;
    fds__free(r->name);
    fds__free(r->payees);
    fds__carry_free(r->carry);
    fds__free(r->kept);
    fds__free(r->values);
    fds__free(r->shares);
    fds__free(r->before);
    fds__free(r);
}

static fds_status fill_run(ledger_run *r, const char *name, const uint64_t *payees,
                           fds_error *err) {
    r->name = fds__strdup(name);
    if (!r->name)
        return fds__fail_nomem(err, strlen(name) + 1);
    TRY(NEW(r->payees, r->count, err));
    TRY(NEW(r->kept, r->count, err));
    TRY(NEW(r->values, r->count, err));
    TRY(NEW(r->shares, r->count, err));
    TRY(NEW(r->before, r->count, err));
    memcpy(r->payees, payees, r->count * sizeof *payees);
    return fds__carry_create(r->count, &r->carry, err);
}

fds_status ledger_state_add_run(ledger_state *s, const char *name, const char *sha256,
                                fds__policy policy, uint32_t fee_ppm, const uint64_t *payees,
                                size_t count, fds_error *err) {
    void *runs = s->runs;
    fds_status status =
        fds__grow(&runs, &s->run_capacity, s->run_count + 1, sizeof(ledger_run *), err);
    s->runs = runs;
    TRY(status);
    ledger_run *r;
    TRY(NEW(r, 1, err));
    r->policy = policy;
    r->fee_ppm = fee_ppm;
    r->count = count;
    snprintf(r->sha256, sizeof r->sha256, "%s", sha256);
    status = fill_run(r, name, payees, err);
    if (status == FDS_OK)
        s->runs[s->run_count++] = r;
    else
        ledger_run_free(r);
    return status;
}

/* ---- accounts and runs as the entries that add them describe them ---- */

static fds_status fail_text(const char *what, fds_error *err) {
    return fds__fail(err, FDS_ERR_CORRUPT, "the text of the entry that adds %s is malformed", what);
}

fds_status ledger_state_read_account(ledger_state *s, const char *text, fds_error *err) {
    json_t *root;
    fds_account_kind kind;
    TRY(fds__json_parse("entry", text, strlen(text), &root, err));
    const char *kind_name = json_string_value(json_object_get(root, "kind")),
               *name = json_string_value(json_object_get(root, "name"));
    bool is_right = kind_name && name && ledger_kind_find(kind_name, &kind) &&
                    ledger_state_find(s, name) == LEDGER_NONE;
    fds_status status =
        is_right ? ledger_state_add_account(s, kind, name, err) : fail_text("an account", err);
    json_decref(root);
    return status;
}

static fds_status read_payees(const ledger_state *s, const json_t *list, uint64_t **payees,
                              fds_error *err) {
    TRY(NEW(*payees, json_array_size(list), err));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        json_int_t account = json_integer_value(item);
        if (!json_is_integer(item) || account < 0 || (uint64_t)account >= s->account_count)
            return fail_text("a run", err);
        (*payees)[i] = (uint64_t)account;
    }
    return FDS_OK;
}

static fds_status read_run(ledger_state *s, const json_t *root, fds_error *err) {
    OWNED uint64_t *payees = NULL;
    const char *name = json_string_value(json_object_get(root, "name")),
               *sha256 = json_string_value(json_object_get(root, "sha256")),
               *policy_name = json_string_value(json_object_get(root, "policy"));
    json_int_t fee = json_integer_value(json_object_get(root, "fee_ppm"));
    const json_t *list = json_object_get(root, "payees");
    fds__policy policy;
    if (!name || !sha256 || strlen(sha256) != 64 || !policy_name ||
        !ledger_policy_find(policy_name, &policy) || fee < 0 || fee > 1000000 ||
        json_array_size(list) == 0)
        return fail_text("a run", err);
    TRY(read_payees(s, list, &payees, err));
    return ledger_state_add_run(s, name, sha256, policy, (uint32_t)fee, payees,
                                json_array_size(list), err);
}

fds_status ledger_state_read_run(ledger_state *s, const char *text, fds_error *err) {
    json_t *root;
    TRY(fds__json_parse("entry", text, strlen(text), &root, err));
    fds_status status = read_run(s, root, err);
    json_decref(root);
    return status;
}

/* ---- dividing ---- */

static void note_owed(const ledger_run *r, fds__fixed *owed) {
    for (size_t i = 0; i < r->count; i++)
        owed[i] = fds__carry_owed(r->carry, i);
}

fds_status ledger_run_divide(ledger_run *r, int64_t amount, int64_t *fee, fds__pay_rule *rule,
                             fds_error *err) {
    note_owed(r, r->before);
    *fee = (int64_t)((fds__fixed)amount * r->fee_ppm / 1000000);
    TRY(fds__carry_pay(r->carry, r->values, amount - *fee, r->policy, r->shares, rule, err));
    r->is_touched = true;
    return FDS_OK;
}

void ledger_run_back(ledger_run *r) { fds__carry_set(r->carry, r->before); }

/* ---- keeping and undoing ---- */

void ledger_state_free(ledger_state *s) {
    for (size_t i = 0; i < s->account_count; i++)
        fds__free(s->accounts[i].name);
    for (size_t i = 0; i < s->run_count; i++)
        ledger_run_free(s->runs[i]);
    fds__free(s->accounts);
    fds__free(s->slots);
    fds__free(s->touched);
    fds__free(s->runs);
    *s = (ledger_state){0};
}

void ledger_state_keep(ledger_state *s) {
    for (size_t i = 0; i < s->touched_count; i++) {
        ledger_account *a = &s->accounts[s->touched[i]];
        a->kept = a->balance;
        a->kept_withheld = a->withheld;
        a->is_touched = false;
    }
    s->touched_count = 0;
    for (size_t i = 0; i < s->run_count; i++) {
        if (s->runs[i]->is_touched)
            note_owed(s->runs[i], s->runs[i]->kept);
        s->runs[i]->is_touched = false;
    }
}

void ledger_state_undo(ledger_state *s, size_t accounts, size_t runs) {
    for (size_t i = 0; i < s->touched_count; i++) {
        ledger_account *a = &s->accounts[s->touched[i]];
        a->balance = a->kept;
        a->withheld = a->kept_withheld;
        a->is_touched = false;
    }
    s->touched_count = 0;
    while (s->run_count > runs)
        ledger_run_free(s->runs[--s->run_count]);
    for (size_t i = 0; i < runs; i++) {
        if (s->runs[i]->is_touched)
            fds__carry_set(s->runs[i]->carry, s->runs[i]->kept);
        s->runs[i]->is_touched = false;
    }
    if (s->account_count == accounts)
        return;
    while (s->account_count > accounts)
        fds__free(s->accounts[--s->account_count].name);
    fill_slots(s);
}

/* ---- postings ---- */

/* A provider of a private ledger may owe what noise has taken. */
static bool has_floor(const ledger_state *s, const ledger_account *a) {
    return a->kind == FDS_ACCOUNT_CUSTOMER ||
           (a->kind == FDS_ACCOUNT_PROVIDER && !s->has_debts && !s->privacy.is_on);
}

/* An account may stand in several postings: only what they leave counts. */
static fds_status check_floors(const ledger_state *s, const fds_posting *postings, size_t count,
                               fds_error *err) {
    for (size_t i = 0; i < count; i++) {
        const ledger_account *a = &s->accounts[postings[i].account];
        if (postings[i].units < 0 && a->balance < 0 && has_floor(s, a))
            return fds__fail(err, FDS_ERR_LIMIT, "the balance of %.200s is too low", a->name);
    }
    return FDS_OK;
}

static void touch(ledger_state *s, uint64_t account) {
    if (!s->accounts[account].is_touched)
        s->touched[s->touched_count++] = (size_t)account;
    s->accounts[account].is_touched = true;
}

fds_status ledger_state_post(ledger_state *s, const fds_posting *postings, size_t count,
                             fds_error *err) {
    fds_status status = FDS_OK;
    size_t done = 0;
    for (; done < count && status == FDS_OK; done++) {
        ledger_account *a = &s->accounts[postings[done].account];
        int64_t balance;
        /* the most negative number has no opposite */
        if (__builtin_add_overflow(a->balance, postings[done].units, &balance) ||
            balance == INT64_MIN) {
            status =
                fds__fail(err, FDS_ERR_LIMIT, "the balance of %.200s would be too large", a->name);
            break;
        }
        a->balance = balance;
        touch(s, postings[done].account);
    }
    if (status == FDS_OK)
        status = check_floors(s, postings, count, err);
    if (status != FDS_OK)
        while (done-- > 0)
            s->accounts[postings[done].account].balance -= postings[done].units;
    return status;
}

/* What is withheld is part of a balance, which is checked: it does not overflow before that does. */
void ledger_state_withhold(ledger_state *s, ledger_entry_kind kind, const fds_posting *postings,
                           size_t count) {
    if (!s->privacy.is_on || (kind != LEDGER_PREDICTION && kind != LEDGER_RELEASE))
        return;
    for (size_t i = 0; i < count; i++) {
        ledger_account *a = &s->accounts[postings[i].account];
        if (a->kind == FDS_ACCOUNT_PROVIDER &&
            (kind == LEDGER_PREDICTION || ledger_is_earned(kind, i, count)))
            a->withheld += postings[i].units;
    }
}
