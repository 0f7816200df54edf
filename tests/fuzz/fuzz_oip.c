/* SPDX-License-Identifier: Apache-2.0
 * Requests of the Open Inference Protocol. The first byte chooses the version and the kind of model,
 * the next two are the size of the JSON before raw tensors (65535: there is none); then the body. What
 * is accepted is answered, kept and repeated. */
#include "fuzz.h"
#include "serve/oip.h"

#include <math.h>

enum { BATCH = 4, CLASSES = 3, PLAYERS = 2 };

static const char *const names[] = {"a", "b\"", "c"};

static void use(const oip_model *m, oip_request *r) {
    static const uint32_t labels[BATCH] = {0, 1, 2, 0};
    static const float probs[BATCH * CLASSES] = {0.5f, 0.25f};
    static const double numbers[BATCH * PLAYERS] = {0.5, NAN, 1e-300};
    static const uint64_t receipts[BATCH] = {0, 1, INT64_MAX, 7};
    const oip_answers answers = {labels, probs, numbers, numbers, numbers, numbers};
    oip_body body, kept;
    fds__text text = {0}, packed = {0}, again = {0};
    size_t json_size, size;
    fds_error err;
    if (r->count == 0 || r->count > BATCH || r->asked_count == 0 || r->asked_count > OIP_OUTPUTS)
        abort();
    for (size_t i = 0; i < r->count * fds__shape_size(m->shape); i++)
        if (!isfinite(r->samples[i]))
            abort();
    if (oip_compose(m, r, &answers, &body, &err) != FDS_OK ||
        oip_finish(&body, receipts, &text, &json_size, &err) != FDS_OK ||
        oip_pack(&body, &packed, &err) != FDS_OK ||
        oip_unpack(packed.data, packed.used, &kept, &err) != FDS_OK ||
        oip_finish(&kept, receipts, &again, &size, &err) != FDS_OK || size != json_size ||
        again.used != text.used || memcmp(again.data, text.data, text.used) != 0)
        abort();
    json_t *json = json_loadb(text.data, MIN(json_size, text.used), 0, NULL);
    if (!json) /* what we say is JSON */
        abort();
    json_decref(json);
    fds__free(text.data);
    fds__free(packed.data);
    fds__free(again.data);
    oip_body_free(&body);
    oip_body_free(&kept);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const oip_limits limits = {.batch = BATCH, .json = 1 << 14};
    oip_request r;
    oip_body body;
    fds_error err;
    if (size < 3)
        return 0;
    unsigned kind = data[0];
    size_t json_size = data[1] | (size_t)data[2] << 8;
    const oip_model m = {.name = "m",
                         .version = "v",
                         .shape = kind & 2 ? (fds_shape){1, 2, 2} : (fds_shape){4, 1, 1},
                         .is_image = kind & 2,
                         .is_regression = kind & 4,
                         .is_explained = kind & 8,
                         .is_paid = kind & 16,
                         .classes = CLASSES,
                         .players = PLAYERS,
                         .payees = PLAYERS,
                         .class_names = names,
                         .player_names = names,
                         .payee_names = names};
    fds__blob copy = fuzz_blob("body", data + 3, size - 3);
    fds_status status = kind & 1
                            ? oip_parse_v1(&m, &limits, copy.data, copy.size, &r, &err)
                            : oip_parse(&m, &limits, copy.data, copy.size,
                                        json_size == UINT16_MAX ? SIZE_MAX : json_size, &r, &err);
    if (status == FDS_OK)
        use(&m, &r);
    else if (r.samples || !err.text[0])
        abort();
    oip_request_free(&r);
    if (oip_unpack(copy.data, copy.size, &body, &err) == FDS_OK)
        oip_body_free(&body);
    free(copy.data);
    return 0;
}
