/* SPDX-License-Identifier: Apache-2.0
 * fds train: chooses the players, trains a service model on their samples, scores and saves it. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONVERGE_CAP = 1000 };

typedef struct {
    cli_common common;
    fds_data_options data;
    const char *output, *model, *players, *optimizer;
    bool converge;
    uint64_t epochs, patience, test_count, batch; /* but for batch, 0: not given */
    double loss_bound;                            /* 0: not given */
    double momentum;                              /* -1: not given */
    double lr, weight_decay;
} train_options;

static const cli_option train_table[] = {
    {CLI_ROW(STRING, train_options, output, 'o', "output", "FILE",
             "where the model goes, a safetensors file; needed")},
    {CLI_ROW(STRING, train_options, model, 0, "model", "NET", CLI_MODEL_HELP)},
    {CLI_ROW(STRING, train_options, players, 0, "players", "WHO", CLI_PLAYERS_HELP)},
    {CLI_ROW(UINT, train_options, epochs, 0, "epochs", "K",
             "passes over the samples; with --converge, at most so many [10; 1000]"),
     .min = 1, .max = 1000000},
    {CLI_ROW(FLAG, train_options, converge, 0, "converge", NULL,
             "stop when an epoch's mean loss is below --loss-bound, or has not fallen for "
             "--patience epochs")},
    {CLI_ROW(FLOAT, train_options, loss_bound, 0, "loss-bound", "LOSS", "with --converge [0.01]"),
     .max = 100, .above = true},
    {CLI_ROW(UINT, train_options, patience, 0, "patience", "K", "with --converge [10]"), .min = 1,
     .max = 1000000},
    {CLI_ROW(FLOAT, train_options, lr, 0, "lr", "RATE", "learning rate [0.001]"), .max = 1000,
     .above = true},
    {CLI_ROW(UINT, train_options, batch, 0, "batch", "N", "samples a mini-batch [16]"), .min = 1,
     .max = 65536},
    {CLI_ROW(CHOICE, train_options, optimizer, 0, "optimizer", "adam|sgd",
             "how the weights move [adam]")},
    {CLI_ROW(FLOAT, train_options, momentum, 0, "momentum", "M", "with --optimizer sgd [0]"),
     .max = 0.9999},
    {CLI_ROW(FLOAT, train_options, weight_decay, 0, "weight-decay", "W",
             "added to the gradient, times the weight [0]"),
     .max = 1000},
    {CLI_ROW(UINT, train_options, test_count, 0, "test-count", "N",
             "score on N test samples, as many of each class [the whole test part; where DATA has "
             "none, a fifth of the samples is held back]"),
     .min = 1, .max = 4294967295.0},
    CLI_DATA_OPTIONS(train_options),
};

/* One training, from the options to the scores. */
typedef struct {
    const train_options *o;
    cli_term *term;
    fds_train_params params;
    cli_setup setup;

    fds_model *model;
    fds_train_report report;
    double seconds;
    fds_score on_train, on_test;
} job;

static void job_free(job *j) {
    fds_model_free(j->model);
    cli_setup_free(&j->setup);
}

/* ---- before any work ---- */

static fds_status read_params(job *j, fds_error *err) {
    const train_options *o = j->o;
    bool is_sgd = strcmp(o->optimizer, "sgd") == 0;
    if (!o->converge && (o->loss_bound > 0 || o->patience))
        return cli_fail(err, FDS_ERR_USAGE, "--%s belongs to --converge, which is missing",
                        o->patience ? "patience" : "loss-bound");
    if (!is_sgd && o->momentum >= 0)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--momentum belongs to --optimizer sgd, which is missing");
    fds_train_params *p = &j->params;
    *p = fds_train_params_default();
    p->optimizer = is_sgd ? FDS_OPTIMIZER_SGD : FDS_OPTIMIZER_ADAM;
    p->lr = (float)o->lr;
    p->momentum = o->momentum >= 0 ? (float)o->momentum : 0;
    p->weight_decay = (float)o->weight_decay;
    p->batch = (uint32_t)o->batch;
    p->converge = o->converge;
    if (o->epochs || o->converge)
        p->epochs = o->epochs ? (uint32_t)o->epochs : CONVERGE_CAP;
    if (o->loss_bound > 0)
        p->loss_bound = (float)o->loss_bound;
    if (o->patience)
        p->patience = (uint32_t)o->patience;
    p->seed = o->common.seed;
    return fds_train_params_check(p, err);
}

static fds_status check_options(job *j, fds_error *err) {
    if (!j->o->output)
        return cli_fail(err, FDS_ERR_USAGE,
                        "-o FILE is missing: where the model goes, for example "
                        "-o model.safetensors");
    CLI_TRY(cli_setup_check(&j->setup, err));
    CLI_TRY(read_params(j, err));
    return cli_check_output("-o", j->o->output, j->o->common.operand, err);
}

/* ---- the work ---- */

