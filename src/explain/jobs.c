/* SPDX-License-Identifier: Apache-2.0
 * The public functions of fits: their reports and estimates as JSON. */
#include "explain/run.h"

#include <float.h>
#include <math.h>
#include <string.h>

static json_t *describe_seconds(const double seconds[FDS__FIT_STAGES]) {
    json_t *object = fds__fit_seconds_json(seconds);
    double total = 0;
    for (int i = 0; i < FDS__FIT_STAGES; i++)
        total += seconds[i];
    return fds__json_keep_if(object, fds__json_put(object, "total", fds__json_real(total)));
}

/* The settings of a fit. */
static fds_status describe(const fds_problem *problem, const fds_params *params, json_t **out,
                           fds_error *err) {
    fds__fit_settings s;
    TRY(fds__fit_read(params, problem, &s, err));
    json_t *json = json_pack("{s:s, s:s, s:o, s:o, s:s, s:o, s:I}", "version", FDS_VERSION,
                             "method", s.method, "utility", fds__json_string(s.kind), "network",
                             fds__json_string(fds__command_of(s.kind) ? NULL : s.utility.network),
                             "sampler", fds__sampler_name(&s), "adjust",
                             fds__json_string(s.adjust_name), "seed", (json_int_t)params->seed);
    json_t *about = fds__problem_json(problem);
    bool is_whole =
        json && about && json_object_update(json, about) == 0 &&
        fds__json_put(json, "group",
                      s.has_groups ? fds__json_string(fds__group_by(problem, params, s.sampler))
                                   : json_null());
    json_decref(about);
    *out = fds__json_keep_if(json, is_whole);
    return *out ? FDS_OK : fds__fail_json(err);
}

/* The members of all parts as one text, which the caller frees. Frees the parts. */
static fds_status join(json_t *parts[], size_t count, char **out, fds_error *err) {
    bool is_whole = parts[0];
    for (size_t i = 1; i < count; i++) {
        is_whole = is_whole && parts[i] && json_object_update(parts[0], parts[i]) == 0;
        json_decref(parts[i]);
    }
    *out = is_whole ? fds__json_text(parts[0], JSON_INDENT(1) | JSON_REAL_PRECISION(12)) : NULL;
    json_decref(parts[0]);
    return *out ? FDS_OK : fds__fail_json(err);
}

/* The accuracy of a run's service model on the test samples, and its mean loss. */
static fds_status score(fds_run *run, const fds_problem *problem, unsigned threads, double *loss,
                        double *accuracy, const fds_events *events, fds_error *err) {
    const size_t count = problem->test_count, classes = problem->train->classes;
    *loss = *accuracy = NAN;
    if (!count)
        return FDS_OK;
    if (!fds__run_has_program(run))
        return fds_model_score(fds_run_service(run), problem->test, problem->tests, count, threads,
                               loss, accuracy, events, err);
    OWNED float *probs = NULL;
    TRY(RESERVE(probs, count, classes, err));
    TRY(fds__run_predict(run, problem->test, problem->tests, count, threads, probs, events, err));
    *loss = *accuracy = 0;
    for (size_t i = 0; i < count; i++) {
        const float *p = probs + i * classes;
        *loss -= log(MAX((double)p[problem->test_labels[i]], (double)FLT_MIN)) / (double)count;
        *accuracy +=
            (fds__argmax_f32(p, (uint32_t)classes) == problem->test_labels[i]) / (double)count;
    }
    return FDS_OK;
}

static json_t *describe_service(const fds_run *run, const fds_problem *problem, double loss,
                                double accuracy) {
    const fds__run_info info = fds__run_get_info(run);
    const fds_model *model = fds_run_service(run);
    return json_pack("{s:{s:I, s:b, s:o, s:o}, s:s, s:b, s:o, s:o}", "test", "count",
                     (json_int_t)problem->test_count, "set_aside", !problem->has_test_part,
                     info.is_regression ? "mean_squared_error" : "loss", fds__json_real(loss),
                     info.is_regression ? "r2" : "accuracy", fds__json_real(accuracy), "explainer",
                     info.explainer, "models_kept", info.has_bank, "groups",
                     info.groups ? json_integer((json_int_t)info.groups) : json_null(), "weights",
                     model ? json_integer((json_int_t)fds_model_weight_count(model)) : json_null());
}

