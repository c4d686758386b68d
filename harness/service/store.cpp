#include "harness/service/store.h"

#include <fcntl.h>
#include <sys/file.h>

#include "harness/base/files.h"

namespace rekernel::service {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t schema_number = 1;

constexpr const char* schema = R"(
CREATE TABLE evaluations (
  ticket INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  client TEXT NOT NULL,
  key TEXT,
  digest TEXT NOT NULL,
  content TEXT NOT NULL,
  batch TEXT,
  problem TEXT NOT NULL,
  tier INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  deadline_s INTEGER,
  accepted_ms INTEGER NOT NULL,
  request TEXT,
  failures INTEGER NOT NULL DEFAULT 0,
  takedowns INTEGER NOT NULL DEFAULT 0,
  boot TEXT,
  kind INTEGER,
  judge TEXT,
  device TEXT,
  answer TEXT,
  kept INTEGER NOT NULL DEFAULT 0,
  answered_ms INTEGER);
CREATE UNIQUE INDEX evaluations_key ON evaluations (client, key) WHERE key IS NOT NULL;
CREATE INDEX evaluations_client ON evaluations (client, ticket);
CREATE INDEX evaluations_batch ON evaluations (batch) WHERE batch IS NOT NULL;
CREATE INDEX evaluations_unanswered ON evaluations (ticket) WHERE answer IS NULL;
CREATE INDEX evaluations_verdict ON evaluations (content) WHERE kind = 0;
CREATE INDEX evaluations_quarantined ON evaluations (content) WHERE kind = 2;
CREATE TRIGGER one_answer BEFORE UPDATE OF answer ON evaluations WHEN OLD.answer IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'an evaluation has one answer'); END;
PRAGMA user_version = 1;
)";

constexpr const char* row_columns =
    "ticket, id, client, digest, batch, problem, tier, priority, deadline_s, accepted_ms, "
    "failures, "
    "takedowns, answer, kept, answered_ms";

std::string select_rows(const char* condition) {
  return std::string("SELECT ") + row_columns + " FROM evaluations WHERE " + condition;
}

Row row_of(const Query& query) {
  Row row;
  row.ticket = query.integer(0);
  row.id = query.text(1);
  row.client = query.text(2);
  row.digest = query.text(3);
  if (!query.is_null(4)) row.batch = query.text(4);
  row.problem = query.text(5);
  row.tier = static_cast<Tier>(query.integer(6));
  row.priority = static_cast<Priority>(query.integer(7));
  row.deadline_s = query.optional_integer(8);
  row.accepted_ms = query.integer(9);
  row.failures = static_cast<int>(query.integer(10));
  row.takedowns = static_cast<int>(query.integer(11));
  if (!query.is_null(12)) row.answer = query.text(12);
  row.kept = query.integer(13) != 0;
  row.answered_ms = query.integer(14);
  return row;
}

std::vector<Row> rows_of(Query query) {
  std::vector<Row> rows;
  while (query.step()) rows.push_back(row_of(query));
  return rows;
}

std::int64_t version_of(Database& database) {
  Query query = database.query("PRAGMA user_version");
  return query.step() ? query.integer(0) : 0;
}

}  // namespace

const char* to_string(Answer::Kind kind) {
  switch (kind) {
    case Answer::Kind::verdict:
      return "verdict";
    case Answer::Kind::machine_error:
      return "machine_error";
    case Answer::Kind::quarantined:
      return "quarantined";
    case Answer::Kind::deadline_passed:
      return "deadline_passed";
    case Answer::Kind::cancelled:
      return "cancelled";
  }
  return "";
}

Result<Store> Store::open(const fs::path& folder) try {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) return Error{folder.string() + ": cannot be made: " + failure.message()};
  fs::permissions(folder, fs::perms::owner_all, failure);
  const fs::path lock_path = folder / "lock";
  FileDescriptor lock(::open(lock_path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (!lock.is_open()) return system_error(lock_path, "cannot be opened");
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return Error{folder.string() + ": another service uses this store"};
  }
  const fs::path file = folder / "evaluations.sqlite";
  auto database = std::make_unique<Database>(file);
  // An answer is told once it is on disk: every commit is synced.
  database->execute(
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = "
      "67108864;");
  const std::int64_t version = version_of(*database);
  if (version == 0) {
    database->execute("BEGIN IMMEDIATE");
    database->execute(schema);
    database->execute("COMMIT");
  } else if (version != schema_number) {
    return Error{file.string() + ": expected schema " + std::to_string(schema_number) + ", got " +
                 std::to_string(version)};
  }
  return Store(std::move(lock), std::move(database));
} catch (const StorageFailure& storage) {
  return Error{storage.what()};
}

std::vector<Acceptance> Store::accept(std::span<const NewEvaluation> evaluations, bool has_place,
                                      std::int64_t now_ms) {
  std::vector<Acceptance> acceptances;
  database_->execute("SAVEPOINT accepting");
  for (const NewEvaluation& one : evaluations) {
    acceptances.push_back(accept_one(one, has_place, now_ms));
    const Acceptance::Kind kind = acceptances.back().kind;
    if (kind == Acceptance::Kind::no_place || kind == Acceptance::Kind::key_reused) {
      database_->execute("ROLLBACK TO accepting");
      break;
    }
  }
  database_->execute("RELEASE accepting");
  return acceptances;
}

