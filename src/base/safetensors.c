/* SPDX-License-Identifier: Apache-2.0
 *
 * The safetensors format, f32 only. I64 tensors, in which PyTorch counts batches, are skipped:
 *
 * - 8 bytes: N, the header's length, little-endian
 * - N bytes: the header, JSON, padded with blanks. {"__metadata__": {key: text, ...}, and for each
 *   tensor name: {"dtype": "F32", "shape": [...], "data_offsets": [begin, end]}, ...}
 * - the rest: the tensors' values, little-endian. Offsets count from here, leave no gap and do not
 *   overlap.
 *
 * Written with tensors in the given order and the header padded so that values begin at a multiple
 * of 64 bytes.
 */
#include "base/base.h"

#include <stdlib.h>
#include <math.h>
#include <string.h>

#define MAX_HEADER ((size_t)100 << 20)
#define MAX_FILE ((size_t)8 << 30)

struct fds__safetensors {
    json_t *header; /* owns names and metadata */
    fds__tensor *tensors;
    size_t count;
    uint8_t *data;      /* the file, its values moved to the front; or */
    const uint8_t *map; /* the file, mapped */
    size_t map_size;
};

/* ---- reading ---- */

typedef struct {
    uint64_t begin, end;
} range;

/* False unless the value is an integer of 0 or more. */
static bool read_integer(const json_t *value, uint64_t *number) {
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *number = (uint64_t)json_integer_value(value);
    return true;
}

/* is_kept: false for a tensor that is skipped */
static fds_status read_entry(const char *path, const char *name, json_t *entry, uint64_t data_size,
                             fds__tensor *tensor, range *where, bool *is_kept, fds_error *err) {
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    json_t *shape = json_object_get(entry, "shape");
    json_t *offsets = json_object_get(entry, "data_offsets");
    if (!dtype || !json_is_array(shape) || json_array_size(offsets) != 2)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: tensor \"%.100s\" must have dtype, shape and two data_offsets", path,
                         name);
    bool is_counter = strcmp(dtype, "I64") == 0;
    if (strcmp(dtype, "F32") != 0 && !is_counter)
        return fds__fail(err, FDS_ERR_UNSUPPORTED,
                         "%s: tensor \"%.100s\" is %.20s, only F32 is supported", path, name,
                         dtype);
    *tensor = (fds__tensor){.name = name, .rank = (uint32_t)json_array_size(shape)};
    if (json_array_size(shape) > 4)
        return fds__fail(err, FDS_ERR_UNSUPPORTED,
                         "%s: tensor \"%.100s\" has more than 4 dimensions", path, name);
    uint64_t size = is_counter ? sizeof(int64_t) : sizeof(float), dim;
    for (uint32_t d = 0; d < tensor->rank; d++) {
        if (!read_integer(json_array_get(shape, d), &dim) || dim > UINT32_MAX ||
            __builtin_mul_overflow(size, dim, &size))
            return fds__fail(err, FDS_ERR_FORMAT, "%s: tensor \"%.100s\": bad shape", path, name);
        tensor->dims[d] = (uint32_t)dim;
    }
    if (!read_integer(json_array_get(offsets, 0), &where->begin) ||
        !read_integer(json_array_get(offsets, 1), &where->end) || where->begin > where->end ||
        where->end > data_size)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: tensor \"%.100s\" does not lie within the file's %llu bytes of data",
                         path, name, (unsigned long long)data_size);
    if (where->end - where->begin != size)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: tensor \"%.100s\" has %llu bytes of data, its shape needs %llu", path,
                         name, (unsigned long long)(where->end - where->begin),
                         (unsigned long long)size);
    *is_kept = !is_counter;
    return FDS_OK;
}

