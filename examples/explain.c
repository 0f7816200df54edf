/* SPDX-License-Identifier: Apache-2.0
 *
 * The library in one page: open a fitted run, and ask who contributed to the prediction for an
 * image, and what each is owed of an amount of money.
 *
 *     fds fit mnist -o mnist.run        (after: fds data get mnist)
 *     build/examples/explain mnist.run seven.png
 */
#include <fds.h>

#include <stdio.h>
#include <stdlib.h>

enum { CENTS = 10000 };

static fds_status show(fds_run *run, const fds_dataset *image, fds_error *err) {
    size_t players = fds_run_get_info(run).players;
    uint32_t label;
    fds_status status;
    fds_answers answers = {.labels = &label};
    int64_t *shares = calloc(players, sizeof *shares);
    answers.values = calloc(players, sizeof *answers.values);
    answers.errors = calloc(players, sizeof *answers.errors);
    if (!shares || !answers.values || !answers.errors)
        status = FDS_ERR_NOMEM;
    else if ((status = fds_run_explain(run, FDS_ANSWERER_EXPLAINER, image, NULL, 1, false, &answers,
                                       err)) == FDS_OK)
        status = fds_pay(answers.values, players, CENTS, FDS_POLICY_CLIP, shares, NULL, err);

    if (status == FDS_OK)
        printf("predicted: %s\n", fds_run_class_name(run, label));
    for (size_t i = 0; status == FDS_OK && i < players; i++)
        printf("%-14s label %-4s %+.4f ± %.4f  owed %lld.%02lld\n", fds_run_player_name(run, i),
               fds_run_class_name(run, fds_run_player_label(run, i)), answers.values[i],
               answers.errors[i], (long long)shares[i] / 100, (long long)shares[i] % 100);
    free(shares);
    free(answers.values);
    free(answers.errors);
    return status;
}

int main(int argc, char **argv) {
    fds_error err = {0};
    fds_run *run = NULL;
    fds_dataset *image = NULL;
    if (argc != 3) {
        fprintf(stderr, "usage: explain RUN IMAGE\n");
        return 2;
    }
    const char *const paths[] = {argv[2]};
    fds_status status = fds_run_open(argv[1], 0, &run, &err);
    if (status == FDS_OK) {
        const fds_run_info info = fds_run_get_info(run);
        status = fds_data_pictures(paths, 1, info.shape, info.classes, &image, &err);
    }
    if (status == FDS_OK)
        status = show(run, image, &err);
    if (status != FDS_OK)
        fprintf(stderr, "explain: %s\n", err.text[0] ? err.text : fds_status_text(status));
    fds_dataset_free(image);
    fds_run_free(run);
    return fds_status_exit_code(status);
}
