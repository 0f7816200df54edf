/* SPDX-License-Identifier: Apache-2.0
 *
 * The problem: who the players are, which samples test, which an explainer learns from. All are
 * parts of the balanced list of one seed (split.c): its first T samples are test samples, where the
 * data has no test part, the next P belong to players, and the next I are the training inputs of an
 * explainer. With `test_balance` no, test samples are the first ones of the proportional list, and the
 * others those of the balanced list of what remains. With `inputs_from` test, the first I samples of the
 * balanced list of the test part are inputs, and test samples come from what remains. */
#include "data/data.h"

#include <stdlib.h>
#include <string.h>

enum { PLAYERS = 100, TESTS = 200, INPUTS = 6000, BENCH_INPUTS = 2000 };
enum { QUICK_PLAYERS = 30, QUICK_TESTS = 20, QUICK_INPUTS = 300 };

/* A problem while it is made. */
typedef struct {
    fds_problem *p;
    const fds_params *params;
    const fds_events *events;
    bool has_inputs; /* an explainer needs some */
    bool from_test;  /* and they are of the test part */
    uint32_t *aside; /* (set_aside) of a proportional list, ascending; or NULL */
    size_t wanted;   /* players, where a number is given */
} making;

void fds_problem_free(fds_problem *p) {
    if (!p)
        return;
    fds_players_free(p->players);
    fds_groups_free(p->groups);
    fds__identities_free(p->identities);
    fds__free(p->samples);
    fds__free(p->tests);
    fds__free(p->test_labels);
    fds__free(p->inputs);
    fds__free(p->player_labels);
    fds__free(p->text);
    fds_dataset_free(p->own_train);
    fds_dataset_free(p->own_test);
    fds__free(p);
}

/* ---- parameters ---- */

static fds_status check_index(const making *m, fds_error *err) {
    const fds_params *p = m->params;
    return p->index && p->test
               ? fds__fail(err, FDS_ERR_USAGE,
                           "`index` and `test` exclude each other: `index` names the test samples, "
                           "`test` says how many to choose")
               : FDS_OK;
}

static fds_status read_players(making *m, fds_error *err) {
    const char *text = m->params->players;
    bool has_providers = text && strcmp(text, "providers") == 0,
         is_points = m->params->group_value == 1;
    m->p->by_provider = has_providers && !is_points;
    m->p->by_points = has_providers && is_points;
    if (is_points && !has_providers)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`group_value` points needs `players` providers: it adds up the values of "
                         "their samples");
    if (m->p->by_points && m->p->train && !m->p->train->provider_ids)
        return fds__fail(err, FDS_ERR_USAGE, "`players` providers: %s names no providers",
                         m->p->train->source);
    if (!text || has_providers || strcmp(text, "all") == 0)
        return FDS_OK;
    char *end;
    unsigned long long count = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || count < 1 || count > UINT32_MAX) {
        const char *const words[] = {"all", "providers", NULL};
        char hint[FDS__HINT];
        return fds__fail(err, FDS_ERR_USAGE,
                         "`players` must be a whole number from 1, all or providers (got %.100s)%s",
                         text, fds__hint(text, words, hint));
    }
    m->wanted = (size_t)count;
    return FDS_OK;
}

/* The default of a job, or the smaller one with the parameter quick. */
static size_t usual(const making *m, size_t count, size_t quick) {
    return m->params->quick ? quick : count;
}

static size_t most_inputs(const making *m) {
    return usual(m, m->params->job == FDS__JOB_BENCH ? BENCH_INPUTS : INPUTS, QUICK_INPUTS);
}

/* Whether an explainer needs samples that players could have. */
static bool competes(const making *m) { return m->has_inputs && !m->from_test; }

