/* SPDX-License-Identifier: Apache-2.0
 * fds data get: fetches a known set.  fds data show: what is in a set, in words and as a picture. */
#include "cli.h"

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

/* ---- fds data show: as text ---- */

enum { CLASSES_SHOWN = 100, CHANNELS_SHOWN = 10, PROVIDERS_SHOWN = 30, MOST_WIDTH = 50 };

/* A part of a source, and what fds_dataset_describe says of it. */
typedef struct {
    const char *name;
    fds_dataset *data;
    json_t *about;
} part;

static const json_t *item(const json_t *list, size_t i, const char *key) {
    return json_object_get(json_array_get(list, i), key);
}
static size_t count_at(const json_t *list, size_t i, const char *key) {
    return (size_t)json_integer_value(item(list, i, key));
}
static double number_at(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}
static const json_t *list_of(const part *p, const char *key) {
    return json_object_get(p->about, key);
}

static void print_parts(const part *parts, size_t count) {
    printf("part    samples  shape             values\n");
    for (size_t i = 0; i < count; i++) {
        fds_shape size = fds_dataset_shape(parts[i].data);
        char shape[48];
        snprintf(shape, sizeof shape, "%u x %u x %u", size.channels, size.height, size.width);
        printf("%-6s %8zu  %-16s  %s\n", parts[i].name, fds_dataset_count(parts[i].data), shape,
               fds_dataset_is_bytes(parts[i].data) ? "bytes, seen as 0..1" : "floats");
    }
    if (count == 1)
        printf("(no test part: a fifth of the samples is set aside for testing)\n");
}

/* Entry i's name, else its number. */
static const char *name_at(const json_t *list, size_t i, char number[24]) {
    const char *name = json_string_value(item(list, i, "name"));
    snprintf(number, 24, "%zu", i);
    return name ? name : number;
}

/* A list as lines: how many, and how wide their names are, within what 79 columns allow. */
typedef struct {
    size_t count, shown;
    int width;
} table;

static table measure(const cli_args *args, const json_t *list, size_t usual, const char *heading,
                     int most) {
    table t = {.count = json_array_size(list), .width = (int)strlen(heading)};
    char number[24];
    t.shown = args->all || t.count < usual ? t.count : usual;
    for (size_t i = 0; i < t.shown; i++) {
        int columns = cli_columns(name_at(list, i, number));
        t.width = columns > t.width ? columns : t.width;
    }
    t.width = t.width < most ? t.width : most;
    return t;
}

static void print_name(const json_t *list, size_t i, const table *t) {
    char number[24], name[CLI_NAME_SIZE];
    printf("%s", cli_name(name_at(list, i, number), t->width, name));
}

static void print_more(const table *t, const char *what) {
    if (t->count > t->shown)
        printf("... and %zu more %s (all with --all)\n", t->count - t->shown, what);
}

static void print_classes(const cli_args *args, const part *parts, size_t count) {
    const json_t *classes = list_of(&parts[0], "classes");
    table t = measure(args, classes, CLASSES_SHOWN, "class", MOST_WIDTH);
    printf("\n%-*s", t.width, "class");
    for (size_t i = 0; i < count; i++)
        printf("  %8s", parts[i].name);
    putchar('\n');
    for (size_t c = 0; c < t.shown; c++) {
        print_name(classes, c, &t);
        for (size_t i = 0; i < count; i++)
            printf("  %8zu", count_at(list_of(&parts[i], "classes"), c, "count"));
        putchar('\n');
    }
    print_more(&t, "classes");
}

static void print_range(const json_t *range) {
    printf("  %10.4g  %10.4g  %10.4g  %10.4g\n", number_at(range, "min"), number_at(range, "max"),
           number_at(range, "mean"), number_at(range, "std"));
}

static void print_targets(const part *parts, size_t count) {
    printf("\ntarget  %10s  %10s  %10s  %10s\n", "min", "max", "mean", "std");
    for (size_t i = 0; i < count; i++) {
        printf("%-6s", parts[i].name);
        print_range(list_of(&parts[i], "targets"));
    }
}

static void print_providers(const cli_args *args, const part *p) {
    const json_t *providers = list_of(p, "providers");
    bool has_targets = fds_dataset_is_regression(p->data);
    table t = measure(args, providers, PROVIDERS_SHOWN, "provider", MOST_WIDTH);
    if (t.count)
        printf("\n%-*s  %8s  %*s  %8s  %s\n", t.width, "provider", p->name, has_targets ? 11 : 7,
               has_targets ? "mean target" : "classes", "repeated", "shared with others");
    for (size_t i = 0; i < t.shown; i++) {
        print_name(providers, i, &t);
        printf("  %8zu  ", count_at(providers, i, "count"));
        if (has_targets)
            printf("%11.5g", json_number_value(item(providers, i, "mean_target")));
        else
            printf("%7zu", count_at(providers, i, "classes"));
        printf("  %8zu  %18zu\n", count_at(providers, i, "repeated"),
               count_at(providers, i, "shared"));
    }
    print_more(&t, "providers");
}

