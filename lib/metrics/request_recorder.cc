#include "lib/metrics/request_recorder.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lib/metrics/exact_sum.h"

namespace firstframe {
namespace {

constexpr absl::string_view kTransformerPrefix = "transformer";

double SystemSeconds() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::vector<double> ResolveMs(const StageTimes& stage, MarkerSource& markers) {
  std::vector<double> values;
  values.reserve(stage.pairs.size());
  for (const MarkerPair& pair : stage.pairs) {
    values.push_back(static_cast<double>(markers.SpanNs(pair)) / 1e6);
    markers.Recycle(pair);
  }
  return values;
}

}  // namespace

size_t ActiveRequest::StageIndex(const char* name) {
  for (size_t i = 0; i < stages.size(); ++i) {
    if (stages[i].key == name) return i;
  }
  // Another literal with the same text.
  for (size_t i = 0; i < stages.size(); ++i) {
    if (stages[i].name == name) return i;
  }
  stages.push_back({.key = name, .name = name});
  return stages.size() - 1;
}

RequestRecorder::RequestRecorder(PerfSink& sink, MarkerSource& markers,
                                 MemoryProbe* memory,
                                 std::function<double()> wall_s)
    : sink_(sink),
      markers_(markers),
      memory_(memory),
      wall_s_(wall_s ? std::move(wall_s) : SystemSeconds) {}

void RequestRecorder::SetTransformer(const std::string& stage,
                                     CompatModel model) {
  const PerfSettings& settings = sink_.settings();
  if (settings.dit_params) model.params = *settings.dit_params;
  if (!settings.price_attention) model.widths = {};
  absl::MutexLock lock(&mutex_);
  transformers_[stage] = model;
}

void RequestRecorder::SetVae(const std::string& stage, double flops) {
  absl::MutexLock lock(&mutex_);
  vae_flops_[stage] = flops;
}

void RequestRecorder::SetPeakTflops(double peak_tflops) {
  absl::MutexLock lock(&mutex_);
  peak_tflops_ = peak_tflops;
}

int64_t RequestRecorder::num_requests() const {
  absl::MutexLock lock(&mutex_);
  return num_requests_;
}

void RequestRecorder::Begin(ActiveRequest& request) {
  {
    absl::MutexLock lock(&mutex_);
    request.index = num_requests_++;
  }
  request.is_warmup = request.index < sink_.settings().warmup;
  request.markers = &markers_;
  if (markers_.HasDevice()) request.memory = memory_;
  if (request.memory != nullptr) request.memory->ResetPeak();
  request.start_ns = markers_.clock().NowNs();
}

void RequestRecorder::End(ActiveRequest& request) {
  // The one wait of a request, and before the clock is read: the last kernels
  // are only queued when the work returns.
  const absl::Status synchronized = markers_.Synchronize();
  if (!synchronized.ok()) sink_.Complain(synchronized.ToString());
  const double e2e_s =
      static_cast<double>(markers_.clock().NowNs() - request.start_ns) / 1e9;
  std::map<std::string, std::vector<double>> values;
  const RequestRecord record = Settle(request, e2e_s, values);
  {
    absl::MutexLock lock(&mutex_);
    if (record.warmup) {
      ++summary_.warmup_excluded;
    } else {
      summary_.e2e_s.push_back(record.e2e_s);
      for (const auto& [name, stage] : record.stages) {
        if (!absl::StartsWith(name, kTransformerPrefix)) continue;
        summary_.transformer_ms += stage.total_ms;
        summary_.transformer_calls += stage.count;
      }
    }
  }
  const PerfSettings& settings = sink_.settings();
  sink_.Log(FormatRequest(settings.Tag(), record));
  if (settings.level >= 2) {
    for (const auto& [name, times] : values) {
      sink_.Log(absl::StrFormat(
          "%s   %s steps(ms): %s", settings.Tag(), name,
          absl::StrJoin(times, ", ", [](std::string* out, double ms) {
            absl::StrAppendFormat(out, "%.1f", ms);
          })));
    }
  }
  sink_.Append(ToJson(record));
}

RequestRecord RequestRecorder::Settle(
    const ActiveRequest& request, double e2e_s,
    std::map<std::string, std::vector<double>>& values) {
  const PerfSettings& settings = sink_.settings();
  RequestRecord record;
  record.ts = wall_s_();
  record.rank = settings.rank;
  record.world_size = settings.world_size;
  record.req = request.index;
  record.warmup = request.is_warmup;
  record.e2e_s = e2e_s;
  for (const StageTimes& stage : request.stages) {
    if (stage.pairs.empty()) continue;
    std::vector<double>& times = values[stage.name];
    times = ResolveMs(stage, markers_);
    record.stages.emplace_back(stage.name, SummarizeStage(times));
  }
  record.dit = PriceDit(request, record);
  record.vae = PriceVae(record);
  record.device = markers_.DeviceName();
  if (request.memory != nullptr) record.peaks = request.memory->Peaks();
  return record;
}

std::optional<double> RequestRecorder::PeakOfAllDevices() const {
  const PerfSettings& settings = sink_.settings();
  absl::MutexLock lock(&mutex_);
  const std::optional<double> peak =
      settings.peak_tflops ? settings.peak_tflops : peak_tflops_;
  if (!peak || *peak == 0) return std::nullopt;
  return *peak * static_cast<double>(settings.world_size);
}

std::optional<DitThroughput> RequestRecorder::PriceDit(
    const ActiveRequest& request, const RequestRecord& record) const {
  DitThroughput dit;
  double total_flops = 0;
  double attention_flops = 0;
  double total_ms = 0;
  double calls = 0;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [name, model] : transformers_) {
      dit.params += model.params;
      const auto times = std::find_if(
          request.stages.begin(), request.stages.end(),
          [&name = name](const StageTimes& s) { return s.name == name; });
      const auto stage = std::find_if(
          record.stages.begin(), record.stages.end(),
          [&name = name](const auto& s) { return s.first == name; });
      if (times == request.stages.end() || stage == record.stages.end() ||
          times->tokens == 0) {
        continue;
      }
      const StageSummary& summary = stage->second;
      const double forwards = static_cast<double>(times->batch) *
                              static_cast<double>(summary.count);
      total_flops += model.ForwardFlops(times->tokens) * forwards;
      attention_flops += model.AttentionFlops(times->tokens) * forwards;
      total_ms += summary.total_ms;
      calls += static_cast<double>(summary.count);
      dit.tokens = std::max(dit.tokens, times->tokens);
      dit.batch = std::max(dit.batch, times->batch);
    }
  }
  if (calls == 0 || total_ms <= 0) return std::nullopt;
  dit.devices = sink_.settings().world_size;
  dit.flops_per_fwd = total_flops / calls;
  dit.attn_share = total_flops != 0 ? attention_flops / total_flops : 0.0;
  dit.tflops = total_flops / (total_ms / 1000.0) / 1e12;
  dit.peak_tflops = PeakOfAllDevices();
  if (dit.peak_tflops) dit.mfu = dit.tflops / *dit.peak_tflops;
  return dit;
}

