/* SPDX-License-Identifier: Apache-2.0
 *
 * game: coalitions of players, and the values of players. Of the room data it uses groups only.
 *
 *   coalition.c  bit sets and their ids
 *   kmeans.c     k-means, for groups of players
 *   plan.c       plans: lists of coalitions; plans of all coalitions
 *   samplers.c   plans of random coalitions; given.c  of those that somebody else chose
 *   nested.c     of players who come and go
 *   join.c       the plan of the game in which several players are one
 *   exact.c      Shapley values and the paper's group-wise values by enumeration
 *   ls.c         Shapley values by least squares; ls_prepared.c for many games in a row
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
/* Sets out to the players who are not in bits; out may be bits. */
void fds__coalition_complement(const uint64_t *bits, size_t players, uint64_t *out);

/* ---- kmeans.c ---- */

/* Lloyd's k-means from a seeded k-means++ start on points (count, size), until it converges or
 * steps (at least 1) are done. group_of[count] receives 0 .. groups-1, none empty; ties go to the
 * lowest number. */
fds_status fds__kmeans(const double *points, size_t count, size_t size, size_t groups,
                       uint64_t seed, unsigned steps, uint32_t *group_of, fds_error *err);

/* ---- plan.c, samplers.c ---- */

/* One enumeration: a game over a few players, each standing for one or several real players. Its
 * coalitions are the rows first .. first + 2^players - 1 of the plan: mask m is row first + m. */
typedef struct fds__block {
    size_t first;
    uint32_t players;
    uint32_t owner; /* FDS_SAMPLER_GFDS: the group whose members are players; else 0 */
} fds__block;

struct fds_plan {
    fds_sampler sampler; /* of exact plans without groups: FDS_SAMPLER_KERNEL */
    bool is_exact, is_paired;
    size_t players, words, rows;
    uint64_t *bits;     /* (rows, words) */
    double *weights;    /* (rows) */
    fds_groups *groups; /* a copy, or NULL */
    fds__block *blocks; /* (block_count), is_exact */
    size_t block_count;
};

static inline uint64_t *fds__plan_bits(const fds_plan *plan, size_t row) {
    return plan->bits + row * plan->words;
}

/* Checks the arguments and makes a plan without rows. groups: NULL unless the sampler needs them. */
fds_status fds__plan_new(fds_sampler sampler, size_t players, const fds_groups *groups,
                         fds_plan **out, fds_error *err);
/* Sets *out to the plan and returns status, or frees the plan after a failure. */
fds_status fds__plan_finish(fds_plan *plan, fds_status status, fds_plan **out);
/* Allocates rows of no players and weight 0; row 1 receives all players. */
fds_status fds__plan_reserve(fds_plan *plan, size_t rows, fds_error *err);

/* fds_plan_sample, which may take seconds and can be cancelled. */
fds_status fds__plan_sample(fds_sampler sampler, size_t players, const fds_groups *groups,
                            size_t count, uint64_t seed, const fds_events *events, fds_plan **out,
                            fds_error *err);

/* A plan of empty rows, which the caller fills in. Rows 0 and 1 need not be the empty and the full
 * coalition: a table accepts any rows, but the estimators need these two. */
fds_status fds__plan_blank(size_t players, size_t rows, fds_plan **out, fds_error *err);

/* A plan of rows 0 and 1 and the given coalitions, bits (count, words): all different, none of them
 * empty or full. They are in pairs if each comes with its complement. order[count] receives which of
 * them the rows from 2 on are. Sizes are strata, as of FDS_SAMPLER_LEVERAGE. */
fds_status fds__plan_given(size_t players, const uint64_t *bits, size_t count, size_t *order,
                           fds_plan **out, fds_error *err);

/* A plan of rows 0 and 1 and the rows from first on of a sampled plan, without the pairs that rows
 * 2 .. first-1 have too: an estimate from those has not seen its coalitions. FDS_ERR_USAGE when
 * none remain. */
fds_status fds__plan_tail(const fds_plan *plan, size_t first, fds_plan **out, fds_error *err);

/* All coalitions of the game whose players are parts of the players, as a plan for least squares, which
 * are then exact: part_of (players) has each of 0 .. parts-1, at least two. rows (rows of the given,
 * sampled plan) receives where each row is in that. FDS_ERR_USAGE when one is not. */
fds_status fds__plan_join(const fds_plan *plan, const uint32_t *part_of, size_t parts,
                          fds_plan **out, uint32_t *rows, fds_error *err);

/* The weights of a plan whose sizes are strata: a row's weight is its Shapley kernel weight divided by
 * the share of the coalitions of its size that are in the plan. */
fds_status fds__plan_weigh(fds_plan *plan, fds_error *err);

/* The number of players in a sampler's game: FDS_SAMPLER_GFDS_PLUS: the groups; FDS_SAMPLER_GFDS:
 * the members of group owner, then the other groups; else the real players. */
size_t fds__plan_game_size(const fds_plan *plan, size_t owner);
/* Adds to row the real players for whom a player of that game stands. */
void fds__plan_add(const fds_plan *plan, size_t owner, size_t player, uint64_t *row);

/* ---- ls_cost.c ---- */

/* About how many seconds fds_least_squares will take. Measures the processor for a twentieth of one;
 * the coalitions of the plan are not read. */
fds_status fds__ls_seconds(const fds_plan *plan, const fds_ls_params *params, size_t columns,
                           unsigned threads, double *seconds, fds_error *err);

/* ---- ls.c ---- */

/* Says, where least squares on so many coalitions needed a ridge, what it does to values. */
void fds__ls_warn(const fds_ls_report *report, size_t coalitions, size_t players,
                  const fds_events *events);

/* ---- ls_prepared.c ---- */

/* Least squares with everything that does not depend on the game computed once. Threads may share
 * it. */
typedef struct fds__ls_prepared fds__ls_prepared;

enum { FDS__LS_MOST_DIRECT = 16384 }; /* unknowns that matrices solve */
/* Unknowns of least squares on coalitions of a sampler, whose groups (or NULL) are also those of the
 * counts. */
size_t fds__ls_unknowns(fds_sampler sampler, size_t players, const fds_groups *groups,
                        fds_adjust adjust);
/* Whether it can be made: FDS_ERR_LIMIT for more unknowns. */
fds_status fds__ls_prepared_check(const fds_plan *plan, const fds_ls_params *params,
                                  fds_error *err);
/* strengths: the report of fds_least_squares for an earlier game. The plan and params->groups must
 * outlive it. FDS_ERR_USAGE for a surrogate game, and for invalid strengths. */
fds_status fds__ls_prepared_create(const fds_plan *plan, const fds_ls_params *params,
                                   const fds_ls_report *strengths, fds__ls_prepared **out,
                                   fds_error *err);
void fds__ls_prepared_free(fds__ls_prepared *prepared);
/* v (rows of the plan, columns); values and errors (players, columns) as fds_least_squares gives
 * them when it chooses these strengths; errors may be NULL. */
fds_status fds__ls_prepared_solve(const fds__ls_prepared *prepared, const double *v, size_t columns,
                                  double *values, double *errors, fds_error *err);

#endif
