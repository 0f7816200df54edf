/* SPDX-License-Identifier: Apache-2.0
 * k-means: Lloyd's steps from a k-means++ start (Arthur and Vassilvitskii, 2007).
 *
 * One thread and a fixed order of sums: the same seed gives the same groups everywhere. */
#include "game/game.h"

#include <math.h>
#include <string.h>

enum { MAX_STEPS = 300 };

/* Beyond this squared distances could overflow. */
static const double max_value = 1e100;

typedef struct {
    const double *points; /* (count, size) */
    size_t count, size, groups;
    double *centres;    /* (groups, size) */
    double *distance;   /* (count): squared, from the nearest or the own centre */
    size_t *members;    /* (groups) */
    uint32_t *group_of; /* (count) */
} clustering;

static double squared_distance(const double *a, const double *b, size_t size) {
    double sum = 0;
    for (size_t d = 0; d < size; d++)
        sum += (a[d] - b[d]) * (a[d] - b[d]);
    return sum;
}

/* A point with probability proportional to its distance, squared, from the centres so far. Where
 * all points lie on centres, the lowest point will do: empty groups are mended later. */
static size_t draw_point(const clustering *c, fds_rng *rng) {
    double total = 0;
    for (size_t i = 0; i < c->count; i++)
        total += c->distance[i];
    double target = fds_rng_unit(rng) * total;
    size_t chosen = 0;
    for (size_t i = 0; i < c->count; i++)
        if (c->distance[i] > 0) {
            chosen = i; /* the last one, should rounding take the target past the end */
            if (target < c->distance[i])
                break;
            target -= c->distance[i];
        }
    return chosen;
}

static void choose_centres(clustering *c, uint64_t seed) {
    for (size_t i = 0; i < c->count; i++)
        c->distance[i] = 1; /* the first centre: every point alike */
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

/* Puts every point to its nearest centre; true when one has moved. */
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
    /* an empty group takes the point that is worst served, from a group that can spare it */
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
                         "%zu groups cannot be made of %zu points, 1 to %zu can", groups, count,
                         count);
    if (count > FDS__MAX_PLAYERS)
        return fds__fail(err, FDS_ERR_LIMIT, "%zu points to be grouped: at most %zu are possible",
                         count, FDS__MAX_PLAYERS);
    for (size_t i = 0; i < count; i++)
        for (size_t d = 0; d < size; d++)
            if (!(fabs(points[i * size + d]) <= max_value))
                return fds__fail(err, FDS_ERR_USAGE,
                                 "point %zu, value %zu is %g: it must be a number of at most %g", i,
                                 d, points[i * size + d], max_value);
    return FDS_OK;
}

fds_status fds__kmeans_steps(const double *points, size_t count, size_t size, size_t groups,
                             uint64_t seed, unsigned steps, uint32_t *group_of, fds_error *err) {
    TRY(check(points, count, size, groups, err));
    size_t centre_values;
    if (!fds__mul(groups, size, &centre_values))
        return fds__fail(err, FDS_ERR_LIMIT, "%zu groups of %zu values are too many", groups, size);
    clustering c = {.points = points,
                    .count = count,
                    .size = size,
                    .groups = groups,
                    .centres = fds__alloc_zero(centre_values, sizeof *c.centres),
                    .distance = fds__alloc_zero(count, sizeof *c.distance),
                    .members = fds__alloc_zero(groups, sizeof *c.members),
                    .group_of = group_of};
    uint32_t *before = fds__alloc_zero(count, sizeof *before);
    bool is_ready = c.centres && c.distance && c.members && before;
    if (is_ready) {
        memset(group_of, 0xff, count * sizeof *group_of); /* no group yet */
        choose_centres(&c, seed);
        for (unsigned step = 1; assign(&c, before) && step < steps; step++)
            move_centres(&c);
    }
    fds__free(c.centres);
    fds__free(c.distance);
    fds__free(c.members);
    fds__free(before);
    return is_ready ? FDS_OK : fds__fail_nomem(err, centre_values * sizeof *c.centres);
}

fds_status fds__kmeans(const double *points, size_t count, size_t size, size_t groups,
                       uint64_t seed, uint32_t *group_of, fds_error *err) {
    return fds__kmeans_steps(points, count, size, groups, seed, MAX_STEPS, group_of, err);
}
