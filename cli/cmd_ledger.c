/* SPDX-License-Identifier: Apache-2.0
 * fds ledger ...: money that customers pay and providers earn. docs/ledger.md explains it. */
#include "cli.h"
#include "fds/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Opens LEDGER, does what a subcommand does, closes it. least, most: words after LEDGER. */
typedef fds_status (*action)(const cli_args *args, fds_ledger *l, fds_error *err);

static fds_status with_ledger(const cli_args *args, fds_ledger_access access, size_t least,
                              size_t most, action act, fds_error *err) {
    fds_ledger *l;
    if (args->more_count < least || args->more_count > most)
        return cli_fail(err, FDS_ERR_USAGE, "too %s arguments after LEDGER: see --help",
                        args->more_count < least ? "few" : "many");
    CLI_TRY(fds_ledger_open(args->operand, access, args->from, &l, err));
    fds_status status = act(args, l, err);
    fds_ledger_close(l);
    return status;
}

static const char *money(const fds_ledger *l, int64_t units, char out[32]) {
    return fds_money_text(units, fds_ledger_decimals(l), out);
}

static fds_status read_entry(const char *word, uint64_t *index, fds_error *err) {
    char *end;
    *index = strtoull(word, &end, 10);
    if (*word < '0' || *word > '9' || *end)
        return cli_fail(err, FDS_ERR_USAGE, "an entry is named by its number (got %s)", word);
    return FDS_OK;
}

/* ---- init, topup, payout, correct ---- */

/* key: a file that was named, or NULL. The name of a log stands before the first plus of vkey. */
static void describe_log(const char *ledger, const char *key, const char *vkey) {
    static const char usual[] = "fds.local/ledger";
    int size = (int)strcspn(vkey, "+");
    fprintf(stderr,
            "fds ledger init: %s%s signs the log \"%.*s\": keep it secret, and copy it apart\n",
            key ? key : ledger, key ? "" : ".key", size, vkey);
    if (size == (int)strlen(usual) && strncmp(vkey, usual, strlen(usual)) == 0)
        fprintf(stderr,
                "fds ledger init: many logs have that name; --origin NAME gives one that is yours "
                "alone, such as example.com/shop\n");
}

static fds_status run_init(cli_args *args, fds_error *err) {
    fds_ledger *l;
    CLI_TRY(fds_ledger_create(args->operand, args->params, err));
    CLI_TRY(fds_ledger_open(args->operand, FDS_LEDGER_READ, NULL, &l, err));
    char vkey[512], key[4096];
    snprintf(vkey, sizeof vkey, "%s", fds_ledger_vkey(l));
    fds_ledger_close(l);
    CLI_TRY(fds_params_get(args->params, "signing_key", key, sizeof key, err));
    if (args->json)
        return cli_print_json(json_pack("{s:s}", "vkey", vkey), err);
    if (!args->quiet)
        describe_log(args->operand, strcmp(key, "auto") == 0 ? NULL : key, vkey);
    puts(vkey); /* alone on stdout, for scripts */
    return FDS_OK;
}

static fds_status print_paid(const cli_args *args, const fds_ledger *l, const char *what,
                             const char *name, int64_t units, uint64_t index, fds_error *err) {
    char amount[32], balance[32];
    uint64_t account;
    CLI_TRY(fds_ledger_find(l, name, &account, err));
    int64_t left = fds_ledger_released(l, account);
    if (args->json)
        return cli_print_json(json_pack("{s:s, s:I, s:o, s:I}", "account", name, "units",
                                        (json_int_t)units, "entry",
                                        units ? json_integer((json_int_t)index) : json_null(),
                                        "balance", (json_int_t)left),
                              err);
    printf("%s %s %s %s; balance %s", name, what, money(l, units, amount), fds_ledger_currency(l),
           money(l, left, balance));
    units ? printf(" (entry %llu)\n", (unsigned long long)index) : printf(", no entry\n");
    return FDS_OK;
}

static fds_status topup(const cli_args *args, fds_ledger *l, fds_error *err) {
    int64_t units;
    uint64_t customer, index;
    const char *name = args->more[0];
    CLI_TRY(fds_ledger_units(l, args->more[1], &units, err));
    fds_status status = fds_ledger_find(l, name, &customer, err);
    if (status == FDS_ERR_NOT_FOUND && args->all)
        status = fds_ledger_account(l, FDS_ACCOUNT_CUSTOMER, name, &customer, err);
    else if (status == FDS_ERR_NOT_FOUND && !strstr(err->text, "did you mean"))
        return cli_fail(err, status, "%s has no account \"%s\": --new opens one",
                        fds_ledger_name(l), name);
    CLI_TRY(status);
    CLI_TRY(fds_ledger_topup(l, customer, units, args->ref, args->key, &index, err));
    return print_paid(args, l, "paid in", name, units, index, err);
}

