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
 *   end      from 0  kind
 *   bye      to 0    kind
 *
 * A rank that is silent for long while no other row is left has its row computed by another; if it
 * answers later, the bytes must be the same. A rank that dies ends the job, as MPI has it: the same
 * command, given again, goes on.
 */
#include "utility/ranks.h"
#include "utility/table.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { HELLO = 1, ROW, RESULT, FAILURE, END, BYE };
enum { PAUSE_US = 20, LONG_PAUSE_US = 500, IDLE_PAUSE_US = 5000, IDLE_TURNS = 4000 };
static const double PATIENCE_S = 10, FAREWELL_S = 5;

/* Sleeps a little longer each time that nothing has happened: every rank has a row in advance, so
 * that nothing waits for that, and polling takes little of the processors. */
static void pause_after(unsigned idle) {
    usleep(idle > IDLE_TURNS ? IDLE_PAUSE_US : MIN(PAUSE_US * (idle + 1), (unsigned)LONG_PAUSE_US));
}

/* MPI has one job per process, so this is not in a context. */
static struct {
    const fds__transport *t;    /* NULL: not one of several ranks */
    const fds_utility *utility; /* of rank 0, while ranks compute for it */
    const fds_plan *plan;
    uint64_t description;
    size_t record_size;
    unsigned *threads, *given; /* (ranks) 0: has not said hello; rows on their way */
    bool *is_gone;             /* (ranks) has said bye */
    uint64_t *message;         /* (capacity words) the last one */
    size_t capacity;
} team;

/* ---- the job ---- */

unsigned fds_ranks_number(void) { return team.t ? team.t->rank : 0; }
unsigned fds_ranks_count(void) { return team.t ? team.t->ranks : 1; }

fds_status fds_ranks_begin(fds_error *err) {
    const char *path = getenv("FDS_MPI");
    if (team.t)
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
    TRY(NEW(team.threads, t->ranks, err));
    TRY(NEW(team.given, t->ranks, err));
    TRY(NEW(team.is_gone, t->ranks, err));
    team.t = t;
    return FDS_OK;
}

static void send_words(unsigned to, uint64_t *words, size_t count) {
    words[count - 1] = fds_checksum(words, (count - 1) * 8);
    team.t->send(to, words, count * 8);
}

/* The next message, if there is one: *count words without the checksum. */
static fds_status receive(unsigned *from, size_t *count, bool *is_there, fds_error *err) {
    size_t size;
    *is_there = team.t->probe(from, &size);
    if (!*is_there)
        return FDS_OK;
    void *message = team.message;
    TRY(fds__grow(&message, &team.capacity, size / 8 + 1, 8, err));
    team.message = message;
    team.t->receive(*from, team.message, size);
    *count = size / 8 - (size >= 16);
    if (size % 8 || size < 16 || team.message[*count] != fds_checksum(team.message, *count * 8))
        return fds__fail(err, FDS_ERR_CORRUPT, "a message of rank %u is damaged", *from);
    return FDS_OK;
}

/* Tells the other ranks to end, and waits a little for them; whether all have answered. */
static bool say_goodbye(void) {
    double start_s = fds__now_s();
    unsigned left = team.t->ranks - 1, from;
    uint64_t end[2] = {END};
    size_t count;
    bool is_there;
    for (unsigned i = 1; i < team.t->ranks; i++)
        send_words(i, end, 2);
    while (left && fds__now_s() - start_s < FAREWELL_S) {
        if (receive(&from, &count, &is_there, NULL) != FDS_OK || !is_there)
            usleep(PAUSE_US);
        else if (team.message[0] == BYE && !team.is_gone[from]) {
            team.is_gone[from] = true;
            left--;
        }
    }
    return !left;
}

void fds_ranks_end(int code) {
    if (!team.t)
        return;
    bool is_whole = team.t->rank != 0 ? code == 0 : code == 0 && say_goodbye();
    team.t->close(is_whole, code);
    fds__free(team.threads);
    fds__free(team.given);
    fds__free(team.is_gone);
    fds__free(team.message);
    memset(&team, 0, sizeof team);
}

