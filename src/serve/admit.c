/* SPDX-License-Identifier: Apache-2.0
 * Which runs may serve: those whose explainer was validated at the end of its fit, and is good enough by
 * the operator's standards. Money should not be paid by a poor explainer unless somebody answers for it:
 * a run that is forced is an entry "audit" of the ledger,
 *
 *     {"audit": "force", "run": SHA256, "by": USER, "reason": TEXT, "fails": [TEXT, ...]}
 *
 * written before the run answers for the first time, and once for the same run, user, reason and failures.
 * USER is the name of the system's user who runs the server. */
#include "serve/serve.h"

#include <math.h>
#include <pwd.h>
#include <stdarg.h>
#include <unistd.h>

enum { FAILS = 3, FAIL = 120, USER = 64 };

/* What is wrong with a run. */
typedef struct {
    size_t count;
    char texts[FAILS][FAIL];
} failures;

/* ---- names ---- */

/* The next line of a list, without its end; NULL: there is none. */
static const char *next_line(const char *at, size_t *size) {
    if (!at || !*at)
        return NULL;
    *size = strcspn(at, "\n");
    return at;
}

static bool is_forced(const serve_standards *standards, const char *name) {
    size_t size;
    for (const char *at = standards->forced; (at = next_line(at, &size)) != NULL;
         at += size + (at[size] == '\n'))
        if (strlen(name) == size && memcmp(name, at, size) == 0)
            return true;
    return false;
}

/* A forced name is a model, and there is a reason. */
static fds_status check(const serve_standards *standards, const serve_models *models,
                        fds_error *err) {
    size_t size;
    if (standards->forced && (!standards->reason || !*standards->reason))
        return fds__fail(err, FDS_ERR_USAGE, "`force_run` needs `force_reason`: why is it served?");
    if (standards->reason && !standards->forced)
        return fds__fail(err, FDS_ERR_USAGE, "`force_reason` needs `force_run`");
    if (standards->reason)
        TRY(serve_check_word("`force_reason`", standards->reason, SERVE_BODY, err));
    for (const char *at = standards->forced; (at = next_line(at, &size)) != NULL;
         at += size + (at[size] == '\n')) {
        const oip_model *as;
        char name[SERVE_NAME + 1];
        snprintf(name, sizeof name, "%.*s", (int)MIN(size, (size_t)SERVE_NAME), at);
        const serve_model *m = serve_models_find(models, name, &as);
        if (!m || strlen(m->name) != size)
            return fds__fail(err, FDS_ERR_USAGE, "`force_run` %s: no `model` has that name", name);
    }
    return FDS_OK;
}

/* ---- figures ---- */

__attribute__((format(printf, 2, 3))) static void add(failures *f, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(f->texts[f->count++], FAIL, format, args);
    va_end(args);
}

/* What could not be measured is poor, except for intervals of sub-models, which have nothing to be
 * compared with. */
static fds_status judge(const serve_standards *s, const serve_model *m, failures *f,
                        fds_error *err) {
    fds__validation v;
    *f = (failures){0};
    TRY(fds__run_validation(m->run, &v, err));
    bool checks_agreement = s->min_agreement > 0, checks_money = s->max_misallocation < 1;
    if (!v.is_there && (checks_agreement || checks_money || s->min_coverage > 0)) {
        add(f, "it was not validated; the same fds fit command does that");
        return FDS_OK;
    }
    if (checks_agreement && isnan(v.agreement))
        add(f, "its agreement could not be measured");
    else if (checks_agreement && v.agreement < s->min_agreement)
        add(f, "agreement %.3f is below %g", v.agreement, s->min_agreement);
    if (checks_money && !(v.misallocation <= s->max_misallocation))
        add(f, "misallocation %.3f is above %g", v.misallocation, s->max_misallocation);
    if (v.coverage < s->min_coverage)
        add(f, "coverage %.3f is below %g", v.coverage, s->min_coverage);
    return FDS_OK;
}

/* ---- the entry ---- */

static void find_user(char user[USER]) {
    struct passwd entry, *found = NULL;
    char text[1024];
    snprintf(user, USER, "user %lu", (unsigned long)geteuid());
    if (getpwuid_r(geteuid(), &entry, text, sizeof text, &found) == 0 && found)
        snprintf(user, USER, "%s", found->pw_name);
}

static json_t *list_failures(const failures *f) {
    json_t *list = json_array();
    bool is_whole = list;
    for (size_t i = 0; i < f->count && is_whole; i++)
        is_whole = fds__json_append(list, json_string(f->texts[i]));
    return fds__json_keep_if(list, is_whole);
}

static fds_status note(fds_server *server, const serve_model *m, const failures *f,
                       fds_error *err) {
    char user[USER], hash[65], key[96];
    uint64_t index;
    find_user(user);
    json_t *json = json_pack("{s:s, s:s, s:o, s:s, s:o}", "audit", "force", "run", m->sha256, "by",
                             fds__json_string(user), "reason", server->set.standards.reason,
                             "fails", list_failures(f));
    OWNED char *text = json ? fds__json_text(json, JSON_COMPACT) : NULL;
    json_decref(json);
    TRY(text ? FDS_OK : fds__fail_json(err));
    serve_log_event(server, "force", text);
    if (!server->ledger)
        return FDS_OK;
    fds_sha256_hex(text, strlen(text), hash);
    snprintf(key, sizeof key, "audit force %s", hash);
    pthread_mutex_lock(&server->ledger_lock);
    fds_status status = fds_ledger_note(server->ledger, text, key, &index, err);
    pthread_mutex_unlock(&server->ledger_lock);
    return status;
}

static fds_status refuse(const serve_model *m, const failures *f, fds_error *err) {
    char all[FAILS * (FAIL + 2)] = "";
    for (size_t i = 0; i < f->count; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", f->texts[i]);
    return fds__fail(err, FDS_ERR_USAGE,
                     "the run of `model` %s may not serve: %s. Fit it better, or give `force_run` "
                     "%s with `force_reason`",
                     m->name, all, m->name);
}

fds_status serve_admit(fds_server *server, const serve_models *models, fds_error *err) {
    const serve_standards *standards = &server->set.standards;
    TRY(check(standards, models, err));
    for (size_t i = 0; i < models->count; i++) {
        const serve_model *m = &models->items[i];
        failures f;
        TRY(judge(standards, m, &f, err));
        if (f.count && !is_forced(standards, m->name))
            return refuse(m, &f, err);
    }
    for (size_t i = 0; i < models->count; i++) {
        const serve_model *m = &models->items[i];
        failures f;
        TRY(judge(standards, m, &f, err));
        if (f.count)
            TRY(note(server, m, &f, err));
    }
    return FDS_OK;
}
