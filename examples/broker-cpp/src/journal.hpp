// A small file of entries, of which the last one for a key counts: the state of transactions.
//
// An entry is its size (4 bytes), itself, and its CRC-32C (4 bytes). A kill or a power cut can
// leave the last one unfinished; it was not acknowledged, and the next start cuts it off.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "files.hpp"

namespace broker {

class Journal {
public:
    /// Durable: each entry survives a power cut, and not the death of the process alone.
    Journal(std::filesystem::path path, bool is_durable);

    using Entry = std::vector<std::byte>;

    /// The entries that are there, oldest first: to be called once, before anything is appended.
    std::vector<Entry> read();

    /// Replaces all entries by these; those before are there after an exception.
    void rewrite(const std::vector<Entry> &entries);

    /// The entry is not there after an exception.
    void append(const Entry &entry);

    /// How many entries the file has.
    std::size_t entry_count() const { return entry_count_; }

private:
    void cut_to(std::size_t size_bytes);

    std::filesystem::path path_;
    bool is_durable_;
    Descriptor file_;
    std::size_t size_bytes_ = 0;
    std::size_t entry_count_ = 0;
};

} // namespace broker
