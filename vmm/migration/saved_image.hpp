// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "vmm/lib/checksum/checksum.hpp"
#include "vmm/lib/sealed_image/sealed_image.hpp"

namespace tandem::migration {

/// A boot image as a snapshot gives it.
struct SavedImage {
  std::string role;  ///< "kernel" or "initrd".
  SealedImage image;
};

/// The checksum of all bytes of `image`.
Result<Checksum> checksum_of_image(const SealedImage& image);

}  // namespace tandem::migration
