// SPDX-License-Identifier: Apache-2.0
// Explores every order of steps in which CPUs can go through the kernel's allocator of VMIDs, which is compiled as it is.
//
// usage: explorer [--cpus N] [--vms N] [--ids N] [--states N] [--flush local|broadcast] [--keep]
//                 [--fresh] [--oldest-read N]
//
// A step is one access to what CPUs share without a lock; to take one, the function that a CPU is in is run again from
// its start, or from where it took the lock, with what it got before. A read that no lock orders may give anything that
// the CPU has not seen to be out of date: an older generation, an older id of the VM, the CPU's own id after a rollover
// took it away. --fresh rules that out. A CPU that a rollover has marked reads a generation that is at most --oldest-read
// [1] older than the present one; others are not further behind by themselves. --keep lets CPUs go from VM to VM without a put, as between processes.
// The search is complete, for any number of rollovers, if it ends before it has seen --states states.
// Exit status 1, and one line, for the first state in which something is wrong.
#include <array>
#include <bit>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/vmid/explored_state.hpp"
#include "tests/vmid/kernel_calls.h"
#include "tests/vmid/seen_states.hpp"

namespace tandem::vmid {
namespace {

constexpr u32 kBits = 3;
constexpr int kGenerationShift = 16;

struct Options {
  int cpus = 2;
  int vms = 4;
  int ids = 3;
  std::uint64_t states = 1'000'000'000;
  bool broadcast = false;
  bool keep = false;
  bool fresh = false;
  int oldest_read = 1;
};

Options options;

u64 to_kernel(Id id) { return id == 0 ? 0 : u64(generation_of(id)) << kGenerationShift | u64(index_of(id)); }

/// One step of one CPU: what the functions of kernel_environment.h work on.
class Step {
 public:
  /// @param choice which of the values that a read may give
  Step(const State& state, int cpu, int choice) : state(state), cpu_(cpu), choice_(choice) {}

  State state;
  const char* violation = nullptr;
  int choices = 1;
  bool blocked = false;
  std::jmp_buf stop;

  Cpu& cpu() { return state.cpus[cpu_]; }
  int number() const { return cpu_; }
  Vm& vm() { return state.vms[cpu().vm]; }
  bool holds_lock() const { return state.lock_holder == cpu_ + 1; }

  /// Where the function stands at an access. The one that is new is taken; at the one after it the function ends.
  /// @return true if the access is one of the past, whose result is in the log
  bool is_repeated() {
    const bool repeated = position_++ < cpu().steps;
    if (repeated) return true;
    if (taken_) std::longjmp(stop, 1);
    taken_ = true;
    return false;
  }

  /// The result of a past access, or records that of the new one.
  Id logged() const { return state.cpus[cpu_].log[position_ - 1]; }
  Id log(Id value) {
    if (position_ > kMaxLog) return fail("the log of steps is too short"), value;
    cpu().log[position_ - 1] = value;
    cpu().steps = std::uint8_t(position_);
    return value;
  }

  /// Chooses among values.
  Id choose(const std::array<Id, 32>& values, int count) {
    choices = count;
    return values[choice_];
  }

  void fail(const char* what) {
    if (violation == nullptr) violation = what;
  }

  void enter_slow_part() {
    cpu().phase = cpu().phase == Phase::kActivating ? Phase::kActivatingSlow : Phase::kDeactivatingSlow;
    cpu().steps = 0;
    cpu().log = {};
  }

  // What the holder of the lock has changed, as it reads it again.
  int own_generation = 0;
  Id own_id = 0;

