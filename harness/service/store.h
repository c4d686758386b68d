#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/base/file_descriptor.h"
#include "harness/service/database.h"
#include "harness/service/scheduler.h"
#include "ops/result.h"

namespace rekernel::service {

/// What ends an evaluation.
struct Answer {
  enum class Kind { verdict, machine_error, quarantined, deadline_passed, cancelled };
  Kind kind = Kind::machine_error;
  std::string judge;   ///< of a verdict: digest of what judged it
  std::string device;  ///< of a verdict: the GPU's name, or the compiler's target
  std::string body;    ///< a JSON object
};
const char* to_string(Answer::Kind kind);

/// An evaluation that a client asks for.
struct NewEvaluation {
  std::string id;
  std::string client;
  std::optional<std::string>
      key;              ///< the client's own, for asking twice without being judged twice
  std::string digest;   ///< of the request, to tell one key used for two requests
  std::string content;  ///< digest of all that decides the answer
  std::optional<std::string> batch;
  std::string problem;
  Tier tier = Tier::timed;
  Priority priority = Priority::normal;
  std::optional<std::int64_t> deadline_s;  ///< from its acceptance
  std::string request;                     ///< what is judged, as text
  /// A verdict that was given before serves as well, if it is of this judge and device.
  bool takes_kept = true;
  std::string judge;
  std::string device;
};

/// An evaluation as it is stored.
struct Row {
  Ticket ticket = 0;
  std::string id;
  std::string client;
  std::string digest;
  std::optional<std::string> batch;
  std::string problem;
  Tier tier = Tier::timed;
  Priority priority = Priority::normal;
  std::optional<std::int64_t> deadline_s;
  std::int64_t accepted_ms = 0;  ///< since 1970, by the machine's clock: for people
  int failures = 0;
  int takedowns = 0;
  std::optional<std::string> answer;  ///< Answer::body
  bool kept = false;                  ///< the answer had been given before
  std::int64_t answered_ms = 0;
};

/// What became of one NewEvaluation.
struct Acceptance {
  enum class Kind { accepted, existed, answered, key_reused, no_place };
  Kind kind = Kind::accepted;
  Row row;
};

/// Evaluations and their answers on disk. Every member throws StorageFailure, and belongs within a
/// transaction (StoreThread). README.md has the schema and what a crash leaves at each point.
class Store {
 public:
  /// Makes the folder if it is not there. Refuses one that another service uses.
  static Result<Store> open(const std::filesystem::path& folder);

  /// All of them or, where one has no place or a key of another request, none.
  std::vector<Acceptance> accept(std::span<const NewEvaluation> evaluations, bool has_place,
                                 std::int64_t now_ms);
  std::optional<Row> find(const std::string& client, const std::string& id);
  /// At most `limit` of the client's, of one batch where that is named, after the one of this id.
  std::vector<Row> list(const std::string& client, const std::optional<std::string>& batch,
                        const std::string& after, std::size_t limit);
  /// Those without an answer, in order, without their texts.
  std::vector<Row> unanswered();
  /// NewEvaluation::request; nothing once there is an answer.
  std::optional<std::string> request(Ticket ticket);
  /// A verdict given before on the same content, judge and device.
  std::optional<Answer> kept(const std::string& content, const std::string& judge,
                             const std::string& device);

  /// The answer to content that took the machine down twice.
  std::optional<Answer> quarantine(const std::string& content);

  /// Gives the answer and forgets the request. False if there was one already, which stays.
  bool answer(Ticket ticket, const Answer& answer, bool was_kept, std::int64_t now_ms);
  /// It is about to be judged on a device, since this boot of the machine.
  void begin_judging(Ticket ticket, const std::string& boot);
  /// It is on no device any more.
  void end_judging(Ticket ticket, int failures, int takedowns);
  /// Those on a device when the service died: a machine that started again since then may have gone
  /// down with them, which is counted; those of the same boot only lost their service.
  void settle_interrupted(const std::string& boot);
  /// Removes the oldest answered ones, but for `keep`, at most `most` at a time.
  std::int64_t sweep(std::int64_t keep, std::int64_t most);

  Database& database() { return *database_; }

 private:
  Store(FileDescriptor lock, std::unique_ptr<Database> database)
      : lock_(std::move(lock)), database_(std::move(database)) {}
  Acceptance accept_one(const NewEvaluation& one, bool has_place, std::int64_t now_ms);

  FileDescriptor lock_;
  std::unique_ptr<Database> database_;
};

}  // namespace rekernel::service
