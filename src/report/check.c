/* SPDX-License-Identifier: Apache-2.0
 *
 * case.json and report.json (docs/bench.md) read and checked before anything is computed from them:
 * what a member must be is written down in tables, and a file that is otherwise is refused with the
 * place, "rows[2].losses[0].mean". Members that nobody reads later are not looked at.
 */
#include "report/report.h"

#include <math.h>
#include <string.h>

#define MAX_BYTES ((size_t)256 << 20)
#define MAX_NUMBER 1e15
#define MAX_COUNT 2147483647
enum { MAX_ITEMS = 4096, PLACE = 160 };

/* ---- what there must be ---- */

typedef enum { TEXT, FLAG, WHOLE, COUNT, NUMBER, OBJECT, LIST } kind;

static const char *const kind_names[] = {
    "a text",   "true or false", "a whole number",        "a whole number from 0 to 2147483647",
    "a number", "an object",     "a list of at most 4096"};

typedef struct shape {
    kind kind;
    bool or_null;                 /* null, or no such member */
    bool is_needed;               /* or_null: but there must be such a member */
    const char *const *choices;   /* TEXT: which there are; NULL: any */
    const struct member *members; /* OBJECT: up to one without a key */
    const struct shape *item;     /* LIST */
} shape;

typedef struct member {
    const char *key;
    const shape *shape;
} member;

static const char *const ways[] = {"top", "bottom", "keep_top", NULL};
static const char *const sets[] = {"correct", "all", NULL};
static const char *const kinds[] = {"ours", "beyond", "paper", "other", "control", NULL};

static const shape text = {.kind = TEXT}, flag = {.kind = FLAG}, whole = {.kind = WHOLE},
                   maybe_flag = {.kind = FLAG, .or_null = true}, count = {.kind = COUNT},
                   number = {.kind = NUMBER}, maybe_number = {.kind = NUMBER, .or_null = true},
                   numbers = {.kind = LIST, .item = &maybe_number},
                   given_numbers = {.kind = LIST, .item = &number},
                   wholes = {.kind = LIST, .item = &whole}, way = {.kind = TEXT, .choices = ways},
                   set = {.kind = TEXT, .choices = sets},
                   row_kind = {.kind = TEXT, .choices = kinds};

#define OBJECT_OF(table) \
    { .kind = OBJECT, .members = table }
#define MAYBE_OBJECT_OF(table) \
    { .kind = OBJECT, .members = table, .or_null = true }
#define NEEDED_OBJECT_OF(table) \
    { .kind = OBJECT, .members = table, .or_null = true, .is_needed = true }
#define LIST_OF(what) \
    { .kind = LIST, .item = &what }

static const member data_members[] = {{"name", &text},     {"source", &text}, {"classes", &count},
                                      {"players", &count}, {"tests", &count}, {"inputs", &count},
                                      {NULL, NULL}};
static const member picture_members[] = {{"method", &text}, {"file", &text}, {NULL, NULL}};
static const shape data = OBJECT_OF(data_members), picture = OBJECT_OF(picture_members),
                   pictures = LIST_OF(picture);

/* case.json */
static const member machine_members[] = {{"processor", &text},
                                         {"processors", &count},
                                         {"instructions", &text},
                                         {"threads", &count},
                                         {NULL, NULL}};
static const member case_truth_members[] = {
    {"coalitions", &count}, {"correlation", &maybe_number}, {NULL, NULL}};
static const member case_orders_members[] = {
    {"sampled", &count}, {"has_converged", &maybe_flag}, {NULL, NULL}};
static const shape machine = OBJECT_OF(machine_members),
                   case_truth = NEEDED_OBJECT_OF(case_truth_members),
                   case_orders = NEEDED_OBJECT_OF(case_orders_members);
static const member case_settings_members[] = {
    {"seed", &whole}, {"shares", &given_numbers}, {NULL, NULL}};
static const member case_base_members[] = {
    {"set", &set}, {"count", &count}, {"mean", &maybe_number}, {"sd", &maybe_number}, {NULL, NULL}};
static const shape case_base = OBJECT_OF(case_base_members), case_bases = LIST_OF(case_base);
static const member case_judge_members[] = {
    {"utility", &text}, {"losses", &case_bases}, {"truth", &case_truth}, {NULL, NULL}};
