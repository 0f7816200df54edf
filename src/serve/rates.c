/* SPDX-License-Identifier: Apache-2.0
 * How often each key, address or name may ask: buckets of tokens, in a table of fixed size. */
#include "serve/serve.h"

enum { SETS = 1024, WAYS = 8 };

typedef struct {
    uint8_t who[SERVE_WHO];
    double tokens, at_s; /* as of then; at_s 0: free */
} bucket;

/* Where a set is full, who asked longest ago is forgotten: a full bucket is lost, or some asker's debt,
 * of whom there are thousands at that time. */
struct serve_rates {
    pthread_mutex_t lock;
    uint64_t salt; /* so that nobody can aim at a set */
    bucket buckets[SETS][WAYS];
};

fds_status serve_rates_create(serve_rates **out, fds_error *err) {
    uint64_t salt;
    TRY(fds__random_secret(&salt, sizeof salt, err));
    TRY(NEW(*out, 1, err));
    (*out)->salt = salt;
    pthread_mutex_init(&(*out)->lock, NULL);
    return FDS_OK;
}

void serve_rates_free(serve_rates *rates) {
    if (rates)
        pthread_mutex_destroy(&rates->lock);
    fds__free(rates);
}

/* NULL: there is none, and it is not to be made. */
static bucket *find_bucket(serve_rates *r, const uint8_t who[SERVE_WHO], double burst, bool makes,
                           double now_s) {
    uint8_t salted[SERVE_WHO + sizeof r->salt];
    memcpy(salted, who, SERVE_WHO);
    memcpy(salted + SERVE_WHO, &r->salt, sizeof r->salt);
    bucket *set = r->buckets[fds_checksum(salted, sizeof salted) % SETS], *oldest = set;
    for (size_t i = 0; i < WAYS; i++) {
        if (set[i].at_s > 0 && memcmp(set[i].who, who, SERVE_WHO) == 0)
            return &set[i];
        oldest = set[i].at_s < oldest->at_s ? &set[i] : oldest;
    }
    if (!makes)
        return NULL;
    *oldest = (bucket){.tokens = burst, .at_s = now_s};
    memcpy(oldest->who, who, SERVE_WHO);
    return oldest;
}

bool serve_rates_use(serve_rates *r, const uint8_t who[SERVE_WHO], serve_rate rate, bool takes,
                     double now_s) {
    pthread_mutex_lock(&r->lock);
    /* who only asks must not push out others */
    bucket *b = find_bucket(r, who, rate.burst, takes, now_s);
    bool is_within = true;
    if (b) {
        b->tokens = MIN(b->tokens + (now_s - b->at_s) * rate.per_s, rate.burst);
        b->at_s = now_s;
        is_within = b->tokens >= 1;
        b->tokens -= is_within && takes;
    }
    pthread_mutex_unlock(&r->lock);
    return is_within;
}

bool serve_rates_take(serve_rates *r, const uint8_t who[SERVE_WHO], double per_s, double now_s) {
    return serve_rates_use(r, who, (serve_rate){per_s, MAX(per_s, 1)}, true, now_s);
}
