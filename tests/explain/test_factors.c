/* SPDX-License-Identifier: Apache-2.0
 * Factors of the players: the singular vectors that they are, losses that are those of the values,
 * files that are read back, and a fit with them. */
#include "../game/fixture.h"
#include "fixture.h"

/* ---- a matrix of known singular values ---- */

enum { N = 30, COLUMNS = 5000, USED = 4900, KNOWN = 8 };

/* Orthonormal and orthogonal to 1: rows of the discrete cosine transform. */
static double direction(size_t k, size_t i, size_t n) {
    return sqrt(2.0 / (double)n) * cos(acos(-1) * (double)(k + 1) * ((double)i + 0.5) / (double)n);
}

static double strength(size_t k) { return pow(2, -(double)k); }

/* (n, COLUMNS) with equal shares, and noise in the columns that do not count */
static double *known_values(void) {
    double *values = need((size_t)N * COLUMNS, sizeof *values);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < COLUMNS; j++) {
            double *v = &values[i * COLUMNS + j];
            *v = j < USED ? sin((double)j) : (double)((i * 7 + j) % 11);
            for (size_t k = 0; j < USED && k < KNOWN; k++)
                *v += strength(k) * direction(k, i, N) * direction(k, j, USED);
        }
    return values;
}

static fds__factors find(const double *values, size_t rank, unsigned threads) {
    fds__factors f;
    fds_error err;
    expect_ok(fds__factors_find(values, N, COLUMNS, USED, rank, 1, threads, NULL, &f, &err), &err);
    return f;
}

static void factors_are_the_first_singular_vectors(void **state) {
    (void)state;
    double *values = known_values(), all = 0, held = 0;
    fds__factors f = find(values, 4, 1);
    for (size_t k = 0; k < KNOWN; k++) {
        all += strength(k) * strength(k);
        held += k < 4 ? strength(k) * strength(k) : 0;
    }
    assert_true(fabs(f.energy - held / all) < 1e-6);
    for (size_t r = 0; r < 4; r++) {
        double along = 0, sum = 0;
        for (size_t i = 0; i < N; i++) {
            along += (double)f.h[i * 4 + r] * direction(r, i, N);
            sum += (double)f.h[i * 4 + r];
        }
        assert_true(fabs(fabs(along) - 1) < 1e-5);
        assert_true(fabs(sum) < 1e-6);
        for (size_t q = 0; q < 4; q++) {
            double product = 0;
            for (size_t i = 0; i < N; i++)
                product += (double)f.h[i * 4 + r] * (double)f.h[i * 4 + q];
            assert_true(fabs(product - (q == r)) < 1e-6);
        }
    }
    fds__factors_free(&f);
    free(values);
}

static void coefficients_and_equal_shares_are_the_values(void **state) {
    (void)state;
    double *values = known_values(), most = 0;
    fds_error err;
    fds__factors f = find(values, N - 1, 2); /* of more directions than there are */
    float *c = need((size_t)COLUMNS * f.rank, sizeof *c);
    expect_ok(fds__factors_project(&f, values, COLUMNS, 2, NULL, c, &err), &err);
    assert_true(f.energy > 1 - 1e-9);
    for (size_t j = 0; j < COLUMNS; j += 7) {
        double share = 0;
        for (size_t i = 0; i < N; i++)
            share += values[i * COLUMNS + j] / N;
        for (size_t i = 0; i < N; i++) {
            double value = share;
            for (size_t r = 0; r < f.rank; r++)
                value += (double)f.h[i * f.rank + r] * (double)c[j * f.rank + r];
            most = fmax(most, fabs(value - values[i * COLUMNS + j]));
        }
    }
    assert_true(most < 1e-5);
    free(c);
    fds__factors_free(&f);
    free(values);
}

static void threads_change_no_bit(void **state) {
    (void)state;
    double *values = known_values();
    fds__factors a = find(values, 5, 1), b = find(values, 5, 3);
    assert_memory_equal(a.h, b.h, (size_t)N * 5 * sizeof *a.h);
    assert_true(a.energy == b.energy && a.passes == b.passes);
    fds__factors_free(&a);
    fds__factors_free(&b);
    free(values);
}

