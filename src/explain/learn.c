/* SPDX-License-Identifier: Apache-2.0
 *
 * Trains an explainer: epochs over the training inputs, in a random order, in full mini-batches
 * (the rest of an epoch is left out); Adam; after each epoch the validation loss, which decides on
 * the best epoch and on stopping early. The explainer has the weights and running statistics of the
 * best epoch.
 *
 * The learning rate rises from 0 over the first steps and then falls along a cosine to 0.
 *
 * Warming up, an option, comes first: the same network with a classifier's head learns the labels
 * of the inputs, and the explainer starts from its features.
 *
 * All random numbers are functions of (seed, epoch, step); the state at the end of an epoch is all
 * that a checkpoint needs.
 */
#include "explain/learn.h"

#include <math.h>
#include <string.h>

#define CHECKPOINT "checkpoint.safetensors"
#define STAGE "explainer"
#define RISING 0.05 /* share of the steps during which the learning rate rises */
#define MAX_WEIGHTS_FILE ((size_t)8 << 30)
enum { INFER_BATCH = 64 };
enum { SAVE_TIMES = 20 }; /* a checkpoint takes at most one part in 20 of the time */

double learn_checkpoint_s = 2;

typedef struct {
    const fds__training *training;
    const fds__explainer_params *params;
    const fds_events *events;
    char path[FDS__PATH_MAX];  /* of the checkpoint */
    fds__text text;            /* of learn_describe */
    fds__safetensors *weights; /* to start from, or NULL */
    uint64_t weights_checksum;
    size_t train;          /* training inputs */
    uint32_t batch, steps; /* steps: of an epoch */
    learn_objective objective;
    learn_validation validation;
    uint32_t *order;     /* (train) */
    float *u, *gradient; /* of a step */
    /* the stage: warming up, or the explainer */
    bool is_warm_up;
    uint32_t epoch; /* completed */
    fds__deep *net;
    fds__deep_infer *infer;
    learn_weights best;
    uint32_t best_epoch;
    fds__metric *metrics;            /* (params->epochs) */
    double start_s, saved_s, save_s; /* begin; end and length of the last checkpoint */
    bool is_saved;                   /* the checkpoint has this epoch */
} learner;

/* ---- stages ---- */

static fds__deep_params net_params(const learner *l, bool is_warm_up) {
    size_t outputs = is_warm_up ? l->training->classes : l->objective.outputs;
    fds__deep_params params = fds__explainer_net(l->params, l->training->shape, outputs, l->batch);
    params.head = is_warm_up ? FDS__HEAD_CLASSIFY : FDS__HEAD_EXPLAIN;
    return params;
}

static void stage_free(learner *l) {
    fds__deep_infer_free(l->infer);
    fds__deep_free(l->net);
    learn_weights_free(&l->best);
    l->infer = NULL;
    l->net = NULL;
}

/* A stage's new network, with the memory that it needs. */
static fds_status stage_create(learner *l, bool is_warm_up, fds_error *err) {
    fds__deep_params params = net_params(l, is_warm_up);
    stage_free(l);
    l->is_warm_up = is_warm_up;
    l->epoch = l->best_epoch = 0;
    TRY(fds__deep_create(&params, &l->net, err));
    if (is_warm_up)
        return FDS_OK;
    TRY(learn_weights_take(&l->best, l->net, err));
    return fds__deep_infer_create(l->net, INFER_BATCH, &l->infer, err);
}

static fds_status load_features(learner *l, fds_error *err) {
    return l->weights ? fds__deep_load(l->net, l->params->weights, l->weights, true, err) : FDS_OK;
}

/* The bias of the last layer, whose weights are 0: the mean of the targets. */
static fds_status set_bias(learner *l, fds_error *err) {
    for (size_t i = 0; i < fds__deep_tensor_count(l->net); i++)
        if (strcmp(fds__deep_tensor_at(l->net, i).name, "head.fc.bias") == 0)
            return fds__deep_write(l->net, i, FDS__DEEP_VALUE, l->objective.start, err);
    return fds__fail(err, FDS_ERR_UNSUPPORTED, "network %s has no layer head.fc",
                     l->params->network);
}

