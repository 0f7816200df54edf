/* SPDX-License-Identifier: Apache-2.0
 * What the checks say: JSON for programs, and a sentence for people with the answer first. */
#include "audit/audit.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_EVIDENCE = 1000 };

typedef struct {
    const char *verdict;
    fds__text answer;
    double statistic;
    json_t *evidence; /* a list */
    json_t *correction;
} finding;

static json_t *whole(uint64_t number) {
    return number == LEDGER_NONE ? json_null() : json_integer((json_int_t)number);
}

#define SAY(f, ...) fds__text_print(&(f)->answer, __VA_ARGS__)
/* A text, a number, a text; numbers as in every locale. */
static void say_number(finding *f, const char *before, int decimals, double number,
                       const char *after) {
    SAY(f, "%s", before);
    fds__text_fixed(&f->answer, decimals, number);
    SAY(f, "%s", after);
}

static void judge(finding *f, const audit_check *c) {
    f->verdict = c->alarm_at != LEDGER_NONE ? "alarm" : c->predictions ? "ok" : "unknown";
}

static bool is_alarm(const finding *f) { return strcmp(f->verdict, "alarm") == 0; }

/* ---- ledger ---- */

static bool find_ledger(const fds_auditor *a, finding *f) {
    f->verdict = !a->ledger_fault ? "unknown" : *a->ledger_fault ? "alarm" : "ok";
    if (!a->ledger_fault)
        SAY(f, "The ledger was not verified.");
    else if (*a->ledger_fault)
        SAY(f, "The ledger is not right: %s", a->ledger_fault);
    else
        SAY(f, "The ledger is right: %llu entries, and the audited predictions of %llu days.",
            (unsigned long long)a->checks[AUDIT_LEDGER].predictions, (unsigned long long)a->days);
    return !is_alarm(f) ||
           fds__json_append(f->evidence, json_pack("{s:s}", "fault", a->ledger_fault));
}

/* ---- truth ---- */

static bool find_truth(const fds_auditor *a, finding *f) {
    const audit_check *c = &a->checks[AUDIT_TRUTH];
    double mean = a->truth_count ? a->misallocated / (double)a->truth_count : (double)NAN,
           level = NAN;
    if (c->predictions) { /* of the same predictions */
        mean = a->compared / (double)c->predictions;
        level = a->levels / (double)c->predictions;
    }
    judge(f, c);
    f->statistic = mean;
    if (!a->truth_count)
        SAY(f, "Unknown: no prediction was audited.");
    else if (!c->predictions)
        say_number(
            f, "Unknown: the explainer misallocates ", 1, 100 * mean,
            a->validation_count
                ? " of each 100 paid, but by other runs than those that were named."
                : " of each 100 paid, but the level at fit time is not known (name the run).");
    else {
        say_number(f,
                   is_alarm(f) ? "The explainer misallocates more than at fit time: "
                               : "The explainer misallocates no more than at fit time: ",
                   1, 100 * mean, " of each 100 paid");
        say_number(f, "; then it was ", 1, 100 * level, ".");
    }
    json_t *e = json_pack("{s:o, s:o, s:o, s:o}", "misallocated", fds__json_real(mean), "at_least",
                          fds__json_real(MAX(audit_bound_low(&a->truth_low, a->alpha), 0)), "level",
                          fds__json_real(level), "tolerance", fds__json_real(a->tolerance));
    return fds__json_append(f->evidence, e);
}

/* ---- providers and groups ---- */

static int by_evidence(const void *left, const void *right) {
    const audit_party *const *a = left, *const *b = right;
    return ((*a)->best < (*b)->best) - ((*a)->best > (*b)->best);
}

