// SPDX-License-Identifier: Apache-2.0
// A guest that sends any packets to the socket device, while programs of the host come, write, read and go, and the machine is
// saved and restored: the device never has more streams than it may, needs no reset as long as the rings are in order, and opens
// a stream as ever after one.
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "devices/virtio_vsock/virtio_vsock.hpp"
#include "tests/fakes/fake_timer.hpp"
#include "tests/fakes/fake_vsock_host.hpp"
#include "tests/fakes/guest_vsock.hpp"
#include "tests/fuzz/input_reader.hpp"
#include "vmm/lib/log/log.hpp"

namespace tandem::devices {
namespace {

using virtio_vsock::Header;

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

/// The device, the guest on one side of it and programs of the host on the other.
class VsockFuzz {
 public:
  VsockFuzz() {
    host_.serve(0);
    host_.serve(1);
    set_up();
  }

  void step(fuzz::InputReader& input) {
    const unsigned action = input.take<uint8_t>();
    switch (action % 16) {
      case 0:
        programs_.push_back(host_.dial(input.take<uint8_t>() % 4));
        break;
      case 1:
      case 2:
        write(input);
        break;
      case 3:
        close(input);
        break;
      case 4:
        save_and_restore();
        break;
      case 5:
        send_piece(input);
        break;
      case 6:
        read(input);
        break;
      default:
        guest_.send(header(input), std::string(input.take<uint8_t>() * 4U, 'n'));
    }
    while (host_.accepted_count() != 0) {
      programs_.push_back(host_.take_accepted());
    }
    rig_.run();
    // Seldom enough that answers pile up, and often enough that the driver has buffers to send.
    if (action % 64 < 56 || ++undrained_ == kMaxUndrained) {
      drain();
    }
    require(!rig_.transport().needs_reset());
    require(device_.stream_count() <= VirtioVsock::kMaxStreams);
  }

  /// After a reset a program that serves port 0 is reached.
  void expect_alive() {
    programs_.clear();
    rig_.reset(device_);
    rig_.run();
    require(device_.stream_count() == 0);
    set_up();
    guest_.send(virtio_vsock::kOpRequest, 7000, 0);
    rig_.run();
    const auto answer = guest_.next();
    require(answer && answer->header.op == virtio_vsock::kOpResponse && answer->header.dst_port == 7000);
  }

 private:
  static constexpr unsigned kMaxUndrained = 8;

  void set_up() {
    guest_.activate();
    guest_.give_buffers(VirtioRig::kQueueSize);
    guest_.give_event_buffers(1);
  }

  void drain() {
    undrained_ = 0;
    while (guest_.next()) {
      rig_.run();
    }
  }

  /// Few ports, CIDs and operations, so that packets meet streams; now and then something else.
  static Header header(fuzz::InputReader& input) {
    const unsigned odd = input.take<uint8_t>();
    const auto port = input.take<uint8_t>();
    const auto pick = [&](unsigned bit, auto usual) {
      return (odd & (1U << bit)) != 0 ? input.take<decltype(usual)>() : usual;
    };
    Header packet{};
    packet.src_cid = pick(0, GuestVsock::kCid + 0);
    packet.dst_cid = pick(1, virtio_vsock::kHostCid + 0);
    packet.src_port = port % 4U;
    packet.dst_port = (port & 128U) != 0 ? port / 4U % 3U : VirtioVsock::kFirstHostPort + port / 4U % 16U;
    packet.len = pick(2, uint32_t{input.take<uint8_t>()});
    packet.type = pick(3, uint16_t{virtio_vsock::kTypeStream});
    packet.op = pick(4, static_cast<uint16_t>(input.take<uint8_t>() % 8U));
    packet.flags = pick(5, uint32_t{input.take<uint8_t>()} % 4U);
    packet.buf_alloc = pick(6, GuestVsock::kBufferBytes + 0);
    packet.fwd_cnt = pick(7, 0U);
    return packet;
  }

  /// A header that is cut off anywhere.
  void send_piece(fuzz::InputReader& input) {
    const Header packet = header(input);
    guest_.send_bytes(
        std::as_bytes(std::span(&packet, 1)).first(input.take<uint8_t>() % (virtio_vsock::kHeaderBytes + 1)));
  }

  UniqueFd* any_program(fuzz::InputReader& input) {
    const size_t index = input.take<uint8_t>();
    return programs_.empty() ? nullptr : &programs_[index % programs_.size()];
  }
  void write(fuzz::InputReader& input) {
    if (const UniqueFd* program = any_program(input)) {
      const std::string text(input.take<uint8_t>() * 64U, 'h');
      static_cast<void>(::send(program->get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
    }
  }
  void read(fuzz::InputReader& input) {
    if (const UniqueFd* program = any_program(input)) {
      std::array<char, 4096> bytes{};
      static_cast<void>(::recv(program->get(), bytes.data(), bytes.size(), MSG_DONTWAIT));
    }
  }
  void close(fuzz::InputReader& input) {
    if (UniqueFd* program = any_program(input)) {
      const unsigned how = input.take<uint8_t>();
      if (how % 4 < 2) {
        ::shutdown(program->get(), how % 4 == 0 ? SHUT_WR : SHUT_RD);
      } else {
        programs_.erase(programs_.begin() + (program - programs_.data()));
      }
    }
  }
  void save_and_restore() {
    drain();
    require(device_.pause().has_value());
    const StateRecord record = device_.save().value();
    require(device_.restore(record).has_value());
    rig_.reattach(device_);
    rig_.resume(device_);
    rig_.run();
    if (timer_->is_armed()) {
      timer_->fire();  // nobody handles the event
    }
  }

  VirtioRig rig_;
  FakeVsockHost host_;
  FakeTimer* timer_ = new FakeTimer;  // the device's
  VirtioVsock device_{"vsock0",
                      GuestVsock::kCid,
                      {.executor = rig_.executor(), .host = host_, .event_timer = std::unique_ptr<Timer>(timer_)}};
  GuestVsock guest_{rig_, device_};
  std::vector<UniqueFd> programs_;
  unsigned undrained_ = 0;
};

}  // namespace
}  // namespace tandem::devices

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace tandem;
  log::set_level(log::Level::kOff);
  fuzz::InputReader input(bytes, size);
  devices::VsockFuzz run;
  while (!input.is_empty()) {
    run.step(input);
  }
  run.expect_alive();
  return 0;
}
