/* SPDX-License-Identifier: Apache-2.0
 * Plans: lists of coalitions. The plan itself, and the plans of all coalitions that exact values
 * need; samplers.c draws random ones. */
#include "game/game.h"

#include <stdlib.h>
#include <string.h>

void fds_plan_free(fds_plan *plan) {
    if (!plan)
        return;
    fds__free(plan->bits);
    fds__free(plan->weights);
    fds_groups_free(plan->groups);
    fds__free(plan->blocks);
    fds__free(plan);
}

size_t fds_plan_players(const fds_plan *plan) { return plan->players; }
size_t fds_plan_rows(const fds_plan *plan) { return plan->rows; }
bool fds_plan_is_paired(const fds_plan *plan) { return plan->is_paired; }

const uint64_t *fds_plan_coalition(const fds_plan *plan, size_t row) {
    return row < plan->rows ? fds__plan_bits(plan, row) : NULL;
}

double fds_plan_weight(const fds_plan *plan, size_t row) {
    return row < plan->rows ? plan->weights[row] : 0;
}

/* ---- making one ---- */

static fds_status check(fds_sampler sampler, size_t players, const fds_groups *groups,
                        fds_error *err) {
    if (players == 0)
        return fds__fail(err, FDS_ERR_USAGE, "a plan for no players: there must be at least one");
    if (players > FDS__MAX_PLAYERS)
        return fds__fail(err, FDS_ERR_LIMIT, "a plan for %zu players, at most %zu are allowed",
                         players, FDS__MAX_PLAYERS);
    if ((int)sampler < FDS_SAMPLER_KERNEL || sampler > FDS_SAMPLER_GFDS_PLUS)
        return fds__fail(err, FDS_ERR_USAGE, "there is no sampler number %d, only 0 to %d",
                         (int)sampler, FDS_SAMPLER_GFDS_PLUS);
    bool is_grouped = sampler == FDS_SAMPLER_GFDS || sampler == FDS_SAMPLER_GFDS_PLUS;
    if (is_grouped && !groups)
        return fds__fail(err, FDS_ERR_USAGE, "GFDS and GFDS+ need groups of the players");
    if (!is_grouped && groups)
        return fds__fail(err, FDS_ERR_USAGE, "groups are given, but only GFDS and GFDS+ use them");
    if (groups && fds_groups_players(groups) != players)
        return fds__fail(err, FDS_ERR_SHAPE, "the groups are of %zu players, the plan is for %zu",
                         fds_groups_players(groups), players);
    return FDS_OK;
}

fds_status fds__plan_finish(fds_plan *plan, fds_status status, fds_plan **out) {
    if (status == FDS_OK)
        *out = plan;
    else
        fds_plan_free(plan);
    return status;
}

fds_status fds__plan_new(fds_sampler sampler, size_t players, const fds_groups *groups,
                         fds_plan **out, fds_error *err) {
    TRY(check(sampler, players, groups, err));
    fds_plan *plan;
    TRY(NEW(plan, 1, err));
    plan->sampler = sampler;
    plan->players = players;
    plan->words = fds_coalition_words(players);
    fds_status status = groups ? fds__groups_copy(groups, &plan->groups, err) : FDS_OK;
    return fds__plan_finish(plan, status, out);
}

fds_status fds__plan_reserve(fds_plan *plan, size_t rows, fds_error *err) {
    TRY(NEW(plan->bits, rows * plan->words, err));
    TRY(NEW(plan->weights, rows, err));
    plan->rows = rows;
    fds__coalition_complement(fds__plan_bits(plan, 0), plan->players, fds__plan_bits(plan, 1));
    return FDS_OK;
}

fds_status fds__plan_blank(size_t players, size_t rows, fds_plan **out, fds_error *err) {
    if (rows > FDS__MAX_ROWS)
        return fds__fail(err, FDS_ERR_LIMIT, "a plan of %zu rows, at most %zu are allowed", rows,
                         FDS__MAX_ROWS);
    fds_plan *plan = NULL;
    TRY(fds__plan_new(FDS_SAMPLER_KERNEL, players, NULL, &plan, err));
    fds_status status = fds__plan_reserve(plan, MAX(rows, (size_t)2), err);
    if (status == FDS_OK)
        memset(fds__plan_bits(plan, 1), 0, plan->words * sizeof *plan->bits);
    plan->rows = rows;
    return fds__plan_finish(plan, status, out);
}

