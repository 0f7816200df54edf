/* SPDX-License-Identifier: Apache-2.0
 *
 * A fitted run, opened to answer, and what it is. run_answer.c answers. */
#include "explain/run_inside.h"

#include <string.h>

enum {
    CHUNK_VALUES = 1 << 22, /* values in memory at a time */
    CHUNK_INPUTS = 256,
    PROGRAM_INPUTS = 1 << 14, /* a program starts anew for each chunk */
};

void fds_run_free(fds_run *run) {
    if (!run)
        return;
    fds__bank_free(run->bank);
    fds__bank_free(run->first);
    fds__probe_free(run->probe);
    fds__free(run->player_labels);
    fds__fit_plans_free(&run->plans);
    fds__explainer_free(run->explainer);
    fds__newcomers_free(run->newcomers);
    fds__new_players_free(&run->read);
    fds__calibration_free(&run->calibration);
    fds_lane_free(run->lane);
    fds__free(run->initial);
    fds_net_free(run->net);
    fds_model_free(run->service);
    fds__service_program_free(run->program);
    fds_dataset_free(run->samples);
    fds_inputs_free(run->reference);
    fds__free(run->raw);
    fds__free(run->text);
    fds__run_record_free(&run->record);
    fds__free(run);
}

/* ---- opening ---- */

static fds_status open_service(fds_run *run, fds_error *err) {
    const fds__run_record *r = &run->record;
    char path[FDS__PATH_MAX];
    TRY(fds__path_join(path, sizeof path, run->dir, FDS__RUN_SERVICE, err));
    const json_t *about = json_object_get(r->json, "utility");
    if (json_object_get(about, "command"))
        return fds__service_program_load(path, about, r->info.players, r->info.classes,
                                         r->info.shape, &run->program, err);
    TRY(fds_model_load(path, &run->service, err));
    const fds__model_info info = fds__model_get_info(run->service);
    if (!fds__shape_equal(info.shape, r->info.shape) || info.classes != r->info.classes)
        return fds__fail(err, FDS_ERR_SHAPE,
                         "%s: a model for samples of %ux%ux%u and %u classes, but the run is of "
                         "%ux%ux%u and %u",
                         path, info.shape.channels, info.shape.height, info.shape.width,
                         info.classes, r->info.shape.channels, r->info.shape.height,
                         r->info.shape.width, r->info.classes);
    if (info.is_regression != r->info.is_regression || info.target_mean != r->info.aim.mean ||
        info.target_std != r->info.aim.std)
        return fds__fail(err, FDS_ERR_SHAPE, "%s: the model of another task than the run", path);
    TRY(fds__net_create(info.network, r->info.shape, r->info.classes, info.is_regression, &run->net,
                        err));
    TRY(fds_lane_create(run->net, &run->lane, err));
    TRY(RESERVE(run->initial, fds_net_weights(run->net), 1, err));
    fds_net_init(run->net, r->settings.utility.train.seed, run->initial);
    return FDS_OK;
}

/* labels (players) and names (classes) are scratch. */
static fds_status make_samples(fds_run *run, const char *path, const fds__tensor *t,
                               uint16_t *labels, const char **names, fds_error *err) {
    const fds__run_info *info = &run->record.info;
    fds_shape s = info->shape;
    const uint32_t dims[4] = {(uint32_t)info->players, s.channels, s.height, s.width};
    if (!t || t->rank != 4 || memcmp(t->dims, dims, sizeof dims) != 0)
        return fds__fail(err, FDS_ERR_SHAPE, "%s: it must have a tensor \"samples\" of %ux%ux%ux%u",
                         path, dims[0], dims[1], dims[2], dims[3]);
    for (size_t p = 0; p < info->players; p++)
        labels[p] = (uint16_t)fds__run_player_label(run, p);
    for (uint32_t c = 0; c < info->classes; c++)
        names[c] = fds__run_class_name(run, c);
    return fds__dataset_create(info->players, s, NULL, t->values, labels, info->classes, names,
                               &run->samples, err);
}

