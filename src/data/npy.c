/* SPDX-License-Identifier: Apache-2.0
 * NPY, the format of numpy.save, versions 1 to 3.
 *
 *   0  6 bytes  93 'N' 'U' 'M' 'P' 'Y'
 *   6  u8       version, major and minor
 *   8  u16      length of the header; u32 in versions 2 and 3; little-endian
 *      text     {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), } and spaces
 *      values   in row-major order or, with fortran_order, first index fastest
 *
 * Values: (n, features), (n, height, width), (n, channels, height, width), or (n, height, width,
 * channels) where the last is 1 or 3 and the second is not. Labels: (n) or (n, 1), any integers.
 * Names of providers: (n) or (n, 1), integers or texts ('<U12', UTF-32; '|S12', bytes). */
#include "data/data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANK = 4, MAX_DIGITS = 15 };

typedef struct {
    char kind; /* 'u', 'i', 'f', 'U' or 'S' */
    unsigned item_size;
    bool big_endian, fortran, has_descr, has_order, has_shape;
    unsigned rank;
    size_t dims[MAX_RANK];
    size_t strides[MAX_RANK]; /* in items */
    const uint8_t *items;
} npy_array;

/* ---- the header: a Python dictionary of three known keys ---- */

typedef struct {
    const fds__blob *file;
    size_t at, end;
    fds_error *err;
} cursor;

static fds_status expected(const cursor *c, const char *what) {
    return fds__fail(c->err, FDS_ERR_FORMAT, "%s: byte %zu: expected %s in the NPY header",
                     c->file->path, c->at, what);
}

static char peek(cursor *c) {
    while (c->at < c->end && strchr(" \t\n\r", c->file->data[c->at]) && c->file->data[c->at])
        c->at++;
    return c->at < c->end ? (char)c->file->data[c->at] : 0;
}

static bool accept(cursor *c, char wanted) {
    if (peek(c) != wanted)
        return false;
    c->at++;
    return true;
}

static bool accept_word(cursor *c, const char *word) {
    peek(c);
    size_t len = strlen(word);
    if (c->end - c->at < len || memcmp(c->file->data + c->at, word, len) != 0)
        return false;
    c->at += len;
    return true;
}

static fds_status parse_string(cursor *c, char *out, size_t out_size) {
    char quote = peek(c);
    if (quote != '\'' && quote != '"')
        return expected(c, "a quoted text");
    const uint8_t *start = c->file->data + c->at + 1;
    const uint8_t *close = memchr(start, quote, c->end - c->at - 1);
    if (!close || (size_t)(close - start) >= out_size)
        return expected(c, "a short quoted text");
    memcpy(out, start, (size_t)(close - start));
    out[close - start] = 0;
    c->at += (size_t)(close - start) + 2;
    return FDS_OK;
}

static fds_status parse_descr(cursor *c, npy_array *a) {
    static const char *const known[] = {"u1", "i1", "u2", "i2", "u4", "i4",
                                        "u8", "i8", "f4", "f8", NULL};
    if (peek(c) == '[')
        return fds__fail(c->err, FDS_ERR_UNSUPPORTED,
                         "%s: byte %zu: arrays of records are not supported", c->file->path, c->at);
    char text[16];
    TRY(parse_string(c, text, sizeof text));
    size_t digits = strlen(text) > 2 ? strspn(text + 2, "0123456789") : 0;
    if (digits && strchr("<>|", text[0]) && strchr("US", text[1]) && digits >= 1 && digits <= 4 &&
        !text[2 + digits]) {
        a->kind = text[1];
        a->item_size = (unsigned)atoi(text + 2) * (a->kind == 'U' ? 4 : 1);
        a->big_endian = text[0] == '>';
        a->has_descr = true;
        return FDS_OK;
    }
    for (int i = 0; known[i]; i++) {
        if (!strchr("<>|", text[0]) || !text[0] || strcmp(text + 1, known[i]) != 0)
            continue;
        a->kind = text[1];
        a->item_size = (unsigned)(text[2] - '0');
        a->big_endian = text[0] == '>';
        a->has_descr = true;
        return FDS_OK;
    }
    return fds__fail(
        c->err, FDS_ERR_UNSUPPORTED,
        "%s: values of type '%s' are not supported; use uint8, float32 or float64, and "
        "integers for labels",
        c->file->path, text);
}

