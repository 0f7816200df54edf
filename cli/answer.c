/* SPDX-License-Identifier: Apache-2.0
 * From a run and the names of inputs to the values of all players. */
#include "answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK = 64, /* inputs between two looks at progress and signals */
    MOST_INPUTS = 1000000,
    WIDTH = 8,
    PLAYER_WIDTH = 20,
    LABEL_WIDTH = 10,
    PROVIDER_WIDTH = 12,
};

void answer_free(answer *a) {
    free(a->index);
    free(a->truth);
    free(a->answers.labels);
    free(a->answers.probs);
    free(a->answers.full);
    free(a->answers.empty);
    free(a->answers.values);
    free(a->answers.errors);
    free(a->bank_values);
    free(a->bank_errors);
    fds_dataset_free(a->train);
    fds_dataset_free(a->test);
    fds_dataset_free(a->pictures);
    fds_run_free(a->run);
}

/* ---- before any work ---- */

fds_status answer_check(const answer *a, fds_error *err) {
    const fds_data_options *d = a->data;
    size_t pictures = a->common->more_count;
    if (pictures && a->ask->index)
        return cli_fail(err, FDS_ERR_USAGE,
                        "\"%s\" and --index: give pictures or --index, not both",
                        a->common->more[0]);
    if (!pictures && !a->ask->index)
        return cli_fail(err, FDS_ERR_USAGE,
                        "what is to be explained is missing: name pictures, or samples of the "
                        "data: --index 0");
    if (pictures && d->label_column)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--label names a column of the data and belongs to --index; to explain "
                        "another label than the predicted one: --target %s",
                        d->label_column);
    const char *wrong = a->ask->from         ? "data"
                        : d->provider_column ? "provider"
                        : d->labels_file     ? "labels"
                                             : NULL;
    if (pictures && wrong)
        return cli_fail(err, FDS_ERR_USAGE, "--%s belongs to --index, which is missing", wrong);
    return FDS_OK;
}

fds_status answer_check_output(const answer *a, const char *option, const char *path,
                               fds_error *err) {
    for (size_t i = 0; i < a->common->more_count; i++)
        CLI_TRY(cli_check_output(option, path, a->common->more[i], err));
    return cli_check_output(option, path, a->common->operand, err);
}

/* ---- which samples ---- */

static fds_status fail_index(const char *text, fds_error *err) {
    return cli_fail(err, FDS_ERR_USAGE,
                    "--index %s: it must be a number, a range such as 0..9, or several of them "
                    "with commas between",
                    text);
}

/* A number from 0 to 2^32-1 at *at, which is moved behind it. */
static bool read_number(const char **at, uint64_t *out) {
    size_t digits = strspn(*at, "0123456789");
    if (digits < 1 || digits > 10)
        return false;
    *out = strtoull(*at, NULL, 10);
    *at += digits;
    return *out <= UINT32_MAX;
}

/* Counts the samples of "3,5..9", and puts them into out where it is not NULL. */
static fds_status list_samples(const char *text, uint32_t *out, size_t *count, fds_error *err) {
    const char *at = text;
    *count = 0;
    for (;;) {
        uint64_t first, last;
        if (!read_number(&at, &first))
            return fail_index(text, err);
        last = first;
        if (strncmp(at, "..", 2) == 0) {
            at += 2;
            if (!read_number(&at, &last) || last < first)
                return fail_index(text, err);
        }
        if (last - first >= MOST_INPUTS || *count + (last - first) >= MOST_INPUTS)
            return cli_fail(err, FDS_ERR_USAGE, "--index %s: at most %d samples at a time", text,
                            MOST_INPUTS);
        for (uint64_t i = first; i <= last; i++, ++*count)
            if (out)
                out[*count] = (uint32_t)i;
        if (!*at)
            return FDS_OK;
        if (*at++ != ',')
            return fail_index(text, err);
    }
}

static fds_status open_data(answer *a, fds_error *err) {
    const char *where = a->ask->from ? a->ask->from : a->info.source;
    fds_status status = cli_open_data(where, a->data, &a->train, &a->test, err);
    if (status == FDS_ERR_NOT_FOUND && !a->ask->from)
        return cli_fail(err, status, "%s; if the data has moved: --data DATA", err->text);
    CLI_TRY(status);
    CLI_TRY(fds_run_check_data(a->run, a->train, err));
    a->inputs = a->test ? a->test : a->train;
    if (!a->test)
        cli_note(a->term, "the data has no test part: --index counts all of its samples");
    return FDS_OK;
}

