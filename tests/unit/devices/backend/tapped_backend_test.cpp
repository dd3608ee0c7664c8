// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/tapped_backend.hpp"

#include "tests/fakes/fake_char_backend.hpp"
#include "tests/unit/devices/backend/backend_test.hpp"

namespace tandem::devices {
namespace {

class TappedBackendTest : public BackendTest {
 protected:
  void SetUp() override {
    auto inner = std::make_unique<FakeCharBackend>();
    inner_ = inner.get();
    backend_ = TappedBackend::create(executor_, std::move(inner)).value();
    backend_->set_sink(&sink_);
  }
  /// Attaches a client; our end.
  UniqueFd attach() {
    auto [ours, theirs] = make_socket_pair();
    ::fcntl(theirs.get(), F_SETFL, O_NONBLOCK);
    EXPECT_TRUE(backend_->attach(std::move(theirs)));
    return std::move(ours);
  }

  FakeCharBackend* inner_ = nullptr;
  FakeCharSink sink_;
  std::unique_ptr<TappedBackend> backend_;
};

TEST_F(TappedBackendTest, OutputGoesToTheBackendAndToTheClientWhoFirstGetsWhatWasShown) {
  backend_->write(bytes_of("boot\n"));
  const UniqueFd client = attach();
  backend_->write(bytes_of("login: "));
  expect_output(client.get(), "boot\nlogin: ");
  EXPECT_EQ(inner_->output(), "boot\nlogin: ");
}

TEST_F(TappedBackendTest, InputOfBothIsTheGuests) {
  const UniqueFd client = attach();
  send_all(client.get(), "from the client");
  expect_input(sink_, "from the client");
  EXPECT_EQ(inner_->sink(), &sink_);
}

TEST_F(TappedBackendTest, ASecondClientIsRefusedWhileTheFirstIsThere) {
  const UniqueFd client = attach();
  EXPECT_FALSE(backend_->is_free());
  auto [ours, theirs] = make_socket_pair();
  const auto second = backend_->attach(std::move(theirs));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Errc::kBusy);
  backend_->write(bytes_of("still"));
  expect_output(client.get(), "still");
}

TEST_F(TappedBackendTest, TheNextClientSeesWhatTheLastOneSaw) {
  UniqueFd first = attach();
  backend_->write(bytes_of("one"));
  expect_output(first.get(), "one");
  first.reset();
  EXPECT_TRUE(backend_->is_free());
  const UniqueFd second = attach();
  expect_output(second.get(), "one");
  backend_->write(bytes_of("two"));
  expect_output(second.get(), "two");
}

TEST_F(TappedBackendTest, AClientWhoDoesNotReadHoldsUpNobody) {
  const UniqueFd client = attach();
  const std::string block(4096, '#');
  for (unsigned count = 0; count < 1000; ++count) {
    backend_->write(bytes_of(block));
    loop_->run_ready();
  }
  EXPECT_EQ(inner_->output().size(), 1000 * block.size());
  EXPECT_EQ(backend_->dropped_bytes(), 0U);
}

}  // namespace
}  // namespace tandem::devices
