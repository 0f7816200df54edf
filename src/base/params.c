/* SPDX-License-Identifier: Apache-2.0
 * Parameters by name: what params.def says, checked and explained. */
#include "base/base.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { TYPE_FLAG, TYPE_TEXT, TYPE_CHOICE, TYPE_COUNT, TYPE_REAL };
enum { MAX_WORD = 64, MAX_LIST = 512 };

typedef struct {
    int type;
    enum fds__param_place place;
    size_t at; /* of the field in fds_params */
    unsigned jobs;
    const char *name, *value, *choices, *standard, *automatic, *help, *methods, *why, *needs;
    double min, max;
    bool is_above, is_even, advanced, operand, is_common, repeats;
} row;

#define TRAIN FDS__JOB_TRAIN
#define VALUE FDS__JOB_VALUE
#define FIT FDS__JOB_FIT
#define BENCH FDS__JOB_BENCH
#define EXPLAIN FDS__JOB_EXPLAIN
#define PAY FDS__JOB_PAY
#define SHOW FDS__JOB_SHOW
#define AUDIT FDS__JOB_AUDIT
#define LEDGER FDS__JOB_LEDGER
#define SERVE FDS__JOB_SERVE
#define TRUST FDS__JOB_TRUST
#define PRIVACY FDS__JOB_PRIVACY
#define UPDATE FDS__JOB_UPDATE
#define FORGET FDS__JOB_FORGET
#define ROW(kind, field, jobs_, ...)           \
    {.type = TYPE_##kind,                      \
     .place = FDS__PLACE_##field,              \
     .at = offsetof(struct fds_params, field), \
     .jobs = (jobs_),                          \
     .name = #field,                           \
     __VA_ARGS__},
/* A row's own .name comes after the field's. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static const row rows[] = {
#define PARAM ROW
#define AGAIN ROW
#include "base/params.def"
#undef PARAM
#undef AGAIN
};
#pragma GCC diagnostic pop
enum { ROWS = sizeof rows / sizeof *rows };

static const struct {
    const char *name;
    unsigned job;
} jobs[] = {{"train", TRAIN},     {"shapley", VALUE}, {"baseline", VALUE},  {"value", VALUE},
            {"fit", FIT},         {"bench", BENCH},   {"explain", EXPLAIN}, {"pay", PAY},
            {"show", SHOW},       {"audit", AUDIT},   {"ledger", LEDGER},   {"serve", SERVE},
            {"privacy", PRIVACY}, {"trust", TRUST},   {"update", UPDATE},   {"forget", FORGET}};

static unsigned job_of(const char *name) {
    for (size_t i = 0; name && i < sizeof jobs / sizeof *jobs; i++)
        if (strcmp(jobs[i].name, name) == 0)
            return jobs[i].job;
    return 0;
}

static const row *find(unsigned job, const char *name) {
    for (size_t i = 0; name && i < ROWS; i++)
        if ((rows[i].jobs & job) && strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static const row *find_place(unsigned job, enum fds__param_place place) {
    for (size_t i = 0; i < ROWS; i++)
        if ((rows[i].jobs & job) && rows[i].place == place)
            return &rows[i];
    return NULL;
}

/* ---- suggestions ---- */

/* How many letters must be inserted, left out, changed or swapped with their neighbour to make a
 * of b (optimal string alignment). */
