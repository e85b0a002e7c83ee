#include "lib/startup/startup_report.h"

namespace firstframe {
namespace {

void IntOrNull(const std::optional<int64_t>& value, JsonWriter& json) {
  if (value) {
    json.Int(*value);
  } else {
    json.Null();
  }
}

void WriteShape(const Shape& shape, JsonWriter& json) {
  json.BeginArray();
  for (const int64_t size : shape) json.Int(size);
  json.EndArray();
}

void WriteCheckpoint(const CheckpointFacts& checkpoint, JsonWriter& json) {
  json.BeginObject();
  json.Key("path").String(checkpoint.path);
  json.Key("is_synthetic").Bool(checkpoint.is_synthetic);
  json.Key("files").BeginArray();
  for (const std::string& file : checkpoint.files) json.String(file);
  json.EndArray();
  json.Key("size_bytes").Int(checkpoint.size_bytes);
  json.Key("tensors").Int(checkpoint.tensors);
  json.Key("parameters").Int(checkpoint.parameters);
  json.Key("fingerprint_sha256").StringOrNull(checkpoint.fingerprint);
  json.Key("fingerprint_covers")
      .String("configuration, file names, sizes, headers");
  json.EndObject();
}

void WriteCache(const CacheFacts& cache, JsonWriter& json) {
  json.BeginObject();
  json.Key("requested").String(cache.requested);
  json.Key("resident_before").OptionalDouble(cache.resident_before);
  json.Key("resident_after").OptionalDouble(cache.resident_after);
  json.Key("method").String(cache.method);
  json.Key("unknown_reason").StringOrNull(cache.unknown_reason);
  json.EndObject();
}

void WriteRendezvous(const std::optional<RendezvousFacts>& rendezvous,
                     JsonWriter& json) {
  if (!rendezvous) {
    json.Null();
    return;
  }
  json.BeginObject();
  json.Key("source").String(rendezvous->source);
  json.Key("address").String(rendezvous->address);
  json.Key("port").Int(rendezvous->port);
  json.Key("rank").Int(rendezvous->rank);
  json.Key("world_size").Int(rendezvous->world_size);
  json.Key("transport").StringOrNull(rendezvous->transport);
  json.EndObject();
}

void WriteOutput(const std::optional<OutputFacts>& output, JsonWriter& json) {
  if (!output) {
    json.Null();
    return;
  }
  json.BeginObject();
  json.Key("shape");
  WriteShape(output->shape, json);
  json.Key("dtype").String("float32");
  json.Key("is_finite").Bool(output->is_finite);
  json.Key("min").Double(output->min);
  json.Key("max").Double(output->max);
  json.Key("mean").Double(output->mean);
  json.EndObject();
}

void WriteOffload(const std::optional<OffloadFacts>& facts, JsonWriter& json) {
  if (!facts) {
    json.Null();
    return;
  }
  json.BeginObject();
  json.Key("cycles").BeginArray();
  for (const OffloadCycle& cycle : facts->cycles) {
    json.BeginObject();
    json.Key("unload_ns").Int(cycle.unload_ns);
    json.Key("load_ns").Int(cycle.load_ns);
    json.Key("decode_ns").Int(cycle.decode_ns);
    json.EndObject();
  }
  json.EndArray();
  json.Key("h2d_bytes").Uint(facts->h2d_bytes);
  json.Key("d2h_bytes").Uint(facts->d2h_bytes);
  json.Key("d2h_avoided_bytes").Uint(facts->d2h_avoided_bytes);
  json.Key("host_pinned_bytes").Uint(facts->host_pinned_bytes);
  json.Key("host_pageable_bytes").Uint(facts->host_pageable_bytes);
  json.Key("is_identical").Bool(facts->is_identical);
  json.Key("degraded").BeginArray();
  for (const std::string& note : facts->degraded) json.String(note);
  json.EndArray();
  json.EndObject();
}

void WriteUsage(const ResourceUsage& usage, JsonWriter& json) {
  json.BeginObject();
  json.Key("max_resident_bytes").Int(usage.max_resident_bytes);
  json.Key("minor_faults").Int(usage.minor_faults);
  json.Key("major_faults").Int(usage.major_faults);
  json.Key("user_ns").Int(usage.user_ns);
  json.Key("system_ns").Int(usage.system_ns);
  json.EndObject();
}

}  // namespace

void WriteContextJson(const StartupContext& context,
                      const CheckpointFacts& checkpoint, JsonWriter& json) {
  json.BeginObject();
  json.Key("command").BeginArray();
  for (const std::string& word : context.command) json.String(word);
  json.EndArray();
  json.Key("machine");
  WriteJson(context.machine, json);
  json.Key("runtime").BeginObject();
  for (const auto& [name, version] : context.runtime) {
    json.Key(name);
    json.StringOrNull(version);
  }
  json.EndObject();
  json.Key("device").String(context.device);
  json.Key("device_name").StringOrNull(context.device_name);
  json.Key("math").String(context.math);
  json.Key("threads").Int(context.threads);
  json.Key("synchronize").Bool(context.synchronize);
  json.Key("latent_shape");
  WriteShape(context.latent_shape, json);
  json.Key("latent_source").String(context.latent_source);
  json.Key("checkpoint");
  WriteCheckpoint(checkpoint, json);
  json.EndObject();
}

void WriteFactsJson(const StartupSample& sample, JsonWriter& json) {
  json.BeginObject();
  json.Key("status").String(sample.error.empty() ? "ok" : "error");
  json.Key("error").StringOrNull(sample.error);
  json.Key("process_wall_ns").Int(sample.process_wall_ns);
  json.Key("exec").BeginObject();
  json.Key("is_exact").Bool(sample.start && sample.start->is_exact);
  json.Key("resolution_ns");
  IntOrNull(sample.start ? std::optional(sample.start->resolution_ns())
                         : std::nullopt,
            json);
  json.EndObject();
  json.Key("cuda_initialized_before_device_setup")
      .Bool(sample.cuda_initialized_before_device_setup);
  json.Key("cache");
  WriteCache(sample.cache, json);
  json.Key("rendezvous");
  WriteRendezvous(sample.rendezvous, json);
  json.Key("output");
  WriteOutput(sample.output, json);
  json.Key("warm_decode_ns").BeginArray();
  for (const int64_t ns : sample.warm_decode_ns) json.Int(ns);
  json.EndArray();
  json.Key("offload");
  WriteOffload(sample.offload, json);
  json.Key("parameter_bytes").Int(sample.parameter_bytes);
  json.Key("workspace_bytes").Int(sample.workspace_bytes);
  json.Key("peak_device_bytes");
  IntOrNull(sample.peak_device_bytes, json);
  json.Key("last_decode_device_ns");
  IntOrNull(sample.last_decode_device_ns, json);
  json.Key("resource_usage");
  WriteUsage(sample.usage, json);
  json.EndObject();
}

}  // namespace firstframe
