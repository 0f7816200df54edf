/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder of an audit:
 *
 *   rows.csv       a line per sample, the lowest value first: rank, sample (from 0), line (of a CSV
 *                  file, from 1), id, provider, label, predicted, probability (of predicted),
 *                  label_probability, value, standard_error, suspect (yes or no), contradicts
 *                  (a sample of the same values and another label), reason
 *   providers.csv  where the data names providers, the lowest value per sample first: provider,
 *                  samples, suspects, share_of_suspects, value, standard_error, value_per_sample,
 *                  value_per_sample_error
 *   report.html    for people; one file that needs nothing else
 *   audit.json     all of it, and how it was made
 *
 * All texts are made before the first is written. Each file is replaced whole, audit.json last: it
 * marks a folder as an audit's, and a complete one. Fields that do not apply are empty.
 */
#include "eval/audit.h"

#include <string.h>
#include <unistd.h>

#define MARK "audit.json"
enum { ROWS, PROVIDERS, PAGE, JSON, FILES, PICTURES = 100, PICTURE_SIDE = 72 };
static const char *const names[FILES] = {"rows.csv", "providers.csv", "report.html", MARK};

/* ---- CSV ---- */

static void add_field(fds__text *csv, const char *text) {
    if (text)
        fds__text_csv(csv, text);
    fds__text_add(csv, ",", 1);
}

static void add_number(fds__text *csv, double value) {
    fds__text_double(csv, value);
    fds__text_add(csv, ",", 1);
}

static void add_count(fds__text *csv, size_t count, bool has_one) {
    fds__text_print(csv, has_one ? "%zu," : ",", count);
}

static void make_rows(const fds_audit *a, fds__text *csv) {
    fds_audit_row r;
    fds__text_print(csv, "rank,sample,line,id,provider,label,predicted,probability,"
                         "label_probability,value,standard_error,suspect,contradicts,reason\n");
    for (size_t rank = 0; fds_audit_row_at(a, rank, &r); rank++) {
        add_count(csv, rank + 1, true);
        add_count(csv, r.sample, true);
        add_count(csv, r.line, r.line > 0);
        add_field(csv, r.id);
        add_field(csv, r.provider);
        add_field(csv, r.label);
        add_field(csv, r.predicted);
        add_number(csv, r.probability);
        add_number(csv, r.label_probability);
        add_number(csv, r.value);
        add_number(csv, r.standard_error);
        add_field(csv, r.is_suspect ? "yes" : "no");
        add_count(csv, r.twin, r.twin != r.sample);
        fds__text_csv(csv, r.reason);
        fds__text_add(csv, "\n", 1);
    }
}

static fds_status make_providers(const fds_audit *a, fds__text *csv, fds_error *err) {
    OWNED size_t *order = NULL;
    TRY(NEW(order, a->ds->providers, err));
    TRY(audit_rank_providers(a, order, err));
    fds__text_print(csv, "provider,samples,suspects,share_of_suspects,value,standard_error,"
                         "value_per_sample,value_per_sample_error\n");
    for (size_t k = 0; k < a->ds->providers; k++) {
        const audit_provider *p = &a->providers[order[k]];
        double samples = (double)MAX(p->samples, 1);
        add_field(csv, fds_dataset_provider_name(a->ds, (uint32_t)order[k]));
        add_count(csv, p->samples, true);
        add_count(csv, p->suspects, true);
        add_number(csv, (double)p->suspects / samples);
        add_number(csv, p->value);
        add_number(csv, p->error);
        add_number(csv, p->value / samples);
        fds__text_double(csv, p->error / samples);
        fds__text_add(csv, "\n", 1);
    }
    return FDS_OK;
}

/* ---- the page ---- */

static fds_status draw_one(const draw_brush *brush, size_t sample, report_picture *out,
                           fds_error *err) {
    fds__picture canvas = {0};
    TRY(draw_canvas_create(brush->width, brush->height, &canvas, err));
    draw_canvas_sample(&canvas, brush, sample, 0, 0);
    fds_status status = fds__png_encode(&canvas, &out->data, &out->size, err);
    fds__free(canvas.pixels);
    return status;
}

