// SPDX-License-Identifier: Apache-2.0
#include "pv/host/bpf_vcpu_state.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "pv/bpf/vcpu_activity.h"
#include "pv/host/bpf_program.h"
#include "pv/host/bpf_refusal.hpp"

namespace tandem::pv {
namespace {

constexpr size_t kActivityBytes = kMaxVcpuStateRecords * sizeof(uint64_t);

/// The program and its maps, in the kernel and not attached yet.
struct LoadedProgram {
  UniqueFd on_switch;
  UniqueFd tie_thread;
  UniqueFd threads;
  UniqueFd records;
  UniqueFd activity;
  UniqueFd owner;
};

/// Descriptors 0 to 2, where this process has none open: the loader takes 0 for "no descriptor".
class ReservedStreams {
 public:
  ReservedStreams() {
    for (UniqueFd& stream : streams_) {
      UniqueFd opened(open("/dev/null", O_RDONLY | O_CLOEXEC));
      if (opened.get() > STDERR_FILENO) {
        return;
      }
      stream = std::move(opened);
    }
  }

 private:
  UniqueFd streams_[STDERR_FILENO + 1];
};

Result<LoadedProgram> load_program() {
  tandem_bpf_program program{};
  if (const int status = tandem_bpf_load(&program); status < 0) {
    return std::unexpected(explain_refusal(BpfHost::current(), "load the BPF program", -status));
  }
  return LoadedProgram{.on_switch = UniqueFd(program.on_switch),
                       .tie_thread = UniqueFd(program.tie_thread),
                       .threads = UniqueFd(program.threads),
                       .records = UniqueFd(program.records),
                       .activity = UniqueFd(program.activity),
                       .owner = UniqueFd(program.owner)};
}

Result<UniqueFd> attach(const LoadedProgram& program) {
  const int link = tandem_bpf_attach(program.on_switch.get());
  if (link < 0) {
    return std::unexpected(explain_refusal(BpfHost::current(), "attach the BPF program to sched_switch", -link));
  }
  return UniqueFd(link);
}

}  // namespace

BpfVcpuState::BpfVcpuState(UniqueFd link, UniqueFd tie_program, MappedRegion region, MappedRegion records,
                           MappedRegion activity)
    : link_(std::move(link)),
      tie_program_(std::move(tie_program)),
      region_(std::move(region)),
      records_(std::move(records)),
      activity_(std::move(activity)) {}

Result<std::unique_ptr<BpfVcpuState>> BpfVcpuState::create() {
  const BpfHost host = BpfHost::current();
  if (const auto version = parse_kernel_release(host.release); version && *version < kFirstKernelForBpf) {
    return std::unexpected(explain_refusal(host, "", 0));
  }
  const ReservedStreams streams;
  LoadedProgram program = TANDEM_TRY(load_program());
  const auto map = [](const UniqueFd& fd, size_t size_bytes, int protection) {
    return with_context(MappedRegion::map(size_bytes, protection, MAP_SHARED, fd.get()),
                        "map the BPF program's records");
  };
  MappedRegion region = TANDEM_TRY(map(program.records, kVcpuStateRegionBytes, PROT_READ));
  MappedRegion records = TANDEM_TRY(map(program.records, kVcpuStateRegionBytes, PROT_READ | PROT_WRITE));
  MappedRegion activity = TANDEM_TRY(map(program.activity, kActivityBytes, PROT_READ | PROT_WRITE));
  UniqueFd link = TANDEM_TRY(attach(program));
  return std::unique_ptr<BpfVcpuState>(new BpfVcpuState(std::move(link), std::move(program.tie_thread),
                                                        std::move(region), std::move(records), std::move(activity)));
}

std::atomic_ref<uint64_t> BpfVcpuState::word(unsigned vcpu) const {
  TANDEM_ASSERT(vcpu < kMaxVcpuStateRecords, "a machine has no more vCPUs than the region has records");
  return std::atomic_ref(reinterpret_cast<uint64_t*>(activity_.bytes().data())[vcpu]);
}

Result<void> BpfVcpuState::attach_thread(unsigned vcpu) {
  if (vcpu >= kMaxVcpuStateRecords) {
    return fail(Errc::kOutOfRange, "there is no record for vCPU {}: {} at most", vcpu, kMaxVcpuStateRecords);
  }
  // Busy: another task of this CPU is at its own storage, and may be one that sleeps for memory.
  constexpr int kAttempts = 1000;
  int status = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    status = tandem_bpf_tie_thread(tie_program_.get(), {.vcpu = vcpu, .attach = 1});
    if (status != -EBUSY) {
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (status < 0) {
    return std::unexpected(Error::from_errno(fmt::format("tie the thread of vCPU {} to its record", vcpu), -status));
  }
  return {};
}

void BpfVcpuState::detach_thread(unsigned vcpu) {
  // A refusal does no harm: the thread's storage goes when the thread ends, and nobody else can have it.
  static_cast<void>(tandem_bpf_tie_thread(tie_program_.get(), {.vcpu = vcpu, .attach = 0}));
}

void BpfVcpuState::activate(unsigned vcpu) { word(vcpu).fetch_or(TANDEM_VCPU_ACTIVE); }

void BpfVcpuState::deactivate(unsigned vcpu) {
  // From the first line on the program begins no write to the record, and it is through with the one that it may have
  // begun when WRITING is gone: a few instructions later, with interrupts off, on another CPU. A vCPU's own thread never
  // sees WRITING.
  word(vcpu).fetch_and(~uint64_t{TANDEM_VCPU_ACTIVE});
  while ((word(vcpu).load() & TANDEM_VCPU_WRITING) != 0) {
    std::this_thread::yield();
  }
  auto* const record = reinterpret_cast<pv_vcpu_state_record*>(records_.bytes().data()) + vcpu;
  std::atomic_ref(record->preempted).store(0, std::memory_order_relaxed);
  std::atomic_ref(record->preempt_count).store(0, std::memory_order_relaxed);
}

}  // namespace tandem::pv
