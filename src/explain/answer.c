/* SPDX-License-Identifier: Apache-2.0
 *
 * The answers of a run for its inputs, as a result, and a figure of them. */
#include "explain/run_inside.h"

#include <math.h>
#include <string.h>

enum { CHUNK = 64 }; /* inputs between two reports of progress, which may cancel */

/* ---- the question ---- */

typedef struct {
    fds_run *run;
    const fds_input *in;
    fds__answerer by;
    bool is_given, has_check;
    uint32_t *labels; /* (count) */
    float *probs;     /* (count, classes); of a regression standardised predictions */
    double *targets;  /* (count) of a regression: standardised; or NULL */
    const fds__new_players *new_ones; /* whom to value; NULL: the run's players */
    double start_s;
} question;

static fds_status fail_target(const fds_run *run, uint32_t classes, const char *target,
                              fds_error *err) {
    const char **names;
    char hint[FDS__HINT];
    TRY(RESERVE(names, (size_t)classes + 3, 1, err));
    for (uint32_t c = 0; c < classes; c++)
        names[c] = fds__run_class_name(run, c);
    names[classes] = "predicted";
    names[classes + 1] = "true";
    fds_status status =
        fds__fail(err, FDS_ERR_USAGE,
                  "`target` must be predicted, true or one of the run's %u classes (got %.60s)%s",
                  classes, target, fds__hint(target, names, hint));
    fds__free(names);
    return status;
}

/* The targets of a regression that are explained: what is predicted, the true ones, or a number. */
static fds_status choose_targets(question *q, const char *target, fds_error *err) {
    const fds__aim aim = fds__run_get_info(q->run).aim;
    char *end = NULL;
    double number = fds__read_double(target, &end);
    bool is_true = strcmp(target, "true") == 0;
    if (is_true && !q->in->targets)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`target` true: the true targets of these inputs are not known");
    if (!is_true && (end == target || *end || !isfinite(number)))
        return fds__fail(err, FDS_ERR_USAGE,
                         "`target` must be predicted, true or a number in a regression (got %.60s)",
                         target);
    for (size_t i = 0; i < q->in->count; i++)
        q->targets[i] = ((is_true ? q->in->targets[i] : number) - aim.mean) / aim.std;
    return FDS_OK;
}

static fds_status choose_labels(question *q, const char *target, fds_error *err) {
    uint32_t classes = fds__run_get_info(q->run).classes;
    q->is_given = target && strcmp(target, "predicted") != 0;
    if (!q->is_given && q->in->service) {
        q->is_given = true;
        for (size_t i = 0; i < q->in->count; i++)
            q->labels[i] = fds__argmax(q->in->service + i * classes, classes);
        return FDS_OK;
    }
    if (!q->is_given)
        return FDS_OK;
    if (q->targets)
        return choose_targets(q, target, err);
    if (strcmp(target, "true") == 0) {
        if (!q->in->truth)
            return fds__fail(
                err, FDS_ERR_USAGE,
                "`target` true: the true labels of these inputs are not known (those of "
                "samples by `index` are); name a label");
        memcpy(q->labels, q->in->truth, q->in->count * sizeof *q->labels);
        return FDS_OK;
    }
    uint32_t label = fds__run_find_class(q->run, target);
    if (label == classes)
        return fail_target(q->run, classes, target, err);
    for (size_t i = 0; i < q->in->count; i++)
        q->labels[i] = label;
    return FDS_OK;
}

