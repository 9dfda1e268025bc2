// One function for each kind of request. Nothing means that nothing is answered.
//
// Texts in an answer may be views of the request or of a topic: it is written at once.
#pragma once

#include "broker.hpp"
#include "data_messages.hpp"
#include "topic_messages.hpp"
#include "transaction_messages.hpp"

namespace broker {

template <typename Response> using Answer = std::optional<Response>;

// api.cpp
Answer<ApiVersionsResponse> api_versions(Broker &, ApiVersionsRequest &, Call &);

// produce.cpp
Answer<ProduceResponse> produce(Broker &, ProduceRequest &, Call &);

// fetch.cpp
Answer<FetchResponse> fetch(Broker &, FetchRequest &, Call &);

// list_offsets.cpp
Answer<ListOffsetsResponse> list_offsets(Broker &, ListOffsetsRequest &, Call &);

// metadata.cpp
Answer<MetadataResponse> metadata(Broker &, MetadataRequest &, Call &);
Answer<DescribeTopicPartitionsResponse>
describe_topic_partitions(Broker &, DescribeTopicPartitionsRequest &, Call &);

// create_topics.cpp
Answer<CreateTopicsResponse> create_topics(Broker &, CreateTopicsRequest &, Call &);

// transaction_handlers.cpp
Answer<FindCoordinatorResponse> find_coordinator(Broker &, FindCoordinatorRequest &, Call &);
Answer<InitProducerIdResponse> init_producer_id(Broker &, InitProducerIdRequest &, Call &);
Answer<AddPartitionsToTxnResponse> add_partitions_to_txn(Broker &, AddPartitionsToTxnRequest &,
                                                         Call &);
Answer<EndTxnResponse> end_txn(Broker &, EndTxnRequest &, Call &);

} // namespace broker
