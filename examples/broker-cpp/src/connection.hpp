// One client: requests come in as frames, answers go out as bytes and parts of files. No call
// waits.
#pragma once

#include <deque>

#include "files.hpp"
#include "wire.hpp"

namespace broker {

class Connection {
public:
    Connection(Descriptor socket, std::size_t frame_bytes_max)
        : socket_(std::move(socket)), frame_bytes_max_(frame_bytes_max) {}

    /// Takes what has come. Frames that were given before are gone. False: the connection is
    /// broken.
    bool receive();

    /// The next request that is here whole, without its size. Throws Malformed for one that is too
    /// large.
    std::optional<Bytes> next_frame();

    /// Queues an answer.
    void queue(std::vector<Chunk> chunks);

    /// Sends as much as the client takes and is its share. False: the client has ended.
    bool send();

    bool has_output() const { return !output_.empty(); }

    /// Whether nothing more will come.
    bool has_ended() const { return has_ended_; }

    /// Whether there is nothing more to do.
    bool is_done() { return has_ended_ && output_.empty() && !has_frame(); }

    /// Whether the client must take answers before its next request is looked at.
    bool is_backlogged() const { return output_bytes_ > BACKLOG_MAX; }

    int socket() const { return socket_.get(); }

private:
    static constexpr std::uint64_t BACKLOG_MAX = 1 << 20;

    std::optional<std::size_t> frame_size();
    bool has_frame();
    void make_room();
    bool send_bytes(std::vector<std::byte> &bytes, bool more_follows, std::size_t &share);
    bool send_file(const siltstone::Range &file, std::size_t &share);

    Descriptor socket_;
    const std::size_t frame_bytes_max_;
    /// What has come and was not taken is from begin to end, both positions in it.
    std::vector<std::byte> input_;
    std::size_t input_begin_ = 0;
    std::size_t input_end_ = 0;
    bool has_ended_ = false;
    std::deque<Chunk> output_;
    std::uint64_t output_bytes_ = 0;
    /// How much of the first chunk is sent: of its bytes, and then of its file.
    std::size_t sent_bytes_ = 0;
    std::uint64_t sent_of_file_ = 0;
};

} // namespace broker