/* The explainer's stage; features come from warming up, if that came before. */
static fds_status begin_explainer(learner *l, fds_error *err) {
    learn_weights features = {0};
    fds_status status = FDS_OK;
    bool was_warmed_up = l->net != NULL;
    if (was_warmed_up) /* one network at a time: large ones take gigabytes */
        status = learn_weights_take(&features, l->net, err);
    if (status == FDS_OK)
        status = stage_create(l, false, err);
    if (status == FDS_OK)
        status = was_warmed_up ? learn_weights_give(&features, l->net, err) : load_features(l, err);
    if (status == FDS_OK)
        status = set_bias(l, err);
    learn_weights_free(&features);
    return status;
}

static fds_status begin(learner *l, fds_error *err) {
    stage_free(l);
    if (!l->params->warm_up)
        return begin_explainer(l, err);
    TRY(stage_create(l, true, err));
    return load_features(l, err);
}

/* ---- checkpoints ---- */

static void find_best(learner *l) {
    l->best_epoch = 0;
    for (uint32_t i = 0; i < l->epoch; i++)
        if (!l->best_epoch ||
            l->metrics[i].validation_loss < l->metrics[l->best_epoch - 1].validation_loss)
            l->best_epoch = i + 1;
}

static fds_status take_checkpoint(learner *l, const learn_checkpoint *c, fds_error *err) {
    if (c->epoch > (c->is_warm_up ? LEARN_WARM_UP : l->params->epochs))
        return fds__fail(err, FDS_ERR_FORMAT, "%s: epoch %u is beyond the last one", l->path,
                         c->epoch);
    TRY(stage_create(l, c->is_warm_up, err));
    TRY(learn_checkpoint_restore(l->path, c, l->net, c->is_warm_up ? NULL : &l->best, err));
    l->epoch = c->epoch;
    l->is_saved = true;
    if (c->is_warm_up)
        return FDS_OK;
    memcpy(l->metrics, c->metrics, c->epoch * sizeof *l->metrics);
    find_best(l);
    return FDS_OK;
}

/* Continues from a checkpoint, or begins. Reports a checkpoint that is damaged or of another training
 * and ignores it; fails where a checkpoint cannot be read for lack of memory or by a disk error. */
static fds_status resume(learner *l, fds_error *err) {
    learn_checkpoint c;
    fds_error why = {0};
    fds_status status = learn_checkpoint_read(l->path, l->text.data, &c, &why);
    if (status == FDS_OK) {
        status = take_checkpoint(l, &c, &why);
        learn_checkpoint_free(&c);
    }
    if (status == FDS_OK)
        return FDS_OK;
    if (status == FDS_ERR_IO || status == FDS_ERR_NOMEM)
        return fds__fail(err, status, "%s", why.text);
    if (status != FDS_ERR_NOT_FOUND)
        fds__log(l->events, FDS_LOG_WARNING,
                 "%s; the explainer's training starts from the beginning", why.text);
    return begin(l, err);
}

static fds_status save(learner *l, fds_error *err) {
    learn_state state = {.text = l->text.data,
                         .is_warm_up = l->is_warm_up,
                         .epoch = l->epoch,
                         .net = l->net,
                         .best = &l->best,
                         .metrics = l->metrics};
    if (l->is_saved)
        return FDS_OK;
    double start_s = fds__now_s();
    TRY(learn_checkpoint_write(l->path, &state, l->events, err));
    l->saved_s = fds__now_s();
    l->save_s = l->saved_s - start_s;
    l->is_saved = true;
    return FDS_OK;
}

static fds_status save_if_due(learner *l, fds_error *err) {
    double due_s = learn_checkpoint_s > 0 ? fmax(learn_checkpoint_s, SAVE_TIMES * l->save_s) : 0;
    return fds__now_s() - l->saved_s >= due_s ? save(l, err) : FDS_OK;
}