static bool is_changing(const making *m) {
    return m->params->job == FDS__JOB_FIT && m->params->changing == 1;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Test samples are inputs and normalise: those of a player could not be forgotten. */
static fds_status check_test_owners(const fds_dataset *train, const fds_dataset *test,
                                    fds_error *err) {
    OWNED const char **names = NULL;
    size_t count = 0;
    if (!train->provider_ids || !test->provider_ids)
        return FDS_OK;
    OWNED bool *has_samples = fds__alloc_zero(train->providers, 1);
    TRY(NEW(names, train->providers, err));
    if (!has_samples)
        return fds__fail_nomem(err, train->providers);
    for (size_t i = 0; i < train->count; i++)
        has_samples[train->provider_ids[i]] = true;
    for (uint32_t i = 0; i < train->providers; i++)
        if (has_samples[i])
            names[count++] = train->provider_names[i];
    qsort(names, count, sizeof *names, by_text);
    for (size_t i = 0; i < test->count; i++) {
        const char *name = fds_dataset_provider_name(test, test->provider_ids[i]);
        if (bsearch(&name, names, count, sizeof name, by_text))
            return fds__fail(err, FDS_ERR_USAGE,
                             "`changing` needs a test part that belongs to no player: its sample "
                             "%zu is of \"%.60s\", whose data could not be removed from the "
                             "inputs and the normalisation",
                             i, name);
    }
    return FDS_OK;
}

/* What other samples, inputs or features would depend on when some come or go. */
static fds_status check_changing(const making *m, fds_error *err) {
    const fds_params *p = m->params;
    if (!is_changing(m))
        return FDS_OK;
    if (m->wanted || !p->players)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`changing` needs `players` all or providers: which N samples are players "
                         "depends on all of them");
    if (fds__is_given(p, inputs_from) && p->inputs_from == 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`changing` needs `inputs_from` test: which samples players leave to the "
                         "explainer depends on all of them");
    if (p->cluster)
        return fds__fail(err, FDS_ERR_USAGE, "`cluster` does not apply with `changing`");
    if (m->p->has_test_part)
        TRY(check_test_owners(m->p->train, m->p->test, err));
    if (m->p->train && fds__preparation_learns(m->p->train->preparation))
        return fds__fail(err, FDS_ERR_USAGE,
                         "`changing` needs columns of numbers without missing values: levels of "
                         "text and means in the place of missing values depend on all rows of %s",
                         m->p->train->source);
    return FDS_OK;
}

/* ---- test samples ---- */

/* The number of test samples where the data has no test part: a fifth. As test samples are balanced
 * by class, there are never so many that a small class loses more than half. */
static fds_status count_set_aside(making *m, fds_error *err) {
    const fds_dataset *ds = m->p->train;
    m->p->set_aside = (size_t)m->params->test;
    if (!m->p->set_aside && m->p->is_proportional)
        m->p->set_aside = MAX(ds->count / 5, (size_t)1);
    if (m->p->set_aside)
        return FDS_OK;
    size_t *by_class = fds__alloc_zero(ds->classes, sizeof *by_class), smallest = SIZE_MAX;
    if (!by_class)
        return fds__fail_nomem(err, ds->classes * sizeof *by_class);
    for (size_t i = 0; i < ds->count; i++)
        by_class[ds->labels[i]]++;
    for (uint32_t c = 0; c < ds->classes; c++)
        if (by_class[c] >= 2)
            smallest = MIN(smallest, by_class[c]);
    fds__free(by_class);
    size_t most = smallest == SIZE_MAX ? 1 : smallest / 2 * ds->classes;
    m->p->set_aside = MAX(MIN(ds->count / 5, most), (size_t)1);
    return FDS_OK;
}

static fds_status choose(const making *m, const fds_dataset *ds, const fds__split_how *how,
                         size_t first, size_t count, uint32_t **out, fds_error *err) {
    fds__split_how seeded = *how;
    seeded.seed = m->params->seed;
    *out = fds__alloc_zero(count, sizeof **out);
    return *out ? fds__split(ds, &seeded, first, count, *out, err)
                : fds__fail_nomem(err, count * sizeof **out);
}

/* Samples of train that are not set aside, from number first on. */
static fds_status choose_rest(const making *m, size_t first, size_t count, uint32_t **out,
                              fds_error *err) {
    const fds_problem *p = m->p;
    if (m->aside)
        return choose(m, p->train, &(fds__split_how){.without = m->aside, .left_out = p->set_aside},
                      first, count, out, err);
    return choose(m, p->train, &(fds__split_how){0}, p->set_aside + first, count, out, err);
}

