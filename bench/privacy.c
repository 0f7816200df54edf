/* SPDX-License-Identifier: Apache-2.0
 *
 * Private statements, measured: bench-privacy [--quick] prints Markdown, and fails if a figure is not as
 * promised.
 *
 *   speed      draws per second, with the system's random bits
 *   accuracy   100 providers, 100,000 predictions: the standard deviation of a statement
 *   audit      20 pairs of neighbouring ledgers: how well can two of them be told apart by their
 *              statements, drawn by the functions that a release uses? For an event S,
 *              epsilon >= log((P(S) - delta) / P'(S)). One half of the draws chooses S; the other half
 *              bounds both probabilities (Clopper-Pearson), so that all bounds hold together with 99 %
 *              confidence. None may be above what is promised.
 *   mutants    the same for paths with a mistake in them: each bound must be above it
 *
 * --quick: fewer draws and a small ledger, from a fixed stream of bits; TAP instead of Markdown. */
#include "ledger/ledger.h"

#include <ftw.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 8, PAIRS = 20, MOST_STATISTICS = 2 * MOST + 2, CUTS = 64 };
#define CONFIDENCE 0.99

static bool is_quick;
static size_t draws = 100000;
static char folder[64];

static fds_error why;
static void must(fds_status status) {
    if (status == FDS_OK)
        return;
    fprintf(stderr, "bench-privacy: %s\n", why.text);
    exit(2);
}

/* ---- random bits ---- */

static fds_rng philox;
static fds_status fill_from_philox(void *context, void *out, size_t size, fds_error *error) {
    uint8_t *bytes = out;
    (void)context, (void)error;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = fds_rng_u64(&philox);
        memcpy(bytes + i, &word, 8);
    }
    return FDS_OK;
}
static const fds__bits fixed_bits = {.fill = fill_from_philox};
static const fds__bits *bits(void) { return is_quick ? &fixed_bits : &fds__system_bits; }

/* ---- ledgers ---- */

static int64_t clock_ms;
static int64_t tell_time(void) { return clock_ms; }
static int64_t day_of(const char *text) {
    int64_t day = 0;
    ledger_day_read(text, &day);
    return day;
}

