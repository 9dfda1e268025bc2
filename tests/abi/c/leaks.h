/* What a process has open and mapped. */
#ifndef LEAKS_H
#define LEAKS_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Those that are of a file or a ring, or all of them. */
static inline int count_maps(int all) {
    FILE *file = fopen("/proc/self/maps", "r");
    char line[4096];
    int maps = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        maps += all || strchr(line, '/') != NULL || strstr(line, "anon_inode") != NULL;
    }
    if (file != NULL) {
        fclose(file);
    }
    return maps;
}

static inline int count_files(void) {
    DIR *dir = opendir("/proc/self/fd");
    int files = 0;
    while (dir != NULL && readdir(dir) != NULL) {
        files++;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return files;
}

typedef struct held {
    int files, named_maps, maps;
} held_t;

static inline held_t count_held(void) {
    held_t held = { count_files(), count_maps(0), count_maps(1) };
    return held;
}

/* Ends the program when it holds more than it did. An allocator may take maps for itself: a few,
 * but for one that keeps what was freed to find out who uses it. */
static inline void expect_no_more(held_t before) {
#ifdef __SANITIZE_ADDRESS__
    const int more = 1000;
#else
    const int more = 8;
#endif
    held_t now = count_held();
    if (now.files != before.files || now.named_maps != before.named_maps ||
        now.maps > before.maps + more) {
        fprintf(stderr, "files %d -> %d, named maps %d -> %d, maps %d -> %d\n", before.files,
                now.files, before.named_maps, now.named_maps, before.maps, now.maps);
        exit(1);
    }
}

#endif
