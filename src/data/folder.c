/* SPDX-License-Identifier: Apache-2.0
 * Pictures as samples: those in class folders, DIR/CLASS/NAME.png (or .jpg, .jpeg), in class folders
 * of providers, DIR/PROVIDER/CLASS/NAME.png, and single files.
 *
 * All pictures of a folder have one size, or are scaled to one. They are read as colour; if none has colour, the dataset
 * has one channel. Providers, classes and pictures are in the byte order of their names. A sample's
 * name is its path within DIR. */
#include "data/data.h"

#include <string.h>
#include <strings.h>

/* One DIR while it is read. */
typedef struct {
    const char *dir;
    const fds_events *events;
    double start_s;
    fds__names classes, providers; /* of each class folder; without providers the list is empty */
    uint32_t *class_of, *provider_of; /* class folder to number */
    fds__size size;                   /* to scale to */
    uint32_t width, height;
    bool colour;
    uint8_t *pixels;     /* (count, 3, height, width) */
    uint32_t *folder_of; /* (count) the number of the class folder */
    fds__names names;    /* (count) */
    size_t count, pixels_capacity, folders_capacity;
} part;

static bool is_picture_name(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot && (strcasecmp(dot, ".png") == 0 || strcasecmp(dot, ".jpg") == 0 ||
                   strcasecmp(dot, ".jpeg") == 0);
}

/* ---- folders ---- */

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

static fds_status has_picture(const char *dir, bool *found, fds_error *err) {
    fds__names files;
    TRY(fds__dir_list(dir, &files.items, &files.count, err));
    for (size_t i = 0; i < files.count; i++)
        *found = *found || is_picture_name(files.items[i]);
    fds__names_free(&files);
    return FDS_OK;
}

/* Whether folders at that depth below dir have pictures in them; where receives the first one. */
static fds_status has_pictures(const char *dir, int depth, bool *found, char where[FDS__PATH_MAX],
                               fds_error *err) {
    fds__names folders;
    char path[FDS__PATH_MAX];
    if (depth == 0) {
        snprintf(where, FDS__PATH_MAX, "%s", dir);
        return has_picture(dir, found, err);
    }
    TRY(list_subfolders(dir, &folders, err));
    fds_status status = FDS_OK;
    for (size_t i = 0; i < folders.count && status == FDS_OK && !*found; i++) {
        status = fds__path_join(path, sizeof path, dir, folders.items[i], err);
        if (status == FDS_OK)
            status = has_pictures(path, depth - 1, found, where, err);
    }
    fds__names_free(&folders);
    return status;
}

fds_status fds__folder_depth(const char *dir, int *depth, fds_error *err) {
    char where[2][FDS__PATH_MAX];
    bool found[2] = {false, false};
    for (int i = 0; i < 2; i++)
        TRY(has_pictures(dir, i + 1, &found[i], where[i], err));
    if (found[0] && found[1])
        return fds__fail(
            err, FDS_ERR_FORMAT,
            "%.400s: pictures in %.400s and, deeper, in %.400s; they must be in class folders, or "
            "all in class folders of providers",
            dir, where[0], where[1]);
    *depth = found[0] ? 1 : found[1] ? 2 : 0;
    return FDS_OK;
}

/* Names of folders are not trimmed as those of CSV files are: they would name another folder. */
static fds_status check_name(const char *dir, const char *name, fds_error *err) {
    const char *fault = fds__name_fault(name);
    if (!fault && (strspn(name, " \t") || strchr(" \t", name[strlen(name) - 1])))
        fault = "the name begins or ends with white space; rename the folder";
    return fault ? fds__fail(err, FDS_ERR_FORMAT, "%s/%s: %s", dir, name, fault) : FDS_OK;
}

static fds_status list_classes(part *p, const char *dir, const char *provider, fds_error *err) {
    fds__names classes;
    TRY(list_subfolders(dir, &classes, err));
    fds_status status = FDS_OK;
    for (size_t i = 0; i < classes.count && status == FDS_OK; i++) {
        status = check_name(dir, classes.items[i], err);
        if (status == FDS_OK)
            status = fds__names_add(&p->classes, classes.items[i], err);
        if (status == FDS_OK && provider)
            status = fds__names_add(&p->providers, provider, err);
    }
    fds__names_free(&classes);
    return status;
}

static fds_status list_providers(part *p, fds_error *err) {
    fds__names providers;
    char path[FDS__PATH_MAX];
    TRY(list_subfolders(p->dir, &providers, err));
    fds_status status = FDS_OK;
    for (size_t i = 0; i < providers.count && status == FDS_OK; i++) {
        status = check_name(p->dir, providers.items[i], err);
        if (status == FDS_OK)
            status = fds__path_join(path, sizeof path, p->dir, providers.items[i], err);
        if (status == FDS_OK)
            status = list_classes(p, path, providers.items[i], err);
    }
    fds__names_free(&providers);
    return status;
}

