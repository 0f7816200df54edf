/* SPDX-License-Identifier: Apache-2.0
 * Messages between fds and programs: what is sent, and what is accepted (docs/external.md). */
#include "utility_fixture.h"
#include "utility/external.h"

enum { INPUTS = 3, CLASSES = 4 };
static const bool all_classes[CLASSES] = {true, true, true, true};

typedef struct {
    const char *type, *id, *retry, *text, *name, *fingerprint, *protocol;
    const char *tensor; /* its name */
    uint32_t rank, dims[4];
    float values[INPUTS * CLASSES];
} message;

static message good_answer(void) {
    return (message){
        .type = "answer",
        .id = "7",
        .tensor = "probabilities",
        .rank = 2,
        .dims = {INPUTS, CLASSES},
        .values = {0.25f, 0.25f, 0.25f, 0.25f, 1, 0, 0, 0, 0.1f, 0.2f, 0.3f, 0.4f},
    };
}

/* The bytes of a message as a program would send them, without the length. */
static uint8_t *pack(const message *m, size_t *size) {
    const struct {
        const char *key, *value;
    } fields[] = {{"type", m->type},        {"id", m->id},     {"retry", m->retry},
                  {"text", m->text},        {"name", m->name}, {"fingerprint", m->fingerprint},
                  {"protocol", m->protocol}};
    fds__meta meta[COUNT(fields)];
    size_t count = 0;
    for (size_t i = 0; i < COUNT(fields); i++)
        if (fields[i].value)
            meta[count++] = (fds__meta){fields[i].key, fields[i].value};
    fds__tensor tensor = {.name = m->tensor, .rank = m->rank, .values = m->values};
    memcpy(tensor.dims, m->dims, sizeof tensor.dims);
    uint8_t *data;
    fds_error err;
    expect_ok(
        fds__safetensors_pack("F32", &tensor, m->tensor ? 1 : 0, meta, count, 0, &data, size, &err),
        &err);
    return data;
}

static fds_status read_answer(const message *m, const bool *has_class, float *probs, bool *is_fatal,
                              fds_error *err) {
    const fds__answer_form form = {7, INPUTS, CLASSES, has_class, false};
    size_t size;
    uint8_t *data = pack(m, &size);
    return fds__message_answer(data, size, &form, probs, is_fatal, err);
}

static void refuses(const message *m, const char *part) {
    float probs[INPUTS * CLASSES] = {-1};
    bool is_fatal;
    fds_error err = {0};
    expect_failure(read_answer(m, all_classes, probs, &is_fatal, &err), FDS_ERR_EXTERNAL, &err,
                   part);
    assert_true(probs[0] == -1);
    assert_false(is_fatal);
}

static void a_right_answer_is_taken_bit_for_bit(void **state) {
    (void)state;
    message m = good_answer();
    float probs[INPUTS * CLASSES];
    bool is_fatal = true;
    fds_error err;
    expect_ok(read_answer(&m, all_classes, probs, &is_fatal, &err), &err);
    assert_memory_equal(probs, m.values, sizeof probs);
    assert_false(is_fatal);
    m.values[0] = 0.24995f; /* within the slack */
    expect_ok(read_answer(&m, all_classes, probs, &is_fatal, &err), &err);
}

static fds_status read_predictions(const message *m, float *out, fds_error *err) {
    const fds__answer_form form = {7, INPUTS, 1, all_classes, true};
    bool is_fatal;
    size_t size;
    uint8_t *data = pack(m, &size);
    return fds__message_answer(data, size, &form, out, &is_fatal, err);
}

/* Of a regression: one number for each input, of any size. */
static void predictions_are_finite_numbers(void **state) {
    (void)state;
    message m = good_answer();
    float out[INPUTS] = {-1};
    fds_error err = {0};
    expect_failure(read_predictions(&m, out, &err), FDS_ERR_EXTERNAL, &err,
                   "no tensor \"predictions\"");
    m.tensor = "predictions";
    expect_failure(read_predictions(&m, out, &err), FDS_ERR_EXTERNAL, &err,
                   "they must have one, of 3 inputs");
    m.rank = 1;
    m.dims[0] = INPUTS;
    m.values[1] = -1e6f;
    expect_ok(read_predictions(&m, out, &err), &err);
    assert_memory_equal(out, m.values, sizeof out);
    m.values[2] = NAN;
    expect_failure(read_predictions(&m, out, &err), FDS_ERR_EXTERNAL, &err,
                   "input 2: the prediction is nan; it must be a finite number");
}

