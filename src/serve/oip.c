/* SPDX-License-Identifier: Apache-2.0
 * Requests of the Open Inference Protocol, checked before anything is computed. */
#include "serve/oip.h"

#include <math.h>
#include <stdlib.h>

/* ---- datatypes ---- */

typedef enum { KIND_BOOL, KIND_UNSIGNED, KIND_SIGNED, KIND_FLOAT } number_kind;

typedef struct {
    const char *name;
    number_kind kind;
    size_t size; /* bytes */
} datatype;

static const datatype datatypes[] = {
    {"BOOL", KIND_BOOL, 1},       {"UINT8", KIND_UNSIGNED, 1},  {"UINT16", KIND_UNSIGNED, 2},
    {"UINT32", KIND_UNSIGNED, 4}, {"UINT64", KIND_UNSIGNED, 8}, {"INT8", KIND_SIGNED, 1},
    {"INT16", KIND_SIGNED, 2},    {"INT32", KIND_SIGNED, 4},    {"INT64", KIND_SIGNED, 8},
    {"FP16", KIND_FLOAT, 2},      {"FP32", KIND_FLOAT, 4},      {"FP64", KIND_FLOAT, 8},
};
enum { DATATYPES = sizeof datatypes / sizeof *datatypes };

static fds_status find_datatype(const char *name, const datatype **out, fds_error *err) {
    const char *names[DATATYPES + 1] = {NULL};
    char hint[FDS__HINT];
    for (size_t i = 0; i < DATATYPES; i++) {
        names[i] = datatypes[i].name;
        if (strcmp(name, datatypes[i].name) == 0) {
            *out = &datatypes[i];
            return FDS_OK;
        }
    }
    if (strcmp(name, "BYTES") == 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "datatype BYTES is not accepted: send the numbers of a sample as FP32, or "
                         "pixels as UINT8");
    return fds__fail(err, FDS_ERR_USAGE, "unknown datatype \"%.40s\"%s", name,
                     fds__hint(name, names, hint));
}

/* One raw number; memcpy because tensors are not aligned. */
static double read_raw(const datatype *type, const uint8_t *at) {
    uint64_t bits = 0;
    float f32;
    double f64;
    memcpy(&bits, at, type->size); /* little-endian */
    switch (type->kind) {
    case KIND_BOOL:
        return bits != 0;
    case KIND_UNSIGNED:
        return (double)bits;
    case KIND_SIGNED: {
        unsigned empty = 64 - 8 * (unsigned)type->size;
        return (double)((int64_t)(bits << empty) >> empty);
    }
    default:
        if (type->size == 2)
            return fds__half_to_double((uint16_t)bits);
        memcpy(&f32, at, sizeof f32);
        if (type->size == 4)
            return (double)f32;
        memcpy(&f64, at, sizeof f64);
        return f64;
    }
}

/* ---- where numbers go ---- */

typedef struct {
    const oip_model *model;
    const datatype *type;
    float *out; /* (total) */
    size_t used, total;
} sink;

static fds_status put(sink *s, double value, fds_error *err) {
    float number = (float)value;
    if (!isfinite(number))
        return fds__fail(err, FDS_ERR_USAGE, "number %zu (from 0) of the data is not finite",
                         s->used);
    if (s->model->is_image && s->type->kind == KIND_UNSIGNED && s->type->size == 1)
        number = number / 255.0f; /* as datasets of bytes do */
    s->out[s->used++] = number;
    return FDS_OK;
}

static fds_status fail_number(const sink *s, const char *what, fds_error *err) {
    return fds__fail(err, FDS_ERR_USAGE, "number %zu (from 0) of the data %s %s", s->used, what,
                     s->type->name);
}

