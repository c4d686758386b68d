#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace rekernel::service {

/// The store could not do what it was asked: a full disk, a damaged file. Thrown within a
/// transaction, and turned into a value where that ends (StoreThread).
struct StorageFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One statement with its parameters, to be stepped through and forgotten.
class Query {
 public:
  Query(sqlite3* database, sqlite3_stmt* statement) : database_(database), statement_(statement) {}
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;
  ~Query();

  Query& bind(std::int64_t value);
  Query& bind(std::string_view text);
  Query& bind(const std::string& text) { return bind(std::string_view(text)); }
  template <class Value>
  Query& bind(const std::optional<Value>& value) {
    return value ? bind(*value) : bind_null();
  }

  /// Whether there is a (further) row.
  bool step();
  /// For statements without rows.
  void run() { step(); }

  std::int64_t integer(int column) const;
  std::string text(int column) const;
  bool is_null(int column) const;
  std::optional<std::int64_t> optional_integer(int column) const;

 private:
  void check(int code) const;
  Query& bind_null();

  sqlite3* database_;
  sqlite3_stmt* statement_;
  int bound_ = 0;
};

/// An SQLite database in a file, for one thread at a time. Statements are prepared once.
class Database {
 public:
  /// Throws StorageFailure.
  explicit Database(const std::filesystem::path& file);

  void execute(const char* statements);
  Query query(std::string_view statement);
  std::int64_t changes() const;
  bool in_transaction() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3, Close> database_;
  std::map<std::string, std::unique_ptr<sqlite3_stmt, Finalize>, std::less<>> statements_;
};

}  // namespace rekernel::service
