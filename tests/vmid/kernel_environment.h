// SPDX-License-Identifier: Apache-2.0
// What arch/arm64/mm/asid.c and asm/asid_alloc.h take from the kernel, for a program that runs them in user space.
// Whatever one CPU may see of another goes through a call, so that the program decides what happens in between.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t u32;
typedef uint64_t u64;
typedef struct {
  u64 counter;
} atomic64_t;
typedef struct {
  int refs;
} refcount_t;
typedef struct {
  char unused;
} raw_spinlock_t;

/// Memory that CPUs share without a lock.
u64 env_read(const atomic64_t* place);
void env_set(atomic64_t* place, u64 value);
u64 env_exchange(atomic64_t* place, u64 value);
u64 env_compare_exchange(atomic64_t* place, u64 old, u64 value);
u64 env_add_return(atomic64_t* place, u64 value);

/// The one lock there is.
void env_lock(void);
void env_unlock(void);

/// The CPU that the caller runs on, and how many there are.
int env_this_cpu(void);
int env_cpus(void);

void* env_allocate_zeroed(size_t size_bytes);
void env_free(void* memory);

#ifdef __cplusplus
}
#else

#define __percpu
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define unlikely(condition) __builtin_expect(!!(condition), 0)
#define BIT(bit) (1UL << (bit))
#define GFP_KERNEL 0

#define atomic64_read(place) env_read(place)
#define atomic64_set(place, value) env_set(place, value)
#define atomic64_xchg_acquire(place, value) env_exchange(place, value)
#define atomic64_cmpxchg_relaxed(place, old, value) env_compare_exchange(place, old, value)
#define atomic64_add_return_relaxed(value, place) env_add_return(place, value)
#define refcount_read(count) ((count)->refs)

#define raw_spin_lock_irqsave(lock, flags) ((void)(lock), (flags) = 0, env_lock())
#define raw_spin_unlock_irqrestore(lock, flags) ((void)(lock), (void)(flags), env_unlock())

#define this_cpu_ptr(variable) ((variable) + env_this_cpu())
#define per_cpu_ptr(variable, cpu) ((variable) + (cpu))
#define for_each_possible_cpu(cpu) for ((cpu) = 0; (cpu) < env_cpus(); (cpu)++)

#define BITS_PER_LONG 64
#define BITS_TO_LONGS(bits) (((bits) + BITS_PER_LONG - 1) / BITS_PER_LONG)

static inline unsigned long* bitmap_zalloc(unsigned long bits, int flags) {
  (void)flags;
  return env_allocate_zeroed(BITS_TO_LONGS(bits) * sizeof(long));
}

static inline void bitmap_free(unsigned long* map) { env_free(map); }

static inline void bitmap_copy(unsigned long* to, const unsigned long* from, unsigned long bits) {
  for (unsigned long i = 0; i < BITS_TO_LONGS(bits); i++) to[i] = from[i];
}

static inline void __set_bit(unsigned long bit, unsigned long* map) {
  map[bit / BITS_PER_LONG] |= BIT(bit % BITS_PER_LONG);
}

static inline bool __test_and_set_bit(unsigned long bit, unsigned long* map) {
  bool was_set = map[bit / BITS_PER_LONG] >> bit % BITS_PER_LONG & 1;
  __set_bit(bit, map);
  return was_set;
}

static inline unsigned long find_next_zero_bit(const unsigned long* map, unsigned long bits, unsigned long bit) {
  while (bit < bits && map[bit / BITS_PER_LONG] >> bit % BITS_PER_LONG & 1) bit++;
  return bit;
}

#endif
