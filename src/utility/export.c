/* SPDX-License-Identifier: Apache-2.0
 *
 * The game in files that other programs read, so that they can train the sub-models again
 * (docs/game.md):
 *
 *   samples.csv          role,row,sample,label,player: first the players' samples, then the inputs.
 *                        row: the place of a sample among the players' samples, or of an input in
 *                        the table. sample: its number in the data, or, of an input with the
 *                        parameter inputs_from test, in the test part. label: its class, from 0, or
 *                        its target.
 *                        player: the owner of a player's sample, empty for an input
 *   initial.safetensors  the weights that every network starts from; only where there is a network
 *   coalitions.csv       role,weight,players: players has one character per player, 1 for a member
 */
#include "utility/utility.h"

#include <string.h>

enum { CHUNK = 1 << 20 };

static fds_status open_file(const char *dir, const char *name, fds__out **out, fds_error *err) {
    char path[FDS__PATH_MAX];
    TRY(fds__path_join(path, sizeof path, dir, name, err));
    TRY(fds__out_sweep(path, err));
    return fds__out_open(path, out, err);
}

/* Writes the text that has grown to a chunk, or, with is_last, what there is. */
static fds_status pass_on(fds__text *text, fds__out *out, bool is_last, fds_error *err) {
    if (text->used < CHUNK && !is_last)
        return FDS_OK;
    TRY(fds__text_check(text, err));
    size_t size = text->used;
    text->used = 0;
    return fds__out_write(out, text->data, size, err);
}

/* Ends a file: all of it is there, or none. Frees what text has. */
static fds_status finish(fds_status status, fds__text *text, fds__out *out, fds_error *err) {
    if (status == FDS_OK)
        status = pass_on(text, out, true, err);
    fds__free(text->data);
    if (status == FDS_OK)
        return fds__out_commit(out, err);
    fds__out_abort(out);
    return status;
}

/* ---- samples ---- */

static void add_label(fds__text *text, const fds_dataset *ds, const fds_inputs *in, size_t i) {
    if (ds->targets)
        fds__text_double(text, ds->targets[in->ids[i]]);
    else
        fds__text_print(text, "%u", in->labels[i]);
}

static fds_status write_samples(const fds__utility_data *data, size_t validation, const char *role,
                                fds__text *text, fds__out *out, fds_error *err) {
    const fds_inputs *own = data->samples, *in = data->inputs;
    fds__text_print(text, "role,row,sample,label,player\n");
    for (size_t i = 0; i < own->count; i++) {
        fds__text_print(text, "player,%zu,%u,", i, own->ids[i]);
        add_label(text, data->train, own, i);
        fds__text_print(text, ",%u\n", data->owner[i]);
        TRY(pass_on(text, out, false, err));
    }
    for (size_t i = 0; i < in->count; i++) {
        bool is_validation = i >= in->count - validation;
        fds__text_print(text, "%s,%zu,%u,", is_validation ? "validation" : role, i, in->ids[i]);
        add_label(text, data->test, in, i);
        fds__text_add(text, ",\n", 2);
        TRY(pass_on(text, out, false, err));
    }
    return FDS_OK;
}

fds_status fds__export_samples(const char *dir, const fds_utility *utility, const char *role,
                               size_t validation, fds_error *err) {
    fds__out *out;
    fds__text text = {0};
    TRY(open_file(dir, FDS__EXPORT_SAMPLES, &out, err));
    fds_status status = write_samples(utility->data, validation, role, &text, out, err);
    return finish(status, &text, out, err);
}

/* ---- the initial network ---- */

static fds_status write_network(const char *path, const fds_net *net, uint64_t seed,
                                fds_error *err) {
    fds__tensor tensors[FDS__MAX_TENSORS];
    const fds__meta meta[] = {{"format", "pt"}, {"fds.network", net->text}};
    OWNED float *weights = NULL;
    TRY(NEW(weights, net->weights, err));
    fds_net_init(net, seed, weights);
    for (uint32_t i = 0; i < net->tensor_count; i++) {
        const fds_tensor_info *t = &net->tensors[i];
        tensors[i] = (fds__tensor){.name = t->name, .rank = t->rank, .values = weights + t->offset};
        memcpy(tensors[i].dims, t->dims, sizeof t->dims);
    }
    return fds__safetensors_write(path, tensors, net->tensor_count, meta,
                                  sizeof meta / sizeof *meta, NULL, err);
}

/* The network is known by the parameters, whatever kind of utility function has it. */
fds_status fds__export_initial(const char *dir, const fds_utility *utility, fds_error *err) {
    char path[FDS__PATH_MAX];
    json_t *about;
    fds_net *net = NULL;
    TRY(fds__path_join(path, sizeof path, dir, FDS__EXPORT_INITIAL, err));
    TRY(fds__out_sweep(path, err));
    TRY(fds__json_parse("parameters", utility->text, strlen(utility->text), &about, err));
    const char *network = json_string_value(json_object_get(about, "network"));
    uint64_t seed = (uint64_t)json_integer_value(json_object_get(about, "seed"));
    fds_status status = network ? fds__net_for(network, utility->data->train, &net, err) : FDS_OK;
    if (status == FDS_OK && net)
        status = write_network(path, net, seed, err);
    fds_net_free(net);
    json_decref(about);
    return status;
}

/* ---- coalitions ---- */

static fds_status write_rows(const fds_plan *plan, size_t first, const char *role, fds__text *text,
                             fds__out *out, fds_error *err) {
    for (size_t row = first; row < plan->rows; row++) {
        const uint64_t *bits = fds_plan_coalition(plan, row);
        fds__text_print(text, "%s,", row == 0 ? "none" : row == 1 ? "all" : role);
        fds__text_double(text, fds_plan_weight(plan, row));
        fds__text_add(text, ",", 1);
        for (size_t p = 0; p < plan->players; p++)
            fds__text_add(text, fds_coalition_has(bits, p) ? "1" : "0", 1);
        fds__text_add(text, "\n", 1);
        TRY(pass_on(text, out, false, err));
    }
    return FDS_OK;
}

fds_status fds__export_coalitions(const char *dir, const fds_plan *plan, const fds_plan *validation,
                                  fds_error *err) {
    fds__out *out;
    fds__text text = {0};
    TRY(open_file(dir, FDS__EXPORT_COALITIONS, &out, err));
    fds__text_print(&text, "role,weight,players\n");
    fds_status status = write_rows(plan, 0, "training", &text, out, err);
    if (status == FDS_OK) /* its first two rows are none and all again */
        status = write_rows(validation, 2, "validation", &text, out, err);
    return finish(status, &text, out, err);
}
