/* SPDX-License-Identifier: Apache-2.0
 * Runs as models: opened together, described once, shared by the requests that ask them. */
#include "serve/serve.h"

#include <ctype.h>

enum { VERSION_DIGITS = 16 };
#define EXPLAIN ".explain"

/* ---- names ---- */

/* A name that fits into a path, and leaves NAME.explain free. */
static fds_status check_name(const char *name, size_t size, fds_error *err) {
    bool is_fine =
        size > 0 && size <= SERVE_NAME && (isalnum((unsigned char)*name) || *name == '_');
    for (size_t i = 0; i < size; i++)
        is_fine &= isalnum((unsigned char)name[i]) || strchr("._-", name[i]) != NULL;
    if (!is_fine)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`model` must be NAME=RUN with a name of at most %d letters, digits, "
                         "points, dashes and underscores (got %.*s)",
                         SERVE_NAME, (int)MIN(size, (size_t)100), name);
    size_t end = strlen(EXPLAIN);
    if ((size >= end && memcmp(name + size - end, EXPLAIN, end) == 0) ||
        strncmp(name, "triton_", 7) == 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`model` %.*s: names that end in %s or begin with triton_ are reserved",
                         (int)size, name, EXPLAIN);
    return FDS_OK;
}

const serve_model *serve_models_find(const serve_models *models, const char *name,
                                     const oip_model **as) {
    for (size_t i = 0; i < models->count; i++) {
        const serve_model *m = &models->items[i];
        if (strcmp(name, m->name) == 0 || strcmp(name, m->explain_name) == 0) {
            *as = strcmp(name, m->name) == 0 ? &m->plain : &m->explained;
            return m;
        }
    }
    return NULL;
}

/* ---- one model ---- */

static void free_model(serve_model *m) {
    fds_run_free(m->run);
    fds_run_free(m->shadow);
    fds__payees_free(m->payees);
    fds__free(m->class_names);
    fds__free(m->player_names);
    fds__free(m->payee_names);
    fds__free(m->value_sums);
}

void serve_model_note(const serve_batch *b) {
    serve_model *m = (serve_model *)(uintptr_t)b->model; /* the worker's */
    for (size_t k = 0; k < b->count; k++)
        for (size_t i = 0; i < m->info.players; i++)
            m->value_sums[i] += b->values[k * m->info.players + i];
    m->value_count += b->count;
}

static fds_status name_parts(serve_model *m, fds_error *err) {
    TRY(NEW(m->class_names, m->info.classes, err));
    TRY(NEW(m->player_names, m->info.players, err));
    TRY(NEW(m->value_sums, m->info.players, err));
    for (uint32_t c = 0; c < m->info.classes; c++)
        m->class_names[c] = fds__run_class_name(m->run, c);
    for (size_t i = 0; i < m->info.players; i++)
        m->player_names[i] = fds__run_player_name(m->run, i);
    return FDS_OK;
}

/* Providers are paid where every player has one, else the players themselves. */
static fds_status find_payees(serve_model *m, fds_error *err) {
    bool has_providers = true;
    fds_result *names = NULL;
    TRY(fds__result_create(m->info.method, m->info.players, 1, 1, &names, err));
    fds_status status = FDS_OK;
    for (size_t i = 0; i < m->info.players && status == FDS_OK; i++) {
        const char *provider = fds__run_player_provider(m->run, i);
        has_providers &= provider != NULL;
        status = fds__result_name_player(names, i, m->player_names[i], provider, 0, 1, err);
    }
    if (status == FDS_OK)
        status = fds__payees_create(
            names, has_providers ? FDS__PAY_BY_PROVIDER : FDS__PAY_BY_PLAYER, &m->payees, err);
    fds_result_free(names);
    TRY(status);
    TRY(NEW(m->payee_names, m->payees->count, err));
    for (size_t i = 0; i < m->payees->count; i++)
        m->payee_names[i] =
            fds__payees_name(m->payees, has_providers ? FDS__NAME_PROVIDER : FDS__NAME_PLAYER, i);
    return FDS_OK;
}