/* What all ranks must have in common. */
static uint64_t describe(const fds_utility *utility, const fds_plan *plan, size_t record_size) {
    uint64_t parts[3] = {fds_checksum(utility->text, strlen(utility->text)),
                         fds_checksum(plan->bits, fds_plan_rows(plan) * plan->words * 8),
                         record_size};
    return fds_checksum(parts, sizeof parts);
}

fds_status fds__ranks_bind(const fds_utility *utility, const fds_plan *plan, fds_store store,
                           fds_error *err) {
    fds__layout layout;
    if (!team.t || !utility) {
        team.utility = NULL;
        return FDS_OK;
    }
    TRY(fds__layout_make(utility->players, utility->inputs, utility->classes, store, &layout, err));
    team.utility = utility;
    team.plan = plan;
    team.record_size = layout.record_size;
    team.description = describe(utility, plan, layout.record_size);
    return FDS_OK;
}

bool fds__ranks_serve_table(const fds_table *table, const fds_plan *plan) {
    if (!team.t || team.t->ranks < 2 || team.utility != table->utility ||
        table->layout.record_size != team.record_size)
        return false;
    size_t rows = fds_plan_rows(plan); /* a shorter plan of the same seed begins the longer one */
    return rows <= fds_plan_rows(team.plan) &&
           memcmp(plan->bits, team.plan->bits, rows * plan->words * 8) == 0;
}

/* ---- rank 0 ---- */

typedef enum { FREE, GIVEN, DONE } state;

typedef struct {
    const fds__ranks_work *work;
    uint32_t *order;  /* (count) tasks, in the order of dispatch */
    uint32_t *of_row; /* (rows) task + 1; 0: none */
    uint8_t *states;  /* (count) */
    double *given_s;  /* (count) when a rank got it */
    size_t next;      /* in order; all before it were given at least once */
    size_t again;     /* tasks that are free again */
    double longest_s; /* that an answer has taken */
    atomic_size_t done;
    atomic_bool has_failed;
    pthread_mutex_t lock; /* guards all but done and has_failed */
    const fds_events *events;
    double start_s, looked_s;
} leader;

/* A free task; count: there is none. The lock is held. */
static size_t take_locked(leader *l) {
    size_t count = l->work->count;
    while (l->next < count && l->states[l->order[l->next]] != FREE)
        l->next++;
    if (l->next < count)
        return l->order[l->next++];
    for (size_t i = 0; l->again && i < count; i++)
        if (l->states[i] == FREE) {
            l->again--;
            return i;
        }
    return count;
}

static size_t take_task(leader *l, double given_s) {
    pthread_mutex_lock(&l->lock);
    size_t i = take_locked(l);
    if (i < l->work->count) {
        l->states[i] = GIVEN;
        l->given_s[i] = given_s;
    }
    pthread_mutex_unlock(&l->lock);
    return i;
}

/* Keeps the record of a task, by the writer of a worker; or compares it with the one that is kept. */
static fds_status keep(leader *l, size_t i, unsigned worker, const uint8_t *record,
                       fds_error *err) {
    const fds__ranks_work *w = l->work;
    pthread_mutex_lock(&l->lock); /* until it is written, so that nobody compares before that */
    bool is_first = l->states[i] != DONE;
    fds_status status = is_first ? w->keep(w->context, i, worker, record, err)
                                 : w->compare(w->context, i, record, err);
    if (is_first && status == FDS_OK) {
        l->states[i] = DONE;
        atomic_fetch_add(&l->done, 1);
    }
    pthread_mutex_unlock(&l->lock);
    return status;
}

static fds_status compute_here(leader *l, unsigned worker, fds_error *err) {
    const fds__ranks_work *w = l->work;
    while (!atomic_load(&l->has_failed) && atomic_load(&l->done) < w->count) {
        const uint8_t *record;
        size_t i = take_task(l, 0); /* 0: it is here, and nobody else gets it */
        if (i == w->count) {
            TRY(fds__pool_check(err));
            usleep(LONG_PAUSE_US);
            continue;
        }
        TRY(w->compute(w->context, i, worker, &record, err));
        TRY(keep(l, i, worker, record, err));
    }
    return FDS_OK;
}

