/* SPDX-License-Identifier: Apache-2.0
 * fds data get: fetches a known set.  fds data show: what is in a set, in words and as a picture.
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- fds data get ---- */

typedef struct {
    cli_common common;
    const char *from;
} get_options;

static const cli_option get_table[] = {
    {CLI_ROW(STRING, get_options, from, 0, "from", "FOLDER",
             "take the set's files from this folder instead of fetching them")},
};

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
    const char *nearest = cli_nearest(name, known);
    if (nearest)
        return cli_fail(err, FDS_ERR_USAGE,
                        "unknown set \"%s\": did you mean \"%s\"? Known are: %s", name, nearest,
                        list);
    return cli_fail(err, FDS_ERR_USAGE, "unknown set \"%s\": known are %s", name, list);
}

static fds_status run_get(const cli_command *self, int argc, char **argv, fds_error *err) {
    get_options o = {0};
    cli_term term;
    char path[4096];
    CLI_TRY(cli_parse(self, argc, argv, &o, err));
    CLI_TRY(check_known(o.common.operand, err));
    cli_term_init(&term, self, o.common.quiet);
    fds_status status =
        fds_data_get(o.common.operand, o.from, path, sizeof path, &term.events, err);
    cli_term_clear(&term);
    CLI_TRY(status);
    if (o.common.json)
        return cli_json_print(json_pack("{s:o, s:o}", "name", cli_json_text(o.common.operand),
                                        "path", cli_json_text(path)),
                              err);
    cli_note(&term, "look at it with: fds data show %s", o.common.operand);
    puts(path); /* alone on stdout, for scripts */
    return FDS_OK;
}

const cli_command cli_data_get = {
    .name = "data get",
    .operand = "NAME",
    .needs = "name a set, for example: fds data get mnist",
    .usage = "NAME [options]",
    .summary = "fetch a known set, check it, keep it",
    .about = "Fetches a known set, checks every file against its SHA-256 and keeps it in the "
             "data folder: $FDS_DATA, else $XDG_DATA_HOME/fds, else ~/.local/share/fds. "
             "After that its name stands for it wherever a command takes DATA.\n\n"
             "NAME is mnist, fashion-mnist or cifar10.",
    .examples = "  fds data get mnist\n"
                "  fds data get cifar10 --from ~/Downloads\n",
    .options = get_table,
    .option_count = CLI_COUNT(get_table),
    .run = run_get,
};

/* ---- fds data show: one part of a source, counted ---- */

enum { CLASSES_SHOWN = 100, CHANNELS_SHOWN = 10, PROVIDERS_SHOWN = 10 };

typedef struct {
    const char *name;
    fds_dataset *data;
    fds_dataset_info info;
    size_t *by_class;    /* (classes) how many samples each has */
    size_t *by_provider; /* (providers) */
    float *stats;        /* (4, channels): min, max, mean, std */
} part;

static void part_free(part *p) {
    fds_dataset_free(p->data);
    free(p->by_class);
    free(p->by_provider);
    free(p->stats);
}

static fds_status part_count(part *p, fds_error *err) {
    const fds_dataset_info info = p->info = fds_dataset_get_info(p->data);
    size_t channels = info.shape.channels;
    p->by_class = cli_alloc(info.classes, sizeof *p->by_class, err);
    p->by_provider = cli_alloc(info.providers, sizeof *p->by_provider, err);
    p->stats = cli_alloc(channels * 4, sizeof *p->stats, err);
    if (!p->by_class || !p->by_provider || !p->stats)
        return FDS_ERR_NOMEM;
    for (size_t i = 0; i < info.count; i++) {
        p->by_class[info.labels[i]]++;
        if (info.provider_ids)
            p->by_provider[info.provider_ids[i]]++;
    }
    return fds_dataset_stats(p->data, NULL, info.count, p->stats, p->stats + channels,
                             p->stats + 2 * channels, p->stats + 3 * channels, err);
}

/* ---- as text ---- */

