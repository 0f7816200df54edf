/* SPDX-License-Identifier: Apache-2.0
 * fds value --utilities: values of games that a file gives. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAME = 40 };

static int name_width(const fds_result *r) {
    int width = 6;
    for (size_t i = 0; i < fds_result_players(r); i++) {
        int columns = cli_columns(fds_result_player(r, i));
        width = columns > width ? columns : width;
    }
    return width < MOST_NAME ? width : MOST_NAME;
}

static void print_player(const fds_result *r, size_t k, size_t rank, size_t player, int width) {
    char name[CLI_NAME_SIZE], value[CLI_NUMBER_SIZE], error[CLI_NUMBER_SIZE];
    printf("%4zu  %s  %*s  %6.3f", rank + 1, cli_name(fds_result_player(r, player), width, name),
           cli_value_width(r), cli_value_text(r, fds_result_value(r, k, player), value),
           fds_result_share(r, k, player));
    if (!fds_result_is_exact(r))
        printf("  \u00b1 %s", cli_value_text(r, fds_result_error(r, k, player), error));
    putchar('\n');
}

static fds_status print_game(const fds_result *r, const json_t *game, size_t k, size_t top,
                             size_t *order, fds_error *err) {
    char name[CLI_NAME_SIZE], none[CLI_NUMBER_SIZE], all[CLI_NUMBER_SIZE], used[CLI_NUMBER_SIZE];
    size_t n = fds_result_players(r), shown = top < n ? top : n;
    int width = name_width(r);
    CLI_TRY(fds_result_rank(r, k, order, err));
    printf("%s: utility %s with no players, %s with all\n",
           cli_name(fds_result_input(r, k), 0, name),
           cli_value_text(r, fds_result_empty(r, k), none),
           cli_value_text(r, fds_result_full(r, k), all));
    printf("rank  %-*s  %*s   share%s\n", width, "player", cli_value_width(r), "value",
           fds_result_is_exact(r) ? "" : "  standard error of the value");
    for (size_t i = 0; i < shown; i++)
        print_player(r, k, i, order[i], width);
    if (shown < n)
        printf("      ... and %zu others\n", n - shown);
    printf("%s, from %s coalitions\n\n",
           strcmp(cli_get_text(game, "method"), "exact") == 0 ? "exact" : "least squares",
           cli_count(cli_get_count(game, "used"), used));
    return FDS_OK;
}

static fds_status show(const cli_args *args, const fds_result *r, size_t top, fds_error *err) {
    json_t *about = cli_json(fds_result_describe(r), err);
    size_t *order = cli_alloc(fds_result_players(r), sizeof *order, err);
    fds_status status = about && order ? FDS_OK : FDS_ERR_NOMEM;
    const json_t *games = cli_get(about, "games");
    for (size_t k = 0; status == FDS_OK && k < fds_result_predictions(r); k++)
        status = print_game(r, json_array_get(games, k), k, top, order, err);
    if (status == FDS_OK) {
        printf("%-*s %s\n", CLI_WIDTH, "utilities", cli_get_text(about, "utilities"));
        printf("%-*s %zu", CLI_WIDTH, "players", fds_result_players(r));
        if (*cli_get_text(about, "group_value"))
            printf(" groups of %llu players, %s",
                   (unsigned long long)cli_get_count(about, "file_players"),
                   strcmp(cli_get_text(about, "group_value"), "points") == 0
                       ? "whose values are added up"
                       : "each group one player");
        printf("\n%-*s max(value, 0) over their sum, as fds pay divides money\n", CLI_WIDTH,
               "shares");
        if (args->output)
            printf("%-*s %s\n", CLI_WIDTH, "written", args->output);
    }
    free(order);
    json_decref(about);
    return status;
}

fds_status cli_value_utilities(const cli_args *args, size_t top, fds_error *err) {
    fds_result *result;
    if (args->estimate)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--estimate does not apply with --utilities: nothing "
                        "is trained");
    CLI_TRY(fds_shapley_utilities(args->params, args->events, &result, err));
    return cli_give(args, result, top, show, err);
}