static fds_status hear_hello(unsigned from, size_t count, fds_error *err) {
    if (count < 4 || team.message[2] != team.description)
        return fds__fail(
            err, FDS_ERR_CONFLICT,
            "rank %u computes something else: its data, options or version differ from "
            "those of rank 0",
            from);
    team.threads[from] = (unsigned)MIN(MAX(team.message[1], (uint64_t)1), (uint64_t)1024);
    return FDS_OK;
}

static fds_status hear_result(leader *l, unsigned from, size_t count, fds_error *err) {
    const uint64_t *m = team.message;
    size_t record_words = team.record_size / 8, weights = count > 2 ? (size_t)m[2] : 0;
    uint64_t row = m[1];
    const uint8_t *record = (const uint8_t *)(m + 3);
    team.given[from] -= team.given[from] > 0;
    if (count != 3 + record_words + (weights + 1) / 2 || row >= fds_plan_rows(team.plan) ||
        fds__record_check(record, team.record_size) != FDS__FOUND_GOOD ||
        memcmp(record + 8, fds_plan_coalition(team.plan, (size_t)row), team.plan->words * 8) != 0)
        return fds__fail(err, FDS_ERR_CORRUPT, "the record of row %llu from rank %u is damaged",
                         (unsigned long long)row, from);
    size_t task = row < fds_plan_rows(l->work->plan) ? l->of_row[row] : 0;
    if (!task)
        return FDS_OK; /* of an earlier fill, in which another rank was faster */
    pthread_mutex_lock(&l->lock);
    if (l->given_s[task - 1] > 0)
        l->longest_s = MAX(l->longest_s, fds__now_s() - l->given_s[task - 1]);
    bool is_first = l->states[task - 1] != DONE;
    pthread_mutex_unlock(&l->lock);
    const fds__sink *sink = team.utility->data ? team.utility->data->sink : NULL;
    if (sink && weights && is_first)
        TRY(sink->take(sink->context, team.utility->workers, fds_plan_coalition(team.plan, row),
                       (const float *)(m + 3 + record_words), err));
    return keep(l, task - 1, l->work->workers, record, err);
}

static fds_status hear_failure(unsigned from, size_t count, fds_error *err) {
    char text[sizeof err->text];
    size_t size = MIN((count - 3) * 8, sizeof text - 1);
    memcpy(text, team.message + 3, size);
    text[size] = 0;
    return fds__fail(err, (fds_status)team.message[2], "rank %u: %s", from, text);
}

static fds_status hear(leader *l, bool *is_there, fds_error *err) {
    unsigned from;
    size_t count;
    TRY(receive(&from, &count, is_there, err));
    if (!*is_there)
        return FDS_OK;
    uint64_t kind = team.message[0];
    if (kind == HELLO)
        return hear_hello(from, count, err);
    if (kind == RESULT && count > 3)
        return hear_result(l, from, count, err);
    if (kind == FAILURE && count >= 3)
        return hear_failure(from, count, err);
    return fds__fail(err, FDS_ERR_CORRUPT, "rank %u sends what no rank sends", from);
}

/* Gives rows to ranks that have fewer than they need; one more than threads, so that none waits. */
static bool give(leader *l) {
    const fds__sink *sink = team.utility->data ? team.utility->data->sink : NULL;
    bool has_given = false;
    unsigned all = 0;
    for (unsigned r = 1; r < team.t->ranks; r++)
        all += team.threads[r];
    for (unsigned r = 1; r < team.t->ranks; r++) {
        bool is_end = l->work->count - MIN(l->next, l->work->count) <= all;
        while (team.given[r] < team.threads[r] + (team.threads[r] && !is_end)) {
            size_t i = take_task(l, fds__now_s());
            if (i == l->work->count)
                return has_given;
            uint64_t words[4] = {ROW, l->work->rows[i], sink != NULL};
            send_words(r, words, 4);
            team.given[r]++;
            has_given = true;
        }
    }
    return has_given;
}

