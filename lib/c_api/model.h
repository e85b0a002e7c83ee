// What an ff_model is.

#ifndef LIB_C_API_MODEL_H_
#define LIB_C_API_MODEL_H_

#include <optional>

#include "lib/c_api/firstframe.h"
#include "lib/flops/architecture_reader.h"
#include "lib/flops/compat_model.h"

struct ff_model {
  firstframe::CompatModel compat;
  std::optional<firstframe::ModelDescription> description;
};

#endif  // LIB_C_API_MODEL_H_
