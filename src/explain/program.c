/* SPDX-License-Identifier: Apache-2.0
 *
 * A program of the user's as the service model of a run (`utility` command). The run keeps what the
 * program learns from; for a new input the program is started again, reads that with the input, and
 * answers for all players. The user names the program again: a run may come from elsewhere, and must
 * not be able to start one. Its file, service.safetensors, has the tensors
 *
 *     samples   (samples, channels, height, width), as in the data, with bytes as 0 to 1
 *     labels    (samples) numbers of classes
 *     players   (samples) numbers of players, who own them
 *
 * in ascending order of the samples' numbers, as the program saw them in the fit.
 */
#include "explain/run.h"

#include <math.h>
#include <string.h>

struct fds__service_program {
    const char *name, *fingerprint, *command; /* of the fit */
    char *kind;                               /* "command:...", as the caller says; NULL: not yet */
    uint64_t seed;
    fds_dataset *train;
    fds_players *players;
};

void fds__service_program_free(fds__service_program *p) {
    if (!p)
        return;
    fds_players_free(p->players);
    fds_dataset_free(p->train);
    fds__free(p->kind);
    fds__free(p);
}

/* ---- the file ---- */

fds_status fds__service_program_save(const char *path, const fds_utility *utility,
                                     const fds_problem *problem, fds_error *err) {
    const fds_inputs *own = utility->data->samples;
    const fds_shape s = own->shape;
    const uint32_t count = (uint32_t)own->count;
    OWNED float *values = NULL, *labels = NULL, *players = NULL;
    TRY(RESERVE(values, own->count, own->size, err));
    TRY(RESERVE(labels, own->count, 1, err));
    TRY(RESERVE(players, own->count, 1, err));
    for (size_t i = 0; i < own->count; i++) {
        fds_dataset_sample(problem->train, own->ids[i], values + i * own->size);
        labels[i] = own->labels[i];
        players[i] = (float)utility->data->owner[i];
    }
    const fds__tensor tensors[] = {{"samples", 4, {count, s.channels, s.height, s.width}, values},
                                   {"labels", 1, {count}, labels},
                                   {"players", 1, {count}, players}};
    const fds__meta meta[] = {{"format", "fds program"}};
    return fds__safetensors_write(path, tensors, 3, meta, 1, NULL, err);
}

/* Whole numbers below limit. */
static fds_status read_numbers(const char *path, const fds__tensor *t, size_t count, size_t limit,
                               uint32_t *out, fds_error *err) {
    for (size_t i = 0; i < count; i++) {
        float value = t->values[i];
        if (!(value >= 0 && value < (float)limit) || value != floorf(value))
            return fds__fail(err, FDS_ERR_FORMAT,
                             "%s: tensor \"%s\": value %zu must be a whole number below %zu", path,
                             t->name, i, limit);
        out[i] = (uint32_t)value;
    }
    return FDS_OK;
}

/* The players by their numbers. text (players) and names (players) are scratch. */
static fds_status make_players(fds__service_program *p, fds_arrays *arrays, size_t players,
                               char (*text)[FDS__NUMBER], const char **names, fds_error *err) {
    for (size_t i = 0; i < players; i++) {
        snprintf(text[i], sizeof text[i], "%zu", i);
        names[i] = text[i];
    }
    arrays->provider_count = (uint32_t)players;
    arrays->provider_names = names;
    TRY(fds_dataset_create(arrays, &p->train, err));
    return fds_players_providers(p->train, NULL, arrays->count, &p->players, err);
}

/* numbers (2, samples) and labels (samples) are scratch. */
static fds_status make_data(fds__service_program *p, const char *path, const fds__safetensors *file,
                            size_t count, size_t players, uint32_t classes, fds_shape shape,
                            uint32_t *numbers, uint16_t *labels, fds_error *err) {
    TRY(read_numbers(path, fds__safetensors_find(file, "labels"), count, classes, numbers, err));
    TRY(read_numbers(path, fds__safetensors_find(file, "players"), count, players, numbers + count,
                     err));
    for (size_t i = 0; i < count; i++)
        labels[i] = (uint16_t)numbers[i];
    fds_arrays arrays = {.count = count,
                         .shape = shape,
                         .floats = fds__safetensors_find(file, "samples")->values,
                         .labels = labels,
                         .classes = classes,
                         .providers = numbers + count};
    OWNED char(*text)[FDS__NUMBER] = NULL;
    OWNED const char **names = NULL;
    TRY(RESERVE(text, players, 1, err));
    TRY(RESERVE(names, players, 1, err));
    TRY(make_players(p, &arrays, players, text, names, err));
    return fds_players_count(p->players) == players
               ? FDS_OK
               : fds__fail(err, FDS_ERR_FORMAT, "%s: some of the %zu players have no sample", path,
                           players);
}

