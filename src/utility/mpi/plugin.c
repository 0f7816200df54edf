/* SPDX-License-Identifier: Apache-2.0
 * fds-mpi.so: messages by MPI. A module of its own, so that nothing else needs Open MPI. */
#include "utility/ranks.h"

#include <limits.h>
#include <mpi.h>

enum { TAG = 1 };

static bool probe(unsigned *from, size_t *size) {
    int is_there = 0, count = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &is_there, &status);
    if (!is_there)
        return false;
    MPI_Get_count(&status, MPI_BYTE, &count);
    *from = (unsigned)status.MPI_SOURCE;
    *size = (size_t)count;
    return true;
}

static void receive(unsigned from, void *data, size_t size) {
    MPI_Recv(data, (int)size, MPI_BYTE, (int)from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send(unsigned to, const void *data, size_t size) {
    if (size > INT_MAX)
        MPI_Abort(MPI_COMM_WORLD, 1); /* records are at most 1 GiB */
    MPI_Send(data, (int)size, MPI_BYTE, (int)to, TAG, MPI_COMM_WORLD);
}

static void finish(bool is_whole, int code) {
    if (is_whole)
        MPI_Finalize();
    else
        MPI_Abort(MPI_COMM_WORLD, code);
}

__attribute__((visibility("default"))) const fds__transport *fds_mpi_open(void);
const fds__transport *fds_mpi_open(void) {
    static fds__transport t = {.version = FDS__TRANSPORT_VERSION,
                               .probe = probe,
                               .receive = receive,
                               .send = send,
                               .close = finish};
    int provided = 0, rank = 0, ranks = 1;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS ||
        provided < MPI_THREAD_FUNNELED)
        return NULL;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    t.rank = (unsigned)rank;
    t.ranks = (unsigned)ranks;
    return &t;
}
