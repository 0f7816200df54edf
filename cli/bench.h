/* SPDX-License-Identifier: Apache-2.0
 * What the files of fds bench share. */
#ifndef FDS_CLI_BENCH_H
#define FDS_CLI_BENCH_H

#include "cli.h"

typedef struct bench_options {
    cli_common common;
    fds_data_options data;
    const char *output, *methods, *remove, *players, *model, *explainer, *compare;
    bool quick, top_only;
    uint64_t seeds, test_count, inputs, coalitions, permutations, truth;
    double flipped;
} bench_options;

/* Lists as the options have them, split up. */
#define BENCH_MOST 64
typedef struct bench_lists {
    char *text; /* what methods point into */
    const char *methods[BENCH_MOST + 1];
    double shares[BENCH_MOST];
    size_t share_count;
} bench_lists;

/* "afds,beta:4,1 random": names, by commas or blanks; a comma within a name stays. */
fds_status bench_read_methods(const char *text, bench_lists *lists, fds_error *err);
/* "5,10,20": per cent. */
fds_status bench_read_shares(const char *text, bench_lists *lists, fds_error *err);

/* The folder's report as tables of less than 80 columns, or as JSON. */
fds_status bench_show(const char *folder, bool is_json, fds_error *err);
/* What differs from an earlier report beyond noise. */
fds_status bench_show_changes(const char *before, const char *folder, fds_error *err);

#endif
