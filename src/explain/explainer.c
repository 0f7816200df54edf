/* SPDX-License-Identifier: Apache-2.0
 *
 * A trained explainer, in memory and as a file.
 *
 * The file is safetensors: the network's tensors by its own names, weights and running statistics,
 * and the metadata
 *
 *     format       "fds-explainer 1"
 *     network      "cnn", ...
 *     precision    "f32" or "bf16", what it was trained in
 *     shape        of an input, "1x28x28"
 *     players, classes
 *     outputs      of the network: classes x players, classes x groups, or classes x rank
 *     is_by_group  "yes" or "no"
 *     scale        an output times it is a value (of a group, divided among its members), or a
 *                  coefficient
 *     rank         only with factors (factors.c): their number. The tensor "players.factors"
 *                  (players, rank) is then there too; times the coefficients it is the values, without
 *                  equal shares
 */
#include "explain/learn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "fds-explainer 1"
#define FACTORS "players.factors"
enum { STORED_BATCH = 2 }; /* batch norm needs more than one */
enum { ROWS = 64 };        /* inputs that pass the dense layers together */

struct fds__explainer {
    fds__deep *net;         /* holds the tensors; or it is their form, and */
    fds__safetensors *file; /* holds them: dense layers need no more. NULL: net does */
    /* What answers, made at the first answer; heads when their label is first asked for. An input's values must not depend on which others are
     * explained with it: dense layers see to that; infer rounds differently in each size of batch, so
     * it takes one input at a time. */
    fds__dense *
        *layers; /* (layer_count) of mlp and linear in f32, and a head for each class; or NULL */
    size_t layer_count;
    float *hidden[2], *sorted; /* (ROWS, the widest layer) */
    fds__deep_infer *infer;
    size_t players, outputs;
    uint32_t classes;
    fds_shape shape;
    fds_groups *groups; /* outputs are theirs; NULL: the players' */
    /* outputs are coefficients of these; rank 0: they are not */
    const float *factors; /* (players, rank) own_factors, or of the file */
    float *own_factors, *wide;
    size_t rank;
    bool is_raw;           /* answers are coefficients */
    fds__dense *by_player; /* from coefficients to players, made at the first answer */
    double scale;
    float *u; /* (outputs) of one input */
};

size_t fds__explainer_each(const fds__explainer_params *params, size_t players,
                           const fds_groups *groups) {
    return params->rank ? params->rank : params->is_by_group ? fds_groups_count(groups) : players;
}

fds__deep_params fds__explainer_net(const fds__explainer_params *params, fds_shape shape,
                                    size_t outputs, size_t batch) {
    return (fds__deep_params){.network = params->network,
                              .head = FDS__HEAD_EXPLAIN,
                              .input = shape,
                              .outputs = (uint32_t)outputs,
                              .batch = (uint32_t)batch,
                              .threads = params->threads,
                              .precision = params->precision,
                              .seed = params->seed};
}

/* ---- life ---- */

static bool is_dense(const char *network, fds__precision precision) {
    return precision == FDS__PRECISION_F32 &&
           (!strcmp(network, "mlp") || !strcmp(network, "linear"));
}

static fds_status make(fds__explainer *e, const char *network, fds__precision precision,
                       const fds_groups *groups, unsigned threads, fds__deep_use use,
                       fds_error *err) {
    size_t each = e->rank ? e->rank : groups ? fds_groups_count(groups) : e->players;
    if (!fds__mul(each, e->classes, &e->outputs) || e->outputs > UINT32_MAX)
        return fds__fail(err, FDS_ERR_LIMIT, "an explainer of %zu outputs per class is too large",
                         each);
    if (groups)
        TRY(fds__groups_copy(groups, &e->groups, err));
    const fds__deep_params params = {.network = network,
                                     .head = FDS__HEAD_EXPLAIN,
                                     .input = e->shape,
                                     .outputs = (uint32_t)e->outputs,
                                     .batch = STORED_BATCH,
                                     .threads = threads,
                                     .precision = precision,
                                     .use = use};
    TRY(fds__deep_create(&params, &e->net, err));
    return RESERVE(e->u, e->outputs, 1, err);
}

