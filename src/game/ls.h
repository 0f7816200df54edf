/* SPDX-License-Identifier: Apache-2.0
 *
 * ls: what the files of least squares share.
 *
 *   ls_design.c  rows of the regression from coalitions
 *   ls_solver.c  the normal equations with the efficiency constraint, solved once for all columns
 *   ls_path.c    the same for many strengths of shrinkage, from one factorisation
 *   ls_choose.c  how strongly to shrink, chosen by leaving pairs out
 *   ls_rest.c    how strongly to shrink what the fitted game leaves, chosen by its risk
 *   ls_parts.c   everything that does not depend on the columns
 *   ls_columns.c values and errors of the columns, in chunks
 *   ls_noise.c   values whose differences are mostly noise, drawn towards the mean of their group
 *   ls.c         all of these in one call; ls_prepared.c the same with given strengths
 *
 * Notation, for m pairs, n players, F features, C columns; matrices are row-major:
 *   D (m, F)  features of the pairs; the first n columns are Z, one for each player
 *   U (m, C)  the targets
 *   A pair (s, 1-s) has D = (f(s) - f(1-s)) / 2 and U = (v(s) - v(1-s)) / 2: with the efficiency
 *   constraint nothing else of a pair depends on phi. In a plan without pairs each coalition
 *   counts as one, with D = f(s) and U = v(s) - v(0).
 *
 * The model of FDS_ADJUST_COUNTS and _CONTROL. g(s) = s'b + sum_j h_j(s) approximates v, where each
 * h_j is a step function of the number of members of one group, or of all players, in s. The Shapley
 * values of g are known: b_i, and for a step over a group of k players 1/k for each member. So phi(v) =
 * phi(g) + phi(v - g), and shrunk least squares with the Shapley kernel's weights give the last
 * term. g is fitted with milder weights (their square root), which lowers the variance; the last
 * term removes the bias as the number of coalitions grows.
 *
 * Noise. With FDS_ADJUST_SHRINK and FDS_ADJUST_COUNTS each value is then drawn towards the mean of
 * its group by what its standard error says (empirical Bayes): ls_noise.c.
 */
#ifndef FDS_GAME_LS_H
#define FDS_GAME_LS_H

#include "game.h"

enum {
    FDS__LS_BLOCK = 128,       /* pairs per matrix product */
    FDS__LS_CHUNK = 512,       /* columns per job */
    FDS__LS_SAMPLE = 256,      /* columns and */
    FDS__LS_LEFT_OUT = 1024,   /* pairs that choose the strengths */
    FDS__LS_MANY = 1024,       /* fewer unknowns are solved with matrices */
    FDS__LS_MOST_COARSE = 4096 /* groups and steps that are possible without matrices */
};

/* A step over the members of a group (or over all players, group = FDS__ALL). */
#define FDS__ALL UINT32_MAX
typedef struct fds__count_step {
    uint32_t group, at, of; /* at: the least count; of: members */
} fds__count_step;

typedef struct fds__design {
    const fds_plan *plan;
    const fds_groups *groups; /* or NULL: all players are one group */
    const fds_groups *wholes; /* where whole groups are players: the groups, else NULL */
    const fds_events *events; /* or NULL */
    size_t real;              /* players of the plan */
    size_t players;           /* n: those, or the groups that are players */
    size_t pairs, features;
    size_t group_count;
    fds__count_step *steps; /* (features - players), group by group */
    double *kernel;         /* (pairs): the plan's weights, mean 1 */
    double *mild;           /* (pairs): milder weights for the fit of g, mean 1 */
    double *unseen;         /* (pairs): share of the coalitions of this size that were not drawn;
                             * 1 for samplers that may repeat a coalition */
} fds__design;

/* The groups whose members no coalition of the plan tells apart, so that each group is one unknown and
 * its members share its value evenly; NULL where players are the unknowns. */
const fds_groups *fds__design_wholes(const fds_plan *plan, const fds_groups *groups);
/* How many real players unknown j stands for. */
static inline double fds__design_share(const fds__design *d, size_t j) {
    const uint32_t *members;
    return d->wholes ? (double)fds_groups_members(d->wholes, j, &members) : 1;
}
/* The number of features; FDS_ERR_LIMIT for too many. with_steps: including those of g. */
fds_status fds__design_count(const fds_plan *plan, const fds_groups *groups, bool with_steps,
                             size_t *features, fds_error *err);
/* The caller frees *out even after a failure. */
fds_status fds__design_create(const fds_plan *plan, const fds_groups *groups, bool with_steps,
                              const fds_events *events, fds__design *out, fds_error *err);
