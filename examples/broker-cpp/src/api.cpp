#include "api.hpp"

#include <algorithm>
#include <string>

#include "errors.hpp"
#include "handlers.hpp"

namespace broker {

using Handle = std::vector<Chunk> (*)(Broker &, Reader &, Writer &&, Call &);

/// A kind of request.
struct Api {
    std::int16_t key;
    std::int16_t first_version;
    std::int16_t last_version;
    std::int16_t first_flexible_version;
    Handle handle;
};

/// Reads a request, handles it and writes its answer, whose header is written.
template <typename Request, typename Response,
          Answer<Response> (*Handler)(Broker &, Request &, Call &)>
static std::vector<Chunk> handle(Broker &broker, Reader &in, Writer &&out, Call &call) {
    Request request;
    read_value(in, request);
    Answer<Response> response = Handler(broker, request, call);
    if (!response || call.wait) {
        return {};
    }
    write_value(out, *response);
    return std::move(out).frame();
}

template <typename Function> struct HandlerOf;

template <typename Request, typename Response>
struct HandlerOf<Answer<Response> (*)(Broker &, Request &, Call &)> {
    template <auto Handler> static constexpr Handle handler = handle<Request, Response, Handler>;
};

template <auto Handler>
static constexpr Handle as_handle = HandlerOf<decltype(Handler)>::template handler<Handler>;

static constexpr std::int16_t API_VERSIONS = 18;

static constexpr Api APIS[] = {
    {0, 3, 13, 9, as_handle<&produce>},
    {1, 4, 18, 12, as_handle<&fetch>},
    {2, 1, 6, 6, as_handle<&list_offsets>},
    {3, 0, 13, 9, as_handle<&metadata>},
    {10, 0, 6, 3, as_handle<&find_coordinator>},
    {API_VERSIONS, 0, 4, 3, as_handle<&api_versions>},
    {19, 2, 7, 5, as_handle<&create_topics>},
    {22, 0, 5, 2, as_handle<&init_producer_id>},
    {24, 0, 3, 3, as_handle<&add_partitions_to_txn>},
    {26, 0, 4, 3, as_handle<&end_txn>},
    {75, 0, 0, 0, as_handle<&describe_topic_partitions>},
};

static ApiVersionsResponse all_versions() {
    ApiVersionsResponse response;
    for (const Api &api : APIS) {
        response.api_keys.push_back({api.key, api.first_version, api.last_version});
    }
    return response;
}

Answer<ApiVersionsResponse> api_versions(Broker &, ApiVersionsRequest &, Call &) {
    return all_versions();
}

/// A client that asks in a version from the future is told, in the oldest one, which there are.
static std::vector<Chunk> refuse_version(std::int32_t correlation_id) {
    Writer out;
    out.integer(correlation_id);
    ApiVersionsResponse response = all_versions();
    response.error_code = error_code::UNSUPPORTED_VERSION;
    write_value(out, response);
    return std::move(out).frame();
}

std::vector<Chunk> answer(Broker &broker, Bytes frame, Call &call) {
    Reader header(frame);
    const auto key = header.integer<std::int16_t>();
    const auto version = header.integer<std::int16_t>();
    const auto correlation_id = header.integer<std::int32_t>();
    const auto api = std::find_if(std::begin(APIS), std::end(APIS),
                                  [&](const Api &api) { return api.key == key; });
    if (api == std::end(APIS)) {
        throw Malformed("there is no request of kind " + std::to_string(key));
    }
    if (version < api->first_version || version > api->last_version) {
        if (key == API_VERSIONS) {
            return refuse_version(correlation_id);
        }
        throw Malformed("request " + std::to_string(key) + " has no version " +
                        std::to_string(version));
    }
    header.string(); // the client's name, which has the old form in all versions
    call.version = version;
    Reader in(header.rest(), {version, version >= api->first_flexible_version});
    in.skip_tagged_fields();
    Writer out(in.version);
    out.integer(correlation_id);
    // The answer to ApiVersions has an old header always: its reader may not know the new one.
    if (in.version.is_flexible && key != API_VERSIONS) {
        out.unsigned_varint(0); // no tagged fields
    }
    return api->handle(broker, in, std::move(out), call);
}

} // namespace broker
