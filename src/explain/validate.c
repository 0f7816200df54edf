/* SPDX-License-Identifier: Apache-2.0
 *
 * validation.json: what an explainer is worth, measured on validation inputs at the end of a fit. fds
 * serve refuses a run whose figures are poor, and audits compare what they find with them.
 *
 *   format         "fds-validation 1"
 *   inputs         how many validation inputs
 *   against        "bank": least squares on all coalitions. "errors": all sub-models answer, so that
 *                  there is nothing better to compare with; true values are drawn around the stated
 *                  ones, with the stated standard errors
 *   agreement      mean correlation over the players, for the predicted label
 *   misallocation  share of the money, 0 to 1, that goes to others than by what it is compared with:
 *                  1/2 sum |c_i - c_i'| / c over the payees, which the policy clip pays
 *   covered        how often the truth, which is normal around the bank's value with the bank's
 *                  standard error, is within 1.96 stated standard errors of the stated value
 *   coverage       the same by tenths of the stated values by size, the smallest first: size (the
 *                  largest of the tenth), coverage, count
 *   worst_groups   up to three classes with the largest misallocation, and up to three payees for whom
 *                  paid over due is furthest from 1
 *   drift          scores: how unlike the data of the players each validation input is, ascending
 *   reasons        why something is null, by its name
 *
 * A payee is a provider where every player has one, else a player: whom fds serve pays. */
#include "explain/run.h"

#include <math.h>
#include <stdlib.h>

enum { DRAWS = 16, TENTHS = 10, WORST = 3, MOST_REFERENCE = 512, MOST_SCORES = 4096 };
#define WIDTH 1.96 /* of an interval, in standard errors */
#define FORMAT "fds-validation 1"
#define MAX_BYTES ((size_t)16 << 20)

/* ---- who is paid ---- */

typedef struct {
    const fds__validated *what;
    size_t payees;
    uint32_t *payee_of; /* (players) */
    const char **names; /* (payees) */
    double *values;     /* (inputs, payees) stated, for the predicted label */
    double *errors;     /* the same: their stated standard errors */
    double *targets;    /* the same: what they are compared with */
    double *target_errors;
    double *moved;      /* (inputs) misallocated */
    double *paid, *due; /* (payees) of one unit of money for each input */
    double agreement, misallocation, misallocation_error, covered;
    json_t *coverage;
} sheet;

static const char *provider_of(const fds_problem *problem, size_t player, uint32_t *id) {
    const uint32_t *index;
    fds_players_samples(problem->players, player, &index);
    if (!problem->train->provider_ids)
        return NULL;
    *id = problem->train->provider_ids[index[0]];
    return fds_dataset_provider_name(problem->train, *id);
}

static fds_status find_payees(sheet *s, fds_error *err) {
    const fds_problem *problem = s->what->problem;
    size_t n = s->what->comparison->players;
    bool has_providers = true;
    uint32_t id = 0;
    OWNED uint32_t *ids = NULL; /* (payees) */
    TRY(RESERVE(ids, n, 1, err));
    TRY(RESERVE(s->payee_of, n, 1, err));
    TRY(RESERVE(s->names, n, 1, err));
    for (size_t i = 0; i < n; i++)
        has_providers &= provider_of(problem, i, &id) != NULL;
    for (size_t i = 0; i < n; i++) {
        const char *name =
            has_providers ? provider_of(problem, i, &id) : fds_players_name(problem->players, i);
        size_t at = has_providers ? 0 : s->payees;
        while (at < s->payees && ids[at] != id)
            at++;
        if (at == s->payees) {
            ids[at] = id;
            s->names[s->payees++] = name;
        }
        s->payee_of[i] = (uint32_t)at;
    }
    return FDS_OK;
}

/* Sums over the players of each payee; of standard errors the root of the sum of squares. */
static void add_up(const sheet *s, const double *players, bool are_errors, double *payees) {
    for (size_t p = 0; p < s->payees; p++)
        payees[p] = 0;
    for (size_t i = 0; i < s->what->comparison->players; i++)
        payees[s->payee_of[i]] += are_errors ? players[i] * players[i] : players[i];
    for (size_t p = 0; are_errors && p < s->payees; p++)
        payees[p] = sqrt(payees[p]);
}

