/* SPDX-License-Identifier: Apache-2.0
 *
 * Rank 1 is frozen in the middle of a message: nothing that rank 0 does waits for it, and its messages
 * arrive whole and in order when it goes on. Run by test_mpi.py with two ranks; argument: fds-mpi.so. */
#include "utility/ranks.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LARGE = 64 << 20, SMALL = 16, SEND_S = 1 };

static const fds__transport *t;
static char *large;

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void check(bool is_right, const char *what) {
    if (is_right)
        return;
    fprintf(stderr, "rank %u: wrong: %s\n", t->rank, what);
    t->close(false, 1);
}

/* The next message within the time; its size, or 0. */
static size_t next(char *data, double seconds) {
    unsigned from;
    size_t size;
    for (double end = now_s() + seconds; now_s() < end; usleep(1000))
        if (t->probe(&from, &size)) {
            t->receive(from, data, size);
            return size;
        }
    return 0;
}

static void expect(size_t size, char fill) {
    check(next(large, 60) == size, "a size");
    for (size_t i = 0; i < size; i++)
        check(large[i] == fill, "a byte");
}

static void lead(void) {
    pid_t other;
    check(next(large, 60) == sizeof other, "the process of rank 1");
    memcpy(&other, large, sizeof other);
    usleep(500000); /* rank 1 has begun to send the large message, which needs this rank to go on */
    kill(other, SIGSTOP);
    double start_s = now_s();
    memset(large, 3, LARGE);
    t->send(1, large, LARGE);
    check(next(large, SEND_S) == 0, "a message of a frozen rank");
    check(now_s() - start_s < SEND_S + 5, "it waits for a frozen rank");
    kill(other, SIGCONT);
    expect(LARGE, 1);
    expect(SMALL, 2);
}

static void follow(void) {
    pid_t own = getpid();
    t->send(0, &own, sizeof own);
    memset(large, 1, LARGE);
    t->send(0, large, LARGE);
    memset(large, 2, LARGE); /* a message is a copy */
    t->send(0, large, SMALL);
    expect(LARGE, 3);
}

int main(int argc, char **argv) {
    void *module = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL,
         *symbol = module ? dlsym(module, FDS__TRANSPORT_SYMBOL) : NULL;
    fds__transport_open open;
    if (!symbol)
        return 1;
    memcpy(&open, &symbol, sizeof open);
    t = open();
    large = malloc(LARGE);
    if (!t || !large)
        return 1;
    t->rank == 0 ? lead() : follow();
    t->close(true, 0);
    free(large);
    return 0;
}
