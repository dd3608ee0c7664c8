// SPDX-License-Identifier: Apache-2.0
#include "devices/uart_pl011/uart_pl011.hpp"

#include <gtest/gtest.h>

#include <string>

#include "devices/uart_pl011/uart_pl011_state.hpp"
#include "tests/fakes/fake_char_backend.hpp"
#include "tests/fakes/fake_irq_sink.hpp"

namespace tandem::devices {
namespace {

using namespace pl011;

constexpr Intid kIntid = Intid::spi(1);

class UartPl011Test : public ::testing::Test {
 protected:
  uint64_t read(uint64_t offset) { return uart_.read({.offset = offset, .width_bytes = 4}).value(); }
  void write(uint64_t offset, uint64_t value) { ASSERT_TRUE(uart_.write({.offset = offset, .width_bytes = 4}, value)); }
  void enable_with_fifos() {
    write(UARTLCR_H, kLCR_H_FEN);
    write(UARTCR, kCR_UARTEN | kCR_RXE | kCR_TXE);
  }
  void enable_without_fifos() { write(UARTCR, kCR_UARTEN | kCR_RXE | kCR_TXE); }
  std::string read_characters(size_t count) {
    std::string text;
    for (size_t index = 0; index < count; ++index) {
      text += static_cast<char>(read(UARTDR));
    }
    return text;
  }
  [[nodiscard]] bool irq() const { return sink_.level(kIntid); }

