// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "devices/bus/irq_line.hpp"
#include "vmm/lib/checked_range/checked_range.hpp"

namespace tandem::devices {

/// A device-tree node as plain data; `vmm/boot` turns the tree into a blob. (Devicetree Specification v0.4)
class FdtNode {
 public:
  struct Property {
    std::string name;
    std::vector<std::byte> value;  ///< Big-endian, as in the blob.
  };

  explicit FdtNode(std::string name) : name_(std::move(name)) {}

  FdtNode& add_empty(std::string name);
  FdtNode& add_u32(std::string name, uint32_t value) { return add_cells(std::move(name), {value}); }
  FdtNode& add_cells(std::string name, std::initializer_list<uint32_t> cells);
  FdtNode& add_cells(std::string name, std::span<const uint32_t> cells);
  FdtNode& add_u64(std::string name, uint64_t value);
  FdtNode& add_string(std::string name, std::string_view text);
  FdtNode& add_strings(std::string name, std::initializer_list<std::string_view> texts);
  FdtNode& add_bytes(std::string name, std::span<const std::byte> bytes);
  /// `reg` with one (address, size) pair under #address-cells = #size-cells = 2.
  FdtNode& add_reg(GuestRange range);
  FdtNode& add_child(FdtNode child);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<Property>& properties() const { return properties_; }
  [[nodiscard]] const std::vector<FdtNode>& children() const { return children_; }
  /// The property, or nullptr.
  [[nodiscard]] const Property* find(std::string_view property) const;

 private:
  std::string name_;
  std::vector<Property> properties_;
  std::vector<FdtNode> children_;
};

/// How an interrupt is signalled; values of the last cell of `interrupts`. (Linux binding "arm,gic-v3")
enum class IrqTrigger : uint8_t { kEdgeRising = 1, kLevelHigh = 4, kLevelLow = 8 };

/// What the board tells a device so that it can write its own node.
struct FdtPlacement {
  GuestRange window;
  Intid intid;             ///< An SPI.
  uint32_t clock_phandle;  ///< A fixed clock, for parts that name `apb_pclk`.
};

/// `interrupts` of one SPI. @pre intid is an SPI.
void add_spi(FdtNode& node, Intid intid, IrqTrigger trigger);

/// "<kind>@<address in hex>".
std::string fdt_unit_name(std::string_view kind, GuestAddr addr);

}  // namespace tandem::devices
