/* SPDX-License-Identifier: Apache-2.0
 * What every command that trains begins with: the data, the network, the test samples, the players;
 * and the warnings about what is missing in them. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum { PLAYERS_DEFAULT = 100, INPUTS_DEFAULT = 3000 };

void cli_setup_free(cli_setup *s) {
    fds_players_free(s->players);
    free(s->samples);
    free(s->held_samples);
    free(s->test_samples);
    free(s->inputs);
    fds_dataset_free(s->train);
    fds_dataset_free(s->test);
}

const fds_dataset *cli_setup_tested(const cli_setup *s) { return s->test ? s->test : s->train; }

const char *cli_setup_kind(const cli_setup *s) { return s->by_provider ? "providers" : "points"; }

void cli_setup_print(const cli_setup *s, int width) {
    printf("%-*s %s\n", width, "data", fds_dataset_get_info(s->train).source);
    if (s->weights)
        printf("%-*s %s, %zu weights\n", width, "network", s->network, s->weights);
    size_t count = fds_players_count(s->players);
    const char *kind = cli_setup_kind(s); /* "points" or "providers" */
    printf("%-*s %zu %.*s", width, "players", count, (int)strlen(kind) - (count == 1), kind);
    if (s->by_provider)
        printf(" with %zu samples", s->sample_count);
    putchar('\n');
}

json_t *cli_setup_json_players(const cli_setup *s) {
    return json_pack("{s:s, s:I, s:I}", "kind", cli_setup_kind(s), "count",
                     (json_int_t)fds_players_count(s->players), "samples",
                     (json_int_t)s->sample_count);
}

/* ---- before any work ---- */

fds_status cli_setup_check(cli_setup *s, fds_error *err) {
    const char *text = s->want.players;
    s->by_provider = text && strcmp(text, "providers") == 0;
    if (!text || s->by_provider || strcmp(text, "all") == 0)
        return FDS_OK;
    char *end;
    unsigned long long count = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || count < 1 || count > UINT32_MAX) {
        const char *const words[] = {"all", "providers", NULL};
        char hint[CLI_HINT_SIZE];
        return cli_fail(err, FDS_ERR_USAGE,
                        "--players %s: it must be a whole number from 1, \"all\" or "
                        "\"providers\"%s",
                        text, cli_hint(text, words, hint));
    }
    s->wanted = (size_t)count;
    return FDS_OK;
}

/* Makes the network once for nothing, so that a mistake in its text is known before the samples
 * are chosen. */
static fds_status check_network(cli_setup *s, fds_error *err) {
    const fds_dataset_info info = fds_dataset_get_info(s->train);
    s->network = s->want.model ? s->want.model : info.is_image ? "lenet5" : "mlp";
    fds_net *net = NULL;
    fds_status status = fds_net_create(s->network, info.shape, info.classes, &net, err);
    if (status == FDS_OK)
        s->weights = fds_net_weights(net);
    fds_net_free(net);
    const char *const presets[] = {"lenet5", "cnn", "mlp", "logistic", NULL};
    const char *nearest = cli_nearest(s->network, presets);
    if (status == FDS_ERR_USAGE && nearest && strcmp(nearest, s->network) != 0)
        return cli_fail(err, status, "--model %s: did you mean \"%s\"?", s->network, nearest);
    return status;
}

/* ---- the test samples ---- */

/* How many samples to hold back for testing where DATA has no test part: a fifth; but as the test
 * samples are balanced by class, not so many that a small class loses more than half. */
