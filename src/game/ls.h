/* SPDX-License-Identifier: Apache-2.0
 *
 * ls: what the files of the least squares share.
 *
 *   ls_design.c  coalitions to rows of numbers: the regression's left side
 *   ls_solver.c  the normal equations with the efficiency constraint, solved once for all columns
 *   ls_choose.c  how strongly to shrink, by coalitions left out
 *   ls_parts.c   what is needed whatever the columns, once that is known
 *   ls_columns.c values and errors, columns by columns
 *   ls.c         all of that in one call; ls_prepared.c the same with strengths that are given
 *
 * Notation, for m pairs, n players, F features, C columns; matrices are row-major:
 *   D (m, F)  features of a case; its first n columns are Z, one for each player
 *   U (m, C)  what is to be explained
 *   A case is a pair (s, 1-s) with D = (f(s) - f(1-s)) / 2 and U = (v(s) - v(1-s)) / 2: with the
 *   efficiency constraint nothing else of a pair depends on phi. Without pairs it is one coalition
 *   with D = f(s), U = v(s) - v(0).
 *
 * The model behind FDS_ADJUST_COUNTS. v is explained by g(s) = s'b + sum_j h_j(s), where each h_j is a
 * step function of the number of members of one group, or of all players, in s. The Shapley values
 * of g are known: b_i, and for a step over a group of k players 1/k for each member. So phi(v) =
 * phi(g) + phi(v - g) and the last term comes from least squares with the Shapley kernel's weights,
 * shrunk: g is fitted with weights that are milder (their square root), which lowers the variance,
 * and the last term takes the bias away as coalitions become many.
 */
#ifndef FDS_GAME_LS_H
#define FDS_GAME_LS_H

#include "game.h"

enum {
    FDS__LS_BLOCK = 128,    /* pairs that are looked at together */
    FDS__LS_CHUNK = 512,    /* columns that one job solves for */
    FDS__LS_SAMPLE = 256,   /* columns, and */
    FDS__LS_LEFT_OUT = 1024 /* pairs, by which the strengths are chosen */
};

/* A step over the members of a group (or over all players, group = FDS__ALL). */
#define FDS__ALL UINT32_MAX
typedef struct fds__optimizer_step {
    uint32_t group, at, of; /* counts from at on; of: members */
} fds__optimizer_step;

typedef struct fds__design {
    const fds_plan *plan;
    const fds_groups *groups; /* or NULL: all players are one */
    const fds_events *events; /* or NULL; told while the pairs are walked over */
    size_t players, pairs, features;
    size_t group_count;
    fds__optimizer_step *steps; /* (features - players) */
    double *kernel;             /* (pairs): the plan's weights, mean 1 */
    double *mild;               /* (pairs): their milder form, mean 1; for the fit of g */
    double *unseen; /* (pairs): share of the coalitions of this size that were not drawn. What was
                      * drawn without replacement, and whole, leaves no doubt */
} fds__design;

/* How many features there would be; FDS_ERR_LIMIT for too many. with_steps: those for g as well. */
fds_status fds__design_count(const fds_plan *plan, const fds_groups *groups, bool with_steps,
                             size_t *features, fds_error *err);
fds_status fds__design_create(const fds_plan *plan, const fds_groups *groups, bool with_steps,
                              const fds_events *events, fds__design *out, fds_error *err);
void fds__design_free(fds__design *design);
/* Tells how many pairs are done in a stage. Once a block: a host must not wait to be heard. */
fds_status fds__design_tell(const fds__design *design, const char *stage, size_t pairs,
                            double start_s, fds_error *err);
/* D of pairs first .. first+count-1: (count, features). counts: scratch (group_count). */
void fds__design_rows(const fds__design *design, size_t first, size_t count, uint32_t *counts,
                      double *d);
/* U of the same pairs for columns column .. column+width-1, less share times control:
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

fds_status fds__gram_create(const fds__design *design, fds__gram *out, fds_error *err);
void fds__gram_free(fds__gram *gram);

/* What is added to the normal equations: ridge times (I - 1/n), shrink times (I - group means), on
 * the players; 1 for each step. */
typedef struct fds__penalty {
    double ridge, shrink;
} fds__penalty;

/* Solver of the gram matrix h (size, size), which is left as it is. FDS_ERR_DIVERGED when the equations
 * have no unique solution. */
fds_status fds__solver_create(const fds__design *design, const double *h, size_t size,
                              fds__penalty penalty, fds__solver *out, fds_error *err);
void fds__solver_free(fds__solver *solver);
/* Of rows d (count, stride): leverage[count] = weights_i d_i' q d_i. scratch: (count, size). */
void fds__solver_leverage(const fds__solver *solver, const double *d, size_t count, size_t stride,
                          const double *weights, double *scratch, double *leverage);
/* theta (size, width) from b (size, width) and total (width) */
void fds__solver_apply(const fds__solver *solver, const double *b, const double *total,
                       size_t width, double *theta);

/* What was chosen. */
typedef struct fds__ls_choice {
    fds__penalty fit, rest; /* for g, and for what g leaves */
    double control, explained;
} fds__ls_choice;

fds_status fds__ls_choose(const fds__design *design, const fds__gram *gram, const fds_rows *rows,
                          const fds_ls_params *params, unsigned threads, fds__ls_choice *out,
                          fds_error *err);

/* ---- ls_parts.c ---- */

/* What does not depend on the columns. */
typedef struct fds__ls_parts {
    fds__design design;
    fds__gram gram;
    fds__ls_choice choice;
    bool with_fit;
    fds__solver fit, rest;
    double *from_fit;  /* (n, F): values = from_fit D'Wu + rest.q Z'Wu, weights mild and kernel */
    double *bias;      /* (n, n): squares of how a true deviation from the group is lost */
    double *kept;      /* (n): what shrinking keeps of a deviation from the group */
    double *leverage;  /* (pairs) */
    double *rows;      /* (pairs, F): D, where there is room for it, else NULL */
    double *influence; /* (pairs, n): squares of the pairs' influence on the values, or NULL */
} fds__ls_parts;

/* In three steps, with choice filled in after the first; parts are zero before, and are freed after
 * a failure too. The last is for standard errors. */
fds_status fds__ls_parts_begin(const fds_plan *plan, const fds_ls_params *params,
                               const fds_events *events, fds__ls_parts *l, fds_error *err);
fds_status fds__ls_parts_solve(fds__ls_parts *l, fds_error *err);
fds_status fds__ls_parts_errors(fds__ls_parts *l, fds_error *err);
void fds__ls_parts_free(fds__ls_parts *l);
/* Adds to phi (n, width) the values of the fitted game theta (F, width). */
void fds__ls_add_fit(const fds__design *d, const double *theta, size_t width, double *phi);
/* influence (count, n), squared, of pairs first .. first+count-1; their rows are used up. */
void fds__ls_influence(const fds__ls_parts *l, size_t first, size_t count, double *rows,
                       double *influence);

/* ---- ls_columns.c, ls.c ---- */

/* values and errors (or NULL) as fds_least_squares has them. */
fds_status fds__ls_columns(const fds__ls_parts *parts, const fds_rows *rows,
                           const fds_ls_params *params, unsigned threads, double *values,
                           double *errors, fds_error *err);
/* The same of a single player, who gets all. */
fds_status fds__ls_one_player(const fds_rows *rows, double *values, double *errors, fds_error *err);
/* Where groups take part as wholes, plain least squares divide evenly within them. */
const fds_groups *fds__ls_groups(const fds_plan *plan, const fds_ls_params *params);

#endif