static void describe(serve_model *m, bool is_paid) {
    m->plain = (oip_model){.name = m->name,
                           .version = m->version,
                           .shape = m->info.shape,
                           .is_image = m->info.is_image,
                           .is_regression = m->info.is_regression,
                           .is_paid = is_paid,
                           .classes = m->info.classes,
                           .players = m->info.players,
                           .payees = m->payees->count,
                           .class_names = m->class_names,
                           .player_names = m->player_names,
                           .payee_names = m->payee_names};
    m->explained = m->plain;
    m->explained.name = m->explain_name;
    m->explained.is_explained = true;
}

/* line: "NAME=RUN". */
static fds_status open_model(serve_model *m, const char *line, size_t size,
                             const fds_params *params, bool is_paid, fds_error *err) {
    const char *equals = memchr(line, '=', size);
    size_t length = equals ? (size_t)(equals - line) : size;
    if (!equals)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`model` must be NAME=RUN, for example mnist=mnist.run (got %.*s)",
                         (int)MIN(size, (size_t)100), line);
    TRY(check_name(line, length, err));
    snprintf(m->name, sizeof m->name, "%.*s", (int)length, line);
    snprintf(m->explain_name, sizeof m->explain_name, "%s%s", m->name, EXPLAIN);
    if (size - length - 1 == 0 || size - length - 1 >= sizeof m->folder)
        return fds__fail(err, FDS_ERR_USAGE, "`model` %s: name the folder of a run, as in %s=a.run",
                         m->name, m->name);
    snprintf(m->folder, sizeof m->folder, "%.*s", (int)(size - length - 1), equals + 1);
    const char *folder = m->folder;
    TRY(fds_run_open(folder, params, &m->run, err));
    TRY(fds__run_verify(m->run, err));
    if (!fds_run_service(m->run))
        return fds__fail(err, FDS_ERR_UNSUPPORTED,
                         "%s: the service model of the run is a program of the user's, which "
                         "cannot be served",
                         folder);
    m->info = fds__run_get_info(m->run);
    for (uint32_t c = 0; is_paid && !m->info.is_regression && c < m->info.classes; c++) {
        char what[FDS__PATH_MAX + 64];
        snprintf(what, sizeof what, "%s: to be paid for, the name of class %u", folder, c);
        TRY(serve_check_word(what, fds__run_class_name(m->run, c), SERVE_ACCOUNT, err));
    }
    const char *text = fds_run_describe(m->run);
    fds_sha256_hex(text, strlen(text), m->sha256);
    snprintf(m->version, sizeof m->version, "%.*s", VERSION_DIGITS, m->sha256);
    TRY(name_parts(m, err));
    TRY(find_payees(m, err));
    describe(m, is_paid);
    return FDS_OK;
}

/* ---- all of them ---- */

static fds_status open_all(serve_models *models, const char *list, const fds_params *params,
                           bool is_paid, fds_error *err) {
    for (const char *line = list; *line;) {
        size_t size = strcspn(line, "\n");
        const oip_model *as;
        serve_model *m = &models->items[models->count++];
        TRY(open_model(m, line, size, params, is_paid, err));
        if (serve_models_find(models, m->name, &as) != m)
            return fds__fail(err, FDS_ERR_USAGE, "`model` %s is given twice", m->name);
        line += size + (line[size] == '\n');
    }
    return FDS_OK;
}

fds_status serve_models_open(const char *list, const fds_params *params, bool is_paid,
                             serve_models **out, fds_error *err) {
    serve_models *models;
    size_t lines = 1;
    for (const char *at = list; *at; at++)
        lines += *at == '\n';
    TRY(NEW(models, 1, err));
    atomic_init(&models->users, 1);
    fds_status status = NEW(models->items, lines, err);
    if (status == FDS_OK)
        status = open_all(models, list, params, is_paid, err);
    if (status == FDS_OK)
        *out = models;
    else
        serve_models_release(models);
    return status;
}

void serve_models_release(serve_models *models) {
    if (!models || atomic_fetch_sub(&models->users, 1) != 1)
        return;
    for (size_t i = 0; models->items && i < models->count; i++)
        free_model(&models->items[i]);
    fds__free(models->items);
    fds__free(models);
}

serve_models *serve_models_now(fds_server *server) {
    pthread_mutex_lock(&server->lock);
    serve_models *models = server->models;
    atomic_fetch_add(&models->users, 1);
    pthread_mutex_unlock(&server->lock);
    return models;
}