static fds_status open_samples(fds_run *run, fds_error *err) {
    char path[FDS__PATH_MAX];
    fds__safetensors *file;
    uint16_t *labels = NULL;
    const char **names = NULL;
    TRY(fds__path_join(path, sizeof path, run->dir, FDS__RUN_PLAYERS, err));
    TRY(fds__safetensors_read(path, &file, err));
    fds_status status = RESERVE(labels, run->record.info.players, 1, err);
    if (status == FDS_OK)
        status = RESERVE(names, run->record.info.classes, 1, err);
    if (status == FDS_OK)
        status =
            make_samples(run, path, fds__safetensors_find(file, "samples"), labels, names, err);
    fds__free(labels);
    fds__free(names);
    fds__safetensors_free(file);
    return status;
}

/* The bank of a plan: of the first sub-models or of all. strengths: of least squares on their answers;
 * NULL: a probe takes them. */
static fds_status open_models(fds_run *run, const fds_plan *plan, const fds_ls_report *strengths,
                              unsigned threads, fds__bank **out, fds_error *err) {
    const fds__run_record *r = &run->record;
    char path[FDS__PATH_MAX];
    TRY(fds__path_join(path, sizeof path, run->dir, FDS__RUN_BANK, err));
    const fds_ls_params ls = {.adjust = r->settings.adjust, .groups = r->groups};
    const fds__bank_file file = {path, run->net, r->parameters};
    return fds__bank_open(&file, plan, strengths ? &ls : NULL, strengths, threads, out, err);
}

/* The first sub-models, and, of a probe, the maps from their answers. */
static fds_status open_first(fds_run *run, const char *path, fds_error *err) {
    const fds__run_record *r = &run->record;
    const fds__fit_choice *choice = &r->report.choice;
    TRY(fds__fit_plans_make(&r->settings, r->info.players, r->groups, &run->plans, err));
    if (!choice->is_bank)
        TRY(fds__probe_load(path, r->settings.probes, r->info.players, r->info.classes, &run->probe,
                            err));
    return open_models(run, run->plans.probes, choice->is_bank ? &choice->strengths : NULL,
                       run->threads, &run->first, err);
}

static fds_status open_calibration(fds_run *run, fds_error *err) {
    const fds__run_info *info = &run->record.info;
    char path[FDS__PATH_MAX];
    TRY(RESERVE(run->player_labels, info->players, 1, err));
    for (size_t p = 0; p < info->players; p++)
        run->player_labels[p] = fds__run_player_label(run, p);
    TRY(fds__path_join(path, sizeof path, run->dir, FDS__RUN_ERRORS, err));
    TRY(fds__calibration_load(path, info->classes, info->players, &run->calibration, err));
    snprintf(run->error_source, sizeof run->error_source, "calibrated on %zu validation inputs",
             run->calibration.inputs);
    return FDS_OK;
}

static fds_status open_explainer(fds_run *run, fds_error *err) {
    const fds__run_record *r = &run->record;
    char path[FDS__PATH_MAX];
    if (r->info.asks_all)
        return FDS_OK;
    TRY(fds__path_join(path, sizeof path, run->dir, FDS__RUN_EXPLAINER, err));
    if (r->settings.probes)
        TRY(open_first(run, path, err));
    else
        TRY(fds__explainer_load(path, r->info.players, r->info.classes, r->info.shape, r->groups,
                                run->explainer_threads, &run->explainer, err));
    if (run_has_jackknife(run, FDS__ANSWERER_EXPLAINER))
        snprintf(run->error_source, sizeof run->error_source,
                 "jackknife over the first %zu sub-models", r->settings.probes);
    else
        TRY(open_calibration(run, err));
    if (run->first)
        return FDS_OK;
    size_t most = run->program ? PROGRAM_INPUTS : CHUNK_INPUTS;
    run->chunk = MAX((size_t)1, MIN(most, CHUNK_VALUES / r->info.players));
    return RESERVE(run->raw, run->chunk, r->info.players, err);
}

