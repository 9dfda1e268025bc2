/* What the C programs that get an empty directory share. */
#ifndef HOME_H
#define HOME_H

#include "check.h"

/* The directory. */
static const char *home;

/* The path of a file or folder in it; good until the fourth call after it. */
static inline const char *path_of(const char *name) {
    static char paths[4][4096];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", home, name);
    return path;
}

/* Makes a file of these bytes. */
static inline void make_file(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

#endif
