/* Faults of the machine inside one process: a wall clock that is off, flushes that take long.
   Preloaded; the test changes the control file, which every process of the run has mapped. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct control {
    volatile int64_t ahead_seconds;
    volatile int64_t flush_microseconds;
    volatile int64_t flushes;
};

static struct control none, *now = &none;

__attribute__((constructor)) static void map(void) {
    const char *path = getenv("SHIM_CONTROL");
    int handle = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (handle < 0) return;
    void *at = mmap(NULL, sizeof none, PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
    if (at != MAP_FAILED) now = at;
    close(handle);
}

int clock_gettime(clockid_t which, struct timespec *found) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(which, found);
    if (!status && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
        found->tv_sec += now->ahead_seconds;
    return status;
}

int gettimeofday(struct timeval *restrict found, void *restrict zone) {
    struct timespec wall;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &wall);
    found->tv_sec = wall.tv_sec;
    found->tv_usec = wall.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *found) {
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    if (found) *found = wall.tv_sec;
    return wall.tv_sec;
}

static int flush(const char *name, int handle) {
    int (*real)(int) = dlsym(RTLD_NEXT, name);
    if (now->flush_microseconds) {
        __atomic_add_fetch(&now->flushes, 1, __ATOMIC_SEQ_CST);
        struct timespec wait = {now->flush_microseconds / 1000000,
                                now->flush_microseconds % 1000000 * 1000};
        nanosleep(&wait, NULL);
    }
    return real(handle);
}

int fsync(int handle) { return flush("fsync", handle); }
int fdatasync(int handle) { return flush("fdatasync", handle); }
