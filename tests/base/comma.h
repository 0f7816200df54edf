/* SPDX-License-Identifier: Apache-2.0
 * A locale that writes 0,5: an installed one, or one that localedef makes in the test's folder. */
#ifndef FDS_TEST_COMMA_H
#define FDS_TEST_COMMA_H

#include "scratch.h"

#include <locale.h>

/* False where there is none; comma_end goes back. */
static inline bool comma_begin(void) {
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
    static const char source[] = "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\n"
                                 "grouping 3;3\nEND LC_NUMERIC\n";
    char command[1024];
    bool is_set = false;
    for (size_t i = 0; i < COUNT(names) && !is_set; i++)
        is_set = setlocale(LC_NUMERIC, names[i]) != NULL;
    if (!is_set && scratch[0]) {
        scratch_write(scratch_path("comma.src"), source, strlen(source));
        snprintf(command, sizeof command,
                 "cd %s && localedef -c -i comma.src ./comma >/dev/null 2>&1", scratch);
        int unused = system(command); /* 1 for its warnings */
        (void)unused;
        setenv("LOCPATH", scratch, 1);
        is_set = setlocale(LC_NUMERIC, "comma") != NULL;
    }
    if (is_set) {
        snprintf(command, sizeof command, "%.1f", 0.5);
        assert_string_equal(command, "0,5");
    } else {
        print_message("# there is no locale with a comma\n");
    }
    return is_set;
}

static inline void comma_end(void) {
    setlocale(LC_NUMERIC, "C");
    unsetenv("LOCPATH");
}

#endif
