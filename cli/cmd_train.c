/* SPDX-License-Identifier: Apache-2.0
 * fds train: chooses the players, trains a service model on their samples, scores and saves it. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLAYERS_DEFAULT = 100, CONVERGE_CAP = 1000 };

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
    {CLI_ROW(STRING, train_options, model, 0, "model", "NET",
             "lenet5, cnn, mlp, logistic, or layers such as conv:8x3p1,relu,maxpool,fc:classes "
             "[lenet5 for images, mlp otherwise]")},
    {CLI_ROW(STRING, train_options, players, 0, "players", "WHO",
             "whose samples it learns from: N samples, as many of each class, each a player; "
             "all: every sample a player; providers: every provider a player "
             "[100, or all when there are fewer]")},
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
    bool by_provider;
    size_t wanted; /* players, where a number is given */

    fds_dataset *train, *test; /* test: NULL when DATA has none */
    const char *network;
    uint32_t *samples, *test_samples; /* test_samples: NULL when all are scored */
    size_t sample_count, test_count;
    fds_players *players;

    fds_model *model;
    fds_train_report report;
    double seconds;
    fds_score on_train, on_test;
} job;

static void job_free(job *j) {
    fds_model_free(j->model);
    fds_players_free(j->players);
    free(j->samples);
    free(j->test_samples);
    fds_dataset_free(j->train);
    fds_dataset_free(j->test);
}

/* ---- before any work ---- */

static fds_status read_players(job *j, fds_error *err) {
    const char *text = j->o->players;
    j->by_provider = text && strcmp(text, "providers") == 0;
    if (!text || j->by_provider || strcmp(text, "all") == 0)
        return FDS_OK;
    char *end;
    unsigned long long count = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || count < 1 || count > UINT32_MAX) {
        const char *const words[] = {"all", "providers", NULL};
        const char *nearest = cli_nearest(text, words);
        return cli_fail(err, FDS_USAGE,
                        "--players %s: it must be a whole number from 1, \"all\" or "
                        "\"providers\"%s%s%s",
                        text, nearest ? "; did you mean \"" : "", nearest ? nearest : "",
                        nearest ? "\"?" : "");
    }
    j->wanted = (size_t)count;
    return FDS_OK;
}

static fds_status read_params(job *j, fds_error *err) {
    const train_options *o = j->o;
    bool is_sgd = strcmp(o->optimizer, "sgd") == 0;
    if (!o->converge && (o->loss_bound > 0 || o->patience))
        return cli_fail(err, FDS_USAGE, "--%s belongs to --converge, which is missing",
                        o->patience ? "patience" : "loss-bound");
    if (!is_sgd && o->momentum >= 0)
        return cli_fail(err, FDS_USAGE, "--momentum belongs to --optimizer sgd, which is missing");
    fds_train_params *p = &j->params;
    *p = fds_train_params_default();
    p->optimizer = is_sgd ? FDS_SGD : FDS_ADAM;
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
        return cli_fail(err, FDS_USAGE,
                        "-o FILE is missing: where the model goes, for example "
                        "-o model.safetensors");
    CLI_TRY(read_players(j, err));
    CLI_TRY(read_params(j, err));
    return cli_check_output("-o", j->o->output, j->o->common.operand, err);
}

/* ---- the players and the test samples ---- */

/* How many samples to hold back for testing where DATA has no test part: a fifth; but as the test
 * samples are balanced by class, not so many that a small class loses more than half. */
static size_t held_default(const fds_dataset_info *info, const size_t *by_class) {
    size_t smallest = SIZE_MAX, fifth = info->count / 5;
    for (uint32_t c = 0; c < info->classes; c++)
        if (by_class[c] >= 2 && by_class[c] < smallest)
            smallest = by_class[c];
    size_t most = smallest == SIZE_MAX ? 1 : smallest / 2 * info->classes;
    size_t held = fifth < most ? fifth : most;
    return held ? held : 1;
}

static fds_status choose_held(job *j, const fds_dataset_info *info, size_t *held, fds_error *err) {
    *held = (size_t)j->o->test_count;
    if (!*held) {
        size_t *by_class = cli_alloc(info->classes, sizeof *by_class, err);
        if (!by_class)
            return FDS_NOMEM;
        for (size_t i = 0; i < info->count; i++)
            by_class[info->labels[i]]++;
        *held = held_default(info, by_class);
        free(by_class);
    }
    if (*held >= info->count)
        return cli_fail(err, FDS_USAGE,
                        "%s has %zu samples and no test part: holding %zu back for testing "
                        "leaves none to learn from",
                        info->source, info->count, *held);
    return FDS_OK;
}