/* What is promised, and about whom. */
typedef struct {
    const char *mechanism, *epsilon, *per_customer, *limit;
    size_t providers;
} promise;

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *at) {
    (void)about, (void)type, (void)at;
    return remove(path);
}
static void remove_folder(void) { nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

/* A ledger of its own file, with the customers a and b; c is who makes the difference. */
static fds_ledger *make_ledger(const promise *p) {
    static unsigned count;
    char path[128], names[128][32];
    const char *payees[128];
    uint64_t number;
    fds_ledger *l;
    fds_params *params = fds_params_create("ledger"), *privacy = fds_params_create("privacy");
    snprintf(path, sizeof path, "%s/%u.db", folder, count++);
    must(fds_ledger_create(path, params, &why));
    must(fds_ledger_open(path, FDS_LEDGER_WRITE, NULL, &l, &why));
    clock_ms = day_of("2096-10-05") * LEDGER_DAY_MS;
    l->now_ms = tell_time;
    must(fds_params_set(privacy, "price_limit", p->limit, &why));
    must(fds_params_set(privacy, "epsilon", p->epsilon, &why));
    must(fds_params_set(privacy, "mechanism", p->mechanism, &why));
    must(fds_params_set(privacy, "per_customer", p->per_customer, &why));
    must(fds_ledger_set_private(l, privacy, NULL, &why));
    fds_params_free(params);
    fds_params_free(privacy);
    for (char name[2] = "a"; *name <= 'c'; ++*name) {
        must(fds_ledger_account(l, FDS_ACCOUNT_CUSTOMER, name, &number, &why));
        must(fds_ledger_topup(l, number, INT64_C(1) << 50, NULL, NULL, NULL, &why));
    }
    for (size_t i = 0; i < p->providers; i++) {
        snprintf(names[i], sizeof names[i], "provider%03zu", i);
        payees[i] = names[i];
    }
    fds_ledger_run run = {.name = "m",
                          .sha256 =
                              "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                          .payees = payees,
                          .count = p->providers};
    must(fds_ledger_add_run(l, &run, &number, &why));
    return l;
}

static fds_charge charge_of(const fds_ledger *l, const char *customer, int64_t amount,
                            const double *values) {
    fds_charge c = {.amount = amount, .label = "6", .confidence = NAN, .values = values};
    must(fds_ledger_find(l, customer, &c.customer, &why));
    return c;
}

static void charge(fds_ledger *l, fds_charge *charges, size_t count) {
    must(fds_ledger_charge(l, charges, count, &why));
    for (size_t i = 0; i < count; i++)
        if (charges[i].status != FDS_OK) {
            fprintf(stderr, "bench-privacy: a charge is refused: %s\n", charges[i].reason);
            exit(2);
        }
}

/* The exact sums of October, of providers alone. */
static void sums_of(const fds_ledger *l, int64_t *out) {
    int64_t *sums = calloc(fds_ledger_accounts(l), sizeof *sums);
    size_t count = 0;
    must(ledger_private_sums(l, day_of("2096-10-01"), day_of("2096-10-31"), NULL, sums, &why));
    for (uint64_t i = 0; i < fds_ledger_accounts(l); i++)
        if (fds_ledger_account_kind(l, i) == FDS_ACCOUNT_PROVIDER)
            out[count++] = sums[i];
    free(sums);
}

/* ---- Clopper and Pearson's bounds ---- */

/* The continued fraction of the incomplete beta function (Lentz). */
static double beta_fraction(double a, double b, double x) {
    double c = 1, d = 1 / (1 - (a + b) * x / (a + 1)), h = d;
    for (int m = 1; m <= 1000; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / (1 + even * d);
        c = 1 + even / c;
        h *= d * c;
        d = 1 / (1 + odd * d);
        c = 1 + odd / c;
        h *= d * c;
        if (fabs(d * c - 1) < 1e-15)
            break;
    }
    return h;
}

static double beta_cdf(double a, double b, double x) {
    if (x <= 0 || x >= 1)
        return x >= 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                     : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

static double beta_quantile(double a, double b, double p) {
    double low = 0, high = 1;
    for (int i = 0; i < 200; i++) {
        double middle = (low + high) / 2;
        *(beta_cdf(a, b, middle) < p ? &low : &high) = middle;
    }
    return (low + high) / 2;
}

static double least_probability(size_t hits, size_t count, double alpha) {
    return hits ? beta_quantile((double)hits, (double)(count - hits + 1), alpha) : 0;
}
static double most_probability(size_t hits, size_t count, double alpha) {
    return hits < count ? beta_quantile((double)(hits + 1), (double)(count - hits), 1 - alpha) : 1;
}

/* ---- telling two ledgers apart ---- */

/* One of two neighbours: its sums, and how a statement is made of them. */
typedef struct side side;
typedef void (*drawing)(const side *s, int64_t *out);
struct side {
    ledger_privacy privacy;
    int64_t sums[MOST];
    size_t count;
    drawing draw;
};

static void draw_as_released(const side *s, int64_t *out) {
    must(ledger_private_draw(&s->privacy, bits(), s->sums, s->count, out, &why));
}

/* Numbers of a statement: which is likelier (the best one if noise is as it should be), each provider
 * by itself, neighbours' differences, all together. */
static size_t measure(const side *a, const side *b, const int64_t *x, double *out) {
    size_t used = 1;
    double likelier = 0, sum = 0;
    for (size_t i = 0; i < a->count; i++) {
        double of_a = (double)x[i] - ldexp((double)a->sums[i], -LEDGER_GRID),
               of_b = (double)x[i] - ldexp((double)b->sums[i], -LEDGER_GRID);
        likelier += a->privacy.mechanism == FDS__LAPLACE ? fabs(of_b) - fabs(of_a)
                                                         : of_b * of_b - of_a * of_a;
        sum += (double)x[i];
        out[used++] = (double)x[i];
        if (i + 1 < a->count)
            out[used++] = (double)(x[i] - x[i + 1]);
    }
    out[0] = likelier;
    out[used++] = sum;
    return used;
}

static int by_size(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* An event: a statistic is above, or below, a cut; and of which side it is likelier. */
typedef struct {
    double cut;
    bool is_above, is_of_b;
} event;

static size_t count_hits(const double *values, size_t count, const event *e) {
    size_t hits = 0;
    for (size_t i = 0; i < count; i++)
        hits += e->is_above ? values[i] >= e->cut : values[i] <= e->cut;
    return hits;
}

/* The event with the greatest ratio of probabilities, by half of the draws. */
static event choose(const double *a, const double *b, size_t count, double delta) {
    event best = {0};
    double greatest = -HUGE_VAL, *sorted = malloc(2 * count * sizeof *sorted);
    memcpy(sorted, a, count * sizeof *a);
    memcpy(sorted + count, b, count * sizeof *b);
    qsort(sorted, 2 * count, sizeof *sorted, by_size);
    for (int i = 0; i < 4 * CUTS; i++) {
        event e = {sorted[(size_t)(i / 4) * (2 * count - 1) / (CUTS - 1)], i & 1, i & 2};
        double likely = (double)count_hits(e.is_of_b ? b : a, count, &e) / (double)count - delta,
               unlikely = ((double)count_hits(e.is_of_b ? a : b, count, &e) + 1) / (double)count;
        /* rare events have wide bounds: about three standard deviations are taken off */
        double ratio = likely > 0 ? log(likely / unlikely) - 3 / sqrt(unlikely * (double)count) -
                                        3 / sqrt(likely * (double)count)
                                  : -HUGE_VAL;
        if (ratio > greatest) {
            greatest = ratio;
            best = e;
        }
    }
    free(sorted);
    return best;
}

/* A lower bound of epsilon, which holds with all others at the stated confidence. */
static double bound_epsilon(const side *a, const side *b, double delta) {
    size_t statistics = 0, half = draws / 2;
    int64_t x[MOST];
    double one[MOST_STATISTICS], greatest = 0;
    double *of[2] = {malloc(draws * sizeof one), malloc(draws * sizeof one)};
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < draws; i++) {
            const side *from = s ? b : a;
            from->draw(from, x);
            statistics = measure(a, b, x, one);
            for (size_t k = 0; k < statistics; k++)
                of[s][k * draws + i] = one[k];
        }
    double alpha = (1 - CONFIDENCE) / (2.0 * PAIRS * (double)statistics);
    for (size_t k = 0; k < statistics; k++) {
        const double *at_a = of[0] + k * draws, *at_b = of[1] + k * draws;
        event e = choose(at_a, at_b, half, delta);
        size_t rest = draws - half;
        size_t likely = count_hits((e.is_of_b ? at_b : at_a) + half, rest, &e),
               unlikely = count_hits((e.is_of_b ? at_a : at_b) + half, rest, &e);
        double least = least_probability(likely, rest, alpha) - delta,
               most = most_probability(unlikely, rest, alpha);
        if (least > 0)
            greatest = fmax(greatest, log(least / most));
    }
    free(of[0]);
    free(of[1]);
    return greatest;
}

/* ---- pairs of neighbours ---- */

/* Numbers and times of predictions are public, so neighbours have the same: what is bought differs. */
typedef enum { FREE, REPLACED, ONE_VIEW, CUSTOMER } relation;
static const char *const relation_names[] = {
    "one prediction, or a free one", "one prediction, or another", "the same, seen by one provider",
    "all of a customer, or free ones"};

typedef struct {
    relation relation;
    promise promise;
    double delta;
} pair;

static const char *const epsilons[] = {"1", "0.5", "2", "1"};

/* 12 of single predictions, 4 of customers, 4 of Gaussian noise. */
static pair make_pair(size_t i) {
    static const relation relations[] = {FREE, REPLACED, ONE_VIEW, CUSTOMER, REPLACED};
    bool is_gauss = i >= 16;
    pair p = {.relation = relations[i / 4],
              .promise = {is_gauss ? "gauss" : "laplace", epsilons[i % 4], "0", "0.01", 2 + i % 4},
              .delta = is_gauss ? 1e-6 : 0};
    if (p.relation == CUSTOMER)
        p.promise.per_customer = "3";
    return p;
}

/* What is promised for this relation: another prediction moves the sums twice as far in L1, and by the
 * root of 2 in L2, which doubles rho. */
static double promised_of(const pair *p, const ledger_privacy *privacy) {
    double cost = (double)privacy->cost_nano / (double)FDS__NANO;
    bool is_double = p->relation == REPLACED;
    return privacy->mechanism == FDS__GAUSS
               ? fds__zcdp_epsilon(is_double ? 2 * cost : cost, p->delta)
               : cost * (is_double ? 2 : 1);
}

/* The values of what makes the difference: all to one provider, where noise has most to hide, or any. */
static void differing_values(size_t i, bool is_other, double *values, size_t count, fds_rng *rng) {
    for (size_t k = 0; k < count; k++)
        values[k] = i % 2 ? fds_rng_unit(rng) : k == (is_other ? 1u : 0u);
}

/* One side: predictions of others, with c's among them; on the second side other ones or free ones. */
static fds_ledger *make_side(size_t i, const pair *p, bool is_second) {
    double values[MOST];
    fds_ledger *l = make_ledger(&p->promise);
    fds_rng others = fds_rng_make(i, 2, 0, 0), own = fds_rng_make(i, 2, 1, is_second);
    size_t own_count = p->relation == CUSTOMER ? 10 : 1;
    bool is_free = is_second && (p->relation == FREE || p->relation == CUSTOMER);
    for (size_t k = 0; k < 30; k++) {
        if (k % 3 == 1 && k / 3 < own_count) {
            differing_values(i, is_second, values, p->promise.providers, &own);
            fds_charge c = charge_of(l, "c", is_free ? 0 : 10000, values);
            charge(l, &c, 1);
        }
        for (size_t n = 0; n < p->promise.providers; n++)
            values[n] = fds_rng_unit(&others) - 0.3;
        fds_charge c =
            charge_of(l, k % 2 ? "a" : "b", (int64_t)fds_rng_below(&others, 10001), values);
        charge(l, &c, 1);
    }
    return l;
}

static side read_side(fds_ledger *l, const promise *p, drawing draw) {
    side s = {.privacy = l->state.privacy, .count = p->providers, .draw = draw};
    sums_of(l, s.sums);
    return s;
}

/* What is seen of it: all statements, or the first one. */
static side read_view(fds_ledger *l, const pair *p) {
    side s = read_side(l, &p->promise, draw_as_released);
    if (p->relation == ONE_VIEW)
        s.count = 1;
    return s;
}

static size_t failures, tests;
static void report(bool is_right, const char *what) {
    tests++;
    failures += !is_right;
    if (is_quick)
        printf("%s %zu - %s\n", is_right ? "ok" : "not ok", tests, what);
    fflush(stdout);
}

static void audit(void) {
    size_t wrong = 0, count = is_quick ? 6 : PAIRS;
    if (!is_quick)
        printf("\n## Audit of %d pairs of ledgers, %zu statements of each side\n\n"
               "| pair | neighbours | noise | providers | promised | at least (99 %%) |\n"
               "| --- | --- | --- | --- | --- | --- |\n",
               PAIRS, draws);
    for (size_t k = 0; k < count; k++) {
        size_t i = is_quick ? k * 4 - (k == 5) : k; /* some of each kind */
        pair p = make_pair(i);
        fds_ledger *first = make_side(i, &p, false), *second = make_side(i, &p, true);
        side a = read_view(first, &p), b = read_view(second, &p);
        fds_ledger_close(first);
        fds_ledger_close(second);
        double found = bound_epsilon(&a, &b, p.delta), promised = promised_of(&p, &a.privacy);
        wrong += found > promised;
        if (!is_quick)
            printf("| %zu | %s | %s | %zu | %.4g%s | %.3f |\n", i + 1, relation_names[p.relation],
                   p.promise.mechanism, p.promise.providers, promised,
                   p.delta > 0 ? ", delta 1e-6" : "", found);
        else
            printf("# %s, %s: promised %.4g, at least %.3f\n", relation_names[p.relation],
                   p.promise.mechanism, promised, found);
        fflush(stdout);
    }
    report(wrong == 0, "no pair is told apart better than promised");
}

/* ---- mutants ---- */

static void draw_half(const side *s, int64_t *out) {
    side half = *s;
    half.privacy.price_limit /= 2;
    draw_as_released(&half, out);
}

static void draw_same(const side *s, int64_t *out) {
    draw_as_released(s, out);
    int64_t noise = out[0] - (s->sums[0] >> LEDGER_GRID);
    for (size_t i = 1; i < s->count; i++)
        out[i] = (s->sums[i] >> LEDGER_GRID) + noise;
}

/* Whoever asks for a print gets another draw, and takes the mean of sixteen. */
static void draw_often(const side *s, int64_t *out) {
    int64_t one[MOST], sum[MOST] = {0};
    for (int k = 0; k < 16; k++) {
        draw_as_released(s, one);
        for (size_t i = 0; i < s->count; i++)
            sum[i] += one[i];
    }
    for (size_t i = 0; i < s->count; i++)
        out[i] = sum[i] / 16;
}

static void show_mutant(const char *name, const side *a, const side *b, double promised) {
    double found = bound_epsilon(a, b, 0);
    if (is_quick)
        printf("# promised %g, at least %.3f\n", promised, found);
    else
        printf("| %s | %g | %.3f |\n", name, promised, found);
    char text[160];
    snprintf(text, sizeof text, "the audit finds the mutant: %s", name);
    report(found > promised, text);
}

/* What the ledger has paid, carries and all, as the sums. */
static void take_balances(const fds_ledger *l, side *s) {
    size_t count = 0;
    for (uint64_t i = 0; i < fds_ledger_accounts(l); i++)
        if (fds_ledger_account_kind(l, i) == FDS_ACCOUNT_PROVIDER)
            s->sums[count++] = fds_ledger_balance(l, i) * (INT64_C(1) << LEDGER_GRID);
}

/* Twenty predictions of one unit; one of them is free (20: none). */
enum { UNITS = 20 };
static void unit_values(uint64_t seed, size_t k, double values[3]) {
    fds_rng rng = fds_rng_make(seed, 1, k, 0);
    for (int n = 0; n < 3; n++)
        values[n] = fds_rng_unit(&rng);
}

/* The price limit is one unit too. */
static side carried_side(uint64_t seed, size_t free_one) {
    promise p = {"laplace", "1", "0", "0.000001", 3};
    fds_ledger *l = make_ledger(&p);
    for (size_t k = 0; k < UNITS; k++) {
        double values[3];
        unit_values(seed, k, values);
        fds_charge c = charge_of(l, "a", k != free_one, values);
        charge(l, &c, 1);
    }
    side s = read_side(l, &p, draw_as_released);
    take_balances(l, &s);
    fds_ledger_close(l);
    return s;
}

/* The same by the carry alone: how many units the shares differ by. */
static int64_t carried_distance(uint64_t seed, size_t free_one) {
    int64_t sums[2][3] = {{0}}, moved = 0;
    for (int with = 0; with < 2; with++) {
        fds__carry *carry;
        must(fds__carry_create(3, &carry, &why));
        for (size_t k = 0; k < UNITS; k++) {
            double values[3];
            int64_t shares[3];
            fds__pay_rule rule;
            unit_values(seed, k, values);
            for (int n = 0; n < 3; n++)
                values[n] = (double)(float)values[n]; /* as they are stored */
            must(fds__carry_pay(carry, values, with || k != free_one, FDS__POLICY_CLIP, shares,
                                &rule, &why));
            for (int n = 0; n < 3; n++)
                sums[with][n] += shares[n];
        }
        fds__carry_free(carry);
    }
    for (int n = 0; n < 3; n++)
        moved += llabs(sums[0][n] - sums[1][n]);
    return moved;
}

static void carried_mutant(void) {
    uint64_t seed = 0;
    size_t free_one = 0;
    while (carried_distance(seed, free_one) < 3) {
        free_one = (free_one + 1) % UNITS;
        seed += free_one == 0;
    }
    side all = carried_side(seed, UNITS), other = carried_side(seed, free_one);
    show_mutant("sums of shares that carry rounding", &all, &other, 1);
}

static void mutants(void) {
    if (!is_quick)
        printf("\n## Mutants\n\n| mistake | promised | at least (99 %%) |\n| --- | --- | --- |\n");
    const struct {
        const char *name;
        drawing draw;
    } of_draws[] = {{"half the scale", draw_half},
                    {"one noise for all providers", draw_same},
                    {"drawn again for every print", draw_often}};
    pair p = make_pair(0);
    fds_ledger *first = make_side(0, &p, false), *second = make_side(0, &p, true);
    for (size_t k = 0; k < 3; k++) {
        side a = read_side(first, &p.promise, of_draws[k].draw),
             b = read_side(second, &p.promise, of_draws[k].draw);
        show_mutant(of_draws[k].name, &a, &b, promised_of(&p, &a.privacy));
    }
    fds_ledger_close(first);
    fds_ledger_close(second);
    p = make_pair(12);
    first = make_side(12, &p, false);
    second = make_side(12, &p, true);
    ledger_privacy kept = first->state.privacy;
    first->state.privacy.per_customer = 0; /* sums without the cap, noise with it */
    side a = read_side(first, &p.promise, draw_as_released),
         b = read_side(second, &p.promise, draw_as_released);
    a.privacy = kept;
    show_mutant("no cap on a customer's predictions", &a, &b, promised_of(&p, &kept));
    fds_ledger_close(first);
    fds_ledger_close(second);
    carried_mutant();
}

/* ---- speed and accuracy ---- */

/* Of the processor, so that other programs do not count. */
static double processor_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void speed(void) {
    enum { COUNT = 200000 };
    static int64_t out[COUNT];
    printf("\n## Speed\n\n| noise | scale | draws per processor second |\n| --- | --- | --- |\n");
    for (int i = 0; i < 2; i++) {
        fds__dp_noise noise = {i ? FDS__GAUSS : FDS__LAPLACE, UINT64_C(10000) << LEDGER_GRID,
                               FDS__NANO};
        double start = processor_s();
        must(fds__dp_draw(&noise, &fds__system_bits, out, COUNT, &why));
        double rate = COUNT / (processor_s() - start);
        printf("| %s | %.3g | %.0f |\n", fds__mechanism_name(noise.mechanism),
               fds__dp_deviation(&noise) / (i ? 1 : sqrt(2)), rate);
        report(rate >= 1e5, "100,000 draws per processor second");
    }
}

static void fill(fds_ledger *l, size_t providers, size_t predictions) {
    enum { BATCH = 1000 };
    double *values = malloc(BATCH * providers * sizeof *values);
    fds_charge *charges = malloc(BATCH * sizeof *charges);
    fds_rng rng = fds_rng_make(7, 2, 0, 0);
    for (size_t done = 0; done < predictions; done += BATCH) {
        for (size_t i = 0; i < BATCH; i++) {
            for (size_t k = 0; k < providers; k++)
                values[i * providers + k] = fds_rng_unit(&rng);
            charges[i] = charge_of(l, i % 2 ? "a" : "b", 10000, values + i * providers);
        }
        charge(l, charges, BATCH);
    }
    free(values);
    free(charges);
}

static void accuracy(void) {
    enum { PROVIDERS = 100, TURNS = 1000 };
    size_t predictions = is_quick ? 2000 : 100000;
    promise p = {"laplace", "1", "0", "0.01", PROVIDERS};
    fds_ledger *l = make_ledger(&p);
    fill(l, PROVIDERS, predictions);
    int64_t sums[PROVIDERS], x[PROVIDERS];
    double start = fds__now_s(), squares = 0, mean = 0, off = 0;
    sums_of(l, sums);
    double seconds = fds__now_s() - start;
    for (size_t i = 0, k = 0; i < fds_ledger_accounts(l); i++)
        if (fds_ledger_account_kind(l, i) == FDS_ACCOUNT_PROVIDER)
            off = fmax(off, fabs(ldexp((double)sums[k++], -LEDGER_GRID) -
                                 (double)fds_ledger_balance(l, i)));
    for (size_t t = 0; t < TURNS; t++) {
        must(ledger_private_draw(&l->state.privacy, bits(), sums, PROVIDERS, x, &why));
        for (size_t i = 0; i < PROVIDERS; i++) {
            double clean = ldexp((double)sums[i], -LEDGER_GRID);
            squares += ((double)x[i] - clean) * ((double)x[i] - clean);
            mean += (double)x[i] / (PROVIDERS * TURNS);
        }
    }
    double deviation = sqrt(squares / (PROVIDERS * TURNS)),
           stated = sqrt(2) * PROVIDERS / (double)predictions;
    if (is_quick)
        printf("# deviation over statement: %.4f %%, computed %.4f %%\n", 100 * deviation / mean,
               100 * stated);
    else
        printf("\n## Accuracy: %d providers, %zu predictions of 0.01, epsilon 1\n\n"
               "| what | figure |\n| --- | --- |\n"
               "| mean statement | %.6f |\n| standard deviation of the noise, %d draws | %.6f |\n"
               "| deviation over statement | %.4f %% |\n| sqrt(2) n / (epsilon N) | %.4f %% |\n"
               "| greatest difference of sums and shares, units | %.2f |\n"
               "| seconds for the sums | %.2f |\n",
               PROVIDERS, predictions, mean / 1e6, TURNS, deviation / 1e6, 100 * deviation / mean,
               100 * stated, off, seconds);
    report(fabs(deviation / mean / stated - 1) < 0.02, "a statement's error is as computed");
    /* a grid of 2^-16 rounds down by less than one step per prediction; carries owe less than ln n */
    report(off < ldexp((double)predictions, -LEDGER_GRID) + 6, "sums are those of the shares");
    fds_ledger_close(l);
}

int main(int argc, char **argv) {
    is_quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    draws = is_quick ? 10000 : 100000;
    philox = fds_rng_make(18, 3, 0, 0);
    snprintf(folder, sizeof folder, "%s/fds-privacy-XXXXXX", "/tmp");
    if (!mkdtemp(folder)) {
        perror("bench-privacy");
        return 2;
    }
    atexit(remove_folder);
    if (is_quick)
        printf("1..8\n");
    else
        speed();
    accuracy();
    audit();
    mutants();
    if (!is_quick)
        printf("\n%zu of %zu checks hold\n", tests - failures, tests);
    return failures ? 1 : 0;
}
