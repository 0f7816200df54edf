/* SPDX-License-Identifier: Apache-2.0
 *
 * data: readers, the dataset, splits, players, pictures.
 *
 * A reader knows only the bytes of its own format: it reads them from memory, makes a dataset with
 * fds__dataset_new and fills in values and labels. fds__dataset_finish checks once what all formats
 * share: class names, labels in range, finite values, a test part that fits the training part.
 * open.c alone decides which reader a path needs.
 */
#ifndef FDS_DATA_H
#define FDS_DATA_H

#include "base/base.h"

/* Limits; larger sources are refused with FDS_ERR_LIMIT. */
#define FDS__MAX_CLASSES 65535u
#define FDS__MAX_PROVIDERS (UINT32_MAX - 1)
#define FDS__MAX_SIDE 65535u                /* channels, height, width */
#define FDS__MAX_SAMPLE ((size_t)1 << 28)   /* values of one sample */
#define FDS__MAX_FILE ((size_t)16 << 30)    /* bytes of one file, unpacked */
#define FDS__MAX_PICTURE ((size_t)64 << 20) /* bytes of one PNG or JPEG file; and its pixels */
#define FDS__MAX_TEXT ((size_t)1 << 20)     /* bytes of a list of names or checksums */

typedef struct fds__preparation fds__preparation;

/* Rows of a CSV file that are no samples, as values are missing. */
typedef struct fds__left_out {
    size_t count;
    uint32_t *rows; /* (count) ascending: which of all rows, from 0 */
    char **names;   /* (count) their ids, "" where that is missing; or NULL */
} fds__left_out;

struct fds_dataset {
    char *source;
    size_t count, sample_size; /* sample_size = channels * height * width */
    fds_shape shape;
    bool is_image;  /* height or width above 1 */
    uint8_t *bytes; /* (count, channels, height, width); exactly one of bytes, floats */
    float *floats;
    uint16_t *labels;       /* (count) */
    double *targets;        /* (count) of a regression, whose labels are all 0; or NULL */
    uint32_t *provider_ids; /* (count) or NULL */
    char **class_names;     /* (classes) */
    uint32_t classes;
    char **provider_names; /* (providers) */
    uint32_t providers;
    /* Of providers that were joined (`cluster`): who owned each sample (count) before; or NULL */
    uint32_t *member_ids;
    char **member_names; /* (members) */
    uint32_t members;
    char **feature_names;          /* (channels): of the columns of a CSV file; or NULL */
    char **sample_names;           /* (count): ids of a CSV file, paths of pictures; or NULL */
    uint32_t *sample_lines;        /* (count): of a CSV file, from 1; or NULL */
    fds__preparation *preparation; /* of a CSV file of training samples; or NULL */
    fds__left_out left_out;
    char **added;        /* (added_count): sources of samples besides source; or NULL */
    size_t *added_first; /* (added_count): the first sample of each */
    size_t added_count;
};

/* A file's contents, with its path for messages. data ends in a NUL that size does not count. */
typedef struct fds__blob {
    const char *path;
    uint8_t *data;
    size_t size;
    bool is_given; /* a reader may keep data (fds__alloc), and then sets it to NULL */
} fds__blob;

/* Names in order. */
typedef struct fds__names {
    char **items;
    size_t count, capacity;
} fds__names;

/* ---- open.c ---- */

/* Of a picture in pixels; 0: as it is. */
typedef struct fds__size {
    uint32_t width, height;
} fds__size;

/* What to do with missing values. */
typedef enum { FDS__MISSING_MEAN, FDS__MISSING_DROP, FDS__MISSING_ERROR } fds__missing;

typedef struct fds__data_options {
    const char *label_column;    /* CSV; NULL: "label" */
    const char *provider_column; /* CSV; NULL: "provider" where there is such a column */
    const char *labels_file;     /* NPY labels of a single NPY file; NULL: beside it by name */
    const char *owners_file;     /* who owns which sample; NULL: as the data says */
    const char *test_file;       /* CSV: the test part; NULL: as the data says */
    const char *id_column;       /* CSV; NULL: none */
    const char *drop;            /* CSV: columns to leave out, separated by commas; or NULL */
    const char *categorical;     /* CSV: columns of levels, the same; NULL: those with text */
    char separator;              /* CSV; 0: found */
    bool is_regression;          /* CSV, NPY: labels are targets */
    fds__missing missing;        /* CSV */
    /* CSV: features are made as this says, of columns of these names, and nothing is learnt; or NULL */
    const fds__preparation *prepared;
    fds__size size; /* pictures in folders */
} fds__data_options;