static fds_status create(const char *network, fds__precision precision, size_t players,
                         uint32_t classes, fds_shape shape, const fds_groups *groups, size_t rank,
                         double scale, unsigned threads, fds__deep_use use, fds__explainer **out,
                         fds_error *err) {
    fds__explainer *e;
    TRY(RESERVE(e, 1, 1, err));
    *e = (fds__explainer){
        .players = players, .classes = classes, .shape = shape, .rank = rank, .scale = scale};
    fds_status status = make(e, network, precision, groups, threads, use, err);
    if (status == FDS_OK)
        *out = e;
    else
        fds__explainer_free(e);
    return status;
}

static fds_status copy_factors(fds__explainer *e, const float *factors, fds_error *err) {
    if (!e->rank)
        return FDS_OK;
    TRY(RESERVE(e->own_factors, e->players, e->rank, err));
    memcpy(e->own_factors, factors, e->players * e->rank * sizeof *factors);
    e->factors = e->own_factors;
    return FDS_OK;
}

fds_status learn_explainer_create(const char *network, fds__precision precision, size_t players,
                                  uint32_t classes, fds_shape shape, const fds_groups *groups,
                                  const float *factors, size_t rank, double scale, unsigned threads,
                                  fds__explainer **out, fds_error *err) {
    TRY(create(network, precision, players, classes, shape, groups, rank, scale, threads,
               FDS__DEEP_FROZEN, out, err));
    return copy_factors(*out, factors, err);
}

void fds__explainer_free(fds__explainer *e) {
    if (!e)
        return;
    for (size_t i = 0; e->layers && i < e->layer_count; i++)
        fds__dense_free(e->layers[i]);
    fds__free(e->layers);
    fds__free(e->hidden[0]);
    fds__free(e->hidden[1]);
    fds__free(e->sorted);
    fds__deep_infer_free(e->infer);
    fds__deep_free(e->net);
    fds__safetensors_free(e->file);
    fds_groups_free(e->groups);
    fds__dense_free(e->by_player);
    fds__free(e->own_factors);
    fds__free(e->wide);
    fds__free(e->u);
    fds__free(e);
}

fds__deep *learn_explainer_net(fds__explainer *e) { return e->net; }

/* ---- dense layers ---- */

/* A tensor of the file, or a copy of the net's in *own, which the caller frees. */
static fds_status find_tensor(const fds__explainer *e, size_t i, float **own, const float **out,
                              fds_error *err) {
    const fds__deep_tensor t = fds__deep_tensor_at(e->net, i);
    if (e->file) {
        *out = fds__safetensors_find(e->file, t.name)->values;
        return FDS_OK;
    }
    TRY(RESERVE(*own, t.count, 1, err));
    *out = *own;
    return fds__deep_read(e->net, i, FDS__DEEP_VALUE, *own, err);
}

/* Layers 0 .. hidden-1 are hidden ones, hidden+y is the head of class y: rows of the last tensors. */
static fds_status make_layer(fds__explainer *e, size_t at, fds_error *err) {
    size_t hidden = e->layer_count - e->classes, i = MIN(at, hidden);
    const fds__deep_tensor t = fds__deep_tensor_at(e->net, 2 * i);
    size_t inputs = t.dims[1], rows = at < hidden ? t.dims[0] : e->outputs / e->classes,
           first = at < hidden ? 0 : (at - hidden) * rows;
    OWNED float *own_w = NULL, *own_bias = NULL;
    const float *w, *bias;
    TRY(find_tensor(e, 2 * i, &own_w, &w, err));
    TRY(find_tensor(e, 2 * i + 1, &own_bias, &bias, err));
    return fds__dense_create(inputs, rows, w + first * inputs, bias + first, at < hidden,
                             &e->layers[at], err);
}

