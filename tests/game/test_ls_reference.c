/* SPDX-License-Identifier: Apache-2.0
 * The least squares against a reference that shares nothing with them: from the definition in
 * fds.h, one line a coalition, no pairs, Lagrange's system by elimination in long double. It gives
 * the values, and by solving again without each case the jackknife's errors and the errors of pairs
 * left out. */
#include "ls_fixture.h"

typedef long double real;

enum { NONE = -1 };

/* theta minimises sum_s w(s) (u(s) - d(s)'theta)^2 + theta' penalty theta with sum theta = total */
typedef struct {
    size_t rows, per_case, size;
    real *d;       /* (rows, size) */
    real *w, *u;   /* (rows): the weights of a case sum to 1 on average */
    real *penalty; /* (size, size) */
    real *unseen;  /* (pairs): share of the coalitions of that size that the plan does not have,
                    * where  none is drawn twice; else 1 */
    real total;
} problem;

static void problem_free(problem *p) {
    free(p->d);
    free(p->w);
    free(p->u);
    free(p->penalty);
    free(p->unseen);
}

/* Solves a (size, size + 1), the right side in the last column. */
static void eliminate(real *a, size_t size, real *x) {
    size_t width = size + 1;
    for (size_t k = 0; k < size; k++) {
        size_t pivot = k;
        for (size_t i = k + 1; i < size; i++)
            if (fabsl(a[i * width + k]) > fabsl(a[pivot * width + k]))
                pivot = i;
        assert_true(fabsl(a[pivot * width + k]) > 1e-12L);
        for (size_t j = 0; j < width; j++) {
            real kept = a[k * width + j];
            a[k * width + j] = a[pivot * width + j];
            a[pivot * width + j] = kept;
        }
        for (size_t i = 0; i < size; i++) {
            real factor = i == k ? 0 : a[i * width + k] / a[k * width + k];
            for (size_t j = k; factor != 0 && j < width; j++)
                a[i * width + j] -= factor * a[k * width + j];
        }
    }
    for (size_t k = 0; k < size; k++)
        x[k] = a[k * width + size] / a[k * width + k];
}

/* As if case left_out were not there (NONE: with all). */
static void reference_solve(const problem *p, int left_out, real *theta) {
    size_t size = p->size + 1, width = size + 1;
    real *a = need(size * width, sizeof *a), *x = need(size, sizeof *x);
    for (size_t r = 0; r < p->rows; r++) {
        const real *d = p->d + r * p->size;
        for (size_t i = 0; (int)(r / p->per_case) != left_out && i < p->size; i++) {
            for (size_t j = 0; j < p->size; j++)
                a[i * width + j] += p->w[r] * d[i] * d[j];
            a[i * width + size] += p->w[r] * d[i] * p->u[r];
        }
    }
    for (size_t i = 0; i < p->size; i++) {
        for (size_t j = 0; j < p->size; j++)
            a[i * width + j] += p->penalty[i * p->size + j];
        a[i * width + p->size] = a[p->size * width + i] = 1;
    }
    a[p->size * width + size] = p->total;
    eliminate(a, size, x);
    memcpy(theta, x, p->size * sizeof *theta);
    free(a);
    free(x);
}

/* ---- the problem of a plan ---- */

/* is_mild: the weights times the square root of k(n-k) */
static void set_weights(problem *p, const fds_plan *plan, bool is_mild) {
    size_t n = fds_plan_players(plan);
    real sum = 0, pairs = (real)(p->rows / p->per_case);
    for (size_t r = 0; r < p->rows; r++) {
        real k = (real)plan_size(plan, 2 + r);
        p->w[r] = fds_plan_weight(plan, 2 + r) * (is_mild ? sqrtl(k * ((real)n - k)) : 1);
        sum += p->w[r];
    }
    for (size_t r = 0; r < p->rows; r++)
        p->w[r] *= pairs / sum;
}

static void set_unseen(problem *p, const fds_plan *plan) {
    size_t n = fds_plan_players(plan);
    for (size_t r = 0; r < p->rows; r++) {
        size_t k = plan_size(plan, 2 + r);
        real drawn = 0, ways = 1;
        for (size_t other = 0; other < p->rows; other++)
            drawn += plan_size(plan, 2 + other) == k;
        for (size_t i = 1; i <= k; i++)
            ways = ways * (real)(n - k + i) / (real)i;
        p->unseen[r / p->per_case] = plan->sampler == FDS_SAMPLER_LEVERAGE ? 1 - drawn / ways : 1;
    }
}

