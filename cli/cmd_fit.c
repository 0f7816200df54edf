/* SPDX-License-Identifier: Apache-2.0
 * fds fit: the main job. A service model, sub-models on coalitions of the players, their values,
 * and an explainer that answers for any input; all in one folder, the run. */
#include "fit.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_COALITIONS = 1 << 24, MOST_INPUTS = 10000000 };

static const cli_option fit_table[] = {
    {CLI_ROW(STRING, fit_options, output, 'o', "output", "RUN",
             "the folder of the run; needed, but with --plan")},
    {CLI_ROW(CHOICE, fit_options, method, 0, "method", "fds|afds|gfds|gfds+",
             "the paper's methods. fds: sub-models trained until they have converged; afds: for K "
             "epochs; gfds: so, one group of players singly and the others as wholes; gfds+: so, "
             "all groups as wholes [fds]")},
    {CLI_ROW(STRING, fit_options, players, 0, "players", "WHO",
             "whose samples it learns from: N samples, as many of each class, each a player; all: "
             "every sample, but those for the explainer, a player; providers: every provider a "
             "player [100, or half of the samples when they are fewer than 200]")},
    {CLI_ROW(UINT, fit_options, inputs, 0, "inputs", "N",
             "samples that the explainer learns from, none of a player's, as many of each class "
             "[3000, or what the data has besides the players; a fifth with --players all or "
             "providers]"),
     .min = 10, .max = MOST_INPUTS},
    {CLI_ROW(STRING, fit_options, model, 0, "model", "NET", CLI_MODEL_HELP)},
    {CLI_ROW(UINT, fit_options, coalitions, 0, "coalitions", "M",
             "sub-models to learn from; all but kernel draw pairs, so it must be even [20 times "
             "the players; gfds 10 times; gfds+ 10 times the groups; at least 100]"),
     .min = 2, .max = MOST_COALITIONS},
    {CLI_ROW(CHOICE, fit_options, sampler, 0, "sampler", "kernel|paired|leverage",
             "fds and afds: how coalitions are drawn [leverage]")},
    {CLI_ROW(UINT, fit_options, draw, 0, "draw", "N", "which coalitions are drawn [0]"),
     .max = CLI_EXACT_MAX},
    {CLI_ROW(CHOICE, fit_options, adjust, 0, "adjust", "none|shrink|counts",
             "how values are drawn from them: plain least squares; shrink, towards their group's "
             "mean; counts, and a fitted game of group sizes is used [counts; shrink with gfds; "
             "none with gfds+]")},
    {CLI_ROW(STRING, fit_options, group, 0, "group", "HOW", CLI_GROUP_HELP)},
    {CLI_ROW(UINT, fit_options, k, 0, "k", "K",
             "afds, gfds, gfds+: epochs that a sub-model is trained [10]"),
     .min = 1, .max = 1000000},
    {CLI_ROW(FLOAT, fit_options, lr, 0, "lr", "RATE", "learning rate [0.0001]"), .max = 1000,
     .above = true},
    {CLI_ROW(FLOAT, fit_options, beta, 0, "beta", "B",
             "all models are trained at B times the learning rate [10]"),
     .max = 1000000, .above = true},
    {CLI_ROW(UINT, fit_options, batch, 0, "batch", "N", "samples a mini-batch [16]"), .min = 1,
     .max = 65536},
    {CLI_ROW(CHOICE, fit_options, optimizer, 0, "optimizer", "adam|sgd",
             "how the weights move [adam]")},
    {CLI_ROW(CHOICE, fit_options, explainer, 0, "explainer",
             "mlp|cnn|resnet18|resnet50|linear|bank",
             "the network that learns to answer; bank: none, the sub-models are kept and answer "
             "themselves [mlp]")},
    {CLI_ROW(STRING, fit_options, weights, 0, "weights", "FILE",
             "resnet18, resnet50: weights to start from, a safetensors file with torchvision's "
             "names")},
    {CLI_ROW(FLAG, fit_options, warm_up, 0, "warm-up", NULL,
             "first train the explainer as a classifier of its inputs")},
    {CLI_ROW(CHOICE, fit_options, objective, 0, "objective", "closed|paper",
             "closed: the explainer learns the least-squares values of its inputs; paper: the "
             "paper's loss on coalitions drawn in each step [closed]")},
    {CLI_ROW(UINT, fit_options, draws, 0, "draws", "N",
             "with --objective paper: coalitions an input and step, an even number [32]"),
     .min = 2, .max = 65536},
    {CLI_ROW(CHOICE, fit_options, form, 0, "form", "groups|penalty",
             "gfds+: one output a group, or one a player drawn to its group's mean [groups]")},
    {CLI_ROW(FLOAT, fit_options, gamma, 0, "gamma", "G", "with --form penalty: how strongly [0.1]"),
     .max = 1000000},
    {CLI_ROW(FLOAT, fit_options, explainer_lr, 0, "explainer-lr", "RATE",
             "the explainer's learning rate [by explainer]"),
     .max = 1000, .above = true},
    {CLI_ROW(UINT, fit_options, explainer_batch, 0, "explainer-batch", "N",
             "inputs a mini-batch [by explainer]"),
     .min = 1, .max = 65536},
    {CLI_ROW(UINT, fit_options, explainer_epochs, 0, "explainer-epochs", "N",
             "passes over the inputs, at the most [by explainer]"),
     .min = 1, .max = 1000000},
    {CLI_ROW(UINT, fit_options, patience, 0, "patience", "N",
             "stop after so many epochs without a better loss on inputs kept out; 0: never [10]"),
     .max = 1000000},
    {CLI_ROW(CHOICE, fit_options, precision, 0, "precision", "f32|bf16",
             "arithmetic of the explainer; bf16 where the processor has it [f32]")},
    {CLI_ROW(FLAG, fit_options, keep_models, 0, "keep-models", NULL,
             "keep the sub-models, for fds explain --check and --by bank")},
    {CLI_ROW(FLAG, fit_options, plan, 0, "plan", NULL,
             "say what it would take, from a few seconds of trying, and stop")},
    CLI_DATA_OPTIONS(fit_options),
};

