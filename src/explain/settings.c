/* SPDX-License-Identifier: Apache-2.0
 *
 * The paper's four methods are settings of one pipeline:
 *
 *            sub-models                     coalitions             outputs
 *   fds      trained until converged        of all players         one per player
 *   afds     trained for K epochs           of all players         one per player
 *   gfds     trained for K epochs           one group's members    one per player
 *                                           and the other groups
 *   gfds+    trained for K epochs           of groups              one per group, or one per player
 *                                                                  with the penalty gamma
 *
 * All sub-models learn at beta times lr, as in the paper's experiments. */
#include "explain/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    EPOCHS = 10,          /* of a sub-model, except in FDS */
    PER_PLAYER_GFDS = 10, /* coalitions per player by default: GFDS */
    PER_GROUP = 10,       /* per group: GFDS+ */
    LEAST_GROUPED = 100,
    LEAST_VALIDATION = 20, /* validation coalitions: one in twenty, but not fewer */
    VALIDATION_SHARE = 20,
    VALIDATION_INPUTS = 10, /* one input in ten */
    MANY_PLAYERS = 1000,    /* more than so many players get factors */
    RANK = 256,             /* so many; docs/many-players.md has what they hold */
};

/* In the order of the parameter "explainer". Of networks, the best measured for their time
 * (docs/accuracy.md); 2e-4 is the paper's. */
static const struct {
    const char *name;
    float lr;
    uint32_t batch, epochs;
} explainers[] = {
    {.name = "auto"},
    {.name = "probe"},
    {.name = "bank"},
    {"mlp", 1e-3f, 64, 25},
    {"cnn", 1e-3f, 64, 20},
    {"resnet18", 2e-4f, 64, 20},
    {"resnet50", 2e-4f, 64, 20},
    {"linear", 1e-3f, 64, 40},
};
enum { AUTO, PROBE, BANK, MLP };

const char *fds__fit_stage_name(fds__fit_stage stage) {
    static const char *const names[] = {"sub-models", "values", "explainer", "check"};
    return (unsigned)stage < FDS__FIT_STAGES ? names[stage] : "?";
}

static bool is_grouped(fds_sampler sampler) {
    return sampler == FDS_SAMPLER_GFDS || sampler == FDS_SAMPLER_GFDS_PLUS;
}

fds_status fds__fit_default(const char *method, fds_params *params, fds_error *err) {
    if (!method || fds__choice_find("fds|afds|gfds|gfds+", method) < 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`method` must be fds, afds, gfds or gfds+ (got %.60s)",
                         method ? method : "");
    *params = fds__params_default(FDS__JOB_FIT);
    params->method = method;
    return FDS_OK;
}

/* ---- what follows from the parameters ---- */

static size_t even(size_t count) { return count / 2 * 2; }

static fds_status default_coalitions(const fds__fit_settings *s, const fds_problem *problem,
                                     size_t groups, size_t *count, fds_error *err) {
    const fds__utility_params utility = fds__fit_utility(s);
    if (!is_grouped(s->sampler))
        return fds__default_coalitions(problem, &utility, s->sampler, problem->input_count, count,
                                       err);
    *count = s->sampler == FDS_SAMPLER_GFDS_PLUS
                 ? PER_GROUP * groups
                 : PER_PLAYER_GFDS * fds_players_count(problem->players);
    *count = MAX(*count, (size_t)LEAST_GROUPED);
    return FDS_OK;
}

static fds_status size_plan(fds__fit_settings *s, const fds_params *p, const fds_problem *problem,
                            size_t groups, fds_error *err) {
    bool has_rounds = p->until_error > 0;
    size_t count = has_rounds ? (size_t)p->round : (size_t)p->coalitions;
    if (!count)
        TRY(default_coalitions(s, problem, groups, &count, err));
    if (has_rounds && !p->round)
        count = fds__until_first(fds_players_count(problem->players), count);
    if (has_rounds) {
        fds__until_begin(&s->until, p, count, FDS__MAX_ROWS / 2);
        count = s->until.count;
    }
    size_t validation = even(MAX(count / VALIDATION_SHARE, (size_t)LEAST_VALIDATION));
    size_t most = fds__most_coalitions(s->sampler, fds_players_count(problem->players));
    if (count + validation > most) { /* a small game: all coalitions, a twentieth for validation */
        validation = even(MAX(most / VALIDATION_SHARE, (size_t)2));
        count = most > validation ? MIN(count, most - validation) : 0;
        s->until.most = MIN(s->until.most, MAX(most, validation) - validation);
    }
    s->until.count = count;
    s->coalitions = count;
    s->validation_coalitions = validation;
    return FDS_OK;
}

