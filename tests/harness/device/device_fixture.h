#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/compile/compile.h"
#include "harness/device/device_tools.h"
#include "harness/gpu/cuda.h"

namespace rekernel {

/// A GPU with the harness's own device code on it; skipped where there is none.
class DeviceFixture : public testing::Test {
 protected:
  void SetUp() override {
    Result<Device> opened = Device::open();
    if (!opened) GTEST_SKIP() << opened.error().message;
    device.emplace(std::move(*opened));
    compiler.emplace(value(Compiler::load()));
    tools = std::make_unique<DeviceTools>(compiled(device_tools_program(), ""), properties());
    stream.emplace();
  }

  template <class T>
  static T value(Result<T> result) {
    if (!result) throw std::runtime_error(result.error().message);
    return std::move(*result);
  }

  const DeviceProperties& properties() const { return device->properties(); }

  CompiledProgram compiled(const Program& program, const std::string& header) const {
    return value(compiler->compile(
        program, header, Compiler::target_for_device(properties().major, properties().minor)));
  }

  static BufferView view(const DeviceBuffer& buffer) { return {buffer.get(), buffer.bytes()}; }

  /// A buffer that holds the values as elements of the type.
  static DeviceBuffer uploaded(const std::vector<double>& values, DType dtype) {
    const auto bytes = static_cast<std::size_t>(size_in_bytes(dtype));
    std::string content(values.size() * bytes, '\0');
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint64_t bits = stored_bits(dtype, values[i]);
      std::copy_n(reinterpret_cast<const char*>(&bits), bytes, content.data() + i * bytes);
    }
    DeviceBuffer buffer(static_cast<std::int64_t>(content.size()));
    REKERNEL_CUDA(cuMemcpyHtoD(buffer.get(), content.data(), content.size()));
    return buffer;
  }

  /// The bits of its elements.
  static std::vector<std::uint64_t> downloaded(const BufferView& from, DType dtype) {
    const auto bytes = static_cast<std::size_t>(size_in_bytes(dtype));
    std::string content(static_cast<std::size_t>(from.bytes), '\0');
    REKERNEL_CUDA(cuMemcpyDtoH(content.data(), from.pointer, content.size()));
    std::vector<std::uint64_t> elements(content.size() / bytes);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      std::copy_n(content.data() + i * bytes, bytes, reinterpret_cast<char*>(&elements[i]));
    }
    return elements;
  }

  static std::vector<double> values(const BufferView& from, DType dtype) {
    std::vector<double> found;
    for (const std::uint64_t bits : downloaded(from, dtype)) {
      found.push_back(stored_value(dtype, bits));
    }
    return found;
  }

  std::optional<Device> device;
  std::optional<Compiler> compiler;
  std::unique_ptr<DeviceTools> tools;
  std::optional<Stream> stream;
};

}  // namespace rekernel
