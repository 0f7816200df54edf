/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies across providers.
 *
 * For each ordered pair (A, B) of providers, every sample x of A has the closeness
 *
 *     s(x) = distance to the nearest sample of B / distance to the nearest unowned sample
 *
 * and so has every unowned sample u (a test sample; of data without a test part, a sample of the other
 * providers), whose own self does not count. A copy, exact, with noise or moved, is closer to B than
 * unowned samples ever are. K samples of A have less than half the closeness of the r-th closest unowned
 * one, r being a hundredth of these, rounded up: a few true duplicates among test samples do no harm, nor
 * does a source that two providers share and test samples do not, such as a writer of digits. If the samples of A are no
 * closer to B than unowned ones, all orders are equally likely, and the probability that K or more come
 * before the r-th unowned one, let alone at half its closeness, is a tail of the hypergeometric
 * distribution. An alarm needs one of at most alpha over the number of
 * ordered pairs: whatever the data, the probability of any false alarm is then at most alpha, as long as
 * owned and unowned samples come from the same source. */
#include "audit/copies.h"

#include <math.h>
#include <stdlib.h>

static const double MARGIN = 0.5;
enum { MOST_PAIRS_SHOWN = 8, HUNDREDTH = 100, LEAST_PIXELS = 80, GAP = 6, LABEL = 12 };

/* ---- the test ---- */

static double log_choose(double n, double k) {
    return k < 0 || k > n ? -INFINITY : lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

/* At least k before the r-th unowned one: among the first k + r - 1 there are at least k owned ones. */
double copies_tail(size_t n, size_t u, size_t r, size_t k) {
    const double first = (double)(k + r - 1), all = (double)(n + u);
    double sum = 0;
    if (k == 0 || first > all)
        return 1;
    for (size_t x = k; x <= n && (double)x <= first; x++)
        sum += exp(log_choose((double)n, (double)x) + log_choose((double)u, first - (double)x) -
                   log_choose(all, first));
    return MIN(sum, 1);
}

/* ---- one pair of providers ---- */

typedef struct {
    double closeness;
    uint32_t sample, other;
    bool is_owned;
} ranked;

typedef struct {
    uint32_t a, b;
    size_t samples, references, copies, exact;
    double p, bound; /* bound: closeness of the r-th unowned sample */
    size_t shown;
    ranked nearest[MOST_PAIRS_SHOWN];
} finding;

typedef struct {
    const fds_dataset *train;
    const copies_near *near;
    double alpha;
    finding *findings; /* (providers, providers) of the ordered pairs */
    ranked *scratch;   /* (count) */
    uint32_t *part_of; /* (providers) */
    size_t alarms;
    bool could_alarm; /* a pair has enough samples for that */
    const char *run;  /* or NULL */
    copies_paid paid; /* if there are alarms */
} job;

static int by_closeness(const void *left, const void *right) {
    const ranked *a = left, *b = right;
    if (a->closeness != b->closeness)
        return a->closeness < b->closeness ? -1 : 1;
    if (a->is_owned != b->is_owned)
        return a->is_owned ? 1 : -1; /* of equal ones the unowned comes first: no false alarm */
    return a->sample < b->sample ? -1 : a->sample > b->sample;
}

/* The distance that tells how dense samples are around i. */
static double density(const job *j, size_t i, uint32_t a, uint32_t b) {
    const copies_near *n = j->near;
    double least = INFINITY;
    if (n->reference)
        return (double)n->reference[i];
    for (uint32_t p = 0; p < n->providers; p++)
        if (p != a && p != b)
            least = MIN(least, (double)n->distance[i * n->providers + p]);
    return least;
}

/* Whether sample i is of A (1), unowned (0), or neither (-1). */
static int role_of(const job *j, size_t i, uint32_t a, uint32_t b) {
    if (i >= j->near->owned)
        return 0;
    uint32_t p = j->train->provider_ids[i];
    return p == a ? 1 : j->near->reference || p == b ? -1 : 0;
}

static bool is_same(const fds_dataset *ds, size_t i, size_t k, float *x, float *y) {
    fds_dataset_sample(ds, i, x);
    fds_dataset_sample(ds, k, y);
    return memcmp(x, y, fds__shape_size(ds->shape) * sizeof *x) == 0;
}

static void compare(const job *j, finding *f, float *x, float *y) {
    const copies_near *n = j->near;
    size_t count = 0, seen = 0;
    for (size_t i = 0; i < n->count; i++) {
        int role = role_of(j, i, f->a, f->b);
        double d = (double)n->distance[i * n->providers + f->b], scale = density(j, i, f->a, f->b);
        if (role < 0 || !isfinite(d) || !isfinite(scale))
            continue;
        j->scratch[count++] = (ranked){scale > 0 ? d / scale
                                       : d > 0   ? INFINITY
                                                 : 1,
                                       (uint32_t)i, n->which[i * n->providers + f->b], role == 1};
        f->samples += role == 1;
        f->references += role == 0;
        f->exact +=
            role == 1 && d == 0 && is_same(j->train, i, n->which[i * n->providers + f->b], x, y);
    }
    qsort(j->scratch, count, sizeof *j->scratch, by_closeness);
    const size_t r = (f->references + HUNDREDTH - 1) / HUNDREDTH;
    for (size_t i = 0; i < count && seen < r; i++)
        if (!j->scratch[i].is_owned && ++seen == r)
            f->bound = j->scratch[i].closeness;
    for (size_t i = 0; i < count && j->scratch[i].closeness < MARGIN * f->bound; i++)
        if (j->scratch[i].is_owned) {
            f->copies++;
            if (f->shown < MOST_PAIRS_SHOWN)
                f->nearest[f->shown++] = j->scratch[i];
        }
    f->p = f->references ? copies_tail(f->samples, f->references, r, f->copies) : 1;
}

static double threshold(const job *j) {
    double pairs = (double)j->near->providers * (j->near->providers - 1);
    return j->alpha / MAX(pairs, 1);
}

/* ---- the report ---- */

/* Members of the cluster that provider p is the first of; 0: it is alone, or not the first. */
static size_t members_of(const job *j, uint32_t p) {
    size_t count = 0;
    for (uint32_t q = 0; q < j->near->providers; q++)
        count += j->part_of[q] == p;
    return count > 1 ? count : 0;
}

static double apart(const job *j, uint32_t p) {
    double sum = 0;
    for (uint32_t q = 0; q < j->near->providers; q++)
        sum += j->part_of[q] == p ? j->paid.apart[q] : 0;
    return sum;
}

static json_t *json_pairs(const job *j, const finding *f) {
    json_t *list = json_array();
    bool is_whole = list;
    for (size_t i = 0; i < f->shown && is_whole; i++) {
        const ranked *n = &f->nearest[i];
        is_whole = fds__json_append(
            list, json_pack("{s:I, s:I, s:o, s:o}", "sample", (json_int_t)n->sample, "other",
                            (json_int_t)n->other, "distance",
                            fds__json_real(
                                (double)j->near->distance[n->sample * j->near->providers + f->b]),
                            "closeness", fds__json_real(n->closeness)));
    }
    return fds__json_keep_if(list, is_whole);
}

static json_t *json_finding(const job *j, const finding *f) {
    return json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "provider",
                     fds__json_string(fds_dataset_provider_name(j->train, f->a)), "of",
                     fds__json_string(fds_dataset_provider_name(j->train, f->b)), "samples",
                     (json_int_t)f->samples, "unowned", (json_int_t)f->references, "closer",
                     (json_int_t)f->copies, "exact", (json_int_t)f->exact, "p",
                     fds__json_real(f->p), "closeness_of_unowned", fds__json_real(f->bound),
                     "pairs", json_pairs(j, f));
}

