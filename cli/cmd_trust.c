/* SPDX-License-Identifier: Apache-2.0
 * fds audit: whether a ledger pays what the sub-models say, check by check. */
#include "cli.h"

#include "fds/audit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cli_option own[] = {
    CLI_OWN(0, "ledger", ledger, "LEDGER", "the ledger to audit (required)"),
    CLI_OWN(0, "report", report, "FILE", "write the report as one HTML file"),
    CLI_OWN(0, "proposal", proposal, "FILE",
            "write the correction that would mend what is paid wrongly, if any, as JSON"),
    CLI_OWN(0, "vkey", vkey, "KEY",
            "public key of the log, from its owner [the one that the ledger names]"),
};

/* ---- as text ---- */

static const json_t *correction_of(const json_t *report) {
    size_t i;
    json_t *check;
    json_array_foreach(cli_get(report, "checks"), i, check) {
        const json_t *correction = cli_get(check, "correction");
        if (json_is_object(correction))
            return correction;
    }
    return NULL;
}

static void print_correction(const cli_args *args, const json_t *correction) {
    const json_t *postings = cli_get(correction, "postings");
    size_t i;
    json_t *one;
    printf("\nWhat would mend it, if two operators agree:\n  fds ledger correct %s %llu",
           args->ledger, (unsigned long long)cli_get_count(correction, "of"));
    json_array_foreach(postings, i, one) {
        char word[CLI_NAME_SIZE + 64];
        snprintf(word, sizeof word, "%.200s=%.60s", cli_get_text(one, "account"),
                 cli_get_text(one, "amount"));
        const char *words[] = {word};
        char *quoted = cli_quote(1, words);
        printf(" \\\n      %s", quoted ? quoted : word);
        free(quoted);
    }
    const char *reason[] = {cli_get_text(correction, "reason")};
    char *quoted = cli_quote(1, reason);
    printf(" \\\n      --reason %s \\\n      --operators NAME,NAME\n", quoted ? quoted : reason[0]);
    free(quoted);
}

static void print_text(const cli_args *args, const json_t *report) {
    size_t i, alarms = 0, known = 0;
    json_t *check;
    char count[CLI_NUMBER_SIZE], audited[CLI_NUMBER_SIZE];
    json_array_foreach(cli_get(report, "checks"), i, check) {
        const char *verdict = cli_get_text(check, "verdict");
        alarms += strcmp(verdict, "alarm") == 0;
        known += strcmp(verdict, "unknown") != 0;
    }
    if (alarms)
        printf("%zu of %zu checks %s\n", alarms, known, alarms == 1 ? "alarms" : "alarm");
    else
        printf("%s\n", known ? "no check alarms" : "nothing is known yet");
    json_array_foreach(cli_get(report, "checks"), i, check) {
        printf("%-9s %-8s ", cli_get_text(check, "check"), cli_get_text(check, "verdict"));
        cli_wrap(cli_get_text(check, "answer"), 19, 19);
    }
    printf("\n%s entries, %s audited predictions; false alarms of a check: %g at most\n",
           cli_count(cli_get_count(report, "entries"), count),
           cli_count(cli_get_count(report, "audited"), audited), cli_get_number(report, "alpha"));
    if (correction_of(report))
        print_correction(args, correction_of(report));
}

/* ---- files ---- */

/* Whole, or not at all. */
static fds_status write_file(const char *path, const char *text, fds_error *err) {
    size_t size = strlen(path) + sizeof ".part";
    char *aside = cli_alloc(size, 1, err);
    if (!aside)
        return FDS_ERR_NOMEM;
    snprintf(aside, size, "%s.part", path);
    FILE *file = fopen(aside, "w");
    bool is_written = file && fputs(text, file) >= 0;
    if (file && fclose(file) != 0)
        is_written = false;
    if (!is_written || rename(aside, path) != 0)
        cli_fail(err, FDS_ERR_IO, "cannot write %s: %s", path, strerror(errno));
    if (err->status != FDS_OK)
        remove(aside);
    free(aside);
    return err->status;
}

