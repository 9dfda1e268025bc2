#include "journal.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "wire.hpp"

namespace broker {

static std::string framed(const Journal::Entry &entry) {
    Writer out;
    out.integer(static_cast<std::uint32_t>(entry.size()));
    out.append(entry);
    out.integer(silt_crc32c(0, entry.data(), entry.size()));
    const auto bytes = std::move(out).bytes();
    return std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size());
}

Journal::Journal(std::filesystem::path path, bool is_durable)
    : path_(std::move(path)), is_durable_(is_durable),
      file_(open_file(path_, O_WRONLY | O_CREAT | O_APPEND)) {
    sync_folder_of(path_);
}

std::vector<Journal::Entry> Journal::read() {
    std::string text = read_file(path_).value_or("");
    Reader in(std::as_writable_bytes(std::span(text)));
    std::vector<Entry> entries;
    while (in.rest().size() >= 4) {
        const auto size = in.integer<std::uint32_t>();
        // No entry is empty, but a power cut can leave zeros.
        if (size == 0 || in.rest().size() < std::uint64_t{size} + 4) {
            break;
        }
        const Bytes entry = in.take(size);
        if (in.integer<std::uint32_t>() != silt_crc32c(0, entry.data(), entry.size())) {
            break;
        }
        entries.emplace_back(entry.begin(), entry.end());
        size_bytes_ = text.size() - in.rest().size();
    }
    cut_to(size_bytes_);
    entry_count_ = entries.size();
    return entries;
}

/// What would stand behind a torn entry would never be read.
void Journal::cut_to(std::size_t size_bytes) {
    if (ftruncate(file_.get(), static_cast<off_t>(size_bytes)) < 0) {
        std::fprintf(stderr, "%s cannot be cut: %s\n", path_.c_str(), std::strerror(errno));
        std::_Exit(1);
    }
}

void Journal::rewrite(const std::vector<Entry> &entries) {
    std::string text;
    for (const Entry &entry : entries) {
        text += framed(entry);
    }
    file_ = replace_file(path_, text);
    size_bytes_ = text.size();
    entry_count_ = entries.size();
}

void Journal::append(const Entry &entry) {
    const std::string bytes = framed(entry);
    try {
        write_all(file_.get(), bytes);
    } catch (const std::system_error &) {
        cut_to(size_bytes_);
        throw;
    }
    if (is_durable_) {
        sync_or_exit(file_.get(), path_);
    }
    size_bytes_ += bytes.size();
    entry_count_++;
}

} // namespace broker
