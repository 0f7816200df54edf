/* SPDX-License-Identifier: Apache-2.0
 *
 * A private ledger: what it promises, what it shows to whom, and what it has spent. docs/privacy.md has
 * the guarantee and its proof.
 *
 * Entries of kind "privacy" belong to cash and have keys, so that there is one of each forever:
 *
 *   key                      text
 *   privacy                  {"privacy":"on", mechanism, epsilon, delta, cost_nano, price_limit,
 *                             per_customer, periods, reserve}
 *   privacy spend 2026-11    {"privacy":"spend", period, from, to, mechanism, cost_nano, delta}
 *
 * and those of kind "release", whose ref is the spend:
 *
 *   privacy release 2026-11  {"privacy":"release", period, from, to}
 *
 * The postings of a release are, for all k providers in the order of their accounts: what each has
 * earned from day `from` to day `to`, taken back (k of them); its statement (k); the difference, of the
 * account "reserve". A provider's balance is then what it may see, plus what later days have earned it
 * (withheld). */
#include "ledger/ledger.h"

static const char *const period_names[] = {"month", "day"};

/* ---- reading entries ---- */

static fds_status fail_text(const ledger_entry *e, fds_error *err) {
    return fds__fail(err, FDS_ERR_CORRUPT, "the text of entry %llu, a %s, is malformed",
                     (unsigned long long)e->index, ledger_entry_kinds[e->kind]);
}

