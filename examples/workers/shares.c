/* SPDX-License-Identifier: Apache-2.0
 * A worker for fds in C: every input has the shares of the classes among the coalition's samples.
 *     cc -O2 -o shares shares.c && fds value DATA --utility "command:./shares" */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *header;  /* of the last message: its JSON */
static int32_t *data; /* and its tensor, the samples of the coalition */
static void need(int is_right, const char *what) {
    if (!is_right)
        fprintf(stderr, "shares: bad %s\n", what), exit(1);
}
static uint64_t receive(void) { /* returns the bytes of the tensor */
    uint64_t size[2];           /* of the frame after its length, and of the header in it */
    if (fread(size, 16, 1, stdin) != 1)
        exit(0); /* no more messages */
    uint64_t rest = size[0] - 8 - size[1];
    need(size[0] >= 8 && size[0] < 1u << 30 && rest < size[0], "frame");
    header = realloc(header, size[1] + 1), data = realloc(data, rest + 4);
    need(header && data && fread(header, 1, size[1], stdin) == size[1], "header");
    need(fread(data, 1, rest, stdin) == rest, "tensor");
    return header[size[1]] = 0, rest;
}
static const char *field(const char *name) { /* fds writes no blanks between the parts of JSON */
    char key[64], *at = (snprintf(key, sizeof key, "\"%s\":\"", name), strstr(header, key));
    return need(!!at, name), at + strlen(key);
}
static void reply(const char *text, const void *values, uint64_t bytes) {
    uint64_t size[2] = {8 + strlen(text) + bytes, strlen(text)};
    fwrite(size, 16, 1, stdout), fputs(text, stdout), fwrite(values, 1, bytes, stdout), fflush(stdout);
}
int main(void) {
    char text[5000];
    size_t n = (receive(), strtoul(field("samples"), NULL, 10));
    size_t inputs = strtoul(field("inputs"), NULL, 10);
    size_t classes = strtoul(field("classes"), NULL, 10);
    const char *folder = (need(n < 1u << 28 && inputs * classes < 1u << 28, "size"), field("folder"));
    int32_t *labels = calloc(n + 1, 4);
    float *probs = malloc((inputs + 1) * classes * 4);
    snprintf(text, sizeof text, "%.*s/labels.npy", (int)strcspn(folder, "\""), folder);
    FILE *file = fopen(text, "rb"); /* its numbers begin at byte 128 */
    need(file && !fseek(file, 128, SEEK_SET) && fread(labels, 4, n, file) == n, "labels.npy");
    reply("{\"__metadata__\":{\"type\":\"ready\",\"protocol\":\"1\",\"name\":\"shares\","
          "\"fingerprint\":\"1\"}}", "", 0);
    for (size_t count = receive() / 4;; count = receive() / 4) {
        memset(probs, 0, classes * 4);
        for (size_t k = 0; k < count; k++) { /* the first row; all others are the same */
            need((size_t)data[k] < n && (size_t)labels[data[k]] < classes, "sample");
            probs[labels[data[k]]] += 1 / (float)count;
        }
        for (size_t i = classes; i < inputs * classes; i++)
            probs[i] = probs[i - classes];
        snprintf(text, sizeof text, "{\"__metadata__\":{\"type\":\"answer\",\"id\":\"%lu\"},"
                 "\"probabilities\":{\"dtype\":\"F32\",\"shape\":[%zu,%zu],\"data_offsets\":[0,%zu]}}",
                 strtoul(field("id"), NULL, 10), inputs, classes, inputs * classes * 4);
        reply(text, probs, inputs * classes * 4);
    }
}
