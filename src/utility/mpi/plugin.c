/* SPDX-License-Identifier: Apache-2.0
 * fds-mpi.so: messages by MPI. A module of its own, so that nothing else needs Open MPI.
 *
 * Nothing here waits for another rank, which may be frozen in the middle of a message: messages are
 * sent from copies and received into buffers, and probe looks how far they are. */
#include "utility/ranks.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { TAG = 1 };

/* A message on its way. */
typedef struct parcel {
    MPI_Request request;
    unsigned from; /* of one that comes in */
    int size;
    struct parcel *next;
    char data[];
} parcel;

/* In the order in which they began: that of one rank's messages stays. */
static parcel *incoming, *outgoing;

/* Adds a parcel to the end of a list. */
static parcel *add(parcel **list, unsigned from, int size) {
    parcel *p = malloc(sizeof *p + (size_t)size);
    if (!p)
        MPI_Abort(MPI_COMM_WORLD, 1);
    *p = (parcel){.from = from, .size = size};
    while (*list)
        list = &(*list)->next;
    return *list = p;
}

static void take_out(parcel **at) {
    parcel *p = *at;
    *at = p->next;
    free(p);
}

/* One that has arrived may be asked again: its request is then MPI_REQUEST_NULL. */
static bool is_done(parcel *p) {
    int done = 0;
    MPI_Test(&p->request, &done, MPI_STATUS_IGNORE);
    return done;
}

static void accept_new(void) {
    for (;;) {
        int is_there = 0, size = 0;
        MPI_Message message;
        MPI_Status status;
        MPI_Improbe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &is_there, &message, &status);
        if (!is_there)
            return;
        MPI_Get_count(&status, MPI_BYTE, &size);
        parcel *p = add(&incoming, (unsigned)status.MPI_SOURCE, size);
        MPI_Imrecv(p->data, size, MPI_BYTE, &message, &p->request);
    }
}

/* The first parcel in the list that is whole and has none of the same rank before it. */
static parcel **find_whole(void) {
    for (parcel **at = &incoming; *at; at = &(*at)->next) {
        const parcel *before = incoming;
        while (before != *at && before->from != (*at)->from)
            before = before->next;
        if (before == *at && is_done(*at))
            return at;
    }
    return NULL;
}

static bool probe(unsigned *from, size_t *size) {
    for (parcel **at = &outgoing; *at;)
        if (is_done(*at))
            take_out(at);
        else
            at = &(*at)->next;
    accept_new();
    parcel **found = find_whole();
    if (!found)
        return false;
    *from = (*found)->from;
    *size = (size_t)(*found)->size;
    return true;
}

/* What probe has found: the first of this rank. */
static void receive(unsigned from, void *data, size_t size) {
    parcel **at = &incoming;
    while ((*at)->from != from)
        at = &(*at)->next;
    memcpy(data, (*at)->data, size);
    take_out(at);
}

static void send(unsigned to, const void *data, size_t size) {
    if (size > INT_MAX)
        MPI_Abort(MPI_COMM_WORLD, 1); /* records are at most 1 GiB */
    parcel *p = add(&outgoing, 0, (int)size);
    memcpy(p->data, data, size);
    MPI_Isend(p->data, p->size, MPI_BYTE, (int)to, TAG, MPI_COMM_WORLD, &p->request);
}

static void finish(bool is_whole, int code) {
    if (!is_whole)
        MPI_Abort(MPI_COMM_WORLD, code);
    while (outgoing) {
        MPI_Wait(&outgoing->request, MPI_STATUS_IGNORE);
        take_out(&outgoing);
    }
    while (incoming)
        take_out(&incoming);
    MPI_Finalize();
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