/* The samples of the parameter index, in its order. */
static fds_status take_named(making *m, fds_error *err) {
    fds_problem *p = m->p;
    p->has_named_tests = true;
    TRY(fds__samples_list(m->params->index, &p->tests, &p->test_count, err));
    for (size_t i = 0; i < p->test_count; i++)
        if (p->tests[i] >= p->test->count)
            return fds__fail(err, FDS_ERR_USAGE, "`index` %u: %s has samples 0 to %zu", p->tests[i],
                             p->has_test_part ? "the test part" : "the data", p->test->count - 1);
    return FDS_OK;
}

/* Training inputs from the test part: as many as the parameter inputs says, or at most half. */
static fds_status choose_inputs_of_test(making *m, fds_error *err) {
    fds_problem *p = m->p;
    if (!p->has_test_part)
        return fds__fail(err, FDS_ERR_USAGE, "%s: %s has no test part",
                         is_changing(m) ? "`changing` yes" : "`inputs_from` test",
                         p->train->source);
    size_t have = p->test->count, count = (size_t)m->params->inputs;
    if (count >= have)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`inputs` must be below %zu, the size of the test part (got %zu)", have,
                         count);
    p->inputs_of_test = true;
    p->input_count = count ? count : MIN(have / 2, most_inputs(m));
    if (!p->input_count)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`inputs_from` test: a test part of one sample cannot be divided");
    return choose(m, p->test, &(fds__split_how){0}, 0, p->input_count, &p->inputs, err);
}

/* As many as the parameter test says, balanced by class or by the frequencies of classes. */
static fds_status choose_some(making *m, size_t have, fds_error *err) {
    fds_problem *p = m->p;
    size_t count = (size_t)m->params->test, most = SIZE_MAX,
           taken = m->from_test ? p->input_count : 0;
    have -= taken;
    if (count > have)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`test` must be at most %zu, the size of the test part%s (got %zu)", have,
                         taken ? " without the training inputs" : "", count);
    if (m->params->job == FDS__JOB_VALUE || m->params->job == FDS__JOB_BENCH)
        most = usual(m, TESTS, QUICK_TESTS);
    p->test_count = count ? count : MIN(most, have);
    const fds__split_how how = {.is_proportional = p->is_proportional,
                                .without = taken ? p->inputs : NULL,
                                .left_out = taken};
    return choose(m, p->test, &how, 0, p->test_count, &p->tests, err);
}

static fds_status choose_tests(making *m, fds_error *err) {
    fds_problem *p = m->p;
    size_t have = p->test->count;
    if (!p->has_test_part) {
        TRY(count_set_aside(m, err));
        have = p->set_aside;
        if (have >= p->train->count)
            return fds__fail(err, FDS_ERR_USAGE,
                             "%s has %zu samples and no test part: %zu test samples leave none to "
                             "learn from",
                             p->train->source, p->train->count, have);
        if (p->is_proportional)
            TRY(choose(m, p->train, &(fds__split_how){.is_proportional = true}, 0, have, &m->aside,
                       err));
    }
    TRY(m->params->index ? take_named(m, err) : choose_some(m, have, err));
    p->test_labels = fds__alloc_zero(p->test_count, sizeof *p->test_labels);
    if (!p->test_labels)
        return fds__fail_nomem(err, p->test_count * sizeof *p->test_labels);
    for (size_t i = 0; i < p->test_count; i++)
        p->test_labels[i] = p->test->labels[p->tests[i]];
    return FDS_OK;
}

/* ---- players and training inputs ---- */

/* How many samples must remain for an explainer where the players would have all: the parameter
 * inputs, or a fifth. */
static size_t spare(const making *m, size_t have) {
    if (!competes(m) || m->wanted || !m->params->players)
        return 0;
    return m->params->inputs ? (size_t)m->params->inputs : MIN(have / 5, most_inputs(m));
}

static fds_status count_players(const making *m, size_t *out, fds_error *err) {
    const fds_params *params = m->params;
    size_t have = m->p->train->count - m->p->set_aside, spared = spare(m, have);
    if (spared >= have)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`inputs` must be below %zu, the number of samples, because players need "
                         "some (got %zu)",
                         have, spared);
    have -= spared;
    if (m->wanted > have)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`players` must be at most %zu, the number of samples%s (got %zu)", have,
                         m->p->set_aside ? " besides the test samples" : "", m->wanted);
    size_t half = competes(m) ? have / 2 : have;
    *out = m->wanted         ? m->wanted
           : params->players ? have
                             : MIN(half, usual(m, PLAYERS, QUICK_PLAYERS));
    if (!*out)
        return fds__fail(err, FDS_ERR_USAGE, "%zu samples are too few for players and an explainer",
                         have);
    return FDS_OK;
}

