#include "errors.hpp"
#include "handlers.hpp"

namespace broker {

static constexpr std::int8_t TRANSACTION = 1;

static Coordinator coordinator(const Broker &broker, std::string_view key, std::int8_t key_type) {
    Coordinator told;
    told.key = key;
    if (key_type == TRANSACTION) {
        told.node_id = NODE_ID;
        told.host = broker.address.host;
        told.port = broker.address.port;
    } else {
        told.error_code = error_code::UNSUPPORTED_VERSION;
        told.error_message = "this broker has no groups: assign the partitions yourself";
    }
    return told;
}

Answer<FindCoordinatorResponse> find_coordinator(Broker &broker, FindCoordinatorRequest &request,
                                                 Call &) {
    FindCoordinatorResponse response;
    for (const std::string_view key : request.keys) {
        response.coordinators.push_back(coordinator(broker, key, request.key_type));
    }
    const Coordinator only = coordinator(broker, request.key, request.key_type);
    response.error_code = only.error_code;
    response.error_message = only.error_message;
    response.node_id = only.node_id;
    response.host = only.host;
    response.port = only.port;
    return response;
}

/// Older versions have no word for a producer that another one has replaced.
static std::int16_t in_version(std::int16_t error, const Call &call, std::int16_t fenced_since) {
    const bool is_new_word = error == error_code::PRODUCER_FENCED && call.version < fenced_since;
    return is_new_word ? error_code::INVALID_PRODUCER_EPOCH : error;
}

Answer<InitProducerIdResponse> init_producer_id(Broker &broker, InitProducerIdRequest &request,
                                                Call &call) {
    InitProducerIdResponse response;
    ProducerIdentity given;
    if (request.transactional_id) {
        const auto error = broker.transactions.init(
            *request.transactional_id, request.transaction_timeout_ms,
            {request.producer_id, request.producer_epoch}, given);
        response.error_code = in_version(error, call, 4);
    } else {
        given = {broker.transactions.new_producer_id(), 0};
    }
    response.producer_id = given.producer_id;
    response.producer_epoch = given.producer_epoch;
    return response;
}

Answer<AddPartitionsToTxnResponse>
add_partitions_to_txn(Broker &broker, AddPartitionsToTxnRequest &request, Call &call) {
    std::vector<PartitionName> names;
    bool is_all_there = true;
    for (const TxnTopic &topic : request.topics) {
        for (const std::int32_t index : topic.partitions) {
            names.push_back({std::string(topic.name), index});
            is_all_there &= broker.topics.find(topic.name, index) != nullptr;
        }
    }
    std::int16_t error = error_code::OPERATION_NOT_ATTEMPTED;
    if (is_all_there) {
        error = in_version(broker.transactions.add(request.transactional_id,
                                                   {request.producer_id, request.producer_epoch},
                                                   names),
                           call, 2);
    }
    AddPartitionsToTxnResponse response;
    for (const TxnTopic &topic : request.topics) {
        TxnTopicResult &told = response.topics.emplace_back();
        told.name = topic.name;
        for (const std::int32_t index : topic.partitions) {
            const bool is_there = broker.topics.find(topic.name, index) != nullptr;
            told.partitions.push_back(
                {index, is_there ? error : error_code::UNKNOWN_TOPIC_OR_PARTITION});
        }
    }
    return response;
}

Answer<EndTxnResponse> end_txn(Broker &broker, EndTxnRequest &request, Call &call) {
    EndTxnResponse response;
    const auto error = broker.transactions.end(request.transactional_id,
                                               {request.producer_id, request.producer_epoch},
                                               request.is_commit);
    response.error_code = in_version(error, call, 2);
    return response;
}

} // namespace broker