void fds__design_free(fds__design *design);
/* Reports how many pairs are done in a stage. Call it once per block, so that a cancelled job stops
 * soon. */
fds_status fds__design_report(const fds__design *design, const char *stage, size_t pairs,
                              double start_s, fds_error *err);
/* D of pairs first .. first+count-1: (count, features). */
void fds__design_rows(const fds__design *design, size_t first, size_t count, double *d);
/* The steps of a coalition's row: (features - players). */
void fds__design_steps(const fds__design *design, const uint64_t *coalition, double *row);
/* U of the same pairs for columns column .. column+width-1, minus share times control:
 * (count, stride). scratch: (3, width). */
fds_status fds__design_values(const fds__design *design, const fds_rows *rows,
                              const fds_rows *control, double share, unsigned worker, size_t first,
                              size_t count, size_t column, size_t width, size_t stride,
                              double *scratch, double *u, fds_error *err);
/* out = each row of x (rows, width) times its weight; out may be x */
void fds__weigh(const double *x, size_t rows, size_t width, const double *weights, double *out);
/* means (players, width): of x over each player's group */
void fds__design_group_means(const fds__design *design, const double *x, size_t width,
                             double *means);

/* theta = q b + g total minimises the penalised squares subject to sum theta = total. */
typedef struct fds__solver {
    size_t size;
    double *q; /* (size, size) */
    double *g; /* (size) */
} fds__solver;

/* The sums over all pairs that do not depend on the columns. */
typedef struct fds__gram {
    double *kernel; /* (n, n): Z' W Z, kernel weights */
    double *mild;   /* (F, F): D' W D, mild weights; NULL without steps */
    double *cross;  /* (n, F): Z' W D, kernel weights; NULL without steps */
} fds__gram;

/* The caller frees *out even after a failure. */
fds_status fds__gram_create(const fds__design *design, fds__gram *out, fds_error *err);
void fds__gram_free(fds__gram *gram);

/* The penalty in the normal equations: ridge times (I - 1/n) plus shrink times (I - group means) on
 * the players; 1 for each step. */
typedef struct fds__penalty {
    double ridge, shrink;
} fds__penalty;

/* Solver of the gram matrix h (size, size). FDS_ERR_DIVERGED when the equations have no unique
 * solution. The caller frees *out even after a failure. */
fds_status fds__solver_create(const fds__design *design, const double *h, size_t size,
                              fds__penalty penalty, fds__solver *out, fds_error *err);
void fds__solver_free(fds__solver *solver);
/* A pivot below this share of the mean of the diagonal is near the rounding of the sums: the pairs do not
 * distinguish the players. */
#define FDS__LS_PIVOT 1e-11
/* FDS_ERR_DIVERGED, and says why. */
fds_status fds__solver_fail(fds_error *err);
/* Adds the penalty to h (size, size), and a penalty on the sum of the unknowns, which is fixed anyway:
 * without one, pairs of equal halves, whose rows sum to 0, would make the equations singular. Returns
 * the mean of the diagonal before the latter. */
double fds__solver_penalise(const fds__design *design, fds__penalty penalty, size_t size,
                            double *h);
/* For rows d (count, stride): leverage[count] = weights_i d_i' q d_i. scratch: (count, size). */
void fds__solver_leverage(const fds__solver *solver, const double *d, size_t count, size_t stride,
                          const double *weights, double *scratch, double *leverage);
/* theta (size, width) from b (size, width) and total (width) */
void fds__solver_apply(const fds__solver *solver, const double *b, const double *total,
                       size_t width, double *theta);

/* ---- ls_path.c ---- */

/* The equations for all strengths of one penalty; F unknowns, of which the first m = coarse of the basis
 * are not penalised by it. */
typedef struct fds__path {
    const fds__design *design;
    const fds_groups *groups; /* towards whose means is shrunk; NULL: one group */
    size_t group_count, size, coarse;
    size_t *place;                       /* (F): of each feature in the basis */
    double *matrix;                      /* (F, F): U, J, and the reflectors of Q */
    double *diagonal, *off, *reflectors; /* (F): T, and the factors of the reflectors */
    double *ones;                        /* (F): all ones, turned and reduced */
    double trace, least; /* of the equations without the penalty; least pivot of E */
} fds__path;

/* fixed: the penalty that all strengths share; is_ridge: the ridge varies, else the shrinkage. The caller
 * zeroes *out before, and frees it even after a failure. */
fds_status fds__path_create(const fds__design *design, const double *h, size_t size,
                            fds__penalty fixed, bool is_ridge, fds__path *out, fds_error *err);
