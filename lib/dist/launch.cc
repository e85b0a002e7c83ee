#include "lib/dist/launch.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

absl::StatusOr<int> ParseNumber(absl::string_view name, absl::string_view text,
                                int least, int most) {
  int value;
  if (!absl::SimpleAtoi(text, &value) || value < least || value > most) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": found '", text,
                                                   "', expected a number from ",
                                                   least, " to ", most));
  }
  return value;
}

// The variables that one launcher sets for one fact each.
struct Names {
  absl::string_view launcher;
  absl::string_view rank;
  absl::string_view world_size;
  absl::string_view local_rank;
  absl::string_view local_size;  // optional
};

absl::Status ReadRanks(GetVariable get, const Names& names, Launch* launch) {
  constexpr int kMostRanks = 1 << 20;
  launch->launcher = std::string(names.launcher);
  const auto need = [&](absl::string_view name) -> absl::StatusOr<std::string> {
    std::optional<std::string> value = get(name);
    if (value) return *std::move(value);
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is not set, though other variables of ",
                     names.launcher, " are"));
  };
  FF_ASSIGN_OR_RETURN(const std::string size_text, need(names.world_size));
  FF_ASSIGN_OR_RETURN(launch->world_size,
                      ParseNumber(names.world_size, size_text, 1, kMostRanks));
  FF_ASSIGN_OR_RETURN(const std::string rank_text, need(names.rank));
  FF_ASSIGN_OR_RETURN(launch->rank, ParseNumber(names.rank, rank_text, 0,
                                                launch->world_size - 1));
  if (const std::optional<std::string> local = get(names.local_rank)) {
    FF_ASSIGN_OR_RETURN(
        launch->local_rank,
        ParseNumber(names.local_rank, *local, 0, launch->world_size - 1));
  } else if (launch->world_size > 1) {
    return need(names.local_rank).status();
  }
  launch->local_size = launch->world_size;
  if (const std::optional<std::string> size = get(names.local_size)) {
    FF_ASSIGN_OR_RETURN(launch->local_size, ParseNumber(names.local_size, *size,
                                                        1, launch->world_size));
  }
  return absl::OkStatus();
}

}  // namespace

std::string FirstHostOfNodeList(absl::string_view list) {
  std::string host;
  size_t i = 0;
  while (i < list.size() && list[i] != ',') {
    if (list[i] != '[') {
      host.push_back(list[i++]);
      continue;
    }
    // The first number of the bracket; its leading zeros belong to the name.
    for (++i; i < list.size() && absl::ascii_isdigit(list[i]); ++i) {
      host.push_back(list[i]);
    }
    while (i < list.size() && list[i] != ']') ++i;
    if (i < list.size()) ++i;
  }
  return host;
}

absl::StatusOr<Launch> ReadLaunch(GetVariable get) {
  Launch launch;
  const bool is_torchrun = get("RANK") || get("WORLD_SIZE");
  const bool is_openmpi = get("OMPI_COMM_WORLD_SIZE").has_value();
  // A batch script also has SLURM_PROCID, and is one process all the same; only
  // a job step has SLURM_STEP_ID.
  const bool is_slurm = get("SLURM_STEP_ID") && get("SLURM_PROCID");
  if (is_torchrun) {
    FF_RETURN_IF_ERROR(ReadRanks(
        get,
        {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
        &launch));
    launch.master_port_is_taken =
        get("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
  } else if (is_openmpi) {
    FF_RETURN_IF_ERROR(
        ReadRanks(get,
                  {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                   "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                  &launch));
  } else if (is_slurm) {
    const bool has_step_size = get("SLURM_STEP_NUM_TASKS").has_value();
    FF_RETURN_IF_ERROR(
        ReadRanks(get,
                  {"slurm", "SLURM_PROCID",
                   has_step_size ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS",
                   "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
                  &launch));
    const std::optional<std::string> nodes = get("SLURM_STEP_NODELIST")
                                                 ? get("SLURM_STEP_NODELIST")
                                                 : get("SLURM_JOB_NODELIST");
    if (nodes) launch.master_address = FirstHostOfNodeList(*nodes);
  }
  if (const auto address = get("MASTER_ADDR")) {
    launch.master_address = *address;
  }
  if (const auto port = get("MASTER_PORT")) {
    FF_ASSIGN_OR_RETURN(launch.master_port,
                        ParseNumber("MASTER_PORT", *port, 1, 65535));
  } else if (!launch.master_address.empty()) {
    launch.master_port = kDefaultMasterPort;
  }
  return launch;
}

}  // namespace firstframe
