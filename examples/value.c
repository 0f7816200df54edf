/* SPDX-License-Identifier: Apache-2.0
 *
 * The library in one page: what 20 digits are worth for the prediction of one image.
 *
 *     build/examples/value mnist utilities        (after: fds data get mnist)
 *
 * The folder keeps the sub-models' answers: run it again, and nothing is trained twice.
 */
#include <fds.h>

#include <stdio.h>

enum { PLAYERS = 20, COALITIONS = 200 };

/* Every call hands its status on: the first failure ends the chain, with its reason in err. */
static fds_status run(const char *data, const char *folder, fds_error *err) {
    fds_dataset *train = NULL, *test = NULL;
    fds_players *players = NULL;
    fds_groups *groups = NULL;
    fds_utility *value = NULL;
    fds_plan *plan = NULL;
    fds_table *table = NULL;
    fds_table_view *view = NULL;
    uint32_t samples[PLAYERS], image = 0, label = 0;
    double values[PLAYERS], errors[PLAYERS];
    fds_utility_params params = fds_utility_params_default();
    fds_status status;

    if ((status = fds_data_open(data, NULL, &train, &test, err)) == FDS_OK &&
        (status = fds_split_balanced(train, PLAYERS, 0, samples, err)) == FDS_OK &&
        (status = fds_players_points(train, samples, PLAYERS, &players, err)) == FDS_OK &&
        (status = fds_groups_by_label(train, players, &groups, err)) == FDS_OK &&
        (status = fds_utility_create(&params, train, players, test ? test : train, &image, 1, 0,
                                     &value, err)) == FDS_OK &&
        (status = fds_plan_sample(FDS_SAMPLER_LEVERAGE, PLAYERS, NULL, COALITIONS, 0, &plan,
                                  err)) == FDS_OK &&
        (status = fds_table_open(folder, value, FDS_STORE_F32, NULL, &table, err)) == FDS_OK &&
        (status = fds_table_fill(table, plan, 0, NULL, err)) == FDS_OK) {
        label = fds_dataset_get_info(test ? test : train).labels[image];
        status = fds_table_view_create(table, plan, &label, false, 0, &view, err);
    }
    if (status == FDS_OK) {
        fds_rows rows = fds_table_view_rows(view);
        fds_ls_params how = {.adjust = FDS_ADJUST_COUNTS, .groups = groups};
        status = fds_least_squares(plan, &rows, &how, 0, values, errors, NULL, NULL, err);
    }
    for (size_t i = 0; status == FDS_OK && i < PLAYERS; i++)
        printf("%-14s label %-2u %+.4f ± %.4f\n", fds_players_name(players, i),
               fds_dataset_get_info(train).labels[samples[i]], values[i], errors[i]);

    fds_table_view_free(view);
    fds_table_free(table);
    fds_plan_free(plan);
    fds_utility_free(value);
    fds_groups_free(groups);
    fds_players_free(players);
    fds_dataset_free(test);
    fds_dataset_free(train);
    return status;
}

int main(int argc, char **argv) {
    fds_error err = {0};
    fds_status status =
        run(argc > 1 ? argv[1] : "mnist", argc > 2 ? argv[2] : "fds-utilities", &err);
    if (status != FDS_OK)
        fprintf(stderr, "value: %s\n", err.text);
    return fds_status_exit_code(status);
}
