// A small Kafka broker on siltstone. README.md says what it can do.
#include <csignal>
#include <cstdio>

#include <sys/resource.h>

#include "server.hpp"

/// As many open files as the system allows: partitions and clients need them.
static void raise_file_limit() {
    rlimit limit = {};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));
    }
}

int main(int argc, char **argv) {
    const auto options = broker::parse_options(argc, argv);
    if (!options) {
        return 2;
    }
    if (silt_abi_version() != SILT_ABI_VERSION) {
        std::fprintf(stderr, "libsiltstone %s is not the one of the header\n", silt_version());
        return 2;
    }
    raise_file_limit();
    broker::block_stop_signals();
    // A client that has gone is an error of its own connection. sendfile(2) has no flag for that.
    std::signal(SIGPIPE, SIG_IGN);
    try {
        broker::Broker broker(*options);
        broker::Server server(broker);
        std::printf("listening on %s:%d\n", broker.address.host.c_str(), broker.address.port);
        std::fflush(stdout);
        server.run();
        broker.topics.stop();
        return 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
