// JSON as Python's json.dumps writes it: the form of FastVideo's traces.
//
// Numbers are repr(float), NaN and infinities are bare tokens (which is not
// JSON), and everything beyond ASCII is \u escapes. For records that must equal
// a Python program's byte for byte; everything else uses
// lib/base/json_writer.h.

#ifndef LIB_ACTIVATION_PYTHON_JSON_H_
#define LIB_ACTIVATION_PYTHON_JSON_H_

#include <string>

#include "absl/strings/string_view.h"

namespace firstframe {

// Appends repr(value): the shortest digits that read back, always with a point
// or an exponent, scientific below 1e-4 and from 1e16; NaN, Infinity,
// -Infinity.
void AppendPythonFloat(double value, std::string* out);

// Appends `text` (UTF-8) as json.dumps does: quotes included, ASCII alone. A
// surrogate encoded on its own stays one (\ud800), and a byte that is not UTF-8
// becomes \udcXX, as os.fsdecode reads it.
void AppendPythonString(absl::string_view text, std::string* out);

// Appends repr(text) of an ASCII Python string, for messages: 'name', or
// "it's" where the text has single quotes alone.
void AppendPythonRepr(absl::string_view text, std::string* out);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_PYTHON_JSON_H_