static size_t held_default(const fds_dataset_info *info, const size_t *by_class) {
    size_t smallest = SIZE_MAX, fifth = info->count / 5;
    for (uint32_t c = 0; c < info->classes; c++)
        if (by_class[c] >= 2 && by_class[c] < smallest)
            smallest = by_class[c];
    size_t most = smallest == SIZE_MAX ? 1 : smallest / 2 * info->classes;
    size_t held = fifth < most ? fifth : most;
    return held ? held : 1;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static fds_status choose_balanced(const cli_setup *s, const fds_dataset *from, size_t count,
                                  uint32_t **out, fds_error *err) {
    *out = cli_alloc(count, sizeof **out, err);
    if (!*out)
        return FDS_ERR_NOMEM;
    return fds_split_balanced(from, count, s->want.common->seed, *out, err);
}

static fds_status choose_held(cli_setup *s, const fds_dataset_info *info, fds_error *err) {
    s->held = (size_t)s->want.test_count;
    if (!s->held) {
        size_t *by_class = cli_alloc(info->classes, sizeof *by_class, err);
        if (!by_class)
            return FDS_ERR_NOMEM;
        for (size_t i = 0; i < info->count; i++)
            by_class[info->labels[i]]++;
        s->held = held_default(info, by_class);
        free(by_class);
    }
    if (s->held >= info->count)
        return cli_fail(err, FDS_ERR_USAGE,
                        "%s has %zu samples and no test part: holding %zu back for testing "
                        "leaves none to learn from",
                        info->source, info->count, s->held);
    return choose_balanced(s, s->train, s->held, &s->held_samples, err);
}

/* Balanced sets of one seed are nested: those tested are among those held back. */
static fds_status choose_test(cli_setup *s, fds_error *err) {
    const fds_dataset_info info = fds_dataset_get_info(cli_setup_tested(s));
    size_t count = (size_t)s->want.test_count, most = (size_t)s->want.test_most;
    if (!s->test)
        CLI_TRY(choose_held(s, &info, err));
    size_t have = s->test ? info.count : s->held;
    if (count > have)
        return cli_fail(err, FDS_ERR_USAGE, "%s %zu: the test part has only %zu samples",
                        s->want.test_option, count, have);
    if (!count)
        count = most && most < have ? most : have;
    s->test_count = count;
    if (s->test && count == info.count)
        return FDS_OK;
    return choose_balanced(s, cli_setup_tested(s), count, &s->test_samples, err);
}

/* ---- the players ---- */

/* The samples to learn from: count balanced ones, none of them held back. The balanced sets of one
 * seed are nested, so held + count samples contain the held ones, and the others are taken. */
static fds_status choose_samples(cli_setup *s, size_t count, fds_error *err) {
    CLI_TRY(choose_balanced(s, s->train, s->held + count, &s->samples, err));
    size_t next = 0;
    for (size_t i = 0; i < s->held + count; i++) {
        if (next < s->held && s->samples[i] == s->held_samples[next])
            next++;
        else
            s->samples[s->sample_count++] = s->samples[i];
    }
    return FDS_OK;
}

static size_t input_most(const cli_setup *s) {
    return s->want.input_most ? (size_t)s->want.input_most : INPUTS_DEFAULT;
}

/* How many samples must be left for an explainer: where the players would have all, as many as are
 * asked for, or a fifth. */
static size_t spare(const cli_setup *s, size_t have) {
    if (!s->want.has_inputs || s->wanted || !s->want.players)
        return 0;
    size_t fifth = have / 5;
    return s->want.input_count ? (size_t)s->want.input_count : least(fifth, input_most(s));
}

static fds_status choose_players(cli_setup *s, fds_error *err) {
    size_t have = fds_dataset_get_info(s->train).count - s->held, count = s->wanted;
    size_t spared = spare(s, have);
    if (spared >= have)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--inputs %zu: there are only %zu samples, and the players need some",
                        spared, have);
    have -= spared;
    if (count > have)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--players %zu: there are only %zu samples to choose from%s", count, have,
                        s->held ? " (the others are held back for testing)" : "");
    size_t most = s->want.player_most ? (size_t)s->want.player_most : PLAYERS_DEFAULT;
    if (!count)
        count = s->want.players ? have : least(s->want.has_inputs ? have / 2 : have, most);
    if (!count)
        return cli_fail(err, FDS_ERR_USAGE, "%zu samples are too few for players and an explainer",
                        have);
    CLI_TRY(choose_samples(s, count, err));
    return (s->by_provider ? fds_players_providers : fds_players_points)(
        s->train, s->samples, s->sample_count, &s->players, err);
}

/* ---- the inputs of an explainer ---- */

/* Balanced samples, none of them held back or a player's: once more the sets are nested. */
static fds_status choose_inputs(cli_setup *s, fds_error *err) {
    size_t used = s->held + s->sample_count;
    size_t left = fds_dataset_get_info(s->train).count - used, count = (size_t)s->want.input_count;
    if (count > left || !left)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--inputs: besides those of the players%s there are %zu samples for the "
                        "explainer to learn from; choose fewer --inputs or --players",
                        s->held ? " and those held back for testing" : "", left);
    if (!count)
        count = least(left, input_most(s));
    CLI_TRY(choose_balanced(s, s->train, used + count, &s->inputs, err));
    size_t held = 0, sample = 0;
    for (size_t i = 0; i < used + count; i++) {
        if (held < s->held && s->inputs[i] == s->held_samples[held])
            held++;
        else if (sample < s->sample_count && s->inputs[i] == s->samples[sample])
            sample++;
        else
            s->inputs[s->input_count++] = s->inputs[i];
    }
    return FDS_OK;
}

/* ---- warnings ---- */

/* Holding samples back may take all that a small provider has. */
static void warn_of_missing_providers(const cli_setup *s, cli_term *term) {
    size_t players = fds_players_count(s->players);
    uint32_t providers = fds_dataset_get_info(s->train).providers;
    if (s->by_provider && players < providers)
        cli_warn(term,
                 "%zu of %u providers have no sample to learn from: all of theirs are held back "
                 "for testing%s",
                 providers - players, providers, s->inputs ? " or for the explainer" : "");
}

/* A class without samples cannot be learnt: a surprise better told before than found later. */
static fds_status warn_of_missing_classes(const cli_setup *s, cli_term *term, fds_error *err) {
    const fds_dataset_info info = fds_dataset_get_info(s->train);
    bool *has = cli_alloc(info.classes, sizeof *has, err);
    if (!has)
        return FDS_ERR_NOMEM;
    uint32_t missing = 0, first = 0;
    for (size_t i = 0; i < s->sample_count; i++)
        has[info.labels[s->samples[i]]] = true;
    for (uint32_t c = info.classes; c-- > 0;) {
        if (!has[c]) {
            first = c;
            missing++;
        }
    }
    free(has);
    char name[CLI_NAME_SIZE];
    if (missing)
        cli_warn(term, "%u of %u classes have no sample to learn from, the first is \"%s\"",
                 missing, info.classes, cli_name(fds_dataset_class_name(s->train, first), 0, name));
    return FDS_OK;
}

/* ---- all of it ---- */

fds_status cli_setup_make(cli_setup *s, cli_term *term, fds_error *err) {
    CLI_TRY(cli_open_data(s->want.common->operand, s->want.data, &s->train, &s->test, err));
    if (!s->want.no_network)
        CLI_TRY(check_network(s, err));
    CLI_TRY(choose_test(s, err));
    CLI_TRY(choose_players(s, err));
    if (s->want.has_inputs)
        CLI_TRY(choose_inputs(s, err));
    if (!term)
        return FDS_OK;
    CLI_TRY(warn_of_missing_classes(s, term, err));
    warn_of_missing_providers(s, term);
    if (s->held)
        cli_note(term, "the data has no test part: %zu samples are held back for testing", s->held);
    return FDS_OK;
}