static fds_status count_inputs(const making *m, size_t used, size_t *out, fds_error *err) {
    size_t left = m->p->train->count - used, count = (size_t)m->params->inputs;
    if (!competes(m))
        return FDS_OK;
    if (!left)
        return fds__fail(
            err, FDS_ERR_USAGE,
            "`players` leaves no samples for an explainer to learn from; choose fewer");
    if (count > left)
        return fds__fail(err, FDS_ERR_USAGE,
                         "`inputs` must be at most %zu, the number of samples besides those of the "
                         "players%s (got %zu); choose fewer `players`",
                         left, m->p->set_aside ? " and the test samples" : "", count);
    *out = count ? count : MIN(left, most_inputs(m));
    return FDS_OK;
}

static fds_status choose_samples(making *m, fds_error *err) {
    fds_problem *p = m->p;
    TRY(count_players(m, &p->sample_count, err));
    size_t used = p->set_aside + p->sample_count;
    TRY(count_inputs(m, used, &p->input_count, err));
    TRY(choose_rest(m, 0, p->sample_count, &p->samples, err));
    return p->input_count && !p->inputs
               ? choose_rest(m, p->sample_count, p->input_count, &p->inputs, err)
               : FDS_OK;
}

fds_status fds__players_labels(const fds_dataset *ds, const fds_players *players, uint32_t *labels,
                               fds_error *err) {
    size_t *counts = fds__alloc_zero(ds->classes, sizeof *counts);
    if (!counts)
        return fds__fail_nomem(err, ds->classes * sizeof *counts);
    for (size_t p = 0; p < fds_players_count(players); p++) {
        const uint32_t *index;
        size_t count = fds_players_samples(players, p, &index);
        uint32_t best = ds->labels[index[0]];
        for (size_t i = 0; i < count; i++) {
            uint32_t label = ds->labels[index[i]];
            counts[label]++;
            if (counts[label] > counts[best] || (counts[label] == counts[best] && label < best))
                best = label;
        }
        for (size_t i = 0; i < count; i++)
            counts[ds->labels[index[i]]] = 0;
        labels[p] = best;
    }
    fds__free(counts);
    return FDS_OK;
}

static fds_status make_players(making *m, fds_error *err) {
    fds_problem *p = m->p;
    TRY(p->by_provider
            ? fds_players_providers(p->train, p->samples, p->sample_count, &p->players, err)
            : fds_players_points(p->train, p->samples, p->sample_count, &p->players, err));
    size_t n = fds_players_count(p->players);
    p->player_labels = fds__alloc_zero(n, sizeof *p->player_labels);
    if (!p->player_labels)
        return fds__fail_nomem(err, n * sizeof *p->player_labels);
    return fds__players_labels(p->train, p->players, p->player_labels, err);
}

/* Samples of data without a test part must not belong to players. */
static fds_status check_tests(const making *m, fds_error *err) {
    const fds_problem *p = m->p;
    for (size_t i = 0; p->has_named_tests && !p->has_test_part && i < p->test_count; i++)
        if (fds__samples_has(p->samples, p->sample_count, p->tests[i]))
            return fds__fail(err, FDS_ERR_USAGE,
                             "`index` %u: the sample belongs to a player, and sub-models that were "
                             "trained on it would be tested on it; choose others",
                             p->tests[i]);
    return FDS_OK;
}

/* ---- warnings ---- */

static void warn_of_providers(const making *m) {
    const fds_problem *p = m->p;
    size_t players = fds_players_count(p->players);
    if (p->by_provider && players < p->train->providers)
        fds__log(m->events, FDS_LOG_WARNING,
                 "%zu of %u providers have no sample to learn from: all of theirs are test "
                 "samples%s",
                 p->train->providers - players, p->train->providers,
                 p->inputs ? " or training inputs of the explainer" : "");
}