 private:
  int cpu_;
  int choice_;
  int position_ = 0;
  bool taken_ = false;
};

Step* step;
asid_info* allocator;
atomic64_t id_of_vm;  // stands for that of the VM which the CPU is about
calls_locked locked;

Id from_kernel(u64 value) {
  if (value == 0) return 0;
  const u64 index = value & ((u64{1} << kGenerationShift) - 1);
  if (index > kIndexMask) {
    step->fail("there was no free id after a rollover");
    return kNone;
  }
  return make_id(int(value >> kGenerationShift), int(index));
}

int cpu_of(const atomic64_t* place) {
  for (int cpu = 0; cpu < options.cpus; cpu++) {
    if (place == calls_active(allocator, cpu)) return cpu;
  }
  return -1;
}

// --- what a CPU sees

u64 read_generation() {
  if (step->holds_lock()) return u64(step->own_generation) << kGenerationShift;
  if (step->is_repeated()) return to_kernel(step->logged());
  std::array<Id, 32> values{};
  int count = 0;
  const int oldest = options.fresh ? step->state.generation : step->cpu().seen;
  for (int generation = step->state.generation; generation >= oldest; generation--)
    values[count++] = make_id(generation, 0);
  const Id value = step->log(step->choose(values, count));
  step->cpu().seen = std::uint8_t(generation_of(value));
  return to_kernel(value);
}

u64 read_id() {
  if (step->holds_lock()) return to_kernel(step->own_id);
  if (step->is_repeated()) return to_kernel(step->logged());
  const bool older = step->vm().previous_id != 0 && !options.fresh;
  return to_kernel(step->log(step->choose({step->vm().id, step->vm().previous_id}, older ? 2 : 1)));
}

u64 read_active(int cpu) {
  if (step->is_repeated()) return to_kernel(step->logged());
  const Cpu& one = step->state.cpus[cpu];
  const bool older = cpu == step->number() && one.active == 0 && one.own_active != 0 && !options.fresh;
  return to_kernel(step->log(step->choose({one.active, one.own_active}, older ? 2 : 1)));
}

// --- what holds, whoever looks

/// @pre a CPU is about to be in a guest under what is its VM's id now
void check_guest(Step& now) {
  const int index = index_of(now.vm().id);
  const int vm = now.cpu().vm;
  if (now.cpu().active != 0 && index_of(now.cpu().active) != index) now.fail("the id that is active is not the VM's");
  for (int other = 0; other < options.vms; other++) {
    if (other != vm && (now.cpu().tlb[other] >> index & 1) != 0)
      now.fail("a guest is entered with another one's translations under its id");
  }
  for (int cpu = 0; cpu < options.cpus; cpu++) {
    const Cpu& one = now.state.cpus[cpu];
    if (cpu == now.number() || !one.in_guest) continue;
    if (one.guest_vm != vm && one.guest_index == index) now.fail("two CPUs run two VMs with one id");
    if (one.guest_vm == vm && one.guest_index != index) now.fail("two CPUs run one VM with two ids");
  }
}

void check_new_id(Step& now, Id id) {
  if (index_of(id) == 0) now.fail("id 0 was given out");
  if (index_of(id) > options.ids) now.fail("an id was given out that the template reserves");
  for (int vm = 0; vm < options.vms; vm++) {
    if (vm != now.cpu().vm && now.state.vms[vm].id == id) now.fail("two VMs have one id in one generation");
  }
  for (int cpu = 0; cpu < options.cpus; cpu++) {
    const Cpu& one = now.state.cpus[cpu];
    if (cpu != now.number() && one.in_guest && one.guest_vm == now.cpu().vm && one.guest_index != index_of(id))
      now.fail("the id of a VM that runs has changed");
  }
}

void check_reserved(Step& now) {
  const bool renewed = now.cpu().phase == Phase::kActivatingSlow && now.vm().id != now.state.lock_id;
  if (!renewed || now.state.lock_id == 0) return;
  for (int cpu = 0; cpu < options.cpus; cpu++) {
    if (now.state.cpus[cpu].reserved == now.state.lock_id) now.fail("a reserved copy of an id was not renewed with it");
  }
}

void flush(State& state, int cpu) {
  Cpu& one = state.cpus[cpu];
  one.tlb = {};
  if (one.in_guest) one.tlb[one.guest_vm] = std::uint8_t(1 << one.guest_index);
}

// --- the lock

void take_lock() {
  State& state = step->state;
  if (state.lock_holder != 0) {
    step->blocked = true;
    std::longjmp(step->stop, 1);
  }
  state.lock_holder = std::uint8_t(step->number() + 1);
  state.lock_generation = state.generation;
  state.lock_id = step->cpu().phase == Phase::kActivatingSlow ? step->vm().id : Id{0};
  step->cpu().seen = state.generation;
  step->cpu().own_active = 0;
  step->log(0);
}

void load_locked() {
  const State& state = step->state;
  step->own_generation = state.lock_generation;
  step->own_id = state.lock_id;
  locked.map = state.map;
  locked.cur_idx = state.cur_idx;
  for (int cpu = 0; cpu < options.cpus; cpu++) {
    locked.reserved[cpu] = to_kernel(state.cpus[cpu].reserved);
    locked.flush_pending[cpu] = state.cpus[cpu].flush_pending;
  }
  calls_set_locked(allocator, &locked);
}

void release_lock() {
  State& state = step->state;
  calls_get_locked(allocator, &locked);
  state.map = std::uint8_t(locked.map);
  state.cur_idx = std::uint8_t(locked.cur_idx);
  for (int cpu = 0; cpu < options.cpus; cpu++) {
    state.cpus[cpu].reserved = from_kernel(locked.reserved[cpu]);
    state.cpus[cpu].flush_pending = locked.flush_pending[cpu];
  }
  check_reserved(*step);
  state.lock_holder = 0;
  state.lock_generation = 0;
  state.lock_id = 0;
  step->log(0);
}

// --- steps

void call() {
  switch (step->cpu().phase) {
    case Phase::kActivating:
      return calls_activate(allocator, &id_of_vm);
    case Phase::kActivatingSlow:
      return calls_activate_slow(allocator, &id_of_vm);
    case Phase::kDeactivating:
      return calls_deactivate(allocator);
    case Phase::kDeactivatingSlow:
      return calls_deactivate_slow(allocator);
    default:
      return;
  }
}

/// The function has returned: the CPU is in the guest, or in the host.
void finish(Step& now) {
  Cpu& one = now.cpu();
  const bool activated = one.phase == Phase::kActivating || one.phase == Phase::kActivatingSlow;
  one.phase = activated ? Phase::kInGuest : Phase::kIdle;
  one.steps = 0;
  one.log = {};
  if (!activated) return;
  check_guest(now);
  one.in_guest = true;
  one.guest_vm = one.vm;
  one.guest_index = std::uint8_t(index_of(now.vm().id));
  one.tlb[one.vm] |= std::uint8_t(1 << one.guest_index);
}

/// Runs the function that the CPU is in until it has taken one more step.
void take(Step& now) {
  step = &now;
  if (setjmp(now.stop) != 0) return;
  call();
  finish(now);
}

// --- the search

class Search {
 public:
  /// @return the exit status
  int run() {
    State first;
    first.map = std::uint8_t(1 | ~((2 << options.ids) - 1));
    add(first);
    while (!next_.empty()) {
      std::swap(now_, next_);
      next_.clear();
      for (const State& state : now_) {
        for (int cpu = 0; cpu < options.cpus; cpu++) follow(state, cpu);
        if (violation_ != nullptr) return report_violation();
        if (seen_.size() >= options.states) return report("no violation up to this bound");
      }
      depth_++;
    }
    return report("complete: no violation, for any number of rollovers");
  }

