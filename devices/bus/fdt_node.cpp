// SPDX-License-Identifier: Apache-2.0
#include "devices/bus/fdt_node.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::devices {
namespace {

void append_cell(std::vector<std::byte>& bytes, uint32_t cell) {
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    bytes.push_back(static_cast<std::byte>(cell >> shift));
  }
}

void append_text(std::vector<std::byte>& bytes, std::string_view text) {
  const auto raw = std::as_bytes(std::span(text));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
  bytes.push_back(std::byte{0});
}

}  // namespace

FdtNode& FdtNode::add_empty(std::string name) {
  properties_.push_back({std::move(name), {}});
  return *this;
}

FdtNode& FdtNode::add_cells(std::string name, std::initializer_list<uint32_t> cells) {
  return add_cells(std::move(name), std::span(cells.begin(), cells.size()));
}

FdtNode& FdtNode::add_cells(std::string name, std::span<const uint32_t> cells) {
  Property property{std::move(name), {}};
  for (const uint32_t cell : cells) {
    append_cell(property.value, cell);
  }
  properties_.push_back(std::move(property));
  return *this;
}

FdtNode& FdtNode::add_u64(std::string name, uint64_t value) {
  return add_cells(std::move(name), {static_cast<uint32_t>(value >> 32), static_cast<uint32_t>(value)});
}

FdtNode& FdtNode::add_string(std::string name, std::string_view text) { return add_strings(std::move(name), {text}); }

FdtNode& FdtNode::add_strings(std::string name, std::initializer_list<std::string_view> texts) {
  Property property{std::move(name), {}};
  for (const std::string_view text : texts) {
    append_text(property.value, text);
  }
  properties_.push_back(std::move(property));
  return *this;
}

FdtNode& FdtNode::add_bytes(std::string name, std::span<const std::byte> bytes) {
  properties_.push_back({std::move(name), {bytes.begin(), bytes.end()}});
  return *this;
}

FdtNode& FdtNode::add_reg(GuestRange range) {
  const auto high = [](uint64_t value) { return static_cast<uint32_t>(value >> 32); };
  const auto low = [](uint64_t value) { return static_cast<uint32_t>(value); };
  const uint64_t base = range.base().value();
  return add_cells("reg", {high(base), low(base), high(range.size()), low(range.size())});
}

FdtNode& FdtNode::add_child(FdtNode child) {
  children_.push_back(std::move(child));
  return *this;
}

const FdtNode::Property* FdtNode::find(std::string_view property) const {
  const auto it = std::ranges::find(properties_, property, &Property::name);
  return it == properties_.end() ? nullptr : &*it;
}

void add_spi(FdtNode& node, Intid intid, IrqTrigger trigger) {
  constexpr uint32_t kSpi = 0;
  node.add_cells("interrupts", {kSpi, intid.value() - Intid::kFirstSpi, static_cast<uint32_t>(trigger)});
}

std::string fdt_unit_name(std::string_view kind, GuestAddr addr) { return fmt::format("{}@{:x}", kind, addr.value()); }

}  // namespace tandem::devices