static void settle_explainer(fds__fit_settings *s, const fds_params *p, int at) {
    bool is_plus = s->sampler == FDS_SAMPLER_GFDS_PLUS,
         is_by_group = is_plus && p->output_form == 0;
    s->is_bank = at == BANK;
    s->keeps_models = s->is_bank || p->keep_models;
    s->explainer = (fds__explainer_params){
        .network = explainers[at].name,
        .weights = p->weights,
        .warm_up = p->warm_up,
        .is_by_group = is_by_group,
        .gamma = is_plus && !is_by_group ? (float)p->gamma : 0,
        .objective = (fds__objective)p->objective,
        .lr = p->explainer_lr != 0 ? (float)p->explainer_lr : explainers[at].lr,
        .batch = p->explainer_batch ? (uint32_t)p->explainer_batch : explainers[at].batch,
        .epochs = p->explainer_epochs ? (uint32_t)p->explainer_epochs : explainers[at].epochs,
        .patience = (uint32_t)p->patience,
        .draws = (uint32_t)p->draws,
        .precision = p->precision == 1 ? FDS__PRECISION_BF16 : FDS__PRECISION_F32,
        .seed = p->seed,
        .threads = s->explainer_threads,
    };
}

/* The number of factors; 0: none. players: 0 if they are not known yet. */
static fds_status read_rank(const fds_params *p, size_t players, size_t *rank, fds_error *err) {
    char *end = NULL;
    *rank = 0;
    if (!p->rank || !strcmp(p->rank, "full"))
        return FDS_OK;
    unsigned long long number = strtoull(p->rank, &end, 10);
    if (p->rank[0] < '1' || p->rank[0] > '9' || *end || number > UINT32_MAX)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`rank` must be full or a whole number above 0 (got %.60s)", p->rank);
    if (players && number >= players)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`rank` must be below the number of players, %zu (got %.60s)", players,
                         p->rank);
    *rank = (size_t)number;
    return FDS_OK;
}

/* Factors of the players of a network. */
static fds_status settle_rank(fds__fit_settings *s, const fds_params *p, size_t players,
                              fds_error *err) {
    TRY(read_rank(p, players, &s->explainer.rank, err));
    bool is_network = !s->is_bank && !s->probes;
    if (is_network && !p->rank && players > MANY_PLAYERS && s->sampler != FDS_SAMPLER_GFDS_PLUS)
        s->explainer.rank = RANK;
    s->explainer.learns_new = p->rank_from == 1;
    if (s->explainer.learns_new && !s->explainer.rank)
        return fds__fail(err, FDS_ERR_USAGE, "`rank_from` samples needs factors: give a `rank`");
    if (s->explainer.learns_new && fds__command_of(s->kind))
        return fds__fail(err, FDS_ERR_USAGE,
                         "`rank_from` samples needs a service model with features, and `utility` "
                         "command has none");
    return FDS_OK;
}

/* Seconds that a sub-model takes to answer for one input on a core of the kind that answer_ms is
 * about. Measured: 90 GFLOP/s, and 40 GB/s of weights of 2 bytes. A model of the time, not a
 * measurement, so that the same parameters give the same run on every machine. */
static fds_status answer_seconds(const fds__fit_settings *s, const fds_problem *problem,
                                 double *seconds, fds_error *err) {
    fds_net *net;
    TRY(fds__net_for(s->utility.network, problem->train, &net, err));
    /* the lane engine computes 16 lanes for one input */
    const double lanes = net->is_plain ? 1 : FDS__MANY_NETS;
    *seconds = lanes * (double)fds_net_flops_forward(net) / 90e9 + 2 * (double)net->weights / 40e9;
    fds_net_free(net);
    return FDS_OK;
}