static const member case_loss_members[] = {{"utility", &text}, {"removal", &way},  {"set", &set},
                                           {"count", &count},  {"mean", &numbers}, {"sd", &numbers},
                                           {NULL, NULL}};
static const shape case_settings = OBJECT_OF(case_settings_members),
                   case_judge = OBJECT_OF(case_judge_members), case_judges = LIST_OF(case_judge),
                   case_loss = OBJECT_OF(case_loss_members), case_losses = LIST_OF(case_loss);
static const member case_agreement_members[] = {{"correlation", &maybe_number},
                                                {"class_correlation", &maybe_number},
                                                {"relative_error", &maybe_number},
                                                {"efficiency_gap", &maybe_number},
                                                {NULL, NULL}};
static const member case_timing_members[] = {{"prepare_s", &maybe_number},
                                             {"answer_ms", &maybe_number},
                                             {"was_resumed", &flag},
                                             {NULL, NULL}};
static const shape case_agreement = MAYBE_OBJECT_OF(case_agreement_members),
                   case_timing = MAYBE_OBJECT_OF(case_timing_members);
static const member case_row_members[] = {{"method", &text},
                                          {"title", &text},
                                          {"kind", &row_kind},
                                          {"is_per_sample", &flag},
                                          {"utility", &text},
                                          {"losses", &case_losses},
                                          {"agreement", &case_agreement},
                                          {"auc", &maybe_number},
                                          {"sub_models", &maybe_number},
                                          {"permutations", &case_orders},
                                          {"timing", &case_timing},
                                          {NULL, NULL}};
static const shape case_row = OBJECT_OF(case_row_members), case_rows = LIST_OF(case_row);
static const member case_members[] = {{"fds", &text},
                                      {"machine", &machine},
                                      {"data", &data},
                                      {"settings", &case_settings},
                                      {"utilities", &case_judges},
                                      {"rows", &case_rows},
                                      {"pictures", &pictures},
                                      {NULL, NULL}};
static const shape case_json = OBJECT_OF(case_members);

/* report.json, as far as reports are compared */
static const member stat_members[] = {
    {"mean", &number}, {"sd", &maybe_number}, {"count", &count}, {NULL, NULL}};
static const shape stat = MAYBE_OBJECT_OF(stat_members);
static const member agreement_members[] = {{"correlation", &stat},
                                           {"class_correlation", &stat},
                                           {"relative_error", &stat},
                                           {"efficiency_gap", &stat},
                                           {NULL, NULL}};
static const member settings_members[] = {{"shares", &given_numbers}, {NULL, NULL}};
static const member base_members[] = {
    {"set", &set}, {"mean", &maybe_number}, {"error", &maybe_number}, {NULL, NULL}};
static const shape agreement = MAYBE_OBJECT_OF(agreement_members),
                   settings = OBJECT_OF(settings_members), base = OBJECT_OF(base_members),
                   bases = LIST_OF(base);
static const member judge_members[] = {{"utility", &text}, {"losses", &bases}, {NULL, NULL}};
static const member loss_members[] = {{"utility", &text}, {"removal", &way},   {"set", &set},
                                      {"mean", &numbers}, {"error", &numbers}, {NULL, NULL}};
static const shape judge = OBJECT_OF(judge_members), judges = LIST_OF(judge),
                   loss = OBJECT_OF(loss_members), losses = LIST_OF(loss);
static const member row_members[] = {{"method", &text},         {"losses", &losses},
                                     {"agreement", &agreement}, {"auc", &stat},
                                     {"sub_models", &stat},     {NULL, NULL}};
static const shape row = OBJECT_OF(row_members), rows = LIST_OF(row);
static const member part_members[] = {
    {"name", &text},        {"players", &count}, {"tests", &count},
    {"inputs", &count},     {"seeds", &wholes},  {"settings", &settings},
    {"utilities", &judges}, {"rows", &rows},     {NULL, NULL}};
static const shape part = OBJECT_OF(part_members), parts = LIST_OF(part);
static const member report_members[] = {{"fds", &text}, {"data", &parts}, {NULL, NULL}};
static const shape report_json = OBJECT_OF(report_members);

/* ---- whether it is so ---- */

