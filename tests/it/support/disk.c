/* Preloaded into a server (LD_PRELOAD). Notes the server's operations on the files under HAPAX_DISK_DIR, in their
 * order, and makes some of them fail. `disk.rs` reads the notes. Writes through a memory map (SQLite's -shm) are not
 * noted.
 *
 * HAPAX_DISK_DIR    the folder; operations on other files are neither noted nor changed
 * HAPAX_DISK_NOTES  the file to which the notes are appended
 * HAPAX_DISK_FAIL   NUMBER:ERRNO: the number of the operation that fails, counted from 1, and its error
 * HAPAX_DISK_FULL   a path: while a file with this path exists, each write that makes a file longer fails with ENOSPC
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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static const char *dir, *full;
static size_t dir_len;
static int notes = -1;
static long count, fail_at;
static int fail_errno;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("HAPAX_DISK_NOTES"), *fail = getenv("HAPAX_DISK_FAIL");
    dir = getenv("HAPAX_DISK_DIR");
    full = getenv("HAPAX_DISK_FULL");
    if (!dir || !path) return;
    dir_len = strlen(dir);
    notes = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fail) sscanf(fail, "%ld:%d", &fail_at, &fail_errno);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Whether a path is inside the folder, or is the folder or its parent. The parent stores the name of the folder. */
static int ours(const char *path) {
    if (notes < 0) return 0;
    if (strncmp(path, dir, dir_len) == 0 && (path[dir_len] == '/' || path[dir_len] == 0)) return 1;
    size_t len = strlen(path);
    return len < dir_len && strncmp(path, dir, len) == 0 && !strchr(dir + len + 1, '/');
}

/* Whether the path of a descriptor is ours. Writes it to `path`. Files for memory maps (-shm) are not ours. */
static int path_of(int fd, char *path) {
    char link[64];
    if (notes < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, PATH_MAX - 1);
    if (len < 0) return 0;
    path[len] = 0;
    return ours(path) && (len < 4 || strcmp(path + len - 4, "-shm") != 0);
}

static int whole(const char *path, char *out) {
    if (notes < 0) return 0;
    if (path[0] == '/') {
        snprintf(out, PATH_MAX, "%s", path);
    } else {
        if (!getcwd(out, PATH_MAX)) return 0;
        size_t len = strlen(out);
        snprintf(out + len, PATH_MAX - len, "/%s", path);
    }
    return ours(out);
}

static void put(const void *bytes, size_t len) {
    while (len > 0) {
        ssize_t done = syscall(SYS_write, notes, bytes, len);
        if (done < 0) abort();
        bytes = (const char *)bytes + done;
        len -= done;
    }
}

/* Writes a note: the kind, the injected error or 0, the lengths of two strings, the offset, the length of the data;
 * then the strings and the data. If an operation fails without an injected error, no note is written. */
static void note(char kind, int error, const char *path, const char *other, uint64_t offset, const void *data,
                 uint64_t len) {
    struct {
        uint32_t kind, error, path, other;
        uint64_t offset, len;
    } head = {kind, error, strlen(path), strlen(other), offset, data ? len : 0};
    put(&head, sizeof head);
    put(path, head.path);
    put(other, head.other);
    put(data, head.len);
}

/* Counts an operation. Returns the error with which it must fail, or 0. */
static int fails(int grows) {
    if (++count == fail_at) return fail_errno;
    return grows && full && access(full, F_OK) == 0 ? ENOSPC : 0;
}

static int size_of(int fd, uint64_t *size) {
    struct stat stat;
    if (fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode)) return 0;
    *size = stat.st_size;
    return 1;
}