/* Of the members of a cluster: their names, or what each earns apart. */
static json_t *json_members(const job *j, uint32_t p, bool is_paid) {
    json_t *list = json_array();
    bool is_whole = list;
    for (uint32_t q = 0; q < j->near->providers && is_whole; q++)
        if (j->part_of[q] == p)
            is_whole = fds__json_append(
                list, is_paid ? fds__json_real(j->paid.apart[q])
                              : fds__json_string(fds_dataset_provider_name(j->train, q)));
    return fds__json_keep_if(list, is_whole);
}

static json_t *json_clusters(const job *j) {
    json_t *list = json_array();
    bool is_whole = list;
    for (uint32_t p = 0; p < j->near->providers && is_whole; p++)
        if (members_of(j, p))
            is_whole = fds__json_append(list, json_members(j, p, false));
    return fds__json_keep_if(list, is_whole);
}

static json_t *json_paid(const job *j) {
    if (!j->alarms)
        return json_null();
    json_t *list = json_array();
    bool is_whole = list;
    for (uint32_t p = 0; p < j->near->providers && is_whole; p++)
        if (members_of(j, p))
            is_whole = fds__json_append(list, json_pack("{s:o, s:o, s:o, s:o}", "members",
                                                        json_members(j, p, false), "members_apart",
                                                        json_members(j, p, true), "apart",
                                                        fds__json_real(apart(j, p)), "as_one",
                                                        fds__json_real(j->paid.as_one[p])));
    return json_pack("{s:o, s:o, s:I, s:o}", "game",
                     fds__json_string(*j->paid.game ? j->paid.game : NULL), "reason",
                     fds__json_string(*j->paid.reason ? j->paid.reason : NULL), "inputs",
                     (json_int_t)j->paid.inputs, "clusters", fds__json_keep_if(list, is_whole));
}

