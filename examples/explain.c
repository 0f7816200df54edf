/* SPDX-License-Identifier: Apache-2.0
 * Fits a run once, then explains and pays for a prediction:
 *     build/examples/explain mnist digits.run pay.csv */
#include <fds.h>
#include <stdio.h>

int main(int argc, char **argv) {
    const char *data = argc > 1 ? argv[1] : "mnist", *dir = argc > 2 ? argv[2] : "mnist.run";
    const char *file = argc > 3 ? argv[3] : "pay.csv";
    const fds_events *events = fds_events_terminal();
    fds_params *fit = fds_params_create("fit"), *pay = fds_params_create("pay");
    fds_problem *problem = NULL;
    fds_run *run = NULL;
    fds_input *input = NULL;
    fds_result *result = NULL;
    fds_payment *payment = NULL;
    fds_error err = {0};
    int failed =
        fds_params_set(fit, "data", data, &err) || /* FDS_OK is 0 */
        fds_params_set(fit, "players", "20", &err) || fds_params_set(pay, "index", "0", &err) ||
        fds_params_set(pay, "amount", "100.00", &err) ||
        fds_problem_open(fit, events, &problem, &err) ||
        fds_fit(dir, problem, fit, events, NULL, &err) || /* resumes if it was killed */
        fds_run_open(dir, NULL, &run, &err) || fds_input_open(run, pay, events, &input, &err) ||
        fds_run_explain(run, input, pay, events, &result, &err) ||
        fds_pay(result, pay, &payment, &err) || fds_payment_save(payment, file, &err);
    for (size_t i = 0; !failed && i < fds_result_players(result); i++)
        printf("%s %+.4f \u00b1 %.4f earns %lld cents\n", fds_result_player(result, i),
               fds_result_value(result, 0, i), fds_result_error(result, 0, i),
               (long long)fds_payment_share(payment, 0, i));
    if (failed)
        fprintf(stderr, "explain: %s\n", err.text);
    fds_payment_free(payment), fds_result_free(result), fds_input_free(input);
    fds_run_free(run), fds_problem_free(problem), fds_params_free(fit), fds_params_free(pay);
    return failed;
}
