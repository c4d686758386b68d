#include "harness/capture/call_comparison.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/capture/tensor_maps.h"

namespace rekernel {

namespace {

constexpr std::size_t max_padded_shown = 8;

/// A scalar has none. What differs in a structure may have been left there by whoever used the
/// stack before; if it was not, the plan is judged for what it is.
bool may_hold_padding(const RecordedParameter& one, const RecordedParameter& other) {
  return one.bytes.size() > sizeof(std::int64_t) && one.bytes.size() == other.bytes.size();
}

/// What is an address in one call and none in the other came there by chance: it stays as the
/// bytes of the call in which it is none.
void keep_chance_addresses_as_bytes(RecordedParameter& one, const RecordedParameter& other) {
  const auto in_other = [&](std::int64_t at) {
    return std::any_of(other.addresses.begin(), other.addresses.end(),
                       [&](const auto& address) { return address.first == at; });
  };
  std::erase_if(one.addresses, [&](const auto& address) {
    const auto at = address.first;
    if (in_other(at)) return false;
    std::copy_n(other.bytes.begin() + at, 8, one.bytes.begin() + at);
    return true;
  });
}

}  // namespace

RecordedPlace place_of(const RecordedCall& call, std::int64_t address) {
  const auto holds = [&](const RecordedTensor& tensor) {
    return address >= tensor.address && address - tensor.address < tensor.bytes;
  };
  for (const std::vector<RecordedTensor>* tensors : {&call.outputs, &call.inputs}) {
    for (const RecordedTensor& tensor : *tensors) {
      if (holds(tensor)) return {tensor.name, address - tensor.address};
    }
  }
  return {};
}

std::string without_addresses(const RecordedParameter& parameter) {
  return without_addresses(parameter, parameter);
}

std::string without_addresses(const RecordedParameter& parameter,
                              const RecordedParameter& addresses) {
  std::string bytes = parameter.bytes;
  for (const auto& [at, address] : addresses.addresses) {
    std::fill_n(bytes.begin() + at, 8, '\0');
  }
  return bytes;
}

std::string shown_kernel(const std::string& kernel) { return one_line(kernel, 100); }

std::string CallComparison::note() const {
  if (padded_.empty()) return {};
  return "; " + counted(differing_bytes_, "byte") +
         " of parameters differed between the two recorded calls and are those of one: " +
         joined(padded_) + (padded_.size() == max_padded_shown ? ", …" : "");
}

Result<Ok> CallComparison::compare(std::size_t i) {
  const auto differs = [&](const std::string& what) {
    return Error{"step " + std::to_string(i) + " of the two recorded calls differs: " + what};
  };
  if (i >= steps_[0].size() || i >= steps_[1].size()) {
    return differs(std::to_string(steps_[0].size()) + " steps, then " +
                   std::to_string(steps_[1].size()));
  }
  auto& one = steps_[0][i].what;
  const auto& other = steps_[1][i].what;
  if (one.index() != other.index()) return differs("another kind of work");
  if (const auto* memset = std::get_if<RecordedMemset>(&one)) {
    const auto& second = std::get<RecordedMemset>(other);
    if (memset->value != second.value || memset->width != second.width ||
        memset->count != second.count || !same_place(memset->to, second.to)) {
      return differs("a memset");
    }
  } else if (const auto* copy = std::get_if<RecordedCopy>(&one)) {
    const auto& second = std::get<RecordedCopy>(other);
    if (copy->bytes != second.bytes || !same_place(copy->to, second.to) ||
        !same_place(copy->from, second.from)) {
      return differs("a copy");
    }
  } else {
    const std::string difference =
        difference_of(std::get<RecordedLaunch>(one), std::get<RecordedLaunch>(other));
    if (!difference.empty()) return differs(difference);
  }
  return Ok{};
}

bool CallComparison::same_place(const RecordedAddress& one, const RecordedAddress& other) const {
  const RecordedPlace first = place_of(recording_.calls[0], one.address);
  const RecordedPlace second = place_of(recording_.calls[1], other.address);
  return first.tensor == second.tensor && first.offset == second.offset;
}

/// What differs; empty where nothing does but padding, which `one` then holds.
std::string CallComparison::difference_of(RecordedLaunch& one, const RecordedLaunch& other) {
  if (one.kernel != other.kernel) {
    return "kernel " + shown_kernel(one.kernel) + ", then " + shown_kernel(other.kernel);
  }
  const std::string kernel = "kernel " + shown_kernel(one.kernel) + ": ";
  if (one.module != other.module || one.grid != other.grid || one.block != other.block ||
      one.shared_bytes != other.shared_bytes || one.cooperative != other.cooperative ||
      one.attributes != other.attributes || one.parameters.size() != other.parameters.size()) {
    return kernel + "its grid, block, attributes or module";
  }
  for (std::size_t i = 0; i < one.parameters.size(); ++i) {
    RecordedParameter& first = one.parameters[i];
    const RecordedParameter& second = other.parameters[i];
    const std::string parameter = kernel + "parameter " + std::to_string(i) + ", ";
    if (!same_maps(first, second)) return parameter + "its tensor maps";
    const std::string as_recorded = first.bytes;
    if (may_hold_padding(first, second)) {
      keep_chance_addresses_as_bytes(first, second);
      clear_moving_addresses(first, second);
    }
    if (!same_addresses(first, second)) return parameter + "its addresses";
    const std::string bytes = without_addresses(first);
    const std::string again = without_addresses(second, first);
    const auto [at, _] = std::mismatch(bytes.begin(), bytes.end(), again.begin(), again.end());
    if (bytes == again && first.bytes == as_recorded) continue;
    if (!may_hold_padding(first, second)) {
      return parameter + "byte " + std::to_string(at - bytes.begin());
    }
    note_padding(one.kernel, i, without_addresses({as_recorded, first.addresses, {}}), again);
  }
  return {};
}

bool CallComparison::same_maps(const RecordedParameter& one, const RecordedParameter& other) const {
  return std::equal(one.tensor_maps.begin(), one.tensor_maps.end(), other.tensor_maps.begin(),
                    other.tensor_maps.end(), [&](const auto& first, const auto& second) {
                      return first.first == second.first &&
                             same_description(first.second, second.second) &&
                             same_place(first.second.address, second.second.address);
                    });
}

bool CallComparison::stays(const std::pair<std::int64_t, RecordedAddress>& address,
                           const RecordedParameter& other) const {
  return std::any_of(other.addresses.begin(), other.addresses.end(), [&](const auto& second) {
    return address.first == second.first && same_place(address.second, second.second);
  });
}

/// Whether every address of the first is there in the other, too, and in the same place. A scalar
/// that is an address in one call is one in the other.
bool CallComparison::same_addresses(const RecordedParameter& one,
                                    const RecordedParameter& other) const {
  if (!may_hold_padding(one, other) && one.addresses.size() != other.addresses.size()) {
    return false;
  }
  return std::all_of(one.addresses.begin(), one.addresses.end(),
                     [&](const auto& address) { return stays(address, other); });
}

/// A kernel finds a tensor in the same place of its parameters in every call. What lies in one
/// tensor in one call and elsewhere in the other was left there by an earlier call; zero stays.
void CallComparison::clear_moving_addresses(RecordedParameter& one,
                                            const RecordedParameter& other) const {
  std::erase_if(one.addresses, [&](const auto& address) {
    if (stays(address, other)) return false;
    std::fill_n(one.bytes.begin() + address.first, 8, '\0');
    return true;
  });
}

void CallComparison::note_padding(const std::string& kernel, std::size_t parameter,
                                  const std::string& bytes, const std::string& again) {
  std::size_t differing = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) differing += bytes[at] != again[at] ? 1 : 0;
  differing_bytes_ += differing;
  if (padded_.size() == max_padded_shown) return;
  padded_.push_back(shown_kernel(kernel) + ", parameter " + std::to_string(parameter));
}

}  // namespace rekernel