static void job_free(fit_job *j) {
    fds_run_free(j->run);
    fds_groups_free(j->groups);
    cli_setup_free(&j->setup);
}

/* ---- before any work ---- */

static int place_of(const char *word, const char *const *words) {
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return 0;
}

/* An option that would change nothing is refused: whoever gives it expects something. */
static fds_status check_needed(const fit_job *j, fds_error *err) {
    const fit_options *o = j->o;
    bool is_plus = strcmp(j->method, "gfds+") == 0, is_fds = strcmp(j->method, "fds") == 0;
    bool is_bank = o->explainer && strcmp(o->explainer, "bank") == 0;
    bool is_paper = o->objective && strcmp(o->objective, "paper") == 0;
    bool is_penalty = o->form && strcmp(o->form, "penalty") == 0;
    const char *of_network = o->weights                  ? "weights"
                             : o->warm_up                ? "warm-up"
                             : o->objective              ? "objective"
                             : o->form                   ? "form"
                             : o->explainer_lr > 0       ? "explainer-lr"
                             : o->explainer_batch        ? "explainer-batch"
                             : o->explainer_epochs       ? "explainer-epochs"
                             : o->patience != UINT64_MAX ? "patience"
                             : o->precision              ? "precision"
                                                         : NULL;
    if (is_bank && of_network)
        return cli_fail(err, FDS_ERR_USAGE, "--%s: not with --explainer bank, which has no network",
                        of_network);
    if (is_fds && o->k)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--k belongs to afds, gfds and gfds+: fds trains sub-models until they "
                        "have converged");
    if (j->is_grouped && o->sampler)
        return cli_fail(err, FDS_ERR_USAGE, "--sampler belongs to fds and afds: %s has its own",
                        j->method);
    if (j->is_grouped && o->adjust && strcmp(o->adjust, "counts") == 0)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--adjust counts: not with --method %s, where groups take part as wholes; "
                        "choose none or shrink",
                        j->method);
    if (o->form && !is_plus)
        return cli_fail(err, FDS_ERR_USAGE, "--form belongs to --method gfds+");
    if (o->gamma >= 0 && !is_penalty)
        return cli_fail(err, FDS_ERR_USAGE, "--gamma belongs to --form penalty");
    if (o->draws && !is_paper)
        return cli_fail(err, FDS_ERR_USAGE, "--draws belongs to --objective paper");
    if (o->group && !j->is_grouped && j->params.adjust == FDS_ADJUST_NONE)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--group belongs to --method gfds or gfds+, or to an --adjust other than "
                        "none");
    return FDS_OK;
}