static fds_status read_file(fds__service_program *p, const char *path, const fds__safetensors *file,
                            size_t players, uint32_t classes, fds_shape shape, fds_error *err) {
    const char *whose = "the program's data";
    const fds__tensor *t = fds__safetensors_find(file, "samples");
    const uint32_t count = t ? t->dims[0] : 0;
    const uint32_t dims[4] = {count, shape.channels, shape.height, shape.width}, line[4] = {count};
    OWNED uint32_t *numbers = NULL;
    OWNED uint16_t *labels = NULL;
    TRY(fds__safetensors_check(path, file, whose, "samples", 4, dims, err));
    TRY(fds__safetensors_check(path, file, whose, "labels", 1, line, err));
    TRY(fds__safetensors_check(path, file, whose, "players", 1, line, err));
    TRY(RESERVE(numbers, 2, count, err));
    TRY(RESERVE(labels, count, 1, err));
    return make_data(p, path, file, count, players, classes, shape, numbers, labels, err);
}

/* The program, from run.json. */
static fds_status read_about(fds__service_program *p, const char *path, const json_t *about,
                             fds_error *err) {
    p->command = json_string_value(json_object_get(about, "command"));
    p->name = json_string_value(json_object_get(about, "name"));
    p->fingerprint = json_string_value(json_object_get(about, "fingerprint"));
    p->seed = (uint64_t)json_integer_value(json_object_get(about, "seed"));
    return p->command && p->name && p->fingerprint
               ? FDS_OK
               : fds__fail(err, FDS_ERR_FORMAT,
                           "%s: run.json does not say which program it belongs to", path);
}

fds_status fds__service_program_use(fds__service_program *p, const char *kind, fds_error *err) {
    fds__utility_params params = {.kind = kind};
    if (!fds__command_of(kind))
        return fds__fail(err, FDS_ERR_USAGE,
                         "`utility` must be command:PROGRAM, the program of the run (got %.60s)",
                         kind);
    TRY(fds__command_check(&params, 0, err));
    fds__free(p->kind);
    p->kind = fds__strdup(kind);
    return p->kind ? FDS_OK : fds__fail_nomem(err, strlen(kind) + 1);
}

fds_status fds__service_program_load(const char *path, const json_t *about, size_t players,
                                     uint32_t classes, fds_shape shape, fds__service_program **out,
                                     fds_error *err) {
    fds__service_program *p;
    fds__safetensors *file;
    TRY(RESERVE(p, 1, 1, err));
    fds_status status = read_about(p, path, about, err);
    if (status == FDS_OK && (status = fds__safetensors_read(path, &file, err)) == FDS_OK) {
        status = read_file(p, path, file, players, classes, shape, err);
        fds__safetensors_free(file);
    }
    if (status == FDS_OK)
        *out = p;
    else
        fds__service_program_free(p);
    return status;
}

/* ---- asking ---- */

static fds_status check_program(const fds__service_program *p, const fds_utility *utility,
                                fds_error *err) {
    json_t *about;
    TRY(fds__json_parse("the program's description", utility->text, strlen(utility->text), &about,
                        err));
    const char *name = json_string_value(json_object_get(about, "name"));
    const char *fingerprint = json_string_value(json_object_get(about, "fingerprint"));
    fds_status status = FDS_OK;
    if (strcmp(name, p->name) != 0 || strcmp(fingerprint, p->fingerprint) != 0)
        status = fds__fail(err, FDS_ERR_CONFLICT,
                           "the program of the run has changed: it is %s, fingerprint %s, but the "
                           "run was fitted with %s, fingerprint %s; fit again, or bring it back",
                           name, fingerprint, p->name, p->fingerprint);
    json_decref(about);
    return status;
}

typedef struct {
    const fds_utility *utility;
    float *ends[2]; /* of no and of all players */
} asking;

static fds_status ask_end(void *context, size_t job, unsigned worker, fds_error *err) {
    const asking *a = context;
    OWNED uint64_t *coalition = NULL;
    TRY(RESERVE(coalition, fds_coalition_words(a->utility->players), 1, err));
    if (job == 1)
        fds__coalition_complement(coalition, a->utility->players, coalition);
    return fds_utility_eval(a->utility, worker, coalition, a->ends[job], err);
}

fds_status fds__service_program_kind(const fds__service_program *p, const char **kind,
                                     fds_error *err) {
    *kind = p->kind;
    return p->kind ? FDS_OK
                   : fds__fail(err, FDS_ERR_USAGE,
                               "a program is the service model of this run, and a run starts none "
                               "by itself; it was fitted with `utility` \"command:%.200s\": check "
                               "that, and give it again",
                               p->command);
}

fds_status fds__service_program_ask(const fds__service_program *p, const fds_dataset *ds,
                                    const uint32_t *index, size_t count, const fds_events *events,
                                    float *empty, float *full, const fds_inputs **x,
                                    fds_utility **owner, fds_error *err) {
    fds__utility_params params = fds__utility_params_default();
    TRY(fds__service_program_kind(p, &params.kind, err));
    params.train.seed = p->seed;
    params.events = events;
    params.allow_noise = true; /* the fit has checked that answers do not change */
    TRY(fds__utility_create(&params, p->train, p->players, ds, index, count, 1, owner, err));
    TRY(check_program(p, *owner, err));
    asking a = {.utility = *owner, .ends = {empty, full}};
    *x = (*owner)->data->inputs;
    fds_status status = fds__pool_run(1, 2, ask_end, &a, "program", "answers", events, err);
    if (status != FDS_OK)
        fds__utility_log(*owner, events);
    return status;
}
