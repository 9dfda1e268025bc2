// The coordinator of transactions: who may produce under a transactional id, and how each
// transaction ends in its partitions.
//
//     EMPTY -> ONGOING -> PREPARE_COMMIT -> COMPLETE_COMMIT -> ONGOING ...
//                      -> PREPARE_ABORT  -> COMPLETE_ABORT  ->
//
// A state is in the journal before anybody is told of it. A transaction that was prepared is
// decided: a marker that cannot be written is tried again until it is there, by the next start,
// too. One that was open at a kill goes on, or runs into its timeout.
#pragma once

#include <map>
#include <set>
#include <string>

#include "journal.hpp"
#include "topics.hpp"

namespace broker {

enum class TransactionState : std::int8_t {
    EMPTY,
    ONGOING,
    PREPARE_COMMIT,
    PREPARE_ABORT,
    COMPLETE_COMMIT,
    COMPLETE_ABORT,
};

struct Transaction {
    std::int64_t producer_id = -1;
    std::int16_t producer_epoch = -1;
    std::int32_t timeout_ms = 0;
    TransactionState state = TransactionState::EMPTY;
    std::set<PartitionName> partitions;
    /// When it was begun, or this broker was.
    std::int64_t begin_ms = 0;
    /// Whether a marker was refused, which is told once.
    bool is_stuck = false;
};

/// Who a producer is to the coordinator.
struct ProducerIdentity {
    std::int64_t producer_id = -1;
    std::int16_t producer_epoch = -1;
};

class Transactions {
public:
    /// Reads the journal.
    Transactions(Topics &topics, const LogDir &dir, bool is_durable);

    /// A producer id that was never given before.
    std::int64_t new_producer_id();

    /// A producer takes over a transactional id: an open transaction of the one before is aborted,
    /// and that one is fenced. `current` is what the producer has now, if it has anything.
    std::int16_t init(std::string_view transactional_id, std::int32_t timeout_ms,
                      const ProducerIdentity &current, ProducerIdentity &given);

    /// Begins a transaction or makes it larger.
    std::int16_t add(std::string_view transactional_id, const ProducerIdentity &producer,
                     const std::vector<PartitionName> &partitions);

    std::int16_t end(std::string_view transactional_id, const ProducerIdentity &producer,
                     bool is_commit);

    /// Whether the producer may write to a partition as part of its transaction.
    std::int16_t check(std::string_view transactional_id, const ProducerIdentity &producer,
                       const PartitionName &partition);

    /// Ends what was prepared and could not be ended yet, and aborts what has been open for longer
    /// than its producer has said: once in a while, and at the start.
    void end_what_is_due();

private:
    using Entry = std::map<std::string, Transaction, std::less<>>::value_type;

    std::int16_t find(std::string_view transactional_id, const ProducerIdentity &producer,
                      Entry *&found);
    void abort_and_fence(Entry &entry);
    void finish(Entry &entry);
    bool write_marker(Transaction &transaction, const PartitionName &name);
    Entry &set(std::string_view transactional_id, Transaction transaction);
    std::vector<Journal::Entry> all_entries() const;

    Topics &topics_;
    Journal journal_;
    std::map<std::string, Transaction, std::less<>> transactions_;
    std::int64_t next_producer_id_ = 0;
    std::int64_t producer_id_block_end_ = 0;
};

} // namespace broker
