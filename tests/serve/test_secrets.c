/* SPDX-License-Identifier: Apache-2.0
 * Which predictions are audited: a secret a day, committed to before and revealed after, once each,
 * whenever the process dies. The clock is the test's own. */
#include "../ledger/ledger_fixture.h"

#include "serve/serve.h"

#include <sys/stat.h>

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
enum { DAY_MS = 86400000 };

static int64_t clock_ms;
static int64_t fake_now(void) { return clock_ms; }

/* A server that has a ledger, and nothing else. */
typedef struct {
    fds_server server;
    serve_shadow shadow;
    char base[300];
} world;

/* As a process does when it starts. */
static fds_status begin(world *w, fds_ledger *l, double share, fds_error *err) {
    memset(w, 0, sizeof *w);
    w->server.ledger = l;
    w->server.shadow = &w->shadow;
    l->now_ms = fake_now;
    w->shadow.secrets.now_ms = fake_now;
    w->shadow.secrets.share_ppm = (uint32_t)(share * 1e6);
    snprintf(w->base, sizeof w->base, "%s", scratch_path("a.ledger"));
    TRY(serve_secrets_open(&w->server, w->base, err));
    return serve_secrets_reveal(&w->server, serve_secrets_today(&w->shadow.secrets), err);
}

static void begin_well(world *w, fds_ledger *l, double share) {
    fds_error err = {0};
    expect_ok(begin(w, l, share, &err), &err);
}

static void prepare(world *w) {
    fds_error err = {0};
    expect_ok(serve_secrets_prepare(&w->server, &err), &err);
}

static int64_t today(void) { return clock_ms / DAY_MS; }

static const char *day_name(int64_t day) {
    static char names[4][16];
    static unsigned turn;
    char *name = names[turn++ % 4];
    time_t seconds = (time_t)(day * 86400);
    strftime(name, sizeof *names, "%Y-%m-%d", gmtime(&seconds));
    return name;
}

static bool has_file(int64_t day) {
    char path[400];
    struct stat about;
    snprintf(path, sizeof path, "%s.audit-%s", scratch_path("a.ledger"), day_name(day));
    if (stat(path, &about) != 0)
        return false;
    assert_int_equal(about.st_mode & 0777, 0600);
    return true;
}

/* The note of a day; the caller decrefs it. NULL: none. Fails if there are two. */
static json_t *note_of(const fds_ledger *l, const char *what, int64_t day) {
    json_t *found = NULL;
    fds_error err = {0};
    for (uint64_t i = 0; i < fds_ledger_size(l); i++) {
        char *text = NULL;
        expect_ok(fds_ledger_entry(l, i, UINT64_MAX, &text, &err), &err);
        json_t *entry = json_loads(text, 0, NULL), *note = json_object_get(entry, "text");
        const char *kind = json_string_value(json_object_get(note, "audit")),
                   *of = json_string_value(json_object_get(note, "day"));
        if (kind && of && strcmp(kind, what) == 0 && strcmp(of, day_name(day)) == 0) {
            assert_null(found);
            found = json_incref(note);
        }
        json_decref(entry);
        fds_text_free(text);
    }
    return found;
}

static bool has_note(const fds_ledger *l, const char *what, int64_t day) {
    json_t *note = note_of(l, what, day);
    bool has = note != NULL;
    json_decref(note);
    return has;
}

/* The secret that was revealed is the one that was committed to. */
static void expect_true_reveal(const fds_ledger *l, int64_t day) {
    json_t *commit = note_of(l, "commit", day), *reveal = note_of(l, "reveal", day);
    uint8_t secret[32];
    char hash[65];
    assert_true(commit && reveal);
    const char *hex = json_string_value(json_object_get(reveal, "secret"));
    for (size_t i = 0; i < 32; i++)
        assert_int_equal(sscanf(hex + 2 * i, "%2hhx", &secret[i]), 1);
    fds_sha256_hex(secret, sizeof secret, hash);
    assert_string_equal(hash, json_string_value(json_object_get(commit, "hash")));
    json_decref(commit);
    json_decref(reveal);
}

static fds_ledger *new_ledger(void) {
    clock_ms = 4000060800000 + 5000; /* shortly after a day has begun */
    return small_ledger();
}

/* ---- the days ---- */

