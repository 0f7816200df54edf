/* SPDX-License-Identifier: Apache-2.0
 * Answers of the Open Inference Protocol: JSON, and raw little-endian tensors behind it. */
#include "serve/oip.h"

#include <math.h>

/* ---- JSON ---- */

#define ADD(out, literal) fds__text_add(out, literal, sizeof(literal) - 1)

void oip_write_string(fds__text *out, const char *text) {
    ADD(out, "\"");
    while (*text) {
        uint32_t code;
        size_t size = fds__utf8(text, &code);
        if (size == 0)
            ADD(out, "?");
        else if (code == '"' || code == '\\')
            fds__text_print(out, "\\%c", (char)code);
        else if (fds__is_control(code))
            fds__text_print(out, "\\u%04x", (unsigned)code);
        else
            fds__text_add(out, text, size);
        text += size ? size : 1;
    }
    ADD(out, "\"");
}

void oip_write_error(fds__text *out, const char *message) {
    ADD(out, "{\"error\":");
    oip_write_string(out, message);
    ADD(out, "}");
}

/* Nine digits: values are known to far fewer, and raw tensors have all. JSON has no NaN. */
static void write_double(fds__text *out, double value) {
    if (isfinite(value))
        fds__text_nine(out, value);
    else
        ADD(out, "null");
}

static void write_float(fds__text *out, float value) {
    if (isfinite(value))
        fds__text_float(out, value);
    else
        ADD(out, "null");
}

/* ---- tensors ---- */

/* The datatype, and the dimensions behind the batch; players and payees have no batch. */
typedef struct {
    const char *datatype;
    size_t size;    /* bytes of an item; 0: texts */
    size_t columns; /* items of a sample; 0: one, without a dimension of its own */
    bool has_batch;
} form;

static form form_of(const oip_model *m, oip_output what) {
    switch (what) {
    case OIP_LABEL:
        return (form){"BYTES", 0, 0, true};
    case OIP_PROBABILITIES:
        return (form){"FP32", 4, m->classes, true};
    case OIP_PREDICTION:
        return (form){"FP64", 8, 0, true};
    case OIP_VALUES:
    case OIP_ERRORS:
        return (form){"FP64", 8, m->players, true};
    case OIP_SHARES:
        return (form){"FP64", 8, m->payees, true};
    case OIP_PLAYERS:
        return (form){"BYTES", 0, m->players, false};
    case OIP_PAYEES:
        return (form){"BYTES", 0, m->payees, false};
    default:
        return (form){"INT64", 8, 0, true};
    }
}

/* What is being written. */
typedef struct {
    const oip_model *model;
    const oip_answers *answers;
    size_t count;
    oip_body *body;
} writer;

static size_t columns_of(const form *f) { return f->columns ? f->columns : 1; }
static size_t items_of(const writer *w, const form *f) {
    return (f->has_batch ? w->count : 1) * columns_of(f);
}

static const char *text_at(const writer *w, oip_output what, size_t i) {
    const oip_model *m = w->model;
    return what == OIP_LABEL     ? m->class_names[w->answers->labels[i]]
           : what == OIP_PLAYERS ? m->player_names[i]
                                 : m->payee_names[i];
}

static const double *doubles_of(const writer *w, oip_output what) {
    const oip_answers *a = w->answers;
    return what == OIP_PREDICTION ? a->predictions
           : what == OIP_VALUES   ? a->values
           : what == OIP_ERRORS   ? a->errors
                                  : a->shares;
}

/* Where the receipt of a sample will stand. */
static void leave_hole(writer *w, size_t sample) {
    assert(w->body->text.used <= UINT32_MAX);
    w->body->holes[sample] = (uint32_t)w->body->text.used;
}

static void write_item(writer *w, oip_output what, size_t i) {
    fds__text *out = &w->body->text;
    const form f = form_of(w->model, what);
    if (f.size == 0)
        oip_write_string(out, text_at(w, what, i));
    else if (what == OIP_RECEIPT)
        leave_hole(w, i);
    else if (what == OIP_PROBABILITIES)
        write_float(out, w->answers->probs[i]);
    else
        write_double(out, doubles_of(w, what)[i]);
}

static void write_items(writer *w, oip_output what, size_t first, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (i)
            ADD(&w->body->text, ",");
        write_item(w, what, first + i);
    }
}

static size_t raw_size(const writer *w, oip_output what) {
    const form f = form_of(w->model, what);
    size_t items = items_of(w, &f), size = 0;
    if (f.size)
        return items * f.size;
    for (size_t i = 0; i < items; i++)
        size += 4 + strlen(text_at(w, what, i));
    return size;
}

