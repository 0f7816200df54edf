/* SPDX-License-Identifier: Apache-2.0
 *
 * Losses of an explainer and their gradients with respect to the network's outputs; learn.h says how
 * outputs become values phi.
 *
 *   FDS__OBJECTIVE_CLOSED  (phi - target)^2 / D, mean over inputs, labels and players; D: the variance of a
 *               player's targets over the inputs: a constant reaches 1
 *   FDS__OBJECTIVE_PAPER   (v(s) - v(0) - s'phi)^2 / D, mean over inputs, labels and the coalitions drawn for
 *               an input (the paper's loss); D: the mean of (v(1) - v(0))^2
 *
 * gamma adds gamma sum_g max(|phi_g - mean(phi_g)| - t, 0) / D, the distance of a group's members
 * from their mean (GFDS+; with FDS__OBJECTIVE_CLOSED divided by the number of players as well). The
 * tolerance t is TOLERANCE times the scale of the outputs for each member. Members of a group that
 * have equal targets differ by rounding alone, at most 5e-7 of that scale in trainings measured; the
 * direction of such a difference means nothing, and a gradient along it would make the explainer
 * depend on the processor.
 *
 * Both have the same minimiser wherever the network can reach it: for one input, the mean of the
 * second over s is (phi - phi*)' A (phi - phi*) + const with phi* the least-squares values and one
 * A for all inputs.
 *
 * Coalitions are drawn from the rows of the plan, in pairs where the plan has pairs, in proportion
 * to their weights, for each input and step; the labels of an input share them. A training with no
 * more rows than draws takes every row with its weight instead: that is the mean itself.
 */
#include "explain/learn.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOLERANCE 1e-4 /* of the penalty */

void fds__normalise(double total, size_t count, double *values) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    for (size_t i = 0; i < count; i++)
        values[i] += (total - sum) / (double)count;
}

/* ---- outputs and values ---- */

static double total_of(const fds__training *training, size_t input, size_t label) {
    size_t column = input * training->classes + label;
    return training->full[column] - training->empty[column];
}

void learn_members(const fds__training *training, const uint64_t *s, double *out) {
    size_t rank = training->rank;
    if (rank)
        memset(out, 0, rank * sizeof *out);
    for (size_t i = 0; i < training->players; i++) {
        bool is_in = fds_coalition_has(s, i);
        if (!rank)
            out[i] = is_in;
        for (size_t k = 0; is_in && k < rank; k++)
            out[k] += (double)training->factors[i * rank + k];
    }
}

double learn_equal_share(const fds__training *training, const uint64_t *s, size_t input,
                         size_t label) {
    if (!training->rank)
        return 0;
    return total_of(training, input, label) * (double)fds_coalition_size(s, training->players) /
           (double)training->players;
}

void learn_values(const learn_objective *o, size_t input, const float *u, double *phi) {
    const fds__training *training = o->training;
    size_t n = training->players;
    const uint32_t *members;
    for (size_t i = 0; training->rank && i < o->outputs; i++)
        phi[i] = o->scale * (double)u[i];
    if (training->rank)
        return;
    for (size_t y = 0; y < training->classes; y++, u += o->each, phi += n) {
        for (size_t i = 0; !o->is_by_group && i < n; i++)
            phi[i] = o->scale * (double)u[i];
        for (size_t g = 0; o->is_by_group && g < o->each; g++) {
            size_t count = fds_groups_members(training->groups, g, &members);
            for (size_t i = 0; i < count; i++)
                phi[members[i]] = o->scale * (double)u[g] / (double)count;
        }
        fds__normalise(total_of(training, input, y), n, phi);
    }
}

/* The gradient with respect to u (each) from that with respect to phi (width), for one label. */
static void values_back(const learn_objective *o, const double *slope, float *gradient) {
    size_t n = o->training->players;
    const uint32_t *members;
    double mean = 0; /* which normalising removes */
    for (size_t k = 0; o->training->rank && k < o->each; k++)
        gradient[k] = (float)(o->scale * slope[k]);
    if (o->training->rank)
        return;
    for (size_t i = 0; i < n; i++)
        mean += slope[i] / (double)n;
    for (size_t i = 0; !o->is_by_group && i < n; i++)
        gradient[i] = (float)(o->scale * (slope[i] - mean));
    for (size_t g = 0; o->is_by_group && g < o->each; g++) {
        size_t count = fds_groups_members(o->training->groups, g, &members);
        double sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += slope[members[i]] - mean;
        gradient[g] = (float)(o->scale * sum / (double)count);
    }
}

