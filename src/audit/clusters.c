/* SPDX-License-Identifier: Apache-2.0
 * Providers that evidence joins, and the file that says so:
 *
 *     provider,cluster        a line per provider that shares a cluster with another one
 *     clinic A,clinic A
 *     clinic B,clinic A       a cluster is called by its first provider */
#include "audit/copies.h"

void copies_join(const uint32_t *pairs, size_t pair_count, uint32_t count, uint32_t *part_of) {
    for (uint32_t p = 0; p < count; p++)
        part_of[p] = p;
    for (bool is_changed = true; is_changed;) { /* a few rounds: the lower number spreads */
        is_changed = false;
        for (size_t i = 0; i < pair_count; i++) {
            uint32_t *a = &part_of[pairs[2 * i]], *b = &part_of[pairs[2 * i + 1]];
            is_changed |= *a != *b;
            *a = *b = MIN(*a, *b);
        }
    }
}

fds_status copies_clusters(const fds_dataset *ds, const uint32_t *part_of, fds__text *text,
                           fds_error *err) {
    fds__text_print(text, "provider,cluster\n");
    for (uint32_t p = 0; p < ds->providers; p++) {
        bool is_alone = part_of[p] == p;
        for (uint32_t q = 0; q < ds->providers && is_alone; q++)
            is_alone = q == p || part_of[q] != p;
        if (is_alone)
            continue;
        fds__text_csv(text, fds_dataset_provider_name(ds, p));
        fds__text_add(text, ",", 1);
        fds__text_csv(text, fds_dataset_provider_name(ds, part_of[p]));
        fds__text_add(text, "\n", 1);
    }
    return fds__text_check(text, err);
}

fds_status copies_write_clusters(const char *path, const fds_dataset *ds, const uint32_t *part_of,
                                 fds_error *err) {
    fds__text text = {0};
    fds_status status = copies_clusters(ds, part_of, &text, err);
    if (status == FDS_OK)
        status = fds__file_write(path, text.data, text.used, err);
    fds__free(text.data);
    return status;
}
