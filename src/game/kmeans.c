/* SPDX-License-Identifier: Apache-2.0
 * k-means: Lloyd's steps from a k-means++ start (Arthur and Vassilvitskii, 2007).
 *
 * One thread and a fixed order of sums: the same seed gives the same groups everywhere. */
#include "game/game.h"

#include <math.h>
#include <string.h>

static const double MAX_VALUE = 1e100; /* squares of larger distances could overflow */

typedef struct {
    const double *points; /* (count, size) */
    size_t count, size, groups;
    double *centres;    /* (groups, size) */
    double *distance;   /* (count): squared, from the nearest centre or the point's own */
    size_t *members;    /* (groups) */
    uint32_t *group_of; /* (count) */
} clustering;

static double squared_distance(const double *a, const double *b, size_t size) {
    double sum = 0;
    for (size_t d = 0; d < size; d++)
        sum += (a[d] - b[d]) * (a[d] - b[d]);
    return sum;
}

/* Draws a point with probability proportional to its squared distance from the nearest centre, or
 * point 0 where all points lie on centres: assign() fills empty groups. */
static size_t draw_point(const clustering *c, fds_rng *rng) {
    double total = 0;
    for (size_t i = 0; i < c->count; i++)
        total += c->distance[i];
    double target = fds_rng_unit(rng) * total;
    size_t chosen = 0;
    for (size_t i = 0; i < c->count; i++)
        if (c->distance[i] > 0) {
            chosen = i; /* rounding may take the target past the end: then the last one */
            if (target < c->distance[i])
                break;
            target -= c->distance[i];
        }
    return chosen;
}

static void choose_centres(clustering *c, uint64_t seed) {
    for (size_t i = 0; i < c->count; i++)
        c->distance[i] = 1; /* every point is equally likely to be the first centre */
    for (size_t g = 0; g < c->groups; g++) {
        fds_rng rng = fds_rng_make(seed, FDS__PURPOSE_KMEANS, g, 0);
        double *centre = c->centres + g * c->size;
        memcpy(centre, c->points + draw_point(c, &rng) * c->size, c->size * sizeof *centre);
        for (size_t i = 0; i < c->count; i++) {
            double d = squared_distance(c->points + i * c->size, centre, c->size);
            if (g == 0 || d < c->distance[i])
                c->distance[i] = d;
        }
    }
}

/* Assigns every point to its nearest centre; true when one has moved. */
static bool assign(clustering *c, uint32_t *before) {
    memcpy(before, c->group_of, c->count * sizeof *before);
    memset(c->members, 0, c->groups * sizeof *c->members);
    for (size_t i = 0; i < c->count; i++) {
        const double *point = c->points + i * c->size;
        for (size_t g = 0; g < c->groups; g++) {
            double d = squared_distance(point, c->centres + g * c->size, c->size);
            if (g == 0 || d < c->distance[i]) {
                c->distance[i] = d;
                c->group_of[i] = (uint32_t)g;
            }
        }
        c->members[c->group_of[i]]++;
    }
    /* an empty group takes the point farthest from its centre, of a group of two or more */
    for (size_t g = 0; g < c->groups; g++) {
        if (c->members[g] > 0)
            continue;
        size_t farthest = c->count;
        for (size_t i = 0; i < c->count; i++)
            if (c->members[c->group_of[i]] > 1 &&
                (farthest == c->count || c->distance[i] > c->distance[farthest]))
                farthest = i;
        c->members[c->group_of[farthest]]--;
        c->group_of[farthest] = (uint32_t)g;
        c->members[g] = 1;
        c->distance[farthest] = 0;
    }
    return memcmp(before, c->group_of, c->count * sizeof *before) != 0;
}

static void move_centres(clustering *c) {
    memset(c->centres, 0, c->groups * c->size * sizeof *c->centres);
    for (size_t i = 0; i < c->count; i++)
        for (size_t d = 0; d < c->size; d++)
            c->centres[c->group_of[i] * c->size + d] += c->points[i * c->size + d];
    for (size_t g = 0; g < c->groups; g++)
        for (size_t d = 0; d < c->size; d++)
            c->centres[g * c->size + d] /= (double)c->members[g];
}

static fds_status check(const double *points, size_t count, size_t size, size_t groups,
                        fds_error *err) {
    if (groups == 0 || groups > count)
        return fds__fail(err, FDS_ERR_USAGE,
                         "%zu groups of %zu points: there must be 1 to %zu groups", groups, count,
                         count);
    if (count > FDS__MAX_PLAYERS)
        return fds__fail(err, FDS_ERR_LIMIT, "%zu points to be grouped: at most %zu are possible",
                         count, FDS__MAX_PLAYERS);
    for (size_t i = 0; i < count; i++)
        for (size_t d = 0; d < size; d++)
            if (!(fabs(points[i * size + d]) <= MAX_VALUE))
                return fds__fail(err, FDS_ERR_USAGE,
                                 "point %zu, value %zu is %g: it must be a number of at most %g", i,
                                 d, points[i * size + d], MAX_VALUE);
    return FDS_OK;
}

fds_status fds__kmeans(const double *points, size_t count, size_t size, size_t groups,
                       uint64_t seed, unsigned steps, uint32_t *group_of, fds_error *err) {
    TRY(check(points, count, size, groups, err));
    OWNED double *centres = NULL, *distance = NULL;
    OWNED size_t *members = NULL;
    OWNED uint32_t *before = NULL;
    TRY(NEW(centres, groups * size, err)); /* no more than points, which are in memory */
    TRY(NEW(distance, count, err));
    TRY(NEW(members, groups, err));
    TRY(NEW(before, count, err));
    clustering c = {points, count, size, groups, centres, distance, members, group_of};
    memset(group_of, 0xff, count * sizeof *group_of); /* no group yet */
    choose_centres(&c, seed);
    for (unsigned step = 1; assign(&c, before) && step < steps; step++)
        move_centres(&c);
    return FDS_OK;
}