static int by_begin(const void *a, const void *b) {
    const range *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* Every byte of the data belongs to exactly one tensor. */
static fds_status check_cover(const char *path, range *ranges, size_t count, uint64_t data_size,
                              fds_error *err) {
    uint64_t at = 0;
    if (count)
        qsort(ranges, count, sizeof *ranges, by_begin);
    for (size_t i = 0; i < count; i++) {
        if (ranges[i].begin != at)
            return fds__fail(err, FDS_ERR_FORMAT, "%s: tensors %s at byte %llu of the data", path,
                             ranges[i].begin < at ? "overlap" : "leave a gap",
                             (unsigned long long)at);
        at = ranges[i].end;
    }
    if (at != data_size)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: %llu bytes after the last tensor", path,
                         (unsigned long long)(data_size - at));
    return FDS_OK;
}

static fds_status read_entries(const char *path, fds__safetensors *file, const uint8_t *values,
                               uint64_t data_size, fds_error *err) {
    size_t entries = json_object_size(file->header), seen = 0;
    const char *name;
    json_t *entry;
    OWNED range *ranges = NULL;
    TRY(NEW(ranges, entries, err));
    TRY(NEW(file->tensors, entries, err));
    json_object_foreach(file->header, name, entry) {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        bool is_kept = false;
        fds__tensor *tensor = &file->tensors[file->count];
        TRY(read_entry(path, name, entry, data_size, tensor, &ranges[seen], &is_kept, err));
        tensor->values = (const float *)(const void *)(values + ranges[seen++].begin);
        file->count += is_kept;
    }
    return check_cover(path, ranges, seen, data_size, err);
}

static fds_status check_metadata(const char *path, json_t *header, fds_error *err) {
    json_t *meta = json_object_get(header, "__metadata__"), *value;
    const char *key;
    if (meta && !json_is_object(meta))
        return fds__fail(err, FDS_ERR_FORMAT, "%s: __metadata__ must be an object", path);
    json_object_foreach(meta, key, value) {
        if (!json_is_string(value))
            return fds__fail(err, FDS_ERR_FORMAT, "%s: __metadata__ \"%.100s\" must be a text",
                             path, key);
    }
    return FDS_OK;
}

static fds_status parse(const char *path, size_t size, fds__safetensors *file, fds_error *err) {
    const uint8_t *data = file->map ? file->map : file->data;
    uint64_t length = 0;
    if (size < 8)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: %zu bytes are too few for a safetensors file",
                         path, size);
    memcpy(&length, data, 8);
    if (length > size - 8 || length > MAX_HEADER)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: byte 0: the header should have %llu bytes, but only %zu follow", path,
                         (unsigned long long)length, size - 8);
    json_error_t where;
    file->header = json_loadb((const char *)data + 8, length, JSON_REJECT_DUPLICATES, &where);
    if (!file->header)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: byte %d: the header is not JSON: %s", path,
                         where.position + 8, where.text);
    if (!json_is_object(file->header))
        return fds__fail(err, FDS_ERR_FORMAT, "%s: byte 8: the header must be an object", path);
    TRY(check_metadata(path, file->header, err));
    const uint8_t *values = data + 8 + length;
    if (!file->map) { /* where floats are aligned */
        memmove(file->data, values, size - 8 - length);
        values = file->data;
    }
    return read_entries(path, file, values, size - 8 - length, err);
}

fds_status fds__safetensors_parse(const char *path, uint8_t *data, size_t size,
                                  fds__safetensors **out, fds_error *err) {
    fds__safetensors *file = fds__alloc_zero(1, sizeof *file);
    if (!file) {
        fds__free(data);
        return fds__fail_nomem(err, sizeof *file);
    }
    file->data = data;
    fds_status status = parse(path, size, file, err);
    if (status == FDS_OK)
        *out = file;
    else
        fds__safetensors_free(file);
    return status;
}

fds_status fds__safetensors_read(const char *path, fds__safetensors **out, fds_error *err) {
    uint8_t *data;
    size_t size;
    TRY(fds__file_read(path, MAX_FILE, &data, &size, err));
    return fds__safetensors_parse(path, data, size, out, err);
}

/* Whether the values of a mapped file are where floats are aligned. */
static bool is_aligned(const uint8_t *map, size_t size) {
    uint64_t length = 1;
    if (size >= 8)
        memcpy(&length, map, 8);
    return length % sizeof(float) == 0;
}