/* One number of JSON as the datatype allows it. */
static fds_status put_json(sink *s, const json_t *json, fds_error *err) {
    const datatype *t = s->type;
    if (t->kind == KIND_BOOL && json_is_boolean(json))
        return put(s, json_is_true(json), err);
    if (!json_is_number(json))
        return fail_number(s,
                           json_is_array(json) ? "is an array where a number belongs, of datatype"
                                               : "is no number of datatype",
                           err);
    if (t->kind == KIND_FLOAT)
        return put(s, json_number_value(json), err);
    if (!json_is_integer(json))
        return fail_number(s, "is no integer; its datatype is", err);
    json_int_t value = json_integer_value(json);
    if (t->kind == KIND_BOOL && value != 0 && value != 1)
        return fail_number(s, "is neither 0 nor 1; its datatype is", err);
    unsigned bits = 8 * (unsigned)t->size;
    bool fits = true;
    if (t->kind == KIND_UNSIGNED)
        fits = value >= 0 && (bits >= 64 || (uint64_t)value >> bits == 0);
    if (t->kind == KIND_SIGNED && bits < 64)
        fits = value >= -((int64_t)1 << (bits - 1)) && value < (int64_t)1 << (bits - 1);
    return fits ? put(s, (double)value, err) : fail_number(s, "is out of the range of", err);
}

/* An array that is nested as dims say. */
static fds_status put_nested(sink *s, const json_t *json, const size_t *dims, size_t rank,
                             fds_error *err) {
    if (rank == 0)
        return put_json(s, json, err);
    if (!json_is_array(json) || json_array_size(json) != dims[0])
        return fds__fail(err, FDS_ERR_USAGE,
                         "the nested data does not follow the shape: %zu items instead of %zu near "
                         "number %zu (from 0)",
                         json_is_array(json) ? json_array_size(json) : 1, dims[0], s->used);
    for (size_t i = 0; i < dims[0]; i++)
        TRY(put_nested(s, json_array_get(json, i), dims + 1, rank - 1, err));
    return FDS_OK;
}

static fds_status put_data(sink *s, const json_t *data, const size_t *dims, size_t rank,
                           fds_error *err) {
    if (!json_is_array(data))
        return fds__fail(err, FDS_ERR_USAGE, "\"data\" must be an array of numbers");
    if (json_is_array(json_array_get(data, 0)))
        return put_nested(s, data, dims, rank, err);
    if (json_array_size(data) != s->total)
        return fds__fail(err, FDS_ERR_USAGE, "\"data\" has %zu numbers, but the shape needs %zu",
                         json_array_size(data), s->total);
    for (size_t i = 0; i < s->total; i++)
        TRY(put_json(s, json_array_get(data, i), err));
    return FDS_OK;
}

/* ---- shapes ---- */

typedef struct {
    size_t rank, dims[OIP_RANK];
} tensor_shape;

static void write_shape(const tensor_shape *shape, char *out, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < shape->rank && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%zu", i ? ", " : "", shape->dims[i]);
}

static fds_status fail_shape(const oip_model *m, const tensor_shape *shape, fds_error *err) {
    char got[OIP_RANK * 24] = "";
    fds_shape s = m->shape;
    write_shape(shape, got, sizeof got);
    if (s.height == 1 && s.width == 1)
        return fds__fail(err, FDS_ERR_USAGE, "shape [%s]: it must be [batch, %u]", got, s.channels);
    return fds__fail(err, FDS_ERR_USAGE,
                     "shape [%s]: it must be [batch, %u, %u, %u] (channels, rows, columns)%s or "
                     "[batch, %zu]",
                     got, s.channels, s.height, s.width,
                     s.channels == 1 ? ", without channels," : "", fds__shape_size(s));
}

/* Whether the dimensions behind the batch are a sample of the model. */
static bool fits(const oip_model *m, const tensor_shape *shape) {
    const size_t *d = shape->dims + 1, rank = shape->rank - 1;
    fds_shape s = m->shape;
    if (rank == 1)
        return d[0] == fds__shape_size(s);
    if (rank == 2)
        return s.channels == 1 && d[0] == s.height && d[1] == s.width;
    return rank == 3 && d[0] == s.channels && d[1] == s.height && d[2] == s.width;
}

