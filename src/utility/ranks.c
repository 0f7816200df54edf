/* SPDX-License-Identifier: Apache-2.0
 *
 * One table filled by the processes of an MPI job.
 *
 * Rank 0 alone has the table and the bank. Every rank makes the same utility function and plan from
 * the same parameters, so a row's number says which coalition to compute. Rank 0 sends numbers of
 * rows, large coalitions first, and receives records with checksums, which it writes to the
 * slots that follow the plan: the bytes are those of one process. Its calling thread polls and
 * sleeps, because blocking calls of MPI spin; its other threads compute.
 *
 * A message is an array of words of 8 bytes, whose last is the checksum of the others:
 *
 *   hello    to 0    kind, threads, checksum of the description, size of a record
 *   row      from 0  kind, row, whether the weights are wanted
 *   result   to 0    kind, row, weights; the record; the weights, f32, up to a multiple of 8 bytes
 *   failure  to 0    kind, row, status; the text, up to a multiple of 8 bytes
 *   met      to 0    kind: a rank that works for itself is done
 *   end      from 0  kind
 *   bye      to 0    kind
 *
 * ranks.c has the job and its messages, ranks_lead.c what rank 0 does, ranks_serve.c what the others do.
 *
 * A rank that is silent for long while no other row is left has its row computed by another; if it
 * answers before all is computed, the bytes must be the same, unless answers have noise. No message is
 * waited for, not even the rest of one that has begun to arrive. A rank that dies ends the job, as MPI has it: the same
 * command, given again, goes on.
 */
#include "utility/ranks_inside.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

enum { PAUSE_US = 20, LONG_PAUSE_US = 500, IDLE_PAUSE_US = 5000 };
static const double FAREWELL_S = 5;

struct fds__team fds__team;

void fds__ranks_pause(unsigned idle) {
    usleep(idle > FDS__RANKS_IDLE ? IDLE_PAUSE_US
                                  : MIN(PAUSE_US * (idle + 1), (unsigned)LONG_PAUSE_US));
}

/* ---- the job ---- */

unsigned fds_ranks_number(void) { return fds__team.t ? fds__team.t->rank : 0; }
unsigned fds_ranks_count(void) { return fds__team.t ? fds__team.t->ranks : 1; }

fds_status fds_ranks_begin(fds_error *err) {
    const char *path = getenv("FDS_MPI");
    if (fds__team.t)
        return FDS_OK;
    void *module = dlopen(path && *path ? path : FDS_MODULES "/fds-mpi.so", RTLD_NOW | RTLD_GLOBAL);
    void *symbol = module ? dlsym(module, FDS__TRANSPORT_SYMBOL) : NULL;
    if (!symbol)
        return fds__fail(
            err, FDS_ERR_UNSUPPORTED,
            "cannot load the module for MPI (%.300s): it is built where libopenmpi-dev is "
            "installed; the variable FDS_MPI may name it",
            dlerror());
    fds__transport_open open;
    memcpy(&open, &symbol, sizeof open);
    const fds__transport *t = open();
    if (!t || t->version != FDS__TRANSPORT_VERSION)
        return fds__fail(err, FDS_ERR_UNSUPPORTED,
                         "MPI cannot be started, or its module is of another version");
    TRY(NEW(fds__team.threads, t->ranks, err));
    TRY(NEW(fds__team.given, t->ranks, err));
    TRY(NEW(fds__team.is_gone, t->ranks, err));
    fds__team.t = t;
    return FDS_OK;
}

void fds__ranks_send(unsigned to, uint64_t *words, size_t count) {
    words[count - 1] = fds_checksum(words, (count - 1) * 8);
    fds__team.t->send(to, words, count * 8);
}

fds_status fds__ranks_receive(unsigned *from, size_t *count, bool *is_there, fds_error *err) {
    size_t size;
    *is_there = fds__team.t->probe(from, &size);
    if (!*is_there)
        return FDS_OK;
    void *message = fds__team.message;
    TRY(fds__grow(&message, &fds__team.capacity, size / 8 + 1, 8, err));
    fds__team.message = message;
    fds__team.t->receive(*from, fds__team.message, size);
    *count = size / 8 - (size >= 16);
    if (size % 8 || size < 16 ||
        fds__team.message[*count] != fds_checksum(fds__team.message, *count * 8))
        return fds__fail(err, FDS_ERR_CORRUPT, "a message of rank %u is damaged", *from);
    return FDS_OK;
}

