/* SPDX-License-Identifier: Apache-2.0
 * fds data get: fetches a known set.  fds data show: what is in a set, in words and as a picture. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- fds data get ---- */

/* "mnist, fashion-mnist, cifar10" */
static void list_known(char *out, size_t size) {
    size_t used = 0;
    out[0] = 0;
    for (const char *const *name = fds_data_known(); *name && used < size; name++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", *name);
}

static fds_status check_known(const char *name, fds_error *err) {
    const char *const *known = fds_data_known();
    for (size_t i = 0; known[i]; i++)
        if (strcmp(known[i], name) == 0)
            return FDS_OK;
    char list[256];
    list_known(list, sizeof list);
    const char *nearest = fds_nearest(name, known);
    if (nearest)
        return cli_fail(err, FDS_ERR_USAGE,
                        "unknown set \"%s\": did you mean \"%s\"? Known are: %s", name, nearest,
                        list);
    return cli_fail(err, FDS_ERR_USAGE, "unknown set \"%s\": known are %s", name, list);
}

static fds_status run_get(cli_args *args, fds_error *err) {
    char path[4096];
    CLI_TRY(check_known(args->operand, err));
    CLI_TRY(fds_data_get(args->operand, args->from, path, sizeof path, args->events, err));
    fds_terminal_clear();
    if (args->json)
        return cli_print_json(json_pack("{s:s, s:s}", "name", args->operand, "path", path), err);
    if (!args->quiet)
        fprintf(stderr, "fds data get: look at it with: fds data show %s\n", args->operand);
    puts(path); /* alone on stdout, for scripts */
    return FDS_OK;
}

static const cli_option get_own[] = {
    CLI_OWN(0, "from", from, "FOLDER",
            "take the set's files from this folder instead of fetching them"),
};

const cli_command cli_data_get = {
    .name = "data get",
    .operand = "NAME",
    .missing = "name a set, for example: fds data get mnist",
    .usage = "NAME [options]",
    .summary = "fetch a known data set and check it",
    .about = "Fetches a known set, checks every file against its SHA-256 and keeps it in the data "
             "folder: $FDS_DATA, else $XDG_DATA_HOME/fds, else ~/.local/share/fds. After that its "
             "name stands for it wherever a command takes DATA.\n\n"
             "NAME is mnist, fashion-mnist or cifar10.",
    .examples = "  fds data get mnist\n"
                "  fds data get cifar10 --from ~/Downloads\n",
    .own = get_own,
    .own_count = CLI_COUNT(get_own),
    .run = run_get,
};

/* ---- fds data show: one part of a source, counted ---- */

enum { CLASSES_SHOWN = 100, CHANNELS_SHOWN = 10, PROVIDERS_SHOWN = 30 };

typedef struct {
    const char *name;
    bool is_whole; /* lists have all lines */
    fds_dataset *data;
    size_t count;
    fds_shape shape;
    uint32_t classes, providers;
    size_t *by_class;      /* (classes) how many samples each has */
    fds_holding *holdings; /* (providers) */
    float *stats;          /* (4, channels): min, max, mean, std */
    double targets[4];     /* the same of a regression's targets */
    double *means;         /* (providers) of targets */
} part;

static void part_free(part *p) {
    fds_dataset_free(p->data);
    free(p->by_class);
    free(p->holdings);
    free(p->stats);
    free(p->means);
}

static bool is_regression(const part *p) { return fds_dataset_is_regression(p->data); }

static void count_targets(part *p) {
    double *t = p->targets, count = (double)p->count;
    t[0] = INFINITY;
    t[1] = -INFINITY;
    for (size_t i = 0; i < p->count; i++) {
        double target = fds_dataset_target(p->data, i);
        uint32_t provider = fds_dataset_provider(p->data, i);
        t[0] = fmin(t[0], target);
        t[1] = fmax(t[1], target);
        t[2] += target / count;
        if (provider < p->providers)
            p->means[provider] += target / (double)p->holdings[provider].samples;
    }
    for (size_t i = 0; i < p->count; i++)
        t[3] += pow(fds_dataset_target(p->data, i) - t[2], 2) / count;
    t[3] = sqrt(t[3]);
}

static fds_status part_count(part *p, fds_error *err) {
    p->count = fds_dataset_count(p->data);
    p->shape = fds_dataset_shape(p->data);
    p->classes = fds_dataset_classes(p->data);
    p->providers = fds_dataset_providers(p->data);
    size_t channels = p->shape.channels;
    p->by_class = cli_alloc(p->classes, sizeof *p->by_class, err);
    p->holdings = cli_alloc(p->providers, sizeof *p->holdings, err);
    p->stats = cli_alloc(channels * 4, sizeof *p->stats, err);
    p->means = cli_alloc(p->providers, sizeof *p->means, err);
    if (!p->by_class || !p->holdings || !p->stats || !p->means)
        return FDS_ERR_NOMEM;
    for (size_t i = 0; i < p->count; i++)
        p->by_class[fds_dataset_label(p->data, i)]++;
    if (p->providers)
        CLI_TRY(fds_dataset_holdings(p->data, p->holdings, err));
    if (is_regression(p))
        count_targets(p);
    return fds_dataset_stats(p->data, NULL, p->count, p->stats, p->stats + channels,
                             p->stats + 2 * channels, p->stats + 3 * channels, err);
}

/* ---- as text ---- */

static void print_parts(const part *parts, size_t count) {
    printf("part    samples  shape             values\n");
    for (size_t i = 0; i < count; i++) {
        const part *p = &parts[i];
        char shape[48];
        snprintf(shape, sizeof shape, "%u x %u x %u", p->shape.channels, p->shape.height,
                 p->shape.width);
        printf("%-6s %8zu  %-16s  %s\n", p->name, p->count, shape,
               fds_dataset_is_bytes(p->data) ? "bytes, seen as 0..1" : "floats");
    }
    if (count == 1)
        printf("(no test part: a fifth of the samples is set aside for testing)\n");
}

/* The width of a column of names: the longest of them, within what 80 columns allow. */
static int name_width(const fds_dataset *data, uint32_t count, const char *heading,
                      const char *(*name_of)(const fds_dataset *, uint32_t)) {
    int width = (int)strlen(heading);
    for (uint32_t i = 0; i < count; i++) {
        int columns = cli_columns(name_of(data, i));
        width = columns > width ? columns : width;
    }
    return width < 50 ? width : 50;
}

static uint32_t shown_of(const part *p, uint32_t total, uint32_t usual) {
    return p->is_whole || total < usual ? total : usual;
}

static void print_more(uint32_t total, uint32_t shown, const char *what) {
    if (total > shown)
        printf("... and %u more %s (all with --all)\n", total - shown, what);
}

static void print_classes(const part *parts, size_t count) {
    uint32_t classes = parts[0].classes;
    uint32_t shown = shown_of(&parts[0], classes, CLASSES_SHOWN);
    int width = name_width(parts[0].data, shown, "class", fds_dataset_class_name);
    char name[CLI_NAME_SIZE];
    printf("\n%-*s", width, "class");
    for (size_t i = 0; i < count; i++)
        printf("  %8s", parts[i].name);
    putchar('\n');
    for (uint32_t c = 0; c < shown; c++) {
        printf("%s", cli_name(fds_dataset_class_name(parts[0].data, c), width, name));
        for (size_t i = 0; i < count; i++)
            printf("  %8zu", c < parts[i].classes ? parts[i].by_class[c] : 0);
        putchar('\n');
    }
    print_more(classes, shown, "classes");
}

static void print_targets(const part *parts, size_t count) {
    printf("\ntarget  %10s  %10s  %10s  %10s\n", "min", "max", "mean", "std");
    for (size_t i = 0; i < count; i++)
        printf("%-6s  %10.4g  %10.4g  %10.4g  %10.4g\n", parts[i].name, parts[i].targets[0],
               parts[i].targets[1], parts[i].targets[2], parts[i].targets[3]);
}

/* A provider may copy samples to seem larger, or take those of others. */
static void print_providers(const part *p) {
    uint32_t providers = p->providers;
    uint32_t shown = shown_of(p, providers, PROVIDERS_SHOWN);
    int width = name_width(p->data, shown, "provider", fds_dataset_provider_name);
    char name[CLI_NAME_SIZE];
    printf("\n%-*s  %8s  %*s  %8s  %s\n", width, "provider", p->name, is_regression(p) ? 11 : 7,
           is_regression(p) ? "mean target" : "classes", "repeated", "shared with others");
    for (uint32_t i = 0; i < shown; i++) {
        const fds_holding *h = &p->holdings[i];
        printf("%s  %8zu  ", cli_name(fds_dataset_provider_name(p->data, i), width, name),
               h->samples);
        if (is_regression(p))
            printf("%11.5g", p->means[i]);
        else
            printf("%7zu", h->classes);
        printf("  %8zu  %18zu\n", h->repeated, h->shared);
    }
    print_more(providers, shown, "providers");
}

/* The feature's name, else its number. */
static const char *feature_name(const part *p, uint32_t feature, char number[16]) {
    const char *name = fds_dataset_feature_name(p->data, feature);
    snprintf(number, 16, "%u", feature);
    return name ? name : number;
}

/* Names are cut so that a line has at most 79 columns. */
static void print_stats(const part *p, bool is_first) {
    uint32_t channels = p->shape.channels, shown = shown_of(p, channels, CHANNELS_SHOWN);
    const char *kind = fds_dataset_is_image(p->data) ? "channel" : "feature";
    char number[16], name[CLI_NAME_SIZE];
    int width = (int)strlen(kind);
    for (uint32_t c = 0; c < shown; c++) {
        int columns = cli_columns(feature_name(p, c, number));
        width = columns > width ? columns : width;
    }
    width = width < 24 ? width : 24;
    if (is_first)
        printf("\n%-*s  %-5s  %10s  %10s  %10s  %10s\n", width, kind, "part", "min", "max", "mean",
               "std");
    for (uint32_t c = 0; c < shown; c++)
        printf("%s  %-5s  %10.4g  %10.4g  %10.4g  %10.4g\n",
               cli_name(feature_name(p, c, number), width, name), p->name, (double)p->stats[c],
               (double)p->stats[channels + c], (double)p->stats[2 * channels + c],
               (double)p->stats[3 * channels + c]);
    print_more(channels, shown, fds_dataset_is_image(p->data) ? "channels" : "features");
}

/* ---- as JSON ---- */

static json_t *json_classes(const part *p) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < p->classes; i++)
        json_array_append_new(list, json_pack("{s:o, s:I}", "name",
                                              json_string(fds_dataset_class_name(p->data, i)),
                                              "count", (json_int_t)p->by_class[i]));
    return list;
}

