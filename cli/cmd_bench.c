/* SPDX-License-Identifier: Apache-2.0
 * fds bench: methods compared on data, with a report. A case for each set of data and seed, one
 * after the other, then the report. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    SEEDS_DEFAULT = 3,
    TEST_DEFAULT = 200,
    INPUTS_DEFAULT = 2000,
    TRUTH_DEFAULT = 4000,
    QUICK_PLAYERS = 30,
    QUICK_TEST = 20,
    QUICK_INPUTS = 300,
    QUICK_COALITIONS = 300,
    QUICK_ORDERS = 10,
    QUICK_TRUTH = 600,
    FOLDER_SIZE = 4096,
};

static const char *const paper_sets[] = {"mnist", "cifar10", "fashion-mnist"};

static const cli_option bench_table[] = {
    {CLI_ROW(STRING, bench_options, output, 'o', "output", "FOLDER",
             "where the report and all that it is made from go [DATA.report]")},
    {CLI_ROW(FLAG, bench_options, quick, 0, "quick", NULL,
             "a look in a minute or two: one seed, 30 players, 20 test samples, few coalitions, "
             "orders and shares, where no other number is given")},
    {CLI_ROW(STRING, bench_options, methods, 0, "methods", "LIST",
             "which, by commas, of those above and of fds value --method, these with or without "
             "/sample [all above]")},
    {CLI_ROW(STRING, bench_options, players, 0, "players", "WHO", CLI_PLAYERS_HELP)},
    {CLI_ROW(UINT, bench_options, test_count, 0, "test", "N",
             "test samples, as many of each class [200, or all when there are fewer]"),
     .min = 1, .max = 1000000},
    {CLI_ROW(UINT, bench_options, seeds, 0, "seeds", "N",
             "how often all of it is repeated, with other players, test samples and coalitions "
             "[3]"),
     .min = 1, .max = 1000},
    {CLI_ROW(STRING, bench_options, remove, 0, "remove", "LIST",
             "how many players are removed, in per cent [5,10,15,20,40,70,100]")},
    {CLI_ROW(FLAG, bench_options, top_only, 0, "top-only", NULL,
             "only remove the most valuable players; else, with the first seed, also the least "
             "valuable, and train on the most valuable alone")},
    {CLI_ROW(UINT, bench_options, inputs, 0, "inputs", "N",
             "samples that explainers learn from [2000, or what the data has]"),
     .min = 10, .max = 10000000},
    {CLI_ROW(UINT, bench_options, coalitions, 0, "coalitions", "M",
             "sub-models of fds, afds, gfds and ls, an even number [20 times the players]"),
     .min = 2, .max = 1 << 24},
    {CLI_ROW(UINT, bench_options, permutations, 0, "orders", "N",
             "of tmc, cs-shapley, beta and gshapley, at the most [40]"),
     .min = 1, .max = 1000000},
    {CLI_ROW(UINT, bench_options, truth, 0, "truth", "M",
             "coalitions of the values that are taken for the truth, with the first seed; an even "
             "number, 0: none [4000]"),
     .max = 1 << 24},
    {CLI_ROW(FLOAT, bench_options, flipped, 0, "flipped", "SHARE",
             "share of the labels that are made wrong, with the first seed, to see which methods "
             "find them; 0: none [0.1]"),
     .max = 0.5},
    {CLI_ROW(STRING, bench_options, model, 0, "model", "NET", CLI_MODEL_HELP)},
    {CLI_ROW(CHOICE, bench_options, explainer, 0, "explainer", "mlp|cnn|resnet18|resnet50|linear",
             "the network that learns to answer [mlp]")},
    {CLI_ROW(STRING, bench_options, compare, 0, "compare", "JSON",
             "the report.json of an earlier run: what has changed beyond noise is shown")},
    CLI_DATA_OPTIONS(bench_options),
};

typedef struct bench_job {
    bench_options *o;
    cli_term *term;
    bench_lists lists;
    fds_bench_params params; /* as for the first seed */
    const char **sets;       /* (set_count): names or paths */
    size_t set_count;
    char (*dirs)[FOLDER_SIZE]; /* (set_count * seeds) */
    char folder[FOLDER_SIZE];
    char *command;
} bench_job;

static size_t case_count(const bench_job *j) { return j->set_count * (size_t)j->o->seeds; }

static void job_free(bench_job *j) {
    free(j->lists.text);
    free(j->sets);
    free(j->dirs);
    free(j->command);
}

/* ---- what the options say ---- */

/* The name that a set's folders and tables go by: the last part of a path, without what a file
 * name ends in. */