static fds_status open_samples(answer *a, fds_error *err) {
    CLI_TRY(list_samples(a->ask->index, NULL, &a->count, err));
    CLI_TRY(open_data(a, err));
    const fds_dataset_info info = fds_dataset_get_info(a->inputs);
    a->index = cli_alloc(a->count, sizeof *a->index, err);
    a->truth = cli_alloc(a->count, sizeof *a->truth, err);
    if (!a->index || !a->truth)
        return FDS_ERR_NOMEM;
    CLI_TRY(list_samples(a->ask->index, a->index, &a->count, err));
    for (size_t i = 0; i < a->count; i++) {
        if (a->index[i] >= info.count)
            return cli_fail(err, FDS_ERR_USAGE, "--index %u: %s has samples 0 to %zu", a->index[i],
                            a->test ? "the test part" : "the data", info.count - 1);
        a->truth[i] = info.labels[a->index[i]];
    }
    return FDS_OK;
}

static fds_status open_pictures(answer *a, fds_error *err) {
    if (!a->info.is_image)
        return cli_fail(err, FDS_ERR_USAGE,
                        "%s was fitted on feature vectors, not on images: choose samples of the "
                        "data with --index",
                        a->common->operand);
    a->count = a->common->more_count;
    a->index = cli_alloc(a->count, sizeof *a->index, err);
    if (!a->index)
        return FDS_ERR_NOMEM;
    for (size_t i = 0; i < a->count; i++)
        a->index[i] = (uint32_t)i;
    CLI_TRY(fds_data_pictures(a->common->more, a->count, a->info.shape, a->info.classes,
                              &a->pictures, err));
    a->inputs = a->pictures;
    return FDS_OK;
}

/* ---- who answers ---- */

static fds_status check_answerer(answer *a, fds_error *err) {
    bool is_bank = strcmp(a->info.explainer, "bank") == 0;
    if (is_bank && a->is_checked)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--check: in %s the sub-models answer themselves, and there is no "
                        "explainer to be checked",
                        a->common->operand);
    if (is_bank)
        a->by = FDS_ANSWERER_BANK;
    if ((a->is_checked || a->by == FDS_ANSWERER_BANK) && !a->info.has_bank)
        return cli_fail(err, FDS_ERR_USAGE,
                        "%s: %s has no sub-models to answer; keep them: fds fit ... --keep-models",
                        a->is_checked ? "--check" : "--by bank", a->common->operand);
    return FDS_OK;
}

fds_status answer_open(answer *a, fds_error *err) {
    CLI_TRY(fds_run_open(a->common->operand, answer_threads(a), &a->run, err));
    a->info = fds_run_get_info(a->run);
    CLI_TRY(check_answerer(a, err));
    return a->ask->index ? open_samples(a, err) : open_pictures(a, err);
}

/* ---- which label ---- */

static fds_status fail_target(const answer *a, fds_error *err) {
    char hint[CLI_HINT_SIZE];
    uint32_t classes = a->info.classes;
    const char **names = cli_alloc((size_t)classes + 3, sizeof *names, err);
    if (!names)
        return FDS_ERR_NOMEM;
    for (uint32_t c = 0; c < classes; c++)
        names[c] = fds_run_class_name(a->run, c);
    names[classes] = "predicted";
    names[classes + 1] = "true";
    fds_status status =
        cli_fail(err, FDS_ERR_USAGE,
                 "--target %s: it must be predicted, true or one of the run's %u classes%s",
                 a->ask->target, classes, cli_hint(a->ask->target, names, hint));
    free(names);
    return status;
}

/* Fills in the labels; *is_given: they are not to be the predicted ones. */
static fds_status choose_labels(answer *a, bool *is_given, fds_error *err) {
    const char *target = a->ask->target ? a->ask->target : "predicted";
    *is_given = strcmp(target, "predicted") != 0;
    if (!*is_given)
        return FDS_OK;
    if (strcmp(target, "true") == 0) {
        if (!a->truth)
            return cli_fail(err, FDS_ERR_USAGE,
                            "--target true: the true labels of pictures are not known");
        memcpy(a->answers.labels, a->truth, a->count * sizeof *a->truth);
        return FDS_OK;
    }
    uint32_t label = 0;
    while (label < a->info.classes && strcmp(fds_run_class_name(a->run, label), target) != 0)
        label++;
    if (label == a->info.classes)
        return fail_target(a, err);
    for (size_t i = 0; i < a->count; i++)
        a->answers.labels[i] = label;
    return FDS_OK;
}

/* ---- answering ---- */