static json_t *party_json(const audit_party *p) {
    double level = 1 / p->needed / 2, count = (double)p->predictions;
    double low = audit_bound_low(&p->low, level), high = -audit_bound_low(&p->high, level);
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o}", "name", p->name, "paid",
                     fds__json_real(p->paid), "owed", fds__json_real(p->owed), "ratio",
                     fds__json_real(p->owed > 0 ? p->paid / p->owed : (double)NAN), "lacks_low",
                     fds__json_real(low * count), "lacks_high", fds__json_real(high * count), "e",
                     fds__json_real(p->e), "needed", fds__json_real(p->needed), "predictions",
                     (json_int_t)p->predictions, "alarm_at", whole(p->alarm_at));
}

static bool list_parties(const audit_party *list, size_t count, finding *f,
                         const audit_party **worst) {
    const audit_party **order = fds__alloc_zero(count + 1, sizeof *order);
    bool is_whole = order != NULL;
    for (size_t i = 0; is_whole && i < count; i++)
        order[i] = &list[i];
    if (is_whole)
        qsort(order, count, sizeof *order, by_evidence);
    for (size_t i = 0; is_whole && i < count && i < MOST_EVIDENCE; i++)
        is_whole = fds__json_append(f->evidence, party_json(order[i]));
    *worst = is_whole && count ? order[0] : NULL;
    fds__free(order);
    return is_whole;
}

/* Names in the file of groups that no run pays. */
static void say_strangers(const fds_auditor *a, finding *f) {
    size_t count = 0;
    const char *name, *first = NULL;
    json_t *group;
    json_object_foreach(a->group_of, name, group) {
        bool is_strange = !json_object_get(a->provider_of, name);
        first = is_strange && !first ? name : first;
        count += is_strange;
    }
    if (count)
        SAY(f, " %zu of the names in the file of groups %s no provider, first of all %s.", count,
            count == 1 ? "is" : "are", first);
}

static bool find_parties(const fds_auditor *a, audit_kind kind, finding *f) {
    bool is_group = kind == AUDIT_GROUPS, is_known = a->checks[kind].predictions > 0;
    const audit_party *list = is_group ? a->groups : a->providers, *worst;
    size_t count = is_group ? a->group_count : a->provider_count, accused = 0;
    const char *word = is_group ? "group" : "provider";
    judge(f, &a->checks[kind]);
    if (!list_parties(list, count, f, &worst))
        return false;
    for (size_t i = 0; i < count; i++)
        accused += list[i].alarm_at != LEDGER_NONE;
    if (worst && worst->predictions)
        f->statistic = worst->owed > 0 ? worst->paid / worst->owed : (double)NAN;
    if (is_group && !count)
        SAY(f, "Unknown: no groups were named.");
    else if (!is_known)
        SAY(f, a->audited ? "Unknown: none of its names is a provider of an audited prediction."
                          : "Unknown: no prediction was audited.");
    else if (is_alarm(f)) {
        SAY(f, "%zu of %zu %ss %s paid wrongly, first of all %s: it got", accused, count, word,
            accused == 1 ? "is" : "are", worst->name);
        say_number(f, " ", 1, 100 * f->statistic, " of each 100 that it was owed.");
    } else
        SAY(f, "No %s is systematically paid too little or too much: %zu %ss, %llu predictions.",
            word, count, word, (unsigned long long)a->checks[kind].predictions);
    if (is_group && is_known)
        say_strangers(a, f);
    if (is_alarm(f) && a->is_private)
        SAY(f, " A private ledger takes no correction of single predictions.");
    f->correction = audit_correction(a, kind);
    return f->correction != NULL;
}

/* ---- coverage, drift ---- */

static bool find_coverage(const fds_auditor *a, finding *f) {
    const audit_check *c = &a->checks[AUDIT_COVERAGE];
    double inside = c->predictions ? a->inside / (double)c->predictions : (double)NAN;
    judge(f, c);
    f->statistic = inside;
    if (!c->predictions)
        SAY(f, "Unknown: no audited prediction has standard errors.");
    else
        say_number(f,
                   is_alarm(f) ? "The stated 95 % intervals are too narrow: "
                               : "The stated 95 % intervals hold: ",
                   1, 100 * inside, " % of the values are inside.");
    return fds__json_append(f->evidence,
                            json_pack("{s:o, s:f, s:f}", "inside", fds__json_real(inside), "stated",
                                      0.95, "least", 0.9));
}

