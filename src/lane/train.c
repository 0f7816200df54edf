/* SPDX-License-Identifier: Apache-2.0
 * The training loop and prediction of the lane engine. */
#include "lane/workspace.h"

#include <math.h>
#include <string.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

/* ---- parameters ---- */

fds_train_params fds_train_params_default(void) {
    return (fds_train_params){
        .optimizer = FDS_OPTIMIZER_ADAM,
        .lr = 1e-3f,
        .momentum = 0.0f,
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

/* ---- the processor's treatment of tiny numbers ---- */

/* Moments of weights without gradient decay towards 0 and would stay denormal for ever, each such
 * number costing a hundred times a normal one. They are taken as 0 while the engine runs. */
unsigned fds__lane_flush_tiny(void) {
#ifdef __x86_64__
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040); /* flush to zero, denormals are zero */
    return before;
#else
    return 0;
#endif
}

void fds__lane_restore_tiny(unsigned before) {
#ifdef __x86_64__
    _mm_setcsr(before);
#else
    (void)before;
#endif
}

/* ---- checks ---- */

static fds_status check_inputs(const fds_lane *lane, const fds_inputs *inputs, fds_error *err) {
    fds_shape a = lane->net->input, b = inputs->shape;
    if (!fds__shape_equal(a, b))
        return fds__fail(err, FDS_ERR_SHAPE, "the network takes samples of %ux%ux%u, not %ux%ux%u",
                         a.channels, a.height, a.width, b.channels, b.height, b.width);
    return FDS_OK;
}

static fds_status check_members(const fds_lane *lane, const fds_inputs *inputs,
                                const uint32_t *members, size_t count, fds_error *err) {
    TRY(check_inputs(lane, inputs, err));
    for (size_t i = 0; i < count; i++) {
        if (members[i] >= inputs->count)
            return fds__fail(err, FDS_ERR_USAGE, "member %u: there are only %zu inputs", members[i],
                             inputs->count);
        if (inputs->labels[members[i]] >= lane->net->classes)
            return fds__fail(err, FDS_ERR_SHAPE,
                             "member %u has label %u, the network has %u classes", members[i],
                             inputs->labels[members[i]], lane->net->classes);
    }
    return FDS_OK;
}

/* ---- training ---- */

static void take_step(fds_lane *lane, const fds_train_params *p, float *weights, uint64_t t) {
    fds__optimizer_step step = {
        .count = lane->net->weights,
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

enum { STEPS_A_REPORT = 256 };

/* The stopping rule, seeing one epoch's mean loss after another. */
typedef struct {
    float best;
    uint32_t waited;
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
                             fds__place *places, uint32_t *order, fds_train_report *report,
                             const fds_events *events, fds_error *err) {
    stopper stop = {.best = INFINITY};
    uint64_t t = 0;
    double start_s = fds__now_s();
    memset(lane->m, 0, lane->net->weights * sizeof(float));
    memset(lane->v, 0, lane->net->weights * sizeof(float));
    for (uint32_t epoch = 0; epoch < p->epochs && !report->converged; epoch++) {
        lane_order(inputs, members, count, p->seed, epoch, places);
        for (size_t i = 0; i < count; i++)
            order[i] = places[i].position;
        double sum = 0;
        for (size_t first = 0; first < count; first += p->batch) {
            size_t batch = MIN(count - first, (size_t)p->batch);
            unsigned before = fds__lane_flush_tiny();
            sum += fds__lane_backprop(lane, inputs, order + first, batch, weights);
            take_step(lane, p, weights, ++t);
            fds__lane_restore_tiny(before);
            if (t % STEPS_A_REPORT != 0)
                continue;
            /* an epoch may be long: let it be interrupted */
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
    TRY(check_members(lane, inputs, members, count, err));
    if (!count)
        return FDS_OK;
    TRY(fds__lane_reserve(lane, count, err));
    fds__place *places = lane->places;
    uint32_t *order = (uint32_t *)(places + count);
    fds_status status = run_epochs(lane, inputs, members, count, params, weights, places, order,
                                   report, events, err);
    for (size_t i = 0; status == FDS_OK && i < lane->net->weights; i++)
        if (!isfinite(weights[i]))
            status = fds__fail(err, FDS_ERR_DIVERGED,
                               "weight %zu became infinite or not a number; "
                               "try a learning rate below %g",
                               i, (double)params->lr);
    return status;
}

fds_status fds__lane_gradient(fds_lane *lane, const fds_inputs *inputs, const uint32_t *members,
                              size_t count, const float *weights, float *gradient, double *loss,
                              fds_error *err) {
    TRY(check_members(lane, inputs, members, count, err));
    if (!count)
        return fds__fail(err, FDS_ERR_USAGE, "a mini-batch needs at least one member");
    unsigned before = fds__lane_flush_tiny();
    double sum = fds__lane_backprop(lane, inputs, members, count, weights);
    fds__lane_restore_tiny(before);
    memcpy(gradient, lane->grad, lane->net->weights * sizeof(float));
    if (loss)
        *loss = sum / (double)count;
    return FDS_OK;
}

/* ---- prediction ---- */

typedef enum { PROBABILITIES, LOGITS, FEATURES } answer;

static fds_status evaluate(fds_lane *lane, const fds_inputs *inputs, size_t first, size_t count,
                           const float *weights, answer wanted, float *out, fds_error *err) {
    TRY(check_inputs(lane, inputs, err));
    if (first > inputs->count || count > inputs->count - first)
        return fds__fail(err, FDS_ERR_USAGE, "inputs %zu to %zu: there are only %zu", first,
                         first + count, inputs->count);
    /* the last stage is fully connected: what it reads and writes is (numbers, 16) */
    const fds__boundary *b = &lane->bounds[lane->stage_count - (wanted == FEATURES)];
    const size_t numbers = fds__shape_size(b->shape);
    float *z = b->value;
    size_t odd = SIZE_MAX; /* the first input with an answer that is no number */
    unsigned before = fds__lane_flush_tiny();
    for (size_t done = 0; done < count; done += FDS__LANES) {
        uint32_t members[FDS__LANES], group = (uint32_t)MIN(count - done, (size_t)FDS__LANES);
        for (uint32_t l = 0; l < group; l++)
            members[l] = (uint32_t)(first + done + l);
        fds__lane_forward(lane, inputs, members, group, weights);
        for (size_t i = 0; wanted != LOGITS && i < numbers * group; i++)
            if (!isfinite(z[i / group * FDS__LANES + i % group]))
                odd = MIN(odd, first + done + i % group);
        if (wanted == PROBABILITIES)
            lane->kernels->softmax(z, lane->net->classes, group, NULL, NULL);
        for (uint32_t l = 0; l < group; l++)
            for (size_t k = 0; k < numbers; k++)
                out[(done + l) * numbers + k] = z[k * FDS__LANES + l];
    }
    fds__lane_restore_tiny(before);
    if (odd != SIZE_MAX)
        return fds__fail(err, FDS_ERR_DIVERGED,
                         "input %zu (sample %u): the network's answer is infinite or not a number",
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
