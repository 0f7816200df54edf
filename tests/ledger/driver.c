/* SPDX-License-Identifier: Apache-2.0
 *
 * A ledger driven by lines of standard input, for tests in Python. Answers each with one line: "OK" and
 * what was asked for, or the name of the status and the reason. Names have no blanks; "-": none.
 *
 *   create PATH [NAME=VALUE ...]        open PATH read|write [KEY]  close
 *   account customer|provider NAME      run NAME SHA256 POLICY FEE_PPM PAYEE ...
 *   charge COUNT, and as many lines     RUN CUSTOMER AMOUNT KEY FINGERPRINT LABEL ANSWER VALUE ...
 *   topup NAME UNITS KEY                payout NAME MINIMUM KEY     correct ENTRY KEY NAME=UNITS ...
 *   balances                            size                        verify
 *   export FORMAT PATH                  dump                        all that entries say, as a hash
 *   clock DAY                           private NAME=VALUE ...      release PERIOD
 */
#include "ledger/ledger.h"

#include <stdlib.h>

enum { MOST = 512, LINE = 1 << 16 };

static fds_ledger *ledger;
static char line[LINE];
static char *words[MOST];
static size_t count;

static bool read_line(void) {
    count = 0;
    if (!fgets(line, sizeof line, stdin))
        return false;
    for (char *word = strtok(line, " \n"); word && count < MOST; word = strtok(NULL, " \n"))
        words[count++] = word;
    return true;
}

static const char *given(size_t i) { return i < count && strcmp(words[i], "-") ? words[i] : NULL; }
static long long number(size_t i) { return i < count ? atoll(words[i]) : 0; }

static void answer(fds_status status, const fds_error *err) {
    if (status != FDS_OK)
        printf("%s %s\n", fds_status_name(status), err->text);
}

static fds_status create(fds_error *err) {
    fds_params *params = fds_params_create("ledger");
    fds_status status = FDS_OK;
    for (size_t i = 2; i < count && status == FDS_OK; i++) {
        char *equals = strchr(words[i], '=');
        *equals = 0;
        status = fds_params_set(params, words[i], equals + 1, err);
    }
    if (status == FDS_OK)
        status = fds_ledger_create(words[1], params, err);
    fds_params_free(params);
    if (status == FDS_OK)
        puts("OK");
    return status;
}

static fds_status open_ledger(fds_error *err) {
    TRY(fds_ledger_open(words[1], strcmp(words[2], "write") ? FDS_LEDGER_READ : FDS_LEDGER_WRITE,
                        given(3), &ledger, err));
    puts("OK");
    return FDS_OK;
}

static fds_status add_account(fds_error *err) {
    uint64_t account;
    fds_account_kind kind =
        strcmp(words[1], "customer") ? FDS_ACCOUNT_PROVIDER : FDS_ACCOUNT_CUSTOMER;
    TRY(fds_ledger_account(ledger, kind, words[2], &account, err));
    printf("OK %llu\n", (unsigned long long)account);
    return FDS_OK;
}

static fds_status add_run(fds_error *err) {
    uint64_t run;
    fds_ledger_run r = {.name = words[1],
                        .sha256 = words[2],
                        .policy = given(3),
                        .fee_ppm = (uint32_t)number(4),
                        .payees = (const char *const *)words + 5,
                        .count = count - 5};
    TRY(fds_ledger_add_run(ledger, &r, &run, err));
    printf("OK %llu\n", (unsigned long long)run);
    return FDS_OK;
}

typedef struct {
    fds_charge charge;
    char key[256], label[256], answer[256];
    double values[MOST];
} order;

static void read_order(order *o) {
    read_line();
    uint64_t customer = UINT64_MAX;
    fds_ledger_find(ledger, words[1], &customer, NULL);
    snprintf(o->key, sizeof o->key, "%s", words[3]);
    snprintf(o->label, sizeof o->label, "%s", words[5]);
    snprintf(o->answer, sizeof o->answer, "%s", words[6]);
    for (size_t i = 7; i < count; i++)
        o->values[i - 7] = strtod(words[i], NULL);
    o->charge = (fds_charge){.run = (uint64_t)number(0),
                             .customer = customer,
                             .amount = number(2),
                             .label = o->label,
                             .confidence = 0.5,
                             .values = o->values,
                             .key = given(3) ? o->key : NULL,
                             .answer = o->answer,
                             .answer_size = strlen(o->answer)};
    o->charge.fingerprint[0] = (uint8_t)number(4);
}

/* "OK status:index:repeated:answer ..." */
static fds_status charge(fds_error *err) {
    size_t orders = (size_t)number(1);
    order *o = calloc(orders, sizeof *o);
    fds_charge *charges = calloc(orders, sizeof *charges);
    for (size_t i = 0; i < orders; i++) {
        read_order(&o[i]);
        charges[i] = o[i].charge;
    }
    fds_status status = fds_ledger_charge(ledger, charges, orders, err);
    if (status == FDS_OK)
        printf("OK");
    for (size_t i = 0; status == FDS_OK && i < orders; i++) {
        printf(" %s:%llu:%d:%.*s", fds_status_name(charges[i].status),
               (unsigned long long)charges[i].index, charges[i].is_repeated,
               (int)charges[i].first_answer_size,
               charges[i].first_answer ? (const char *)charges[i].first_answer : "");
        fds_text_free(charges[i].first_answer);
    }
    if (status == FDS_OK)
        puts("");
    free(o);
    free(charges);
    return status;
}

static fds_status topup(fds_error *err) {
    uint64_t account, index;
    TRY(fds_ledger_find(ledger, words[1], &account, err));
    TRY(fds_ledger_topup(ledger, account, number(2), NULL, given(3), &index, err));
    printf("OK %llu\n", (unsigned long long)index);
    return FDS_OK;
}