/* Rows that a rank has had for too long are free again, but only when no other row is. */
static void look_for_frozen(leader *l) {
    double now_s = fds__now_s();
    const char *set = getenv("FDS_MPI_PATIENCE_S");
    if (now_s - l->looked_s < 0.1)
        return;
    l->looked_s = now_s;
    pthread_mutex_lock(&l->lock);
    double patience_s = MAX(set ? atof(set) : PATIENCE_S, 5 * l->longest_s);
    for (size_t i = 0; l->next >= l->work->count && !l->again && i < l->work->count; i++)
        if (l->states[i] == GIVEN && l->given_s[i] > 0 && now_s - l->given_s[i] > patience_s) {
            l->states[i] = FREE;
            l->again++;
        }
    pthread_mutex_unlock(&l->lock);
}

static fds_status lead(leader *l, fds_error *err) {
    unsigned idle = 0;
    while (!atomic_load(&l->has_failed) && atomic_load(&l->done) < l->work->count) {
        bool is_there = true, has_moved = false;
        while (is_there) {
            TRY(hear(l, &is_there, err));
            has_moved |= is_there;
        }
        has_moved |= give(l);
        look_for_frozen(l);
        TRY(fds__pool_check(err));
        idle = has_moved ? 0 : MIN(idle + 1, (unsigned)IDLE_TURNS);
        if (idle)
            pause_after(idle);
    }
    return FDS_OK;
}

/* The calling thread leads, the others compute. */
static fds_status take_part(void *context, size_t job, unsigned worker, fds_error *err) {
    leader *l = context;
    (void)job;
    fds_status status = worker == 0 ? lead(l, err) : compute_here(l, worker - 1, err);
    if (status != FDS_OK)
        atomic_store(&l->has_failed, true);
    return status;
}

static bool show_progress(void *user, const fds_progress *part) {
    const leader *l = user;
    fds_progress all = *part;
    all.done = atomic_load(&l->done);
    all.total = l->work->count;
    return l->events && l->events->progress ? l->events->progress(l->events->user, &all) : false;
}

/* A task in the order of dispatch. */
typedef struct {
    uint32_t segment, size, task;
} turn;

static int compare_turns(const void *a, const void *b) {
    const turn *x = a, *y = b;
    if (x->segment != y->segment)
        return x->segment < y->segment ? -1 : 1;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return x->task < y->task ? -1 : x->task > y->task;
}

/* The largest coalitions first, so that no rank has a large one left when the others are done; but
 * segment by segment, because a writer syncs the one that it leaves. */
static fds_status sort_tasks(leader *l, fds_error *err) {
    const fds__ranks_work *w = l->work;
    size_t players = fds_plan_players(w->plan);
    OWNED turn *turns = NULL;
    TRY(NEW(turns, w->count, err));
    for (size_t i = 0; i < w->count; i++)
        turns[i] =
            (turn){w->segments[i],
                   (uint32_t)fds_coalition_size(fds_plan_coalition(w->plan, w->rows[i]), players),
                   (uint32_t)i};
    qsort(turns, w->count, sizeof *turns, compare_turns);
    for (size_t i = 0; i < w->count; i++)
        l->order[i] = turns[i].task;
    return FDS_OK;
}

static fds_status prepare(leader *l, fds_error *err) {
    const fds__ranks_work *w = l->work;
    TRY(NEW(l->order, w->count, err));
    TRY(NEW(l->of_row, fds_plan_rows(w->plan), err));
    TRY(NEW(l->states, w->count, err));
    TRY(NEW(l->given_s, w->count, err));
    for (size_t i = 0; i < w->count; i++)
        l->of_row[w->rows[i]] = (uint32_t)i + 1;
    return sort_tasks(l, err);
}