void fds__path_free(fds__path *path);
/* out (F, width) = x in the basis, and reduced; number i of column c is x[i * row + c * column]. Keeps
 * scalar products unless it reduces (or groups are players). */
fds_status fds__path_turn(const fds__path *path, const double *x, size_t row, size_t column,
                          size_t width, bool is_reduced, unsigned threads, double *out,
                          fds_error *err);
/* From what fds__path_solve returns to the basis, in which products are kept. z (F, width) */
void fds__path_return(const fds__path *path, size_t width, double *z);

/* One strength. */
typedef struct fds__path_point {
    const fds__path *path;
    double *pivots, *ratios; /* (F): of T + strength I */
    double *ones, sum;       /* (F), and: the solution for all ones, and their product */
} fds__path_point;

/* FDS_ERR_DIVERGED as fds__solver_create. The caller frees *out even after a failure. */
fds_status fds__path_at(const fds__path *path, double strength, fds__path_point *out,
                        fds_error *err);
void fds__path_point_free(fds__path_point *point);
/* Solves for reduced x (F, width), in place; total NULL: 0. The product of the result with other reduced
 * vectors is that of their originals with the solution. */
void fds__path_solve(const fds__path_point *point, const double *total, size_t width, double *x);
/* As fds__solver_leverage, for reduced rows (F, width). */
void fds__path_leverage(const fds__path_point *point, const double *rows, size_t width,
                        const double *weights, double *leverage);

/* Whether a game g is fitted first. */
static inline bool fds__ls_with_fit(fds_adjust adjust) {
    return adjust == FDS_ADJUST_COUNTS || adjust == FDS_ADJUST_CONTROL;
}

typedef struct fds__ls_choice {
    fds__penalty fit, rest; /* of g, and of v - g */
    double control, explained;
} fds__ls_choice;

/* ---- ls_rest.c ---- */

/* What the fitted game leaves, on the first L pairs and C columns of a sample. */
typedef struct fds__ls_rest {
    const fds__design *design;
    const fds__solver *fit;
    const double *kernel, *cross; /* (n, n), (n, F): as in fds__gram */
    size_t pairs, columns;
    const double *rows; /* (L, F): D */
    double *errors;     /* (L, C): U - D theta; it is overwritten */
    const double *b;    /* (n, C): Z'W(U - D theta) over all pairs */
} fds__ls_rest;

enum { FDS__LS_RESTS = 6 };
extern const double fds__ls_rests[FDS__LS_RESTS]; /* strengths that are tried, the weakest first */
/* are_few: coalitions, so that a ridge is needed; is_shrunk: otherwise the strength is 0. The caller frees
 * *solver, which is zero before, even after a failure. */
fds_status fds__ls_choose_rest(const fds__ls_rest *rest, bool are_few, bool is_shrunk,
                               unsigned threads, fds__penalty *out, fds__solver *solver,
                               fds_error *err);

/* ---- ls_parts.c ---- */

/* Everything that does not depend on the columns. */
typedef struct fds__ls_parts {
    fds__design design;
    fds__gram gram;
    fds__ls_choice choice;
    bool with_fit, with_prior; /* with_prior: fds__ls_shrink_noise applies */
    fds__solver fit, rest;
    double *from_fit; /* (n, F): values = from_fit D'Wu + rest.q Z'Wu, weights mild and kernel */
    double *bias; /* (n, n): squared share of each true deviation that shrinking loses; NULL: 0 */
    double *kept; /* (n): share of a deviation that shrinking keeps */
    double *leverage;  /* (pairs) */
    double *rows;      /* (pairs, F): D, or NULL where it is too large to keep */
    double *influence; /* (pairs, n): squares of the pairs' influence on the values, or NULL */
} fds__ls_parts;

/* Which shrinks the values, and so biases them. */
static inline fds__penalty fds__ls_penalty(const fds__ls_parts *l) {
    return l->with_fit ? l->choice.fit : l->choice.rest;
}
/* The design with the groups from whose means a penalty takes deviations: a ridge from that of all. */
fds__design fds__design_around(const fds__design *design, fds__penalty penalty);
/* Four steps: begin; then the caller makes gram, and sets choice or calls fds__ls_choose; then solve;
 * errors is for standard errors. The caller zeroes *l before, and frees it even after a failure. */
fds_status fds__ls_parts_begin(const fds_plan *plan, const fds_ls_params *params,
                               const fds_events *events, fds__ls_parts *l, fds_error *err);
