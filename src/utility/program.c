/* SPDX-License-Identifier: Apache-2.0
 *
 * A program of the user's and its worker processes, which answer for coalitions (docs/external.md).
 *
 * Worker number w has a process of its own, started when it is first asked. A process that ends, is
 * silent for too long, or sends something wrong is killed with its group, and a new one is asked, up
 * to two times. The first answer may take an hour; after that no answer may take longer than 60 s or
 * 20 times the median of the last answers, whichever is more. FDS_COMMAND_FIRST_S and
 * FDS_COMMAND_LEAST_S in the environment are other numbers of seconds for the hour and the 60 s.
 */
#include "utility/external.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { RETRIES = 2, TIMES = 101, MEDIANS = 20 };
static const double FIRST_S = 3600, LEAST_S = 60;
static const double GOODBYE_S = 0.3; /* that a process gets to end by itself */

typedef struct {
    fds__child child;
    uint64_t asked; /* the number of its last question */
} process;

struct fds__program {
    const char *command;
    char *line; /* what the shell gets */
    fds__hello hello;
    char name[FDS__PROGRAM_NAME], fingerprint[FDS__PROGRAM_NAME];
    unsigned workers;
    process *processes; /* (workers) */
    double first_s, least_s;
    pthread_mutex_t lock; /* guards what follows */
    double times[TIMES];  /* of the last answers, in a ring */
    size_t answers;
    fds__child failed; /* the lines of a process that failed; none run */
};

const char *fds__program_name(const fds__program *p) { return p->name; }
const char *fds__program_fingerprint(const fds__program *p) { return p->fingerprint; }

/* ---- how long an answer may take ---- */

static double seconds_from(const char *variable, double usual) {
    const char *text = getenv(variable);
    double value = text ? fds__read_double(text, NULL) : 0;
    return value > 0 && isfinite(value) ? value : usual;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double answer_limit(fds__program *p) {
    double sorted[TIMES];
    pthread_mutex_lock(&p->lock);
    size_t count = MIN(p->answers, (size_t)TIMES);
    memcpy(sorted, p->times, sizeof sorted);
    pthread_mutex_unlock(&p->lock);
    if (!count)
        return p->first_s;
    qsort(sorted, count, sizeof *sorted, by_size);
    return MAX(p->least_s, MEDIANS * sorted[count / 2]);
}

static void note_answer(fds__program *p, double seconds) {
    pthread_mutex_lock(&p->lock);
    p->times[p->answers++ % TIMES] = seconds;
    pthread_mutex_unlock(&p->lock);
}

/* ---- one process ---- */

/* The next message; the caller fds__frees *data. */
static fds_status receive(const fds__program *p, process *one, double limit_s, uint8_t **data,
                          size_t *size, fds_error *err) {
    uint8_t head[8];
    double start_s = fds__now_s();
    TRY(fds__child_read(&one->child, head, sizeof head, limit_s, err));
    TRY(fds__message_length(head, p->hello.inputs * p->hello.classes, size, err));
    TRY(NEW(*data, *size, err));
    fds_status status = fds__child_read(&one->child, *data, *size,
                                        MAX(limit_s - (fds__now_s() - start_s), 0.0), err);
    if (status != FDS_OK)
        fds__free(*data);
    return status;
}

/* Whoever is asked must be the program that was asked before. */
static fds_status hear_ready(fds__program *p, process *one, fds_error *err) {
    char name[FDS__PROGRAM_NAME], fingerprint[FDS__PROGRAM_NAME];
    uint8_t *data;
    size_t size;
    TRY(receive(p, one, p->first_s, &data, &size, err));
    TRY(fds__message_ready(data, size, name, fingerprint, err));
    if (!p->name[0]) {
        strcpy(p->name, name);
        strcpy(p->fingerprint, fingerprint);
    }
    if (strcmp(name, p->name) != 0 || strcmp(fingerprint, p->fingerprint) != 0)
        return fds__fail(err, FDS_ERR_EXTERNAL,
                         "it is %s, fingerprint %s, but its first process was %s, fingerprint %s: "
                         "was the program changed?",
                         name, fingerprint, p->name, p->fingerprint);
    return FDS_OK;
}

static fds_status begin(fds__program *p, process *one, fds_error *err) {
    OWNED uint8_t *frame = NULL;
    size_t size;
    TRY(fds__message_hello(&p->hello, &frame, &size, err));
    TRY(fds__child_start(&one->child, p->line, err));
    one->asked = 0;
    TRY(fds__child_write(&one->child, frame, size, p->first_s, err));
    return hear_ready(p, one, err);
}

static fds_status ask_once(fds__program *p, process *one, const uint32_t *samples, size_t count,
                           const bool *has_class, float *probs, bool *is_fatal, fds_error *err) {
    OWNED uint8_t *frame = NULL;
    uint8_t *data;
    size_t size;
    if (!one->child.pid)
        TRY(begin(p, one, err));
    const fds__answer_form form = {++one->asked, p->hello.inputs, p->hello.classes, has_class,
                                   p->hello.is_regression};
    double limit_s = answer_limit(p), start_s = fds__now_s();
    TRY(fds__message_eval(form.id, p->hello.seed, samples, count, &frame, &size, err));
    TRY(fds__child_write(&one->child, frame, size, limit_s, err));
    TRY(receive(p, one, limit_s, &data, &size, err));
    TRY(fds__message_answer(data, size, &form, probs, is_fatal, err));
    note_answer(p, fds__now_s() - start_s);
    return FDS_OK;
}

/* ---- failures ---- */

/* Ends a process at once, and keeps its last lines. */
static void drop(fds__program *p, process *one) {
    fds__child_stop(&one->child, 0);
    pthread_mutex_lock(&p->lock);
    p->failed = one->child;
    pthread_mutex_unlock(&p->lock);
}

/* The error of the last attempt, with the last line of its standard error: often the reason. */
static fds_status give_up(fds__program *p, unsigned attempts, const fds_error *why,
                          fds_error *err) {
    char line[FDS__CHILD_LINE] = "";
    pthread_mutex_lock(&p->lock);
    size_t lines = fds__child_lines(&p->failed);
    if (lines)
        strcpy(line, fds__child_line(&p->failed, lines - 1));
    pthread_mutex_unlock(&p->lock);
    return fds__fail(err, why->status, "the program %.100s failed%s: %.250s%s%.120s", p->command,
                     attempts > 1 ? " three times" : "", why->text,
                     *line ? "; its standard error ends with: " : "", line);
}

void fds__program_log(fds__program *p, const fds_events *events) {
    pthread_mutex_lock(&p->lock);
    const fds__child failed = p->failed;
    p->failed = (fds__child){.to = -1, .from = -1, .log = -1};
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < fds__child_lines(&failed); i++)
        fds__log(events, FDS_LOG_WARNING, "the program's standard error: %s",
                 fds__child_line(&failed, i));
}

