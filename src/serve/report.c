/* SPDX-License-Identifier: Apache-2.0
 * What operators see: lines of JSON, and metrics in the text format of Prometheus. */
#include "serve/serve.h"

#include <time.h>

static const double bounds_s[SERVE_BUCKETS] = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02,
                                               0.05,   0.1,   0.2,   0.5,   1,    5};

/* ---- the log ---- */

static void write_time(fds__text *out) {
    struct timespec now;
    struct tm parts;
    char text[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    fds__text_print(out, "{\"at\":\"%s.%03ldZ\"", text, now.tv_nsec / 1000000);
}

static void write_member(fds__text *out, const char *name, const char *text) {
    if (!text || !*text)
        return;
    fds__text_print(out, ",\"%s\":", name);
    oip_write_string(out, text);
}

/* A line that there is no memory for is lost. */
static void emit(fds_server *server, fds__text *line) {
    fds__text_add(line, "}", 1);
    if (fds__text_check(line, NULL) == FDS_OK) {
        pthread_mutex_lock(&server->log_lock);
        server->log(server->log_user, line->data);
        pthread_mutex_unlock(&server->log_lock);
    }
    fds__free(line->data);
}

void serve_log_request(fds_server *server, const serve_record *r) {
    fds__text line = {0};
    if (!server->log)
        return;
    write_time(&line);
    write_member(&line, "event", "request");
    write_member(&line, "remote", r->remote);
    write_member(&line, "role", r->role);
    write_member(&line, "account", r->account);
    write_member(&line, "method", r->method);
    write_member(&line, "path", r->path);
    fds__text_print(&line,
                    ",\"status\":%u,\"bytes_in\":%zu,\"bytes_out\":%zu,\"samples\":%zu,\"ms\":",
                    r->status, r->bytes_in, r->bytes_out, r->samples);
    fds__text_fixed(&line, 3, r->seconds * 1000);
    emit(server, &line);
}

void serve_log_event(fds_server *server, const char *event, const char *error) {
    fds__text line = {0};
    if (!server->log)
        return;
    write_time(&line);
    write_member(&line, "event", event);
    write_member(&line, "error", error);
    emit(server, &line);
}

/* ---- metrics ---- */

/* Counts of the last seconds, in a ring; what a slot has of a former round is overwritten. */
static void count_recent(serve_metrics *m, double now_s) {
    unsigned long long second = (unsigned long long)now_s, old, new;
    atomic_ullong *slot = &m->recent[second % SERVE_RECENT];
    old = atomic_load(slot);
    do
        new = old >> 32 == second ? old + 1 : second << 32 | 1;
    while (!atomic_compare_exchange_weak(slot, &old, new));
}

void serve_metrics_count(serve_metrics *m, unsigned status, double seconds) {
    size_t i = 0;
    count_recent(m, fds__now_s());
    atomic_fetch_add(&m->codes[status < SERVE_CODES ? status : 0], 1);
    while (i < SERVE_BUCKETS && seconds > bounds_s[i])
        i++;
    atomic_fetch_add(&m->seconds[i], 1);
    atomic_fetch_add(&m->microseconds, (unsigned long long)(seconds * 1e6));
}

/* The time that a share of all requests stays below, by a straight line within its bucket. */
static double quantile_ms(const serve_metrics *m, double share) {
    unsigned long long total = 0, below = 0;
    for (size_t i = 0; i <= SERVE_BUCKETS; i++)
        total += atomic_load(&m->seconds[i]);
    for (size_t i = 0; i < SERVE_BUCKETS; i++) {
        unsigned long long here = atomic_load(&m->seconds[i]);
        double from_s = i ? bounds_s[i - 1] : 0;
        if (here && (double)(below + here) >= share * (double)total)
            return 1000 * (from_s + (bounds_s[i] - from_s) *
                                        (share * (double)total - (double)below) / (double)here);
        below += here;
    }
    return 1000 * (total ? bounds_s[SERVE_BUCKETS - 1] : 0);
}

serve_glance serve_metrics_glance(const serve_metrics *m, double now_s) {
    enum { SECONDS = 10 };
    serve_glance g = {.uptime_s = now_s - m->start_s,
                      .p50_ms = quantile_ms(m, 0.5),
                      .p99_ms = quantile_ms(m, 0.99)};
    unsigned long long now = (unsigned long long)now_s, count = 0;
    for (size_t i = 0; i < SERVE_RECENT; i++) {
        unsigned long long slot = atomic_load(&m->recent[i]), second = slot >> 32;
        count += second < now && second + SECONDS >= now ? slot & 0xffffffff : 0;
    }
    g.requests_per_s = (double)count / MIN(MAX(g.uptime_s, 1), SECONDS);
    for (size_t code = 500; code < SERVE_CODES; code++)
        g.failures += atomic_load(&m->codes[code]);
    return g;
}

static void head(fds__text *out, const char *name, const char *type, const char *help) {
    fds__text_print(out, "# HELP fds_%s %s\n# TYPE fds_%s %s\n", name, help, name, type);
}

static void write_number(fds__text *out, const char *name, const char *type, const char *help,
                         unsigned long long value) {
    head(out, name, type, help);
    fds__text_print(out, "fds_%s %llu\n", name, value);
}

static void write_latency(const serve_metrics *m, fds__text *out) {
    unsigned long long sum = 0;
    head(out, "request_seconds", "histogram", "Time from the head of a request to its answer.");
    for (size_t i = 0; i <= SERVE_BUCKETS; i++) {
        char bound[FDS__NUMBER] = "+Inf";
        sum += atomic_load(&m->seconds[i]);
        if (i < SERVE_BUCKETS)
            fds__write_double(bounds_s[i], bound);
        fds__text_print(out, "fds_request_seconds_bucket{le=\"%s\"} %llu\n", bound, sum);
    }
    fds__text_print(out, "fds_request_seconds_sum ");
    fds__text_fixed(out, 6, (double)atomic_load(&m->microseconds) / 1e6);
    fds__text_print(out, "\nfds_request_seconds_count %llu\n", sum);
}

void serve_metrics_write(const fds_server *server, fds__text *out) {
    const serve_metrics *m = &server->metrics;
    head(out, "build_info", "gauge", "The version of fds.");
    fds__text_print(out, "fds_build_info{version=\"%s\"} 1\n", FDS_VERSION);
    head(out, "requests_total", "counter", "Requests by status; 0: the client was gone.");
    for (unsigned code = 0; code < SERVE_CODES; code++)
        if (atomic_load(&m->codes[code]))
            fds__text_print(out, "fds_requests_total{code=\"%u\"} %llu\n", code,
                            atomic_load(&m->codes[code]));
    write_latency(m, out);
    write_number(out, "ready", "gauge", "1 unless the server drains.",
                 !atomic_load(&server->is_draining));
    write_number(out, "connections", "gauge", "Open connections.", atomic_load(&m->connections));
    write_number(out, "requests_open", "gauge", "Requests that are not answered yet.",
                 atomic_load(&m->requests));
    write_number(out, "body_bytes", "gauge", "Bytes of bodies in memory.", atomic_load(&m->bytes));
    write_number(out, "predictions_total", "counter", "Samples that were predicted.",
                 atomic_load(&m->predictions));
    write_number(out, "batches_total", "counter", "Batches of the worker, by model.",
                 atomic_load(&m->batches));
    write_number(out, "paid_total", "counter", "Predictions that were paid.",
                 atomic_load(&m->paid));
    write_number(out, "paid_units_total", "counter", "Units of money that they cost.",
                 atomic_load(&m->units));
    write_number(out, "audited_total", "counter", "Predictions that the bank has answered too.",
                 atomic_load(&m->audited));
    write_number(out, "audits_missed_total", "counter",
                 "Predictions that should have been audited, and were not.",
                 atomic_load(&m->audits_missed));
    write_number(out, "audits_waiting", "gauge", "Predictions that wait for the bank.",
                 atomic_load(&m->audits_waiting));
    write_number(out, "repeated_total", "counter", "Predictions that were paid before.",
                 atomic_load(&m->repeated));
    write_number(out, "ledger_failures_total", "counter", "Transactions of the ledger that failed.",
                 atomic_load(&m->ledger_failures));
    write_number(out, "reloads_total", "counter", "Times that runs and keys were opened anew.",
                 atomic_load(&m->reloads));
}