static fds_status payout(const cli_args *args, fds_ledger *l, fds_error *err) {
    int64_t minimum = 0, units;
    uint64_t account, index;
    CLI_TRY(fds_ledger_find(l, args->more[0], &account, err));
    if (args->count)
        CLI_TRY(fds_ledger_units(l, args->count, &minimum, err));
    CLI_TRY(fds_ledger_payout(l, account, minimum, args->ref, args->key, &units, &index, err));
    return print_paid(args, l, "is paid out", args->more[0], units, index, err);
}

/* "north=-1.50" */
static fds_status read_posting(const fds_ledger *l, const char *word, fds_posting *out,
                               fds_error *err) {
    char name[256];
    const char *equals = strrchr(word, '=');
    if (!equals || (size_t)(equals - word) >= sizeof name)
        return cli_fail(err, FDS_ERR_USAGE,
                        "a posting is NAME=AMOUNT, such as north=-1.50 (got %s)", word);
    snprintf(name, sizeof name, "%.*s", (int)(equals - word), word);
    CLI_TRY(fds_ledger_find(l, name, &out->account, err));
    return fds_ledger_units(l, equals + 1, &out->units, err);
}

static fds_status correct(const cli_args *args, fds_ledger *l, fds_error *err) {
    uint64_t of, index;
    size_t count = args->more_count - 1;
    char first[256];
    const char *comma = args->operators ? strchr(args->operators, ',') : NULL;
    if (!args->reason || !comma || (size_t)(comma - args->operators) >= sizeof first)
        return cli_fail(err, FDS_ERR_USAGE,
                        "a correction needs --reason TEXT and two people, --operators ann,bob");
    snprintf(first, sizeof first, "%.*s", (int)(comma - args->operators), args->operators);
    CLI_TRY(read_entry(args->more[0], &of, err));
    fds_posting *postings = cli_alloc(count, sizeof *postings, err);
    fds_status status = postings ? FDS_OK : FDS_ERR_NOMEM;
    for (size_t i = 0; status == FDS_OK && i < count; i++)
        status = read_posting(l, args->more[i + 1], &postings[i], err);
    if (status == FDS_OK)
        status =
            fds_ledger_correct(l, of, postings, count, args->reason,
                               (const char *const[]){first, comma + 1}, args->key, &index, err);
    free(postings);
    CLI_TRY(status);
    if (args->json)
        return cli_print_json(json_pack("{s:I}", "entry", (json_int_t)index), err);
    printf("entry %llu corrects entry %llu\n", (unsigned long long)index, (unsigned long long)of);
    return FDS_OK;
}

/* ---- balance, statement ---- */
static const char *const kinds[] = {"platform", "customer", "provider"};

static fds_status balance(const cli_args *args, fds_ledger *l, fds_error *err) {
    uint64_t first = 0, end = fds_ledger_accounts(l);
    json_t *list = json_array();
    if (args->more_count) {
        CLI_TRY(fds_ledger_find(l, args->more[0], &first, err));
        end = first + 1;
    }
    if (!args->json)
        printf("%-30s  kind      %20s\n", "account", fds_ledger_currency(l));
    for (uint64_t i = first; i < end; i++) {
        char amount[32], name[CLI_NAME_SIZE];
        const char *kind = kinds[fds_ledger_account_kind(l, i)];
        int64_t units = fds_ledger_balance(l, i);
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:I}", "account", fds_ledger_account_name(l, i),
                                        "kind", kind, "units", (json_int_t)units));
        if (!args->json)
            printf("%s  %-8s  %20s\n", cli_name(fds_ledger_account_name(l, i), 30, name), kind,
                   money(l, units, amount));
    }
    json_t *root = json_pack("{s:s, s:i, s:o}", "currency", fds_ledger_currency(l), "decimals",
                             fds_ledger_decimals(l), "balances", list);
    if (args->json)
        return cli_print_json(root, err);
    json_decref(root);
    return FDS_OK;
}

static bool print_bytes(void *user, const char *text, size_t size) {
    (void)user;
    return fwrite(text, 1, size, stdout) == size;
}

/* What a release tells one provider. */
typedef struct {
    const cli_args *args;
    const fds_ledger *ledger;
} telling;