/* shrink times (I - group means) and ridge times (I - mean) on the players, 1 on the others. */
static void set_penalty(problem *p, const fds_groups *groups, size_t n, real shrink, real ridge) {
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            const uint32_t *members;
            size_t g = groups ? fds_groups_of(groups, i) : 0;
            size_t of = groups ? fds_groups_members(groups, g, &members) : n;
            bool same = !groups || g == fds_groups_of(groups, j);
            p->penalty[i * p->size + j] =
                shrink * ((i == j) - (same ? 1 / (real)of : 0)) + ridge * ((i == j) - 1 / (real)n);
        }
    for (size_t i = n; i < p->size; i++)
        p->penalty[i * p->size + i] = 1;
}

/* Of one column, with room for steps beside the players. */
static problem make_problem(const fds_plan *plan, const array_game *game, size_t column,
                            size_t steps) {
    size_t n = game->players, rows = fds_plan_rows(plan) - 2, size = n + steps;
    const double *v = game->v + column;
    problem p = {.rows = rows,
                 .per_case = fds_plan_is_paired(plan) ? 2 : 1,
                 .size = size,
                 .d = need(rows * size, sizeof *p.d),
                 .w = need(rows, sizeof *p.w),
                 .u = need(rows, sizeof *p.u),
                 .penalty = need(size * size, sizeof *p.penalty),
                 .unseen = need(rows, sizeof *p.unseen),
                 .total = (real)v[(((size_t)1 << n) - 1) * game->columns] - v[0]};
    for (size_t r = 0; r < rows; r++) {
        size_t mask = fds_plan_coalition(plan, 2 + r)[0];
        for (size_t i = 0; i < n; i++)
            p.d[r * size + i] = (real)bit(mask, i);
        p.u[r] = (real)v[mask * game->columns] - v[0];
    }
    set_weights(&p, plan, false);
    set_unseen(&p, plan);
    return p;
}

/* What theta says wrongly of a case: a pair's two errors differ by twice that. */
static real case_error(const problem *p, size_t i, const real *theta) {
    real error = 0;
    for (size_t r = i * p->per_case; r < (i + 1) * p->per_case; r++) {
        real off = p->u[r];
        for (size_t j = 0; j < p->size; j++)
            off -= p->d[r * p->size + j] * theta[j];
        error += (r % p->per_case ? -off : off) / (real)p->per_case;
    }
    return error;
}

static real weighted_square(const problem *p, size_t i, const real *theta) {
    real error = case_error(p, i, theta);
    return p->unseen[i] * (real)p->per_case * p->w[i * p->per_case] * error * error;
}

/* Weighted squares of the errors of pairs, each left out of its fit. */
static real score_left_out(const problem *p) {
    real sum = 0, theta[32];
    for (size_t i = 0; i < p->rows / p->per_case; i++) {
        reference_solve(p, (int)i, theta);
        sum += weighted_square(p, i, theta);
    }
    return sum;
}

/* The same of an even division. */
static real score_even(const problem *p) {
    real sum = 0, theta[32];
    for (size_t j = 0; j < p->size; j++)
        theta[j] = p->total / (real)p->size;
    for (size_t i = 0; i < p->rows / p->per_case; i++)
        sum += weighted_square(p, i, theta);
    return sum;
}

/* ---- plain ---- */

typedef void check(const fds_plan *plan, const array_game *game, double *worst);

/* Random games of 3 .. 11 players on random plans of each kind. */
static void each_plan(check *run, size_t a_player, double tolerance, const char *what) {
    for (fds_sampler sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_LEVERAGE; sampler++) {
        double worst = 0;
        for (size_t n = 3; n <= 11; n += 2)
            for (uint64_t seed = 0; seed < (IS_SLOW_BUILD ? 1 : 4); seed++) {
                size_t count = a_player * n;
                if (sampler == FDS_SAMPLER_LEVERAGE)
                    count = MIN(count, ((size_t)1 << n) - 2);
                fds_rng rng = fds_rng_make(1, 3100, n, seed);
                array_game game = {n, 2, random_values((size_t)2 << n, &rng)};
                fds_plan *plan = sampled_plan(sampler, n, NULL, count + count % 2, seed);
                run(plan, &game, &worst);
                fds_plan_free(plan);
                free((void *)game.v);
            }
        print_message("# %s, %s: off by at most %.1e\n", what, sampler_names[sampler], worst);
        assert_true(worst <= tolerance);
    }
}