fds_status fds__ls_parts_solve(fds__ls_parts *l, fds_error *err);
fds_status fds__ls_parts_errors(fds__ls_parts *l, fds_error *err);
/* After errors: keeps the influence of the pairs, and their rows, unless they are too large. */
fds_status fds__ls_parts_keep(fds__ls_parts *l, bool with_rows, fds_error *err);
/* The numbers that this keeps. */
static inline uint64_t fds__ls_kept(uint64_t pairs, uint64_t width) {
    const uint64_t most = ((uint64_t)256 << 20) / sizeof(double);
    return pairs <= most / MAX(width, (uint64_t)1) ? pairs * width : 0;
}
void fds__ls_parts_free(fds__ls_parts *l);
/* ls_choose.c: sets choice, and the solvers of it. */
fds_status fds__ls_choose(fds__ls_parts *parts, const fds_rows *rows, const fds_ls_params *params,
                          unsigned threads, fds_error *err);
enum { FDS__LS_CANDIDATES = 11 };
/* The penalties that are tried, the weakest first, at most so many. */
size_t fds__ls_candidates(const fds__design *design, fds_adjust adjust, fds__penalty *list);
/* The weakest one is taken whose error is at most so many times the least. */
double fds__ls_tolerance(const fds__design *design, fds_adjust adjust);
/* Adds the values of the fitted game theta (F, width) to phi (n, width). */
void fds__ls_add_fit(const fds__design *d, const double *theta, size_t width, double *phi);
/* influence (count, n), squared, of pairs first .. first+count-1; overwrites their rows. */
void fds__ls_influence(const fds__ls_parts *l, size_t first, size_t count, double *rows,
                       double *influence);

/* ---- ls_noise.c ---- */

/* Draws values phi (n, width) of variances var towards the means of their groups, and makes var the
 * variances of the result. */
void fds__ls_shrink_noise(const fds__design *design, size_t width, double *phi, double *var);
/* Adds to the variance of the greatest value of each column what its lead probably owes to luck. In a job
 * of a pool a cancellation is heard after each column. */
fds_status fds__ls_add_winners_curse(size_t players, size_t width, const double *phi, double *var,
                                     fds_error *err);

/* ---- ls_columns.c, ls.c ---- */

/* values and errors (or NULL) as in fds_least_squares. */
fds_status fds__ls_columns(const fds__ls_parts *parts, const fds_rows *rows,
                           const fds_ls_params *params, unsigned threads, double *values,
                           double *errors, fds_error *err);
/* total (width) = v(1) - v(0), minus the surrogate's share. line: (width) */
fds_status fds__ls_total(const fds_rows *rows, const fds_rows *control, double share,
                         unsigned worker, size_t column, size_t width, double *line, double *total,
                         fds_error *err);
/* Where results go. */
typedef struct fds__ls_store {
    size_t players, columns;
    double control; /* share of a surrogate game, whose values are added again */
    const double *control_values;
    double *values, *errors; /* (players, columns); errors or NULL */
} fds__ls_store;
/* Stores width columns of phi and var (players, stride), from the given one on; makes the values sum
 * to the total up to rounding. */
void fds__ls_store_chunk(const fds__ls_store *store, const double *total, const double *phi,
                         const double *var, size_t stride, size_t column, size_t width);
/* Whether coalitions are so few, unless they are all that exist, that plain least squares would
 * overfit. */
bool fds__ls_are_few(const fds__design *design);
/* Whether least squares are quicker, or only possible, without matrices. Those cost about 25 F^3 +
 * 16 pairs F^2 operations once, and conjugate gradients 150 pairs F for each column (docs/scale.md). Never
 * where whole groups are players. */
bool fds__ls_is_many(const fds_plan *plan, const fds_groups *groups, size_t features,
                     size_t columns);
/* The most bytes that fds__ls_cg holds. */
uint64_t fds__ls_cg_memory(uint64_t players, uint64_t features, uint64_t pairs, uint64_t groups,
                           uint64_t columns, bool with_control, uint64_t workers);
/* ls_cg_run.c: the same for many unknowns; with_prior: fds__ls_shrink_noise applies. */
fds_status fds__ls_cg(const fds__design *design, bool with_prior, const fds_rows *rows,
                      const fds_ls_params *params, unsigned threads, double *values, double *errors,
                      fds__ls_choice *choice, fds_error *err);
/* The groups to shrink towards. Where whole groups are players, plain least squares divide the
 * value of each evenly among its members. */
const fds_groups *fds__ls_groups(const fds_plan *plan, const fds_ls_params *params);

#endif
