/* SPDX-License-Identifier: Apache-2.0
 *
 * The answers of a run: the service model gives the predicted label and v(1), its untrained network
 * v(0), or a program both; the explainer, or the bank, divides the difference. */
#include "explain/new_game.h"

#include <string.h>

/* Inputs first .. first+count-1 of those to explain. */
typedef struct {
    size_t first, count;
    const fds_inputs *x;
    float *full, *empty; /* (count, classes) */
    double *spreads;     /* (count): of the probes' answers; 0 without */
    const fds_dataset *ds;
    const uint32_t *index; /* (count) samples of ds */
} part;

/* Of a regression: the scores of what all and no players predict. */
static void keep_scores(const fds_run *run, const part *p, bool is_given, const fds__answers *out) {
    fds__aim aim = run->record.info.aim;
    aim.targets = out->targets;
    for (size_t x = 0; x < p->count; x++) {
        size_t at = p->first + x;
        if (!is_given)
            aim.targets[at] = (double)p->full[x];
        out->labels[at] = 0;
        if (out->probs)
            out->probs[at] = p->full[x];
        if (out->full)
            out->full[at] = fds__aim_score(&aim, at, (double)p->full[x]);
        if (out->empty)
            out->empty[at] = fds__aim_score(&aim, at, (double)p->empty[x]);
    }
}

static void keep_ends(const fds_run *run, const part *p, bool is_given, const fds__answers *out) {
    uint32_t classes = run->record.info.classes;
    if (run->record.info.is_regression) {
        keep_scores(run, p, is_given, out);
        return;
    }
    for (size_t x = 0; x < p->count; x++) {
        const float *full = p->full + x * classes, *empty = p->empty + x * classes;
        size_t at = p->first + x;
        assert(!is_given || out->labels[at] < classes);
        if (!is_given)
            out->labels[at] = fds__argmax_f32(full, classes);
        if (out->probs)
            memcpy(out->probs + at * classes, full, classes * sizeof *full);
        if (out->full)
            out->full[at] = full[out->labels[at]];
        if (out->empty)
            out->empty[at] = empty[out->labels[at]];
    }
}

/* The explainer's values, not yet normalised. */
static fds_status explain_by_network(fds_run *run, const part *p, const fds__answers *out,
                                     fds_error *err) {
    size_t n = run->record.info.players;
    TRY(fds__explainer_run(run->explainer, p->x->values, p->count, out->labels + p->first, run->raw,
                           err));
    for (size_t i = 0; i < p->count * n; i++)
        out->values[p->first * n + i] = (double)run->raw[i];
    return FDS_OK;
}

static fds_status explain_by_probe(fds_run *run, const part *p, const fds__answers *out,
                                   fds_error *err) {
    return fds__bank_probe(run->first, run->probe, p->x, out->labels + p->first,
                           out->values + p->first * run->record.info.players, p->spreads, err);
}

/* Differences that new players make to sub-models. */
static fds_status explain_trained(fds_run *run, const part *p, const fds__answers *out,
                                  fds_error *err) {
    const fds__new_players *who = run->new_ones;
    const size_t at = p->first * who->count;
    const bool is_regression = run->record.info.is_regression;
    fds__aim aim = run->record.info.aim;
    aim.targets = is_regression ? out->targets + p->first : NULL;
    const fds__new_question question = {.ds = p->ds,
                                        .index = p->index,
                                        .x = p->x,
                                        .labels = out->labels + p->first,
                                        .aim = is_regression ? &aim : NULL};
    return fds__new_models_value(run, who->models, &question, out->values + at,
                                 out->errors ? out->errors + at : NULL, err);
}