static bool is_choice(const char *const *choices, const json_t *json) {
    while (*choices && strcmp(*choices, json_string_value(json)) != 0)
        choices++;
    return *choices != NULL;
}

static bool is_of_kind(const json_t *json, const shape *what) {
    json_int_t integer = json_integer_value(json);
    switch (what->kind) {
    case TEXT:
        return json_is_string(json) && (!what->choices || is_choice(what->choices, json));
    case FLAG:
        return json_is_boolean(json);
    case WHOLE:
        return json_is_integer(json);
    case COUNT:
        return json_is_integer(json) && integer >= 0 && integer <= MAX_COUNT;
    case NUMBER:
        return json_is_number(json) && fabs(json_number_value(json)) <= MAX_NUMBER;
    case OBJECT:
        return json_is_object(json);
    case LIST:
        return json_is_array(json) && json_array_size(json) <= MAX_ITEMS;
    }
    return false;
}

static fds_status fail_kind(const char *path, const char *place, const json_t *json,
                            const shape *what, fds_error *err) {
    char wanted[PLACE];
    snprintf(wanted, sizeof wanted, "%s", kind_names[what->kind]);
    if (what->choices) {
        size_t used = 0;
        for (const char *const *choice = what->choices; *choice && used < sizeof wanted; choice++)
            used += (size_t)snprintf(wanted + used, sizeof wanted - used, "%s\"%s\"",
                                     used ? " or " : "", *choice);
    }
    const char *most = what->kind == NUMBER ? " of at most 1e15" : "";
    return fds__fail(err, FDS_ERR_FORMAT, "%s: %s %s %s%s%s", path, place,
                     json ? "must be" : "is missing; it must be", wanted, most,
                     what->or_null ? " or null" : "");
}

static fds_status check(const char *path, const char *place, const json_t *json, const shape *what,
                        fds_error *err) {
    char below[PLACE];
    if (what->or_null && (json ? json_is_null(json) : !what->is_needed))
        return FDS_OK;
    if (!is_of_kind(json, what))
        return fail_kind(path, *place ? place : "the whole", json, what, err);
    if (what->kind == OBJECT)
        for (const member *m = what->members; m->key; m++) {
            snprintf(below, sizeof below, "%s%s%s", place, *place ? "." : "", m->key);
            TRY(check(path, below, json_object_get(json, m->key), m->shape, err));
        }
    if (what->kind == LIST)
        for (size_t i = 0; i < json_array_size(json); i++) {
            snprintf(below, sizeof below, "%s[%zu]", place, i);
            TRY(check(path, below, json_array_get(json, i), what->item, err));
        }
    return FDS_OK;
}

/* Entries are told apart by the texts of up to three members. */
static fds_status check_unique(const char *path, const char *place, const json_t *list,
                               const char *const keys[3], fds_error *err) {
    for (size_t i = 0; i < json_array_size(list); i++)
        for (size_t j = 0; j < i; j++) {
            bool is_same = true;
            for (int k = 0; k < 3 && keys[k]; k++)
                is_same &= json_equal(json_object_get(json_array_get(list, i), keys[k]),
                                      json_object_get(json_array_get(list, j), keys[k]));
            if (is_same)
                return fds__fail(err, FDS_ERR_FORMAT,
                                 "%s: %s[%zu] has the %s of %s[%zu]; each may be "
                                 "there once",
                                 path, place, i, keys[0], place, j);
        }
    return FDS_OK;
}

static fds_status check_shares(const char *path, const char *place, const json_t *shares,
                               fds_error *err) {
    double last = 0;
    for (size_t i = 0; i < json_array_size(shares); i++) {
        double share = json_number_value(json_array_get(shares, i));
        if (!(share > last) || share > 1)
            return fds__fail(
                err, FDS_ERR_FORMAT,
                "%s: %ssettings.shares[%zu]: shares must ascend, above 0 and at most 1", path,
                place, i);
        last = share;
    }
    return FDS_OK;
}

/* A list of a row has a number for each share. */
static fds_status check_length(const char *path, const char *place, const json_t *entry,
                               const char *key, size_t shares, fds_error *err) {
    const json_t *list = json_object_get(entry, key);
    if (list && json_array_size(list) != shares)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: %s.%s has %zu numbers; there are %zu shares",
                         path, place, key, json_array_size(list), shares);
    return FDS_OK;
}