fds_status fds__ranks_run(const fds__ranks_work *work, const fds_events *events, fds_error *err) {
    leader l = {
        .work = work, .lock = PTHREAD_MUTEX_INITIALIZER, .events = events, .start_s = fds__now_s()};
    const fds_events shown = {.progress = show_progress, .user = &l};
    fds_status status = prepare(&l, err);
    if (status == FDS_OK) /* a job for each thread, which lasts until all is done */
        status = fds__pool_run(work->workers + 1, work->workers + 1, take_part, &l, "utilities",
                               "sub-models", &shown, err);
    pthread_mutex_destroy(&l.lock);
    fds__free(l.order);
    fds__free(l.of_row);
    fds__free(l.states);
    fds__free(l.given_s);
    return status;
}

/* ---- the other ranks ---- */

typedef enum { EMPTY, WAITING, BUSY, READY } place_state;

/* A row on its way through this rank. */
typedef struct {
    place_state state;
    uint64_t row, sequence;
    bool has_weights;
    uint64_t *words; /* the answer, as it is sent */
    size_t count;
} place;

typedef struct {
    const fds_utility *utility;
    const fds_plan *plan;
    fds__layout layout;
    size_t weights; /* of a sub-model; 0: none */
    unsigned workers;
    place *places; /* (workers + 2) */
    place **mine;  /* (workers) where each is */
    float *probs;  /* (workers, values) */
    uint64_t sequence;
    bool is_over;
    pthread_mutex_t lock;
    pthread_cond_t changed;
} server;

static fds_status take_weights(void *context, unsigned worker, const uint64_t *coalition,
                               const float *weights, fds_error *err) {
    server *s = context;
    (void)coalition, (void)err;
    place *p = s->mine[worker];
    if (p->has_weights)
        memcpy(p->words + 3 + s->layout.record_size / 8, weights, s->weights * sizeof *weights);
    return FDS_OK;
}

static fds_status answer(server *s, unsigned worker, place *p, fds_error *err) {
    const uint64_t *coalition = fds_plan_coalition(s->plan, (size_t)p->row);
    float *probs = s->probs + worker * s->layout.values;
    size_t weights = p->has_weights ? s->weights : 0;
    TRY(fds_utility_eval(s->utility, worker, coalition, probs, err));
    p->words[0] = RESULT;
    p->words[1] = p->row;
    p->words[2] = weights;
    p->count = 3 + s->layout.record_size / 8 + (weights + 1) / 2 + 1;
    return fds__segment_put(&s->layout, coalition, probs, (uint8_t *)(p->words + 3), err);
}

/* The reason becomes the answer. */
static void answer_failure(place *p, fds_status status, const fds_error *why) {
    size_t length = strlen(why->text), words = length / 8 + 1;
    p->words[0] = FAILURE;
    p->words[1] = p->row;
    p->words[2] = (uint64_t)status;
    memset(p->words + 3, 0, words * 8);
    memcpy(p->words + 3, why->text, length);
    p->count = 3 + words + 1;
}

static fds_status serve_rows(server *s, unsigned worker, fds_error *err) {
    pthread_mutex_lock(&s->lock);
    while (!s->is_over) {
        place *next = NULL;
        for (unsigned i = 0; i < s->workers + 2; i++)
            if (s->places[i].state == WAITING && (!next || s->places[i].sequence < next->sequence))
                next = &s->places[i];
        if (!next) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        next->state = BUSY;
        s->mine[worker] = next;
        pthread_mutex_unlock(&s->lock);
        fds_error why = {0};
        fds_status status = answer(s, worker, next, &why);
        if (status != FDS_OK)
            answer_failure(next, status, &why);
        pthread_mutex_lock(&s->lock);
        next->state = READY;
    }
    pthread_mutex_unlock(&s->lock);
    return fds__pool_check(err);
}

static fds_status take_row(server *s, size_t count, fds_error *err) {
    if (count < 3 || team.message[1] >= fds_plan_rows(s->plan))
        return fds__fail(err, FDS_ERR_CORRUPT, "rank 0 asks for a row that there is not");
    place *free = NULL;
    pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < s->workers + 2; i++)
        if (s->places[i].state == EMPTY)
            free = &s->places[i];
    if (free) {
        free->state = WAITING;
        free->row = team.message[1];
        free->has_weights = team.message[2] && s->weights;
        free->sequence = s->sequence++;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return free ? FDS_OK : fds__fail(err, FDS_ERR_CORRUPT, "rank 0 asks for too many rows");
}

