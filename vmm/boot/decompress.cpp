// SPDX-License-Identifier: Apache-2.0
#include "vmm/boot/decompress.hpp"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "vmm/lib/bits/bits.hpp"

namespace tandem::boot {
namespace {

constexpr size_t kInputBufferBytes = 128U << 10;
constexpr int kZstdWindowLogMax = 27;  // what the zstd tool accepts unless told otherwise

/// The compressed bytes, through a buffer.
class PartReader {
 public:
  explicit PartReader(const FilePart& part)
      : part_(part), buffer_(std::min<uint64_t>(part.size_bytes, kInputBufferBytes)) {}

  [[nodiscard]] std::span<const std::byte> pending() const { return pending_; }
  void consume(size_t count) { pending_ = pending_.subspan(count); }

  /// Makes at least `count` bytes pending, unless fewer are left. @pre count is small.
  Result<void> require(size_t count) {
    if (pending_.size() >= count || left() == 0) {
      return {};
    }
    std::ranges::copy(pending_, buffer_.begin());
    const size_t kept = pending_.size();
    const auto room = std::span(buffer_).subspan(kept);
    const auto wanted = room.first(std::min<uint64_t>(room.size(), left()));
    const size_t got = TANDEM_TRY(part_.file.read_at(part_.offset + done_, wanted));
    if (got != wanted.size()) {
      return fail(Errc::kCorrupt, "{}: became shorter while it was read", part_.file.label());
    }
    done_ += got;
    pending_ = std::span(buffer_).first(kept + got);
    return {};
  }

 private:
  [[nodiscard]] uint64_t left() const { return part_.size_bytes - done_; }

  const FilePart& part_;
  std::vector<std::byte> buffer_;
  std::span<const std::byte> pending_;
  uint64_t done_ = 0;
};

/// Collects output until a piece is full.
class PieceWriter {
 public:
  explicit PieceWriter(const ByteSink& sink) : sink_(sink), buffer_(kOutputPieceBytes) {}

  [[nodiscard]] std::span<std::byte> room() { return std::span(buffer_).subspan(used_); }

  Result<void> wrote(size_t count) {
    used_ += count;
    return used_ == buffer_.size() ? flush() : Result<void>();
  }

  Result<void> flush() {
    const auto piece = std::span(buffer_).first(std::exchange(used_, 0));
    return piece.empty() ? Result<void>() : sink_(piece);
  }

 private:
  const ByteSink& sink_;
  std::vector<std::byte> buffer_;
  size_t used_ = 0;
};

/// A decompressor of one format.
class Decoder {
 public:
  struct Step {
    size_t consumed = 0;
    size_t produced = 0;
    bool ended = false;  ///< The end of a member or frame; its checksum was right.
  };

  virtual ~Decoder() = default;
  [[nodiscard]] virtual const char* format() const = 0;
  /// Whether another member or frame starts here.
  [[nodiscard]] virtual bool starts(std::span<const std::byte> bytes) const = 0;
  /// Gets ready for the next one.
  virtual void restart() = 0;
  virtual Result<Step> step(std::span<const std::byte> in, std::span<std::byte> out) = 0;
};

Result<void> decode(const FilePart& part, Decoder& decoder, const ByteSink& sink) {
  constexpr size_t kMagicBytes = 4;
  PartReader reader(part);
  PieceWriter writer(sink);
  bool more = true;
  while (more) {
    TANDEM_TRY(reader.require(1));
    const auto step = TANDEM_TRY(with_context(decoder.step(reader.pending(), writer.room()), part.file.label()));
    reader.consume(step.consumed);
    TANDEM_TRY(writer.wrote(step.produced));
    if (step.ended) {
      TANDEM_TRY(reader.require(kMagicBytes));
      more = decoder.starts(reader.pending());
      decoder.restart();
    } else if (step.consumed == 0 && step.produced == 0) {
      return fail(Errc::kCorrupt, "{}: its {} data ends early", part.file.label(), decoder.format());
    }
  }
  return writer.flush();
}

class GzipDecoder final : public Decoder {
 public:
  GzipDecoder() { ready_ = inflateInit2(&stream_, kGzipWindowBits) == Z_OK; }
  GzipDecoder(const GzipDecoder&) = delete;
  GzipDecoder& operator=(const GzipDecoder&) = delete;
  ~GzipDecoder() override { inflateEnd(&stream_); }

  [[nodiscard]] const char* format() const override { return "gzip"; }
  [[nodiscard]] bool starts(std::span<const std::byte> bytes) const override {
    return bytes.size() >= 2 && load_le<uint16_t>(bytes) == 0x8b1f;
  }
  void restart() override { inflateReset(&stream_); }

  Result<Step> step(std::span<const std::byte> in, std::span<std::byte> out) override {
    if (!ready_) {
      return fail(Errc::kOutOfMemory, "gzip: no memory");
    }
    // zlib's interface takes no const input, and writes none.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
      return fail(Errc::kCorrupt, "corrupt gzip data: {}", stream_.msg != nullptr ? stream_.msg : zError(status));
    }
    return Step{in.size() - stream_.avail_in, out.size() - stream_.avail_out, status == Z_STREAM_END};
  }

 private:
  static constexpr int kGzipWindowBits = 15 + 16;  // the largest window, and a gzip header is required

  z_stream stream_{};
  bool ready_;
};

class ZstdDecoder final : public Decoder {
 public:
  ZstdDecoder() : context_(ZSTD_createDCtx(), &ZSTD_freeDCtx) {
    if (context_) {
      ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kZstdWindowLogMax);
    }
  }

  [[nodiscard]] const char* format() const override { return "zstd"; }
  [[nodiscard]] bool starts(std::span<const std::byte> bytes) const override {
    return bytes.size() >= 4 && load_le<uint32_t>(bytes) == ZSTD_MAGICNUMBER;
  }
  void restart() override {}  // the next frame starts by itself

  Result<Step> step(std::span<const std::byte> in, std::span<std::byte> out) override {
    if (!context_) {
      return fail(Errc::kOutOfMemory, "zstd: no memory");
    }
    ZSTD_inBuffer source{in.data(), in.size(), 0};
    ZSTD_outBuffer target{out.data(), out.size(), 0};
    const size_t status = ZSTD_decompressStream(context_.get(), &target, &source);
    if (ZSTD_isError(status) != 0) {
      return fail(Errc::kCorrupt, "corrupt zstd data: {}", ZSTD_getErrorName(status));
    }
    return Step{source.pos, target.pos, status == 0};
  }

 private:
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context_;
};

}  // namespace

Result<void> decompress_gzip(const FilePart& part, const ByteSink& sink) {
  GzipDecoder decoder;
  return decode(part, decoder, sink);
}

Result<void> decompress_zstd(const FilePart& part, const ByteSink& sink) {
  ZstdDecoder decoder;
  return decode(part, decoder, sink);
}

}  // namespace tandem::boot