static size_t distance(const char *a, const char *b) {
    size_t lines[3][MAX_WORD + 1], a_size = strlen(a), b_size = strlen(b);
    if (a_size > MAX_WORD || b_size > MAX_WORD)
        return SIZE_MAX;
    size_t *older = lines[0], *old = lines[1], *now = lines[2];
    for (size_t j = 0; j <= b_size; j++)
        old[j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        now[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            now[j] = MIN(old[j - 1] + (a[i - 1] != b[j - 1]), MIN(old[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = MIN(now[j], older[j - 2] + 1);
        }
        size_t *unused = older;
        older = old;
        old = now;
        now = unused;
    }
    return old[b_size];
}

const char *fds_nearest(const char *word, const char *const *names) {
    size_t length = strlen(word), limit = length < 6 ? 1 : length / 3, best = limit + 1;
    const char *nearest = NULL;
    for (; *names; names++) {
        size_t d = distance(word, *names);
        if (length >= 3 && strncmp(word, *names, length) == 0)
            d = MIN(d, limit); /* the beginning of a name stands for it */
        if (d < best) {
            best = d;
            nearest = *names;
        }
    }
    return nearest;
}

const char *fds__hint(const char *word, const char *const *names, char out[FDS__HINT]) {
    const char *nearest = fds_nearest(word, names);
    out[0] = 0;
    if (nearest && strcmp(nearest, word) != 0) /* the right name, wrong for another reason */
        snprintf(out, FDS__HINT, "; did you mean \"%s\"?", nearest);
    return out;
}

/* ---- one value ---- */

static fds_status fail_number(const row *r, const char *text, fds_error *err) {
    const char *kind =
        r->type == TYPE_COUNT ? (r->is_even ? "an even number" : "a whole number") : "a number";
    char min[FDS__NUMBER], max[FDS__NUMBER];
    fds__write_double(r->min, min);
    fds__write_double(r->max, max);
    return fds__fail(err, FDS_ERR_USAGE, "`%s` must be %s %s %s%s %s (got %.100s)", r->name, kind,
                     r->is_above ? "above" : "from", min, r->is_above ? ", at most" : " to", max,
                     text);
}

static fds_status read_count(const row *r, const char *text, uint64_t *out, fds_error *err) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    /* strtoull itself would take " 5", "+5" and "-5" */
    if (!isdigit((unsigned char)*text) || *end || errno || (double)value < r->min ||
        (double)value > r->max || (r->is_even && value % 2))
        return fail_number(r, text, err);
    *out = value;
    return FDS_OK;
}

static fds_status read_real(const row *r, const char *text, double *out, fds_error *err) {
    char *end;
    double value = fds__read_double(text, &end);
    if (!*text || strspn(text, "0123456789.eE+-") != strlen(text) || *end || !isfinite(value) ||
        value < r->min || (r->is_above && value == r->min) || value > r->max)
        return fail_number(r, text, err);
    *out = value;
    return FDS_OK;
}

/* Word number i of "a|b|c", or false. */
static bool choice_at(const char *choices, int i, char word[MAX_WORD]) {
    for (; *choices && i > 0; i--) {
        choices += strcspn(choices, "|");
        choices += *choices == '|';
    }
    snprintf(word, MAX_WORD, "%.*s", (int)strcspn(choices, "|"), choices);
    return *word != 0;
}

int fds__choice_find(const char *choices, const char *word) {
    char at[MAX_WORD];
    for (int i = 0; choice_at(choices, i, at); i++)
        if (strcmp(at, word) == 0)
            return i;
    return -1;
}

static fds_status fail_choice(const row *r, const char *choices, const char *text, fds_error *err) {
    char words[16][MAX_WORD], list[MAX_LIST] = "", hint[FDS__HINT];
    const char *names[17] = {NULL};
    for (int i = 0; i < 16 && choice_at(choices, i, words[i]); i++)
        names[i] = words[i];
    for (int i = 0; names[i]; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s",
                 i == 0         ? ""
                 : names[i + 1] ? ", "
                                : " or ",
                 names[i]);
    return fds__fail(err, FDS_ERR_USAGE, "`%s` must be %s (got %.100s)%s", r->name, list, text,
                     fds__hint(text, names, hint));
}

static fds_status read_flag(const row *r, const char *text, bool *out, fds_error *err) {
    bool is_on = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    if (!is_on && strcmp(text, "false") != 0 && strcmp(text, "0") != 0)
        return fds__fail(err, FDS_ERR_USAGE, "`%s` must be true or false (got %.100s)", r->name,
                         text);
    *out = is_on;
    return FDS_OK;
}

/* Texts of the form "a|b|c" in the help are choices too. */
static fds_status check_text(const row *r, const char *text, fds_error *err) {
    if (!*text)
        return fds__fail(err, FDS_ERR_USAGE, "`%s` is empty; it must be %s", r->name, r->value);
    if (strchr(r->value, '|') && fds__choice_find(r->value, text) < 0)
        return fail_choice(r, r->value, text, err);
    return FDS_OK;
}

/* text must outlive params. */
static fds_status assign(fds_params *params, const row *r, const char *text, fds_error *err) {
    void *field = (char *)params + r->at;
    int choice;
    switch (r->type) {
    case TYPE_FLAG:
        return read_flag(r, text, field, err);
    case TYPE_TEXT:
        TRY(check_text(r, text, err));
        *(const char **)field = text;
        return FDS_OK;
    case TYPE_CHOICE:
        choice = fds__choice_find(r->choices, text);
        if (choice < 0)
            return fail_choice(r, r->choices, text, err);
        *(int *)field = choice;
        return FDS_OK;
    case TYPE_COUNT:
        return read_count(r, text, field, err);
    default:
        return read_real(r, text, field, err);
    }
}

/* ---- all of them ---- */

fds_params fds__params_default(unsigned job) {
    fds_params params = {.job = job};
    for (size_t i = 0; i < ROWS; i++) {
        const row *r = &rows[i];
        if (r->type == TYPE_CHOICE && !(r->jobs & job && r->standard))
            if (!find_place(job, r->place) || r->jobs & job)
                *(int *)((char *)&params + r->at) = -1;
        if (r->jobs & job && r->standard)
            assign(&params, r, r->standard, NULL);
    }
    return params;
}

/* "baseline" is the job of "shapley" with another method. */
static const char *method_of(const char *job, const char *method) {
    return strcmp(job, "baseline") == 0 ? "tmc" : method;
}

fds_params *fds_params_create(const char *job) {
    if (!job_of(job))
        return NULL;
    fds_params *params = fds__alloc(sizeof *params);
    if (!params)
        return NULL;
    *params = fds__params_default(job_of(job));
    params->method = method_of(job, params->method);
    return params;
}

/* Where a text that the caller gave is kept, or NULL. */
static char *own_text(const fds_params *params, const row *r) {
    bool is_own = r->type == TYPE_TEXT && params->given[r->place];
    return is_own ? *(char *const *)(const void *)((const char *)params + r->at) : NULL;
}

void fds_params_free(fds_params *params) {
    for (size_t i = 0; params && i < ROWS; i++)
        if (rows[i].jobs & params->job)
            fds__free(own_text(params, &rows[i]));
    fds__free(params);
}

static fds_status fail_unknown(const fds_params *params, const char *name, fds_error *err) {
    const char *names[ROWS + 1];
    size_t count = 0;
    char hint[FDS__HINT];
    if (!params)
        return fds__fail(err, FDS_ERR_USAGE, "no parameters: fds_params_create returned NULL");
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].jobs & params->job)
            names[count++] = rows[i].name;
    names[count] = NULL;
    name = name ? name : "";
    return fds__fail(err, FDS_ERR_USAGE, "there is no parameter \"%.100s\"%s", name,
                     fds__hint(name, names, hint));
}