  FakeIrqSink sink_;
  FakeCharBackend backend_;
  UartPl011 uart_{"uart0", IrqLine(sink_, kIntid), backend_};
};

TEST_F(UartPl011Test, RegistersHaveTheManualsResetValues) {
  EXPECT_EQ(read(UARTRSR), 0U);
  EXPECT_EQ(read(UARTCR), 0x300U);
  EXPECT_EQ(read(UARTIFLS), 0x12U);
  EXPECT_EQ(read(UARTLCR_H), 0U);
  EXPECT_EQ(read(UARTIMSC), 0U);
  EXPECT_EQ(read(UARTRIS), 0U);
  EXPECT_EQ(read(UARTFR) & (kFR_TXFE | kFR_RXFE | kFR_RXFF), kFR_TXFE | kFR_RXFE);
}

TEST_F(UartPl011Test, IdentifiesItselfAsRevisionR1P5) {
  uint64_t peripheral = 0;
  uint64_t cell = 0;
  for (unsigned index = 0; index < 4; ++index) {
    peripheral |= read(0xfe0 + 4 * index) << (8 * index);
    cell |= read(0xff0 + 4 * index) << (8 * index);
  }
  EXPECT_EQ(peripheral, 0x00341011U);
  EXPECT_EQ(cell, 0xb105f00dU);
}

TEST_F(UartPl011Test, OutputNeedsNoInitialisationAsAnEarlyConsoleDoesNone) {
  write(UARTCR, 0);
  write(UARTDR, 'A');
  EXPECT_EQ(backend_.output(), "A");
}

TEST_F(UartPl011Test, TransmitterIsNeverBusyNorFull) {
  constexpr uint64_t kBusy = 1U << 3;
  constexpr uint64_t kTxff = 1U << 5;
  write(UARTDR, 'A');
  EXPECT_EQ(read(UARTFR) & (kBusy | kTxff | kFR_TXFE), kFR_TXFE);
}

TEST_F(UartPl011Test, TransmitInterruptIsNotPendingBeforeTheFirstCharacter) {
  enable_with_fifos();
  write(UARTIMSC, kInt_TX);
  EXPECT_FALSE(irq());
}

TEST_F(UartPl011Test, TransmitInterruptIsPendingAfterEachCharacterUntilCleared) {
  enable_with_fifos();
  write(UARTDR, 'A');
  EXPECT_FALSE(irq());
  write(UARTIMSC, kInt_TX);
  EXPECT_TRUE(irq());
  write(UARTICR, kInt_TX);
  EXPECT_FALSE(irq());
  write(UARTDR, 'B');
  EXPECT_TRUE(irq());
}

TEST_F(UartPl011Test, MaskingTakesTheLevelAwayAndKeepsTheRawStatus) {
  write(UARTDR, 'A');
  write(UARTIMSC, kInt_TX);
  write(UARTIMSC, 0);
  EXPECT_FALSE(irq());
  EXPECT_EQ(read(UARTRIS), kInt_TX);
  EXPECT_EQ(read(UARTMIS), 0U);
}

TEST_F(UartPl011Test, ReadingEmptyFifoReturnsZeroAndKeepsRxfeSet) {
  enable_with_fifos();
  EXPECT_EQ(read(UARTDR), 0U);
  EXPECT_EQ(read(UARTFR) & kFR_RXFE, kFR_RXFE);
}

TEST_F(UartPl011Test, InputIsReadInOrder) {
  enable_with_fifos();
  backend_.type("hello");
  EXPECT_EQ(read_characters(5), "hello");
  EXPECT_EQ(read(UARTFR) & kFR_RXFE, kFR_RXFE);
}

TEST_F(UartPl011Test, InputBelowTheTriggerRaisesTheReceiveTimeoutOnly) {
  enable_with_fifos();
  backend_.type("a");
  EXPECT_EQ(read(UARTRIS), kInt_RT);
}

TEST_F(UartPl011Test, InputAtTheTriggerRaisesTheReceiveInterrupt) {
  enable_with_fifos();
  backend_.type(std::string(16, 'a'));
  EXPECT_EQ(read(UARTRIS), kInt_RX | kInt_RT);
  read_characters(1);
  EXPECT_EQ(read(UARTRIS), kInt_RT);
  read_characters(15);
  EXPECT_EQ(read(UARTRIS), 0U);
}

TEST_F(UartPl011Test, InterruptClearedWithCharactersLeftComesBackAfterTheNextRead) {
  enable_with_fifos();
  write(UARTIMSC, kInt_RT | kInt_RX);
  backend_.type("abc");
  write(UARTICR, kInt_RT | kInt_RX);
  EXPECT_FALSE(irq());
  read_characters(1);
  EXPECT_TRUE(irq());
}

TEST_F(UartPl011Test, WithFifosTheDepthIs32) {
  enable_with_fifos();
  backend_.type(std::string(40, 'x'));
  EXPECT_EQ(read(UARTFR) & kFR_RXFF, kFR_RXFF);
  EXPECT_EQ(backend_.pending().size(), 8U);
}

TEST_F(UartPl011Test, WithoutFifosTheDepthIsOne) {
  enable_without_fifos();
  backend_.type("ab");
  EXPECT_EQ(read(UARTFR) & kFR_RXFF, kFR_RXFF);
  EXPECT_EQ(read(UARTRIS) & kInt_RX, kInt_RX);
  EXPECT_EQ(backend_.pending(), "b");
}

TEST_F(UartPl011Test, InputIsHeldBackUntilTheReceiverIsOn) {
  backend_.type("early");
  EXPECT_EQ(backend_.pending(), "early");
  const uint64_t before = backend_.resume_count();
  enable_with_fifos();
  EXPECT_GT(backend_.resume_count(), before);
  backend_.deliver();
  EXPECT_EQ(read_characters(5), "early");
}

TEST_F(UartPl011Test, APasteOf64KiBLosesNothing) {
  enable_with_fifos();
  std::string paste;
  for (unsigned index = 0; paste.size() < 65536; ++index) {
    paste += std::to_string(index) + "\n";
  }
  backend_.type(paste);
  std::string got;
  while (got.size() < paste.size()) {
    const uint64_t resumes = backend_.resume_count();
    while ((read(UARTFR) & kFR_RXFE) == 0) {
      got += static_cast<char>(read(UARTDR));
    }
    ASSERT_GT(backend_.resume_count(), resumes);
    backend_.deliver();
  }
  EXPECT_EQ(got, paste);
  EXPECT_EQ(read(UARTRIS) & kInt_OE, 0U);
}

TEST_F(UartPl011Test, LoopbackReturnsOutputAsInputAndHoldsTheHostsInputBack) {
  enable_with_fifos();
  write(UARTCR, kCR_UARTEN | kCR_RXE | kCR_TXE | kCR_LBE);
  backend_.type("host");
  write(UARTDR, 'L');
  EXPECT_EQ(backend_.output(), "");
  EXPECT_EQ(read_characters(1), "L");
  EXPECT_EQ(backend_.pending(), "host");
}

TEST_F(UartPl011Test, LoopbackOverrunIsReportedAndCleared) {
  write(UARTCR, kCR_UARTEN | kCR_RXE | kCR_TXE | kCR_LBE);
  write(UARTDR, '1');
  write(UARTDR, '2');
  EXPECT_EQ(read(UARTRSR), kRSR_OE);
  EXPECT_EQ(read(UARTRIS) & kInt_OE, kInt_OE);
  EXPECT_EQ(read(UARTDR), '1' | (uint64_t{kRSR_OE} << 8));
  write(UARTRSR, 0xff);
  EXPECT_EQ(read(UARTRSR), 0U);
}

TEST_F(UartPl011Test, LoopbackConnectsModemOutputsToInputs) {
  constexpr uint64_t kModem = kFR_CTS | kFR_DSR | kFR_DCD | kFR_RI;
  EXPECT_EQ(read(UARTFR) & kModem, kFR_CTS | kFR_DSR | kFR_DCD);
  write(UARTCR, kCR_LBE);
  EXPECT_EQ(read(UARTFR) & kModem, 0U);
  write(UARTCR, kCR_LBE | kCR_RTS | kCR_Out2);
  EXPECT_EQ(read(UARTFR) & kModem, kFR_CTS | kFR_RI);
}

struct WritableBits {
  const char* name;
  uint64_t offset;
  uint64_t writable;
};
class UartPl011WritableBitsTest : public UartPl011Test, public ::testing::WithParamInterface<WritableBits> {};

TEST_P(UartPl011WritableBitsTest, ReservedBitsReadZero) {
  write(GetParam().offset, 0xffffffff);
  EXPECT_EQ(read(GetParam().offset), GetParam().writable);
}

INSTANTIATE_TEST_SUITE_P(
    Registers, UartPl011WritableBitsTest,
    ::testing::Values(WritableBits{"UARTILPR", UARTILPR, 0xff}, WritableBits{"UARTIBRD", UARTIBRD, 0xffff},
                      WritableBits{"UARTFBRD", UARTFBRD, 0x3f}, WritableBits{"UARTLCR_H", UARTLCR_H, 0xff},
                      WritableBits{"UARTCR", UARTCR, 0xff87}, WritableBits{"UARTIFLS", UARTIFLS, 0x3f},
                      WritableBits{"UARTIMSC", UARTIMSC, 0x7ff}, WritableBits{"UARTDMACR", UARTDMACR, 0x7}),
    [](const auto& row) { return row.param.name; });

struct Access {
  const char* name;
  MmioAccess access;
  std::optional<BadAccess> read;
  std::optional<BadAccess> write;
};
class UartPl011AccessTest : public UartPl011Test, public ::testing::WithParamInterface<Access> {};

TEST_P(UartPl011AccessTest, IsAnsweredByKind) {
  const auto error_of = [](const auto& result) {
    return result ? std::optional<BadAccess>() : std::optional(result.error());
  };
  EXPECT_EQ(error_of(uart_.read(GetParam().access)), GetParam().read);
  EXPECT_EQ(error_of(uart_.write(GetParam().access, 0)), GetParam().write);
}

INSTANTIATE_TEST_SUITE_P(
    Accesses, UartPl011AccessTest,
    ::testing::Values(Access{"Byte", {UARTCR, 1}, {}, {}}, Access{"Halfword", {UARTCR, 2}, {}, {}},
                      Access{"Doubleword", {UARTCR, 8}, BadAccess::kWidth, BadAccess::kWidth},
                      Access{"Unaligned", {UARTCR + 1, 2}, BadAccess::kAlignment, BadAccess::kAlignment},
                      Access{"MiddleOfSlot", {UARTCR + 1, 1}, BadAccess::kNoRegister, BadAccess::kNoRegister},
                      Access{"FlagRegister", {UARTFR, 4}, {}, BadAccess::kReadOnly},
                      Access{"Identification", {0xfe0, 4}, {}, BadAccess::kReadOnly},
                      Access{"ClearRegister", {UARTICR, 4}, BadAccess::kWriteOnly, {}},
                      Access{"Hole", {0x100, 4}, BadAccess::kNoRegister, BadAccess::kNoRegister}),
    [](const auto& row) { return row.param.name; });

TEST_F(UartPl011Test, ResetEqualsPowerOn) {
  FakeCharBackend other_backend;
  UartPl011 fresh("uart1", IrqLine::detached(), other_backend);
  enable_with_fifos();
  write(UARTIMSC, kInterruptMask);
  write(UARTIBRD, 13);
  backend_.type("abc");
  ASSERT_TRUE(uart_.reset());
  EXPECT_FALSE(irq());
  EXPECT_EQ(uart_.save().value(), fresh.save().value());
}

TEST_F(UartPl011Test, RestoreTakesOverFifoAndLevelWithoutTouchingTheWire) {
  enable_with_fifos();
  write(UARTIMSC, kInt_RT);
  backend_.type("saved");
  FakeIrqSink other_sink;
  FakeCharBackend other_backend;
  UartPl011 other("uart0", IrqLine(other_sink, kIntid), other_backend);
  ASSERT_TRUE(other.restore(uart_.save().value()));
  EXPECT_EQ(other_sink.call_count(), 0U);
  EXPECT_EQ(other.read({UARTDR, 4}).value(), 's');
  EXPECT_EQ(other_sink.call_count(), 0U);  // high before, and still
  ASSERT_TRUE(other.write({UARTIMSC, 4}, 0));
  EXPECT_EQ(other_sink.call_count(), 1U);  // falls
}

TEST_F(UartPl011Test, InputWhilePausedIsTakenAfterResume) {
  enable_with_fifos();
  ASSERT_TRUE(uart_.pause());
  backend_.type("typed");
  EXPECT_EQ(backend_.pending(), "typed");
  const uint64_t before = backend_.resume_count();
  ASSERT_TRUE(uart_.resume());
  EXPECT_GT(backend_.resume_count(), before);
  backend_.deliver();
  EXPECT_EQ(read_characters(5), "typed");
}

TEST_F(UartPl011Test, RestoreRefusesAnOverlongFifo) {
  UartPl011StateV1 state;
  state.receive_fifo.resize(kFifoDepth + 1);
  const auto done = uart_.restore(save_state(state));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Errc::kCorrupt);
}

TEST_F(UartPl011Test, RestoreRefusesReservedBits) {
  UartPl011StateV1 state;
  state.uartimsc = kInterruptMask + 1;
  EXPECT_FALSE(uart_.restore(save_state(state)));
}

TEST_F(UartPl011Test, NodeNamesBothClocks) {
  const FdtNode node = uart_.describe({GuestRange::fixed(0x9000000, 0x1000), kIntid, 7});
  EXPECT_EQ(node.name(), "serial@9000000");
  EXPECT_EQ(node.find("clocks")->value.size(), 8U);
  EXPECT_NE(node.find("compatible"), nullptr);
  EXPECT_NE(node.find("interrupts"), nullptr);
}

}  // namespace
}  // namespace tandem::devices
