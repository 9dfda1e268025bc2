// The one loop of the broker: sockets, waiting fetches, and what is due once in a while.
//
// A round serves the requests that have come, makes durable what they have appended if that is
// asked for, and then sends the answers: one flush for all of them.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "broker.hpp"
#include "connection.hpp"

namespace broker {

/// Lets SIGTERM and SIGINT come to the server alone: to be called before there is another thread.
void block_stop_signals();

class Server {
public:
    /// Listens, and says where in broker.address.
    explicit Server(Broker &broker);

    /// Until SIGTERM or SIGINT.
    void run();

private:
    using Clock = std::chrono::steady_clock;

    /// A fetch that waits. Its frame stays where it is, since nothing is read from its connection.
    struct WaitingFetch {
        Bytes frame;
        Clock::time_point deadline;
        std::set<Partition *> partitions;
    };

    struct Client {
        Connection connection;
        std::optional<WaitingFetch> waiting = {};
        /// Whether it has said that it asks no more: it may wait for answers, or be gone.
        bool has_hung_up = false;
        /// What epoll watches.
        std::uint32_t events = 0;
    };

    void watch(int fd, ConnectionId id, std::uint32_t events, int operation);
    void do_what_is_due();
    int milliseconds_to_sleep() const;
    void accept_all();
    void accept(Descriptor socket);
    void listen(bool is_listening);
    void on_event(ConnectionId id, std::uint32_t events);
    void serve(ConnectionId id, Client &client);
    void handle(ConnectionId id, Client &client, Bytes frame,
                std::optional<Clock::time_point> deadline);
    WaitingFetch wake(ConnectionId id, Client &client);
    void retry_fetches();
    void send_answers();
    void close(ConnectionId id);
    template <typename Function> void with_client(ConnectionId id, Function function);

    Broker &broker_;
    Descriptor epoll_;
    Descriptor listener_;
    Descriptor signals_;
    std::unordered_map<ConnectionId, Client> clients_;
    ConnectionId next_id_ = 2;
    /// Fetches by when they have waited long enough.
    std::set<std::pair<Clock::time_point, ConnectionId>> deadlines_;
    /// Those that may have something to be sent, or a request that is here already.
    std::unordered_set<ConnectionId> touched_;
    std::unordered_set<ConnectionId> has_request_;
    Clock::time_point next_housekeeping_;
    Clock::time_point next_check_;
    bool is_listening_ = true;
    bool is_stopping_ = false;
};

} // namespace broker
