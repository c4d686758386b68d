#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "harness/capture/recording.h"
#include "ops/result.h"

namespace rekernel {

/// Where an address lies: in a tensor, or elsewhere on the device.
struct RecordedPlace {
  std::string tensor;  ///< empty: elsewhere
  std::int64_t offset = 0;
};

RecordedPlace place_of(const RecordedCall& call, std::int64_t address);

/// The bytes of a parameter without those of addresses, its own or another's.
std::string without_addresses(const RecordedParameter& parameter);
std::string without_addresses(const RecordedParameter& parameter,
                              const RecordedParameter& addresses);

/// A kernel's name as messages show it.
std::string shown_kernel(const std::string& kernel);

/// Whether two recorded calls do the same work: what a plan may be made of.
class CallComparison {
 public:
  /// The steps are those of the two calls. Both must outlive it.
  CallComparison(const Recording& recording, std::array<std::vector<RecordedStep>, 2>& steps)
      : recording_(recording), steps_(steps) {}

  /// Step i of both calls must do the same in the same places; which piece of the rest of the
  /// memory it is may differ, and so may padding, of which the first call's steps then hold none.
  Result<Ok> compare(std::size_t i);

  /// What the plan has of the first call alone; empty where the two were the same.
  std::string note() const;

 private:
  bool same_place(const RecordedAddress& one, const RecordedAddress& other) const;
  std::string difference_of(RecordedLaunch& one, const RecordedLaunch& other);
  bool same_maps(const RecordedParameter& one, const RecordedParameter& other) const;
  bool same_addresses(const RecordedParameter& one, const RecordedParameter& other) const;
  bool stays(const std::pair<std::int64_t, RecordedAddress>& address,
             const RecordedParameter& other) const;
  void clear_moving_addresses(RecordedParameter& one, const RecordedParameter& other) const;
  void note_padding(const std::string& kernel, std::size_t parameter, const std::string& bytes,
                    const std::string& again);

  const Recording& recording_;
  std::array<std::vector<RecordedStep>, 2>& steps_;
  std::size_t differing_bytes_ = 0;
  std::vector<std::string> padded_;  ///< where they are; not all, if there are many
};

}  // namespace rekernel
