/* SPDX-License-Identifier: Apache-2.0
 * The training loop and prediction of the lane engine. */
#include "lane/workspace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- parameters ---- */

fds_train_params fds_train_params_default(void) {
    return (fds_train_params){
        .optimizer = FDS_OPTIMIZER_ADAM,
        .lr = 1e-3f,
        .beta1 = 0.9f,
        .beta2 = 0.999f,
        .epsilon = 1e-8f,
        .batch = 16,
        .epochs = 10,
        .loss_bound = 0.01f,
        .min_delta = 1e-4f,
        .patience = 10,
    };
}

fds_status fds_train_params_check(const fds_train_params *p, fds_error *err) {
    const struct {
        const char *name;
        double value;
        bool right;
        const char *wanted;
    } rules[] = {
        {"lr", p->lr, p->lr > 0 && isfinite(p->lr), "a number above 0"},
        {"momentum", p->momentum, p->momentum >= 0 && p->momentum < 1, "from 0 to below 1"},
        {"beta1", p->beta1, p->beta1 >= 0 && p->beta1 < 1, "from 0 to below 1"},
        {"beta2", p->beta2, p->beta2 >= 0 && p->beta2 < 1, "from 0 to below 1"},
        {"epsilon", p->epsilon, p->epsilon > 0 && isfinite(p->epsilon), "a number above 0"},
        {"weight decay", p->weight_decay, p->weight_decay >= 0 && isfinite(p->weight_decay),
         "0 or more"},
        {"batch", p->batch, p->batch >= 1 && p->batch <= 1u << 20, "from 1 to 1048576"},
        {"epochs", p->epochs, p->epochs >= 1 && p->epochs <= 1u << 20, "from 1 to 1048576"},
        {"loss bound", p->loss_bound, p->loss_bound >= 0, "0 or more"},
        {"min delta", p->min_delta, p->min_delta >= 0, "0 or more"},
        {"patience", p->patience, !p->converge || p->patience >= 1, "1 or more"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!rules[i].right)
            return fds__fail(err, FDS_ERR_USAGE, "%s is %g, but must be %s", rules[i].name,
                             rules[i].value, rules[i].wanted);
    if (p->optimizer != FDS_OPTIMIZER_ADAM && p->optimizer != FDS_OPTIMIZER_SGD)
        return fds__fail(err, FDS_ERR_USAGE, "unknown optimizer %d", (int)p->optimizer);
    return FDS_OK;
}

/* ---- checks ---- */

fds_status lane_check_shape(const fds_net *net, const fds_inputs *inputs, fds_error *err) {
    fds_shape a = net->input, b = inputs->shape;
    if (!fds__shape_equal(a, b))
        return fds__fail(err, FDS_ERR_SHAPE, "the network takes samples of %ux%ux%u, not %ux%ux%u",
                         a.channels, a.height, a.width, b.channels, b.height, b.width);
    return FDS_OK;
}

fds_status lane_check_tokens(const fds_net *net, const fds_inputs *inputs, size_t input,
                             fds_error *err) {
    const fds__layer *first = &net->layers[0];
    const float *values = inputs->values + input * inputs->size;
    for (size_t i = 0; first->kind == FDS__LAYER_EMBED && i < inputs->size; i++)
        /* bytes are seen as 0..1 and come back with an error of rounding */
        if (!(fabsf(values[i] - roundf(values[i])) < 1e-3f) || roundf(values[i]) < 0 ||
            roundf(values[i]) >= (float)first->tokens)
            return fds__fail(err, FDS_ERR_SHAPE,
                             "sample %u: token %zu is %g, but embed takes whole numbers from 0 to "
                             "%u",
                             inputs->ids[input], i, (double)values[i], first->tokens - 1);
    return FDS_OK;
}

static fds_status check_members(const fds_inputs *inputs, const uint32_t *members, size_t count,
                                fds_error *err) {
    for (size_t i = 0; i < count; i++)
        if (members[i] >= inputs->count)
            return fds__fail(err, FDS_ERR_USAGE, "member %u: there are only %zu inputs", members[i],
                             inputs->count);
    return FDS_OK;
}

/* Members as a network trains on them: their samples have its shape, their labels are among its
 * classes. */
static fds_status check_batch(const fds_net *net, const fds_inputs *inputs, const uint32_t *members,
                              size_t count, fds_error *err) {
    TRY(lane_check_shape(net, inputs, err));
    TRY(check_members(inputs, members, count, err));
    if (net->is_regression != (inputs->targets != NULL) && count)
        return fds__fail(err, FDS_ERR_SHAPE, "the network predicts %s, but the samples have %s",
                         net->is_regression ? "numbers" : "classes",
                         net->is_regression ? "labels" : "targets");
    for (size_t i = 0; i < count; i++)
        TRY(lane_check_tokens(net, inputs, members[i], err));
    for (size_t i = 0; i < count; i++)
        if (inputs->labels[members[i]] >= net->classes)
            return fds__fail(err, FDS_ERR_SHAPE,
                             "member %u has label %u, the network has %u classes", members[i],
                             inputs->labels[members[i]], net->classes);
    return FDS_OK;
}

/* ---- the order of an epoch ---- */

/* A member's place in the order: by key, equal keys by id. */
typedef struct {
    uint64_t key;
    uint32_t id, position;
} place;

static int by_key(const void *a, const void *b) {
    const place *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key ? -1 : 1) : (x->id > y->id) - (x->id < y->id);
}