static fds_status work(job *j, fds_error *err) {
    const cli_setup *s = &j->setup;
    const fds_events *events = &j->term->events;
    unsigned threads = (unsigned)j->o->common.threads;
    double start_s = cli_now_s();
    CLI_TRY(fds_model_train(s->train, s->samples, s->sample_count, s->network, &j->params, events,
                            &j->model, &j->report, err));
    j->seconds = cli_now_s() - start_s;
    CLI_TRY(fds_model_score(j->model, s->train, s->samples, s->sample_count, threads, &j->on_train,
                            events, err));
    CLI_TRY(fds_model_score(j->model, cli_setup_tested(s), s->test_samples, s->test_count, threads,
                            &j->on_test, events, err));
    return fds_model_save(j->model, j->o->output, err);
}

/* ---- the result ---- */

static void print_score(const char *name, const fds_score *score, const char *remark) {
    printf("%-9s loss %.4f, accuracy %.2f %%, %zu samples%s\n", name, score->loss,
           100 * score->accuracy, score->count, remark);
}

static void print_text(const job *j) {
    cli_setup_print(&j->setup, 9);
    printf("%-9s %u epoch%s in %.2f s%s\n", "training", j->report.epochs,
           j->report.epochs == 1 ? "" : "s", j->seconds,
           j->report.converged ? ", converged"
           : j->o->converge    ? ", not converged: stopped at the cap"
                               : "");
    print_score("train", &j->on_train, "");
    print_score("test", &j->on_test, j->setup.test ? "" : ", held back from the data");
    printf("%-9s sha256 %.16s\n", "weights", fds_model_get_info(j->model).sha256);
    printf("%-9s %s\n", "written", j->o->output);
}

static json_t *json_params(const job *j) {
    const fds_train_params *p = &j->params;
    return json_pack("{s:s, s:o, s:o, s:o, s:I, s:I, s:b, s:o, s:I, s:I}", "optimizer",
                     j->o->optimizer, "lr", cli_json_float(p->lr), "momentum",
                     cli_json_float(p->momentum), "weight_decay", cli_json_float(p->weight_decay),
                     "batch", (json_int_t)p->batch, "epochs", (json_int_t)p->epochs, "converge",
                     p->converge, "loss_bound", cli_json_float(p->loss_bound), "patience",
                     (json_int_t)p->patience, "seed", (json_int_t)p->seed);
}

static json_t *json_score(const fds_score *score) {
    return json_pack("{s:I, s:o, s:o}", "count", (json_int_t)score->count, "loss",
                     cli_json_real(score->loss), "accuracy", cli_json_real(score->accuracy));
}

static fds_status print_json(const job *j, fds_error *err) {
    const fds_model_info info = fds_model_get_info(j->model);
    json_t *root = json_pack(
        "{s:s, s:o, s:o, s:o, s:I, s:o, s:o, s:I, s:b, s:o, s:o, s:o, s:b, s:s, s:o}", "version",
        FDS_VERSION, "data", cli_json_text(fds_dataset_get_info(j->setup.train).source), "network",
        cli_json_text(j->setup.network), "layers", cli_json_text(info.network), "weights",
        (json_int_t)info.weights, "players", cli_setup_json_players(&j->setup), "params",
        json_params(j), "epochs", (json_int_t)j->report.epochs, "converged", j->report.converged,
        "seconds", cli_json_real(j->seconds), "train", json_score(&j->on_train), "test",
        json_score(&j->on_test), "test_held_back", !j->setup.test, "sha256", info.sha256, "file",
        cli_json_text(j->o->output));
    return cli_json_print(root, err);
}

static fds_status run_job(job *j, fds_error *err) {
    CLI_TRY(check_options(j, err));
    CLI_TRY(cli_setup_make(&j->setup, j->term, err));
    CLI_TRY(work(j, err));
    cli_term_clear(j->term);
    if (j->o->common.json)
        return print_json(j, err);
    print_text(j);
    return FDS_OK;
}

static fds_status run_train(const cli_command *self, int argc, char **argv, fds_error *err) {
    const fds_train_params usual = fds_train_params_default();
    train_options o = {.optimizer = "adam", .batch = usual.batch, .lr = usual.lr, .momentum = -1};
    cli_term term;
    CLI_TRY(cli_parse(self, argc, argv, &o, err));
    cli_term_init(&term, self, o.common.quiet);
    job j = {.o = &o,
             .term = &term,
             .setup.want = {.common = &o.common,
                            .data = &o.data,
                            .players = o.players,
                            .model = o.model,
                            .test_option = "--test-count",
                            .test_count = o.test_count}};
    fds_status status = run_job(&j, err);
    cli_term_clear(&term);
    job_free(&j);
    return status;
}

const cli_command cli_train = {
    .name = "train",
    .operand = "DATA",
    .needs = "name a fetched set or a path, for example: fds train mnist -o model.safetensors",
    .usage = "DATA -o FILE [options]",
    .summary = "train a service model on the players' samples",
    .about = "Trains a service model on the samples of the players, scores it on them and on "
             "test samples, and saves it. The same seed gives the same weights, bit for "
             "bit, with any number of threads.\n\n"
             "DATA is the name of a fetched set (fds data get) or a path, as for fds data show.",
    .examples = "  fds train mnist --players 100 --epochs 10 -o model.safetensors\n"
                "  fds train sales.csv --label outcome --provider shop --players providers \\\n"
                "      --model mlp --converge -o model.safetensors\n",
    .options = train_table,
    .option_count = CLI_COUNT(train_table),
    .run = run_train,
};
