// SPDX-License-Identifier: Apache-2.0
#include "vmm/boot/kernel_image.hpp"

#include <array>
#include <optional>
#include <string_view>

#include "vmm/boot/decompress.hpp"
#include "vmm/lib/size_text/size_text.hpp"

namespace tandem::boot {
namespace {

constexpr std::string_view kAccepted = "accepted are an arm64 Image, a gzip'd Image and an EFI zboot Image";

using Bytes = std::span<const std::byte>;

std::unexpected<Error> not_a_kernel(const std::string& label, Bytes head) {
  const std::string format = describe_format(head);
  return format.empty() ? fail(Errc::kInvalidArgument, "{}: no arm64 Image header; {}", label, kAccepted)
                        : fail(Errc::kInvalidArgument, "{}: this is {}; {}", label, format, kAccepted);
}

std::unexpected<Error> too_long(const std::string& label, uint64_t max_bytes) {
  return fail(Errc::kOutOfRange, "{}: more than the {} that a kernel may have", label, format_size(max_bytes));
}

/// How many bytes of an Image that has `available` are to be kept.
Result<uint64_t> bytes_to_keep(const RegularFile& file, Bytes head, const Arm64ImageHeader& header,
                               uint64_t available) {
  const auto extent = pe_file_extent(head);
  if (extent && *extent > available) {
    return fail(Errc::kCorrupt, "{}: cut off: {} of {} bytes", file.label(), available, *extent);
  }
  return header.image_size_bytes == 0 ? available : std::min(available, header.image_size_bytes);
}

Result<KernelImage> load_plain(const RegularFile& file, Bytes head, const Arm64ImageHeader& header,
                               uint64_t max_bytes) {
  const uint64_t kept = TANDEM_TRY(bytes_to_keep(file, head, header, file.size()));
  if (kept > max_bytes) {
    return too_long(file.label(), max_bytes);
  }
  SealedImageWriter writer = TANDEM_TRY(SealedImageWriter::create("tandem-kernel"));
  writer.expect(kept);
  TANDEM_TRY(writer.append_file(file, 0, kept));
  SealedImage image = TANDEM_TRY(std::move(writer).seal());
  return KernelImage{KernelImage::Container::kImage, header, std::move(image)};
}

/// Takes a decompressed Image piece by piece, and stops the decompression as soon as it turns out to be none.
class DecompressedKernel {
 public:
  DecompressedKernel(std::string label, SealedImageWriter writer, uint64_t max_bytes)
      : label_(std::move(label)), writer_(std::move(writer)), max_bytes_(max_bytes) {}

  Result<void> take(Bytes piece) {
    if (!header_) {
      header_ = parse_arm64_image(piece);
      extent_bytes_ = pe_file_extent(piece).value_or(0);
      if (!header_) {
        return not_a_kernel(label_, piece);
      }
    }
    total_bytes_ += piece.size();
    const uint64_t end = header_->image_size_bytes == 0 ? UINT64_MAX : header_->image_size_bytes;
    const auto wanted = piece.first(std::min<uint64_t>(piece.size(), end - writer_.size()));
    if (wanted.size() > max_bytes_ - writer_.size() || total_bytes_ > kMaxStreamFactor * max_bytes_) {
      return too_long(label_, max_bytes_);
    }
    return writer_.append(wanted);
  }

  Result<KernelImage> finish(KernelImage::Container container) && {
    if (!header_) {
      return fail(Errc::kInvalidArgument, "{}: nothing; {}", label_, kAccepted);
    }
    if (total_bytes_ < extent_bytes_) {
      return fail(Errc::kCorrupt, "{}: cut off: {} of {} bytes", label_, total_bytes_, extent_bytes_);
    }
    SealedImage image = TANDEM_TRY(std::move(writer_).seal());
    return KernelImage{container, *header_, std::move(image)};
  }

 private:
  // What follows the end of an Image is dropped, but has to be decompressed: it is bounded as well.
  static constexpr uint64_t kMaxStreamFactor = 2;

