// Files and descriptors of the system, with errors as exceptions.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace broker {

/// What the last call of the system says.
[[noreturn]] void throw_errno(const std::string &what);

/// The result of a call of the system, or an exception.
int checked(int result, const std::string &what);

/// Owns a descriptor.
class Descriptor {
public:
    explicit Descriptor(int fd = -1) noexcept : fd_(fd) {}
    Descriptor(Descriptor &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor &operator=(Descriptor &&other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    Descriptor(const Descriptor &) = delete;
    Descriptor &operator=(const Descriptor &) = delete;
    ~Descriptor();

    int get() const noexcept { return fd_; }

private:
    int fd_;
};

/// Opens a file; a new one may be read and written by its owner.
Descriptor open_file(const std::filesystem::path &path, int flags);

/// All of a file; nothing when there is none.
std::optional<std::string> read_file(const std::filesystem::path &path);

void write_all(int fd, std::string_view bytes);

/// Makes a file or folder durable. A failure ends the process: nobody knows what the disk has then.
void sync_or_exit(int fd, const std::filesystem::path &path);

/// Has a new file stay in its folder after a power cut.
void sync_folder_of(const std::filesystem::path &path);

/// Replaces a file at once: whatever happens, the old text is there or the new one, whole. After a
/// power cut, too. Gives the new one, to be appended to; after an exception the old one is there.
Descriptor replace_file(const std::filesystem::path &path, std::string_view text);

/// Removes a file so that it stays away after a power cut; whether it was there.
bool remove_file(const std::filesystem::path &path);

} // namespace broker