/* ---- the losses of one input; o->phi holds its values, o->slope receives the gradient ---- */

static double closed_loss(learn_objective *o, size_t input) {
    const fds__training *training = o->training;
    size_t size = training->classes * o->width;
    const float *target = training->targets + input * size;
    double loss = 0, factor = 1 / (o->divisor * (double)size);
    for (size_t i = 0; i < size; i++) {
        double off = o->phi[i] - (double)target[i];
        loss += factor * off * off;
        o->slope[i] = 2 * factor * off;
    }
    return loss;
}

static void set_members(learn_objective *o, size_t place) {
    for (size_t d = 0; d < o->draws; d++) {
        size_t row = o->takes_all ? 2 + d : o->drawn[place * o->draws + d].row;
        learn_members(o->training, fds_plan_coalition(o->training->plan, row),
                      o->members + d * o->width);
    }
}

/* place: the input's in the batch */
static double paper_loss(learn_objective *o, size_t input, size_t place) {
    const fds__training *training = o->training;
    size_t labels = training->classes, draws = o->draws, n = o->width;
    const double *v = o->v + place * draws * labels, *empty = training->empty + input * labels;
    double loss = 0, factor = 1 / (o->divisor * (double)labels);
    if (!o->takes_all)
        set_members(o, place);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)labels, (int)draws, (int)n, 1, o->phi,
                (int)n, o->members, (int)n, 0, o->rest, (int)draws);
    for (size_t y = 0; y < labels; y++)
        for (size_t d = 0; d < draws; d++) {
            double *rest = &o->rest[y * draws + d], off = *rest - (v[d * labels + y] - empty[y]);
            loss += factor * o->weights[d] * off * off;
            *rest = 2 * factor * o->weights[d] * off;
        }
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)labels, (int)n, (int)draws, 1,
                o->rest, (int)draws, o->members, (int)n, 0, o->slope, (int)n);
    return loss;
}

/* The penalty of one label; adds its gradient to slope. */
static double penalty(const learn_objective *o, double factor, const double *phi, double *slope) {
    const fds_groups *groups = o->training->groups;
    const uint32_t *members;
    double loss = 0;
    for (size_t g = 0; g < fds_groups_count(groups); g++) {
        size_t count = fds_groups_members(groups, g, &members);
        double mean = 0, square = 0;
        for (size_t i = 0; i < count; i++)
            mean += phi[members[i]] / (double)count;
        for (size_t i = 0; i < count; i++)
            square += (phi[members[i]] - mean) * (phi[members[i]] - mean);
        double norm = sqrt(square), tolerance = TOLERANCE * o->scale * sqrt((double)count);
        if (norm <= tolerance)
            continue;
        loss += factor * (norm - tolerance);
        for (size_t i = 0; i < count; i++)
            slope[members[i]] += factor * (phi[members[i]] - mean) / norm;
    }
    return loss;
}

/* ---- coalitions of a step ---- */