  std::string label_;
  SealedImageWriter writer_;
  uint64_t max_bytes_;
  std::optional<Arm64ImageHeader> header_;
  uint64_t extent_bytes_ = 0;
  uint64_t total_bytes_ = 0;
};

struct Payload {
  KernelImage::Container container;
  std::string label;  ///< Start of errors about what is inside.
  Result<void> (*decompress)(const FilePart&, const ByteSink&);
  FilePart part;
};

Result<KernelImage> load_compressed(const Payload& payload, uint64_t max_bytes) {
  SealedImageWriter writer = TANDEM_TRY(SealedImageWriter::create("tandem-kernel"));
  DecompressedKernel kernel(payload.label, std::move(writer), max_bytes);
  TANDEM_TRY(payload.decompress(payload.part, [&kernel](Bytes piece) { return kernel.take(piece); }));
  return std::move(kernel).finish(payload.container);
}

Result<KernelImage> load_zboot(const RegularFile& file, const ZbootHeader& header, uint64_t max_bytes) {
  const FilePart part{file, header.payload_offset, header.payload_size_bytes};
  if (part.offset > file.size() || part.size_bytes > file.size() - part.offset) {
    return fail(Errc::kCorrupt, "{}: cut off: {} of {} bytes", file.label(), file.size(),
                part.offset + part.size_bytes);
  }
  const std::string label = fmt::format("{}: EFI zboot Image: its payload", file.label());
  if (header.compression == "gzip") {
    return load_compressed({KernelImage::Container::kZboot, label, &decompress_gzip, part}, max_bytes);
  }
  if (header.compression == "zstd" || header.compression == "zstd22") {
    return load_compressed({KernelImage::Container::kZboot, label, &decompress_zstd, part}, max_bytes);
  }
  return fail(Errc::kUnsupported, "{}: this is an EFI zboot Image compressed with '{}'; supported are gzip and zstd",
              file.label(), header.compression);
}

}  // namespace

Result<KernelImage> load_kernel_image(const std::string& path, uint64_t max_bytes) {
  const RegularFile file = TANDEM_TRY(RegularFile::open("kernel", path));
  if (file.size() == 0) {
    return fail(Errc::kInvalidArgument, "{}: is empty", file.label());
  }
  std::array<std::byte, kSniffBytes> buffer;
  const Bytes head = std::span(buffer).first(TANDEM_TRY(file.read_at(0, buffer)));
  if (const auto header = parse_arm64_image(head)) {
    return load_plain(file, head, *header, max_bytes);
  }
  if (const auto zboot = parse_zboot(head)) {
    return load_zboot(file, *zboot, max_bytes);
  }
  if (is_gzip(head)) {
    const std::string label = fmt::format("{}: inside its gzip data", file.label());
    return load_compressed({KernelImage::Container::kGzip, label, &decompress_gzip, {file, 0, file.size()}}, max_bytes);
  }
  return not_a_kernel(file.label(), head);
}

Result<KernelImage> kernel_image_of(SealedImage image, uint64_t max_bytes) {
  if (image.size() > max_bytes) {
    return too_long("kernel", max_bytes);
  }
  std::array<std::byte, kSniffBytes> buffer;
  const auto head = std::span(buffer).first(std::min<uint64_t>(buffer.size(), image.size()));
  TANDEM_TRY(with_context(image.copy_to(head), "kernel"));
  const auto header = parse_arm64_image(head);
  if (!header) {
    return fail(Errc::kCorrupt, "kernel: no arm64 Image header");
  }
  return KernelImage{KernelImage::Container::kImage, *header, std::move(image)};
}

Result<SealedImage> load_initrd(const std::string& path, uint64_t max_bytes) {
  const RegularFile file = TANDEM_TRY(RegularFile::open("initrd", path));
  if (file.size() == 0) {
    return fail(Errc::kOutOfRange, "{}: is empty", file.label());
  }
  if (file.size() > max_bytes) {
    return fail(Errc::kOutOfRange, "{}: its {} do not fit into {} of RAM", file.label(), format_size(file.size()),
                format_size(max_bytes));
  }
  SealedImageWriter writer = TANDEM_TRY(SealedImageWriter::create("tandem-initrd"));
  writer.expect(file.size());
  TANDEM_TRY(writer.append_file(file, 0, file.size()));
  return std::move(writer).seal();
}

}  // namespace tandem::boot