static bool get_count(const json_t *root, const char *name, uint64_t *out) {
    const json_t *value = json_object_get(root, name);
    *out = (uint64_t)json_integer_value(value);
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static bool get_day(const json_t *root, const char *name, int64_t *out) {
    const char *text = json_string_value(json_object_get(root, name));
    return text && ledger_day_read(text, out);
}

static bool read_policy(ledger_state *s, const ledger_entry *e, const json_t *root) {
    const char *mechanism = json_string_value(json_object_get(root, "mechanism")),
               *periods = json_string_value(json_object_get(root, "periods"));
    ledger_privacy p = {.is_on = true, .released = e->at_ms / LEDGER_DAY_MS - 1};
    uint64_t limit;
    if (!mechanism || !fds__mechanism_find(mechanism, &p.mechanism) || !periods ||
        !get_count(root, "cost_nano", &p.cost_nano) || !get_count(root, "price_limit", &limit) ||
        !get_count(root, "per_customer", &p.per_customer) ||
        !get_count(root, "reserve", &p.reserve) || p.reserve >= s->account_count ||
        limit > (uint64_t)LEDGER_MOST_AMOUNT)
        return false;
    p.epsilon = json_number_value(json_object_get(root, "epsilon"));
    p.delta = json_number_value(json_object_get(root, "delta"));
    p.price_limit = (int64_t)limit;
    p.is_daily = strcmp(periods, "day") == 0;
    fds__dp_noise noise = ledger_noise(&p);
    if (s->privacy.is_on || s->accounts[p.reserve].kind != FDS_ACCOUNT_PLATFORM ||
        p.reserve <= LEDGER_FEES || fds__dp_check(&noise, NULL) != FDS_OK)
        return false;
    s->privacy = p;
    return true;
}

/* A release covers all days after the last one, up to the end of its period. */
static bool read_days(const ledger_privacy *p, const json_t *root, int64_t *to) {
    int64_t from;
    return get_day(root, "from", &from) && get_day(root, "to", to) && from == p->released + 1 &&
           *to >= from;
}

static bool take(ledger_state *s, const ledger_entry *e, const json_t *root) {
    ledger_privacy *p = &s->privacy;
    const char *what = json_string_value(json_object_get(root, "privacy"));
    int64_t to;
    uint64_t cost;
    if (!what)
        return false;
    if (e->kind == LEDGER_PRIVACY && strcmp(what, "on") == 0)
        return read_policy(s, e, root);
    if (!p->is_on || !read_days(p, root, &to) || (to + 1) * LEDGER_DAY_MS > e->at_ms)
        return false;
    if (e->kind == LEDGER_PRIVACY && strcmp(what, "spend") == 0) {
        bool is_right = !p->is_spent && get_count(root, "cost_nano", &cost) && cost == p->cost_nano;
        p->is_spent = true;
        p->spend = e->index;
        p->spent_to = to;
        return is_right;
    }
    bool is_right = e->kind == LEDGER_RELEASE && strcmp(what, "release") == 0 && p->is_spent &&
                    e->ref == p->spend && to == p->spent_to;
    p->is_spent = false;
    p->released = to;
    return is_right;
}

fds_status ledger_privacy_take(ledger_state *s, const ledger_entry *e, fds_error *err) {
    json_t *root = NULL;
    if (!e->text || fds__json_parse("entry", e->text, strlen(e->text), &root, NULL) != FDS_OK)
        return fail_text(e, err);
    bool is_right = take(s, e, root);
    json_decref(root);
    return is_right ? FDS_OK : fail_text(e, err);
}

/* ---- loading ---- */

fds_status ledger_earned_between(const fds_ledger *l, int64_t from, int64_t to, int64_t *sums,
                                 fds_error *err) {
    db_query *q;
    bool has_row = true;
    memset(sums, 0, l->state.account_count * sizeof *sums);
    TRY(ledger_query(l, LEDGER_Q_EARNED_BETWEEN, &q, err));
    db_bind_int(q, 1, from);
    db_bind_int(q, 2, to);
    fds_status status = FDS_OK;
    while (status == FDS_OK) {
        status = db_next(q, &has_row, err);
        if (status != FDS_OK || !has_row)
            break;
        uint64_t account = (uint64_t)db_int(q, 0);
        if (account >= l->state.account_count)
            status = ledger_fail(l, err, "there are earnings of an account that is missing");
        else
            sums[account] = db_int(q, 1);
    }
    db_end(q);
    return status;
}

/* Numbers of the entries of cash that concern privacy, the newest first: the caller fds__frees them. */
static fds_status list_entries(const fds_ledger *l, uint64_t **out, size_t *count, fds_error *err) {
    db_query *q;
    bool has_row = true;
    size_t capacity = 0;
    void *grown = NULL;
    *count = 0;
    TRY(ledger_query(l, LEDGER_Q_CASH, &q, err));
    db_bind_int(q, 1, INT64_MAX);
    db_bind_int(q, 2, INT64_MAX);
    fds_status status = FDS_OK;
    while (status == FDS_OK) {
        ledger_entry_kind kind;
        status = db_next(q, &has_row, err);
        if (status != FDS_OK || !has_row)
            break;
        if (!ledger_entry_kind_find(db_text(q, 1, NULL), &kind) ||
            (kind != LEDGER_PRIVACY && kind != LEDGER_RELEASE))
            continue;
        status = fds__grow(&grown, &capacity, *count + 1, sizeof **out, err);
        if (status == FDS_OK)
            ((uint64_t *)grown)[(*count)++] = (uint64_t)db_int(q, 0);
    }
    db_end(q);
    *out = grown;
    return status;
}

fds_status ledger_privacy_load(fds_ledger *l, fds_error *err) {
    OWNED uint64_t *numbers = NULL;
    OWNED int64_t *sums = NULL;
    size_t count;
    TRY(list_entries(l, &numbers, &count, err));
    while (count-- > 0) {
        ledger_entry e;
        db_query *row;
        TRY(ledger_entry_get(l, numbers[count], &e, &row, err));
        fds_status status = ledger_privacy_take(&l->state, &e, err);
        db_end(row);
        if (status != FDS_OK)
            return ledger_fail(l, err, "entry %llu: it does not follow from those before it",
                               (unsigned long long)numbers[count]);
    }
    if (!l->state.privacy.is_on)
        return FDS_OK;
    TRY(NEW(sums, l->state.account_count, err));
    TRY(ledger_earned_between(l, l->state.privacy.released + 1, INT64_MAX, sums, err));
    for (size_t i = 0; i < l->state.account_count; i++)
        l->state.accounts[i].withheld = l->state.accounts[i].kept_withheld = sums[i];
    return FDS_OK;
}

fds_status ledger_releases(const fds_ledger *l, ledger_release_function take_one, void *user,
                           fds_error *err) {
    OWNED uint64_t *numbers = NULL;
    size_t count;
    bool is_over = false;
    TRY(list_entries(l, &numbers, &count, err));
    for (size_t i = 0; i < count && !is_over; i++) {
        ledger_entry e;
        db_query *row;
        TRY(ledger_entry_get(l, numbers[i], &e, &row, err));
        fds_status status = e.kind == LEDGER_RELEASE ? take_one(user, &e, &is_over, err) : FDS_OK;
        db_end(row);
        TRY(status);
    }
    return FDS_OK;
}

/* ---- who sees what ---- */

bool ledger_is_hidden(const fds_ledger *l, uint64_t account) {
    return l->state.privacy.is_on && account < l->state.account_count &&
           l->state.accounts[account].kind == FDS_ACCOUNT_PROVIDER;
}

int64_t ledger_visible(const ledger_state *s, uint64_t account) {
    return s->accounts[account].balance - s->accounts[account].withheld;
}

bool ledger_is_earned(ledger_entry_kind kind, size_t i, size_t count) {
    return kind == LEDGER_RELEASE && i < count / 2;
}

int64_t fds_ledger_released(const fds_ledger *l, uint64_t account) {
    return account < l->state.account_count ? ledger_visible(&l->state, account) : 0;
}

/* ---- the promise ---- */

fds__dp_noise ledger_noise(const ledger_privacy *p) {
    uint64_t sensitivity = 0;
    if (__builtin_mul_overflow((uint64_t)p->price_limit << LEDGER_GRID, MAX(p->per_customer, 1),
                               &sensitivity) ||
        p->price_limit > INT64_MAX >> LEDGER_GRID)
        sensitivity = UINT64_MAX; /* which fds__dp_check refuses */
    return (fds__dp_noise){p->mechanism, sensitivity, p->cost_nano};
}

fds_status ledger_period_read(const ledger_privacy *p, const char *period, int64_t *from,
                              int64_t *to, fds_error *err) {
    char first[LEDGER_TIME] = "", next[LEDGER_TIME];
    size_t length = period ? strlen(period) : 0;
    if (length == 10 && p->is_daily && ledger_day_read(period, from)) {
        *to = *from;
        return FDS_OK;
    }
    if (length == 7 && !p->is_daily)
        snprintf(first, sizeof first, "%s-01", period);
    if (!ledger_day_read(first, from))
        return fds__fail(err, FDS_ERR_USAGE,
                         "a period of this ledger is a %s such as %s (got %.60s)",
                         period_names[p->is_daily], p->is_daily ? "2026-11-17" : "2026-11",
                         period ? period : "none");
    /* no month has more than 31 days: the 32nd day from its first is in the next one */
    ledger_day_text(*from + 31, next);
    memcpy(next + 8, "01", 2);
    ledger_day_read(next, to);
    (*to)--;
    return FDS_OK;
}

void fds_ledger_privacy_of(const fds_ledger *l, fds_ledger_privacy *out) {
    const ledger_privacy *p = &l->state.privacy;
    *out = (fds_ledger_privacy){.is_private = p->is_on};
    if (!p->is_on)
        return;
    fds__dp_noise noise = ledger_noise(p);
    out->mechanism = fds__mechanism_name(p->mechanism);
    out->periods = period_names[p->is_daily];
    out->epsilon = p->epsilon;
    out->delta = p->delta;
    out->rho = p->mechanism == FDS__GAUSS ? (double)p->cost_nano / (double)FDS__NANO : 0;
    out->price_limit = p->price_limit;
    out->per_customer = p->per_customer;
    out->deviation = ldexp(fds__dp_deviation(&noise), -LEDGER_GRID);
    out->reserve = p->reserve;
}

/* ---- turning it on ---- */

static fds_status choose(const fds_ledger *l, const fds_params *params, ledger_privacy *out,
                         fds_error *err) {
    ledger_privacy p = {.is_on = true, .epsilon = params->epsilon};
    if (!params->price_limit)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`price_limit` is required: the largest price of a prediction, such as "
                         "0.01");
    TRY(fds_ledger_units(l, params->price_limit, &p.price_limit, err));
    if (p.price_limit < 1 || p.price_limit > LEDGER_MOST_AMOUNT)
        return fds__fail(err, FDS_ERR_USAGE, "`price_limit` must be above 0 and at most %lld units",
                         (long long)LEDGER_MOST_AMOUNT);
    p.mechanism = (fds__mechanism)params->mechanism;
    p.per_customer = params->per_customer;
    p.is_daily = params->periods == 1;
    p.delta = p.mechanism == FDS__GAUSS ? params->delta : 0;
    p.cost_nano = p.mechanism == FDS__GAUSS ? fds__zcdp_rho_nano(p.epsilon, p.delta)
                                            : (uint64_t)llround(p.epsilon * (double)FDS__NANO);
    if (p.cost_nano == 0)
        return fds__fail(err, FDS_ERR_USAGE, "`epsilon` is too small for `delta`");
    fds__dp_noise noise = ledger_noise(&p);
    *out = p;
    return fds__dp_draw(&noise, l->bits, NULL, 0, err); /* whether it can be drawn at all */
}

