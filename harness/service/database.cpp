#include "harness/service/database.h"

#include <sqlite3.h>

namespace rekernel::service {

namespace {

std::string complaint(sqlite3* database) {
  return std::string("the store: ") + (database ? sqlite3_errmsg(database) : "out of memory");
}

}  // namespace

Query::~Query() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

void Query::check(int code) const {
  if (code != SQLITE_OK) throw StorageFailure(complaint(database_));
}

Query& Query::bind(std::int64_t value) {
  check(sqlite3_bind_int64(statement_, ++bound_, value));
  return *this;
}

Query& Query::bind(std::string_view text) {
  check(sqlite3_bind_text64(statement_, ++bound_, text.data(), text.size(), SQLITE_TRANSIENT,
                            SQLITE_UTF8));
  return *this;
}

Query& Query::bind_null() {
  check(sqlite3_bind_null(statement_, ++bound_));
  return *this;
}

bool Query::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) throw StorageFailure(complaint(database_));
  return false;
}

std::int64_t Query::integer(int column) const { return sqlite3_column_int64(statement_, column); }

std::string Query::text(int column) const {
  const unsigned char* bytes = sqlite3_column_text(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return bytes ? std::string(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size))
               : std::string();
}

bool Query::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

std::optional<std::int64_t> Query::optional_integer(int column) const {
  if (is_null(column)) return std::nullopt;
  return integer(column);
}

void Database::Close::operator()(sqlite3* database) const { sqlite3_close(database); }
void Database::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Database::Database(const std::filesystem::path& file) {
  sqlite3* opened = nullptr;
  const int code =
      sqlite3_open_v2(file.c_str(), &opened,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  database_.reset(opened);
  if (code != SQLITE_OK) throw StorageFailure(file.string() + ": " + complaint(opened));
}

void Database::execute(const char* statements) {
  if (sqlite3_exec(database_.get(), statements, nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw StorageFailure(complaint(database_.get()));
  }
}

Query Database::query(std::string_view statement) {
  auto found = statements_.find(statement);
  if (found == statements_.end()) {
    sqlite3_stmt* prepared = nullptr;
    const int code =
        sqlite3_prepare_v3(database_.get(), statement.data(), static_cast<int>(statement.size()),
                           SQLITE_PREPARE_PERSISTENT, &prepared, nullptr);
    if (code != SQLITE_OK) throw StorageFailure(complaint(database_.get()));
    found = statements_.emplace(std::string(statement), nullptr).first;
    found->second.reset(prepared);
  }
  return Query(database_.get(), found->second.get());
}

std::int64_t Database::changes() const { return sqlite3_changes64(database_.get()); }

bool Database::in_transaction() const { return sqlite3_get_autocommit(database_.get()) == 0; }

}  // namespace rekernel::service