/* Predictions for new players, beside the equal share that every player of the run has. */
static fds_status explain_new(fds_run *run, const part *p, const fds__answers *out,
                              fds_error *err) {
    const fds__new_players *who = run->new_ones;
    size_t rank = fds__newcomers_rank(run->newcomers), classes = run->record.info.classes;
    OWNED float *coefficients = NULL;
    TRY(RESERVE(coefficients, p->count, rank, err));
    TRY(fds__explainer_coefficients(run->explainer, p->x->values, p->count, out->labels + p->first,
                                    coefficients, err));
    for (size_t x = 0; x < p->count; x++) {
        size_t at = x * classes + out->labels[p->first + x];
        double share =
            ((double)p->full[at] - (double)p->empty[at]) / (double)run->record.info.players;
        for (size_t i = 0; i < who->count; i++) {
            double value = share;
            for (size_t k = 0; k < rank; k++)
                value += (double)coefficients[x * rank + k] * who->h[i * rank + k];
            out->values[(p->first + x) * who->count + i] = value;
            if (out->errors)
                out->errors[(p->first + x) * who->count + i] =
                    fds__newcomers_error(run->newcomers, value);
        }
    }
    return FDS_OK;
}

/* Standard errors of normalised values. */
static void find_errors(const fds_run *run, const part *p, const fds__answers *out) {
    uint32_t classes = run->record.info.classes;
    size_t n = run->record.info.players;
    for (size_t x = 0; x < p->count; x++) {
        size_t at = p->first + x;
        bool is_other = out->labels[at] != fds__argmax_f32(p->full + x * classes, classes);
        fds__calibration_errors(&run->calibration, classes, n, run->player_labels, is_other,
                                out->labels[at], p->spreads[x], out->values + at * n,
                                out->errors + at * n);
    }
}

static fds_status explain_by_bank(const fds_run *run, fds__bank *bank, const part *p,
                                  const fds__answers *out, fds_error *err) {
    size_t at = p->first * run->record.info.players;
    fds__aim aim = run->record.info.aim;
    bool is_regression = run->record.info.is_regression;
    aim.targets = is_regression ? out->targets + p->first : NULL;
    return fds__bank_explain(bank, p->x, out->labels + p->first, is_regression ? &aim : NULL,
                             out->values + at, out->errors ? out->errors + at : NULL, err);
}

/* The bank needs this too: its weights, and so its v(1) and v(0), are rounded to 16 bits. */
static void normalise_part(const fds_run *run, const part *p, const fds__answers *out) {
    size_t n = run->record.info.players;
    fds__aim aim = run->record.info.aim;
    aim.targets = out->targets;
    for (size_t x = 0; x < p->count; x++) {
        size_t at = x * run->record.info.classes + out->labels[p->first + x];
        double full = (double)p->full[at], empty = (double)p->empty[at];
        if (run->record.info.is_regression) {
            full = fds__aim_score(&aim, p->first + x, full);
            empty = fds__aim_score(&aim, p->first + x, empty);
        }
        fds__normalise(full - empty, n, out->values + (p->first + x) * n);
    }
}

/* v(1) and v(0) of a part's inputs, from the service model. */
static fds_status ask_model(fds_run *run, const part *p, fds_error *err) {
    TRY(fds_lane_predict(run->lane, p->x, 0, p->count, fds__model_weights(run->service), p->full,
                         err));
    return fds_lane_predict(run->lane, p->x, 0, p->count, run->initial, p->empty, err);
}

/* Answers for a part whose ends are known. */
static fds_status divide(fds_run *run, fds__answerer by, bool is_given, const part *p,
                         const fds__answers *out, fds_error *err) {
    keep_ends(run, p, is_given, out);
    if (run->new_ones)
        return run->new_ones->models ? explain_trained(run, p, out, err)
                                     : explain_new(run, p, out, err);
    if (run_is_by_all(run, by))
        TRY(run_open_bank(run, err));
    TRY(run_is_by_all(run, by) ? explain_by_bank(run, run->bank, p, out, err)
        : run->probe           ? explain_by_probe(run, p, out, err)
        : run->first           ? explain_by_bank(run, run->first, p, out, err)
                               : explain_by_network(run, p, out, err));
    normalise_part(run, p, out);
    if (out->errors && !run_has_jackknife(run, by))
        find_errors(run, p, out);
    return FDS_OK;
}

