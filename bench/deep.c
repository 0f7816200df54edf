/* SPDX-License-Identifier: Apache-2.0
 *
 * Our side of bench/deep.py: times the deep engine on random images.
 *
 *     bench-deep train NETWORK f32|bf16 CHANNELS SIDE BATCH THREADS STEPS
 *     bench-deep infer NETWORK f32|bf16 CHANNELS SIDE THREADS IMAGES
 *
 * Training prints medians over the steps: seconds (forward, backward and Adam), those of each part,
 * and the floating-point operations of a step. Answering, one image at a time: p50_s and p99_s.
 */
#include "deep/deep.h"

#include <stdlib.h>
#include <string.h>

enum { OUTPUTS = 10, WARM_UP = 3, MOST = 100000 };

static void check(fds_status status, const fds_error *err) {
    if (status == FDS_OK)
        return;
    fprintf(stderr, "bench-deep: %s\n", err->text);
    exit(1);
}

static float *random_floats(size_t count, uint64_t stream) {
    fds_rng rng = fds_rng_make(1, 3000, stream, 0);
    float *values = malloc(count * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)fds_rng_normal(&rng);
    return values;
}

static int by_value(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Sorts the times. */
static double quantile(double *times, size_t count, double q) {
    qsort(times, count, sizeof *times, by_value);
    return times[(size_t)(q * (double)(count - 1) + 0.5)];
}

static void time_training(const fds__deep_params *params, size_t steps) {
    const fds__adam adam = {.lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f};
    const char *const names[] = {"forward_s", "backward_s", "adam_s", "seconds"};
    static double times[4][MOST];
    fds_error err = {0};
    fds__deep *net;
    size_t size = (size_t)params->input.channels * params->input.height * params->input.width;
    float *x = random_floats(params->batch * size, 0), *out = malloc(params->batch * OUTPUTS * 4);
    check(fds__deep_create(params, &net, &err), &err);
    for (size_t i = 0; i < steps + WARM_UP; i++) {
        double at[4];
        at[0] = fds__now_s();
        check(fds__deep_forward(net, x, NULL, out, &err), &err);
        /* squared distance from the sample's class as a vector */
        for (size_t k = 0; k < (size_t)params->batch * OUTPUTS; k++)
            out[k] = (out[k] - (k / OUTPUTS % OUTPUTS == k % OUTPUTS)) / (float)params->batch;
        at[1] = fds__now_s();
        check(fds__deep_backward(net, out, &err), &err);
        at[2] = fds__now_s();
        check(fds__deep_step(net, &adam, &err), &err);
        at[3] = fds__now_s();
        for (int k = 0; k < 4 && i >= WARM_UP; k++)
            times[k][i - WARM_UP] = k == 3 ? at[3] - at[0] : at[k + 1] - at[k];
    }
    for (int k = 0; k < 4; k++)
        printf("%s=%.6f\n", names[k], quantile(times[k], steps, 0.5));
    printf("flops=%llu\nisa=%s\n", (unsigned long long)fds__deep_flops_train(net) * params->batch,
           fds__deep_isa());
    fds__deep_free(net);
    free(x);
    free(out);
}

static void time_answers(const fds__deep_params *params, size_t images) {
    enum { DIFFERENT = 64 };
    static double times[MOST];
    fds_error err = {0};
    fds__deep *net;
    fds__deep_infer *infer;
    size_t size = (size_t)params->input.channels * params->input.height * params->input.width;
    float *x = random_floats(DIFFERENT * size, 0), out[OUTPUTS];
    check(fds__deep_create(params, &net, &err), &err);
    check(fds__deep_infer_create(net, 1, &infer, &err), &err);
    fds__deep_free(net);
    for (size_t i = 0; i < images + WARM_UP; i++) {
        double start = fds__now_s();
        check(fds__deep_infer_run(infer, x + i % DIFFERENT * size, 1, out, &err), &err);
        if (i >= WARM_UP)
            times[i - WARM_UP] = fds__now_s() - start;
    }
    printf("p50_s=%.7f\n", quantile(times, images, 0.5));
    printf("p99_s=%.7f\n", quantile(times, images, 0.99));
    fds__deep_infer_free(infer);
    free(x);
}

int main(int argc, char **argv) {
    bool is_train = argc == 9 && strcmp(argv[1], "train") == 0;
    if (!is_train && (argc != 8 || strcmp(argv[1], "infer") != 0))
        return 2;
    uint32_t side = (uint32_t)atoi(argv[5]);
    fds__deep_params params = {.network = argv[2],
                               .head = FDS__HEAD_CLASSIFY,
                               .input = {(uint32_t)atoi(argv[4]), side, side},
                               .outputs = OUTPUTS,
                               .batch = is_train ? (uint32_t)atoi(argv[6]) : 2,
                               .threads = (unsigned)atoi(argv[argc - 2]),
                               .precision = strcmp(argv[3], "bf16") == 0 ? FDS__PRECISION_BF16
                                                                         : FDS__PRECISION_F32,
                               .seed = 1};
    size_t count = strtoul(argv[argc - 1], NULL, 10);
    if (count < 1 || count > MOST)
        return 2;
    if (is_train)
        time_training(&params, count);
    else
        time_answers(&params, count);
    return 0;
}
