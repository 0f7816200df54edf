/* SPDX-License-Identifier: Apache-2.0
 *
 * The bank: for a small service model the sub-models themselves are an explainer. All of them are
 * evaluated on the input, and least squares on their answers, for which everything but the answers
 * is prepared, give the values with their standard errors.
 *
 * The weights are held in memory in groups of 16 sub-models (bank.h), 2 bytes each. Sub-models are
 * evaluated group by group on all threads, for up to FDS_MANY_INPUTS inputs at a time, so that the
 * weights are read once for all of these; then each input is solved for by itself. The bits depend
 * neither on threads nor on which inputs are asked for together.
 */
#include "explain/bank.h"

#include <math.h>
#include <string.h>

struct fds_bank {
    const fds_plan *plan;
    fds_net *net; /* its own copy */
    fds_many *many;
    fds_bank_slots slots;
    fds_ls_prepared *solver;
    uint16_t *groups; /* (groups, weights, 16) */
    size_t group_count;
    unsigned workers;
    float **rooms;  /* (workers) */
    float *inputs;  /* (FDS_MANY_INPUTS, input size) */
    float *answers; /* (FDS_MANY_INPUTS, groups, 16): probabilities of the labels asked for */
    double *rows;   /* (workers, rows of the plan) */
    char path[FDS_PATH_MAX];
};

void fds_bank_free(fds_bank *bank) {
    if (!bank)
        return;
    for (unsigned i = 0; bank->rooms && i < bank->workers; i++)
        fds_free(bank->rooms[i]);
    fds_free(bank->rooms);
    fds_free(bank->rows);
    fds_free(bank->inputs);
    fds_free(bank->answers);
    fds_free(bank->groups);
    fds_ls_prepared_free(bank->solver);
    fds_bank_slots_free(&bank->slots);
    fds_many_free(bank->many);
    fds_net_free(bank->net);
    fds_free(bank);
}

/* ---- opening ---- */

static fds_status make_room(fds_bank *bank, fds_error *err) {
    size_t room = fds_many_room(bank->many) * sizeof(float);
    size_t inputs = FDS_MANY_INPUTS * fds_many_input_size(bank->many) * sizeof(float);
    size_t weights = bank->group_count * bank->slots.weights * FDS_MANY_NETS * sizeof(uint16_t);
    bank->inputs = fds_alloc_aligned(inputs);
    bank->answers =
        fds_alloc_zero(FDS_MANY_INPUTS * bank->group_count * FDS_MANY_NETS, sizeof(float));
    bank->rows = fds_alloc_zero(bank->workers * fds_plan_rows(bank->plan), sizeof(double));
    bank->rooms = fds_alloc_zero(bank->workers, sizeof *bank->rooms);
    bank->groups = fds_alloc_aligned(weights);
    bool ok = bank->inputs && bank->answers && bank->rows && bank->rooms && bank->groups;
    for (unsigned i = 0; ok && i < bank->workers; i++)
        ok = (bank->rooms[i] = fds_alloc_aligned(room)) != NULL;
    return ok ? FDS_OK : fds_fail_nomem(err, weights + room);
}

static fds_status open_bank(fds_bank *bank, const char *path, const fds_net *net,
                            const fds_ls_params *params, const fds_ls_report *strengths,
                            unsigned threads, fds_error *err) {
    FDS_TRY(fds_net_create(net->text, net->input, net->classes, &bank->net, err));
    FDS_TRY(fds_many_create(bank->net, &bank->many, err));
    FDS_TRY(fds_bank_slots_create(bank->net, bank->plan, &bank->slots, err));
    bank->group_count = (bank->slots.count + FDS_MANY_NETS - 1) / FDS_MANY_NETS;
    bank->workers = fds_pool_workers(threads, bank->group_count);
    FDS_TRY(fds_ls_prepared_create(bank->plan, params, strengths, &bank->solver, err));
    FDS_TRY(make_room(bank, err));
    return fds_bank_read(path, bank->net, bank->plan, &bank->slots, fds_many_order(bank->many),
                         bank->workers, bank->groups, err);
}

fds_status fds_bank_open(const char *path, const fds_net *net, const fds_plan *plan,
                         const fds_ls_params *params, const fds_ls_report *strengths,
                         unsigned threads, fds_bank **out, fds_error *err) {
    if (strlen(path) >= FDS_PATH_MAX)
        return fds_fail(err, FDS_USAGE, "path too long: %.100s...", path);
    fds_bank *bank = fds_alloc_zero(1, sizeof *bank);
    if (!bank)
        return fds_fail_nomem(err, sizeof *bank);
    bank->plan = plan;
    strcpy(bank->path, path);
    fds_status status = open_bank(bank, path, net, params, strengths, threads, err);
    if (status != FDS_OK) {
        fds_bank_free(bank);
        return status;
    }
    *out = bank;
    return FDS_OK;
}

