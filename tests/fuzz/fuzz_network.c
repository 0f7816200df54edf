/* SPDX-License-Identifier: Apache-2.0
 * A network's text: two bytes for the sides of the image, then the text. */
#include "fuzz.h"
#include "lane/lane.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2)
        return 0;
    fds_net *net = NULL, *again = NULL;
    fds_error err = {0};
    fds_shape shape = {1 + data[0] % 3, data[0], data[1]};
    fds__blob text = fuzz_blob("text", data + 2, size - 2);
    if (fds_net_create((const char *)text.data, shape, 10, &net, &err) == FDS_OK) {
        /* the text that is written out stands for the same network */
        if (fds_net_create(fds_net_text(net), shape, 10, &again, &err) != FDS_OK ||
            fds_net_weights(again) != fds_net_weights(net))
            abort();
    } else if (!err.text[0]) {
        abort();
    }
    fds_net_free(net);
    fds_net_free(again);
    free(text.data);
    return 0;
}
