/* SPDX-License-Identifier: Apache-2.0
 *
 * "retrain" and "retrain:K": the utility of a coalition is the answer of a network trained on its
 * samples alone. All networks start from the same weights, and the place of a sample in the
 * mini-batches depends on its number alone, so the answer is a function of the set. The network of
 * all players is, bit for bit, the model that fds_model_train makes of their samples. */
#include "utility/utility.h"

#include <math.h>
#include <string.h>

enum { CONVERGE_EPOCHS = 1000 }; /* the cap of "retrain" */

typedef struct {
    fds_lane *lane;
    float *weights;    /* (net) */
    uint32_t *members; /* (samples) */
} scratch;

typedef struct {
    const fds__utility_data *data;
    fds_train_params train;
    fds_net *net;
    float *start;     /* initial weights */
    scratch *workers; /* (workers) */
} retrain;

/* ---- parameters ---- */

fds_train_params fds__retrain_training(const fds__utility_params *params, uint32_t number) {
    fds_train_params train = params->train;
    train.converge = !number;
    train.epochs = number ? number : CONVERGE_EPOCHS;
    train.lr = fds__decimal_product(train.lr, params->beta);
    return train;
}

fds_status fds__retrain_check(const fds__utility_params *params, uint32_t number, fds_error *err) {
    if (!params->network)
        return fds__fail(err, FDS_ERR_USAGE, "retraining takes a network, for example \"lenet5\"");
    if (!(params->beta > 0 && isfinite(params->beta)))
        return fds__fail(err, FDS_ERR_USAGE, "beta must be above 0 (got %g)", (double)params->beta);
    fds_train_params train = params->train;
    train.epochs = 1; /* the caller's number is not used */
    TRY(fds_train_params_check(&train, err));
    train = fds__retrain_training(params, number);
    if (!(train.lr > 0 && isfinite(train.lr)))
        return fds__fail(err, FDS_ERR_USAGE,
                         "lr %g times beta %g must be a number above 0 (got %g)",
                         (double)params->train.lr, (double)params->beta, (double)train.lr);
    return fds_train_params_check(&train, err);
}

/* ---- the text ---- */

/* A bound may be infinite: JSON has no such number. */
static json_t *number_or_infinite(float value) {
    return isfinite(value) ? json_real(fds__decimal(value)) : json_string("infinite");
}

/* Adds everything that training depends on. */
static fds_status describe(json_t *about, const fds_net *net, const fds_train_params *p,
                           fds_error *err) {
    json_t *part = json_pack("{s:s, s:f, s:f, s:I, s:I, s:I}", "network", fds_net_text(net), "lr",
                             fds__decimal(p->lr), "weight_decay", fds__decimal(p->weight_decay),
                             "batch", (json_int_t)p->batch, "epochs", (json_int_t)p->epochs, "seed",
                             (json_int_t)p->seed);
    TRY(fds__utility_about(about, part, err));
    if (p->optimizer == FDS_OPTIMIZER_SGD)
        part = json_pack("{s:s, s:f}", "optimizer", "sgd", "momentum", fds__decimal(p->momentum));
    else
        part =
            json_pack("{s:s, s:f, s:f, s:f}", "optimizer", "adam", "beta1", fds__decimal(p->beta1),
                      "beta2", fds__decimal(p->beta2), "epsilon", fds__decimal(p->epsilon));
    TRY(fds__utility_about(about, part, err));
    if (fds__text_takes_tokens(fds_net_text(net)))
        TRY(fds__utility_about(about, json_pack("{s:s}", "normalisation", "none: token numbers"),
                               err));
    for (uint32_t i = 0; i < net->layer_count; i++)
        if (fds__layer_is_wide(&net->layers[i])) { /* other last digits than version 0.1 */
            TRY(fds__utility_about(about, json_pack("{s:s}", "wide_convolutions", "winograd"),
                                   err));
            break;
        }
    if (!p->converge)
        return FDS_OK;
    part =
        json_pack("{s:o, s:o, s:I}", "loss_bound", number_or_infinite(p->loss_bound), "min_delta",
                  number_or_infinite(p->min_delta), "patience", (json_int_t)p->patience);
    return fds__utility_about(about, part, err);
}

/* ---- making and freeing ---- */

