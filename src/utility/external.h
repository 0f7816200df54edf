/* SPDX-License-Identifier: Apache-2.0
 *
 * Utility functions that another program computes ("command:PROGRAM"), inside: for the files below
 * and for tests. docs/external.md has the protocol.
 *
 *   message.c  the bytes of its messages
 *   program.c  the worker processes: what they are sent, how long they may take, what if they fail
 *   command.c  the kind "command" of utility functions
 */
#ifndef FDS_UTILITY_EXTERNAL_H
#define FDS_UTILITY_EXTERNAL_H

#include "utility/utility.h"

/* ---- message.c ---- */

enum { FDS__PROTOCOL = 1, FDS__PROGRAM_NAME = 200 };

/* What a program is told before anything else. */
typedef struct fds__hello {
    const char
        *folder; /* with samples.npy, labels.npy or targets.npy, players.npy and inputs.npy */
    size_t samples, players, inputs;
    fds_shape shape;
    uint32_t classes;
    bool is_regression;
    uint64_t seed;
} fds__hello;

/* Frames, which the caller fds__frees. samples: positions in samples.npy. */
fds_status fds__message_hello(const fds__hello *hello, uint8_t **frame, size_t *size,
                              fds_error *err);
fds_status fds__message_eval(uint64_t id, uint64_t seed, const uint32_t *samples, size_t count,
                             uint8_t **frame, size_t *size, fds_error *err);

/* What an answer must be. */
typedef struct fds__answer_form {
    uint64_t id;
    size_t inputs;
    uint32_t classes;
    const bool *has_class; /* (classes): whether the coalition has a sample of it */
    bool is_regression;    /* predictions (inputs) instead of probabilities (inputs, classes) */
} fds__answer_form;

/* The length of a frame, from its first 8 bytes; FDS_ERR_EXTERNAL if it is more than an answer of so
 * many probabilities can take. */
fds_status fds__message_length(const uint8_t head[8], size_t probabilities, size_t *size,
                               fds_error *err);
/* These take ownership of data. FDS_ERR_EXTERNAL, with what would be right, for a message that is not
 * such an answer. *is_fatal: the program says that it would fail again. */
fds_status fds__message_ready(uint8_t *data, size_t size, char name[FDS__PROGRAM_NAME],
                              char fingerprint[FDS__PROGRAM_NAME], fds_error *err);
fds_status fds__message_answer(uint8_t *data, size_t size, const fds__answer_form *form,
                               float *probs, bool *is_fatal, fds_error *err);

/* ---- program.c ---- */

typedef struct fds__program fds__program; /* a program and its worker processes */

/* Starts the first of the workers and hears its name. The texts must outlive it, hello is copied. */
fds_status fds__program_open(const char *command, const fds__hello *hello, unsigned workers,
                             const fds_events *events, fds__program **out, fds_error *err);
/* Ends all processes. */
void fds__program_close(fds__program *program);
const char *fds__program_name(const fds__program *program);
const char *fds__program_fingerprint(const fds__program *program);
/* Asks one worker, which one thread at a time may do; after a failure asks a new process, twice. The
 * error does not name the coalition. */
fds_status fds__program_ask(fds__program *program, unsigned worker, const uint32_t *samples,
                            size_t count, const bool *has_class, float *probs, fds_error *err);
/* What the last process that failed wrote to its standard error goes to events, once. */
void fds__program_log(fds__program *program, const fds_events *events);

#endif