static void a_day_is_committed_to_before_and_revealed_after(void **state) {
    (void)state;
    world w;
    fds_ledger *l = new_ledger();
    int64_t first = today();
    fds_error err = {0};
    begin_well(&w, l, 0.25);
    assert_false(has_note(l, "commit", first)); /* nobody has asked for anything yet */
    for (int i = 0; i < 3; i++)
        prepare(&w);
    assert_true(has_note(l, "commit", first) && has_note(l, "commit", first + 1));
    assert_true(has_file(first) && has_file(first + 1) && !has_file(first + 2));
    clock_ms += DAY_MS;
    prepare(&w);
    assert_true(has_note(l, "commit", first + 2) && !has_note(l, "reveal", first));
    expect_ok(serve_secrets_reveal(&w.server, today(), &err), &err);
    expect_true_reveal(l, first);
    assert_true(!has_file(first) && has_file(first + 1) && !has_note(l, "reveal", first + 1));
    json_t *note = note_of(l, "reveal", first);
    assert_int_equal(json_integer_value(json_object_get(note, "share_ppm")), 250000);
    assert_int_equal(json_integer_value(json_object_get(note, "rows")), 0);
    json_decref(note);
    verify(l);
    fds_ledger_close(l);
}

static void the_share_of_a_day_is_that_of_its_secret(void **state) {
    (void)state;
    enum { MANY = 20000 };
    world w;
    fds_ledger *l = new_ledger();
    size_t count = 0, other = 0;
    begin_well(&w, l, 0.25);
    prepare(&w);
    for (uint64_t i = 0; i < MANY; i++) {
        count += serve_secrets_choose(&w.shadow.secrets, today(), i);
        other += serve_secrets_choose(&w.shadow.secrets, today() + 2, i);
    }
    assert_true(count > 0.23 * MANY && count < 0.27 * MANY && other == 0);
    begin_well(&w, l, 1); /* started again with another share: the day keeps its own */
    prepare(&w);
    size_t again = 0;
    for (uint64_t i = 0; i < MANY; i++)
        again += serve_secrets_choose(&w.shadow.secrets, today(), i);
    assert_int_equal(again, count);
    fds_ledger_close(l);
}

/* By the definition of the documents. */
static void a_choice_follows_from_secret_and_number(void **state) {
    (void)state;
    serve_secrets s = {.count = 1,
                       .items = {{.day = 7, .share_ppm = 500000, .is_committed = true}}};
    for (size_t i = 0; i < 32; i++)
        s.items[0].bytes[i] = (uint8_t)i;
    for (uint64_t entry = 0; entry < 100; entry++) {
        uint8_t text[40] = {0};
        char hex[65];
        memcpy(text, s.items[0].bytes, 32);
        text[39] = (uint8_t)entry;
        fds_sha256_hex(text, sizeof text, hex);
        assert_true(serve_secrets_choose(&s, 7, entry) == (hex[0] < '8'));
    }
    s.items[0].is_committed = false;
    for (uint64_t entry = 0; entry < 100; entry++)
        assert_false(serve_secrets_choose(&s, 7, entry));
}

static void what_is_due_is_revealed_at_the_next_start(void **state) {
    (void)state;
    world w;
    fds_ledger *l = new_ledger();
    int64_t first = today();
    begin_well(&w, l, 0.25);
    prepare(&w);
    clock_ms += 5 * (int64_t)DAY_MS;
    begin_well(&w, l, 0); /* audits are off by now */
    expect_true_reveal(l, first);
    expect_true_reveal(l, first + 1);
    prepare(&w);
    assert_false(has_note(l, "commit", today()) || has_file(today()) || has_file(first));
    fds_ledger_close(l);
}

/* ---- inputs that wait ---- */

typedef struct {
    const serve_secrets *secrets;
    uint8_t sealed[SERVE_SEAL + 5];
} keeper;

static fds_status keep_sealed(void *user, size_t place, uint64_t entry, int64_t at_ms,
                              const void **data, size_t *size, fds_error *err) {
    keeper *k = user;
    (void)place;
    *data = k->sealed;
    *size = sizeof k->sealed;
    return serve_secrets_seal(k->secrets, at_ms / DAY_MS, entry, "hello", 5, k->sealed, err);
}