static fds_status make_arrays(answer *a, fds_error *err) {
    fds_answers *r = &a->answers;
    size_t values = a->count * a->info.players; /* below 2^20 * 2^32 */
    r->labels = cli_alloc(a->count, sizeof *r->labels, err);
    r->probs = cli_alloc(a->count, a->info.classes * sizeof *r->probs, err);
    r->full = cli_alloc(a->count, sizeof *r->full, err);
    r->empty = cli_alloc(a->count, sizeof *r->empty, err);
    r->values = cli_alloc(values, sizeof *r->values, err);
    r->errors = cli_alloc(values, sizeof *r->errors, err);
    if (!r->labels || !r->probs || !r->full || !r->empty || !r->values || !r->errors)
        return FDS_ERR_NOMEM;
    if (!a->is_checked)
        return FDS_OK;
    a->bank_values = cli_alloc(values, sizeof *a->bank_values, err);
    a->bank_errors = cli_alloc(values, sizeof *a->bank_errors, err);
    return a->bank_values && a->bank_errors ? FDS_OK : FDS_ERR_NOMEM;
}

static fds_status solve_chunk(answer *a, size_t first, size_t count, bool is_given,
                              fds_error *err) {
    const fds_answers *all = &a->answers;
    size_t n = a->info.players;
    fds_answers part = {.labels = all->labels + first,
                        .probs = all->probs + first * a->info.classes,
                        .full = all->full + first,
                        .empty = all->empty + first,
                        .values = all->values + first * n,
                        .errors = all->errors + first * n};
    CLI_TRY(
        fds_run_explain(a->run, a->by, a->inputs, a->index + first, count, is_given, &part, err));
    if (!a->is_checked)
        return FDS_OK;
    part = (fds_answers){.labels = part.labels,
                         .values = a->bank_values + first * n,
                         .errors = a->bank_errors + first * n};
    return fds_run_explain(a->run, FDS_ANSWERER_BANK, a->inputs, a->index + first, count, true,
                           &part, err);
}

fds_status answer_solve(answer *a, fds_error *err) {
    bool is_given;
    CLI_TRY(make_arrays(a, err));
    CLI_TRY(choose_labels(a, &is_given, err));
    double start_s = cli_now_s();
    for (size_t done = 0; done < a->count;) {
        size_t count = a->count - done < CHUNK ? a->count - done : CHUNK;
        CLI_TRY(solve_chunk(a, done, count, is_given, err));
        done += count;
        const fds_progress p = {"explain", "inputs", done, a->count, cli_now_s() - start_s};
        if (a->term->events.progress(a->term->events.user, &p))
            return FDS_ERR_CANCELLED;
    }
    a->seconds = cli_now_s() - start_s;
    cli_term_clear(a->term);
    return FDS_OK;
}

/* ---- what is shown of an input ---- */

const char *answer_input(const answer *a, size_t i, char out[ANSWER_NAME_SIZE]) {
    if (a->pictures)
        snprintf(out, ANSWER_NAME_SIZE, "%s", a->common->more[i]);
    else
        snprintf(out, ANSWER_NAME_SIZE, "%ssample %u", a->test ? "test " : "", a->index[i]);
    return out;
}

uint32_t answer_predicted(const answer *a, size_t i) {
    const float *probs = a->answers.probs + i * a->info.classes;
    uint32_t best = 0;
    for (uint32_t c = 1; c < a->info.classes; c++)
        if (probs[c] > probs[best])
            best = c;
    return best;
}

void answer_print(const answer *a) {
    char count[CLI_NUMBER_SIZE];
    const char *by = a->by == FDS_ANSWERER_BANK ? "the sub-models" : a->info.explainer;
    printf("%-*s %s: %s, %s players of %s\n", WIDTH, "run", a->common->operand, a->info.method,
           cli_count(a->info.players, count), a->info.source);
    printf("%-*s %s input%s by %s%s in %.1f ms\n", WIDTH, "answers", cli_count(a->count, count),
           a->count == 1 ? "" : "s", by, a->is_checked ? " and the sub-models" : "",
           1000 * a->seconds);
    printf("%-*s %s\n", WIDTH, "errors", fds_run_error_source(a->run, a->by));
    if (a->is_checked)
        printf("%-*s %s (sub-models)\n", WIDTH, "",
               fds_run_error_source(a->run, FDS_ANSWERER_BANK));
}

