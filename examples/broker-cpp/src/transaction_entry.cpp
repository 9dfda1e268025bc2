#include "transaction_entry.hpp"

namespace broker {

/// Flexible, so that fields can be added.
static constexpr Version ENTRY_VERSION = {0, true};

TransactionEntry parse_entry(Bytes bytes) {
    Reader in(bytes, ENTRY_VERSION);
    TransactionEntry entry;
    read_value(in, entry);
    constexpr auto LAST_STATE = static_cast<std::int8_t>(TransactionState::COMPLETE_ABORT);
    if (entry.state < 0 || entry.state > LAST_STATE) {
        throw Malformed("the journal of transactions has an unknown state");
    }
    return entry;
}

Transaction transaction_of(const TransactionEntry &entry) {
    Transaction transaction;
    transaction.producer_id = entry.producer_id;
    transaction.producer_epoch = entry.producer_epoch;
    transaction.timeout_ms = entry.timeout_ms;
    transaction.state = static_cast<TransactionState>(entry.state);
    for (const TxnTopic &topic : entry.topics) {
        for (const std::int32_t index : topic.partitions) {
            transaction.partitions.insert({std::string(topic.name), index});
        }
    }
    return transaction;
}

static Journal::Entry bytes_of(TransactionEntry &entry) {
    Writer out(ENTRY_VERSION);
    write_value(out, entry);
    return std::move(out).bytes();
}

Journal::Entry transaction_entry(std::string_view transactional_id,
                                 const Transaction &transaction) {
    TransactionEntry entry;
    entry.transactional_id = transactional_id;
    entry.producer_id = transaction.producer_id;
    entry.producer_epoch = transaction.producer_epoch;
    entry.timeout_ms = transaction.timeout_ms;
    entry.state = static_cast<std::int8_t>(transaction.state);
    for (const PartitionName &name : transaction.partitions) {
        if (entry.topics.empty() || entry.topics.back().name != name.topic) {
            entry.topics.push_back({name.topic, {}});
        }
        entry.topics.back().partitions.push_back(name.index);
    }
    return bytes_of(entry);
}

Journal::Entry producer_id_block_entry(std::int64_t end) {
    TransactionEntry entry;
    entry.producer_id = end;
    return bytes_of(entry);
}

} // namespace broker
