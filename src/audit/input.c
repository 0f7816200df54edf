/* SPDX-License-Identifier: Apache-2.0
 * What people give an auditor beside the ledger: groups of providers, and the validation of runs. */
#include "audit/audit.h"

#include "data/data.h"
#include "explain/explain.h"

#include <math.h>

enum { MOST_BYTES = 1 << 28 };

/* ---- groups: CSV lines "name,group", the first may be a header ---- */

static fds_status find_group(fds_auditor *a, const char *name, size_t *out, fds_error *err) {
    audit_party *groups;
    for (size_t i = 0; i < a->group_count; i++)
        if (strcmp(a->groups[i].name, name) == 0) {
            *out = i;
            return FDS_OK;
        }
    groups = fds__realloc(a->groups, (a->group_count + 1) * sizeof *groups);
    if (!groups)
        return fds__fail_nomem(err, sizeof *groups);
    a->groups = groups;
    TRY(audit_party_init(&groups[a->group_count], name, err));
    *out = a->group_count++;
    return FDS_OK;
}

static fds_status take_line(fds_auditor *a, fds__scanner *scan, bool is_first, fds_error *err) {
    fds__field fields[2];
    size_t line = scan->line, group = 0;
    TRY(fds__scan_pair(scan, "a provider and its group", fields, err));
    char *name = fds__field_text(&fields[0]), *of = fds__field_text(&fields[1]);
    if (is_first && strcmp(name, "name") == 0 && strcmp(of, "group") == 0)
        return FDS_OK;
    if (!*name || !*of || !fds__is_utf8(name) || !fds__is_utf8(of))
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu: a name is missing or not UTF-8",
                         scan->path, line);
    if (json_object_get(a->group_of, name))
        return fds__fail(err, FDS_ERR_FORMAT, "%s: line %zu: \"%.100s\" has a group already",
                         scan->path, line, name);
    TRY(find_group(a, of, &group, err));
    return fds__json_put(a->group_of, name, json_integer((json_int_t)group)) ? FDS_OK
                                                                             : fds__fail_json(err);
}

fds_status audit_read_groups(fds_auditor *a, const char *path, fds_error *err) {
    OWNED uint8_t *data = NULL;
    fds__blob file = {.path = path};
    fds__scanner scan;
    TRY(fds__file_read(path, MOST_BYTES, &data, &file.size, err));
    file.data = data;
    TRY(fds__scan_begin(&file, 0, &scan, err));
    for (bool is_first = true; fds__scan_line(&scan); is_first = false)
        TRY(take_line(a, &scan, is_first, err));
    for (size_t i = 0; i < a->group_count; i++)
        a->groups[i].needed = (double)a->group_count / a->alpha;
    return FDS_OK;
}

/* ---- validation.json ---- */

#define LEVEL_ERRORS 2 /* standard errors by which the level at fit time may be too low */

/* The identity of a run in ledgers: the SHA-256 of its description, run.json as it is read. Of a run that
 * was fitted by an earlier version nothing is known. */
static fds_status read_run(const char *folder, audit_validation *v, fds_error *err) {
    fds__validation found;
    fds_run *run;
    TRY(fds__run_open(folder, 1, &run, err));
    const char *text = fds_run_describe(run);
    fds_sha256_hex(text, strlen(text), v->sha256);
    fds_status status = fds__run_validation(run, &found, err);
    fds_run_free(run);
    TRY(status);
    double error = isnan(found.misallocation_error) ? 0 : found.misallocation_error;
    v->level = found.misallocation + LEVEL_ERRORS * error; /* NaN: it is not known */
    return fds__validation_scores(folder, &v->scores, &v->count, err);
}

fds_status fds_auditor_add_run(fds_auditor *a, const char *folder, fds_error *err) {
    audit_validation v = {.level = NAN};
    void *list = a->validations;
    fds_status status =
        fds__grow(&list, &a->validation_capacity, a->validation_count + 1, sizeof v, err);
    a->validations = list;
    if (status == FDS_OK)
        status = read_run(folder, &v, err);
    bool is_known = false;
    for (size_t i = 0; i < a->validation_count; i++)
        is_known |= strcmp(a->validations[i].sha256, v.sha256) == 0;
    if (status == FDS_OK && !is_known)
        a->validations[a->validation_count++] = v;
    else
        fds__free(v.scores);
    return status;
}

fds_status audit_read_runs(fds_auditor *a, const char *folders, fds_error *err) {
    for (const char *line = folders; *line;) {
        char folder[FDS__PATH_MAX];
        size_t size = strcspn(line, "\n");
        if (size >= sizeof folder)
            return fds__fail(err, FDS_ERR_LIMIT, "`run` %.60s...: the path is too long", line);
        snprintf(folder, sizeof folder, "%.*s", (int)size, line);
        TRY(fds_auditor_add_run(a, folder, err));
        line += size + (line[size] == '\n');
    }
    return FDS_OK;
}