static fds_status map_file(const char *path, fds__safetensors *file, fds_error *err) {
    fds__file open;
    uint64_t size = 0;
    TRY(fds__file_open(&open, path, FDS__ACCESS_READ, err));
    fds_status status = fds__file_size(&open, &size, err);
    if (status == FDS_OK && size > MAX_FILE)
        status = fds__fail(err, FDS_ERR_LIMIT, "%s: %llu bytes, at most %zu are allowed", path,
                           (unsigned long long)size, MAX_FILE);
    if (status == FDS_OK && size)
        status = fds__file_map(&open, (size_t)size, &file->map, err);
    file->map_size = (size_t)size;
    fds__file_close(&open);
    return status;
}

fds_status fds__safetensors_map(const char *path, fds__safetensors **out, fds_error *err) {
    fds__safetensors *file;
    TRY(NEW(file, 1, err));
    fds_status status = map_file(path, file, err);
    bool is_mapped = status == FDS_OK && file->map && is_aligned(file->map, file->map_size);
    if (is_mapped)
        status = parse(path, file->map_size, file, err);
    if (is_mapped && status == FDS_OK) {
        *out = file;
        return FDS_OK;
    }
    fds__safetensors_free(file);
    return is_mapped || status != FDS_OK ? status : fds__safetensors_read(path, out, err);
}

void fds__safetensors_free(fds__safetensors *file) {
    if (!file)
        return;
    json_decref(file->header);
    fds__free(file->tensors);
    fds__free(file->data);
    fds__file_unmap(file->map, file->map_size);
    fds__free(file);
}

size_t fds__safetensors_count(const fds__safetensors *file) { return file->count; }

const fds__tensor *fds__safetensors_tensor(const fds__safetensors *file, size_t i) {
    assert(i < file->count);
    return &file->tensors[i];
}

const fds__tensor *fds__safetensors_find(const fds__safetensors *file, const char *name) {
    for (size_t i = 0; i < file->count; i++)
        if (strcmp(file->tensors[i].name, name) == 0)
            return &file->tensors[i];
    return NULL;
}

static size_t tensor_bytes(const fds__tensor *t) {
    size_t bytes = sizeof(float);
    assert(t->rank <= sizeof t->dims / sizeof *t->dims);
    for (uint32_t d = 0; d < t->rank; d++)
        bytes *= t->dims[d];
    return bytes;
}

/* The first that is infinite or no number, or count. 0 times such a value is NaN, and otherwise 0, so
 * that vectors can sum a block. */
static size_t find_not_finite(const float *values, size_t count) {
    enum { BLOCK = 1024, LANES = 16 };
    size_t i = 0;
    for (; i + BLOCK <= count; i += BLOCK) {
        float sum[LANES] = {0}, all = 0;
        for (size_t k = 0; k < BLOCK; k += LANES)
            for (size_t l = 0; l < LANES; l++)
                sum[l] += 0 * values[i + k + l];
        for (size_t l = 0; l < LANES; l++)
            all += sum[l];
        if (all != 0)
            break;
    }
    while (i < count && isfinite(values[i]))
        i++;
    return i;
}

fds_status fds__safetensors_check(const char *path, const fds__safetensors *file, const char *owner,
                                  const char *name, uint32_t rank, const uint32_t dims[4],
                                  fds_error *err) {
    const fds__tensor *t = fds__safetensors_find(file, name);
    if (!t)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: tensor \"%s\" of %s is missing", path, name,
                         owner);
    if (t->rank != rank || memcmp(t->dims, dims, sizeof t->dims) != 0)
        return fds__fail(err, FDS_ERR_SHAPE,
                         "%s: tensor \"%s\" has the wrong shape: %u dimensions (%u, %u, %u, %u) "
                         "instead of %u (%u, %u, %u, %u)",
                         path, name, t->rank, t->dims[0], t->dims[1], t->dims[2], t->dims[3], rank,
                         dims[0], dims[1], dims[2], dims[3]);
    const size_t count = tensor_bytes(t) / sizeof(float), odd = find_not_finite(t->values, count);
    if (odd < count)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: tensor \"%s\": value %zu is infinite or not a number", path, name,
                         odd);
    return FDS_OK;
}

