/* SPDX-License-Identifier: Apache-2.0
 *
 * fds: what every training-data provider contributed to a prediction.
 *
 * The one public header, in sections from simple to advanced:
 *   1. status, errors, events     every fallible call returns fds_status and fills an fds_error
 *   2. data                       datasets, splits, players, pictures of data
 *   3. models                     train a service model, use it, keep it in a file
 *   4. networks, many at a time   the engine under section 3, for thousands of small networks
 *   5. the machine                random numbers, checksums, instruction sets
 *
 * Ownership: *_create, *_open, *_load and *_train hand over a new object; the matching *_free takes
 * it back and accepts NULL. Pointers that a getter returns belong to the object. Objects marked
 * "shareable" are immutable once made and may be read by many threads; all others belong to
 * one thread at a time. The library never prints and never exits.
 */
#ifndef FDS_H
#define FDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FDS_VERSION "0.1.0"
#define FDS_API __attribute__((visibility("default")))

/* ==== 1. Status, errors, events ============================================================= */

/* name, number (stable), exit code of the command, text */
#define FDS_STATUS_TABLE(X)                       \
    X(OK, 0, 0, "success")                        \
    X(USAGE, 1, 2, "wrong argument")              \
    X(NOMEM, 2, 1, "out of memory")               \
    X(IO, 3, 1, "file cannot be read or written") \
    X(NOT_FOUND, 4, 1, "not found")               \
    X(FORMAT, 5, 1, "file is malformed")          \
    X(SHAPE, 6, 1, "shapes do not agree")         \
    X(LIMIT, 7, 1, "too large")                   \
    X(CORRUPT, 8, 1, "checksum does not agree")   \
    X(UNSUPPORTED, 9, 1, "not supported")         \
    X(DIVERGED, 10, 1, "training diverged")       \
    X(CANCELLED, 11, 1, "cancelled")              \
    X(EXTERNAL, 12, 1, "a program that was called failed")

typedef enum fds_status {
#define FDS_X(name, number, exit_code, text) FDS_##name = number,
    FDS_STATUS_TABLE(FDS_X)
#undef FDS_X
} fds_status;

/* What went wrong, for people: the file, the place in it, what would be right. Owned by the caller;
 * every function accepts NULL. Untouched on success. */
typedef struct fds_error {
    fds_status status;
    char text[512];
} fds_error;

FDS_API const char *fds_status_name(fds_status status); /* "FORMAT" */
FDS_API const char *fds_status_text(fds_status status); /* "file is malformed" */
FDS_API int fds_status_exit_code(fds_status status);

typedef enum fds_log_level { FDS_LOG_INFO, FDS_LOG_WARNING } fds_log_level;

typedef struct fds_progress {
    const char *stage; /* "train", "evaluate", ... */
    const char *unit;  /* what is counted: "epochs", "images", ... */
    uint64_t done, total;
    double elapsed_s; /* since the stage began */
} fds_progress;

/* Callbacks of a long call, made only from the thread that made the call. Either may be NULL, and
 * so may the pointer to the whole. A progress callback that returns true asks the call to stop: it
 * then returns FDS_CANCELLED. */
typedef struct fds_events {
    void (*log)(void *user, fds_log_level level, const char *text);
    bool (*progress)(void *user, const fds_progress *progress);
    void *user;
} fds_events;

/* ==== 2. Data =============================================================================== */

/* Wherever samples are named by index and count, index NULL stands for samples 0 .. count-1, and
 * names asked for out of range are "?".
 *
 * One sample is channels x height x width numbers, row-major. A feature vector of length F is
 * F x 1 x 1, so that "per channel" means per feature. */
typedef struct fds_shape {
    uint32_t channels, height, width;
} fds_shape;

/* Samples, labels, names. Shareable. */
typedef struct fds_dataset fds_dataset;

typedef struct fds_dataset_info {
    const char *source; /* where it was read from */
    size_t count;       /* samples */
    fds_shape shape;
    bool is_bytes; /* values are bytes 0..255, seen by networks as 0..1; else floats as they are */
    bool is_image; /* false: feature vectors */
    uint32_t classes;             /* labels are 0 .. classes-1 */
    uint32_t providers;           /* 0: the data names no providers */
    const uint16_t *labels;       /* [count] */
    const uint32_t *provider_ids; /* [count], or NULL */
} fds_dataset_info;

