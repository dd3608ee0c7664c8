// SPDX-License-Identifier: Apache-2.0
#include "vmm/boot/fdt_builder.hpp"

#include <gtest/gtest.h>
#include <libfdt.h>

#include "vmm/boot/boot_layout.hpp"

namespace tandem::boot {
namespace {

using devices::FdtNode;

/// A tree with every kind of property, nesting and siblings.
FdtNode sample_tree() {
  FdtNode uart("serial@9000000");
  uart.add_strings("compatible", {"arm,pl011", "arm,primecell"}).add_reg(GuestRange::fixed(0x900'0000, 0x1000));
  FdtNode bus("bus");
  bus.add_string("compatible", "simple-bus").add_u32("#address-cells", 2).add_u32("#size-cells", 2);
  bus.add_empty("ranges").add_child(std::move(uart));
  FdtNode memory("memory@40000000");
  memory.add_string("device_type", "memory").add_reg(GuestRange::fixed(0x4000'0000, 0x1'0000'0000));
  FdtNode root("");
  root.add_string("compatible", "linux,dummy-virt").add_u32("#address-cells", 2).add_u32("#size-cells", 2);
  root.add_child(std::move(memory)).add_child(std::move(bus));
  return root;
}

/// Reads a blob back, with libfdt, into the form that it was made from.
FdtNode read_node(const void* blob, int offset) {
  FdtNode node(fdt_get_name(blob, offset, nullptr));
  int property = 0;
  fdt_for_each_property_offset(property, blob, offset) {
    const char* name = nullptr;
    int length = 0;
    const void* const value = fdt_getprop_by_offset(blob, property, &name, &length);
    node.add_bytes(name, {static_cast<const std::byte*>(value), static_cast<size_t>(length)});
  }
  int child = 0;
  fdt_for_each_subnode(child, blob, offset) { node.add_child(read_node(blob, child)); }
  return node;
}

void expect_equal(const FdtNode& actual, const FdtNode& expected) {
  EXPECT_EQ(actual.name(), expected.name());
  ASSERT_EQ(actual.properties().size(), expected.properties().size()) << expected.name();
  for (size_t index = 0; index < expected.properties().size(); ++index) {
    EXPECT_EQ(actual.properties()[index].name, expected.properties()[index].name);
    EXPECT_EQ(actual.properties()[index].value, expected.properties()[index].value);
  }
  ASSERT_EQ(actual.children().size(), expected.children().size()) << expected.name();
  for (size_t index = 0; index < expected.children().size(); ++index) {
    expect_equal(actual.children()[index], expected.children()[index]);
  }
}

TEST(FdtBuilderTest, BlobReadsBackAsTheTree) {
  const auto blob = build_fdt(sample_tree());
  ASSERT_TRUE(blob);
  ASSERT_EQ(fdt_check_full(blob->data(), blob->size()), 0);
  EXPECT_EQ(fdt_totalsize(blob->data()), blob->size());
  expect_equal(read_node(blob->data(), 0), sample_tree());
}

TEST(FdtBuilderTest, SameTreeGivesSameBytes) {
  EXPECT_EQ(build_fdt(sample_tree()).value(), build_fdt(sample_tree()).value());
}

TEST(FdtBuilderTest, AnEmptyTreeIsValid) {
  const auto blob = build_fdt(FdtNode(""));
  ASSERT_TRUE(blob);
  EXPECT_EQ(fdt_check_full(blob->data(), blob->size()), 0);
}

FdtNode tree_with_property_of(size_t size_bytes) {
  FdtNode root("");
  root.add_bytes("p", std::vector<std::byte>(size_bytes));
  return root;
}

TEST(FdtBuilderTest, ATreeNearTheLimitIsBuilt) {
  const auto blob = build_fdt(tree_with_property_of(kMaxFdtBytes - 1024));
  ASSERT_TRUE(blob);
  EXPECT_LE(blob->size(), kMaxFdtBytes);
}

TEST(FdtBuilderTest, ATreeBeyondTheLimitIsRefused) {
  const auto blob = build_fdt(tree_with_property_of(kMaxFdtBytes));
  ASSERT_FALSE(blob);
  EXPECT_EQ(blob.error().code(), Errc::kOutOfRange);
}

BootSeeds fixed_seeds() {
  BootSeeds seeds{};
  seeds.rng.fill(std::byte{0x5a});
  seeds.kaslr = 0x0102030405060708;
  return seeds;
}

std::string text_of(const FdtNode& node, const char* property) {
  const auto* const found = node.find(property);
  return found == nullptr ? "absent" : std::string(reinterpret_cast<const char*>(found->value.data()));
}

uint64_t number_of(const FdtNode& node, const char* property) {
  const auto* const found = node.find(property);
  if (found == nullptr || found->value.size() != 8) {
    ADD_FAILURE() << property;
    return 0;
  }
  return fdt64_ld(reinterpret_cast<const fdt64_t*>(found->value.data()));
}

TEST(ChosenNodeTest, EverythingIsSaid) {
  const FdtNode node = make_chosen_node({.cmdline = "console=ttyAMA0 -- init --flag",
                                         .stdout_path = "/pl011@9000000",
                                         .seeds = fixed_seeds(),
                                         .initrd = GuestRange::fixed(0x1'4000'0000, 0x12345)});
  EXPECT_EQ(text_of(node, "bootargs"), "console=ttyAMA0 -- init --flag");
  EXPECT_EQ(text_of(node, "stdout-path"), "/pl011@9000000");
  EXPECT_EQ(node.find("rng-seed")->value, std::vector<std::byte>(64, std::byte{0x5a}));
  EXPECT_EQ(number_of(node, "kaslr-seed"), 0x0102030405060708U);
  EXPECT_EQ(number_of(node, "linux,initrd-start"), 0x1'4000'0000U);
  EXPECT_EQ(number_of(node, "linux,initrd-end"), 0x1'4001'2345U);
}

TEST(ChosenNodeTest, WhatIsNotThereIsNotSaid) {
  const FdtNode node = make_chosen_node({.cmdline = "", .stdout_path = "", .seeds = fixed_seeds(), .initrd = {}});
  EXPECT_EQ(node.find("stdout-path"), nullptr);
  EXPECT_EQ(node.find("linux,initrd-start"), nullptr);
  EXPECT_EQ(node.find("linux,initrd-end"), nullptr);
}

FdtNode tree_with_initrd(GuestRange initrd) {
  FdtNode root("");
  root.add_string("compatible", "test");
  root.add_child(make_chosen_node({.cmdline = "x", .stdout_path = "", .seeds = fixed_seeds(), .initrd = initrd}));
  return root;
}

TEST(SetInitrdRangeTest, TheTreeIsTheOneThatHadItFromTheStart) {
  const auto range = GuestRange::fixed(0x1'4000'0000, 0x12345);
  auto blob = build_fdt(tree_with_initrd(GuestRange::fixed(0x4000'0000, 0x1000)));
  ASSERT_TRUE(blob);
  set_initrd_range(*blob, range);
  EXPECT_EQ(*blob, build_fdt(tree_with_initrd(range)).value());
}

TEST(BootSeedsTest, TwoDrawsDiffer) {
  const BootSeeds first = BootSeeds::draw().value();
  const BootSeeds second = BootSeeds::draw().value();
  EXPECT_NE(first.rng, second.rng);
  EXPECT_NE(first.kaslr, second.kaslr);
}

}  // namespace
}  // namespace tandem::boot