static fds_status check_shape(const oip_model *m, const oip_limits *limits,
                              const tensor_shape *shape, fds_error *err) {
    if (shape->rank < 2 || !fits(m, shape) || shape->dims[0] == 0)
        return fail_shape(m, shape, err);
    if (shape->dims[0] > limits->batch)
        return fds__fail(err, FDS_ERR_LIMIT, "a batch of %zu samples: at most %zu are accepted",
                         shape->dims[0], limits->batch);
    return FDS_OK;
}

static fds_status read_shape(const json_t *json, tensor_shape *out, fds_error *err) {
    out->rank = json_array_size(json);
    if (!json_is_array(json) || out->rank == 0 || out->rank > OIP_RANK)
        return fds__fail(err, FDS_ERR_USAGE, "\"shape\" must be an array of 1 to %d integers",
                         OIP_RANK);
    for (size_t i = 0; i < out->rank; i++) {
        const json_t *dim = json_array_get(json, i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return fds__fail(err, FDS_ERR_USAGE, "\"shape\": item %zu must be an integer from 0",
                             i);
        out->dims[i] = (size_t)json_integer_value(dim);
    }
    return FDS_OK;
}

/* The samples of a request, all 0, and a sink for them. The limits bound the product. */
static fds_status reserve(const oip_model *m, const datatype *type, size_t count, oip_request *out,
                          sink *s, fds_error *err) {
    size_t total;
    if (!fds__mul(count, fds__shape_size(m->shape), &total))
        return fds__fail(err, FDS_ERR_LIMIT, "a batch of %zu samples is too large", count);
    TRY(NEW(out->samples, total, err));
    out->count = count;
    *s = (sink){.model = m, .type = type, .out = out->samples, .total = total};
    return FDS_OK;
}

/* ---- JSON ---- */

/* jansson would go 2,048 levels deep. */
static bool is_too_deep(const char *text, size_t size) {
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > OIP_DEPTH)
                return true;
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return false;
}

/* An object, without repeated keys. */
static fds_status read_json(const oip_limits *limits, const void *body, size_t size, json_t **out,
                            fds_error *err) {
    fds_error why;
    if (size > limits->json)
        return fds__fail(err, FDS_ERR_LIMIT,
                         "%zu bytes of JSON: at most %zu are accepted; send tensors as raw bytes",
                         size, limits->json);
    if (size == 0)
        return fds__fail(err, FDS_ERR_USAGE, "the request is empty: JSON is expected");
    if (is_too_deep(body, size))
        return fds__fail(err, FDS_ERR_USAGE, "the JSON is nested more than %d deep", OIP_DEPTH);
    fds_status status = fds__json_parse("JSON", body, size, out, &why);
    if (status != FDS_OK)
        return fds__fail(err, status == FDS_ERR_NOMEM ? status : FDS_ERR_USAGE, "%s", why.text);
    if (json_is_object(*out))
        return FDS_OK;
    json_decref(*out);
    *out = NULL;
    return fds__fail(err, FDS_ERR_USAGE, "the request must be a JSON object");
}

/* Parameters are texts, numbers and booleans; null and a missing object are fine. */
static fds_status check_parameters(const json_t *json, const char *whose, fds_error *err) {
    const char *key;
    json_t *value;
    if (!json || json_is_null(json))
        return FDS_OK;
    if (!json_is_object(json))
        return fds__fail(err, FDS_ERR_USAGE, "\"parameters\" of %s must be an object", whose);
    json_object_foreach((json_t *)(uintptr_t)json, key, value) {
        if (!json_is_string(value) && !json_is_number(value) && !json_is_boolean(value))
            return fds__fail(err, FDS_ERR_USAGE,
                             "parameter \"%.60s\" of %s must be a string, a number or a boolean",
                             key, whose);
        if (strncmp(key, "shared_memory", 13) == 0 || strcmp(key, "classification") == 0)
            return fds__fail(err, FDS_ERR_USAGE, "parameter \"%.60s\" of %s is not supported", key,
                             whose);
    }
    return FDS_OK;
}

