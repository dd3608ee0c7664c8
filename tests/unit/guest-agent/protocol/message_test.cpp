// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/protocol/message.hpp"

#include <gtest/gtest.h>

#include <set>

#include "guest-agent/protocol/messages.hpp"

namespace tandem::agent {
namespace {

/// What arrives when `message` is sent.
template <typename T>
T sent(const T& message) {
  return Message::decode(encode_message(message)).value().template as<T>().value();
}

/// Why `payload` is no T, or nothing if it is one.
template <typename T>
std::string refusal(std::vector<std::byte> payload) {
  const auto message = Message::decode(std::move(payload));
  if (!message) {
    return message.error().message();
  }
  const auto value = message->as<T>();
  return value ? "" : value.error().message();
}

std::vector<std::byte> payload_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST(MessageTest, BytesOfArgumentsArriveAsTheyAre) {
  const std::string every_byte = [] {
    std::string text;
    for (int byte = 0; byte < 256; ++byte) {
      text += static_cast<char>(byte);
    }
    return text;
  }();
  const auto request = sent(ExecRequest{.arguments = {"", every_byte}, .environment = {"A=1"}});
  EXPECT_EQ(request.arguments, (std::vector<std::string>{"", every_byte}));
  EXPECT_EQ(request.environment, (std::vector<std::string>{"A=1"}));
}

TEST(MessageTest, WhatIsOptionalMayBeMissing) {
  const auto without = sent(ExecRequest{.arguments = {"true"}});
  EXPECT_EQ(without.directory, std::nullopt);
  EXPECT_EQ(without.timeout_ns, std::nullopt);
  const auto with = sent(ExecRequest{.arguments = {"true"}, .directory = "", .timeout_ns = 5});
  EXPECT_EQ(with.directory, "");
  EXPECT_EQ(with.timeout_ns, 5U);
}

TEST(MessageTest, NestedListsAndNumbersOfAllSignsArrive) {
  const auto state = sent(PvStateReply{.vcpus = {{.vcpu = 3, .preempted = true, .preempt_count = UINT64_MAX}, {}}});
  ASSERT_EQ(state.vcpus.size(), 2U);
  EXPECT_EQ(state.vcpus[0].vcpu, 3U);
  EXPECT_EQ(state.vcpus[0].preempted, true);
  EXPECT_EQ(state.vcpus[0].preempt_count, UINT64_MAX);
  EXPECT_EQ(state.vcpus[0].stolen_ns, std::nullopt);
  EXPECT_EQ(sent(SetTimeReply{.step_ns = -7}).step_ns, -7);
}

TEST(MessageTest, TheWireFormIsTheOneThatIsSpecified) {
  EXPECT_EQ(encode_message(ClientHello{.protocol = 1}),
            payload_of(std::string("\x06"
                                   "client\x08protocol\x08\0\0\0\x01\0\0\0\0\0\0\0",
                                   28)));
}

TEST(MessageTest, UnknownFieldsAreIgnored) {
  auto payload = encode_message(ClientHello{.protocol = 1});
  const auto more = payload_of(std::string("\x03new\x01\0\0\0!", 9));
  payload.insert(payload.end(), more.begin(), more.end());
  EXPECT_EQ(refusal<ClientHello>(payload), "");
}

TEST(MessageTest, AMissingFieldIsAFault) {
  EXPECT_EQ(refusal<SetTimeRequest>(begin_message("set-time")), "set-time: realtime_ns: missing");
}

TEST(MessageTest, AFieldThatIsGivenTwiceIsAFault) {
  auto payload = encode_message(ClientHello{.protocol = 1});
  const std::vector<std::byte> field(payload.begin() + 7, payload.end());
  payload.insert(payload.end(), field.begin(), field.end());
  EXPECT_EQ(refusal<ClientHello>(payload), "client: protocol: given twice");
}

TEST(MessageTest, ANumberBeyondItsTypeIsAFault) {
  auto payload = encode_message(ClientHello{.protocol = 1});
  payload.back() = std::byte{1};
  EXPECT_EQ(refusal<ClientHello>(payload), "client: protocol: out of range");
}

TEST(MessageTest, ABoolThatIsNeitherIsAFault) {
  auto payload = encode_message(ThawReply{.timed_out = true});
  payload[payload.size() - 8] = std::byte{2};
  EXPECT_EQ(refusal<ThawReply>(payload), "thawed: timed_out: out of range");
}

TEST(MessageTest, AnotherMessageIsAFault) {
  EXPECT_EQ(refusal<PingReply>(encode_message(Done{})), "a message 'done' where 'pong' is due");
}

TEST(MessageTest, WithoutANameThereIsNoMessage) {
  EXPECT_NE(refusal<Done>({}), "");
  EXPECT_NE(refusal<Done>(payload_of(std::string("\0", 1))), "");
  EXPECT_NE(refusal<Done>(payload_of("\x05"
                                     "done")),
            "");
}

TEST(MessageTest, EveryTruncatedPrefixIsRefused) {
  const auto payload = encode_message(AgentHello{.version = "1", .capabilities = {"ping", "info"}});
  for (size_t length = 0; length < payload.size(); ++length) {
    EXPECT_NE(refusal<AgentHello>({payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(length)}), "")
        << length;
  }
}

TEST(MessageTest, AListOfTooManyItemsIsRefused) {
  EXPECT_EQ(refusal<ExecRequest>(encode_message(ExecRequest{.arguments = std::vector<std::string>(kMaxListItems)})),
            "");
  EXPECT_EQ(refusal<ExecRequest>(encode_message(ExecRequest{.arguments = std::vector<std::string>(kMaxListItems + 1)})),
            "exec: arguments: too many items");
}

TEST(MessagesTest, ThePortIsOneThatOnlyRootMayListenOn) { EXPECT_LT(kAgentPort, 1024U); }

TEST(MessagesTest, EveryCapabilityHasANameOfItsOwn) {
  EXPECT_EQ(std::set(kCapabilities.begin(), kCapabilities.end()).size(), kCapabilities.size());
}

}  // namespace
}  // namespace tandem::agent