const char *fds__safetensors_meta(const fds__safetensors *file, const char *key) {
    return json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), key));
}

/* ---- writing ---- */

/* NULL: out of memory, or a text is not UTF-8. */
static char *make_header(const char *dtype, const fds__tensor *tensors, size_t count,
                         const fds__meta *meta, size_t meta_count) {
    json_t *header = json_object(), *metadata = json_object();
    bool right = json_object_set_new(header, "__metadata__", metadata) == 0;
    for (size_t i = 0; right && i < meta_count; i++)
        right = json_object_set_new(metadata, meta[i].key, json_string(meta[i].value)) == 0;
    json_int_t at = 0;
    for (size_t i = 0; right && i < count; i++) {
        json_int_t end = at + (json_int_t)tensor_bytes(&tensors[i]);
        json_t *shape = json_array();
        for (uint32_t d = 0; d < tensors[i].rank; d++)
            right &= json_array_append_new(shape, json_integer(tensors[i].dims[d])) == 0;
        json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype, "shape", shape,
                                  "data_offsets", at, end);
        right &= json_object_set_new(header, tensors[i].name, entry) == 0;
        at = end;
    }
    char *text = right ? fds__json_text(header, JSON_COMPACT) : NULL;
    json_decref(header);
    return text;
}

/* The header's length, with the blanks that make values begin at a multiple of 64 bytes. */
static uint64_t padded(const char *header) { return (8 + strlen(header) + 63) / 64 * 64 - 8; }

fds_status fds__safetensors_write(const char *path, const fds__tensor *tensors, size_t count,
                                  const fds__meta *meta, size_t meta_count,
                                  const fds_events *events, fds_error *err) {
    OWNED char *header = make_header("F32", tensors, count, meta, meta_count);
    if (!header)
        return fds__fail(err, FDS_ERR_NOMEM, "%s: out of memory for the file's header", path);
    const size_t used = strlen(header);
    const uint64_t length = padded(header);
    uint8_t blanks[64];
    memset(blanks, ' ', sizeof blanks);
    uint64_t total = sizeof length + length;
    for (size_t i = 0; i < count; i++)
        total += tensor_bytes(&tensors[i]);
    fds__out *out;
    TRY(fds__out_open(path, &out, err));
    fds__out_hear(out, total, events);
    fds_status status = fds__out_write(out, &length, sizeof length, err);
    if (status == FDS_OK)
        status = fds__out_write(out, header, used, err);
    if (status == FDS_OK)
        status = fds__out_write(out, blanks, (size_t)length - used, err);
    for (size_t i = 0; status == FDS_OK && i < count; i++)
        status = fds__out_write(out, tensors[i].values, tensor_bytes(&tensors[i]), err);
    if (status == FDS_OK)
        return fds__out_commit(out, err);
    fds__out_abort(out);
    return status;
}

fds_status fds__safetensors_pack(const char *dtype, const fds__tensor *tensors, size_t count,
                                 const fds__meta *meta, size_t meta_count, size_t before,
                                 uint8_t **data, size_t *size, fds_error *err) {
    OWNED char *header = make_header(dtype, tensors, count, meta, meta_count);
    if (!header)
        return fds__fail_json(err);
    const uint64_t length = padded(header);
    size_t all = before + 8 + length;
    for (size_t i = 0; i < count; i++)
        all += tensor_bytes(&tensors[i]);
    TRY(NEW(*data, all, err));
    uint8_t *at = *data + before;
    memcpy(at, &length, 8);
    memset(at + 8, ' ', length);
    memcpy(at + 8, header, strlen(header));
    at += 8 + length;
    for (size_t i = 0; i < count; at += tensor_bytes(&tensors[i++]))
        memcpy(at, tensors[i].values, tensor_bytes(&tensors[i]));
    *size = all;
    return FDS_OK;
}
