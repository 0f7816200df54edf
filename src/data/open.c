/* SPDX-License-Identifier: Apache-2.0
 * fds_data_open: from a name or path to datasets. Only this file decides which format data has.
 *
 * A folder is, by the first of these that it has:
 *   train-images-idx3-ubyte[.gz]   IDX     (also train-images.idx3-ubyte), t10k-* its test part
 *   data_batch_*.bin               CIFAR-10, test_batch.bin its test part
 *   x_train.npy, or x.npy          NPY,    y_* the labels, x_test.npy its test part,
 *                                          provider_train.npy or provider.npy the providers
 *   train.csv[.gz]                 CSV,    test.csv[.gz] its test part
 *   train/CLASS/NAME.png           pictures, test/ their test part
 *   CLASS/NAME.png                 pictures
 * where PROVIDER/CLASS/NAME.png may stand for CLASS/NAME.png.
 * A file is, by its first bytes, IDX images or NPY; else by its name, CSV or a CIFAR-10 batch. */
#include "data/data.h"

#include <fnmatch.h>
#include <string.h>

typedef fds_status (*pair_parser)(fds__blob *values, const fds__blob *labels, fds_dataset **out,
                                  fds_error *err);

typedef struct {
    const fds__data_options *options;
    const fds_events *events;
    fds_dataset *parts[2];      /* training, test */
    fds__names classes;         /* from a list of names beside the data */
    char owners[FDS__PATH_MAX]; /* a list of providers beside the data; or "" */
} source;

/* ---- reading files into blobs ---- */

static fds_status read_blob(const source *s, const char *path, fds__blob *blob, fds_error *err) {
    blob->path = path;
    return fds__file_read_gz(path, FDS__MAX_FILE, s->events, &blob->data, &blob->size, err);
}

static fds_status read_pair(const source *s, pair_parser parse, const char *values_path,
                            const char *labels_path, fds_dataset **out, fds_error *err) {
    fds__blob values = {.is_given = true}, labels = {0};
    fds_status status = read_blob(s, values_path, &values, err);
    if (status == FDS_OK)
        status = read_blob(s, labels_path, &labels, err);
    if (status == FDS_OK)
        status = parse(&values, &labels, out, err);
    fds__free(values.data);
    fds__free(labels.data);
    return status;
}

typedef enum { KIND_OTHER, KIND_CSV, KIND_NPY_FILE, KIND_PICTURES } kind;

/* Checks that the given options are for this kind of data. */
static fds_status check_options(const source *s, const char *path, kind is, fds_error *err) {
    if (!s->options)
        return FDS_OK;
    static const char *const kinds[] = {"", "CSV data", "a single NPY file", "folders of pictures"};
    const struct {
        bool is_given;
        const char *name;
        kind fits;
    } rows[] = {{s->options->label_column, "--label", KIND_CSV},
                {s->options->provider_column, "--provider", KIND_CSV},
                {s->options->labels_file, "--labels", KIND_NPY_FILE},
                {s->options->test_file, "--test-file", KIND_CSV},
                {s->options->id_column, "--id", KIND_CSV},
                {s->options->drop, "--drop", KIND_CSV},
                {s->options->categorical, "--categorical", KIND_CSV},
                {s->options->size.width, "--resize", KIND_PICTURES}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is_given && rows[i].fits != is)
            return fds__fail(err, FDS_ERR_USAGE, "%s: %s is only for %s", path, rows[i].name,
                             kinds[rows[i].fits]);
    return FDS_OK;
}

static bool exists_in(const char *dir, const char *name, char path[FDS__PATH_MAX]) {
    return fds__path_join(path, FDS__PATH_MAX, dir, name, NULL) == FDS_OK && fds__path_exists(path);
}

bool fds__data_find(const char *dir, const char *usual, char path[FDS__PATH_MAX]) {
    static const char *const ends[] = {"", ".gz", ".zst"};
    for (int i = 0; i < 6; i++) {
        char name[64], *mark;
        snprintf(name, sizeof name, "%s%s", usual, ends[i % 3]);
        if (i >= 3 && (mark = strstr(name, "-idx")))
            *mark = '.';
        if (exists_in(dir, name, path))
            return true;
    }
    return exists_in(dir, usual, path); /* false: path has the usual spelling, for messages */
}

/* ---- folders ---- */

