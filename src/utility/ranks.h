/* SPDX-License-Identifier: Apache-2.0
 * What ranks.c and the plugin fds-mpi.so share: how messages go between the processes of a job. */
#ifndef FDS_RANKS_H
#define FDS_RANKS_H

#include <stdbool.h>
#include <stddef.h>

enum { FDS__TRANSPORT_VERSION = 1 };

/* Only the thread that opened it may call it (MPI_THREAD_FUNNELED). Errors end the job, as MPI does. */
typedef struct fds__transport {
    unsigned version;
    unsigned rank, ranks;
    /* Whether a whole message is there, and from whom. Neither this nor send waits for another rank;
     * those of one rank come in order. */
    bool (*probe)(unsigned *from, size_t *size);
    void (*receive)(unsigned from, void *data, size_t size);
    /* Of a copy; what is not sent yet goes on its way by probe, and by close if all is whole. */
    void (*send)(unsigned to, const void *data, size_t size);
    /* is_whole: every rank calls it. Else it ends the others and does not return: exit code code. */
    void (*close)(bool is_whole, int code);
} fds__transport;

/* The plugin's one function; NULL: MPI cannot be started. */
typedef const fds__transport *(*fds__transport_open)(void);
#define FDS__TRANSPORT_SYMBOL "fds_mpi_open"

#endif
