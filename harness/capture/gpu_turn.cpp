#include "harness/capture/gpu_turn.h"

#include <sys/socket.h>

#include "harness/process/channel.h"

namespace rekernel {

Result<std::unique_ptr<GpuTurn>> GpuTurn::offer(const std::string& uuid,
                                                GpuLock::Clock::time_point deadline,
                                                GpuLock::OnWait on_wait) {
  auto sockets = Channel::sockets();
  if (!sockets) return sockets.error();
  std::unique_ptr<GpuTurn> turn(new GpuTurn(std::move(sockets->first), std::move(sockets->second)));
  turn->handing_over_ =
      std::jthread([turn = turn.get(), uuid, deadline, on_wait = std::move(on_wait)] {
        turn->hand_over(uuid, deadline, on_wait);
      });
  return turn;
}

void GpuTurn::hand_over(const std::string& uuid, GpuLock::Clock::time_point deadline,
                        const GpuLock::OnWait& on_wait) {
  char byte = 0;
  if (::recv(ours_.get(), &byte, 1, MSG_WAITALL) != 1) return;  // it ended without asking
  if (!uuid.empty()) {
    Result<GpuLock> lock = GpuLock::acquire(uuid, deadline, on_wait);
    if (!lock) {
      ::shutdown(ours_.get(), SHUT_RDWR);
      return;
    }
    lock_ = std::move(*lock);
  }
  ::send(ours_.get(), &byte, 1, MSG_NOSIGNAL);
}

}  // namespace rekernel
