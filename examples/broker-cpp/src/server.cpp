#include "server.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api.hpp"
#include "listener.hpp"

namespace broker {

static constexpr ConnectionId LISTENER = 0;
static constexpr ConnectionId SIGNALS = 1;
static constexpr std::chrono::seconds CHECK_INTERVAL(1);

static sigset_t stop_signals() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    return signals;
}

void block_stop_signals() {
    const sigset_t signals = stop_signals();
    sigprocmask(SIG_BLOCK, &signals, nullptr);
}

static Descriptor watch_stop_signals() {
    const sigset_t signals = stop_signals();
    return Descriptor(checked(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd"));
}

Server::Server(Broker &broker)
    : broker_(broker), epoll_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll")),
      listener_(listen_at(broker.options.listen)), signals_(watch_stop_signals()),
      next_housekeeping_(Clock::now() + std::chrono::milliseconds(broker.options.housekeeping_ms)),
      next_check_(Clock::now()) {
    const Options &options = broker.options;
    broker_.address = options.advertise.value_or(address_of(listener_.get(), options.listen.host));
    watch(listener_.get(), LISTENER, EPOLLIN, EPOLL_CTL_ADD);
    watch(signals_.get(), SIGNALS, EPOLLIN, EPOLL_CTL_ADD);
}

void Server::watch(int fd, ConnectionId id, std::uint32_t events, int operation) {
    epoll_event event = {};
    event.events = events;
    event.data.u64 = id;
    checked(epoll_ctl(epoll_.get(), operation, fd, &event), "epoll_ctl");
}

void Server::run() {
    while (!is_stopping_) {
        epoll_event events[256];
        const int count = epoll_wait(epoll_.get(), events, 256, milliseconds_to_sleep());
        if (count < 0 && errno != EINTR) {
            throw_errno("epoll_wait");
        }
        for (int at = 0; at < count; at++) {
            on_event(events[at].data.u64, events[at].events);
        }
        for (const ConnectionId id : std::exchange(has_request_, {})) {
            with_client(id, [&](Client &client) { serve(id, client); });
        }
        do_what_is_due();
        retry_fetches();
        broker_.topics.flush_before_ack();
        send_answers();
    }
}

void Server::do_what_is_due() {
    const auto now = Clock::now();
    try {
        if (now >= next_housekeeping_) {
            next_housekeeping_ = now + std::chrono::milliseconds(broker_.options.housekeeping_ms);
            broker_.topics.keep_house();
        }
        if (now >= next_check_) {
            next_check_ = now + CHECK_INTERVAL;
            listen(true);
            broker_.transactions.end_what_is_due();
        }
    } catch (const std::exception &error) {
        std::fprintf(stderr, "what was due is tried again: %s\n", error.what());
    }
}

int Server::milliseconds_to_sleep() const {
    if (!has_request_.empty()) {
        return 0;
    }
    auto until = std::min(next_check_, next_housekeeping_);
    if (!deadlines_.empty()) {
        until = std::min(until, deadlines_.begin()->first);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

void Server::accept_all() {
    for (;;) {
        Descriptor socket(
            accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (socket.get() < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                std::fprintf(stderr, "connections have to wait: %s\n", std::strerror(errno));
                listen(false);
            }
            return;
        }
        if (clients_.size() >= broker_.options.connections_max) {
            std::fprintf(stderr, "a connection beyond the limit was closed\n");
            continue;
        }
        try {
            accept(std::move(socket));
        } catch (const std::system_error &error) {
            std::fprintf(stderr, "a new connection was closed: %s\n", error.what());
        }
    }
}

void Server::accept(Descriptor socket) {
    const int on = 1;
    checked(setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
    const ConnectionId id = next_id_++;
    const std::uint32_t events = EPOLLIN | EPOLLRDHUP;
    watch(socket.get(), id, events, EPOLL_CTL_ADD);
    Client client{Connection(std::move(socket), broker_.options.request_bytes_max)};
    client.events = events;
    clients_.emplace(id, std::move(client));
}

/// A listener whose connections cannot be taken would be told of again and again.
void Server::listen(bool is_listening) {
    if (is_listening != std::exchange(is_listening_, is_listening)) {
        watch(listener_.get(), LISTENER, is_listening ? EPOLLIN : 0u, EPOLL_CTL_MOD);
    }
}

/// Does something for a client that may be gone. What it has sent wrong ends its connection, and so
/// does what the broker cannot do: its client may try again.
template <typename Function> void Server::with_client(ConnectionId id, Function function) {
    const auto client = clients_.find(id);
    if (client == clients_.end()) {
        return;
    }
    try {
        function(client->second);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "connection %llu is closed: %s\n", static_cast<unsigned long long>(id),
                     error.what());
        close(id);
    }
}

void Server::on_event(ConnectionId id, std::uint32_t events) {
    if (id == LISTENER) {
        return accept_all();
    }
    if (id == SIGNALS) {
        is_stopping_ = true;
        return;
    }
    with_client(id, [&](Client &client) {
        touched_.insert(id);
        const bool is_readable = (events & client.events & EPOLLIN) != 0;
        if ((events & (EPOLLERR | EPOLLHUP)) != 0 ||
            (is_readable && !client.connection.receive())) {
            return close(id);
        }
        has_request_.insert(id);
        if ((events & EPOLLRDHUP) != 0) {
            client.has_hung_up = true;
            if (client.waiting) {
                const WaitingFetch fetch = wake(id, client);
                handle(id, client, fetch.frame, fetch.deadline);
            }
        }
    });
}

/// Handles the requests that are here, until one has to wait or answers pile up.
void Server::serve(ConnectionId id, Client &client) {
    while (!client.waiting && !client.connection.is_backlogged()) {
        const auto frame = client.connection.next_frame();
        if (!frame) {
            return;
        }
        handle(id, client, *frame, std::nullopt);
    }
}

/// The deadline is that of a fetch that has waited: it waits on, but not for longer than it said,
/// and not at all for a client that asks no more, and may be gone.
void Server::handle(ConnectionId id, Client &client, Bytes frame,
                    std::optional<Clock::time_point> deadline) {
    Call call;
    call.may_wait = !client.has_hung_up && (!deadline || *deadline > Clock::now());
    client.connection.queue(answer(broker_, frame, call));
    touched_.insert(id);
    if (call.wait) {
        for (Partition *const partition : call.wait->partitions) {
            partition->waiting.insert(id);
        }
        const auto until = deadline.value_or(Clock::now() + call.wait->time);
        client.waiting = WaitingFetch{frame, until, std::move(call.wait->partitions)};
        deadlines_.emplace(until, id);
    }
}

Server::WaitingFetch Server::wake(ConnectionId id, Client &client) {
    WaitingFetch fetch = *std::exchange(client.waiting, std::nullopt);
    for (Partition *const partition : fetch.partitions) {
        partition->waiting.erase(id);
    }
    deadlines_.erase({fetch.deadline, id});
    return fetch;
}

/// Looks again at the fetches whose partitions have got something, or that have waited long enough.
void Server::retry_fetches() {
    auto due = broker_.topics.take_woken();
    const auto now = Clock::now();
    for (auto at = deadlines_.begin(); at != deadlines_.end() && at->first <= now; ++at) {
        due.insert(at->second);
    }
    for (const ConnectionId id : due) {
        with_client(id, [&](Client &client) {
            if (!client.waiting) {
                return;
            }
            const WaitingFetch fetch = wake(id, client);
            handle(id, client, fetch.frame, fetch.deadline);
            if (!client.waiting) {
                has_request_.insert(id); // one that came behind it
            }
        });
    }
}

void Server::send_answers() {
    for (const ConnectionId id : std::exchange(touched_, {})) {
        with_client(id, [&](Client &client) {
            Connection &connection = client.connection;
            const bool was_backlogged = connection.is_backlogged();
            if (!connection.send() || (!client.waiting && connection.is_done())) {
                return close(id);
            }
            const bool is_backlogged = connection.is_backlogged();
            if (was_backlogged && !is_backlogged) {
                has_request_.insert(id);
            }
            const bool is_reading = !client.waiting && !is_backlogged && !connection.has_ended();
            // Both would be told of again and again.
            const std::uint32_t events = (client.has_hung_up ? 0u : EPOLLRDHUP) |
                                         (is_reading ? EPOLLIN : 0u) |
                                         (connection.has_output() ? EPOLLOUT : 0u);
            if (events != client.events) {
                watch(client.connection.socket(), id, events, EPOLL_CTL_MOD);
                client.events = events;
            }
        });
    }
}

void Server::close(ConnectionId id) {
    const auto client = clients_.find(id);
    if (client->second.waiting) {
        wake(id, client->second);
    }
    // Closing the socket takes it from epoll, too.
    clients_.erase(client);
    listen(true);
}

} // namespace broker