static fds_status make_hidden(fds__explainer *e, fds_error *err) {
    size_t hidden = fds__deep_tensor_count(e->net) / 2 - 1,
           width = fds__dense_round(e->outputs / e->classes);
    e->layer_count = hidden + e->classes;
    TRY(RESERVE(e->layers, e->layer_count, 1, err));
    for (size_t i = 0; i < hidden; i++) {
        TRY(make_layer(e, i, err));
        width = MAX(width, fds__dense_width(e->layers[i]));
    }
    width = MAX(width, fds__shape_size(e->shape));
    TRY(RESERVE(e->hidden[0], ROWS, width, err));
    TRY(RESERVE(e->hidden[1], ROWS, width, err));
    return RESERVE(e->sorted, ROWS, width, err);
}

/* All heads, or those of the labels. */
static fds_status make_layers(fds__explainer *e, const uint32_t *labels, size_t count,
                              fds_error *err) {
    if (!e->sorted)
        TRY(make_hidden(e, err));
    size_t hidden = e->layer_count - e->classes;
    for (size_t k = 0; k < (labels ? count : e->classes); k++)
        if (!e->layers[hidden + (labels ? labels[k] : k)])
            TRY(make_layer(e, hidden + (labels ? labels[k] : k), err));
    return FDS_OK;
}

/* Factors as a layer without bias. */
static fds_status make_by_player(fds__explainer *e, fds_error *err) {
    OWNED float *none = NULL;
    if (!e->rank || e->wide)
        return FDS_OK;
    TRY(RESERVE(none, e->players, 1, err));
    if (!e->by_player)
        TRY(fds__dense_create(e->rank, e->players, e->factors, none, false, &e->by_player, err));
    return RESERVE(e->wide, ROWS, fds__dense_width(e->by_player), err);
}

/* ---- answers ---- */

/* Numbers of an answer for one label. */
static size_t width_of(const fds__explainer *e) { return e->is_raw ? e->rank : e->players; }

/* values (width_of) of one class from u, its outputs */
static void spread(const fds__explainer *e, const float *u, float *values) {
    for (size_t i = 0; i < width_of(e); i++) {
        const uint32_t *members;
        size_t g = e->groups ? fds_groups_of(e->groups, i) : i;
        size_t count = e->groups ? fds_groups_members(e->groups, g, &members) : 1;
        values[i] = (float)(e->scale * (double)u[g] / (double)count);
    }
}

/* u (count, row) to the values of inputs of[count] (NULL: 0, 1, ...), which are stride apart */
static void spread_rows(fds__explainer *e, const float *u, size_t row, size_t count,
                        const size_t *of, size_t stride, float *values) {
    if (e->rank && !e->is_raw && count) {
        fds__dense_run(e->by_player, u, row, count, e->wide);
        u = e->wide;
        row = fds__dense_width(e->by_player);
    }
    for (size_t i = 0; i < count; i++)
        spread(e, u + i * row, values + (of ? of[i] : i) * stride);
}

/* The values of the label y of those inputs that have it: from (count, row). */
static void run_head(fds__explainer *e, size_t y, const float *from, size_t row, size_t count,
                     const uint32_t *labels, float *u, float *values) {
    const fds__dense *head = e->layers[e->layer_count - e->classes + y];
    size_t same = 0, of[ROWS];
    for (size_t k = 0; k < count; k++)
        if (labels[k] == y) {
            memcpy(e->sorted + same * row, from + k * row, row * sizeof *from);
            of[same++] = k;
        }
    if (!same) /* the head is made when its label is first asked for */
        return;
    fds__dense_run(head, e->sorted, row, same, u);
    spread_rows(e, u, fds__dense_width(head), same, of, width_of(e), values);
}

