#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "harness/service/store.h"
#include "ops/result.h"

namespace rekernel::service {

/// The store on a thread of its own, which gathers what was asked meanwhile into one transaction:
/// a sync to disk serves many requests. All work is done in the order in which it was asked for.
class StoreThread {
 public:
  using Post = std::function<void(std::function<void()>)>;

  /// `post` brings what is to be told to the service's thread, in order.
  StoreThread(Store store, Post post);
  /// Does what was asked for so far.
  ~StoreThread();

  /// `done` is told, through `post`, once the work is on disk, or why it is not: then nothing of it
  /// is.
  template <class T>
  void ask(std::function<T(Store&)> work, std::function<void(Result<T>)> done) {
    auto value = std::make_shared<std::optional<T>>();
    push({[value, work = std::move(work)](Store& store) { *value = work(store); },
          [value, done = std::move(done)](const std::optional<Error>& failure) {
            if (failure) return done(*failure);
            done(std::move(**value));
          }});
  }

  /// Transactions so far, and how many pieces of work they held.
  struct Counts {
    std::uint64_t transactions = 0;
    std::uint64_t pieces = 0;
  };
  Counts counts() const;

 private:
  struct Piece {
    std::function<void(Store&)> work;
    std::function<void(const std::optional<Error>&)> done;
  };
  void push(Piece piece);
  void serve();
  /// A failure for each piece that had one.
  std::vector<std::optional<Error>> transact(const std::vector<Piece>& pieces);

  Store store_;
  Post post_;
  mutable std::mutex mutex_;  ///< of what follows
  std::condition_variable changed_;
  std::vector<Piece> waiting_;
  bool ending_ = false;
  Counts counts_;
  std::thread thread_;
};

}  // namespace rekernel::service
