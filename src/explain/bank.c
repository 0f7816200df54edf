/* SPDX-License-Identifier: Apache-2.0
 *
 * The bank: for a small service model the sub-models themselves are an explainer. The bank
 * evaluates all of them on the input and solves least squares on their answers, which gives the
 * values with their standard errors. Everything that does not depend on the answers is prepared on
 * opening. A bank of probes (probe.c) only evaluates.
 *
 * Weights are in memory in groups of 16 sub-models, 2 bytes each. All threads evaluate group by
 * group, for up to FDS__MANY_INPUTS inputs at a time, so that the weights are read once for these;
 * then each input is solved on its own. The bits depend neither on the number of threads nor on
 * which inputs are explained together.
 */
#include "explain/run.h"

#include <math.h>
#include <string.h>

struct fds__bank {
    const fds_plan *plan;
    fds_net *net; /* its own copy */
    fds__many *many;
    fds__bank_slots slots;
    fds__ls_prepared *solver; /* NULL: of probes */
    fds_plan *joined;         /* whose coalitions are solved for, if players were joined; or NULL */
    uint32_t *joined_rows;    /* (rows of joined) in plan */
    double *joined_answers;   /* (FDS__MANY_INPUTS, rows of joined) */
    uint16_t *groups;         /* (groups, weights, 16) */
    size_t group_count;
    unsigned workers;
    float *inputs;  /* (FDS__MANY_INPUTS, input size) */
    float *answers; /* (FDS__MANY_INPUTS, groups, 16): probabilities of the inputs' labels */
    double *rows;   /* (FDS__MANY_INPUTS, rows of the plan): the same by row */
    char path[FDS__PATH_MAX];
};

void fds__bank_free(fds__bank *bank) {
    if (!bank)
        return;
    fds__free(bank->rows);
    fds__free(bank->inputs);
    fds__free(bank->answers);
    fds__free(bank->groups);
    fds__ls_prepared_free(bank->solver);
    fds_plan_free(bank->joined);
    fds__free(bank->joined_rows);
    fds__free(bank->joined_answers);
    fds__bank_slots_free(&bank->slots);
    fds__many_free(bank->many);
    fds_net_free(bank->net);
    fds__free(bank);
}

/* ---- opening ---- */

static fds_status make_arrays(fds__bank *bank, fds_error *err) {
    size_t nets = bank->group_count * FDS__MANY_NETS;
    size_t inputs = FDS__MANY_INPUTS * fds__many_input_size(bank->many) * sizeof(float);
    size_t weights = nets * bank->slots.weights * sizeof *bank->groups;
    TRY(RESERVE(bank->answers, FDS__MANY_INPUTS, nets, err));
    TRY(RESERVE(bank->rows, FDS__MANY_INPUTS, fds_plan_rows(bank->plan), err));
    bank->inputs = fds__alloc_aligned(inputs);
    bank->groups = fds__alloc_aligned(weights);
    return bank->inputs && bank->groups ? FDS_OK : fds__fail_nomem(err, inputs + weights);
}

static fds_status open_bank(fds__bank *bank, const fds__bank_file *file,
                            const fds_ls_params *params, const fds_ls_report *strengths,
                            unsigned threads, fds_error *err) {
    const fds_net *net = file->net;
    TRY(fds__net_create(net->text, net->input, net->classes, net->is_regression, &bank->net, err));
    TRY(fds__bank_slots_init(&bank->slots, bank->net, bank->plan, err));
    bank->group_count = (bank->slots.count + FDS__MANY_NETS - 1) / FDS__MANY_NETS;
    bank->workers = fds__pool_workers(threads, bank->group_count);
    TRY(fds__many_create(bank->net, bank->workers, &bank->many, err));
    if (params)
        TRY(fds__ls_prepared_create(bank->plan, params, strengths, &bank->solver, err));
    TRY(make_arrays(bank, err));
    return fds__bank_read(file, &bank->slots, fds__many_order(bank->many), bank->workers,
                          bank->groups, err);
}

fds_status fds__bank_open(const fds__bank_file *file, const fds_plan *plan,
                          const fds_ls_params *params, const fds_ls_report *strengths,
                          unsigned threads, fds__bank **out, fds_error *err) {
    fds__bank *bank;
    TRY(RESERVE(bank, 1, 1, err));
    bank->plan = plan;
    snprintf(bank->path, sizeof bank->path, "%s", file->path); /* for messages */
    fds_status status = open_bank(bank, file, params, strengths, threads, err);
    if (status != FDS_OK) {
        fds__bank_free(bank);
        return status;
    }
    *out = bank;
    return FDS_OK;
}

fds_status fds__bank_join(fds__bank *bank, const uint32_t *part_of, size_t parts, fds_error *err) {
    const fds_ls_params plain = {.adjust = FDS_ADJUST_NONE};
    assert(!bank->solver && !bank->joined);
    TRY(RESERVE(bank->joined_rows, fds_plan_rows(bank->plan), 1, err));
    TRY(fds__plan_join(bank->plan, part_of, parts, &bank->joined, bank->joined_rows, err));
    TRY(RESERVE(bank->joined_answers, FDS__MANY_INPUTS, fds_plan_rows(bank->joined), err));
    return fds__ls_prepared_create(bank->joined, &plain, &(fds_ls_report){0}, &bank->solver, err);
}

