/* SPDX-License-Identifier: Apache-2.0
 * fds value, the result: a summary and the players by rank, as text and as JSON. */
#include "value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 11, LOWEST = 3, PLAYER_WIDTH = 20, LABEL_WIDTH = 10, PROVIDER_WIDTH = 12 };

/* ---- the summary ---- */

static const char *sampler_name(const value_job *j) {
    return j->o->sampler ? j->o->sampler : j->is_exact ? NULL : "leverage";
}

static const char *group_name(const value_job *j) { return j->o->group ? j->o->group : "label"; }

/* "retrain:10 at learning rate 0.001" */
static void print_function(const value_job *j) {
    const fds_utility_params *p = &j->params;
    if (!j->game.kind)
        return;
    printf("%-*s %s", WIDTH, value_is_for_labels(j) ? "labels by" : "function", j->game.kind);
    if (value_is_retrain(j->game.kind)) {
        fds_train_params train;
        if (fds_utility_training(p, &train, NULL) == FDS_OK)
            printf(" at learning rate %.4g", (double)train.lr);
    }
    putchar('\n');
}

static void print_coalitions(const value_job *j) {
    char count[CLI_NUMBER_SIZE];
    printf("%-*s ", WIDTH, "coalitions");
    if (j->is_exact)
        printf("%s, all that exact %svalues need\n", cli_count(j->game.need.coalitions, count),
               j->is_grouped ? (j->sampler == FDS_SAMPLER_GFDS ? "gfds " : "gfds+ ") : "");
    else
        printf("%s by %s, %s, adjusted by %s\n", cli_count(fds_plan_rows(j->plan) - 2, count),
               sampler_name(j), fds_plan_is_paired(j->plan) ? "in pairs" : "singly",
               j->adjust_name);
}

/* The lines that are known before any work. */
static void print_plan(const value_job *j) {
    cli_setup_print(&j->setup, WIDTH);
    if (j->groups)
        printf("%-*s %zu by %s\n", WIDTH, "groups", fds_groups_count(j->groups), group_name(j));
    print_function(j);
    if (j->is_baseline)
        value_print_baseline_plan(j, WIDTH);
    else
        print_coalitions(j);
}

static void print_sub_models(const value_game *g, const char *name) {
    char computed[CLI_NUMBER_SIZE], there[CLI_NUMBER_SIZE];
    size_t missing = g->need.missing;
    printf("%-*s %s %s", WIDTH, name, cli_count(missing, computed),
           value_is_retrain(g->kind) ? "trained" : "computed");
    if (missing)
        printf(" in %.2f s (%.0f a second)", g->seconds,
               g->seconds > 0 ? (double)missing / g->seconds : 0);
    printf(", %s were there already\n", cli_count(g->need.coalitions - missing, there));
}

static void print_fit(const value_job *j) {
    const fds_ls_report *r = &j->report;
    if (value_saw_all(j))
        printf("%-*s of all coalitions that there are\n", WIDTH, "fit");
    else
        printf("%-*s foretells %.1f %% of the variance of left-out coalitions\n", WIDTH, "fit",
               100 * r->explained);
    if (j->adjust != FDS_ADJUST_NONE) {
        printf("%-*s %g", WIDTH, "shrinkage", r->shrink);
        if (j->adjust == FDS_ADJUST_COUNTS)
            printf(" for the fitted game, %g for the rest", r->shrink_rest);
        putchar('\n');
    }
    if (j->surrogate.kind)
        printf("%-*s %s, with a share of %.2f\n", WIDTH, "surrogate", j->surrogate.kind,
               r->control);
    if (r->ridge > 0)
        printf("%-*s %g\n", WIDTH, "ridge", r->ridge);
}

static void print_summary(const value_job *j) {
    const cli_setup *s = &j->setup;
    print_plan(j);
    if (j->is_baseline) {
        value_print_baseline(j, WIDTH);
        return;
    }
    print_sub_models(&j->game, "sub-models");
    if (j->surrogate.kind)
        print_sub_models(&j->surrogate, j->surrogate.kind);
    printf("%-*s %zu samples%s, %.1f %% predicted rightly\n", WIDTH, "test", s->test_count,
           s->test ? "" : " held back", 100.0 * (double)j->right / (double)s->test_count);
    printf("%-*s %.4f with no players, %.4f with all\n", WIDTH, "probability", j->none, j->all);
    if (!j->is_exact)
        print_fit(j);
    printf("%-*s %s\n", WIDTH, "table", j->game.dir);
    if (j->o->output)
        printf("%-*s %s\n", WIDTH, "written", j->o->output);
}

/* ---- the ranking ---- */

typedef struct {
    double value;
    size_t player;
} place;

static int by_value(const void *left, const void *right) {
    const place *a = left, *b = right;
    if (a->value != b->value)
        return a->value > b->value ? -1 : 1;
    return a->player < b->player ? -1 : a->player > b->player;
}

typedef struct {
    place *places;    /* [players], the most valuable first */
    uint32_t *counts; /* scratch of value_player_label */
} ranking;

static void ranking_free(ranking *r) {
    free(r->places);
    free(r->counts);
}

