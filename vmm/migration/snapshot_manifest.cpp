// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/snapshot_manifest.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <nlohmann/json.hpp>
#include <span>

#include "vmm/migration/snapshot_format.hpp"

namespace tandem::migration {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const FileEntry& file) { return {{"size", file.size_bytes}, {"checksum", file.checksum.text()}}; }

Json json_of(const SnapshotManifest& manifest) {
  Json json = {{"spec", json_of(manifest.spec)},
               {"state", json_of(manifest.state)},
               {"ram", {{"size", manifest.ram_bytes}, {"sums", json_of(manifest.ram_sums)}}},
               {"images", Json::array()}};
  for (const ImageEntry& image : manifest.images) {
    json["images"].push_back({{"role", image.role}, {"file", json_of(image.file)}, {"stored", image.stored}});
  }
  if (manifest.base) {
    json["base"] = {{"path", manifest.base->path}, {"manifest", manifest.base->manifest.text()}};
    json["page_size"] = manifest.page_bytes.value_or(0);
  }
  return json;
}

std::unexpected<Error> corrupt(std::string_view what) { return fail(Errc::kCorrupt, "{}", what); }

/// The member `name` of `object`; null if there is none.
const Json& member(const Json& object, const char* name) {
  static const Json none;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : none;
}

Result<uint64_t> number_of(const Json& value, uint64_t max) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > max) {
    return corrupt("a number is missing or too large");
  }
  return value.get<uint64_t>();
}

Result<std::string> text_of(const Json& value, size_t max_bytes) {
  if (!value.is_string() || value.get_ref<const std::string&>().size() > max_bytes) {
    return corrupt("a text is missing or too long");
  }
  return value.get<std::string>();
}

Result<Checksum> checksum_in(const Json& value) {
  const auto checksum = Checksum::from_text(TANDEM_TRY(text_of(value, Checksum::kTextLength)));
  if (!checksum) {
    return corrupt("a checksum is none");
  }
  return *checksum;
}

Result<FileEntry> file_in(const Json& value, uint64_t max_bytes) {
  return FileEntry{.size_bytes = TANDEM_TRY(number_of(member(value, "size"), max_bytes)),
                   .checksum = TANDEM_TRY(checksum_in(member(value, "checksum")))};
}

bool is_role(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
}

Result<std::vector<ImageEntry>> images_in(const Json& value, uint64_t ram_bytes) {
  if (!value.is_array() || value.size() > kMaxBootImages) {
    return corrupt("boot images are missing or too many");
  }
  std::vector<ImageEntry> images;
  for (const Json& item : value) {
    ImageEntry image{.role = TANDEM_TRY(text_of(member(item, "role"), kMaxImageRoleBytes)),
                     .file = TANDEM_TRY(file_in(member(item, "file"), ram_bytes))};
    const Json& stored = member(item, "stored");
    if (!stored.is_boolean() || !is_role(image.role) ||
        std::ranges::find(images, image.role, &ImageEntry::role) != images.end()) {
      return corrupt("a boot image is none");
    }
    image.stored = stored.get<bool>();
    images.push_back(std::move(image));
  }
  return images;
}

Result<std::optional<BaseEntry>> base_in(const Json& value) {
  if (value.is_null()) {
    return std::nullopt;
  }
  BaseEntry base{.path = TANDEM_TRY(text_of(member(value, "path"), kMaxBasePathBytes)),
                 .manifest = TANDEM_TRY(checksum_in(member(value, "manifest")))};
  if (base.path.empty() || base.path.front() == '/' || base.path.find('\0') != std::string::npos) {
    return corrupt("the base's path is not relative");
  }
  return base;
}