Acceptance Store::accept_one(const NewEvaluation& one, bool has_place, std::int64_t now_ms) {
  if (one.key) {
    static const std::string by_key = select_rows("client = ? AND key = ?");
    Query query = database_->query(by_key);
    query.bind(one.client).bind(*one.key);
    if (query.step()) {
      Row row = row_of(query);
      const bool same = row.digest == one.digest;
      return {same ? Acceptance::Kind::existed : Acceptance::Kind::key_reused, std::move(row)};
    }
  }
  if (!has_place) return {Acceptance::Kind::no_place, {}};
  database_
      ->query(
          "INSERT INTO evaluations (id, client, key, digest, content, batch, problem, tier, "
          "priority, "
          "deadline_s, accepted_ms, request) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .bind(one.id)
      .bind(one.client)
      .bind(one.key)
      .bind(one.digest)
      .bind(one.content)
      .bind(one.batch)
      .bind(one.problem)
      .bind(static_cast<std::int64_t>(one.tier))
      .bind(static_cast<std::int64_t>(one.priority))
      .bind(one.deadline_s)
      .bind(now_ms)
      .bind(one.request)
      .run();
  Acceptance acceptance;
  std::optional<Answer> before = quarantine(one.content);
  if (!before && one.takes_kept) before = kept(one.content, one.judge, one.device);
  if (before) {
    acceptance.kind = Acceptance::Kind::answered;
    answer(find(one.client, one.id)->ticket, *before, true, now_ms);
  }
  acceptance.row = *find(one.client, one.id);
  return acceptance;
}

std::optional<Row> Store::find(const std::string& client, const std::string& id) {
  static const std::string by_id = select_rows("client = ? AND id = ?");
  Query query = database_->query(by_id);
  query.bind(client).bind(id);
  if (!query.step()) return std::nullopt;
  return row_of(query);
}

std::vector<Row> Store::list(const std::string& client, const std::optional<std::string>& batch,
                             const std::string& after, std::size_t limit) {
  const std::optional<Row> last = find(client, after);
  static const std::string of_client =
      select_rows("client = ? AND ticket > ? ORDER BY ticket LIMIT ?");
  static const std::string of_batch =
      select_rows("batch = ? AND client = ? AND ticket > ? ORDER BY ticket LIMIT ?");
  std::vector<Row> rows;
  Query query = database_->query(batch ? of_batch : of_client);
  if (batch) query.bind(*batch);
  query.bind(client).bind(last ? last->ticket : 0).bind(static_cast<std::int64_t>(limit));
  while (query.step()) rows.push_back(row_of(query));
  return rows;
}

std::vector<Row> Store::unanswered() {
  static const std::string all = select_rows("answer IS NULL ORDER BY ticket");
  return rows_of(database_->query(all));
}

std::optional<std::string> Store::request(Ticket ticket) {
  Query query =
      database_->query("SELECT request FROM evaluations WHERE ticket = ? AND answer IS NULL");
  query.bind(ticket);
  if (!query.step() || query.is_null(0)) return std::nullopt;
  return query.text(0);
}

std::optional<Answer> Store::quarantine(const std::string& content) {
  Query query = database_->query(
      "SELECT answer FROM evaluations WHERE content = ? AND kind = 2 ORDER BY ticket DESC LIMIT 1");
  query.bind(content);
  if (!query.step()) return std::nullopt;
  return Answer{Answer::Kind::quarantined, "", "", query.text(0)};
}

std::optional<Answer> Store::kept(const std::string& content, const std::string& judge,
                                  const std::string& device) {
  Query query = database_->query(
      "SELECT answer FROM evaluations WHERE content = ? AND kind = 0 AND judge = ? AND device = ? "
      "ORDER BY ticket DESC LIMIT 1");
  query.bind(content).bind(judge).bind(device);
  if (!query.step()) return std::nullopt;
  return Answer{Answer::Kind::verdict, judge, device, query.text(0)};
}

bool Store::answer(Ticket ticket, const Answer& answer, bool was_kept, std::int64_t now_ms) {
  database_
      ->query(
          "UPDATE evaluations SET kind = ?, judge = ?, device = ?, answer = ?, kept = ?, "
          "answered_ms = ?, request = NULL, boot = NULL WHERE ticket = ? AND answer IS NULL")
      .bind(static_cast<std::int64_t>(answer.kind))
      .bind(answer.judge)
      .bind(answer.device)
      .bind(answer.body)
      .bind(was_kept ? std::int64_t{1} : std::int64_t{0})
      .bind(now_ms)
      .bind(ticket)
      .run();
  return database_->changes() == 1;
}

void Store::begin_judging(Ticket ticket, const std::string& boot) {
  database_->query("UPDATE evaluations SET boot = ? WHERE ticket = ? AND answer IS NULL")
      .bind(boot)
      .bind(ticket)
      .run();
}

void Store::end_judging(Ticket ticket, int failures, int takedowns) {
  database_
      ->query("UPDATE evaluations SET boot = NULL, failures = ?, takedowns = ? WHERE ticket = ?")
      .bind(std::int64_t{failures})
      .bind(std::int64_t{takedowns})
      .bind(ticket)
      .run();
}

void Store::settle_interrupted(const std::string& boot) {
  database_
      ->query(
          "UPDATE evaluations SET takedowns = takedowns + 1, failures = failures + 1 "
          "WHERE boot IS NOT NULL AND boot <> ? AND answer IS NULL")
      .bind(boot)
      .run();
  database_->execute("UPDATE evaluations SET boot = NULL WHERE boot IS NOT NULL");
}

std::int64_t Store::sweep(std::int64_t keep, std::int64_t most) {
  database_
      ->query(
          "DELETE FROM evaluations WHERE ticket IN (SELECT ticket FROM evaluations WHERE answer IS "
          "NOT "
          "NULL AND ticket <= (SELECT MAX(ticket) FROM evaluations) - ? ORDER BY ticket LIMIT ?)")
      .bind(keep)
      .bind(most)
      .run();
  return database_->changes();
}

}  // namespace rekernel::service