 private:
  void follow(const State& state, int cpu) {
    const Cpu& one = state.cpus[cpu];
    if (one.phase == Phase::kIdle || (one.phase == Phase::kInGuest && options.keep)) {
      for (int vm = 0; vm < options.vms; vm++) {
        State begun = state;
        begun.cpus[cpu].phase = Phase::kActivating;
        begun.cpus[cpu].vm = std::uint8_t(vm);
        take_each(begun, cpu);
      }
    } else if (one.phase == Phase::kInGuest) {
      State begun = state;
      begun.cpus[cpu].phase = Phase::kDeactivating;
      begun.cpus[cpu].in_guest = false;
      begun.cpus[cpu].guest_index = 0;
      take_each(begun, cpu);
    } else {
      take_each(state, cpu);
    }
  }

  void take_each(const State& state, int cpu) {
    int choices = 1;
    for (int choice = 0; choice < choices; choice++) {
      Step now(state, cpu, choice);
      take(now);
      choices = now.choices;
      if (now.violation != nullptr) violation_ = now.violation;
      if (!now.blocked) add(now.state);
    }
  }

  void add(State state) {
    canonicalize(state, options.cpus, options.vms, options.oldest_read);
    if (seen_.insert(state)) next_.push_back(state);
  }

  int report(const char* outcome) const {
    std::printf("%d CPUs, %d VMs, %d ids, %s flush%s%s: %zu states, depth %d, %s\n", options.cpus, options.vms,
                options.ids, options.broadcast ? "broadcast" : "local", options.keep ? ", no put" : "",
                options.fresh ? ", fresh reads" : "", seen_.size(), depth_, outcome);
    return 0;
  }

  int report_violation() const {
    std::printf("VIOLATION at depth %d, %zu states: %s\n", depth_, seen_.size(), violation_);
    return 1;
  }

