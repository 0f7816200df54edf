/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder of a case: who may use it, and what is written there besides tables and runs.
 *
 *   .lock          empty; locked by the process that works on the case
 *   settings.json  format "fds bench case", version 1, data and settings as in case.json, methods,
 *                  is_both_ways, is_converged (always false), value (what the answers of sub-models
 *                  depend on, as in table.json), and checksums of the test samples and of the
 *                  training inputs, with their labels: everything that the numbers depend on
 *   METHOD.json    {"begun": true} while a method is at work; then prepare_s, answer_ms (null: not
 *                  measured), sub_models, was_resumed, machine. '/', ':' and ',' in its name become
 *                  '-'. When a record is damaged, only the times of its method are lost
 *
 * Each file is replaced whole. */
#include "eval/eval.h"

#include <sys/utsname.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#define SETTINGS "settings.json"
#define FORMAT "fds bench case"
#define MAX_BYTES ((size_t)16 << 20)

/* ---- the folder ---- */

fds_status eval_folder_check(const char *dir, const char *mark, const char *what, fds_error *err) {
    char **names;
    size_t count;
    TRY(fds__dir_list(dir, &names, &count, err));
    bool is_ours = count == 0;
    for (size_t i = 0; i < count; i++)
        is_ours |= strcmp(names[i], mark) == 0;
    fds_status status = FDS_OK;
    if (!is_ours)
        status = fds__fail(err, FDS_ERR_CONFLICT,
                           "%s holds \"%.100s\" but no %s: it is not the folder of %s; use another "
                           "folder",
                           dir, names[0], mark, what);
    fds__dir_list_free(names, count);
    return status;
}

fds_status eval_folder_lock(const char *dir, fds__file *lock, fds_error *err) {
    char path[FDS__PATH_MAX];
    TRY(fds__mkdirs(dir, err));
    /* before the lock is made, so that nothing is left in a folder that is not ours */
    TRY(eval_folder_check(dir, SETTINGS, "a case", err));
    TRY(fds__path_join(path, sizeof path, dir, ".lock", err));
    TRY(fds__file_open(lock, path, FDS__ACCESS_CREATE, err));
    return fds__file_lock(lock, dir, err);
}

/* ---- what the numbers and the times depend on ---- */

/* The processor's name for people, at most size - 1 characters, no blanks at its ends. */
static void name_processor(char *name, size_t size) {
    struct utsname machine;
    snprintf(name, size, "%.48s", uname(&machine) == 0 ? machine.machine : "unknown");
#ifdef __x86_64__
    unsigned words[12] = {0};
    bool is_named = true;
    for (unsigned i = 0; i < 3; i++)
        is_named &= __get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1],
                                &words[4 * i + 2], &words[4 * i + 3]) != 0;
    char brand[sizeof words + 1] = {0};
    memcpy(brand, words, sizeof words);
    size_t length = strlen(brand);
    while (length > 0 && brand[length - 1] == ' ')
        brand[--length] = 0;
    if (is_named && length > 0)
        snprintf(name, size, "%s", brand + strspn(brand, " "));
#endif
}

json_t *eval_describe_machine(const eval_game *g, bool is_mixed) {
    char name[64];
    unsigned processors = fds_processors();
    name_processor(name, sizeof name);
    return json_pack("{s:o, s:I, s:s, s:I, s:o*}", "processor", fds__json_string(name),
                     "processors", (json_int_t)processors, "instructions", fds_isa(), "threads",
                     (json_int_t)(g->params.threads ? g->params.threads : processors), "is_mixed",
                     is_mixed ? json_true() : NULL);
}

json_t *eval_describe_data(const eval_game *g) {
    const fds_problem *p = g->problem;
    return json_pack("{s:o, s:o, s:I, s:I, s:I, s:I}", "name", fds__json_string(g->name), "source",
                     fds__json_string(p->train->source), "classes", (json_int_t)p->train->classes,
                     "players", (json_int_t)g->players, "tests", (json_int_t)g->tests, "inputs",
                     (json_int_t)p->input_count);
}

json_t *eval_describe_settings(const eval_game *g) {
    const fds_params *p = &g->params;
    return json_pack("{s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:o}", "seed",
                     (json_int_t)p->seed, "network", p->model, "explainer",
                     fds__choice(p, explainer), "coalitions", (json_int_t)p->coalitions,
                     "permutations", (json_int_t)p->permutations, "truth", (json_int_t)p->truth,
                     "lds", (json_int_t)p->lds, "lds_seeds", (json_int_t)p->lds_seeds, "loss_seeds",
                     (json_int_t)p->loss_seeds, "flipped", p->flipped, "flipped_seeds",
                     (json_int_t)p->flipped_seeds, "shares",
                     report_numbers(g->lists->shares, g->lists->share_count));
}

/* Names; those of values from files with the files' checksums. */
static json_t *describe_methods(const eval_game *g) {
    const eval_lists *lists = g->lists;
    json_t *list = json_array();
    bool is_whole = true;
    for (size_t i = 0; i < lists->method_count; i++) {
        const eval_method *m = &lists->methods[i];
        char name[80];
        OWNED double *values = NULL;
        bool unused;
        uint64_t sum = 0;
        snprintf(name, sizeof name, "%s", m->name);
        if (m->is_outside) {
            is_whole &= eval_outside_read(g, m, &values, &unused, &sum, NULL) == FDS_OK;
            snprintf(name, sizeof name, "%.40s=%016llx", m->name, (unsigned long long)sum);
        }
        is_whole &= fds__json_append(list, json_string(name));
    }
    return fds__json_keep_if(list, is_whole);
}

