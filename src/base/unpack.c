/* SPDX-License-Identifier: Apache-2.0
 * Unpacking gzip and, where its library was there when fds was built, Zstandard. The result grows as
 * needed, up to a limit: a header is not believed. */
#include "base.h"

#include <zlib.h>
#ifdef FDS_ZSTD
#include <zstd.h>
#endif

/* Room for at least one byte more than used, and for a NUL. */
static fds_status make_room(uint8_t **buffer, size_t *capacity, size_t used, size_t limit,
                            fds_error *err) {
    if (used + 2 <= *capacity)
        return FDS_OK;
    /* one byte over the limit to notice that there is more */
    *capacity = MIN(MAX(used + used / 2, (size_t)1 << 16), limit) + 2;
    uint8_t *grown = fds__realloc(*buffer, *capacity);
    if (!grown)
        return fds__fail_nomem(err, *capacity);
    *buffer = grown;
    return FDS_OK;
}

/* ---- gzip ---- */

static void *zlib_alloc(void *unused, unsigned count, unsigned size) {
    (void)unused;
    return fds__alloc_zero(count, size);
}
static void zlib_free(void *unused, void *memory) {
    (void)unused;
    fds__free(memory);
}

/* Unpacks the whole stream; the result grows as needed up to limit. */
static fds_status inflate_all(z_stream *z, const char *path, size_t limit, const fds_events *events,
                              uint8_t **data, size_t *size, fds_error *err) {
    const double start_s = fds__now_s();
    const size_t in_size = z->avail_in;
    OWNED uint8_t *buffer = NULL;
    size_t capacity = 0, used = 0;
    int code = Z_OK;
    while (code != Z_STREAM_END) {
        TRY(fds__report(events, "read", "bytes", z->total_in, in_size, start_s, err));
        TRY(make_room(&buffer, &capacity, used, limit, err));
        z->next_out = buffer + used;
        z->avail_out = (uInt)MIN(capacity - 1 - used, FDS__READ_STEP);
        code = inflate(z, Z_NO_FLUSH);
        used = (size_t)(z->next_out - buffer);
        if (used > limit)
            return fds__fail(err, FDS_ERR_LIMIT, "%s: more than %zu bytes when unpacked", path,
                             limit);
        if (code == Z_MEM_ERROR)
            return fds__fail_nomem(err, capacity);
        bool has_more = code == Z_STREAM_END && z->avail_in >= 2 && z->next_in[0] == 0x1f &&
                        z->next_in[1] == 0x8b; /* files may be packed one after another */
        if (has_more)
            code = inflateReset(z);
        if (code == Z_BUF_ERROR || (code == Z_OK && z->avail_in == 0 && z->avail_out > 0))
            return fds__fail(err, FDS_ERR_FORMAT, "%s: gzip data is cut off after %zu bytes", path,
                             in_size);
        if (code != Z_OK && code != Z_STREAM_END)
            return fds__fail(err, FDS_ERR_FORMAT, "%s: gzip data is damaged near byte %lu: %s",
                             path, z->total_in, z->msg ? z->msg : "unknown");
    }
    if (z->avail_in > 0)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: %u bytes after the end of the gzip data", path,
                         z->avail_in);
    buffer[used] = 0;
    *data = buffer;
    *size = used;
    buffer = NULL; /* the caller's now */
    return FDS_OK;
}

fds_status fds__unpack_gzip(const char *path, const uint8_t *in, size_t in_size, size_t limit,
                            const fds_events *events, uint8_t **data, size_t *size,
                            fds_error *err) {
    if (in_size > UINT32_MAX)
        return fds__fail(err, FDS_ERR_UNSUPPORTED,
                         "%s: gzip files of 4 GiB or more are not supported", path);
    z_stream z = {.zalloc = zlib_alloc,
                  .zfree = zlib_free,
                  .next_in = (Bytef *)in,
                  .avail_in = (uInt)in_size};
    if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
        return fds__fail_nomem(err, sizeof z);
    fds_status status = inflate_all(&z, path, limit, events, data, size, err);
    inflateEnd(&z);
    return status;
}

/* ---- Zstandard ---- */

#ifdef FDS_ZSTD

static fds_status decompress_all(ZSTD_DStream *stream, const char *path, ZSTD_inBuffer *in,
                                 size_t limit, const fds_events *events, uint8_t **data,
                                 size_t *size, fds_error *err) {
    const double start_s = fds__now_s();
    OWNED uint8_t *buffer = NULL;
    size_t capacity = 0, used = 0, left = 1;
    while (left > 0 || in->pos < in->size) {
        TRY(fds__report(events, "read", "bytes", in->pos, in->size, start_s, err));
        TRY(make_room(&buffer, &capacity, used, limit, err));
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
    fds_status status = decompress_all(stream, path, &in, limit, events, out, out_size, err);
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
