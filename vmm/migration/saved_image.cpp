// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/saved_image.hpp"

namespace tandem::migration {

Result<Checksum> checksum_of_image(const SealedImage& image) {
  if (image.size() == 0) {
    return checksum_of({});
  }
  const MappedRegion mapping = TANDEM_TRY(image.map());
  return checksum_of(mapping.bytes());
}

}  // namespace tandem::migration
