/* SPDX-License-Identifier: Apache-2.0
 * Fills a small table: kill_table FOLDER THREADS. For kill.py, which ends it at every point.
 *
 * 40 coalitions of 9 players in segments of 6 records, synced every 5 ms, with answers that take up
 * to a millisecond. Exit code 0, or 1 with a message. */
#include "table_fixture.h"

static fds_status run(const char *dir, unsigned threads, fds_error *err) {
    static fake f;
    fds_plan *plan = NULL;
    fds_table *table = NULL;
    fake_make(&f, 9, 20, 5, 1);
    f.dawdle_us = 1000;
    TRY(fds_plan_sample(FDS_SAMPLER_PAIRED, 9, NULL, 40, 1, &plan, err));
    size_t segment = 64 + 6 * 424;
    fds_status status =
        fds__table_open_sized(dir, &f.value, FDS_STORE_F32, segment, NULL, &table, err);
    if (status == FDS_OK) {
        table->sync_every_s = 0.005;
        status = fds_table_fill(table, plan, threads, NULL, err);
    }
    fds_table_free(table);
    fds_plan_free(plan);
    return status;
}

int main(int argc, char **argv) {
    fds_error err = {0};
    if (argc != 3) {
        fprintf(stderr, "usage: kill_table FOLDER THREADS\n");
        return 2;
    }
    if (run(argv[1], (unsigned)atoi(argv[2]), &err) == FDS_OK)
        return 0;
    fprintf(stderr, "kill_table: %s\n", err.text);
    return 1;
}