static void check_plain(const fds_plan *plan, const array_game *game, double *worst) {
    size_t n = game->players;
    double got[2 * 16];
    fds_ls_report report =
        solve_array(plan, game, &(fds_ls_params){.adjust = FDS_ADJUST_NONE}, got, NULL);
    for (size_t c = 0; c < 2; c++) {
        real theta[16];
        problem p = make_problem(plan, game, c, 0);
        set_penalty(&p, NULL, n, 0, report.ridge);
        reference_solve(&p, NONE, theta);
        for (size_t i = 0; i < n; i++)
            *worst = fmax(*worst, fabs(got[i * 2 + c] - (double)theta[i]));
        problem_free(&p);
    }
}

static void plain_is_the_constrained_minimum(void **state) {
    (void)state;
    each_plan(check_plain, 12, 1e-9, "plain");
}

static void plain_of_few_coalitions_is_the_constrained_minimum_with_the_ridge(void **state) {
    (void)state;
    each_plan(check_plain, 2, 1e-9, "ridge");
}

/* Without case i the values would be others: the root of the squared changes, as far as there are
 * other pairs that might have been drawn. */
static void jackknife(const problem *p, real *errors) {
    real all[16], without[16];
    reference_solve(p, NONE, all);
    memset(errors, 0, p->size * sizeof *errors);
    for (size_t i = 0; i < p->rows / p->per_case; i++) {
        reference_solve(p, (int)i, without);
        for (size_t j = 0; j < p->size; j++)
            errors[j] += p->unseen[i] * (without[j] - all[j]) * (without[j] - all[j]);
    }
    for (size_t j = 0; j < p->size; j++)
        errors[j] = sqrtl(errors[j]);
}

static void check_errors(const fds_plan *plan, const array_game *game, double *worst) {
    size_t n = game->players;
    double values[2 * 16], got[2 * 16];
    solve_array(plan, game, &(fds_ls_params){.adjust = FDS_ADJUST_NONE}, values, got);
    for (size_t c = 0; c < 2; c++) {
        real wanted[16];
        problem p = make_problem(plan, game, c, 0);
        jackknife(&p, wanted);
        for (size_t i = 0; i < n; i++)
            *worst = fmax(*worst, wanted[i] > 0 ? fabs(got[i * 2 + c] / (double)wanted[i] - 1)
                                                : got[i * 2 + c]);
        problem_free(&p);
    }
}

static void plain_errors_are_those_of_the_jackknife(void **state) {
    (void)state;
    each_plan(check_errors, 16, 1e-6, "errors (relative)");
}

/* ---- shrunk ---- */

enum { N = 9, COUNT_OF_GROUPS = 3, COLUMN = 0 };

typedef struct {
    fds_groups *groups;
    fds_plan *plan;
    array_game game;
} subject;

static subject make_subject(fds_sampler sampler, size_t count, uint64_t seed) {
    fds_rng rng = fds_rng_make(2, 3100, sampler, seed);
    return (subject){.groups = groups_in_turn(N, COUNT_OF_GROUPS),
                     .plan = sampled_plan(sampler, N, NULL, count, seed),
                     .game = {N, 1, rough_values(N, 1, 0.05, &rng)}};
}

static void subject_free(subject *s) {
    fds_groups_free(s->groups);
    fds_plan_free(s->plan);
    free((void *)s->game.v);
}

static void each_subject(void (*run)(subject *)) {
    for (fds_sampler sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_LEVERAGE; sampler++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            subject s = make_subject(sampler, 60 + 40 * seed, seed);
            run(&s);
            subject_free(&s);
        }
}

/* What the penalty takes from additive games: lost[i][j] of the value of player i when j alone is
 * worth 1. */
