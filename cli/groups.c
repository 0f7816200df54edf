/* SPDX-License-Identifier: Apache-2.0
 * Groups of players, as --group asks for them. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

bool cli_is_by_model(const char *by) {
    return strcmp(by, "model") == 0 || strncmp(by, "model:", 6) == 0;
}

/* By a service model that is trained as the value function trains that of all players. */
static fds_status by_model(const char *number, const cli_setup *s, const fds_utility_params *params,
                           cli_term *term, fds_groups **out, fds_error *err) {
    char *end = NULL;
    unsigned long count = number ? strtoul(number, &end, 10) : 0;
    if (number && (*number < '0' || *number > '9' || *end || count < 1 || count > UINT32_MAX))
        return cli_fail(err, FDS_ERR_USAGE,
                        "--group model:%s: after the colon a whole number from 1 is needed",
                        number);
    fds_train_params train;
    fds_model *model = NULL;
    CLI_TRY(fds_utility_training(params, &train, err));
    CLI_TRY(fds_model_train(s->train, s->samples, s->sample_count, s->network, &train,
                            &term->events, &model, NULL, err));
    fds_status status =
        fds_groups_by_model(model, s->train, s->players, count, s->want.common->seed, out, err);
    fds_model_free(model);
    return status;
}

static fds_status by_file(const char *path, const cli_setup *s, fds_groups **out, fds_error *err) {
    fds_status status = fds_groups_read(path, s->players, out, err);
    const char *const words[] = {"label", "provider", "model", NULL};
    char hint[CLI_HINT_SIZE];
    if (status == FDS_ERR_NOT_FOUND)
        return cli_fail(err, FDS_ERR_NOT_FOUND,
                        "--group %s: it must be label, provider, model, model:N or a file of "
                        "lines PLAYER,GROUP, and there is no such file%s",
                        path, cli_hint(path, words, hint));
    return status;
}

fds_status cli_groups_make(const char *by, const cli_setup *s, const fds_utility_params *params,
                           cli_term *term, fds_groups **out, fds_error *err) {
    if (strcmp(by, "label") == 0)
        return fds_groups_by_label(s->train, s->players, out, err);
    if (strcmp(by, "provider") == 0)
        return fds_groups_by_provider(s->train, s->players, out, err);
    if (cli_is_by_model(by))
        return by_model(by[5] ? by + 6 : NULL, s, params, term, out, err);
    return by_file(by, s, out, err);
}
