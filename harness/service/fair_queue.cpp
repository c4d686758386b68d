#include "harness/service/fair_queue.h"

#include <algorithm>

namespace rekernel::service {

void FairQueue::unlist(const std::string& name, const Client& client) {
  if (!client.waiting.empty()) order_.erase({client.used, name});
}

void FairQueue::list(const std::string& name, Client& client) {
  if (!client.waiting.empty()) order_.emplace(client.used, name);
}

void FairQueue::set_weight(const std::string& client, double weight) {
  clients_[client].weight = std::max(weight, 0.001);
}

void FairQueue::push(const std::string& name, Priority priority, Ticket ticket) {
  Client& client = clients_[name];
  unlist(name, client);
  if (client.waiting.empty()) client.used = std::max(client.used, now_);
  if (client.waiting.emplace(priority, ticket).second) ++size_;
  list(name, client);
}

bool FairQueue::erase(const std::string& name, Priority priority, Ticket ticket) {
  Client& client = clients_[name];
  unlist(name, client);
  const bool was_there = client.waiting.erase({priority, ticket}) > 0;
  if (was_there) --size_;
  list(name, client);
  return was_there;
}

std::optional<Ticket> FairQueue::front() const {
  if (order_.empty()) return std::nullopt;
  return clients_.at(order_.begin()->second).waiting.begin()->second;
}

std::optional<Ticket> FairQueue::pop(double seconds) {
  if (order_.empty()) return std::nullopt;
  const std::string name = order_.begin()->second;
  Client& client = clients_[name];
  unlist(name, client);
  now_ = client.used;
  const Ticket ticket = client.waiting.begin()->second;
  client.waiting.erase(client.waiting.begin());
  --size_;
  client.used += seconds / client.weight;
  list(name, client);
  return ticket;
}

void FairQueue::charge(const std::string& name, double seconds) {
  Client& client = clients_[name];
  unlist(name, client);
  client.used += seconds / client.weight;
  list(name, client);
}

}  // namespace rekernel::service