static fds_status parse_dim(cursor *c, npy_array *a) {
    size_t dim = 0;
    int digits = 0;
    bool leading_zero = peek(c) == '0';
    for (; c->at < c->end && c->file->data[c->at] >= '0' && c->file->data[c->at] <= '9'; c->at++) {
        if (++digits > MAX_DIGITS)
            return fds__fail(c->err, FDS_ERR_LIMIT,
                             "%s: byte %zu: a dimension of more than %d digits", c->file->path,
                             c->at, MAX_DIGITS);
        dim = dim * 10 + (size_t)(c->file->data[c->at] - '0');
    }
    if (digits == 0 || (leading_zero && digits > 1))
        return expected(c, "a number");
    accept(c, 'L'); /* Python 2 wrote long integers in this way */
    if (a->rank == MAX_RANK)
        return fds__fail(c->err, FDS_ERR_SHAPE, "%s: more than %d dimensions", c->file->path,
                         MAX_RANK);
    a->dims[a->rank++] = dim;
    return FDS_OK;
}

static fds_status parse_shape(cursor *c, npy_array *a) {
    if (!accept(c, '('))
        return expected(c, "'('");
    while (!accept(c, ')')) {
        TRY(parse_dim(c, a));
        if (!accept(c, ',') && peek(c) != ')')
            return expected(c, "',' or ')'");
    }
    a->has_shape = true;
    return FDS_OK;
}

static fds_status parse_entry(cursor *c, npy_array *a) {
    char key[16];
    TRY(parse_string(c, key, sizeof key));
    if (!accept(c, ':'))
        return expected(c, "':'");
    if (strcmp(key, "descr") == 0 && !a->has_descr)
        return parse_descr(c, a);
    if (strcmp(key, "shape") == 0 && !a->has_shape)
        return parse_shape(c, a);
    if (strcmp(key, "fortran_order") != 0 || a->has_order)
        return expected(c, "one each of 'descr', 'fortran_order', 'shape'");
    a->fortran = accept_word(c, "True");
    if (!a->fortran && !accept_word(c, "False"))
        return expected(c, "True or False");
    a->has_order = true;
    return FDS_OK;
}

static fds_status parse_dictionary(cursor *c, npy_array *a) {
    if (!accept(c, '{'))
        return expected(c, "'{'");
    while (!accept(c, '}')) {
        TRY(parse_entry(c, a));
        if (!accept(c, ',') && peek(c) != '}')
            return expected(c, "',' or '}'");
    }
    if (!a->has_descr || !a->has_order || !a->has_shape)
        return expected(c, "one each of 'descr', 'fortran_order', 'shape'");
    peek(c);
    return c->at == c->end ? FDS_OK : expected(c, "the end");
}

/* Where the header's text begins and ends. */
static fds_status parse_preamble(const fds__blob *file, cursor *c) {
    const uint8_t *d = file->data;
    if (file->size < 10 || memcmp(d, "\x93NUMPY", 6) != 0)
        return fds__fail(c->err, FDS_ERR_FORMAT, "%s: byte 0: not an NPY file", file->path);
    if (d[6] < 1 || d[6] > 3 || d[7] != 0)
        return fds__fail(c->err, FDS_ERR_UNSUPPORTED,
                         "%s: byte 6: NPY version %u.%u; supported are 1.0 to 3.0", file->path,
                         d[6], d[7]);
    size_t start = d[6] == 1 ? 10 : 12, length = d[8] | (size_t)d[9] << 8;
    if (d[6] > 1 && file->size >= start)
        length |= (size_t)d[10] << 16 | (size_t)d[11] << 24;
    if (file->size < start || length > file->size - start)
        return fds__fail(c->err, FDS_ERR_FORMAT,
                         "%s: byte 8: a header of %zu bytes does not fit a file of %zu", file->path,
                         length, file->size);
    c->at = start;
    c->end = start + length;
    return FDS_OK;
}

