#include "ops/program.h"

#include <stdexcept>

namespace rekernel {

std::int64_t size_in_bytes(DType dtype) {
  switch (dtype) {
    case DType::u8:
      return 1;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f64:
      return 8;
  }
  throw std::logic_error("size_in_bytes: not a DType");
}

const char* to_string(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::u8:
      return "u8";
    case DType::i32:
      return "i32";
  }
  throw std::logic_error("to_string: not a DType");
}

}  // namespace rekernel