/* Up to ROWS inputs: values of the given labels, or of all classes. */
static void run_layers(fds__explainer *e, const float *x, size_t count, const uint32_t *labels,
                       float *values) {
    size_t row = fds__shape_size(e->shape), hidden = e->layer_count - e->classes;
    const float *from = x;
    for (size_t i = 0; i < hidden; i++) {
        float *to = e->hidden[i % 2];
        fds__dense_run(e->layers[i], from, row, count, to);
        row = fds__dense_width(e->layers[i]);
        from = to;
    }
    float *u = e->hidden[hidden % 2];
    for (size_t y = 0; y < e->classes; y++) {
        if (labels) {
            run_head(e, y, from, row, count, labels, u, values);
            continue;
        }
        const fds__dense *head = e->layers[hidden + y];
        fds__dense_run(head, from, row, count, u);
        spread_rows(e, u, fds__dense_width(head), count, NULL, e->classes * width_of(e),
                    values + y * width_of(e));
    }
}

static fds_status run_network(fds__explainer *e, const float *x, size_t count,
                              const uint32_t *labels, float *values, fds_error *err) {
    size_t sample = fds__shape_size(e->shape), each = e->outputs / e->classes;
    if (!e->infer)
        TRY(fds__deep_infer_create(e->net, 1, &e->infer, err));
    for (size_t k = 0; k < count; k++) {
        TRY(fds__deep_infer_run(e->infer, x + k * sample, 1, e->u, err));
        for (size_t y = labels ? labels[k] : 0; y < (labels ? labels[k] + 1 : e->classes); y++) {
            spread_rows(e, e->u + y * each, each, 1, NULL, 0, values);
            values += width_of(e);
        }
    }
    return FDS_OK;
}

static fds_status answer(fds__explainer *e, const float *x, size_t count, const uint32_t *labels,
                         float *values, fds_error *err) {
    size_t sample = fds__shape_size(e->shape), each = (labels ? 1 : e->classes) * width_of(e);
    const fds__deep_params *params = fds__deep_get_params(e->net);
    TRY(make_by_player(e, err));
    if (!is_dense(params->network, params->precision))
        return run_network(e, x, count, labels, values, err);
    TRY(make_layers(e, labels, count, err));
    for (size_t first = 0; first < count; first += ROWS)
        run_layers(e, x + first * sample, MIN(count - first, (size_t)ROWS),
                   labels ? labels + first : NULL, values + first * each);
    return FDS_OK;
}

fds_status fds__explainer_run(fds__explainer *e, const float *x, size_t count,
                              const uint32_t *labels, float *values, fds_error *err) {
    e->is_raw = false;
    return answer(e, x, count, labels, values, err);
}

fds_status fds__explainer_coefficients(fds__explainer *e, const float *x, size_t count,
                                       const uint32_t *labels, float *coefficients,
                                       fds_error *err) {
    assert(e->rank);
    e->is_raw = true;
    return answer(e, x, count, labels, coefficients, err);
}

size_t fds__explainer_rank(const fds__explainer *e) { return e->rank; }

/* ---- file ---- */

/* What an explainer must have in common with its run, as texts of the metadata. */
enum { FORM = 4 };
static const char *const form_keys[FORM] = {"players", "classes", "shape", "outputs"};

static void print_form(size_t players, uint32_t classes, fds_shape shape, size_t outputs,
                       char form[FORM][64]) {
    snprintf(form[0], sizeof *form, "%zu", players);
    snprintf(form[1], sizeof *form, "%u", classes);
    snprintf(form[2], sizeof *form, "%ux%ux%u", shape.channels, shape.height, shape.width);
    snprintf(form[3], sizeof *form, "%zu", outputs);
}

