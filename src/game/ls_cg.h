/* SPDX-License-Identifier: Apache-2.0
 *
 * Least squares of many unknowns, whose matrices are never formed. Notation: ls.h.
 *
 *   ls_bits.c         coalitions as bits, and their products
 *   ls_cg.c         the normal equations as an operator, and conjugate gradients
 *   ls_cg_choose.c  how strongly to shrink
 *   ls_cg_errors.c  standard errors
 *   ls_cg_run.c     all of these: values and errors of the columns, in chunks
 *
 * Coarse and fine. The coarse part of a vector of unknowns has the mean of each group, and the steps:
 * q numbers. The fine part has the deviations of the players from the means of their groups. The
 * samplers treat the members of a group alike, so that in expectation the normal equations
 *     H = D'W D + penalty
 * do not mix the two, and on the fine part H is a multiple of the identity, fine + shrink + ridge. The
 * preconditioner is that matrix, with the coarse part (q, q) as it is: then conjugate gradients need
 * about as many iterations as for the identity plus sampling noise, whose condition is
 * ((1 + r) / (1 - r))^2 with r^2 = n / pairs, and less with shrinkage.
 *
 * Constraint. sum theta = total: with x = H^-1 b and y = H^-1 1, theta = x + y (total - 1'x) / 1'y. */
#ifndef FDS_GAME_LS_CG_H
#define FDS_GAME_LS_CG_H

#include "game/ls.h"
#include "game/ls_bits.h"

enum {
    FDS__CG_CHUNK = 64,        /* columns per job; a multiple of FDS__BITS_TILE */
    FDS__CG_SAMPLE = 8,        /* columns and */
    FDS__CG_PROBES = 4,        /* random vectors that choose the strengths */
    FDS__CG_ITERATIONS = 2000, /* at most; */
    FDS__CG_FIRST = 400,       /* for the first strength that is tried, */
    FDS__CG_TRIAL = 40,        /* and for the others */
};

/* Everything that depends on the coalitions alone. */
typedef struct fds__cg {
    const fds__design *d;
    const fds__bits_kernel *kernel;
    fds__bits by_pair, by_player; /* (pairs, n), (n, pairs) */
    double centre;                /* what is subtracted from each bit: 1/2 in pairs, else 0 */
    size_t groups, coarse;        /* q = groups + steps */
    uint32_t *group_of;           /* (n) */
    double *root;                 /* (groups): square root of the number of members */
    double *rows;                 /* (pairs, q): coarse part of D, in an orthonormal basis */
    double *fine;                 /* (pairs): square of the length of the fine part of D */
} fds__cg;

fds_status fds__cg_create(const fds__design *design, fds__cg *out, fds_error *err);
void fds__cg_free(fds__cg *many);

/* H for one kind of weights: of the fit (D, mild weights) or of the rest (Z, the kernel's). */
typedef struct fds__cg_stage {
    const fds__cg *many;
    bool with_steps;
    size_t size, coarse;   /* unknowns; of them coarse */
    const double *weights; /* (pairs) */
    double *gram;          /* (coarse, coarse): of the coarse part, without penalty */
    double mean;           /* of the fine part's eigenvalues, without penalty */
    fds__penalty penalty;
    size_t most;    /* iterations */
    double sum;     /* what is added to H at every place: the sum is fixed, so it changes nothing */
    double *factor; /* (coarse, coarse): Cholesky's, of H on the coarse part */
    double *ones;   /* (size): H^-1 1 */
    double ones_sum;
} fds__cg_stage;

/* A worker's scratch for width columns. */
typedef struct fds__cg_scratch {
    double *y;                  /* (pairs, width); the allocation begins here */
    double *residual, *way, *h; /* (F, width) */
    double *coarse;             /* (q, width) */
    double *table;
} fds__cg_scratch;
fds_status fds__cg_scratch_create(const fds__cg *many, size_t width, fds__cg_scratch *out,
                                  fds_error *err);

/* The caller frees *out even after a failure. */
fds_status fds__cg_stage_create(const fds__cg *many, bool with_steps, fds__cg_stage *out,
                                fds_error *err);
/* Sets the penalty; with tolerance 0, ones is what the preconditioner makes of 1. FDS_ERR_DIVERGED when
 * there is no unique solution. */
fds_status fds__cg_stage_penalise(fds__cg_stage *stage, fds__penalty penalty, double tolerance,
                                  fds__cg_scratch *scratch, fds_error *err);
void fds__cg_stage_free(fds__cg_stage *stage);