static fds_status check_new(const fds_ledger *l, fds_error *err) {
    db_query *q;
    bool has_row = true, is_found = false;
    if (l->state.privacy.is_on)
        return fds__fail(err, FDS_ERR_CONFLICT,
                         "%s is private already: what it promises cannot be changed", l->path);
    for (size_t i = 0; i < l->state.run_count; i++)
        if (l->state.runs[i]->policy == FDS__POLICY_SIGNED)
            return fds__fail(
                err, FDS_ERR_USAGE,
                "a run of %s pays by the policy signed, under which one prediction can "
                "move twenty times its price: a private ledger takes clip only",
                l->path);
    TRY(ledger_query(l, LEDGER_Q_BACK, &q, err));
    db_bind_int(q, 1, INT64_MAX);
    db_bind_int(q, 2, INT64_MAX);
    fds_status status = FDS_OK;
    while (status == FDS_OK && !is_found) {
        status = db_next(q, &has_row, err);
        if (status != FDS_OK || !has_row)
            break;
        const char *kind = db_text(q, 1, NULL);
        is_found = kind && strcmp(kind, ledger_entry_kinds[LEDGER_PREDICTION]) == 0;
    }
    db_end(q);
    if (status == FDS_OK && is_found)
        status = fds__fail(err, FDS_ERR_CONFLICT,
                           "%s has predictions already, which providers may have seen: make a new "
                           "ledger private before its first prediction",
                           l->path);
    return status;
}

