/* SPDX-License-Identifier: Apache-2.0
 * fds table: tables of utilities that many machines fill, a part each. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cli_option fill_own[] = {
    CLI_OWN(0, "part", part, "I/K", "which part: 1/8, 2/8, ... 8/8 (required)"),
    CLI_OWN('o', "output", output, "FOLDER", "output folder of this part (required)"),
};

/* "3/8" */
static fds_status read_part(const char *text, fds_part *part, fds_error *err) {
    char *slash = NULL, *end = NULL;
    if (!text)
        return cli_fail(err, FDS_ERR_USAGE, "--part I/K is missing: which part, for example 3/8");
    unsigned long long number = strtoull(text, &slash, 10),
                       count = *slash == '/' ? strtoull(slash + 1, &end, 10) : 0;
    bool is_number = *text >= '0' && *text <= '9' && end && slash[1] >= '0' && slash[1] <= '9';
    if (!is_number || *end || number < 1 || number > count || count > 1000000)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--part must be I/K with I from 1 to K, at most 1000000, for example 3/8 "
                        "(got %.60s)",
                        text);
    *part = (fds_part){(size_t)number, (size_t)count};
    return FDS_OK;
}

static void print_part(const cli_args *args, const json_t *r) {
    char count[CLI_NUMBER_SIZE], done[CLI_NUMBER_SIZE];
    (void)args;
    printf("%-*s %llu of %llu, in %s\n", CLI_WIDTH, "part",
           (unsigned long long)cli_get_count(r, "part"),
           (unsigned long long)cli_get_count(r, "parts"), cli_get_text(r, "folder"));
    printf("%-*s %s, %s computed now\n", CLI_WIDTH, "sub-models",
           cli_count(cli_get_count(r, "sub_models"), count),
           cli_count(cli_get_count(r, "computed"), done));
    printf("%-*s %.2f s\n", CLI_WIDTH, "time", cli_get_number(r, "seconds"));
}

static fds_status fill(cli_args *args, bool is_fit, fds_error *err) {
    fds_problem *problem;
    fds_part part;
    char *text = NULL;
    CLI_TRY(read_part(args->part, &part, err));
    if (!args->output)
        return cli_fail(err, FDS_ERR_USAGE,
                        "-o FOLDER is missing: the output folder, for example -o part.%zu",
                        part.number);
    CLI_TRY(is_fit ? fds_fit_check(args->params, err)
                   : fds_value_check(args->params, args->output, err));
    CLI_TRY(cli_check_folder("-o", args->output, err));
    CLI_TRY(fds_problem_open(args->params, args->events, &problem, err));
    fds_status status =
        is_fit
            ? fds_fit_part(args->output, problem, args->params, part, args->events, &text, err)
            : fds_shapley_part(problem, args->params, args->output, part, args->events, &text, err);
    fds_problem_free(problem);
    CLI_TRY(status);
    return cli_show(args, text, print_part, err);
}

static fds_status run_fill(cli_args *args, fds_error *err) { return fill(args, true, err); }
static fds_status run_fill_value(cli_args *args, fds_error *err) { return fill(args, false, err); }

/* ---- import ---- */

static void print_import(const cli_args *args, const json_t *r) {
    char taken[CLI_NUMBER_SIZE], again[CLI_NUMBER_SIZE];
    (void)args;
    printf("%-*s %s\n", CLI_WIDTH, cli_get_text(r, "kind"), cli_get_text(r, "folder"));
    printf("%-*s %s taken, %s there already, with the same bytes\n", CLI_WIDTH, "records",
           cli_count(cli_get_count(r, "imported"), taken),
           cli_count(cli_get_count(r, "repeated"), again));
    if (cli_get_count(r, "models.imported") || cli_get_count(r, "models.repeated"))
        printf("%-*s %s taken, %s there already\n", CLI_WIDTH, "sub-models",
               cli_count(cli_get_count(r, "models.imported"), taken),
               cli_count(cli_get_count(r, "models.repeated"), again));
}

static fds_status run_import(cli_args *args, fds_error *err) {
    char *text = NULL;
    if (!args->more_count)
        return cli_fail(err, FDS_ERR_USAGE,
                        "nothing to import: name the parts, for example fds table import %s part.*",
                        args->operand);
    CLI_TRY(cli_check_folder("RUN", args->operand, err));
    CLI_TRY(
        fds_table_import(args->operand, args->more, args->more_count, args->events, &text, err));
    return cli_show(args, text, print_import, err);
}

/* ---- show ---- */

static void print_table(const cli_args *args, const json_t *r) {
    char a[CLI_NUMBER_SIZE], b[CLI_NUMBER_SIZE], c[CLI_NUMBER_SIZE];
    const char *run = cli_get_text(r, "run");
    (void)args;
    printf("%-*s %s%s\n", CLI_WIDTH, *run ? "run" : "table", cli_get_text(r, "folder"),
           strcmp(run, "complete") == 0 ? ", complete"
           : strcmp(run, "begun") == 0  ? ", not complete"
           : *run                       ? ", a part or an import: no fit has run there"
                                        : "");
    printf("%-*s %s of %s places, %s%s\n", CLI_WIDTH, "records",
           cli_count(cli_get_count(r, "records"), a), cli_count(cli_get_count(r, "slots"), b),
           cli_bytes(cli_get_count(r, "bytes"), c),
           cli_get_count(r, "damaged") ? "; some are damaged" : "");
    if (cli_get(r, "models"))
        printf("%-*s %s of %s places, %s%s\n", CLI_WIDTH, "sub-models",
               cli_count(cli_get_count(r, "models.records"), a),
               cli_count(cli_get_count(r, "models.slots"), b),
               cli_bytes(cli_get_count(r, "models.bytes"), c),
               cli_get_count(r, "models.damaged") ? "; some are damaged" : "");
    printf("%-*s %s\n", CLI_WIDTH, "utility", cli_get_text(r, "parameters.kind"));
    printf("%-*s %s players, %s inputs, %llu classes\n", CLI_WIDTH, "size",
           cli_count(cli_get_count(r, "players"), a), cli_count(cli_get_count(r, "inputs"), b),
           (unsigned long long)cli_get_count(r, "classes"));
    printf("%-*s %s, %s each\n", CLI_WIDTH, "stored", cli_get_text(r, "store"),
           cli_bytes(cli_get_count(r, "record_size"), a));
}