/* Small pictures of the suspects that the page shows; none of data that is not images. */
static fds_status draw_suspects(const fds_audit *a, report_picture *pictures, size_t *count,
                                fds_error *err) {
    uint32_t index[PICTURES];
    draw_brush brush;
    size_t wanted = a->ds->is_image ? MIN(a->suspects, (size_t)PICTURES) : 0;
    for (size_t i = 0; i < wanted; i++)
        index[i] = (uint32_t)a->order[i];
    if (wanted)
        TRY(draw_brush_make(a->ds, index, wanted, PICTURE_SIDE, &brush, err));
    for (*count = 0; *count < wanted; ++*count)
        TRY(draw_one(&brush, index[*count], &pictures[*count], err));
    return FDS_OK;
}

static fds_status make_page(const fds_audit *a, const json_t *json, fds__text *html,
                            fds_error *err) {
    report_picture pictures[PICTURES] = {{0}};
    size_t count = 0;
    fds_status status = draw_suspects(a, pictures, &count, err);
    if (status == FDS_OK)
        status = report_audit(json, pictures, count, html, err);
    for (size_t i = 0; i < PICTURES; i++)
        fds__free(pictures[i].data);
    return status;
}

static fds_status make_texts(const fds_audit *a, const char *command, fds__text *texts,
                             fds_error *err) {
    json_t *json = audit_json(a);
    if (!json || (command && !fds__json_put(json, "command", fds__json_string(command)))) {
        json_decref(json);
        return fds__fail_json(err);
    }
    make_rows(a, &texts[ROWS]);
    fds_status status = a->ds->providers ? make_providers(a, &texts[PROVIDERS], err) : FDS_OK;
    if (status == FDS_OK)
        status = make_page(a, json, &texts[PAGE], err);
    char *text = status == FDS_OK ? fds__json_text(json, JSON_INDENT(1)) : NULL;
    json_decref(json);
    TRY(status);
    if (!text)
        return fds__fail_json(err);
    fds__text_add(&texts[JSON], text, strlen(text));
    fds__text_add(&texts[JSON], "\n", 1);
    fds__free(text);
    for (size_t i = 0; i < FILES; i++)
        if (i != PROVIDERS || a->ds->providers)
            TRY(fds__text_check(&texts[i], err));
    return FDS_OK;
}

/* ---- the folder ---- */

fds_status fds_audit_check_folder(const char *dir, fds_error *err) {
    return fds__path_exists(dir) ? eval_folder_check(dir, MARK, "an audit", err) : FDS_OK;
}

static fds_status write_files(const char *dir, const fds__text *texts, fds_error *err) {
    char path[FDS__PATH_MAX];
    for (size_t i = 0; i < FILES; i++) {
        TRY(fds__path_join(path, sizeof path, dir, names[i], err));
        TRY(fds__out_sweep(path, err));
        if (texts[i].used)
            TRY(fds__file_write(path, texts[i].data, texts[i].used, err));
        else if (fds__path_exists(path)) /* of an earlier audit */
            TRY(fds__file_remove(path, err));
    }
    return FDS_OK;
}

/* What a failure leaves in a folder that was not there before. */
static void remove_files(const char *dir) {
    char path[FDS__PATH_MAX];
    for (size_t i = 0; i < FILES; i++)
        if (fds__path_join(path, sizeof path, dir, names[i], NULL) == FDS_OK)
            unlink(path);
    rmdir(dir);
}

fds_status fds_audit_save(const fds_audit *a, const char *dir, const char *command,
                          fds_error *err) {
    fds__text texts[FILES] = {{0}};
    TRY(fds_audit_check_folder(dir, err));
    bool is_new = !fds__path_exists(dir);
    fds_status status = make_texts(a, command, texts, err);
    if (status == FDS_OK)
        status = fds__mkdirs(dir, err);
    if (status == FDS_OK) {
        status = write_files(dir, texts, err);
        if (status != FDS_OK && is_new)
            remove_files(dir);
    }
    for (size_t i = 0; i < FILES; i++)
        fds__free(texts[i].data);
    return status;
}