static fds_status ranking_make(const value_job *j, ranking *r, fds_error *err) {
    size_t n = fds_players_count(j->setup.players);
    r->places = cli_alloc(n, sizeof *r->places, err);
    r->counts = cli_alloc(fds_dataset_get_info(j->setup.train).classes, sizeof *r->counts, err);
    if (!r->places || !r->counts)
        return FDS_ERR_NOMEM;
    for (size_t i = 0; i < n; i++)
        r->places[i] = (place){j->mean_values[i], i};
    qsort(r->places, n, sizeof *r->places, by_value);
    return FDS_OK;
}

static const char *label_name(const value_job *j, size_t player, const ranking *r) {
    return fds_dataset_class_name(j->setup.train, value_player_label(&j->setup, player, r->counts));
}

/* Of a player that is one sample; NULL where the data names none, or the player is a provider. */
static const char *provider_name(const value_job *j, size_t player) {
    const cli_setup *s = &j->setup;
    const uint32_t *ids = fds_dataset_get_info(s->train).provider_ids, *samples;
    if (s->by_provider || !ids || !fds_players_samples(s->players, player, &samples))
        return NULL;
    return fds_dataset_provider_name(s->train, ids[samples[0]]);
}

/* As wide as the widest name, between least and most. */
static int widen(int width, const char *name, int most) {
    int columns = cli_columns(name);
    return columns > most ? most : columns > width ? columns : width;
}

typedef struct {
    int player, label, provider; /* 0: no such column */
    bool has_errors;
} widths;

static widths measure(const value_job *j, const ranking *r) {
    widths w = {6, 5, 0, false};
    for (size_t i = 0; i < fds_players_count(j->setup.players); i++) {
        const char *provider = provider_name(j, i);
        w.player = widen(w.player, fds_players_name(j->setup.players, i), PLAYER_WIDTH);
        w.label = widen(w.label, label_name(j, i, r), LABEL_WIDTH);
        if (provider)
            w.provider = widen(w.provider ? w.provider : 8, provider, PROVIDER_WIDTH);
        w.has_errors |= j->mean_errors && !isnan(j->mean_errors[i]);
    }
    return w;
}

static void print_place(const value_job *j, const ranking *r, const widths *w, size_t rank) {
    char name[CLI_NAME_SIZE];
    size_t player = r->places[rank].player;
    printf("%4zu  %s", rank + 1,
           cli_name(fds_players_name(j->setup.players, player), w->player, name));
    printf("  %s", cli_name(label_name(j, player, r), w->label, name));
    if (w->provider)
        printf("  %s", cli_name(provider_name(j, player), w->provider, name));
    printf("  %9.6f", j->mean_values[player]);
    if (j->mean_errors && !isnan(j->mean_errors[player]))
        printf("  \u00b1 %.6f", j->mean_errors[player]);
    putchar('\n');
}

static void print_ranking(const value_job *j, const ranking *r) {
    size_t n = fds_players_count(j->setup.players), top = (size_t)j->o->top;
    size_t shown = n > top + LOWEST ? top : n;
    const widths w = measure(j, r);
    const char *plural = j->setup.test_count == 1 ? "" : "s";
    if (j->is_baseline && j->is_mean)
        printf("\nValue (in %s) on %zu test sample%s:\n", value_scorer_name(j), j->setup.test_count,
               plural);
    else
        printf("\nMean value (in probability) for the %s label of %zu test sample%s:\n",
               strcmp(j->target, "true") == 0 ? "true" : "predicted", j->setup.test_count, plural);
    printf("rank  %-*s  %-*s", w.player, "player", w.label, "label");
    if (w.provider)
        printf("  %-*s", w.provider, "provider");
    printf("  %9s%s\n", "value", w.has_errors ? "  standard error" : "");
    for (size_t i = 0; i < shown; i++)
        print_place(j, r, &w, i);
    if (shown < n)
        printf("   ...\n");
    for (size_t i = shown < n ? n - LOWEST : n; i < n; i++)
        print_place(j, r, &w, i);
}

/* ---- JSON ---- */

static json_t *text_or_null(const char *text) { return text ? cli_json_text(text) : json_null(); }

static json_t *json_game(const value_game *g, bool is_filled) {
    const fds_table_cost *n = &g->need;
    json_error_t unused;
    json_t *parameters =
        g->value ? json_loads(fds_utility_get_info(g->value).text, 0, &unused) : json_null();
    return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "function",
                     text_or_null(g->kind), "coalitions", (json_int_t)n->coalitions, "missing",
                     (json_int_t)n->missing, "disk", (json_int_t)n->disk, "disk_free",
                     (json_int_t)n->disk_free, "memory", (json_int_t)n->memory, "seconds",
                     is_filled ? cli_json_real(g->seconds) : json_null(), "table",
                     text_or_null(g->dir[0] ? g->dir : NULL), "parameters", parameters);
}

static json_t *json_groups(const value_job *j) {
    if (!j->groups)
        return json_null();
    return json_pack("{s:o, s:I}", "by", cli_json_text(group_name(j)), "count",
                     (json_int_t)fds_groups_count(j->groups));
}