static fds_status check_numbers(const fit_job *j, fds_error *err) {
    const fit_options *o = j->o;
    if (j->params.sampler != FDS_SAMPLER_KERNEL && o->coalitions % 2)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--coalitions %llu: coalitions are drawn in pairs, each with its "
                        "complement: it must be an even number",
                        (unsigned long long)o->coalitions);
    if (o->draws % 2)
        return cli_fail(err, FDS_ERR_USAGE, "--draws %llu: it must be an even number, for pairs",
                        (unsigned long long)o->draws);
    return fds_train_params_check(&j->params.value.train, err);
}

static void read_game(fit_job *j) {
    static const char *const samplers[] = {"kernel", "paired", "leverage", NULL};
    static const char *const adjusts[] = {"none", "shrink", "counts", NULL};
    const fit_options *o = j->o;
    fds_fit_params *p = &j->params;
    if (o->sampler)
        p->sampler = (fds_sampler)place_of(o->sampler, samplers);
    if (o->adjust)
        p->adjust = (fds_adjust)place_of(o->adjust, adjusts);
    p->coalitions = (size_t)o->coalitions;
    if (o->draw != UINT64_MAX)
        p->draw = o->draw;
    if (o->k) {
        snprintf(j->kind, sizeof j->kind, "retrain:%llu", (unsigned long long)o->k);
        p->value.kind = j->kind;
    }
    if (o->lr > 0)
        p->value.train.lr = (float)o->lr;
    if (o->beta > 0)
        p->value.beta = (float)o->beta;
    if (o->batch)
        p->value.train.batch = (uint32_t)o->batch;
    if (o->optimizer && strcmp(o->optimizer, "sgd") == 0)
        p->value.train.optimizer = FDS_OPTIMIZER_SGD;
    p->value.train.seed = o->common.seed;
}

static void read_explainer(fit_job *j) {
    const fit_options *o = j->o;
    fds_fit_params *p = &j->params;
    p->explainer = o->explainer;
    p->weights = o->weights;
    p->warm_up = o->warm_up;
    if (o->form)
        p->is_by_group = strcmp(o->form, "groups") == 0;
    if (o->gamma >= 0)
        p->gamma = (float)o->gamma;
    if (o->objective)
        p->objective =
            strcmp(o->objective, "paper") == 0 ? FDS_OBJECTIVE_PAPER : FDS_OBJECTIVE_CLOSED;
    if (o->explainer_lr > 0)
        p->lr = (float)o->explainer_lr;
    if (o->explainer_batch)
        p->batch = (uint32_t)o->explainer_batch;
    if (o->explainer_epochs)
        p->epochs = (uint32_t)o->explainer_epochs;
    if (o->patience != UINT64_MAX)
        p->patience = (uint32_t)o->patience;
    if (o->draws)
        p->draws = (uint32_t)o->draws;
    if (o->precision)
        p->is_bf16 = strcmp(o->precision, "bf16") == 0;
    p->keep_models = o->keep_models;
    p->seed = o->common.seed;
    p->threads = fit_threads(j);
}

static fds_status check_options(fit_job *j, fds_error *err) {
    const fit_options *o = j->o;
    if (!o->output && !o->plan)
        return cli_fail(err, FDS_ERR_USAGE,
                        "-o RUN is missing: the folder that the run goes to, for example "
                        "-o mnist.run");
    CLI_TRY(cli_setup_check(&j->setup, err));
    CLI_TRY(fds_fit_params_default(j->method, &j->params, err));
    j->is_grouped =
        j->params.sampler == FDS_SAMPLER_GFDS || j->params.sampler == FDS_SAMPLER_GFDS_PLUS;
    read_game(j);
    read_explainer(j);
    CLI_TRY(check_needed(j, err));
    CLI_TRY(check_numbers(j, err));
    return o->plan ? FDS_OK : cli_check_folder("-o", o->output, err);
}

