/* SPDX-License-Identifier: Apache-2.0
 * fds fit, what it would take and what came out, as text and as JSON. */
#include "fit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 10 };

static double sum(const double seconds[FDS_FIT_STAGES]) {
    double total = 0;
    for (int i = 0; i < FDS_FIT_STAGES; i++)
        total += seconds[i];
    return total;
}

static void print_seconds(const double seconds[FDS_FIT_STAGES]) {
    for (int i = 0; i < FDS_FIT_STAGES; i++)
        printf("  %-13s %9.2f s\n", fds_fit_stage_name((fds_fit_stage)i), seconds[i]);
    printf("  %-13s %9.2f s\n", "total", sum(seconds));
}

/* The lines that are known before any work. */
static void print_setup(const fit_job *j) {
    static const char *const samplers[] = {"kernel", "paired", "leverage", "gfds", "gfds+"};
    static const char *const adjusts[] = {"none", "shrink", "counts"};
    const fds_fit_params *p = &j->params;
    char count[CLI_NUMBER_SIZE];
    cli_setup_print(&j->setup, WIDTH);
    if (j->groups)
        printf("%-*s %zu by %s\n", WIDTH, "groups", fds_groups_count(j->groups),
               j->o->group ? j->o->group : "label");
    printf("%-*s %s: %s, coalitions by %s, adjusted by %s\n", WIDTH, "method", j->method,
           p->value.kind, samplers[p->sampler], adjusts[p->adjust]);
    printf("%-*s %s samples that no player owns\n", WIDTH, "inputs",
           cli_count(j->setup.input_count, count));
}

/* ---- JSON ---- */

static json_t *json_seconds(const double seconds[FDS_FIT_STAGES]) {
    json_t *object = json_object();
    for (int i = 0; i < FDS_FIT_STAGES; i++)
        json_object_set_new(object, fds_fit_stage_name((fds_fit_stage)i),
                            cli_json_real(seconds[i]));
    json_object_set_new(object, "total", cli_json_real(sum(seconds)));
    return object;
}

static json_t *json_setup(const fit_job *j) {
    const cli_setup *s = &j->setup;
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:s, s:I, s:I}", "version", FDS_VERSION,
                     "data", cli_json_text(fds_dataset_get_info(s->train).source), "network",
                     cli_json_text(s->network), "players", cli_setup_json_players(s), "groups",
                     j->groups ? json_integer((json_int_t)fds_groups_count(j->groups))
                               : json_null(),
                     "function", cli_json_text(j->params.value.kind), "method", j->method, "inputs",
                     (json_int_t)s->input_count, "seed", (json_int_t)j->o->common.seed);
}

static fds_status print_json(const fit_job *j, json_t *more, fds_error *err) {
    json_t *root = json_setup(j);
    if (!root || !more || json_object_update(root, more) != 0) {
        json_decref(root);
        root = NULL;
    }
    json_decref(more);
    return cli_json_print(root, err);
}

/* ---- what it would take ---- */

static fds_status show_plan_json(const fit_job *j, fds_error *err) {
    const fds_fit_estimate *e = &j->estimate;
    json_t *more = json_pack(
        "{s:I, s:o, s:I, s:I, s:o, s:o}", "sub_models", (json_int_t)e->sub_models, "seconds",
        json_seconds(e->seconds), "memory", (json_int_t)e->memory, "disk", (json_int_t)e->disk,
        "accuracy", e->accuracy > 0 ? cli_json_real(e->accuracy) : json_null(), "accuracy_of",
        e->accuracy_of ? json_string(e->accuracy_of) : json_null());
    return print_json(j, more, err);
}

static void print_accuracy(const fds_fit_estimate *e) {
    char text[200] = "not known: no measurement is near these settings";
    if (e->accuracy > 0)
        snprintf(text, sizeof text,
                 "%.2f to be expected: correlation with the true values, measured of %s",
                 e->accuracy, e->accuracy_of);
    cli_wrap(text, printf("%-*s", WIDTH, "accuracy"), WIDTH + 1);
}

