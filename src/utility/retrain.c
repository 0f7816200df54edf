/* SPDX-License-Identifier: Apache-2.0
 *
 * "retrain" and "retrain:K": the value of a coalition is what a network answers that was trained on
 * its samples alone. All networks start from the same weights, and the place of a sample in the
 * mini-batches depends on its number alone, so the answer is a function of the set; that of all
 * players is, bit for bit, the model that fds_model_train makes of their samples. */
#include "utility/utility.h"

#include <math.h>
#include <string.h>

enum { CONVERGE_EPOCHS = 1000 }; /* the cap of "retrain" */
enum { NAMED_PLAYERS = 3 };      /* in a message */

typedef struct {
    fds_lane *lane;
    float *weights;    /* (net) */
    uint32_t *members; /* (samples) */
} desk;

typedef struct {
    const fds_value_data *data;
    fds_train_params train;
    fds_net *net;
    float *start; /* initial weights */
    desk *desks;  /* (workers) */
} retrain;

/* ---- parameters ---- */

fds_train_params fds_retrain_training(const fds_value_params *params, uint32_t number) {
    fds_train_params train = params->train;
    train.converge = !number;
    train.epochs = number ? number : CONVERGE_EPOCHS;
    if (number)
        train.lr = (float)(fds_decimal(train.lr) * fds_decimal(params->beta));
    return train;
}

fds_status fds_retrain_check(const fds_value_params *params, uint32_t number, fds_error *err) {
    if (!params->network)
        return fds_fail(err, FDS_USAGE, "retraining needs a network, for example \"lenet5\"");
    if (number && !(params->beta > 0 && isfinite(params->beta)))
        return fds_fail(err, FDS_USAGE, "beta is %g, but must be a number above 0",
                        (double)params->beta);
    fds_train_params train = params->train;
    train.epochs = 1; /* not the caller's */
    FDS_TRY(fds_train_params_check(&train, err));
    train = fds_retrain_training(params, number);
    if (!(train.lr > 0 && isfinite(train.lr)))
        return fds_fail(err, FDS_USAGE, "lr %g times beta %g is %g, but must be a number above 0",
                        (double)params->train.lr, (double)params->beta, (double)train.lr);
    return fds_train_params_check(&train, err);
}

/* ---- the text ---- */

/* A bound may be infinite, which JSON has no number for. */
static json_t *number_or_infinite(float value) {
    return isfinite(value) ? json_real(fds_decimal(value)) : json_string("infinite");
}

/* Adds the pairs of part, which may be NULL for want of memory. */
static bool add(json_t *about, json_t *part) {
    bool right = part && json_object_update(about, part) == 0;
    json_decref(part);
    return right;
}

bool fds_retrain_describe(json_t *about, const fds_net *net, const fds_train_params *p) {
    bool right =
        add(about, json_pack("{s:s, s:f, s:f, s:I, s:I, s:I}", "network", fds_net_text(net), "lr",
                             fds_decimal(p->lr), "weight_decay", fds_decimal(p->weight_decay),
                             "batch", (json_int_t)p->batch, "epochs", (json_int_t)p->epochs, "seed",
                             (json_int_t)p->seed));
    if (p->optimizer == FDS_SGD)
        right &= add(about, json_pack("{s:s, s:f}", "optimizer", "sgd", "momentum",
                                      fds_decimal(p->momentum)));
    else
        right &= add(about, json_pack("{s:s, s:f, s:f, s:f}", "optimizer", "adam", "beta1",
                                      fds_decimal(p->beta1), "beta2", fds_decimal(p->beta2),
                                      "epsilon", fds_decimal(p->epsilon)));
    if (p->converge)
        right &=
            add(about, json_pack("{s:o, s:o, s:I}", "loss_bound", number_or_infinite(p->loss_bound),
                                 "min_delta", number_or_infinite(p->min_delta), "patience",
                                 (json_int_t)p->patience));
    return right;
}

/* ---- making and freeing ---- */

static void retrain_free(void *self) {
    retrain *r = self;
    if (!r)
        return;
    for (unsigned w = 0; r->desks && w < r->data->workers; w++) {
        fds_lane_free(r->desks[w].lane);
        fds_free(r->desks[w].weights);
        fds_free(r->desks[w].members);
    }
    fds_free(r->desks);
    fds_free(r->start);
    fds_net_free(r->net);
    fds_free(r);
}