Result<SnapshotManifest> manifest_in(const Json& json) {
  SnapshotManifest manifest;
  manifest.spec = TANDEM_TRY(file_in(member(json, "spec"), kMaxSpecFileBytes));
  manifest.state = TANDEM_TRY(file_in(member(json, "state"), kMaxStateFileBytes));
  const Json& ram = member(json, "ram");
  manifest.ram_bytes = TANDEM_TRY(number_of(member(ram, "size"), kMaxRamFileBytes));
  if (manifest.ram_bytes == 0 || manifest.ram_bytes % kRamChunkBytes != 0) {
    return corrupt("a size of RAM that no machine has");
  }
  manifest.ram_sums = TANDEM_TRY(file_in(member(ram, "sums"), UINT64_MAX));  // decode_ram_sums knows its length
  manifest.images = TANDEM_TRY(images_in(member(json, "images"), manifest.ram_bytes));
  manifest.base = TANDEM_TRY(base_in(member(json, "base")));
  if (manifest.base) {
    manifest.page_bytes = TANDEM_TRY(number_of(member(json, "page_size"), kRamChunkBytes));
    if (*manifest.page_bytes < kRamUnitBytes || !std::has_single_bit(*manifest.page_bytes)) {
      return corrupt("a page size that no host has");
    }
  }
  return manifest;
}

std::string text_of(const SnapshotManifest& manifest) {
  return json_of(manifest).dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string header_of(std::string_view body) {
  const Checksum checksum = checksum_of(std::as_bytes(std::span(body)));
  return fmt::format("{} {} {} {} {}\n", kSnapshotMagic, kSnapshotVersion, kSnapshotArchitecture, body.size(),
                     checksum.text());
}

/// The word at the front of `line`, which loses it and the space behind it.
std::string_view take_word(std::string_view& line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

/// Refuses what this program cannot read, by the first words of the manifest.
Result<void> check_readable(std::string_view content) {
  std::string_view line = content.substr(0, content.find('\n'));
  if (take_word(line) != kSnapshotMagic) {
    return corrupt("is no manifest of a snapshot");
  }
  const std::string_view version_text = take_word(line);
  uint32_t version = 0;
  const auto [end, error] = std::from_chars(version_text.data(), version_text.data() + version_text.size(), version);
  if (error != std::errc() || end != version_text.data() + version_text.size() || version == 0) {
    return corrupt("its format version is no number");
  }
  if (version != kSnapshotVersion) {
    return fail(Errc::kUnsupported, "format version {}; this tandem reads version {}", version, kSnapshotVersion);
  }
  if (const std::string_view architecture = take_word(line); architecture != kSnapshotArchitecture) {
    return fail(Errc::kUnsupported, "is not of an {} machine", kSnapshotArchitecture);
  }
  return {};
}

}  // namespace

Result<std::string> encode_manifest(const SnapshotManifest& manifest) {
  const std::string body = text_of(manifest);
  std::string content = header_of(body) + body;
  if (content.size() > kMaxManifestBytes) {
    return fail(Errc::kOutOfRange, "manifest of {} bytes; at most {} are read back", content.size(), kMaxManifestBytes);
  }
  // What cannot be written as JSON, a path that is no UTF-8 above all, would be found out by the reader only.
  const auto read_back = decode_manifest(content);
  if (!read_back || *read_back != manifest) {
    return fail(Errc::kInvalidArgument, "the way to the base cannot be written down: {}",
                read_back ? "it is not UTF-8" : read_back.error().message());
  }
  return content;
}

Result<SnapshotManifest> decode_manifest(std::string_view content) {
  TANDEM_TRY(check_readable(content));
  const size_t header_end = content.find('\n');
  const std::string_view body = header_end == std::string_view::npos ? "" : content.substr(header_end + 1);
  if (header_of(body) != content.substr(0, content.size() - body.size())) {
    return corrupt("does not have the length and checksum that its first line gives");
  }
  const Json json = Json::parse(body, nullptr, false);
  if (json.is_discarded()) {
    return corrupt("is no JSON");
  }
  SnapshotManifest manifest = TANDEM_TRY(manifest_in(json));
  if (text_of(manifest) != body) {  // a name twice or unknown, another order: there is one form only
    return corrupt("is not in the form in which it is written");
  }
  return manifest;
}

std::string image_file_name(const Checksum& checksum) { return fmt::format("{}{}", kImagePrefix, checksum.text()); }

}  // namespace tandem::migration
