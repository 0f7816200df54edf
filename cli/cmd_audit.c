/* SPDX-License-Identifier: Apache-2.0
 * fds data audit: which samples look wrong, in a folder of tables and a report. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOP = 10, PROVIDERS_SHOWN = 10, FOLDER_SIZE = 4096 };

static const cli_option own[] = {
    CLI_OWN('o', "output", output, "FOLDER",
            "output folder: rows.csv, providers.csv, report.html, audit.json [DATA.audit]"),
    CLI_OWN(0, "top", top, "N", "how many suspicious samples to print [10]"),
    CLI_OWN(0, "estimate", estimate, NULL, "print what it will take, and stop"),
};

/* ---- as text ---- */

enum { NAME, PROVIDER, LABEL, SAID, COLUMNS, LINE = 79, LEAST = 6 };

/* Columns of texts: their widths (0: no such column), and the decimals of values. */
typedef struct {
    int width[COLUMNS], decimals;
} layout;

static const char *const heads[COLUMNS] = {"sample", "provider", "label", "says"};

/* The text of a column; number is scratch. */
static const char *text_at(const fds_audit_row *row, int column, char number[32]) {
    const char *texts[COLUMNS] = {row->id, row->provider, row->label, row->predicted};
    snprintf(number, 32, row->line ? "line %zu" : "sample %zu",
             row->line ? row->line : row->sample);
    return column == NAME && !row->id ? number : texts[column];
}

static int widen(int width, const char *text) {
    int columns = cli_columns(text);
    return columns > width ? columns : width;
}

/* Three digits that matter of a value, such as the lowest one. */
static int decimals_of(double value) {
    int decimals = value != 0 ? 2 - (int)floor(log10(fabs(value))) : 3;
    return decimals < 3 ? 3 : decimals > 9 ? 9 : decimals;
}

static int line_width(const layout *l) {
    int width = 4 + 6 + 2 * (l->decimals + 5); /* rank, probability, value and error */
    for (int c = 0; c < COLUMNS; c++)
        width += l->width[c] ? l->width[c] + 2 : 0;
    return width;
}

/* The widest columns give way until a line fits. */
static layout measure(const fds_audit *audit, size_t shown) {
    layout l = {.width = {0}};
    fds_audit_row row;
    char number[32];
    for (size_t i = 0; i < shown && fds_audit_row_at(audit, i, &row); i++) {
        l.decimals = i ? l.decimals : decimals_of(row.value);
        for (int c = 0; c < COLUMNS; c++)
            if (text_at(&row, c, number))
                l.width[c] = widen(widen(l.width[c], heads[c]), text_at(&row, c, number));
    }
    while (line_width(&l) > LINE) {
        int widest = 0;
        for (int c = 1; c < COLUMNS; c++)
            widest = l.width[c] > l.width[widest] ? c : widest;
        if (l.width[widest] <= LEAST)
            break;
        l.width[widest]--;
    }
    return l;
}

/* The end of a path says more than its beginning. */
static void print_name(const char *name, int width) {
    char text[CLI_NAME_SIZE];
    int columns = cli_columns(name);
    if (columns <= width || !strchr(name, '/')) {
        printf("  %s", cli_name(name, width, text));
        return;
    }
    for (; columns > width - 3; columns--)
        do
            name++;
        while ((*name & 0xC0) == 0x80); /* within a character */
    printf("  ...%s", cli_name(name, width - 3, text));
}

static void print_suspects(const fds_audit *audit, size_t shown) {
    layout l = measure(audit, shown);
    char number[32];
    fds_audit_row row;
    printf("rank");
    for (int c = 0; c < COLUMNS; c++)
        if (l.width[c])
            printf("  %-*s", l.width[c], heads[c]);
    printf("      %*s  ± error\n", l.decimals + 5, "value");
    for (size_t i = 0; i < shown && fds_audit_row_at(audit, i, &row); i++) {
        printf("%4zu", i + 1);
        for (int c = 0; c < COLUMNS; c++)
            if (l.width[c])
                print_name(text_at(&row, c, number), l.width[c]);
        printf("%4.0f %%  %*.*f  %.*f\n", 100 * row.probability, l.decimals + 3, l.decimals,
               row.value, l.decimals, row.standard_error);
    }
}

static void print_providers(const json_t *report) {
    const json_t *list = cli_get(report, "providers");
    size_t count = json_array_size(list), shown = count < PROVIDERS_SHOWN ? count : PROVIDERS_SHOWN;
    int width = 8;
    char name[CLI_NAME_SIZE];
    double most = 0; /* all have the decimals of the greatest */
    for (size_t i = 0; i < shown; i++)
        width = widen(width, cli_get_text(json_array_get(list, i), "name"));
    for (size_t i = 0; i < shown; i++)
        most = fmax(most, fabs(cli_get_number(json_array_get(list, i), "value_per_sample")));
    width = width < 30 ? width : 30;
    if (!count)
        return;
    printf("\n%-*s  %8s  %8s  %6s  %16s\n", width, "provider", "samples", "suspects", "share",
           "value per sample");
    for (size_t i = 0; i < shown; i++) {
        const json_t *p = json_array_get(list, i);
        printf("%s  %8llu  %8llu  %4.0f %%  %16.*f\n",
               cli_name(cli_get_text(p, "name"), width, name),
               (unsigned long long)cli_get_count(p, "samples"),
               (unsigned long long)cli_get_count(p, "suspects"),
               100 * cli_get_number(p, "share_of_suspects"), decimals_of(most),
               cli_get_number(p, "value_per_sample"));
    }
    if (count > shown)
        printf("... and %zu more in providers.csv\n", count - shown);
}

