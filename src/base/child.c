/* SPDX-License-Identifier: Apache-2.0
 *
 * Another program that answers over pipes: a child process in a group of its own.
 *
 * Every wait is in poll, for a short while at a time: between two of them fds__pool_check hears a
 * cancellation, and what the child writes to its standard error is taken, so that it never blocks
 * there. The pipes close on exec: a child sees the end of its input as soon as this process is gone,
 * however it ended.
 */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PIPE_BYTES = 1 << 18 };
enum { SLICE_MS = 50, RING = FDS__CHILD_LINES + 1 }; /* of a wait; places of lines */
static const double LAST_S = 0.5; /* that an ending child gets until its end is looked at */

/* ---- what it writes to its standard error ---- */

static void take_log(fds__child *c, const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        char *line = c->lines[c->line_count % RING];
        if (text[i] == '\n') {
            c->line_count++;
            c->line_used = 0;
            c->lines[c->line_count % RING][0] = 0;
        } else if (c->line_used + 1 < FDS__CHILD_LINE) {
            line[c->line_used++] = text[i];
            line[c->line_used] = 0;
        }
    }
}

/* Takes what is there; does not wait. */
static void drain_log(fds__child *c) {
    char text[4096];
    for (int turns = 0; c->log >= 0 && turns < 64; turns++) { /* a flood has no end */
        ssize_t got = read(c->log, text, sizeof text);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return; /* nothing more for now */
        if (got == 0) {
            close(c->log);
            c->log = -1;
            return;
        }
        take_log(c, text, (size_t)got);
    }
}

size_t fds__child_lines(const fds__child *c) {
    return MIN(c->line_count + (c->line_used > 0), (size_t)FDS__CHILD_LINES);
}

const char *fds__child_line(const fds__child *c, size_t i) {
    size_t all = c->line_count + (c->line_used > 0);
    return c->lines[(all - fds__child_lines(c) + i) % RING];
}

/* ---- starting ---- */

