/* SPDX-License-Identifier: Apache-2.0
 *
 * "command:PROGRAM ...": the utility of a coalition is what a program of the user's answers
 * (docs/external.md). The samples and the inputs, as they are in the data, are written once to a
 * temporary folder that the program reads; a question has the positions of the coalition's samples.
 *
 * Two answers follow from the rules and are given here, without the program: the empty coalition
 * has the shares of the classes among all players' samples, and a coalition of one class is sure of
 * it. In a regression, the empty coalition predicts the mean of all players' targets.
 *
 * The answer of all players, the first few answers, and one in a hundred after them are asked for a
 * second time from a process that computes nothing else. They must agree in every bit, unless noise
 * is allowed: then fds__utility_noise measures it afterwards.
 */
#include "utility/external.h"

#include <pthread.h>
#include <string.h>

enum { FEW_CHECKS = 5, CHECK_ONE_IN = 100, MOST_COMMAND = 1000, NPY_HEAD = 128 };

typedef struct {
    uint32_t *members; /* (samples) */
    bool *has_class;   /* (classes) */
} scratch;

/* The process that is asked for the second time. */
typedef struct {
    pthread_mutex_t lock;
    size_t checks;
    float *probs; /* (inputs, classes) */
} second;

typedef struct {
    const fds__utility_data *data;
    char *command;
    char folder[FDS__PATH_MAX]; /* "": none yet */
    bool allow_noise;
    fds__program *program; /* its last worker is the second */
    scratch *workers;      /* (workers + 1) */
    second *second;
    float *prior; /* (classes) */
} command;

/* ---- what the program reads ---- */

static fds_status write_npy(const char *dir, const char *name, const char *descr, const char *shape,
                            const void *data, size_t size, fds_error *err) {
    char path[FDS__PATH_MAX], header[FDS__NPY_HEADER];
    fds__out *out;
    size_t head = fds__npy_header(descr, shape, header);
    assert(head == NPY_HEAD); /* shapes are short: programs may rely on it */
    TRY(fds__path_join(path, sizeof path, dir, name, err));
    TRY(fds__out_open(path, &out, err));
    fds_status status = fds__out_write(out, header, head, err);
    if (status == FDS_OK)
        status = fds__out_write(out, data, size, err);
    if (status == FDS_OK)
        return fds__out_commit(out, err);
    fds__out_abort(out);
    return status;
}

/* The values as they are in the data, with bytes as 0 to 1; hex: their checksum. */
static fds_status write_values(const char *dir, const char *name, const fds_dataset *ds,
                               const fds_inputs *in, char hex[65], fds_error *err) {
    const fds_shape s = in->shape;
    char shape[100];
    OWNED float *values = NULL;
    TRY(NEW(values, in->count * in->size, err));
    for (size_t i = 0; i < in->count; i++)
        fds_dataset_sample(ds, in->ids[i], values + i * in->size);
    size_t size = in->count * in->size * sizeof *values;
    fds_sha256_hex(values, size, hex);
    if (s.height == 1 && s.width == 1) /* vectors */
        snprintf(shape, sizeof shape, "(%zu, %u)", in->count, s.channels);
    else
        snprintf(shape, sizeof shape, "(%zu, %u, %u, %u)", in->count, s.channels, s.height,
                 s.width);
    return write_npy(dir, name, "<f4", shape, values, size, err);
}

/* As they are in the data. */
static fds_status write_targets(const char *dir, const fds_dataset *ds, const fds_inputs *samples,
                                const char *shape, fds_error *err) {
    OWNED double *targets = NULL;
    TRY(NEW(targets, samples->count, err));
    for (size_t i = 0; i < samples->count; i++)
        targets[i] = ds->targets[samples->ids[i]];
    return write_npy(dir, "targets.npy", "<f8", shape, targets, samples->count * sizeof *targets,
                     err);
}