static json_t *json_sampling(const value_job *j) {
    if (j->is_exact || j->is_baseline)
        return json_null();
    return json_pack("{s:s, s:I, s:I, s:o}", "sampler", sampler_name(j), "coalitions",
                     (json_int_t)(fds_plan_rows(j->plan) - 2), "draw", (json_int_t)value_draw(j),
                     "adjust", cli_json_text(j->adjust_name));
}

static json_t *json_plan(const value_job *j, bool is_filled) {
    const cli_setup *s = &j->setup;
    return json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:s, s:b, s:I, s:I, s:b, s:o, s:o, s:o}",
        "version", FDS_VERSION, "data", cli_json_text(fds_dataset_get_info(s->train).source),
        "network", s->weights ? cli_json_text(s->network) : json_null(), "players",
        cli_setup_json_players(s), "groups", json_groups(j), "method", j->method, "group_wise",
        j->is_exact && j->is_grouped ? cli_json_text(j->o->sampler) : json_null(), "sampling",
        json_sampling(j), "target", j->target, "global", j->is_mean, "seed",
        (json_int_t)j->o->common.seed, "test_count", (json_int_t)s->test_count, "test_held_back",
        !s->test, "game", json_game(&j->game, is_filled), "surrogate",
        j->surrogate.kind ? json_game(&j->surrogate, is_filled) : json_null(), "baseline",
        j->is_baseline ? value_json_baseline(j, is_filled) : json_null());
}

static json_t *json_fit(const value_job *j) {
    const fds_ls_report *r = &j->report;
    if (j->is_exact || j->is_baseline)
        return json_null();
    return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "cases", (json_int_t)r->pairs,
                     "features", (json_int_t)r->features, "explained", cli_json_real(r->explained),
                     "shrink", cli_json_real(r->shrink), "shrink_rest",
                     cli_json_real(r->shrink_rest), "surrogate_share", cli_json_real(r->control),
                     "ridge", cli_json_real(r->ridge));
}

static json_t *json_ranking(const value_job *j, const ranking *r) {
    json_t *list = json_array();
    for (size_t rank = 0; rank < fds_players_count(j->setup.players); rank++) {
        size_t player = r->places[rank].player;
        json_t *entry = json_pack(
            "{s:I, s:o, s:o, s:o, s:o, s:o}", "rank", (json_int_t)(rank + 1), "player",
            cli_json_text(fds_players_name(j->setup.players, player)), "label",
            cli_json_text(label_name(j, player, r)), "provider",
            text_or_null(provider_name(j, player)), "value", cli_json_real(j->mean_values[player]),
            "standard_error", cli_json_real(j->mean_errors ? j->mean_errors[player] : 0));
        if (json_array_append_new(list, entry) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static fds_status print_json(const value_job *j, const ranking *r, fds_error *err) {
    json_t *root = json_plan(j, true);
    bool is_known = j->game.value; /* what models answer */
    json_t *found =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "predicted_rightly",
                  is_known ? json_integer((json_int_t)j->right) : json_null(),
                  "probability_with_none", is_known ? cli_json_real(j->none) : json_null(),
                  "probability_with_all", is_known ? cli_json_real(j->all) : json_null(), "fit",
                  json_fit(j), "file", text_or_null(j->o->output), "ranking", json_ranking(j, r));
    if (!root || !found || json_object_update(root, found) != 0) {
        json_decref(root);
        root = NULL;
    }
    json_decref(found);
    return cli_json_print(root, err);
}

/* ---- both ---- */

fds_status value_show_plan(const value_job *j, fds_error *err) {
    if (j->o->common.json)
        return cli_json_print(json_plan(j, false), err);
    const value_game *const games[] = {&j->game, &j->surrogate};
    print_plan(j);
    for (size_t i = 0; i < CLI_COUNT(games) && games[i]->dir[0]; i++) {
        const value_game *g = games[i];
        char text[VALUE_NEED_SIZE], size[CLI_NUMBER_SIZE], left[CLI_NUMBER_SIZE];
        printf("%-*s %s\n", WIDTH, i ? g->kind : "to do", value_need_text(j, g, text));
        printf("%-*s %s%s (%s free)\n", WIDTH, "disk", j->is_baseline ? "up to " : "",
               cli_bytes(g->need.disk, size), cli_bytes(g->need.disk_free, left));
        if (i == 0 && !j->is_baseline)
            printf("%-*s %s\n", WIDTH, "memory", cli_bytes(value_memory(j), size));
        printf("%-*s %s\n", WIDTH, "table", g->dir);
    }
    if (j->o->output)
        printf("%-*s %s\n", WIDTH, "would write", j->o->output);
    return FDS_OK;
}

fds_status value_show(const value_job *j, fds_error *err) {
    ranking r = {0};
    fds_status status = ranking_make(j, &r, err);
    if (status == FDS_OK && j->o->common.json) {
        status = print_json(j, &r, err);
    } else if (status == FDS_OK) {
        print_summary(j);
        print_ranking(j, &r);
    }
    ranking_free(&r);
    return status;
}
