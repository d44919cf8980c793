/*
 * A library that records the disk operations of a program, and makes them fail on command.
 *
 * It is preloaded (LD_PRELOAD) into a program and replaces the file functions of the C library, for files below one
 * folder. So the disk of any program can be recorded and made to fail, without root and without a file system driver.
 *
 *     cc -shared -fPIC -O2 -o disk.so disk.c -ldl -lpthread
 *
 * Environment (absolute paths without symbolic links):
 *
 *     DISK_FAULTS_FOLDER   the recorded folder
 *     DISK_FAULTS_RECORD   the file that the record is appended to
 *     DISK_FAULTS_CONTROL  a file of at least CONTROL_BYTES that names the operations that fail now. It is mapped into
 *                          memory, so it must be written in place. It has lines `OPERATION ERROR [END-OF-PATH]`, for
 *                          example `write ENOSPC` or `sync EIO .log`, up to a zero byte or the end of the file.
 *                          Operations: write (with truncate), sync, create (with mkdir and rename), read.
 *
 * A failing write is first a short write of half of the requested bytes, and fails when one byte is requested: so do
 * full disks. A failing sync behaves as on Linux since 4.13: programs still read what was written, the changes that were
 * not on disk are never written, and every open descriptor of the file gets the error once.
 *
 * The record is a sequence of entries, in the order in which the operations took effect:
 *
 *     struct entry, then `name_bytes` of names relative to the folder, then `data_bytes` of data
 *
 * Writes to the file MARKS are marks of the program and never fail. A sync has two entries: changes before the first
 * are durable at the second. `src/record.rs` reads the record.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define CONTROL_BYTES 256
#define MARKS ".marks"
#define DESCRIPTORS_MAX 65536
#define FAILED_FILES_MAX 4096

struct entry {
    uint32_t kind; /* one of the letters below */
    uint32_t name_bytes;
    uint64_t file; /* the inode */
    uint64_t at;   /* offset, length, or the number of a sync */
    uint64_t time_ns;
    uint64_t data_bytes;
};

enum kind {
    CREATED = 'c',     /* name -> file */
    FOLDER = 'd',      /* name -> file */
    WRITTEN = 'w',     /* file, at, data */
    TRUNCATED = 't',   /* file, at */
    SYNC_BEGAN = 's',  /* file, at */
    SYNC_ENDED = 'e',  /* file, at */
    SYNC_FAILED = 'f', /* file */
    RENAMED = 'r',     /* "from\0to" */
    REMOVED = 'u',     /* name */
};

static char folder[PATH_MAX];
static size_t folder_bytes;
static int record = -1;
static const char *control;
/* Locked while an operation takes effect and is recorded, so that entries have the order of the effects. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The number of failed syncs by file, and how many of them were reported to each descriptor. */
static struct { ino_t file; uint32_t failures; } failed[FAILED_FILES_MAX];
static uint32_t reported[DESCRIPTORS_MAX];

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) {
    return dlsym(RTLD_NEXT, name);
}