static fds_status score_service(const char *dir, const fds_problem *problem,
                                const fds_params *params, const fds_events *events, json_t **out,
                                fds_error *err) {
    fds_run *run;
    double loss, accuracy;
    unsigned threads = (unsigned)params->threads;
    TRY(fds__run_open(dir, threads, &run, err));
    fds_status status =
        fds__run_has_program(run) ? fds__run_use_program(run, params->utility, err) : FDS_OK;
    if (status == FDS_OK)
        status = score(run, problem, threads, &loss, &accuracy, events, err);
    if (status == FDS_OK) {
        *out = describe_service(run, problem, loss, accuracy);
        status = *out ? FDS_OK : fds__fail_json(err);
    }
    fds_run_free(run);
    return status;
}

fds_status fds_fit(const char *dir, const fds_problem *problem, const fds_params *params,
                   const fds_events *events, char **report, fds_error *err) {
    fds__fit_report r;
    json_t *parts[3] = {NULL};
    fds_status status = fds__fit(dir, problem, params, events, &r, err);
    if (status == FDS_ERR_CANCELLED)
        return fds__fail(err, status,
                         "finished work is kept in %s; run the same command again to resume", dir);
    if (status != FDS_OK || !report)
        return status;
    TRY(describe(problem, params, &parts[0], err));
    status = score_service(dir, problem, params, events, &parts[2], err);
    if (status != FDS_OK) {
        json_decref(parts[0]);
        return status;
    }
    parts[1] = json_pack(
        "{s:I, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:b, s:o, s:I, s:o, s:o*}", "sub_models",
        (json_int_t)r.sub_models, problem->train->targets ? "service_r2" : "service_accuracy",
        fds__json_real(r.service_accuracy), "loss", fds__json_real(r.loss), "epochs",
        (json_int_t)r.epochs, "best_epoch", (json_int_t)r.best_epoch, "agreement",
        fds__json_real(r.agreement), "agreement_within_class", fds__json_real(r.within), "seconds",
        describe_seconds(r.seconds), "resumed", r.was_resumed, "run", fds__json_string(dir),
        "probes", (json_int_t)r.probes, "explainer_reason",
        fds__json_string(r.reason[0] ? r.reason : NULL), "until_error",
        r.until.wanted > 0 ? fds__until_json(&r.until) : NULL);
    return join(parts, 3, report, err);
}

fds_status fds_fit_estimate(const fds_problem *problem, const fds_params *params,
                            const fds_events *events, char **report, fds_error *err) {
    fds__fit_cost c;
    json_t *parts[2];
    TRY(fds__fit_estimate(problem, params, events, &c, err));
    TRY(describe(problem, params, &parts[0], err));
    parts[1] = json_pack(
        "{s:I, s:o, s:I, s:I, s:o, s:o, s:o*}", "sub_models", (json_int_t)c.sub_models, "seconds",
        describe_seconds(c.seconds), "memory", (json_int_t)c.memory, "disk", (json_int_t)c.disk,
        "accuracy", c.accuracy > 0 ? fds__json_real(c.accuracy) : json_null(), "accuracy_of",
        fds__json_string(c.accuracy_of), "until_error",
        params->until_error > 0 ? json_pack("{s:f}", "wanted", params->until_error) : NULL);
    return join(parts, 2, report, err);
}

static fds_status join_clusters(fds_run *run, const char *path, fds_error *err) {
    OWNED uint8_t *data = NULL;
    size_t size;
    TRY(fds__file_read(path, FDS__MAX_CLUSTERS, &data, &size, err));
    return fds__run_join(run, &(fds__blob){.path = path, .data = data, .size = size}, err);
}

fds_status fds_run_open(const char *dir, const fds_params *params, fds_run **out, fds_error *err) {
    fds_run *run;
    const unsigned threads = params ? (unsigned)params->threads : 0;
    const bool is_quick = params && params->job == FDS__JOB_EXPLAIN; /* who pays, verifies */
    TRY((is_quick ? fds__run_open_quickly : fds__run_open)(dir, threads, &run, err));
    fds_status status = fds__run_use_program(run, params ? params->utility : NULL, err);
    if (status == FDS_OK && params && params->cluster)
        status = join_clusters(run, params->cluster, err);
    if (status == FDS_OK)
        *out = run;
    else
        fds_run_free(run);
    return status;
}
