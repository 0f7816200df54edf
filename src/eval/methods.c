/* SPDX-License-Identifier: Apache-2.0
 *
 * The methods that a benchmark compares, by name, and the lists that its parameters give as texts.
 *
 * A name is one of ours ("fds", "afds", "gfds", "gfds+", "bank", "ls") or a control ("same-label",
 * "random"), all of which value the players for each test sample; or one of fds_baseline_methods,
 * with one value per player for all test samples, or, followed by "/sample", values for each. */
#include "eval/eval.h"

#include <ctype.h>

#define PER_SAMPLE "/sample"

/* In the order of the rows; names are those of fds_bench_methods without PER_SAMPLE. */
static const struct {
    const char *name, *title;
    report_kind kind; /* of baselines: with one value per player */
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

/* ---- by name ---- */

static fds_status fail_name(const char *name, fds_error *err) {
    char list[400] = "";
    for (const char *const *at = fds_bench_methods(); *at; at++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", *list ? ", " : "", *at);
    for (const char *const *at = fds_baseline_methods(); *at; at++) {
        const char *const *usual = fds_bench_methods();
        while (*usual && strcmp(*usual, *at) != 0)
            usual++;
        if (!*usual)
            snprintf(list + strlen(list), sizeof list - strlen(list), ", %s", *at);
    }
    return fds__fail(err, FDS_ERR_USAGE,
                     "there is no method \"%.64s\"; there are %s; baselines with or without "
                     "\"" PER_SAMPLE "\"",
                     name, list);
}

/* Kind and title. A method that is not in the table has its title from the numbers in its name, or
 * from its help. */
static void describe(eval_method *m) {
    const char *about = fds_baseline_about(m->base);
    double alpha, beta;
    uint32_t k;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, m->base) == 0) {
            m->kind = known[i].kind;
            snprintf(m->title, sizeof m->title, "%s", known[i].title);
            return;
        }
    m->kind = REPORT_OTHER;
    if (baseline_read_knn(m->base, &k))
        snprintf(m->title, sizeof m->title, "%u nearest neighbour%s%s", k, k == 1 ? "" : "s",
                 strchr(m->base, '@') ? ", of features" : "");
    else if (fds__tknn_read(m->base, &alpha))
        snprintf(m->title, sizeof m->title, "Neighbours within a distance");
    else if (baseline_read_beta(m->base, &alpha, &beta))
        snprintf(m->title, sizeof m->title, "Beta Shapley (%.32s)", m->base + strlen("beta:"));
    else if (about)
        snprintf(m->title, sizeof m->title, "%c%.46s", toupper((unsigned char)about[0]), about + 1);
}

/* Whether there is such a baseline, and it has values of this kind. The number of players is not
 * known yet. */
static fds_status check_baseline(const eval_method *m, fds_error *err) {
    fds_params params;
    fds_error why;
    if (fds__baseline_default(m->base, &params, &why) != FDS_OK) {
        bool is_near = strncmp(m->base, "knn", 3) == 0 || strncmp(m->base, "tknn", 4) == 0 ||
                       strncmp(m->base, "beta", 4) == 0;
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
                             "method \"%s\": %s always has values for each test sample; name it "
                             "\"%s\"",
                             name, m.base, m.base);
        m.is_per_sample = true;
        m.is_fit = m.kind == REPORT_OURS;
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

/* ---- lists ---- */

bool eval_has_method(const eval_lists *lists, const char *name) {
    for (size_t i = 0; i < lists->method_count; i++)
        if (strcmp(lists->methods[i].name, name) == 0)
            return true;
    return false;
}

static fds_status add_method(eval_lists *lists, const char *name, fds_error *err) {
    if (lists->method_count == EVAL_MOST)
        return fds__fail(err, FDS_ERR_USAGE, "`methods` must be at most %d", EVAL_MOST);
    if (eval_has_method(lists, name))
        return fds__fail(err, FDS_ERR_USAGE, "method \"%s\" is named twice", name);
    TRY(eval_method_find(name, &lists->methods[lists->method_count], err));
    lists->method_count++;
    return FDS_OK;
}

/* "afds,beta:4,1 random": names, separated by commas or blanks; a comma before a digit belongs to
 * the name. */
static fds_status read_methods(const char *text, eval_lists *lists, fds_error *err) {
    for (const char *at = text; *(at += strspn(at, ", "));) {
        size_t length = strcspn(at, ", ");
        while (at[length] == ',' && isdigit((unsigned char)at[length + 1]))
            length += 1 + strcspn(at + length + 1, ", ");
        char name[80];
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        TRY(add_method(lists, name, err));
        at += length;
    }
    if (!lists->method_count)
        return fds__fail(err, FDS_ERR_USAGE, "`methods` names none (got \"%.60s\")", text);
    return FDS_OK;
}

/* "5,10,20": per cent. */
static fds_status read_shares(const char *text, eval_lists *lists, fds_error *err) {
    double last = 0;
    for (const char *at = text; *at || !lists->share_count;) {
        char *end;
        double share = fds__read_double(at, &end);
        if (end == at || (*end && *end != ',') || !(share > last && share <= 100) ||
            lists->share_count == EVAL_MOST)
            return fds__fail(err, FDS_ERR_USAGE,
                             "`remove` must be up to %d rising numbers above 0, at most 100, "
                             "separated by commas, for example 5,10,20 (got %.60s)",
                             EVAL_MOST, text);
        lists->shares[lists->share_count++] = share / 100;
        last = share;
        at = *end ? end + 1 : end;
    }
    return FDS_OK;
}

fds_status eval_lists_read(const fds_params *params, eval_lists *out, fds_error *err) {
    *out = (eval_lists){.method_count = 0};
    if (params->methods)
        TRY(read_methods(params->methods, out, err));
    for (const char *const *name = fds_bench_methods(); !params->methods && *name; name++)
        TRY(add_method(out, *name, err));
    for (const char *at = params->values; at && *at; at += strspn(at, "\n")) {
        size_t length = strcspn(at, "\n");
        TRY(eval_outside_add(out, at, length, err));
        at += length;
    }
    return read_shares(params->remove, out, err);
}
