/* SPDX-License-Identifier: Apache-2.0
 * The other ranks of an MPI job: rows come in, records go out. */
#include "utility/ranks_inside.h"

#include <pthread.h>

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
    p->words[0] = FDS__RANKS_RESULT;
    p->words[1] = p->row;
    p->words[2] = weights;
    p->count = 3 + s->layout.record_size / 8 + (weights + 1) / 2 + 1;
    return fds__segment_put(&s->layout, coalition, probs, (uint8_t *)(p->words + 3), err);
}

/* The reason becomes the answer. */
static void answer_failure(place *p, fds_status status, const fds_error *why) {
    size_t length = strlen(why->text), words = length / 8 + 1;
    p->words[0] = FDS__RANKS_FAILURE;
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
    if (count < 3 || fds__team.message[1] >= fds_plan_rows(s->plan))
        return fds__fail(err, FDS_ERR_CORRUPT, "rank 0 asks for a row that there is not");
    place *free = NULL;
    pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < s->workers + 2; i++)
        if (s->places[i].state == EMPTY)
            free = &s->places[i];
    if (free) {
        free->state = WAITING;
        free->row = fds__team.message[1];
        free->has_weights = fds__team.message[2] && s->weights;
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
    uint64_t hello[5] = {FDS__RANKS_HELLO, s->workers,
                         fds__ranks_describe(s->utility, s->plan, s->layout.record_size),
                         s->layout.record_size};
    fds__ranks_send(0, hello, 5);
    for (bool is_there; !s->is_over;) {
        size_t count;
        place *ready = find_ready(s);
        TRY(fds__ranks_receive(&from, &count, &is_there, err));
        if (is_there && fds__team.message[0] == FDS__RANKS_ROW)
            TRY(take_row(s, count, err));
        if (is_there && fds__team.message[0] == FDS__RANKS_END)
            return FDS_OK;
        if (ready) {
            fds__ranks_send(0, ready->words, ready->count);
            pthread_mutex_lock(&s->lock);
            ready->state = EMPTY;
            pthread_mutex_unlock(&s->lock);
        }
        TRY(fds__pool_check(err));
        idle = ready || is_there ? 0 : idle + 1;
        if (idle)
            fds__ranks_pause(idle);
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
    uint64_t bye[2] = {FDS__RANKS_BYE};
    fds_status status = make_places(&s, err);
    if (s.weights)
        fds__utility_set_sink(utility, &sink);
    if (status == FDS_OK)
        status = fds__pool_run(s.workers + 1, s.workers + 1, serve_part, &s, "serve", "ranks",
                               &quiet, err);
    if (status == FDS_OK) /* not before: rank 0 would wait for rows that nobody wants */
        fds__ranks_send(0, bye, 2);
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