static void find_lost(problem *p, real lost[N][N]) {
    real theta[N];
    for (size_t j = 0; j < N; j++) {
        for (size_t r = 0; r < p->rows; r++)
            p->u[r] = p->d[r * N + j];
        p->total = 1;
        reference_solve(p, NONE, theta);
        for (size_t i = 0; i < N; i++)
            lost[i][j] = (i == j) - theta[i];
    }
}

/* The squared deviation of j's value from its group's mean. */
static real squared_deviation(const fds_groups *groups, const real *values, size_t j) {
    const uint32_t *members;
    size_t count = fds_groups_members(groups, fds_groups_of(groups, j), &members);
    real off = values[j];
    for (size_t k = 0; k < count; k++)
        off -= values[members[k]] / (real)count;
    return off * off;
}

/* The square of j's true deviation by the method of moments: that of those found in its group is what is
 * kept of it, and their variance. At least as much as was found. own: what j's own says more. */
static real true_deviation(const fds_groups *groups, const real *values, const real *errors,
                           real lost[N][N], size_t j, real *own) {
    const uint32_t *members;
    size_t count = fds_groups_members(groups, fds_groups_of(groups, j), &members);
    real found = 0, variance = 0, gone = 0;
    for (size_t k = 0; k < count; k++) {
        found += squared_deviation(groups, values, members[k]) / (real)count;
        variance += errors[members[k]] * errors[members[k]] / (real)count;
        gone += lost[members[k]][members[k]] / (real)(count - 1);
    }
    real kept = fmaxl(1 - gone, 0.05L);
    real usual = fmaxl(found, (found - variance) / (kept * kept));
    real square = squared_deviation(groups, values, j) - errors[j] * errors[j];
    *own = fmaxl(square / (kept * kept) - usual, 0);
    return usual;
}

/* The greatest value has a larger error than the jackknife's: test_ls_noise.c. */
static bool is_greatest(const double *values, size_t i) {
    for (size_t k = 0; k < N; k++)
        if (values[k] > values[i])
            return false;
    return true;
}

/* The values are those of the strengths that the report tells; the squared errors are the
 * jackknife's and what the penalty would take of the true deviations. Returns how many values have more
 * than their group's. */
static size_t check_penalised(subject *s, fds_adjust adjust, fds_ls_report *report) {
    double got[N], errors[N];
    real theta[N], wanted[N], lost[N][N], own;
    size_t count = 0;
    fds_ls_params params = {.adjust = adjust, .groups = s->groups};
    *report = solve_array(s->plan, &s->game, &params, got, errors);
    assert_true(report->shrink_rest == 0);
    fds_groups *around = groups_in_turn(N, report->ridge > 0 ? 1 : COUNT_OF_GROUPS);
    problem p = make_problem(s->plan, &s->game, COLUMN, 0);
    set_penalty(&p, s->groups, N, report->shrink, report->ridge);
    reference_solve(&p, NONE, theta);
    jackknife(&p, wanted);
    find_lost(&p, lost);
    for (size_t i = 0; i < N; i++) {
        real square = wanted[i] * wanted[i];
        for (size_t j = 0; j < N; j++) {
            real usual = true_deviation(around, theta, wanted, lost, j, &own);
            square += lost[i][j] * lost[i][j] * (usual + (i == j ? own : 0));
            count += i == j && own > 0 && lost[i][i] > 0.01;
        }
        assert_true(fabs(got[i] - (double)theta[i]) <= 1e-9);
        double ratio = errors[i] / (double)sqrtl(square);
        assert_true(is_greatest(got, i) ? ratio >= 1 - 1e-6 : fabs(ratio - 1) <= 1e-6);
    }
    problem_free(&p);
    fds_groups_free(around);
    return count;
}

static void check_shrunk(subject *s) {
    fds_ls_report report;
    check_penalised(s, FDS_ADJUST_SHRINK, &report);
}

static void shrunk_values_and_errors_are_those_of_the_penalty_told(void **state) {
    (void)state;
    each_subject(check_shrunk);
}