fds_status fit_show_plan(const fit_job *j, fds_error *err) {
    const fds_fit_estimate *e = &j->estimate;
    char text[CLI_NUMBER_SIZE];
    if (j->o->common.json)
        return show_plan_json(j, err);
    print_setup(j);
    printf("%-*s %s\n", WIDTH, "sub-models", cli_count(e->sub_models, text));
    printf("%-*s %s\n", WIDTH, "memory", cli_bytes(e->memory, text));
    printf("%-*s %s\n", WIDTH, "disk", cli_bytes(e->disk, text));
    print_accuracy(e);
    printf("%-*s about, by stage\n", WIDTH, "time");
    print_seconds(e->seconds);
    return FDS_OK;
}

/* ---- what came out ---- */

static fds_status show_json(const fit_job *j, fds_error *err) {
    const fds_fit_report *r = &j->report;
    const fds_run_info info = fds_run_get_info(j->run);
    json_t *test = json_pack("{s:I, s:b, s:o, s:o}", "count", (json_int_t)j->on_test.count,
                             "held_back", !j->setup.test, "loss", cli_json_real(j->on_test.loss),
                             "accuracy", cli_json_real(j->on_test.accuracy));
    json_t *more = json_pack(
        "{s:o, s:I, s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:b, s:b, s:o}", "explainer",
        cli_json_text(info.explainer), "sub_models", (json_int_t)r->sub_models, "service_accuracy",
        cli_json_real(r->service_accuracy), "test", test, "loss", cli_json_real(r->loss), "epochs",
        (json_int_t)r->epochs, "best_epoch", (json_int_t)r->best_epoch, "agreement",
        cli_json_real(r->agreement), "agreement_within_class", cli_json_real(r->within), "seconds",
        json_seconds(r->seconds), "resumed", r->was_resumed, "models_kept", info.has_bank, "run",
        cli_json_text(j->o->output));
    return print_json(j, more, err);
}

static void print_explainer(const fit_job *j, const char *explainer) {
    const fds_fit_report *r = &j->report;
    printf("%-*s %s, %u epoch%s, the best was number %u\n", WIDTH, "explainer", explainer,
           r->epochs, r->epochs == 1 ? "" : "s", r->best_epoch);
    if (!isnan(r->agreement))
        printf("%-*s %.3f with least squares on inputs kept out (correlation)\n", WIDTH,
               "agreement", r->agreement);
    if (!isnan(r->within))
        printf("%-*s %.3f over the players of the predicted label\n", WIDTH, "", r->within);
}

fds_status fit_show(const fit_job *j, fds_error *err) {
    const fds_fit_report *r = &j->report;
    const fds_run_info info = fds_run_get_info(j->run);
    bool has_network = strcmp(info.explainer, "bank") != 0;
    char count[CLI_NUMBER_SIZE];
    if (j->o->common.json)
        return show_json(j, err);
    print_setup(j);
    printf("%-*s accuracy %.1f %% on the inputs, %.1f %% on %s test samples%s\n", WIDTH, "service",
           100 * r->service_accuracy, 100 * j->on_test.accuracy, cli_count(j->on_test.count, count),
           j->setup.test ? "" : " held back");
    printf("%-*s %s%s\n", WIDTH, "sub-models", cli_count(r->sub_models, count),
           info.has_bank ? ", kept" : "");
    if (has_network)
        print_explainer(j, info.explainer);
    else
        printf("%-*s none: the sub-models answer themselves\n", WIDTH, "explainer");
    printf("%-*s by stage%s\n", WIDTH, "time",
           r->was_resumed ? " (the run had been begun before)" : "");
    print_seconds(r->seconds);
    printf("%-*s %s\n", WIDTH, "run", j->o->output);
    printf("%-*s fds explain %s --index 0\n", WIDTH, "next", j->o->output);
    return FDS_OK;
}
