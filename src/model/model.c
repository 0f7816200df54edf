/* SPDX-License-Identifier: Apache-2.0
 *
 * A trained model and its file: the network's weights under PyTorch's names, and as metadata
 *
 *     format         "pt", as other tools expect
 *     fds.network    the network's text
 *     fds.input      [channels, height, width]
 *     fds.classes    names, in the order of the outputs
 *     fds.mean       by channel, with bytes seen as 0..1; an input is (x - mean) / std
 *     fds.std
 *     fds.target     of a regression: mean and standard deviation of the targets; a prediction is
 *                    mean + std times the output
 *     fds.training   how it was trained, for people
 */
#include "model/model.h"

#include <float.h>
#include <math.h>
#include <string.h>

struct fds_model {
    fds_net *net;
    float *weights;    /* (net->weights), with mean and std behind them */
    float *mean, *std; /* (channels) */
    double target_mean, target_std;
    char **class_names;
    char *training;
    char sha256[65];
};

/* A model of the network, all else still empty. Takes ownership of net. */
static fds_status model_create(fds_net *net, fds_model **out, fds_error *err) {
    size_t channels = net->input.channels, floats = net->weights + 2 * channels;
    fds_model *model = fds__alloc_zero(1, sizeof *model);
    float *weights = fds__alloc_zero(floats, sizeof *weights);
    char **names = fds__alloc_zero(net->classes, sizeof *names);
    if (!model || !weights || !names) {
        fds_net_free(net);
        fds__free(model);
        fds__free(weights);
        fds__free(names);
        return fds__fail_nomem(err, floats * sizeof *weights);
    }
    *model = (fds_model){.net = net,
                         .weights = weights,
                         .mean = weights + net->weights,
                         .std = weights + net->weights + channels,
                         .class_names = names};
    *out = model;
    return FDS_OK;
}

void fds_model_free(fds_model *model) {
    if (!model)
        return;
    for (uint32_t k = 0; k < model->net->classes; k++)
        fds__free(model->class_names[k]);
    fds__free(model->class_names);
    fds_net_free(model->net);
    fds__free(model->weights);
    fds__free(model->training);
    fds__free(model);
}

fds__model_info fds__model_get_info(const fds_model *model) {
    return (fds__model_info){
        .network = model->net->text,
        .shape = model->net->input,
        .classes = model->net->classes,
        .weights = model->net->weights,
        .mean = model->mean,
        .std = model->std,
        .sha256 = model->sha256,
        .is_regression = model->net->is_regression,
        .target_mean = model->target_mean,
        .target_std = model->target_std,
    };
}

const float *fds__model_weights(const fds_model *model) { return model->weights; }
const char *fds_model_network(const fds_model *model) { return model->net->text; }
const char *fds_model_sha256(const fds_model *model) { return model->sha256; }
size_t fds_model_weight_count(const fds_model *model) { return model->net->weights; }
uint32_t fds_model_classes(const fds_model *model) { return model->net->classes; }

const char *fds_model_class_name(const fds_model *model, uint32_t label) {
    return label < model->net->classes ? model->class_names[label] : "?";
}

/* ---- training ---- */

/* The value as text; frees the value. NULL: out of memory. */
static char *take_text(json_t *value) {
    char *text = value ? fds__json_text(value, JSON_COMPACT) : NULL;
    json_decref(value);
    return text;
}

static char *describe_training(const fds_train_params *p, const fds_train_report *report,
                               size_t samples) {
    return take_text(json_pack(
        "{s:s, s:I, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:b, s:f, s:f, s:I, s:I, s:b, "
        "s:f, s:I}",
        "fds", FDS_VERSION, "samples", (json_int_t)samples, "optimizer",
        p->optimizer == FDS_OPTIMIZER_SGD ? "sgd" : "adam", "lr", (double)p->lr, "momentum",
        (double)p->momentum, "beta1", (double)p->beta1, "beta2", (double)p->beta2, "epsilon",
        (double)p->epsilon, "weight_decay", (double)p->weight_decay, "batch", (json_int_t)p->batch,
        "epochs", (json_int_t)p->epochs, "converge", p->converge, "loss_bound",
        (double)p->loss_bound, "min_delta", (double)p->min_delta, "patience",
        (json_int_t)p->patience, "epochs_run", (json_int_t)report->epochs, "converged",
        report->converged, "loss", (double)report->last_loss, "seed", (json_int_t)p->seed));
}

