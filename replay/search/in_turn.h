#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace rekernel {

/// Takes things in whatever order they come and hands them on in one, each as soon as those before
/// it were handed on. What was handed on is forgotten.
template <class Item>
class InTurn {
 public:
  /// `going` is asked before each: false ends the handing on.
  InTurn(std::size_t count, std::function<void(std::size_t, const Item&)> hand_on,
         std::function<bool()> going)
      : items_(count), hand_on_(std::move(hand_on)), going_(std::move(going)) {}

  bool is_next(std::size_t index) const { return index == next_; }

  void arrive(std::size_t index, Item item) {
    items_[index] = std::move(item);
    hand_on_those_in_turn();
  }

  /// The next one, which stays where it is.
  void pass_next(const Item& item) {
    hand_on_(next_++, item);
    hand_on_those_in_turn();
  }

 private:
  void hand_on_those_in_turn() {
    for (; next_ < items_.size() && items_[next_] && going_(); ++next_) {
      hand_on_(next_, *items_[next_]);
      items_[next_].reset();
    }
  }

  std::vector<std::optional<Item>> items_;
  std::function<void(std::size_t, const Item&)> hand_on_;
  std::function<bool()> going_;
  std::size_t next_ = 0;
};

}  // namespace rekernel