static bool find_drift(const fds_auditor *a, finding *f) {
    const audit_check *c = &a->checks[AUDIT_DRIFT];
    double rank = c->predictions ? a->ranks / (double)c->predictions : (double)NAN;
    judge(f, c);
    f->statistic = rank;
    if (!c->predictions)
        SAY(f, "Unknown: no scores of calibrated inputs (name the run), or no prediction has one.");
    else
        say_number(
            f,
            is_alarm(f)
                ? "Inputs are unlike those that the explainer was calibrated on: the mean rank is "
                : "Inputs are like those that the explainer was calibrated on: the mean rank is ",
            2, rank, ".");
    return fds__json_append(f->evidence, json_pack("{s:o}", "mean_rank", fds__json_real(rank)));
}

/* ---- self ---- */

static int by_best(const void *left, const void *right) {
    const audit_customer *const *a = left, *const *b = right;
    return ((*a)->best < (*b)->best) - ((*a)->best > (*b)->best);
}

static json_t *customer_json(const fds_auditor *a, const audit_customer *c) {
    const audit_pair *pair = &c->pairs[c->provider];
    double count = (double)c->tested;
    return json_pack("{s:o, s:s, s:I, s:o, s:o, s:o, s:o}", "customer",
                     c->name ? json_string(c->name) : json_integer((json_int_t)c->account),
                     "provider", a->providers[c->provider].name, "predictions",
                     (json_int_t)c->tested, "share", fds__json_real(pair->shares / count), "usual",
                     fds__json_real(pair->usual / count), "evidence", fds__json_real(c->best),
                     "alarm_at", whole(c->alarm_at));
}

static bool find_self(const fds_auditor *a, finding *f) {
    const audit_customer **order = fds__alloc_zero(a->customer_count + 1, sizeof *order);
    size_t accused = 0, tested = 0;
    bool is_whole = order != NULL;
    judge(f, &a->checks[AUDIT_SELF]);
    for (size_t i = 0; is_whole && i < a->customer_count; i++) {
        if (a->customers[i].tested)
            order[tested++] = &a->customers[i];
        accused += a->customers[i].alarm_at != LEDGER_NONE;
    }
    if (is_whole)
        qsort(order, tested, sizeof *order, by_best);
    for (size_t i = 0; is_whole && i < MIN(tested, (size_t)20); i++)
        is_whole = fds__json_append(f->evidence, customer_json(a, order[i]));
    const audit_customer *worst = is_whole && tested ? order[0] : NULL;
    if (!worst)
        SAY(f, "Unknown: no customer has enough predictions.");
    else if (is_alarm(f)) {
        const audit_pair *pair = &worst->pairs[worst->provider];
        f->statistic = pair->usual > 0 ? pair->shares / pair->usual : (double)NAN;
        SAY(f,
            "%zu of %zu customers may feed a provider of their own, first of all %s: its "
            "predictions "
            "pay %s",
            accused, tested, worst->name ? worst->name : "one without a name",
            a->providers[worst->provider].name);
        say_number(f, " ", 1, f->statistic, " times what those of the same label usually do.");
    } else
        SAY(f, "No customer's predictions favour a provider: of %zu customers, %llu predictions.",
            tested, (unsigned long long)a->checks[AUDIT_SELF].predictions);
    fds__free(order);
    return is_whole;
}

/* ---- all of them ---- */