static void print_parts(const part *parts, size_t count) {
    printf("part    samples  shape             values\n");
    for (size_t i = 0; i < count; i++) {
        const fds_dataset_info *info = &parts[i].info;
        char shape[48];
        snprintf(shape, sizeof shape, "%u x %u x %u", info->shape.channels, info->shape.height,
                 info->shape.width);
        printf("%-6s %8zu  %-16s  %s\n", parts[i].name, info->count, shape,
               info->is_bytes ? "bytes, seen as 0..1" : "floats");
    }
    if (count == 1)
        printf("(no test part: fds train holds back a fifth of the samples)\n");
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

static void print_more(uint64_t total, uint64_t shown, const char *what) {
    if (total > shown)
        printf("... and %llu more %s\n", (unsigned long long)(total - shown), what);
}

static void print_classes(const part *parts, size_t count) {
    uint32_t classes = parts[0].info.classes;
    uint32_t shown = classes < CLASSES_SHOWN ? classes : CLASSES_SHOWN;
    int width = name_width(parts[0].data, shown, "class", fds_dataset_class_name);
    char name[CLI_NAME_SIZE];
    printf("\n%-*s", width, "class");
    for (size_t i = 0; i < count; i++)
        printf("  %8s", parts[i].name);
    putchar('\n');
    for (uint32_t c = 0; c < shown; c++) {
        printf("%s", cli_name(fds_dataset_class_name(parts[0].data, c), width, name));
        for (size_t i = 0; i < count; i++)
            printf("  %8zu", c < parts[i].info.classes ? parts[i].by_class[c] : 0);
        putchar('\n');
    }
    print_more(classes, shown, "classes (all with --json)");
}

static void print_providers(const part *p) {
    uint32_t providers = p->info.providers;
    uint32_t shown = providers < PROVIDERS_SHOWN ? providers : PROVIDERS_SHOWN;
    size_t smallest = SIZE_MAX, largest = 0;
    for (uint32_t i = 0; i < providers; i++) {
        smallest = p->by_provider[i] < smallest ? p->by_provider[i] : smallest;
        largest = p->by_provider[i] > largest ? p->by_provider[i] : largest;
    }
    int width = name_width(p->data, shown, "provider", fds_dataset_provider_name);
    char name[CLI_NAME_SIZE];
    printf("\n%u provider%s, with %zu to %zu samples each\n", providers, providers == 1 ? "" : "s",
           smallest, largest);
    printf("%-*s  %8s\n", width, "provider", p->name);
    for (uint32_t i = 0; i < shown; i++)
        printf("%s  %8zu\n", cli_name(fds_dataset_provider_name(p->data, i), width, name),
               p->by_provider[i]);
    print_more(providers, shown, "providers (all with --json)");
}

/* The feature's name, else its number. */
static const char *feature_name(const part *p, uint32_t feature, char number[16]) {
    const char *name = fds_dataset_feature_name(p->data, feature);
    snprintf(number, 16, "%u", feature);
    return name ? name : number;
}

/* Names are cut so that a line has at most 79 columns. */
static void print_stats(const part *p, bool is_first) {
    uint32_t channels = p->info.shape.channels;
    uint32_t shown = channels < CHANNELS_SHOWN ? channels : CHANNELS_SHOWN;
    const char *kind = p->info.is_image ? "channel" : "feature";
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
    print_more(channels, shown, p->info.is_image ? "channels" : "features (all with --json)");
}

/* ---- as JSON ---- */

/* [{"name": ..., "count": ...}, ...] */
static json_t *json_counts(const fds_dataset *data, const size_t *counts, uint32_t count,
                           const char *(*name_of)(const fds_dataset *, uint32_t)) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(list, json_pack("{s:o, s:I}", "name", cli_json_text(name_of(data, i)),
                                              "count", (json_int_t)counts[i]));
    return list;
}

static json_t *json_part(const part *p) {
    const fds_dataset_info *info = &p->info;
    uint32_t channels = info->shape.channels;
    json_t *stats = json_array();
    for (uint32_t c = 0; c < channels; c++) {
        const char *name = fds_dataset_feature_name(p->data, c);
        json_array_append_new(stats, json_pack("{s:o, s:o, s:o, s:o, s:o}", "name",
                                               name ? cli_json_text(name) : json_null(), "min",
                                               cli_json_float(p->stats[c]), "max",
                                               cli_json_float(p->stats[channels + c]), "mean",
                                               cli_json_float(p->stats[2 * channels + c]), "std",
                                               cli_json_float(p->stats[3 * channels + c])));
    }
    return json_pack(
        "{s:o, s:I, s:[i,i,i], s:s, s:s, s:o, s:o, s:o}", "source", cli_json_text(info->source),
        "count", (json_int_t)info->count, "shape", (int)channels, (int)info->shape.height,
        (int)info->shape.width, "kind", info->is_image ? "images" : "features", "values",
        info->is_bytes ? "bytes" : "floats", "classes",
        json_counts(p->data, p->by_class, info->classes, fds_dataset_class_name), "providers",
        json_counts(p->data, p->by_provider, info->providers, fds_dataset_provider_name),
        "channels", stats);
}

/* ---- the contact sheet ---- */

typedef struct {
    cli_common common;
    fds_data_options data;
    const char *png;
    uint64_t count, columns; /* 0: not given */
} show_options;

/* Samples in order of class, so that rows of the picture are classes where the counts allow it. */
static void sort_by_class(uint32_t *index, size_t count, const part *p, uint32_t *sorted) {
    size_t used = 0;
    for (uint32_t c = 0; c < p->info.classes; c++)
        for (size_t i = 0; i < count && used < count; i++)
            if (p->info.labels[index[i]] == c)
                sorted[used++] = index[i];
}