/* Two lines; NULL: out of memory. */
static char *join_lines(const char *old, const char *text) {
    size_t size = strlen(old) + strlen(text) + 2;
    char *both = fds__alloc(size);
    if (both)
        snprintf(both, size, "%s\n%s", old, text);
    return both;
}

fds_status fds_params_set(fds_params *params, const char *name, const char *text, fds_error *err) {
    const row *r = params ? find(params->job, name) : NULL;
    if (!r)
        return fail_unknown(params, name, err);
    text = text ? text : "";
    char *copy = NULL, *old = own_text(params, r);
    if (r->repeats)
        TRY(check_text(r, text, err));
    if (r->type == TYPE_TEXT &&
        !(copy = r->repeats && old ? join_lines(old, text) : fds__strdup(text)))
        return fds__fail_nomem(err, strlen(text) + 1);
    fds_status status = assign(params, r, copy ? copy : text, err);
    fds__free(status == FDS_OK ? old : copy);
    if (status == FDS_OK)
        params->given[r->place] = true;
    return status;
}

const char *fds__choice_name(const fds_params *params, enum fds__param_place place) {
    static _Thread_local char word[MAX_WORD];
    const row *r = find_place(params->job, place);
    int at = *(const int *)(const void *)((const char *)params + r->at);
    return at >= 0 && choice_at(r->choices, at, word) ? word : "";
}

