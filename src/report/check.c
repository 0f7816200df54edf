/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads case.json and report.json (docs/bench.md) and checks them before anything is computed from
 * them. A shape says what each member must be; the error for a file of another shape names the place,
 * "rows[2].losses[0].mean". Members that are never read are not checked.
 */
#include "report/report.h"

#include <math.h>
#include <string.h>

#define MAX_BYTES ((size_t)256 << 20)
#define MAX_NUMBER 1e15
#define MAX_COUNT 2147483647
enum { MAX_ITEMS = 4096, MAX_SAMPLES = 1000000, PLACE = 160 };

/* ---- shapes ---- */

/* A shape is a letter of the table below, or {key:shape key:shape}, or [shape], a list of such; in
 * [=key,key {...}] no two entries have the same members key. Before a shape, "?" allows null and
 * that there is no such member, "!" null alone. */
static const struct {
    char letter;
    const char *name;
    const char *choices; /* of texts: the allowed ones, each between bars; or NULL */
} types[] = {{'t', "a text", NULL},
             {'f', "true or false", NULL},
             {'w', "a whole number", NULL},
             {'c', "a whole number from 0 to 2147483647", NULL},
             {'n', "a number of at most 1e15", NULL},
             {'{', "an object", NULL},
             {'s', "a list of at most 1000000 numbers or nulls", NULL},
             {'[', "a list of at most 4096", NULL},
             {'S', "\"correct\" or \"all\"", "|correct|all|"},
             {'R', "\"top\" or \"bottom\" or \"keep_top\"", "|top|bottom|keep_top|"},
             {'K', "\"ours\" or \"beyond\" or \"paper\" or \"other\" or \"control\"",
              "|ours|beyond|paper|other|control|"}};

#define STAT "set:S count:c mean:?n sd:?n"
#define LOSS "{utility:t removal:R set:S count:c mean:[?n] sd:[?n] samples:?[s]}"
#define SCORE "{utility:t coalitions:c count:c mean:?n sd:?n samples:?s}"
static const char case_shape[] =
    "{fds:t machine:{processor:t processors:c instructions:t threads:c}"
    " data:{name:t source:t classes:c players:c tests:c inputs:c}"
    " settings:{seed:w shares:[n]}"
    " utilities:[=utility {utility:t losses:[=set {" STAT "}]"
    "  losses_other_seed:?[=set {" STAT "}]"
    "  lds:?[=utility " SCORE "] lds_other_seeds:?[=utility " SCORE
    "] truth:!{coalitions:c correlation:?n}}]"
    " rows:[=method {method:t title:t kind:K is_per_sample:f utility:t"
    "  losses:[=utility,removal,set " LOSS "] losses_other_seed:?[=utility,removal,set " LOSS "]"
    "  lds:?[=utility " SCORE "] lds_other_seeds:?[=utility " SCORE "]"
    "  agreement:?{correlation:?n class_correlation:?n relative_error:?n efficiency_gap:?n}"
    "  curves:?[=measure,removal {measure:t removal:t samples:[s]}]"
    "  auc:?{count:c mean:?n sd:?n samples:?s} auc_terms:?{is_equal:f sub_models:c}"
    "  sub_models:?n permutations:!{sampled:c has_converged:?f}"
    "  timing:?{prepare_s:?n answer_ms:?n was_resumed:f}}]"
    " pictures:[{method:t file:t}]}";

#undef STAT
#undef LOSS
#undef SCORE

/* what is read to compare reports */
#define STAT "?{mean:n sd:?n count:c}"
#define LOSS "{utility:t removal:R set:S mean:[?n] error:[?n]}"
#define SCORE "{utility:t mean:?n error:?n}"
static const char report_shape[] =
    "{fds:t data:[=name {name:t players:c tests:c inputs:c seeds:[w] settings:{shares:[n]}"
    "  utilities:[=utility {utility:t losses:[=set {set:S mean:?n error:?n}]}]"
    "  rows:[=method {method:t losses:[=utility,removal,set " LOSS "]"
    "   losses_other_seed:?[=utility,removal,set " LOSS "]"
    "   lds:?[=utility " SCORE "] lds_other_seeds:?[=utility " SCORE "]"
    "   agreement:?{correlation:" STAT " class_correlation:" STAT " relative_error:" STAT
    "    efficiency_gap:" STAT "}"
    "   auc:" STAT " sub_models:" STAT "}]}]}";