static void print_channels(const cli_args *args, const part *p, bool is_first) {
    const json_t *channels = list_of(p, "channels");
    bool is_image = fds_dataset_is_image(p->data);
    const char *kind = is_image ? "channel" : "feature";
    table t = measure(args, channels, CHANNELS_SHOWN, kind, 24);
    if (is_first)
        printf("\n%-*s  %-5s  %10s  %10s  %10s  %10s\n", t.width, kind, "part", "min", "max",
               "mean", "std");
    for (size_t c = 0; c < t.shown; c++) {
        print_name(channels, c, &t);
        printf("  %-5s", p->name);
        print_range(json_array_get(channels, c));
    }
    print_more(&t, is_image ? "channels" : "features");
}

/* ---- the contact sheet ---- */

/* Samples in order of class, so that rows of the picture are classes where the counts allow it. */
static void sort_by_class(const uint32_t *index, size_t count, const fds_dataset *data,
                          uint32_t *sorted) {
    size_t used = 0;
    for (uint32_t c = 0; c < fds_dataset_classes(data); c++)
        for (size_t i = 0; i < count && used < count; i++)
            if (fds_dataset_label(data, index[i]) == c)
                sorted[used++] = index[i];
}

static fds_status draw(const cli_args *args, const fds_dataset *data, size_t *drawn,
                       fds_error *err) {
    char seed[32];
    size_t columns, have = fds_dataset_count(data);
    CLI_TRY(cli_number("count", args->count, have, have < 100 ? have : 100, drawn, err));
    CLI_TRY(cli_number("columns", args->columns, 100, 10, &columns, err));
    CLI_TRY(fds_params_get(args->params, "seed", seed, sizeof seed, err));
    uint32_t *index = cli_alloc(*drawn * 2, sizeof *index, err);
    if (!index)
        return FDS_ERR_NOMEM;
    fds_status status = fds_split_balanced(data, *drawn, strtoull(seed, NULL, 10), index, err);
    if (status == FDS_OK) {
        sort_by_class(index, *drawn, data, index + *drawn);
        status = fds_dataset_draw(data, index + *drawn, *drawn, (uint32_t)columns, args->png, err);
    }
    free(index);
    return status;
}

/* ---- fds data show ---- */

static void show_text(const cli_args *args, const part *parts, size_t count, size_t drawn) {
    printf("data    %s\n\n", fds_dataset_source(parts[0].data));
    print_parts(parts, count);
    if (fds_dataset_is_regression(parts[0].data))
        print_targets(parts, count);
    else
        print_classes(args, parts, count);
    for (size_t i = 0; i < count; i++)
        print_providers(args, &parts[i]);
    for (size_t i = 0; i < count; i++)
        print_channels(args, &parts[i], i == 0);
    if (args->png)
        printf("\n%zu images drawn in %s\n", drawn, args->png);
}

static fds_status show_parts(const cli_args *args, part *parts, size_t count, fds_error *err) {
    size_t drawn = 0;
    for (size_t i = 0; i < count; i++) {
        char *text;
        CLI_TRY(fds_dataset_describe(parts[i].data, &text, err));
        parts[i].about = cli_json(text, err);
        fds_text_free(text);
        if (!parts[i].about)
            return FDS_ERR_NOMEM;
    }
    if (args->png)
        CLI_TRY(draw(args, parts[0].data, &drawn, err));
    if (args->json)
        return cli_print_json(json_pack("{s:s, s:O, s:O?, s:o}", "data", args->operand, "train",
                                        parts[0].about, "test", parts[1].about, "png",
                                        args->png ? json_pack("{s:s, s:I}", "file", args->png,
                                                              "count", (json_int_t)drawn)
                                                  : json_null()),
                              err);
    show_text(args, parts, count, drawn);
    return FDS_OK;
}

static fds_status run_show(cli_args *args, fds_error *err) {
    part parts[2] = {{.name = "train"}, {.name = "test"}};
    if (!args->png && (args->count || args->columns))
        return cli_fail(err, FDS_ERR_USAGE, "--%s needs --png OUT.png",
                        args->count ? "count" : "columns");
    if (args->png)
        CLI_TRY(cli_check_output("--png", args->png, ".png", args, err));
    CLI_TRY(fds_data_open(args->operand, args->params, args->events, &parts[0].data, &parts[1].data,
                          err));
    fds_status status = show_parts(args, parts, parts[1].data ? 2 : 1, err);
    for (size_t i = 0; i < 2; i++) {
        fds_dataset_free(parts[i].data);
        json_decref(parts[i].about);
    }
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
