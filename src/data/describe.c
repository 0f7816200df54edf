/* SPDX-License-Identifier: Apache-2.0
 * What is in a set, as JSON: classes or targets, providers, and the range of every channel. */
#include "data/data.h"

#include <math.h>

/* {"min", "max", "mean", "std"} of the targets; means: (providers) those of each. */
static json_t *describe_targets(const fds_dataset *ds, const fds_holding *holdings, double *means) {
    size_t count = fds_dataset_count(ds);
    double min = INFINITY, max = -INFINITY, mean = 0, variance = 0;
    for (size_t i = 0; i < count; i++) {
        double target = fds_dataset_target(ds, i);
        uint32_t provider = fds_dataset_provider(ds, i);
        min = fmin(min, target);
        max = fmax(max, target);
        mean += target / (double)count;
        if (provider < fds_dataset_providers(ds))
            means[provider] += target / (double)holdings[provider].samples;
    }
    for (size_t i = 0; i < count; i++)
        variance += pow(fds_dataset_target(ds, i) - mean, 2) / (double)count;
    return json_pack("{s:f, s:f, s:f, s:f}", "min", min, "max", max, "mean", mean, "std",
                     sqrt(variance));
}

static json_t *describe_classes(const fds_dataset *ds, const size_t *counts) {
    json_t *list = json_array();
    for (uint32_t c = 0; c < fds_dataset_classes(ds); c++)
        json_array_append_new(list, json_pack("{s:s, s:I}", "name", fds_dataset_class_name(ds, c),
                                              "count", (json_int_t)counts[c]));
    return list;
}

/* A provider may copy samples to seem larger, or take those of others. */
static json_t *describe_providers(const fds_dataset *ds, const fds_holding *holdings,
                                  const double *means) {
    json_t *list = json_array();
    bool has_targets = fds_dataset_is_regression(ds);
    for (uint32_t i = 0; i < fds_dataset_providers(ds); i++) {
        const fds_holding *h = &holdings[i];
        json_t *own = has_targets ? json_real(means[i]) : json_integer((json_int_t)h->classes);
        json_array_append_new(
            list,
            json_pack("{s:s, s:I, s:o, s:I, s:I}", "name", fds_dataset_provider_name(ds, i),
                      "count", (json_int_t)h->samples, has_targets ? "mean_target" : "classes", own,
                      "repeated", (json_int_t)h->repeated, "shared", (json_int_t)h->shared));
    }
    return list;
}

/* stats: (4, channels) least, greatest, mean, standard deviation. */
static json_t *describe_channels(const fds_dataset *ds, const float *stats) {
    uint32_t channels = fds_dataset_shape(ds).channels;
    json_t *list = json_array();
    for (uint32_t c = 0; c < channels; c++)
        json_array_append_new(list, json_pack("{s:s?, s:f, s:f, s:f, s:f}", "name",
                                              fds_dataset_feature_name(ds, c), "min",
                                              (double)stats[c], "max", (double)stats[channels + c],
                                              "mean", (double)stats[2 * channels + c], "std",
                                              (double)stats[3 * channels + c]));
    return list;
}

fds_status fds_dataset_describe(const fds_dataset *ds, char **json, fds_error *err) {
    fds_shape shape = fds_dataset_shape(ds);
    size_t channels = shape.channels, count = fds_dataset_count(ds);
    uint32_t providers = fds_dataset_providers(ds);
    bool has_targets = fds_dataset_is_regression(ds);
    OWNED size_t *counts = NULL;
    OWNED fds_holding *holdings = NULL;
    OWNED float *stats = NULL;
    OWNED double *means = NULL;
    TRY(NEW(counts, fds_dataset_classes(ds), err));
    TRY(NEW(holdings, providers, err));
    TRY(NEW(means, providers, err));
    TRY(NEW(stats, 4 * channels, err));
    for (size_t i = 0; i < count; i++)
        counts[fds_dataset_label(ds, i)]++;
    if (providers)
        TRY(fds_dataset_holdings(ds, holdings, err));
    TRY(fds_dataset_stats(ds, NULL, count, stats, stats + channels, stats + 2 * channels,
                          stats + 3 * channels, err));
    json_t *labels =
        has_targets ? describe_targets(ds, holdings, means) : describe_classes(ds, counts);
    json_t *about = json_pack(
        "{s:s, s:I, s:[i,i,i], s:s, s:s, s:o, s:o, s:o}", "source", fds_dataset_source(ds), "count",
        (json_int_t)count, "shape", (int)channels, (int)shape.height, (int)shape.width, "kind",
        fds_dataset_is_image(ds) ? "images" : "features", "values",
        fds_dataset_is_bytes(ds) ? "bytes" : "floats", has_targets ? "targets" : "classes", labels,
        "providers", describe_providers(ds, holdings, means), "channels",
        describe_channels(ds, stats));
    *json = about ? fds__json_text(about, JSON_COMPACT) : NULL;
    json_decref(about);
    return *json ? FDS_OK : fds__fail_json(err);
}