static fds_status set_desk(const retrain *r, desk *d, size_t *memory, fds_error *err) {
    size_t samples = r->data->samples->count;
    FDS_TRY(fds_lane_create(r->net, &d->lane, err));
    FDS_TRY(fds_lane_reserve(d->lane, samples, err));
    d->weights = fds_alloc_zero(r->net->weights, sizeof *d->weights);
    d->members = fds_alloc_zero(samples, sizeof *d->members);
    if (!d->weights || !d->members)
        return fds_fail_nomem(err, r->net->weights * sizeof *d->weights);
    *memory += sizeof *d + fds_lane_bytes(d->lane) + r->net->weights * sizeof *d->weights +
               samples * sizeof *d->members;
    return FDS_OK;
}

static fds_status fill(retrain *r, fds_value_making *making, fds_error *err) {
    const fds_value_data *data = r->data;
    FDS_TRY(
        fds_net_create(making->params->network, data->samples->shape, data->classes, &r->net, err));
    r->start = fds_alloc_zero(r->net->weights, sizeof *r->start);
    r->desks = fds_alloc_zero(data->workers, sizeof *r->desks);
    if (!r->start || !r->desks)
        return fds_fail_nomem(err, r->net->weights * sizeof *r->start);
    fds_net_init(r->net, r->train.seed, r->start);
    making->memory = sizeof *r + sizeof *r->net + r->net->weights * sizeof *r->start;
    for (unsigned w = 0; w < data->workers; w++)
        FDS_TRY(set_desk(r, &r->desks[w], &making->memory, err));
    return fds_retrain_describe(making->about, r->net, &r->train) ? FDS_OK : fds_fail_nomem(err, 1);
}

fds_status fds_retrain_create(fds_value_making *making, fds_error *err) {
    retrain *r = fds_alloc_zero(1, sizeof *r);
    if (!r)
        return fds_fail_nomem(err, sizeof *r);
    r->data = making->data;
    r->train = fds_retrain_training(making->params, making->number);
    fds_status status = fill(r, making, err);
    if (status != FDS_OK) {
        retrain_free(r);
        return status;
    }
    making->self = r;
    return FDS_OK;
}

/* ---- answering ---- */

/* Says of which coalition the trouble is. */
static fds_status fail_diverged(const fds_value_data *data, const uint64_t *coalition,
                                fds_error *err) {
    if (!err)
        return FDS_DIVERGED;
    char names[200] = "";
    size_t size = 0;
    for (size_t p = 0, players = fds_players_count(data->players); p < players; p++) {
        if (!fds_coalition_has(coalition, p))
            continue;
        size_t used = strlen(names);
        if (size < NAMED_PLAYERS)
            snprintf(names + used, sizeof names - used, "%s%.50s", size ? ", " : "",
                     fds_players_name(data->players, p));
        size++;
    }
    return fds_fail(err, FDS_DIVERGED, "the coalition of %zu players (%s%s): %s", size, names,
                    size > NAMED_PLAYERS ? ", ..." : "", err->text);
}

static fds_status retrain_eval(const void *self, unsigned worker, const uint64_t *coalition,
                               float *probs, fds_error *err) {
    const retrain *r = self;
    const fds_value_data *data = r->data;
    desk *d = &r->desks[worker];
    size_t count = fds_value_members(data, coalition, d->members);
    memcpy(d->weights, r->start, r->net->weights * sizeof *d->weights);
    fds_status status = fds_lane_train(d->lane, data->samples, d->members, count, &r->train,
                                       d->weights, NULL, NULL, err);
    if (status == FDS_OK)
        status =
            fds_lane_predict(d->lane, data->inputs, 0, data->inputs->count, d->weights, probs, err);
    if (status == FDS_OK && data->sink)
        status = data->sink->take(data->sink->context, worker, coalition, d->weights, err);
    return status == FDS_DIVERGED ? fail_diverged(data, coalition, err) : status;
}

const fds_value_kind fds_retrain_kind = {.eval = retrain_eval, .free = retrain_free};

/* ---- the trained weights ---- */

const fds_net *fds_value_network(const fds_value *value) {
    return value->kind == &fds_retrain_kind ? ((const retrain *)value->self)->net : NULL;
}

void fds_value_set_sink(const fds_value *value, const fds_sink *sink) { value->data->sink = sink; }

fds_status fds_retrain_all(const fds_net *net, const fds_inputs *samples,
                           const fds_train_params *params, float *weights, fds_error *err) {
    fds_lane *lane = NULL;
    uint32_t *members = fds_alloc_zero(samples->count, sizeof *members);
    if (!members)
        return fds_fail_nomem(err, samples->count * sizeof *members);
    for (size_t i = 0; i < samples->count; i++)
        members[i] = (uint32_t)i;
    fds_status status = fds_lane_create(net, &lane, err);
    if (status == FDS_OK)
        status = fds_lane_train(lane, samples, members, samples->count, params, weights, NULL, NULL,
                                err);
    fds_lane_free(lane);
    fds_free(members);
    return status;
}
