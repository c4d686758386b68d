#include "harness/service/store_thread.h"

#include <algorithm>
#include <iterator>

namespace rekernel::service {

namespace {

/// More in one transaction would make the first of them wait.
constexpr std::size_t most_pieces = 512;

}  // namespace

StoreThread::StoreThread(Store store, Post post)
    : store_(std::move(store)), post_(std::move(post)), thread_([this] { serve(); }) {}

StoreThread::~StoreThread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void StoreThread::push(Piece piece) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(piece));
  }
  changed_.notify_one();
}

StoreThread::Counts StoreThread::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void StoreThread::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const auto end =
        waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(most_pieces, waiting_.size()));
    std::vector<Piece> pieces(std::make_move_iterator(waiting_.begin()),
                              std::make_move_iterator(end));
    waiting_.erase(waiting_.begin(), end);
    ++counts_.transactions;
    counts_.pieces += pieces.size();
    lock.unlock();
    std::vector<std::optional<Error>> failures = transact(pieces);
    post_([pieces = std::move(pieces), failures = std::move(failures)] {
      for (std::size_t i = 0; i < pieces.size(); ++i) pieces[i].done(failures[i]);
    });
    lock.lock();
  }
}

std::vector<std::optional<Error>> StoreThread::transact(const std::vector<Piece>& pieces) {
  std::vector<std::optional<Error>> failures(pieces.size());
  Database& database = store_.database();
  try {
    database.execute("BEGIN IMMEDIATE");
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      database.execute("SAVEPOINT piece");
      try {
        pieces[i].work(store_);
      } catch (const StorageFailure& failure) {
        failures[i] = Error{failure.what()};
        // A full disk ends the whole transaction, and with it all pieces.
        if (!database.in_transaction()) throw;
        database.execute("ROLLBACK TO piece");
      }
      database.execute("RELEASE piece");
    }
    database.execute("COMMIT");
  } catch (const StorageFailure& failure) {
    const Error error{failure.what()};
    try {
      if (database.in_transaction()) database.execute("ROLLBACK");
    } catch (const StorageFailure&) {  // the next BEGIN will say so
    }
    failures.assign(pieces.size(), error);
  }
  return failures;
}

}  // namespace rekernel::service
