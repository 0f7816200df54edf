/* SPDX-License-Identifier: Apache-2.0
 *
 * A run that many machines compute: parts of its sub-models, and their import.
 *
 * A part is a folder as that of a run that was interrupted, but with every k-th sub-model only: the
 * table utilities/ and, where the run keeps sub-models, models.bank. An import copies records to the
 * same places of a run; the fit there finds them and computes what is missing. */
#include "explain/run.h"

/* Everything that filling needs. */
typedef struct {
    fds__fit_settings settings;
    fds__fit_plans plans;
    fds_groups *groups;
    uint32_t *order;
    fds_utility *utility;
    fds_table *table;
    fds_table_cost before;
} filling;

static void filling_free(filling *f) {
    fds_table_free(f->table);
    fds_utility_free(f->utility);
    fds__free(f->order);
    fds__fit_plans_free(&f->plans);
    fds_groups_free(f->groups);
}

/* Everything but the table. */
static fds_status prepare(filling *f, const fds_problem *problem, const fds_params *params,
                          const fds_events *events, fds_error *err) {
    const fds__fit_settings *s = &f->settings;
    TRY(fds__fit_prepare(problem, params, events, &f->settings, &f->groups, err));
    TRY(fds__fit_plans_make(s, fds_players_count(problem->players), f->groups, &f->plans, err));
    const fds_ls_params ls = {.adjust = s->adjust, .groups = f->groups};
    TRY(fds_least_squares_check(f->plans.plan, &ls, err));
    return fds__fit_utility_create(s, problem, events, &f->order, &f->utility, err);
}

static fds_status open_filling(filling *f, const char *dir, const fds_problem *problem,
                               const fds_params *params, const fds_events *events, fds_error *err) {
    char path[FDS__PATH_MAX];
    TRY(prepare(f, problem, params, events, err));
    TRY(fds__path_join(path, sizeof path, dir, FDS__RUN_JSON, err));
    if (fds__path_exists(path))
        return fds__fail(err, FDS_ERR_CONFLICT,
                         "%s is a run: compute a part in a folder of its own, and import it", dir);
    TRY(fds__mkdirs(dir, err));
    TRY(fds__path_join(path, sizeof path, dir, FDS__RUN_TABLE, err));
    return fds_table_open(path, f->utility, FDS_STORE_F32, events, &f->table, err);
}

static fds_status fill(filling *f, const char *dir, uint64_t draw, fds_part part,
                       const fds_events *events, fds_error *err) {
    const fds__fit_settings *s = &f->settings;
    const fds_plan *kept = s->keeps_models ? f->plans.all : f->plans.probes;
    char path[FDS__PATH_MAX];
    TRY(fds__path_join(path, sizeof path, dir, FDS__RUN_TABLE, err));
    TRY(fds__part_note(path, f->plans.all, draw, err));
    TRY(fds__table_estimate_part(f->table, f->plans.all, &part, s->threads, &f->before, err));
    if (kept) {
        TRY(fds__path_join(path, sizeof path, dir, FDS__RUN_BANK, err));
        TRY(fds__bank_fill_part(path, f->utility, f->table, kept, &part, s->threads, events, err));
    }
    return fds_table_fill_part(f->table, f->plans.all, part, s->threads, events, err);
}

fds_status fds_fit_part(const char *dir, const fds_problem *problem, const fds_params *params,
                        fds_part part, const fds_events *events, char **report, fds_error *err) {
    filling f = {0};
    double start_s = fds__now_s();
    TRY(fds__part_check(&part, err));
    TRY(fds__until_refuse(params, err));
    fds_status status = open_filling(&f, dir, problem, params, events, err);
    if (status == FDS_OK)
        status = fill(&f, dir, params->draw, part, events, err);
    if (status == FDS_OK && report)
        status = fds__part_report(dir, part, &f.before, fds__now_s() - start_s, report, err);
    filling_free(&f);
    return status == FDS_ERR_CANCELLED ? fds__fail_part(dir, err) : status;
}