fds_status fds__learn_forget(const char *dir, fds_error *err) {
    char path[FDS__PATH_MAX];
    TRY(fds__path_join(path, sizeof path, dir, CHECKPOINT, err));
    return fds__path_exists(path) ? fds__file_remove(path, err) : FDS_OK;
}

/* ---- epochs ---- */

static uint32_t stage_epochs(const learner *l) {
    return l->is_warm_up ? LEARN_WARM_UP : l->params->epochs;
}

static float rate(const learner *l, uint64_t step) {
    double total = (double)stage_epochs(l) * l->steps, rising = ceil(RISING * total);
    double at = (double)step;
    if (at < rising)
        return (float)(l->params->lr * (at + 1) / rising);
    return (float)(l->params->lr * 0.5 * (1 + cos(acos(-1) * (at - rising) / (total - rising))));
}

static fds_status make_step(learner *l, uint32_t step, float lr, double *loss, fds_error *err) {
    const fds__training *training = l->training;
    const uint32_t *inputs = l->order + (size_t)step * l->batch;
    TRY(fds__deep_forward(l->net, training->x, inputs, l->u, err));
    if (l->is_warm_up)
        *loss = learn_cross_entropy(training, inputs, l->batch, l->u, l->gradient);
    else
        TRY(learn_objective_apply(&l->objective, inputs, l->epoch, step, l->u, loss, l->gradient,
                                  err));
    TRY(fds__deep_backward(l->net, l->gradient, err));
    fds__adam adam = {.lr = lr, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f};
    return fds__deep_step(l->net, &adam, err);
}

/* Steps of all stages. */
static uint64_t steps_in_all(const learner *l) {
    uint64_t warm_up = l->params->warm_up ? LEARN_WARM_UP : 0;
    return (warm_up + l->params->epochs) * l->steps;
}

static fds_status report_step(const learner *l, uint32_t step, fds_error *err) {
    uint64_t before = l->params->warm_up && !l->is_warm_up ? LEARN_WARM_UP : 0;
    return fds__report(l->events, STAGE, "steps", (before + l->epoch) * l->steps + step,
                       steps_in_all(l), l->start_s, err);
}

/* One epoch; sets the number, loss and last learning rate of *metric. */
static fds_status make_epoch(learner *l, fds__metric *metric, fds_error *err) {
    fds_rng rng = fds_rng_make(l->params->seed, FDS__PURPOSE_TRAINING, l->epoch, l->is_warm_up);
    double sum = 0, loss;
    for (size_t i = 0; i < l->train; i++)
        l->order[i] = (uint32_t)i;
    fds_rng_shuffle(&rng, l->order, l->train);
    *metric = (fds__metric){.epoch = l->epoch + 1};
    for (uint32_t step = 0; step < l->steps; step++) {
        metric->lr = rate(l, (uint64_t)l->epoch * l->steps + step);
        TRY(report_step(l, step, err));
        TRY(make_step(l, step, metric->lr, &loss, err));
        sum += loss;
    }
    metric->loss = sum / l->steps;
    l->epoch++;
    l->is_saved = false;
    return FDS_OK;
}

static fds_status warm_up(learner *l, fds_error *err) {
    fds__metric unused;
    while (l->epoch < LEARN_WARM_UP) {
        TRY(make_epoch(l, &unused, err));
        TRY(save_if_due(l, err));
    }
    return FDS_OK;
}

static bool is_finished(const learner *l) {
    uint32_t patience = l->params->patience;
    return l->epoch == l->params->epochs || (patience && l->epoch - l->best_epoch >= patience);
}

static fds_status explain(learner *l, fds_error *err) {
    while (!is_finished(l)) {
        fds__metric *metric = &l->metrics[l->epoch];
        TRY(make_epoch(l, metric, err));
        TRY(fds__deep_infer_update(l->infer, l->net, err));
        TRY(learn_validation_loss(&l->validation, &l->objective, l->infer, &metric->validation_loss,
                                  err));
        find_best(l);
        if (l->best_epoch == l->epoch)
            TRY(learn_weights_take(&l->best, l->net, err));
        TRY(save_if_due(l, err));
    }
    return fds__now_s() - l->start_s >= learn_checkpoint_s ? save(l, err) : FDS_OK;
}