/* fds_data_open, with features as another data set has them; prepared may be NULL. */
fds_status fds__data_open_prepared(const char *where, const fds_params *params,
                                   const fds__preparation *prepared, const fds_events *events,
                                   fds_dataset **train, fds_dataset **test, fds_error *err);

typedef struct fds__dataset_info {
    const char *source; /* where it was read from */
    size_t count;       /* samples */
    fds_shape shape;
    bool is_bytes; /* values are bytes 0..255, seen by networks as 0..1; else floats as they are */
    bool is_image; /* false: feature vectors */
    uint32_t classes;             /* labels are 0 .. classes-1 */
    uint32_t providers;           /* 0: the data names no providers */
    const uint16_t *labels;       /* [count] */
    const uint32_t *provider_ids; /* [count], or NULL */
} fds__dataset_info;

fds__dataset_info fds__dataset_get_info(const fds_dataset *ds);
/* A dataset in memory, copied from the caller's arrays: bytes or floats, exactly one not NULL.
 * class_names may be NULL ("0", "1", ...). */
fds_status fds__dataset_create(size_t count, fds_shape shape, const uint8_t *bytes,
                               const float *floats, const uint16_t *labels, uint32_t classes,
                               const char *const *class_names, fds_dataset **out, fds_error *err);

/* ---- dataset.c ---- */

/* The file's bytes from start on, which then are the caller's instead of memory that is freed; NULL where
 * the file is not given. */
void *fds__blob_keep(fds__blob *file, size_t start, void *instead);

/* A dataset of count samples, all zero; the caller fills it in and finishes it. */
fds_status fds__dataset_new(const char *source, size_t count, fds_shape shape, bool is_bytes,
                            fds_dataset **out, fds_error *err);
/* Checks and completes a training part and a test part (NULL: none). names (may be NULL or empty)
 * are the classes, for readers that found none; without them classes are "0", "1", ... up to the
 * greatest label, or as many as the reader set in train->classes. */
fds_status fds__dataset_finish(fds_dataset *train, fds_dataset *test, const fds__names *names,
                               fds_error *err);
void fds__dataset_drop(fds_dataset **ds); /* frees it; *ds is then NULL */
/* Copies names[count] of classes, and names[count] and ids[samples] of providers. */
fds_status fds__dataset_set_classes(fds_dataset *ds, char *const *names, size_t count,
                                    fds_error *err);
fds_status fds__dataset_set_providers(fds_dataset *ds, const uint32_t *ids, char *const *names,
                                      uint32_t count, fds_error *err);
/* Mean and standard deviation of the targets of index (NULL: 0 .. count-1); a deviation of 0 is
 * given as 1. */
void fds__dataset_target_stats(const fds_dataset *ds, const uint32_t *index, size_t count,
                               double *mean, double *std);
/* Whether a model that is trained on the one can be tested on the other. */
fds_status fds__dataset_check_pair(const fds_dataset *train, const fds_dataset *test,
                                   fds_error *err);
/* A copy that shares nothing with ds, with labels[count]. */
fds_status fds__dataset_relabel(const fds_dataset *ds, const uint16_t *labels, fds_dataset **out,
                                fds_error *err);
/* Checks that index (NULL: 0 .. count-1) is not empty and has only numbers of samples. */
fds_status fds__samples_check(const fds_dataset *ds, const uint32_t *index, size_t count,
                              fds_error *err);
void fds__samples_sort(uint32_t *index, size_t count);
/* Whether a sample is among index[count], which ascends. */
bool fds__samples_has(const uint32_t *index, size_t count, uint32_t sample);

/* ---- split.c ---- */

typedef struct fds__split_how {
    uint64_t seed;
    bool is_proportional;    /* to the frequencies of classes; else balanced */
    const uint32_t *without; /* (left_out) samples that are not on the list, ascending */
    size_t left_out;
} fds__split_how;

/* The samples first .. first+count-1 of a list (split.c); index[count] is ascending. */
fds_status fds__split(const fds_dataset *ds, const fds__split_how *how, size_t first, size_t count,
                      uint32_t *index, fds_error *err);
/* The samples first .. first+count-1 of the list of which fds_split_balanced chooses a prefix;
 * index[count] is ascending. */
fds_status fds__split_part(const fds_dataset *ds, size_t first, size_t count, uint64_t seed,
                           uint32_t *index, fds_error *err);

/* Parts all samples into folds: fold[count] is 0 .. folds-1. Every fold has an equal share of each
 * class, up to one sample. */