static char *policy_text(const ledger_privacy *p) {
    json_t *root =
        json_pack("{s:s, s:s, s:f, s:f, s:I, s:I, s:I, s:s, s:I}", "privacy", "on", "mechanism",
                  fds__mechanism_name(p->mechanism), "epsilon", p->epsilon, "delta", p->delta,
                  "cost_nano", (json_int_t)p->cost_nano, "price_limit", (json_int_t)p->price_limit,
                  "per_customer", (json_int_t)p->per_customer, "periods", period_names[p->is_daily],
                  "reserve", (json_int_t)p->reserve);
    char *text = root ? fds__json_text(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return text;
}

static fds_status add_policy(fds_ledger *l, ledger_privacy *p, uint64_t *index, fds_error *err) {
    uint8_t fingerprint[32];
    if (ledger_state_find(&l->state, "reserve") != LEDGER_NONE)
        return fds__fail(err, FDS_ERR_CONFLICT,
                         "%s has an account \"reserve\", which a private ledger needs for itself",
                         l->path);
    TRY(ledger_open_account(l, FDS_ACCOUNT_PLATFORM, "reserve", NULL, err));
    p->reserve = l->state.account_count - 1;
    OWNED char *text = policy_text(p);
    if (!text)
        return fds__fail_json(err);
    fds__sha256(&(fds__bytes){text, strlen(text)}, 1, fingerprint);
    ledger_entry e = LEDGER_ENTRY(LEDGER_PRIVACY);
    e.customer = LEDGER_CASH; /* whose key it is */
    e.text = text;
    e.key = LEDGER_OWN_KEY;
    e.fingerprint = (fds__bytes){fingerprint, sizeof fingerprint};
    TRY(ledger_add(l, &e, NULL, 0, err));
    *index = e.index;
    return ledger_privacy_take(&l->state, &e, err);
}

fds_status fds_ledger_set_private(fds_ledger *l, const fds_params *params, uint64_t *index,
                                  fds_error *err) {
    ledger_privacy p = {0};
    uint64_t number = LEDGER_NONE;
    if (!params || params->job != FDS__JOB_PRIVACY)
        return fds__fail(err, FDS_ERR_USAGE,
                         "a private ledger needs parameters of the job \"privacy\"");
    TRY(ledger_settle(l, err));
    TRY(check_new(l, err));
    TRY(choose(l, params, &p, err));
    TRY(ledger_begin(l, err));
    TRY(ledger_end(l, add_policy(l, &p, &number, err), err));
    if (index)
        *index = number;
    return FDS_OK;
}

/* ---- what was spent ---- */

typedef struct {
    json_t *list;
    uint64_t count, cost_nano; /* releases, and what they cost together */
} spends;

static fds_status add_spend(const fds_ledger *l, const ledger_entry *e, spends *s, fds_error *err) {
    json_t *text = NULL;
    uint64_t cost;
    TRY(fds__json_parse("entry", e->text, strlen(e->text), &text, err));
    const char *what = json_string_value(json_object_get(text, "privacy"));
    fds_status status = FDS_OK;
    if (what && strcmp(what, "spend") == 0 && get_count(text, "cost_nano", &cost)) {
        const ledger_privacy *p = &l->state.privacy;
        json_t *row = json_object();
        bool ok =
            fds__json_share(row, "period", json_object_get(text, "period")) &&
            fds__json_share(row, "from", json_object_get(text, "from")) &&
            fds__json_share(row, "to", json_object_get(text, "to")) &&
            fds__json_put(row, p->mechanism == FDS__LAPLACE ? "epsilon" : "rho",
                          json_real((double)cost / (double)FDS__NANO)) &&
            fds__json_put(row, "entry", json_integer((json_int_t)e->index)) &&
            fds__json_put(row, "released", json_boolean(!p->is_spent || p->spend != e->index));
        if (!fds__json_append(s->list, fds__json_keep_if(row, ok)))
            status = fds__fail_json(err);
        s->count++;
        if (status == FDS_OK)
            status = fds__cost_add(&s->cost_nano, cost, err);
    }
    json_decref(text);
    return status;
}

static fds_status add_spends(const fds_ledger *l, spends *s, fds_error *err) {
    OWNED uint64_t *numbers = NULL;
    size_t count;
    TRY(list_entries(l, &numbers, &count, err));
    while (count-- > 0) {
        ledger_entry e;
        db_query *row;
        TRY(ledger_entry_get(l, numbers[count], &e, &row, err));
        fds_status status = e.kind == LEDGER_PRIVACY ? add_spend(l, &e, s, err) : FDS_OK;
        db_end(row);
        TRY(status);
    }
    return FDS_OK;
}

/* {"epsilon", "delta", "epsilon_at_delta", "rho"} of this many releases that cost this much. */
static json_t *cost_json(const ledger_privacy *p, uint64_t count, uint64_t cost_nano,
                         double delta) {
    double cost = (double)cost_nano / (double)FDS__NANO, each = count ? cost / (double)count : 0;
    bool is_pure = p->mechanism == FDS__LAPLACE;
    json_t *root = json_object();
    bool ok =
        fds__json_put(root, "delta", json_real(delta)) &&
        fds__json_put(root, "epsilon_at_delta",
                      json_real(is_pure ? fds__epsilon_of(cost, cost * each, 0, delta)
                                        : fds__epsilon_of(0, 0, cost, delta))) &&
        fds__json_put(root, "rho", json_real(is_pure ? fds__pure_rho(1) * cost * each : cost));
    if (is_pure)
        ok = ok && fds__json_put(root, "epsilon", json_real(cost));
    return fds__json_keep_if(root, ok);
}

/* What a period costs k predictions of one customer, all of which count: Laplace noise k times as much
 * epsilon, Gaussian noise k^2 times as much rho. */
static json_t *several_json(const ledger_privacy *p, double delta) {
    static const uint64_t counts[] = {2, 5, 10};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        uint64_t k = counts[i];
        json_t *one =
            cost_json(p, 1, p->cost_nano * (p->mechanism == FDS__GAUSS ? k * k : k), delta);
        bool ok = fds__json_put(one, "predictions", json_integer((json_int_t)k));
        if (!fds__json_append(list, fds__json_keep_if(one, ok))) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

fds_status fds_ledger_budget(const fds_ledger *l, double delta, char **json, fds_error *err) {
    const ledger_privacy *p = &l->state.privacy;
    spends s = {.list = json_array()};
    if (!(delta > 0 && delta < 1)) {
        json_decref(s.list);
        return fds__fail(err, FDS_ERR_USAGE, "`delta` must be above 0 and below 1");
    }
    fds_status status = s.list ? add_spends(l, &s, err) : fds__fail_json(err);
    json_t *root = json_object();
    bool ok = status == FDS_OK && fds__json_put(root, "private", json_boolean(p->is_on)) &&
              fds__json_share(root, "releases", s.list);
    if (p->is_on)
        ok = ok &&
             fds__json_put(root, "mechanism", json_string(fds__mechanism_name(p->mechanism))) &&
             fds__json_put(root, "price_limit", json_integer(p->price_limit)) &&
             fds__json_put(root, "per_customer", json_integer((json_int_t)p->per_customer)) &&
             /* a prediction is in one release, a customer in all of them */
             fds__json_put(root, "each", cost_json(p, 1, p->cost_nano, delta)) &&
             /* twice as far in L1, by the root of 2 in L2 */
             fds__json_put(root, "replaced", cost_json(p, 1, 2 * p->cost_nano, delta)) &&
             (p->per_customer || fds__json_put(root, "several", several_json(p, delta))) &&
             fds__json_put(root, "together", cost_json(p, s.count, s.cost_nano, delta));
    char *text = ok ? fds__json_text(root, JSON_COMPACT) : NULL;
    json_decref(s.list);
    json_decref(root);
    if (status != FDS_OK)
        return status;
    *json = text;
    return text ? FDS_OK : fds__fail_json(err);
}