static int name_of(const char *set, const char **start) {
    size_t length = strlen(set);
    while (length > 1 && set[length - 1] == '/')
        length--;
    const char *from = set + length;
    while (from > set && from[-1] != '/')
        from--;
    size_t size = (size_t)(set + length - from);
    const char *dot = memchr(from, '.', size);
    *start = from;
    return (int)(dot && dot > from ? (size_t)(dot - from) : size);
}

static fds_status list_sets(bench_job *j, fds_error *err) {
    const cli_common *c = &j->o->common;
    size_t most = (c->more_count + 1) * CLI_COUNT(paper_sets);
    j->sets = cli_alloc(most, sizeof *j->sets, err);
    if (!j->sets)
        return FDS_ERR_NOMEM;
    for (size_t i = 0; i <= c->more_count; i++) {
        const char *word = i ? c->more[i - 1] : c->operand;
        if (strcmp(word, "paper") != 0)
            j->sets[j->set_count++] = word;
        for (size_t s = 0; strcmp(word, "paper") == 0 && s < CLI_COUNT(paper_sets); s++)
            j->sets[j->set_count++] = paper_sets[s];
    }
    for (size_t i = 0; i < j->set_count; i++)
        for (size_t k = 0; k < i; k++) {
            const char *a, *b;
            int a_size = name_of(j->sets[i], &a), b_size = name_of(j->sets[k], &b);
            if (a_size == b_size && memcmp(a, b, (size_t)a_size) == 0)
                return cli_fail(err, FDS_ERR_USAGE,
                                "%s and %s go by the same name, \"%.*s\": compare them in two "
                                "reports",
                                j->sets[k], j->sets[i], a_size, a);
        }
    return FDS_OK;
}

/* Numbers that are not given: with --quick small ones. */
static void set_numbers(bench_options *o) {
    if (!o->seeds)
        o->seeds = o->quick ? 1 : SEEDS_DEFAULT;
    if (o->quick && !o->coalitions)
        o->coalitions = QUICK_COALITIONS;
    if (o->quick && !o->permutations)
        o->permutations = QUICK_ORDERS;
    if (o->quick && !o->remove)
        o->remove = "5,10,15,20,50,100";
    if (o->truth == UINT64_MAX)
        o->truth = o->quick ? QUICK_TRUTH : TRUTH_DEFAULT;
    if (o->flipped < 0)
        o->flipped = 0.1;
}

static void ignore_change(void *user, const fds_bench_change *change) {
    (void)user;
    (void)change;
}

/* A report compared with itself has no changes: all that shows is whether it is one. */
static fds_status check_compare(const bench_job *j, fds_error *err) {
    const char *compare = j->o->compare;
    char written[FOLDER_SIZE + 16];
    struct stat old, new;
    size_t unused;
    if (!compare)
        return FDS_OK;
    if (j->o->common.json)
        return cli_fail(err, FDS_ERR_USAGE, "--compare is for people: not with --json");
    snprintf(written, sizeof written, "%s/report.json", j->folder);
    if (stat(compare, &old) == 0 && stat(written, &new) == 0 && old.st_dev == new.st_dev &&
        old.st_ino == new.st_ino)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--compare %s: this command writes that very file; copy it first, or use "
                        "another -o",
                        compare);
    return fds_bench_compare(compare, compare, 0, ignore_change, NULL, &unused, err);
}

static fds_status read_options(bench_job *j, fds_error *err) {
    bench_options *o = j->o;
    set_numbers(o);
    CLI_TRY(list_sets(j, err));
    if (o->methods)
        CLI_TRY(bench_read_methods(o->methods, &j->lists, err));
    if (o->remove)
        CLI_TRY(bench_read_shares(o->remove, &j->lists, err));
    fds_bench_params *p = &j->params;
    *p = fds_bench_params_default();
    p->methods = o->methods ? j->lists.methods : NULL;
    if (o->remove) {
        p->shares = j->lists.shares;
        p->share_count = j->lists.share_count;
    }
    p->is_both_ways = !o->top_only;
    p->explainer = o->explainer;
    p->coalitions = (size_t)o->coalitions;
    p->permutations = o->permutations ? (size_t)o->permutations : p->permutations;
    p->truth = (size_t)o->truth;
    p->flipped = o->flipped;
    p->threads = (unsigned)o->common.threads;
    return fds_bench_check(p, err);
}