/* ---- the work ---- */

static fds_status make_groups(fit_job *j, fds_error *err) {
    if (!j->is_grouped && j->params.adjust == FDS_ADJUST_NONE)
        return FDS_OK;
    return cli_groups_make(j->o->group ? j->o->group : "label", &j->setup, &j->params.value,
                           j->term, &j->groups, err);
}

static fds_status fit(fit_job *j, fds_error *err) {
    const cli_setup *s = &j->setup;
    fds_status status = fds_fit(j->o->output, j->method, s->train, s->players, j->groups, s->inputs,
                                s->input_count, &j->params, &j->term->events, &j->report, err);
    if (status == FDS_ERR_CANCELLED)
        return cli_fail(err, status,
                        "what is done is kept in %s; the same command goes on from "
                        "there",
                        j->o->output);
    CLI_TRY(status);
    CLI_TRY(fds_run_open(j->o->output, fit_threads(j), &j->run, err));
    return fds_model_score(fds_run_service(j->run), cli_setup_tested(s), s->test_samples,
                           s->test_count, fit_threads(j), &j->on_test, &j->term->events, err);
}

static fds_status run_job(fit_job *j, fds_error *err) {
    const cli_setup *s = &j->setup;
    CLI_TRY(check_options(j, err));
    CLI_TRY(cli_setup_make(&j->setup, j->term, err));
    j->params.value.network = s->network;
    CLI_TRY(make_groups(j, err));
    if (j->o->plan) {
        CLI_TRY(fds_fit_plan(s->train, s->players, j->groups, s->inputs, s->input_count, &j->params,
                             &j->estimate, err));
        return fit_show_plan(j, err);
    }
    CLI_TRY(fit(j, err));
    cli_term_clear(j->term);
    return fit_show(j, err);
}

static fds_status run_fit(const cli_command *self, int argc, char **argv, fds_error *err) {
    fit_options o = {.draw = UINT64_MAX, .patience = UINT64_MAX, .gamma = -1};
    cli_term term;
    CLI_TRY(cli_parse(self, argc, argv, &o, err));
    cli_term_init(&term, self, o.common.quiet);
    fit_job j = {.o = &o,
                 .term = &term,
                 .method = o.method ? o.method : "fds",
                 .setup.want = {.common = &o.common,
                                .data = &o.data,
                                .players = o.players,
                                .model = o.model,
                                .has_inputs = true,
                                .input_count = o.inputs}};
    fds_status status = run_job(&j, err);
    cli_term_clear(&term);
    job_free(&j);
    return status;
}

const cli_command cli_fit = {
    .name = "fit",
    .operand = "DATA",
    .needs = "name a fetched set or a path, for example: fds fit mnist -o mnist.run",
    .usage = "DATA -o RUN [options]",
    .summary = "service model, sub-models and explainer: all that explain and pay need",
    .about = "Trains a service model on the players' samples, and sub-models on coalitions of "
             "them; works out the players' Shapley values for a few thousand inputs, and trains an "
             "explainer to tell them for any input. The run, a folder, is then all that fds "
             "explain and fds pay need.\n\n"
             "A command that was interrupted or killed goes on where it stopped, and ends with the "
             "same bits (those of the explainer depend on --threads and on the kind of processor). "
             "--plan says beforehand what it will take.\n\n"
             "DATA is the name of a fetched set (fds data get) or a path, as for fds data show.",
    .examples = "  fds fit mnist --players 100 -o mnist.run\n"
                "  fds fit sales.csv --label outcome --provider shop --players providers \\\n"
                "      --method afds --keep-models -o shops.run\n",
    .options = fit_table,
    .option_count = CLI_COUNT(fit_table),
    .run = run_fit,
};
