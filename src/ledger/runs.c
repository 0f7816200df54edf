/* SPDX-License-Identifier: Apache-2.0
 * Runs: who is paid for the predictions of a model, and by which rule. Frozen once they are added. */
#include "ledger/ledger.h"

static fds_status check_run(const fds_ledger *l, const fds_ledger_run *run, fds__policy *policy,
                            fds_error *err) {
    TRY(ledger_check_word("the name of a run", run->name, LEDGER_NAME, err));
    if (!run->sha256 || strlen(run->sha256) != 64 || strspn(run->sha256, "0123456789abcdef") != 64)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "the SHA-256 of a run must be 64 hexadecimal digits in lower case (got %.80s)",
            run->sha256 ? run->sha256 : "none");
    if (!run->payees || run->count < 1 || run->count > LEDGER_PAYEES)
        return fds__fail(err, FDS_ERR_USAGE, "a run has 1 to %d payees (got %zu)", LEDGER_PAYEES,
                         run->count);
    if (run->fee_ppm > 1000000)
        return fds__fail(err, FDS_ERR_USAGE,
                         "a fee must be at most 1000000 millionths of the amount (got %u)",
                         run->fee_ppm);
    if (!ledger_policy_find(run->policy ? run->policy : "clip", policy))
        return fds__fail(err, FDS_ERR_USAGE, "a policy must be clip or signed (got %.60s)",
                         run->policy);
    if (*policy == FDS__POLICY_SIGNED && !l->state.has_debts)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "the policy signed lets providers owe money: it needs a ledger with debts");
    return FDS_OK;
}

static fds_status check_payee(const fds_ledger *l, const char *name, fds_error *err) {
    TRY(ledger_check_word("the name of a payee", name, LEDGER_NAME, err));
    uint64_t found = ledger_state_find(&l->state, name);
    if (found != LEDGER_NONE && l->state.accounts[found].kind != FDS_ACCOUNT_PROVIDER)
        return fds__fail(err, FDS_ERR_CONFLICT, "%.200s is the account of a %s, not of a provider",
                         name, ledger_kind_name(l->state.accounts[found].kind));
    return FDS_OK;
}

static fds_status compare(const fds_ledger *l, const fds_ledger_run *run, const ledger_run *old,
                          fds__policy policy, fds_error *err) {
    const char *other = old->count != run->count       ? "another number of payees"
                        : old->policy != policy        ? "another policy"
                        : old->fee_ppm != run->fee_ppm ? "another fee"
                                                       : NULL;
    for (size_t i = 0; !other && i < run->count; i++)
        if (strcmp(run->payees[i], l->state.accounts[old->payees[i]].name) != 0)
            other = "other payees";
    return other ? fds__fail(err, FDS_ERR_CONFLICT, "run %.16s... is there already, with %s",
                             run->sha256, other)
                 : FDS_OK;
}

static char *run_text(const ledger_run *r) {
    json_t *root = json_object(), *payees = json_array();
    bool is_whole = payees != NULL;
    for (size_t i = 0; is_whole && i < r->count; i++)
        is_whole = fds__json_append(payees, json_integer((json_int_t)r->payees[i]));
    is_whole = is_whole && fds__json_put(root, "name", json_string(r->name)) &&
               fds__json_put(root, "sha256", json_string(r->sha256)) &&
               fds__json_put(root, "policy", json_string(ledger_policy_name(r->policy))) &&
               fds__json_put(root, "fee_ppm", json_integer(r->fee_ppm)) &&
               fds__json_share(root, "payees", payees);
    char *text = is_whole ? fds__json_text(root, JSON_COMPACT) : NULL;
    json_decref(payees);
    json_decref(root);
    return text;
}

/* The entry of the run that was added last, and its row. */
static fds_status write_run(fds_ledger *l, fds_error *err) {
    db_query *q;
    size_t number = l->state.run_count - 1;
    const ledger_run *r = l->state.runs[number];
    OWNED char *text = run_text(r);
    if (!text)
        return fds__fail_json(err);
    ledger_entry e = LEDGER_ENTRY(LEDGER_RUN);
    e.run = number;
    e.text = text;
    TRY(ledger_add(l, &e, NULL, 0, err));
    TRY(ledger_query(l, LEDGER_Q_ADD_RUN, &q, err));
    db_bind_int(q, 1, (int64_t)number);
    db_bind_text(q, 2, r->sha256);
    db_bind_int(q, 3, (int64_t)e.index);
    db_bind_blob(q, 4, r->kept, r->count * sizeof *r->kept); /* zeros */
    return db_do(q, err);
}

/* Accounts that are missing are opened. */
static fds_status find_payees(fds_ledger *l, const fds_ledger_run *run, uint64_t *payees,
                              fds_error *err) {
    OWNED bool *has = NULL;
    for (size_t i = 0; i < run->count; i++) {
        TRY(check_payee(l, run->payees[i], err));
        payees[i] = ledger_state_find(&l->state, run->payees[i]);
        if (payees[i] != LEDGER_NONE)
            continue;
        TRY(ledger_open_account(l, FDS_ACCOUNT_PROVIDER, run->payees[i], NULL, err));
        payees[i] = l->state.account_count - 1;
    }
    TRY(NEW(has, l->state.account_count, err));
    for (size_t i = 0; i < run->count; i++) {
        if (has[payees[i]])
            return fds__fail(err, FDS_ERR_USAGE,
                             "the payee %.200s stands twice in a run: add up its values instead",
                             run->payees[i]);
        has[payees[i]] = true;
    }
    return FDS_OK;
}

static fds_status add_run(fds_ledger *l, const fds_ledger_run *run, fds__policy policy,
                          fds_error *err) {
    OWNED uint64_t *payees = NULL;
    TRY(NEW(payees, run->count, err));
    TRY(find_payees(l, run, payees, err));
    TRY(ledger_state_add_run(&l->state, run->name, run->sha256, policy, run->fee_ppm, payees,
                             run->count, err));
    return write_run(l, err);
}

fds_status fds_ledger_add_run(fds_ledger *l, const fds_ledger_run *run, uint64_t *number,
                              fds_error *err) {
    fds__policy policy;
    TRY(ledger_settle(l, err));
    TRY(check_run(l, run, &policy, err));
    if (policy == FDS__POLICY_SIGNED && l->state.privacy.is_on)
        return fds__fail(err, FDS_ERR_USAGE,
                         "%s is private, and takes the policy clip only: under signed one "
                         "prediction can move twenty times its price",
                         l->path);
    for (size_t i = 0; i < run->count; i++)
        TRY(check_payee(l, run->payees[i], err));
    for (size_t i = 0; i < l->state.run_count; i++)
        if (strcmp(l->state.runs[i]->sha256, run->sha256) == 0) {
            TRY(compare(l, run, l->state.runs[i], policy, err));
            *number = i;
            return FDS_OK;
        }
    TRY(ledger_begin(l, err));
    TRY(ledger_end(l, add_run(l, run, policy, err), err));
    *number = l->state.run_count - 1;
    return FDS_OK;
}