static fds_status train_weights(fds_model *model, const fds_dataset *ds, const uint32_t *index,
                                size_t count, const fds_train_params *params,
                                const fds_events *events, fds_train_report *report,
                                fds_error *err) {
    fds_inputs *inputs;
    fds_lane *lane = NULL;
    OWNED uint32_t *members = NULL;
    TRY(NEW(members, count, err));
    for (size_t i = 0; i < count; i++)
        members[i] = (uint32_t)i;
    TRY(fds_inputs_create(ds, index, count, model->mean, model->std, &inputs, err));
    fds_status status =
        fds__inputs_set_targets(inputs, ds, model->target_mean, model->target_std, err);
    if (status == FDS_OK)
        status = fds_lane_create(model->net, &lane, err);
    if (status == FDS_OK) {
        fds_net_init(model->net, params->seed, model->weights);
        status = fds_lane_train(lane, inputs, members, count, params, model->weights, report,
                                events, err);
    }
    fds_lane_free(lane);
    fds_inputs_free(inputs);
    return status;
}

/* Copies the name of a class. The model's file can hold UTF-8 only. */
static fds_status take_name(const fds_dataset *ds, uint32_t label, char **name, fds_error *err) {
    const char *text = fds_dataset_class_name(ds, label);
    if (!fds__is_utf8(text))
        return fds__fail(err, FDS_ERR_FORMAT, "%s: the name of class %u is not UTF-8 text",
                         ds->source, label);
    *name = fds__strdup(text);
    return *name ? FDS_OK : fds__fail_nomem(err, strlen(text) + 1);
}

/* From the samples, unless it is given. */
static fds_status set_scale(fds_model *model, const fds_dataset *ds, const uint32_t *index,
                            size_t count, const fds__scale *scale, fds_error *err) {
    size_t size = ds->shape.channels * sizeof *model->mean;
    if (scale) {
        memcpy(model->mean, scale->mean, size);
        memcpy(model->std, scale->std, size);
        model->target_mean = ds->targets ? scale->target_mean : 0;
        model->target_std = ds->targets ? scale->target_std : 0;
        return FDS_OK;
    }
    if (ds->targets)
        fds__dataset_target_stats(ds, index, count, &model->target_mean, &model->target_std);
    return fds__inputs_scale(ds, index, count, fds_net_text(model->net), model->mean, model->std,
                             err);
}

/* Normalisation and names from the data, then the weights: a copy, or, where they are NULL,
 * trained, which fills report. */
static fds_status fill_model(fds_model *model, const fds_dataset *ds, const uint32_t *index,
                             size_t count, const fds_train_params *params, const fds__scale *scale,
                             const float *weights, fds_train_report *report,
                             const fds_events *events, fds_error *err) {
    size_t size = model->net->weights * sizeof(float);
    TRY(set_scale(model, ds, index, count, scale, err));
    for (uint32_t k = 0; k < ds->classes; k++)
        TRY(take_name(ds, k, &model->class_names[k], err));
    if (weights)
        memcpy(model->weights, weights, size);
    else
        TRY(train_weights(model, ds, index, count, params, events, report, err));
    fds_sha256_hex(model->weights, size, model->sha256);
    model->training = describe_training(params, report, count);
    return model->training ? FDS_OK : fds__fail_nomem(err, 1);
}