static fds_status write_folder(const fds__utility_making *making, const char *dir, char hex[2][65],
                               fds_error *err) {
    const fds_inputs *samples = making->data->samples;
    char shape[64];
    OWNED uint32_t *labels = NULL;
    TRY(NEW(labels, samples->count, err));
    for (size_t i = 0; i < samples->count; i++)
        labels[i] = samples->labels[i];
    size_t size = samples->count * sizeof *labels;
    snprintf(shape, sizeof shape, "(%zu,)", samples->count);
    TRY(write_values(dir, "samples.npy", making->train, samples, hex[0], err));
    TRY(write_values(dir, "inputs.npy", making->test, making->data->inputs, hex[1], err));
    TRY(making->train->targets ? write_targets(dir, making->train, samples, shape, err)
                               : write_npy(dir, "labels.npy", "<i4", shape, labels, size, err));
    return write_npy(dir, "players.npy", "<i4", shape, making->data->owner, size, err);
}

/* ---- making and freeing ---- */

fds_status fds__command_check(const fds__utility_params *params, uint32_t number, fds_error *err) {
    const char *text = fds__command_of(params->kind);
    (void)number;
    if (!text[strspn(text, " ")])
        return fds__fail(err, FDS_ERR_USAGE,
                         "`utility` command: needs a program, for example \"command:python3 "
                         "worker.py\"");
    if (strlen(text) > MOST_COMMAND || !fds__is_utf8(text))
        return fds__fail(
            err, FDS_ERR_USAGE,
            "`utility` command: the program and its arguments must be UTF-8 text of at "
            "most %d bytes; put longer ones into a script",
            MOST_COMMAND);
    return FDS_OK;
}

const char *fds__command_of(const char *kind) {
    return kind && strncmp(kind, "command:", 8) == 0 ? kind + 8 : NULL;
}

static void command_free(void *self) {
    command *c = self;
    if (!c)
        return;
    fds__program_close(c->program);
    if (c->folder[0])
        fds__temporary_remove(c->folder);
    for (unsigned w = 0; c->workers && w <= c->data->workers; w++) {
        fds__free(c->workers[w].members);
        fds__free(c->workers[w].has_class);
    }
    if (c->second) {
        pthread_mutex_destroy(&c->second->lock);
        fds__free(c->second->probs);
    }
    fds__free(c->second);
    fds__free(c->workers);
    fds__free(c->prior);
    fds__free(c->command);
    fds__free(c);
}

static fds_status make_arrays(command *c, size_t *memory, fds_error *err) {
    const fds__utility_data *data = c->data;
    const size_t samples = data->samples->count, values = data->inputs->count * data->classes;
    TRY(NEW(c->workers, data->workers + 1, err));
    for (unsigned w = 0; w <= data->workers; w++) {
        TRY(NEW(c->workers[w].members, samples, err));
        TRY(NEW(c->workers[w].has_class, data->classes, err));
    }
    TRY(NEW(c->prior, data->classes, err));
    for (size_t i = 0; i < samples; i++)
        c->prior[data->samples->labels[i]] += 1;
    for (uint32_t y = 0; y < data->classes; y++)
        c->prior[y] /= (float)samples;
    if (data->is_regression)
        c->prior[0] = 0; /* standardised: the mean */
    TRY(NEW(c->second, 1, err));
    c->second->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    *memory = sizeof *c + values * sizeof(float) +
              (data->workers + 1) * (samples * sizeof(uint32_t) + data->classes);
    return NEW(c->second->probs, values, err);
}

static fds_status open_program(command *c, const fds__utility_making *making, fds_error *err) {
    const fds__utility_data *data = c->data;
    const fds__hello hello = {.folder = c->folder,
                              .samples = data->samples->count,
                              .players = fds_players_count(data->players),
                              .inputs = data->inputs->count,
                              .shape = data->samples->shape,
                              .classes = data->classes,
                              .is_regression = data->is_regression,
                              .seed = making->params->train.seed};
    return fds__program_open(c->command, &hello, data->workers + 1, making->params->events,
                             &c->program, err);
}

