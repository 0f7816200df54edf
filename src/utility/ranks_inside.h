/* SPDX-License-Identifier: Apache-2.0
 * What ranks.c, ranks_lead.c and ranks_serve.c share: the job and its messages. */
#ifndef FDS_RANKS_INSIDE_H
#define FDS_RANKS_INSIDE_H

#include "utility/ranks.h"
#include "utility/table.h"

/* Kinds of messages, the first word of each: ranks.c. */
enum {
    FDS__RANKS_HELLO = 1,
    FDS__RANKS_ROW,
    FDS__RANKS_RESULT,
    FDS__RANKS_FAILURE,
    FDS__RANKS_MET,
    FDS__RANKS_END,
    FDS__RANKS_BYE
};

/* MPI has one job per process, so this is not in a context. */
struct fds__team {
    const fds__transport *t;    /* NULL: not one of several ranks */
    const fds_utility *utility; /* of rank 0, while ranks compute for it */
    const fds_plan *plan;
    uint64_t description;
    size_t record_size;
    unsigned *threads, *given; /* (ranks) 0: has not said hello; rows on their way */
    bool *is_gone;             /* (ranks) has said bye */
    bool is_divided;           /* each rank works for itself */
    uint64_t *message;         /* (capacity words) the last one */
    size_t capacity;
};
extern struct fds__team fds__team;

/* Sends count words, the last of which receives the checksum. */
void fds__ranks_send(unsigned to, uint64_t *words, size_t count);
/* The next message, if there is one: *count words without the checksum, in fds__team.message. */
fds_status fds__ranks_receive(unsigned *from, size_t *count, bool *is_there, fds_error *err);
/* What all ranks must have in common. */
uint64_t fds__ranks_describe(const fds_utility *utility, const fds_plan *plan, size_t record_size);
enum { FDS__RANKS_IDLE = 4000 }; /* turns without an event until it counts as idle */
/* Sleeps a little longer each time that nothing has happened: every rank has a row in advance, so
 * that nothing waits for that, and polling takes little of the processors. */
void fds__ranks_pause(unsigned idle);

#endif