static fds_status open_parts(fds_run *run, bool is_quick, fds_error *err) {
    run->text = fds__json_text(run->record.json, JSON_INDENT(1));
    if (!run->text)
        return fds__fail_nomem(err, 1);
    /* One by default: an answer takes less than a millisecond, but hundreds when two threads wait for
     * each other beside other busy processes. */
    run->explainer_threads = MAX(run->threads, 1u);
    run->threads = run->threads ? run->threads : run->record.threads;
    run->chunk = CHUNK_INPUTS;
    TRY(open_service(run, err));
    TRY(open_samples(run, err));
    TRY(open_explainer(run, err));
    /* damage that readers cannot see */
    return fds__run_record_check(run->dir, &run->record, is_quick, err);
}

/* The same fit repairs damaged or lost files. */
static fds_status open_whole(fds_run *run, bool is_quick, fds_error *err) {
    fds_error why;
    fds_status status = fds__run_record_read(run->dir, &run->record, &why);
    bool is_run = status != FDS_ERR_NOT_FOUND;
    if (status == FDS_OK)
        status = open_parts(run, is_quick, &why);
    bool is_damage = is_run && (status == FDS_ERR_NOT_FOUND || status == FDS_ERR_FORMAT ||
                                status == FDS_ERR_SHAPE || status == FDS_ERR_CORRUPT);
    is_damage =
        is_damage && !strstr(why.text, "run the same fit again"); /* a bank says so itself */
    if (status != FDS_OK)
        return fds__fail(err, status, "%s%s", why.text,
                         is_damage ? "; run the same fit again to repair it" : "");
    return FDS_OK;
}

static fds_status open_run(const char *dir, unsigned threads, bool is_quick, fds_run **out,
                           fds_error *err) {
    fds_run *run;
    if (strlen(dir) >= sizeof run->dir)
        return fds__fail(err, FDS_ERR_USAGE, "the name of the run's folder is too long");
    TRY(RESERVE(run, 1, 1, err));
    run->threads = threads;
    strcpy(run->dir, dir);
    fds_status status = open_whole(run, is_quick, err);
    if (status == FDS_OK)
        *out = run;
    else
        fds_run_free(run);
    return status;
}

fds_status fds__run_open(const char *dir, unsigned threads, fds_run **out, fds_error *err) {
    return open_run(dir, threads, false, out, err);
}

fds_status fds__run_open_quickly(const char *dir, unsigned threads, fds_run **out, fds_error *err) {
    return open_run(dir, threads, true, out, err);
}

fds_status fds__run_verify(const fds_run *run, fds_error *err) {
    return fds__run_record_check(run->dir, &run->record, false, err);
}

fds_status run_open_bank(fds_run *run, fds_error *err) {
    const fds__run_record *r = &run->record;
    if (run->bank)
        return FDS_OK;
    if (!r->info.has_bank)
        return fds__fail(err, FDS_ERR_USAGE,
                         "%s: the run has no bank of sub-models; fit it with `keep_models`",
                         run->dir);
    if (!run->plans.all)
        TRY(fds__fit_plans_make(&r->settings, r->info.players, r->groups, &run->plans, err));
    return open_models(run, run->plans.plan, &r->strengths, run->threads, &run->bank, err);
}

/* ---- clusters ---- */