/* ---- answering ---- */

/* The plan whose players are valued. */
static const fds_plan *valued(const fds__bank *bank) {
    return bank->joined ? bank->joined : bank->plan;
}

typedef struct {
    fds__bank *bank;
    const uint32_t *labels;  /* (count) */
    const fds__aim *aim;     /* of a regression; or NULL */
    size_t first, count;     /* of the inputs that are evaluated together */
    double *values, *errors; /* (count, players); errors may be NULL */
} question;

static fds_status run_group(void *context, size_t group, unsigned worker, fds_error *err) {
    question *q = context;
    fds__bank *bank = q->bank;
    const float *probs = fds__many_run(bank->many, worker,
                                       bank->groups + group * bank->slots.weights * FDS__MANY_NETS,
                                       bank->inputs, q->count);
    if (!probs)
        return fds__fail(
            err, FDS_ERR_DIVERGED,
            "%s: sub-models %zu to %zu: an answer for inputs %zu to %zu is infinite or "
            "not a number",
            bank->path, group * FDS__MANY_NETS, group * FDS__MANY_NETS + FDS__MANY_NETS - 1,
            q->first, q->first + q->count - 1);
    for (size_t i = 0; i < q->count; i++)
        memcpy(bank->answers + (i * bank->group_count + group) * FDS__MANY_NETS,
               probs + (i * bank->net->classes + q->labels[i]) * FDS__MANY_NETS,
               FDS__MANY_NETS * sizeof *probs);
    return FDS_OK;
}

static fds_status solve_input(void *context, size_t i, unsigned worker, fds_error *err) {
    question *q = context;
    fds__bank *bank = q->bank;
    size_t players = fds_plan_players(valued(bank)), rows = fds_plan_rows(bank->plan);
    double *row = bank->rows + i * rows;
    (void)worker;
    for (size_t r = 0; q->aim && r < rows; r++)
        row[r] = fds__aim_score(q->aim, q->first + i, row[r]);
    if (bank->joined) {
        double *of_parts = bank->joined_answers + i * fds_plan_rows(bank->joined);
        for (size_t r = 0; r < fds_plan_rows(bank->joined); r++)
            of_parts[r] = row[bank->joined_rows[r]];
        row = of_parts;
    }
    return fds__ls_prepared_solve(bank->solver, row, 1, q->values + i * players,
                                  q->errors ? q->errors + i * players : NULL, err);
}

/* Evaluates all sub-models on a question's inputs: bank->rows. */
static fds_status evaluate(question *q, const fds_inputs *x, fds_error *err) {
    fds__bank *bank = q->bank;
    size_t rows = fds_plan_rows(bank->plan);
    for (size_t i = 0; i < q->count * x->size; i++)
        if (!isfinite(x->values[q->first * x->size + i]))
            return fds__fail(err, FDS_ERR_USAGE, "input %zu: value %zu is infinite or not a number",
                             q->first + i / x->size, i % x->size);
    for (size_t i = 0; i < q->count; i++)
        fds__many_spread(bank->many, x->values + (q->first + i) * x->size,
                         bank->inputs + i * fds__many_input_size(bank->many));
    TRY(fds__pool_run(bank->workers, bank->group_count, run_group, q, "", "", NULL, err));
    for (size_t i = 0; i < q->count; i++)
        for (size_t row = 0; row < rows; row++)
            bank->rows[i * rows + row] =
                (double)
                    bank->answers[i * bank->group_count * FDS__MANY_NETS + bank->slots.of_row[row]];
    return FDS_OK;
}

/* The question of inputs first and after it, as many as fit. */
static question ask(fds__bank *bank, const fds_inputs *x, const uint32_t *labels, size_t first) {
    assert(fds__shape_equal(x->shape, bank->net->input));
    return (question){.bank = bank,
                      .labels = labels + first,
                      .first = first,
                      .count = MIN(x->count - first, (size_t)FDS__MANY_INPUTS)};
}

fds_status fds__bank_explain(fds__bank *bank, const fds_inputs *x, const uint32_t *labels,
                             const fds__aim *aim, double *values, double *errors, fds_error *err) {
    size_t players = fds_plan_players(valued(bank));
    for (size_t first = 0; first < x->count; first += FDS__MANY_INPUTS) {
        question q = ask(bank, x, labels, first);
        q.aim = aim;
        q.values = values + first * players;
        q.errors = errors ? errors + first * players : NULL;
        TRY(evaluate(&q, x, err));
        TRY(fds__pool_run(bank->workers, q.count, solve_input, &q, "", "", NULL, err));
    }
    return FDS_OK;
}

fds_status fds__bank_probe(fds__bank *bank, const fds__probe *probe, const fds_inputs *x,
                           const uint32_t *labels, double *values, double *spreads,
                           fds_error *err) {
    size_t rows = fds_plan_rows(bank->plan), players = fds_plan_players(bank->plan);
    for (size_t first = 0; first < x->count; first += FDS__MANY_INPUTS) {
        question q = ask(bank, x, labels, first);
        TRY(evaluate(&q, x, err));
        for (size_t i = 0; i < q.count; i++)
            fds__probe_run(probe, bank->rows + i * rows, q.labels[i],
                           values + (first + i) * players, &spreads[first + i]);
    }
    return FDS_OK;
}