static void append(enum kind kind, ino_t file, uint64_t at, const char *name, size_t name_bytes, const void *data,
                   size_t data_bytes) {
    if (record < 0) return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct entry entry = {kind, (uint32_t)name_bytes, file, at,
                          (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec, data_bytes};
    struct iovec parts[3] = {{&entry, sizeof entry}, {(void *)name, name_bytes}, {(void *)data, data_bytes}};
    ssize_t all = (ssize_t)(sizeof entry + name_bytes + data_bytes);
    if (REAL(writev)(record, parts, 3) != all) {
        fprintf(stderr, "disk faults: the record cannot be written\n");
        abort();
    }
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("DISK_FAULTS_FOLDER");
    if (!path || !*path || strlen(path) >= sizeof folder) return;
    strcpy(folder, path);
    folder_bytes = strlen(folder);
    const char *to = getenv("DISK_FAULTS_RECORD");
    if (to && *to) {
        record = REAL(open)(to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        struct stat root;
        if (record >= 0 && stat(folder, &root) == 0) append(FOLDER, root.st_ino, 0, "", 0, NULL, 0);
    }
    const char *from = getenv("DISK_FAULTS_CONTROL");
    int fd = from && *from ? REAL(open)(from, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        void *mapped = mmap(NULL, CONTROL_BYTES, PROT_READ, MAP_SHARED, fd, 0);
        if (mapped != MAP_FAILED) control = mapped;
        REAL(close)(fd);
    }
}

/* The name relative to the folder if it is below it (or the folder itself: empty), else NULL. */
static const char *below(const char *path) {
    if (!folder_bytes || strncmp(path, folder, folder_bytes) != 0) return NULL;
    if (path[folder_bytes] == '\0') return path + folder_bytes;
    return path[folder_bytes] == '/' ? path + folder_bytes + 1 : NULL;
}

/* Writes the absolute path of `path`, relative to `dir`, into `out`; returns the name below the folder or NULL. */
static const char *name_of(int dir, const char *path, char out[PATH_MAX]) {
    if (!folder_bytes || !path) return NULL;
    if (path[0] == '/') {
        if (strlen(path) >= PATH_MAX) return NULL;
        return below(strcpy(out, path));
    }
    char link[64], base[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
    ssize_t bytes = dir == AT_FDCWD ? readlink("/proc/self/cwd", base, sizeof base - 1)
                                    : readlink(link, base, sizeof base - 1);
    if (bytes <= 0) return NULL;
    base[bytes] = '\0';
    if ((size_t)bytes + strlen(path) + 2 > PATH_MAX) return NULL;
    strcpy(out, base);
    return below(strcat(strcat(out, "/"), path));
}

/* As `name_of`, for an open descriptor. NULL for sockets, pipes and files that are not below the folder. */
static const char *name_of_fd(int fd, char out[PATH_MAX], ino_t *file) {
    if (!folder_bytes || fd < 0) return NULL;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t bytes = readlink(link, out, PATH_MAX - 1);
    if (bytes <= 0) return NULL;
    out[bytes] = '\0';
    const char *name = below(out);
    struct stat is;
    if (!name || fstat(fd, &is) != 0) return NULL;
    *file = is.st_ino;
    return name;
}

static int ends_with(const char *path, const char *end) {
    size_t path_bytes = strlen(path), end_bytes = strlen(end);
    return path_bytes >= end_bytes && strcmp(path + path_bytes - end_bytes, end) == 0;
}

/* Returns the error number with which an operation on this path fails now, or 0. */
static int fault(const char *operation, const char *path) {
    if (!control || ends_with(path, "/" MARKS)) return 0;
    char lines[CONTROL_BYTES + 1];
    memcpy(lines, control, CONTROL_BYTES);
    lines[CONTROL_BYTES] = '\0';
    char *rest = NULL;
    for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char what[32], error[32], end[128] = "";
        if (sscanf(line, "%31s %31s %127s", what, error, end) < 2 || strcmp(what, operation) != 0) continue;
        if (ends_with(path, end)) return strcmp(error, "ENOSPC") == 0 ? ENOSPC : EIO;
    }
    return 0;
}

/* Sets `errno` and returns the result of a failed call. */
static int fails(int error) {
    errno = error;
    return -1;
}

/* ---- names ------------------------------------------------------------------------------------------------ */

/* Records that a file was opened, if that created or truncated it; returns `fd`. */
static int opened(int fd, const char *name, int existed, int flags) {
    struct stat is;
    if (fd < 0 || fstat(fd, &is) != 0) return fd;
    if (fd < DESCRIPTORS_MAX) {
        reported[fd] = 0;
        for (int i = 0; i < FAILED_FILES_MAX && failed[i].failures; i++)
            if (failed[i].file == is.st_ino) reported[fd] = failed[i].failures;
    }
    if (!existed) append(CREATED, is.st_ino, 0, name, strlen(name), NULL, 0);
    else if (flags & O_TRUNC) append(TRUNCATED, is.st_ino, 0, NULL, 0, NULL, 0);
    return fd;
}

static int open_at(int dir, const char *path, int flags, mode_t mode) {
    char absolute[PATH_MAX];
    const char *name = name_of(dir, path, absolute);
    if (!name) return REAL(openat)(dir, path, flags, mode);
    pthread_mutex_lock(&lock);
    struct stat is;
    int existed = stat(absolute, &is) == 0;
    int error = existed || !(flags & O_CREAT) ? 0 : fault("create", absolute);
    int fd = error ? fails(error) : opened(REAL(openat)(dir, path, flags, mode), name, existed, flags);
    int saved = errno;
    pthread_mutex_unlock(&lock);
    errno = saved;
    return fd;
}

#define MODE(flags)                                            \
    mode_t mode = 0;                                           \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                     \
        va_list more;                                          \
        va_start(more, flags);                                 \
        mode = (mode_t)va_arg(more, int);                      \
        va_end(more);                                          \
    }

int open(const char *path, int flags, ...) { MODE(flags) return open_at(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return open_at(AT_FDCWD, path, flags, mode); }
int openat(int dir, const char *path, int flags, ...) { MODE(flags) return open_at(dir, path, flags, mode); }
int openat64(int dir, const char *path, int flags, ...) { MODE(flags) return open_at(dir, path, flags, mode); }
int creat(const char *path, mode_t mode) { return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

int mkdirat(int dir, const char *path, mode_t mode) {
    char absolute[PATH_MAX];
    const char *name = name_of(dir, path, absolute);
    if (!name) return REAL(mkdirat)(dir, path, mode);
    pthread_mutex_lock(&lock);
    struct stat is;
    int error = stat(absolute, &is) == 0 ? 0 : fault("create", absolute);
    int result = error ? fails(error) : REAL(mkdirat)(dir, path, mode);
    if (result == 0 && stat(absolute, &is) == 0) append(FOLDER, is.st_ino, 0, name, strlen(name), NULL, 0);
    int saved = errno;
    pthread_mutex_unlock(&lock);
    errno = saved;
    return result;
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int unlinkat(int dir, const char *path, int flags) {
    char absolute[PATH_MAX];
    const char *name = name_of(dir, path, absolute);
    if (!name) return REAL(unlinkat)(dir, path, flags);
    pthread_mutex_lock(&lock);
    int result = REAL(unlinkat)(dir, path, flags);
    if (result == 0) append(REMOVED, 0, 0, name, strlen(name), NULL, 0);
    int saved = errno;
    pthread_mutex_unlock(&lock);
    errno = saved;
    return result;
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int renameat(int from_dir, const char *from, int to_dir, const char *to) {
    char from_path[PATH_MAX], to_path[PATH_MAX], names[2 * PATH_MAX];
    const char *old_name = name_of(from_dir, from, from_path), *new_name = name_of(to_dir, to, to_path);
    if (!old_name || !new_name) return REAL(renameat)(from_dir, from, to_dir, to);
    size_t old_bytes = strlen(old_name), new_bytes = strlen(new_name);
    memcpy(names, old_name, old_bytes + 1);
    memcpy(names + old_bytes + 1, new_name, new_bytes);
    pthread_mutex_lock(&lock);
    int error = fault("create", to_path);
    int result = error ? fails(error) : REAL(renameat)(from_dir, from, to_dir, to);
    if (result == 0) append(RENAMED, 0, 0, names, old_bytes + 1 + new_bytes, NULL, 0);
    int saved = errno;
    pthread_mutex_unlock(&lock);
    errno = saved;
    return result;
}

int rename(const char *from, const char *to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }

/* ---- bytes ------------------------------------------------------------------------------------------------ */

/* Writes at `at`, or at the position of the descriptor if `at` is negative. */
static ssize_t write_at(int fd, const void *data, size_t bytes, off64_t at, const char *path, ino_t file) {
    pthread_mutex_lock(&lock);
    int error = fault("write", path);
    ssize_t done;
    if (error && bytes < 2) {
        done = fails(error);
    } else {
        if (error) bytes /= 2;
        off64_t from = at;
        if (at < 0) {
            int appends = REAL(fcntl)(fd, F_GETFL) & O_APPEND;
            struct stat is;
            from = appends && fstat(fd, &is) == 0 ? is.st_size : lseek64(fd, 0, SEEK_CUR);
        }
        done = at < 0 ? REAL(write)(fd, data, bytes) : REAL(pwrite64)(fd, data, bytes, at);
        if (done > 0) append(WRITTEN, file, (uint64_t)from, NULL, 0, data, (size_t)done);
    }
    int saved = errno;
    pthread_mutex_unlock(&lock);
    errno = saved;
    return done;
}

/* Returns the error number with which a read of this descriptor fails now, or 0. Tests the control file first: most reads
 * are of sockets. */
static int read_fault(int fd) {
    char path[PATH_MAX];
    ino_t file;
    if (!control || !memmem(control, strnlen(control, CONTROL_BYTES), "read ", 5)) return 0;
    return name_of_fd(fd, path, &file) ? fault("read", path) : 0;
}

ssize_t read(int fd, void *data, size_t bytes) {
    int error = read_fault(fd);
    return error ? fails(error) : REAL(read)(fd, data, bytes);
}

ssize_t pread64(int fd, void *data, size_t bytes, off64_t at) {
    int error = read_fault(fd);
    return error ? fails(error) : REAL(pread64)(fd, data, bytes, at);
}

ssize_t pread(int fd, void *data, size_t bytes, off_t at) { return pread64(fd, data, bytes, at); }

ssize_t readv(int fd, const struct iovec *parts, int count) {
    int error = read_fault(fd);
    return error ? fails(error) : REAL(readv)(fd, parts, count);
}

ssize_t write(int fd, const void *data, size_t bytes) {
    char path[PATH_MAX];
    ino_t file;
    const char *name = name_of_fd(fd, path, &file);
    return name ? write_at(fd, data, bytes, -1, path, file) : REAL(write)(fd, data, bytes);
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t at) {
    char path[PATH_MAX];
    ino_t file;
    const char *name = name_of_fd(fd, path, &file);
    return name ? write_at(fd, data, bytes, at, path, file) : REAL(pwrite64)(fd, data, bytes, at);
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at) { return pwrite64(fd, data, bytes, at); }

ssize_t writev(int fd, const struct iovec *parts, int count) {
    char path[PATH_MAX];
    ino_t file;
    const char *name = name_of_fd(fd, path, &file);
    if (!name) return REAL(writev)(fd, parts, count);
    /* A short write is always allowed. */
    for (int i = 0; i < count; i++)
        if (parts[i].iov_len) return write_at(fd, parts[i].iov_base, parts[i].iov_len, -1, path, file);
    return 0;
}

int ftruncate64(int fd, off64_t length) {
    char path[PATH_MAX];
    ino_t file;
    const char *name = name_of_fd(fd, path, &file);
    if (!name) return REAL(ftruncate64)(fd, length);
    pthread_mutex_lock(&lock);
    int error = fault("write", path);
    /* A truncation does not fail with ENOSPC: neither a shorter nor a sparse file needs space. */
    int result = error == EIO ? fails(error) : REAL(ftruncate64)(fd, length);
    if (result == 0) append(TRUNCATED, file, (uint64_t)length, NULL, 0, NULL, 0);
    int saved = errno;
    pthread_mutex_unlock(&lock);
    errno = saved;
    return result;
}

int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

/* ---- syncs ------------------------------------------------------------------------------------------------ */

/* Whether this descriptor gets the error of a failed sync now. `error`: this sync fails. */
static int gets_error(int fd, ino_t file, int error) {
    int i = 0;
    while (i < FAILED_FILES_MAX && failed[i].failures && failed[i].file != file) i++;
    if (i == FAILED_FILES_MAX || fd >= DESCRIPTORS_MAX) abort();
    if (error) {
        failed[i].file = file;
        failed[i].failures++;
    }
    int is_new = failed[i].failures != reported[fd];
    reported[fd] = failed[i].failures;
    return is_new;
}

static uint64_t syncs;

static int sync_file(int fd, int (*sync)(int)) {
    char path[PATH_MAX];
    ino_t file;
    const char *name = name_of_fd(fd, path, &file);
    if (!name) return sync(fd);
    pthread_mutex_lock(&lock);
    int error = fault("sync", path);
    int gets = gets_error(fd, file, error);
    uint64_t number = ++syncs;
    append(error ? SYNC_FAILED : SYNC_BEGAN, file, number, NULL, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    if (error) return fails(error);
    /* Not locked: other threads write and sync concurrently. */
    int result = sync(fd);
    int saved = errno;
    pthread_mutex_lock(&lock);
    append(SYNC_ENDED, file, number, NULL, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    errno = saved;
    return gets ? fails(EIO) : result;
}

int fsync(int fd) { return sync_file(fd, REAL(fsync)); }
int fdatasync(int fd) { return sync_file(fd, REAL(fdatasync)); }