static void close_one(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Both ends above the standard files, whose numbers the child's ends get. */
static bool make_pipe(int ends[2]) {
    int low[2] = {-1, -1};
    errno = EIO; /* of a fault */
    if (fds__fault(FDS__FAULT_IO) || pipe2(low, O_CLOEXEC) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        ends[i] =
            low[i] > STDERR_FILENO ? low[i] : fcntl(low[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (ends[i] != low[i])
            close(low[i]);
    }
    return ends[0] >= 0 && ends[1] >= 0;
}

/* This process's environment, with one thread per child and hashes that do not vary. */
static char **make_environment(void) {
    static char *const own[] = {"OMP_NUM_THREADS=1", "PYTHONHASHSEED=0"};
    enum { OWN = sizeof own / sizeof *own };
    size_t count = 0, used = 0;
    while (environ[count])
        count++;
    char **list = fds__alloc_zero(count + OWN + 1, sizeof *list);
    for (size_t i = 0; list && i < count; i++) {
        bool is_ours = false;
        for (int k = 0; k < OWN; k++)
            is_ours |= strncmp(environ[i], own[k], strcspn(own[k], "=") + 1) == 0;
        if (!is_ours)
            list[used++] = environ[i];
    }
    for (int k = 0; list && k < OWN; k++)
        list[used++] = own[k];
    return list;
}

/* The child's own group, no blocked signals, and usual answers to those that end it. */
static int set_attributes(posix_spawnattr_t *attributes) {
    static const int usual[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD};
    sigset_t none, all;
    sigemptyset(&none);
    sigemptyset(&all);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        sigaddset(&all, usual[i]);
    int failed = posix_spawnattr_setflags(
        attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    failed = failed ? failed : posix_spawnattr_setpgroup(attributes, 0);
    failed = failed ? failed : posix_spawnattr_setsigmask(attributes, &none);
    return failed ? failed : posix_spawnattr_setsigdefault(attributes, &all);
}

static int spawn(const char *command, int in, int out, int log, char **environment, pid_t *pid) {
    const char *const argv[] = {"sh", "-c", command, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed)
        return failed;
    failed = posix_spawnattr_init(&attributes);
    if (!failed) {
        failed = set_attributes(&attributes);
        failed = failed ? failed : posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
        failed = failed ? failed : posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
        failed = failed ? failed : posix_spawn_file_actions_adddup2(&actions, log, STDERR_FILENO);
        failed = failed ? failed
                        : posix_spawn(pid, "/bin/sh", &actions, &attributes, (char *const *)argv,
                                      environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

fds_status fds__child_start(fds__child *c, const char *command, fds_error *err) {
    int in[2] = {-1, -1}, out[2] = {-1, -1}, log[2] = {-1, -1}, failed = 0;
    assert(c->pid == 0);
    c->line_count = c->line_used = 0;
    c->lines[0][0] = 0;
    OWNED char **environment = make_environment();
    if (!environment)
        return fds__fail_nomem(err, sizeof *environment);
    if (!make_pipe(in) || !make_pipe(out) || !make_pipe(log) ||
        fcntl(in[1], F_SETFL, O_NONBLOCK) != 0 || fcntl(out[0], F_SETFL, O_NONBLOCK) != 0 ||
        fcntl(log[0], F_SETFL, O_NONBLOCK) != 0)
        failed = errno;
    /* a large answer then takes few turns; where that is not allowed, more */
    (void)fcntl(in[1], F_SETPIPE_SZ, PIPE_BYTES);
    (void)fcntl(out[0], F_SETPIPE_SZ, PIPE_BYTES);
    if (!failed)
        failed = spawn(command, in[0], out[1], log[1], environment, &c->pid);
    close_one(&in[0]);
    close_one(&out[1]);
    close_one(&log[1]);
    c->to = in[1];
    c->from = out[0];
    c->log = log[0];
    if (!failed)
        return FDS_OK;
    c->pid = 0;
    fds__child_stop(c, 0);
    errno = failed;
    return fds__fail_errno(err, "start the program", command);
}

/* ---- its end ---- */

/* Whether it has ended; it stays a zombie, so that nobody else gets its number. */
static bool has_ended(const fds__child *c, siginfo_t *about) {
    about->si_pid = 0;
    return waitid(P_PID, (id_t)c->pid, about, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           about->si_pid != 0;
}

static void wait_a_little(void) { nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL); }

/* Says how it ended; what: what it did instead of that. */
static fds_status fail_ended(fds__child *c, const char *what, fds_error *err) {
    siginfo_t about;
    double until_s = fds__now_s() + LAST_S;
    while (!has_ended(c, &about) && fds__now_s() < until_s) {
        drain_log(c);
        wait_a_little();
    }
    drain_log(c);
    if (!has_ended(c, &about) || about.si_pid == 0)
        return fds__fail(err, FDS_ERR_EXTERNAL, "it %s", what);
    return about.si_code == CLD_EXITED
               ? fds__fail(err, FDS_ERR_EXTERNAL, "it ended with exit code %d", about.si_status)
               : fds__fail(err, FDS_ERR_EXTERNAL, "it was ended by signal %d", about.si_status);
}

void fds__child_hang_up(fds__child *c) { close_one(&c->to); }

void fds__child_stop(fds__child *c, double patience_s) {
    siginfo_t about;
    double until_s = fds__now_s() + patience_s;
    close_one(&c->to);
    if (c->pid > 0) {
        while (!has_ended(c, &about) && fds__now_s() < until_s) {
            drain_log(c);
            wait_a_little();
        }
        kill(-c->pid, SIGKILL); /* the whole group, before the number is free for others */
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
            ;
        c->pid = 0;
    }
    drain_log(c);
    close_one(&c->from);
    close_one(&c->log);
}

/* ---- reading and writing ---- */

/* Waits until fd is ready for events, or fails. */
static fds_status wait_for(fds__child *c, int fd, short events, double until_s, double limit_s,
                           fds_error *err) {
    for (;;) {
        struct pollfd both[] = {{.fd = fd, .events = events}, {.fd = c->log, .events = POLLIN}};
        int ready = poll(both, 2, SLICE_MS);
        if (ready < 0 && errno != EINTR)
            return fds__fail_errno(err, "wait for", "the program");
        if (ready > 0 && both[1].revents)
            drain_log(c);
        if (ready > 0 && both[0].revents)
            return FDS_OK;
        TRY(fds__pool_check(err));
        if (fds__now_s() > until_s)
            return fds__fail(err, FDS_ERR_EXTERNAL, "it did not answer within %.3g s", limit_s);
    }
}

/* write, but without SIGPIPE, whatever the host does with that signal. */
static ssize_t write_quietly(int fd, const void *data, size_t size) {
    sigset_t broken, before, pending;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &broken, &before);
    ssize_t done = write(fd, data, size);
    int reason = errno;
    if (done < 0 && reason == EPIPE && !sigismember(&pending, SIGPIPE))
        while (sigtimedwait(&broken, NULL, &(struct timespec){0}) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = reason;
    return done;
}

fds_status fds__child_write(fds__child *c, const void *data, size_t size, double limit_s,
                            fds_error *err) {
    const char *at = data;
    double until_s = fds__now_s() + limit_s;
    for (size_t used = 0; used < size;) {
        ssize_t done =
            fds__fault(FDS__FAULT_IO) ? -1 : write_quietly(c->to, at + used, size - used);
        if (done > 0)
            used += (size_t)done;
        else if (done < 0 && errno == EAGAIN)
            TRY(wait_for(c, c->to, POLLOUT, until_s, limit_s, err));
        else if (done == 0 || errno != EINTR)
            return fail_ended(c, "does not read its standard input", err);
    }
    return FDS_OK;
}

fds_status fds__child_read(fds__child *c, void *data, size_t size, double limit_s, fds_error *err) {
    char *at = data;
    double until_s = fds__now_s() + limit_s;
    for (size_t used = 0; used < size;) {
        ssize_t got = fds__fault(FDS__FAULT_IO) ? 0 : read(c->from, at + used, size - used);
        if (got > 0)
            used += (size_t)got;
        else if (got < 0 && errno == EAGAIN)
            TRY(wait_for(c, c->from, POLLIN, until_s, limit_s, err));
        else if (got == 0 || errno != EINTR)
            return fail_ended(c,
                              used ? "stopped in the middle of an answer"
                                   : "closed its standard output without an answer",
                              err);
    }
    return FDS_OK;
}