/* scratch: (count) */
static void put_in_order(const fds_inputs *inputs, const uint32_t *members, size_t count,
                         uint64_t seed, uint32_t epoch, place *scratch, uint32_t *order) {
    for (size_t i = 0; i < count; i++) {
        uint64_t of = fds__inputs_key(inputs, members[i]);
        fds_rng rng = fds_rng_make(seed, FDS__PURPOSE_ORDER, epoch, of);
        scratch[i] = (place){fds_rng_u64(&rng), inputs->ids[members[i]], members[i]};
    }
    qsort(scratch, count, sizeof *scratch, by_key);
    for (size_t i = 0; i < count; i++)
        order[i] = scratch[i].position;
}

fds_status fds_inputs_order(const fds_inputs *inputs, const uint32_t *members, size_t count,
                            uint64_t seed, uint32_t epoch, uint32_t *order, fds_error *err) {
    TRY(check_members(inputs, members, count, err));
    OWNED place *scratch = NULL;
    TRY(NEW(scratch, count, err));
    put_in_order(inputs, members, count, seed, epoch, scratch, order);
    return FDS_OK;
}

/* The scratch and the order of an epoch's members lie in one array. */
enum { MEMBER_BYTES = sizeof(place) + sizeof(uint32_t) };

fds_status fds__lane_reserve(fds_lane *lane, size_t members, size_t batch, fds_error *err) {
    if (lane->net->has_batchnorm)
        TRY(lane_reserve_groups(lane, MIN(members, batch), err));
    return fds__grow(&lane->places, &lane->place_capacity, members, MEMBER_BYTES, err);
}

size_t fds__lane_bytes(const fds_lane *lane) {
    return sizeof *lane + (lane->arena_size + lane->more_size) * sizeof(float) +
           lane->group_count * (lane->stage_count + 1) * sizeof *lane->bounds +
           lane->place_capacity * MEMBER_BYTES;
}

/* ---- training ---- */

/* The last mini-batch's statistics, which backprop puts in the place of a gradient, go into the
 * running ones as in PyTorch, with momentum 0.1. */
static void keep_statistics(const fds_lane *lane, float *weights) {
    for (size_t i = lane->net->trained; i < lane->net->weights; i++)
        weights[i] += 0.1f * (lane->grad[i] - weights[i]);
}