/* Where something is shrunk: else leaving out one of so few pairs may leave no unique solution. */
static void errors_of_few_coalitions_say_what_shrinking_takes_from_each_value(void **state) {
    (void)state;
    for (int adjust = FDS_ADJUST_NONE; adjust <= FDS_ADJUST_SHRINK; adjust++) {
        size_t count = 0;
        for (uint64_t seed = 0; seed < 8; seed++) {
            fds_ls_report report;
            subject s = make_subject(FDS_SAMPLER_LEVERAGE, 26, seed);
            double got[N];
            fds_ls_params params = {.adjust = (fds_adjust)adjust, .groups = s.groups};
            report = solve_array(s.plan, &s.game, &params, got, NULL);
            assert_true((report.ridge > 0) == (adjust == FDS_ADJUST_NONE));
            if (report.ridge > 0 || report.shrink > 0)
                count += check_penalised(&s, (fds_adjust)adjust, &report);
            subject_free(&s);
        }
        print_message("# %s: %zu large deviations\n", adjust_names[adjust], count);
        assert_true(count > 5);
    }
}

/* The strength is the least whose error on left-out pairs is at most 1.25 times the least error. */
static void check_choice(subject *s) {
    static const double strengths[] = {0, 1, 2, 5, 10, 20, 40, 80, 160, 320, 1280};
    double got[N];
    fds_ls_params params = {.adjust = FDS_ADJUST_SHRINK, .groups = s->groups};
    fds_ls_report report = solve_array(s->plan, &s->game, &params, got, NULL);
    problem p = make_problem(s->plan, &s->game, COLUMN, 0);
    real own, scores[COUNT(strengths)], best = INFINITY;
    for (size_t i = 0; i < COUNT(strengths); i++) {
        set_penalty(&p, s->groups, N, strengths[i], 0);
        scores[i] = score_left_out(&p);
        best = fminl(best, scores[i]);
    }
    for (size_t i = 0; strengths[i] < report.shrink; i++)
        assert_true(scores[i] > 1.25L * best * (1 - 1e-9L));
    set_penalty(&p, s->groups, N, report.shrink, 0);
    own = score_left_out(&p);
    assert_true(own <= 1.25L * best * (1 + 1e-9L));
    assert_true(fabs(report.explained - (double)(1 - own / score_even(&p))) <= 1e-9);
    problem_free(&p);
}

static void the_strength_is_the_weakest_that_predicts_nearly_best(void **state) {
    (void)state;
    each_subject(check_choice);
}

/* ---- with a fitted game ---- */

typedef struct {
    size_t group, at, of; /* group COUNT_OF_GROUPS: all players */
} step;

/* For a group and for all: steps from 1 to half of the members. */
static size_t list_steps(const fds_groups *groups, step *steps) {
    size_t count = 0;
    for (size_t g = 0; g <= COUNT_OF_GROUPS; g++) {
        const uint32_t *members;
        size_t of = g < COUNT_OF_GROUPS ? fds_groups_members(groups, g, &members) : N;
        for (size_t at = 1; at <= of / 2; at++)
            steps[count++] = (step){g, at, of};
    }
    return count;
}

static bool is_member(const subject *s, const step *t, size_t i) {
    return t->group == COUNT_OF_GROUPS || fds_groups_of(s->groups, i) == t->group;
}

static void set_steps(problem *p, const subject *s, const step *steps, size_t count) {
    for (size_t r = 0; r < p->rows; r++)
        for (size_t j = 0; j < count; j++) {
            const step *t = &steps[j];
            size_t mask = fds_plan_coalition(s->plan, 2 + r)[0], members = 0;
            for (size_t i = 0; i < N; i++)
                members += is_member(s, t, i) && bit(mask, i);
            p->d[r * p->size + N + j] =
                ((members >= t->at) + (members >= t->of + 1 - t->at)) / (real)2;
        }
}

/* phi(g) + phi(v - g), g fitted with the milder weights, as if case left_out were not there, and as if
 * the target of case bumped were higher by 1. errors: of the targets of all cases, or NULL. */