/* The words of the command line, quoted where a shell would take them apart. */
static fds_status join_command(bench_job *j, int argc, char **argv, fds_error *err) {
    size_t size = sizeof "fds bench";
    for (int i = 0; i < argc; i++)
        size += strlen(argv[i]) * 4 + 4; /* each may be a quote: '\'' */
    char *at = j->command = cli_alloc(size, 1, err);
    if (!at)
        return FDS_ERR_NOMEM;
    at += sprintf(at, "fds bench");
    for (int i = 0; i < argc; i++) {
        bool is_plain = *argv[i] && !strpbrk(argv[i], " \t\n'\"\\$`*?[]{}()<>|&;#~!");
        *at++ = ' ';
        if (is_plain) {
            at += sprintf(at, "%s", argv[i]);
            continue;
        }
        *at++ = '\'';
        for (const char *c = argv[i]; *c; c++)
            at += *c == '\'' ? sprintf(at, "'\\''") : sprintf(at, "%c", *c);
        *at++ = '\'';
    }
    *at = 0;
    return FDS_OK;
}

static fds_status name_folders(bench_job *j, fds_error *err) {
    const bench_options *o = j->o;
    const char *name;
    int size = name_of(o->common.operand, &name);
    if (o->output)
        snprintf(j->folder, sizeof j->folder, "%.*s", FOLDER_SIZE - 1, o->output);
    else
        snprintf(j->folder, sizeof j->folder, "%.*s.report", size, name);
    if (strlen(j->folder) > FOLDER_SIZE / 2)
        return cli_fail(err, FDS_ERR_USAGE, "-o: the path is too long: %.100s...", j->folder);
    j->dirs = cli_alloc(case_count(j), sizeof *j->dirs, err);
    if (!j->dirs)
        return FDS_ERR_NOMEM;
    for (size_t i = 0; i < case_count(j); i++) {
        size = name_of(j->sets[i / o->seeds], &name);
        snprintf(j->dirs[i], sizeof j->dirs[i], "%s/%.*s-%llu", j->folder,
                 size < FOLDER_SIZE / 4 ? size : FOLDER_SIZE / 4, name,
                 (unsigned long long)(o->common.seed + i % o->seeds));
    }
    return cli_check_folder("-o", j->folder, err);
}

/* ---- the work ---- */

/* The data, players and samples of a case. term NULL: without warnings. common: room for what it
 * refers to. */
static fds_status open_case(const bench_job *j, size_t number, cli_term *term, cli_common *common,
                            cli_setup *s, fds_error *err) {
    const bench_options *o = j->o;
    *common = o->common;
    common->operand = j->sets[number / o->seeds];
    common->seed += number % o->seeds;
    *s = (cli_setup){.want = {.common = common,
                              .data = &o->data,
                              .players = o->players,
                              .model = o->model,
                              .test_option = "--test",
                              .test_count = o->test_count,
                              .test_most = o->quick ? QUICK_TEST : TEST_DEFAULT,
                              .has_inputs = true,
                              .input_count = o->inputs,
                              .player_most = o->quick ? QUICK_PLAYERS : 0,
                              .input_most = o->quick ? QUICK_INPUTS : INPUTS_DEFAULT}};
    CLI_TRY(cli_setup_check(s, err));
    return cli_setup_make(s, term, err);
}

/* Every mistake in the data shows before hours of work on another set. Small providers may have
 * nothing left with one seed and something with another, and then there is no common report. */
static fds_status check_cases(const bench_job *j, fds_error *err) {
    size_t first = 0;
    for (size_t i = 0; i < case_count(j); i++) {
        cli_common common;
        cli_setup s;
        fds_status status = open_case(j, i, NULL, &common, &s, err);
        size_t players = status == FDS_OK ? fds_players_count(s.players) : 0;
        cli_setup_free(&s);
        if (status != FDS_OK && !strstr(err->text, common.operand)) { /* whose mistake is it? */
            const fds_error why = *err;
            return cli_fail(err, status, "%s: %s", common.operand, why.text);
        }
        CLI_TRY(status);
        if (i % j->o->seeds == 0)
            first = players;
        if (players != first)
            return cli_fail(err, FDS_ERR_USAGE,
                            "%s: %zu providers have samples to learn from with seed %llu, %zu with "
                            "seed %llu, and their results cannot be joined; use --seeds 1, or "
                            "fewer --inputs",
                            common.operand, first, (unsigned long long)j->o->common.seed, players,
                            (unsigned long long)common.seed);
    }
    return FDS_OK;
}

static fds_status run_case(const bench_job *j, size_t number, const cli_setup *s, fds_error *err) {
    const char *name_start;
    char name[CLI_NAME_SIZE];
    int size = name_of(s->want.common->operand, &name_start);
    snprintf(name, sizeof name, "%.*s", size, name_start);
    fds_bench_params params = j->params;
    params.network = s->network;
    params.seed = s->want.common->seed;
    if (number % j->o->seeds) { /* what takes long and needs no repetition */
        params.is_both_ways = false;
        params.truth = 0;
        params.flipped = 0;
    }
    const fds_bench_data data = {.name = name,
                                 .train = s->train,
                                 .players = s->players,
                                 .inputs = s->inputs,
                                 .input_count = s->input_count,
                                 .test = cli_setup_tested(s),
                                 .tests = s->test_samples,
                                 .test_count = s->test_count};
    fds_status status = fds_bench_case(j->dirs[number], &data, &params, &j->term->events, err);
    if (status == FDS_ERR_CANCELLED)
        return cli_fail(err, status, "what is done is kept in %s; the same command goes on",
                        j->folder);
    return status;
}