typedef struct fds_data_options {
    const char *label_column;    /* CSV; NULL: "label" */
    const char *provider_column; /* CSV; NULL: "provider" where there is such a column */
    const char *labels_file;     /* NPY labels of a single NPY file; NULL: beside it by name */
} fds_data_options;

/* Opens data by the name of a fetched set ("mnist") or by path; see docs/data.md for the formats.
 * *test is NULL when the source has no test part of its own. options may be NULL. */
FDS_API fds_status fds_data_open(const char *where, const fds_data_options *options,
                                 fds_dataset **train, fds_dataset **test, fds_error *err);
FDS_API void fds_dataset_free(fds_dataset *ds);
FDS_API fds_dataset_info fds_dataset_get_info(const fds_dataset *ds);
FDS_API const char *fds_dataset_class_name(const fds_dataset *ds, uint32_t label);
FDS_API const char *fds_dataset_provider_name(const fds_dataset *ds, uint32_t provider);
/* Copies sample i as floats (bytes become 0..1) to out[channels * height * width]. */
FDS_API void fds_dataset_sample(const fds_dataset *ds, size_t i, float *out);

/* A dataset in memory, copied from the caller's arrays: bytes or floats, exactly one not NULL.
 * class_names may be NULL ("0", "1", ...). */
FDS_API fds_status fds_dataset_create(size_t count, fds_shape shape, const uint8_t *bytes,
                                      const float *floats, const uint16_t *labels, uint32_t classes,
                                      const char *const *class_names, fds_dataset **out,
                                      fds_error *err);

/* Fetches a known set ("mnist", "fashion-mnist", "cifar10"), checks it, and puts it into the data
 * folder ($FDS_DATA, else $XDG_DATA_HOME/fds, else ~/.local/share/fds). from: a folder that has the
 * files already, or NULL to fetch. path receives where the set now is. */
FDS_API fds_status fds_data_get(const char *name, const char *from, char *path, size_t path_size,
                                const fds_events *events, fds_error *err);
/* The names that fds_data_get knows, NULL-terminated. */
FDS_API const char *const *fds_data_known(void);

/* Chooses count samples, as equal a number of each class as there are (classes that run out give
 * what they have); index[count] receives them in ascending order. Sets of one seed are nested. */
FDS_API fds_status fds_split_balanced(const fds_dataset *ds, size_t count, uint64_t seed,
                                      uint32_t *index, fds_error *err);
/* Parts all samples into test[test_count], balanced by class, and train[the rest], ascending. */
FDS_API fds_status fds_split_test(const fds_dataset *ds, size_t test_count, uint64_t seed,
                                  uint32_t *train, uint32_t *test, fds_error *err);

/* Who is paid: n players, each owning one or many samples. Shareable. */
typedef struct fds_players fds_players;

/* Every sample of index is a player. */
FDS_API fds_status fds_players_points(const fds_dataset *ds, const uint32_t *index, size_t count,
                                      fds_players **out, fds_error *err);
/* Every provider with a sample in index is a player; FDS_USAGE when the data names none. */
FDS_API fds_status fds_players_providers(const fds_dataset *ds, const uint32_t *index, size_t count,
                                         fds_players **out, fds_error *err);
FDS_API void fds_players_free(fds_players *players);
FDS_API size_t fds_players_count(const fds_players *players);
/* The samples of player i, ascending; the return value is how many. */
FDS_API size_t fds_players_samples(const fds_players *players, size_t i, const uint32_t **index);
FDS_API const char *fds_players_name(const fds_players *players, size_t i);

/* Least and greatest value, mean and standard deviation of each channel over the samples of index
 * (NULL: all count of them), with bytes seen as 0..1. Each array [channels]; any may be NULL. */
FDS_API fds_status fds_dataset_stats(const fds_dataset *ds, const uint32_t *index, size_t count,
                                     float *min, float *max, float *mean, float *std,
                                     fds_error *err);

/* Draws the samples of index (images only) as a PNG of the given number of columns, each scaled up
 * to at least 80 pixels, with its class name below. */
FDS_API fds_status fds_dataset_draw(const fds_dataset *ds, const uint32_t *index, size_t count,
                                    uint32_t columns, const char *png_path, fds_error *err);

/* ==== 3. Models ============================================================================= */

typedef enum fds_optimizer { FDS_ADAM, FDS_SGD } fds_optimizer;

