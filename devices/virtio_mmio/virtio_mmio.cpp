// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_mmio/virtio_mmio.hpp"

#include <array>
#include <utility>

#include "devices/virtio_mmio/virtio_mmio_regs.hpp"
#include "vmm/lib/bits/bits.hpp"

namespace tandem::devices {

using namespace virtio_mmio;

namespace {

static_assert(VirtioMmio::doorbell_offset() == QueueNotify);

constexpr uint64_t kTransportFeatures = kVirtioFVersion1 | kVirtioFIndirectDesc | kVirtioFEventIdx;
constexpr uint32_t kDriverStatus = ACKNOWLEDGE | DRIVER | DRIVER_OK | FEATURES_OK | FAILED;
constexpr uint32_t kInterrupts = kUsedBufferNotification | kConfigurationChangeNotification;

/// One of the two 32-bit words of a 64-bit value; word 2 and up are zero.
uint32_t word_of(uint64_t value, uint32_t word) { return word > 1 ? 0 : static_cast<uint32_t>(value >> (32 * word)); }
void set_word(uint64_t& value, uint32_t word, uint32_t bits) {
  const unsigned shift = 32 * word;
  value = (value & ~(uint64_t{0xffff'ffff} << shift)) | (uint64_t{bits} << shift);
}

std::expected<void, BadAccess> check_register_access(MmioAccess access) {
  if (!is_aligned(access.offset, access.width_bytes)) {
    return std::unexpected(BadAccess::kAlignment);
  }
  if (access.width_bytes != 4) {
    return std::unexpected(BadAccess::kWidth);
  }
  return {};
}

VirtioQueueStateV1 saved_form(const SplitQueue::State& state) {
  const auto& [size, ready, desc_addr, driver_addr, device_addr, next_avail, next_used] = state;
  return {.size = size,
          .ready = ready,
          .desc_addr = desc_addr,
          .driver_addr = driver_addr,
          .device_addr = device_addr,
          .next_avail = next_avail,
          .next_used = next_used};
}

SplitQueue::State runtime_form(const VirtioQueueStateV1& saved) {
  const auto& [size, ready, desc_addr, driver_addr, device_addr, next_avail, next_used] = saved;
  return {.size = size,
          .ready = ready,
          .desc_addr = desc_addr,
          .driver_addr = driver_addr,
          .device_addr = device_addr,
          .next_avail = next_avail,
          .next_used = next_used};
}

}  // namespace

VirtioMmio::VirtioMmio(std::string name, IrqLine irq, VirtioDevice& device, const GuestMemory& memory,
                       DeviceExecutor& executor)
    : name_(std::move(name)), irq_(irq), device_(device), memory_(memory), executor_(executor) {
  for (const uint16_t max_size : device.queue_sizes()) {
    queues_.emplace_back(memory, max_size);
  }
  setups_.resize(queues_.size());
  notify_posted_.resize(queues_.size());
}

// Registers

MmioRead VirtioMmio::read(MmioAccess access) {
  if (access.offset >= Config) {
    return read_config(access);
  }
  if (const auto ok = check_register_access(access); !ok) {
    return std::unexpected(ok.error());
  }
  return read_register(access.offset);
}

MmioWrite VirtioMmio::write(MmioAccess access, uint64_t value) {
  if (access.offset >= Config) {
    write_config(access, value);
    return {};
  }
  if (const auto ok = check_register_access(access); !ok) {
    return ok;
  }
  return write_register(access.offset, static_cast<uint32_t>(value));
}

MmioRead VirtioMmio::read_register(uint64_t offset) const {
  const bool queue_exists = state_.queue_sel < queues_.size();
  switch (offset) {
    case MagicValue:
      return kMagicValue;
    case Version:
      return kVersion;
    case DeviceID:
      return device_.device_id();
    case VendorID:
      return kVendorID;
    case DeviceFeatures:
      return word_of(offered_features(), state_.device_features_sel);
    case QueueNumMax:
      return queue_exists ? queues_[state_.queue_sel].max_size() : 0;
    case QueueReady:
      return queue_exists && queues_[state_.queue_sel].is_ready() ? 1 : 0;
    case InterruptStatus:
      return state_.interrupt_status;
    case Status:
      return state_.status;
    case SHMLenLow:
    case SHMLenHigh:
    case SHMBaseLow:
    case SHMBaseHigh:
      return kNoSharedMemory;
    case ConfigGeneration:
      return state_.config_generation;
    case DeviceFeaturesSel:
    case DriverFeatures:
    case DriverFeaturesSel:
    case QueueSel:
    case QueueNum:
    case QueueNotify:
    case InterruptACK:
    case QueueDescLow:
    case QueueDescHigh:
    case QueueDriverLow:
    case QueueDriverHigh:
    case QueueDeviceLow:
    case QueueDeviceHigh:
    case SHMSel:
      return std::unexpected(BadAccess::kWriteOnly);
    default:
      return std::unexpected(BadAccess::kNoRegister);
  }
}

MmioWrite VirtioMmio::write_register(uint64_t offset, uint32_t value) {
  switch (offset) {
    case DeviceFeaturesSel:
      state_.device_features_sel = value;
      break;
    case DriverFeatures:
      write_driver_features(value);
      break;
    case DriverFeaturesSel:
      state_.driver_features_sel = value;
      break;
    case QueueSel:
      state_.queue_sel = value;
      break;
    case QueueNotify:
      if (value < queues_.size()) {
        post_notify(static_cast<uint16_t>(value));
      }
      break;
    case InterruptACK:
      state_.interrupt_status &= ~value;
      break;
    case Status:
      write_status(value);
      break;
    case SHMSel:  // there is none to select
      break;
    default:
      if (!write_queue_register(offset, value)) {
        return std::unexpected(read_register(offset) ? BadAccess::kReadOnly : BadAccess::kNoRegister);
      }
  }
  return {};
}

bool VirtioMmio::write_queue_register(uint64_t offset, uint32_t value) {
  SplitQueue::State ignored;
  const bool can_be_set_up = state_.queue_sel < queues_.size() && !queues_[state_.queue_sel].is_ready();
  SplitQueue::State& setup = can_be_set_up ? setups_[state_.queue_sel] : ignored;
  switch (offset) {
    case QueueNum:
      // 0 is refused later, as every other size that the queue cannot have.
      setup.size = value <= kMaxQueueSize ? static_cast<uint16_t>(value) : uint16_t{0};
      return true;
    case QueueReady:
      write_queue_ready((value & 1) != 0);
      return true;
    case QueueDescLow:
    case QueueDescHigh:
      set_word(setup.desc_addr, offset == QueueDescHigh, value);
      return true;
    case QueueDriverLow:
    case QueueDriverHigh:
      set_word(setup.driver_addr, offset == QueueDriverHigh, value);
      return true;
    case QueueDeviceLow:
    case QueueDeviceHigh:
      set_word(setup.device_addr, offset == QueueDeviceHigh, value);
      return true;
    default:
      return false;
  }
}

uint64_t VirtioMmio::read_config(MmioAccess access) {
  std::array<std::byte, 8> bytes{};
  device_.read_config(access.offset - Config, std::span(bytes).first(access.width_bytes));
  return load_le<uint64_t>(bytes);
}

void VirtioMmio::write_config(MmioAccess access, uint64_t value) {
  std::array<std::byte, 8> bytes{};
  store_le(std::span<std::byte>(bytes), value);
  device_.write_config(access.offset - Config, std::span(bytes).first(access.width_bytes));
}

// Initialisation by the driver

uint64_t VirtioMmio::offered_features() const { return device_.device_features() | kTransportFeatures; }

bool VirtioMmio::accepts(uint64_t driver_features) const {
  return (driver_features & ~offered_features()) == 0 && (driver_features & kVirtioFVersion1) != 0;
}

bool VirtioMmio::is_active() const { return has_status(DRIVER_OK) && !has_status(DEVICE_NEEDS_RESET); }

void VirtioMmio::write_driver_features(uint32_t value) {
  if (!has_status(FEATURES_OK) && state_.driver_features_sel <= 1) {
    set_word(state_.driver_features, state_.driver_features_sel, value);
  }
}

void VirtioMmio::write_status(uint32_t value) {
  if (value == 0) {
    if (const auto done = reset(); !done) {
      set_needs_reset(done.error().message());
    }
    return;
  }
  uint32_t added = value & kDriverStatus & ~state_.status;
  if ((added & FEATURES_OK) != 0 && !accepts(state_.driver_features)) {
    added &= ~FEATURES_OK;
  }
  if (((state_.status | added) & FEATURES_OK) == 0) {
    added &= ~DRIVER_OK;
  }
  state_.status |= added;
  if ((added & DRIVER_OK) != 0 && is_active()) {
    activate();
    post_notify_all();  // for drivers that ring before DRIVER_OK
  }
}

void VirtioMmio::activate() {
  device_.activate({.features = state_.driver_features, .memory = memory_, .queues = queues_, .transport = *this});
}

void VirtioMmio::write_queue_ready(bool ready) {
  if (state_.queue_sel >= queues_.size() || ready == queues_[state_.queue_sel].is_ready()) {
    return;
  }
  if (ready) {
    enable_queue();
  } else {
    disable_queue();
  }
}

void VirtioMmio::enable_queue() {
  if (!has_status(FEATURES_OK) || has_status(DEVICE_NEEDS_RESET)) {
    return;  // what the rings look like is not agreed on, or the device is broken
  }
  SplitQueue::State setup = setups_[state_.queue_sel];
  setup.ready = true;
  if (const auto done = queues_[state_.queue_sel].configure(setup, state_.driver_features); !done) {
    set_needs_reset(text_of(done.error()));
  }
}

void VirtioMmio::disable_queue() {
  SplitQueue& queue = queues_[state_.queue_sel];
  if (!is_active()) {
    queue.reset();
    return;
  }
  // Nothing of the queue may be in flight when the driver reads back that it is no longer ready.
  Result<void> done = device_.pause();
  queue.reset();
  if (done) {
    done = device_.resume();
  }
  if (!done) {
    set_needs_reset(done.error().message());
  }
  post_notify_all();  // the pause left the other queues where they were
}

// Notifications

void VirtioMmio::notify(uint16_t queue) {
  if (is_active() && !paused_ && queue < queues_.size() && queues_[queue].is_ready()) {
    device_.notify(queue);
  }
}

void VirtioMmio::post_notify(uint16_t queue) {
  if (!notify_posted_[queue]) {
    notify_posted_[queue] = true;
    executor_.post([this, queue] {
      notify_posted_[queue] = false;
      notify(queue);
    });
  }
}

void VirtioMmio::post_notify_all() {
  for (uint16_t queue = 0; queue < queue_count(); ++queue) {
    post_notify(queue);
  }
}

void VirtioMmio::raise(uint32_t interrupt) {
  state_.interrupt_status |= interrupt;
  irq_.pulse();
}

void VirtioMmio::notify_used(uint16_t /*queue*/) { raise(kUsedBufferNotification); }

void VirtioMmio::notify_config() {
  ++state_.config_generation;
  if (has_status(DRIVER_OK)) {
    raise(kConfigurationChangeNotification);
  }
}

void VirtioMmio::set_needs_reset(std::string_view why) {
  if (has_status(DEVICE_NEEDS_RESET)) {
    return;
  }
  state_.status |= DEVICE_NEEDS_RESET;
  if (const uint64_t count = resets_needed_.count(); count != 0) {
    log::warn("{} needs a reset by its driver: {} (time {})", name_, why, count);
  }
  if (has_status(DRIVER_OK)) {
    raise(kConfigurationChangeNotification);
  }
}

// Life cycle

Result<void> VirtioMmio::reset() {
  const auto done = device_.reset();  // first: it may still use the queues
  for (SplitQueue& queue : queues_) {
    queue.reset();
  }
  setups_.assign(setups_.size(), {});
  state_ = {};
  return done;
}

Result<void> VirtioMmio::pause() {
  paused_ = true;
  return device_.pause();
}

Result<void> VirtioMmio::resume() {
  TANDEM_TRY(device_.resume());
  paused_ = false;
  post_notify_all();
  return {};
}

Result<StateRecord> VirtioMmio::save() {
  StateRecord device = TANDEM_TRY(device_.save());
  const auto& [status, device_features_sel, driver_features_sel, driver_features, queue_sel, interrupt_status,
               config_generation] = state_;
  VirtioMmioStateV1 saved{.status = status,
                          .device_features_sel = device_features_sel,
                          .driver_features_sel = driver_features_sel,
                          .driver_features = driver_features,
                          .queue_sel = queue_sel,
                          .interrupt_status = interrupt_status,
                          .config_generation = config_generation,
                          .queues = {},
                          .device_kind = std::move(device.kind),
                          .device_version = device.version,
                          .device_payload = std::move(device.payload)};
  for (size_t index = 0; index < queues_.size(); ++index) {
    const SplitQueue& queue = queues_[index];
    saved.queues.push_back(saved_form(queue.is_ready() ? queue.state() : setups_[index]));
  }
  return save_state(std::move(saved));
}

Result<void> VirtioMmio::restore(const StateRecord& record) {
  TANDEM_TRY(reset());
  VirtioMmioStateV1 saved = TANDEM_TRY(load_state<VirtioMmioStateV1>(record));
  TANDEM_TRY(check(saved));
  TANDEM_TRY(restore_queues(saved));
  auto& [status, device_features_sel, driver_features_sel, driver_features, queue_sel, interrupt_status,
         config_generation, queues, device_kind, device_version, device_payload] = saved;
  TANDEM_TRY(device_.restore(
      {.kind = std::move(device_kind), .version = device_version, .payload = std::move(device_payload)}));
  state_ = {.status = status,
            .device_features_sel = device_features_sel,
            .driver_features_sel = driver_features_sel,
            .driver_features = driver_features,
            .queue_sel = queue_sel,
            .interrupt_status = interrupt_status,
            .config_generation = config_generation};
  if (is_active()) {
    activate();
  }
  return {};
}

Result<void> VirtioMmio::check(const VirtioMmioStateV1& saved) const {
  const bool features_ok = (saved.status & FEATURES_OK) != 0;
  if ((saved.status & ~(kDriverStatus | DEVICE_NEEDS_RESET)) != 0 || (saved.interrupt_status & ~kInterrupts) != 0 ||
      ((saved.status & DRIVER_OK) != 0 && !features_ok)) {
    return fail(Errc::kCorrupt, "{}: impossible status {:#x}, {:#x}", name_, saved.status, saved.interrupt_status);
  }
  if (features_ok && !accepts(saved.driver_features)) {
    return fail(Errc::kCorrupt, "{}: the driver uses features {:#x}, of which only {:#x} are offered here", name_,
                saved.driver_features, offered_features());
  }
  if (saved.queues.size() != queues_.size()) {
    return fail(Errc::kCorrupt, "{}: {} queues where {} are due", name_, saved.queues.size(), queues_.size());
  }
  return {};
}

Result<void> VirtioMmio::restore_queues(const VirtioMmioStateV1& saved) {
  for (size_t index = 0; index < queues_.size(); ++index) {
    const SplitQueue::State state = runtime_form(saved.queues[index]);
    if (state.ready && (saved.status & FEATURES_OK) == 0) {
      return fail(Errc::kCorrupt, "{}: queue {} is ready before features are agreed on", name_, index);
    }
    if (!state.ready && (state.next_avail != 0 || state.next_used != 0)) {
      return fail(Errc::kCorrupt, "{}: queue {} was used before it was ready", name_, index);
    }
    if (const auto done = queues_[index].configure(state, saved.driver_features); !done) {
      return fail(Errc::kCorrupt, "{}: queue {}: {}", name_, index, text_of(done.error()));
    }
    setups_[index] = {.size = state.size,
                      .ready = false,
                      .desc_addr = state.desc_addr,
                      .driver_addr = state.driver_addr,
                      .device_addr = state.device_addr,
                      .next_avail = 0,
                      .next_used = 0};
  }
  return {};
}

// Description

FdtNode VirtioMmio::describe(const FdtPlacement& placement) {
  FdtNode node(fdt_unit_name("virtio_mmio", placement.window.base()));
  node.add_string("compatible", "virtio,mmio");
  node.add_reg(placement.window);
  add_spi(node, placement.intid, IrqTrigger::kEdgeRising);
  node.add_empty("dma-coherent");
  return node;
}

}  // namespace tandem::devices