static void take_step(fds_lane *lane, const fds_train_params *p, float *weights, uint64_t t) {
    fds__optimizer_step step = {
        .count = lane->net->trained,
        .w = weights,
        .m = lane->m,
        .v = lane->v,
        .g = lane->grad,
        .lr = p->lr,
        .momentum = p->momentum,
        .beta1 = p->beta1,
        .beta2 = p->beta2,
        .epsilon = p->epsilon,
        .weight_decay = p->weight_decay,
    };
    if (p->optimizer == FDS_OPTIMIZER_SGD) {
        lane->kernels->sgd(&step);
        return;
    }
    /* beta^t by repeated squaring: pow() may differ between machines in the last bit */
    double b1 = p->beta1, b2 = p->beta2, power1 = 1, power2 = 1;
    for (uint64_t n = t; n; n >>= 1, b1 *= b1, b2 *= b2) {
        power1 *= n & 1 ? b1 : 1;
        power2 *= n & 1 ? b2 : 1;
    }
    step.correct1 = (float)(1 / (1 - power1));
    step.correct2 = (float)(1 / (1 - power2));
    lane->kernels->adam(&step);
}

enum { STEPS_PER_REPORT = 256 };

/* What the stopping rule remembers of earlier epochs. */
typedef struct {
    float best;      /* mean loss */
    uint32_t waited; /* epochs without progress */
} stopper;

static bool should_stop(stopper *s, const fds_train_params *p, float loss) {
    if (loss < p->loss_bound)
        return true;
    if (loss < s->best - p->min_delta) {
        s->best = loss;
        s->waited = 0;
        return false;
    }
    return ++s->waited >= p->patience;
}

static fds_status run_epochs(fds_lane *lane, const fds_inputs *inputs, const uint32_t *members,
                             size_t count, const fds_train_params *p, float *weights,
                             fds_train_report *report, const fds_events *events, fds_error *err) {
    place *scratch = lane->places;
    uint32_t *order = (uint32_t *)(scratch + count);
    stopper stop = {.best = INFINITY};
    uint64_t t = 0;
    double start_s = fds__now_s();
    lane->seed = p->seed;
    memset(lane->m, 0, lane->net->weights * sizeof(float));
    memset(lane->v, 0, lane->net->weights * sizeof(float));
    for (uint32_t epoch = 0; epoch < p->epochs && !report->converged; epoch++) {
        put_in_order(inputs, members, count, p->seed, epoch, scratch, order);
        lane->epoch = epoch;
        double sum = 0;
        for (size_t first = 0; first < count; first += p->batch) {
            size_t batch = MIN(count - first, (size_t)p->batch);
            unsigned before = fds__tiny_flush();
            sum += fds__lane_backprop(lane, inputs, order + first, batch, weights);
            take_step(lane, p, weights, ++t);
            keep_statistics(lane, weights);
            fds__tiny_restore(before);
            if (t % STEPS_PER_REPORT != 0)
                continue;
            /* an epoch may be long: the caller can cancel it */
            TRY(fds__pool_check(err));
            TRY(fds__report(events, "train", "epochs", epoch, p->epochs, start_s, err));
        }
        float loss = (float)(sum / (double)count);
        if (!isfinite(loss))
            return fds__fail(err, FDS_ERR_DIVERGED,
                             "the loss became infinite or not a number in epoch %u; "
                             "try a learning rate below %g",
                             epoch + 1, (double)p->lr);
        report->first_loss = epoch ? report->first_loss : loss;
        report->last_loss = loss;
        report->epochs = epoch + 1;
        report->converged = p->converge && should_stop(&stop, p, loss);
        TRY(fds__pool_check(err));
        TRY(fds__report(events, "train", "epochs", epoch + 1, p->epochs, start_s, err));
    }
    return FDS_OK;
}

