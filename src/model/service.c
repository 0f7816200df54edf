/* SPDX-License-Identifier: Apache-2.0
 * A service model for a problem, and the report of its training. */
#include "model/model.h"

#include <string.h>

enum { CONVERGE_EPOCHS = 1000, EPOCHS = 10 };

static const char *network_of(const fds_problem *problem, const fds_params *params) {
    return params->model ? params->model : problem->train->is_image ? "lenet5" : "mlp";
}

static fds_train_params training_of(const fds_params *p) {
    fds_train_params t = fds_train_params_default();
    t.optimizer = p->optimizer == 1 ? FDS_OPTIMIZER_SGD : FDS_OPTIMIZER_ADAM;
    t.lr = (float)p->lr;
    t.momentum = (float)p->momentum;
    t.weight_decay = (float)p->weight_decay;
    t.batch = (uint32_t)p->batch;
    t.converge = p->converge;
    t.epochs = p->epochs ? (uint32_t)p->epochs : p->converge ? CONVERGE_EPOCHS : EPOCHS;
    t.loss_bound = (float)p->loss_bound;
    t.min_delta = (float)p->min_delta;
    t.patience = (uint32_t)p->patience;
    t.seed = p->seed;
    return t;
}

static json_t *describe_score(const fds_problem *problem, size_t count, double loss,
                              double accuracy) {
    bool is_regression = problem->train->targets;
    return json_pack("{s:I, s:o, s:o}", "count", (json_int_t)count,
                     is_regression ? "mean_squared_error" : "loss", fds__json_real(loss),
                     is_regression ? "r2" : "accuracy", fds__json_real(accuracy));
}

static fds_status describe(const fds_problem *problem, const fds_params *params,
                           const fds_model *model, const fds_train_report *report, double seconds,
                           const fds_events *events, char **out, fds_error *err) {
    const size_t trained = problem->sample_count, tested = problem->test_count;
    double train_loss, train_accuracy, test_loss, test_accuracy;
    unsigned threads = (unsigned)params->threads;
    TRY(fds_model_score(model, problem->train, problem->samples, trained, threads, &train_loss,
                        &train_accuracy, events, err));
    TRY(fds_model_score(model, problem->test, problem->tests, tested, threads, &test_loss,
                        &test_accuracy, events, err));
    json_t *about =
        json_pack("{s:s, s:s, s:I, s:I, s:b, s:o, s:o, s:o, s:o, s:s}", "version", FDS_VERSION,
                  "layers", fds_model_network(model), "weights",
                  (json_int_t)fds_model_weight_count(model), "epochs", (json_int_t)report->epochs,
                  "converged", report->converged, "seconds", fds__json_real(seconds), "train",
                  describe_score(problem, trained, train_loss, train_accuracy), "test",
                  describe_score(problem, tested, test_loss, test_accuracy), "params",
                  fds__params_json(params), "sha256", fds_model_sha256(model));
    json_t *of = fds__problem_json(problem);
    bool is_whole = about && of && json_object_update(about, of) == 0 &&
                    fds__json_put(about, "network", fds__json_string(network_of(problem, params)));
    *out = is_whole ? fds__json_text(about, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) : NULL;
    json_decref(about);
    json_decref(of);
    return *out ? FDS_OK : fds__fail_json(err);
}

fds_status fds_train(const fds_problem *problem, const fds_params *params, const fds_events *events,
                     fds_model **out, char **report, fds_error *err) {
    const fds_train_params training = training_of(params);
    fds_train_report done;
    static const char *const presets[] = {"lenet5", "cnn", "mlp", "logistic", NULL};
    fds_model *model = NULL;
    TRY(fds__params_check(params, "train", NULL, err));
    double start_s = fds__now_s();
    fds_status status =
        fds_model_train(problem->train, problem->samples, problem->sample_count,
                        network_of(problem, params), &training, events, &model, &done, err);
    const char *nearest =
        status == FDS_ERR_USAGE && params->model ? fds_nearest(params->model, presets) : NULL;
    if (nearest && strcmp(nearest, params->model) != 0)
        return fds__fail(err, status, "`model` %.100s: did you mean \"%s\"?", params->model,
                         nearest);
    TRY(status);
    status = report ? describe(problem, params, model, &done, fds__now_s() - start_s, events,
                               report, err)
                    : FDS_OK;
    if (status != FDS_OK)
        fds_model_free(model);
    else
        *out = model;
    return status;
}