fds_status fds__split_folds(const fds_dataset *ds, uint32_t folds, uint64_t seed, uint32_t *fold,
                            fds_error *err);

/* The parameter "index": the samples of "3,5..9", in the order of the text; the caller frees *out. */
fds_status fds__samples_list(const char *text, uint32_t **out, size_t *count, fds_error *err);

/* ---- names.c ---- */

/* A name is UTF-8 without control characters except tab; readers trim it. Names are equal when
 * their bytes are equal. */
char *fds__name_trim(char *name); /* in place, without the white space around it */
/* A name in quotes at the start of a list with commas, as CSV has them: copies it, and returns the bytes
 * up to the next comma or the end; 0: the list does not begin so. */
size_t fds__name_quoted(const char *list, char *out, size_t size);
const char *fds__name_fault(const char *name); /* what is wrong with it and what to do; or NULL */
void fds__names_free(fds__names *names);
fds_status fds__names_copy(char *const *names, size_t count, char ***out, fds_error *err);
fds_status fds__names_push(fds__names *names, char *name, fds_error *err); /* the pointer itself */
fds_status fds__names_add(fds__names *names, const char *name, fds_error *err); /* a copy */

/* How texts are numbered: by bytes or, with by_value and when all are integers, by value. */
typedef struct fds__numbering {
    bool by_value;
    uint32_t limit;            /* more distinct texts are refused */
    const char *what, *source; /* for messages: "class" */
    const fds_events *events;  /* stage "sort"; may cancel */
} fds__numbering;

/* names receives the distinct texts in order, ids[count] the place of each text among them. */
fds_status fds__names_number(const char *const *texts, size_t count, const fds__numbering *how,
                             uint32_t *ids, fds__names *names, fds_error *err);
/* Bytes of the byte order mark that some programs put first: 3 or 0. */
size_t fds__utf8_mark(const uint8_t *data, size_t size);
/* One name per line; blank lines do not count. */
fds_status fds__names_read(const char *path, fds__names *names, fds_error *err);

/* ---- scan.c ---- */

#define FDS__SEPARATORS ",;\t|"

typedef struct fds__scanner {
    const char *path;
    char *at, *end;
    size_t line; /* from 1 */
    char separator;
} fds__scanner;

typedef struct fds__field {
    char *text; /* in the file's bytes, as they are */
    size_t length;
    bool is_quoted;
} fds__field;

/* separator 0: found. */
fds_status fds__scan_begin(const fds__blob *file, char separator, fds__scanner *s, fds_error *err);
/* Goes to the next line that is not blank; false: there is none. */
bool fds__scan_line(fds__scanner *s);
fds_status fds__scan_field(fds__scanner *s, fds__field *field, bool *is_last, fds_error *err);
/* A line of two fields; what: which, for messages, "a sample and its provider". */
fds_status fds__scan_pair(fds__scanner *s, const char *what, fds__field fields[2], fds_error *err);
/* Makes the field a text, in place and trimmed; the scanner must be behind it. */
char *fds__field_text(const fds__field *field);
const char *fds__separator_name(char separator); /* "a comma" */

/* ---- prepare.c ---- */

/* How the columns of a CSV file become features. JSON: {"id": name or null, "separator",
 * "columns": [{"name", "mean" of numbers or "levels" of text, "has_rare", "has_missing"}, ...]}. */
void fds__preparation_free(fds__preparation *p);
/* Whether features depend on what the samples hold: on levels of text, or on means in place of missing
 * values. False for NULL. */
bool fds__preparation_learns(const fds__preparation *p);
json_t *fds__preparation_json(const fds__preparation *p); /* p NULL: null */
fds_status fds__preparation_copy(const fds__preparation *p, fds__preparation **out, fds_error *err);
/* path: for messages. */
fds_status fds__preparation_parse(const json_t *json, const char *path, fds__preparation **out,
                                  fds_error *err);

/* ---- rows.c ---- */

/* New samples without labels, from a file of CSV or NPY; path "-": standard input. CSV needs the
 * preparation of the training samples. */
fds_status fds__data_rows(const char *path, const fds__preparation *p, fds_shape shape,
                          uint32_t classes, const fds_events *events, fds_dataset **out,
                          fds_error *err);

/* One sample: a JSON object with the columns of the preparation, or an array of numbers. */
fds_status fds__data_json(const char *text, const fds__preparation *p, fds_shape shape,
                          uint32_t classes, fds_dataset **out, fds_error *err);

/* ---- owners.c ---- */

/* Gives every sample the provider that the file names for it. Splits a CSV file's bytes in place. */
fds_status fds__owners_parse(const fds__blob *file, const fds_events *events, fds_dataset *ds,
                             fds_error *err);