static fds_status make_model(const fds_dataset *ds, const uint32_t *index, size_t count,
                             const char *network, const fds_train_params *params,
                             const fds__scale *scale, const float *weights,
                             fds_train_report *report, const fds_events *events, fds_model **out,
                             fds_error *err) {
    fds_net *net;
    fds_model *model;
    TRY(fds_train_params_check(params, err));
    if (!count)
        return fds__fail(err, FDS_ERR_USAGE, "a model needs at least one sample to train on");
    TRY(fds__net_for(network, ds, &net, err));
    TRY(model_create(net, &model, err));
    fds_status status =
        fill_model(model, ds, index, count, params, scale, weights, report, events, err);
    if (status != FDS_OK)
        fds_model_free(model);
    else
        *out = model;
    return status;
}

fds_status fds_model_train(const fds_dataset *ds, const uint32_t *index, size_t count,
                           const char *network, const fds_train_params *params,
                           const fds_events *events, fds_model **out, fds_train_report *report,
                           fds_error *err) {
    fds_train_report own;
    return make_model(ds, index, count, network, params, NULL, NULL, report ? report : &own, events,
                      out, err);
}

fds_status fds__model_create(const fds_dataset *ds, const uint32_t *index, size_t count,
                             const char *network, const fds_train_params *params,
                             const fds__scale *scale, const float *weights,
                             const fds_train_report *report, fds_model **out, fds_error *err) {
    fds_train_report done = *report;
    return make_model(ds, index, count, network, params, scale, weights, &done, NULL, out, err);
}

/* ---- prediction ---- */

enum { CHUNK = 256 }; /* samples per job */

typedef struct {
    const fds_model *model;
    const fds_dataset *ds;
    const uint32_t *index;
    size_t count;
    fds_lane **lanes; /* (workers) */
    float *probs;
} prediction;

static fds_status predict_chunk(void *context, size_t job, unsigned worker, fds_error *err) {
    prediction *p = context;
    size_t first = job * CHUNK, count = MIN(p->count - first, (size_t)CHUNK);
    uint32_t index[CHUNK];
    for (size_t i = 0; i < count; i++)
        index[i] = p->index ? p->index[first + i] : (uint32_t)(first + i);
    if (!p->lanes[worker])
        TRY(fds_lane_create(p->model->net, &p->lanes[worker], err));
    fds_inputs *inputs;
    TRY(fds_inputs_create(p->ds, index, count, p->model->mean, p->model->std, &inputs, err));
    fds_status status = fds_lane_predict(p->lanes[worker], inputs, 0, count, p->model->weights,
                                         p->probs + first * p->model->net->classes, err);
    fds_inputs_free(inputs);
    for (size_t i = first; p->model->net->is_regression && i < first + count; i++)
        p->probs[i] = (float)(p->model->target_mean + p->model->target_std * (double)p->probs[i]);
    return status;
}

fds_status fds_model_predict(const fds_model *model, const fds_dataset *ds, const uint32_t *index,
                             size_t count, unsigned threads, float *probs, const fds_events *events,
                             fds_error *err) {
    fds_shape a = model->net->input, b = ds->shape;
    if (!fds__shape_equal(a, b))
        return fds__fail(err, FDS_ERR_SHAPE, "the model takes samples of %ux%ux%u, %s has %ux%ux%u",
                         a.channels, a.height, a.width, ds->source, b.channels, b.height, b.width);
    size_t jobs = (count + CHUNK - 1) / CHUNK;
    unsigned workers = fds__pool_workers(threads, jobs);
    prediction p = {model, ds, index, count, NULL, probs};
    TRY(NEW(p.lanes, workers, err));
    fds_status status = fds__pool_run(workers, jobs, predict_chunk, &p, "evaluate",
                                      "blocks of 256 samples", events, err);
    for (unsigned i = 0; i < workers; i++)
        fds_lane_free(p.lanes[i]);
    fds__free(p.lanes);
    return status;
}

/* The mean squared error, and in the place of accuracy R2, the share of the targets' variance that
 * the predictions explain. */