/* ---- answering ---- */

typedef struct {
    fds_bank *bank;
    const uint32_t *labels;  /* (count) */
    size_t first, count;     /* of the inputs that are evaluated together */
    double *values, *errors; /* (count, players); errors may be NULL */
} question;

static fds_status ask_group(void *context, size_t group, unsigned worker, fds_error *err) {
    question *q = context;
    fds_bank *bank = q->bank;
    const float *probs =
        fds_many_run(bank->many, bank->groups + group * bank->slots.weights * FDS_MANY_NETS,
                     bank->inputs, q->count, bank->rooms[worker]);
    if (!probs)
        return fds_fail(err, FDS_DIVERGED,
                        "%s: sub-models %zu to %zu: an answer for inputs %zu to %zu is infinite or "
                        "not a number",
                        bank->path, group * FDS_MANY_NETS,
                        group * FDS_MANY_NETS + FDS_MANY_NETS - 1, q->first,
                        q->first + q->count - 1);
    for (size_t i = 0; i < q->count; i++)
        memcpy(bank->answers + (i * bank->group_count + group) * FDS_MANY_NETS,
               probs + (i * bank->net->classes + q->labels[i]) * FDS_MANY_NETS,
               FDS_MANY_NETS * sizeof *probs);
    return FDS_OK;
}

static fds_status solve_input(void *context, size_t i, unsigned worker, fds_error *err) {
    question *q = context;
    fds_bank *bank = q->bank;
    size_t rows = fds_plan_rows(bank->plan), players = fds_plan_players(bank->plan);
    const float *answers = bank->answers + i * bank->group_count * FDS_MANY_NETS;
    double *v = bank->rows + worker * rows;
    for (size_t row = 0; row < rows; row++)
        v[row] = (double)answers[bank->slots.of_row[row]];
    return fds_ls_prepared_solve(bank->solver, v, 1, q->values + i * players,
                                 q->errors ? q->errors + i * players : NULL, err);
}

static fds_status answer(question *q, const fds_inputs *x, fds_error *err) {
    fds_bank *bank = q->bank;
    for (size_t i = 0; i < q->count; i++)
        fds_many_spread(bank->many, x->values + (q->first + i) * x->size,
                        bank->inputs + i * fds_many_input_size(bank->many));
    FDS_TRY(fds_pool_run(bank->workers, bank->group_count, ask_group, q, "", "", NULL, err));
    return fds_pool_run(bank->workers, q->count, solve_input, q, "", "", NULL, err);
}

static fds_status check(const fds_bank *bank, const fds_inputs *x, const uint32_t *labels,
                        fds_error *err) {
    fds_shape a = x->shape, b = bank->net->input;
    if (!fds_shape_equal(a, b))
        return fds_fail(err, FDS_SHAPE, "inputs of %ux%ux%u, the sub-models of %s take %ux%ux%u",
                        a.channels, a.height, a.width, bank->path, b.channels, b.height, b.width);
    for (size_t i = 0; i < x->count; i++)
        if (labels[i] >= bank->net->classes)
            return fds_fail(err, FDS_USAGE, "input %zu: label %u, there are %u classes", i,
                            labels[i], bank->net->classes);
    for (size_t i = 0; i < x->count * x->size; i++)
        if (!isfinite(x->values[i]))
            return fds_fail(err, FDS_USAGE, "input %zu: value %zu is infinite or not a number",
                            i / x->size, i % x->size);
    return FDS_OK;
}

fds_status fds_bank_explain(fds_bank *bank, const fds_inputs *x, const uint32_t *labels,
                            double *values, double *errors, fds_error *err) {
    FDS_TRY(check(bank, x, labels, err));
    size_t players = fds_plan_players(bank->plan);
    for (size_t first = 0; first < x->count; first += FDS_MANY_INPUTS) {
        question q = {.bank = bank,
                      .labels = labels + first,
                      .first = first,
                      .count = FDS_MIN(x->count - first, (size_t)FDS_MANY_INPUTS),
                      .values = values + first * players,
                      .errors = errors ? errors + first * players : NULL};
        FDS_TRY(answer(&q, x, err));
    }
    return FDS_OK;
}