  SeenStates seen_;
  std::vector<State> now_;
  std::vector<State> next_;
  const char* violation_ = nullptr;
  int depth_ = 0;
};

std::uint64_t number_of(const char* text) {
  char* end = nullptr;
  const std::uint64_t number = std::strtoull(text, &end, 10);
  if (*text != '\0' && *end == '\0') return number;
  std::fprintf(stderr, "explorer: not a number: %s\n", text);
  std::exit(2);
}

void parse(int argc, char** argv) {
  for (int i = 1; i < argc; i++) {
    const std::string name = argv[i];
    if (name == "--keep" || name == "--fresh") {
      (name == "--keep" ? options.keep : options.fresh) = true;
      continue;
    }
    const char* value = i + 1 < argc ? argv[++i] : "";
    if (name == "--cpus")
      options.cpus = int(number_of(value));
    else if (name == "--vms")
      options.vms = int(number_of(value));
    else if (name == "--ids")
      options.ids = int(number_of(value));
    else if (name == "--states")
      options.states = number_of(value);
    else if (name == "--oldest-read")
      options.oldest_read = int(number_of(value));
    else if (name == "--flush")
      options.broadcast = std::strcmp(value, "broadcast") == 0;
    else
      std::exit((std::fprintf(stderr, "explorer: unknown option %s\n", name.c_str()), 2));
  }
  const bool fits = options.cpus >= 1 && options.cpus <= kMaxCpus && options.vms >= 1 && options.vms <= kMaxVms &&
                    options.ids > options.cpus && options.ids <= kIndexMask;
  if (!fits) std::exit((std::fprintf(stderr, "explorer: 1 to 3 CPUs, 1 to 6 VMs, more ids than CPUs, at most 7\n"), 2));
}

}  // namespace
}  // namespace tandem::vmid

using namespace tandem::vmid;

u64 env_read(const atomic64_t* place) {
  if (allocator == nullptr) return place->counter;
  if (place == calls_generation(allocator)) return read_generation();
  return place == &id_of_vm ? read_id() : read_active(cpu_of(place));
}

void env_set(atomic64_t* place, u64 value) {
  if (allocator == nullptr) {
    place->counter = value;
    return;
  }
  const Id id = from_kernel(value);
  const bool repeated = step->is_repeated();
  if (place == &id_of_vm) step->own_id = id;
  if (repeated) return;
  step->log(0);
  if (place == &id_of_vm) {
    check_new_id(*step, id);
    step->vm().previous_id = step->vm().id;
    step->vm().id = id;
  } else {
    step->cpu().active = id;
    step->cpu().own_active = id;
  }
}

u64 env_exchange(atomic64_t* place, u64 value) {
  if (step->is_repeated()) return to_kernel(step->logged());
  return to_kernel(step->log(std::exchange(step->state.cpus[cpu_of(place)].active, from_kernel(value))));
}

u64 env_compare_exchange(atomic64_t*, u64 old, u64 value) {
  if (step->is_repeated()) return to_kernel(step->logged());
  Cpu& one = step->cpu();
  const Id was = step->log(one.active);
  if (to_kernel(was) == old) one.active = one.own_active = from_kernel(value);
  return to_kernel(was);
}

u64 env_add_return(atomic64_t*, u64 value) {
  const int more = int(value >> kGenerationShift);
  step->own_generation += more;
  if (!step->is_repeated()) {
    step->log(0);
    step->state.generation = std::uint8_t(step->state.generation + more);
    step->cpu().seen = step->state.generation;
  }
  return u64(step->own_generation) << kGenerationShift;
}

void env_lock() {
  const bool in_slow_part =
      step->cpu().phase == Phase::kActivatingSlow || step->cpu().phase == Phase::kDeactivatingSlow;
  if (!in_slow_part) {
    step->enter_slow_part();
    std::longjmp(step->stop, 1);
  }
  if (!step->is_repeated()) take_lock();
  load_locked();
}

void env_unlock() {
  if (!step->is_repeated()) release_lock();
}

void env_flush_cpu() {
  if (step->is_repeated()) return;
  step->log(0);
  if (step->cpu().active != 0) step->fail("the TLB is flushed after the mark of the rollover is gone");
  flush(step->state, step->number());
}

void env_flush_all() {
  if (step->is_repeated()) return;
  step->log(0);
  for (int cpu = 0; cpu < options.cpus; cpu++) flush(step->state, cpu);
}

int env_this_cpu() { return step->number(); }
int env_cpus() { return options.cpus; }
void* env_allocate_zeroed(std::size_t size_bytes) { return std::calloc(1, size_bytes); }
void env_free(void* memory) { std::free(memory); }

int main(int argc, char** argv) {
  parse(argc, argv);
  allocator = calls_new_allocator(kBits, 1 | ~((u64{2} << options.ids) - 1), options.broadcast);
  return Search().run();
}