static fds_status draw(const show_options *o, const part *p, size_t count, fds_error *err) {
    uint32_t *index = cli_alloc(count * 2, sizeof *index, err);
    if (!index)
        return FDS_ERR_NOMEM;
    fds_status status = fds_split_balanced(p->data, count, o->common.seed, index, err);
    if (status == FDS_OK) {
        sort_by_class(index, count, p, index + count);
        status = fds_dataset_draw(p->data, index + count, count,
                                  o->columns ? (uint32_t)o->columns : 10, o->png, err);
    }
    free(index);
    return status;
}

/* ---- fds data show ---- */

static const cli_option show_table[] = {
    CLI_DATA_OPTIONS(show_options),
    {CLI_ROW(STRING, show_options, png, 0, "png", "OUT.png",
             "draw a sheet of training images, as many of each class, chosen by --seed")},
    {CLI_ROW(UINT, show_options, count, 0, "count", "N",
             "with --png: how many images [100, or all when there are fewer]"),
     .min = 1, .max = 10000},
    {CLI_ROW(UINT, show_options, columns, 0, "columns", "N", "with --png: how many a row [10]"),
     .min = 1, .max = 100},
};

static fds_status check_show(const show_options *o, fds_error *err) {
    if (o->png) {
        CLI_TRY(cli_check_output("--png", o->png, o->common.operand, err));
        const char *dot = strrchr(o->png, '.');
        return dot && strcasecmp(dot, ".png") == 0
                   ? FDS_OK
                   : cli_fail(err, FDS_ERR_USAGE, "--png %s: must end in .png", o->png);
    }
    if (o->count || o->columns)
        return cli_fail(err, FDS_ERR_USAGE, "--%s belongs to --png OUT.png, which is missing",
                        o->count ? "count" : "columns");
    return FDS_OK;
}

static fds_status show_json(const show_options *o, const part *parts, size_t count, size_t drawn,
                            fds_error *err) {
    json_t *picture =
        o->png ? json_pack("{s:o, s:I}", "file", cli_json_text(o->png), "count", (json_int_t)drawn)
               : json_null();
    return cli_json_print(json_pack("{s:o, s:o, s:o, s:o}", "data",
                                    cli_json_text(o->common.operand), "train", json_part(&parts[0]),
                                    "test", count > 1 ? json_part(&parts[1]) : json_null(), "png",
                                    picture),
                          err);
}

static void show_text(const show_options *o, const part *parts, size_t count, size_t drawn) {
    printf("data    %s\n\n", parts[0].info.source);
    print_parts(parts, count);
    print_classes(parts, count);
    for (size_t i = 0; i < count; i++)
        if (parts[i].info.providers)
            print_providers(&parts[i]);
    for (size_t i = 0; i < count; i++)
        print_stats(&parts[i], i == 0);
    if (o->png)
        printf("\n%zu images drawn in %s\n", drawn, o->png);
}

static fds_status show_parts(const show_options *o, part *parts, size_t count, fds_error *err) {
    size_t drawn = 0;
    for (size_t i = 0; i < count; i++)
        CLI_TRY(part_count(&parts[i], err));
    if (o->png) {
        size_t have = parts[0].info.count;
        if (o->count > have)
            return cli_fail(err, FDS_ERR_USAGE,
                            "--count %llu: the training part has only %zu samples",
                            (unsigned long long)o->count, have);
        drawn = o->count ? (size_t)o->count : have < 100 ? have : 100;
        CLI_TRY(draw(o, &parts[0], drawn, err));
    }
    if (o->common.json)
        return show_json(o, parts, count, drawn, err);
    show_text(o, parts, count, drawn);
    return FDS_OK;
}

static fds_status run_show(const cli_command *self, int argc, char **argv, fds_error *err) {
    show_options o = {0};
    CLI_TRY(cli_parse(self, argc, argv, &o, err));
    CLI_TRY(check_show(&o, err));
    part parts[2] = {{.name = "train"}, {.name = "test"}};
    CLI_TRY(cli_open_data(o.common.operand, &o.data, &parts[0].data, &parts[1].data, err));
    fds_status status = show_parts(&o, parts, parts[1].data ? 2 : 1, err);
    part_free(&parts[0]);
    part_free(&parts[1]);
    return status;
}

const cli_command cli_data_show = {
    .name = "data show",
    .operand = "DATA",
    .needs = "name a fetched set or a path, for example: fds data show mnist",
    .usage = "DATA [options]",
    .summary = "what is in a set, in words and as a picture",
    .about = "Reads all of DATA and says what is in it: the parts and their shapes, how many "
             "samples each class and each provider has, and the range, mean and standard "
             "deviation of every channel.\n\n"
             "DATA is the name of a fetched set (fds data get) or a path: a folder of IDX, "
             "CIFAR-10 or NPY files, a folder of pictures with one folder a class, a single .npy "
             "file, or a .csv file.",
    .examples = "  fds data show mnist --png digits.png\n"
                "  fds data show sales.csv --label outcome --provider shop\n",
    .options = show_table,
    .option_count = CLI_COUNT(show_table),
    .run = run_show,
};
