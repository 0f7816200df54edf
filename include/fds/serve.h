/* SPDX-License-Identifier: Apache-2.0
 *
 * fds/serve.h: runs behind HTTP. A server speaks the Open Inference Protocol, explains every
 * prediction that it sells, and charges customers through a ledger. docs/serve.md has the endpoints,
 * the limits and what they protect. Stable within a minor version.
 *
 * Where fds was built without libmicrohttpd, fds_server_start fails with FDS_ERR_UNSUPPORTED.
 */
#ifndef FDS_SERVE_H
#define FDS_SERVE_H

#include "../fds.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A running server; its threads are its own. */
typedef struct fds_server fds_server;

/* Receives the log, line by line: JSON without a newline, without bodies and keys. It is called from
 * any thread, by one at a time, and must not call the server. */
typedef void (*fds_server_log)(void *user, const char *line);

/* Opens the runs and the ledger that params (job "serve") name, and listens. When it returns, clients
 * are served. Sockets that systemd hands over (LISTEN_FDS) take the place of "host" and "port". log
 * may be NULL. */
FDS_API fds_status fds_server_start(const fds_params *params, fds_server_log log, void *user,
                                    fds_server **out, fds_error *err);
/* The port that was chosen for "port" 0, and where clients find the server: "http://127.0.0.1:8080". */
FDS_API uint16_t fds_server_port(const fds_server *server);
FDS_API const char *fds_server_address(const fds_server *server);
/* Opens all runs, and all keys, anew, while requests go on; those that have begun are answered by the
 * old ones. Where the runs fail they stay as they are, and so do the keys where these fail. */
FDS_API fds_status fds_server_reload(fds_server *server, fds_error *err);
/* Refuses new work, answers what has begun, closes the ledger, and frees the server; NULL is fine. */
FDS_API void fds_server_stop(fds_server *server);

/* Makes a key for an account, and adds its SHA-256 to a file of keys (mode 0600), a new one if there
 * is none. role: "customer", "provider", "auditor" or "operator". key receives it; it is not stored
 * anywhere. */
enum { FDS_SERVE_KEY = 96 };
FDS_API fds_status fds_serve_key_add(const char *path, const char *role, const char *account,
                                     char key[FDS_SERVE_KEY], fds_error *err);
/* Adds a login to the same file, with the argon2id of its password (8 to 1024 bytes). account: whose
 * it is; NULL: the login's own name. FDS_ERR_CONFLICT: the file has such a login. */
FDS_API fds_status fds_serve_login_add(const char *path, const char *role, const char *account,
                                       const char *login, const char *password, fds_error *err);

#ifdef __cplusplus
}
#endif
#endif
