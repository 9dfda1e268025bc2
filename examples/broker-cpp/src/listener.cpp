#include "listener.hpp"

#include <memory>
#include <stdexcept>

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace broker {

Descriptor listen_at(const Address &address) {
    const std::string where = address.host + ":" + std::to_string(address.port);
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo *found = nullptr;
    const std::string port = std::to_string(address.port);
    if (const int error = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found)) {
        throw std::runtime_error(where + ": " + gai_strerror(error));
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
    Descriptor listener(checked(
        socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket"));
    const int on = 1;
    checked(setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), "SO_REUSEADDR");
    checked(bind(listener.get(), found->ai_addr, found->ai_addrlen), where);
    checked(listen(listener.get(), SOMAXCONN), where);
    return listener;
}

Address address_of(int listener, const std::string &host) {
    sockaddr_storage address = {};
    socklen_t size = sizeof address;
    checked(getsockname(listener, reinterpret_cast<sockaddr *>(&address), &size), "getsockname");
    // The port has the same place in both kinds of addresses.
    const auto *const in = reinterpret_cast<const sockaddr_in *>(&address);
    return {host, ntohs(in->sin_port)};
}

} // namespace broker
