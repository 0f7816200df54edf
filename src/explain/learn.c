/* SPDX-License-Identifier: Apache-2.0
 *
 * Trains an explainer: epochs over the inputs that are learnt from, in an order drawn for each, in
 * full mini-batches (what is left over has its turn in another epoch's order); Adam; after each
 * epoch the loss on what was kept out, which decides on the best epoch and on stopping early. The
 * explainer has the weights and running statistics of the best epoch.
 *
 * The learning rate rises from 0 over the first steps and then falls along a cosine to 0.
 *
 * Warming up, where it is asked for, comes first: the same network with a classifier's head learns
 * the labels of the inputs, and its features are where the explainer starts.
 *
 * Everything random is a function of (seed, epoch, step); the state at the end of an epoch is all
 * that a checkpoint needs.
 */
#include "explain/learn.h"

#include <math.h>
#include <string.h>

#define CHECKPOINT "checkpoint.safetensors"
#define STAGE "explainer"
#define RISING 0.05 /* share of the steps in which the learning rate rises */
#define MAX_WEIGHTS_FILE ((size_t)8 << 30)
enum { INFER_BATCH = 64 };
enum { SAVE_TIMES = 20 }; /* training between two checkpoints, by the time that one takes */

double learn_checkpoint_s = 2;

typedef struct {
    const fds_lesson *lesson;
    const fds_explainer_params *params;
    const fds_events *events;
    char path[FDS_PATH_MAX];  /* of the checkpoint */
    fds_text text;            /* of learn_describe */
    fds_safetensors *weights; /* to start from, or NULL */
    uint64_t weights_checksum;
    size_t train;          /* inputs to learn from */
    uint32_t batch, steps; /* steps: of an epoch */
    learn_objective *objective;
    learn_held *held;
    uint32_t *order;         /* (train) */
    float *x, *u, *gradient; /* of a step */
    /* the stage */
    bool is_warm_up;
    uint32_t epoch; /* made so far */
    fds_deep *net;
    fds_deep_infer *infer;
    learn_weights best;
    uint32_t best_epoch;
    fds_metric *metrics;             /* (params->epochs), of the first epoch */
    double start_s, saved_s, save_s; /* begun; last checkpoint, and what it took */
    bool is_saved;                   /* a checkpoint has this epoch */
} learner;

/* ---- checks ---- */

static fds_status check_plan(const fds_lesson *lesson, const char *name, const fds_plan *plan,
                             const fds_rows *rows, fds_error *err) {
    if (!plan || !rows || fds_plan_players(plan) != lesson->players || fds_plan_rows(plan) < 3 ||
        rows->columns != lesson->inputs * lesson->classes)
        return fds_fail(err, FDS_USAGE,
                        "the lesson's coalitions %s must be of its %zu players, with a column for "
                        "each of %zu inputs and %u labels",
                        name, lesson->players, lesson->inputs, lesson->classes);
    return FDS_OK;
}

static fds_status check_lesson(const fds_lesson *lesson, const fds_explainer_params *params,
                               fds_error *err) {
    if (!lesson->players || !lesson->classes || !lesson->held || lesson->held >= lesson->inputs ||
        lesson->inputs > UINT32_MAX)
        return fds_fail(err, FDS_USAGE,
                        "a lesson of %zu inputs, %zu of them kept out, %zu players, %u labels: "
                        "there must be some of each, and some inputs to learn from",
                        lesson->inputs, lesson->held, lesson->players, lesson->classes);
    FDS_TRY(check_plan(lesson, "kept out", lesson->held_plan, lesson->held_rows, err));
    if (params->objective == FDS_PAPER)
        FDS_TRY(check_plan(lesson, "to learn from", lesson->plan, lesson->rows, err));
    else if (!lesson->targets)
        return fds_fail(err, FDS_USAGE, "the lesson has no least-squares values to learn");
    if (params->is_by_group &&
        (!lesson->groups || fds_groups_players(lesson->groups) != lesson->players))
        return fds_fail(err, FDS_USAGE,
                        "one output a group: the lesson has no groups of its %zu "
                        "players",
                        lesson->players);
    for (size_t i = 0; params->warm_up && i < lesson->inputs; i++)
        if (!lesson->labels || lesson->labels[i] >= lesson->classes)
            return fds_fail(err, FDS_USAGE, "warming up: input %zu has no label below %u", i,
                            lesson->classes);
    return FDS_OK;
}