/* ---- clusters.c ---- */

enum { FDS__CLUSTER_NAME = 264 };

#define FDS__MAX_CLUSTERS ((size_t)64 << 20) /* bytes of a file */

/* What a file says of names: first_of (count) is the first name of the same cluster; of those that it
 * does not list, they themselves. source: who has these names, for messages. Splits the file's bytes in
 * place. */
fds_status fds__clusters_parse(const fds__blob *file, const char *source, char *const *names,
                               size_t count, uint32_t *first_of, fds_error *err);
/* "A + B", or "A + 5 others" where that is long: in out, or the name of one that is alone. */
const char *fds__cluster_name(char *const *names, const uint32_t *first_of, size_t count,
                              size_t first, char out[FDS__CLUSTER_NAME]);
/* Providers of one cluster become one provider of ds: first_of (providers), or as a file says. */
fds_status fds__clusters_join(fds_dataset *ds, const uint32_t *first_of, fds_error *err);
fds_status fds__clusters_apply(const char *path, fds_dataset *ds, fds_error *err);

/* ---- groups.c ---- */

#define FDS__MAX_PLAYERS ((size_t)1 << 20)
fds_status fds__groups_copy(const fds_groups *groups, fds_groups **out, fds_error *err);

/* ---- identity.c ---- */

/* Who players and samples are, whatever rows others have; identity.c says what that depends on. */
typedef struct fds__identities {
    uint64_t *samples;       /* (samples of the dataset) keys of random numbers; of players only */
    uint64_t *players;       /* (players) the same: who it is */
    uint8_t (*contents)[32]; /* (players): who it is and all that it has */
} fds__identities;

/* by_provider: players are providers; else each has one sample. */
fds_status fds__identities_create(const fds_dataset *ds, const fds_players *players,
                                  bool by_provider, const fds_events *events, fds__identities **out,
                                  fds_error *err);
void fds__identities_free(fds__identities *identities);
/* What equal sample number 1, 2, ... of a provider has, from what the first one has. */
void fds__identity_numbered(const uint8_t first[32], uint32_t number, uint8_t out[32]);

/* ---- subset.c ---- */

/* A dataset of the samples keep[0][..] of parts[0], then those of parts[1], ...: keep[i] (samples of
 * the part) says which. Classes are those of the first part, found by name; providers are numbered
 * as readers do. What a CSV file's columns have learnt is of these samples. FDS_ERR_SHAPE when a part
 * has other features or a class more. */
fds_status fds__dataset_select(const fds_dataset *const *parts, const bool *const *keep,
                               size_t count, fds_dataset **out, fds_error *err);

/* ---- problem.c ---- */

/* Tests may fill it in without the constructors: all arrays are plain. */
struct fds_problem {
    const fds_dataset *train, *test;   /* test is train where the data has no test part */
    fds_dataset *own_train, *own_test; /* the same, where the problem opened them */
    bool has_test_part, by_provider;
    bool by_points;       /* players are samples, and results add them up by provider */
    bool has_named_tests; /* by the parameter index */
    fds_players *players;
    uint32_t *player_labels;            /* (players) of most of a player's samples */
    uint32_t *samples, *inputs, *tests; /* ascending: of all players, of an explainer, to test */
    bool inputs_of_test;                /* inputs are samples of test, not of train */
    size_t sample_count, input_count, test_count;
    uint32_t *test_labels;       /* (test_count) the true ones */
    size_t set_aside;            /* test samples that are taken from train */
    bool is_proportional;        /* test samples follow the frequencies of classes */
    fds_groups *groups;          /* or NULL: as the parameter "group" says */
    fds__identities *identities; /* with the parameter "changing"; or NULL */
    char *text;
};

/* Whose samples the training inputs are. */
static inline const fds_dataset *fds__problem_input_data(const fds_problem *p) {
    return p->inputs_of_test ? p->test : p->train;
}
/* Players of these names, copied: samples[first[i]] .. samples[first[i + 1]-1], ascending, are those of
 * player i. */
fds_status fds__players_create(size_t count, const char *const *names, const size_t *first,
                               const uint32_t *samples, fds_players **out, fds_error *err);
/* The samples of all players, player by player. */
size_t fds__players_all_samples(const fds_players *players, const uint32_t **index);
/* labels[players]: the label of most of a player's samples, the lowest of several. */
fds_status fds__players_labels(const fds_dataset *ds, const fds_players *players, uint32_t *labels,
                               fds_error *err);
/* The provider of a player that is one sample; NULL where the data names none or the player is a
 * provider. */
