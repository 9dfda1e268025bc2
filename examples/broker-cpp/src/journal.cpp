#include "journal.hpp"

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
    : path_(std::move(path)), is_durable_(is_durable) {}

std::vector<Journal::Entry> Journal::read() const {
    std::string text = read_file(path_).value_or("");
    Reader in(std::as_writable_bytes(std::span(text)));
    std::vector<Entry> entries;
    while (in.rest().size() >= 4) {
        const auto size = in.integer<std::uint32_t>();
        if (in.rest().size() < std::uint64_t{size} + 4) {
            break;
        }
        const Bytes entry = in.take(size);
        if (in.integer<std::uint32_t>() != silt_crc32c(0, entry.data(), entry.size())) {
            break;
        }
        entries.emplace_back(entry.begin(), entry.end());
    }
    return entries;
}

void Journal::rewrite(const std::vector<Entry> &entries) {
    std::string text;
    for (const Entry &entry : entries) {
        text += framed(entry);
    }
    replace_file(path_, text);
    file_ = open_file(path_, O_WRONLY | O_APPEND);
    entry_count_ = entries.size();
}

void Journal::append(const Entry &entry) {
    write_all(file_.get(), framed(entry));
    if (is_durable_) {
        checked(fdatasync(file_.get()), path_);
    }
    entry_count_++;
}

} // namespace broker