static fds_status open_idx_folder(source *s, const char *dir, bool *found, fds_error *err) {
    static const char *const names[2][2] = {
        {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
        {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
    };
    char images[FDS__PATH_MAX], labels[FDS__PATH_MAX];
    for (int i = 0; i < 2; i++) {
        if (!fds__data_find(dir, names[i][0], images))
            return FDS_OK;
        *found = true;
        fds__data_find(dir, names[i][1], labels);
        TRY(read_pair(s, fds__idx_parse, images, labels, &s->parts[i], err));
    }
    return FDS_OK;
}

/* Reads the files of dir that match the pattern as one CIFAR-10 dataset. */
static fds_status read_batches(const source *s, const char *dir, const fds__names *files,
                               const char *pattern, fds_dataset **out, fds_error *err) {
    fds__blob *blobs = fds__alloc_zero(files->count, sizeof *blobs);
    char(*paths)[FDS__PATH_MAX] = fds__alloc_zero(files->count, sizeof *paths);
    size_t count = 0;
    fds_status status =
        blobs && paths ? FDS_OK : fds__fail_nomem(err, files->count * sizeof *paths);
    for (size_t i = 0; i < files->count && status == FDS_OK; i++) {
        if (fnmatch(pattern, files->items[i], 0) != 0)
            continue;
        status = fds__path_join(paths[count], sizeof *paths, dir, files->items[i], err);
        if (status == FDS_OK)
            status = read_blob(s, paths[count], &blobs[count], err);
        count++;
    }
    if (status == FDS_OK && count > 0)
        status = fds__cifar_parse(blobs, count, out, err);
    for (size_t i = 0; i < count; i++)
        fds__free(blobs[i].data);
    fds__free(blobs);
    fds__free(paths);
    return status;
}

static fds_status open_cifar_folder(source *s, const char *dir, bool *found, fds_error *err) {
    fds__names files;
    TRY(fds__dir_list(dir, &files.items, &files.count, err));
    fds_status status = read_batches(s, dir, &files, "data_batch_*.bin", &s->parts[0], err);
    *found = status != FDS_OK || s->parts[0];
    if (status == FDS_OK && *found)
        status = read_batches(s, dir, &files, "test_batch.bin", &s->parts[1], err);
    fds__names_free(&files);
    return status;
}

static pair_parser npy_parser(const source *s) {
    return s->options && s->options->is_regression ? fds__npy_parse_targets : fds__npy_parse;
}

static fds_status open_npy_folder(source *s, const char *dir, bool *found, fds_error *err) {
    static const char *const names[3][2] = {
        {"x_train.npy", "y_train.npy"}, {"x.npy", "y.npy"}, {"x_test.npy", "y_test.npy"}};
    char values[FDS__PATH_MAX], labels[FDS__PATH_MAX];
    for (int i = 0; i < 3; i++) {
        int part = i == 2;
        if ((part && !s->parts[0]) || s->parts[part] || !exists_in(dir, names[i][0], values))
            continue;
        *found = true;
        exists_in(dir, names[i][1], labels);
        TRY(read_pair(s, npy_parser(s), values, labels, &s->parts[part], err));
    }
    bool has_owners = exists_in(dir, "provider_train.npy", s->owners) ||
                      exists_in(dir, "provider.npy", s->owners);
    if (!*found || !has_owners)
        s->owners[0] = 0;
    return FDS_OK;
}

/* test: a table beside the training table, or NULL; the option comes first. */
static fds_status read_tables(source *s, const char *train, const char *test, fds_error *err) {
    const char *given = s->options ? s->options->test_file : NULL;
    const char *const paths[] = {train, given ? given : test};
    size_t count = paths[1] ? 2 : 1;
    fds__blob tables[2] = {{0}};
    fds_status status = FDS_OK;
    for (size_t i = 0; i < count && status == FDS_OK; i++)
        status = read_blob(s, paths[i], &tables[i], err);
    if (status == FDS_OK)
        status = fds__csv_parse(tables, count, s->options, s->events, s->parts, err);
    fds__free(tables[0].data);
    fds__free(tables[1].data);
    return status;
}

static fds_status open_csv_folder(source *s, const char *dir, bool *found, fds_error *err) {
    char train[FDS__PATH_MAX], test[FDS__PATH_MAX];
    *found = fds__data_find(dir, "train.csv", train);
    if (!*found)
        return FDS_OK;
    bool has_test = fds__data_find(dir, "test.csv", test);
    return read_tables(s, train, has_test ? test : NULL, err);
}

static fds_status open_picture_folder(source *s, const char *dir, bool *found, fds_error *err) {
    const fds__size size = s->options ? s->options->size : (fds__size){0};
    char train[FDS__PATH_MAX], test[FDS__PATH_MAX];
    int depth = 0;
    if (exists_in(dir, "train", train) && fds__path_is_dir(train))
        TRY(fds__folder_depth(train, &depth, err));
    *found = depth > 0;
    if (*found) {
        size_t count = exists_in(dir, "test", test) && fds__path_is_dir(test) ? 2 : 1;
        return fds__folder_read((const char *[]){train, test}, count, size, s->events, s->parts,
                                err);
    }
    TRY(fds__folder_depth(dir, &depth, err));
    *found = depth > 0;
    return *found ? fds__folder_read(&dir, 1, size, s->events, s->parts, err) : FDS_OK;
}

static fds_status open_folder(source *s, const char *dir, fds_error *err) {
    typedef fds_status (*folder_opener)(source *, const char *, bool *, fds_error *);
    static const struct {
        folder_opener open;
        kind is;
        const char *names_file; /* class names, where the data has none */
    } formats[] = {{open_idx_folder, KIND_OTHER, "classes.txt"},
                   {open_cifar_folder, KIND_OTHER, "batches.meta.txt"},
                   {open_npy_folder, KIND_OTHER, "classes.txt"},
                   {open_csv_folder, KIND_CSV, NULL},
                   {open_picture_folder, KIND_PICTURES, NULL}};
    char path[FDS__PATH_MAX];
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        bool found = false;
        TRY(formats[i].open(s, dir, &found, err));
        if (!found)
            continue;
        TRY(check_options(s, dir, formats[i].is, err));
        bool has_names = formats[i].names_file && exists_in(dir, formats[i].names_file, path);
        return has_names ? fds__names_read(path, &s->classes, err) : FDS_OK;
    }
    return fds__fail(err, FDS_ERR_NOT_FOUND,
                     "%s: no data in this folder; looked for train-images-idx3-ubyte[.gz], "
                     "data_batch_*.bin, x_train.npy, x.npy, train.csv[.gz], and class folders with "
                     ".png or .jpg pictures",
                     dir);
}

/* ---- single files ---- */

static bool ends_in(const char *text, const char *end) {
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static void replace_first(char *text, const char *old, const char *new) {
    assert(strlen(old) == strlen(new));
    char *at = strstr(text, old);
    if (at)
        memcpy(at, new, strlen(new));
}

/* The file of labels for a file of samples: the option, or beside it: images to labels, x to y. */
static fds_status find_labels(const source *s, const char *path, char labels[FDS__PATH_MAX],
                              fds_error *err) {
    const char *given = s->options ? s->options->labels_file : NULL;
    snprintf(labels, FDS__PATH_MAX, "%s", given ? given : path);
    if (given)
        return FDS_OK;
    char *slash = strrchr(labels, '/'), *name = slash ? slash + 1 : labels;
    if (strstr(name, "images")) {
        replace_first(name, "images", "labels");
        replace_first(name, "idx3", "idx1");
    } else if (*name == 'x' || *name == 'X') {
        *name = (char)(*name + 1);
    }
    if (strcmp(labels, path) == 0)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "%s: cannot tell which file has its labels; name the two x.npy and y.npy, or "
            "a-images-idx3-ubyte and a-labels-idx1-ubyte, or give the labels of an "
            "NPY file with --labels",
            path);
    return FDS_OK;
}

static fds_status open_pair(source *s, fds__blob *values, pair_parser parse, fds_error *err) {
    char labels_path[FDS__PATH_MAX];
    fds__blob labels = {0};
    TRY(find_labels(s, values->path, labels_path, err));
    TRY(read_blob(s, labels_path, &labels, err));
    fds_status status = parse(values, &labels, &s->parts[0], err);
    fds__free(labels.data);
    return status;
}

/* A file that is not CSV. */
static fds_status open_binary(source *s, fds__blob *file, fds_error *err) {
    bool is_npy = file->size >= 6 && memcmp(file->data, "\x93NUMPY", 6) == 0;
    bool is_idx = file->size >= 4 && memcmp(file->data, "\0\0\x08\x03", 4) == 0;
    if (!is_npy && !is_idx && !ends_in(file->path, ".bin"))
        return fds__fail(err, FDS_ERR_FORMAT,
                         "%s: unknown format; NPY and IDX files are known by their first bytes, "
                         "others by name: .csv, .csv.gz, .csv.zst, .bin (CIFAR-10)",
                         file->path);
    TRY(check_options(s, file->path, is_npy ? KIND_NPY_FILE : KIND_OTHER, err));
    if (is_npy || is_idx)
        return open_pair(s, file, is_npy ? npy_parser(s) : fds__idx_parse, err);
    return fds__cifar_parse(file, 1, &s->parts[0], err);
}

static fds_status open_file(source *s, const char *path, fds_error *err) {
    if (ends_in(path, ".csv") || ends_in(path, ".csv.gz") || ends_in(path, ".csv.zst")) {
        TRY(check_options(s, path, KIND_CSV, err));
        return read_tables(s, path, NULL, err);
    }
    fds__blob file = {.is_given = true};
    TRY(read_blob(s, path, &file, err));
    fds_status status = open_binary(s, &file, err);
    fds__free(file.data);
    return status;
}

/* ---- opening ---- */

static fds_status read_owners(source *s, const char *path, fds_error *err) {
    fds__blob file = {0};
    TRY(read_blob(s, path, &file, err));
    fds_status status = fds__owners_parse(&file, s->events, s->parts[0], err);
    fds__free(file.data);
    return status;
}

/* The path of a known set, or where itself if it is a file or folder. */
static fds_status resolve(const char *where, char path[FDS__PATH_MAX], fds_error *err) {
    if (fds__path_exists(where)) {
        size_t size = strlen(where);
        while (size > 1 && where[size - 1] == '/')
            size--;
        if (size >= FDS__PATH_MAX)
            return fds__fail(err, FDS_ERR_USAGE, "path too long");
        snprintf(path, FDS__PATH_MAX, "%.*s", (int)size, where);
        return FDS_OK;
    }
    const char *const *known = fds_data_known();
    while (*known && strcmp(*known, where) != 0)
        known++;
    if (!*known)
        return fds__fail(err, FDS_ERR_NOT_FOUND,
                         "%s: no such file or folder, and not a known set (mnist, fashion-mnist, "
                         "cifar10)",
                         where);
    char folder[FDS__PATH_MAX];
    TRY(fds__data_folder(folder, sizeof folder, err));
    TRY(fds__path_join(path, FDS__PATH_MAX, folder, where, err));
    if (!fds__path_is_dir(path))
        return fds__fail(err, FDS_ERR_NOT_FOUND, "%s is not in %s yet; run: fds data get %s", where,
                         folder, where);
    return FDS_OK;
}

static fds_status set_source(fds_dataset *ds, const char *path, fds_error *err) {
    char *copy = fds__strdup(path);
    if (!copy)
        return fds__fail_nomem(err, strlen(path) + 1);
    fds__free(ds->source);
    ds->source = copy;
    return FDS_OK;
}

fds_status fds__data_open(const char *where, const fds__data_options *options,
                          const fds_events *events, fds_dataset **train, fds_dataset **test,
                          fds_error *err) {
    char path[FDS__PATH_MAX];
    if (!where || !*where)
        return fds__fail(err, FDS_ERR_USAGE, "no data given: name a known set or a path");
    TRY(resolve(where, path, err));
    source s = {.options = options, .events = events};
    fds_status status =
        fds__path_is_dir(path) ? open_folder(&s, path, err) : open_file(&s, path, err);
    if (status == FDS_OK && options && options->is_regression && !s.parts[0]->targets)
        status = fds__fail(err, FDS_ERR_USAGE,
                           "%s: --task regression needs targets that are numbers: a CSV file, or "
                           "NPY files x and y",
                           path);
    if (status == FDS_OK)
        status = fds__dataset_finish(s.parts[0], s.parts[1], &s.classes, err);
    const char *owners = options && options->owners_file ? options->owners_file : s.owners;
    if (status == FDS_OK && *owners)
        status = read_owners(&s, owners, err);
    for (int i = 0; i < 2 && status == FDS_OK && s.parts[i]; i++)
        status = set_source(s.parts[i], path, err);
    fds__names_free(&s.classes);
    if (status != FDS_OK || !test)
        fds__dataset_drop(&s.parts[1]);
    if (status != FDS_OK)
        fds__dataset_drop(&s.parts[0]);
    else
        *train = s.parts[0];
    if (status == FDS_OK && test)
        *test = s.parts[1];
    return status;
}

/* The place of a choice of the parameter sep; -1: none. */
static char separator_of(int sep) { return sep < 1 ? 0 : FDS__SEPARATORS[sep - 1]; }

fds_status fds_data_open(const char *where, const fds_params *params, const fds_events *events,
                         fds_dataset **train, fds_dataset **test, fds_error *err) {
    return fds__data_open_prepared(where, params, NULL, events, train, test, err);
}

fds_status fds__data_open_prepared(const char *where, const fds_params *params,
                                   const fds__preparation *prepared, const fds_events *events,
                                   fds_dataset **train, fds_dataset **test, fds_error *err) {
    fds__data_options options = {0};
    char hint[FDS__HINT];
    if (params)
        options = (fds__data_options){.label_column = params->label,
                                      .provider_column = params->provider,
                                      .labels_file = params->labels,
                                      .owners_file = params->owners,
                                      .test_file = params->test_file,
                                      .id_column = params->id,
                                      .drop = params->drop,
                                      .categorical = params->categorical,
                                      .separator = separator_of(params->sep),
                                      .is_regression = params->task == 1,
                                      .missing = (fds__missing)MAX(params->missing, 0)};
    options.prepared = prepared;
    TRY(fds__size_parse(params ? params->resize : NULL, &options.size, err));
    fds_status status = fds__data_open(where, &options, events, train, test, err);
    if (status == FDS_ERR_NOT_FOUND && !strchr(where, '/'))
        return fds__fail(err, status, "%s%s", err ? err->text : "",
                         fds__hint(where, fds_data_known(), hint));
    return status;
}