static void solve_counts(const subject *s, const fds_ls_report *report, int left_out, int bumped,
                         real *phi, real *errors) {
    step steps[16];
    size_t count = list_steps(s->groups, steps);
    real theta[32];
    problem fit = make_problem(s->plan, &s->game, COLUMN, count);
    problem rest = make_problem(s->plan, &s->game, COLUMN, 0);
    for (size_t r = 0; r < fit.rows; r++) /* a target is (v(s) - v(1-s)) / 2, or v(s) */
        if ((int)(r / fit.per_case) == bumped) {
            fit.u[r] += r % fit.per_case ? -1 : 1;
            rest.u[r] += r % fit.per_case ? -1 : 1;
        }
    set_steps(&fit, s, steps, count);
    set_weights(&fit, s->plan, true);
    set_penalty(&fit, s->groups, N, report->shrink, 0);
    reference_solve(&fit, left_out, theta);
    for (size_t r = 0; r < rest.rows; r++)
        for (size_t j = 0; j < fit.size; j++)
            rest.u[r] -= fit.d[r * fit.size + j] * theta[j];
    rest.total = 0;
    set_penalty(&rest, s->groups, N, report->shrink_rest, 0);
    reference_solve(&rest, left_out, phi);
    for (size_t r = 0; errors && r < rest.rows; r++) {
        real e = rest.u[r], sign = r % rest.per_case ? -1 : 1;
        for (size_t j = 0; j < N; j++)
            e -= rest.d[r * N + j] * phi[j];
        errors[r / rest.per_case] =
            (sign > 0 ? 0 : errors[r / rest.per_case]) + sign * e / (real)rest.per_case;
    }
    for (size_t i = 0; i < N; i++) {
        phi[i] += theta[i];
        for (size_t j = 0; j < count; j++)
            phi[i] += is_member(s, &steps[j], i) ? theta[N + j] / (real)steps[j].of : 0;
    }
    assert_true(!report->features || report->features == N + count);
    problem_free(&fit);
    problem_free(&rest);
}

static void check_counts(subject *s) {
    double got[N], errors[N];
    real wanted[N];
    fds_ls_params params = {.adjust = FDS_ADJUST_COUNTS, .groups = s->groups};
    fds_ls_report report = solve_array(s->plan, &s->game, &params, got, errors);
    solve_counts(s, &report, NONE, NONE, wanted, NULL);
    assert_true(report.ridge == 0);
    for (size_t i = 0; i < N; i++)
        assert_true(fabs(got[i] - (double)wanted[i]) <= 1e-9);
}

static void counts_are_the_fitted_game_and_the_rest(void **state) {
    (void)state;
    each_subject(check_counts);
}

/* Both fits lose the pair, which a single division by 1 - leverage says nearly. */
static void check_counts_errors(subject *s) {
    double got[N], errors[N], least = INFINITY, greatest = 0;
    real all[N], without[N], squares[N] = {0};
    fds_ls_params params = {.adjust = FDS_ADJUST_COUNTS, .groups = s->groups};
    fds_ls_report report = solve_array(s->plan, &s->game, &params, got, errors);
    problem p = make_problem(s->plan, &s->game, COLUMN, 0);
    solve_counts(s, &report, NONE, NONE, all, NULL);
    for (size_t c = 0; c < report.pairs; c++) {
        solve_counts(s, &report, (int)c, NONE, without, NULL);
        for (size_t i = 0; i < N; i++)
            squares[i] += p.unseen[c] * (without[i] - all[i]) * (without[i] - all[i]);
    }
    problem_free(&p);
    for (size_t i = 0; i < N; i++) {
        double ratio = errors[i] / (double)sqrtl(squares[i]);
        least = fmin(least, ratio);
        greatest = fmax(greatest, is_greatest(got, i) ? 0 : ratio);
    }
    print_message("# counts, %s, strengths %g and %g: errors %.2f to %.2f times the jackknife's\n",
                  fds_plan_is_paired(s->plan) ? "pairs" : "single coalitions", report.shrink,
                  report.shrink_rest, least, greatest);
    assert_true(least > 0.95 && greatest < 1.05);
}

static void counts_errors_are_near_those_of_the_jackknife(void **state) {
    (void)state;
    each_subject(check_counts_errors);
}

/* ---- the risk by which the rest is shrunk ---- */

enum { MOST_PAIRS = 256 };

