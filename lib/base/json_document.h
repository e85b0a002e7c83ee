// The head that every JSON document of a tool has: which schema, which tool.

#ifndef LIB_BASE_JSON_DOCUMENT_H_
#define LIB_BASE_JSON_DOCUMENT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "lib/base/json_writer.h"
#include "lib/base/version.h"

namespace firstframe {

// Begins the document's object and writes "schema" {"name", "version"} and
// "tool" {"name", "version", "commit"}; the schema is "firstframe.TOOL", or
// "firstframe.SCHEMA" for a second kind of document of one tool. The caller
// goes on with members and ends the object.
inline void BeginJsonDocument(absl::string_view tool, int schema_version,
                              JsonWriter& json, absl::string_view schema = "") {
  if (schema.empty()) schema = tool;
  const BuildInfo build = GetBuildInfo();
  json.BeginObject();
  json.Key("schema").BeginObject();
  json.Key("name").String("firstframe." + std::string(schema));
  json.Key("version").Int(schema_version);
  json.EndObject();
  json.Key("tool").BeginObject();
  json.Key("name").String(tool);
  json.Key("version").String(build.version);
  json.Key("commit").String(build.commit);
  json.EndObject();
}

// Returns a whole such document, indented, with a newline at its end.
// `write(json)` writes the members after the head.
template <typename Write>
std::string JsonDocument(absl::string_view tool, int schema_version,
                         const Write& write, absl::string_view schema = "") {
  std::string text;
  JsonWriter json(&text, JsonWriter::Style::kPretty);
  BeginJsonDocument(tool, schema_version, json, schema);
  write(json);
  json.EndObject();
  text += '\n';
  return text;
}

}  // namespace firstframe

#endif  // LIB_BASE_JSON_DOCUMENT_H_