static void wrong_answers_are_refused(void **state) {
    (void)state;
    message m = good_answer();
    m.values[5] = NAN;
    refuses(&m, "input 1, class 1: the probability is nan; it must be from 0 to 1");
    m.values[5] = -1e-7f;
    refuses(&m, "input 1, class 1");
    m.values[5] = INFINITY;
    refuses(&m, "inf");
    m.values[5] = 0.0002f;
    refuses(&m, "input 1: its probabilities sum to 1.0002; they must sum to 1");
    m = good_answer(), m.id = "8";
    refuses(&m, "question \"8\" instead of \"7\"");
    m = good_answer(), m.id = NULL;
    refuses(&m, "question \"\" instead of \"7\"");
    m = good_answer(), m.type = "ready";
    refuses(&m, "type \"ready\", not \"answer\"");
    m = good_answer(), m.type = NULL;
    refuses(&m, "no \"type\"");
    m = good_answer(), m.tensor = "probs";
    refuses(&m, "no tensor \"probabilities\"");
    m = good_answer(), m.tensor = NULL;
    refuses(&m, "no tensor \"probabilities\"");
    m = good_answer(), m.dims[0] = 2;
    refuses(&m, "(2, 4) in 2 dimensions; it must be (3, 4)");
    m = good_answer(), m.rank = 1, m.dims[0] = INPUTS * CLASSES;
    refuses(&m, "must be (3, 4)");
    m = (message){.type = "error", .retry = "true", .text = "no memory"};
    refuses(&m, "it says: no memory");
    m.text = NULL;
    refuses(&m, "it says: (nothing)");
}

static void an_error_without_retry_is_fatal(void **state) {
    (void)state;
    const message m = {.type = "error", .retry = "false", .text = "in vain"};
    float probs[INPUTS * CLASSES];
    bool is_fatal = false;
    fds_error err;
    expect_failure(read_answer(&m, all_classes, probs, &is_fatal, &err), FDS_ERR_EXTERNAL, &err,
                   "in vain");
    assert_true(is_fatal);
}

static void a_class_without_samples_has_probability_0(void **state) {
    (void)state;
    const bool some[CLASSES] = {true, false, true, true};
    message m = good_answer();
    float probs[INPUTS * CLASSES];
    bool is_fatal;
    fds_error err;
    expect_failure(read_answer(&m, some, probs, &is_fatal, &err), FDS_ERR_EXTERNAL, &err,
                   "class 1: the probability is 0.25; it must be 0");
    for (size_t i = 0; i < INPUTS; i++) {
        m.values[i * CLASSES] += m.values[i * CLASSES + 1];
        m.values[i * CLASSES + 1] = 0;
    }
    expect_ok(read_answer(&m, some, probs, &is_fatal, &err), &err);
}

static void lengths_have_a_bound(void **state) {
    (void)state;
    const uint64_t most = INPUTS * CLASSES * 4 + (1 << 20);
    const struct {
        uint64_t length;
        bool is_right;
    } cases[] = {{0, false},        {7, false},          {8, true},         {most, true},
                 {most + 1, false}, {UINT64_MAX, false}, {INT64_MAX, false}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint8_t head[8];
        size_t size = 0;
        fds_error err = {0};
        memcpy(head, &cases[i].length, 8);
        fds_status status = fds__message_length(head, INPUTS * CLASSES, &size, &err);
        assert_int_equal(status, cases[i].is_right ? FDS_OK : FDS_ERR_EXTERNAL);
        assert_true(!cases[i].is_right || size == cases[i].length);
    }
}

static fds_status read_ready(const message *m, char name[FDS__PROGRAM_NAME],
                             char fingerprint[FDS__PROGRAM_NAME], fds_error *err) {
    size_t size;
    uint8_t *data = pack(m, &size);
    return fds__message_ready(data, size, name, fingerprint, err);
}

