/* SPDX-License-Identifier: Apache-2.0
 * A game of the user's own, CSV or JSON. */
#include "fuzz.h"
#include "utility/given.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fds__blob file = fuzz_blob("game", data, size);
    fds__given given = {0};
    fds_error err = {0};
    if (fds__given_parse(&file, &given, &err) == FDS_OK)
        for (size_t g = 0; g < given.count; g++)
            for (size_t row = 0; row < given.games[g].rows; row++)
                if (fds_coalition_size(given.games[g].bits + row * given.words, 64 * given.words) >
                    given.players.count)
                    abort();
    fds__given_free(&given);
    free(file.data);
    return 0;
}