static fds_status parse_array(const fds__blob *file, npy_array *a, fds_error *err) {
    *a = (npy_array){0};
    cursor c = {.file = file, .err = err};
    TRY(parse_preamble(file, &c));
    TRY(parse_dictionary(&c, a));
    size_t items = 1, size;
    bool fits = true;
    for (unsigned i = 0; i < a->rank; i++) {
        unsigned axis = a->fortran ? i : a->rank - 1 - i;
        a->strides[axis] = items;
        fits = fits && fds__mul(items, a->dims[axis], &items);
    }
    if (!fits || !fds__mul(items, a->item_size, &size) || size != file->size - c.end)
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: byte %zu: %zu bytes of values do not agree with the header",
                         file->path, c.end, file->size - c.end);
    a->items = file->data + c.end;
    return FDS_OK;
}

/* ---- values ---- */

/* The bits of item i, in the low bytes. */
static uint64_t get_bits(const npy_array *a, size_t i) {
    const uint8_t *at = a->items + i * a->item_size;
    uint64_t bits = 0;
    for (unsigned k = 0; k < a->item_size; k++)
        bits = bits << 8 | at[a->big_endian ? k : a->item_size - 1 - k];
    return bits;
}

static float get_float(const npy_array *a, size_t i) {
    uint64_t bits = get_bits(a, i);
    uint32_t low = (uint32_t)bits;
    double wide;
    float narrow;
    memcpy(&wide, &bits, sizeof wide);
    memcpy(&narrow, &low, sizeof narrow);
    return a->item_size == 8 ? (float)wide : narrow;
}

static double get_double(const npy_array *a, size_t i) {
    uint64_t bits = get_bits(a, i);
    unsigned unused = 64 - 8 * a->item_size;
    double wide;
    if (a->kind == 'u')
        return (double)bits;
    if (a->kind == 'i') /* the shift left and right extends the sign */
        return (double)((int64_t)(bits << unused) >> unused);
    memcpy(&wide, &bits, sizeof wide);
    return a->item_size == 8 ? wide : (double)get_float(a, i);
}

/* Channels, rows and columns of a sample: how many, and how far apart in the file. */
typedef struct {
    size_t size[3], stride[3];
} layout;

static fds_status find_layout(const fds__blob *file, const npy_array *a, layout *l,
                              fds_error *err) {
    static const int axes[5][3] = {{0}, {0}, {1, 0, 0}, {0, 1, 2}, {1, 2, 3}};
    static const int channels_last[3] = {3, 1, 2};
    if (a->rank < 2)
        return fds__fail(
            err, FDS_ERR_SHAPE,
            "%s: %u dimensions; must be (n, features), (n, height, width) or (n, channels, "
            "height, width)",
            file->path, a->rank);
    size_t last = a->dims[a->rank - 1];
    bool is_last = a->rank == 4 && (last == 1 || last == 3) && a->dims[1] != 1 && a->dims[1] != 3;
    for (int k = 0; k < 3; k++) {
        int axis = is_last ? channels_last[k] : axes[a->rank][k];
        l->size[k] = axis ? a->dims[axis] : 1;
        l->stride[k] = axis ? a->strides[axis] : 0;
        if (l->size[k] > FDS__MAX_SIDE)
            return fds__fail(err, FDS_ERR_LIMIT, "%s: a dimension of %zu, at most %u are allowed",
                             file->path, l->size[k], FDS__MAX_SIDE);
    }
    return FDS_OK;
}

/* Whether the file has the values in the order and form of a dataset. */
static bool is_as_kept(const npy_array *a, const layout *l) {
    static const uint16_t one = 1;
    bool is_big_endian = *(const uint8_t *)&one == 0;
    size_t apart = 1;
    for (int k = 2; k >= 0; apart *= l->size[k--])
        if (l->size[k] > 1 && l->stride[k] != apart)
            return false;
    return (a->dims[0] < 2 || a->strides[0] == apart) &&
           (a->item_size == 1 || (a->item_size == 4 && a->big_endian == is_big_endian));
}

