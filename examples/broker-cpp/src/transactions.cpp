#include "transactions.hpp"

#include <cstdio>
#include <limits>

#include "errors.hpp"
#include "marker.hpp"
#include "transaction_entry.hpp"

namespace broker {

using enum TransactionState;

/// Ids are put aside in blocks, so that the journal does not grow with each of them.
static constexpr std::int64_t PRODUCER_ID_BLOCK = 1000;
static constexpr std::size_t TRANSACTIONAL_IDS_MAX = 100'000;
static constexpr std::size_t TRANSACTIONAL_ID_SIZE_MAX = 1000;
static constexpr std::int32_t TIMEOUT_MS_MAX = 900'000;

static bool is_prepared(const Transaction &transaction) {
    return transaction.state == PREPARE_COMMIT || transaction.state == PREPARE_ABORT;
}

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
    for (auto &[id, transaction] : transactions_) {
        transaction.begin_ms = now_ms();
    }
}

std::vector<Journal::Entry> Transactions::all_entries() const {
    std::vector<Journal::Entry> entries = {producer_id_block_entry(producer_id_block_end_)};
    for (const auto &[id, transaction] : transactions_) {
        entries.push_back(transaction_entry(id, transaction));
    }
    return entries;
}

/// A transaction has another state. What cannot be written down has not happened.
Transactions::Entry &Transactions::set(std::string_view transactional_id,
                                       Transaction transaction) {
    journal_.append(transaction_entry(transactional_id, transaction));
    Entry &entry = *transactions_.try_emplace(std::string(transactional_id)).first;
    entry.second = std::move(transaction);
    if (journal_.entry_count() > 1000 + 2 * transactions_.size()) {
        try {
            journal_.rewrite(all_entries());
        } catch (const std::system_error &error) {
            std::fprintf(stderr, "the journal stays long: %s\n", error.what());
        }
    }
    return entry;
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
    const auto known = transactions_.find(transactional_id);
    const bool is_new = known == transactions_.end();
    if (transactional_id.empty() || transactional_id.size() > TRANSACTIONAL_ID_SIZE_MAX ||
        (is_new && transactions_.size() >= TRANSACTIONAL_IDS_MAX)) {
        return error_code::INVALID_REQUEST;
    }
    if (timeout_ms <= 0 || timeout_ms > TIMEOUT_MS_MAX) {
        return error_code::INVALID_TRANSACTION_TIMEOUT;
    }
    Transaction transaction = is_new ? Transaction{} : known->second;
    const bool knows_itself = current.producer_id == -1 ||
                              (current.producer_id == transaction.producer_id &&
                               current.producer_epoch == transaction.producer_epoch);
    if (!knows_itself && transaction.producer_id != -1) {
        return error_code::PRODUCER_FENCED;
    }
    if (transaction.state == ONGOING) {
        abort_and_fence(*known);
        transaction = known->second;
    } else if (transaction.producer_id != -1) {
        transaction.producer_epoch++;
    }
    if (is_prepared(transaction)) {
        return error_code::CONCURRENT_TRANSACTIONS;
    }
    // The last epoch is for the fence of the producer that has the one before.
    if (transaction.producer_id == -1 ||
        transaction.producer_epoch >= std::numeric_limits<std::int16_t>::max() - 1) {
        transaction.producer_id = new_producer_id();
        transaction.producer_epoch = 0;
    }
    transaction.timeout_ms = timeout_ms;
    transaction.state = EMPTY;
    set(transactional_id, transaction);
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
    Transaction transaction = entry->second;
    if (is_prepared(transaction)) {
        return error_code::CONCURRENT_TRANSACTIONS;
    }
    if (transaction.state != ONGOING) {
        transaction.state = ONGOING;
        transaction.begin_ms = now_ms();
        transaction.is_stuck = false;
    }
    transaction.partitions.insert(partitions.begin(), partitions.end());
    set(transactional_id, std::move(transaction));
    return error_code::NONE;
}

std::int16_t Transactions::end(std::string_view transactional_id, const ProducerIdentity &producer,
                               bool is_commit) {
    Entry *entry = nullptr;
    if (const auto error = find(transactional_id, producer, entry); error != error_code::NONE) {
        return error;
    }
    Transaction transaction = entry->second;
    // It may be asked again, since our answer was lost. What is prepared will end by itself.
    if (transaction.state == (is_commit ? COMPLETE_COMMIT : COMPLETE_ABORT)) {
        return error_code::NONE;
    }
    if (transaction.state == (is_commit ? PREPARE_COMMIT : PREPARE_ABORT)) {
        return error_code::CONCURRENT_TRANSACTIONS;
    }
    if (transaction.state != ONGOING) {
        return error_code::INVALID_TXN_STATE;
    }
    transaction.state = is_commit ? PREPARE_COMMIT : PREPARE_ABORT;
    finish(set(transactional_id, std::move(transaction)));
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

void Transactions::end_what_is_due() {
    const std::int64_t now = now_ms();
    for (Entry &entry : transactions_) {
        const Transaction &transaction = entry.second;
        if (is_prepared(transaction)) {
            finish(entry);
        } else if (transaction.state == ONGOING &&
                   now - transaction.begin_ms > transaction.timeout_ms) {
            abort_and_fence(entry);
        }
    }
}

/// The markers have an epoch more than their producer, so that the partitions take nothing more
/// from it.
void Transactions::abort_and_fence(Entry &entry) {
    Transaction fenced = entry.second;
    fenced.producer_epoch++;
    fenced.state = PREPARE_ABORT;
    finish(set(entry.first, std::move(fenced)));
}

/// Writes the markers of a transaction that was prepared, and leaves it so if one was refused.
/// Those that a partition has already, since the broker was killed in between, do no harm to it.
void Transactions::finish(Entry &entry) {
    Transaction transaction = entry.second;
    std::erase_if(transaction.partitions, [&](const PartitionName &name) {
        return write_marker(transaction, name);
    });
    // The markers come before the word that they are there.
    topics_.flush_before_ack();
    entry.second = transaction;
    if (transaction.partitions.empty()) {
        transaction.state = transaction.state == PREPARE_COMMIT ? COMPLETE_COMMIT : COMPLETE_ABORT;
        set(entry.first, std::move(transaction));
    }
}

/// Whether the partition needs no marker any more.
bool Transactions::write_marker(Transaction &transaction, const PartitionName &name) {
    Partition *const partition = topics_.find(name.topic, name.index);
    if (partition == nullptr) {
        return true;
    }
    silt_append_t append = SILT_APPEND_INIT;
    append.leader_epoch = LEADER_EPOCH;
    append.now_ms = now_ms();
    append.origin = SILT_ORIGIN_COORDINATOR;
    append.transaction_version = 1;
    auto marker =
        end_transaction_marker(transaction.producer_id, transaction.producer_epoch,
                               transaction.state == PREPARE_COMMIT, append.now_ms);
    try {
        topics_.append(*partition, marker, append);
        return true;
    } catch (const siltstone::Error &error) {
        if (!std::exchange(transaction.is_stuck, true)) {
            std::fprintf(stderr, "a transaction of producer %lld does not end: %s\n",
                         static_cast<long long>(transaction.producer_id), error.what());
        }
        // Where a later epoch has written, this transaction has nothing open.
        return error.detail_code() == SILT_DETAIL_INVALID_PRODUCER_EPOCH;
    }
}

} // namespace broker