/* ---- what is compared ---- */

static const double *values_of(const fds__comparison *c, size_t x) {
    return c->values + (x * c->classes + c->predicted[x]) * c->players;
}

static fds_status fold(sheet *s, fds_error *err) {
    const fds__comparison *c = s->what->comparison;
    TRY(RESERVE(s->values, c->inputs, s->payees, err));
    TRY(RESERVE(s->errors, c->inputs, s->payees, err));
    TRY(RESERVE(s->targets, c->inputs, s->payees, err));
    TRY(RESERVE(s->target_errors, c->inputs, s->payees, err));
    TRY(RESERVE(s->moved, c->inputs, 1, err));
    TRY(RESERVE(s->paid, s->payees, 1, err));
    TRY(RESERVE(s->due, s->payees, 1, err));
    for (size_t x = 0; x < c->inputs; x++) {
        size_t at = (size_t)(values_of(c, x) - c->values), to = x * s->payees;
        add_up(s, c->values + at, false, s->values + to);
        add_up(s, c->stated + x * c->players, true, s->errors + to);
        add_up(s, c->targets + at, false, s->targets + to);
        add_up(s, c->errors + at, true, s->target_errors + to);
    }
    return FDS_OK;
}

/* Adds an input to what is misallocated, times the weight. */
static void note_money(sheet *s, size_t x, double weight) {
    const double *values = s->values + x * s->payees, *targets = s->targets + x * s->payees;
    double paid = fds__positive_sum(values, s->payees), due = fds__positive_sum(targets, s->payees);
    for (size_t p = 0; p < s->payees; p++) {
        double is = fds__clipped_share(values[p], paid, s->payees),
               should = fds__clipped_share(targets[p], due, s->payees);
        s->moved[x] += weight * fabs(is - should) / 2;
        s->paid[p] += weight * is;
        s->due[p] += weight * should;
    }
}

/* All sub-models answer: true values drawn around the stated ones. */
static fds_status draw_truths(sheet *s, const fds_events *events, fds_error *err) {
    const fds__comparison *c = s->what->comparison;
    double sum = 0, start_s = fds__now_s();
    size_t counted = 0;
    OWNED double *drawn = NULL;
    TRY(RESERVE(drawn, c->players, 1, err));
    for (size_t x = 0; x < c->inputs; x++) {
        const double *values = values_of(c, x), *stated = c->stated + x * c->players;
        for (uint32_t draw = 0; draw < DRAWS; draw++) {
            fds_rng rng = fds_rng_make(s->what->seed, FDS__PURPOSE_TRUTH, x, draw);
            for (size_t i = 0; i < c->players; i++)
                drawn[i] = values[i] + stated[i] * fds_rng_normal(&rng);
            double r = fds__correlation(values, drawn, NULL, c->players);
            sum += isnan(r) ? 0 : r;
            counted += !isnan(r);
            add_up(s, drawn, false, s->targets + x * s->payees);
            note_money(s, x, 1.0 / DRAWS);
        }
        if (x % 64 == 0)
            TRY(fds__report(events, "check", "inputs", x, c->inputs, start_s, err));
    }
    s->agreement = counted ? sum / (double)counted : NAN;
    return FDS_OK;
}

/* ---- coverage ---- */

typedef struct {
    double size;
    size_t place;  /* ties are ordered by it */
    double inside; /* a probability */
} covered_value;

double fds__chance_inside(double value, double half, double target, double error) {
    double away = value - target;
    if (!(error > 0))
        return fabs(away) <= half;
    return (erfc((away - half) / error / sqrt(2)) - erfc((away + half) / error / sqrt(2))) / 2;
}

