/* SPDX-License-Identifier: Apache-2.0
 * A utility function of one's own: how often each class occurs among a coalition's samples. Values of
 * the players by least squares on a table of its answers:
 *     build/examples/custom mnist custom.table
 * Out of the tree: cc custom.c $(pkg-config --cflags --libs fds) */
#include <fds/advanced.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the callback needs to know. */
typedef struct {
    const fds_dataset *train;
    size_t inputs;
    uint32_t classes;
} model;

/* Called by several threads at a time, each with another worker number: it changes nothing but
 * probs. */
static fds_status answer(void *context, unsigned worker, const uint32_t *samples, size_t count,
                         float *probs, fds_error *err) {
    const model *m = context;
    (void)worker, (void)err;
    for (uint32_t y = 0; y < m->classes; y++) /* no samples: every class is as likely */
        probs[y] = count ? 0 : 1 / (float)m->classes;
    for (size_t i = 0; i < count; i++)
        probs[fds_dataset_label(m->train, samples[i])] += 1 / (float)count;
    for (size_t i = 1; i < m->inputs; i++)
        memcpy(probs + i * m->classes, probs, m->classes * sizeof *probs);
    return FDS_OK;
}

/* The values of all players for label 0 of the first test sample. */
static fds_status solve(const fds_utility *utility, const char *folder, fds_error *err) {
    const fds_utility_info about = fds_utility_get_info(utility);
    const size_t columns = about.inputs * about.classes;
    fds_plan *plan = NULL;
    fds_table *table = NULL;
    fds_table_view *view = NULL;
    double *values = calloc(about.players * columns, sizeof *values);
    fds_status status = values ? FDS_OK : FDS_ERR_NOMEM;
    if (status == FDS_OK)
        status = fds_plan_sample(FDS_SAMPLER_LEVERAGE, about.players, NULL, 200, 0, &plan, err);
    if (status == FDS_OK)
        status = fds_table_open(folder, utility, FDS_STORE_F32, NULL, &table, err);
    if (status == FDS_OK)
        status = fds_table_fill(table, plan, 0, NULL, err);
    if (status == FDS_OK)
        status = fds_table_view_create(table, plan, NULL, false, 0, &view, err);
    if (status == FDS_OK) {
        const fds_rows rows = fds_table_view_rows(view);
        const fds_ls_params params = {.adjust = FDS_ADJUST_NONE};
        status = fds_least_squares(plan, &rows, &params, 0, values, NULL, NULL, NULL, err);
    }
    for (size_t p = 0; status == FDS_OK && p < 3; p++)
        printf("player %zu: %+.4f\n", p, values[p * columns]);
    fds_table_view_free(view);
    fds_table_free(table);
    fds_plan_free(plan);
    free(values);
    return status;
}

int main(int argc, char **argv) {
    fds_error err = {0};
    fds_params *params = fds_params_create("shapley");
    fds_dataset *train = NULL, *test = NULL;
    fds_problem *problem = NULL;
    fds_utility *utility = NULL;
    const char *data = argc > 1 ? argv[1] : "mnist", *folder = argc > 2 ? argv[2] : "custom.table";
    model m = {.inputs = 5};
    int ok = fds_params_set(params, "players", "30", &err) == FDS_OK &&
             fds_params_set(params, "test", "5", &err) == FDS_OK &&
             fds_data_open(data, params, NULL, &train, &test, &err) == FDS_OK &&
             fds_problem_create(train, test, params, NULL, &problem, &err) == FDS_OK;
    if (ok) {
        m.train = train;
        m.classes = fds_dataset_classes(train);
        ok = fds_utility_custom(problem, "shares of the classes, 1", answer, &m, 0, &utility,
                                &err) == FDS_OK &&
             solve(utility, folder, &err) == FDS_OK;
    }
    if (!ok)
        fprintf(stderr, "custom: %s\n", err.text);
    fds_utility_free(utility);
    fds_problem_free(problem);
    fds_dataset_free(test);
    fds_dataset_free(train);
    fds_params_free(params);
    return ok ? 0 : 1;
}