static fds_status payout(fds_error *err) {
    uint64_t account, index;
    int64_t units;
    TRY(fds_ledger_find(ledger, words[1], &account, err));
    TRY(fds_ledger_payout(ledger, account, number(2), NULL, given(3), &units, &index, err));
    printf("OK %lld %lld\n", (long long)units, (long long)index);
    return FDS_OK;
}

static fds_status correct(fds_error *err) {
    fds_posting postings[MOST];
    uint64_t index;
    size_t used = 0;
    for (size_t i = 3; i < count; i++) {
        char *equals = strrchr(words[i], '=');
        *equals = 0;
        TRY(fds_ledger_find(ledger, words[i], &postings[used].account, err));
        postings[used++].units = atoll(equals + 1);
    }
    TRY(fds_ledger_correct(ledger, (uint64_t)number(1), postings, used, "reason",
                           (const char *const[]){"ann", "bob"}, given(2), &index, err));
    printf("OK %llu\n", (unsigned long long)index);
    return FDS_OK;
}

static fds_status balances(fds_error *err) {
    (void)err;
    printf("OK");
    for (uint64_t i = 0; i < fds_ledger_accounts(ledger); i++)
        printf(" %s=%lld", fds_ledger_account_name(ledger, i),
               (long long)fds_ledger_balance(ledger, i));
    puts("");
    return FDS_OK;
}

static fds_status size(fds_error *err) {
    (void)err;
    printf("OK %llu\n", (unsigned long long)fds_ledger_size(ledger));
    return FDS_OK;
}

static fds_status verify(fds_error *err) {
    TRY(fds_ledger_verify(ledger, NULL, NULL, NULL, err));
    puts("OK");
    return FDS_OK;
}

static fds_status export_all(fds_error *err) {
    TRY(fds_ledger_export(ledger, words[1], words[2], NULL, err));
    puts("OK");
    return FDS_OK;
}

/* Entries, balances and earnings: two ledgers with one hash say the same. */
static fds_status dump(fds_error *err) {
    fds__text all = {0};
    char hex[65], *text = NULL;
    fds_status status = FDS_OK;
    for (uint64_t i = 0; status == FDS_OK && i < fds_ledger_size(ledger); i++) {
        status = fds_ledger_entry(ledger, i, UINT64_MAX, &text, err);
        if (status == FDS_OK)
            fds__text_add(&all, text, strlen(text));
        fds_text_free(text);
        text = NULL;
    }
    for (uint64_t i = 0; status == FDS_OK && i < fds_ledger_accounts(ledger); i++) {
        fds__text_print(&all, "%s %lld\n", fds_ledger_account_name(ledger, i),
                        (long long)fds_ledger_balance(ledger, i));
        status = fds_ledger_earnings(ledger, i, &text, err);
        if (status == FDS_OK)
            fds__text_add(&all, text, strlen(text));
        fds_text_free(text);
        text = NULL;
    }
    if (status == FDS_OK) {
        fds_sha256_hex(all.data, all.used, hex);
        printf("OK %s\n", hex);
    }
    fds__free(all.data);
    return status;
}

static int64_t clock_ms;
static int64_t tell_time(void) { return clock_ms; }

/* It is noon of that day from now on, until the ledger is closed. */
static fds_status set_clock(fds_error *err) {
    int64_t day = 0;
    if (!ledger_day_read(words[1], &day))
        return fds__fail(err, FDS_ERR_USAGE, "it is no day");
    clock_ms = day * LEDGER_DAY_MS + LEDGER_DAY_MS / 2;
    ledger->now_ms = tell_time;
    puts("OK");
    return FDS_OK;
}

static fds_status set_private(fds_error *err) {
    fds_params *params = fds_params_create("privacy");
    fds_status status = FDS_OK;
    uint64_t index;
    for (size_t i = 1; i < count && status == FDS_OK; i++) {
        char *equals = strchr(words[i], '=');
        *equals = 0;
        status = fds_params_set(params, words[i], equals + 1, err);
    }
    if (status == FDS_OK)
        status = fds_ledger_set_private(ledger, params, &index, err);
    fds_params_free(params);
    if (status == FDS_OK)
        printf("OK %llu\n", (unsigned long long)index);
    return status;
}

static fds_status release(fds_error *err) {
    uint64_t index;
    TRY(fds_ledger_release(ledger, words[1], NULL, &index, err));
    printf("OK %llu\n", (unsigned long long)index);
    return FDS_OK;
}

static fds_status close_ledger(fds_error *err) {
    (void)err;
    fds_ledger_close(ledger);
    ledger = NULL;
    puts("OK");
    return FDS_OK;
}

int main(void) {
    static const struct {
        const char *name;
        fds_status (*run)(fds_error *err);
    } commands[] = {{"create", create},       {"open", open_ledger}, {"account", add_account},
                    {"run", add_run},         {"charge", charge},    {"topup", topup},
                    {"payout", payout},       {"correct", correct},  {"balances", balances},
                    {"size", size},           {"verify", verify},    {"export", export_all},
                    {"close", close_ledger},  {"dump", dump},        {"clock", set_clock},
                    {"private", set_private}, {"release", release}};
    while (read_line()) {
        fds_error err = {0};
        for (size_t i = 0; count && i < sizeof commands / sizeof *commands; i++)
            if (strcmp(words[0], commands[i].name) == 0)
                answer(commands[i].run(&err), &err);
        fflush(stdout);
    }
    fds_ledger_close(ledger);
    return 0;
}
