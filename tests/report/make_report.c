/* SPDX-License-Identifier: Apache-2.0
 * Calls fds_bench_report for test_report.py: make_report OUT COMMAND CASE... */
#include <fds/eval.h>

#include <stdio.h>

int main(int argc, char **argv) {
    fds_error err;
    if (argc < 3) {
        fprintf(stderr, "make_report OUT COMMAND CASE...\n");
        return 2;
    }
    fds_status status =
        fds_bench_report(argv[1], (const char *const *)argv + 3, (size_t)argc - 3, argv[2], &err);
    if (status != FDS_OK)
        fprintf(stderr, "%s: %s\n", fds_status_name(status), err.text);
    return fds_status_exit_code(status);
}