static json_t *describe(const job *j) {
    json_t *findings = json_array();
    bool is_whole = findings;
    size_t providers = j->near->providers;
    for (size_t i = 0; i < providers * providers && is_whole; i++)
        if (i / providers != i % providers && j->findings[i].p <= threshold(j))
            is_whole = fds__json_append(findings, json_finding(j, &j->findings[i]));
    findings = fds__json_keep_if(findings, is_whole);
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:f, s:f, s:I, s:b, s:o, s:o, s:o}", "format",
                     "fds-copies 1", "check", "duplicates", "verdict",
                     j->alarms        ? "alarm"
                     : j->could_alarm ? "ok"
                                      : "unknown",
                     "run", fds__json_string(j->run), "data", fds__json_string(j->train->source),
                     "alpha", j->alpha, "threshold", threshold(j), "providers",
                     (json_int_t)providers, "has_test_part", j->near->reference != NULL, "findings",
                     findings, "clusters", json_clusters(j), "paid", json_paid(j));
}

/* ---- the picture ---- */

/* A row of pairs for each finding: a sample of A, and below it the one of B. */
static fds_status draw_pairs(const job *j, const char *path, fds_error *err) {
    size_t providers = j->near->providers, row = 0;
    draw_brush brush;
    fds__picture canvas = {0};
    TRY(draw_brush_make(j->train, NULL, j->train->count, LEAST_PIXELS, &brush, err));
    const uint32_t line = draw_line_height(LABEL), height = line + 2 * brush.height + 3 * GAP,
                   width = MOST_PAIRS_SHOWN * (brush.width + GAP) + GAP;
    TRY(draw_canvas_create(width, (uint32_t)MAX(j->alarms, (size_t)1) * height + GAP, &canvas,
                           err));
    fds_status status = FDS_OK;
    const draw_type type = {.size = LABEL, .colour = draw_ink};
    for (size_t i = 0; i < providers * providers && status == FDS_OK; i++) {
        const finding *f = &j->findings[i];
        if (i / providers == i % providers || f->p > threshold(j))
            continue;
        char text[600], paid[80] = "";
        const uint32_t first = j->part_of[f->a];
        if (isfinite(j->paid.as_one[first]))
            snprintf(paid, sizeof paid, " (apart %.1f %%, as one %.1f %%)", 100 * apart(j, first),
                     100 * j->paid.as_one[first]);
        uint32_t top = GAP + (uint32_t)row++ * height;
        snprintf(text, sizeof text, "%.200s, and below the nearest of %.200s%s",
                 fds_dataset_provider_name(j->train, f->a),
                 fds_dataset_provider_name(j->train, f->b), paid);
        status = draw_canvas_text(&canvas, text, &type, GAP, top, width - 2 * GAP, err);
        for (size_t k = 0; k < f->shown && status == FDS_OK; k++) {
            uint32_t left = GAP + (uint32_t)k * (brush.width + GAP);
            draw_canvas_sample(&canvas, &brush, f->nearest[k].sample, left, top + line + GAP);
            draw_canvas_sample(&canvas, &brush, f->nearest[k].other, left,
                               top + line + 2 * GAP + brush.height);
        }
    }
    if (status == FDS_OK)
        status = fds__png_write(&canvas, path, err);
    fds__free(canvas.pixels);
    return status;
}

/* ---- all of it ---- */

static fds_status compare_all(job *j, const fds_events *events, fds_error *err) {
    const uint32_t n = j->near->providers;
    const double start = fds__now_s();
    OWNED float *x = NULL, *y = NULL;
    OWNED uint32_t *pairs = NULL;
    size_t pair_count = 0;
    TRY(NEW(x, fds__shape_size(j->train->shape), err));
    TRY(NEW(y, fds__shape_size(j->train->shape), err));
    TRY(NEW(pairs, 2 * (size_t)n * n, err));
    for (size_t i = 0; i < (size_t)n * n; i++) {
        finding *f = &j->findings[i];
        f->a = (uint32_t)(i / n);
        f->b = (uint32_t)(i % n);
        if (f->a == f->b)
            continue;
        TRY(fds__report(events, "copies", "pairs of providers", i, (size_t)n * n, start, err));
        compare(j, f, x, y);
        const size_t r = (f->references + HUNDREDTH - 1) / HUNDREDTH;
        j->could_alarm |=
            f->references && copies_tail(f->samples, f->references, r, f->samples) <= threshold(j);
        if (f->p > threshold(j))
            continue;
        j->alarms++;
        pairs[2 * pair_count] = f->a;
        pairs[2 * pair_count++ + 1] = f->b;
    }
    copies_join(pairs, pair_count, n, j->part_of);
    return FDS_OK;
}

