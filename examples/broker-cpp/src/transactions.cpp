#include "transactions.hpp"

#include <limits>

#include "errors.hpp"
#include "marker.hpp"
#include "transaction_entry.hpp"

namespace broker {

using enum TransactionState;

/// Ids are put aside in blocks, so that the journal does not grow with each of them.
static constexpr std::int64_t PRODUCER_ID_BLOCK = 1000;
static constexpr std::size_t TRANSACTIONAL_IDS_MAX = 100'000;
static constexpr std::int32_t TIMEOUT_MS_MAX = 900'000;

Transactions::Transactions(Topics &topics, const LogDir &dir, bool is_durable)
    : topics_(topics), journal_(dir.file("transactions"), is_durable) {
    for (Journal::Entry &bytes : journal_.read()) {
        TransactionEntry entry = parse_entry(bytes);
        if (entry.is_producer_id_block()) {
            next_producer_id_ = producer_id_block_end_ = entry.producer_id;
        } else {
            transactions_[std::string(entry.transactional_id)] = transaction_of(entry);
        }
    }
    journal_.rewrite(all_entries());
    for (Entry &entry : transactions_) {
        entry.second.begin_ms = now_ms();
        finish(entry);
    }
}

std::vector<Journal::Entry> Transactions::all_entries() const {
    std::vector<Journal::Entry> entries = {producer_id_block_entry(producer_id_block_end_)};
    for (const auto &[id, transaction] : transactions_) {
        entries.push_back(transaction_entry(id, transaction));
    }
    return entries;
}

void Transactions::save(const Entry &entry) {
    journal_.append(transaction_entry(entry.first, entry.second));
    if (journal_.entry_count() > 1000 + 2 * transactions_.size()) {
        journal_.rewrite(all_entries());
    }
}

std::int64_t Transactions::new_producer_id() {
    if (next_producer_id_ == producer_id_block_end_) {
        journal_.append(producer_id_block_entry(producer_id_block_end_ + PRODUCER_ID_BLOCK));
        producer_id_block_end_ += PRODUCER_ID_BLOCK;
    }
    return next_producer_id_++;
}

std::int16_t Transactions::init(std::string_view transactional_id, std::int32_t timeout_ms,
                                const ProducerIdentity &current, ProducerIdentity &given) {
    const bool is_known = transactions_.contains(transactional_id);
    if (transactional_id.empty() ||
        (!is_known && transactions_.size() >= TRANSACTIONAL_IDS_MAX)) {
        return error_code::INVALID_REQUEST;
    }
    if (timeout_ms <= 0 || timeout_ms > TIMEOUT_MS_MAX) {
        return error_code::INVALID_TRANSACTION_TIMEOUT;
    }
    Entry &entry = *transactions_.try_emplace(std::string(transactional_id)).first;
    Transaction &transaction = entry.second;
    const bool knows_itself = current.producer_id == -1 ||
                              (current.producer_id == transaction.producer_id &&
                               current.producer_epoch == transaction.producer_epoch);
    if (!knows_itself && transaction.producer_id != -1) {
        return error_code::PRODUCER_FENCED;
    }
    if (transaction.state == ONGOING) {
        abort_and_fence(entry);
    } else if (transaction.producer_id != -1) {
        transaction.producer_epoch++;
    }
    // The last epoch is for the fence of the producer that has the one before.
    if (transaction.producer_id == -1 ||
        transaction.producer_epoch >= std::numeric_limits<std::int16_t>::max() - 1) {
        transaction.producer_id = new_producer_id();
        transaction.producer_epoch = 0;
    }
    transaction.timeout_ms = timeout_ms;
    transaction.state = EMPTY;
    save(entry);
    given = {transaction.producer_id, transaction.producer_epoch};
    return error_code::NONE;
}

std::int16_t Transactions::find(std::string_view transactional_id, const ProducerIdentity &producer,
                                Entry *&found) {
    const auto entry = transactions_.find(transactional_id);
    if (entry == transactions_.end() || entry->second.producer_id != producer.producer_id) {
        return error_code::INVALID_PRODUCER_ID_MAPPING;
    }
    if (entry->second.producer_epoch != producer.producer_epoch) {
        return error_code::PRODUCER_FENCED;
    }
    found = &*entry;
    return error_code::NONE;
}

std::int16_t Transactions::add(std::string_view transactional_id, const ProducerIdentity &producer,
                               const std::vector<PartitionName> &partitions) {
    Entry *entry = nullptr;
    if (const auto error = find(transactional_id, producer, entry); error != error_code::NONE) {
        return error;
    }
    Transaction &transaction = entry->second;
    if (transaction.state != ONGOING) {
        transaction.state = ONGOING;
        transaction.begin_ms = now_ms();
    }
    transaction.partitions.insert(partitions.begin(), partitions.end());
    save(*entry);
    return error_code::NONE;
}

std::int16_t Transactions::end(std::string_view transactional_id, const ProducerIdentity &producer,
                               bool is_commit) {
    Entry *entry = nullptr;
    if (const auto error = find(transactional_id, producer, entry); error != error_code::NONE) {
        return error;
    }
    TransactionState &state = entry->second.state;
    if (state == (is_commit ? COMPLETE_COMMIT : COMPLETE_ABORT)) {
        return error_code::NONE; // it is asked again, since our answer was lost
    }
    if (state != ONGOING) {
        return error_code::INVALID_TXN_STATE;
    }
    state = is_commit ? PREPARE_COMMIT : PREPARE_ABORT;
    save(*entry);
    finish(*entry);
    return error_code::NONE;
}

std::int16_t Transactions::check(std::string_view transactional_id,
                                 const ProducerIdentity &producer,
                                 const PartitionName &partition) {
    Entry *entry = nullptr;
    if (const auto error = find(transactional_id, producer, entry); error != error_code::NONE) {
        // A partition knows epochs alone.
        return error == error_code::PRODUCER_FENCED ? error_code::INVALID_PRODUCER_EPOCH : error;
    }
    const Transaction &transaction = entry->second;
    const bool is_part = transaction.state == ONGOING && transaction.partitions.contains(partition);
    return is_part ? error_code::NONE : error_code::INVALID_TXN_STATE;
}

void Transactions::abort_expired() {
    const std::int64_t now = now_ms();
    for (Entry &entry : transactions_) {
        const Transaction &transaction = entry.second;
        if (transaction.state == ONGOING && now - transaction.begin_ms > transaction.timeout_ms) {
            abort_and_fence(entry);
        }
    }
}

/// The markers have an epoch more than their producer, so that the partitions take nothing more
/// from it.
void Transactions::abort_and_fence(Entry &entry) {
    entry.second.producer_epoch++;
    entry.second.state = PREPARE_ABORT;
    save(entry);
    finish(entry);
}

/// Writes the markers of a transaction that was prepared. Those that a partition has already, since
/// the broker was killed in between, do no harm to it.
void Transactions::finish(Entry &entry) {
    Transaction &transaction = entry.second;
    if (transaction.state != PREPARE_COMMIT && transaction.state != PREPARE_ABORT) {
        return;
    }
    const bool is_commit = transaction.state == PREPARE_COMMIT;
    const std::int64_t now = now_ms();
    silt_append_t append = SILT_APPEND_INIT;
    append.leader_epoch = LEADER_EPOCH;
    append.now_ms = now;
    append.origin = SILT_ORIGIN_COORDINATOR;
    append.transaction_version = 1;
    for (const PartitionName &name : transaction.partitions) {
        if (Partition *const partition = topics_.find(name.topic, name.index)) {
            auto marker = end_transaction_marker(transaction.producer_id,
                                                 transaction.producer_epoch, is_commit, now);
            topics_.append(*partition, marker, append);
        }
    }
    // The markers come before the word that they are there.
    topics_.flush_before_ack();
    transaction.partitions.clear();
    transaction.state = is_commit ? COMPLETE_COMMIT : COMPLETE_ABORT;
    save(entry);
}

} // namespace broker