/* ---- a plan's last rows ---- */

static int compare_ids(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Copies the pairs from row first on that are not among rows 2 .. first-1. ids (first - 2) is
 * scratch. */
static fds_status copy_unseen(const fds_plan *plan, size_t first, uint64_t *ids, fds_plan *tail,
                              fds_error *err) {
    size_t step = plan->is_paired ? 2 : 1, rows = 2; /* a pair is seen if its first coalition is */
    for (size_t row = 2; row < first; row++)
        ids[row - 2] = fds_coalition_id(fds__plan_bits(plan, row), plan->players);
    qsort(ids, first - 2, sizeof *ids, compare_ids);
    for (size_t row = first; row + step <= plan->rows; row += step) {
        uint64_t id = fds_coalition_id(fds__plan_bits(plan, row), plan->players);
        if (bsearch(&id, ids, first - 2, sizeof id, compare_ids))
            continue;
        memcpy(fds__plan_bits(tail, rows), fds__plan_bits(plan, row),
               step * plan->words * sizeof id);
        memcpy(tail->weights + rows, plan->weights + row, step * sizeof *plan->weights);
        rows += step;
    }
    tail->rows = rows;
    return rows > 2 ? FDS_OK
                    : fds__fail(err, FDS_ERR_USAGE,
                                "no coalitions remain for validation: training uses all of them");
}

fds_status fds__plan_tail(const fds_plan *plan, size_t first, fds_plan **out, fds_error *err) {
    OWNED uint64_t *ids = NULL;
    TRY(NEW(ids, first, err));
    fds_plan *tail = NULL;
    TRY(fds__plan_new(plan->sampler, plan->players, plan->groups, &tail, err));
    tail->is_paired = plan->is_paired;
    fds_status status = fds__plan_reserve(tail, plan->rows - first + 2, err);
    if (status == FDS_OK)
        status = copy_unseen(plan, first, ids, tail, err);
    return fds__plan_finish(tail, status, out);
}

/* ---- the sampler's game ---- */

size_t fds__plan_game_size(const fds_plan *plan, size_t owner) {
    if (!plan->groups)
        return plan->players;
    size_t groups = fds_groups_count(plan->groups);
    const uint32_t *members;
    return plan->sampler == FDS_SAMPLER_GFDS_PLUS
               ? groups
               : fds_groups_members(plan->groups, owner, &members) + groups - 1;
}

static void add_group(const fds_plan *plan, size_t group, uint64_t *row) {
    const uint32_t *members;
    size_t count = fds_groups_members(plan->groups, group, &members);
    for (size_t i = 0; i < count; i++)
        fds__coalition_add(row, members[i]);
}

void fds__plan_add(const fds_plan *plan, size_t owner, size_t player, uint64_t *row) {
    if (!plan->groups) {
        fds__coalition_add(row, player);
    } else if (plan->sampler == FDS_SAMPLER_GFDS_PLUS) {
        add_group(plan, player, row);
    } else {
        const uint32_t *members;
        size_t singles = fds_groups_members(plan->groups, owner, &members);
        if (player < singles)
            fds__coalition_add(row, members[player]);
        else /* the other groups in order, without owner */
            add_group(plan, player - singles + (player - singles >= owner), row);
    }
}

/* ---- all coalitions ---- */

static fds_status too_many_players(const fds_plan *plan, const fds__block *block, fds_error *err) {
    static const char advice[] = "estimate the values by least squares on sampled coalitions "
                                 "instead";
    if (!plan->groups)
        return fds__fail(err, FDS_ERR_LIMIT,
                         "exact values of %u players need 2^%u coalitions, more than 2^%u: %s",
                         block->players, block->players, FDS__MAX_EXACT, advice);
    if (plan->sampler == FDS_SAMPLER_GFDS_PLUS)
        return fds__fail(err, FDS_ERR_LIMIT,
                         "exact GFDS+ values of %u groups need 2^%u coalitions, more than 2^%u: "
                         "make fewer groups, or %s",
                         block->players, block->players, FDS__MAX_EXACT, advice);
    return fds__fail(err, FDS_ERR_LIMIT,
                     "exact GFDS values in \"%.64s\" (group %u): its members and the other groups "
                     "are %u players and need 2^%u coalitions, more than 2^%u: make the group "
                     "smaller, or %s",
                     fds_groups_name(plan->groups, block->owner), block->owner, block->players,
                     block->players, FDS__MAX_EXACT, advice);
}

/* One block, or for GFDS one per group, from row 2 on. */
static fds_status lay_out(fds_plan *plan, fds_error *err) {
    bool is_gfds = plan->groups && plan->sampler == FDS_SAMPLER_GFDS;
    plan->block_count = is_gfds ? fds_groups_count(plan->groups) : 1;
    TRY(NEW(plan->blocks, plan->block_count, err));
    size_t rows = 2;
    for (uint32_t b = 0; b < plan->block_count; b++) {
        fds__block *block = &plan->blocks[b];
        *block = (fds__block){rows, (uint32_t)fds__plan_game_size(plan, b), b};
        if (block->players > FDS__MAX_EXACT)
            return too_many_players(plan, block, err);
        rows += (size_t)1 << block->players;
    }
    if (rows > FDS__MAX_EXACT_ROWS)
        return fds__fail(err, FDS_ERR_LIMIT,
                         "exact GFDS values of %zu groups need %zu coalitions, more than %zu: make "
                         "other groups, or estimate the values by least squares",
                         plan->block_count, rows, FDS__MAX_EXACT_ROWS);
    return fds__plan_reserve(plan, rows, err);
}

/* Shapley kernel weights of a block's coalitions of each size 1 .. n-1: 1 / (C(n,k) k (n-k)) times
 * the factor that makes them sum to the number of coalitions. */
static void kernel_weights(uint32_t n, double *weight) {
    double choose = 1, sum = 0;
    for (uint32_t k = 1; k < n; k++) {
        choose = choose * (n - k + 1) / k;
        weight[k] = 1 / (choose * k * (n - k));
        sum += choose * weight[k];
    }
    for (uint32_t k = 1; k < n; k++)
        weight[k] *= (double)(((size_t)1 << n) - 2) / sum;
}

static void fill_block(fds_plan *plan, const fds__block *block) {
    double weight[FDS__MAX_EXACT + 1] = {0}; /* 0 for no and for all players */
    kernel_weights(block->players, weight);
    for (size_t mask = 1; mask < (size_t)1 << block->players; mask++) {
        uint64_t *row = fds__plan_bits(plan, block->first + mask);
        size_t rest = mask & (mask - 1), lowest = mask ^ rest;
        plan->weights[block->first + mask] = weight[__builtin_popcountll(mask)];
        if (rest == 0) {
            fds__plan_add(plan, block->owner, (size_t)__builtin_ctzll(mask), row);
            continue;
        }
        const uint64_t *a = fds__plan_bits(plan, block->first + rest),
                       *b = fds__plan_bits(plan, block->first + lowest);
        for (size_t w = 0; w < plan->words; w++)
            row[w] = a[w] | b[w];
    }
}

fds_status fds_plan_exact(fds_sampler sampler, size_t players, const fds_groups *groups,
                          fds_plan **out, fds_error *err) {
    fds_plan *plan;
    TRY(fds__plan_new(groups ? sampler : FDS_SAMPLER_KERNEL, players, groups, &plan, err));
    plan->is_exact = true;
    fds_status status = lay_out(plan, err);
    for (size_t b = 0; b < plan->block_count && status == FDS_OK; b++)
        fill_block(plan, &plan->blocks[b]);
    return fds__plan_finish(plan, status, out);
}
