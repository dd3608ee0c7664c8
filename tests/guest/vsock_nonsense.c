// SPDX-License-Identifier: Apache-2.0
// A driver that writes nonsense to the queues of the socket device: packets that make no sense, rings that are broken in
// every way, and plain garbage. Each time the device answers, drops it, or asks for a reset; and after a reset it works.
// Spec: virtio 1.2, "Split Virtqueues", "Socket Device"
#include "tests/guest/lib/payload.h"

enum {
  MagicValue = 0x00,
  DeviceID = 0x08,
  DriverFeatures = 0x20,
  DriverFeaturesSel = 0x24,
  QueueSel = 0x30,
  QueueNum = 0x38,
  QueueReady = 0x44,
  QueueNotify = 0x50,
  Status = 0x70,
  QueueDescLow = 0x80,
  QueueDriverLow = 0x90,
  QueueDeviceLow = 0xa0,
  Config = 0x100,
};
enum { kMagic = 0x74726976, kVsockId = 19, kDriverOk = 15, kFeaturesOk = 11, kNeedsReset = 64 };
enum {
  kReceive,
  kTransmit,
  kEvents,
  kQueues,
  kEntries = 16,
  kBufferBytes = 4096,
  kPatienceMs = 60000,
  kGarbageRounds = 100
};
enum { kNext = 1, kWrite = 2, kIndirect = 4 };
enum { kHostCid = 2, kHeaderBytes = 44, kStream = 1, kNobody = 7 };
enum { kOpRequest = 1, kOpRst = 3, kOpRw = 5, kOpCreditUpdate = 6, kOps = 8 };

struct Descriptor {
  uint64_t addr;
  uint32_t len;
  uint16_t flags;
  uint16_t next;
};
struct Available {
  uint16_t flags;
  volatile uint16_t index;
  uint16_t ring[kEntries];
};
struct Used {
  uint16_t flags;
  volatile uint16_t index;
  struct {
    uint32_t id;
    uint32_t len;
  } ring[kEntries];
};
struct Queue {
  _Alignas(16) struct Descriptor descriptors[kEntries];
  _Alignas(16) struct Available available;
  _Alignas(16) struct Used used;
  uint16_t seen;  // of `used`
  _Alignas(16) uint8_t buffers[kEntries][kBufferBytes];
};
struct Packet {
  uint64_t src_cid, dst_cid;
  uint32_t src_port, dst_port, len;
  uint16_t type, op;
  uint32_t flags, buf_alloc, fwd_cnt;
};

static struct Queue queues[kQueues];
static uintptr_t device;
static uint64_t cid;
static uint32_t seed = 1;

static uint32_t any(uint32_t below) {
  seed = seed * 1664525U + 1013904223U;
  return (uint32_t)(((uint64_t)seed * below) >> 32);
}

static bool find_device(void) {
  for (int node = dt_find_compatible("virtio,mmio", kNoNode); node != kNoNode;
       node = dt_find_compatible("virtio,mmio", node)) {
    unsigned bytes = 0;
    device = device_view(dt_two_cells(dt_property(node, "reg", &bytes), 0));
    if (read32(device + MagicValue) == kMagic && read32(device + DeviceID) == kVsockId) {
      return true;
    }
  }
  return false;
}

static bool needs_reset(void) { return (read32(device + Status) & kNeedsReset) != 0; }

static void set_address(unsigned reg, const volatile void* at) {
  write32(device + reg, (uint32_t)(uintptr_t)at);
  write32(device + reg + 4, (uint32_t)((uintptr_t)at >> 32));
}

static void notify(unsigned queue) {
  __asm__ volatile("dmb sy" ::: "memory");
  write32(device + QueueNotify, queue);
}

// Makes a buffer available. `index` is that of its descriptor.
static void submit(struct Queue* queue, uint16_t index) {
  queue->available.ring[queue->available.index % kEntries] = index;
  __asm__ volatile("dmb sy" ::: "memory");
  ++queue->available.index;
}

static void give_back(uint16_t index) {
  struct Queue* queue = &queues[kReceive];
  queue->descriptors[index] = (struct Descriptor){(uintptr_t)queue->buffers[index], kBufferBytes, kWrite, 0};
  submit(queue, index);
}

