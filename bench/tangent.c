/* SPDX-License-Identifier: Apache-2.0
 *
 * Our side of bench/tangent.py: times the tangent kernel of digits of MNIST with others, by the
 * network as it is initialised.
 *
 *     bench-tangent DATA NETWORK A B THREADS [FOLDER]
 *
 * A samples of the training part with B of the test part. Prints the fewest seconds of all
 * repetitions, of the processor and not of the clock, because other programs may run too; FOLDER
 * receives what PyTorch needs to do the same: weights.f32, a.f32 (A, pixels) and b.f32, normalised,
 * and our kernel.f32 (A, B).
 */
#include "model/model.h"

#include <stdlib.h>
#include <time.h>

enum { SEED = 1 };

static void check(fds_status status, const fds_error *err) {
    if (status == FDS_OK)
        return;
    fprintf(stderr, "bench-tangent: %s\n", err->text);
    exit(1);
}

/* A small dataset is used over and over: only the shapes matter for time. */
static fds_inputs *take(const fds_dataset *ds, size_t count, const float *mean, const float *std) {
    uint32_t *index = malloc(count * sizeof *index);
    fds_inputs *inputs;
    fds_error err = {0};
    for (size_t i = 0; i < count; i++)
        index[i] = (uint32_t)(i % fds__dataset_get_info(ds).count);
    check(fds_inputs_create(ds, index, count, mean, std, &inputs, &err), &err);
    free(index);
    return inputs;
}

static void write_floats(const char *folder, const char *name, const float *values, size_t count) {
    char path[FDS__PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(values, sizeof *values, count, file) != count || fclose(file)) {
        perror(path);
        exit(1);
    }
}

int main(int argc, char **argv) {
    fds_error err = {0};
    fds_dataset *train, *test;
    fds_net *net;
    if (argc != 6 && argc != 7) {
        fprintf(stderr, "usage: bench-tangent DATA NETWORK A B THREADS [FOLDER]\n");
        return 2;
    }
    check(fds__data_open(argv[1], NULL, NULL, &train, &test, &err), &err);
    fds__dataset_info info = fds__dataset_get_info(train);
    float *mean = malloc(info.shape.channels * sizeof *mean);
    float *std = malloc(info.shape.channels * sizeof *std);
    check(fds_dataset_stats(train, NULL, info.count, NULL, NULL, mean, std, &err), &err);
    fds_inputs *a = take(train, strtoul(argv[3], NULL, 10), mean, std);
    fds_inputs *b = take(test, strtoul(argv[4], NULL, 10), mean, std);
    unsigned threads = (unsigned)strtoul(argv[5], NULL, 10);
    check(fds_net_create(argv[2], info.shape, info.classes, &net, &err), &err);
    float *weights = malloc(fds_net_weights(net) * sizeof *weights);
    float *kernel = malloc(a->count * b->count * sizeof *kernel);
    fds_net_init(net, SEED, weights);
    double best = 1e30;
    for (double spent = 0, took; spent < 2.0; spent += took) {
        clock_t start = clock();
        check(fds__net_tangent(net, weights, a, b, threads, kernel, NULL, &err), &err);
        took = (double)(clock() - start) / CLOCKS_PER_SEC;
        best = MIN(best, took);
    }
    printf("isa=%s\nseconds=%.6f\n", fds_isa(), best);
    if (argc == 7) {
        write_floats(argv[6], "weights.f32", weights, fds_net_weights(net));
        write_floats(argv[6], "a.f32", a->values, a->count * a->size);
        write_floats(argv[6], "b.f32", b->values, b->count * b->size);
        write_floats(argv[6], "kernel.f32", kernel, a->count * b->count);
    }
    free(weights);
    free(kernel);
    free(mean);
    free(std);
    fds_inputs_free(a);
    fds_inputs_free(b);
    fds_net_free(net);
    fds_dataset_free(train);
    fds_dataset_free(test);
    return 0;
}