static void score_regression(const fds_dataset *ds, const uint32_t *index, size_t count,
                             const float *predictions, double *loss, double *accuracy) {
    double mean, std, error = 0;
    fds__dataset_target_stats(ds, index, count, &mean, &std);
    for (size_t i = 0; i < count; i++) {
        double away = (double)predictions[i] - ds->targets[index ? index[i] : i];
        error += away * away / (double)count;
    }
    if (loss)
        *loss = error;
    if (accuracy)
        *accuracy = 1 - error / (std * std);
}

fds_status fds_model_score(const fds_model *model, const fds_dataset *ds, const uint32_t *index,
                           size_t count, unsigned threads, double *loss, double *accuracy,
                           const fds_events *events, fds_error *err) {
    const uint32_t classes = model->net->classes;
    if (!count)
        return fds__fail(err, FDS_ERR_USAGE, "no samples to score");
    if (model->net->is_regression != (ds->targets != NULL))
        return fds__fail(err, FDS_ERR_SHAPE, "the model predicts %s, but %s has %s",
                         ds->targets ? "classes" : "numbers", ds->source,
                         ds->targets ? "targets" : "labels");
    if (ds->classes > classes)
        return fds__fail(err, FDS_ERR_SHAPE, "the model has %u classes, %s has %u", classes,
                         ds->source, ds->classes);
    OWNED float *probs = fds__alloc_zero(count, classes * sizeof *probs);
    if (!probs)
        return fds__fail_nomem(err, count * classes * sizeof *probs);
    TRY(fds_model_predict(model, ds, index, count, threads, probs, events, err));
    double losses = 0;
    if (model->net->is_regression) {
        score_regression(ds, index, count, probs, loss, accuracy);
        return FDS_OK;
    }
    size_t correct = 0;
    for (size_t i = 0; i < count; i++) {
        const float *p = probs + i * classes;
        uint32_t label = ds->labels[index ? index[i] : i];
        correct += fds__argmax_f32(p, classes) == label;
        losses -= log(MAX((double)p[label], (double)FLT_MIN));
    }
    if (loss)
        *loss = losses / (double)count;
    if (accuracy)
        *accuracy = (double)correct / (double)count;
    return FDS_OK;
}

/* ---- file ---- */

static json_t *json_floats(const float *values, size_t count) {
    json_t *list = json_array();
    bool is_whole = true;
    for (size_t i = 0; is_whole && i < count; i++)
        is_whole = fds__json_append(list, json_real((double)values[i]));
    return fds__json_keep_if(list, is_whole);
}

static json_t *json_names(char *const *names, size_t count) {
    json_t *list = json_array();
    bool is_whole = true;
    for (size_t i = 0; is_whole && i < count; i++)
        is_whole = fds__json_append(list, json_string(names[i]));
    return fds__json_keep_if(list, is_whole);
}

fds_status fds_model_save(const fds_model *model, const char *path, fds_error *err) {
    const fds_net *net = model->net;
    fds_shape in = net->input;
    fds__tensor tensors[FDS__MAX_TENSORS];
    for (uint32_t i = 0; i < net->tensor_count; i++) {
        const fds_tensor_info *t = &net->tensors[i];
        tensors[i] =
            (fds__tensor){.name = t->name, .rank = t->rank, .values = model->weights + t->offset};
        memcpy(tensors[i].dims, t->dims, sizeof t->dims);
    }
    OWNED char *input =
        take_text(json_pack("[i, i, i]", (int)in.channels, (int)in.height, (int)in.width));
    OWNED char *classes = take_text(json_names(model->class_names, net->classes));
    OWNED char *mean = take_text(json_floats(model->mean, in.channels));
    OWNED char *std = take_text(json_floats(model->std, in.channels));
    OWNED char *target = net->is_regression
                             ? take_text(json_pack("[f, f]", model->target_mean, model->target_std))
                             : NULL;
    fds__meta meta[] = {
        {"format", "pt"},
        {"fds.network", net->text},
        {"fds.input", input},
        {"fds.classes", classes},
        {"fds.mean", mean},
        {"fds.std", std},
        {"fds.training", model->training},
        {"fds.target", target},
    };
    if (!input || !classes || !mean || !std || (net->is_regression && !target))
        return fds__fail(err, FDS_ERR_NOMEM, "%s: out of memory for the file's metadata", path);
    return fds__safetensors_write(path, tensors, net->tensor_count, meta,
                                  sizeof meta / sizeof *meta - !net->is_regression, NULL, err);
}

