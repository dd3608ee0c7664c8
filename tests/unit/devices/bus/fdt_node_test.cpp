// SPDX-License-Identifier: Apache-2.0
#include "devices/bus/fdt_node.hpp"

#include <gtest/gtest.h>

namespace tandem::devices {
namespace {

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> result;
  for (const int value : values) {
    result.push_back(static_cast<std::byte>(value));
  }
  return result;
}

TEST(FdtNodeTest, CellsAreBigEndian) {
  FdtNode node("x");
  node.add_cells("c", {0x01020304, 5});
  EXPECT_EQ(node.find("c")->value, bytes({1, 2, 3, 4, 0, 0, 0, 5}));
}

TEST(FdtNodeTest, StringsEndWithNul) {
  FdtNode node("x");
  node.add_strings("compatible", {"a", "b"});
  EXPECT_EQ(node.find("compatible")->value, bytes({'a', 0, 'b', 0}));
}

TEST(FdtNodeTest, RegHasTwoCellsEach) {
  FdtNode node("x");
  node.add_reg(GuestRange::fixed(0x1'00000002, 0x3));
  EXPECT_EQ(node.find("reg")->value, bytes({0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3}));
}

TEST(FdtNodeTest, AnSpiIsNumberedFromZero) {
  FdtNode node("x");
  add_spi(node, Intid::spi(1), IrqTrigger::kLevelHigh);
  EXPECT_EQ(node.find("interrupts")->value, bytes({0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 4}));
}

TEST(FdtNodeTest, UnitNameIsTheAddressInHex) {
  EXPECT_EQ(fdt_unit_name("pl011", GuestAddr(0x9000000)), "pl011@9000000");
}

}  // namespace
}  // namespace tandem::devices
