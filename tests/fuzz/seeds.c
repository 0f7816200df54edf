/* SPDX-License-Identifier: Apache-2.0
 * Makes the seeds of the targets run, explainer, bank, checkpoint, note and proof anew, after a
 * change of what their files hold: make-seeds tests/fuzz/corpus */
#include "small_run.h"
#ifdef FDS_LEDGER
#include "fuzz_log.h"
#endif

#include <sys/stat.h>

enum { STEPS = 3 }; /* of an epoch, at the most */

static const char *corpus;

static void write_seed(const char *target, const char *name, const void *data, size_t size) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", corpus, target);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", corpus, target, name);
    fuzz_write(path, data, size);
    printf("%s: %zu bytes\n", path, size);
}

static void pack_seed(const char *target, const char *name, const char *dir,
                      const char *const *files, size_t count) {
    static uint8_t packed[1 << 16];
    fuzz_part parts[FUZZ_MOST_FILES] = {{0}};
    fds__blob blobs[FUZZ_MOST_FILES] = {{0}};
    for (size_t i = 0; i < count; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", fuzz_path(dir), files[i]);
        if (!fds__path_exists(path))
            continue;
        blobs[i] = fuzz_read(path);
        parts[i] = (fuzz_part){blobs[i].data, blobs[i].size};
    }
    size_t size = fuzz_pack(parts, count, packed, sizeof packed);
    if (!size)
        abort();
    write_seed(target, name, packed, size);
    for (size_t i = 0; i < count; i++)
        free(blobs[i].data);
}

static void seed_run(small_task *t, const char *method, const char *explainer, const char *name) {
    static const char *const answers[] = {FDS__RUN_EXPLAINER, FDS__RUN_ERRORS};
    const fds_problem problem = small_problem(t);
    fds_params params = small_params(method, explainer);
    fds_error err;
    params.keep_models = true;
    fuzz_ok(fds__fit(fuzz_path(name), &problem, &params, NULL, NULL, &err), &err);
    pack_seed("run", name, name, run_files, RUN_FILES);
    if (strcmp(explainer, "bank") != 0)
        pack_seed("explainer", name, name, answers, 2);
}

static void seed_bank(const small_task *t) {
    static uint8_t mode_and_file[1 << 12];
    small_game g = small_game_make(t);
    fds_error err;
    fuzz_ok(fds__bank_fill(fuzz_path("bank"), g.value, g.table, g.plan, 1, NULL, &err), &err);
    fds__blob file = fuzz_read(fuzz_path("bank"));
    if (file.size >= sizeof mode_and_file)
        abort();
    memcpy(mode_and_file + 1, file.data, file.size);
    write_seed("bank", "as_it_is", mode_and_file, file.size + 1);
    mode_and_file[0] = 1;
    write_seed("bank", "repaired", mode_and_file, file.size + 1);
    write_seed("bank", "cut_off", mode_and_file, file.size - 20);
    free(file.data);
    small_game_free(&g);
}

/* Stops in the second epoch of the explainer: the checkpoint of the first is there. */
static bool is_enough(void *user, const fds_progress *progress) {
    (void)user;
    return strcmp(progress->stage, "explainer") == 0 && progress->done > STEPS;
}

static void seed_checkpoint(small_task *t, const char *name, bool warm_up) {
    const fds_problem problem = small_problem(t);
    fds_params params = small_params("afds", "linear");
    fds_events events = {.progress = is_enough};
    char path[1024];
    fds_error err;
    params.warm_up = warm_up;
    learn_checkpoint_s = 0;
    fds_status status = fds__fit(fuzz_path(name), &problem, &params, &events, NULL, &err);
    if (status != FDS_ERR_CANCELLED) {
        fprintf(stderr, "%s: the fit was not stopped: %s\n", name, err.text);
        abort();
    }
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", fuzz_path(name));
    fds__blob file = fuzz_read(path);
    write_seed("checkpoint", name, file.data, file.size);
    free(file.data);
}

#ifdef FDS_LEDGER
static void write_text_seed(const char *name, char kind, const char *text) {
    char seed[1024];
    size_t size = (size_t)snprintf(seed, sizeof seed, "%c%s", kind, text);
    write_seed("note", name, seed, size);
}

static void seed_log(void) {
    log_hash leaves[5], path[LOG_PATH];
    char entry[16], *proof = NULL;
    fds_error err = {0};
    for (size_t i = 0; i < 5; i++)
        leaves[i] = log_leaf(entry, (size_t)snprintf(entry, sizeof entry, "entry %zu", i));
    log_hash root = log_root(leaves, 5);
    char *note = fuzz_note(5, &root);
    write_text_seed("checkpoint", '0', note);
    write_text_seed("public_key", '1', FUZZ_VKEY);
    write_text_seed("private_key", '2', FUZZ_PRIVATE);
    write_text_seed("tile", '3', "tile/2/x001/x234/067.p/17");
    write_text_seed("entries", '3', "tile/entries/x012/345");
    for (size_t i = 0; i < 5; i += 4) { /* a long path, a short one */
        size_t length = log_path(leaves, 5, i, path);
        snprintf(entry, sizeof entry, "entry %zu", i);
        fuzz_ok(log_proof_write(entry, strlen(entry), i, path, length, note, &proof, &err), &err);
        write_seed("proof", i ? "last" : "first", proof, strlen(proof));
        fds__free(proof);
    }
    fds__free(note);
}
#endif

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: make-seeds FOLDER\n");
        return 2;
    }
    corpus = argv[1];
    fuzz_dir_make();
#ifdef FDS_LEDGER
    seed_log();
#endif
    small_task t = small_task_make();
    seed_run(&t, "afds", "linear", "players");
    seed_run(&t, "gfds+", "linear", "groups");
    seed_run(&t, "afds", "bank", "sub_models");
    seed_bank(&t);
    seed_checkpoint(&t, "explainer", false);
    seed_checkpoint(&t, "warm_up", true);
    small_task_free(&t);
    return 0;
}
