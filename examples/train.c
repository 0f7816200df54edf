/* SPDX-License-Identifier: Apache-2.0
 * A service model of 100 digits, asked about one image (after: fds data get mnist):
 *     build/examples/train mnist */
#include <fds.h>
#include <stdio.h>

int main(int argc, char **argv) {
    static float probs[65535];
    fds_error err = {0};
    fds_params *params = fds_params_create("train");
    fds_problem *problem = NULL;
    fds_model *model = NULL;
    const uint32_t image = 0;
    int ok = fds_params_set(params, "data", argc > 1 ? argv[1] : "mnist", &err) == FDS_OK &&
             fds_params_set(params, "players", "100", &err) == FDS_OK &&
             fds_problem_open(params, NULL, &problem, &err) == FDS_OK &&
             fds_train(problem, params, NULL, &model, NULL, &err) == FDS_OK &&
             fds_model_predict(model, fds_problem_test(problem), &image, 1, 1, probs, NULL, &err) ==
                 FDS_OK;
    for (uint32_t k = 0; ok && k < fds_model_classes(model); k++)
        printf("%-12s %6.2f %%\n", fds_model_class_name(model, k), 100 * (double)probs[k]);
    if (!ok)
        fprintf(stderr, "train: %s\n", err.text);
    fds_model_free(model);
    fds_problem_free(problem);
    fds_params_free(params);
    return ok ? 0 : 1;
}
