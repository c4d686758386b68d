#include "harness/report/tensor_json.h"

#include <boost/json.hpp>

namespace rekernel {

boost::json::object tensor_json(const Tensor& tensor) {
  return {{"name", tensor.name},
          {"dtype", to_string(tensor.dtype)},
          {"role", tensor.role == Role::input ? "input" : "output"},
          {"shape", boost::json::value_from(tensor.shape)}};
}

}  // namespace rekernel