static json_t *json_providers(const part *p) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < p->providers; i++) {
        const fds_holding *h = &p->holdings[i];
        json_array_append_new(
            list, json_pack("{s:o, s:I, s:o, s:I, s:I}", "name",
                            json_string(fds_dataset_provider_name(p->data, i)), "count",
                            (json_int_t)h->samples, is_regression(p) ? "mean_target" : "classes",
                            is_regression(p) ? json_real(p->means[i])
                                             : json_integer((json_int_t)h->classes),
                            "repeated", (json_int_t)h->repeated, "shared", (json_int_t)h->shared));
    }
    return list;
}

static json_t *json_part(const part *p) {
    uint32_t channels = p->shape.channels;
    json_t *stats = json_array();
    for (uint32_t c = 0; c < channels; c++)
        json_array_append_new(stats,
                              json_pack("{s:s?, s:f, s:f, s:f, s:f}", "name",
                                        fds_dataset_feature_name(p->data, c), "min",
                                        (double)p->stats[c], "max", (double)p->stats[channels + c],
                                        "mean", (double)p->stats[2 * channels + c], "std",
                                        (double)p->stats[3 * channels + c]));
    json_t *labels = is_regression(p)
                         ? json_pack("{s:f, s:f, s:f, s:f}", "min", p->targets[0], "max",
                                     p->targets[1], "mean", p->targets[2], "std", p->targets[3])
                         : json_classes(p);
    return json_pack("{s:s, s:I, s:[i,i,i], s:s, s:s, s:o, s:o, s:o}", "source",
                     fds_dataset_source(p->data), "count", (json_int_t)p->count, "shape",
                     (int)channels, (int)p->shape.height, (int)p->shape.width, "kind",
                     fds_dataset_is_image(p->data) ? "images" : "features", "values",
                     fds_dataset_is_bytes(p->data) ? "bytes" : "floats",
                     is_regression(p) ? "targets" : "classes", labels, "providers",
                     json_providers(p), "channels", stats);
}

