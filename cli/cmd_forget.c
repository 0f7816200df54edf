/* SPDX-License-Identifier: Apache-2.0
 * fds forget: removes a provider, and all that its data had a part in, from a run. */
#include "cli.h"

#include <stdio.h>

static void print_report(const cli_args *args, const json_t *r) {
    char name[CLI_NAME_SIZE], players[CLI_NUMBER_SIZE], samples[CLI_NUMBER_SIZE],
        records[CLI_NUMBER_SIZE], models[CLI_NUMBER_SIZE];
    (void)args;
    printf("%-*s %s\n", CLI_WIDTH, "run", cli_get_text(r, "run"));
    printf("%-*s %s, with players: %s, samples: %s\n", CLI_WIDTH, "removed",
           cli_name(cli_get_text(r, "provider"), 0, name),
           cli_count(cli_get_count(r, "removed.players"), players),
           cli_count(cli_get_count(r, "removed.samples"), samples));
    printf("%-*s what it had a part in: records of utilities: %s, kept sub-models: %s\n", CLI_WIDTH,
           "", cli_count(cli_get_count(r, "removed.records"), records),
           cli_count(cli_get_count(r, "removed.models"), models));
    printf("%-*s the service model, values, explainer and all lists are computed anew\n", CLI_WIDTH,
           "");
    cli_print_reused(r);
}

static fds_status run(cli_args *args, fds_error *err) {
    char *text = NULL;
    if (args->more_count != 1)
        return cli_fail(err, FDS_ERR_USAGE, "name one provider, for example fds forget %s shop-3",
                        args->operand);
    CLI_TRY(fds_forget(args->operand, args->more[0], args->params, args->events, &text, err));
    return cli_show(args, text, print_report, err);
}

const cli_command cli_forget = {
    .name = "forget",
    .job = "forget",
    .operand = "RUN",
    .takes_more = true,
    .missing = "name a run and a provider, for example: fds forget shops.run shop-3",
    .usage = "RUN PROVIDER [options]",
    .summary = "remove a provider and all that its data had a part in from a run",
    .about =
        "Afterwards the folder RUN has no sub-model, record, sample, name or explainer weight that "
        "the provider's data had a part in. It is the run, to the bit, that fds fit gives without "
        "the provider. Sub-models that it had no part in stay; the others are removed, and as many "
        "as the plan needs are trained on the samples of those who remain.\n\n"
        "A killed command, given again, goes on where it stopped. From the beginning to the end "
        "the run is not complete, so that nothing answers or pays from it. Other copies are yours "
        "to remove: the data itself, backups, ledgers and results that were written elsewhere "
        "(docs/update.md).\n\n"
        "RUN must have been fitted with --changing yes.",
    .examples = "  fds forget shops.run shop-3\n",
    .run = run,
};
