/* SPDX-License-Identifier: Apache-2.0
 * One image to values, in a loaded process: answer RUN DATA explainer|bank COUNT THREADS
 * Prints p50 and p99 in milliseconds over COUNT single test images, one at a time. */
#include "explain/explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static fds_status measure(fds_run *run, fds__answerer by, const fds_dataset *test, size_t count,
                          fds_error *err) {
    enum { WARM = 20 };
    const fds__run_info info = fds__run_get_info(run);
    size_t images = fds__dataset_get_info(test).count;
    double *values = calloc(2 * info.players, sizeof *values), *ms = calloc(count, sizeof *ms);
    uint32_t label;
    fds_status status = values && ms ? FDS_OK : FDS_ERR_NOMEM;
    for (size_t i = 0; i < count + WARM && status == FDS_OK; i++) {
        uint32_t index = (uint32_t)(i % images);
        const fds__answers answers = {
            .labels = &label, .values = values, .errors = values + info.players};
        double start = now_ms();
        status = fds__run_explain(run, by, test, &index, 1, false, &answers, err);
        if (i >= WARM)
            ms[i - WARM] = now_ms() - start;
    }
    if (status == FDS_OK) {
        qsort(ms, count, sizeof *ms, ascending);
        printf("%.3f %.3f\n", ms[count / 2], ms[count * 99 / 100]);
    }
    free(values);
    free(ms);
    return status;
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: answer RUN DATA explainer|bank COUNT THREADS\n");
        return 2;
    }
    fds_error err;
    fds_dataset *train = NULL, *test = NULL;
    fds_run *run = NULL;
    fds__answerer by = strcmp(argv[3], "bank") == 0 ? FDS__ANSWERER_BANK : FDS__ANSWERER_EXPLAINER;
    fds_status status = fds__data_open(argv[2], NULL, NULL, &train, &test, &err);
    if (status == FDS_OK)
        status = fds__run_open(argv[1], (unsigned)atoi(argv[5]), &run, &err);
    if (status == FDS_OK)
        status = measure(run, by, test ? test : train, (size_t)atoi(argv[4]), &err);
    if (status != FDS_OK)
        fprintf(stderr, "answer: %s\n", err.text);
    fds_run_free(run);
    fds_dataset_free(train);
    fds_dataset_free(test);
    return fds_status_exit_code(status);
}
