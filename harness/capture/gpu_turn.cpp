#include "harness/capture/gpu_turn.h"

#include <sys/socket.h>

#include "harness/process/channel.h"

namespace rekernel {

TakeGpu take_alone(const std::string& uuid, std::optional<GpuLock::Clock::time_point> deadline,
                   GpuLock::OnWait on_wait) {
  return [=, on_wait = std::move(on_wait)]() -> Result<std::shared_ptr<void>> {
    if (uuid.empty()) return std::shared_ptr<void>();
    Result<GpuLock> lock = GpuLock::acquire(uuid, deadline, on_wait);
    if (!lock) return lock.error();
    return std::shared_ptr<void>(std::make_shared<GpuLock>(std::move(*lock)));
  };
}

Result<std::unique_ptr<GpuTurn>> GpuTurn::offer(TakeGpu take) {
  auto sockets = Channel::sockets();
  if (!sockets) return sockets.error();
  std::unique_ptr<GpuTurn> turn(new GpuTurn(std::move(sockets->first), std::move(sockets->second)));
  turn->handing_over_ =
      std::jthread([turn = turn.get(), take = std::move(take)] { turn->hand_over(take); });
  return turn;
}

void GpuTurn::hand_over(const TakeGpu& take) {
  char byte = 0;
  if (::recv(ours_.get(), &byte, 1, MSG_WAITALL) != 1) return;  // it ended without asking
  Result<std::shared_ptr<void>> taken = take();
  if (!taken) {
    ::shutdown(ours_.get(), SHUT_RDWR);
    return;
  }
  held_ = std::move(*taken);
  ::send(ours_.get(), &byte, 1, MSG_NOSIGNAL);
}

}  // namespace rekernel