static void print_facts(const json_t *report, const char *folder) {
    char count[CLI_NUMBER_SIZE];
    printf("\ndata      %s\n", cli_get_text(report, "data"));
    printf("values    %s in %llu folds, seed %llu: %s samples in %.2f s\n",
           cli_get_text(report, "utility"), (unsigned long long)cli_get_count(report, "folds"),
           (unsigned long long)cli_get_count(report, "seed"),
           cli_count(cli_get_count(report, "samples"), count), cli_get_number(report, "seconds"));
    printf("model     says the label of %.1f %% of the samples\n",
           100 * cli_get_number(report, "accuracy"));
    printf("written   %s/rows.csv: all samples, with reasons\n", folder);
    printf("          %s/report.html\n", folder);
}

/* What is hardly chance, then what may be. */
static void print_lead(const json_t *report) {
    uint64_t suspects = cli_get_count(report, "suspects"),
             clear = cli_get_count(report, "clear_suspects");
    char few[CLI_NUMBER_SIZE], all[CLI_NUMBER_SIZE];
    printf("%s of %s samples %s a value more than two standard errors below 0%s\n",
           cli_count(clear, few), cli_count(cli_get_count(report, "samples"), all),
           clear == 1 ? "has" : "have", clear ? ":" : "");
    if (clear)
        printf("predictions are better without %s\n", clear == 1 ? "it" : "them");
    if (suspects > clear)
        printf("%s%s %s a value below 0 that may be chance\n", cli_count(suspects - clear, few),
               clear ? " more" : "", suspects - clear == 1 ? "has" : "have");
}

static fds_status print_text(const fds_audit *audit, const char *folder, size_t top,
                             fds_error *err) {
    size_t suspects = fds_audit_suspects(audit), shown = suspects < top ? suspects : top;
    char *text;
    CLI_TRY(fds_audit_json(audit, &text, err));
    json_t *report = cli_json(text, err);
    fds_text_free(text);
    if (!report)
        return err->status;
    print_lead(report);
    if (shown)
        print_suspects(audit, shown);
    if (suspects > shown)
        printf("... and %zu more suspicious samples in rows.csv\n", suspects - shown);
    print_providers(report);
    print_facts(report, folder);
    json_decref(report);
    return FDS_OK;
}

static void print_estimate(const cli_args *args, const json_t *report) {
    char count[CLI_NUMBER_SIZE], bytes[CLI_NUMBER_SIZE];
    (void)args;
    printf("about %.3g s and %s of memory for %s samples in %llu folds (%s)\n",
           cli_get_number(report, "seconds"), cli_bytes(cli_get_count(report, "memory"), bytes),
           cli_count(cli_get_count(report, "samples"), count),
           (unsigned long long)cli_get_count(report, "folds"), cli_get_text(report, "utility"));
}

/* ---- all of it ---- */

static fds_status show(const cli_args *args, const fds_audit *audit, const char *folder, size_t top,
                       fds_error *err) {
    char *text;
    fds_terminal_clear();
    if (!args->json)
        return print_text(audit, folder, top, err);
    CLI_TRY(fds_audit_json(audit, &text, err));
    return cli_print_text(text, err);
}

static fds_status run(cli_args *args, fds_error *err) {
    char folder[FOLDER_SIZE], *text;
    size_t top;
    fds_audit *audit;
    cli_name_folder(args, "audit", folder, sizeof folder);
    CLI_TRY(cli_number("top", args->top, 1000000, TOP, &top, err));
    CLI_TRY(cli_check_folder("-o", folder, err));
    CLI_TRY(fds_audit_check_folder(folder, err));
    if (args->estimate) {
        CLI_TRY(fds_audit_estimate(args->params, args->events, &text, err));
        return cli_show(args, text, print_estimate, err);
    }
    CLI_TRY(fds_audit_open(args->params, args->events, &audit, err));
    fds_status status = fds_audit_save(audit, folder, args->command, err);
    if (status == FDS_OK)
        status = show(args, audit, folder, top, err);
    fds_audit_free(audit);
    return status;
}

const cli_command cli_data_audit = {
    .name = "data audit",
    .job = "audit",
    .operand = "DATA",
    .missing = "name a fetched set or a path, for example: fds data audit sales.csv",
    .usage = "DATA [options]",
    .summary = "find samples with wrong labels, and who provides them",
    .about =
        "Gives every sample a value: its Shapley value for the predictions of its neighbours' "
        "labels, by samples of the parts (folds) of the data that it is not in. A value "
        "more than two standard errors below 0 means that predictions are better without the "
        "sample; its label may be wrong. "
        "Prints the most suspicious samples, and writes FOLDER/rows.csv with all of them in "
        "this order, what the model says and a reason in words; providers.csv with the value "
        "and the share of suspects of each provider; and report.html, one file with plots and, "
        "of images, pictures.\n\n"
        "DATA is what fds data show takes.",
    .examples = "  fds data audit sales.csv --label returned --id order --provider shop\n"
                "  fds data audit scans --utility knn:5@model -o scans.audit\n"
                "  fds data audit mnist --part test --estimate\n",
    .own = own,
    .own_count = CLI_COUNT(own),
    .run = run,
};
