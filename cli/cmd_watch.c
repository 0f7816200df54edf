/* SPDX-License-Identifier: Apache-2.0
 * fds audit watch: a log from outside, checkpoint by checkpoint. */
#include "cli.h"

#include "fds/ledger.h"

#include <stdio.h>
#include <string.h>

static const cli_option own[] = {
    CLI_OWN(0, "vkey", vkey, "KEY",
            "the log's public key, as fds ledger init printed it (required)"),
    CLI_OWN('o', "output", output, "FILE",
            "where the last checkpoint is kept [ORIGIN.checkpoint, with _ for /]"),
};

/* The origin is what stands before the first plus of a key. */
static const char *default_file(const char *vkey, char out[256]) {
    snprintf(out, 256, "%.*s.checkpoint", (int)strcspn(vkey, "+"), vkey);
    for (char *at = out; *at; at++)
        *at = *at == '/' ? '_' : *at;
    return out;
}

static fds_status run(cli_args *args, fds_error *err) {
    char name[256];
    uint64_t old_size, size;
    if (!args->vkey)
        return cli_fail(err, FDS_ERR_USAGE, "name the log's public key: --vkey ORIGIN+HASH+KEY");
    const char *kept = args->output ? args->output : default_file(args->vkey, name);
    CLI_TRY(fds_log_watch(args->operand, args->vkey, kept, &old_size, &size, err));
    if (args->json)
        return cli_print_json(json_pack("{s:I, s:I, s:s}", "entries", (json_int_t)size, "before",
                                        (json_int_t)old_size, "checkpoint", kept),
                              err);
    if (old_size)
        printf("%llu entries, which begin with the %llu of before\n", (unsigned long long)size,
               (unsigned long long)old_size);
    else
        printf("%llu entries, signed; the next call compares with these\n",
               (unsigned long long)size);
    return FDS_OK;
}

const cli_command cli_audit_watch = {
    .name = "audit watch",
    .operand = "LOG",
    .missing = "name the log, for example: fds audit watch https://example.com/log --vkey KEY",
    .usage = "LOG --vkey KEY [-o FILE]",
    .summary = "check that a ledger's log only grows",
    .about =
        "Fetches the newest checkpoint of a log, checks its signature, and proves that the log "
        "begins with all entries that it had at the last call. Call it daily, from a machine "
        "that the platform does not own. LOG is the address of a server's /log, or a folder "
        "with the log's files. If entries were changed or removed, the contradicting "
        "checkpoint is kept in FILE.conflict, and the exit code is not 0.",
    .examples =
        "  fds audit watch https://example.com/log --vkey example.com/shop+1a2b3c4d+AbC...\n",
    .own = own,
    .own_count = CLI_COUNT(own),
    .run = run,
};