/* weights: copies of the net's; NULL: the file has them */
static fds_status save(const fds__explainer *e, const learn_weights *weights, const char *path,
                       const fds_events *events, fds_error *err) {
    const fds__deep_params *params = fds__deep_get_params(e->net);
    const size_t count = fds__deep_tensor_count(e->net);
    char form[FORM][64], scale[FDS__NUMBER], rank[FDS__NUMBER];
    fds__tensor *tensors;
    TRY(RESERVE(tensors, count + 1, 1, err));
    for (size_t i = 0; i < count; i++) {
        fds__deep_tensor t = fds__deep_tensor_at(e->net, i);
        tensors[i] =
            (fds__tensor){.name = t.name,
                          .rank = t.rank,
                          .values = weights ? weights->values + weights->offsets[i]
                                            : fds__safetensors_find(e->file, t.name)->values};
        memcpy(tensors[i].dims, t.dims, sizeof t.dims);
    }
    tensors[count] =
        (fds__tensor){FACTORS, 2, {(uint32_t)e->players, (uint32_t)e->rank}, (float *)e->factors};
    snprintf(rank, sizeof rank, "%zu", e->rank);
    fds__write_double(e->scale, scale);
    print_form(e->players, e->classes, e->shape, e->outputs, form);
    const fds__meta meta[] = {
        {"format", FORMAT},
        {"network", params->network},
        {"precision", params->precision == FDS__PRECISION_BF16 ? "bf16" : "f32"},
        {"shape", form[2]},
        {"players", form[0]},
        {"classes", form[1]},
        {"outputs", form[3]},
        {"is_by_group", e->groups ? "yes" : "no"},
        {"scale", scale},
        {"rank", rank},
    };
    size_t items = sizeof meta / sizeof *meta;
    fds_status status = fds__safetensors_write(path, tensors, count + (e->rank ? 1 : 0), meta,
                                               items - (e->rank ? 0 : 1), events, err);
    fds__free(tensors);
    return status;
}

fds_status fds__explainer_save(const fds__explainer *e, const char *path, const fds_events *events,
                               fds_error *err) {
    learn_weights weights = {0};
    if (e->file)
        return save(e, NULL, path, events, err);
    fds_status status = learn_weights_take(&weights, e->net, err);
    if (status == FDS_OK)
        status = save(e, &weights, path, events, err);
    learn_weights_free(&weights);
    return status;
}

static fds_status get_meta(const char *path, const fds__safetensors *file, const char *key,
                           const char **value, fds_error *err) {
    *value = fds__safetensors_meta(file, key);
    if (!*value)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: metadata \"%s\" is missing: not an explainer",
                         path, key);
    return FDS_OK;
}

static fds_status read_scale(const char *path, const fds__safetensors *file, double *scale,
                             fds_error *err) {
    const char *text;
    TRY(get_meta(path, file, "scale", &text, err));
    json_t *number = json_loads(text, JSON_DECODE_ANY, NULL); /* a point in every locale */
    *scale = json_number_value(number);
    json_decref(number);
    if (!isfinite(*scale) || !(*scale > 0))
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: metadata \"scale\" is \"%.40s\", not a number above 0", path, text);
    return FDS_OK;
}

/* The number of factors; 0: none. */
static fds_status read_rank(const char *path, const fds__safetensors *file, size_t players,
                            size_t *rank, fds_error *err) {
    const char *text = fds__safetensors_meta(file, "rank");
    char *end = NULL;
    *rank = 0;
    if (!text && fds__safetensors_find(file, FACTORS))
        return fds__fail(err, FDS_ERR_FORMAT, "%s: tensor \"%s\" without metadata \"rank\"", path,
                         FACTORS);
    if (!text)
        return FDS_OK;
    unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '1' || text[0] > '9' || *end || number >= players)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: metadata \"rank\" is \"%.40s\", not a number from 1 to %zu", path,
                         text, players - 1);
    *rank = (size_t)number;
    const uint32_t dims[4] = {(uint32_t)players, (uint32_t)number};
    return fds__safetensors_check(path, file, "an explainer with factors", FACTORS, 2, dims, err);
}

typedef struct {
    const char *network;
    fds__precision precision;
    bool is_by_group;
    size_t rank;
    double scale;
} about;