/* ---- the whole ---- */

static fds_status read_weights(learner *l, fds_error *err) {
    const char *path = l->params->weights;
    uint8_t *data;
    size_t size;
    if (!path)
        return FDS_OK;
    TRY(fds__file_read(path, MAX_WEIGHTS_FILE, &data, &size, err));
    l->weights_checksum = fds_checksum(data, size);
    return fds__safetensors_parse(path, data, size, &l->weights, err);
}

static fds_status prepare(learner *l, const char *dir, fds_error *err) {
    const fds__training *training = l->training;
    assert(training->validation && training->validation < training->inputs);
    assert(training->targets || l->params->objective == FDS__OBJECTIVE_PAPER);
    assert(!l->params->is_by_group || training->groups);
    TRY(fds__path_join(l->path, sizeof l->path, dir, CHECKPOINT, err));
    TRY(fds__out_sweep(l->path, err));
    l->start_s = l->saved_s = fds__now_s();
    l->train = training->inputs - training->validation;
    l->batch = (uint32_t)MIN(l->train, l->params->batch);
    l->steps = (uint32_t)(l->train / l->batch);
    TRY(learn_objective_init(&l->objective, training, l->params, l->batch, err));
    fds__deep_params params = net_params(l, false);
    TRY(fds__deep_check(&params, NULL, err));
    TRY(learn_validation_init(&l->validation, training, err));
    TRY(read_weights(l, err));
    size_t outputs = MAX(l->objective.outputs, training->classes);
    TRY(RESERVE(l->order, l->train, 1, err));
    TRY(RESERVE(l->u, l->batch, outputs, err));
    TRY(RESERVE(l->gradient, l->batch, outputs, err));
    TRY(RESERVE(l->metrics, l->params->epochs, 1, err));
    return learn_describe(training, l->params, l->weights_checksum,
                          learn_validation_checksum(&l->validation), &l->text, err);
}

/* The best epoch's network, for answers. */
static fds_status make_explainer(const learner *l, fds__explainer **out, fds_error *err) {
    const fds__training *training = l->training;
    TRY(learn_explainer_create(l->params->network, l->params->precision, training->players,
                               training->classes, training->shape,
                               l->params->is_by_group ? training->groups : NULL, training->factors,
                               training->rank, l->objective.scale, l->params->threads, out, err));
    return learn_weights_give(&l->best, learn_explainer_net(*out), err);
}

static fds_status learn(learner *l, const char *dir, fds__explainer **out, fds_error *err) {
    TRY(prepare(l, dir, err));
    TRY(resume(l, err));
    if (l->is_warm_up) {
        TRY(warm_up(l, err));
        TRY(begin_explainer(l, err));
    }
    TRY(explain(l, err));
    uint64_t all = steps_in_all(l); /* also after an early stop: nothing is left to do */
    TRY(fds__report(l->events, STAGE, "steps", all, all, l->start_s, err));
    TRY(learn_curves_write(dir, l->metrics, l->epoch, l->best_epoch, err));
    return make_explainer(l, out, err);
}

static void learner_free(learner *l) {
    stage_free(l);
    learn_objective_free(&l->objective);
    learn_validation_free(&l->validation);
    fds__safetensors_free(l->weights);
    fds__free(l->text.data);
    fds__free(l->order);
    fds__free(l->u);
    fds__free(l->gradient);
    fds__free(l->metrics);
}

fds_status fds__learn(const fds__training *training, const fds__explainer_params *params,
                      const char *dir, const fds_events *events, fds__explainer **out,
                      fds__fit_report *report, fds_error *err) {
    learner l = {.training = training, .params = params, .events = events};
    fds__blas_begin();
    fds_status status = learn(&l, dir, out, err);
    fds__blas_end();
    if (status == FDS_OK) {
        report->epochs = l.epoch;
        report->best_epoch = l.best_epoch;
        report->loss = l.metrics[l.best_epoch - 1].validation_loss;
    }
    learner_free(&l);
    return status;
}
