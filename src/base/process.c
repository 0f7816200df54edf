/* SPDX-License-Identifier: Apache-2.0
 * Runs another program, to fetch data. */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

/* Starts the program in folder cwd, with /dev/null for the three standard files. */
static fds_status start(const char *const argv[], const char *cwd, pid_t *pid, fds_error *err) {
    if (access(cwd, X_OK) != 0)
        return fds__fail_errno(err, "enter folder", cwd);
    posix_spawn_file_actions_t actions;
    int failed = posix_spawn_file_actions_init(&actions);
    if (!failed) {
        for (int fd = 0; fd < 3 && !failed; fd++)
            failed = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
        if (!failed)
            failed = posix_spawn_file_actions_addchdir_np(&actions, cwd);
        if (!failed)
            failed = posix_spawnp(pid, argv[0], &actions, NULL, (char *const *)argv, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    if (failed == ENOENT)
        return fds__fail(err, FDS_ERR_NOT_FOUND, "the program %s is not installed", argv[0]);
    errno = failed;
    return failed ? fds__fail_errno(err, "start the program", argv[0]) : FDS_OK;
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