static fds_status read_about(const char *path, const fds__safetensors *file, size_t players,
                             about *a, fds_error *err) {
    const char *format, *precision, *by_group;
    TRY(get_meta(path, file, "format", &format, err));
    if (strcmp(format, FORMAT) != 0)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: format \"%.40s\" is not \"%s\"", path, format,
                         FORMAT);
    TRY(get_meta(path, file, "network", &a->network, err));
    TRY(get_meta(path, file, "precision", &precision, err));
    TRY(get_meta(path, file, "is_by_group", &by_group, err));
    if (strcmp(precision, "f32") != 0 && strcmp(precision, "bf16") != 0)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: precision \"%.40s\" is neither f32 nor bf16",
                         path, precision);
    /* the weights are f32 in either case, so a processor without bf16 answers in f32 */
    bool is_bf16 = strcmp(precision, "bf16") == 0 && fds__deep_bf16_check(NULL) == FDS_OK;
    a->precision = is_bf16 ? FDS__PRECISION_BF16 : FDS__PRECISION_F32;
    a->is_by_group = strcmp(by_group, "yes") == 0;
    TRY(read_rank(path, file, players, &a->rank, err));
    if (a->rank && a->is_by_group)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: its outputs are groups, and metadata \"rank\" says factors", path);
    return read_scale(path, file, &a->scale, err);
}

/* The file must have been made for what it is now used with. */
static fds_status check_form(const char *path, const fds__safetensors *file, const about *a,
                             size_t players, uint32_t classes, fds_shape shape,
                             const fds_groups *groups, fds_error *err) {
    char wanted[FORM][64];
    if (a->is_by_group && (!groups || fds_groups_players(groups) != players))
        return fds__fail(err, FDS_ERR_SHAPE,
                         "%s: its outputs are groups: the groups of the %zu players "
                         "are needed",
                         path, players);
    size_t each = a->rank ? a->rank : a->is_by_group ? fds_groups_count(groups) : players;
    print_form(players, classes, shape, classes * each, wanted);
    for (size_t i = 0; i < FORM; i++) {
        const char *value;
        TRY(get_meta(path, file, form_keys[i], &value, err));
        if (strcmp(value, wanted[i]) != 0)
            return fds__fail(err, FDS_ERR_SHAPE,
                             "%s: metadata \"%s\" is \"%.40s\", but must be \"%s\"", path,
                             form_keys[i], value, wanted[i]);
    }
    return FDS_OK;
}

static fds_status load(const char *path, const fds__safetensors *file, size_t players,
                       uint32_t classes, fds_shape shape, const fds_groups *groups,
                       unsigned threads, fds__explainer **out, fds_error *err) {
    about a = {0};
    fds__explainer *e;
    fds_error inner;
    TRY(read_about(path, file, players, &a, err));
    TRY(check_form(path, file, &a, players, classes, shape, groups, err));
    fds__deep_use use = is_dense(a.network, a.precision) ? FDS__DEEP_FORM : FDS__DEEP_FROZEN;
    fds_status status =
        create(a.network, a.precision, players, classes, shape, a.is_by_group ? groups : NULL,
               a.rank, a.scale, threads, use, &e, &inner);
    if (status != FDS_OK)
        return fds__fail(err, status == FDS_ERR_USAGE ? FDS_ERR_FORMAT : status, "%s: %s", path,
                         inner.text);
    status = fds__deep_load(e->net, path, file, false, err);
    if (a.rank)
        e->factors = fds__safetensors_find(file, FACTORS)->values;
    if (status == FDS_OK && use != FDS__DEEP_FORM) /* the file does not stay */
        status = copy_factors(e, e->factors, err);
    if (status == FDS_OK)
        *out = e;
    else
        fds__explainer_free(e);
    return status;
}

fds_status fds__explainer_load(const char *path, size_t players, uint32_t classes, fds_shape shape,
                               const fds_groups *groups, unsigned threads, fds__explainer **out,
                               fds_error *err) {
    fds__safetensors *file;
    TRY(fds__safetensors_map(path, &file, err));
    fds_status status = load(path, file, players, classes, shape, groups, threads, out, err);
    if (status == FDS_OK && fds__deep_get_params((*out)->net)->use == FDS__DEEP_FORM)
        (*out)->file = file;
    else
        fds__safetensors_free(file);
    return status;
}