static void ready_has_a_name_and_a_fingerprint(void **state) {
    (void)state;
    char name[FDS__PROGRAM_NAME], fingerprint[FDS__PROGRAM_NAME], longest[FDS__PROGRAM_NAME + 1];
    message m = {.type = "ready", .protocol = "1", .name = "lr", .fingerprint = "0f"};
    fds_error err;
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    expect_ok(read_ready(&m, name, fingerprint, &err), &err);
    assert_string_equal(name, "lr");
    assert_string_equal(fingerprint, "0f");
    m.name = longest;
    expect_failure(read_ready(&m, name, fingerprint, &err), FDS_ERR_EXTERNAL, &err, "1 to 199");
    m.name = longest + 1;
    expect_ok(read_ready(&m, name, fingerprint, &err), &err);
    m.fingerprint = "";
    expect_failure(read_ready(&m, name, fingerprint, &err), FDS_ERR_EXTERNAL, &err, "fingerprint");
    m.fingerprint = "0f", m.protocol = "2";
    expect_failure(read_ready(&m, name, fingerprint, &err), FDS_ERR_EXTERNAL, &err,
                   "protocol \"2\"");
    m = (message){.type = "error", .text = "no data"};
    expect_failure(read_ready(&m, name, fingerprint, &err), FDS_ERR_EXTERNAL, &err, "no data");
}

/* Any single changed byte, and any cut, is survived; what is accepted is within its bounds. */
static void damaged_messages_are_survived(void **state) {
    (void)state;
    const message m = good_answer();
    const fds__answer_form form = {7, INPUTS, CLASSES, all_classes, false};
    size_t size;
    uint8_t *whole = pack(&m, &size);
    for (size_t at = 0; at < 2 * size; at++)
        for (unsigned change = 1; change < 256; change = 2 * change + 1) {
            size_t length = at < size ? size : at - size;
            uint8_t *data = fds__alloc(length ? length : 1);
            float probs[INPUTS * CLASSES];
            bool is_fatal;
            fds_error err = {0};
            assert_non_null(data);
            memcpy(data, whole, length);
            if (at < size)
                data[at] ^= (uint8_t)change;
            if (fds__message_answer(data, length, &form, probs, &is_fatal, &err) == FDS_OK)
                for (size_t i = 0; i < INPUTS * CLASSES; i++)
                    assert_true(probs[i] >= 0 && probs[i] <= 1);
        }
    fds__free(whole);
}

/* The frames that a program receives, read as it would read them. */
static void frames_have_their_length_and_their_fields(void **state) {
    (void)state;
    const fds__hello hello = {.folder = "/tmp/a \"b\"",
                              .samples = 100,
                              .players = 6,
                              .inputs = 20,
                              .shape = {3, 4, 5},
                              .classes = 2,
                              .seed = 9007199254740991u};
    const uint32_t samples[] = {0, 5, 70000};
    uint8_t *frame;
    size_t size;
    uint64_t length, head;
    fds_error err;
    expect_ok(fds__message_hello(&hello, &frame, &size, &err), &err);
    memcpy(&length, frame, 8);
    memcpy(&head, frame + 8, 8);
    assert_true(length == size - 8 && head == size - 16);
    json_t *json = NULL;
    expect_ok(fds__json_parse("hello", (const char *)frame + 16, head, &json, &err), &err);
    const json_t *meta = json_object_get(json, "__metadata__");
    const struct {
        const char *key, *value;
    } fields[] = {{"type", "hello"},  {"protocol", "1"},  {"folder", "/tmp/a \"b\""},
                  {"samples", "100"}, {"players", "6"},   {"inputs", "20"},
                  {"classes", "2"},   {"shape", "3,4,5"}, {"seed", "9007199254740991"}};
    for (size_t i = 0; i < COUNT(fields); i++)
        assert_string_equal(json_string_value(json_object_get(meta, fields[i].key)),
                            fields[i].value);
    json_decref(json);
    fds__free(frame);
    expect_ok(fds__message_eval(12, 3, samples, 3, &frame, &size, &err), &err);
    memcpy(&length, frame, 8);
    memcpy(&head, frame + 8, 8);
    assert_true(length == size - 8);
    assert_memory_equal(frame + 16 + head, samples, sizeof samples);
    assert_non_null(strstr((char *)frame + 16, "\"id\":\"12\""));
    assert_non_null(strstr((char *)frame + 16, "\"dtype\":\"I32\",\"shape\":[3]"));
    fds__free(frame);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_answer_is_taken_bit_for_bit),
        cmocka_unit_test(predictions_are_finite_numbers),
        cmocka_unit_test(wrong_answers_are_refused),
        cmocka_unit_test(an_error_without_retry_is_fatal),
        cmocka_unit_test(a_class_without_samples_has_probability_0),
        cmocka_unit_test(lengths_have_a_bound),
        cmocka_unit_test(ready_has_a_name_and_a_fingerprint),
        cmocka_unit_test(damaged_messages_are_survived),
        cmocka_unit_test(frames_have_their_length_and_their_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