static fds_status tell(void *user, const char *period, const char *last, int64_t units,
                       uint64_t entry, fds_error *err) {
    const telling *t = user;
    char amount[32], deviation[32];
    fds_ledger_privacy privacy;
    fds_ledger_privacy_of(t->ledger, &privacy);
    if (t->args->json)
        return cli_print_json(json_pack("{s:s, s:s, s:s, s:I, s:f, s:I}", "account",
                                        t->args->more[0], "period", period, "last", last, "units",
                                        (json_int_t)units, "deviation", privacy.deviation, "entry",
                                        (json_int_t)entry),
                              err);
    printf("%s, %s: %s %s (entry %llu)\n", t->args->more[0], period,
           money(t->ledger, units, amount), fds_ledger_currency(t->ledger),
           (unsigned long long)entry);
    printf("noise: discrete %s, standard deviation %s; epsilon %g", privacy.mechanism,
           money(t->ledger, (int64_t)(privacy.deviation + 0.5), deviation), privacy.epsilon);
    if (privacy.delta > 0)
        printf(", delta %g", privacy.delta);
    printf(" for %s\n", privacy.per_customer ? "a customer" : "a prediction");
    return FDS_OK;
}

static fds_status release(const cli_args *args, fds_ledger *l, fds_error *err) {
    return fds_ledger_release(l, args->period, args->events, NULL, err);
}

static fds_status tell_released(const cli_args *args, fds_ledger *l, fds_error *err) {
    uint64_t account;
    telling t = {args, l};
    CLI_TRY(fds_ledger_find(l, args->more[0], &account, err));
    return fds_ledger_released_statements(l, account, args->period, tell, &t, err);
}

static fds_status check_provider(const cli_args *args, fds_ledger *l, fds_error *err) {
    uint64_t account;
    fds_ledger_privacy privacy;
    CLI_TRY(fds_ledger_find(l, args->more[0], &account, err));
    fds_ledger_privacy_of(l, &privacy);
    if (privacy.is_private && fds_ledger_account_kind(l, account) != FDS_ACCOUNT_PROVIDER)
        return cli_fail(err, FDS_ERR_USAGE,
                        "%s is not a provider: only those have statements with noise",
                        args->more[0]);
    return FDS_OK;
}

/* Draws it unless that was done; then it is read, by whoever may read. */
static fds_status private_statement(const cli_args *args, fds_error *err) {
    if (!args->period)
        return cli_fail(err, FDS_ERR_USAGE,
                        "--private needs the period: --period 2026-11, or 2026-11-17 where periods "
                        "are days");
    CLI_TRY(with_ledger(args, FDS_LEDGER_READ, 1, 1, check_provider, err));
    fds_status status = with_ledger(args, FDS_LEDGER_READ, 1, 1, tell_released, err);
    if (status != FDS_ERR_NOT_FOUND)
        return status;
    CLI_TRY(with_ledger(args, FDS_LEDGER_WRITE, 1, 1, release, err));
    fds_terminal_clear();
    return with_ledger(args, FDS_LEDGER_READ, 1, 1, tell_released, err);
}

static fds_status statement(const cli_args *args, fds_ledger *l, fds_error *err) {
    uint64_t account;
    char *earnings;
    CLI_TRY(fds_ledger_find(l, args->more[0], &account, err));
    if (!args->json)
        return fds_ledger_statement(l, account, args->since, args->until, print_bytes, NULL, err);
    CLI_TRY(fds_ledger_earnings(l, account, &earnings, err));
    return cli_print_text(earnings, err);
}

/* ---- export, backup, verify ---- */

static fds_status export(const cli_args *args, fds_ledger *l, fds_error *err) {
    const char *format = args->format ? args->format : "csv";
    return fds_ledger_export(l, format, args->output, args->events, err);
}

static fds_status backup(const cli_args *args, fds_ledger *l, fds_error *err) {
    return fds_ledger_backup(l, args->output, err);
}

static fds_status to_file(const cli_args *args, action act, fds_error *err) {
    if (!args->output)
        return cli_fail(err, FDS_ERR_USAGE, "name the file to write: -o FILE");
    CLI_TRY(cli_check_output("-o", args->output, NULL, args, err));
    CLI_TRY(with_ledger(args, FDS_LEDGER_READ, 0, 0, act, err));
    fds_terminal_clear();
    if (args->json)
        return cli_print_json(json_pack("{s:s}", "file", args->output), err);
    printf("wrote %s\n", args->output);
    return FDS_OK;
}