/* Decides what answers, and how many sub-models are asked. */
static fds_status choose_explainer(fds__fit_settings *s, const fds_params *p,
                                   const fds_problem *problem, const fds_groups *groups,
                                   fds_error *err) {
    enum { LEAST_PROBES = 4 * FDS__MANY_NETS, MOST_PROBES = 64 * FDS__MANY_NETS };
    const double most_sums = 1 << 25; /* numbers in the normal equations of all labels */
    int at = p->explainer < 0 ? AUTO : p->explainer;
    double each;
    if (at != AUTO && at != PROBE)
        return FDS_OK;
    if (problem->train->targets) {
        snprintf(s->reason, sizeof s->reason, "it is a regression");
        settle_explainer(s, p, BANK);
        return FDS_OK;
    }
    if (fds__command_of(s->kind)) {
        snprintf(s->reason, sizeof s->reason,
                 "a program answers for coalitions, and it has no sub-models to keep");
        settle_explainer(s, p, MLP);
        return FDS_OK;
    }
    TRY(answer_seconds(s, problem, &each, err));
    size_t all = s->coalitions + 2;
    double within = p->answer_ms / 1000 / each;
    /* a tenth of the time is for all else; the map takes a nanosecond per probe and player */
    double fit =
        0.9 * p->answer_ms / 1000 / (each + 1e-9 * (double)fds_players_count(problem->players));
    fit = MIN(MIN(fit, (double)all), MIN(MOST_PROBES, sqrt(most_sums / problem->train->classes)));
    size_t probes = (size_t)fit / FDS__MANY_NETS * FDS__MANY_NETS;
    if (at == AUTO && fds__params_need(p, FDS__NEED_NETWORK)) {
        snprintf(s->reason, sizeof s->reason, "a parameter of networks is given");
        settle_explainer(s, p, MLP);
        return FDS_OK;
    }
    const size_t unknowns =
        fds__ls_unknowns(s->sampler, fds_players_count(problem->players), groups, s->adjust);
    if (at == AUTO && unknowns > FDS__LS_MOST_DIRECT) {
        snprintf(s->reason, sizeof s->reason,
                 "sub-models answer by least squares of at most %d unknowns, and this takes %zu",
                 FDS__LS_MOST_DIRECT, unknowns);
        settle_explainer(s, p, MLP);
        return FDS_OK;
    }
    if (at == AUTO) {
        at = (double)all <= within ? BANK : probes >= LEAST_PROBES ? PROBE : MLP;
        snprintf(s->reason, sizeof s->reason,
                 "%zu sub-models would take about %.3g ms, and answer_ms is %g",
                 at == MLP ? LEAST_PROBES : all,
                 1000 * each * (double)(at == MLP ? LEAST_PROBES : all), p->answer_ms);
        settle_explainer(s, p,
                         at == PROBE ? AUTO : at); /* fit.c measures whether it is the probe */
    }
    if (at == PROBE)
        s->probes = MAX(probes, MIN((size_t)FDS__MANY_NETS, even(all)));
    return FDS_OK;
}

/* How sub-models are trained. */
static void settle_utility(fds__fit_settings *s, const fds_problem *problem, const fds_params *p) {
    bool is_fds = strcmp(s->method, "fds") == 0;
    if (p->utility)
        snprintf(s->kind, sizeof s->kind, "%s", p->utility); /* check_settings: it fits */
    else if (is_fds)
        snprintf(s->kind, sizeof s->kind, "retrain");
    else
        snprintf(s->kind, sizeof s->kind, "retrain:%llu",
                 (unsigned long long)(p->epochs ? p->epochs : EPOCHS));
    s->utility = fds__utility_params_of(problem, p, NULL);
}

/* ---- mistakes ---- */

static fds_status check_settings(const fds_params *p, const fds__fit_settings *s, fds_error *err) {
    const fds__explainer_params *e = &s->explainer;
    const bool is_command = fds__command_of(s->kind);
    if (strncmp(s->kind, "retrain", 7) != 0 && !is_command)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "`utility` must be retrain, retrain:K or command:PROGRAM, because the service model "
            "answers for all players (got %.60s)",
            s->kind);
    if (p->utility && strlen(p->utility) >= sizeof s->kind)
        return fds__fail(err, FDS_ERR_USAGE, "`utility` must have less than %zu characters",
                         sizeof s->kind);
    if (p->utility && p->epochs)
        return fds__fail(err, FDS_ERR_USAGE, "`epochs` does not apply: `utility` is %.60s",
                         s->kind);
    if (is_command && (s->is_bank || p->explainer == PROBE || p->keep_models))
        return fds__fail(err, FDS_ERR_USAGE,
                         "%s needs sub-models whose weights can be kept, and `utility` command has "
                         "none; use `explainer` mlp, cnn, resnet18, resnet50, linear or auto",
                         p->keep_models ? "`keep_models`"
                         : s->is_bank   ? "`explainer` bank"
                                        : "`explainer` probe");
    TRY(fds__check_training(p, s->kind, !is_command, !is_command, err));
    if (p->weights && strncmp(e->network, "resnet", 6) != 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`weights` needs `explainer` resnet18 or resnet50 (got %s)", e->network);
    size_t rank;
    TRY(read_rank(p, 0, &rank, err));
    TRY(fds__check_even(p, s->sampler, err));
    return e->precision == FDS__PRECISION_BF16 ? fds__deep_bf16_check(err) : FDS_OK;
}