static fds_status warn_of_classes(const making *m, fds_error *err) {
    const fds_problem *p = m->p;
    bool *has = fds__alloc_zero(p->train->classes, sizeof *has);
    if (!has)
        return fds__fail_nomem(err, p->train->classes);
    uint32_t missing = 0, first = 0;
    for (size_t i = 0; i < p->sample_count; i++)
        has[p->train->labels[p->samples[i]]] = true;
    for (uint32_t c = p->train->classes; c-- > 0;)
        if (!has[c]) {
            first = c;
            missing++;
        }
    fds__free(has);
    if (missing)
        fds__log(m->events, FDS_LOG_WARNING,
                 "%u of %u classes have no sample to learn from, the first is \"%s\"", missing,
                 p->train->classes, fds_dataset_class_name(p->train, first));
    return FDS_OK;
}

/* ---- making one ---- */

static fds_status warn(const making *m, fds_error *err) {
    if (!m->events)
        return FDS_OK;
    TRY(warn_of_classes(m, err));
    warn_of_providers(m);
    return FDS_OK;
}

static fds_status make(making *m, fds_error *err) {
    TRY(check_index(m, err));
    TRY(read_players(m, err));
    TRY(check_changing(m, err));
    if (m->from_test)
        TRY(choose_inputs_of_test(m, err));
    TRY(choose_tests(m, err));
    TRY(choose_samples(m, err));
    TRY(check_tests(m, err));
    TRY(make_players(m, err));
    TRY(warn(m, err));
    if (!m->p->has_test_part && m->p->has_named_tests)
        fds__log(m->events, FDS_LOG_INFO,
                 "the data has no test part: `index` counts all of its samples");
    else if (!m->p->has_test_part)
        fds__log(m->events, FDS_LOG_INFO,
                 "the data has no test part: %zu samples are set aside for testing",
                 m->p->set_aside);
    return FDS_OK;
}

/* ---- samples that the caller names ---- */

static fds_status copy_numbers(const fds_dataset *ds, const uint32_t *index, size_t count,
                               const char *what, uint32_t **out, fds_error *err) {
    for (size_t i = 0; i < count; i++)
        if (index[i] >= ds->count || (i && index[i] <= index[i - 1]))
            return fds__fail(err, FDS_ERR_USAGE,
                             "%s must be ascending numbers of samples below %zu (got %u)", what,
                             ds->count, index[i]);
    TRY(NEW(*out, count, err));
    memcpy(*out, index, count * sizeof *index);
    return FDS_OK;
}

/* All samples of the test data. */
static fds_status take_all_tests(fds_problem *p, fds_error *err) {
    p->test_count = p->test->count;
    TRY(NEW(p->tests, p->test_count, err));
    TRY(NEW(p->test_labels, p->test_count, err));
    for (size_t i = 0; i < p->test_count; i++) {
        p->tests[i] = (uint32_t)i;
        p->test_labels[i] = p->test->labels[i];
    }
    return FDS_OK;
}

static fds_status make_selected(making *m, const fds_selection *chosen, fds_error *err) {
    fds_problem *p = m->p;
    TRY(read_players(m, err));
    if (is_changing(m))
        return fds__fail(err, FDS_ERR_USAGE,
                         "`changing` needs data of files, which can be read again");
    p->sample_count = chosen->sample_count;
    p->input_count = m->has_inputs ? chosen->input_count : 0;
    if (!p->sample_count)
        return fds__fail(err, FDS_ERR_USAGE, "a problem needs samples of players");
    if (!p->has_test_part && !m->has_inputs)
        return fds__fail(err, FDS_ERR_USAGE, "a problem needs test samples");
    TRY(copy_numbers(p->train, chosen->samples, p->sample_count, "samples of players", &p->samples,
                     err));
    if (p->input_count)
        TRY(copy_numbers(p->train, chosen->inputs, p->input_count, "training inputs", &p->inputs,
                         err));
    if (p->has_test_part)
        TRY(take_all_tests(p, err));
    TRY(make_players(m, err));
    if (chosen->groups && fds_groups_players(chosen->groups) != fds_players_count(p->players))
        return fds__fail(err, FDS_ERR_USAGE, "groups of %zu players: there are %zu",
                         fds_groups_players(chosen->groups), fds_players_count(p->players));
    if (chosen->groups)
        TRY(fds__groups_copy(chosen->groups, &p->groups, err));
    return warn(m, err);
}

