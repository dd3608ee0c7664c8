// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace tandem {

/// Writes what the data caches hold of `bytes` back to where every observer sees it: to the point of coherency. A guest that
/// maps memory as Device, or has its caches off, then reads what the host wrote. Where the processor keeps all observers
/// coherent by itself, as on x86, it does nothing.
/// @thread  any.
/// @spec    Arm DDI 0487, "DC CVAC, Data or unified Cache line Clean by VA to PoC"
void clean_to_coherency(std::span<const std::byte> bytes);

}  // namespace tandem