/* ---- checks ---- */

static bool are_samples(const json_t *json) {
    if (!json_is_array(json) || json_array_size(json) > MAX_SAMPLES)
        return false;
    for (size_t i = 0; i < json_array_size(json); i++) {
        const json_t *item = json_array_get(json, i);
        if (!json_is_null(item) &&
            !(json_is_number(item) && fabs(json_number_value(item)) <= MAX_NUMBER))
            return false;
    }
    return true;
}

static bool is_of_type(const json_t *json, char letter, const char *choices) {
    char choice[PLACE];
    switch (letter) {
    case 't':
        return json_is_string(json);
    case 'f':
        return json_is_boolean(json);
    case 'w':
        return json_is_integer(json);
    case 'c':
        return json_is_integer(json) && json_integer_value(json) >= 0 &&
               json_integer_value(json) <= MAX_COUNT;
    case 'n':
        return json_is_number(json) && fabs(json_number_value(json)) <= MAX_NUMBER;
    case 's':
        return are_samples(json);
    case '{':
        return json_is_object(json);
    case '[':
        return json_is_array(json) && json_array_size(json) <= MAX_ITEMS;
    default:
        if (!json_is_string(json) || strchr(json_string_value(json), '|'))
            return false;
        snprintf(choice, sizeof choice, "|%s|", json_string_value(json));
        return strstr(choices, choice) != NULL;
    }
}

/* Entries differ in at least one of the members keys, "key,key ". */
static fds_status check_unique(const char *path, const char *place, const json_t *list,
                               const char *keys, fds_error *err) {
    for (size_t i = 0; i < json_array_size(list); i++)
        for (size_t j = 0; j < i; j++) {
            bool is_same = true;
            for (const char *at = keys; *at != '{'; at += strcspn(at, ", ") + 1) {
                size_t length = strcspn(at, ", ");
                is_same &= json_equal(json_object_getn(json_array_get(list, i), at, length),
                                      json_object_getn(json_array_get(list, j), at, length));
            }
            if (is_same)
                return fds__fail(err, FDS_ERR_FORMAT,
                                 "%s: %s[%zu] has the %.*s of %s[%zu]; each may occur once", path,
                                 place, i, (int)strcspn(keys, ", "), keys, place, j);
        }
    return FDS_OK;
}

/* Moves *shape behind the shape that json, at place in the file path, must have. is_skipped: there
 * is nothing to check. */
static fds_status check(const char *path, const char *place, const json_t *json, const char **shape,
                        bool is_skipped, fds_error *err) {
    char below[PLACE], mark = **shape == '?' || **shape == '!' ? *(*shape)++ : 0;
    size_t t = 0;
    while (types[t].letter != **shape)
        t++;
    (*shape)++;
    is_skipped |= mark && (json ? json_is_null(json) : mark == '?');
    if (!is_skipped && !is_of_type(json, types[t].letter, types[t].choices))
        return fds__fail(err, FDS_ERR_FORMAT, "%s: %s %s %s%s", path, *place ? place : "the file",
                         json ? "must be" : "is missing; it must be", types[t].name,
                         mark ? " or null" : "");
    if (types[t].letter == '{') {
        for (; **shape != '}'; *shape += strspn(*shape, " ")) {
            char key[32];
            size_t length = strcspn(*shape, ":");
            snprintf(key, sizeof key, "%.*s", (int)length, *shape);
            snprintf(below, sizeof below, "%s%s%s", place, *place ? "." : "", key);
            *shape += length + 1;
            TRY(check(path, below, json_object_get(json, key), shape, is_skipped, err));
        }
        (*shape)++;
    }
    if (types[t].letter == '[') {
        size_t count = is_skipped ? 0 : json_array_size(json);
        const char *keys = **shape == '=' ? *shape + 1 : NULL;
        const char *item = keys ? strchr(keys, ' ') + 1 : *shape;
        *shape = item;
        for (size_t i = 0; i < count; i++) {
            snprintf(below, sizeof below, "%s[%zu]", place, i);
            *shape = item;
            TRY(check(path, below, json_array_get(json, i), shape, false, err));
        }
        if (count == 0)
            TRY(check(path, place, NULL, shape, true, err));
        if (keys && !is_skipped)
            TRY(check_unique(path, place, json, keys, err));
        (*shape)++;
    }
    return FDS_OK;
}

