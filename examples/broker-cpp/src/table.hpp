// Reads and writes any message by the table of its fields.
//
// A message is a structure with a table of rows in the order of the protocol: which member, and in
// which versions it is there. A member that its version lacks keeps its default. For example:
//
//     struct FindCoordinatorRequest {
//         std::string_view key;
//         std::int8_t key_type = 0;
//         static void table(auto row) {
//             row(&FindCoordinatorRequest::key);
//             row(&FindCoordinatorRequest::key_type, since(1));
//         }
//     };
//
// What a member is on the wire follows from its type: see read_value and write_value.
#pragma once

#include "wire.hpp"

namespace broker {

/// The versions that have a field, both inclusive.
struct Versions {
    std::int16_t first = 0;
    std::int16_t last = INT16_MAX;

    constexpr bool contain(std::int16_t version) const {
        return first <= version && version <= last;
    }
};

constexpr Versions since(std::int16_t first) { return {first, INT16_MAX}; }
constexpr Versions until(std::int16_t last) { return {0, last}; }

/// Takes any row, and does nothing.
struct AnyRow {
    void operator()(auto, Versions = {}) const {}
};

template <typename Value>
concept HasTable = requires(AnyRow row) { Value::table(row); };

inline void read_value(Reader &in, bool &value) { value = in.integer<std::int8_t>() != 0; }
inline void read_value(Reader &in, Uuid &value) { value = in.uuid(); }
inline void read_value(Reader &in, std::optional<std::string_view> &value) { value = in.string(); }
inline void read_value(Reader &in, Bytes &value) { value = in.bytes().value_or(Bytes{}); }

template <std::integral Integer> void read_value(Reader &in, Integer &value) {
    value = in.integer<Integer>();
}

inline void read_value(Reader &in, std::string_view &value) {
    const auto text = in.string();
    if (!text) {
        throw Malformed("a text is null");
    }
    value = *text;
}

template <HasTable Struct> void read_value(Reader &in, Struct &value);
template <typename Item> void read_value(Reader &in, std::optional<std::vector<Item>> &value);

template <typename Item> void read_value(Reader &in, std::vector<Item> &value) {
    std::optional<std::vector<Item>> items;
    read_value(in, items);
    if (!items) {
        throw Malformed("an array is null");
    }
    value = std::move(*items);
}

template <typename Item> void read_value(Reader &in, std::optional<std::vector<Item>> &value) {
    const auto count = in.item_count();
    value.reset();
    if (count) {
        value.emplace(*count);
        for (Item &item : *value) {
            read_value(in, item);
        }
    }
}

template <HasTable Struct> void read_value(Reader &in, std::optional<Struct> &value) {
    value.reset();
    if (in.integer<std::int8_t>() >= 0) {
        read_value(in, value.emplace());
    }
}

template <HasTable Struct> void read_value(Reader &in, Struct &value) {
    Struct::table([&](auto member, Versions versions = {}) {
        if (versions.contain(in.version.number)) {
            read_value(in, value.*member);
        }
    });
    in.skip_tagged_fields();
}

inline void write_value(Writer &out, bool value) { out.integer(static_cast<std::int8_t>(value)); }
inline void write_value(Writer &out, const Uuid &value) { out.append(value); }
inline void write_value(Writer &out, std::string_view value) { out.string(value); }
inline void write_value(Writer &out, const std::string &value) { out.string(value); }
inline void write_value(Writer &out, std::optional<std::string_view> value) { out.string(value); }
inline void write_value(Writer &out, const std::optional<std::string> &value) {
    out.string(value ? std::optional<std::string_view>(*value) : std::nullopt);
}
/// The lease of the range moves to the writer.
inline void write_value(Writer &out, siltstone::Range &value) { out.records(std::move(value)); }

template <std::integral Integer> void write_value(Writer &out, const Integer &value) {
    out.integer(value);
}

template <HasTable Struct> void write_value(Writer &out, Struct &value);

template <typename Item> void write_value(Writer &out, std::vector<Item> &value) {
    out.item_count(value.size());
    for (Item &item : value) {
        write_value(out, item);
    }
}

template <typename Item> void write_value(Writer &out, std::optional<std::vector<Item>> &value) {
    if (value) {
        write_value(out, *value);
    } else {
        out.item_count(std::nullopt);
    }
}

template <HasTable Struct> void write_value(Writer &out, std::optional<Struct> &value) {
    out.integer(static_cast<std::int8_t>(value ? 1 : -1));
    if (value) {
        write_value(out, *value);
    }
}

template <HasTable Struct> void write_value(Writer &out, Struct &value) {
    Struct::table([&](auto member, Versions versions = {}) {
        if (versions.contain(out.version.number)) {
            write_value(out, value.*member);
        }
    });
    if (out.version.is_flexible) {
        out.unsigned_varint(0); // no tagged fields
    }
}

/// A topic in many messages, and something for each of its partitions.
template <typename Partition> struct NamedTopic {
    std::string_view name;
    std::vector<Partition> partitions;
    static void table(auto row) {
        row(&NamedTopic::name);
        row(&NamedTopic::partitions);
    }
};

} // namespace broker