// Resets the device and sets it up, without buffers for what it has to say.
static void set_up_without_buffers(void) {
  write32(device + Status, 0);
  memset(queues, 0, sizeof queues);
  write32(device + Status, 3);
  write32(device + DriverFeaturesSel, 0);
  write32(device + DriverFeatures, 1);
  write32(device + DriverFeaturesSel, 1);
  write32(device + DriverFeatures, 1);
  write32(device + Status, kFeaturesOk);
  for (unsigned index = 0; index < kQueues; ++index) {
    write32(device + QueueSel, index);
    write32(device + QueueNum, kEntries);
    set_address(QueueDescLow, queues[index].descriptors);
    set_address(QueueDriverLow, &queues[index].available);
    set_address(QueueDeviceLow, &queues[index].used);
    write32(device + QueueReady, 1);
  }
  write32(device + Status, kDriverOk);
}

static void set_up(void) {
  set_up_without_buffers();
  for (uint16_t index = 0; index < kEntries; ++index) {
    give_back(index);
  }
  notify(kReceive);
}

// Waits until something comes of `queue`, and takes note of it. @return the descriptor; none: -1.
static int take(struct Queue* queue) {
  const uint64_t end = now() + ticks_of_ms(kPatienceMs);
  while (queue->used.index == queue->seen) {
    if (needs_reset() || now() > end) {
      return -1;
    }
  }
  __asm__ volatile("dmb sy" ::: "memory");
  return (int)queue->used.ring[queue->seen++ % kEntries].id;
}

static void send(const struct Packet* packet, uint32_t bytes) {
  struct Queue* queue = &queues[kTransmit];
  memcpy(queue->buffers[0], packet, sizeof *packet < bytes ? sizeof *packet : bytes);
  queue->descriptors[0] = (struct Descriptor){(uintptr_t)queue->buffers[0], bytes, 0, 0};
  submit(queue, 0);
  notify(kTransmit);
  (void)take(queue);
}

static struct Packet packet_of(uint16_t op) {
  return (struct Packet){.src_cid = cid,
                         .dst_cid = kHostCid,
                         .src_port = 1000,
                         .dst_port = kNobody,
                         .type = kStream,
                         .op = op,
                         .buf_alloc = 65536};
}

// Whether a connection to a port that nobody serves is refused, as it has to be.
static bool is_alive(void) {
  struct Packet request = packet_of(kOpRequest);
  request.src_port = 4242;
  send(&request, kHeaderBytes);
  while (true) {
    const int index = take(&queues[kReceive]);
    if (index < 0 || index >= kEntries) {
      return false;
    }
    struct Packet answer;
    memcpy(&answer, queues[kReceive].buffers[index], kHeaderBytes);
    give_back((uint16_t)index);
    notify(kReceive);
    if (answer.dst_port == request.src_port) {
      return answer.op == kOpRst && answer.src_cid == kHostCid && answer.dst_cid == cid && answer.src_port == kNobody;
    }
  }
}

static void expect_alive(const char* what) {
  const bool asked = needs_reset();
  report(!asked && is_alive(), "vsock_nonsense", "%s: the device goes on", what);
}

static void send_packets(void) {
  set_up();
  struct Packet packet = packet_of(kOpRw);
  packet.len = 0xffffffff;
  send(&packet, kHeaderBytes);
  expect_alive("a length far beyond the packet");
  send(&packet, 1);
  send(&packet, kHeaderBytes - 1);
  expect_alive("a header that is cut off");
  packet = packet_of(kOpRequest);
  packet.src_cid = 0xdeadbeefcafe;
  send(&packet, kHeaderBytes);
  packet = packet_of(kOpRequest);
  packet.dst_cid = 99;
  send(&packet, kHeaderBytes);
  expect_alive("CIDs of others");
  for (unsigned op = 0; op < 0x10000; op += op < kOps ? 1 : 0x1fff) {
    packet = packet_of((uint16_t)op);
    packet.type = (uint16_t)any(4);
    send(&packet, kHeaderBytes);
    for (; queues[kReceive].used.index != queues[kReceive].seen; notify(kReceive)) {
      give_back((uint16_t)take(&queues[kReceive]));
    }
  }
  expect_alive("operations and types that do not exist");
  for (unsigned count = 0; count < 64; ++count) {
    packet = packet_of((uint16_t)(count % 2 == 0 ? kOpRequest : kOpCreditUpdate));
    packet.buf_alloc = count % 3 == 0 ? 0xffffffff : any(0xffffffff);
    packet.fwd_cnt = any(0xffffffff);
    packet.flags = any(0xffffffff);
    send(&packet, kHeaderBytes);
    for (; queues[kReceive].used.index != queues[kReceive].seen; notify(kReceive)) {
      give_back((uint16_t)take(&queues[kReceive]));
    }
  }
  expect_alive("credit that makes no sense");
}

