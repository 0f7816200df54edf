/* SPDX-License-Identifier: Apache-2.0
 * Values of a hundred digits for twenty test samples, as fds value mnist --players 100 --test 20:
 *     build/examples/value mnist values.table values.csv
 * Out of the tree: cc value.c $(pkg-config --cflags --libs fds) */
#include <fds.h>
#include <stdio.h>

int main(int argc, char **argv) {
    fds_error err = {0};
    fds_params *params = fds_params_create("shapley"); /* every default is set */
    fds_problem *problem = NULL;
    fds_result *result = NULL;
    const fds_events *events = fds_events_terminal();
    const char *data = argc > 1 ? argv[1] : "mnist", *table = argc > 2 ? argv[2] : "values.table";
    const char *file = argc > 3 ? argv[3] : "values.csv";
    int ok =
        fds_params_set(params, "data", data, &err) == FDS_OK &&
        fds_params_set(params, "players", "100", &err) == FDS_OK &&
        fds_params_set(params, "test", "20", &err) == FDS_OK &&
        fds_problem_open(params, events, &problem, &err) == FDS_OK && /* reads, chooses, checks */
        fds_shapley(problem, params, table, events, &result, &err) == FDS_OK &&
        fds_result_save(result, file, &err) == FDS_OK;
    if (!ok)
        fprintf(stderr, "value: %s\n", err.text);
    for (size_t i = 0; ok && i < 3; i++)
        printf("%s %+.4f \u00b1 %.4f\n", fds_result_player(result, i), fds_result_mean(result, i),
               fds_result_mean_error(result, i));
    fds_result_free(result);
    fds_problem_free(problem);
    fds_params_free(params);
    return ok ? 0 : 1;
}
