/* SPDX-License-Identifier: Apache-2.0
 *
 * The lane engine's own rate for what `fds value` asks of it, without table and without values:
 *
 *     bench-value DATA PLAYERS INPUTS COALITIONS THREADS
 *
 * trains LeNet-5 for 10 epochs on each of the coalitions that `fds value --sampler leverage` draws,
 * evaluates it on the inputs, and prints models_per_s. */
#include "game/game.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 64 };

typedef struct {
    fds_net *net;
    fds_inputs *samples, *inputs;
    fds_plan *plan;
    fds_train_params params;
    float *initial;
    fds_lane *lanes[MOST_THREADS];
    float *weights[MOST_THREADS], *probs[MOST_THREADS];
} bench;

static void check(fds_status status, const fds_error *err) {
    if (status == FDS_OK)
        return;
    fprintf(stderr, "bench-value: %s\n", err->text);
    exit(1);
}

static fds_status one_model(void *context, size_t job, unsigned worker, fds_error *err) {
    bench *b = context;
    uint32_t members[1 << 12];
    size_t count = 0;
    const uint64_t *coalition = fds_plan_coalition(b->plan, job);
    for (uint32_t i = 0; i < fds_plan_players(b->plan); i++)
        if (fds_coalition_has(coalition, i))
            members[count++] = i;
    memcpy(b->weights[worker], b->initial, fds_net_weights(b->net) * sizeof(float));
    TRY(fds_lane_train(b->lanes[worker], b->samples, members, count, &b->params, b->weights[worker],
                       NULL, NULL, err));
    return fds_lane_predict(b->lanes[worker], b->inputs, 0, fds_inputs_count(b->inputs),
                            b->weights[worker], b->probs[worker], err);
}

static fds_inputs *balanced(const fds_dataset *ds, size_t count, const float *mean,
                            const float *std) {
    fds_error err = {0};
    fds_inputs *inputs;
    uint32_t *index = malloc(count * sizeof *index);
    check(fds_split_balanced(ds, count, 0, index, &err), &err);
    check(fds_inputs_create(ds, index, count, mean, std, &inputs, &err), &err);
    free(index);
    return inputs;
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: bench-value DATA PLAYERS INPUTS COALITIONS THREADS\n");
        return 2;
    }
    size_t players = strtoul(argv[2], NULL, 10), inputs = strtoul(argv[3], NULL, 10);
    size_t coalitions = strtoul(argv[4], NULL, 10);
    unsigned threads = (unsigned)MIN(strtoul(argv[5], NULL, 10), (unsigned long)MOST_THREADS);
    if (players > 1 << 12 || threads < 1) {
        fprintf(stderr, "bench-value: at most 4096 players, at least one thread\n");
        return 2;
    }
    fds_error err = {0};
    fds_dataset *train, *test;
    bench b = {.params = fds_train_params_default()};
    check(fds__data_open(argv[1], NULL, NULL, &train, &test, &err), &err);
    if (!test)
        check(fds__fail(&err, FDS_ERR_USAGE, "%s has no test part", argv[1]), &err);
    fds__dataset_info info = fds__dataset_get_info(train);
    float mean[16] = {0}, std[16];
    for (size_t c = 0; c < 16; c++)
        std[c] = 0.3f; /* only the shapes matter for time */
    b.samples = balanced(train, players, mean, std);
    b.inputs = balanced(test, inputs, mean, std);
    check(fds_net_create("lenet5", info.shape, info.classes, &b.net, &err), &err);
    check(fds_plan_sample(FDS_SAMPLER_LEVERAGE, players, NULL, coalitions, 0, &b.plan, &err), &err);
    b.initial = malloc(fds_net_weights(b.net) * sizeof(float));
    fds_net_init(b.net, 0, b.initial);
    for (unsigned t = 0; t < threads; t++) {
        check(fds_lane_create(b.net, &b.lanes[t], &err), &err);
        b.weights[t] = malloc(fds_net_weights(b.net) * sizeof(float));
        b.probs[t] = malloc(inputs * info.classes * sizeof(float));
    }
    double start = fds__now_s();
    check(fds__pool_run(threads, fds_plan_rows(b.plan), one_model, &b, "", "", NULL, &err), &err);
    printf("models_per_s=%.3f\n", (double)fds_plan_rows(b.plan) / (fds__now_s() - start));
    for (unsigned t = 0; t < threads; t++) {
        fds_lane_free(b.lanes[t]);
        free(b.weights[t]);
        free(b.probs[t]);
    }
    fds_plan_free(b.plan);
    fds_net_free(b.net);
    fds_inputs_free(b.samples);
    fds_inputs_free(b.inputs);
    fds_dataset_free(train);
    fds_dataset_free(test);
    free(b.initial);
    return 0;
}
