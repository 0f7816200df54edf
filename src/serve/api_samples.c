/* SPDX-License-Identifier: Apache-2.0
 * A provider's own samples, those first that have contributed most: what a run keeps of them for
 * pictures, with their mean values over the predictions that this server has explained.
 *
 * Where the ledger is private, such means would tell a provider about single predictions: it then gets its
 * samples in the order of the run, without values. */
#include "serve/serve.h"

#include <nettle/base64.h>
#include <stdlib.h>

enum { MOST_SAMPLES = 24, AT_ONCE = 4, SIDE = 56 }; /* SIDE: pixels of a picture, at least */

typedef struct {
    const serve_model *model;
    size_t player;
    double value; /* mean; 0: nothing was explained yet */
} sample;

static double mean_of(const serve_model *m, size_t player) {
    return m->value_count ? m->value_sums[player] / (double)m->value_count : 0;
}

/* The best first; where nothing is known, in the order of the run. */
static int compare(const void *a, const void *b) {
    const sample *x = a, *y = b;
    if (x->model == y->model && x->value != y->value && x->model->value_count)
        return x->value > y->value ? -1 : 1;
    if (x->model != y->model)
        return x->model < y->model ? -1 : 1;
    return x->player < y->player ? -1 : x->player > y->player;
}

static bool is_hidden(const serve_call *call) {
    return call->server->is_private && call->role == SERVE_PROVIDER;
}

/* hides: all count as equal. */
static fds_status gather(const serve_models *models, const char *account, bool hides, sample **out,
                         size_t *count, fds_error *err) {
    size_t capacity = 0;
    *count = 0;
    for (size_t k = 0; k < models->count; k++) {
        const serve_model *m = &models->items[k];
        for (size_t i = 0; i < m->info.players; i++) {
            void *items = *out;
            if (account && strcmp(m->payee_names[m->payees->payee_of[i]], account) != 0)
                continue;
            fds_status status = fds__grow(&items, &capacity, *count + 1, sizeof **out, err);
            *out = items;
            TRY(status);
            (*out)[(*count)++] =
                (sample){.model = m, .player = i, .value = hides ? 0 : mean_of(m, i)};
        }
    }
    if (*count)
        qsort(*out, *count, sizeof **out, compare);
    return FDS_OK;
}

static void write_base64(fds__text *out, const uint8_t *data, size_t size) {
    enum { STEP = 192 }; /* a multiple of 3: only the last part has padding */
    char part[BASE64_ENCODE_RAW_LENGTH(STEP)];
    for (size_t at = 0; at < size; at += STEP) {
        size_t length = MIN(size - at, (size_t)STEP);
        base64_encode_raw(part, length, data + at);
        fds__text_add(out, part, BASE64_ENCODE_RAW_LENGTH(length));
    }
}

/* "data:image/png;base64,..."; empty: the samples are no pictures. */
static fds_status draw(const sample *s, fds__text *out, fds_error *err) {
    const fds_dataset *samples = fds_run_samples(s->model->run);
    uint32_t index = (uint32_t)s->player;
    draw_brush brush;
    fds__picture canvas = {0};
    uint8_t *png = NULL;
    size_t size = 0;
    if (!s->model->info.is_image || !samples)
        return FDS_OK;
    TRY(draw_brush_make(samples, &index, 1, SIDE, &brush, err));
    TRY(draw_canvas_create(brush.width, brush.height, &canvas, err));
    draw_canvas_sample(&canvas, &brush, s->player, 0, 0);
    fds_status status = fds__png_encode(&canvas, &png, &size, err);
    fds__free(canvas.pixels);
    TRY(status);
    fds__text_print(out, "data:image/png;base64,");
    write_base64(out, png, size);
    fds__free(png);
    return fds__text_check(out, err);
}

static fds_status sample_json(const sample *s, bool hides, json_t **out, fds_error *err) {
    fds__text picture = {0};
    const serve_model *m = s->model;
    fds_status status = draw(s, &picture, err);
    json_t *root = json_object();
    uint32_t label = fds__run_player_label(m->run, s->player);
    bool is_whole =
        status == FDS_OK && fds__json_put(root, "model", json_string(m->name)) &&
        fds__json_put(root, "player", json_integer((json_int_t)s->player)) &&
        fds__json_put(root, "name", fds__json_string(m->player_names[s->player])) &&
        fds__json_put(root, "label",
                      m->info.is_regression
                          ? json_null()
                          : fds__json_string(fds__run_class_name(m->run, label))) &&
        fds__json_put(root, "value",
                      m->value_count && !hides ? fds__json_real(s->value) : json_null()) &&
        fds__json_put(root, "count", json_integer(hides ? 0 : (json_int_t)m->value_count)) &&
        fds__json_put(root, "picture", picture.used ? json_string(picture.data) : json_null());
    fds__free(picture.data);
    *out = fds__json_keep_if(root, is_whole);
    return status == FDS_OK && !*out ? fds__fail_json(err) : status;
}

/* Which samples are shown, as [number of the model, player]: kept while they are drawn. */
static fds_status choose(serve_call *call, fds_error *err) {
    OWNED sample *found = NULL;
    serve_job *job = call->job;
    uint64_t account;
    size_t count = 0;
    TRY(serve_arg_account(call, "account", &account, err));
    const char *name =
        account == UINT64_MAX ? NULL : fds_ledger_account_name(call->ledger, account);
    job->models = serve_models_now(call->server);
    job->state = json_array();
    TRY(gather(job->models, name, is_hidden(call), &found, &count, err));
    for (size_t i = 0; i < MIN(count, (size_t)MOST_SAMPLES); i++)
        if (!fds__json_append(job->state,
                              json_pack("[i, i]", (int)(found[i].model - job->models->items),
                                        (int)found[i].player)))
            return fds__fail_json(err);
    fds__text_print(&call->reply->body, "{\"samples\":[");
    return FDS_OK;
}

/* In parts: pictures may be large. */
fds_status serve_api_samples(serve_call *call, fds_error *err) {
    serve_job *job = call->job;
    fds__text *out = &call->reply->body;
    if (!job->state)
        TRY(choose(call, err));
    size_t count = json_array_size(job->state);
    for (size_t i = 0; i < AT_ONCE && job->at.next < count; i++) {
        const json_t *place = json_array_get(job->state, (size_t)job->at.next++);
        size_t model = (size_t)json_integer_value(json_array_get(place, 0)),
               player = (size_t)json_integer_value(json_array_get(place, 1));
        const sample s = {.model = &job->models->items[model],
                          .player = player,
                          .value = mean_of(&job->models->items[model], player)};
        json_t *one = NULL;
        fds__text_add(out, ",", job->at.next > 1);
        TRY(sample_json(&s, is_hidden(call), &one, err));
        TRY(serve_send_json(call, one, true, err));
    }
    job->is_unfinished = job->at.next < count;
    if (!job->is_unfinished)
        fds__text_print(out, "]}");
    return FDS_OK;
}