/* ---- all of it ---- */

/* chosen NULL: as params say. */
static fds_status create(const fds_dataset *train, const fds_dataset *test,
                         const fds_selection *chosen, const fds_params *params,
                         const fds_events *events, fds_problem **out, fds_error *err) {
    fds_problem *p = fds__alloc_zero(1, sizeof *p);
    if (!p)
        return fds__fail_nomem(err, sizeof *p);
    p->train = train;
    p->test = test ? test : train;
    p->has_test_part = test != NULL;
    p->is_proportional = params->test_balance == 1;
    making m = {.p = p,
                .params = params,
                .events = events,
                .has_inputs = params->job == FDS__JOB_FIT || params->job == FDS__JOB_BENCH,
                .from_test = params->job == FDS__JOB_FIT &&
                             (params->inputs_from == 1 || params->changing == 1)};
    fds_status status = chosen ? make_selected(&m, chosen, err) : make(&m, err);
    if (status == FDS_OK && is_changing(&m))
        status =
            fds__identities_create(train, p->players, p->by_provider, events, &p->identities, err);
    fds__free(m.aside);
    if (status != FDS_OK)
        fds_problem_free(p);
    else
        *out = p;
    return status;
}

static fds_status check_classes(const fds_dataset *train, const fds_dataset *test, fds_error *err) {
    if (train->classes != test->classes)
        return fds__fail(err, FDS_ERR_SHAPE, "training samples have %u classes, test samples %u",
                         train->classes, test->classes);
    for (uint32_t c = 0; !train->targets && c < train->classes; c++)
        if (strcmp(train->class_names[c], test->class_names[c]) != 0)
            return fds__fail(err, FDS_ERR_SHAPE,
                             "class %u is \"%.100s\" in the training data, \"%.100s\" in the test "
                             "data",
                             c, train->class_names[c], test->class_names[c]);
    return FDS_OK;
}

static fds_status check_data(const fds_dataset *train, const fds_dataset *test,
                             const fds_params *params, fds_error *err) {
    if (!train || !params)
        return fds__fail(err, FDS_ERR_USAGE, "a problem needs training data and parameters");
    if (!test)
        return FDS_OK;
    TRY(fds__dataset_check_pair(train, test, err));
    return check_classes(train, test, err);
}

fds_status fds_problem_create(const fds_dataset *train, const fds_dataset *test,
                              const fds_params *params, const fds_events *events, fds_problem **out,
                              fds_error *err) {
    TRY(check_data(train, test, params, err));
    return create(train, test, NULL, params, events, out, err);
}

fds_status fds_problem_select(const fds_dataset *train, const fds_dataset *test,
                              const fds_selection *chosen, const fds_params *params,
                              const fds_events *events, fds_problem **out, fds_error *err) {
    TRY(check_data(train, test, params, err));
    return create(train, test, chosen, params, events, out, err);
}

fds_status fds_problem_open(const fds_params *params, const fds_events *events, fds_problem **out,
                            fds_error *err) {
    fds_dataset *train = NULL, *test = NULL;
    if (!params || !params->data)
        return fds__fail(err, FDS_ERR_USAGE, "`data` is missing: name a fetched set or a path");
    fds_problem asked = {0};
    making m = {.p = &asked, .params = params};
    TRY(check_index(&m, err)); /* before any reading */
    TRY(read_players(&m, err));
    TRY(check_changing(&m, err));
    if (params->job == FDS__JOB_TRAIN)
        TRY(fds__params_check(params, "train", NULL, err));
    TRY(fds_data_open(params->data, params, events, &train, &test, err));
    fds_status status = params->cluster ? fds__clusters_apply(params->cluster, train, err) : FDS_OK;
    if (status == FDS_OK)
        status = create(train, test, NULL, params, events, out, err);
    if (status != FDS_OK) {
        fds_dataset_free(train);
        fds_dataset_free(test);
        return status;
    }
    (*out)->own_train = train;
    (*out)->own_test = test;
    return FDS_OK;
}
