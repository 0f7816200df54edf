/* SPDX-License-Identifier: Apache-2.0
 * JPEG (libjpeg) to pixels in memory. Damage that libjpeg only warns about is an error here: a
 * picture that is half grey is not the provider's picture. As in image.c, what must survive a
 * longjmp is in a struct that the caller owns. */
#include "data/data.h"

#include <setjmp.h>
#include <jpeglib.h>
#include <jerror.h>

/* A baseline picture of one colour has at most 64 pixels per bit; twice that is damage. */
enum { MAX_PIXELS_PER_BYTE = 1024, MAX_SCANS = 100 };

typedef struct {
    struct jpeg_error_mgr errors; /* first: libjpeg knows only this part */
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct jpeg;
    jmp_buf jump;
    const fds__blob *file;
    uint8_t *pixels;
    fds_status status;
    fds_error *err;
} jpeg_job;

static void stop(jpeg_job *job, fds_status status) {
    job->status = status;
    longjmp(job->jump, 1);
}

static void on_error(j_common_ptr jpeg) {
    jpeg_job *job = (jpeg_job *)jpeg->err;
    char text[JMSG_LENGTH_MAX];
    if (job->errors.msg_code == JERR_OUT_OF_MEMORY)
        stop(job, fds__fail(job->err, FDS_ERR_NOMEM, "%s: out of memory", job->file->path));
    job->errors.format_message(jpeg, text);
    size_t at = job->jpeg.src ? job->file->size - job->jpeg.src->bytes_in_buffer : 0;
    stop(job, fds__fail(job->err, FDS_ERR_FORMAT, "%s: before byte %zu: damaged JPEG: %s",
                        job->file->path, MIN(at, job->file->size), text));
}

static void on_message(j_common_ptr jpeg, int level) {
    if (level < 0)
        on_error(jpeg);
}

/* A small progressive file may demand any number of passes over a large picture. */
static void on_progress(j_common_ptr jpeg) {
    jpeg_job *job = (jpeg_job *)jpeg->err;
    if (job->jpeg.input_scan_number > MAX_SCANS)
        stop(job, fds__fail(job->err, FDS_ERR_LIMIT, "%s: more than %d scans", job->file->path,
                            MAX_SCANS));
}

static void check_size(jpeg_job *job) {
    uint64_t pixels = (uint64_t)job->jpeg.image_width * job->jpeg.image_height;
    if (pixels > FDS__MAX_PICTURE)
        stop(job, fds__fail(job->err, FDS_ERR_LIMIT, "%s: %u x %u pixels, at most %zu are allowed",
                            job->file->path, job->jpeg.image_width, job->jpeg.image_height,
                            FDS__MAX_PICTURE));
    if (pixels / MAX_PIXELS_PER_BYTE > job->file->size)
        stop(job, fds__fail(job->err, FDS_ERR_FORMAT,
                            "%s: %u x %u pixels cannot be in a file of %zu bytes", job->file->path,
                            job->jpeg.image_width, job->jpeg.image_height, job->file->size));
}

static void decode(jpeg_job *job, fds__picture *out) {
    struct jpeg_decompress_struct *jpeg = &job->jpeg;
    if (setjmp(job->jump))
        return;
    jpeg_create_decompress(jpeg);
    jpeg->progress = &job->progress;
    jpeg_mem_src(jpeg, job->file->data, job->file->size);
    jpeg_read_header(jpeg, TRUE);
    check_size(job);
    bool gray = jpeg->jpeg_color_space == JCS_GRAYSCALE;
    jpeg->out_color_space = gray ? JCS_GRAYSCALE : JCS_RGB;
    jpeg->dct_method = JDCT_ISLOW; /* the exact one: the same pixels on every processor */
    jpeg_start_decompress(jpeg);
    out->width = jpeg->output_width;
    out->height = jpeg->output_height;
    out->channels = gray ? 1 : 3;
    size_t row_size = (size_t)out->width * out->channels;
    job->pixels = fds__alloc(row_size * out->height);
    if (!job->pixels)
        stop(job, fds__fail_nomem(job->err, row_size * out->height));
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW row = job->pixels + jpeg->output_scanline * row_size;
        jpeg_read_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_decompress(jpeg);
}

fds_status fds__jpeg_decode(const fds__blob *file, fds__picture *out, fds_error *err) {
    jpeg_job *job = fds__alloc_zero(1, sizeof *job);
    if (!job)
        return fds__fail_nomem(err, sizeof *job);
    job->file = file;
    job->err = err;
    job->jpeg.err = jpeg_std_error(&job->errors);
    job->errors.error_exit = on_error;
    job->errors.emit_message = on_message;
    job->progress.progress_monitor = on_progress;
    decode(job, out);
    jpeg_destroy_decompress(&job->jpeg);
    fds_status status = job->status;
    if (status == FDS_OK)
        out->pixels = job->pixels;
    else
        fds__free(job->pixels);
    fds__free(job);
    return status;
}