/* ---- the contact sheet ---- */

/* Samples in order of class, so that rows of the picture are classes where the counts allow it. */
static void sort_by_class(const uint32_t *index, size_t count, const part *p, uint32_t *sorted) {
    size_t used = 0;
    for (uint32_t c = 0; c < p->classes; c++)
        for (size_t i = 0; i < count && used < count; i++)
            if (fds_dataset_label(p->data, index[i]) == c)
                sorted[used++] = index[i];
}

static fds_status draw(const cli_args *args, const part *p, size_t count, fds_error *err) {
    char seed[32];
    size_t columns;
    CLI_TRY(cli_number("columns", args->columns, 100, 10, &columns, err));
    CLI_TRY(fds_params_get(args->params, "seed", seed, sizeof seed, err));
    uint32_t *index = cli_alloc(count * 2, sizeof *index, err);
    if (!index)
        return FDS_ERR_NOMEM;
    fds_status status = fds_split_balanced(p->data, count, strtoull(seed, NULL, 10), index, err);
    if (status == FDS_OK) {
        sort_by_class(index, count, p, index + count);
        status = fds_dataset_draw(p->data, index + count, count, (uint32_t)columns, args->png, err);
    }
    free(index);
    return status;
}

/* ---- fds data show ---- */

static fds_status show_json(const cli_args *args, const part *parts, size_t count, size_t drawn,
                            fds_error *err) {
    json_t *picture = args->png
                          ? json_pack("{s:s, s:I}", "file", args->png, "count", (json_int_t)drawn)
                          : json_null();
    return cli_print_json(json_pack("{s:s, s:o, s:o, s:o}", "data", args->operand, "train",
                                    json_part(&parts[0]), "test",
                                    count > 1 ? json_part(&parts[1]) : json_null(), "png", picture),
                          err);
}