static fds_status check_losses(const char *path, const char *place, const json_t *list,
                               size_t shares, fds_error *err) {
    static const char *const lists[] = {"mean", "sd", "error"};
    static const char *const names[3] = {"utility", "removal", "set"};
    TRY(check_unique(path, place, list, names, err));
    for (size_t i = 0; i < json_array_size(list); i++) {
        char below[PLACE + 24];
        snprintf(below, sizeof below, "%s[%zu]", place, i);
        for (size_t k = 0; k < 3; k++)
            TRY(check_length(path, below, json_array_get(list, i), lists[k], shares, err));
    }
    return FDS_OK;
}

/* What a case and a set of data in a report have alike. prefix: "data[0]." or "". */
static fds_status check_whole(const char *path, const char *prefix, const json_t *json,
                              fds_error *err) {
    static const char *const method[3] = {"method"}, *const value[3] = {"utility"},
                             *const set_name[3] = {"set"};
    char place[PLACE];
    const json_t *shares = json_object_get(json_object_get(json, "settings"), "shares");
    const json_t *judged = json_object_get(json, "utilities"),
                 *list = json_object_get(json, "rows");
    TRY(check_shares(path, prefix, shares, err));
    snprintf(place, sizeof place, "%sutilities", prefix);
    TRY(check_unique(path, place, judged, value, err));
    for (size_t i = 0; i < json_array_size(judged); i++) {
        snprintf(place, sizeof place, "%sutilities[%zu].losses", prefix, i);
        TRY(check_unique(path, place, json_object_get(json_array_get(judged, i), "losses"),
                         set_name, err));
    }
    snprintf(place, sizeof place, "%srows", prefix);
    TRY(check_unique(path, place, list, method, err));
    for (size_t i = 0; i < json_array_size(list); i++) {
        snprintf(place, sizeof place, "%srows[%zu].losses", prefix, i);
        TRY(check_losses(path, place, json_object_get(json_array_get(list, i), "losses"),
                         json_array_size(shares), err));
    }
    return FDS_OK;
}

/* A picture lies in the case's own folder. */
static fds_status check_pictures(const char *path, const json_t *list, fds_error *err) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *file = report_text_of(json_array_get(list, i), "file");
        if (!*file || *file == '.' || strchr(file, '/'))
            return fds__fail(err, FDS_ERR_FORMAT,
                             "%s: pictures[%zu].file must be the name of a file beside it", path,
                             i);
    }
    return FDS_OK;
}

/* ---- reading ---- */

static fds_status read_json(const char *path, const char *kind_text, const shape *what,
                            json_t **out, fds_error *err) {
    json_t *json;
    fds_status status = FDS_OK;
    TRY(fds__json_read(path, MAX_BYTES, &json, err));
    if (strcmp(report_text_of(json, "kind"), kind_text) != 0)
        status = fds__fail(err, FDS_ERR_FORMAT, "%s: \"kind\" must be \"%s\"", path, kind_text);
    else
        status = check(path, "", json, what, err);
    if (status != FDS_OK)
        json_decref(json);
    else
        *out = json;
    return status;
}

fds_status report_case_read(const char *path, json_t **out, fds_error *err) {
    json_t *json;
    TRY(read_json(path, "fds bench case", &case_json, &json, err));
    fds_status status = check_whole(path, "", json, err);
    if (status == FDS_OK)
        status = check_pictures(path, json_object_get(json, "pictures"), err);
    if (status != FDS_OK)
        json_decref(json);
    else
        *out = json;
    return status;
}

fds_status report_read(const char *path, json_t **out, fds_error *err) {
    static const char *const name[3] = {"name"};
    json_t *json;
    TRY(read_json(path, "fds bench report", &report_json, &json, err));
    const json_t *list = json_object_get(json, "data");
    fds_status status = check_unique(path, "data", list, name, err);
    for (size_t i = 0; status == FDS_OK && i < json_array_size(list); i++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "data[%zu].", i);
        status = check_whole(path, prefix, json_array_get(list, i), err);
    }
    if (status != FDS_OK)
        json_decref(json);
    else
        *out = json;
    return status;
}