static fds_status write_files(const cli_args *args, const char *text, const json_t *report,
                              fds_error *err) {
    if (args->report) {
        char *html;
        CLI_TRY(fds_audit_html(text, &html, err));
        fds_status status = write_file(args->report, html, err);
        fds_text_free(html);
        CLI_TRY(status);
    }
    const json_t *correction = correction_of(report);
    if (!args->proposal || !correction)
        return FDS_OK;
    char *proposal = json_dumps(correction, JSON_INDENT(2)), *line = NULL;
    if (proposal && (line = cli_alloc(strlen(proposal) + 2, 1, err)))
        sprintf(line, "%s\n", proposal);
    fds_status status = line ? write_file(args->proposal, line, err) : FDS_ERR_NOMEM;
    free(line);
    free(proposal);
    return status;
}

/* ---- all of it ---- */

/* The words as one text with commas; NULL: all checks. */
static char *join_checks(const cli_args *args, fds_error *err) {
    size_t size = strlen(args->operand) + 1;
    for (size_t i = 0; i < args->more_count; i++)
        size += strlen(args->more[i]) + 1;
    char *checks = cli_alloc(size + 1, 1, err);
    if (!checks)
        return NULL;
    strcpy(checks, args->operand);
    for (size_t i = 0; i < args->more_count; i++) {
        strcat(checks, ",");
        strcat(checks, args->more[i]);
    }
    return checks;
}

static fds_status show(cli_args *args, char *text, fds_error *err) {
    json_t *report = cli_json(text, err);
    fds_status status = report ? write_files(args, text, report, err) : err->status;
    if (status == FDS_OK && strcmp(cli_get_text(report, "verdict"), "alarm") == 0)
        args->exit_code = CLI_ALARM;
    json_decref(report);
    if (status == FDS_OK)
        return cli_show(args, text, print_text, err);
    fds_text_free(text);
    return status;
}

static fds_status run(cli_args *args, fds_error *err) {
    fds_ledger *ledger;
    char *checks = NULL, *text = NULL;
    if (!args->ledger)
        return cli_fail(err, FDS_ERR_USAGE, "name the ledger: --ledger LEDGER");
    if (args->report)
        CLI_TRY(cli_check_output("--report", args->report, NULL, args, err));
    if (args->proposal)
        CLI_TRY(cli_check_output("--proposal", args->proposal, NULL, args, err));
    if (args->operand && !(checks = join_checks(args, err)))
        return FDS_ERR_NOMEM;
    fds_status status = fds_ledger_open(args->ledger, FDS_LEDGER_READ, NULL, &ledger, err);
    if (status == FDS_OK) {
        status =
            fds_audit_ledger(ledger, checks, args->vkey, args->params, args->events, &text, err);
        fds_ledger_close(ledger);
    }
    free(checks);
    fds_terminal_clear();
    return status == FDS_OK ? show(args, text, err) : status;
}

const cli_command cli_audit = {
    .name = "audit",
    .job = "trust",
    .operand = "CHECK",
    .takes_more = true,
    .usage = "[CHECK...] --ledger LEDGER [--run RUN] [options]",
    .summary = "check that payments are what the sub-models say",
    .about =
        "Checks a ledger, and what was paid for the predictions that the sub-models have answered "
        "too while fds serve was idle. CHECK is ledger (everything computed again), truth (how "
        "much "
        "money goes elsewhere than the sub-models say), provider (who is systematically paid too "
        "little or too much), coverage (whether error bars hold), groups (whether groups of "
        "providers are paid alike), drift (whether inputs are like those of the fit) or self "
        "(customers who feed their own provider); without one, all of them.\n\n"
        "The tests are valid at all times: however often they are called, each alarms falsely with "
        "probability --alpha at most. The exit code is 3 if a check alarms.",
    .examples = "  fds audit --ledger shop.db --run mnist.run --report audit.html\n"
                "  fds audit provider groups --ledger shop.db --groups regions.csv\n",
    .own = own,
    .own_count = CLI_COUNT(own),
    .run = run,
};