static fds_status list_folders(part *p, fds_error *err) {
    int depth;
    TRY(fds__folder_depth(p->dir, &depth, err));
    return depth == 2 ? list_providers(p, err) : list_classes(p, p->dir, NULL, err);
}

/* Numbers the classes of all parts together, or the providers. */
static fds_status number(part *parts, size_t count, bool are_providers, fds__names *names,
                         fds_error *err) {
    const fds__numbering how = {.limit = are_providers ? FDS__MAX_PROVIDERS : FDS__MAX_CLASSES,
                                .what = are_providers ? "provider" : "class",
                                .source = parts[0].dir,
                                .events = parts[0].events};
    OWNED const char **texts = NULL;
    OWNED uint32_t *ids = NULL;
    size_t total = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        total += are_providers ? parts[i].providers.count : parts[i].classes.count;
    if (!total)
        return FDS_OK;
    TRY(NEW(texts, total, err));
    TRY(NEW(ids, total, err));
    for (size_t i = 0; i < count; i++) {
        const fds__names *own = are_providers ? &parts[i].providers : &parts[i].classes;
        for (size_t k = 0; k < own->count; k++)
            texts[at++] = own->items[k];
    }
    TRY(fds__names_number(texts, total, &how, ids, names, err));
    at = 0;
    for (size_t i = 0; i < count; i++) {
        const fds__names *own = are_providers ? &parts[i].providers : &parts[i].classes;
        uint32_t **to = are_providers ? &parts[i].provider_of : &parts[i].class_of;
        TRY(NEW(*to, own->count, err));
        memcpy(*to, ids + at, own->count * sizeof *ids);
        at += own->count;
    }
    return FDS_OK;
}

/* ---- pictures ---- */

/* Adds a decoded picture as three planes. */
static fds_status add_picture(part *p, const char *path, const fds__picture *picture,
                              uint32_t folder, fds_error *err) {
    if (p->count == 0) {
        p->width = picture->width;
        p->height = picture->height;
    }
    if (picture->width != p->width || picture->height != p->height)
        return fds__fail(
            err, FDS_ERR_SHAPE,
            "%s: %u x %u pixels, but the pictures before it have %u x %u; all pictures "
            "must have the same size, or be scaled to one: `resize` %ux%u",
            path, picture->width, picture->height, p->width, p->height, p->width, p->height);
    size_t plane = (size_t)p->width * p->height, needed;
    if (!fds__mul(p->count + 1, 3 * plane, &needed))
        return fds__fail(err, FDS_ERR_LIMIT, "%s: too many pictures", p->dir);
    void *pixels = p->pixels, *folders = p->folder_of;
    fds_status status = fds__grow(&pixels, &p->pixels_capacity, needed, 1, err);
    p->pixels = pixels;
    if (status == FDS_OK)
        status = fds__grow(&folders, &p->folders_capacity, p->count + 1, sizeof *p->folder_of, err);
    p->folder_of = folders;
    TRY(status);
    fds__picture_planes(picture, 3, p->pixels + p->count * 3 * plane);
    p->colour = p->colour || picture->channels == 3;
    p->folder_of[p->count++] = folder;
    return FDS_OK;
}

static fds_status read_picture(part *p, const char *path, uint32_t folder, fds_error *err) {
    const char *name = path + strlen(p->dir) + 1, *fault = fds__name_fault(name);
    fds__picture picture;
    if (fault)
        return fds__fail(err, FDS_ERR_FORMAT, "%s: %s", path, fault);
    TRY(fds__names_add(&p->names, name, err));
    TRY(fds__picture_read(path, &picture, err));
    fds_status status = fds__picture_resize(&picture, p->size, err);
    if (status == FDS_OK)
        status = add_picture(p, path, &picture, folder, err);
    fds__free(picture.pixels);
    return status;
}

static fds_status read_folder(part *p, size_t folder, fds_error *err) {
    char provider[FDS__PATH_MAX], dir[FDS__PATH_MAX], path[FDS__PATH_MAX];
    const char *above = p->dir;
    fds__names files;
    if (p->providers.count) {
        TRY(fds__path_join(provider, sizeof provider, p->dir, p->providers.items[folder], err));
        above = provider;
    }
    TRY(fds__path_join(dir, sizeof dir, above, p->classes.items[folder], err));
    TRY(fds__dir_list(dir, &files.items, &files.count, err));
    fds_status status = FDS_OK;
    for (size_t i = 0; i < files.count && status == FDS_OK; i++) {
        if (!is_picture_name(files.items[i]))
            continue;
        status = fds__report(p->events, "read", "class folders", folder, p->classes.count,
                             p->start_s, err);
        if (status == FDS_OK)
            status = fds__path_join(path, sizeof path, dir, files.items[i], err);
        if (status == FDS_OK)
            status = read_picture(p, path, (uint32_t)folder, err);
    }
    fds__names_free(&files);
    return status;
}

/* ---- datasets ---- */

