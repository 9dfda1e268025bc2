/* Loads the library, uses it and unloads it, over and over; then looks at what is left open. The
 * arguments are the library and an empty directory. */
#include <siltstone.h>

#include "leaks.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *path, *home;
static void *library;

static void *find(const char *name) {
    void *found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return found;
}

/* A function of the library by its name. */
#define FIND(function, name)     \
    __typeof__(name) *function;  \
    *(void **)&function = find(#name)

#define EXPECT(expected, call)                                                    \
    do {                                                                          \
        silt_status_t got_ = (call);                                              \
        if (got_ != (expected)) {                                                 \
            fprintf(stderr, "%s: %d, %s\n", #call, (int)got_, error.message);     \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

static silt_error_t error;

static void use_log(void) {
    FIND(open_log, silt_log_open);
    FIND(stop_log, silt_log_stop);
    FIND(close_log, silt_log_close);
    char dir[4096];
    snprintf(dir, sizeof dir, "%s/loaded-0", home);
    silt_log_t *log = NULL;
    EXPECT(SILT_OK, open_log(dir, NULL, &log, &error));
    EXPECT(SILT_OK, stop_log(log, &error));
    EXPECT(SILT_E_CLOSED, stop_log(log, &error));
    close_log(log);
}

/* Work that takes threads, and the wait for what no thread does. */
static void use_engine(void) {
    FIND(open_engine, silt_engine_open);
    FIND(stop_engine, silt_engine_stop);
    FIND(close_engine, silt_engine_close);
    FIND(new_ring, silt_ring_new);
    FIND(poll_ring, silt_ring_poll);
    FIND(close_ring, silt_ring_close);
    silt_engine_options_t options = SILT_ENGINE_OPTIONS_INIT;
    options.threads = 2;
    const char *dirs[] = { home };
    silt_engine_t *engine = NULL;
    EXPECT(SILT_OK, open_engine(dirs, 1, &options, &engine, &error));
    EXPECT(SILT_OK, stop_engine(engine, -1, 2, NULL, &error));
    close_engine(engine);
    silt_ring_t *ring = NULL;
    silt_done_t done[1];
    uint32_t count = 0;
    EXPECT(SILT_OK, new_ring(&ring, &error));
    EXPECT(SILT_OK, poll_ring(ring, done, 1, 1, &count, &error));
    close_ring(ring);
}

static int32_t count_calls(void *ctx, uint64_t done_bytes, uint64_t total_bytes) {
    *(int *)ctx += done_bytes <= total_bytes;
    return 0;
}

static void verify(void) {
    FIND(open_dir, silt_dir_open);
    FIND(verify_dir, silt_dir_verify);
    FIND(close_dir, silt_dir_close);
    silt_verify_options_t options = SILT_VERIFY_OPTIONS_INIT;
    const char *dirs[] = { home };
    silt_dir_t *dir = NULL;
    uint32_t problems = 0;
    int calls = 0;
    EXPECT(SILT_OK, open_dir(dirs, 1, NULL, &dir, &error));
    EXPECT(SILT_OK, verify_dir(dir, &options, count_calls, &calls, &problems, &error));
    close_dir(dir);
}

static void *use(void *unused) {
    use_log();
    use_engine();
    verify();
    return unused;
}

/* The threads that called a library keep it: what the language keeps for each is given back by code
 * of the library when the thread ends. */
static void load_use_and_unload(void) {
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, use, NULL) != 0 || pthread_join(thread, NULL) != 0) {
        exit(1);
    }
    dlclose(library);
    if (dlopen(path, RTLD_NOW | RTLD_NOLOAD) != NULL) {
        fprintf(stderr, "the library is still there\n");
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc != 3) {
        return 2;
    }
    path = argv[1];
    home = argv[2];
    error = (silt_error_t)SILT_ERROR_INIT;
    for (int i = 0; i < 3; i++) {
        load_use_and_unload();
    }
    held_t before = count_held();
    for (int i = 0; i < 30; i++) {
        load_use_and_unload();
    }
    expect_no_more(before);
    puts("ok");
    return 0;
}
