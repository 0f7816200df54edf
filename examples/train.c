/* SPDX-License-Identifier: Apache-2.0
 *
 * The library in one page: train a service model on 100 digits and ask it about one image.
 *
 *     build/examples/train mnist        (after: fds data get mnist)
 */
#include <fds.h>

#include <stdio.h>

static int fail(const fds_error *err) {
    fprintf(stderr, "train: %s\n", err->text);
    return fds_status_exit_code(err->status);
}

int main(int argc, char **argv) {
    fds_error err = {0};
    fds_dataset *train = NULL, *test = NULL;
    fds_model *model = NULL;
    uint32_t players[100], image = 0;
    float probs[65535];
    fds_train_params params = fds_train_params_default();

    if (fds_data_open(argc > 1 ? argv[1] : "mnist", NULL, &train, &test, &err) != FDS_OK ||
        fds_split_balanced(train, 100, params.seed, players, &err) != FDS_OK ||
        fds_model_train(train, players, 100, "lenet5", &params, NULL, &model, NULL, &err) !=
            FDS_OK ||
        fds_model_predict(model, test ? test : train, &image, 1, 1, probs, NULL, &err) != FDS_OK)
        return fail(&err);

    for (uint32_t k = 0; k < fds_model_get_info(model).classes; k++)
        printf("%-12s %6.2f %%\n", fds_model_class_name(model, k), 100 * (double)probs[k]);

    fds_model_free(model);
    fds_dataset_free(test);
    fds_dataset_free(train);
    return 0;
}