static fds_status set_owners(const part *p, const fds__names *providers, fds_dataset *ds,
                             fds_error *err) {
    OWNED uint32_t *ids = NULL;
    TRY(NEW(ids, p->count, err));
    for (size_t i = 0; i < p->count; i++)
        ids[i] = p->provider_of[p->folder_of[i]];
    return fds__dataset_set_providers(ds, ids, providers->items, (uint32_t)providers->count, err);
}

static fds_status make_dataset(const part *p, bool colour, const fds__names *classes,
                               const fds__names *providers, fds_dataset **out, fds_error *err) {
    fds_shape shape = {colour ? 3 : 1, p->height, p->width};
    if (p->count == 0)
        return fds__fail(err, FDS_ERR_SHAPE, "%s: no PNG or JPEG pictures in its subfolders",
                         p->dir);
    TRY(fds__dataset_new(p->dir, p->count, shape, true, out, err));
    fds_dataset *ds = *out; /* the caller frees it on failure */
    size_t stride = (size_t)3 * p->width * p->height;
    for (size_t i = 0; i < p->count; i++) {
        memcpy(ds->bytes + i * ds->sample_size, p->pixels + i * stride, ds->sample_size);
        ds->labels[i] = (uint16_t)p->class_of[p->folder_of[i]];
    }
    TRY(fds__names_copy(p->names.items, p->count, &ds->sample_names, err));
    TRY(fds__dataset_set_classes(ds, classes->items, classes->count, err));
    return p->providers.count ? set_owners(p, providers, ds, err) : FDS_OK;
}

static fds_status read_parts(part *parts, size_t count, fds__names *classes, fds__names *providers,
                             fds_dataset **out, fds_error *err) {
    bool colour = false;
    for (size_t i = 0; i < count; i++)
        TRY(list_folders(&parts[i], err));
    TRY(number(parts, count, false, classes, err));
    TRY(number(parts, count, true, providers, err));
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < parts[i].classes.count; k++)
            TRY(read_folder(&parts[i], k, err));
        colour = colour || parts[i].colour;
    }
    for (size_t i = 0; i < count; i++)
        TRY(make_dataset(&parts[i], colour, classes, providers, &out[i], err));
    return FDS_OK;
}

static void free_part(part *p) {
    fds__names_free(&p->classes);
    fds__names_free(&p->providers);
    fds__names_free(&p->names);
    fds__free(p->class_of);
    fds__free(p->provider_of);
    fds__free(p->pixels);
    fds__free(p->folder_of);
}

fds_status fds__folder_read(const char *const *dirs, size_t count, fds__size size,
                            const fds_events *events, fds_dataset **out, fds_error *err) {
    assert((count == 1 || count == 2) && !out[0] && !out[count - 1]);
    part parts[2] = {{0}};
    fds__names classes = {0}, providers = {0};
    for (size_t i = 0; i < count; i++)
        parts[i] = (part){.dir = dirs[i], .size = size, .events = events, .start_s = fds__now_s()};
    fds_status status = read_parts(parts, count, &classes, &providers, out, err);
    for (size_t i = 0; i < count; i++) {
        free_part(&parts[i]);
        if (status != FDS_OK)
            fds__dataset_drop(&out[i]);
    }
    fds__names_free(&classes);
    fds__names_free(&providers);
    return status;
}

/* ---- single files ---- */

static fds_status read_one(const char *path, bool is_scaled, fds_dataset *ds, size_t i,
                           fds_error *err) {
    const fds__size size = {ds->shape.width, ds->shape.height};
    fds__picture picture;
    TRY(fds__picture_read(path, &picture, err));
    fds_status status = is_scaled ? fds__picture_resize(&picture, size, err) : FDS_OK;
    if (status == FDS_OK && picture.width == ds->shape.width && picture.height == ds->shape.height)
        fds__picture_planes(&picture, ds->shape.channels, ds->bytes + i * ds->sample_size);
    else if (status == FDS_OK)
        status = fds__fail(err, FDS_ERR_SHAPE,
                           "%s: %u x %u pixels (width x height), but must have %u x %u; `resize` "
                           "scales it",
                           path, picture.width, picture.height, size.width, size.height);
    fds__free(picture.pixels);
    return status;
}

fds_status fds__data_pictures(const char *const *paths, size_t count, fds_shape shape,
                              uint32_t classes, bool is_scaled, fds_dataset **out, fds_error *err) {
    if (shape.channels != 1 && shape.channels != 3)
        return fds__fail(err, FDS_ERR_SHAPE,
                         "pictures have 1 channel or 3, but the samples must be %u x %u x %u",
                         shape.channels, shape.height, shape.width);
    TRY(fds__dataset_new(count == 1 ? paths[0] : "pictures", count, shape, true, out, err));
    fds_dataset *ds = *out;
    ds->classes = classes;
    fds_status status = FDS_OK;
    for (size_t i = 0; i < count && status == FDS_OK; i++)
        status = read_one(paths[i], is_scaled, ds, i, err);
    if (status == FDS_OK)
        status = fds__dataset_finish(ds, NULL, NULL, err);
    if (status != FDS_OK)
        fds__dataset_drop(out);
    return status;
}