fds_status fds__program_ask(fds__program *p, unsigned worker, const uint32_t *samples, size_t count,
                            const bool *has_class, float *probs, fds_error *err) {
    process *one = &p->processes[worker];
    fds_error why = {0};
    assert(worker < p->workers);
    for (unsigned attempt = 1;; attempt++) {
        bool is_fatal = false;
        why.status = ask_once(p, one, samples, count, has_class, probs, &is_fatal, &why);
        if (why.status == FDS_OK)
            return FDS_OK;
        drop(p, one);
        if (why.status != FDS_ERR_EXTERNAL) /* cancelled, out of memory, no more processes */
            return fds__fail(err, why.status, "%s", why.text);
        if (is_fatal || attempt > RETRIES)
            return give_up(p, is_fatal ? 1 : attempt, &why, err);
    }
}

/* ---- opening and closing ---- */

/* Whether the command line is one program with its arguments: then it replaces the shell, and its end
 * and its files are the program's own. */
static bool is_simple(const char *command) {
    const char *start = command + strspn(command, " \t");
    size_t word = strcspn(start, " \t");
    return !strpbrk(command, ";&|(){}`\n") && !memchr(start, '=', word) &&
           !(word == 4 && memcmp(start, "exec", 4) == 0);
}

static fds_status make_line(fds__program *p, fds_error *err) {
    size_t size = strlen(p->command) + sizeof "exec ";
    TRY(NEW(p->line, size, err));
    snprintf(p->line, size, "%s%s", is_simple(p->command) ? "exec " : "", p->command);
    return FDS_OK;
}

/* In a loop of one job, so that it can be cancelled. */
static fds_status start_first(void *context, size_t job, unsigned worker, fds_error *err) {
    fds__program *p = context;
    fds_error why = {0};
    (void)job, (void)worker;
    why.status = begin(p, &p->processes[0], &why);
    if (why.status == FDS_OK)
        return FDS_OK;
    drop(p, &p->processes[0]);
    return why.status == FDS_ERR_EXTERNAL ? give_up(p, 1, &why, err)
                                          : fds__fail(err, why.status, "%s", why.text);
}

fds_status fds__program_open(const char *command, const fds__hello *hello, unsigned workers,
                             const fds_events *events, fds__program **out, fds_error *err) {
    fds__program *p;
    TRY(NEW(p, 1, err));
    *p = (fds__program){.command = command,
                        .hello = *hello,
                        .workers = workers,
                        .first_s = seconds_from("FDS_COMMAND_FIRST_S", FIRST_S),
                        .least_s = seconds_from("FDS_COMMAND_LEAST_S", LEAST_S),
                        .failed = {.to = -1, .from = -1, .log = -1},
                        .lock = PTHREAD_MUTEX_INITIALIZER};
    fds_status status = make_line(p, err);
    if (status == FDS_OK)
        status = NEW(p->processes, workers, err);
    for (unsigned w = 0; status == FDS_OK && w < workers; w++)
        p->processes[w].child = p->failed;
    if (status == FDS_OK)
        status = fds__pool_run(1, 1, start_first, p, "program", "starts", events, err);
    if (status == FDS_OK) {
        *out = p;
        return FDS_OK;
    }
    fds__program_log(p, events);
    fds__program_close(p);
    return status;
}

void fds__program_close(fds__program *p) {
    if (!p)
        return;
    /* all hear the end of their input first, so that they end side by side */
    for (unsigned w = 0; p->processes && w < p->workers; w++)
        fds__child_hang_up(&p->processes[w].child);
    double until_s = fds__now_s() + GOODBYE_S;
    for (unsigned w = 0; p->processes && w < p->workers; w++)
        fds__child_stop(&p->processes[w].child, MAX(until_s - fds__now_s(), 0.0));
    pthread_mutex_destroy(&p->lock);
    fds__free(p->processes);
    fds__free(p->line);
    fds__free(p);
}
