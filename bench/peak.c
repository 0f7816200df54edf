/* SPDX-License-Identifier: Apache-2.0
 *
 * What one core can do: single-precision matrix products by oneDNN and by OpenBLAS, the best of
 * several sizes and repetitions. bench/lane.py sets the environment that keeps both to one thread
 * and OpenBLAS to the kernels that fit the processor. */
#include "base/base.h"

#include <cblas.h>
#include <dnnl.h>
#include <stdlib.h>
#include <time.h>

/* Processor time: other processes on a busy machine do not count. */
static double process_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double best_gflops(int n, bool onednn, float *a, float *b, float *c) {
    double best = 1e30;
    for (int i = 0; i < 10; i++) {
        double start = process_s();
        if (onednn)
            dnnl_sgemm('N', 'N', n, n, n, 1, a, n, b, n, 0, c, n);
        else
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a, n, b, n, 0, c, n);
        best = MIN(best, process_s() - start);
    }
    return 2e-9 * n * n * n / best;
}

int main(void) {
    enum { MOST = 1536 };
    static const int sizes[] = {512, 768, 1024, MOST};
    float *m[3];
    double peak[2] = {0};
    for (int i = 0; i < 3; i++) {
        m[i] = malloc(sizeof(float) * MOST * MOST);
        for (int j = 0; j < MOST * MOST; j++)
            m[i][j] = 0.001f * (float)(j % 7);
    }
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 2; k++)
            peak[k] = MAX(peak[k], best_gflops(sizes[i], k, m[0], m[1], m[2]));
    printf("openblas_gflops=%.1f\nonednn_gflops=%.1f\n", peak[0], peak[1]);
    for (int i = 0; i < 3; i++)
        free(m[i]);
    return 0;
}
