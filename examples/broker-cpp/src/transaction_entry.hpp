// The form of a transaction in the journal: a message like those of the protocol. See table.hpp.
#pragma once

#include "table.hpp"
#include "transaction_messages.hpp"
#include "transactions.hpp"

namespace broker {

/// An entry without a transactional id says which producer ids may have been given: those below.
struct TransactionEntry {
    std::string_view transactional_id;
    std::int64_t producer_id = -1;
    std::int16_t producer_epoch = -1;
    std::int32_t timeout_ms = 0;
    std::int8_t state = 0;
    std::vector<TxnTopic> topics;
    static void table(auto row) {
        row(&TransactionEntry::transactional_id);
        row(&TransactionEntry::producer_id);
        row(&TransactionEntry::producer_epoch);
        row(&TransactionEntry::timeout_ms);
        row(&TransactionEntry::state);
        row(&TransactionEntry::topics);
    }

    bool is_producer_id_block() const { return transactional_id.empty(); }
};

/// A view of the bytes.
TransactionEntry parse_entry(Bytes bytes);

Transaction transaction_of(const TransactionEntry &entry);

Journal::Entry transaction_entry(std::string_view transactional_id, const Transaction &transaction);

Journal::Entry producer_id_block_entry(std::int64_t end);

} // namespace broker