fds_status fds__command_create(fds__utility_making *making, fds_error *err) {
    const char *text = fds__command_of(making->params->kind);
    char hex[2][65];
    command *c;
    TRY(NEW(c, 1, err));
    making->self = c;
    c->data = making->data;
    c->allow_noise = making->params->allow_noise;
    if (c->allow_noise && c->data->is_regression)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`allow_noise` does not apply with `task` regression: how much noise of "
                         "predictions changes values is not known");
    if (!(c->command = fds__strdup(text)))
        return fds__fail_nomem(err, strlen(text) + 1);
    if (c->data->samples->count > INT32_MAX)
        return fds__fail(err, FDS_ERR_LIMIT, "a program takes at most %d samples (got %zu)",
                         INT32_MAX, c->data->samples->count);
    TRY(make_arrays(c, &making->memory, err));
    TRY(fds__temporary_make(NULL, c->folder, err));
    TRY(write_folder(making, c->folder, hex, err));
    TRY(open_program(c, making, err));
    TRY(fds__utility_about(
        making->about,
        json_pack("{s:o, s:o, s:o, s:I, s:s, s:s, s:s}", "command", fds__json_string(text), "name",
                  fds__json_string(fds__program_name(c->program)), "fingerprint",
                  fds__json_string(fds__program_fingerprint(c->program)), "seed",
                  (json_int_t)making->params->train.seed, "normalisation", "none",
                  "samples_raw_sha256", hex[0], "inputs_raw_sha256", hex[1]),
        err));
    return c->allow_noise
               ? fds__utility_about(making->about, json_pack("{s:s}", "noise", "allowed"), err)
               : FDS_OK;
}

/* ---- answering ---- */

/* Answers where the program is not needed: no sample, or samples of one class. */
static bool answers_itself(const command *c, const scratch *s, size_t count, float *probs) {
    const uint32_t classes = c->data->classes;
    const uint16_t *labels = c->data->samples->labels;
    uint32_t different = 0, needed = c->data->is_regression ? 1 : 2;
    memset(s->has_class, 0, classes * sizeof *s->has_class);
    for (size_t i = 0; i < count; i++) {
        bool *has = &s->has_class[labels[s->members[i]]];
        different += !*has;
        *has = true;
    }
    for (size_t i = 0; different < needed && i < c->data->inputs->count; i++)
        for (uint32_t y = 0; y < classes; y++)
            probs[i * classes + y] = count ? (float)s->has_class[y] : c->prior[y];
    return different < needed;
}

/* Whether this answer is asked for again. */
static bool needs_check(const command *c, const uint64_t *coalition, size_t count) {
    if (c->allow_noise)
        return false;
    if (count == c->data->samples->count)
        return true;
    pthread_mutex_lock(&c->second->lock);
    bool is_early = c->second->checks < FEW_CHECKS;
    pthread_mutex_unlock(&c->second->lock);
    return is_early ||
           fds_coalition_id(coalition, fds_players_count(c->data->players)) % CHECK_ONE_IN == 0;
}

static fds_status check_again(const command *c, const scratch *s, size_t count, const float *probs,
                              fds_error *err) {
    const size_t classes = c->data->classes, values = c->data->inputs->count * classes;
    pthread_mutex_lock(&c->second->lock);
    const float *again = c->second->probs;
    fds_status status = fds__program_ask(c->program, c->data->workers, s->members, count,
                                         s->has_class, c->second->probs, err);
    size_t at = 0;
    while (status == FDS_OK && at < values && memcmp(&again[at], &probs[at], sizeof *probs) == 0)
        at++;
    if (status == FDS_OK && at < values)
        status = fds__fail(err, FDS_ERR_EXTERNAL,
                           "the program gives other answers when it is asked again: input %zu, "
                           "class %zu: %.9g, then %.9g; seed its random numbers, or use "
                           "`allow_noise`",
                           at / classes, at % classes, (double)probs[at], (double)again[at]);
    c->second->checks++;
    pthread_mutex_unlock(&c->second->lock);
    return status;
}