/* The bank values clusters, if it has all coalitions of these; those that validated count too. */
static fds_status open_joined(fds_run *run, size_t players, const uint32_t *part_of,
                              fds_error *err) {
    const fds__run_record *r = &run->record;
    fds_error why = {.text = "it has no bank of sub-models"};
    if (!run->plans.all)
        TRY(fds__fit_plans_make(&r->settings, players, r->groups, &run->plans, err));
    fds_status status = FDS_ERR_USAGE;
    fds__bank_free(run->bank); /* of single players */
    run->bank = NULL;
    if (r->info.has_bank) {
        TRY(open_models(run, run->plans.all, NULL, run->threads, &run->bank, err));
        status = fds__bank_join(run->bank, part_of, r->info.players, &why);
    }
    return status == FDS_OK ? FDS_OK
                            : fds__fail(err, status,
                                        "%s was fitted with other players, and cannot value these "
                                        "clusters: %s; fit it with this `cluster`",
                                        run->dir, why.text);
}

/* The first sample of each new player. */
static fds_status join_samples(fds_run *run, size_t players, const uint32_t *part_of,
                               fds_error *err) {
    fds_dataset *old = run->samples;
    const size_t parts = run->record.info.players, size = old->sample_size;
    OWNED float *values = NULL;
    OWNED uint16_t *labels = NULL;
    TRY(RESERVE(values, parts, size, err));
    TRY(RESERVE(labels, parts, 1, err));
    for (size_t p = players; p-- > 0;)
        fds_dataset_sample(old, p, values + part_of[p] * size);
    for (size_t p = 0; p < parts; p++)
        labels[p] = (uint16_t)fds__run_player_label(run, p);
    TRY(fds__dataset_create(parts, old->shape, NULL, values, labels, old->classes,
                            (const char *const *)old->class_names, &run->samples, err));
    fds_dataset_free(old);
    return FDS_OK;
}

fds_status fds__run_join(fds_run *run, const fds__blob *clusters, fds_error *err) {
    OWNED uint32_t *part_of = NULL;
    fds__run_info *info = &run->record.info;
    const size_t players = info->players;
    TRY(fds__run_record_join(&run->record, run->dir, clusters, &part_of, err));
    if (info->players == players)
        return FDS_OK;
    TRY(open_joined(run, players, part_of, err));
    TRY(join_samples(run, players, part_of, err));
    fds_groups_free(run->record.groups);
    run->record.groups = NULL;
    info->groups = 0;
    info->explainer = "bank";
    info->asks_all = info->has_bank = true;
    return FDS_OK;
}

/* ---- what it is ---- */

fds__run_info fds__run_get_info(const fds_run *run) { return run->record.info; }
const char *fds_run_describe(const fds_run *run) { return run->text; }

static const json_t *player(const fds_run *run, size_t i) {
    return json_array_get(json_object_get(run->record.json, "players"), i);
}

const char *fds__run_player_name(const fds_run *run, size_t i) {
    const char *name = json_string_value(json_object_get(player(run, i), "name"));
    return name ? name : "?";
}

double fds__run_player_target(const fds_run *run, size_t i) {
    return json_number_value(json_object_get(player(run, i), "target"));
}

uint32_t fds__run_player_label(const fds_run *run, size_t i) {
    return (uint32_t)json_integer_value(json_object_get(player(run, i), "label"));
}

const char *fds__run_player_provider(const fds_run *run, size_t i) {
    return json_string_value(json_object_get(player(run, i), "provider"));
}

uint32_t fds__run_player_group(const fds_run *run, size_t i) {
    return run->record.groups ? fds_groups_of(run->record.groups, i) : FDS__UNKNOWN;
}

size_t fds__run_player_size(const fds_run *run, size_t i) {
    return json_array_size(json_object_get(player(run, i), "samples"));
}

json_t *fds__run_player_members(const fds_run *run, size_t i) {
    return json_object_get(player(run, i), "members");
}

const char *fds__run_folder(const fds_run *run) { return run->dir; }

const char *const fds__run_reading[] = {"task",      "label",  "provider", "labels",      "owners",
                                        "test_file", "id",     "drop",     "categorical", "missing",
                                        "sep",       "resize", NULL};