static int compare_sizes(const void *a, const void *b) {
    const covered_value *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static bool add_tenth(json_t *list, const covered_value *items, size_t count) {
    double inside = 0;
    for (size_t i = 0; i < count; i++)
        inside += items[i].inside;
    return !count ||
           fds__json_append(list,
                            json_pack("{s:f, s:f, s:I}", "size", items[count - 1].size, "coverage",
                                      inside / (double)count, "count", (json_int_t)count));
}

static fds_status cover(sheet *s, fds_error *err) {
    size_t count = s->what->comparison->inputs * s->payees;
    double inside = 0;
    OWNED covered_value *items = NULL;
    TRY(RESERVE(items, count, 1, err));
    for (size_t i = 0; i < count; i++) {
        items[i] = (covered_value){fabs(s->values[i]), i,
                                   fds__chance_inside(s->values[i], WIDTH * s->errors[i],
                                                      s->targets[i], s->target_errors[i])};
        inside += items[i].inside;
    }
    qsort(items, count, sizeof *items, compare_sizes);
    s->covered = count ? inside / (double)count : NAN;
    s->coverage = json_array();
    bool is_whole = s->coverage;
    for (size_t t = 0; t < TENTHS && is_whole; t++) {
        size_t from = count * t / TENTHS, to = count * (t + 1) / TENTHS;
        is_whole = add_tenth(s->coverage, items + from, to - from);
    }
    return is_whole ? FDS_OK : fds__fail_json(err);
}

/* ---- the worst groups ---- */

/* The place of the largest number, which becomes -1: the next call finds the next one. */
static size_t take_worst(double *scores, size_t count) {
    size_t worst = 0;
    for (size_t i = 1; i < count; i++)
        worst = scores[i] > scores[worst] ? i : worst;
    return worst;
}

static fds_status add_classes(const sheet *s, json_t *list, fds_error *err) {
    const fds__comparison *c = s->what->comparison;
    const fds_dataset *train = s->what->problem->train;
    OWNED double *moved = NULL;
    OWNED size_t *counts = NULL;
    TRY(RESERVE(moved, c->classes, 1, err));
    TRY(RESERVE(counts, c->classes, 1, err));
    for (size_t x = 0; x < c->inputs; x++) {
        moved[c->predicted[x]] += s->moved[x];
        counts[c->predicted[x]]++;
    }
    for (uint32_t y = 0; y < c->classes; y++)
        moved[y] = counts[y] ? moved[y] / (double)counts[y] : -1;
    for (int k = 0; k < WORST && !train->targets; k++) {
        size_t y = take_worst(moved, c->classes);
        if (moved[y] < 0)
            break;
        if (!fds__json_append(
                list, json_pack("{s:s, s:o, s:I, s:f}", "kind", "class", "name",
                                fds__json_string(fds_dataset_class_name(train, (uint32_t)y)),
                                "inputs", (json_int_t)counts[y], "misallocation", moved[y])))
            return fds__fail_json(err);
        moved[y] = -1;
    }
    return FDS_OK;
}

static fds_status add_payees(const sheet *s, json_t *list, fds_error *err) {
    const double inputs = (double)s->what->comparison->inputs;
    OWNED double *off = NULL;
    TRY(RESERVE(off, s->payees, 1, err));
    for (size_t p = 0; p < s->payees; p++)
        off[p] = s->due[p] > 0 ? fabs(s->paid[p] / s->due[p] - 1) : -1;
    for (int k = 0; k < WORST; k++) {
        size_t p = take_worst(off, s->payees);
        if (off[p] < 0)
            break;
        if (!fds__json_append(list, json_pack("{s:s, s:o, s:f, s:f}", "kind", "payee", "name",
                                              fds__json_string(s->names[p]), "paid",
                                              s->paid[p] / inputs, "due", s->due[p] / inputs)))
            return fds__fail_json(err);
        off[p] = -1;
    }
    return FDS_OK;
}

/* ---- drift ---- */

/* Every step-th player, so that there are at most MOST_REFERENCE. */
static size_t reference_step(size_t players) {
    return (players + MOST_REFERENCE - 1) / MOST_REFERENCE;
}

/* The root mean square difference from the nearest of them. */
double fds__drift_score(const float *reference, size_t players, const float *x, size_t size) {
    double least = INFINITY;
    for (size_t p = 0; p < players; p += reference_step(players))
        least = MIN(least, fds__utility_distance2(reference + p * size, x, size));
    return sqrt(least / (double)size);
}

/* The first sample of each player, normalised: (players, size). */
static fds_status make_reference(const fds__validated *what, float **out, fds_error *err) {
    const fds_inputs *samples = what->data->samples;
    size_t n = what->comparison->players, size = samples->size;
    TRY(RESERVE(*out, n, size, err));
    for (size_t p = 0; p < n; p++) {
        const uint32_t *index;
        size_t low = 0, high = samples->count; /* their numbers ascend */
        fds_players_samples(what->problem->players, p, &index);
        while (high - low > 1) {
            size_t middle = (low + high) / 2;
            *(samples->ids[middle] <= index[0] ? &low : &high) = middle;
        }
        memcpy(*out + p * size, samples->values + low * size, size * sizeof **out);
    }
    return FDS_OK;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static fds_status score_inputs(const fds__validated *what, const float *reference,
                               const fds_events *events, json_t *list, fds_error *err) {
    const fds_inputs *x = what->data->inputs;
    size_t n = what->comparison->inputs, count = MIN(n, (size_t)MOST_SCORES), first = x->count - n;
    double start_s = fds__now_s();
    bool is_whole = list;
    OWNED double *scores = NULL;
    TRY(RESERVE(scores, count, 1, err));
    for (size_t i = 0; i < count; i++) {
        scores[i] = fds__drift_score(reference, what->comparison->players,
                                     x->values + (first + i) * x->size, x->size);
        if (i % 64 == 0)
            TRY(fds__report(events, "check", "inputs", i, count, start_s, err));
    }
    qsort(scores, count, sizeof *scores, compare_doubles);
    for (size_t i = 0; i < count && is_whole; i++)
        is_whole = fds__json_append(list, json_real(scores[i]));
    return is_whole ? FDS_OK : fds__fail_json(err);
}

/* ---- the file ---- */

static fds_status measure(sheet *s, const fds_events *events, fds_error *err) {
    const fds__comparison *c = s->what->comparison;
    double squares = 0;
    TRY(find_payees(s, err));
    TRY(fold(s, err));
    s->agreement = s->what->agreement;
    s->covered = NAN;
    if (s->what->is_own)
        TRY(draw_truths(s, events, err));
    for (size_t x = 0; x < c->inputs && !s->what->is_own; x++)
        note_money(s, x, 1);
    for (size_t x = 0; x < c->inputs; x++)
        s->misallocation += s->moved[x] / (double)c->inputs;
    for (size_t x = 0; x < c->inputs; x++)
        squares += pow(s->moved[x] - s->misallocation, 2);
    s->misallocation_error =
        c->inputs > 1 ? sqrt(squares / ((double)c->inputs * (double)(c->inputs - 1))) : NAN;
    return s->what->is_own ? FDS_OK : cover(s, err);
}

static json_t *give_reasons(const sheet *s) {
    json_t *reasons = json_object();
    bool is_whole = reasons;
    if (s->what->is_own)
        is_whole =
            fds__json_put(reasons, "coverage",
                          json_string("all sub-models answer: there are no other values that "
                                      "could be inside the stated intervals"));
    if (is_whole && isnan(s->agreement))
        is_whole = fds__json_put(reasons, "agreement",
                                 json_string("fewer than three players, or all values are equal"));
    return fds__json_keep_if(reasons, is_whole);
}

static fds_status compose(sheet *s, const fds_events *events, json_t **out, fds_error *err) {
    const fds__validated *what = s->what;
    OWNED float *reference = NULL;
    json_t *groups = json_array(), *scores = json_array();
    *out = json_pack("{s:s, s:I, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:{s:o}, s:o}", "format",
                     FORMAT, "inputs", (json_int_t)what->comparison->inputs, "against",
                     what->is_own ? "errors" : "bank", "agreement", fds__json_real(s->agreement),
                     "misallocation", fds__json_real(s->misallocation), "misallocation_error",
                     fds__json_real(s->misallocation_error), "covered", fds__json_real(s->covered),
                     "coverage", s->coverage ? json_incref(s->coverage) : json_null(),
                     "worst_groups", groups, "drift", "scores", scores, "reasons", give_reasons(s));
    TRY(*out ? FDS_OK : fds__fail_json(err));
    TRY(add_classes(s, groups, err));
    if (!what->is_own)
        TRY(add_payees(s, groups, err));
    TRY(make_reference(what, &reference, err));
    return score_inputs(what, reference, events, scores, err);
}

fds_status fds__validation_write(const char *dir, const fds__validated *what,
                                 const fds_events *events, fds_error *err) {
    sheet s = {.what = what};
    json_t *json = NULL;
    fds_status status = measure(&s, events, err);
    if (status == FDS_OK)
        status = compose(&s, events, &json, err);
    if (status == FDS_OK)
        status = fds__json_write(dir, FDS__RUN_VALIDATION, json, err);
    json_decref(json);
    json_decref(s.coverage);
    fds__free(s.payee_of);
    fds__free(s.names);
    fds__free(s.values);
    fds__free(s.errors);
    fds__free(s.targets);
    fds__free(s.target_errors);
    fds__free(s.moved);
    fds__free(s.paid);
    fds__free(s.due);
    return status;
}

/* NaN for null; false: it is neither. */
static bool read_number(const json_t *json, const char *name, double *out) {
    const json_t *number = json_object_get(json, name);
    *out = json_is_number(number) ? json_number_value(number) : NAN;
    return json_is_number(number) || json_is_null(number);
}

/* *json is NULL if there is no such file. */
static fds_status read_file(const char *dir, char path[FDS__PATH_MAX], json_t **json,
                            fds_error *err) {
    *json = NULL;
    TRY(fds__path_join(path, FDS__PATH_MAX, dir, FDS__RUN_VALIDATION, err));
    return fds__path_exists(path) ? fds__json_read(path, MAX_BYTES, json, err) : FDS_OK;
}

fds_status fds__validation_read(const char *dir, fds__validation *out, fds_error *err) {
    char path[FDS__PATH_MAX];
    json_t *json;
    *out = (fds__validation){
        .agreement = NAN, .misallocation = NAN, .misallocation_error = NAN, .coverage = NAN};
    TRY(read_file(dir, path, &json, err));
    if (!json)
        return FDS_OK;
    const char *format = json_string_value(json_object_get(json, "format"));
    out->is_there = format && strcmp(format, FORMAT) == 0 &&
                    read_number(json, "agreement", &out->agreement) &&
                    read_number(json, "misallocation", &out->misallocation) &&
                    !(out->misallocation < 0 || out->misallocation > 1) &&
                    read_number(json, "covered", &out->coverage);
    read_number(json, "misallocation_error", &out->misallocation_error);
    json_decref(json);
    return out->is_there ? FDS_OK
                         : fds__fail(err, FDS_ERR_FORMAT,
                                     "%s: \"format\" must be \"" FORMAT "\", with \"agreement\", "
                                     "\"misallocation\" from 0 to 1 and \"covered\"",
                                     path);
}

static fds_status copy_scores(const char *path, const json_t *list, double **scores, size_t *count,
                              fds_error *err) {
    size_t size = json_array_size(list);
    TRY(NEW(*scores, size + 1, err));
    for (*count = 0; *count < size; (*count)++) {
        const json_t *score = json_array_get(list, *count);
        if (!json_is_number(score))
            return fds__fail(err, FDS_ERR_FORMAT, "%s: drift.scores: entry %zu is no number", path,
                             *count);
        (*scores)[*count] = json_number_value(score);
    }
    return FDS_OK;
}

fds_status fds__validation_scores(const char *dir, double **scores, size_t *count, fds_error *err) {
    char path[FDS__PATH_MAX];
    json_t *json;
    TRY(read_file(dir, path, &json, err));
    fds_status status = copy_scores(path, json_object_get(json_object_get(json, "drift"), "scores"),
                                    scores, count, err);
    json_decref(json);
    return status;
}
