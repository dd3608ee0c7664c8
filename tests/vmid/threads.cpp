// SPDX-License-Identifier: Apache-2.0
// Runs the kernel's allocator of VMIDs by threads that stand for CPUs, and holds what they get to what hardware needs.
//
// usage: threads [--cpus N] [--vms N] [--bits N] [--switches N] [--seed N] [--flush local|broadcast] [--keep]
//
// Each thread loads and puts vCPUs of random VMs. A VM has any number of vCPUs; a CPU's TLB is the VM whose entries it
// holds under each id. With --keep CPUs go from one VM to the next without a put, as those do that switch processes.
// Exit status 1, and one line, for the first thing that is wrong.
#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/vmid/kernel_calls.h"

namespace {

constexpr int kMaxCpus = 16;
constexpr int kMaxIds = 256;
constexpr u64 kIndexMask = 0xffff;

struct Options {
  int cpus = 8;
  int vms = 40;
  u32 bits = 4;
  std::uint64_t switches = 1'000'000;
  std::uint64_t seed = 1;
  bool broadcast = false;
  bool keep = false;
};

Options options;
asid_info* allocator;
std::vector<atomic64_t> ids;  // of each VM

// What a CPU does, for others to look at: VM + 1 in the upper half, the index of its id in the lower; 0 in the host.
std::array<std::atomic<std::uint64_t>, kMaxCpus> running;
// VM + 1 whose entries the TLB of a CPU has under an index, 0 for none.
std::array<std::array<std::atomic<int>, kMaxIds>, kMaxCpus> tlb;

thread_local int this_cpu = 0;
thread_local std::uint64_t random_state = 1;

std::uint64_t random_number() {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

[[noreturn]] void fail(const char* what) {
  std::printf("VIOLATION: CPU %d: %s\n", this_cpu, what);
  std::fflush(stdout);
  std::_Exit(1);
}

/// Lets other CPUs come in between, more often than they would by themselves.
void between_steps() {
  const std::uint64_t number = random_number();
  if (number % 256 == 0) sched_yield();
  if (number % 8 == 1) {
    for (std::uint64_t i = 0; i < number % 256; i++) std::atomic_signal_fence(std::memory_order_seq_cst);
  }
}

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/// Under the lock: no two VMs have one id in a generation, and none has an id that cannot be.
void check_ids() {
  const u64 generation = env_read(calls_generation(allocator));
  std::array<bool, kMaxIds> taken{};
  for (const atomic64_t& place : ids) {
    const u64 id = __atomic_load_n(&place.counter, __ATOMIC_RELAXED);
    if ((id ^ generation) >> 16 != 0) continue;
    const u64 index = id & kIndexMask;
    if (index == 0) fail("id 0 was given out");
    if (index >= u64{1} << options.bits) fail("there was no free id after a rollover");
    if (taken[index]) fail("two VMs have one id in one generation");
    taken[index] = true;
  }
}

/// This CPU is in a guest from here: the TLB must have nothing of another VM, and no CPU another VM under this id.
void enter(int vm, u64 index) {
  std::atomic<int>& entry = tlb[this_cpu][index];
  const int owner = entry.load(std::memory_order_relaxed);
  if (owner != 0 && owner != vm + 1) fail("a guest is entered with another one's translations under its id");
  entry.store(vm + 1, std::memory_order_relaxed);
  const std::uint64_t mine = std::uint64_t(vm + 1) << 32 | index;
  running[this_cpu].store(mine);
  for (int cpu = 0; cpu < options.cpus; cpu++) {
    const std::uint64_t other = cpu == this_cpu ? 0 : running[cpu].load();
    if (other == 0) continue;
    if (other >> 32 != mine >> 32 && std::uint32_t(other) == index) fail("two CPUs run two VMs with one id");
    if (other >> 32 == mine >> 32 && std::uint32_t(other) != index) fail("two CPUs run one VM with two ids");
  }
}

void run_guest() {
  const std::uint64_t mine = running[this_cpu].load(std::memory_order_relaxed);
  for (std::uint64_t i = random_number() % 4; i > 0; i--) between_steps();
  // A flush by another CPU meanwhile does not keep entries out.
  tlb[this_cpu][std::uint32_t(mine)].store(int(mine >> 32), std::memory_order_relaxed);
}

void switch_vms(int cpu) {
  this_cpu = cpu;
  random_state = options.seed * 0x9e3779b97f4a7c15 + std::uint64_t(cpu) + 1;
  for (std::uint64_t i = options.switches / std::uint64_t(options.cpus); i > 0; i--) {
    const int vm = int(random_number() % std::uint64_t(options.vms));
    // What a CPU that keeps its VM runs until the next one is active counts as running no more: it has the id still,
    // but the next one may get it from another CPU only by a rollover, which reserves it.
    if (options.keep) running[cpu].store(0);
    calls_activate(allocator, &ids[vm]);
    enter(vm, __atomic_load_n(&ids[vm].counter, __ATOMIC_RELAXED) & kIndexMask);
    run_guest();
    if (options.keep) continue;
    running[cpu].store(0);
    calls_deactivate(allocator);
  }
}

std::uint64_t number_of(const char* text) {
  char* end = nullptr;
  const std::uint64_t number = std::strtoull(text, &end, 10);
  if (*text == '\0' || *end != '\0') {
    std::fprintf(stderr, "threads: not a number: %s\n", text);
    std::exit(2);
  }
  return number;
}

void parse(int argc, char** argv) {
  for (int i = 1; i < argc; i++) {
    const std::string name = argv[i];
    if (name == "--keep") {
      options.keep = true;
      continue;
    }
    const char* value = i + 1 < argc ? argv[++i] : "";
    if (name == "--cpus")
      options.cpus = int(number_of(value));
    else if (name == "--vms")
      options.vms = int(number_of(value));
    else if (name == "--bits")
      options.bits = u32(number_of(value));
    else if (name == "--switches")
      options.switches = number_of(value);
    else if (name == "--seed")
      options.seed = number_of(value);
    else if (name == "--flush")
      options.broadcast = std::strcmp(value, "broadcast") == 0;
    else
      std::exit((std::fprintf(stderr, "threads: unknown option %s\n", name.c_str()), 2));
  }
  const bool fits = options.cpus >= 1 && options.cpus <= kMaxCpus && options.bits <= 6 && options.vms >= 1 &&
                    options.cpus + 1 < 1 << options.bits;
  if (!fits) std::exit((std::fprintf(stderr, "threads: at most %d CPUs, 6 bits, more ids than CPUs\n", kMaxCpus), 2));
}

}  // namespace

u64 env_read(const atomic64_t* place) {
  between_steps();
  return __atomic_load_n(&place->counter, __ATOMIC_RELAXED);
}

void env_set(atomic64_t* place, u64 value) {
  between_steps();
  __atomic_store_n(&place->counter, value, __ATOMIC_RELAXED);
}

u64 env_exchange(atomic64_t* place, u64 value) {
  between_steps();
  return __atomic_exchange_n(&place->counter, value, __ATOMIC_ACQUIRE);
}

u64 env_compare_exchange(atomic64_t* place, u64 old, u64 value) {
  between_steps();
  __atomic_compare_exchange_n(&place->counter, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return old;
}

u64 env_add_return(atomic64_t* place, u64 value) {
  between_steps();
  return __atomic_add_fetch(&place->counter, value, __ATOMIC_RELAXED);
}

void env_lock() {
  between_steps();
  pthread_mutex_lock(&mutex);
}

void env_unlock() {
  check_ids();
  pthread_mutex_unlock(&mutex);
  between_steps();
}

int env_this_cpu() { return this_cpu; }
int env_cpus() { return options.cpus; }
void* env_allocate_zeroed(std::size_t size_bytes) { return std::calloc(1, size_bytes); }
void env_free(void* memory) { std::free(memory); }

void env_flush_cpu() {
  if (__atomic_load_n(&calls_active(allocator, this_cpu)->counter, __ATOMIC_RELAXED) != 0)
    fail("the TLB is flushed after the mark of the rollover is gone");
  for (auto& entry : tlb[this_cpu]) entry.store(0, std::memory_order_relaxed);
}

void env_flush_all() {
  for (auto& entries : tlb) {
    for (auto& entry : entries) entry.store(0, std::memory_order_relaxed);
  }
}

int main(int argc, char** argv) {
  parse(argc, argv);
  allocator = calls_new_allocator(options.bits, 1, options.broadcast);
  ids.resize(std::size_t(options.vms));
  std::vector<std::thread> threads;
  for (int cpu = 0; cpu < options.cpus; cpu++) threads.emplace_back(switch_vms, cpu);
  for (std::thread& thread : threads) thread.join();
  std::printf("%llu switches on %d CPUs among %d VMs, %u bits: %llu rollovers, %llu local and %llu broadcast flushes\n",
              static_cast<unsigned long long>(options.switches), options.cpus, options.vms, options.bits,
              static_cast<unsigned long long>(calls_rollovers(allocator)),
              static_cast<unsigned long long>(calls_local_flushes(allocator)),
              static_cast<unsigned long long>(calls_broadcast_flushes(allocator)));
  if (calls_rollovers(allocator) == 0) fail("there was no rollover");
  calls_delete_allocator(allocator);
  return 0;
}