static fds_status read_flag(const json_t *parameters, const char *name, bool *out, fds_error *err) {
    const json_t *value = json_object_get(parameters, name);
    if (value && !json_is_boolean(value))
        return fds__fail(err, FDS_ERR_USAGE, "parameter \"%s\" must be true or false", name);
    *out = value ? json_is_true(value) : *out;
    return FDS_OK;
}

/* The id and fds_amount of a request, of either version. */
static fds_status read_common(const json_t *root, oip_request *out, fds_error *err) {
    const json_t *id = json_object_get(root, "id"),
                 *parameters = json_object_get(root, "parameters");
    if (id && (!json_is_string(id) || json_string_length(id) > OIP_ID ||
               strlen(json_string_value(id)) != json_string_length(id)))
        return fds__fail(err, FDS_ERR_USAGE, "\"id\" must be a string of at most %d bytes", OIP_ID);
    out->has_id = id;
    if (id)
        snprintf(out->id, sizeof out->id, "%s", json_string_value(id));
    TRY(check_parameters(parameters, "the request", err));
    const json_t *amount = json_object_get(parameters, "fds_amount");
    if (amount && (!json_is_integer(amount) || json_integer_value(amount) < 1 ||
                   (double)json_integer_value(amount) > FDS__EXACT_MAX))
        return fds__fail(err, FDS_ERR_USAGE,
                         "parameter \"fds_amount\" must be a whole number of units, at least 1");
    out->amount = (int64_t)json_integer_value(amount);
    return FDS_OK;
}

/* ---- outputs ---- */

static const char *const output_names[OIP_OUTPUTS] = {
    [OIP_LABEL] = "label",           [OIP_PROBABILITIES] = "probabilities",
    [OIP_PREDICTION] = "prediction", [OIP_VALUES] = "values",
    [OIP_ERRORS] = "errors",         [OIP_SHARES] = "shares",
    [OIP_PLAYERS] = "players",       [OIP_PAYEES] = "payees",
    [OIP_RECEIPT] = "receipt"};

const char *oip_output_name(oip_output what) { return output_names[what]; }

bool oip_has_output(const oip_model *m, oip_output what) {
    switch (what) {
    case OIP_LABEL:
    case OIP_PROBABILITIES:
        return !m->is_regression;
    case OIP_PREDICTION:
        return m->is_regression;
    case OIP_RECEIPT:
        return m->is_paid;
    default:
        return m->is_explained;
    }
}

static void ask_all(const oip_model *m, bool is_binary, oip_request *out) {
    out->asked_count = 0;
    for (oip_output what = 0; what < OIP_OUTPUTS; what++)
        if (oip_has_output(m, what)) {
            out->asked[out->asked_count].what = what;
            out->asked[out->asked_count++].is_binary = is_binary;
        }
}

static fds_status find_output(const oip_model *m, const char *name, oip_output *out,
                              fds_error *err) {
    const char *names[OIP_OUTPUTS + 1] = {NULL};
    size_t count = 0;
    char hint[FDS__HINT];
    for (oip_output what = 0; what < OIP_OUTPUTS; what++) {
        if (!oip_has_output(m, what))
            continue;
        names[count++] = output_names[what];
        if (name && strcmp(name, output_names[what]) == 0) {
            *out = what;
            return FDS_OK;
        }
    }
    return fds__fail(err, FDS_ERR_USAGE, "model %s has no output \"%.60s\"%s", m->name,
                     name ? name : "", fds__hint(name ? name : "", names, hint));
}

static fds_status ask_one(const oip_model *m, const json_t *json, bool is_binary, oip_request *out,
                          fds_error *err) {
    const json_t *parameters = json_object_get(json, "parameters");
    oip_output what = OIP_LABEL;
    TRY(find_output(m, json_string_value(json_object_get(json, "name")), &what, err));
    TRY(check_parameters(parameters, output_names[what], err));
    TRY(read_flag(parameters, "binary_data", &is_binary, err));
    for (size_t i = 0; i < out->asked_count; i++)
        if (out->asked[i].what == what)
            return fds__fail(err, FDS_ERR_USAGE, "output \"%s\" is asked for twice",
                             output_names[what]);
    out->asked[out->asked_count].what = what;
    out->asked[out->asked_count++].is_binary = is_binary;
    return FDS_OK;
}

