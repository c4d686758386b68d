#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/candidate/arch.h"

namespace rekernel {

/// What a value in kernel.json may be.
struct PlanValue {
  enum class Kind { text, integer, real, boolean, choice, list, map, object, any_of };
  Kind kind = Kind::integer;
  /// The least and the most: of an integer its value, of a text its bytes, of a list or a map its
  /// entries.
  std::int64_t least = 0;
  std::uint64_t most = 0;
  bool in_axes = false;              ///< an integer that may be an expression of axes in quotes
  std::string pattern;               ///< of a text, or of a map's keys: ECMAScript; empty: any
  std::vector<std::string> choices;  ///< of a choice
  /// Of a list or a map: its entries, or several by position. Of `any_of`: the alternatives.
  std::vector<PlanValue> of;
  std::string object;  ///< of an object: PlanObject::name
  std::string words;   ///< what it is called; empty where the kind says it all
};

/// One key of an object in kernel.json.
struct PlanKey {
  std::string key;
  PlanValue value;
  bool required = false;
  std::string meaning;
  std::string example;                   ///< JSON
  bool (*needs)(Arch) = nullptr;         ///< of the plan's `arch`; null: any
  std::int64_t (*most)(Arch) = nullptr;  ///< where `arch` lowers the most of the value
  /// Whether a search's replies hold it: the rest is filled in, or is for captured programs.
  bool in_replies = true;
  std::string most_words;  ///< where the most is no fixed number: what it is
};

/// One kind of object in kernel.json.
struct PlanObject {
  std::string name;   ///< "launch": by which values refer to it
  std::string title;  ///< "A kernel launch"
  std::string meaning;
  std::vector<PlanKey> keys;
  bool one_key = false;  ///< it has exactly one of them
};

/// Every object of kernel.json, the plan itself first. The reader in harness/candidate decides what
/// is valid; this table says the same to people, editors and models, and a test holds it to that.
const std::vector<PlanObject>& plan_objects();

/// One of plan_objects(), which it must be.
const PlanObject& plan_object(std::string_view name);

/// The object with every key that it can have, as JSON text: the keys' examples.
std::string plan_example(const PlanObject& object);

/// The objects that a value is or holds, without those that these hold.
std::vector<const PlanObject*> objects_in(const PlanValue& value);

/// The value as plans for one architecture may have it.
PlanValue value_for(const PlanKey& key, Arch arch);

}  // namespace rekernel
