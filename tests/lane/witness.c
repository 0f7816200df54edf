/* SPDX-License-Identifier: Apache-2.0
 *
 * Our side of test_torch.py: trains a network on data in a folder and writes down everything that
 * PyTorch needs to do the same.
 *
 *     witness FOLDER NETWORK SAMPLES adam|sgd|tangent
 *
 * Writes into FOLDER: init.safetensors and trained.safetensors; logits.f32 (initial network) and
 * probs.f32 (trained) of the test part; order.json: the training samples chosen, and for each epoch
 * the order in which they are visited. With tangent, for test_tangent_torch.py, also kernel.f32:
 * the initial network's tangent kernel of those samples with the test part.
 */
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

static void check(fds_status status, const fds_error *err) {
    if (status == FDS_OK)
        return;
    fprintf(stderr, "witness: %s\n", err->text);
    exit(1);
}

static FILE *create(const char *folder, const char *name) {
    char path[FDS__PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file) {
        perror(path);
        exit(1);
    }
    return file;
}

static void write_numbers(FILE *file, const uint32_t *numbers, size_t count) {
    fputc('[', file);
    for (size_t i = 0; i < count; i++)
        fprintf(file, "%s%u", i ? ", " : "", numbers[i]);
    fputc(']', file);
}

static void write_order(const char *folder, const fds_inputs *inputs, const uint32_t *index,
                        const uint32_t *members, size_t count, const fds_train_params *params) {
    FILE *file = create(folder, "order.json");
    uint32_t *order = malloc(count * sizeof *order);
    fds_error err = {0};
    fprintf(file, "{\"index\": ");
    write_numbers(file, index, count);
    fprintf(file, ", \"epochs\": [");
    for (uint32_t epoch = 0; epoch < params->epochs; epoch++) {
        check(fds_inputs_order(inputs, members, count, params->seed, epoch, order, &err), &err);
        fprintf(file, "%s", epoch ? ", " : "");
        write_numbers(file, order, count);
    }
    fprintf(file, "]}\n");
    fclose(file);
    free(order);
}

static void write_init(const char *folder, const fds_net *net, const float *weights) {
    char path[FDS__PATH_MAX];
    fds__tensor tensors[FDS__MAX_TENSORS];
    fds_error err = {0};
    for (size_t i = 0; i < fds_net_tensors(net); i++) {
        fds_tensor_info t = fds_net_tensor(net, i);
        tensors[i] = (fds__tensor){.name = t.name, .rank = t.rank, .values = weights + t.offset};
        memcpy(tensors[i].dims, t.dims, sizeof t.dims);
    }
    snprintf(path, sizeof path, "%s/init.safetensors", folder);
    check(fds__safetensors_write(path, tensors, fds_net_tensors(net), NULL, 0, NULL, &err), &err);
}

static void write_floats(const char *folder, const char *name, const float *values, size_t count) {
    FILE *file = create(folder, name);
    fwrite(values, sizeof *values, count, file);
    fclose(file);
}

static void write_kernel(const char *folder, const fds_net *net, const float *weights,
                         const fds_inputs *a, const fds_inputs *b) {
    size_t count = fds_inputs_count(a) * fds_inputs_count(b);
    float *kernel = malloc(count * sizeof *kernel);
    fds_error err = {0};
    check(fds__net_tangent(net, weights, a, b, 2, kernel, NULL, &err), &err);
    write_floats(folder, "kernel.f32", kernel, count);
    free(kernel);
}

int main(int argc, char **argv) {
    fds_error err = {0};
    if (argc != 5)
        return 2;
    const char *folder = argv[1], *network = argv[2];
    size_t count = strtoul(argv[3], NULL, 10);
    fds_train_params params = fds_train_params_default();
    params.seed = 5;
    if (strcmp(argv[4], "sgd") == 0) {
        params.optimizer = FDS_OPTIMIZER_SGD;
        params.lr = 0.01f;
        params.momentum = 0.9f;
        params.weight_decay = 1e-3f;
    }
    fds_dataset *train, *test;
    check(fds__data_open(folder, NULL, NULL, &train, &test, &err), &err);
    uint32_t *index = malloc(count * sizeof *index), *members = malloc(count * sizeof *members);
    check(fds_split_balanced(train, count, params.seed, index, &err), &err);
    for (size_t i = 0; i < count; i++)
        members[i] = (uint32_t)i;

    fds_model *model;
    check(fds_model_train(train, index, count, network, &params, NULL, &model, NULL, &err), &err);
    fds__model_info info = fds__model_get_info(model);
    char path[FDS__PATH_MAX];
    snprintf(path, sizeof path, "%s/trained.safetensors", folder);
    check(fds_model_save(model, path, &err), &err);

    fds_net *net;
    fds_lane *lane;
    fds_inputs *inputs, *test_inputs;
    size_t tests = fds__dataset_get_info(test).count;
    check(fds_net_create(network, info.shape, info.classes, &net, &err), &err);
    check(fds_lane_create(net, &lane, &err), &err);
    check(fds_inputs_create(train, index, count, info.mean, info.std, &inputs, &err), &err);
    check(fds_inputs_create(test, NULL, tests, info.mean, info.std, &test_inputs, &err), &err);
    float *weights = malloc(fds_net_weights(net) * sizeof *weights);
    float *out = malloc(tests * info.classes * sizeof *out);
    fds_net_init(net, params.seed, weights);
    write_init(folder, net, weights);
    write_order(folder, inputs, index, members, count, &params);
    if (strcmp(argv[4], "tangent") == 0)
        write_kernel(folder, net, weights, inputs, test_inputs);
    check(fds_lane_logits(lane, test_inputs, 0, tests, weights, out, &err), &err);
    write_floats(folder, "logits.f32", out, tests * info.classes);
    check(fds_model_predict(model, test, NULL, tests, 0, out, NULL, &err), &err);
    write_floats(folder, "probs.f32", out, tests * info.classes);

    free(out);
    free(weights);
    free(index);
    free(members);
    fds_inputs_free(inputs);
    fds_inputs_free(test_inputs);
    fds_lane_free(lane);
    fds_net_free(net);
    fds_model_free(model);
    fds_dataset_free(train);
    fds_dataset_free(test);
    return 0;
}