static fds_status run_show(cli_args *args, fds_error *err) {
    char *text = NULL;
    CLI_TRY(fds_table_describe(args->operand, args->events, &text, err));
    return cli_show(args, text, print_table, err);
}

/* ---- MPI ---- */

static bool is_several(const char *name) {
    const char *size = getenv(name);
    return size && atoi(size) > 1;
}

/* Where the launcher and Open MPI do not find each other, each process would do all of the work. */
static fds_status check_launcher(fds_error *err) {
    static const char *const sizes[] = {"PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
    for (size_t i = 0; fds_ranks_count() == 1 && i < CLI_COUNT(sizes); i++)
        if (is_several(sizes[i]))
            return cli_fail(err, FDS_ERR_UNSUPPORTED,
                            "--mpi: %s is %s, but for Open MPI this process is alone: the launcher "
                            "must be one that Open MPI knows, for example its mpirun, or srun "
                            "--mpi=pmix",
                            sizes[i], getenv(sizes[i]));
    return FDS_OK;
}

fds_status cli_ranks_begin(const cli_args *args, fds_error *err) {
    if (args->estimate || (!args->mpi && !is_several("OMPI_COMM_WORLD_SIZE")))
        return FDS_OK;
    CLI_TRY(fds_ranks_begin(err));
    return args->mpi ? check_launcher(err) : FDS_OK;
}

/* ---- the commands ---- */

#define FILL_ABOUT                                                                                 \
    "computes every K-th of them, in a folder of its own. Parts may be computed anywhere, in any " \
    "order and at the same time; an interrupted or killed command, given again, goes on where "    \
    "it stopped. fds table import brings them together, and the same "

const cli_command cli_table[] = {
    {
        .name = "table fill",
        .job = "fit",
        .operand = "DATA",
        .missing = "name a fetched set or a path, for example: fds table fill mnist --part 1/8 -o "
                   "part.1",
        .usage = "DATA --part I/K -o FOLDER [options of fds fit]",
        .summary = "train a part of the sub-models of fds fit, on one of many machines",
        .about = "fds fit with these options trains sub-models on a plan of coalitions. This "
                 "command " FILL_ABOUT "fds fit then ends with the bytes of one machine.\n\n"
                 "All options of fds fit that change its result must be the same for each part and "
                 "for the fit; --threads may differ.",
        .examples =
            "  for i in 1 2 3; do\n"
            "    fds table fill mnist --players 100 --part $i/3 -o part.$i   # or elsewhere\n"
            "  done\n"
            "  fds table import mnist.run part.*\n"
            "  fds fit mnist --players 100 -o mnist.run\n",
        .own = fill_own,
        .own_count = CLI_COUNT(fill_own),
        .run = run_fill,
    },
    {
        .name = "table fill-value",
        .job = "value",
        .operand = "DATA",
        .missing = "name a fetched set or a path, for example: fds table fill-value mnist --part "
                   "1/8 -o part.1",
        .usage = "DATA --part I/K -o FOLDER [options of fds value]",
        .summary = "the same of fds value with --method ls or exact",
        .about =
            "fds value with these options trains sub-models on a plan of coalitions. This "
            "command " FILL_ABOUT "fds value, with --table, then gives the values of one machine.",
        .examples = "  fds table fill-value mnist --coalitions 4000 --part 1/2 -o part.1\n"
                    "  fds table fill-value mnist --coalitions 4000 --part 2/2 -o part.2\n"
                    "  fds table import mnist.table part.1 part.2\n"
                    "  fds value mnist --coalitions 4000 --table mnist.table -o values.csv\n",
        .own = fill_own,
        .own_count = CLI_COUNT(fill_own),
        .run = run_fill_value,
    },
    {
        .name = "table import",
        .operand = "RUN",
        .takes_more = true,
        .missing = "name the run or table, then the parts: fds table import mnist.run part.*",
        .usage = "RUN|TABLE PART...",
        .summary = "bring the parts of a run or of a table together",
        .about = "Copies the records of all parts, and the sub-models that they keep, into RUN, "
                 "which may be new; fds fit there then computes only what is missing. Parts of fds "
                 "table fill-value, and any tables of fds value, go into a TABLE.\n\n"
                 "Every record is checked. Parts must be of the same data and options. A record "
                 "that is there already must have the same bytes. Otherwise the command fails and "
                 "names file and record; what it has taken stays.",
        .examples = "  fds table import mnist.run part.1 part.2 part.3\n",
        .run = run_import,
    },
    {
        .name = "table show",
        .operand = "RUN",
        .missing = "name a run, a part or a table, for example: fds table show mnist.run",
        .usage = "RUN|TABLE",
        .summary = "what a table, a part or a run's table is, and how much it has",
        .about = "Reads table.json and all records, and changes nothing. A part has a place for "
                 "every record of the whole table, and records in its own.",
        .examples = "  fds table show part.1\n",
        .run = run_show,
    },
};