static size_t draw_unit(const learn_objective *o, fds_rng *rng) {
    double target = fds_rng_unit(rng) * o->cumulative[o->units - 1];
    size_t low = 0, high = o->units - 1; /* the first with cumulative > target */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (o->cumulative[middle] > target)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int by_row(const void *a, const void *b) {
    const learn_draw *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return (x->slot > y->slot) - (x->slot < y->slot);
}

static int by_slot(const void *a, const void *b) {
    const learn_draw *x = a, *y = b;
    return (x->slot > y->slot) - (x->slot < y->slot);
}

static void draw_rows(learn_objective *o, uint32_t epoch, uint32_t step) {
    fds_rng rng = fds_rng_make(o->seed, FDS__PURPOSE_DRAW, epoch, step);
    size_t together = fds_plan_is_paired(o->training->plan) ? 2 : 1;
    for (size_t slot = 0; slot < o->batch * o->draws; slot++) {
        size_t row = 2 + slot % o->draws;
        if (!o->takes_all)
            row = together == 2 && slot % 2 ? o->drawn[slot - 1].row + 1
                                            : 2 + together * draw_unit(o, &rng);
        o->drawn[slot] = (learn_draw){row, slot};
    }
}

/* Reads the utilities in the order of the rows, which is that of a table on disk. */
static fds_status read_utilities(learn_objective *o, const uint32_t *inputs, fds_error *err) {
    const fds_rows *rows = o->training->rows;
    size_t count = o->batch * o->draws, labels = o->training->classes;
    qsort(o->drawn, count, sizeof *o->drawn, by_row);
    for (size_t i = 0; i < count; i++) {
        learn_draw d = o->drawn[i];
        size_t input = inputs[d.slot / o->draws];
        double *v = o->v + d.slot * labels;
        TRY(rows->read(rows->context, 0, d.row, input * labels, labels, v, err));
        for (size_t y = 0; y < labels; y++)
            v[y] -= learn_equal_share(o->training, fds_plan_coalition(o->training->plan, d.row),
                                      input, y);
    }
    qsort(o->drawn, count, sizeof *o->drawn, by_slot);
    return FDS_OK;
}

/* ---- a step ---- */

fds_status learn_objective_apply(learn_objective *o, const uint32_t *inputs, uint32_t epoch,
                                 uint32_t step, const float *u, double *loss, float *gradient,
                                 fds_error *err) {
    const fds__training *training = o->training;
    size_t n = o->width, labels = training->classes;
    bool is_closed = o->kind == FDS__OBJECTIVE_CLOSED;
    double strength = o->gamma / (o->divisor * (double)labels * (is_closed ? (double)n : 1));
    double sum = 0;
    if (!is_closed) {
        draw_rows(o, epoch, step);
        TRY(read_utilities(o, inputs, err));
    }
    for (size_t b = 0; b < o->batch; b++) {
        learn_values(o, inputs[b], u + b * o->outputs, o->phi);
        sum += is_closed ? closed_loss(o, inputs[b]) : paper_loss(o, inputs[b], b);
        for (size_t y = 0; y < labels; y++) {
            if (strength > 0)
                sum += penalty(o, strength, o->phi + y * n, o->slope + y * n);
            for (size_t i = 0; i < n; i++)
                o->slope[y * n + i] /= o->batch;
            values_back(o, o->slope + y * n, gradient + b * o->outputs + y * o->each);
        }
    }
    *loss = sum / o->batch;
    if (!isfinite(*loss))
        return fds__fail(err, FDS_ERR_DIVERGED,
                         "the explainer's loss is no longer finite in epoch %u: use a smaller "
                         "learning rate",
                         epoch + 1);
    return FDS_OK;
}

double learn_cross_entropy(const fds__training *training, const uint32_t *inputs, size_t count,
                           const float *u, float *gradient) {
    size_t labels = training->classes;
    double loss = 0;
    for (size_t b = 0; b < count; b++, u += labels, gradient += labels) {
        double most = u[0], sum = 0;
        uint16_t truth = training->labels[inputs[b]];
        for (size_t y = 1; y < labels; y++)
            most = fmax(most, u[y]);
        for (size_t y = 0; y < labels; y++)
            sum += exp(u[y] - most);
        for (size_t y = 0; y < labels; y++)
            gradient[y] = (float)((exp(u[y] - most) / sum - (y == truth)) / (double)count);
        loss += log(sum) + most - u[truth];
    }
    return loss / (double)count;
}

/* ---- scales ---- */

static double mean_square_total(const fds__training *training) {
    double sum = 0;
    size_t train = training->inputs - training->validation;
    for (size_t i = 0; i < train; i++)
        for (size_t y = 0; y < training->classes; y++)
            sum += total_of(training, i, y) * total_of(training, i, y);
    return sum / ((double)train * training->classes);
}

/* An input's targets (classes, outputs): of the players or factors, or the sums of the groups. */
static void output_targets(const learn_objective *o, bool is_by_group, size_t input, double *out) {
    const fds__training *training = o->training;
    size_t n = o->width, outputs = is_by_group ? o->each : n;
    const float *target = training->targets + input * training->classes * n;
    memset(out, 0, training->classes * outputs * sizeof *out);
    for (size_t y = 0; y < training->classes; y++)
        for (size_t i = 0; i < n; i++)
            out[y * outputs + (is_by_group ? fds_groups_of(training->groups, i) : i)] +=
                (double)target[y * n + i];
}

/* mean (classes, outputs) of the targets over the training inputs; returns the variance. */
static double target_spread(learn_objective *o, bool is_by_group, double *mean) {
    const fds__training *training = o->training;
    size_t size = training->classes * (is_by_group ? o->each : o->width);
    size_t train = training->inputs - training->validation;
    double sum = 0;
    memset(mean, 0, size * sizeof *mean);
    for (size_t i = 0; i < train; i++) {
        output_targets(o, is_by_group, i, o->phi);
        for (size_t j = 0; j < size; j++)
            mean[j] += o->phi[j] / (double)train;
    }
    for (size_t i = 0; i < train; i++) {
        output_targets(o, is_by_group, i, o->phi);
        for (size_t j = 0; j < size; j++)
            sum += (o->phi[j] - mean[j]) * (o->phi[j] - mean[j]);
    }
    return sum / (double)(train * size);
}

/* A game of constant utilities has no scale: any will do. */
static double positive(double value) { return value > 0 && isfinite(value) ? value : 1; }

static void set_scales(learn_objective *o) {
    const fds__training *training = o->training;
    if (o->kind == FDS__OBJECTIVE_PAPER) {
        o->divisor = positive(mean_square_total(training));
        o->scale = sqrt(o->divisor / (double)o->each);
        return;
    }
    double *mean = o->slope;
    o->divisor = positive(target_spread(o, false, mean));
    o->scale = sqrt(positive(target_spread(o, o->is_by_group, mean)));
    for (size_t i = 0; i < o->outputs; i++)
        o->start[i] = (float)(mean[i] / o->scale);
}

/* ---- making ---- */

static fds_status set_draws(learn_objective *o, uint32_t draws, fds_error *err) {
    const fds_plan *plan = o->training->plan;
    size_t rows = fds_plan_rows(plan) - 2, together = fds_plan_is_paired(plan) ? 2 : 1;
    o->takes_all = draws >= rows;
    o->draws = o->takes_all ? rows : draws;
    o->units = rows / together;
    TRY(RESERVE(o->cumulative, o->units, 1, err));
    TRY(RESERVE(o->drawn, o->batch, o->draws, err));
    TRY(RESERVE(o->members, o->draws, o->width, err));
    TRY(RESERVE(o->weights, o->draws, 1, err));
    TRY(RESERVE(o->v, o->batch * o->draws, o->training->classes, err));
    TRY(RESERVE(o->rest, o->draws, o->training->classes, err));
    double sum = 0;
    for (size_t row = 0; row < rows; row++) {
        sum += fds_plan_weight(plan, 2 + row);
        o->cumulative[row / together] = sum;
    }
    if (!(sum > 0))
        return fds__fail(err, FDS_ERR_USAGE, "the plan has no coalition of positive weight");
    for (size_t d = 0; d < o->draws; d++)
        o->weights[d] = o->takes_all ? fds_plan_weight(plan, 2 + d) / sum : 1 / (double)o->draws;
    if (o->takes_all)
        set_members(o, 0);
    return FDS_OK;
}

fds_status learn_objective_init(learn_objective *o, const fds__training *training,
                                const fds__explainer_params *params, uint32_t batch,
                                fds_error *err) {
    size_t n = training->rank ? training->rank : training->players;
    assert(params->rank == training->rank &&
           !(training->rank && training->groups && params->gamma > 0));
    *o = (learn_objective){.training = training,
                           .kind = params->objective,
                           .is_by_group = params->is_by_group,
                           .gamma = params->is_by_group || !training->groups ? 0 : params->gamma,
                           .each = params->is_by_group ? fds_groups_count(training->groups) : n,
                           .width = n,
                           .batch = batch,
                           .seed = params->seed};
    o->outputs = training->classes * o->each;
    TRY(RESERVE(o->start, training->classes, n, err));
    TRY(RESERVE(o->phi, training->classes, n, err));
    TRY(RESERVE(o->slope, training->classes, n, err));
    set_scales(o);
    return o->kind == FDS__OBJECTIVE_PAPER ? set_draws(o, params->draws, err) : FDS_OK;
}

void learn_objective_free(learn_objective *o) {
    fds__free(o->start);
    fds__free(o->phi);
    fds__free(o->slope);
    fds__free(o->cumulative);
    fds__free(o->drawn);
    fds__free(o->members);
    fds__free(o->weights);
    fds__free(o->v);
    fds__free(o->rest);
}