static void print_verified(const cli_args *args, const json_t *report) {
    char entries[CLI_NUMBER_SIZE], accounts[CLI_NUMBER_SIZE], cash[32];
    (void)args;
    printf("right: %s entries, %s accounts; cash %s %s\nsigned by %s\n",
           cli_count(cli_get_count(report, "entries"), entries),
           cli_count(cli_get_count(report, "accounts"), accounts),
           fds_money_text((int64_t)json_integer_value(cli_get(report, "cash")),
                          (int)cli_get_count(report, "decimals"), cash),
           cli_get_text(report, "currency"), cli_get_text(report, "vkey"));
}

static fds_status verify(const cli_args *args, fds_ledger *l, fds_error *err) {
    char *report;
    CLI_TRY(fds_ledger_verify(l, args->vkey, args->events, &report, err));
    return cli_show(args, report, print_verified, err);
}

/* ---- receipts ---- */

static fds_status receipt(const cli_args *args, fds_ledger *l, fds_error *err) {
    uint64_t index, account;
    char *proof;
    CLI_TRY(read_entry(args->more[0], &index, err));
    CLI_TRY(fds_ledger_find(l, args->more[1], &account, err));
    CLI_TRY(fds_ledger_receipt(l, index, account, &proof, err));
    json_t *root = args->json ? json_pack("{s:s}", "receipt", proof) : NULL;
    if (!args->json)
        fputs(proof, stdout);
    fds_text_free(proof);
    return args->json ? cli_print_json(root, err) : FDS_OK;
}

static void print_receipt(const cli_args *args, const json_t *report) {
    const char *name;
    json_t *value;
    (void)args;
    json_object_foreach((json_t *)(uintptr_t)report, name, value) {
        json_is_string(value) ? printf("%-9s %s\n", name, json_string_value(value))
                              : printf("%-9s %lld\n", name, (long long)json_integer_value(value));
    }
}

static fds_status run_verify_receipt(cli_args *args, fds_error *err) {
    enum { MOST = 1 << 20 };
    if (!args->vkey)
        return cli_fail(err, FDS_ERR_USAGE, "name the log's public key: --vkey ORIGIN+HASH+KEY");
    FILE *file = strcmp(args->operand, "-") == 0 ? stdin : fopen(args->operand, "rb");
    char *text = file ? cli_alloc(MOST, 1, err) : NULL, *json = NULL;
    size_t size = text ? fread(text, 1, MOST, file) : 0;
    if (file && file != stdin)
        fclose(file);
    if (!file)
        return cli_fail(err, FDS_ERR_NOT_FOUND, "cannot open %s", args->operand);
    fds_status status =
        !text ? FDS_ERR_NOMEM : fds_receipt_verify(text, size, args->vkey, &json, err);
    free(text);
    return status == FDS_OK ? cli_show(args, json, print_receipt, err) : status;
}

/* ---- the commands ---- */

#define RUN(name_, access_, least_, most_)                                         \
    static fds_status run_##name_(cli_args *args, fds_error *err) {                \
        return with_ledger(args, FDS_LEDGER_##access_, least_, most_, name_, err); \
    }
RUN(topup, WRITE, 2, 2)
RUN(payout, WRITE, 1, 1)
RUN(correct, WRITE, 3, SIZE_MAX)
RUN(balance, READ, 0, 1)
RUN(verify, READ, 0, 0)
RUN(receipt, READ, 2, 2)
static fds_status run_statement(cli_args *args, fds_error *err) {
    return args->is_private ? private_statement(args, err)
                            : with_ledger(args, FDS_LEDGER_READ, 1, 1, statement, err);
}
static fds_status run_export(cli_args *args, fds_error *err) { return to_file(args, export, err); }
static fds_status run_backup(cli_args *args, fds_error *err) { return to_file(args, backup, err); }

#define KEYS                                                                                       \
    CLI_OWN(0, "key", key, "KEY", "the same key again changes nothing and gives the first entry"), \
        CLI_OWN(0, "signing-key", from, "FILE", "the signing key [LEDGER.key]")
#define REF CLI_OWN(0, "ref", ref, "TEXT", "reference of the payment, for people")
static const cli_option topup_own[] = {
    CLI_OWN(0, "new", all, NULL, "open an account if CUSTOMER has none"), REF, KEYS};
static const cli_option payout_own[] = {
    CLI_OWN(0, "minimum", count, "AMOUNT", "pay nothing if less is owed [one cent]"), REF, KEYS};
static const cli_option correct_own[] = {
    CLI_OWN(0, "reason", reason, "TEXT", "why (required)"),
    CLI_OWN(0, "operators", operators, "A,B", "two people who have agreed (required)"), KEYS};