static fds_status check(const fds_dataset *train, const fds_dataset *test, const char *png,
                        fds_error *err) {
    if (!train->provider_ids || train->providers < 2)
        return fds__fail(err, FDS_ERR_USAGE, "%s names %s: there is nobody to copy from",
                         train->source, train->provider_ids ? "one provider" : "no providers");
    if (!test && train->providers < 3)
        return fds__fail(err, FDS_ERR_USAGE,
                         "%s has two providers and no test part: there are no samples to compare "
                         "their closeness with",
                         train->source);
    if (png && !train->is_image)
        return fds__fail(err, FDS_ERR_USAGE, "a picture of pairs needs images, and %s has none",
                         train->source);
    return FDS_OK;
}

static fds_status report(job *j, const fds_dataset *test, const fds_params *params,
                         const char *clusters, const char *png, const fds_events *events,
                         char **json, fds_error *err) {
    TRY(compare_all(j, events, err));
    if (j->alarms)
        TRY(copies_pay(j->run, j->train, test, j->part_of, params, events, &j->paid, err));
    if (clusters)
        TRY(copies_write_clusters(clusters, j->train, j->part_of, err));
    if (png)
        TRY(draw_pairs(j, png, err));
    json_t *about = describe(j);
    *json = about ? fds__json_text(about, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) : NULL;
    json_decref(about);
    return *json ? FDS_OK : fds__fail_json(err);
}

static fds_status audit(const char *run, const fds_dataset *train, const fds_dataset *test,
                        const fds_params *params, const char *clusters, const char *png,
                        const fds_events *events, char **json, fds_error *err) {
    OWNED finding *findings = NULL;
    OWNED ranked *scratch = NULL;
    OWNED uint32_t *part_of = NULL;
    copies_near near = {0};
    TRY(check(train, test, png, err));
    TRY(NEW(findings, (size_t)train->providers * train->providers, err));
    TRY(NEW(part_of, train->providers, err));
    TRY(NEW(scratch, train->count + (test ? test->count : 0), err));
    job j = {.train = train,
             .near = &near,
             .alpha = params->copies_alpha,
             .findings = findings,
             .scratch = scratch,
             .part_of = part_of,
             .run = run};
    fds_status status = copies_find(train, test, (unsigned)params->threads, events, &near, err);
    if (status == FDS_OK)
        status = report(&j, test, params, clusters, png, events, json, err);
    copies_near_free(&near);
    copies_paid_free(&j.paid);
    return status;
}

/* The data of a run, as it was fitted; its owners are those of the fit. */
static fds_status open_run(const char *dir, const fds_params *params, const fds_events *events,
                           fds_dataset *parts[2], fds_error *err) {
    fds_run *run;
    fds_params as_fitted = *params;
    as_fitted.data = NULL;
    TRY(fds__run_open(dir, (unsigned)params->threads, &run, err));
    fds_status status = fds__run_open_data(run, &as_fitted, true, events, parts, err);
    fds_run_free(run);
    return status;
}

fds_status fds_audit_duplicates(const fds_params *params, const char *clusters, const char *png,
                                const fds_events *events, char **json, fds_error *err) {
    fds_dataset *parts[2] = {NULL};
    char path[FDS__PATH_MAX];
    if (!params->data)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`data` is missing: name a run, a fetched set or a path");
    if (fds__is_given(params, part) || fds__is_given(params, utility) ||
        fds__is_given(params, folds))
        return fds__fail(err, FDS_ERR_USAGE,
                         "`%s` does not apply: pixels or features of training samples are compared",
                         fds__is_given(params, part)      ? "part"
                         : fds__is_given(params, utility) ? "utility"
                                                          : "folds");
    TRY(fds__path_join(path, sizeof path, params->data, "run.json", err));
    const bool is_run = fds__path_exists(path);
    fds_status status =
        is_run ? open_run(params->data, params, events, parts, err)
               : fds_data_open(params->data, params, events, &parts[0], &parts[1], err);
    if (status == FDS_OK)
        status = audit(is_run ? params->data : NULL, parts[0], parts[1], params, clusters, png,
                       events, json, err);
    fds_dataset_free(parts[0]);
    fds_dataset_free(parts[1]);
    return status;
}
