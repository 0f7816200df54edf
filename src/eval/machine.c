/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine that a case is measured on, for people who read its times.
 */
#include "eval/eval.h"

#include <string.h>
#include <sys/utsname.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

/* The processor's name for people, at most size - 1 characters, no blanks at its ends. */
static void name_processor(char *name, size_t size) {
    struct utsname machine;
    snprintf(name, size, "%.48s", uname(&machine) == 0 ? machine.machine : "unknown");
#ifdef __x86_64__
    unsigned words[12] = {0};
    bool is_named = true;
    for (unsigned i = 0; i < 3; i++)
        is_named &= __get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1],
                                &words[4 * i + 2], &words[4 * i + 3]) != 0;
    char brand[sizeof words + 1] = {0};
    memcpy(brand, words, sizeof words);
    size_t length = strlen(brand);
    while (length > 0 && brand[length - 1] == ' ')
        brand[--length] = 0;
    if (is_named && length > 0)
        snprintf(name, size, "%s", brand + strspn(brand, " "));
#endif
}

json_t *eval_machine(unsigned threads) {
    char name[64];
    name_processor(name, sizeof name);
    return json_pack("{s:o, s:I, s:s, s:I}", "processor", fds__json_string(name), "processors",
                     (json_int_t)fds_processors(), "instructions", fds_isa(), "threads",
                     (json_int_t)threads);
}