/* An answer that is ready; NULL: there is none. */
static place *find_ready(server *s) {
    place *found = NULL;
    pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < s->workers + 2; i++)
        if (s->places[i].state == READY)
            found = &s->places[i];
    pthread_mutex_unlock(&s->lock);
    return found;
}

static fds_status attend(server *s, fds_error *err) {
    unsigned from, idle = 0;
    uint64_t hello[5] = {HELLO, s->workers, describe(s->utility, s->plan, s->layout.record_size),
                         s->layout.record_size},
             bye[2] = {BYE};
    send_words(0, hello, 5);
    for (bool is_there; !s->is_over;) {
        size_t count;
        place *ready = find_ready(s);
        TRY(receive(&from, &count, &is_there, err));
        if (is_there && team.message[0] == ROW)
            TRY(take_row(s, count, err));
        if (is_there && team.message[0] == END) {
            send_words(0, bye, 2);
            return FDS_OK;
        }
        if (ready) {
            send_words(0, ready->words, ready->count);
            pthread_mutex_lock(&s->lock);
            ready->state = EMPTY;
            pthread_mutex_unlock(&s->lock);
        }
        TRY(fds__pool_check(err));
        idle = ready || is_there ? 0 : idle + 1;
        if (idle)
            pause_after(idle);
    }
    return FDS_OK;
}

static fds_status serve_part(void *context, size_t job, unsigned worker, fds_error *err) {
    server *s = context;
    (void)job;
    fds_status status = worker == 0 ? attend(s, err) : serve_rows(s, worker - 1, err);
    if (worker == 0) {
        pthread_mutex_lock(&s->lock);
        s->is_over = true;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
    }
    return status;
}

static fds_status make_places(server *s, fds_error *err) {
    const fds_net *net = s->utility->data ? fds__utility_network(s->utility) : NULL;
    s->weights = net ? net->weights : 0;
    size_t words = 3 + s->layout.record_size / 8 + (s->weights + 1) / 2 + 1;
    words = MAX(words, 4 + sizeof(fds_error) / 8 + 1);
    TRY(NEW(s->places, s->workers + 2, err));
    TRY(NEW(s->mine, s->workers, err));
    TRY(NEW(s->probs, s->workers * s->layout.values, err));
    for (unsigned i = 0; i < s->workers + 2; i++)
        TRY(NEW(s->places[i].words, words, err));
    return FDS_OK;
}

fds_status fds__ranks_serve(const fds_utility *utility, const fds_plan *plan, fds_store store,
                            const fds_events *events, fds_error *err) {
    server s = {.utility = utility,
                .plan = plan,
                .workers = MAX(utility->workers, 1u),
                .lock = PTHREAD_MUTEX_INITIALIZER,
                .changed = PTHREAD_COND_INITIALIZER};
    TRY(fds__layout_make(utility->players, utility->inputs, utility->classes, store, &s.layout,
                         err));
    const fds__sink sink = {take_weights, &s};
    const fds_events quiet = {.progress = events ? events->progress : NULL,
                              .user = events ? events->user : NULL};
    fds_status status = make_places(&s, err);
    if (s.weights)
        fds__utility_set_sink(utility, &sink);
    if (status == FDS_OK)
        status = fds__pool_run(s.workers + 1, s.workers + 1, serve_part, &s, "serve", "ranks",
                               &quiet, err);
    if (s.weights)
        fds__utility_set_sink(utility, NULL);
    for (unsigned i = 0; s.places && i < s.workers + 2; i++)
        fds__free(s.places[i].words);
    fds__free(s.places);
    fds__free(s.mine);
    fds__free(s.probs);
    pthread_mutex_destroy(&s.lock);
    pthread_cond_destroy(&s.changed);
    return status;
}