static fds_status check_params(const fds_lesson *lesson, const fds_explainer_params *p,
                               fds_error *err) {
    if (!p->batch || !p->epochs)
        return fds_fail(err, FDS_USAGE, "batch %u, epochs %u: there must be at least 1", p->batch,
                        p->epochs);
    if (!(p->lr > 0) || !isfinite(p->lr))
        return fds_fail(err, FDS_USAGE, "learning rate %g: must be above 0", (double)p->lr);
    if (!(p->gamma >= 0) || !isfinite(p->gamma))
        return fds_fail(err, FDS_USAGE, "gamma %g: must be 0 or more", (double)p->gamma);
    if (p->objective == FDS_PAPER &&
        (!p->draws || (p->draws % 2 && fds_plan_is_paired(lesson->plan))))
        return fds_fail(err, FDS_USAGE,
                        "%u coalitions an input and step: must be an even number above 0",
                        p->draws);
    return FDS_OK;
}

/* ---- stages ---- */

static fds_deep_params net_params(const learner *l, bool is_warm_up) {
    size_t outputs = is_warm_up ? l->lesson->classes : learn_objective_outputs(l->objective);
    fds_deep_params params = fds_explainer_net(l->params, l->lesson->shape, outputs, l->batch);
    params.head = is_warm_up ? FDS_HEAD_CLASSIFY : FDS_HEAD_EXPLAIN;
    return params;
}

static void stage_free(learner *l) {
    fds_deep_infer_free(l->infer);
    fds_deep_free(l->net);
    learn_weights_free(&l->best);
    l->infer = NULL;
    l->net = NULL;
}

/* A stage's network as it is created, and room for what goes with it. */
static fds_status stage_create(learner *l, bool is_warm_up, fds_error *err) {
    fds_deep_params params = net_params(l, is_warm_up);
    stage_free(l);
    l->is_warm_up = is_warm_up;
    l->epoch = l->best_epoch = 0;
    FDS_TRY(fds_deep_create(&params, &l->net, err));
    if (is_warm_up)
        return FDS_OK;
    FDS_TRY(learn_weights_take(&l->best, l->net, err));
    return fds_deep_infer_create(l->net, INFER_BATCH, &l->infer, err);
}

static fds_status load_features(learner *l, fds_error *err) {
    return l->weights ? fds_deep_load(l->net, l->params->weights, l->weights, true, err) : FDS_OK;
}

/* The mean of the targets, with the last layer's weights being 0. */
static fds_status set_bias(learner *l, fds_error *err) {
    for (size_t i = 0; i < fds_deep_tensor_count(l->net); i++)
        if (strcmp(fds_deep_tensor_at(l->net, i).name, "head.fc.bias") == 0)
            return fds_deep_write(l->net, i, FDS_DEEP_VALUE, learn_objective_start(l->objective),
                                  err);
    return fds_fail(err, FDS_UNSUPPORTED, "network %s has no layer head.fc", l->params->network);
}

/* The explainer's own stage; features come from warming up, where that was done before. */
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
    FDS_TRY(stage_create(l, true, err));
    return load_features(l, err);
}

/* ---- checkpoints ---- */

static void find_best(learner *l) {
    l->best_epoch = 0;
    for (uint32_t i = 0; i < l->epoch; i++)
        if (!l->best_epoch || l->metrics[i].held_loss < l->metrics[l->best_epoch - 1].held_loss)
            l->best_epoch = i + 1;
}

static fds_status take_checkpoint(learner *l, const learn_checkpoint *c, fds_error *err) {
    if (c->epoch > (c->is_warm_up ? LEARN_WARM_UP : l->params->epochs))
        return fds_fail(err, FDS_FORMAT, "%s: epoch %u is more than there are", l->path, c->epoch);
    FDS_TRY(stage_create(l, c->is_warm_up, err));
    FDS_TRY(learn_checkpoint_restore(l->path, c, l->net, c->is_warm_up ? NULL : &l->best, err));
    l->epoch = c->epoch;
    l->is_saved = true;
    if (c->is_warm_up)
        return FDS_OK;
    memcpy(l->metrics, c->metrics, c->epoch * sizeof *l->metrics);
    find_best(l);
    return FDS_OK;
}

/* Goes on from a checkpoint, or begins. One that is damaged or of another training is told and left
 * behind; one that cannot be read just now is not given up. */
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
    if (status == FDS_IO || status == FDS_NOMEM)
        return fds_fail(err, status, "%s", why.text);
    if (status != FDS_NOT_FOUND)
        fds_log(l->events, FDS_LOG_WARNING, "%s; the explainer's training starts anew", why.text);
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
    double start_s = fds_now_s();
    FDS_TRY(learn_checkpoint_write(l->path, &state, err));
    l->saved_s = fds_now_s();
    l->save_s = l->saved_s - start_s;
    l->is_saved = true;
    return FDS_OK;
}