static fds_status read_outputs(const oip_model *m, const json_t *root, oip_request *out,
                               fds_error *err) {
    const json_t *outputs = json_object_get(root, "outputs");
    bool is_binary = false;
    TRY(read_flag(json_object_get(root, "parameters"), "binary_data_output", &is_binary, err));
    if (!outputs || (json_is_array(outputs) && json_array_size(outputs) == 0)) {
        ask_all(m, is_binary, out);
        return FDS_OK;
    }
    if (!json_is_array(outputs) || json_array_size(outputs) > OIP_TENSORS)
        return fds__fail(err, FDS_ERR_USAGE, "\"outputs\" must be an array of at most %d objects",
                         OIP_TENSORS);
    for (size_t i = 0; i < json_array_size(outputs); i++)
        TRY(ask_one(m, json_array_get(outputs, i), is_binary, out, err));
    return FDS_OK;
}

/* ---- version 2 ---- */

/* Raw tensors behind the JSON. */
typedef struct {
    const uint8_t *data;
    size_t size;
    bool is_there; /* there was a length of the JSON */
} raw_tail;

static fds_status put_raw(sink *s, const json_t *given, const raw_tail *tail, fds_error *err) {
    size_t needed = s->total * s->type->size; /* the model's shape and the batch bound it */
    if (!json_is_integer(given) || json_integer_value(given) < 0 ||
        (uint64_t)json_integer_value(given) != needed)
        return fds__fail(err, FDS_ERR_USAGE,
                         "parameter \"binary_data_size\" must be %zu, the bytes of the shape in %s",
                         needed, s->type->name);
    if (!tail->is_there)
        return fds__fail(err, FDS_ERR_USAGE,
                         "raw tensors need the header Inference-Header-Content-Length");
    if (tail->size != needed)
        return fds__fail(err, FDS_ERR_USAGE, "%zu bytes follow the JSON instead of %zu", tail->size,
                         needed);
    for (size_t i = 0; i < s->total; i++)
        TRY(put(s, read_raw(s->type, tail->data + i * s->type->size), err));
    return FDS_OK;
}

static fds_status read_tensor(const oip_model *m, const oip_limits *limits, const json_t *json,
                              const raw_tail *tail, oip_request *out, fds_error *err) {
    const json_t *parameters = json_object_get(json, "parameters"),
                 *data = json_object_get(json, "data");
    const char *name = json_string_value(json_object_get(json, "name")),
               *type_name = json_string_value(json_object_get(json, "datatype"));
    const datatype *type = NULL;
    tensor_shape shape;
    sink s;
    if (!name || strcmp(name, OIP_INPUT) != 0)
        return fds__fail(err, FDS_ERR_USAGE, "the input must have the name \"%s\" (got \"%.60s\")",
                         OIP_INPUT, name ? name : "");
    if (!type_name)
        return fds__fail(err, FDS_ERR_USAGE, "input \"%s\" has no \"datatype\"", name);
    TRY(find_datatype(type_name, &type, err));
    TRY(read_shape(json_object_get(json, "shape"), &shape, err));
    TRY(check_shape(m, limits, &shape, err));
    TRY(check_parameters(parameters, "the input", err));
    const json_t *raw_size = json_object_get(parameters, "binary_data_size");
    if (raw_size && data)
        return fds__fail(err, FDS_ERR_USAGE,
                         "the input has both \"data\" and \"binary_data_size\"");
    if (!raw_size && tail->size > 0)
        return fds__fail(err, FDS_ERR_USAGE,
                         "%zu bytes follow the JSON, but no input has \"binary_data_size\"",
                         tail->size);
    TRY(reserve(m, type, shape.dims[0], out, &s, err));
    if (raw_size)
        return put_raw(&s, raw_size, tail, err);
    /* the batch is counted in JSON before it costs anything: its size bounds the loop */
    return put_data(&s, data, shape.dims, shape.rank, err);
}