static ssize_t noted_write(int fd, const void *data, size_t len, off64_t offset, int at) {
    char path[PATH_MAX];
    uint64_t size;
    ssize_t done;
    if (!path_of(fd, path) || !size_of(fd, &size))
        return at ? NEXT(pwrite64)(fd, data, len, offset) : NEXT(write)(fd, data, len);
    pthread_mutex_lock(&turn);
    off64_t where = at ? offset : fcntl(fd, F_GETFL) & O_APPEND ? (off64_t)size : lseek64(fd, 0, SEEK_CUR);
    int error = fails(where + len > size);
    if (error) {
        note('w', error, path, "", where, NULL, 0);
        done = -1;
    } else {
        done = at ? NEXT(pwrite64)(fd, data, len, offset) : NEXT(write)(fd, data, len);
        error = errno;
        if (done > 0) note('w', 0, path, "", where, data, done);
    }
    pthread_mutex_unlock(&turn);
    errno = error;
    return done;
}

ssize_t write(int fd, const void *data, size_t len) { return noted_write(fd, data, len, 0, 0); }
ssize_t pwrite(int fd, const void *data, size_t len, off_t at) { return noted_write(fd, data, len, at, 1); }
ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at) { return noted_write(fd, data, len, at, 1); }

/* An operation without data on an open file. */
#define NOTED(fd, kind, offset, call)                          \
    char path[PATH_MAX];                                       \
    if (!path_of(fd, path)) return call;                       \
    pthread_mutex_lock(&turn);                                 \
    int error = fails(0), refused = error, done = -1;          \
    if (!error && (done = call) != 0) error = errno;           \
    if (refused || !error) note(kind, error, path, "", offset, NULL, 0); \
    pthread_mutex_unlock(&turn);                               \
    errno = error;                                             \
    return done;

int fsync(int fd) { NOTED(fd, 's', 0, NEXT(fsync)(fd)) }
int fdatasync(int fd) { NOTED(fd, 's', 0, NEXT(fdatasync)(fd)) }
int ftruncate(int fd, off_t size) { NOTED(fd, 't', size, NEXT(ftruncate)(fd, size)) }
int ftruncate64(int fd, off64_t size) { NOTED(fd, 't', size, NEXT(ftruncate64)(fd, size)) }

/* An operation on names. */
#define NAMED(kind, one, two, call)                                     \
    char path[PATH_MAX], other[PATH_MAX] = "";                          \
    if (!whole(one, path) || (*(two) && !whole(two, other))) return call; \
    pthread_mutex_lock(&turn);                                          \
    int error = fails(0), refused = error, done = -1;                   \
    if (!error && (done = call) != 0) error = errno;                    \
    if (refused || !error) note(kind, error, path, other, 0, NULL, 0);  \
    pthread_mutex_unlock(&turn);                                        \
    errno = error;                                                      \
    return done;

int rename(const char *from, const char *to) { NAMED('r', from, to, NEXT(rename)(from, to)) }
int unlink(const char *name) { NAMED('u', name, "", NEXT(unlink)(name)) }
int rmdir(const char *name) { NAMED('u', name, "", NEXT(rmdir)(name)) }
int mkdir(const char *name, mode_t mode) { NAMED('d', name, "", NEXT(mkdir)(name, mode)) }

/* Opens a file. Notes a new file, and a file that is made empty. Opening is not counted, because it writes no data. */
static int noted_open(const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    size_t len = strlen(name);
    int noted = flags & (O_CREAT | O_TRUNC) && whole(name, path) && (len < 4 || strcmp(name + len - 4, "-shm") != 0);
    if (!noted) return syscall(SYS_openat, AT_FDCWD, name, flags, mode);
    pthread_mutex_lock(&turn);
    int there = access(path, F_OK) == 0, fd = -1, error = 0;
    if ((fd = syscall(SYS_openat, AT_FDCWD, name, flags, mode)) < 0) error = errno;
    if (fd >= 0 && !there) note('c', 0, path, "", 0, NULL, 0);
    else if (fd >= 0 && flags & O_TRUNC) note('t', 0, path, "", 0, NULL, 0);
    pthread_mutex_unlock(&turn);
    errno = error ? error : errno;
    return fd;
}

#define OPEN(name)                                   \
    int name(const char *path, int flags, ...) {     \
        va_list more;                                \
        va_start(more, flags);                       \
        mode_t mode = va_arg(more, mode_t);          \
        va_end(more);                                \
        return noted_open(path, flags, mode);        \
    }
OPEN(open)
OPEN(open64)