/* What a case and a data set of a report have in common: each list of a row's losses has a
 * number for each share, and shares ascend. prefix: "data[0]." or "". */
static fds_status check_data(const char *path, const char *prefix, const json_t *json,
                             fds_error *err) {
    static const char *const members[] = {"mean", "sd", "error", "samples"};
    const json_t *shares = report_at(json, "settings/shares"), *row, *loss;
    double last = 0;
    for (size_t i = 0; i < json_array_size(shares); i++) {
        double share = report_number_at(shares, i);
        if (!(share > last) || share > 1)
            return fds__fail(
                err, FDS_ERR_FORMAT,
                "%s: %ssettings.shares[%zu]: shares must ascend, above 0 and at most 1", path,
                prefix, i);
        last = share;
    }
    for (size_t r = 0; (row = json_array_get(report_at(json, "rows"), r)); r++)
        for (size_t o = 0; o < 2; o++)
            for (size_t i = 0; (loss = json_array_get(report_at(row, report_lists[o]), i)); i++)
                for (size_t k = 0; k < sizeof members / sizeof *members; k++) {
                    const json_t *numbers = json_object_get(loss, members[k]);
                    if (numbers && json_array_size(numbers) != json_array_size(shares))
                        return fds__fail(err, FDS_ERR_FORMAT,
                                         "%s: %srows[%zu].%s[%zu].%s has %zu numbers; there are "
                                         "%zu shares",
                                         path, prefix, r, report_lists[o], i, members[k],
                                         json_array_size(numbers), json_array_size(shares));
                }
    return FDS_OK;
}

/* Pictures lie in the case's own folder. */
static fds_status check_case(const char *path, const json_t *json, fds_error *err) {
    const json_t *list = report_at(json, "pictures");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *file = report_text_of(json_array_get(list, i), "file");
        if (!*file || *file == '.' || strchr(file, '/'))
            return fds__fail(err, FDS_ERR_FORMAT,
                             "%s: pictures[%zu].file must be the name of a file beside it", path,
                             i);
    }
    return check_data(path, "", json, err);
}

static fds_status check_report(const char *path, const json_t *json, fds_error *err) {
    const json_t *list = report_at(json, "data");
    for (size_t i = 0; i < json_array_size(list); i++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "data[%zu].", i);
        TRY(check_data(path, prefix, json_array_get(list, i), err));
    }
    return FDS_OK;
}

/* ---- reading ---- */

static fds_status read_json(const char *path, const char *kind, const char *shape,
                            fds_status (*check_rest)(const char *, const json_t *, fds_error *),
                            json_t **out, fds_error *err) {
    json_t *json;
    fds_status status = FDS_OK;
    TRY(fds__json_read(path, MAX_BYTES, &json, err));
    if (strcmp(report_text_of(json, "kind"), kind) != 0)
        status = fds__fail(err, FDS_ERR_FORMAT, "%s: \"kind\" must be \"%s\"", path, kind);
    if (status == FDS_OK)
        status = check(path, "", json, &shape, false, err);
    if (status == FDS_OK)
        status = check_rest(path, json, err);
    if (status == FDS_OK)
        *out = json;
    else
        json_decref(json);
    return status;
}

fds_status report_case_read(const char *path, json_t **out, fds_error *err) {
    return read_json(path, "fds bench case", case_shape, check_case, out, err);
}

fds_status report_read(const char *path, json_t **out, fds_error *err) {
    return read_json(path, "fds bench report", report_shape, check_report, out, err);
}
