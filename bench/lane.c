/* SPDX-License-Identifier: Apache-2.0
 *
 * Our side of bench/lane.py: times the lane engine on digits of MNIST, or on random images of ten
 * classes if DATA is a shape such as 3x32x32.
 *
 *     bench-lane DATA train NETWORK SAMPLES EPOCHS BATCH THREADS
 *     bench-lane DATA eval NETWORK IMAGES
 *
 * Prints, the best of all repetitions: processor seconds (a model's training, or an image's
 * evaluation), the floating-point operations that it needs, and for training models_per_s of all
 * threads together.
 */
#include "model/model.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SEED = 1, MOST_THREADS = 64 };

typedef struct {
    fds_net *net;
    fds_inputs *inputs;
    uint32_t *members;
    size_t count;
    fds_train_params params;
    float *initial;
    fds_lane *lanes[MOST_THREADS];
    float *weights[MOST_THREADS];
    double best[MOST_THREADS]; /* seconds of the fastest model */
} bench;

static void check(fds_status status, const fds_error *err) {
    if (status == FDS_OK)
        return;
    fprintf(stderr, "bench-lane: %s\n", err->text);
    exit(1);
}

/* Other processes on a busy machine do not count. */
static double thread_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Sixteen random images, if data is a shape. */
static bool draw_images(const char *data, fds_dataset **out) {
    fds_error err = {0};
    fds_shape shape;
    if (sscanf(data, "%ux%ux%u", &shape.channels, &shape.height, &shape.width) != 3)
        return false;
    enum { IMAGES = 16, CLASSES = 10 };
    const size_t numbers = IMAGES * fds__shape_size(shape);
    float *values = malloc(numbers * sizeof *values);
    uint16_t labels[IMAGES];
    fds_rng rng = fds_rng_make(SEED, 0, 0, 0);
    for (size_t i = 0; i < numbers; i++)
        values[i] = (float)fds_rng_normal(&rng);
    for (size_t i = 0; i < IMAGES; i++)
        labels[i] = (uint16_t)(i % CLASSES);
    check(fds__dataset_create(IMAGES, shape, NULL, values, labels, CLASSES, NULL, out, &err), &err);
    free(values);
    return true;
}

static void prepare(bench *b, const char *data, const char *network, size_t samples,
                    unsigned threads) {
    fds_error err = {0};
    fds_dataset *train, *test = NULL;
    if (!draw_images(data, &train))
        check(fds__data_open(data, NULL, NULL, &train, &test, &err), &err);
    fds__dataset_info info = fds__dataset_get_info(train);
    b->count = samples;
    b->members = malloc(samples * sizeof *b->members);
    /* a small dataset is used over and over: only the shapes matter for time */
    for (size_t i = 0; i < samples; i++)
        b->members[i] = (uint32_t)(i % info.count);
    float *mean = malloc(info.shape.channels * sizeof *mean);
    float *std = malloc(info.shape.channels * sizeof *std);
    check(fds_dataset_stats(train, NULL, info.count, NULL, NULL, mean, std, &err), &err);
    check(fds_inputs_create(train, b->members, samples, mean, std, &b->inputs, &err), &err);
    check(fds_net_create(network, info.shape, info.classes, &b->net, &err), &err);
    for (size_t i = 0; i < samples; i++)
        b->members[i] = (uint32_t)i;
    b->initial = malloc(fds_net_weights(b->net) * sizeof(float));
    fds_net_init(b->net, SEED, b->initial);
    free(mean);
    free(std);
    for (unsigned t = 0; t < threads; t++) {
        check(fds_lane_create(b->net, &b->lanes[t], &err), &err);
        b->weights[t] = malloc(fds_net_weights(b->net) * sizeof(float));
        b->best[t] = 1e30;
    }
    fds_dataset_free(train);
    fds_dataset_free(test);
}

static fds_status train_model(void *context, size_t job, unsigned worker, fds_error *err) {
    bench *b = context;
    fds_train_params params = b->params;
    params.seed = job;
    double start = thread_s();
    memcpy(b->weights[worker], b->initial, fds_net_weights(b->net) * sizeof(float));
    fds_status status = fds_lane_train(b->lanes[worker], b->inputs, b->members, b->count, &params,
                                       b->weights[worker], NULL, NULL, err);
    b->best[worker] = MIN(b->best[worker], thread_s() - start);
    return status;
}

static void time_training(bench *b, unsigned threads) {
    fds_error err = {0};
    double rate = 0;
    /* enough that starting and ending together does not count, few enough to see a quiet moment */
    size_t models = 16 * threads;
    for (double begin = fds__now_s(); fds__now_s() - begin < 2.0;) {
        double start = fds__now_s();
        check(fds__pool_run(threads, models, train_model, b, "", "", NULL, &err), &err);
        rate = MAX(rate, (double)models / (fds__now_s() - start));
    }
    double flops = (double)fds_net_flops_train(b->net) * (double)b->count * b->params.epochs;
    printf("isa=%s\nseconds=%.9f\nflops=%.0f\nmodels_per_s=%.3f\n", fds_isa(), b->best[0], flops,
           rate);
}

static void time_evaluation(bench *b) {
    fds_error err = {0};
    double best = 1e30;
    float *probs = malloc(b->count * 1000 * sizeof *probs);
    for (double begin = fds__now_s(); fds__now_s() - begin < 0.5;) {
        double start = thread_s();
        check(fds_lane_predict(b->lanes[0], b->inputs, 0, b->count, b->initial, probs, &err), &err);
        best = MIN(best, (thread_s() - start) / (double)b->count);
    }
    free(probs);
    printf("isa=%s\nseconds=%.9f\nflops=%.0f\n", fds_isa(), best,
           (double)fds_net_flops_forward(b->net));
}

int main(int argc, char **argv) {
    bench b = {.params = fds_train_params_default()};
    unsigned threads = 1;
    bool train = argc == 8 && strcmp(argv[2], "train") == 0;
    if (!train && !(argc == 5 && strcmp(argv[2], "eval") == 0)) {
        fprintf(stderr, "usage: bench-lane DATA train NETWORK SAMPLES EPOCHS BATCH THREADS\n"
                        "       bench-lane DATA eval NETWORK IMAGES\n");
        return 2;
    }
    if (train) {
        b.params.epochs = (uint32_t)strtoul(argv[5], NULL, 10);
        b.params.batch = (uint32_t)strtoul(argv[6], NULL, 10);
        threads = (unsigned)MIN(strtoul(argv[7], NULL, 10), (unsigned long)MOST_THREADS);
    }
    prepare(&b, argv[1], argv[3], strtoul(argv[4], NULL, 10), threads);
    if (train)
        time_training(&b, threads);
    else
        time_evaluation(&b);
    for (unsigned t = 0; t < threads; t++) {
        fds_lane_free(b.lanes[t]);
        free(b.weights[t]);
    }
    fds_inputs_free(b.inputs);
    fds_net_free(b.net);
    free(b.members);
    free(b.initial);
    return 0;
}