/* y (pairs, width) = D x; x (size, width). FDS_ERR_CANCELLED, as the functions below. */
fds_status fds__cg_predict(const fds__cg_stage *stage, const double *x, size_t width,
                           fds__cg_scratch *scratch, double *y, fds_error *err);
/* out (size, width) = D'W u; scratch->y is overwritten */
fds_status fds__cg_sum(const fds__cg_stage *stage, const double *u, size_t width,
                       fds__cg_scratch *scratch, double *out, fds_error *err);
/* H x = b from the x that is given, up to tolerance, relative to b. FDS_ERR_DIVERGED after too
 * many iterations. Call it in a job of a pool: a cancellation is heard in each product. */
fds_status fds__cg_solve(const fds__cg_stage *stage, const double *b, size_t width,
                         double tolerance, fds__cg_scratch *scratch, double *x, fds_error *err);
/* Makes the sums of x those that are given (NULL: 0). */
void fds__cg_constrain(const fds__cg_stage *stage, const double *total, size_t width, double *x);
/* Subtracts from x (n, width) the means of the groups. */
void fds__cg_make_fine(const fds__cg *many, size_t width, fds__cg_scratch *scratch, double *x);

/* ---- ls_cg_errors.c ---- */

/* Traces of the inverses on the fine part, estimated with random vectors r: averages of r'X r over
 * r'r. With M and K the inverses of H of the fit and of the rest, and rest the strength in K:
 *     v = rest K M, u = K. Without a fit v = 0. */
typedef struct fds__cg_traces {
    double fit, rest, fit2;  /* of M, K and M'M */
    double v, u, vv, vu, uu; /* of these, of v'v, v'u and u'u */
} fds__cg_traces;

/* Products of FDS__CG_PROBES columns of x with those of y, over those of r with themselves, averaged; all
 * (n, width). 0 where r is 0, because each group is one player. */
double fds__cg_ratio(size_t n, size_t width, const double *x, const double *y, const double *r);
/* Random vectors of 1 and -1, as columns first .. of r (n, width). */
void fds__cg_probes(const fds__cg *many, size_t width, size_t first, double *r);
fds_status fds__cg_trace(const fds__cg_stage *fit, const fds__cg_stage *rest,
                         fds__cg_scratch *scratch, fds__cg_traces *out, fds_error *err);
/* forms (count): d' Q d for the coarse part d of the first pairs, where Q solves the coarse part of H
 * with the constraint. */
fds_status fds__cg_forms(const fds__cg_stage *stage, size_t count, double *forms, fds_error *err);
/* weight d'H^-1 d of a pair as if H had not seen it; trace: of the fine part of H^-1. Its leverage is
 * x / (1 + x). */
static inline double fds__cg_weight(const fds__cg_stage *s, double trace, double form,
                                    size_t pair) {
    return s->weights[pair] * (trace * s->many->fine[pair] + form);
}

typedef struct fds__cg_errors {
    double *scale;    /* (pairs): share of unseen coalitions over (1 - leverage)^2 */
    double *own;      /* (pairs): the square of a pair's influence on player i is
                     *   own (z_i - mean)^2 + all + through_group */
    double *all;      /* (pairs) */
    double *groups;   /* (pairs, groups): through_group, by the means of the groups and the steps */
    double lost2;     /* squared share of the deviations that shrinking loses for each player, */
    double own_lost2; /* and of its own alone */
    double kept;      /* share of a deviation that it keeps */
    fds__design around; /* fds__design_around */
} fds__cg_errors;

/* fit NULL: there is none. The caller frees *out even after a failure. */
fds_status fds__cg_errors_create(const fds__cg_stage *fit, const fds__cg_stage *rest,
                                 fds__cg_scratch *scratch, fds__cg_errors *out, fds_error *err);
void fds__cg_errors_free(fds__cg_errors *errors);
/* var (n, width) from errors of the pairs (pairs, width), which are overwritten, and theta (n,
 * width), the values before the steps are added. scratch->residual (n, width) receives what the values'
 * own deviations add to it, which must not draw them closer to the mean. */
fds_status fds__cg_variances(const fds__cg *many, const fds__cg_errors *errors, const double *theta,
                             size_t width, fds__cg_scratch *scratch, double *pairs, double *var,
                             fds_error *err);

/* ---- ls_cg_choose.c, ls_cg_run.c ---- */

/* Chooses the strengths; fit is NULL where there is none. */
fds_status fds__cg_choose(const fds__cg *many, const fds_rows *rows, const fds_ls_params *params,
                          fds__cg_stage *fit, fds__cg_stage *rest, fds__cg_scratch *scratch,
                          fds__ls_choice *out, fds_error *err);

#endif
