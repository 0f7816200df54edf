/* SPDX-License-Identifier: Apache-2.0
 * How long least squares will take: the operations of each stage, counted, over what this processor
 * does in a second, measured on small products in a twentieth of a second. */
#include "game/ls_cg.h"

#include <cblas.h>
#include <math.h>

/* Iterations of conjugate gradients, as counted in a few games: while choosing and for the traces, on one
 * tile of columns, and for the values of each tile. */
enum { CHOOSING = 110, SOLVING = 30 };
static const double TRY_S = 0.05;

/* Multiplications and additions per second of products of matrices. */
static fds_status measure_products(double *rate, fds_error *err) {
    enum { N = 384 };
    OWNED double *a = NULL;
    size_t times = 0;
    TRY(NEW(a, 3 * N * N, err));
    for (size_t i = 0; i < 2 * N * N; i++)
        a[i] = (double)(i % 7);
    double start_s = fds__now_s();
    do {
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, N, N, N, 1, a, N, a + N * N, N, 0,
                    a + 2 * N * N, N);
        times++;
    } while (fds__now_s() - start_s < TRY_S);
    *rate = 2.0 * N * N * N * (double)times / (fds__now_s() - start_s);
    return FDS_OK;
}

/* Bits times tiles of columns per second. */
static fds_status measure_bits(size_t pairs, size_t players, double *rate, fds_error *err) {
    const size_t rows = MIN(pairs, (size_t)4096), columns = MIN(players, (size_t)4096);
    const size_t words = (columns + 31) / 32 * rows;
    OWNED uint32_t *bits = NULL;
    OWNED double *x = NULL;
    fds__isa_set set;
    size_t times = 0;
    TRY(fds__isa_choose(&set, err));
    TRY(NEW(bits, words, err));
    TRY(NEW(x, (rows + columns) * FDS__BITS_TILE + FDS__BITS_TABLE, err));
    fds_rng rng = fds_rng_make(0, FDS__PURPOSE_PROBE, 0, 1);
    for (size_t i = 0; i < words; i++)
        bits[i] = (uint32_t)fds_rng_u64(&rng);
    const fds__bits matrix = {rows, columns, bits};
    double *table = x + (rows + columns) * FDS__BITS_TILE, start_s = fds__now_s();
    do {
        TRY(fds__bits_multiply(&matrix, FDS__ISA_PICK(set, fds__bits), x, FDS__BITS_TILE, table,
                               x + columns * FDS__BITS_TILE, err));
        times++;
    } while (fds__now_s() - start_s < TRY_S);
    *rate = (double)rows * (double)columns * (double)times / (fds__now_s() - start_s);
    return FDS_OK;
}

static double ceil_div(double count, double each) { return ceil(count / each); }

/* Of conjugate gradients. */
static fds_status cg_seconds(double n, double pairs, double columns, double workers,
                             double *seconds, fds_error *err) {
    double rate, chunks = ceil_div(columns, FDS__CG_CHUNK),
                 tiles = ceil_div(columns, FDS__BITS_TILE);
    TRY(measure_bits((size_t)pairs, (size_t)n, &rate, err));
    *seconds = 2 * n * pairs / rate * (CHOOSING + SOLVING * tiles / MIN(workers, chunks));
    return FDS_OK;
}

/* Of the direct method; the terms are those of ls_solver.c, ls_choose.c, ls_rest.c, ls_parts.c and
 * ls_columns.c in turn. */
static double direct_operations(double n, double f, double m, double columns, fds_adjust adjust,
                                double workers) {
    bool with_fit = fds__ls_with_fit(adjust);
    double l = MIN(m, FDS__LS_LEFT_OUT), w = MIN(columns, FDS__LS_SAMPLE);
    double candidates = adjust == FDS_ADJUST_CONTROL ? 1 : adjust == FDS_ADJUST_NONE ? 4 : 11;
    double inverse = 2; /* times f^3: the operations are f^3, and slower than a product's */
    double gram = 2 * m * n * n + (with_fit ? 2 * m * f * (n + f) : 0);
    double sample = 2 * m * w * (n + f);
    double path = 4; /* times f^3: half of the 4/3 f^3 operations read the matrix for each column */
    double scores = 2 * l * f * w / MIN(workers, candidates);
    double turned = 2 * f * f * (l + w); /* or as much by the solver where there is one candidate */
    double choosing = inverse * f * f * f + turned + candidates * scores +
                      (candidates > 1 ? path * f * f * f : 0);
    double rest = with_fit ? 2 * f * l * (f + n) + (path + inverse) * n * n * n +
                                 2 * n * n * (3 * l + w) + 7 * 10 * n * (l + w)
                           : 0;
    double errors =
        2 * m * n * n + (with_fit ? 2 * n * f * f + 2 * n * n * f + 2 * m * f * (n + f) : 0);
    double chunks = ceil_div(columns, FDS__LS_CHUNK);
    double influence = 2 * m * n * n + (with_fit ? 2 * m * n * f : 0);
    bool is_kept = chunks > 1 && fds__ls_kept((uint64_t)m, (uint64_t)n) > 0;
    double chunk = is_kept ? 0 : chunks * influence;
    double column =
        columns * (2 * m * (n + f) + 2 * f * f + 2 * n * (f + n) + 2 * m * (f + n) + 2 * n * n);
    return gram + sample + choosing + rest + errors + (is_kept ? influence : 0) +
           (chunk + column) / MIN(workers, chunks);
}

fds_status fds__ls_seconds(const fds_plan *plan, const fds_ls_params *params, size_t columns,
                           unsigned threads, double *seconds, fds_error *err) {
    const fds_groups *groups = fds__ls_groups(plan, params),
                     *wholes = fds__design_wholes(plan, groups);
    double n = (double)(wholes ? fds_groups_count(wholes) : plan->players);
    double pairs = (double)(plan->rows / (plan->is_paired ? 2 : 1)), rate = 1;
    double workers = threads ? threads : fds_processors();
    size_t f;
    TRY(fds__design_count(plan, groups, fds__ls_with_fit(params->adjust), &f, err));
    bool is_many = fds__ls_is_many(plan, groups, f, columns);
    fds__blas_begin();
    fds_status status = is_many ? cg_seconds(n, pairs, (double)columns, workers, seconds, err)
                                : measure_products(&rate, err);
    fds__blas_end();
    if (status == FDS_OK && !is_many)
        *seconds =
            direct_operations(n, (double)f, pairs, (double)columns, params->adjust, workers) / rate;
    return status;
}