static fds_status run_cases(const bench_job *j, fds_error *err) {
    double start_s = cli_now_s();
    for (size_t i = 0; i < case_count(j); i++) {
        cli_common common;
        cli_setup setup;
        char so_far[32] = "";
        if (i)
            snprintf(so_far, sizeof so_far, "; %.0f min so far", (cli_now_s() - start_s) / 60);
        cli_note(j->term, "case %zu of %zu: %s, seed %llu%s", i + 1, case_count(j),
                 j->sets[i / j->o->seeds],
                 (unsigned long long)(j->o->common.seed + i % j->o->seeds), so_far);
        fds_status status = open_case(j, i, j->term, &common, &setup, err);
        if (status == FDS_OK)
            status = run_case(j, i, &setup, err);
        cli_term_clear(j->term);
        cli_setup_free(&setup);
        CLI_TRY(status);
    }
    return FDS_OK;
}

static fds_status write_report(const bench_job *j, fds_error *err) {
    size_t count = case_count(j);
    const char **dirs = cli_alloc(count, sizeof *dirs, err);
    if (!dirs)
        return FDS_ERR_NOMEM;
    for (size_t i = 0; i < count; i++)
        dirs[i] = j->dirs[i];
    fds_status status = fds_bench_report(j->folder, dirs, count, j->command, err);
    free(dirs);
    return status;
}

static fds_status run_job(bench_job *j, int argc, char **argv, fds_error *err) {
    CLI_TRY(read_options(j, err));
    CLI_TRY(join_command(j, argc, argv, err));
    CLI_TRY(name_folders(j, err));
    CLI_TRY(check_compare(j, err));
    CLI_TRY(check_cases(j, err));
    CLI_TRY(run_cases(j, err));
    CLI_TRY(write_report(j, err));
    CLI_TRY(bench_show(j->folder, j->o->common.json, err));
    if (j->o->compare)
        CLI_TRY(bench_show_changes(j->o->compare, j->folder, err));
    return FDS_OK;
}

static fds_status run_bench(const cli_command *self, int argc, char **argv, fds_error *err) {
    bench_options o = {.truth = UINT64_MAX, .flipped = -1};
    cli_term term;
    o.common.more = cli_alloc((size_t)argc, sizeof *o.common.more, err);
    fds_status status = o.common.more ? cli_parse(self, argc, argv, &o, err) : FDS_ERR_NOMEM;
    cli_term_init(&term, self, o.common.quiet);
    bench_job j = {.o = &o, .term = &term};
    if (status == FDS_OK)
        status = run_job(&j, argc, argv, err);
    cli_term_clear(&term);
    job_free(&j);
    free(o.common.more);
    return status;
}

const cli_command cli_bench = {
    .name = "bench",
    .operand = "DATA",
    .needs = "name fetched sets or paths, or \"paper\" for the paper's, for example: fds bench "
             "paper --quick",
    .usage = "(DATA... | paper) [options]",
    .summary = "methods compared: what removing the most valuable data does, with a report",
    .about =
        "Values the players of each set of data by every method, removes those that a method "
        "values most for each test sample, trains again, and measures how much the prediction "
        "suffers (the paper's value loss). Also: agreement with the truth, wrong labels found, "
        "seconds, sub-models. FOLDER/report.html shows it and needs no other file; "
        "report.json and report.csv have every number.\n\n"
        "\"paper\" stands for mnist, cifar10 and fashion-mnist. A command that was interrupted or "
        "killed goes on where it stopped; numbers do not depend on --threads, since explainers are "
        "always trained on two.\n\n"
        "Methods: fds, afds, gfds, gfds+; bank, ls; the paper's baselines loo, tmc, "
        "group-testing, cs-shapley, freeshap; freeshap/sample, knn:5/sample; and to compare with, "
        "same-label, random.",
    .examples = "  fds bench paper --quick\n"
                "  fds bench mnist --methods afds,tmc,random --seeds 1 -o few.report\n"
                "  fds bench sales.csv --label outcome --compare before/report.json\n",
    .options = bench_table,
    .option_count = CLI_COUNT(bench_table),
    .run = run_bench,
};
