/* SPDX-License-Identifier: Apache-2.0
 *
 * The task of each case of a benchmark in files for other programs, in the folder DIR/CASE:
 *
 *   x_train.npy, y_train.npy        the players' samples, player by player: float32, (samples,
 *                                   features), (samples, height, width) or (samples, channels,
 *                                   height, width); bytes are divided by 255. int64 labels from 0
 *   player_train.npy                int64, the player of each sample, from 0
 *   sample_train.npy                int64, its number in the data, from 0
 *   x_test.npy, y_test.npy, sample_test.npy     the test samples
 *   predicted_test.npy              int64, the label that the model of all players predicts: values
 *                                   for each test sample explain it
 *   y_train-flipped.npy, is_flipped.npy         labels of the first game with wrong labels, and
 *                                   which players have them; then -flipped-1, is_flipped-1, ...
 *   task.json                       what is what; written last
 *
 * fds value and fds train read such a folder too. */
#include "eval/eval.h"

#include <stdlib.h>

/* ---- arrays ---- */

typedef struct {
    const char *dir, *name;
    const void *data;
    size_t count, size; /* items, bytes of each */
    const char *descr, *shape;
} array;

static fds_status write_array(const array *a, fds_error *err) {
    char path[FDS__PATH_MAX], header[FDS__NPY_HEADER];
    fds__text text = {0};
    size_t size = fds__npy_header(a->descr, a->shape, header);
    TRY(fds__path_join(path, sizeof path, a->dir, a->name, err));
    fds__text_add(&text, header, size);
    fds__text_add(&text, a->data, a->count * a->size);
    fds_status status = fds__text_check(&text, err);
    if (status == FDS_OK)
        status = fds__out_sweep(path, err);
    if (status == FDS_OK)
        status = fds__file_write(path, text.data, text.used, err);
    fds__free(text.data);
    return status;
}

static fds_status write_integers(const char *dir, const char *name, const int64_t *values,
                                 size_t count, fds_error *err) {
    char shape[32];
    snprintf(shape, sizeof shape, "(%zu,)", count);
    return write_array(&(array){dir, name, values, count, sizeof *values, "<i8", shape}, err);
}

static fds_status write_samples(const char *dir, const char *name, const fds_dataset *ds,
                                const uint32_t *index, size_t count, fds_error *err) {
    char shape[96];
    OWNED float *values = NULL;
    size_t items;
    if (!fds__mul(count, ds->sample_size, &items))
        return fds__fail_nomem(err, SIZE_MAX);
    TRY(NEW(values, items, err));
    for (size_t i = 0; i < count; i++)
        fds_dataset_sample(ds, index[i], values + i * ds->sample_size);
    if (!ds->is_image)
        snprintf(shape, sizeof shape, "(%zu, %u)", count, ds->shape.channels);
    else if (ds->shape.channels == 1)
        snprintf(shape, sizeof shape, "(%zu, %u, %u)", count, ds->shape.height, ds->shape.width);
    else
        snprintf(shape, sizeof shape, "(%zu, %u, %u, %u)", count, ds->shape.channels,
                 ds->shape.height, ds->shape.width);
    return write_array(&(array){dir, name, values, items, sizeof *values, "<f4", shape}, err);
}

/* Labels and numbers of samples; numbers NULL: labels alone. */
static fds_status write_labels(const char *dir, const char *labels, const char *numbers,
                               const fds_dataset *ds, const uint32_t *index, size_t count,
                               fds_error *err) {
    OWNED int64_t *values = NULL;
    TRY(NEW(values, count, err));
    for (size_t i = 0; i < count; i++)
        values[i] = ds->labels[index[i]];
    TRY(write_integers(dir, labels, values, count, err));
    for (size_t i = 0; i < count; i++)
        values[i] = index[i];
    return numbers ? write_integers(dir, numbers, values, count, err) : FDS_OK;
}

static fds_status write_players(const char *dir, const fds_players *players, size_t count,
                                fds_error *err) {
    OWNED int64_t *values = NULL;
    const uint32_t *unused;
    size_t at = 0;
    TRY(NEW(values, count, err));
    for (size_t p = 0; p < fds_players_count(players); p++)
        for (size_t i = fds_players_samples(players, p, &unused); i > 0; i--)
            values[at++] = (int64_t)p;
    return write_integers(dir, "player_train.npy", values, count, err);
}