static const cli_option statement_own[] = {
    CLI_OWN(0, "from", since, "DAY", "first day, such as 2026-11-01 [the first]"),
    CLI_OWN(0, "to", until, "DAY", "last day [the last]"),
    CLI_OWN(0, "private", is_private, NULL,
            "the statement of a period of a private ledger; the first call draws those of all "
            "providers"),
    CLI_OWN(0, "period", period, "PERIOD", "with --private: a month such as 2026-11, or a day"),
    CLI_OWN(0, "signing-key", from, "FILE", "the signing key, to draw statements [LEDGER.key]")};
static const cli_option export_own[] = {
    CLI_OWN('o', "output", output, "FILE", "the file to write (required)"),
    CLI_OWN(0, "format", format, "FORMAT", "hledger, beancount, ledger or csv [csv]")};
static const cli_option vkey_own[] = {
    CLI_OWN(0, "vkey", vkey, "KEY", "the log's public key, as fds ledger init printed it")};

/* rest: what stands after the operand. */
#define COMMAND(word_, operand_, rest_, run_, summary_, about_, example_, ...)                     \
    {                                                                                              \
        .name = "ledger " word_, .operand = operand_, .usage = operand_ rest_ " [options]",        \
        .missing = "for example: fds ledger " word_ example_, .summary = summary_,                 \
        .about = about_, .examples = "  fds ledger " word_ example_ "\n", .run = run_, __VA_ARGS__ \
    }
#define OWN(options) .own = options, .own_count = CLI_COUNT(options)

const cli_command cli_ledger[] = {
    COMMAND(
        "init", "LEDGER", "", run_init, "make an empty ledger and its signing key",
        "Makes LEDGER, and LEDGER.key, which signs its log. Prints the log's public key. LEDGER is "
        "a file, or a PostgreSQL database such as postgresql://host/shop.",
        " shop.db --origin example.com/shop", .job = "ledger"),
    COMMAND("topup", "LEDGER", " CUSTOMER AMOUNT", run_topup, "enter what a customer has paid in",
            "Enters that a customer has paid in AMOUNT, for example 10.00.",
            " shop.db acme 10.00 --new --ref \"invoice 7\"", .takes_more = true, OWN(topup_own)),
    COMMAND("balance", "LEDGER", " [ACCOUNT]", run_balance, "show what accounts are owed",
            "Shows the balance of every account, or of one. All balances add up to 0.", " shop.db",
            .takes_more = true),
    COMMAND(
        "statement", "LEDGER", " ACCOUNT", run_statement, "list what happened to an account",
        "Prints CSV. With --json: what the account has earned by day and label, in units. Of a "
        "provider of a private ledger it lists released statements; --private draws them, once.",
        " shop.db north --from 2026-11-01", .takes_more = true, OWN(statement_own)),
    COMMAND("payout", "LEDGER", " ACCOUNT", run_payout, "enter that an account is paid out",
            "Enters that an account is paid what it is owed, in whole cents; the rest stays.",
            " shop.db north --minimum 20.00 --key 2026-11", .takes_more = true, OWN(payout_own)),
    COMMAND("correct", "LEDGER", " ENTRY NAME=AMOUNT...", run_correct,
            "correct an entry by another one",
            "Entries are never changed. A correction changes balances by amounts that add up to 0.",
            " shop.db 17 north=-1.50 west=1.50 --reason \"labels swapped\" --operators ann,bob",
            .takes_more = true, OWN(correct_own)),
    COMMAND("export", "LEDGER", "", run_export, "write all entries for other programs",
            "Writes CSV, or a journal for hledger, beancount or ledger, with balances to check.",
            " shop.db --format hledger -o shop.journal", OWN(export_own)),
    COMMAND("backup", "LEDGER", "", run_backup, "copy a ledger",
            "Writes a complete copy of LEDGER, without its signing key.", " shop.db -o monday.db",
            .own = export_own, .own_count = 1),
    COMMAND(
        "verify", "LEDGER", "", run_verify, "compute everything again and compare",
        "Computes shares, balances and the log again. Names the first entry that does not agree.",
        " shop.db", OWN(vkey_own)),
    COMMAND("receipt", "LEDGER", " ENTRY ACCOUNT", run_receipt, "print the proof of a share",
            "Prints a C2SP tlog-proof of the share of ACCOUNT in ENTRY. It shows nobody else's.",
            " shop.db 17 north > north-17.txt", .takes_more = true),
    COMMAND(
        "verify-receipt", "FILE", " --vkey KEY", run_verify_receipt, "check the proof of a share",
        "Checks a receipt without the ledger, and prints what it proves. FILE -: standard input.",
        " north-17.txt --vkey example.com/shop+1a2b3c4d+AbC...", OWN(vkey_own)),
};