static fds_status explain_part(fds_run *run, fds__answerer by, bool is_given, part *p,
                               const fds__answers *out, fds_error *err) {
    fds_inputs *own = NULL;
    fds_utility *owner = NULL;
    fds_status status;
    if (run->program) {
        status = fds__service_program_ask(run->program, p->ds, p->index, p->count, run->events,
                                          p->empty, p->full, &p->x, &owner, err);
    } else {
        const fds__model_info info = fds__model_get_info(run->service);
        status = fds_inputs_create(p->ds, p->index, p->count, info.mean, info.std, &own, err);
        p->x = own;
        if (status == FDS_OK)
            status = ask_model(run, p, err);
    }
    if (status == FDS_OK)
        status = divide(run, by, is_given, p, out, err);
    fds_inputs_free(own);
    fds_utility_free(owner);
    return status;
}

fds_status fds__run_check_inputs(const fds_run *run, const fds_dataset *ds, const uint32_t *index,
                                 size_t count, fds_error *err) {
    fds_shape ours = run->record.info.shape, theirs = ds->shape;
    if (!fds__shape_equal(ours, theirs))
        return fds__fail(err, FDS_ERR_SHAPE,
                         "%s has samples of %ux%ux%u (channels, rows, columns), but the run "
                         "explains %ux%ux%u",
                         ds->source, theirs.channels, theirs.height, theirs.width, ours.channels,
                         ours.height, ours.width);
    return fds__samples_check(ds, index, count, err);
}

fds_status fds__run_explain(fds_run *run, fds__answerer by, const fds_dataset *ds,
                            const uint32_t *index, size_t count, bool is_given,
                            const fds__answers *answers, fds_error *err) {
    TRY(fds__run_check_inputs(run, ds, index, count, err));
    if (run->record.info.is_regression && !answers->targets)
        return fds__fail(err, FDS_ERR_USAGE, "%s: a regression is explained for targets", run->dir);
    size_t chunk = MIN(run->chunk, count), size = chunk * run->record.info.classes;
    float *ends = NULL;
    double *spreads = NULL;
    uint32_t *samples = NULL;
    fds_status status = RESERVE(ends, 2, size, err);
    if (status == FDS_OK)
        status = RESERVE(spreads, chunk, 1, err);
    if (status == FDS_OK)
        status = RESERVE(samples, chunk, 1, err);
    for (size_t first = 0; first < count && status == FDS_OK; first += chunk) {
        part p = {first, MIN(chunk, count - first), NULL, ends, ends + size, spreads, ds, samples};
        for (size_t i = 0; i < p.count; i++)
            samples[i] = index ? index[first + i] : (uint32_t)(first + i);
        status = explain_part(run, by, is_given, &p, answers, err);
    }
    fds__free(ends);
    fds__free(spreads);
    fds__free(samples);
    return status;
}

fds_status fds__run_explain_new(fds_run *run, const fds__new_players *players,
                                const fds_dataset *ds, const uint32_t *index, size_t count,
                                bool is_given, const fds__answers *answers, fds_error *err) {
    run->new_ones = players;
    fds_status status =
        fds__run_explain(run, FDS__ANSWERER_EXPLAINER, ds, index, count, is_given, answers, err);
    run->new_ones = NULL;
    return status;
}

fds_status fds__run_scores(fds_run *run, const fds_dataset *ds, double *scores, fds_error *err) {
    size_t players = run->record.info.players;
    fds_inputs *x = NULL;
    assert(run->service && fds__shape_equal(ds->shape, run->record.info.shape));
    const fds__model_info info = fds__model_get_info(run->service);
    if (!run->reference)
        TRY(fds_inputs_create(run->samples, NULL, players, info.mean, info.std, &run->reference,
                              err));
    TRY(fds_inputs_create(ds, NULL, ds->count, info.mean, info.std, &x, err));
    for (size_t i = 0; i < x->count; i++)
        scores[i] =
            fds__drift_score(run->reference->values, players, x->values + i * x->size, x->size);
    fds_inputs_free(x);
    return FDS_OK;
}