static uint64_t buy_sealed(world *w, keeper *k) {
    fds_error err = {0};
    fds_charge c = charge_of(w->server.ledger, 0, "acme", 100, NULL);
    k->secrets = &w->shadow.secrets;
    expect_ok(fds_ledger_charge_keeping(w->server.ledger, &c, 1, keep_sealed, k, &err), &err);
    assert_int_equal(c.status, FDS_OK);
    return c.index;
}

static void an_input_opens_for_its_own_entry_and_day(void **state) {
    (void)state;
    world w;
    keeper k;
    char out[5];
    fds_error err = {0};
    fds_ledger *l = new_ledger();
    begin_well(&w, l, 1);
    prepare(&w);
    uint64_t entry = buy_sealed(&w, &k);
    assert_null(memmem(k.sealed, sizeof k.sealed, "hello", 5));
    begin_well(&w, l, 1); /* a new process: the key is in the file */
    expect_ok(serve_secrets_unseal(&w.shadow.secrets, entry, k.sealed, sizeof k.sealed, out, &err),
              &err);
    assert_memory_equal(out, "hello", 5);
    assert_int_equal(
        serve_secrets_unseal(&w.shadow.secrets, entry + 1, k.sealed, sizeof k.sealed, out, &err),
        FDS_ERR_CORRUPT);
    for (size_t i = 0; i < sizeof k.sealed; i++) {
        k.sealed[i] ^= 1;
        assert_int_not_equal(
            serve_secrets_unseal(&w.shadow.secrets, entry, k.sealed, sizeof k.sealed, out, &err),
            FDS_OK);
        k.sealed[i] ^= 1;
    }
    assert_int_equal(serve_secrets_unseal(&w.shadow.secrets, entry, k.sealed, 20, out, &err),
                     FDS_ERR_NOT_FOUND);
    fds_ledger_close(l);
}

static void a_day_is_revealed_once_nothing_of_it_waits(void **state) {
    (void)state;
    static const float bank[PAYEES] = {0};
    world w;
    keeper k;
    fds_error err = {0};
    fds_ledger *l = new_ledger();
    int64_t first = today();
    begin_well(&w, l, 1);
    prepare(&w);
    fds_audited row = {.entry = buy_sealed(&w, &k), .values = bank, .errors = bank, .score = 1};
    clock_ms += DAY_MS;
    prepare(&w);
    expect_ok(serve_shadow_reveal(&w.server, &err), &err);
    assert_false(has_note(l, "reveal", first));
    expect_ok(fds_ledger_add_audited(l, &row, 1, &err), &err);
    expect_ok(serve_shadow_reveal(&w.server, &err), &err);
    expect_true_reveal(l, first);
    fds_ledger_close(l);
}

static void what_waits_in_vain_is_forgotten_after_days(void **state) {
    (void)state;
    world w;
    keeper k;
    fds_error err = {0};
    fds_ledger *l = new_ledger();
    int64_t first = today();
    uint64_t count;
    begin_well(&w, l, 1);
    prepare(&w);
    buy_sealed(&w, &k);
    for (int day = 1; day <= 3; day++) {
        clock_ms += DAY_MS;
        prepare(&w);
        if (day == 2)
            buy_sealed(&w, &k);
        expect_ok(serve_shadow_reveal(&w.server, &err), &err);
        expect_ok(fds_ledger_waiting_count(l, &count, &err), &err);
        assert_int_equal(count, day == 2 ? 2 : 1);
        assert_true(has_note(l, "reveal", first) == (day == 3));
    }
    assert_int_equal(atomic_load(&w.server.metrics.audits_missed), 1);
    assert_true(has_note(l, "reveal", first + 1) && !has_note(l, "reveal", first + 2));
    fds_ledger_close(l);
}

/* ---- deaths ---- */

static void a_secret_without_commitment_is_used_or_removed(void **state) {
    (void)state;
    world w;
    fds_ledger *l = new_ledger();
    fds_error err = {0};
    uint8_t bytes[32];
    l->can_write = false; /* the process dies before the entry */
    begin_well(&w, l, 0.25);
    assert_true(serve_secrets_prepare(&w.server, &err) != FDS_OK);
    assert_true(has_file(today()) && !has_note(l, "commit", today()));
    memcpy(bytes, w.shadow.secrets.items[0].bytes, sizeof bytes);
    l->can_write = true;
    begin_well(&w, l, 0.25);
    prepare(&w);
    assert_memory_equal(w.shadow.secrets.items[0].bytes, bytes, sizeof bytes);
    assert_true(has_note(l, "commit", today()));
    clock_ms += 2 * (int64_t)DAY_MS;
    l->can_write = false;
    assert_true(serve_secrets_prepare(&w.server, &err) != FDS_OK);
    int64_t missed = today();
    l->can_write = true;
    clock_ms += DAY_MS;
    begin_well(&w, l, 0.25); /* nothing was chosen by it */
    assert_false(has_file(missed) || has_note(l, "commit", missed) ||
                 has_note(l, "reveal", missed));
    fds_ledger_close(l);
}