typedef struct fds_train_params {
    fds_optimizer optimizer;
    float lr;
    float momentum;              /* SGD */
    float beta1, beta2, epsilon; /* Adam */
    float weight_decay;          /* added to the gradient, times the weight, as PyTorch does */
    uint32_t batch;
    uint32_t epochs; /* how many; with converge, the cap */
    bool converge;   /* stop early: an epoch's mean training loss is below loss_bound, or has not
                      * fallen by more than min_delta below its best for patience epochs */
    float loss_bound, min_delta;
    uint32_t patience;
    uint64_t seed; /* initial weights and order of mini-batches */
} fds_train_params;

/* Adam, lr 1e-3, batch 16, 10 epochs; for converge: bound 0.01, delta 1e-4, patience 10. */
FDS_API fds_train_params fds_train_params_default(void);
/* Names the first mistake, before any work. */
FDS_API fds_status fds_train_params_check(const fds_train_params *params, fds_error *err);

typedef struct fds_train_report {
    uint32_t epochs;             /* run */
    bool converged;              /* stopped by the rule, not by the cap */
    float first_loss, last_loss; /* mean over the first and the last epoch, as training saw it */
} fds_train_report;

/* A trained network with everything needed to use it: its text, weights, normalisation and class
 * names. Shareable. */
typedef struct fds_model fds_model;

typedef struct fds_model_info {
    const char *network; /* its text in full, e.g. "conv:6x5p2,relu,...,fc:10" */
    fds_shape shape;
    uint32_t classes;
    size_t weights;
    const float *mean, *std; /* [channels] */
    const char *sha256;      /* of the weights' bytes, 64 hexadecimal digits */
} fds_model_info;

/* Trains a network ("lenet5", or a text as in section 4) on the samples of index, normalised by
 * their own channel statistics. One thread: many models are trained side by side, not one in many.
 */
FDS_API fds_status fds_model_train(const fds_dataset *ds, const uint32_t *index, size_t count,
                                   const char *network, const fds_train_params *params,
                                   const fds_events *events, fds_model **out,
                                   fds_train_report *report, fds_error *err);
FDS_API void fds_model_free(fds_model *model);
FDS_API fds_model_info fds_model_get_info(const fds_model *model);
FDS_API const char *fds_model_class_name(const fds_model *model, uint32_t label);

/* Class probabilities of the samples of index (NULL: all count): probs[count * classes]. The bits
 * do not depend on threads (0: all processors) nor on which samples are asked for together. */
FDS_API fds_status fds_model_predict(const fds_model *model, const fds_dataset *ds,
                                     const uint32_t *index, size_t count, unsigned threads,
                                     float *probs, const fds_events *events, fds_error *err);

typedef struct fds_score {
    size_t count;
    double loss; /* mean cross-entropy of the true label */
    double accuracy;
} fds_score;

FDS_API fds_status fds_model_score(const fds_model *model, const fds_dataset *ds,
                                   const uint32_t *index, size_t count, unsigned threads,
                                   fds_score *score, const fds_events *events, fds_error *err);

/* safetensors, tensors named as in the equivalent torch.nn.Sequential; see docs/models.md. Saving
 * replaces an old file only by a complete new one. */
FDS_API fds_status fds_model_save(const fds_model *model, const char *path, fds_error *err);
FDS_API fds_status fds_model_load(const char *path, fds_model **out, fds_error *err);

/* ==== 4. Networks, many at a time =========================================================== */

/* A network's plan: layers, shapes, where each weight lies. Shareable.
 *
 * Text: layers separated by commas; blanks around them are allowed.
 *   conv:OxK[pP]   O filters of K x K, zero padding P (0, below K), stride 1, with bias
 *   relu           max(0, x)
 *   maxpool[:K]    K x K windows (2), stride K, incomplete windows dropped
 *   fc:O           fully connected with bias; the first one flattens its input; O may be "classes"
 * It must end in fc with as many outputs as there are classes. The presets
 * logistic, mlp, lenet5 and cnn stand for such texts. */
typedef struct fds_net fds_net;

typedef struct fds_tensor_info {
    const char *name; /* as in torch.nn.Sequential: "0.weight" */
    uint32_t rank;
    uint32_t dims[4];
    size_t offset, count; /* in floats, within the weights */
} fds_tensor_info;

FDS_API fds_status fds_net_create(const char *text, fds_shape input, uint32_t classes,
                                  fds_net **out, fds_error *err);
