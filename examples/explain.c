/* SPDX-License-Identifier: Apache-2.0
 * Fits a run once, then explains and pays for a prediction:
 *     build/examples/explain mnist fitted.run pay.csv */
#include <fds.h>
#include <stdio.h>

static fds_error err;
static int is_set(fds_params *p, const char *name, const char *value) {
    return fds_params_set(p, name, value, &err) == FDS_OK;
}

int main(int argc, char **argv) {
    const char *data = argc > 1 ? argv[1] : "mnist", *dir = argc > 2 ? argv[2] : "mnist.run";
    const char *file = argc > 3 ? argv[3] : "pay.csv";
    const fds_events *events = fds_events_terminal();
    fds_params *fit = fds_params_create("fit"), *ask = fds_params_create("pay");
    fds_problem *problem = NULL;
    fds_run *run = NULL;
    fds_input *input = NULL;
    fds_result *result = NULL;
    fds_payment *payment = NULL;
    int ok =
        is_set(fit, "data", data) && is_set(fit, "players", "20") &&
        is_set(fit, "coalitions", "200") && is_set(fit, "inputs", "200") &&
        is_set(ask, "index", "0") && is_set(ask, "amount", "100.00") &&
        fds_problem_open(fit, events, &problem, &err) == FDS_OK &&
        fds_fit(dir, problem, fit, events, NULL, &err) == FDS_OK && /* resumes if it was killed */
        fds_run_open(dir, NULL, &run, &err) == FDS_OK &&
        fds_input_open(run, ask, events, &input, &err) == FDS_OK &&
        fds_run_explain(run, input, ask, events, &result, &err) == FDS_OK &&
        fds_pay(result, ask, &payment, &err) == FDS_OK &&
        fds_payment_save(payment, file, &err) == FDS_OK;
    for (size_t i = 0; ok && i < fds_result_players(result); i++)
        printf("%s %+.4f \u00b1 %.4f earns %lld cents\n", fds_result_player(result, i),
               fds_result_value(result, 0, i), fds_result_error(result, 0, i),
               (long long)fds_payment_share(payment, 0, i));
    if (!ok)
        fprintf(stderr, "explain: %s\n", err.text);
    fds_payment_free(payment);
    fds_result_free(result);
    fds_input_free(input), fds_run_free(run), fds_problem_free(problem);
    fds_params_free(fit), fds_params_free(ask);
    return ok ? 0 : 1;
}