std::optional<VaeThroughput> RequestRecorder::PriceVae(
    const RequestRecord& record) const {
  VaeThroughput vae;
  double total_flops = 0;
  double total_ms = 0;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [name, stage] : record.stages) {
      const auto flops = vae_flops_.find(name);
      if (flops == vae_flops_.end()) continue;
      total_flops += flops->second * static_cast<double>(stage.count);
      total_ms += stage.total_ms;
      vae.calls += stage.count;
    }
  }
  if (vae.calls == 0 || total_ms <= 0) return std::nullopt;
  vae.flops_per_call = total_flops / static_cast<double>(vae.calls);
  vae.tflops = total_flops / (total_ms / 1000.0) / 1e12;
  vae.peak_tflops = PeakOfAllDevices();
  if (vae.peak_tflops) vae.mfu = vae.tflops / *vae.peak_tflops;
  return vae;
}

void RequestRecorder::ReportSummary() {
  RequestSummaryInput summary;
  {
    absl::MutexLock lock(&mutex_);
    if (is_reported_ || summary_.e2e_s.empty()) return;
    is_reported_ = true;
    summary = summary_;
  }
  const auto line = FormatRequestSummary(sink_.settings().Tag(), summary);
  if (line) sink_.Log(*line);
}

RequestScope::RequestScope(RequestRecorder& recorder)
    : recorder_(recorder), is_outermost_(internal::current_request == nullptr) {
  if (!is_outermost_) return;
  recorder_.Begin(request_);
  internal::current_request = &request_;
}

RequestScope::~RequestScope() {
  if (!is_outermost_) return;
  internal::current_request = nullptr;
  recorder_.End(request_);
}

void StageScope::Enter(const char* name) {
  stage_ = request_->StageIndex(name);
  start_ = request_->markers->Mark();
}

void StageScope::Leave() {
  const Marker end = request_->markers->Mark();
  request_->stages[stage_].pairs.push_back({start_, end});
  if (request_->memory != nullptr) request_->memory->Sample();
}

void StageScope::Capture(int64_t tokens, int64_t batch) {
  StageTimes& stage = request_->stages[stage_];
  if (stage.tokens != 0) return;
  stage.tokens = tokens;
  stage.batch = batch;
}

}  // namespace firstframe
