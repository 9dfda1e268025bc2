#include "connection.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

namespace broker {

static constexpr std::size_t INPUT_BYTES_MIN = 64 << 10;
/// A buffer that was made for a large request is given back.
static constexpr std::size_t INPUT_BYTES_KEPT = 1 << 20;
/// What one client may be sent before it is the next one's turn.
static constexpr std::size_t SHARE_BYTES = 4 << 20;

static bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

std::optional<std::size_t> Connection::frame_size() {
    if (input_end_ - input_begin_ < 4) {
        return std::nullopt;
    }
    const auto size = Reader(Bytes(input_).subspan(input_begin_, 4)).integer<std::uint32_t>();
    if (size > frame_bytes_max_) {
        throw Malformed("a request of " + std::to_string(size) + " bytes is too large");
    }
    return size;
}

bool Connection::has_frame() {
    const auto size = frame_size();
    return size && input_end_ - input_begin_ >= 4 + *size;
}

/// Memory grows with what has really come, and not with what a size says will come.
void Connection::make_room() {
    const std::size_t held = input_end_ - input_begin_;
    const std::size_t frame = 4 + frame_size().value_or(0);
    const std::size_t wanted =
        std::max(INPUT_BYTES_MIN, std::min(frame, 2 * std::max(held, INPUT_BYTES_MIN)));
    if (input_begin_ > 0) {
        std::memmove(input_.data(), input_.data() + input_begin_, held);
        input_begin_ = 0;
        input_end_ = held;
    }
    if (held == 0 && input_.size() > INPUT_BYTES_KEPT) {
        input_ = {};
    }
    if (input_.size() < wanted) {
        input_.resize(wanted);
    }
}

bool Connection::receive() {
    if (has_frame()) {
        return true; // it comes first, and there may be no room behind it
    }
    make_room();
    const ssize_t size =
        recv(socket_.get(), input_.data() + input_end_, input_.size() - input_end_, 0);
    if (size < 0) {
        return would_block();
    }
    input_end_ += static_cast<std::size_t>(size);
    has_ended_ = size == 0;
    return true;
}

std::optional<Bytes> Connection::next_frame() {
    if (!has_frame()) {
        return std::nullopt;
    }
    const Bytes frame = Bytes(input_).subspan(input_begin_ + 4, *frame_size());
    input_begin_ += 4 + frame.size();
    return frame;
}

void Connection::queue(std::vector<Chunk> chunks) {
    for (Chunk &chunk : chunks) {
        output_bytes_ += chunk.bytes.size() + chunk.file.size_bytes();
        if (!output_.empty() && output_.back().file.empty()) {
            // Bytes behind bytes go in one call.
            Chunk &last = output_.back();
            last.bytes.insert(last.bytes.end(), chunk.bytes.begin(), chunk.bytes.end());
            last.file = std::move(chunk.file);
        } else {
            output_.push_back(std::move(chunk));
        }
    }
}

/// False when the client takes no more now, or has ended, which errno says.
bool Connection::send_bytes(std::vector<std::byte> &bytes, bool more_follows, std::size_t &share) {
    while (sent_bytes_ < bytes.size()) {
        const ssize_t size = ::send(socket_.get(), bytes.data() + sent_bytes_,
                                    bytes.size() - sent_bytes_, more_follows ? MSG_MORE : 0);
        if (size < 0) {
            return false;
        }
        sent_bytes_ += static_cast<std::size_t>(size);
        share -= std::min(share, static_cast<std::size_t>(size));
    }
    return true;
}

/// The same.
bool Connection::send_file(const siltstone::Range &file, std::size_t &share) {
    while (sent_of_file_ < file.size_bytes() && share > 0) {
        auto position = static_cast<off_t>(file.position() + sent_of_file_);
        const std::uint64_t left = file.size_bytes() - sent_of_file_;
        const ssize_t size = sendfile(socket_.get(), file.fd(), &position,
                                      std::min<std::uint64_t>(left, share));
        if (size <= 0) {
            errno = size == 0 ? EIO : errno; // the file is shorter than it was
            return false;
        }
        sent_of_file_ += static_cast<std::uint64_t>(size);
        share -= static_cast<std::size_t>(size);
    }
    return true;
}

bool Connection::send() {
    std::size_t share = SHARE_BYTES;
    while (!output_.empty() && share > 0) {
        Chunk &chunk = output_.front();
        const bool more_follows = !chunk.file.empty() || output_.size() > 1;
        if (!send_bytes(chunk.bytes, more_follows, share) || !send_file(chunk.file, share)) {
            return would_block();
        }
        if (sent_of_file_ < chunk.file.size_bytes()) {
            break; // it is the next one's turn
        }
        output_bytes_ -= chunk.bytes.size() + chunk.file.size_bytes();
        output_.pop_front();
        sent_bytes_ = 0;
        sent_of_file_ = 0;
    }
    return true;
}

} // namespace broker