void answer_print_input(const answer *a, size_t i) {
    char input[ANSWER_NAME_SIZE], name[CLI_NAME_SIZE];
    const fds_answers *r = &a->answers;
    uint32_t predicted = answer_predicted(a, i), label = r->labels[i];
    printf("\n%s: ", cli_name(answer_input(a, i, input), 0, name));
    printf("label %s", cli_name(fds_run_class_name(a->run, predicted), 0, name));
    printf(" with %.1f %%", 100 * (double)r->probs[i * a->info.classes + predicted]);
    if (a->truth)
        printf(", true label %s", cli_name(fds_run_class_name(a->run, a->truth[i]), 0, name));
    printf("\nprobability of label %s: %.4f with no players, %.4f with all\n",
           cli_name(fds_run_class_name(a->run, label), 0, name), r->empty[i], r->full[i]);
}

json_t *answer_json_text(const char *text) { return text ? cli_json_text(text) : json_null(); }

json_t *answer_json(const answer *a) {
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:I, s:s, s:o, s:o}", "version", FDS_VERSION, "run",
                     cli_json_text(a->common->operand), "method", cli_json_text(a->info.method),
                     "data", cli_json_text(a->info.source), "explainer",
                     cli_json_text(a->info.explainer), "players", (json_int_t)a->info.players, "by",
                     a->by == FDS_ANSWERER_BANK ? "bank" : "explainer", "errors",
                     cli_json_text(fds_run_error_source(a->run, a->by)), "seconds",
                     cli_json_real(a->seconds));
}

json_t *answer_json_input(const answer *a, size_t i) {
    char input[ANSWER_NAME_SIZE];
    const fds_answers *r = &a->answers;
    uint32_t predicted = answer_predicted(a, i);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "input",
                     cli_json_text(answer_input(a, i, input)), "sample",
                     a->pictures ? json_null() : json_integer(a->index[i]), "predicted",
                     cli_json_text(fds_run_class_name(a->run, predicted)), "confidence",
                     cli_json_float(r->probs[i * a->info.classes + predicted]), "true",
                     answer_json_text(a->truth ? fds_run_class_name(a->run, a->truth[i]) : NULL),
                     "label", cli_json_text(fds_run_class_name(a->run, r->labels[i])),
                     "probability_with_none", cli_json_real(r->empty[i]), "probability_with_all",
                     cli_json_real(r->full[i]));
}

/* ---- players by rank ---- */

typedef struct {
    double value;
    size_t who;
} place;

static int by_value(const void *left, const void *right) {
    const place *a = left, *b = right;
    if (a->value != b->value)
        return a->value > b->value ? -1 : 1;
    return a->who < b->who ? -1 : a->who > b->who;
}

fds_status answer_rank(const double *values, size_t count, size_t *order, fds_error *err) {
    place *places = cli_alloc(count, sizeof *places, err);
    if (!places)
        return FDS_ERR_NOMEM;
    for (size_t i = 0; i < count; i++)
        places[i] = (place){values[i], i};
    qsort(places, count, sizeof *places, by_value);
    for (size_t i = 0; i < count; i++)
        order[i] = places[i].who;
    free(places);
    return FDS_OK;
}

/* As wide as the widest name, between width and most. */
static int widen(int width, const char *name, int most) {
    int columns = cli_columns(name);
    return columns > most ? most : columns > width ? columns : width;
}

static const char *label_name(const answer *a, size_t player) {
    return fds_run_class_name(a->run, fds_run_player_label(a->run, player));
}

answer_widths answer_measure(const answer *a) {
    answer_widths w = {6, 5, 0};
    for (size_t i = 0; i < a->info.players; i++) {
        const char *provider = fds_run_player_provider(a->run, i);
        w.player = widen(w.player, fds_run_player_name(a->run, i), PLAYER_WIDTH);
        w.label = widen(w.label, label_name(a, i), LABEL_WIDTH);
        if (provider)
            w.provider = widen(w.provider ? w.provider : 8, provider, PROVIDER_WIDTH);
    }
    return w;
}

void answer_print_head(const answer_widths *w) {
    printf("rank  %-*s  %-*s", w->player, "player", w->label, "label");
    if (w->provider)
        printf("  %-*s", w->provider, "provider");
}

void answer_print_player(const answer *a, const answer_widths *w, size_t rank, size_t player) {
    char name[CLI_NAME_SIZE];
    const char *provider = fds_run_player_provider(a->run, player);
    printf("%4zu  %s", rank + 1, cli_name(fds_run_player_name(a->run, player), w->player, name));
    printf("  %s", cli_name(label_name(a, player), w->label, name));
    if (w->provider)
        printf("  %s", cli_name(provider ? provider : "", w->provider, name));
}
