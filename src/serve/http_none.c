/* SPDX-License-Identifier: Apache-2.0
 * In the place of http.c, where libmicrohttpd is missing. */
#include "serve/serve.h"

#include <unistd.h>

fds_status serve_http_check(fds_error *err) {
    return fds__fail(err, FDS_ERR_UNSUPPORTED,
                     "fds was built without libmicrohttpd: install libmicrohttpd-dev and "
                     "libgnutls28-dev, and build it again");
}

fds_status serve_http_start(fds_server *server, const serve_listen *listen, fds_error *err) {
    (void)server;
    close(listen->fd);
    return serve_http_check(err);
}

void serve_http_drain(fds_server *server, double limit_s) {
    (void)server;
    (void)limit_s;
}

void serve_http_stop(fds_server *server) { (void)server; }