static void retrain_free(void *self) {
    retrain *r = self;
    if (!r)
        return;
    for (unsigned w = 0; r->workers && w < r->data->workers; w++) {
        fds_lane_free(r->workers[w].lane);
        fds__free(r->workers[w].weights);
        fds__free(r->workers[w].members);
    }
    fds__free(r->workers);
    fds__free(r->start);
    fds_net_free(r->net);
    fds__free(r);
}

static fds_status set_worker(const retrain *r, scratch *d, size_t *memory, fds_error *err) {
    size_t samples = r->data->samples->count;
    TRY(fds_lane_create(r->net, &d->lane, err));
    TRY(fds__lane_reserve(d->lane, samples, r->train.batch, err));
    TRY(NEW(d->weights, r->net->weights, err));
    TRY(NEW(d->members, samples, err));
    *memory += sizeof *d + fds__lane_bytes(d->lane) + r->net->weights * sizeof *d->weights +
               samples * sizeof *d->members;
    return FDS_OK;
}

fds_status fds__retrain_create(fds__utility_making *making, fds_error *err) {
    const fds__utility_data *data = making->data;
    retrain *r;
    TRY(NEW(r, 1, err));
    making->self = r;
    r->data = data;
    r->train = fds__retrain_training(making->params, making->number);
    TRY(fds__net_for(making->params->network, making->train, &r->net, err));
    TRY(NEW(r->start, r->net->weights, err));
    TRY(NEW(r->workers, data->workers, err));
    fds_net_init(r->net, r->train.seed, r->start);
    making->memory = sizeof *r + sizeof *r->net + r->net->weights * sizeof *r->start;
    for (unsigned w = 0; w < data->workers; w++)
        TRY(set_worker(r, &r->workers[w], &making->memory, err));
    return describe(making->about, r->net, &r->train, err);
}

/* ---- answering ---- */

static fds_status retrain_eval(const void *self, unsigned worker, const uint64_t *coalition,
                               float *probs, fds_error *err) {
    const retrain *r = self;
    const fds__utility_data *data = r->data;
    scratch *d = &r->workers[worker];
    fds_train_report report;
    size_t count = fds__utility_members(data, coalition, d->members);
    memcpy(d->weights, r->start, r->net->weights * sizeof *d->weights);
    fds_status status = fds_lane_train(d->lane, data->samples, d->members, count, &r->train,
                                       d->weights, &report, NULL, err);
    if (status == FDS_OK)
        status =
            fds_lane_predict(d->lane, data->inputs, 0, data->inputs->count, d->weights, probs, err);
    if (status == FDS_OK && data->sink)
        status = data->sink->take(data->sink->context, worker, coalition, d->weights, err);
    if (status == FDS_OK && data->service && count == data->samples->count)
        status = data->service->take(data->service->context, d->weights, &report, err);
    return status == FDS_ERR_DIVERGED ? fds__utility_fail(data, coalition, status, err) : status;
}

const fds__utility_kind fds__retrain_kind = {.eval = retrain_eval, .free = retrain_free};

/* ---- the trained weights ---- */

const fds_net *fds__utility_network(const fds_utility *utility) {
    return utility->kind == &fds__retrain_kind ? ((const retrain *)utility->self)->net : NULL;
}

void fds__utility_set_sink(const fds_utility *utility, const fds__sink *sink) {
    utility->data->sink = sink;
}

/* ---- one network for all samples ---- */

/* Trains the initial weights on all samples. */
static fds_status train_all(const fds_net *net, const fds_inputs *samples,
                            const fds_train_params *params, float *weights, fds_error *err) {
    fds_lane *lane;
    OWNED uint32_t *members = NULL;
    TRY(NEW(members, samples->count, err));
    for (size_t i = 0; i < samples->count; i++)
        members[i] = (uint32_t)i;
    TRY(fds_lane_create(net, &lane, err));
    fds_status status =
        fds_lane_train(lane, samples, members, samples->count, params, weights, NULL, NULL, err);
    fds_lane_free(lane);
    return status;
}

fds_status fds__retrain_network(const fds__utility_making *making, uint32_t number, fds_net **net,
                                float **weights, fds_error *err) {
    const fds__utility_data *data = making->data;
    fds_train_params params = fds__retrain_training(making->params, number);
    TRY(fds__net_for(making->params->network, making->train, net, err));
    TRY(NEW(*weights, (*net)->weights, err));
    fds_net_init(*net, params.seed, *weights);
    if (!number)
        return FDS_OK;
    TRY(train_all(*net, data->samples, &params, *weights, err));
    return describe(making->about, *net, &params, err);
}