/* The JSON array under a metadata key; the caller frees it (json_decref). */
static fds_status meta_array(const char *path, const fds__safetensors *file, const char *key,
                             json_t **array, fds_error *err) {
    const char *text = fds__safetensors_meta(file, key);
    if (!text)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: metadata \"%s\" is missing: not a model of fds",
                         path, key);
    *array = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_array(*array)) {
        json_decref(*array);
        return fds__fail(err, FDS_ERR_FORMAT, "%s: metadata \"%s\" must be a list", path, key);
    }
    return FDS_OK;
}

static fds_status meta_floats(const char *path, const fds__safetensors *file, const char *key,
                              float *values, size_t count, double above, fds_error *err) {
    json_t *array;
    TRY(meta_array(path, file, key, &array, err));
    fds_status status = FDS_OK;
    if (json_array_size(array) != count)
        status =
            fds__fail(err, FDS_ERR_FORMAT, "%s: metadata \"%s\" must have %zu numbers, not %zu",
                      path, key, count, json_array_size(array));
    for (size_t i = 0; status == FDS_OK && i < count; i++) {
        json_t *item = json_array_get(array, i);
        values[i] = (float)json_number_value(item);
        if (!json_is_number(item) || !isfinite(values[i]) || !((double)values[i] > above))
            status = fds__fail(err, FDS_ERR_FORMAT, "%s: metadata \"%s\": bad number at %zu", path,
                               key, i);
    }
    json_decref(array);
    return status;
}

static fds_status meta_target(const char *path, const fds__safetensors *file, fds_model *model,
                              fds_error *err) {
    json_t *array;
    TRY(meta_array(path, file, "fds.target", &array, err));
    model->target_mean = json_number_value(json_array_get(array, 0));
    model->target_std = json_number_value(json_array_get(array, 1));
    bool is_right = json_array_size(array) == 2 && json_is_number(json_array_get(array, 0)) &&
                    isfinite(model->target_mean) && isfinite(model->target_std) &&
                    model->target_std > 0;
    json_decref(array);
    return is_right ? FDS_OK
                    : fds__fail(err, FDS_ERR_FORMAT,
                                "%s: metadata \"fds.target\" must be a mean and a standard "
                                "deviation above 0",
                                path);
}

static fds_status meta_shape(const char *path, const fds__safetensors *file, fds_shape *shape,
                             fds_error *err) {
    float dims[3];
    TRY(meta_floats(path, file, "fds.input", dims, 3, 0, err));
    for (int i = 0; i < 3; i++)
        if (dims[i] > 65535 || dims[i] != floorf(dims[i]))
            return fds__fail(err, FDS_ERR_FORMAT, "%s: metadata \"fds.input\": bad size %g", path,
                             (double)dims[i]);
    *shape = (fds_shape){(uint32_t)dims[0], (uint32_t)dims[1], (uint32_t)dims[2]};
    return FDS_OK;
}

static bool has_tensor(const fds_net *net, const char *name) {
    for (uint32_t i = 0; i < net->tensor_count; i++)
        if (strcmp(net->tensors[i].name, name) == 0)
            return true;
    return false;
}

/* The file has every tensor of the network, in its shape and finite, and no other. */
static fds_status check_tensors(const char *path, const fds_net *net, const fds__safetensors *file,
                                fds_error *err) {
    for (uint32_t i = 0; i < net->tensor_count; i++) {
        const fds_tensor_info *t = &net->tensors[i];
        TRY(fds__safetensors_check(path, file, net->text, t->name, t->rank, t->dims, err));
    }
    for (size_t i = 0; i < fds__safetensors_count(file); i++) {
        const char *name = fds__safetensors_tensor(file, i)->name;
        if (!has_tensor(net, name))
            return fds__fail(err, FDS_ERR_FORMAT, "%s: tensor \"%.100s\" does not belong to %s",
                             path, name, net->text);
    }
    return FDS_OK;
}