static void equal_players_have_factors_too(void **state) {
    (void)state;
    double *values = need((size_t)N * COLUMNS, sizeof *values);
    for (size_t i = 0; i < (size_t)N * COLUMNS; i++)
        values[i] = 0.25;
    fds__factors f = find(values, 3, 1);
    for (size_t i = 0; i < 3 * N; i++)
        assert_true(isfinite(f.h[i]));
    fds__factors_free(&f);
    values[7] = NAN;
    fds_error err = {0};
    expect_failure(fds__factors_find(values, N, COLUMNS, USED, 3, 1, 1, NULL, &f, &err),
                   FDS_ERR_DIVERGED, &err, "finite");
    fds__factors_free(&f);
    free(values);
}

static bool cancel(void *user, const fds_progress *progress) {
    (void)user, (void)progress;
    return true;
}

static void the_search_is_cancelled(void **state) {
    (void)state;
    double *values = known_values();
    const fds_events events = {.progress = cancel};
    fds__factors f;
    fds_error err = {0};
    expect_failure(fds__factors_find(values, N, COLUMNS, USED, 3, 1, 1, &events, &f, &err),
                   FDS_ERR_CANCELLED, &err, "");
    fds__factors_free(&f);
    free(values);
}

/* ---- a file ---- */

static void expect_same_file(const char *a, const char *b) {
    char hex[2][65];
    sha256_of(a, hex[0]);
    sha256_of(b, hex[1]);
    assert_string_equal(hex[0], hex[1]);
}

enum { RANK = 3 };
static const fds_shape image = {1, 8, 8};

static fds__explainer *any_explainer(const char *network, const float *h) {
    fds__explainer *e = NULL;
    fds_error err;
    expect_ok(learn_explainer_create(network, FDS__PRECISION_F32, N, CLASSES, image, NULL, h, RANK,
                                     0.5, 1, &e, &err),
              &err);
    fds__deep *net = learn_explainer_net(e);
    fds_rng rng = fds_rng_make(5, 99, 0, 0);
    for (size_t i = 0; i < fds__deep_tensor_count(net); i++) {
        fds__deep_tensor t = fds__deep_tensor_at(net, i);
        float *values = need(t.count, sizeof *values);
        for (size_t j = 0; j < t.count; j++)
            values[j] = (float)(0.5 + 0.4 * fds_rng_unit(&rng) - (t.is_statistic ? 0 : 0.7));
        expect_ok(fds__deep_write(net, i, FDS__DEEP_VALUE, values, &err), &err);
        free(values);
    }
    return e;
}

static void fill(float *h, float *x) {
    fds_rng rng = fds_rng_make(6, 99, 0, 0);
    for (size_t i = 0; i < (size_t)N * RANK; i++)
        h[i] = (float)fds_rng_normal(&rng);
    for (size_t i = 0; i < 70 * 64; i++)
        x[i] = (float)fds_rng_normal(&rng);
}

/* Values are the factors times the network's outputs, from memory and from the file; a label alone and
 * an input alone have the same bits as all together. */
static void a_file_of_factors_gives_the_same_bits(void **state) {
    (void)state;
    static const char *const networks[] = {"linear", "mlp", "cnn"};
    static float h[N * RANK], x[70 * 64], u[CLASSES * RANK], one[N];
    fds_error err;
    fill(h, x);
    for (size_t k = 0; k < COUNT(networks); k++) {
        fds__explainer *e = any_explainer(networks[k], h), *f = NULL;
        float *all[2] = {need((size_t)70 * CLASSES * N, sizeof(float)),
                         need((size_t)70 * CLASSES * N, sizeof(float))};
        expect_ok(fds__explainer_save(e, scratch_path("a"), NULL, &err), &err);
        expect_ok(fds__explainer_load(scratch_path("a"), N, CLASSES, image, NULL, 1, &f, &err),
                  &err);
        expect_ok(fds__explainer_save(f, scratch_path("b"), NULL, &err), &err);
        expect_same_file(scratch_path("a"), scratch_path("b"));
        expect_ok(fds__explainer_run(e, x, 70, NULL, all[0], &err), &err);
        expect_ok(fds__explainer_run(f, x, 70, NULL, all[1], &err), &err);
        assert_memory_equal(all[0], all[1], (size_t)70 * CLASSES * N * sizeof(float));
        for (uint32_t at = 0; at < 70; at += 23) {
            const uint32_t label = at % CLASSES;
            expect_ok(fds__explainer_run(f, x + at * 64, 1, &label, one, &err), &err);
            assert_memory_equal(one, all[0] + (at * CLASSES + label) * N, sizeof one);
        }
        fds__deep_infer *infer = NULL;
        expect_ok(fds__deep_infer_create(learn_explainer_net(e), 1, &infer, &err), &err);
        expect_ok(fds__deep_infer_run(infer, x, 1, u, &err), &err);
        for (size_t i = 0; i < CLASSES * N; i++) {
            double value = 0;
            for (size_t r = 0; r < RANK; r++)
                value += 0.5 * (double)h[i % N * RANK + r] * (double)u[i / N * RANK + r];
            assert_true(fabs(value - (double)all[0][i]) < 1e-4 * (1 + fabs(value)));
        }
        fds__deep_infer_free(infer);
        fds__explainer_free(e);
        fds__explainer_free(f);
        free(all[0]);
        free(all[1]);
    }
}