/* A checksum of samples: their values, labels and numbers. */
static fds_status hash_samples(const fds_dataset *ds, const uint32_t *index, size_t count,
                               char hex[65], fds_error *err) {
    typedef struct {
        uint64_t values;
        uint32_t sample, label;
    } mark;
    float *sample = fds__alloc_zero(ds->sample_size, sizeof *sample);
    mark *marks = fds__alloc_zero(count, sizeof *marks);
    fds_status status = sample && marks ? FDS_OK : fds__fail_nomem(err, count * sizeof *marks);
    for (size_t i = 0; i < count && status == FDS_OK; i++) {
        uint32_t at = index[i];
        fds_dataset_sample(ds, at, sample);
        marks[i] =
            (mark){fds_checksum(sample, ds->sample_size * sizeof *sample), at, ds->labels[at]};
    }
    if (status == FDS_OK)
        fds_sha256_hex(marks, count * sizeof *marks, hex);
    fds__free(sample);
    fds__free(marks);
    return status;
}

static fds_status describe(const eval_game *g, json_t **out, fds_error *err) {
    const fds_problem *p = g->problem;
    const char *text = g->sides[EVAL_UTILITY_EPOCHS].utility->text;
    char tests[65], inputs[65];
    json_t *value;
    TRY(hash_samples(p->test, p->tests, p->test_count, tests, err));
    TRY(hash_samples(p->train, p->inputs, p->input_count, inputs, err));
    TRY(fds__json_parse("the parameters of the utility function", text, strlen(text), &value, err));
    *out = json_pack("{s:s, s:i, s:o, s:o, s:o, s:b, s:b, s:o, s:s, s:s}", "format", FORMAT,
                     "version", 1, "data", eval_describe_data(g), "settings",
                     eval_describe_settings(g), "methods", describe_methods(g), "is_both_ways",
                     !g->params.top_only, "is_converged", false, "value", value, "tests_sha256",
                     tests, "inputs_sha256", inputs);
    return *out ? FDS_OK : fds__fail_json(err);
}

fds_status eval_folder_settle(const eval_game *g, fds_error *err) {
    char path[FDS__PATH_MAX], text[400];
    json_t *now, *before = NULL;
    TRY(fds__path_join(path, sizeof path, g->dir, SETTINGS, err));
    TRY(describe(g, &now, err));
    bool is_new = !fds__path_exists(path);
    fds_status status = is_new ? fds__json_write(g->dir, SETTINGS, now, err)
                               : fds__json_read(path, MAX_BYTES, &before, err);
    if (status == FDS_OK && !is_new && fds__json_difference(before, now, "case", text, sizeof text))
        status = fds__fail(err, FDS_ERR_CONFLICT, "%s: %s; use another folder, or remove this one",
                           path, text);
    json_decref(before);
    json_decref(now);
    return status;
}

/* ---- records ---- */

static void file_of(const char *method, char name[80]) {
    snprintf(name, 80, "%.64s.json", method);
    for (char *at = name; *at; at++)
        if (strchr("/:,", *at))
            *at = '-';
}

static fds_status read_record(const eval_game *g, const char *path, eval_record *out,
                              fds_error *err) {
    json_t *json;
    json_int_t sub_models;
    int was_resumed;
    TRY(fds__json_read(path, MAX_BYTES, &json, err));
    json_t *here = eval_describe_machine(g, false);
    const json_t *machine = json_object_get(json, "machine");
    out->is_begun = json_is_true(json_object_get(json, "begun"));
    out->is_done = json_unpack(json, "{s:I, s:b}", "sub_models", &sub_models, "was_resumed",
                               &was_resumed) == 0 &&
                   sub_models >= 0;
    if (out->is_done)
        out->cost = (eval_cost){.prepare_s = report_number_of(json, "prepare_s"),
                                .answer_ms = report_number_of(json, "answer_ms"),
                                .sub_models = (size_t)sub_models,
                                .was_resumed = was_resumed,
                                .is_elsewhere = machine && !json_equal(machine, here)};
    json_decref(json);
    json_decref(here);
    if (!here)
        return fds__fail_json(err);
    if (out->is_begun || out->is_done)
        return FDS_OK;
    return fds__fail(
        err, FDS_ERR_FORMAT,
        "%s: neither \"begun\" nor \"sub_models\", from 0, with \"was_resumed\" is there", path);
}

fds_status eval_record_read(const eval_game *g, const char *method, eval_record *out,
                            fds_error *err) {
    char name[80], path[FDS__PATH_MAX];
    fds_error why;
    *out = (eval_record){0};
    file_of(method, name);
    TRY(fds__path_join(path, sizeof path, g->dir, name, err));
    fds_status status = fds__path_exists(path) ? read_record(g, path, out, &why) : FDS_OK;
    if (status == FDS_ERR_NOMEM)
        return fds__fail(err, status, "%s", why.text);
    if (status != FDS_OK) {
        fds__log(g->events, FDS_LOG_WARNING, "%s; %s is measured again", why.text, method);
        *out = (eval_record){.is_begun = true};
    }
    return FDS_OK;
}

fds_status eval_record_write(const eval_game *g, const char *method, const eval_cost *cost,
                             fds_error *err) {
    char name[80];
    file_of(method, name);
    json_t *json =
        cost ? json_pack("{s:o, s:o, s:I, s:b, s:o}", "prepare_s", fds__json_real(cost->prepare_s),
                         "answer_ms", fds__json_real(cost->answer_ms), "sub_models",
                         (json_int_t)cost->sub_models, "was_resumed", cost->was_resumed, "machine",
                         eval_describe_machine(g, false))
             : json_pack("{s:b}", "begun", true);
    fds_status status = fds__json_write(g->dir, name, json, err);
    json_decref(json);
    return status;
}