static void write_raw(writer *w, oip_output what) {
    fds__text *out = &w->body->text;
    const form f = form_of(w->model, what);
    size_t items = items_of(w, &f);
    if (what == OIP_RECEIPT) { /* holes are side by side: bytes come between them */
        for (size_t i = 0; i < items; i++)
            leave_hole(w, i);
    } else if (what == OIP_PROBABILITIES) {
        fds__text_add(out, (const char *)w->answers->probs, items * f.size);
    } else if (f.size) {
        fds__text_add(out, (const char *)doubles_of(w, what), items * f.size);
    } else {
        for (size_t i = 0; i < items; i++) {
            const char *text = text_at(w, what, i);
            uint32_t length = (uint32_t)strlen(text);
            fds__text_add(out, (const char *)&length, sizeof length);
            fds__text_add(out, text, length);
        }
    }
}

static void write_tensor(writer *w, oip_output what, bool is_binary) {
    fds__text *out = &w->body->text;
    const form f = form_of(w->model, what);
    fds__text_print(out, "{\"name\":\"%s\",\"datatype\":\"%s\",\"shape\":[", oip_output_name(what),
                    f.datatype);
    if (f.has_batch)
        fds__text_print(out, "%zu", w->count);
    if (f.columns)
        fds__text_print(out, "%s%zu", f.has_batch ? "," : "", f.columns);
    ADD(out, "],");
    if (is_binary) {
        fds__text_print(out, "\"parameters\":{\"binary_data_size\":%zu}}", raw_size(w, what));
        return;
    }
    ADD(out, "\"data\":[");
    write_items(w, what, 0, items_of(w, &f));
    ADD(out, "]}");
}

static void compose_v2(writer *w, const oip_request *r) {
    fds__text *out = &w->body->text;
    bool has_raw = false;
    ADD(out, "{\"model_name\":");
    oip_write_string(out, w->model->name);
    ADD(out, ",\"model_version\":");
    oip_write_string(out, w->model->version);
    if (r->has_id) {
        ADD(out, ",\"id\":");
        oip_write_string(out, r->id);
    }
    ADD(out, ",\"outputs\":[");
    for (size_t i = 0; i < r->asked_count; i++) {
        if (i)
            ADD(out, ",");
        write_tensor(w, r->asked[i].what, r->asked[i].is_binary);
        has_raw |= r->asked[i].is_binary;
    }
    ADD(out, "]}");
    if (!has_raw)
        return;
    w->body->json_size = out->used;
    for (size_t i = 0; i < r->asked_count; i++)
        if (r->asked[i].is_binary)
            write_raw(w, r->asked[i].what);
}

/* An object for each instance; names of players and payees once, beside them. */
static void compose_v1(writer *w, const oip_request *r) {
    fds__text *out = &w->body->text;
    fds__text_print(out, "{\"%s\":[", w->model->is_explained ? "explanations" : "predictions");
    for (size_t k = 0; k < w->count; k++) {
        const char *comma = "";
        fds__text_print(out, "%s{", k ? "," : "");
        for (size_t i = 0; i < r->asked_count; i++) {
            const form f = form_of(w->model, r->asked[i].what);
            if (!f.has_batch)
                continue;
            fds__text_print(out, "%s\"%s\":%s", comma, oip_output_name(r->asked[i].what),
                            f.columns ? "[" : "");
            write_items(w, r->asked[i].what, k * columns_of(&f), columns_of(&f));
            fds__text_print(out, "%s", f.columns ? "]" : "");
            comma = ",";
        }
        ADD(out, "}");
    }
    ADD(out, "]");
    for (size_t i = 0; i < r->asked_count; i++) {
        const form f = form_of(w->model, r->asked[i].what);
        if (f.has_batch)
            continue;
        fds__text_print(out, ",\"%s\":[", oip_output_name(r->asked[i].what));
        write_items(w, r->asked[i].what, 0, f.columns);
        ADD(out, "]");
    }
    ADD(out, "}");
}

static bool asks_for(const oip_request *r, oip_output what) {
    for (size_t i = 0; i < r->asked_count; i++)
        if (r->asked[i].what == what)
            return true;
    return false;
}

fds_status oip_compose(const oip_model *m, const oip_request *r, const oip_answers *answers,
                       oip_body *out, fds_error *err) {
    writer w = {.model = m, .answers = answers, .count = r->count, .body = out};
    *out = (oip_body){.json_size = SIZE_MAX};
    if (asks_for(r, OIP_RECEIPT)) {
        TRY(NEW(out->holes, r->count, err));
        out->hole_count = r->count;
    }
    if (r->is_v1)
        compose_v1(&w, r);
    else
        compose_v2(&w, r);
    fds_status status = fds__text_check(&out->text, err);
    if (status != FDS_OK)
        oip_body_free(out);
    return status;
}