static void expect_refused(const char *bytes, size_t size, const char *words) {
    fds__explainer *e = NULL;
    fds_error err = {0};
    scratch_write(scratch_path("bad"), bytes, size);
    fds_status status =
        fds__explainer_load(scratch_path("bad"), N, CLASSES, image, NULL, 1, &e, &err);
    fds__explainer_free(e);
    assert_true(status == FDS_ERR_FORMAT || status == FDS_ERR_SHAPE);
    expect_in(err.text, scratch_path("bad"));
    expect_in(err.text, words);
}

static void files_that_lie_about_factors_are_refused(void **state) {
    (void)state;
    static float h[N * RANK], x[70 * 64];
    static const struct {
        const char *from, *to, *words;
    } lies[] = {
        {"\"rank\":\"3\"", "\"rank\":\"4\"", "players.factors"},
        {"\"rank\":\"3\"", "\"rank\":\"0\"", "rank"},
        {"\"rank\":\"3\"", "\"rank\":\"x\"", "rank"},
        {"\"rank\":\"3\"", "\"rang\":\"3\"", "without metadata \"rank\""},
        {"[30,3]", "[3,30]", "players.factors"},
        {"players.factors", "players.fictors", "players.factors"},
        {"\"outputs\":\"9\"", "\"outputs\":\"8\"", "outputs"},
    };
    size_t size;
    fds_error err;
    fill(h, x);
    fds__explainer *e = any_explainer("mlp", h);
    expect_ok(fds__explainer_save(e, scratch_path("good"), NULL, &err), &err);
    char *good = scratch_read(scratch_path("good"), &size), *bad = need(size, 1);
    for (size_t i = 0; i < COUNT(lies); i++) {
        memcpy(bad, good, size);
        char *at = memmem(bad, size, lies[i].from, strlen(lies[i].from));
        assert_non_null(at);
        memcpy(at, lies[i].to, strlen(lies[i].to));
        expect_refused(bad, size, lies[i].words);
    }
    for (size_t part = 0; part < size; part += 1 + part / 4)
        expect_refused(good, part, "");
    free(bad);
    free(good);
    fds__explainer_free(e);
    h[4] = NAN;
    e = any_explainer("mlp", h);
    expect_ok(fds__explainer_save(e, scratch_path("good"), NULL, &err), &err);
    good = scratch_read(scratch_path("good"), &size);
    expect_refused(good, size, "players.factors");
    free(good);
    fds__explainer_free(e);
}

static double *fault_values;