static void show_text(const cli_args *args, const part *parts, size_t count, size_t drawn) {
    printf("data    %s\n\n", fds_dataset_source(parts[0].data));
    print_parts(parts, count);
    (is_regression(&parts[0]) ? print_targets : print_classes)(parts, count);
    for (size_t i = 0; i < count; i++)
        if (parts[i].providers)
            print_providers(&parts[i]);
    for (size_t i = 0; i < count; i++)
        print_stats(&parts[i], i == 0);
    if (args->png)
        printf("\n%zu images drawn in %s\n", drawn, args->png);
}

static fds_status show_parts(const cli_args *args, part *parts, size_t count, fds_error *err) {
    size_t drawn = 0;
    for (size_t i = 0; i < count; i++)
        CLI_TRY(part_count(&parts[i], err));
    if (args->png) {
        size_t have = parts[0].count;
        CLI_TRY(cli_number("count", args->count, have, have < 100 ? have : 100, &drawn, err));
        CLI_TRY(draw(args, &parts[0], drawn, err));
    }
    if (args->json)
        return show_json(args, parts, count, drawn, err);
    show_text(args, parts, count, drawn);
    return FDS_OK;
}

static fds_status run_show(cli_args *args, fds_error *err) {
    part parts[2] = {{.name = "train", .is_whole = args->all},
                     {.name = "test", .is_whole = args->all}};
    if (!args->png && (args->count || args->columns))
        return cli_fail(err, FDS_ERR_USAGE, "--%s needs --png OUT.png",
                        args->count ? "count" : "columns");
    if (args->png)
        CLI_TRY(cli_check_output("--png", args->png, ".png", args, err));
    CLI_TRY(fds_data_open(args->operand, args->params, args->events, &parts[0].data, &parts[1].data,
                          err));
    fds_status status = show_parts(args, parts, parts[1].data ? 2 : 1, err);
    part_free(&parts[0]);
    part_free(&parts[1]);
    return status;
}

static const cli_option show_own[] = {
    CLI_OWN(0, "all", all, NULL,
            "list all classes, providers and features, however many there are"),
    CLI_OWN(0, "png", png, "OUT.png",
            "draw a sheet of training images, balanced by class, chosen by --seed"),
    CLI_OWN(0, "count", count, "N", "with --png: how many images [100, or all if there are fewer]"),
    CLI_OWN(0, "columns", columns, "N", "with --png: how many per row [10]"),
};

const cli_command cli_data_show = {
    .name = "data show",
    .job = "show",
    .operand = "DATA",
    .missing = "name a fetched set or a path, for example: fds data show mnist",
    .usage = "DATA [options]",
    .summary = "describe a data set, and draw its images",
    .about = "Reads all of DATA and says what is in it: the parts and their shapes, how many "
             "samples each class and each provider has, which samples providers repeat or "
             "share, and the range, mean and standard deviation of every channel.\n\n"
             "DATA is the name of a fetched set (fds data get) or a path: a folder of IDX, "
             "CIFAR-10 or NPY files, a folder of pictures with one folder per class (or one per "
             "provider, with class folders in it), a single .npy file, or a .csv file.",
    .examples = "  fds data show mnist --png digits.png\n"
                "  fds data show sales.csv --label outcome --provider shop\n"
                "  fds data show scans --owners owners.csv\n",
    .own = show_own,
    .own_count = CLI_COUNT(show_own),
    .run = run_show,
};
