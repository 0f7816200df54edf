/* SPDX-License-Identifier: Apache-2.0
 * The deep engine within another's process: environment variables that oneDNN and OpenMP read,
 * each in a process of its own, since they are read once. */
#include "../base/scratch.h"
#include "deep/deep.h"

#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_THREAD__ /* the engine has one thread there */
enum { HAS_ONE_THREAD = 1 };
#else
enum { HAS_ONE_THREAD = 0 };
#endif

static const fds__deep_params cnn_params = {
    .network = "cnn", .input = {1, 9, 7}, .outputs = 6, .batch = 4, .threads = 2, .seed = 5};

/* A network, a training step and an answer. */
static fds_status work(fds__precision precision, unsigned threads, fds_error *err) {
    fds__deep_params params = cnn_params;
    params.precision = precision;
    params.threads = threads;
    const fds__adam adam = {.lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f};
    float x[4 * 63] = {1}, y[4 * 6];
    fds__deep *net = NULL;
    fds__deep_infer *infer = NULL;
    fds_status status = fds__deep_create(&params, &net, err);
    if (status == FDS_OK)
        status = fds__deep_forward(net, x, NULL, y, err);
    if (status == FDS_OK)
        status = fds__deep_backward(net, y, err);
    if (status == FDS_OK)
        status = fds__deep_step(net, &adam, err);
    if (status == FDS_OK)
        status = fds__deep_infer_create(net, 1, &infer, err);
    if (status == FDS_OK)
        status = fds__deep_infer_run(infer, x, 4, y, err);
    fds__deep_infer_free(infer);
    fds__deep_free(net);
    return status;
}

/* ---- in processes of their own: what they print is compared ---- */

static int use_bf16(void) {
    fds_error err = {0};
    if (fds__deep_bf16_check(&err) == FDS_OK && work(FDS__PRECISION_BF16, 2, &err) == FDS_OK)
        return puts("works"), 0;
    return puts(err.text), 0;
}

static int use_threads(void) {
    for (unsigned threads = 2; threads > 0; threads--) {
        fds_error err = {0};
        fds_status status = fds__deep_check(&cnn_params, NULL, &err);
        fds_status later = work(FDS__PRECISION_F32, threads, &err);
        printf("%u: %d %d %s\n", threads, status == FDS_ERR_LIMIT, later == FDS_ERR_LIMIT,
               later == FDS_OK ? "works" : err.text);
    }
    return 0;
}

static int use_within_a_region(void) {
    fds_error err = {0};
    fds_status status = FDS_OK;
    omp_set_num_threads(2);
#pragma omp parallel
#pragma omp single
    status = work(FDS__PRECISION_F32, 2, &err);
    return puts(status == FDS_OK ? "works" : err.text), 0;
}

static int use_after_fork(void) {
    fds_error err = {0};
    if (work(FDS__PRECISION_F32, 2, &err) != FDS_OK)
        return puts(err.text), 1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        fds_status status = work(FDS__PRECISION_F32, 2, &err);
        printf("%d %s\n", status == FDS_ERR_UNSUPPORTED, err.text);
        status = work(FDS__PRECISION_F32, 1, &err);
        return puts(status == FDS_OK ? "one thread works" : err.text), 0;
    }
    waitpid(child, NULL, 0);
    return puts(work(FDS__PRECISION_F32, 2, &err) == FDS_OK ? "the parent goes on" : err.text), 0;
}

static const struct {
    const char *name;
    int (*run)(void);
} children[] = {{"bf16", use_bf16},
                {"threads", use_threads},
                {"region", use_within_a_region},
                {"fork", use_after_fork}};

/* What this program prints as the child of that name, after at most 20 seconds. */
static const char *run_child(const char *setting, const char *name) {
    static char out[4096];
    char command[256];
    snprintf(command, sizeof command, "%s timeout 20 /proc/%d/exe %s 2>&1; echo exit $?", setting,
             (int)getpid(), name);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    out[fread(out, 1, sizeof out - 1, pipe)] = 0;
    assert_int_equal(pclose(pipe), 0);
    return out;
}

/* ---- tests ---- */

static void bf16_works_or_is_refused(void **state) {
    (void)state;
    const char *out = run_child("", "bf16");
    expect_in(out, "exit 0");
    assert_true(strstr(out, "works") || strstr(out, "no bf16 instructions"));
    out = run_child("DNNL_MAX_CPU_ISA=AVX512_CORE_AMX", "bf16");
    expect_in(out, "exit 0");
    assert_true(strstr(out, "works") || strstr(out, "no bf16 instructions") ||
                strstr(out, "DNNL_MAX_CPU_ISA=AVX512_CORE_BF16"));
    expect_in(run_child("DNNL_MAX_CPU_ISA=AVX2", "bf16"), "(AVX2) has no bf16 instructions");
}

static void fewer_threads_than_asked_for_are_refused(void **state) {
    (void)state;
    if (HAS_ONE_THREAD)
        return;
    assert_string_equal(run_child("", "threads"), "2: 0 0 works\n1: 0 0 works\nexit 0\n");
    assert_string_equal(run_child("OMP_DYNAMIC=true", "threads"),
                        "2: 0 0 works\n1: 0 0 works\nexit 0\n");
    assert_string_equal(run_child("OMP_THREAD_LIMIT=1", "threads"),
                        "2: 1 1 OpenMP grants 1 of 2 threads (see OMP_THREAD_LIMIT): set threads "
                        "to 1, or lift that limit\n1: 1 0 works\nexit 0\n");
    expect_in(run_child("", "region"), "1 of 2 threads (called from within a parallel region)");
}

static void a_forked_child_is_refused_a_team(void **state) {
    (void)state;
    if (HAS_ONE_THREAD)
        return;
    assert_string_equal(run_child("", "fork"),
                        "1 this process was forked after fds had started threads: set threads to 1 "
                        "here, or fork before the first call of fds\none thread works\n"
                        "the parent goes on\nexit 0\n");
}

int main(int argc, char **argv) {
    for (size_t i = 0; argc == 2 && i < COUNT(children); i++)
        if (strcmp(argv[1], children[i].name) == 0)
            return children[i].run();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bf16_works_or_is_refused),
        cmocka_unit_test(fewer_threads_than_asked_for_are_refused),
        cmocka_unit_test(a_forked_child_is_refused_a_team),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