const char *fds__player_provider(const fds_problem *problem, size_t player);
json_t *fds__problem_json(const fds_problem *problem);
/* A result with the names of players and classes. */
fds_status fds__problem_result(const fds_problem *problem, const char *method, size_t predictions,
                               fds_result **out, fds_error *err);

/* ---- readers: bytes in memory to a dataset not yet finished ---- */

fds_status fds__idx_parse(fds__blob *images, const fds__blob *labels, fds_dataset **out,
                          fds_error *err);
fds_status fds__cifar_parse(const fds__blob *batches, size_t count, fds_dataset **out,
                            fds_error *err);
fds_status fds__npy_parse(fds__blob *values, const fds__blob *labels, fds_dataset **out,
                          fds_error *err);
/* The same with targets of a regression instead of labels. */
fds_status fds__npy_parse_targets(fds__blob *values, const fds__blob *targets, fds_dataset **out,
                                  fds_error *err);
/* One or two tables (training, test), which share the numbers of classes and providers; out[count]
 * is NULL before. Splits the bytes in place. */
fds_status fds__csv_parse(fds__blob *tables, size_t count, const fds__data_options *options,
                          const fds_events *events, fds_dataset **out, fds_error *err);
fds_status fds__npy_values(fds__blob *values, fds_dataset **out, fds_error *err);
/* Numbers of any shape, in row-major order; the caller fds__frees *out. */
fds_status fds__npy_doubles(const fds__blob *file, size_t dims[4], unsigned *rank, double **out,
                            fds_error *err);
/* One text per item of an array of numbers or texts. */
fds_status fds__npy_texts(const fds__blob *file, fds__names *out, fds_error *err);
/* One or two folders of class folders, which share the numbers of classes. */
fds_status fds__folder_read(const char *const *dirs, size_t count, fds__size size,
                            const fds_events *events, fds_dataset **out, fds_error *err);
/* How deep the pictures of a folder are: 1 in CLASS, 2 in PROVIDER/CLASS, 0: there are none. */
fds_status fds__folder_depth(const char *dir, int *depth, fds_error *err);
/* Single picture files (PNG, JPEG) as a finished dataset of the given shape and number of classes;
 * labels are 0. Gray and colour are converted; another size is FDS_ERR_SHAPE unless is_scaled. */
fds_status fds__data_pictures(const char *const *paths, size_t count, fds_shape shape,
                              uint32_t classes, bool is_scaled, fds_dataset **out, fds_error *err);

/* ---- open.c ---- */

/* fds_data_open that reports to events (stage "read"), which may cancel it. */
fds_status fds__data_open(const char *where, const fds__data_options *options,
                          const fds_events *events, fds_dataset **train, fds_dataset **test,
                          fds_error *err);

/* The path of a file in dir in the spelling that exists: packed (.gz, .zst) or not, IDX also with a dot
 * (train-images.idx3-ubyte). False: none exists, and path has the usual spelling. */
bool fds__data_find(const char *dir, const char *usual, char path[FDS__PATH_MAX]);

/* ---- image.c, jpeg.c, resize.c ---- */

/* Rows from the top, channels interleaved; the owner fds__frees pixels. */
typedef struct fds__picture {
    uint32_t width, height, channels; /* channels: 1 (gray) or 3 (red, green, blue) */
    uint8_t *pixels;                  /* (height, width, channels) */
} fds__picture;

/* PNG or JPEG, known by the first bytes; 8 bits per channel, transparency dropped. */
fds_status fds__picture_read(const char *path, fds__picture *out, fds_error *err);
fds_status fds__picture_decode(const fds__blob *file, fds__picture *out, fds_error *err);
fds_status fds__jpeg_decode(const fds__blob *file, fds__picture *out, fds_error *err);
/* Interleaved pixels to planes (channels, height, width); converts between gray and colour. */
void fds__picture_planes(const fds__picture *picture, uint32_t channels, uint8_t *out);
/* Scales a picture in its place. */
fds_status fds__picture_resize(fds__picture *picture, fds__size size, fds_error *err);
/* "32x24"; NULL: as it is. */
fds_status fds__size_parse(const char *text, fds__size *out, fds_error *err);
/* The same pixels give the same bytes. */
fds_status fds__png_encode(const fds__picture *picture, uint8_t **data, size_t *size,
                           fds_error *err);
fds_status fds__png_write(const fds__picture *picture, const char *path, fds_error *err);

/* ---- fetch.c ---- */

/* The folder of fetched sets. */
fds_status fds__data_folder(char *out, size_t size, fds_error *err);

#endif
