/* SPDX-License-Identifier: Apache-2.0
 *
 * The methods that a bench compares, by name; the settings it begins with, and their mistakes.
 *
 * A name is one of ours ("fds", "afds", "gfds", "gfds+", "bank", "ls"), a control ("same-label",
 * "random"), both of which value the players for each test sample, or a method of
 * fds_baseline_methods: one value a player for all test samples, or with "/sample" behind it values
 * for each. */
#include "eval/case.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#define PER_SAMPLE "/sample"

/* In the order of the rows; names are those of fds_bench_methods without PER_SAMPLE. */
static const struct {
    const char *name, *title;
    report_kind kind; /* of the values for all test samples, where there are such */
} known[] = {
    {"fds", "Fast-DataShapley", REPORT_OURS},
    {"afds", "AFDS", REPORT_OURS},
    {"gfds", "GFDS", REPORT_OURS},
    {"gfds+", "GFDS+", REPORT_OURS},
    {"bank", "Bank of sub-models", REPORT_BEYOND},
    {"ls", "Least squares", REPORT_BEYOND},
    {"loo", "Leave one out", REPORT_PAPER},
    {"tmc", "TMC-Shapley (DataShapley)", REPORT_PAPER},
    {"group-testing", "Group testing", REPORT_PAPER},
    {"cs-shapley", "CS-Shapley", REPORT_PAPER},
    {"freeshap", "FreeShap", REPORT_PAPER},
    {"gshapley", "G-Shapley", REPORT_OTHER},
    {"banzhaf", "Data Banzhaf", REPORT_OTHER},
    {"same-label", "Same label first", REPORT_CONTROL},
    {"random", "Random order", REPORT_CONTROL},
};

const char *const *fds_bench_methods(void) {
    static const char *const names[] = {
        "fds",          "afds",       "gfds",          "gfds+",      "bank",     "ls",
        "loo",          "tmc",        "group-testing", "cs-shapley", "freeshap", "freeshap/sample",
        "knn:5/sample", "same-label", "random",        NULL};
    return names;
}

const char *const *eval_method_names(const fds__bench_params *params) {
    return params->methods ? params->methods : fds_bench_methods();
}

bool eval_has_method(const fds__bench_params *params, const char *name) {
    for (const char *const *at = eval_method_names(params); *at; at++)
        if (strcmp(*at, name) == 0)
            return true;
    return false;
}

/* ---- by name ---- */

static fds_status fail_name(const char *name, fds_error *err) {
    const fds__bench_params usual = {0};
    char list[400] = "";
    for (const char *const *at = fds_bench_methods(); *at; at++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", *list ? ", " : "", *at);
    for (const char *const *at = fds_baseline_methods(); *at; at++)
        if (!eval_has_method(&usual, *at))
            snprintf(list + strlen(list), sizeof list - strlen(list), ", %s", *at);
    return fds__fail(err, FDS_ERR_USAGE,
                     "there is no method \"%.64s\"; there are %s; baselines with or without "
                     "\"" PER_SAMPLE "\"",
                     name, list);
}

/* Of the methods that are many, by a number in the name; of unknown ones what they compute. */
static void set_title(eval_method *m) {
    const char *about = fds_baseline_about(m->base);
    double alpha, beta;
    uint32_t k;
    if (baseline_read_knn(m->base, &k))
        snprintf(m->title, sizeof m->title, "%u nearest neighbour%s%s", k, k == 1 ? "" : "s",
                 strchr(m->base, '@') ? ", of features" : "");
    else if (baseline_read_beta(m->base, &alpha, &beta))
        snprintf(m->title, sizeof m->title, "Beta Shapley (%.32s)", m->base + strlen("beta:"));
    else if (about)
        snprintf(m->title, sizeof m->title, "%c%.46s", toupper((unsigned char)about[0]), about + 1);
}

static void describe(eval_method *m) {
    m->kind = REPORT_OTHER;
    set_title(m);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, m->base) == 0) {
            m->kind = known[i].kind;
            snprintf(m->title, sizeof m->title, "%s", known[i].title);
        }
}

static bool is_fit(const char *name) { return fds__choice_find("fds|afds|gfds|gfds+", name) >= 0; }

/* Whether there is such a baseline, and it can be judged in this way. How many players there are is
 * not known here. */
static fds_status check_baseline(const eval_method *m, fds_error *err) {
    fds_params params;
    fds_error why;
    if (fds__baseline_default(m->base, &params, &why) != FDS_OK) {
        bool is_near = strncmp(m->base, "knn", 3) == 0 || strncmp(m->base, "beta", 4) == 0;
        return is_near ? fds__fail(err, why.status, "%s", why.text) : fail_name(m->name, err);
    }
    if (m->is_per_sample)
        params.scorer = FDS__SCORER_EACH_SAMPLE;
    fds_status status = fds__baseline_check(&params, FDS__MAX_PLAYERS, &why);
    if (status != FDS_OK)
        return fds__fail(err, status, "method \"%s\": %s; name it \"%s\"", m->name, why.text,
                         m->base);
    return FDS_OK;
}

