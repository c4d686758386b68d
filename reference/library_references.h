#pragma once

#include <memory>

#include "reference/reference.h"

namespace rekernel {

/// The makers that make_reference calls, one for each file. Each takes what make_reference takes;
/// the problem has the tensors and attributes of the problem that the reference is for.
using LibraryReferenceMaker = Result<std::unique_ptr<Runnable>> (*)(const ReferenceInfo& info,
                                                                    const Problem& problem,
                                                                    const Bindings& bindings,
                                                                    const Device& device);

Result<std::unique_ptr<Runnable>> make_cublas_matmul(const ReferenceInfo&, const Problem&,
                                                     const Bindings&, const Device&);
Result<std::unique_ptr<Runnable>> make_cudnn_convolution(const ReferenceInfo&, const Problem&,
                                                         const Bindings&, const Device&);
Result<std::unique_ptr<Runnable>> make_cudnn_softmax(const ReferenceInfo&, const Problem&,
                                                     const Bindings&, const Device&);
Result<std::unique_ptr<Runnable>> make_cudnn_layernorm(const ReferenceInfo&, const Problem&,
                                                       const Bindings&, const Device&);
Result<std::unique_ptr<Runnable>> make_cudnn_attention(const ReferenceInfo&, const Problem&,
                                                       const Bindings&, const Device&);

/// "13.0.2"; the error says that cuBLAS was not found.
Result<std::string> cublas_version();

}  // namespace rekernel
