/* SPDX-License-Identifier: Apache-2.0
 * Pictures as samples: those in class folders, DIR/CLASS/NAME.png (or .jpg, .jpeg), and single
 * files.
 *
 * All pictures of a folder have one size. They are read as colour; if none has colour, the dataset
 * has one channel. Classes and pictures are in the byte order of their names. */
#include "data/data.h"

#include <string.h>
#include <strings.h>

/* One DIR while it is read. */
typedef struct {
    const char *dir;
    const fds_events *events;
    double start_s;
    fds__names classes; /* its subfolders */
    uint32_t *class_of; /* subfolder to label */
    uint32_t width, height;
    bool colour;
    uint8_t *pixels;  /* (count, 3, height, width) */
    uint16_t *labels; /* (count) */
    size_t count, pixels_capacity, labels_capacity;
} part;

static bool is_picture_name(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot && (strcasecmp(dot, ".png") == 0 || strcasecmp(dot, ".jpg") == 0 ||
                   strcasecmp(dot, ".jpeg") == 0);
}

/* The subfolders of dir, by name. */
static fds_status list_subfolders(const char *dir, fds__names *out, fds_error *err) {
    fds__names all;
    char path[FDS__PATH_MAX];
    *out = (fds__names){0};
    TRY(fds__dir_list(dir, &all.items, &all.count, err));
    fds_status status = FDS_OK;
    for (size_t i = 0; i < all.count && status == FDS_OK; i++) {
        status = fds__path_join(path, sizeof path, dir, all.items[i], err);
        if (status == FDS_OK && fds__path_is_dir(path))
            status = fds__names_add(out, all.items[i], err);
    }
    fds__names_free(&all);
    if (status != FDS_OK)
        fds__names_free(out);
    return status;
}

static fds_status has_picture(const char *dir, const char *name, bool *found, fds_error *err) {
    char path[FDS__PATH_MAX];
    fds__names files;
    TRY(fds__path_join(path, sizeof path, dir, name, err));
    TRY(fds__dir_list(path, &files.items, &files.count, err));
    for (size_t i = 0; i < files.count; i++)
        *found = *found || is_picture_name(files.items[i]);
    fds__names_free(&files);
    return FDS_OK;
}

fds_status fds__folder_has_pictures(const char *dir, bool *found, fds_error *err) {
    fds__names classes;
    *found = false;
    TRY(list_subfolders(dir, &classes, err));
    fds_status status = FDS_OK;
    for (size_t i = 0; i < classes.count && status == FDS_OK && !*found; i++)
        status = has_picture(dir, classes.items[i], found, err);
    fds__names_free(&classes);
    return status;
}

/* Adds a decoded picture as three planes. */
static fds_status add_picture(part *p, const char *path, const fds__picture *picture,
                              uint32_t label, fds_error *err) {
    if (p->count == 0) {
        p->width = picture->width;
        p->height = picture->height;
    }
    if (picture->width != p->width || picture->height != p->height)
        return fds__fail(
            err, FDS_ERR_SHAPE,
            "%s: %u x %u pixels, but the pictures before it have %u x %u; all pictures "
            "must have the same size",
            path, picture->width, picture->height, p->width, p->height);
    size_t plane = (size_t)p->width * p->height, needed;
    if (!fds__mul(p->count + 1, 3 * plane, &needed))
        return fds__fail(err, FDS_ERR_LIMIT, "%s: too many pictures", p->dir);
    void *pixels = p->pixels, *labels = p->labels;
    fds_status status = fds__grow(&pixels, &p->pixels_capacity, needed, 1, err);
    p->pixels = pixels;
    if (status == FDS_OK)
        status = fds__grow(&labels, &p->labels_capacity, p->count + 1, sizeof *p->labels, err);
    p->labels = labels;
    TRY(status);
    fds__picture_planes(picture, 3, p->pixels + p->count * 3 * plane);
    p->colour = p->colour || picture->channels == 3;
    p->labels[p->count++] = (uint16_t)label;
    return FDS_OK;
}

static fds_status read_picture(part *p, const char *path, uint32_t label, fds_error *err) {
    fds__picture picture;
    TRY(fds__picture_read(path, &picture, err));
    fds_status status = add_picture(p, path, &picture, label, err);
    fds__free(picture.pixels);
    return status;
}

static fds_status read_class(part *p, size_t number, fds_error *err) {
    char dir[FDS__PATH_MAX], path[FDS__PATH_MAX];
    fds__names files;
    TRY(fds__path_join(dir, sizeof dir, p->dir, p->classes.items[number], err));
    TRY(fds__dir_list(dir, &files.items, &files.count, err));
    fds_status status = FDS_OK;
    for (size_t i = 0; i < files.count && status == FDS_OK; i++) {
        if (!is_picture_name(files.items[i]))
            continue;
        status = fds__report(p->events, "read", "class folders", number, p->classes.count,
                             p->start_s, err);
        if (status == FDS_OK)
            status = fds__path_join(path, sizeof path, dir, files.items[i], err);
        if (status == FDS_OK)
            status = read_picture(p, path, p->class_of[number], err);
    }
    fds__names_free(&files);
    return status;
}