fds_status eval_method_find(const char *name, eval_method *out, fds_error *err) {
    size_t length = strlen(name), ending = strlen(PER_SAMPLE);
    bool is_each = length > ending && strcmp(name + length - ending, PER_SAMPLE) == 0;
    eval_method m = {.is_per_sample = is_each};
    if (length >= sizeof m.name || length - (is_each ? ending : 0) >= sizeof m.base)
        return fail_name(name, err);
    memcpy(m.name, name, length);
    memcpy(m.base, name, length - (is_each ? ending : 0));
    describe(&m);
    if (m.kind == REPORT_OURS || m.kind == REPORT_BEYOND || m.kind == REPORT_CONTROL) {
        if (is_each)
            return fds__fail(err, FDS_ERR_USAGE,
                             "method \"%s\": %s has values for each test sample in any case; name "
                             "it \"%s\"",
                             name, m.base, m.base);
        m.is_per_sample = true;
        m.is_fit = is_fit(m.base);
        m.is_converged = strcmp(m.base, "fds") == 0;
    } else {
        TRY(check_baseline(&m, err));
    }
    if (is_each) {
        m.kind = REPORT_OTHER;
        strncat(m.title, ", per sample", sizeof m.title - strlen(m.title) - 1);
    }
    *out = m;
    return FDS_OK;
}

/* ---- settings ---- */

fds__bench_params fds__bench_params_default(void) {
    static const double shares[] = {0.05, 0.1, 0.15, 0.2, 0.4, 0.7, 1};
    return (fds__bench_params){.shares = shares,
                               .share_count = sizeof shares / sizeof *shares,
                               .network = "lenet5",
                               .permutations = 40};
}

static fds_status check_methods(const fds__bench_params *p, fds_error *err) {
    const char *const *names = eval_method_names(p);
    eval_method unused;
    if (!names[0])
        return fds__fail(err, FDS_ERR_USAGE, "no method is named, and nothing is to be compared");
    for (size_t i = 0; names[i]; i++) {
        TRY(eval_method_find(names[i], &unused, err));
        for (size_t j = 0; j < i; j++)
            if (strcmp(names[i], names[j]) == 0)
                return fds__fail(err, FDS_ERR_USAGE, "method \"%s\" is named twice", names[i]);
    }
    return FDS_OK;
}

static fds_status check_shares(const fds__bench_params *p, fds_error *err) {
    if (!p->shares || !p->share_count)
        return fds__fail(err, FDS_ERR_USAGE, "no shares of the players are given, as 0.05 and 0.1");
    for (size_t i = 0; i < p->share_count; i++) {
        if (!(p->shares[i] > 0 && p->shares[i] <= 1))
            return fds__fail(err, FDS_ERR_USAGE,
                             "share %zu of the players is %g, but must be above 0 and at most 1", i,
                             p->shares[i]);
        if (i && p->shares[i] <= p->shares[i - 1])
            return fds__fail(err, FDS_ERR_USAGE, "shares must ascend, but %g comes after %g",
                             p->shares[i], p->shares[i - 1]);
    }
    return FDS_OK;
}

static fds_status check_explainer(const char *name, fds_error *err) {
    if (!name || fds__choice_find("mlp|cnn|resnet18|resnet50|linear", name) >= 0)
        return FDS_OK;
    return fds__fail(err, FDS_ERR_USAGE,
                     "`explainer` must be mlp, cnn, resnet18, resnet50 or linear (got %.60s)%s",
                     name, strcmp(name, "bank") == 0 ? "; the bank is a method" : "");
}

/* Coalitions come in pairs, one with its complement. */
static fds_status check_coalitions(const char *what, size_t count, fds_error *err) {
    if (count % 2)
        return fds__fail(err, FDS_ERR_USAGE,
                         "%zu %s: a coalition is drawn with its complement, so it must be an even "
                         "number",
                         count, what);
    if (count > FDS__MAX_ROWS - 2)
        return fds__fail(err, FDS_ERR_LIMIT, "%zu %s, at most %zu are possible", count, what,
                         FDS__MAX_ROWS - 2);
    return FDS_OK;
}

fds_status fds__bench_check(const fds__bench_params *p, fds_error *err) {
    TRY(check_methods(p, err));
    TRY(check_shares(p, err));
    TRY(check_explainer(p->explainer, err));
    TRY(check_coalitions("coalitions", p->coalitions, err));
    TRY(check_coalitions("coalitions for the truth", p->truth, err));
    if (!p->network)
        return fds__fail(err, FDS_ERR_USAGE, "no network is given, as \"lenet5\"");
    if (p->permutations < 1 || p->permutations > FDS__MAX_ROWS)
        return fds__fail(err, FDS_ERR_USAGE, "`permutations` must be from 1 to %zu (got %zu)",
                         FDS__MAX_ROWS, p->permutations);
    if (!(p->flipped >= 0 && p->flipped < 1))
        return fds__fail(err, FDS_ERR_USAGE,
                         "wrong labels for a share %g of the players: it must be from 0 to below 1",
                         p->flipped);
    return FDS_OK;
}