static fds_status find_save_and_load(fds_error *err) {
    fds__factors f = {0};
    fds__explainer *e = NULL, *loaded = NULL;
    static float c[COLUMNS * RANK], x[64], values[CLASSES * N];
    fds_status status =
        fds__factors_find(fault_values, N, COLUMNS, USED, RANK, 1, 1, NULL, &f, err);
    if (status == FDS_OK)
        status = fds__factors_project(&f, fault_values, COLUMNS, 1, NULL, c, err);
    if (status == FDS_OK)
        status = learn_explainer_create("linear", FDS__PRECISION_F32, N, CLASSES, image, NULL, f.h,
                                        RANK, 0.5, 1, &e, err);
    if (status == FDS_OK)
        status = fds__explainer_save(e, scratch_path("a"), NULL, err);
    if (status == FDS_OK)
        status = fds__explainer_load(scratch_path("a"), N, CLASSES, image, NULL, 1, &loaded, err);
    if (status == FDS_OK)
        status = fds__explainer_run(loaded, x, 1, NULL, values, err);
    fds__explainer_free(e);
    fds__explainer_free(loaded);
    fds__factors_free(&f);
    return status;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    fault_values = known_values();
    each_allocation_fails("factors", find_save_and_load);
    free(fault_values);
}

/* ---- a fit ---- */

static void a_fit_with_factors_gives_efficient_values(void **state) {
    (void)state;
    static const char *const methods[] = {"fds", "afds", "gfds"};
    for (size_t k = 0; k < COUNT(methods); k++)
        for (int objective = 0; objective < 2; objective++) {
            task t = task_make(methods[k]);
            char dir[500];
            t.params.rank = "5";
            t.params.objective = objective;
            snprintf(dir, sizeof dir, "%s-%d", scratch_path(methods[k]), objective);
            const fds__fit_report report = fit(&t, dir);
            assert_true(report.energy > 0.3 && report.energy <= 1);
            expect_efficient(&t, dir, FDS__ANSWERER_EXPLAINER);
            json_t *run = read_run(dir);
            json_t *explainer = json_object_get(run, "explainer");
            assert_int_equal(json_integer_value(json_object_get(explainer, "rank")), 5);
            json_decref(run);
            assert_true(fit(&t, dir).energy == report.energy); /* read back */
            task_free(&t);
        }
}

/* With one factor less than players nothing is lost: the network learns what a full one does. */
static void as_many_factors_as_there_can_be_agree_like_a_full_head(void **state) {
    (void)state;
    double agreement[2];
    for (int full = 0; full < 2; full++) {
        task t = task_make("afds");
        t.params.explainer_epochs = 60;
        t.params.explainer_lr = 0.02;
        t.params.rank = full ? "full" : "15";
        const char *dir = scratch_path(full ? "full" : "all");
        const fds__fit_report report = fit(&t, dir);
        agreement[full] = report.agreement;
        assert_true(full ? isnan(report.energy) : report.energy > 1 - 1e-9);
        task_free(&t);
    }
    print_message("# agreement %.4f with 15 factors, %.4f with a full head\n", agreement[0],
                  agreement[1]);
    assert_true(fabs(agreement[0] - agreement[1]) < 0.01);
}

static void expect_mistake(const char *method, const char *rank, int explainer, const char *words) {
    task t = task_make(method);
    fds__fit_settings s;
    fds_error err = {0};
    t.params.explainer = explainer;
    expect_ok(fds_params_set(&t.params, "rank", rank, &err), &err);
    expect_failure(settle(&t, &s, &err), FDS_ERR_USAGE, &err, words);
    expect_in(err.text, "`rank`");
    fds__free((char *)t.params.rank);
    task_free(&t);
}

static void mistakes_in_the_rank_are_named(void **state) {
    (void)state;
    expect_mistake("afds", "0", LINEAR, "above 0");
    expect_mistake("afds", "-1", LINEAR, "above 0");
    expect_mistake("afds", "ten", LINEAR, "ten");
    expect_mistake("afds", "16", LINEAR, "16");
    expect_mistake("afds", "5", BANK, "`explainer`");
    expect_mistake("gfds+", "5", LINEAR, "gfds+");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_are_the_first_singular_vectors),
        cmocka_unit_test(coefficients_and_equal_shares_are_the_values),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(equal_players_have_factors_too),
        cmocka_unit_test(the_search_is_cancelled),
        IN_SCRATCH(a_file_of_factors_gives_the_same_bits),
        IN_SCRATCH(files_that_lie_about_factors_are_refused),
        IN_SCRATCH(every_allocation_may_fail),
        IN_SCRATCH(a_fit_with_factors_gives_efficient_values),
        IN_SCRATCH(as_many_factors_as_there_can_be_agree_like_a_full_head),
        cmocka_unit_test(mistakes_in_the_rank_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