static fds_status command_eval(const void *self, unsigned worker, const uint64_t *coalition,
                               float *probs, fds_error *err) {
    const command *c = self;
    scratch *s = &c->workers[worker];
    size_t count = fds__utility_members(c->data, coalition, s->members);
    if (answers_itself(c, s, count, probs))
        return FDS_OK;
    fds_status status =
        fds__program_ask(c->program, worker, s->members, count, s->has_class, probs, err);
    if (status == FDS_OK && needs_check(c, coalition, count))
        status = check_again(c, s, count, probs, err);
    fds__utility_standardise(c->data, probs);
    return status == FDS_ERR_EXTERNAL ? fds__utility_fail(c->data, coalition, status, err) : status;
}

const fds__utility_kind fds__command_kind = {.eval = command_eval, .free = command_free};

void fds__utility_log(const fds_utility *utility, const fds_events *events) {
    if (utility->kind == &fds__command_kind)
        fds__program_log(((const command *)utility->self)->program, events);
}

/* ---- noise ---- */

bool fds__utility_is_noisy(const fds_utility *utility) {
    return utility->kind == &fds__command_kind && ((const command *)utility->self)->allow_noise;
}

typedef struct {
    const command *command;
    const fds_plan *plan;
    fds_rows rows;
    size_t stride;
    double *kept;   /* (inputs * classes) */
    double squares; /* of the differences */
    size_t asked;
} measuring;

/* Asks for a row of the plan again, and compares with what the table has. */
static fds_status measure(void *context, size_t job, unsigned worker, fds_error *err) {
    measuring *m = context;
    const command *c = m->command;
    const size_t row = 1 + job * m->stride;
    const uint64_t *coalition = fds_plan_coalition(m->plan, row);
    scratch *s = &c->workers[c->data->workers];
    float *probs = c->second->probs;
    (void)worker;
    size_t count = fds__utility_members(c->data, coalition, s->members);
    if (answers_itself(c, s, count, probs))
        return FDS_OK;
    TRY(fds__program_ask(c->program, c->data->workers, s->members, count, s->has_class, probs,
                         err));
    TRY(m->rows.read(m->rows.context, 0, row, 0, m->rows.columns, m->kept, err));
    for (size_t i = 0; i < m->rows.columns; i++)
        m->squares += (probs[i] - m->kept[i]) * (probs[i] - m->kept[i]);
    m->asked++;
    return FDS_OK;
}

fds_status fds__utility_noise(const fds_utility *utility, const fds_table *table,
                              const fds_plan *plan, const fds_events *events, double *variance,
                              fds_error *err) {
    const command *c = fds__utility_is_noisy(utility) ? utility->self : NULL;
    const size_t rows = fds_plan_rows(plan) - 1; /* without the empty coalition */
    *variance = 0;
    if (!c)
        return FDS_OK;
    size_t count = MIN(rows, MAX(rows / CHECK_ONE_IN, (size_t)FEW_CHECKS));
    measuring m = {.command = c, .plan = plan, .stride = rows / count};
    fds_table_view *view;
    OWNED double *kept = NULL;
    TRY(NEW(kept, utility->inputs * utility->classes, err));
    TRY(fds_table_view_create(table, plan, NULL, false, 1, &view, err));
    m.kept = kept;
    m.rows = fds_table_view_rows(view);
    fds_status status = fds__pool_run(1, count, measure, &m, "noise", "sub-models", events, err);
    fds_table_view_free(view);
    fds__utility_log(utility, events);
    if (m.asked) /* a difference has twice the variance of an answer */
        *variance = m.squares / 2 / (double)(m.asked * m.rows.columns);
    return status;
}