static fds_status choose_test(job *j, size_t *held, fds_error *err) {
    const fds_dataset *from = j->test ? j->test : j->train;
    const fds_dataset_info info = fds_dataset_get_info(from);
    *held = 0;
    j->test_count = j->o->test_count ? (size_t)j->o->test_count : info.count;
    if (!j->test) {
        CLI_TRY(choose_held(j, &info, held, err));
        j->test_count = *held;
    }
    if (j->test_count > info.count)
        return cli_fail(err, FDS_USAGE, "--test-count %zu: the test part has only %zu samples",
                        j->test_count, info.count);
    if (j->test && j->test_count == info.count)
        return FDS_OK;
    j->test_samples = cli_alloc(j->test_count, sizeof *j->test_samples, err);
    if (!j->test_samples)
        return FDS_NOMEM;
    return fds_split_balanced(from, j->test_count, j->o->common.seed, j->test_samples, err);
}

/* The samples to learn from: count balanced ones, none of them held back. The balanced sets of one
 * seed are nested, so held + count samples contain the held ones, and the others are taken. */
static fds_status choose_samples(job *j, size_t held, size_t count, fds_error *err) {
    j->samples = cli_alloc(held + count, sizeof *j->samples, err);
    if (!j->samples)
        return FDS_NOMEM;
    CLI_TRY(fds_split_balanced(j->train, held + count, j->o->common.seed, j->samples, err));
    size_t next = 0;
    for (size_t i = 0; i < held + count; i++) {
        if (next < held && j->samples[i] == j->test_samples[next])
            next++;
        else
            j->samples[j->sample_count++] = j->samples[i];
    }
    return FDS_OK;
}

static fds_status choose_players(job *j, size_t held, fds_error *err) {
    size_t have = fds_dataset_get_info(j->train).count - held, count = j->wanted;
    if (count > have)
        return cli_fail(err, FDS_USAGE,
                        "--players %zu: there are only %zu samples to choose from%s", count, have,
                        held ? " (the others are held back for testing)" : "");
    if (!count)
        count = j->o->players || have < PLAYERS_DEFAULT ? have : PLAYERS_DEFAULT;
    CLI_TRY(choose_samples(j, held, count, err));
    return (j->by_provider ? fds_players_providers : fds_players_points)(
        j->train, j->samples, j->sample_count, &j->players, err);
}

/* Holding samples back may take all that a small provider has. */
static void warn_of_missing_providers(job *j) {
    size_t players = fds_players_count(j->players);
    uint32_t providers = fds_dataset_get_info(j->train).providers;
    if (j->by_provider && players < providers)
        cli_warn(j->term,
                 "%zu of %u providers have no sample to learn from: all of theirs are held back "
                 "for testing",
                 providers - players, providers);
}

/* A class without samples cannot be learnt: a surprise better told before than found later. */
static fds_status warn_of_missing_classes(job *j, fds_error *err) {
    const fds_dataset_info info = fds_dataset_get_info(j->train);
    bool *has = cli_alloc(info.classes, sizeof *has, err);
    if (!has)
        return FDS_NOMEM;
    uint32_t missing = 0, first = 0;
    for (size_t i = 0; i < j->sample_count; i++)
        has[info.labels[j->samples[i]]] = true;
    for (uint32_t c = info.classes; c-- > 0;) {
        if (!has[c]) {
            first = c;
            missing++;
        }
    }
    free(has);
    char name[CLI_NAME_SIZE];
    if (missing)
        cli_warn(j->term, "%u of %u classes have no sample to learn from, the first is \"%s\"",
                 missing, info.classes, cli_name(fds_dataset_class_name(j->train, first), 0, name));
    return FDS_OK;
}

/* ---- the work ---- */

/* Makes the network once for nothing, so that a mistake in its text is known before the samples
 * are chosen. */