/* By differences: everything is linear in the targets. */
static real naive_risk(const subject *s, double fit_strength, double strength) {
    const fds_ls_report by = {.shrink = fit_strength, .shrink_rest = strength},
                        plainly = {.shrink = fit_strength};
    problem p = make_problem(s->plan, &s->game, COLUMN, 0);
    size_t pairs = p.rows / p.per_case;
    real plain[N], shrunk[N], risk = 0, bumped[N], others[N];
    real errors[MOST_PAIRS], after[MOST_PAIRS];
    assert_true(pairs <= MOST_PAIRS);
    solve_counts(s, &by, NONE, NONE, shrunk, NULL);
    solve_counts(s, &plainly, NONE, NONE, plain, errors);
    for (size_t i = 0; i < N; i++)
        risk += (shrunk[i] - plain[i]) * (shrunk[i] - plain[i]);
    for (size_t c = 0; c < pairs; c++) {
        solve_counts(s, &by, NONE, (int)c, bumped, NULL);
        solve_counts(s, &plainly, NONE, (int)c, others, after);
        real left = fmaxl(after[c] - errors[c], 0.1L); /* 1 - leverage */
        for (size_t i = 0; i < N; i++) {
            real a = bumped[i] - shrunk[i], a0 = others[i] - plain[i];
            risk += (2 * a * a0 - a0 * a0) * p.unseen[c] * errors[c] * errors[c] / (left * left);
        }
    }
    problem_free(&p);
    return risk;
}

static void check_risk(subject *s) {
    static const double strengths[] = {0, 10, 30, 100, 300, 1000};
    double got[N];
    real least = INFINITY, chosen = NAN;
    fds_ls_params params = {.adjust = FDS_ADJUST_COUNTS, .groups = s->groups};
    fds_ls_report report = solve_array(s->plan, &s->game, &params, got, NULL);
    for (size_t k = 0; k < COUNT(strengths); k++) {
        real risk = naive_risk(s, report.shrink, strengths[k]);
        least = fminl(least, risk);
        if (report.shrink_rest == strengths[k])
            chosen = risk;
    }
    assert_true(chosen <= least + 1e-9L * fabsl(least));
}

static void the_rest_is_shrunk_by_the_strength_of_least_risk(void **state) {
    (void)state;
    each_subject(check_risk);
}

/* ---- many columns ---- */

/* The choice is made by a sample of the columns. Where all are multiples of one, it is that of the
 * one, whichever are looked at. */
static void the_choice_of_many_columns_is_that_of_one(void **state) {
    (void)state;
    static const size_t widths[] = {2, 255, 256, 257, 1300};
    subject s = make_subject(FDS_SAMPLER_LEVERAGE, 60, 1);
    fds_ls_params params = {.adjust = FDS_ADJUST_COUNTS, .groups = s.groups};
    double got[N];
    fds_ls_report one = solve_array(s.plan, &s.game, &params, got, NULL);
    for (size_t w = 0; w < COUNT(widths); w++) {
        size_t columns = widths[w];
        double *v = need(columns << N, sizeof *v), *values = need(N * columns, sizeof *values);
        for (size_t mask = 0; mask < (size_t)1 << N; mask++)
            for (size_t c = 0; c < columns; c++)
                v[mask * columns + c] = s.game.v[mask] * (double)(1 + c % 100);
        array_game game = {N, columns, v};
        fds_ls_report report = solve_array(s.plan, &game, &params, values, NULL);
        assert_true(report.shrink == one.shrink && report.shrink_rest == one.shrink_rest);
        assert_true(fabs(report.explained - one.explained) <= 1e-9);
        for (size_t i = 0; i < N * columns; i++)
            assert_true(fabs(values[i] - got[i / columns] * (double)(1 + i % columns % 100)) <=
                        1e-11);
        free(v);
        free(values);
    }
    subject_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_is_the_constrained_minimum),
        cmocka_unit_test(plain_of_few_coalitions_is_the_constrained_minimum_with_the_ridge),
        cmocka_unit_test(plain_errors_are_those_of_the_jackknife),
        cmocka_unit_test(shrunk_values_and_errors_are_those_of_the_penalty_told),
        cmocka_unit_test(errors_of_few_coalitions_say_what_shrinking_takes_from_each_value),
        cmocka_unit_test(the_strength_is_the_weakest_that_predicts_nearly_best),
        cmocka_unit_test(counts_are_the_fitted_game_and_the_rest),
        cmocka_unit_test(counts_errors_are_near_those_of_the_jackknife),
        cmocka_unit_test(the_rest_is_shrunk_by_the_strength_of_least_risk),
        cmocka_unit_test(the_choice_of_many_columns_is_that_of_one),
    };
    return cmocka_run_group_tests_name("game/ls_reference", tests, NULL, NULL);
}