void fds__ranks_divide(void) { fds__team.is_divided = fds_ranks_count() > 1; }

/* Rank 0 hears of all others, and the others wait until rank 0 ends. */
fds_status fds__ranks_meet(const fds_events *events, fds_error *err) {
    unsigned from, met = 0, others = fds_ranks_count() - 1, idle = 0;
    uint64_t words[2] = {FDS__RANKS_MET}, bye[2] = {FDS__RANKS_BYE};
    const bool leads = fds_ranks_number() == 0;
    const double start_s = fds__now_s();
    size_t count;
    if (!leads)
        fds__ranks_send(0, words, 2);
    for (bool is_there; leads ? met < others : true;) {
        TRY(fds__ranks_receive(&from, &count, &is_there, err));
        if (is_there && !leads && fds__team.message[0] == FDS__RANKS_END) {
            fds__ranks_send(0, bye, 2);
            return FDS_OK;
        }
        met += is_there && fds__team.message[0] == FDS__RANKS_MET;
        TRY(fds__report(events, "other ranks", "ranks", met, others, start_s, err));
        idle = is_there ? 0 : MIN(idle + 1, (unsigned)FDS__RANKS_IDLE + 1);
        if (idle)
            fds__ranks_pause(idle);
    }
    return FDS_OK;
}

/* Tells the other ranks to end, and waits a little for them; whether all have answered. */
static bool say_goodbye(void) {
    double start_s = fds__now_s();
    unsigned left = fds__team.t->ranks - 1, from;
    uint64_t end[2] = {FDS__RANKS_END};
    size_t count;
    bool is_there;
    for (unsigned i = 1; i < fds__team.t->ranks; i++)
        fds__ranks_send(i, end, 2);
    while (left && fds__now_s() - start_s < FAREWELL_S) {
        if (fds__ranks_receive(&from, &count, &is_there, NULL) != FDS_OK || !is_there)
            usleep(PAUSE_US);
        else if (fds__team.message[0] == FDS__RANKS_BYE && !fds__team.is_gone[from]) {
            fds__team.is_gone[from] = true;
            left--;
        }
    }
    return !left;
}

void fds_ranks_end(int code) {
    if (!fds__team.t)
        return;
    bool is_whole = fds__team.t->rank != 0 ? code == 0 : code == 0 && say_goodbye();
    fds__team.t->close(is_whole, code);
    fds__free(fds__team.threads);
    fds__free(fds__team.given);
    fds__free(fds__team.is_gone);
    fds__free(fds__team.message);
    memset(&fds__team, 0, sizeof fds__team);
}

uint64_t fds__ranks_describe(const fds_utility *utility, const fds_plan *plan, size_t record_size) {
    uint64_t parts[3] = {fds_checksum(utility->text, strlen(utility->text)),
                         fds_checksum(plan->bits, fds_plan_rows(plan) * plan->words * 8),
                         record_size};
    return fds_checksum(parts, sizeof parts);
}

fds_status fds__ranks_bind(const fds_utility *utility, const fds_plan *plan, fds_store store,
                           fds_error *err) {
    fds__layout layout;
    if (!fds__team.t || !utility || fds__team.is_divided) {
        fds__team.utility = NULL;
        return FDS_OK;
    }
    TRY(fds__layout_make(utility->players, utility->inputs, utility->classes, store, &layout, err));
    fds__team.utility = utility;
    fds__team.plan = plan;
    fds__team.record_size = layout.record_size;
    fds__team.description = fds__ranks_describe(utility, plan, layout.record_size);
    return FDS_OK;
}

bool fds__ranks_serve_table(const fds_table *table, const fds_plan *plan) {
    if (!fds__team.t || fds__team.t->ranks < 2 || fds__team.utility != table->utility ||
        table->layout.record_size != fds__team.record_size)
        return false;
    size_t rows = fds_plan_rows(plan); /* a shorter plan of the same seed begins the longer one */
    return rows <= fds_plan_rows(fds__team.plan) &&
           memcmp(plan->bits, fds__team.plan->bits, rows * plan->words * 8) == 0;
}