static void copy_values(const npy_array *a, const layout *l, fds_dataset *ds) {
    size_t out = 0;
    for (size_t n = 0; n < ds->count; n++)
        for (size_t c = 0; c < l->size[0]; c++)
            for (size_t h = 0; h < l->size[1]; h++)
                for (size_t w = 0; w < l->size[2]; w++, out++) {
                    size_t i =
                        n * a->strides[0] + c * l->stride[0] + h * l->stride[1] + w * l->stride[2];
                    if (ds->bytes)
                        ds->bytes[out] = a->items[i];
                    else
                        ds->floats[out] = get_float(a, i);
                }
}

static fds_status copy_labels(const fds__blob *file, const npy_array *a, fds_dataset *ds,
                              fds_error *err) {
    unsigned unused = 64 - 8 * a->item_size;
    for (size_t i = 0; i < ds->count; i++) {
        uint64_t bits = get_bits(a, i) << unused;
        bool negative = a->kind == 'i' && bits >> 63;
        if (negative || (bits >> unused) >= FDS__MAX_CLASSES)
            return fds__fail(err, FDS_ERR_FORMAT, "%s: label %zu (from 0) is not within 0 to %u",
                             file->path, i, FDS__MAX_CLASSES - 1);
        ds->labels[i] = (uint16_t)(bits >> unused);
    }
    return FDS_OK;
}

static fds_status make_values(fds__blob *file, const npy_array *x, fds_dataset **out,
                              fds_error *err) {
    layout l;
    bool is_bytes = x->kind == 'u' && x->item_size == 1;
    if (!is_bytes && x->kind != 'f')
        return fds__fail(err, FDS_ERR_UNSUPPORTED,
                         "%s: samples of type %c%u; use uint8, float32 or float64", file->path,
                         x->kind, x->item_size);
    TRY(find_layout(file, x, &l, err));
    fds_shape shape = {(uint32_t)l.size[0], (uint32_t)l.size[1], (uint32_t)l.size[2]};
    TRY(fds__dataset_new(file->path, x->dims[0], shape, is_bytes, out, err));
    fds_dataset *ds = *out;
    void *kept = NULL;
    if (is_as_kept(x, &l))
        kept = fds__blob_keep(file, (size_t)(x->items - file->data),
                              is_bytes ? (void *)ds->bytes : ds->floats);
    if (!kept)
        copy_values(x, &l, ds);
    else if (is_bytes)
        ds->bytes = kept;
    else
        ds->floats = kept;
    return FDS_OK;
}

fds_status fds__npy_values(fds__blob *values, fds_dataset **out, fds_error *err) {
    npy_array x;
    TRY(parse_array(values, &x, err));
    return make_values(values, &x, out, err);
}

fds_status fds__npy_doubles(const fds__blob *file, size_t dims[4], unsigned *rank, double **out,
                            fds_error *err) {
    npy_array a;
    TRY(parse_array(file, &a, err));
    if (a.rank < 1 || strchr("US", a.kind))
        return fds__fail(err, FDS_ERR_SHAPE, "%s: must be an array of numbers", file->path);
    size_t count = 1;
    for (unsigned d = 0; d < a.rank; d++)
        count *= dims[d] = a.dims[d];
    *rank = a.rank;
    TRY(NEW(*out, count, err));
    for (size_t i = 0; i < count; i++) {
        size_t at = 0, rest = i;
        for (unsigned d = a.rank; d-- > 0; rest /= a.dims[d])
            at += rest % a.dims[d] * a.strides[d];
        (*out)[i] = get_double(&a, at);
    }
    return FDS_OK;
}

/* Integers or floats. */
static fds_status copy_targets(const npy_array *a, fds_dataset *ds, fds_error *err) {
    OWNED double *targets = NULL;
    TRY(NEW(targets, ds->count, err));
    for (size_t i = 0; i < ds->count; i++)
        targets[i] = get_double(a, i);
    return fds_dataset_set_targets(ds, targets, err);
}