static void break_with(unsigned queue, struct Descriptor descriptor) {
  queues[queue].descriptors[0] = descriptor;
  submit(&queues[queue], 0);
}

static void loop_to_itself(unsigned queue) {
  break_with(queue,
             (struct Descriptor){(uintptr_t)queues[queue].buffers[0], 8, kNext | (queue == kTransmit ? 0 : kWrite), 0});
}
static void point_nowhere(unsigned queue) {
  break_with(queue, (struct Descriptor){0xffffffffffff0000, 0xffffffff, queue == kTransmit ? 0 : kWrite, 0});
}
static void point_at_the_device(unsigned queue) {
  break_with(queue, (struct Descriptor){device - device_view(0), 4096, queue == kTransmit ? 0 : kWrite, 0});
}
static void leave_the_table(unsigned queue) {
  break_with(queue, (struct Descriptor){(uintptr_t)queues[queue].buffers[0], 8, kNext, 0xffff});
}
static void be_indirect(unsigned queue) {
  break_with(queue, (struct Descriptor){(uintptr_t)queues[queue].buffers[0], 15, kIndirect, 0});
}
static void name_no_descriptor(unsigned queue) { submit(&queues[queue], 0x7fff); }
static void run_ahead(unsigned queue) { queues[queue].available.index += 1000; }

static const struct {
  const char* name;
  void (*apply)(unsigned queue);
} kFaults[] = {
    {"a descriptor that leads to itself", loop_to_itself},
    {"a buffer outside of all memory", point_nowhere},
    {"a buffer in a device", point_at_the_device},
    {"a chain that leaves the table", leave_the_table},
    {"an indirect table that was not offered", be_indirect},
    {"a head that does not exist", name_no_descriptor},
    {"an index that runs ahead", run_ahead},
};

static void break_rings(void) {
  for (unsigned fault = 0; fault < sizeof kFaults / sizeof kFaults[0]; ++fault) {
    for (unsigned queue = kReceive; queue <= kTransmit; ++queue) {
      // Its own buffers are what the device looks at once it has something to say.
      set_up_without_buffers();
      kFaults[fault].apply(queue);
      notify(queue);
      const struct Packet request = packet_of(kOpRequest);
      if (queue == kReceive) {
        send(&request, kHeaderBytes);
      }
      const uint64_t end = now() + ticks_of_ms(kPatienceMs);
      while (!needs_reset() && now() < end) {
      }
      report(needs_reset(), "vsock_nonsense", "%s, in queue %u: the device asks for a reset", kFaults[fault].name,
             queue);
      set_up();
      expect_alive("after it");
    }
  }
}

static void write_garbage(void) {
  unsigned resets = 0;
  for (unsigned round = 0; round < kGarbageRounds; ++round) {
    set_up();
    const unsigned broken = any(kQueues);
    uint8_t* bytes = (uint8_t*)&queues[broken];
    const unsigned extent = offsetof(struct Queue, used);
    for (unsigned count = any(64) + 1; count != 0; --count) {
      const uint32_t at = any(extent);
      const bool is_address =
          at < offsetof(struct Queue, available) && at % sizeof(struct Descriptor) < sizeof(uint64_t);
      // An answer of the device could land anywhere, this program included.
      if (broken == kTransmit || !is_address) {
        bytes[at] = (uint8_t)any(256);
      }
    }
    struct Packet packet = packet_of((uint16_t)any(kOps));
    uint8_t* header = (uint8_t*)&packet;
    header[any(kHeaderBytes)] = (uint8_t)any(256);
    memcpy(queues[kTransmit].buffers[0], &packet, kHeaderBytes);
    queues[kTransmit].descriptors[0] = (struct Descriptor){(uintptr_t)queues[kTransmit].buffers[0], kHeaderBytes, 0, 0};
    submit(&queues[kTransmit], 0);
    for (unsigned queue = 0; queue <= kQueues; ++queue) {
      notify(queue);
    }
    resets += needs_reset();
  }
  set_up();
  report(is_alive(), "vsock_nonsense", "%u rounds of garbage: the device works, after %u resets that it asked for",
         kGarbageRounds, resets);
}

void payload_main(void) {
  report(find_device(), "vsock_nonsense", "there is a socket device");
  cid = read32(device + Config);
  send_packets();
  break_rings();
  write_garbage();
}