static fds_status choose_answerer(question *q, const fds_params *params, fds_error *err) {
    const fds__run_info info = fds__run_get_info(q->run);
    int by = params ? params->answer_by : -1;
    q->has_check = params && params->check;
    q->by = by == 1 || info.asks_all ? FDS__ANSWERER_BANK : FDS__ANSWERER_EXPLAINER;
    if (info.asks_all && by == 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`by` explainer: the run has none, its sub-models answer");
    if (q->has_check && info.asks_all)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`check`: the run's sub-models answer, there is no explainer to check");
    if (q->has_check && by == 1)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "`check` compares the explainer with the bank: it does not apply to `by` bank");
    if ((q->has_check || q->by == FDS__ANSWERER_BANK) && !info.has_bank)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`%s: the run has no sub-models to answer; fit it with `keep_models`",
                         q->has_check ? "check`" : "by` bank");
    return FDS_OK;
}

static fds_status solve(question *q, fds_result *r, const fds_events *events, fds_error *err) {
    size_t n = r->players;
    size_t chunk = fds__run_has_program(q->run) ? q->in->count : CHUNK; /* it starts for each */
    double start_s = fds__now_s();
    for (size_t done = 0; done < q->in->count;) {
        size_t count = MIN(q->in->count - done, chunk);
        fds__answers part = {.labels = q->labels + done,
                             .targets = q->targets ? q->targets + done : NULL,
                             .probs = q->probs + done * (q->targets ? 1 : r->classes),
                             .full = r->full + done,
                             .empty = r->empty + done,
                             .values = r->values + done * n,
                             .errors = r->errors + done * n};
        TRY(q->new_ones ? fds__run_explain_new(q->run, q->new_ones, q->in->ds, q->in->index + done,
                                               count, q->is_given, &part, err)
                        : fds__run_explain(q->run, q->by, q->in->ds, q->in->index + done, count,
                                           q->is_given, &part, err));
        if (q->has_check) {
            part = (fds__answers){.labels = q->labels + done,
                                  .values = r->checks + done * n,
                                  .errors = r->check_errors + done * n};
            TRY(fds__run_explain(q->run, FDS__ANSWERER_BANK, q->in->ds, q->in->index + done, count,
                                 true, &part, err));
        }
        done += count;
        TRY(fds__report(events, "explain", "inputs", done, q->in->count, start_s, err));
    }
    return FDS_OK;
}

/* The numbers of a prediction. */
static fds_status name_targets(const question *q, size_t k, fds_result *r, fds_error *err) {
    const fds__aim aim = fds__run_get_info(q->run).aim;
    double predicted = aim.mean + aim.std * (double)q->probs[k];
    TRY(fds__result_number(r, predicted, &r->predicted[k], err));
    if (q->in->targets)
        TRY(fds__result_number(r, q->in->targets[k], &r->truth[k], err));
    r->labels[k] = r->predicted[k];
    return q->is_given
               ? fds__result_number(r, aim.mean + aim.std * q->targets[k], &r->labels[k], err)
               : FDS_OK;
}

static fds_status name_new(const fds__new_players *who, fds_result *r, fds_error *err) {
    for (size_t i = 0; i < who->count; i++) {
        uint32_t label = who->labels[i];
        if (who->targets)
            TRY(fds__result_number(r, who->targets[i], &label, err));
        TRY(fds__result_name_player(r, i, who->names[i], NULL, label, who->sizes[i], err));
    }
    return FDS_OK;
}

static fds_status name_players(const question *q, fds_result *r, fds_error *err) {
    const fds_run *run = q->run;
    for (size_t i = 0; i < r->players; i++) {
        uint32_t label = fds__run_player_label(run, i);
        if (q->targets)
            TRY(fds__result_number(r, fds__run_player_target(run, i), &label, err));
        TRY(fds__result_name_player(r, i, fds__run_player_name(run, i),
                                    fds__run_player_provider(run, i), label,
                                    fds__run_player_size(run, i), err));
    }
    for (size_t i = 0; i < r->players; i++)
        r->player_groups[i] = fds__run_player_group(run, i);
    return FDS_OK;
}

static fds_status name_result(const question *q, fds_result *r, fds_error *err) {
    const fds_run *run = q->run;
    if (q->targets)
        TRY(fds__result_regression(r, err));
    TRY(q->new_ones ? name_new(q->new_ones, r, err) : name_players(q, r, err));
    for (uint32_t c = 0; !q->targets && c < r->classes; c++)
        TRY(fds__result_name_class(r, c, fds__run_class_name(run, c), err));
    for (size_t k = 0; k < r->predictions; k++) {
        char name[512];
        uint32_t sample = q->in->index[k];
        bool has_id = q->in->has_ids;
        snprintf(name, sizeof name, "%ssample %u%s%.400s", q->in->is_test ? "test " : "", sample,
                 has_id ? ", " : "", has_id ? q->in->ds->sample_names[sample] : "");
        TRY(fds__result_name_input(r, k, q->in->names ? q->in->names[k] : name, err));
        r->samples[k] = q->in->names ? FDS__UNKNOWN : sample;
        if (q->targets) {
            TRY(name_targets(q, k, r, err));
            continue;
        }
        r->labels[k] = q->labels[k];
        r->truth[k] = q->in->truth ? q->in->truth[k] : FDS__UNKNOWN;
        for (uint32_t c = 0; q->in->service && c < r->classes; c++)
            q->probs[k * r->classes + c] = (float)q->in->service[k * r->classes + c];
        r->predicted[k] = fds__argmax_f32(q->probs + k * r->classes, r->classes);
        r->confidence[k] = (double)q->probs[k * r->classes + r->predicted[k]];
    }
    return FDS_OK;
}

/* Players that are several providers. */
static json_t *describe_clusters(const fds_run *run, size_t players) {
    json_t *list = json_array();
    bool is_whole = list;
    for (size_t i = 0; i < players && is_whole; i++)
        if (fds__run_player_members(run, i))
            is_whole = fds__json_append(list, json_pack("{s:s, s:O}", "player",
                                                        fds__run_player_name(run, i), "members",
                                                        fds__run_player_members(run, i)));
    return fds__json_keep_if(list, is_whole);
}

/* Who answers, and where standard errors come from, for people. */
static const char *say_by(const question *q) {
    return !q->new_ones          ? q->by == FDS__ANSWERER_BANK ? "bank" : "explainer"
           : q->new_ones->models ? "sub-models trained with each new player"
                                 : "prediction from samples";
}

static const char *say_errors(const question *q) {
    if (!q->new_ones)
        return fds__run_error_source(q->run, q->by);
    if (!q->new_ones->models)
        return "of players left out";
    return fds__new_models_are_all(q->new_ones->models)
               ? "none: all coalitions of the run's players were trained"
           : fds__new_models_are_noisy(q->new_ones->models)
               ? "spread over the coalitions joined, and noise of the program"
               : "spread over the coalitions that each new player joins";
}

/* Adds who the new players are, and what was trained with them. */
static json_t *describe_new(const question *q, json_t *about) {
    const fds__new_players *who = q->new_ones;
    bool is_whole = fds__json_put(about, "new_players", json_integer((json_int_t)who->count)) &&
                    fds__json_put(about, "new_player", fds__json_string(q->run->read_path));
    if (who->models)
        is_whole = is_whole &&
                   fds__json_put(about, "new_models",
                                 json_integer((json_int_t)fds__new_models_drawn(who->models))) &&
                   fds__json_put(about, "trained_models",
                                 json_integer((json_int_t)fds__new_models_trained(who->models)));
    return fds__json_keep_if(about, is_whole);
}

static json_t *describe(const question *q, const fds_result *r, double seconds) {
    const fds__run_info info = fds__run_get_info(q->run);
    json_t *about = json_pack(
        "{s:s, s:s, s:o, s:s, s:s, s:s, s:I, s:o, s:s, s:s, s:o, s:f}", "version", FDS_VERSION,
        "task", info.is_regression ? "regression" : "classification", "run",
        fds__json_string(fds__run_folder(q->run)), "method", info.method, "data", info.source,
        "explainer", info.explainer, "players", (json_int_t)info.players, "clusters",
        describe_clusters(q->run, q->new_ones ? 0 : r->players), "by", say_by(q), "errors",
        say_errors(q), "check_errors",
        fds__json_string(q->has_check ? fds__run_error_source(q->run, FDS__ANSWERER_BANK) : NULL),
        "seconds", seconds);
    return about && q->new_ones ? describe_new(q, about) : about;
}

static fds_status fill(question *q, const fds_events *events, fds_result *r, fds_error *err) {
    if (q->has_check) {
        TRY(RESERVE(r->checks, q->in->count, r->players, err));
        TRY(RESERVE(r->check_errors, q->in->count, r->players, err));
    }
    TRY(solve(q, r, events, err));
    TRY(name_result(q, r, err));
    fds__result_average(r);
    json_decref(r->about);
    r->about = describe(q, r, fds__now_s() - q->start_s);
    return r->about ? FDS_OK : fds__fail_json(err);
}

/* The mistakes that any inputs would show. */
static fds_status check_params(question *q, const fds_params *params, fds_error *err) {
    const bool has_new = params && params->new_player;
    if (!has_new)
        TRY(choose_answerer(q, params, err));
    q->has_check = params && params->check;
    if (has_new)
        return run_check_new(q->run, params, err);
    return params && params->new_models
               ? fds__fail(err, FDS_ERR_USAGE, "`new_models` needs `new_player`")
               : FDS_OK;
}

/* Finds all mistakes of the question, before anything is trained. */
static fds_status check_question(question *q, const fds_params *params, fds_error *err) {
    const fds__run_info info = fds__run_get_info(q->run);
    const size_t count = q->in->count;
    TRY(check_params(q, params, err));
    TRY(fds__run_check_inputs(q->run, q->in->ds, q->in->index, count, err));
    TRY(RESERVE(q->labels, count, 1, err));
    TRY(RESERVE(q->probs, count, info.classes, err));
    if (info.is_regression)
        TRY(RESERVE(q->targets, count, 1, err));
    return choose_labels(q, params ? params->explained_label : NULL, err);
}

static fds_status answer(question *q, const fds_params *params, const fds_events *events,
                         fds_result **out, fds_error *err) {
    const fds__run_info info = fds__run_get_info(q->run);
    fds_result *r;
    TRY(check_question(q, params, err));
    if (params && params->new_player)
        TRY(run_new_players(q->run, params, events, &q->new_ones, err));
    TRY(fds__result_create(info.method, q->new_ones ? q->new_ones->count : info.players,
                           q->in->count, info.is_regression ? 0 : info.classes, &r, err));
    fds__run_set_events(q->run, events);
    fds_status status = fill(q, events, r, err);
    fds__run_set_events(q->run, NULL);
    if (status != FDS_OK)
        fds_result_free(r);
    else
        *out = r;
    return status;
}

fds_status fds_run_explain(fds_run *run, const fds_input *in, const fds_params *params,
                           const fds_events *events, fds_result **out, fds_error *err) {
    question q = {.run = run, .in = in, .start_s = fds__now_s()};
    fds_status status = answer(&q, params, events, out, err);
    fds__free(q.labels);
    fds__free(q.probs);
    fds__free(q.targets);
    return status;
}

fds_status fds_run_explain_prepare(fds_run *run, const fds_params *params, const fds_events *events,
                                   fds_error *err) {
    const fds_input none = {.count = 0};
    double any;
    question q = {.run = run, .in = &none};
    if (fds__run_get_info(run).is_regression)
        q.targets = &any;
    TRY(check_params(&q, params, err));
    TRY(choose_labels(&q, params ? params->explained_label : NULL, err));
    return params && params->new_player ? run_new_players(run, params, events, &q.new_ones, err)
                                        : FDS_OK;
}

/* ---- the figure ---- */

fds_status fds_run_draw(fds_run *run, const fds_input *in, const fds_result *r, uint32_t columns,
                        const char *png_path, fds_error *err) {
    const fds__run_info info = fds__run_get_info(run);
    const char *by = json_string_value(json_object_get(r->about, "by"));
    /* a picture of new players would be one of the run's */
    bool are_single =
        by && (!strcmp(by, "explainer") ||
               !strcmp(by, "bank")); /* a picture of one sample says nothing of a provider */
    for (size_t i = 0; i < info.players; i++)
        are_single &= fds__run_player_size(run, i) == 1;
    if (!info.is_image || info.is_regression || !are_single)
        return draw_result(r, info.is_image ? in->ds : NULL, in->index, columns, png_path, err);
    float *probs;
    TRY(RESERVE(probs, in->count, info.classes, err));
    /* the figure shows the probability of the predicted label alone */
    for (size_t k = 0; k < in->count; k++)
        probs[k * info.classes + r->predicted[k]] = (float)r->confidence[k];
    const fds__answers answers = {.labels = r->labels, .probs = probs, .values = r->values};
    fds_status status = fds__run_draw(run, in->ds, in->index, in->count, in->truth, &answers,
                                      columns, png_path, err);
    fds__free(probs);
    return status;
}
