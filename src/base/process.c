/* SPDX-License-Identifier: Apache-2.0
 * Runs another program, to fetch data. */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Why the child could not start the program. */
typedef struct {
    bool no_folder; /* else no program */
    int number;     /* errno */
} setback;

_Noreturn static void become(const char *const argv[], const char *cwd, int report) {
    int null = open("/dev/null", O_RDWR);
    if (null >= 0) {
        dup2(null, 0);
        dup2(null, 1);
        dup2(null, 2);
    }
    setback why = {.no_folder = chdir(cwd) != 0};
    if (!why.no_folder)
        execvp(argv[0], (char *const *)argv);
    why.number = errno;
    ssize_t written = write(report, &why, sizeof why);
    _exit(written == sizeof why ? 127 : 126);
}

/* Starts the program. The child reports a failure through a pipe that exec closes: an exit code
 * could be the program's own. */
static fds_status start(const char *const argv[], const char *cwd, pid_t *pid, fds_error *err) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return fds__fail_errno(err, "start", argv[0]);
    ends[1] = fds__fd_above_standard(ends[1]); /* the child replaces the standard three */
    *pid = ends[1] < 0 ? -1 : fork();
    if (*pid == 0)
        become(argv, cwd, ends[1]);
    int fork_errno = errno;
    close(ends[1]);
    setback why = {0};
    ssize_t got = 0;
    while (*pid > 0 && (got = read(ends[0], &why, sizeof why)) < 0 && errno == EINTR)
        ;
    close(ends[0]);
    if (*pid > 0 && got != sizeof why)
        return FDS_OK;
    if (*pid > 0)
        while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
            ;
    if (why.number == ENOENT && !why.no_folder)
        return fds__fail(err, FDS_ERR_NOT_FOUND, "the program %s is not installed", argv[0]);
    errno = *pid < 0 ? fork_errno : why.number;
    return why.no_folder ? fds__fail_errno(err, "enter folder", cwd)
                         : fds__fail_errno(err, "start the program", argv[0]);
}

fds_status fds__run_program(const char *const argv[], const char *cwd, fds_error *err) {
    pid_t pid = -1;
    assert(argv[0] && cwd);
    TRY(start(argv, cwd, &pid, err));
    int state;
    while (waitpid(pid, &state, 0) < 0)
        if (errno != EINTR)
            return fds__fail_errno(err, "wait for", argv[0]);
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0)
        return FDS_OK;
    if (WIFEXITED(state))
        return fds__fail(err, FDS_ERR_EXTERNAL, "%s ended with exit code %d", argv[0],
                         WEXITSTATUS(state));
    return fds__fail(err, FDS_ERR_EXTERNAL, "%s was ended by signal %d", argv[0], WTERMSIG(state));
}