static fds_status read_request(const oip_model *m, const oip_limits *limits, const json_t *root,
                               const raw_tail *tail, oip_request *out, fds_error *err) {
    const json_t *inputs = json_object_get(root, "inputs");
    TRY(read_common(root, out, err));
    TRY(read_outputs(m, root, out, err));
    if (!json_is_array(inputs) || json_array_size(inputs) != 1)
        return fds__fail(err, FDS_ERR_USAGE, "\"inputs\" must be an array of one input, \"%s\"",
                         OIP_INPUT);
    return read_tensor(m, limits, json_array_get(inputs, 0), tail, out, err);
}

/* Hands over what status says was read. */
static fds_status settle(fds_status status, json_t *root, oip_request *out) {
    json_decref(root);
    if (status != FDS_OK)
        oip_request_free(out);
    return status;
}

fds_status oip_parse(const oip_model *m, const oip_limits *limits, const void *body, size_t size,
                     size_t json_size, oip_request *out, fds_error *err) {
    json_t *root = NULL;
    raw_tail tail = {.is_there = json_size != SIZE_MAX};
    *out = (oip_request){0};
    if (tail.is_there && json_size > size)
        return fds__fail(err, FDS_ERR_USAGE,
                         "Inference-Header-Content-Length is %zu, but the body has %zu bytes",
                         json_size, size);
    json_size = tail.is_there ? json_size : size;
    tail.data = (const uint8_t *)body + json_size;
    tail.size = size - json_size;
    TRY(read_json(limits, body, json_size, &root, err));
    return settle(read_request(m, limits, root, &tail, out, err), root, out);
}

/* ---- version 1 ---- */

/* {"input": [...]} stands for [...]. */
static const json_t *instance_at(const json_t *list, size_t i) {
    const json_t *instance = json_array_get(list, i);
    return json_is_object(instance) ? json_object_get(instance, OIP_INPUT) : instance;
}

/* The shape of nested arrays, by their first items; one number is a sample of one. */
static void measure(const json_t *json, tensor_shape *out) {
    for (; json_is_array(json) && out->rank < OIP_RANK; json = json_array_get(json, 0))
        out->dims[out->rank++] = json_array_size(json);
    if (out->rank == 1)
        out->dims[out->rank++] = 1;
}

static fds_status read_instances(const oip_model *m, const oip_limits *limits, const json_t *root,
                                 oip_request *out, fds_error *err) {
    static const datatype type = {"FP32", KIND_FLOAT, 4};
    const json_t *list = json_object_get(root, "instances");
    tensor_shape shape = {.rank = 1};
    sink s;
    out->is_v1 = true;
    ask_all(m, false, out);
    TRY(read_common(root, out, err));
    if (!json_is_array(list) || json_array_size(list) == 0)
        return fds__fail(err, FDS_ERR_USAGE, "\"instances\" must be an array of samples");
    shape.dims[0] = json_array_size(list);
    measure(instance_at(list, 0), &shape);
    TRY(check_shape(m, limits, &shape, err));
    TRY(reserve(m, &type, shape.dims[0], out, &s, err));
    for (size_t i = 0; i < shape.dims[0]; i++) {
        const json_t *instance = instance_at(list, i);
        bool is_number = !json_is_array(instance);
        TRY(put_nested(&s, instance, shape.dims + 1,
                       is_number && s.total == out->count ? 0 : shape.rank - 1, err));
    }
    return FDS_OK;
}

fds_status oip_parse_v1(const oip_model *m, const oip_limits *limits, const void *body, size_t size,
                        oip_request *out, fds_error *err) {
    json_t *root = NULL;
    *out = (oip_request){0};
    TRY(read_json(limits, body, size, &root, err));
    return settle(read_instances(m, limits, root, out, err), root, out);
}

void oip_request_free(oip_request *request) {
    fds__free(request->samples);
    *request = (oip_request){0};
}
