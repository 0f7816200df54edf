/* SPDX-License-Identifier: Apache-2.0
 * Random bits from a source, a buffer at a time. */
#include "privacy/privacy.h"

static fds_status fill_from_system(void *context, void *out, size_t size, fds_error *err) {
    (void)context;
    return fds__random_secret(out, size, err);
}

const fds__bits fds__system_bits = {.fill = fill_from_system};

void privacy_stream_begin(privacy_stream *s, const fds__bits *source, fds_error *err) {
    *s = (privacy_stream){.source = source, .status = FDS_OK, .err = err};
}

fds_status privacy_stream_end(privacy_stream *s) {
    explicit_bzero(s->bytes, sizeof s->bytes);
    s->next = s->count = 0;
    return s->status;
}

unsigned privacy_bit(privacy_stream *s) {
    if (s->next == s->count && s->status == FDS_OK) {
        s->status = s->source->fill(s->source->context, s->bytes, sizeof s->bytes, s->err);
        s->count = s->status == FDS_OK ? 8 * sizeof s->bytes : 0;
        s->next = 0;
    }
    s->taken++;
    if (s->status != FDS_OK)
        return 0;
    unsigned bit = s->bytes[s->next / 8] >> (7 - s->next % 8) & 1u;
    s->next++;
    return bit;
}
