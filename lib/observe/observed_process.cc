#include "lib/observe/observed_process.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace firstframe {
namespace {

template <typename T>
T Load(const std::atomic<T>& value) {
  return value.load(std::memory_order_relaxed);
}

// Copies of the mapped structs' plain parts: the bytes come from a file.
struct Cursor {
  absl::string_view bytes;

  // Returns the next event and moves past it, or null at the end of what is
  // whole.
  const EventRecord* Next() {
    if (bytes.size() < sizeof(EventRecord)) return nullptr;
    const auto* const record =
        reinterpret_cast<const EventRecord*>(bytes.data());
    const uint32_t size = Load(record->size);
    if (size < sizeof(EventRecord) || size % 8 != 0 || size > bytes.size() ||
        sizeof(EventRecord) + record->name_size > size) {
      return nullptr;
    }
    bytes.remove_prefix(size);
    return record;
  }
};

void AddFile(const ObservedEvent& event, const EventHeader& header,
             ObservedProcess* process) {
  ObservedFile file = {
      .path = event.name, .open_ns = event.start_ns, .size_bytes = event.value};
  if (event.slot >= 1 && event.slot <= kMaxTrackedFiles) {
    const TrackedFile& counts = header.files[event.slot - 1];
    file.reads = Load(counts.reads);
    file.read_bytes = Load(counts.read_bytes);
    file.read_ns = Load(counts.read_ns);
    file.mapped_bytes = Load(counts.mapped_bytes);
  }
  process->files.push_back(std::move(file));
}

std::string ReadWhole(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  std::string bytes(size > 0 ? size : 0, '\0');
  file.seekg(0);
  file.read(bytes.data(), bytes.size());
  bytes.resize(file.gcount());
  return bytes;
}

bool ParseInt(absl::string_view text, int64_t* value) {
  return absl::SimpleAtoi(text, value);
}

}  // namespace

absl::StatusOr<ObservedProcess> ParseEventFile(absl::string_view bytes) {
  if (bytes.size() < sizeof(EventHeader) ||
      std::memcmp(bytes.data(), kEventMagic, sizeof(kEventMagic)) != 0) {
    return absl::DataLossError(absl::StrCat(
        "found ", bytes.size(), " bytes without the mark of an event file"));
  }
  // Events are read in place, so they must lie as they did in memory.
  const auto aligned = std::make_unique<uint64_t[]>((bytes.size() + 7) / 8);
  std::memcpy(aligned.get(), bytes.data(), bytes.size());
  const auto* const base = reinterpret_cast<const char*>(aligned.get());
  const auto& header = *reinterpret_cast<const EventHeader*>(base);
  ObservedProcess process = {
      .pid = static_cast<int64_t>(header.pid),
      .parent_pid = static_cast<int64_t>(header.parent_pid),
      .is_fork = header.is_fork != 0,
      .start_ns = header.start_ns,
      .main_ns = Load(header.main_ns),
      .exit_ns = Load(header.exit_ns),
      .first_region_ns = Load(header.first_region_ns),
      .first_kernel_ns = Load(header.first_kernel_ns),
      .dropped_events = Load(header.dropped)};
  const size_t command_size =
      std::min<size_t>(header.command_size, sizeof(header.command));
  process.command =
      absl::StrSplit(absl::string_view(header.command, command_size), '\0');
  if (!process.command.empty() && process.command.back().empty()) {
    process.command.pop_back();
  }
  for (int i = 0; i < kNumCudaSums; ++i) {
    process.cuda[i] = {.calls = Load(header.cuda[i].calls),
                       .ns = Load(header.cuda[i].ns),
                       .bytes = Load(header.cuda[i].bytes),
                       .submitted_ns = Load(header.cuda[i].submitted_ns),
                       .submitted_bytes = Load(header.cuda[i].submitted_bytes)};
  }
  const size_t room = bytes.size() - sizeof(EventHeader);
  Cursor cursor = {absl::string_view(
      base + sizeof(EventHeader), std::min<uint64_t>(Load(header.used), room))};
  while (const EventRecord* const record = cursor.Next()) {
    ObservedEvent event = {
        .kind = record->kind,
        .tid = record->tid,
        .name = std::string(reinterpret_cast<const char*>(record + 1),
                            record->name_size),
        .start_ns = std::max<int64_t>(record->start_ns, 0),
        .end_ns = std::max({record->start_ns, record->end_ns, int64_t{0}}),
        .value = record->value,
        .slot = record->slot};
    if (event.kind == EventKind::kFile) AddFile(event, header, &process);
    process.events.push_back(std::move(event));
  }
  return process;
}

void ParseImportLog(absl::string_view text, ObservedProcess* process) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, "F ")) {
      process->module_files.emplace_back(line.substr(2));
      continue;
    }
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::MaxSplits(' ', 4));
    int64_t time_ns = 0;
    if (words.size() == 2 && ParseInt(words[1], &time_ns)) {
      if (words[0] == "B") process->python_start_ns = time_ns;
      if (words[0] == "A") process->python_exit_ns = time_ns;
      continue;
    }
    ObservedImport import;
    if (words.size() != 5 || words[0] != "I" ||
        !ParseInt(words[1], &import.tid) ||
        !ParseInt(words[2], &import.start_ns) ||
        !ParseInt(words[3], &import.end_ns) || import.start_ns < 0 ||
        import.end_ns < import.start_ns) {
      continue;
    }
    import.module = std::string(words[4]);
    process->imports.push_back(std::move(import));
  }
}

std::vector<ObservedProcess> ReadObservedProcesses(
    const std::string& folder, std::vector<std::string>* problems) {
  std::vector<ObservedProcess> processes;
  std::vector<std::pair<std::string, std::filesystem::path>> logs;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (absl::StartsWith(name, "imports."))
      logs.emplace_back(name, entry.path());
    if (!absl::StartsWith(name, "events.")) continue;
    absl::StatusOr<ObservedProcess> process =
        ParseEventFile(ReadWhole(entry.path()));
    if (process.ok()) {
      processes.push_back(*std::move(process));
    } else {
      problems->push_back(absl::StrCat(name, ": ", process.status().message()));
    }
  }
  if (error) problems->push_back(absl::StrCat(folder, ": ", error.message()));
  std::sort(processes.begin(), processes.end(),
            [](const ObservedProcess& a, const ObservedProcess& b) {
              return a.start_ns < b.start_ns;
            });
  // "imports.PID.TIME.log" belongs to the last image of the pid begun before.
  for (const auto& [name, path] : logs) {
    const std::vector<absl::string_view> parts = absl::StrSplit(name, '.');
    int64_t pid = 0, time_ns = 0;
    if (parts.size() != 4 || !ParseInt(parts[1], &pid) ||
        !ParseInt(parts[2], &time_ns)) {
      continue;
    }
    ObservedProcess* owner = nullptr;
    for (ObservedProcess& process : processes) {
      if (process.pid == pid && process.start_ns <= time_ns) owner = &process;
    }
    if (owner != nullptr) ParseImportLog(ReadWhole(path), owner);
  }
  return processes;
}

}  // namespace firstframe