static void a_lost_secret_chooses_nothing_and_is_not_replaced(void **state) {
    (void)state;
    world w;
    fds_ledger *l = new_ledger();
    char path[400];
    begin_well(&w, l, 1);
    prepare(&w);
    snprintf(path, sizeof path, "%s.audit-%s", scratch_path("a.ledger"), day_name(today()));
    assert_int_equal(unlink(path), 0);
    begin_well(&w, l, 1);
    prepare(&w);
    assert_false(has_file(today()) || serve_secrets_choose(&w.shadow.secrets, today(), 3));
    assert_true(serve_secrets_choose(&w.shadow.secrets, today() + 1, 3));
    assert_true(has_note(l, "commit", today()));
    fds_ledger_close(l);
}

/* Every operation on a file fails once, and a new process goes on from what is there. */
static void failures_of_files_do_no_harm(void **state) {
    (void)state;
    fds_ledger *l = new_ledger();
    int failed = 0;
    for (uint64_t nth = 1; nth < 60; nth++, clock_ms += DAY_MS) {
        world w;
        fds_error err = {0};
        int64_t day = today();
        fds__fault_arm(FDS__FAULT_IO, nth);
        fds_status status = begin(&w, l, 0.5, &err);
        if (status == FDS_OK)
            status = serve_secrets_prepare(&w.server, &err);
        fds__fault_arm(FDS__FAULT_IO, 0);
        failed += status != FDS_OK;
        begin_well(&w, l, 0.5);
        prepare(&w);
        assert_true(has_note(l, "commit", day) && has_note(l, "commit", day + 1)); /* one each */
        if (nth > 1)
            expect_true_reveal(l, day - 1);
    }
    print_message("# %d failures\n", failed);
    assert_true(failed > 5);
    verify(l);
    fds_ledger_close(l);
}

static void files_of_others_are_named(void **state) {
    (void)state;
    world w;
    fds_ledger *l = new_ledger();
    char path[400];
    begin_well(&w, l, 1);
    prepare(&w);
    snprintf(path, sizeof path, "%s.audit-%s", scratch_path("a.ledger"), day_name(today()));
    size_t size;
    char *kept = scratch_read(path, &size);
    static const char *const texts[] = {"", "{}", "{\"day\": \"2096-10-03\", \"share_ppm\": 1}"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        fds_error err = {0};
        scratch_write(path, texts[i], strlen(texts[i]));
        assert_true(begin(&w, l, 1, &err) != FDS_OK);
        expect_in(err.text, ".audit-");
    }
    char *digit = (char *)memmem(kept, size, "\"secret\": \"", 11) + 11;
    *digit = *digit == '0' ? '1' : '0';
    scratch_write(path, kept, size);
    fds_error err = {0};
    assert_int_equal(begin(&w, l, 1, &err), FDS_ERR_CONFLICT);
    expect_in(err.text, "another commitment");
    free(kept);
    fds_ledger_close(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(a_day_is_committed_to_before_and_revealed_after),
        IN_SCRATCH(the_share_of_a_day_is_that_of_its_secret),
        cmocka_unit_test(a_choice_follows_from_secret_and_number),
        IN_SCRATCH(what_is_due_is_revealed_at_the_next_start),
        IN_SCRATCH(an_input_opens_for_its_own_entry_and_day),
        IN_SCRATCH(a_day_is_revealed_once_nothing_of_it_waits),
        IN_SCRATCH(what_waits_in_vain_is_forgotten_after_days),
        IN_SCRATCH(a_secret_without_commitment_is_used_or_removed),
        IN_SCRATCH(a_lost_secret_chooses_nothing_and_is_not_replaced),
        IN_SCRATCH(failures_of_files_do_no_harm),
        IN_SCRATCH(files_of_others_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
