// SPDX-License-Identifier: Apache-2.0
// Reads the flattened device tree (Devicetree Specification v0.4, "Flattened Devicetree (DTB) Format").
// A node is named by the offset of its FDT_BEGIN_NODE in the structure block.
#include "tests/guest/lib/payload.h"

enum { FDT_BEGIN_NODE = 1, FDT_END_NODE = 2, FDT_PROP = 3, FDT_NOP = 4 };

static uint32_t big_endian(const void* at) { return __builtin_bswap32(*(const uint32_t*)at); }
static uint32_t header(unsigned index) { return big_endian((const char*)entry.dtb + 4 * index); }
static const char* structure(void) { return (const char*)entry.dtb + header(2); }
static const char* strings(void) { return (const char*)entry.dtb + header(3); }
static int aligned(int offset) { return (offset + 3) & ~3; }

static bool same_text(const char* a, const char* b) { return strlen(a) == strlen(b) && memcmp(a, b, strlen(a)) == 0; }

uint32_t dt_total_bytes(void) { return header(1); }
uint32_t dt_cell(const void* property, unsigned index) { return big_endian((const char*)property + 4 * index); }

uint64_t dt_two_cells(const void* property, unsigned index) {
  return (uint64_t)dt_cell(property, index) << 32 | dt_cell(property, index + 1);
}

const char* dt_name(int node) { return structure() + node + 4; }

// Offset behind the token at `offset`, or kNoNode at the end of the tree.
static int next_token(int offset) {
  switch (big_endian(structure() + offset)) {
    case FDT_BEGIN_NODE:
      return aligned(offset + 4 + (int)strlen(structure() + offset + 4) + 1);
    case FDT_PROP:
      return aligned(offset + 12 + (int)big_endian(structure() + offset + 4));
    case FDT_END_NODE:
    case FDT_NOP:
      return offset + 4;
    default:
      return kNoNode;
  }
}

int dt_next_node(int after) {
  int offset = after == kNoNode ? 0 : next_token(after);
  while (offset != kNoNode && big_endian(structure() + offset) != FDT_BEGIN_NODE) {
    offset = next_token(offset);
  }
  return offset;
}

int dt_parent(int node) {
  int open[16];
  int depth = 0;
  for (int offset = 0; offset != kNoNode && offset < node; offset = next_token(offset)) {
    const uint32_t token = big_endian(structure() + offset);
    if (token == FDT_BEGIN_NODE && depth < 16) {
      open[depth++] = offset;
    } else if (token == FDT_END_NODE) {
      --depth;
    }
  }
  return depth > 0 ? open[depth - 1] : kNoNode;
}

const void* dt_property(int node, const char* name, unsigned* bytes) {
  if (node == kNoNode) {
    return NULL;
  }
  for (int offset = next_token(node); offset != kNoNode; offset = next_token(offset)) {
    const char* token = structure() + offset;
    if (big_endian(token) == FDT_BEGIN_NODE || big_endian(token) == FDT_END_NODE) {
      return NULL;
    }
    if (big_endian(token) == FDT_PROP && same_text(strings() + big_endian(token + 8), name)) {
      *bytes = big_endian(token + 4);
      return token + 12;
    }
  }
  return NULL;
}

// True if `property`, a list of NUL-terminated texts, has `wanted` in it.
static bool has_text(const char* property, unsigned bytes, const char* wanted) {
  for (unsigned at = 0; property != NULL && at < bytes; at += (unsigned)strlen(property + at) + 1) {
    if (same_text(property + at, wanted)) {
      return true;
    }
  }
  return false;
}

static int find_by_text(const char* property_name, const char* wanted, int after) {
  for (int node = dt_next_node(after); node != kNoNode; node = dt_next_node(node)) {
    unsigned bytes = 0;
    const char* property = dt_property(node, property_name, &bytes);
    if (has_text(property, bytes, wanted)) {
      return node;
    }
  }
  return kNoNode;
}

int dt_find_compatible(const char* compatible, int after) { return find_by_text("compatible", compatible, after); }
int dt_find_type(const char* device_type, int after) { return find_by_text("device_type", device_type, after); }

int dt_find_phandle(uint32_t phandle) {
  for (int node = dt_next_node(kNoNode); node != kNoNode; node = dt_next_node(node)) {
    unsigned bytes = 0;
    const void* property = dt_property(node, "phandle", &bytes);
    if (property != NULL && bytes == 4 && dt_cell(property, 0) == phandle) {
      return node;
    }
  }
  return kNoNode;
}

// Only nodes below the root: `/chosen`, `/pl011@9000000`.
int dt_find_path(const char* path) {
  for (int node = dt_next_node(kNoNode); node != kNoNode; node = dt_next_node(node)) {
    if (path[0] == '/' && same_text(dt_name(node), path + 1) && (node == 0 || dt_parent(node) == 0)) {
      return node;
    }
  }
  return kNoNode;
}

const char* command_line(void) {
  unsigned bytes = 0;
  const char* text = dt_property(dt_find_path("/chosen"), "bootargs", &bytes);
  return text == NULL ? "" : text;
}

static uint64_t number(const char* text) {
  uint64_t value = 0;
  for (; *text >= '0' && *text <= '9'; ++text) {
    value = 10 * value + (uint64_t)(*text - '0');
  }
  return value;
}

uint64_t argument(const char* name, uint64_t otherwise) {
  const size_t length = strlen(name);
  for (const char* word = command_line(); *word != '\0';) {
    if (memcmp(word, name, length) == 0 && word[length] == '=') {
      return number(word + length + 1);
    }
    while (*word != '\0' && *word != ' ') {
      ++word;
    }
    while (*word == ' ') {
      ++word;
    }
  }
  return otherwise;
}
