/* SPDX-License-Identifier: Apache-2.0
 * Pictures in memory from and to PNG (libpng); only this file writes PNG.
 *
 * libpng reports errors by longjmp, after which local variables are undefined: everything that must
 * survive a jump is in a png_job, which the caller of the jumping function owns. */
#include "data/data.h"

#include <png.h>
#include <string.h>

typedef struct {
    const char *path;
    const uint8_t *in; /* reading */
    size_t in_size, at;
    uint8_t *out; /* writing */
    size_t out_size, out_capacity;
    uint8_t *pixels;
    png_bytep *rows;
    bool no_memory;
    fds_status status; /* set before a jump of our own; else libpng's message is used */
    fds_error *err;
} png_job;

static png_voidp on_alloc(png_structp png, png_alloc_size_t size) {
    png_job *job = png_get_mem_ptr(png);
    void *memory = fds__alloc(size);
    if (!memory)
        job->no_memory = true;
    return memory;
}

static void on_free(png_structp png, png_voidp memory) {
    (void)png;
    fds__free(memory);
}

static void on_error(png_structp png, png_const_charp text) {
    png_job *job = png_get_error_ptr(png);
    if (job->status == FDS_OK && job->no_memory)
        job->status = fds__fail(job->err, FDS_ERR_NOMEM, "%s: out of memory", job->path);
    else if (job->status == FDS_OK)
        job->status = fds__fail(job->err, FDS_ERR_FORMAT, "%s: byte %zu: damaged PNG: %s",
                                job->path, job->at, text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text) {
    (void)png;
    (void)text;
}

/* Stops with an error that is already described. */
static void stop(png_structp png, fds_status status) {
    ((png_job *)png_get_error_ptr(png))->status = status;
    png_error(png, "stopped");
}

/* ---- decoding ---- */

static void on_read(png_structp png, png_bytep out, size_t size) {
    png_job *job = png_get_io_ptr(png);
    if (size > job->in_size - job->at)
        stop(png, fds__fail(job->err, FDS_ERR_FORMAT, "%s: byte %zu: the PNG file is cut off",
                            job->path, job->in_size));
    memcpy(out, job->in + job->at, size);
    job->at += size;
}

/* Refuses a large picture before it takes memory: deflate compresses at most 1032 : 1. */
static void check_size(png_structp png, png_infop info, const png_job *job) {
    uint64_t width = png_get_image_width(png, info), height = png_get_image_height(png, info);
    uint64_t packed = png_get_rowbytes(png, info) * height;
    if (width * height > FDS__MAX_PICTURE)
        stop(png, fds__fail(job->err, FDS_ERR_LIMIT, "%s: %u x %u pixels, at most %zu are allowed",
                            job->path, (unsigned)width, (unsigned)height, FDS__MAX_PICTURE));
    if (packed / 1032 > job->in_size)
        stop(png, fds__fail(job->err, FDS_ERR_FORMAT,
                            "%s: byte 16: %u x %u pixels cannot be in a file of %zu bytes",
                            job->path, (unsigned)width, (unsigned)height, job->in_size));
}

static void decode_png(png_structp png, png_infop info, png_job *job, fds__picture *out) {
    if (setjmp(png_jmpbuf(png)))
        return;
    png_set_read_fn(png, job, on_read);
    png_set_user_limits(png, FDS__MAX_SIDE, FDS__MAX_SIDE);
    /* -1: skip every chunk that does not change pixels; for some of them libpng would allocate what
     * their length field says */
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_read_info(png, info);
    check_size(png, info, job);
    png_set_expand(png); /* palettes to colours, 1, 2 and 4 bits to 8 */
    png_set_scale_16(png);
    png_set_strip_alpha(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    out->width = png_get_image_width(png, info);
    out->height = png_get_image_height(png, info);
    out->channels = png_get_channels(png, info);
    size_t row_size = (size_t)out->width * out->channels;
    if (png_get_rowbytes(png, info) != row_size || (out->channels != 1 && out->channels != 3))
        stop(png,
             fds__fail(job->err, FDS_ERR_UNSUPPORTED, "%s: must be gray or colour", job->path));
    job->pixels = fds__alloc(row_size * out->height);
    job->rows = fds__alloc(out->height * sizeof *job->rows);
    if (!job->pixels || !job->rows)
        stop(png, fds__fail_nomem(job->err, row_size * out->height));
    for (uint32_t y = 0; y < out->height; y++)
        job->rows[y] = job->pixels + y * row_size;
    png_read_image(png, job->rows);
    png_read_end(png, NULL);
}

static fds_status png_decode(const fds__blob *file, fds__picture *out, fds_error *err) {
    png_job job = {.path = file->path, .in = file->data, .in_size = file->size, .err = err};
    png_structp png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &job, on_error, on_warning,
                                               &job, on_alloc, on_free);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (info)
        decode_png(png, info, &job, out);
    else
        job.status = fds__fail_nomem(err, 1024);
    png_destroy_read_struct(&png, &info, NULL);
    fds__free(job.rows);
    if (job.status == FDS_OK)
        out->pixels = job.pixels;
    else
        fds__free(job.pixels);
    return job.status;
}

fds_status fds__picture_decode(const fds__blob *file, fds__picture *out, fds_error *err) {
    *out = (fds__picture){0};
    if (file->size >= 8 && memcmp(file->data, "\x89PNG\r\n\x1a\n", 8) == 0)
        return png_decode(file, out, err);
    if (file->size >= 2 && memcmp(file->data, "\xff\xd8", 2) == 0)
        return fds__jpeg_decode(file, out, err);
    return fds__fail(err, FDS_ERR_FORMAT, "%s: byte 0: neither PNG nor JPEG", file->path);
}

fds_status fds__picture_read(const char *path, fds__picture *out, fds_error *err) {
    fds__blob file = {.path = path};
    TRY(fds__file_read(path, FDS__MAX_PICTURE, &file.data, &file.size, err));
    fds_status status = fds__picture_decode(&file, out, err);
    fds__free(file.data);
    return status;
}

/* The luma weights of Rec. 601. */
static uint8_t gray_of(const uint8_t *pixel) {
    return (uint8_t)((299u * pixel[0] + 587u * pixel[1] + 114u * pixel[2] + 500u) / 1000u);
}

void fds__picture_planes(const fds__picture *picture, uint32_t channels, uint8_t *out) {
    size_t plane = (size_t)picture->width * picture->height, from = picture->channels;
    for (size_t k = 0; k < plane; k++) {
        const uint8_t *pixel = picture->pixels + k * from;
        for (size_t c = 0; c < channels; c++)
            out[c * plane + k] = from == 1 ? pixel[0] : channels == 1 ? gray_of(pixel) : pixel[c];
    }
}

/* ---- encoding ---- */

static void on_write(png_structp png, png_bytep data, size_t size) {
    png_job *job = png_get_io_ptr(png);
    void *out = job->out;
    fds_status status = fds__grow(&out, &job->out_capacity, job->out_size + size, 1, job->err);
    job->out = out;
    if (status != FDS_OK)
        stop(png, status);
    memcpy(job->out + job->out_size, data, size);
    job->out_size += size;
}

static void encode_png(png_structp png, png_infop info, png_job *job, const fds__picture *picture) {
    if (setjmp(png_jmpbuf(png)))
        return;
    png_set_write_fn(png, job, on_write, NULL);
    png_set_compression_level(png, 9);
    png_set_IHDR(png, info, picture->width, picture->height, 8,
                 picture->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    size_t row_size = (size_t)picture->width * picture->channels;
    for (uint32_t y = 0; y < picture->height; y++)
        png_write_row(png, picture->pixels + y * row_size);
    png_write_end(png, NULL);
}

fds_status fds__png_encode(const fds__picture *picture, uint8_t **data, size_t *size,
                           fds_error *err) {
    assert(picture->channels == 1 || picture->channels == 3);
    png_job job = {.path = "a PNG picture in memory", .err = err};
    png_structp png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &job, on_error, on_warning,
                                                &job, on_alloc, on_free);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (info)
        encode_png(png, info, &job, picture);
    else
        job.status = fds__fail_nomem(err, 1024);
    png_destroy_write_struct(&png, &info);
    if (job.status != FDS_OK) {
        fds__free(job.out);
        return job.status;
    }
    *data = job.out;
    *size = job.out_size;
    return FDS_OK;
}

fds_status fds__png_write(const fds__picture *picture, const char *path, fds_error *err) {
    uint8_t *data = NULL;
    size_t size = 0;
    TRY(fds__path_check_ending(path, ".png", err));
    TRY(fds__png_encode(picture, &data, &size, err));
    fds_status status = fds__file_write(path, data, size, err);
    fds__free(data);
    return status;
}
