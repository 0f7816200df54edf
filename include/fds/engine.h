/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine under fds.h: networks, many at a time, and random numbers. It is for benchmarks, and
 * may change in any version.
 */
#ifndef FDS_ENGINE_H
#define FDS_ENGINE_H

#include "../fds.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== Training ============================================================================== */

typedef enum fds_optimizer { FDS_OPTIMIZER_ADAM, FDS_OPTIMIZER_SGD } fds_optimizer;

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
    uint64_t seed; /* initial weights, order of mini-batches, dropout */
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

/* Trains a network ("lenet5", or a text as below) on the samples of index, normalised by
 * their own channel statistics. One thread: many models are trained side by side, not one in many.
 */
FDS_API fds_status fds_model_train(const fds_dataset *ds, const uint32_t *index, size_t count,
                                   const char *network, const fds_train_params *params,
                                   const fds_events *events, fds_model **out,
                                   fds_train_report *report, fds_error *err);
/* ==== Networks, many at a time ============================================================== */

/* A network's plan: layers, shapes, where each weight lies. Shareable.
 *
 * Text: layers separated by commas; blanks around them are allowed.
 *   conv:OxK[pP][sS]  O filters of K x K, zero padding P (0, below K), stride S (1), with bias
 *   embed:VxD         only as the first layer: inputs are numbers of V tokens, each becomes D channels;
 *                     features are a row of tokens: D x 1 x features
 *   relu, tanh, gelu  max(0, x), tanh(x), and the Gaussian error linear unit (by tanh)
 *   maxpool[:K]       K x K windows (2), stride K, incomplete windows dropped
 *   avgpool[:K]       the same with the mean of a window
 *   globalpool        the mean over the whole image, by channel
 *   batchnorm         normalises each channel: by the mini-batch in training, by running statistics,
 *                     which are among the weights, in evaluation
 *   dropout:P         in training 0 with probability P, else x / (1 - P); a function of (seed, epoch,
 *                     id of the sample, layer, unit)
 *   residual(LAYERS)  x plus the output of the layers; where they change the shape, x is projected
 *                     by a 1 x 1 convolution (after fc: by a fully connected layer)
 *   fc:O              fully connected with bias; the first one flattens its input; O may be "classes"
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
/* Initial weights: uniform in +-1/sqrt(fan in), weights and biases, as PyTorch's layers start; embed
 * is uniform in +-1; batchnorm starts with weights and variances of 1, biases and means of 0. */
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
/* Class probabilities of inputs first .. first+count-1: probs[count * classes]. FDS_ERR_DIVERGED
 * when an answer is infinite or not a number. */
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

/* ==== The machine =========================================================================== */

/* "avx512", "avx2" or "generic": what the engine runs on, or "unsupported" when FDS_ISA in the
 * environment, which forces one, names another or one that the processor lacks. On a given kind of
 * processor all give the same bits. */
FDS_API const char *fds_isa(void);
/* How many this process may use. */
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