static void write_value(const fds_params *params, const row *r, char *out, size_t size) {
    const void *field = (const char *)params + r->at;
    char number[FDS__NUMBER];
    switch (r->type) {
    case TYPE_FLAG:
        snprintf(out, size, "%s", *(const bool *)field ? "true" : "false");
        break;
    case TYPE_TEXT:
        snprintf(out, size, "%s", *(const char *const *)field ? *(const char *const *)field : "");
        break;
    case TYPE_CHOICE:
        snprintf(out, size, "%s", fds__choice_name(params, r->place));
        break;
    case TYPE_COUNT:
        snprintf(out, size, "%llu", (unsigned long long)*(const uint64_t *)field);
        break;
    default:
        fds__write_double(*(const double *)field, number);
        snprintf(out, size, "%s", number);
    }
    if (!params->given[r->place] && !r->standard && r->type != TYPE_FLAG)
        snprintf(out, size, "auto");
}

fds_status fds_params_get(const fds_params *params, const char *name, char *out, size_t size,
                          fds_error *err) {
    const row *r = params ? find(params->job, name) : NULL;
    if (!r)
        return fail_unknown(params, name, err);
    write_value(params, r, out, size);
    return FDS_OK;
}

json_t *fds__params_json(const fds_params *params) {
    json_t *object = json_object();
    for (size_t i = 0; object && i < ROWS; i++) {
        const row *r = &rows[i];
        const void *field = (const char *)params + r->at;
        json_t *value = NULL;
        if (!(r->jobs & params->job) || (!params->given[r->place] && !r->standard))
            continue;
        switch (r->type) {
        case TYPE_FLAG:
            value = json_boolean(*(const bool *)field);
            break;
        case TYPE_TEXT:
            value = fds__json_string(*(const char *const *)field);
            break;
        case TYPE_CHOICE:
            value = json_string(fds__choice_name(params, r->place));
            break;
        case TYPE_COUNT:
            value = json_integer((json_int_t) * (const uint64_t *)field);
            break;
        default:
            value = fds__json_real(*(const double *)field);
        }
        if (!fds__json_put(object, r->name, value)) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

json_t *fds__params_given(const fds_params *params) {
    json_t *object = json_object();
    bool is_whole = object;
    for (size_t i = 0; is_whole && i < ROWS; i++) {
        const row *r = &rows[i];
        if (!(r->jobs & params->job) || !params->given[r->place])
            continue;
        char number[MAX_WORD];
        const char *text = r->type == TYPE_TEXT ? own_text(params, r) : number;
        if (r->type != TYPE_TEXT)
            write_value(params, r, number, sizeof number);
        is_whole = fds__json_put(object, r->name, fds__json_string(text));
    }
    return fds__json_keep_if(object, is_whole);
}

bool fds_params_describe(const char *job, size_t i, fds_param_info *info) {
    static const char *const types[] = {"flag", "text", "choice", "count", "real"};
    unsigned bit = job_of(job);
    const row *r = NULL;
    for (size_t at = 0; at < ROWS && !r; at++)
        if (rows[at].jobs & bit && i-- == 0)
            r = &rows[at];
    if (!r)
        return false;
    *info = (fds_param_info){.name = r->name,
                             .type = types[r->type],
                             .value = r->type == TYPE_CHOICE ? r->choices : r->value,
                             .standard = r->place == FDS__PLACE_method ? method_of(job, r->standard)
                                                                       : r->standard,
                             .automatic = r->automatic,
                             .help = r->help,
                             .methods = r->methods,
                             .min = r->min,
                             .max = r->max,
                             .is_above = r->is_above,
                             .level = r->operand     ? FDS_LEVEL_OPERAND
                                      : r->is_common ? FDS_LEVEL_EVERY
                                      : r->advanced  ? FDS_LEVEL_ADVANCED
                                                     : FDS_LEVEL_COMMON};
    return true;
}

/* ---- what goes together ---- */

bool fds__is_among(const char *method, const char *list) {
    size_t length = strcspn(method, ":");
    for (const char *at = list; *at; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");
        if (word == length && memcmp(at, method, length) == 0)
            return true;
        at += word;
    }
    return false;
}

/* "a b @" or "a|b|@" as "a, b or some baselines". */
static void join(const char *list, char *out, size_t size) {
    size_t used = 0;
    for (const char *at = list; *at && used < size; at += strspn(at, " |")) {
        int length = (int)strcspn(at, " |");
        const char *link = at == list ? "" : at[length] ? ", " : " or ";
        bool is_baselines = *at == '@';
        used += (size_t)snprintf(out + used, size - used, "%s%.*s", link,
                                 is_baselines ? (int)sizeof "some baselines" : length,
                                 is_baselines ? "some baselines" : at);
        at += length;
    }
}

/* Whether "converge", "form=penalty" or "explainer=auto|probe" holds; FDS_ERR_USAGE names what
 * would. */
static fds_status check_needs(const fds_params *params, const row *r, fds_error *err) {
    char name[MAX_WORD], value[MAX_LIST], list[MAX_LIST];
    size_t length = strcspn(r->needs, "=");
    snprintf(name, sizeof name, "%.*s", (int)length, r->needs);
    write_value(params, find(params->job, name), value, sizeof value);
    if (!r->needs[length])
        return strcmp(value, "true") == 0
                   ? FDS_OK
                   : fds__fail(err, FDS_ERR_USAGE, "`%s` needs `%s`", r->name, name);
    if (fds__choice_find(r->needs + length + 1, value) >= 0)
        return FDS_OK;
    join(r->needs + length + 1, list, sizeof list);
    return fds__fail(err, FDS_ERR_USAGE, "`%s` needs `%s` %s (it is %s)", r->name, name, list,
                     value);
}

bool fds__params_need(const fds_params *params, const char *needs) {
    for (size_t i = 0; i < ROWS; i++)
        if ((rows[i].jobs & params->job) && params->given[rows[i].place] && rows[i].needs &&
            strcmp(rows[i].needs, needs) == 0)
            return true;
    return false;
}

fds_status fds__params_check(const fds_params *params, const char *method, const char *takes,
                             fds_error *err) {
    char list[MAX_LIST];
    for (size_t i = 0; i < ROWS; i++) {
        const row *r = &rows[i];
        if (!(r->jobs & params->job) || !params->given[r->place])
            continue;
        bool is_taken = !r->methods || fds__is_among(method, r->methods) ||
                        (takes && strchr(r->methods, '@') && fds__is_among(r->name, takes));
        if (!is_taken) {
            join(r->methods, list, sizeof list);
            return fds__fail(err, FDS_ERR_USAGE,
                             "`%s` does not apply to method %s; it applies to %s%s%s", r->name,
                             method, list, r->why ? ": " : "", r->why ? r->why : "");
        }
        if (r->needs)
            TRY(check_needs(params, r, err));
    }
    return FDS_OK;
}

fds_status fds__params_only(const fds_params *params, const char *names, const char *with,
                            fds_error *err) {
    for (size_t i = 0; i < ROWS; i++)
        if ((rows[i].jobs & params->job) && params->given[rows[i].place] &&
            !fds__is_among(rows[i].name, names))
            return fds__fail(err, FDS_ERR_USAGE, "`%s` does not apply with `%s`", rows[i].name,
                             with);
    return FDS_OK;
}