FDS_API void fds_net_free(fds_net *net);
FDS_API const char *fds_net_text(const fds_net *net); /* presets and "classes" written out */
FDS_API size_t fds_net_weights(const fds_net *net);
FDS_API size_t fds_net_tensors(const fds_net *net);
FDS_API fds_tensor_info fds_net_tensor(const fds_net *net, size_t i);
/* Multiplications and additions that one sample needs, by definition of the layers. */
FDS_API uint64_t fds_net_flops_forward(const fds_net *net);
FDS_API uint64_t fds_net_flops_train(const fds_net *net);
/* Initial weights: uniform in +-1/sqrt(fan in), weights and biases, as PyTorch's layers start. */
FDS_API void fds_net_init(const fds_net *net, uint64_t seed, float *weights);

/* Normalised samples ready for the engine, with their labels. Shareable. The id of a sample is its
 * number in the dataset: it decides its place in the mini-batches. */
typedef struct fds_inputs fds_inputs;

FDS_API fds_status fds_inputs_create(const fds_dataset *ds, const uint32_t *index, size_t count,
                                     const float *mean, const float *std, fds_inputs **out,
                                     fds_error *err);
FDS_API void fds_inputs_free(fds_inputs *inputs);
FDS_API size_t fds_inputs_count(const fds_inputs *inputs);

/* One thread's workspace for a network: everything that training and evaluation need, allocated
 * once. The net must outlive it. */
typedef struct fds_lane fds_lane;

FDS_API fds_status fds_lane_create(const fds_net *net, fds_lane **out, fds_error *err);
FDS_API void fds_lane_free(fds_lane *lane);
/* Trains weights (in: initial, out: trained) on the given members of inputs: positions within
 * inputs, each once, in any order; no members leaves the weights as they are. events see epochs. */
FDS_API fds_status fds_lane_train(fds_lane *lane, const fds_inputs *inputs, const uint32_t *members,
                                  size_t count, const fds_train_params *params, float *weights,
                                  fds_train_report *report, const fds_events *events,
                                  fds_error *err);
/* Class probabilities of inputs first .. first+count-1: probs[count * classes]. FDS_DIVERGED when
 * an answer is infinite or not a number. */
FDS_API fds_status fds_lane_predict(fds_lane *lane, const fds_inputs *inputs, size_t first,
                                    size_t count, const float *weights, float *probs,
                                    fds_error *err);
/* The same before the softmax. */
FDS_API fds_status fds_lane_logits(fds_lane *lane, const fds_inputs *inputs, size_t first,
                                   size_t count, const float *weights, float *logits,
                                   fds_error *err);
/* The order in which an epoch visits members: a function of (seed, epoch, id of the sample) alone.
 * order[count] receives positions within inputs; mini-batches are consecutive runs of it. */
FDS_API fds_status fds_inputs_order(const fds_inputs *inputs, const uint32_t *members, size_t count,
                                    uint64_t seed, uint32_t epoch, uint32_t *order, fds_error *err);

/* ==== 5. The machine ======================================================================== */

/* "avx512", "avx2" or "generic": what the engine runs on, or "unsupported" when FDS_ISA in the
 * environment, which forces one, names another or one that the processor lacks. On a given kind of
 * processor all give the same bits. */
FDS_API const char *fds_isa(void);
FDS_API unsigned fds_processors(void);

/* Counter-based random numbers (Philox 4x64, 10 rounds): the numbers are a function of
 * (seed, purpose, a, b) and nothing else. Plain value; copy it freely. */
typedef struct fds_rng {
    uint64_t key[2], counter[4], block[4];
    unsigned used;
} fds_rng;

FDS_API fds_rng fds_rng_make(uint64_t seed, uint64_t purpose, uint64_t a, uint64_t b);
FDS_API uint64_t fds_rng_u64(fds_rng *rng);
FDS_API double fds_rng_unit(fds_rng *rng);                    /* in [0, 1), 53 bits */
FDS_API uint64_t fds_rng_below(fds_rng *rng, uint64_t bound); /* uniform in 0 .. bound-1 */
FDS_API double fds_rng_normal(fds_rng *rng);                  /* mean 0, variance 1 */
FDS_API void fds_rng_shuffle(fds_rng *rng, uint32_t *items, size_t count);

FDS_API uint64_t fds_checksum(const void *data, size_t size); /* XXH3, 64 bits */
FDS_API void fds_sha256_hex(const void *data, size_t size, char hex[65]);

#ifdef __cplusplus
}
#endif
#endif
