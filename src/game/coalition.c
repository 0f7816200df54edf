/* SPDX-License-Identifier: Apache-2.0
 * Coalitions: bit sets, and the ids by which tables find them. */
#include "game/game.h"

size_t fds_coalition_size(const uint64_t *bits, size_t players) {
    size_t size = 0;
    for (size_t w = 0; w < fds_coalition_words(players); w++)
        size += (size_t)__builtin_popcountll(bits[w]);
    return size;
}

/* The id depends on the number of players too, so that games of different sizes share no id. */
uint64_t fds_coalition_id(const uint64_t *bits, size_t players) {
    uint64_t mixed[2] = {fds_checksum(bits, fds_coalition_words(players) * sizeof *bits), players};
    return fds_checksum(mixed, sizeof mixed);
}

void fds__coalition_complement(const uint64_t *bits, size_t players, uint64_t *out) {
    size_t words = fds_coalition_words(players);
    for (size_t w = 0; w < words; w++)
        out[w] = ~bits[w];
    if (players % 64)
        out[words - 1] &= ((uint64_t)1 << (players % 64)) - 1;
}
