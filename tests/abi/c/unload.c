/* Loads the library, uses it and unloads it, over and over; then looks at what is left open. The
 * arguments are the library and an empty directory. */
#include <siltstone.h>

#include "leaks.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef silt_status_t (*open_t)(const char *, const silt_log_options_t *, silt_log_t **,
                                silt_error_t *);
typedef silt_status_t (*stop_t)(silt_log_t *, silt_error_t *);
typedef void (*close_t)(silt_log_t *);

static void *find(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return found;
}

static void use(const char *path, const char *home) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    open_t open_log;
    stop_t stop_log;
    close_t close_log;
    *(void **)&open_log = find(library, "silt_log_open");
    *(void **)&stop_log = find(library, "silt_log_stop");
    *(void **)&close_log = find(library, "silt_log_close");
    char dir[4096];
    snprintf(dir, sizeof dir, "%s/loaded-0", home);
    silt_log_t *log = NULL;
    silt_error_t error = SILT_ERROR_INIT;
    if (open_log(dir, NULL, &log, &error) != SILT_OK || stop_log(log, &error) != SILT_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    close_log(log);
    dlclose(library);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        return 2;
    }
    for (int i = 0; i < 3; i++) {
        use(argv[1], argv[2]);
    }
    held_t before = count_held();
    for (int i = 0; i < 200; i++) {
        use(argv[1], argv[2]);
    }
    expect_no_more(before);
    puts("ok");
    return 0;
}
