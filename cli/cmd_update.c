/* SPDX-License-Identifier: Apache-2.0
 * fds update: a run whose data has changed, from the sub-models that stay valid. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static const cli_option own[] = {
    CLI_OWN('o', "output", output, "RUN2", "output folder of the new run (required)"),
    CLI_OWN_MPI,
};

void cli_print_reused(const json_t *r) {
    char count[CLI_NUMBER_SIZE], reused[CLI_NUMBER_SIZE], trained[CLI_NUMBER_SIZE], text[500];
    printf("%-*s %s: %s reused, %s trained\n", CLI_WIDTH, "sub-models",
           cli_count(cli_get_count(r, "sub_models"), count),
           cli_count(cli_get_count(r, "reused"), reused),
           cli_count(cli_get_count(r, "trained"), trained));
    cli_print_until(cli_get(r, "until_error"), "inputs");
    if (*cli_get_text(r, "reason")) {
        snprintf(text, sizeof text, "none could be reused: %s", cli_get_text(r, "reason"));
        cli_wrap(text, printf("%-*s", CLI_WIDTH, ""), CLI_WIDTH + 1);
    }
    cli_print_problem(r);
    printf("%-*s %.2f s%s\n", CLI_WIDTH, "time", cli_get_number(r, "seconds.total"),
           cli_get_flag(r, "resumed") ? " (the run was resumed)" : "");
}

static void print_report(const cli_args *args, const json_t *r) {
    (void)args;
    printf("%-*s %s\n", CLI_WIDTH, "run", cli_get_text(r, "run"));
    cli_print_reused(r);
}

static fds_status run(cli_args *args, fds_error *err) {
    char *text = NULL;
    if (!args->output)
        return cli_fail(err, FDS_ERR_USAGE,
                        "-o RUN2 is missing: the folder of the new run, for example -o new.run");
    CLI_TRY(cli_check_folder("-o", args->output, err));
    CLI_TRY(cli_ranks_begin(args, err));
    if (fds_ranks_number() > 0)
        return fds_update_serve(args->operand, args->params, args->events, err);
    CLI_TRY(fds_update(args->operand, args->params, args->output, args->events, &text, err));
    return cli_show(args, text, print_report, err);
}

const cli_command cli_update = {
    .name = "update",
    .job = "update",
    .operand = "RUN",
    .missing = "name a run, for example: fds update shops.run --remove shop-3 -o new.run",
    .usage = "RUN [--add DATA] [--remove PROVIDER] -o RUN2 [options]",
    .summary = "a run on changed data, from the sub-models that stay valid",
    .about =
        "Makes the run that fds fit with the parameters of RUN gives on the changed data, to the "
        "bit. Sub-models of coalitions whose members and their samples are the same are copied "
        "from RUN, the others are trained; the command says how many, before and after. Values "
        "and the explainer are computed anew. RUN keeps its answers; meanwhile its table is "
        "locked, and repaired if it is damaged, so RUN must be writable.\n\n"
        "RUN must have been fitted with --changing yes. Otherwise each of its sub-models depends "
        "on the samples of all players, and all would have to be trained again "
        "(docs/update.md).\n\n"
        "An interrupted or killed command, given again, goes on where it stopped.",
    .examples = "  fds fit sales.csv --test-file test.csv --players providers \\\n"
                "      --changing yes -o shops.run\n"
                "  fds update shops.run --remove shop-3 -o without.run\n"
                "  fds update shops.run --add new-shops.csv --coalitions 3000 -o more.run\n",
    .own = own,
    .own_count = CLI_COUNT(own),
    .run = run,
};
