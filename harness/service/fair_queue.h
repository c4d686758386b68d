#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace rekernel::service {

/// An evaluation's row in the store; later ones have larger numbers.
using Ticket = std::int64_t;

/// Orders a client's own evaluations, and takes nothing from other clients.
enum class Priority { high, normal, low };

/// Tickets of several clients that share one resource by time used: whoever had least of it for its
/// weight comes next; within a client by priority, then in order of arrival. Virtual-time fair
/// queueing (A. Demers, S. Keshav, S. Shenker, "Analysis and Simulation of a Fair Queueing
/// Algorithm", SIGCOMM 1989): a client that was away gets no credit for that.
class FairQueue {
 public:
  /// How large a client's share is beside others', at least 0.001; 1 if never said.
  void set_weight(const std::string& client, double weight);
  void push(const std::string& client, Priority priority, Ticket ticket);
  /// False if it is not there.
  bool erase(const std::string& client, Priority priority, Ticket ticket);
  /// What pop() would give.
  std::optional<Ticket> front() const;
  /// The next one; its client is charged `seconds` in advance.
  std::optional<Ticket> pop(double seconds);
  /// Corrects what was charged in advance; may be negative.
  void charge(const std::string& client, double seconds);
  std::size_t size() const { return size_; }

 private:
  struct Client {
    std::set<std::pair<Priority, Ticket>> waiting;
    double used = 0;  ///< seconds ÷ weight
    double weight = 1;
  };
  void unlist(const std::string& name, const Client& client);
  void list(const std::string& name, Client& client);

  std::map<std::string, Client> clients_;
  std::set<std::pair<double, std::string>> order_;  ///< of clients that wait
  double now_ = 0;                                  ///< `used` of the client that came last
  std::size_t size_ = 0;
};

}  // namespace rekernel::service