static fds_status save_if_due(learner *l, fds_error *err) {
    double due_s = learn_checkpoint_s > 0 ? fmax(learn_checkpoint_s, SAVE_TIMES * l->save_s) : 0;
    return fds_now_s() - l->saved_s >= due_s ? save(l, err) : FDS_OK;
}

fds_status fds_learn_forget(const char *dir, fds_error *err) {
    char path[FDS_PATH_MAX];
    FDS_TRY(fds_path_join(path, sizeof path, dir, CHECKPOINT, err));
    return fds_path_exists(path) ? fds_file_remove(path, err) : FDS_OK;
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
    const fds_lesson *lesson = l->lesson;
    size_t sample = fds_shape_size(lesson->shape);
    const uint32_t *inputs = l->order + (size_t)step * l->batch;
    for (size_t b = 0; b < l->batch; b++)
        memcpy(l->x + b * sample, lesson->x + inputs[b] * sample, sample * sizeof *l->x);
    FDS_TRY(fds_deep_forward(l->net, l->x, l->u, err));
    if (l->is_warm_up)
        *loss = learn_cross_entropy(lesson, inputs, l->batch, l->u, l->gradient);
    else
        FDS_TRY(learn_objective_apply(l->objective, inputs, l->epoch, step, l->u, loss, l->gradient,
                                      err));
    FDS_TRY(fds_deep_backward(l->net, l->gradient, err));
    fds_adam adam = {.lr = lr, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f};
    return fds_deep_step(l->net, &adam, err);
}

/* Steps of all stages. */
static uint64_t steps_in_all(const learner *l) {
    uint64_t warm_up = l->params->warm_up ? LEARN_WARM_UP : 0;
    return (warm_up + l->params->epochs) * l->steps;
}

static fds_status report(const learner *l, uint32_t step, fds_error *err) {
    uint64_t before = l->params->warm_up && !l->is_warm_up ? LEARN_WARM_UP : 0;
    return fds_report(l->events, STAGE, "steps", (before + l->epoch) * l->steps + step,
                      steps_in_all(l), l->start_s, err);
}

/* One epoch; *metric receives its number, loss and last learning rate. */
static fds_status make_epoch(learner *l, fds_metric *metric, fds_error *err) {
    fds_rng rng = fds_rng_make(l->params->seed, FDS_PURPOSE_LESSON, l->epoch, l->is_warm_up);
    double sum = 0, loss;
    for (size_t i = 0; i < l->train; i++)
        l->order[i] = (uint32_t)i;
    fds_rng_shuffle(&rng, l->order, l->train);
    *metric = (fds_metric){.epoch = l->epoch + 1};
    for (uint32_t step = 0; step < l->steps; step++) {
        metric->lr = rate(l, (uint64_t)l->epoch * l->steps + step);
        FDS_TRY(report(l, step, err));
        FDS_TRY(make_step(l, step, metric->lr, &loss, err));
        sum += loss;
    }
    metric->loss = sum / l->steps;
    return FDS_OK;
}

static fds_status warm_up(learner *l, fds_error *err) {
    fds_metric unused;
    while (l->epoch < LEARN_WARM_UP) {
        FDS_TRY(make_epoch(l, &unused, err));
        l->epoch++;
        l->is_saved = false;
        FDS_TRY(save_if_due(l, err));
    }
    return FDS_OK;
}

static bool is_finished(const learner *l) {
    uint32_t patience = l->params->patience;
    return l->epoch == l->params->epochs || (patience && l->epoch - l->best_epoch >= patience);
}

static fds_status explain(learner *l, fds_error *err) {
    while (!is_finished(l)) {
        fds_metric *metric = &l->metrics[l->epoch];
        FDS_TRY(make_epoch(l, metric, err));
        FDS_TRY(fds_deep_infer_update(l->infer, l->net, err));
        FDS_TRY(learn_held_loss(l->held, l->objective, l->infer, &metric->held_loss, err));
        l->epoch++;
        l->is_saved = false;
        find_best(l);
        if (l->best_epoch == l->epoch)
            FDS_TRY(learn_weights_take(&l->best, l->net, err));
        FDS_TRY(save_if_due(l, err));
    }
    return fds_now_s() - l->start_s >= learn_checkpoint_s ? save(l, err) : FDS_OK;
}

/* ---- the whole ---- */

