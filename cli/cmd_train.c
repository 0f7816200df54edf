/* SPDX-License-Identifier: Apache-2.0
 * fds train: a service model alone. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static const cli_option own[] = {
    CLI_OWN('o', "output", output, "FILE", "output file of the model, .safetensors (required)"),
};

static void print_score(const json_t *report, const char *name, const char *remark) {
    const json_t *score = cli_get(report, name);
    if (json_is_number(cli_get(score, "r2"))) {
        printf("%-*s mean squared error %.6g, R2 %.4f, %llu samples%s\n", CLI_WIDTH, name,
               cli_get_number(score, "mean_squared_error"), cli_get_number(score, "r2"),
               (unsigned long long)cli_get_count(score, "count"), remark);
        return;
    }
    printf("%-*s loss %.4f, accuracy %.2f %%, %llu samples%s\n", CLI_WIDTH, name,
           cli_get_number(score, "loss"), 100 * cli_get_number(score, "accuracy"),
           (unsigned long long)cli_get_count(score, "count"), remark);
}

static void print_report(const cli_args *args, const json_t *r) {
    uint64_t epochs = cli_get_count(r, "epochs");
    print_score(r, "test", cli_get_flag(r, "tests_set_aside") ? ", set aside from the data" : "");
    print_score(r, "train", "");
    cli_print_problem(r);
    printf("%-*s %llu epoch%s in %.2f s%s\n", CLI_WIDTH, "training", (unsigned long long)epochs,
           epochs == 1 ? "" : "s", cli_get_number(r, "seconds"),
           cli_get_flag(r, "converged")         ? ", converged"
           : cli_get_flag(r, "params.converge") ? ", not converged"
                                                : "");
    printf("%-*s sha256 %.16s\n", CLI_WIDTH, "weights", cli_get_text(r, "sha256"));
    printf("%-*s %s\n", CLI_WIDTH, "written", args->output);
}

static fds_status run(cli_args *args, fds_error *err) {
    fds_problem *problem;
    fds_model *model = NULL;
    char *text = NULL;
    if (!args->output)
        return cli_fail(
            err, FDS_ERR_USAGE,
            "-o FILE is missing: the file of the model, for example -o model.safetensors");
    CLI_TRY(cli_check_output("-o", args->output, ".safetensors", args, err));
    CLI_TRY(fds_problem_open(args->params, args->events, &problem, err));
    fds_status status = fds_train(problem, args->params, args->events, &model, &text, err);
    if (status == FDS_OK)
        status = fds_model_save(model, args->output, err);
    fds_model_free(model);
    fds_problem_free(problem);
    if (status != FDS_OK) {
        fds_text_free(text);
        return status;
    }
    return cli_show(args, text, print_report, err);
}

const cli_command cli_train = {
    .name = "train",
    .job = "train",
    .operand = "DATA",
    .missing = "name a fetched set or a path, for example: fds train mnist -o model.safetensors",
    .usage = "DATA -o FILE [options]",
    .summary = "train a service model alone",
    .about = "Trains a service model on the samples of the players, scores it on them and on test "
             "samples, and saves it. The same seed gives the same weights, bit for bit, with any "
             "number of threads.\n\n"
             "DATA is the name of a fetched set (fds data get) or a path, as for fds data show.",
    .examples = "  fds train mnist --players 100 --epochs 10 -o model.safetensors\n"
                "  fds train sales.csv --label outcome --provider shop --players providers \\\n"
                "      --model mlp --converge -o model.safetensors\n",
    .own = own,
    .own_count = CLI_COUNT(own),
    .run = run,
};