/* The network that the metadata describes. Fails unless the file has exactly its tensors: a small
 * file cannot make the caller allocate memory for a large network. */
static fds_status load_net(const char *path, const fds__safetensors *file, size_t classes,
                           fds_net **net, fds_error *err) {
    const char *network = fds__safetensors_meta(file, "fds.network");
    fds_shape shape;
    fds_error detail = {0};
    if (!network)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: metadata \"fds.network\" is missing: not a model of fds", path);
    TRY(meta_shape(path, file, &shape, err));
    uint32_t outputs = classes > UINT32_MAX ? 0 : (uint32_t)classes;
    bool is_regression = fds__safetensors_meta(file, "fds.target");
    fds_status status = fds__net_create(network, shape, outputs, is_regression, net, &detail);
    if (status != FDS_OK)
        return fds__fail(err, status == FDS_ERR_NOMEM ? status : FDS_ERR_FORMAT, "%s: %s", path,
                         detail.text);
    status = check_tensors(path, *net, file, err);
    if (status != FDS_OK)
        fds_net_free(*net);
    return status;
}

/* All but the network, whose tensors the file has. */
static fds_status fill_from_file(const char *path, const fds__safetensors *file,
                                 const json_t *names, fds_model *model, fds_error *err) {
    const fds_net *net = model->net;
    for (uint32_t k = 0; k < net->classes; k++) {
        const char *name = json_string_value(json_array_get(names, k));
        if (!name)
            return fds__fail(err, FDS_ERR_FORMAT,
                             "%s: metadata \"fds.classes\": name %u must be a text", path, k);
        if (!(model->class_names[k] = fds__strdup(name)))
            return fds__fail_nomem(err, strlen(name) + 1);
    }
    TRY(meta_floats(path, file, "fds.mean", model->mean, net->input.channels, -INFINITY, err));
    TRY(meta_floats(path, file, "fds.std", model->std, net->input.channels, 0, err));
    if (net->is_regression)
        TRY(meta_target(path, file, model, err));
    for (uint32_t i = 0; i < net->tensor_count; i++)
        memcpy(model->weights + net->tensors[i].offset,
               fds__safetensors_find(file, net->tensors[i].name)->values,
               net->tensors[i].count * sizeof(float));
    fds_sha256_hex(model->weights, net->weights * sizeof(float), model->sha256);
    const char *training = fds__safetensors_meta(file, "fds.training");
    model->training = fds__strdup(training ? training : "{}");
    return model->training ? FDS_OK : fds__fail_nomem(err, 3);
}

static fds_status load(const char *path, const fds__safetensors *file, fds_model **out,
                       fds_error *err) {
    json_t *names;
    fds_net *net;
    fds_model *model = NULL;
    TRY(meta_array(path, file, "fds.classes", &names, err));
    fds_status status = load_net(path, file, json_array_size(names), &net, err);
    if (status == FDS_OK)
        status = model_create(net, &model, err);
    if (status == FDS_OK)
        status = fill_from_file(path, file, names, model, err);
    json_decref(names);
    if (status == FDS_OK)
        *out = model;
    else
        fds_model_free(model);
    return status;
}

fds_status fds__model_parse(const char *path, uint8_t *data, size_t size, fds_model **out,
                            fds_error *err) {
    fds__safetensors *file;
    TRY(fds__safetensors_parse(path, data, size, &file, err));
    fds_status status = load(path, file, out, err);
    fds__safetensors_free(file);
    return status;
}

fds_status fds_model_load(const char *path, fds_model **out, fds_error *err) {
    fds__safetensors *file;
    TRY(fds__safetensors_read(path, &file, err));
    fds_status status = load(path, file, out, err);
    fds__safetensors_free(file);
    return status;
}