fds_status fds_fit_serve(const fds_problem *problem, const fds_params *params,
                         const fds_events *events, fds_error *err) {
    filling f = {0};
    TRY(fds__until_refuse(params, err));
    fds_status status = prepare(&f, problem, params, events, err);
    if (status == FDS_OK)
        status = fds__ranks_serve(f.utility, f.plans.all, FDS_STORE_F32, events, err);
    filling_free(&f);
    return status;
}

/* ---- import ---- */

/* The table of a run, or of the beginnings of one. */
static bool is_run(const char *dir, char table[FDS__PATH_MAX]) {
    return fds__path_join(table, FDS__PATH_MAX, dir, FDS__RUN_TABLE, NULL) == FDS_OK &&
           fds__is_table(table);
}

/* All are runs, or all are tables. */
static fds_status find_kind(const char *dir, const char *const *from, size_t count, bool *are_runs,
                            fds_error *err) {
    char table[FDS__PATH_MAX];
    if (!count)
        return fds__fail(err, FDS_ERR_USAGE, "nothing to import: name folders with parts");
    for (size_t i = 0; i < count; i++) {
        bool is_one = is_run(from[i], table);
        if (!is_one && !fds__is_table(from[i]))
            return fds__fail(err, FDS_ERR_NOT_FOUND,
                             "%s is neither a table (it has no table.json) nor a run or a part of "
                             "one (it has no utilities/table.json)",
                             from[i]);
        if (i && is_one != *are_runs)
            return fds__fail(err, FDS_ERR_USAGE, "%s is %s and %s is %s: import one kind at a time",
                             from[0], *are_runs ? "of a run" : "a table", from[i],
                             is_one ? "of a run" : "a table");
        *are_runs = is_one;
    }
    if (*are_runs ? fds__is_table(dir) : is_run(dir, table))
        return fds__fail(err, FDS_ERR_USAGE, "%s is %s, but %s is %s", dir,
                         *are_runs ? "a table" : "a run", from[0],
                         *are_runs ? "of a run" : "a table");
    return FDS_OK;
}

/* Whether the banks of all parts, and that of the run, are of one plan. */
static fds_status check_banks(const char *dir, const char *const *from, size_t count,
                              fds_error *err) {
    char first[FDS__PATH_MAX], next[FDS__PATH_MAX];
    bool is_there = false, is_next;
    for (size_t i = 0; i <= count; i++) {
        TRY(fds__path_join(next, sizeof next, i ? from[i - 1] : dir, FDS__RUN_BANK, err));
        TRY(fds__bank_compare(is_there ? first : next, next, &is_next, err));
        if (is_next && !is_there)
            strcpy(first, next);
        is_there |= is_next;
    }
    return FDS_OK;
}

static fds_status import_tables(const char *dir, const char *const *from, size_t count,
                                const fds_events *events, fds__imported *out, fds_error *err) {
    char into[FDS__PATH_MAX];
    OWNED const char **paths = NULL;
    OWNED char *texts = NULL; /* (count, FDS__PATH_MAX) */
    TRY(NEW(paths, count, err));
    TRY(RESERVE(texts, count, FDS__PATH_MAX, err));
    for (size_t i = 0; i < count; i++) {
        paths[i] = texts + i * FDS__PATH_MAX;
        TRY(fds__path_join(texts + i * FDS__PATH_MAX, FDS__PATH_MAX, from[i], FDS__RUN_TABLE, err));
    }
    TRY(fds__path_join(into, sizeof into, dir, FDS__RUN_TABLE, err));
    TRY(fds__table_import_check(into, paths, count, err));
    TRY(check_banks(dir, from, count, err));
    return fds__table_import(into, paths, count, events, out, err);
}