/* A sub-model of a run for changing data must not depend on players that it does not have. */
static fds_status check_changing(const fds_params *p, const fds__fit_settings *s,
                                 const fds_problem *problem, fds_error *err) {
    bool is_fixed = p->normalise == FDS__NORMALISE_FIXED,
         is_public = p->normalise == FDS__NORMALISE_PUBLIC;
    if ((is_fixed || is_public) && fds__command_of(s->kind))
        return fds__fail(err, FDS_ERR_USAGE,
                         "`normalise` does not apply: `utility` command normalises by the players");
    if (is_public && problem && !problem->has_test_part)
        return fds__fail(err, FDS_ERR_USAGE, "`normalise` public: %s has no test part",
                         problem->train->source);
    if (p->changing != 1)
        return FDS_OK;
    if (is_grouped(s->sampler) || p->sampler >= 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`changing` has a sampler of its own, whose coalitions stay when others "
                         "come and go: %s does not apply",
                         is_grouped(s->sampler) ? s->method : "`sampler`");
    if (fds__command_of(s->kind))
        return fds__fail(
            err, FDS_ERR_USAGE,
            "`changing` needs `utility` retrain or retrain:K: what a program's answers "
            "depend on is not known");
    if (p->normalise == FDS__NORMALISE_PLAYERS)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`changing` needs `normalise` fixed or public: normalised by all players, "
                         "every sub-model depends on everybody");
    if (is_fixed && p->task == 1)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`changing` with `task` regression needs `normalise` public, by which "
                         "targets are standardised too");
    if (p->group && strcmp(p->group, "label") && strcmp(p->group, "provider") &&
        strcmp(p->group, "all") && !fds__is_by_model(p->group))
        return fds__fail(
            err, FDS_ERR_USAGE,
            "`changing` needs `group` label, provider, model or all: a file of players "
            "does not know those who come (got %.60s)",
            p->group);
    return FDS_OK;
}

/* The values of a regression are no linear function of predictions, so that a probe would not do; and
 * what a network would learn from depends on the target. */
static fds_status check_regression(const fds_params *p, const fds__fit_settings *s,
                                   fds_error *err) {
    if (fds__command_of(s->kind))
        return fds__fail(err, FDS_ERR_USAGE,
                         "`task` regression is explained by kept sub-models, and `utility` command "
                         "has none; fds value computes the values of test samples");
    if (p->explainer > AUTO && p->explainer != BANK)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`explainer` %s does not explain regressions: its sub-models do; use bank "
                         "or auto",
                         fds__choice(p, explainer));
    if (fds__params_need(p, FDS__NEED_NETWORK))
        return fds__fail(err, FDS_ERR_USAGE,
                         "parameters of an explaining network do not apply with `task` regression, "
                         "whose sub-models answer");
    return FDS_OK;
}

/* No input may be there twice or belong to a player. */
static fds_status check_inputs(const fds_problem *problem, fds_error *err) {
    const fds_dataset *train = problem->train;
    const fds_players *players = problem->players;
    const uint32_t *inputs = problem->inputs;
    size_t count = problem->input_count;
    if (count < VALIDATION_INPUTS)
        return fds__fail(err, FDS_ERR_USAGE, "`inputs` must be at least %d (got %zu)",
                         VALIDATION_INPUTS, count);
    TRY(fds__players_check(train, players, err));
    if (problem->inputs_of_test)
        return fds__samples_check(problem->test, inputs, count, err);
    TRY(fds__samples_check(train, inputs, count, err));
    bool *is_owned;
    TRY(RESERVE(is_owned, train->count, 1, err));
    for (size_t p = 0; p < fds_players_count(players); p++) {
        const uint32_t *index;
        size_t owned = fds_players_samples(players, p, &index);
        for (size_t i = 0; i < owned; i++)
            is_owned[index[i]] = true;
    }
    fds_status status = FDS_OK;
    for (size_t i = 0; i < count && status == FDS_OK; i++) {
        size_t sample = inputs ? inputs[i] : i;
        if (is_owned[sample])
            status =
                fds__fail(err, FDS_ERR_USAGE,
                          "sample %zu belongs to a player or is named twice; the explainer learns "
                          "from inputs that no model was trained on",
                          sample);
        is_owned[sample] = true;
    }
    fds__free(is_owned);
    return status;
}

