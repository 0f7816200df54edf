/* SPDX-License-Identifier: Apache-2.0
 *
 * Our side of test_deep_torch.py: one deep network, with weights and inputs from files.
 *
 *     deep_witness FOLDER NETWORK explain|classify CHANNELS SIDE OUTPUTS BATCH THREADS PRECISION
 * STEPS
 *
 * Reads FOLDER/weights.safetensors, x.f32 (batch, channels, side, side) and d.f32 (batch, outputs),
 * the gradient of the loss by the outputs. Writes ours.safetensors:
 *     eval            answers with the running statistics of the file
 *     train           outputs with the batch's own
 *     grad.NAME       gradients of that
 *     running.NAME    statistics after STEPS steps of Adam (lr and epsilon 1e-4)
 *     trained         answers after these steps
 */
#include "deep/deep.h"
#include "lane/lane.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 800 };

static fds__tensor results[MOST];
static char names[MOST][80];
static size_t result_count;

static void check(fds_status status, const fds_error *err) {
    if (status == FDS_OK)
        return;
    fprintf(stderr, "deep_witness: %s\n", err->text);
    exit(1);
}

static float *read_floats(const char *folder, const char *name, size_t count) {
    char path[FDS__PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    float *values = malloc(count * sizeof *values);
    if (!file || fread(values, sizeof *values, count, file) != count) {
        perror(path);
        exit(1);
    }
    fclose(file);
    return values;
}

/* A new tensor of the results, to be filled. */
static float *result(const char *prefix, const char *name, uint32_t rank, const uint32_t *dims) {
    fds__tensor *t = &results[result_count];
    size_t count = 1;
    snprintf(names[result_count], sizeof *names, "%s%s", prefix, name);
    t->name = names[result_count++];
    t->rank = rank;
    for (uint32_t d = 0; d < rank; d++)
        count *= t->dims[d] = dims[d];
    float *values = malloc(count * sizeof *values);
    t->values = values;
    return values;
}

static void keep_tensors(const fds__deep *net, const char *prefix, bool statistics) {
    fds_error err = {0};
    for (size_t i = 0; i < fds__deep_tensor_count(net); i++) {
        fds__deep_tensor t = fds__deep_tensor_at(net, i);
        if (t.is_statistic == statistics)
            check(fds__deep_read(net, i, statistics ? FDS__DEEP_VALUE : FDS__DEEP_GRADIENT,
                                 result(prefix, t.name, t.rank, t.dims), &err),
                  &err);
    }
}

static void answer(const fds__deep *net, const char *name, const float *x, const uint32_t *dims) {
    fds_error err = {0};
    fds__deep_infer *infer;
    check(fds__deep_infer_create(net, 6, &infer, &err), &err);
    check(fds__deep_infer_run(infer, x, dims[0], result("", name, 2, dims), &err), &err);
    fds__deep_infer_free(infer);
}

int main(int argc, char **argv) {
    fds_error err = {0};
    if (argc != 11)
        return 2;
    const char *folder = argv[1];
    uint32_t side = (uint32_t)atoi(argv[5]);
    fds__deep_params params = {
        .network = argv[2],
        .head = strcmp(argv[3], "explain") == 0 ? FDS__HEAD_EXPLAIN : FDS__HEAD_CLASSIFY,
        .input = {(uint32_t)atoi(argv[4]), side, side},
        .outputs = (uint32_t)atoi(argv[6]),
        .batch = (uint32_t)atoi(argv[7]),
        .threads = (unsigned)atoi(argv[8]),
        .precision = strcmp(argv[9], "bf16") == 0 ? FDS__PRECISION_BF16 : FDS__PRECISION_F32,
        .seed = 1};
    const fds__adam adam = {.lr = 1e-4f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-4f};
    const uint32_t dims[] = {params.batch, params.outputs};
    fds__deep *net;
    fds__safetensors *file;
    char path[FDS__PATH_MAX];
    check(fds__deep_create(&params, &net, &err), &err);
    snprintf(path, sizeof path, "%s/weights.safetensors", folder);
    check(fds__safetensors_read(path, &file, &err), &err);
    check(fds__deep_load(net, path, file, false, &err), &err);
    fds__safetensors_free(file);
    float *x = read_floats(folder, "x.f32", params.batch * fds__shape_size(params.input));
    float *d = read_floats(folder, "d.f32", (size_t)params.batch * params.outputs);
    float *out = malloc((size_t)params.batch * params.outputs * sizeof *out);

    answer(net, "eval", x, dims);
    check(fds__deep_forward(net, x, NULL, result("", "train", 2, dims), &err), &err);
    check(fds__deep_backward(net, d, &err), &err);
    keep_tensors(net, "grad.", false);
    for (int steps = atoi(argv[10]); steps > 0; steps--) {
        check(fds__deep_step(net, &adam, &err), &err);
        if (steps == 1)
            break;
        check(fds__deep_forward(net, x, NULL, out, &err), &err);
        check(fds__deep_backward(net, d, &err), &err);
    }
    keep_tensors(net, "running.", true);
    answer(net, "trained", x, dims);

    snprintf(path, sizeof path, "%s/ours.safetensors", folder);
    check(fds__safetensors_write(path, results, result_count, NULL, 0, NULL, &err), &err);
    for (size_t i = 0; i < result_count; i++)
        free((void *)(uintptr_t)results[i].values);
    free(x);
    free(d);
    free(out);
    fds__deep_free(net);
    return 0;
}
