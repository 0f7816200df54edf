/* SPDX-License-Identifier: Apache-2.0
 * fds audit duplicates, fds audit labels: whether a provider sells copies, or bad labels. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const cli_option duplicates_own[] = {
    CLI_OWN('o', "output", output, "FILE",
            "output file of the clusters that copies make, .csv, for --cluster [no file]"),
    CLI_OWN(0, "png", png, "FILE", "picture of the nearest pairs, if samples are images [no file]"),
};

/* Shows a report; the exit code is that of an alarm if its verdict is one. */
static fds_status show(cli_args *args, char *text,
                       void (*print)(const cli_args *args, const json_t *report), fds_error *err) {
    json_t *report = cli_json(text, err);
    if (report && strcmp(cli_get_text(report, "verdict"), "alarm") == 0)
        args->exit_code = CLI_ALARM;
    json_decref(report);
    return cli_show(args, text, print, err);
}

static void print_pair(const json_t *finding) {
    char name[CLI_NAME_SIZE], of[CLI_NAME_SIZE];
    const json_t *pairs = cli_get(finding, "pairs"), *first = json_array_get(pairs, 0);
    printf("%s: %llu of %llu samples are closer to one of ",
           cli_name(cli_get_text(finding, "provider"), 0, name),
           (unsigned long long)cli_get_count(finding, "closer"),
           (unsigned long long)cli_get_count(finding, "samples"));
    printf("%s\n", cli_name(cli_get_text(finding, "of"), 0, of));
    printf("    than half of what 99 %% of %llu unowned ones are; %llu exact copies; p = %.1g\n",
           (unsigned long long)cli_get_count(finding, "unowned"),
           (unsigned long long)cli_get_count(finding, "exact"), cli_get_number(finding, "p"));
    if (first)
        printf("    for example sample %llu and sample %llu, at distance %.3g\n",
               (unsigned long long)cli_get_count(first, "sample"),
               (unsigned long long)cli_get_count(first, "other"),
               cli_get_number(first, "distance"));
}

/* What clusters earn apart and as one. */
static void print_paid(const json_t *report) {
    const json_t *clusters = cli_get(report, "paid.clusters");
    const char *game = cli_get_text(report, "paid.game");
    size_t i, k;
    json_t *cluster, *member;
    char name[CLI_NAME_SIZE];
    if (!*game)
        return;
    putchar('\n');
    json_array_foreach(clusters, i, cluster) {
        json_array_foreach(cli_get(cluster, "members"), k, member)
            printf("%s%s", k ? " + " : "", cli_name(json_string_value(member), 0, name));
        printf(": paid apart %.1f %% of the money, as one %.1f %%\n",
               100 * cli_get_number(cluster, "apart"), 100 * cli_get_number(cluster, "as_one"));
    }
    printf("%-*s %s; mean over %llu tests\n", CLI_WIDTH, "valued by",
           strcmp(game, "bank") == 0 ? "the sub-models of the run"
                                     : "five nearest neighbours, not by a run",
           (unsigned long long)cli_get_count(report, "paid.inputs"));
    if (*cli_get_text(report, "run") && *cli_get_text(report, "paid.reason"))
        cli_wrap(cli_get_text(report, "paid.reason"), printf("%-*s ", CLI_WIDTH, "because"),
                 CLI_WIDTH + 1);
}

static void print_duplicates(const cli_args *args, const json_t *report) {
    size_t i;
    json_t *one;
    const json_t *findings = cli_get(report, "findings");
    fds_terminal_clear();
    if (!json_array_size(findings))
        printf("%s\n",
               strcmp(cli_get_text(report, "verdict"), "ok") == 0
                   ? "no provider's samples are closer to another's than chance allows"
                   : "not known: even if all samples were copies, they are too few for an alarm");
    json_array_foreach(findings, i, one) print_pair(one);
    print_paid(report);
    printf("\n%-*s %s\n", CLI_WIDTH, "data", cli_get_text(report, "data"));
    printf("%-*s any false alarm has a probability of at most %g, if samples of\n"
           "%-*s providers and %s come from the same source\n",
           CLI_WIDTH, "alarms", cli_get_number(report, "alpha"), CLI_WIDTH, "",
           cli_get_flag(report, "has_test_part") ? "test samples" : "samples of the others");
    if (args->output)
        printf("%-*s %s, for --cluster\n", CLI_WIDTH, "written", args->output);
    if (args->png)
        printf("%-*s %s\n", CLI_WIDTH, "picture", args->png);
}