static fds_status import_banks(const char *dir, const char *const *from, size_t count,
                               const fds_events *events, fds__imported *out, fds_error *err) {
    char path[FDS__PATH_MAX], other[FDS__PATH_MAX];
    double start_s = fds__now_s();
    TRY(fds__path_join(path, sizeof path, dir, FDS__RUN_BANK, err));
    for (size_t i = 0; i < count; i++) {
        TRY(fds__path_join(other, sizeof other, from[i], FDS__RUN_BANK, err));
        TRY(fds__bank_import(path, other, events, out, err));
        TRY(fds__report(events, "import", "banks", i + 1, count, start_s, err));
    }
    return FDS_OK;
}

static json_t *describe_import(const char *dir, bool are_runs, size_t count,
                               const fds__imported *records, const fds__imported *models) {
    json_t *json = json_pack("{s:o, s:s, s:I, s:I, s:I}", "folder", fds__json_string(dir), "kind",
                             are_runs ? "run" : "table", "folders", (json_int_t)count, "imported",
                             (json_int_t)records->taken, "repeated", (json_int_t)records->repeated);
    bool is_whole =
        json &&
        (!are_runs || fds__json_put(json, "models",
                                    json_pack("{s:I, s:I}", "imported", (json_int_t)models->taken,
                                              "repeated", (json_int_t)models->repeated)));
    return fds__json_keep_if(json, is_whole);
}

static fds_status give_text(json_t *json, char **out, fds_error *err) {
    *out = json ? fds__json_text(json, JSON_INDENT(1)) : NULL;
    json_decref(json);
    return *out ? FDS_OK : fds__fail_json(err);
}

fds_status fds_table_import(const char *dir, const char *const *from, size_t count,
                            const fds_events *events, char **report, fds_error *err) {
    fds__imported records = {0}, models = {0};
    bool are_runs = false;
    TRY(find_kind(dir, from, count, &are_runs, err));
    if (are_runs) {
        TRY(import_tables(dir, from, count, events, &records, err));
        TRY(import_banks(dir, from, count, events, &models, err));
    } else {
        TRY(fds__table_import(dir, from, count, events, &records, err));
    }
    return report ? give_text(describe_import(dir, are_runs, count, &records, &models), report, err)
                  : FDS_OK;
}

/* ---- what is there ---- */

static fds_status describe_run(const char *dir, const fds_events *events, json_t *about,
                               fds_error *err) {
    char path[FDS__PATH_MAX];
    json_t *models;
    TRY(fds__path_join(path, sizeof path, dir, FDS__RUN_BANK, err));
    TRY(fds__bank_describe(path, events, &models, err));
    if (models && !fds__json_put(about, "models", models))
        return fds__fail_json(err);
    TRY(fds__path_join(path, sizeof path, dir, FDS__RUN_JSON, err));
    const char *state = "part";
    if (fds__path_exists(path)) {
        fds__run_record record;
        fds_error why;
        fds_status status = fds__run_record_read(dir, &record, &why);
        if (status == FDS_OK)
            fds__run_record_free(&record);
        state = status == FDS_OK ? "complete" : "begun";
    }
    return fds__json_put(about, "run", json_string(state)) ? FDS_OK : fds__fail_json(err);
}

fds_status fds_table_describe(const char *dir, const fds_events *events, char **json,
                              fds_error *err) {
    char table[FDS__PATH_MAX];
    json_t *about;
    bool is_one = is_run(dir, table);
    if (!is_one && !fds__is_table(dir))
        return fds__fail(err, FDS_ERR_NOT_FOUND,
                         "%s is neither a table (it has no table.json) nor a run or a part of one "
                         "(it has no utilities/table.json)",
                         dir);
    TRY(fds__table_describe(is_one ? table : dir, events, &about, err));
    fds_status status = is_one ? describe_run(dir, events, about, err) : FDS_OK;
    if (status == FDS_OK && !fds__json_put(about, "folder", fds__json_string(dir)))
        status = fds__fail_json(err);
    if (status == FDS_OK)
        return give_text(about, json, err);
    json_decref(about);
    return status;
}