/* Folder names are not trimmed as those of CSV files are: they would name another folder. */
static fds_status check_class_name(const char *dir, const char *name, fds_error *err) {
    const char *fault = fds__name_fault(name);
    if (!fault && (strspn(name, " \t") || strchr(" \t", name[strlen(name) - 1])))
        fault = "the name begins or ends with white space; rename the folder";
    return fault ? fds__fail(err, FDS_ERR_FORMAT, "%s/%s: %s", dir, name, fault) : FDS_OK;
}

/* Numbers the classes of all parts together; class_of of the first part owns the numbers of all. */
static fds_status number_classes(part *parts, size_t count, fds__names *classes, fds_error *err) {
    size_t total = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        total += parts[i].classes.count;
    const char **texts = fds__alloc_zero(total, sizeof *texts);
    uint32_t *ids = fds__alloc_zero(total, sizeof *ids);
    parts[0].class_of = ids;
    fds_status status = texts && ids ? FDS_OK : fds__fail_nomem(err, total * sizeof *texts);
    for (size_t i = 0; i < count && status == FDS_OK; i++) {
        parts[i].class_of = ids + at;
        for (size_t k = 0; k < parts[i].classes.count && status == FDS_OK; k++) {
            texts[at++] = parts[i].classes.items[k];
            status = check_class_name(parts[i].dir, parts[i].classes.items[k], err);
        }
    }
    const fds__numbering how = {.limit = FDS__MAX_CLASSES,
                                .what = "class",
                                .source = parts[0].dir,
                                .events = parts[0].events};
    if (status == FDS_OK)
        status = fds__names_number(texts, total, &how, ids, classes, err);
    fds__free(texts);
    return status;
}

static fds_status make_dataset(const part *p, bool colour, const fds__names *classes,
                               fds_dataset **out, fds_error *err) {
    fds_shape shape = {colour ? 3 : 1, p->height, p->width};
    if (p->count == 0)
        return fds__fail(err, FDS_ERR_SHAPE, "%s: no PNG or JPEG pictures in its subfolders",
                         p->dir);
    TRY(fds__dataset_new(p->dir, p->count, shape, true, out, err));
    fds_dataset *ds = *out; /* the caller frees it on failure */
    size_t stride = (size_t)3 * p->width * p->height;
    for (size_t i = 0; i < p->count; i++)
        memcpy(ds->bytes + i * ds->sample_size, p->pixels + i * stride, ds->sample_size);
    memcpy(ds->labels, p->labels, p->count * sizeof *p->labels);
    return fds__dataset_set_classes(ds, classes->items, classes->count, err);
}

fds_status fds__folder_read(const char *const *dirs, size_t count, const fds_events *events,
                            fds_dataset **out, fds_error *err) {
    assert((count == 1 || count == 2) && !out[0] && !out[count - 1]);
    part parts[2] = {{0}};
    fds__names classes = {0};
    fds_status status = FDS_OK;
    bool colour = false;
    for (size_t i = 0; i < count && status == FDS_OK; i++) {
        parts[i] = (part){.dir = dirs[i], .events = events, .start_s = fds__now_s()};
        status = list_subfolders(dirs[i], &parts[i].classes, err);
    }
    if (status == FDS_OK)
        status = number_classes(parts, count, &classes, err);
    for (size_t i = 0; i < count && status == FDS_OK; i++) {
        for (size_t k = 0; k < parts[i].classes.count && status == FDS_OK; k++)
            status = read_class(&parts[i], k, err);
        colour = colour || parts[i].colour;
    }
    for (size_t i = 0; i < count && status == FDS_OK; i++)
        status = make_dataset(&parts[i], colour, &classes, &out[i], err);
    for (size_t i = 0; i < count; i++) {
        fds__names_free(&parts[i].classes);
        fds__free(parts[i].pixels);
        fds__free(parts[i].labels);
        if (status != FDS_OK)
            fds__dataset_drop(&out[i]);
    }
    fds__names_free(&classes);
    fds__free(parts[0].class_of);
    return status;
}

/* ---- single files ---- */

static fds_status read_one(const char *path, fds_dataset *ds, size_t i, fds_error *err) {
    fds__picture picture;
    TRY(fds__picture_read(path, &picture, err));
    fds_status status = FDS_OK;
    if (picture.width == ds->shape.width && picture.height == ds->shape.height)
        fds__picture_planes(&picture, ds->shape.channels, ds->bytes + i * ds->sample_size);
    else
        status = fds__fail(err, FDS_ERR_SHAPE,
                           "%s: %u x %u pixels (width x height), but must have %u x %u", path,
                           picture.width, picture.height, ds->shape.width, ds->shape.height);
    fds__free(picture.pixels);
    return status;
}

fds_status fds__data_pictures(const char *const *paths, size_t count, fds_shape shape,
                              uint32_t classes, fds_dataset **out, fds_error *err) {
    if (shape.channels != 1 && shape.channels != 3)
        return fds__fail(err, FDS_ERR_SHAPE,
                         "pictures have 1 channel or 3, but the samples must be %u x %u x %u",
                         shape.channels, shape.height, shape.width);
    TRY(fds__dataset_new(count == 1 ? paths[0] : "pictures", count, shape, true, out, err));
    fds_dataset *ds = *out;
    ds->classes = classes;
    fds_status status = FDS_OK;
    for (size_t i = 0; i < count && status == FDS_OK; i++)
        status = read_one(paths[i], ds, i, err);
    if (status == FDS_OK)
        status = fds__dataset_finish(ds, NULL, NULL, err);
    if (status != FDS_OK)
        fds__dataset_drop(out);
    return status;
}