static fds_status write_predicted(const eval_game *g, fds_error *err) {
    const fds_utility *utility = g->sides[EVAL_UTILITY_EPOCHS].utility;
    OWNED uint64_t *all = NULL;
    OWNED float *probs = NULL;
    OWNED int64_t *labels = NULL;
    TRY(NEW(all, fds_coalition_words(g->players), err));
    TRY(NEW(probs, g->tests * utility->classes, err));
    TRY(NEW(labels, g->tests, err));
    for (size_t i = 0; i < g->players; i++)
        fds__coalition_add(all, i);
    TRY(fds_utility_eval(utility, 0, all, probs, err));
    for (size_t x = 0; x < g->tests; x++)
        labels[x] = fds__argmax_f32(probs + x * utility->classes, utility->classes);
    return write_integers(g->dir, "predicted_test.npy", labels, g->tests, err);
}

/* ---- wrong labels ---- */

static fds_status write_flipped(const eval_game *g, const char *dir, size_t k,
                                const uint32_t *index, size_t count, fds_error *err) {
    fds_dataset *wrong = NULL;
    OWNED bool *is_flipped = NULL;
    char labels[64], marks[64], shape[32];
    TRY(NEW(is_flipped, g->players, err));
    TRY(eval_flip(g, k, is_flipped, &wrong, err));
    snprintf(labels, sizeof labels, k ? "y_train-flipped-%zu.npy" : "y_train-flipped.npy", k);
    snprintf(marks, sizeof marks, k ? "is_flipped-%zu.npy" : "is_flipped.npy", k);
    snprintf(shape, sizeof shape, "(%zu,)", g->players);
    fds_status status = write_labels(dir, labels, NULL, wrong, index, count, err);
    if (status == FDS_OK)
        status = write_array(&(array){dir, marks, is_flipped, g->players, 1, "|b1", shape}, err);
    fds_dataset_free(wrong);
    return status;
}

/* ---- the description ---- */

static json_t *list_names(size_t count, const char *(*name)(const eval_game *g, size_t i),
                          const eval_game *g) {
    json_t *list = json_array();
    bool is_whole = list != NULL;
    for (size_t i = 0; is_whole && i < count; i++)
        is_whole = fds__json_append(list, fds__json_string(name(g, i)));
    return fds__json_keep_if(list, is_whole);
}

static const char *player_name(const eval_game *g, size_t i) {
    return fds_players_name(g->problem->players, i);
}
static const char *class_name(const eval_game *g, size_t i) {
    return fds_dataset_class_name(g->problem->train, (uint32_t)i);
}

static json_t *describe(const eval_game *g, size_t samples, size_t flips) {
    const fds_problem *p = g->problem;
    const char *slash = strrchr(g->dir, '/');
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:I, s:I, s:I, s:[I, I, I], s:I, s:s, s:I, s:o, s:o}", "fds",
        FDS_VERSION, "kind", "fds bench task", "case", slash ? slash + 1 : g->dir, "data",
        fds__json_string(g->name), "source", fds__json_string(p->train->source), "players",
        (json_int_t)g->players, "samples", (json_int_t)samples, "tests", (json_int_t)g->tests,
        "shape", (json_int_t)p->train->shape.channels, (json_int_t)p->train->shape.height,
        (json_int_t)p->train->shape.width, "seed", (json_int_t)g->params.seed, "network",
        g->params.model, "flips", (json_int_t)flips, "player_names",
        list_names(g->players, player_name, g), "classes",
        list_names(p->train->classes, class_name, g));
}

fds_status eval_task_write(const eval_game *g, fds_error *err) {
    const fds_problem *p = g->problem;
    const uint32_t *index;
    size_t count = fds__players_all_samples(p->players, &index);
    size_t flips = g->params.flipped > 0 ? (size_t)MAX(g->params.flipped_seeds, 1) : 0;
    TRY(fds__mkdirs(g->dir, err));
    TRY(write_samples(g->dir, "x_train.npy", p->train, index, count, err));
    TRY(write_labels(g->dir, "y_train.npy", "sample_train.npy", p->train, index, count, err));
    TRY(write_players(g->dir, p->players, count, err));
    TRY(write_samples(g->dir, "x_test.npy", p->test, p->tests, p->test_count, err));
    TRY(write_labels(g->dir, "y_test.npy", "sample_test.npy", p->test, p->tests, p->test_count,
                     err));
    TRY(write_predicted(g, err));
    for (size_t k = 0; k < flips; k++)
        TRY(write_flipped(g, g->dir, k, index, count, err));
    json_t *json = describe(g, count, flips);
    fds_status status = fds__json_write(g->dir, "task.json", json, err);
    json_decref(json);
    return status;
}