void oip_body_free(oip_body *body) {
    fds__free(body->text.data);
    fds__free(body->holes);
    *body = (oip_body){.json_size = SIZE_MAX};
}

/* ---- receipts ---- */

fds_status oip_finish(const oip_body *body, const uint64_t *receipts, fds__text *out,
                      size_t *json_size, fds_error *err) {
    size_t done = 0;
    *json_size = body->json_size;
    for (size_t i = 0; i < body->hole_count; i++) {
        size_t hole = body->holes[i];
        fds__text_add(out, body->text.data + done, hole - done);
        done = hole;
        size_t before = out->used;
        if (hole < body->json_size) { /* all holes, if there is only JSON */
            fds__text_print(out, "%llu", (unsigned long long)receipts[i]);
            *json_size += *json_size == SIZE_MAX ? 0 : out->used - before;
        } else {
            fds__text_add(out, (const char *)&receipts[i], sizeof receipts[i]);
        }
    }
    fds__text_add(out, body->text.data + done, body->text.used - done);
    return fds__text_check(out, err);
}

static const char magic[4] = {'F', 'D', 'S', 'B'};
enum { PACK_HEAD = 4 + 8 + 4 };

fds_status oip_pack(const oip_body *body, fds__text *out, fds_error *err) {
    uint64_t json_size = body->json_size;
    uint32_t holes = (uint32_t)body->hole_count;
    fds__text_add(out, magic, sizeof magic);
    fds__text_add(out, (const char *)&json_size, sizeof json_size);
    fds__text_add(out, (const char *)&holes, sizeof holes);
    if (holes)
        fds__text_add(out, (const char *)body->holes, holes * sizeof *body->holes);
    fds__text_add(out, body->text.data, body->text.used);
    return fds__text_check(out, err);
}

/* Holes lie within the text, none before another. */
static bool is_sound(const oip_body *body) {
    for (size_t i = 0; i < body->hole_count; i++)
        if (body->holes[i] > body->text.used || (i && body->holes[i] < body->holes[i - 1]))
            return false;
    return body->json_size == SIZE_MAX || body->json_size <= body->text.used;
}

fds_status oip_unpack(const void *data, size_t size, oip_body *out, fds_error *err) {
    const char *at = data;
    uint64_t json_size;
    uint32_t holes;
    *out = (oip_body){.json_size = SIZE_MAX};
    if (size < PACK_HEAD || memcmp(at, magic, sizeof magic) != 0)
        return fds__fail(err, FDS_ERR_CORRUPT, "a kept answer is not one of this program");
    memcpy(&json_size, at + 4, sizeof json_size);
    memcpy(&holes, at + 12, sizeof holes);
    at += PACK_HEAD;
    size -= PACK_HEAD;
    if (holes > size / sizeof *out->holes)
        return fds__fail(err, FDS_ERR_CORRUPT, "a kept answer is damaged");
    TRY(NEW(out->holes, holes, err));
    memcpy(out->holes, at, holes * sizeof *out->holes);
    out->hole_count = holes;
    out->json_size = json_size;
    fds__text_add(&out->text, at + holes * sizeof *out->holes, size - holes * sizeof *out->holes);
    fds_status status = fds__text_check(&out->text, err);
    if (status == FDS_OK && !is_sound(out))
        status = fds__fail(err, FDS_ERR_CORRUPT, "a kept answer is damaged");
    if (status != FDS_OK)
        oip_body_free(out);
    return status;
}

/* ---- metadata ---- */

void oip_write_metadata(fds__text *out, const oip_model *m) {
    const char *comma = "";
    ADD(out, "{\"name\":");
    oip_write_string(out, m->name);
    ADD(out, ",\"versions\":[");
    oip_write_string(out, m->version);
    ADD(out, "],\"platform\":\"fds\",\"inputs\":[{\"name\":\"" OIP_INPUT
             "\",\"datatype\":\"FP32\",\"shape\":[-1,");
    if (m->shape.height == 1 && m->shape.width == 1)
        fds__text_print(out, "%u]}],", m->shape.channels);
    else
        fds__text_print(out, "%u,%u,%u]}],", m->shape.channels, m->shape.height, m->shape.width);
    ADD(out, "\"outputs\":[");
    for (oip_output what = 0; what < OIP_OUTPUTS; what++) {
        const form f = form_of(m, what);
        if (!oip_has_output(m, what))
            continue;
        fds__text_print(out, "%s{\"name\":\"%s\",\"datatype\":\"%s\",\"shape\":[%s", comma,
                        oip_output_name(what), f.datatype, f.has_batch ? "-1" : "");
        if (f.columns)
            fds__text_print(out, "%s%zu", f.has_batch ? "," : "", f.columns);
        ADD(out, "]}");
        comma = ",";
    }
    ADD(out, "]}");
}
