#include "files.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace broker {

void throw_errno(const std::string &what) {
    throw std::system_error(errno, std::generic_category(), what);
}

int checked(int result, const std::string &what) {
    if (result < 0) {
        throw_errno(what);
    }
    return result;
}

Descriptor::~Descriptor() {
    if (fd_ >= 0) {
        close(fd_);
    }
}

Descriptor open_file(const std::filesystem::path &path, int flags) {
    return Descriptor(checked(open(path.c_str(), flags | O_CLOEXEC, 0644), path));
}

std::optional<std::string> read_file(const std::filesystem::path &path) {
    if (!std::filesystem::exists(path)) {
        return std::nullopt;
    }
    const Descriptor file = open_file(path, O_RDONLY);
    std::string text;
    char part[1 << 16];
    for (;;) {
        const ssize_t size = read(file.get(), part, sizeof part);
        if (size < 0) {
            throw_errno(path);
        }
        if (size == 0) {
            return text;
        }
        text.append(part, static_cast<std::size_t>(size));
    }
}

void write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno != EINTR) {
            throw_errno("write");
        }
        bytes.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
    }
}

void sync_or_exit(int fd, const std::filesystem::path &path) {
    if (fsync(fd) < 0) {
        std::fprintf(stderr, "%s is not durable: %s\n", path.c_str(), std::strerror(errno));
        std::_Exit(1);
    }
}

static Descriptor open_folder_of(const std::filesystem::path &path) {
    return open_file(path.parent_path(), O_RDONLY | O_DIRECTORY);
}

void sync_folder_of(const std::filesystem::path &path) {
    sync_or_exit(open_folder_of(path).get(), path.parent_path());
}

Descriptor replace_file(const std::filesystem::path &path, std::string_view text) {
    const std::filesystem::path temporary = path.string() + ".tmp";
    Descriptor file = open_file(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
    write_all(file.get(), text);
    checked(fsync(file.get()), temporary);
    const Descriptor folder = open_folder_of(path); // nothing may fail behind the renaming
    checked(rename(temporary.c_str(), path.c_str()), path);
    sync_or_exit(folder.get(), path.parent_path());
    return file;
}

bool remove_file(const std::filesystem::path &path) {
    const bool was_there = std::filesystem::remove(path);
    if (was_there) {
        sync_folder_of(path);
    }
    return was_there;
}

} // namespace broker