static fds_status parse_pair(fds__blob *values, const fds__blob *labels, bool is_regression,
                             fds_dataset **out, fds_error *err) {
    npy_array x, y;
    TRY(parse_array(values, &x, err));
    TRY(parse_array(labels, &y, err));
    bool is_number = y.kind == 'i' || y.kind == 'u' || (is_regression && y.kind == 'f');
    if (!is_number || y.rank < 1 || y.rank > 2 || (y.rank == 2 && y.dims[1] != 1))
        return fds__fail(err, FDS_ERR_SHAPE, "%s: %s of shape (n) or (n, 1)%s", labels->path,
                         is_regression ? "targets must be numbers" : "labels must be integers",
                         y.kind == 'f' && !is_regression
                             ? "; --task regression takes floats as numbers to predict"
                             : "");
    if (x.rank && x.dims[0] != y.dims[0])
        return fds__fail(err, FDS_ERR_SHAPE, "%s has %zu samples, but %s has %zu labels",
                         values->path, x.dims[0], labels->path, y.dims[0]);
    TRY(make_values(values, &x, out, err));
    fds_status status =
        is_regression ? copy_targets(&y, *out, err) : copy_labels(labels, &y, *out, err);
    if (status != FDS_OK)
        fds__dataset_drop(out);
    return status;
}

fds_status fds__npy_parse(fds__blob *values, const fds__blob *labels, fds_dataset **out,
                          fds_error *err) {
    return parse_pair(values, labels, false, out, err);
}

fds_status fds__npy_parse_targets(fds__blob *values, const fds__blob *targets, fds_dataset **out,
                                  fds_error *err) {
    return parse_pair(values, targets, true, out, err);
}

/* ---- texts ---- */

enum { LONGEST_TEXT = 1024 };

/* Appends a character as UTF-8; false: it is none. */
static bool put_utf8(uint32_t code, char *out, size_t *used) {
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return false;
    if (code < 0x80) {
        out[(*used)++] = (char)code;
        return true;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint8_t marks[] = {0, 0xc0, 0xe0, 0xf0};
    out[(*used)++] = (char)(marks[more] | code >> (6 * more));
    while (more--)
        out[(*used)++] = (char)(0x80 | (code >> (6 * more) & 0x3f));
    return true;
}

/* Item i as a text; numpy pads texts with zeros. */
static bool get_text(const npy_array *a, size_t i, char out[4 * LONGEST_TEXT + 1]) {
    const uint8_t *at = a->items + i * a->item_size;
    size_t used = 0, step = a->kind == 'U' ? 4 : 1;
    if (a->kind == 'i' || a->kind == 'u') {
        unsigned unused = 64 - 8 * a->item_size;
        uint64_t bits = get_bits(a, i) << unused;
        int64_t number;
        memcpy(&number, &bits, sizeof number);
        return a->kind == 'i' ? sprintf(out, "%" PRId64, number >> unused) > 0
                              : sprintf(out, "%" PRIu64, bits >> unused) > 0;
    }
    for (size_t k = 0; k < a->item_size; k += step) {
        uint32_t code = at[k];
        for (unsigned b = 1; b < step; b++)
            code = a->big_endian ? code << 8 | at[k + b] : code | (uint32_t)at[k + b] << (8 * b);
        if (!code)
            break;
        if (k == LONGEST_TEXT * step)
            return false;
        if (step == 1)
            out[used++] = (char)code;
        else if (!put_utf8(code, out, &used))
            return false;
    }
    out[used] = 0;
    return true;
}

fds_status fds__npy_texts(const fds__blob *file, fds__names *out, fds_error *err) {
    npy_array a;
    char text[4 * LONGEST_TEXT + 1];
    TRY(parse_array(file, &a, err));
    if (a.kind == 'f' || a.rank < 1 || a.rank > 2 || (a.rank == 2 && a.dims[1] != 1))
        return fds__fail(err, FDS_ERR_SHAPE, "%s: must be integers or texts of shape (n) or (n, 1)",
                         file->path);
    for (size_t i = 0; i < a.dims[0]; i++) {
        const char *fault = get_text(&a, i, text) ? fds__name_fault(text)
                                                  : "not a text of at most 1,024 characters";
        if (!fault && !*fds__name_trim(text))
            fault = "empty";
        if (fault)
            return fds__fail(err, FDS_ERR_FORMAT, "%s: item %zu (from 0): %s", file->path, i,
                             fault);
        TRY(fds__names_add(out, fds__name_trim(text), err));
    }
    return FDS_OK;
}