fds_status fds_lane_train(fds_lane *lane, const fds_inputs *inputs, const uint32_t *members,
                          size_t count, const fds_train_params *params, float *weights,
                          fds_train_report *report, const fds_events *events, fds_error *err) {
    fds_train_report unused;
    report = report ? report : &unused;
    *report = (fds_train_report){0};
    TRY(fds_train_params_check(params, err));
    TRY(check_batch(lane->net, inputs, members, count, err));
    if (!count)
        return FDS_OK;
    TRY(fds__lane_reserve(lane, count, params->batch, err));
    TRY(run_epochs(lane, inputs, members, count, params, weights, report, events, err));
    for (size_t i = 0; i < lane->net->weights; i++)
        if (!isfinite(weights[i]))
            return fds__fail(err, FDS_ERR_DIVERGED,
                             "weight %zu became infinite or not a number; "
                             "try a learning rate below %g",
                             i, (double)params->lr);
    return FDS_OK;
}

/* ---- prediction ---- */

typedef enum { PROBABILITIES, LOGITS, FEATURES } output;

static fds_status evaluate(fds_lane *lane, const fds_inputs *inputs, size_t first, size_t count,
                           const float *weights, output wanted, float *out, fds_error *err) {
    TRY(lane_check_shape(lane->net, inputs, err));
    if (first > inputs->count || count > inputs->count - first)
        return fds__fail(err, FDS_ERR_USAGE, "inputs %zu to %zu: there are only %zu", first,
                         first + count, inputs->count);
    for (size_t i = first; i < first + count; i++)
        TRY(lane_check_tokens(lane->net, inputs, i, err));
    /* the last stage is fully connected: it reads and writes (numbers, 16) */
    const fds__boundary *b = &lane->bounds[lane->stage_count - (wanted == FEATURES)];
    const size_t numbers = fds__shape_size(b->shape);
    float *z = b->value;
    size_t odd = SIZE_MAX; /* the first input whose output is not finite */
    unsigned before = fds__tiny_flush();
    for (size_t done = 0; done < count; done += FDS__LANES) {
        uint32_t members[FDS__LANES], group = (uint32_t)MIN(count - done, (size_t)FDS__LANES);
        for (uint32_t l = 0; l < group; l++)
            members[l] = (uint32_t)(first + done + l);
        fds__lane_forward(lane, inputs, members, group, weights);
        for (size_t i = 0; wanted != LOGITS && i < numbers * group; i++)
            if (!isfinite(z[i / group * FDS__LANES + i % group]))
                odd = MIN(odd, first + done + i % group);
        if (wanted == PROBABILITIES && !lane->net->is_regression)
            lane->kernels->softmax(z, lane->net->classes, group, NULL, NULL);
        for (uint32_t l = 0; l < group; l++)
            for (size_t k = 0; k < numbers; k++)
                out[(done + l) * numbers + k] = z[k * FDS__LANES + l];
    }
    fds__tiny_restore(before);
    if (odd != SIZE_MAX)
        return fds__fail(err, FDS_ERR_DIVERGED,
                         "input %zu (sample %u): the network's output is infinite or not a number",
                         odd, inputs->ids[odd]);
    return FDS_OK;
}

fds_status fds_lane_predict(fds_lane *lane, const fds_inputs *inputs, size_t first, size_t count,
                            const float *weights, float *probs, fds_error *err) {
    return evaluate(lane, inputs, first, count, weights, PROBABILITIES, probs, err);
}

fds_status fds_lane_logits(fds_lane *lane, const fds_inputs *inputs, size_t first, size_t count,
                           const float *weights, float *logits, fds_error *err) {
    return evaluate(lane, inputs, first, count, weights, LOGITS, logits, err);
}

fds_status fds__lane_features(fds_lane *lane, const fds_inputs *inputs, size_t first, size_t count,
                              const float *weights, float *features, fds_error *err) {
    return evaluate(lane, inputs, first, count, weights, FEATURES, features, err);
}