static fds_status run_duplicates(cli_args *args, fds_error *err) {
    char *text;
    if (args->output)
        CLI_TRY(cli_check_output("-o", args->output, ".csv", args, err));
    if (args->png)
        CLI_TRY(cli_check_output("--png", args->png, ".png", args, err));
    CLI_TRY(fds_audit_duplicates(args->params, args->output, args->png, args->events, &text, err));
    return show(args, text, print_duplicates, err);
}

static void print_labels(const cli_args *args, const json_t *report) {
    size_t i;
    json_t *one;
    char name[CLI_NAME_SIZE];
    (void)args;
    fds_terminal_clear();
    printf("%s\n\n", strcmp(cli_get_text(report, "verdict"), "alarm") == 0
                         ? "some provider's labels are worse than those of others"
                         : "no provider's labels are worse than chance allows");
    printf("%-24s %7s  %9s  %9s  %6s  %8s\n", "provider", "samples", "score", "error", "ratio",
           "p");
    json_array_foreach(cli_get(report, "providers"), i, one) {
        bool is_alarm = strcmp(cli_get_text(one, "verdict"), "alarm") == 0;
        printf("%s %7llu  %9.5f  %9.5f  %6.2f  %8.2g%s\n",
               cli_name(cli_get_text(one, "provider"), 24, name),
               (unsigned long long)cli_get_count(one, "samples"), cli_get_number(one, "mean_score"),
               cli_get_number(one, "standard_error"), cli_get_number(one, "statistic"),
               cli_get_number(one, "p"), is_alarm ? "  alarm" : "");
    }
    putchar('\n');
    printf("%-*s false alarms have a probability of at most %g; %llu shuffles\n", CLI_WIDTH,
           "alarms", cli_get_number(report, "alpha"),
           (unsigned long long)cli_get_count(report, "shuffles"));
}

static fds_status run_labels(cli_args *args, fds_error *err) {
    char *text;
    CLI_TRY(fds_audit_labels(args->params, args->events, &text, err));
    return show(args, text, print_labels, err);
}

const cli_command cli_audit_duplicates = {
    .name = "audit duplicates",
    .job = "audit",
    .operand = "DATA",
    .missing = "name a run, a fetched set or a path, for example: fds audit duplicates clinics.csv",
    .usage = "DATA|RUN [-o CLUSTERS] [--png FILE] [options]",
    .summary = "find providers who sell copies of each other's samples",
    .about = "Compares every provider's samples with every other's: copies, exact, with noise or "
             "moved by up to two pixels, are closer than test samples ever are. Of data without a "
             "test part, samples of the other providers are compared with. Says how many, how "
             "unlikely that is, shows pairs, and what such providers are paid apart and would be "
             "paid as one; -o writes which of them belong together, for --cluster of fds value, "
             "fds fit and fds pay. The exit code is 3 if there are copies.\n\n"
             "DATA is what fds data show takes; it must name providers. RUN is a folder that fds "
             "fit made: its own data is audited, and its sub-models say what is paid.",
    .examples =
        "  fds audit duplicates scans --owners owners.csv -o clusters.csv --png pairs.png\n"
        "  fds fit scans --owners owners.csv --players providers --cluster clusters.csv \\\n"
        "      -o scans.run\n",
    .own = duplicates_own,
    .own_count = CLI_COUNT(duplicates_own),
    .run = run_duplicates,
};

const cli_command cli_audit_labels = {
    .name = "audit labels",
    .job = "audit",
    .operand = "DATA",
    .missing = "name a fetched set or a path, for example: fds audit labels clinics.csv",
    .usage = "DATA [options]",
    .summary = "find providers whose labels are worse than others'",
    .about =
        "Scores every label by how likely it is among the labels of the nearest samples, and "
        "compares the mean score of each provider's samples with chance: owners are shuffled "
        "within each label. Corrects for the number of providers. The exit code is 3 if labels "
        "are worse than chance allows.\n\n"
        "DATA is what fds data show takes; it must name providers.",
    .examples = "  fds audit labels clinics.csv --provider clinic\n",
    .run = run_labels,
};