static json_t *series_json(const audit_series *s) {
    json_t *at = json_array(), *evidence = json_array();
    bool is_whole = at && evidence;
    for (size_t i = 0; is_whole && i < s->count; i++)
        is_whole = fds__json_append(at, whole(s->points[i].entry)) &&
                   fds__json_append(evidence, fds__json_real(s->points[i].e));
    json_t *root = is_whole ? json_pack("{s:O, s:O}", "entry", at, "evidence", evidence) : NULL;
    json_decref(at);
    json_decref(evidence);
    return root;
}

static json_t *check_json(const fds_auditor *a, audit_kind kind) {
    const audit_check *c = &a->checks[kind];
    finding f = {.statistic = NAN, .evidence = json_array()};
    bool is_whole = f.evidence != NULL;
    switch (kind) {
    case AUDIT_LEDGER:
        is_whole = is_whole && find_ledger(a, &f);
        break;
    case AUDIT_TRUTH:
        is_whole = is_whole && find_truth(a, &f);
        break;
    case AUDIT_COVERAGE:
        is_whole = is_whole && find_coverage(a, &f);
        break;
    case AUDIT_DRIFT:
        is_whole = is_whole && find_drift(a, &f);
        break;
    case AUDIT_SELF:
        is_whole = is_whole && find_self(a, &f);
        break;
    default:
        is_whole = is_whole && find_parties(a, kind, &f);
    }
    bool has_e = kind != AUDIT_LEDGER && c->predictions;
    fds__text_add(&f.answer, "", 1);
    is_whole = is_whole && !f.answer.is_failed;
    if (is_whole)
        fds__text_sanitize(f.answer.data);
    json_t *root =
        is_whole
            ? json_pack("{s:s, s:s, s:s, s:f, s:o, s:o, s:o, s:o, s:I, s:o, s:O, s:O, s:o}",
                        "check", audit_names[kind], "verdict", f.verdict, "answer", f.answer.data,
                        "alpha", a->alpha, "statistic", fds__json_real(f.statistic), "e",
                        fds__json_real(has_e ? c->e : (double)NAN), "needed",
                        fds__json_real(has_e ? c->needed : (double)NAN), "most_evidence",
                        fds__json_real(has_e ? c->best : (double)NAN), "predictions",
                        (json_int_t)c->predictions, "alarm_at",
                        kind == AUDIT_LEDGER ? json_null() : whole(c->alarm_at), "evidence",
                        f.evidence, "correction", f.correction ? f.correction : json_null(),
                        "series", series_json(&c->series))
            : NULL;
    json_decref(f.evidence);
    json_decref(f.correction);
    fds__free(f.answer.data);
    return root;
}

fds_status fds_auditor_report(const fds_auditor *a, char **json, fds_error *err) {
    const char *verdict = "unknown";
    json_t *list = json_array();
    bool is_whole = list != NULL;
    for (int i = 0; is_whole && i < AUDIT_KINDS; i++) {
        if (!a->checks[i].is_wanted)
            continue;
        json_t *check = check_json(a, (audit_kind)i);
        const char *found = json_string_value(json_object_get(check, "verdict"));
        if (found && strcmp(found, "unknown") != 0 && strcmp(verdict, "alarm") != 0)
            verdict = strcmp(found, "alarm") == 0 ? "alarm" : "ok";
        is_whole = fds__json_append(list, check);
    }
    json_t *root =
        is_whole ? json_pack("{s:s, s:s, s:f, s:s, s:s, s:i, s:I, s:I, s:I, s:O}", "format",
                             "fds-audit 1", "verdict", verdict, "alpha", a->alpha, "ledger",
                             a->name, "currency", a->currency, "decimals", a->decimals, "entries",
                             (json_int_t)MAX(a->next_entry, a->checks[AUDIT_LEDGER].predictions),
                             "predictions", (json_int_t)a->predictions, "audited",
                             (json_int_t)a->audited, "checks", list)
                 : NULL;
    json_decref(list);
    *json = root ? fds__json_text(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return *json ? FDS_OK : fds__fail_json(err);
}