/* ---- all of it ---- */

fds_status fds__fit_read(const fds_params *params, const fds_problem *problem,
                         fds__fit_settings *out, fds_error *err) {
    const char *surrogate;
    *out = (fds__fit_settings){.method = params->method ? params->method : "fds",
                               .seed = params->seed};
    fds__fit_settings *s = out;
    TRY(fds__params_check(params, s->method, NULL, err));
    TRY(fds__group_value_check(params, err));
    bool is_gfds = strncmp(s->method, "gfds", 4) == 0;
    s->sampler = !is_gfds
                     ? (params->sampler < 0 ? FDS_SAMPLER_LEVERAGE : (fds_sampler)params->sampler)
                 : strcmp(s->method, "gfds+") == 0 ? FDS_SAMPLER_GFDS_PLUS
                                                   : FDS_SAMPLER_GFDS;
    TRY(fds__adjust_read(params->adjust, s->sampler, &s->adjust, &s->adjust_name, &surrogate, err));
    if (params->group && !is_gfds && s->adjust == FDS_ADJUST_NONE)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`group` needs method gfds or gfds+, or `adjust` other than none");
    s->has_groups = is_gfds || s->adjust != FDS_ADJUST_NONE;
    s->threads = params->threads ? (unsigned)params->threads : fds_processors();
    s->explainer_threads = params->explainer_threads ? params->explainer_threads : s->threads;
    s->plan_seed = fds__draw_seed(params->seed, params->draw);
    settle_utility(s, problem, params);
    settle_explainer(s, params, params->explainer < 0 ? AUTO : params->explainer);
    TRY(check_settings(params, s, err));
    TRY(check_changing(params, s, problem, err));
    s->keys = problem && problem->identities ? problem->identities->players : NULL;
    if (problem ? problem->train->targets != NULL : params->task == 1)
        TRY(check_regression(params, s, err));
    return fds__command_of(s->kind) ? FDS_OK
                                    : fds__network_check(problem, s->utility.network, NULL, err);
}

fds_status fds_fit_check(const fds_params *params, fds_error *err) {
    fds__fit_settings unused;
    return fds__fit_read(params, NULL, &unused, err);
}

fds_status fds__fit_settle(const fds_params *params, const fds_problem *problem,
                           const fds_groups *groups, fds__fit_settings *s, fds_error *err) {
    size_t players = fds_players_count(problem->players);
    assert(!groups || fds_groups_players(groups) == players);
    TRY(size_plan(s, params, problem, groups ? fds_groups_count(groups) : 0, err));
    if (s->coalitions < 2)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "%zu player%s too few for an explainer: there are not enough coalitions to learn "
            "from and to validate; use exact values (fds value --method exact)",
            players, players == 1 ? " is" : "s are");
    if (is_grouped(s->sampler) && fds_groups_count(groups) < 2)
        return fds__fail(err, FDS_ERR_USAGE, "method %s needs two groups or more", s->method);
    TRY(check_inputs(problem, err));
    TRY(choose_explainer(s, params, problem, groups, err));
    TRY(settle_rank(s, params, players, err));
    s->validation_inputs = MAX(problem->input_count / VALIDATION_INPUTS, (size_t)1);
    return FDS_OK;
}

fds_status fds__fit_prepare(const fds_problem *problem, const fds_params *params,
                            const fds_events *events, fds__fit_settings *settings,
                            fds_groups **groups, fds_error *err) {
    TRY(fds__fit_read(params, problem, settings, err));
    settings->events = events;
    const fds__utility_params utility = fds__fit_utility(settings);
    if (settings->has_groups)
        TRY(fds__groups_for(problem, fds__group_by(problem, params, settings->sampler), &utility,
                            events, groups, err));
    return fds__fit_settle(params, problem, *groups, settings, err);
}

void fds__fit_give_reason(const fds__fit_settings *s, fds__fit_report *r) {
    const fds__fit_choice *c = &r->choice;
    int used = snprintf(r->reason, sizeof r->reason, "%s", s->reason);
    if (c->is_measured)
        snprintf(
            r->reason + used, sizeof r->reason - (size_t)used,
            "; on %zu validation inputs least squares on %zu misallocate %.1f of each 100, and "
            "a learnt map from them %.1f%s",
            s->validation_inputs, s->probes, 100 * c->bank, 100 * c->probe,
            c->is_bank || c->probe <= c->bank ? "" : "; least squares needed a ridge");
}
