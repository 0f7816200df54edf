/* SPDX-License-Identifier: Apache-2.0
 *
 * game: coalitions of players and the values of players in them. Of data it knows the groups of players alone.
 *
 *   coalition.c  bit sets and their identity
 *   kmeans.c     one of the ways to make groups of players
 *   plan.c       which coalitions are looked at: the plan itself, and plans of all coalitions
 *   samplers.c   plans of coalitions drawn at random
 *   exact.c      Shapley values and the paper's group-wise values by enumeration
 *   ls.c         Shapley values by least squares; ls_prepared.c for many games one after the other
 */
#ifndef FDS_GAME_H
#define FDS_GAME_H

#include "data/data.h"

#define FDS__MAX_ROWS ((size_t)1 << 28)
#define FDS__MAX_EXACT 20u                       /* players of one enumeration */
#define FDS__MAX_EXACT_ROWS (FDS__MAX_ROWS / 64) /* rows of all enumerations of a plan */

/* ---- coalition.c ---- */

static inline void fds__coalition_add(uint64_t *bits, size_t player) {
    bits[player / 64] |= (uint64_t)1 << (player % 64);
}
/* The players who are not in bits; out may be bits. */
void fds__coalition_complement(const uint64_t *bits, size_t players, uint64_t *out);

/* ---- kmeans.c ---- */

/* Lloyd's k-means from a seeded k-means++ start on points (count, size): group_of[count] receives
 * 0 .. groups-1, none empty. Ties go to the lowest number. */
fds_status fds__kmeans(const double *points, size_t count, size_t size, size_t groups,
                       uint64_t seed, uint32_t *group_of, fds_error *err);
/* The same, stopped after that many steps if it has not converged before; at least one is made. */
fds_status fds__kmeans_steps(const double *points, size_t count, size_t size, size_t groups,
                             uint64_t seed, unsigned steps, uint32_t *group_of, fds_error *err);

/* ---- plan.c, samplers.c ---- */

/* One enumeration: a game of its own over a few players, each standing for one or several of the
 * real ones. Its coalitions are the rows first .. first + 2^players - 1 of the plan: row first + m
 * is that of mask m. */
typedef struct fds__block {
    size_t first;
    uint32_t players;
    uint32_t owner; /* FDS_SAMPLER_GFDS: the group whose members are single; else 0 */
} fds__block;

struct fds_plan {
    fds_sampler sampler; /* of exact plans without groups: FDS_SAMPLER_KERNEL */
    bool is_exact, is_paired;
    size_t players, words, rows;
    uint64_t *bits;     /* (rows, words) */
    double *weights;    /* (rows) */
    fds_groups *groups; /* a copy of its own, or NULL */
    fds__block *blocks; /* (block_count), is_exact */
    size_t block_count;
};

static inline uint64_t *fds__plan_bits(const fds_plan *plan, size_t row) {
    return plan->bits + row * plan->words;
}

/* A plan without rows yet, once players, sampler and groups (NULL unless the sampler is by groups)
 * are known to fit together. */
fds_status fds__plan_new(fds_sampler sampler, size_t players, const fds_groups *groups,
                         fds_plan **out, fds_error *err);
/* Room for rows, of no players and weight 0; row 1 gets all players. */
fds_status fds__plan_reserve(fds_plan *plan, size_t rows, fds_error *err);

/* A plan of so many rows, of no players yet, which the caller fills in as it likes. Rows 0 and 1
 * are then not the empty and the full coalition: a table does not mind, and computes nothing that
 * was not asked for, but the estimators need them. */
fds_status fds__plan_blank(size_t players, size_t rows, fds_plan **out, fds_error *err);

/* Rows first .. of a sampled plan as a plan of their own (with rows 0 and 1), less the pairs that
 * rows 2 .. first-1 hold as well: coalitions which an estimate from those has not seen. FDS_ERR_USAGE
 * when none are left. */
fds_status fds__plan_tail(const fds_plan *plan, size_t first, fds_plan **out, fds_error *err);

/* The game that a sampler plays. Its players stand for: FDS_SAMPLER_GFDS_PLUS: the groups; FDS_SAMPLER_GFDS: the
 * members of group owner, then the other groups; else the real players. */
size_t fds__plan_game_size(const fds_plan *plan, size_t owner);
/* Adds to row the real players for whom player of that game stands. */
void fds__plan_add(const fds_plan *plan, size_t owner, size_t player, uint64_t *row);

/* ---- ls_prepared.c ---- */

/* Least squares with all that does not depend on the game done once. Shareable. */
typedef struct fds__ls_prepared fds__ls_prepared;

/* strengths: what fds_least_squares reported of an earlier game. The plan and params->groups must
 * outlive it. FDS_ERR_USAGE for a surrogate game, and for strengths that are none. */
fds_status fds__ls_prepared_create(const fds_plan *plan, const fds_ls_params *params,
                                   const fds_ls_report *strengths, fds__ls_prepared **out,
                                   fds_error *err);
void fds__ls_prepared_free(fds__ls_prepared *prepared);
/* v (rows of the plan, columns); values and errors (players, columns), errors may be NULL: those of
 * fds_least_squares, had it chosen these strengths. */
fds_status fds__ls_prepared_solve(const fds__ls_prepared *prepared, const double *v, size_t columns,
                                  double *values, double *errors, fds_error *err);

#endif