static fds_status read_weights(learner *l, fds_error *err) {
    const char *path = l->params->weights;
    uint8_t *data;
    size_t size;
    if (!path)
        return FDS_OK;
    FDS_TRY(fds_file_read(path, MAX_WEIGHTS_FILE, &data, &size, err));
    l->weights_checksum = fds_checksum(data, size);
    return fds_safetensors_parse(path, data, size, &l->weights, err);
}

static fds_status prepare(learner *l, const char *dir, fds_error *err) {
    const fds_lesson *lesson = l->lesson;
    FDS_TRY(check_lesson(lesson, l->params, err));
    FDS_TRY(check_params(lesson, l->params, err));
    FDS_TRY(fds_path_join(l->path, sizeof l->path, dir, CHECKPOINT, err));
    FDS_TRY(fds_out_sweep(l->path, err));
    l->start_s = l->saved_s = fds_now_s();
    l->train = lesson->inputs - lesson->held;
    l->batch = (uint32_t)FDS_MIN(l->train, l->params->batch);
    l->steps = (uint32_t)(l->train / l->batch);
    FDS_TRY(learn_objective_create(lesson, l->params, l->batch, &l->objective, err));
    fds_deep_params params = net_params(l, false);
    FDS_TRY(fds_deep_check(&params, NULL, err));
    FDS_TRY(learn_held_create(lesson, &l->held, err));
    FDS_TRY(read_weights(l, err));
    size_t outputs = FDS_MAX(learn_objective_outputs(l->objective), lesson->classes);
    l->order = fds_alloc_zero(l->train, sizeof *l->order);
    l->x = fds_alloc_zero(l->batch, fds_shape_size(lesson->shape) * sizeof *l->x);
    l->u = fds_alloc_zero(l->batch, outputs * sizeof *l->u);
    l->gradient = fds_alloc_zero(l->batch, outputs * sizeof *l->gradient);
    l->metrics = fds_alloc_zero(l->params->epochs, sizeof *l->metrics);
    if (!l->order || !l->x || !l->u || !l->gradient || !l->metrics)
        return fds_fail_nomem(err, l->batch * outputs * sizeof *l->u);
    return learn_describe(lesson, l->params, l->weights_checksum, learn_held_checksum(l->held),
                          &l->text, err);
}

/* The best epoch's network, for answers. */
static fds_status make_explainer(const learner *l, fds_explainer **out, fds_error *err) {
    const fds_lesson *lesson = l->lesson;
    FDS_TRY(learn_explainer_create(
        l->params->network, l->params->precision, lesson->players, lesson->classes, lesson->shape,
        l->params->is_by_group ? lesson->groups : NULL, learn_objective_scale(l->objective),
        l->params->threads, out, err));
    fds_status status = learn_weights_give(&l->best, learn_explainer_net(*out), err);
    if (status != FDS_OK) {
        fds_explainer_free(*out);
        *out = NULL;
    }
    return status;
}

static fds_status learn(learner *l, const char *dir, fds_explainer **out, fds_error *err) {
    FDS_TRY(prepare(l, dir, err));
    FDS_TRY(resume(l, err));
    if (l->is_warm_up) {
        FDS_TRY(warm_up(l, err));
        FDS_TRY(begin_explainer(l, err));
    }
    FDS_TRY(explain(l, err));
    uint64_t all = steps_in_all(l); /* stopped early or not, there is nothing left to do */
    FDS_TRY(fds_report(l->events, STAGE, "steps", all, all, l->start_s, err));
    FDS_TRY(learn_curves_write(dir, l->metrics, l->epoch, l->best_epoch, err));
    return make_explainer(l, out, err);
}

static void learner_free(learner *l) {
    stage_free(l);
    learn_objective_free(l->objective);
    learn_held_free(l->held);
    fds_safetensors_free(l->weights);
    fds_free(l->text.data);
    fds_free(l->order);
    fds_free(l->x);
    fds_free(l->u);
    fds_free(l->gradient);
    fds_free(l->metrics);
}

fds_status fds_learn(const fds_lesson *lesson, const fds_explainer_params *params, const char *dir,
                     const fds_events *events, fds_explainer **out, fds_learnt *learnt,
                     fds_error *err) {
    learner l = {.lesson = lesson, .params = params, .events = events};
    fds_status status = learn(&l, dir, out, err);
    if (status == FDS_OK && learnt) {
        *learnt = (fds_learnt){.epochs = l.epoch,
                               .best_epoch = l.best_epoch,
                               .held_loss = l.metrics[l.best_epoch - 1].held_loss,
                               .metrics = l.metrics};
        l.metrics = NULL;
    }
    learner_free(&l);
    return status;
}
