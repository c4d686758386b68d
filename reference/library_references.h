#pragma once

#include <memory>
#include <string>

#include "reference/reference.h"
#include "reference/shapes.h"

namespace rekernel {

/// What is asked of a library beside the shape.
struct LibraryRequest {
  const std::string& id;  ///< of the reference: the math mode
  const Problem& problem;
  const Bindings& bindings;
  const Device& device;

  CUdeviceptr at(const std::string& tensor) const { return bindings.at(tensor).pointer; }
};

// The makers that make_reference calls. Tensors that a shape names are bound, whole. What a library
// refuses is an error or a std::runtime_error.
using MadeReference = Result<std::unique_ptr<Runnable>>;
MadeReference make_library_reference(const MatrixProduct&, const LibraryRequest&);
MadeReference make_library_reference(const Convolution&, const LibraryRequest&);
MadeReference make_library_reference(const Pooling&, const LibraryRequest&);
MadeReference make_library_reference(const Softmax&, const LibraryRequest&);
MadeReference make_library_reference(const LayerNorm&, const LibraryRequest&);
MadeReference make_library_reference(const BatchNorm&, const LibraryRequest&);
MadeReference make_library_reference(const Reduction&, const LibraryRequest&);
MadeReference make_library_reference(const Activation&, const LibraryRequest&);
MadeReference make_library_reference(const Attention&, const LibraryRequest&);

/// "13.0.2"; the error says that cuBLAS was not found.
Result<std::string> cublas_version();

}  // namespace rekernel
