#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace rekernel {

/// Why something was refused, as one line that a user can act on: the place, what is wrong there,
/// and what was expected.
struct Error {
  std::string message;
};

/// A value or the reason why there is none. Failures of candidates, plans and input files travel as
/// values; exceptions mean a defect of the harness or of CUDA itself.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return assert(ok()), std::get<0>(state_); }
  const T& value() const& { return assert(ok()), std::get<0>(state_); }
  T&& value() && { return assert(ok()), std::get<0>(std::move(state_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }

  const Error& error() const { return assert(!ok()), std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

/// The value type of a Result that carries nothing but success.
struct Ok {};

}  // namespace rekernel
