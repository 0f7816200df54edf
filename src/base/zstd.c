/* SPDX-License-Identifier: Apache-2.0
 * Unpacking Zstandard, where its library was there when fds was built. */
#include "base.h"

#ifdef FDS_ZSTD

#include <zstd.h>

static fds_status unpack(ZSTD_DStream *stream, const char *path, ZSTD_inBuffer *in, size_t limit,
                         const fds_events *events, uint8_t **data, size_t *size, fds_error *err) {
    const double start_s = fds__now_s();
    OWNED uint8_t *buffer = NULL;
    size_t capacity = 0, used = 0, left = 1;
    while (left > 0 || in->pos < in->size) {
        TRY(fds__report(events, "read", "bytes", in->pos, in->size, start_s, err));
        if (used + 2 > capacity) {
            /* one byte over the limit to notice that there is more, one for the NUL */
            capacity = MIN(MAX(used + used / 2, (size_t)1 << 16), limit) + 2;
            uint8_t *grown = fds__realloc(buffer, capacity);
            if (!grown)
                return fds__fail_nomem(err, capacity);
            buffer = grown;
        }
        ZSTD_outBuffer out = {buffer + used, MIN(capacity - 1 - used, FDS__READ_STEP), 0};
        bool is_end = in->pos == in->size;
        left = ZSTD_decompressStream(stream, &out, in);
        used += out.pos;
        if (used > limit)
            return fds__fail(err, FDS_ERR_LIMIT, "%s: more than %zu bytes when unpacked", path,
                             limit);
        if (ZSTD_isError(left))
            return fds__fail(err, FDS_ERR_FORMAT, "%s: zstd data is damaged near byte %zu: %s",
                             path, in->pos, ZSTD_getErrorName(left));
        if (left > 0 && is_end && out.pos == 0)
            return fds__fail(err, FDS_ERR_FORMAT, "%s: zstd data is cut off after %zu bytes", path,
                             in->size);
    }
    buffer[used] = 0;
    *data = buffer;
    *size = used;
    buffer = NULL; /* the caller's now */
    return FDS_OK;
}

fds_status fds__unpack_zstd(const char *path, const uint8_t *data, size_t size, size_t limit,
                            const fds_events *events, uint8_t **out, size_t *out_size,
                            fds_error *err) {
    ZSTD_DStream *stream = ZSTD_createDStream();
    if (!stream)
        return fds__fail_nomem(err, size);
    ZSTD_inBuffer in = {data, size, 0};
    fds_status status = unpack(stream, path, &in, limit, events, out, out_size, err);
    ZSTD_freeDStream(stream);
    return status;
}

#else

fds_status fds__unpack_zstd(const char *path, const uint8_t *data, size_t size, size_t limit,
                            const fds_events *events, uint8_t **out, size_t *out_size,
                            fds_error *err) {
    (void)data, (void)size, (void)limit, (void)events, (void)out, (void)out_size;
    return fds__fail(err, FDS_ERR_UNSUPPORTED,
                     "%s: fds was built without Zstandard (libzstd-dev); unpack the file: unzstd",
                     path);
}

#endif