const char *fds__run_origin(const fds_run *run, const char *key) {
    return json_string_value(json_object_get(json_object_get(run->record.json, "origin"), key));
}

const json_t *fds__run_preparation(const fds_run *run) {
    return json_object_get(run->record.json, "preparation");
}

const char *fds__run_class_name(const fds_run *run, uint32_t label) {
    const json_t *names = json_object_get(json_object_get(run->record.json, "data"), "classes");
    const char *name = json_string_value(json_array_get(names, label));
    return name ? name : "?";
}

fds_status fds__run_validation(const fds_run *run, fds__validation *out, fds_error *err) {
    return fds__validation_read(run->dir, out, err);
}

const fds_dataset *fds_run_samples(const fds_run *run) { return run->samples; }
const fds_model *fds_run_service(const fds_run *run) { return run->service; }

bool fds__run_has_program(const fds_run *run) { return run->program; }
fds_status fds__run_use_program(fds_run *run, const char *utility, fds_error *err) {
    if (!utility)
        return FDS_OK;
    if (!run->program)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`utility` does not apply: the service model of %s is a network",
                         run->dir);
    return fds__service_program_use(run->program, utility, err);
}

void fds__run_set_events(fds_run *run, const fds_events *events) { run->events = events; }

fds_status fds__run_predict(fds_run *run, const fds_dataset *ds, const uint32_t *index,
                            size_t count, unsigned threads, float *probs, const fds_events *events,
                            fds_error *err) {
    if (!run->program)
        return fds_model_predict(run->service, ds, index, count, threads, probs, events, err);
    const fds_inputs *x;
    fds_utility *owner = NULL;
    float *empty;
    TRY(RESERVE(empty, count, run->record.info.classes, err));
    fds_status status = fds__service_program_ask(run->program, ds, index, count, events, empty,
                                                 probs, &x, &owner, err);
    fds_utility_free(owner);
    fds__free(empty);
    return status;
}

const char *fds__run_error_source(const fds_run *run, fds__answerer by) {
    return run_is_by_all(run, by) ? "jackknife over the sub-models of the bank" : run->error_source;
}

/* The first sample of every player must be the same. pair (2, sample_size) is scratch. */
static fds_status compare_samples(const fds_run *run, const fds_dataset *train, float *pair,
                                  fds_error *err) {
    size_t size = train->sample_size;
    for (size_t p = 0; p < run->record.info.players; p++) {
        const json_t *list = json_object_get(player(run, p), "samples");
        size_t id = (size_t)json_integer_value(json_array_get(list, 0));
        if (id < train->count) {
            fds_dataset_sample(train, id, pair);
            fds_dataset_sample(run->samples, p, pair + size);
        }
        if (id >= train->count || memcmp(pair, pair + size, size * sizeof *pair) != 0)
            return fds__fail(err, FDS_ERR_USAGE,
                             "%s: fitted on other data than %s: sample %zu, the first of player "
                             "\"%s\", is not the same",
                             run->dir, train->source, id, fds__run_player_name(run, p));
    }
    return FDS_OK;
}

fds_status fds__run_check_data(const fds_run *run, const fds_dataset *train, fds_error *err) {
    fds_shape ours = run->record.info.shape, theirs = train->shape;
    if (!fds__shape_equal(ours, theirs))
        return fds__fail(err, FDS_ERR_USAGE,
                         "%s: fitted on %s with samples of %ux%ux%u, but %s has %ux%ux%u", run->dir,
                         run->record.info.source, ours.channels, ours.height, ours.width,
                         train->source, theirs.channels, theirs.height, theirs.width);
    if (run->record.keys) /* the samples of its players may have changed since */
        return FDS_OK;
    float *pair;
    TRY(RESERVE(pair, 2, train->sample_size, err));
    fds_status status = compare_samples(run, train, pair, err);
    fds__free(pair);
    return status;
}