static fds_status check_network(job *j, fds_error *err) {
    const fds_dataset_info info = fds_dataset_get_info(j->train);
    j->network = j->o->model ? j->o->model : info.is_image ? "lenet5" : "mlp";
    fds_net *net = NULL;
    fds_status status = fds_net_create(j->network, info.shape, info.classes, &net, err);
    fds_net_free(net);
    const char *const presets[] = {"lenet5", "cnn", "mlp", "logistic", NULL};
    const char *nearest = cli_nearest(j->network, presets);
    if (status == FDS_USAGE && nearest && strcmp(nearest, j->network) != 0)
        return cli_fail(err, status, "--model %s: did you mean \"%s\"?", j->network, nearest);
    return status;
}

static fds_status work(job *j, fds_error *err) {
    const train_options *o = j->o;
    const fds_events *events = &j->term->events;
    const fds_dataset *scored = j->test ? j->test : j->train;
    unsigned threads = (unsigned)o->common.threads;
    double start_s = cli_now_s();
    CLI_TRY(fds_model_train(j->train, j->samples, j->sample_count, j->network, &j->params, events,
                            &j->model, &j->report, err));
    j->seconds = cli_now_s() - start_s;
    CLI_TRY(fds_model_score(j->model, j->train, j->samples, j->sample_count, threads, &j->on_train,
                            events, err));
    CLI_TRY(fds_model_score(j->model, scored, j->test_samples, j->test_count, threads, &j->on_test,
                            events, err));
    return fds_model_save(j->model, o->output, err);
}

/* ---- the result ---- */

static const char *players_kind(const job *j) { return j->by_provider ? "providers" : "points"; }

static void print_score(const char *name, const fds_score *score, const char *remark) {
    printf("%-9s loss %.4f, accuracy %.2f %%, %zu samples%s\n", name, score->loss,
           100 * score->accuracy, score->count, remark);
}

static void print_text(const job *j) {
    const fds_model_info info = fds_model_get_info(j->model);
    printf("%-9s %s\n", "data", fds_dataset_get_info(j->train).source);
    printf("%-9s %s, %zu weights\n", "network", j->network, info.weights);
    printf("%-9s %zu %s", "players", fds_players_count(j->players), players_kind(j));
    if (j->by_provider)
        printf(" with %zu samples", j->sample_count);
    putchar('\n');
    printf("%-9s %u epoch%s in %.2f s%s\n", "training", j->report.epochs,
           j->report.epochs == 1 ? "" : "s", j->seconds,
           j->report.converged ? ", converged"
           : j->o->converge    ? ", not converged: stopped at the cap"
                               : "");
    print_score("train", &j->on_train, "");
    print_score("test", &j->on_test, j->test ? "" : ", held back from the data");
    printf("%-9s sha256 %.16s\n", "weights", info.sha256);
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
    json_t *players = json_pack("{s:s, s:I, s:I}", "kind", players_kind(j), "count",
                                (json_int_t)fds_players_count(j->players), "samples",
                                (json_int_t)j->sample_count);
    json_t *root = json_pack(
        "{s:s, s:o, s:o, s:o, s:I, s:o, s:o, s:I, s:b, s:o, s:o, s:o, s:b, s:s, s:o}", "version",
        FDS_VERSION, "data", cli_json_text(fds_dataset_get_info(j->train).source), "network",
        cli_json_text(j->network), "layers", cli_json_text(info.network), "weights",
        (json_int_t)info.weights, "players", players, "params", json_params(j), "epochs",
        (json_int_t)j->report.epochs, "converged", j->report.converged, "seconds",
        cli_json_real(j->seconds), "train", json_score(&j->on_train), "test",
        json_score(&j->on_test), "test_held_back", !j->test, "sha256", info.sha256, "file",
        cli_json_text(j->o->output));
    return cli_json_print(root, err);
}

static fds_status run_job(job *j, fds_error *err) {
    size_t held;
    CLI_TRY(check_options(j, err));
    CLI_TRY(cli_open_data(j->o->common.operand, &j->o->data, &j->train, &j->test, err));
    CLI_TRY(check_network(j, err));
    CLI_TRY(choose_test(j, &held, err));
    CLI_TRY(choose_players(j, held, err));
    CLI_TRY(warn_of_missing_classes(j, err));
    warn_of_missing_providers(j);
    if (held)
        cli_note(j->term, "the data has no test part: %zu samples are held back for testing", held);
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
    job j = {.o = &o, .term = &term};
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
