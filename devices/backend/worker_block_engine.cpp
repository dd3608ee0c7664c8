// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/worker_block_engine.hpp"

namespace tandem::devices {

Result<std::unique_ptr<BlockEngine>> WorkerBlockEngine::create(DiskFile disk) {
  UniqueFd completion = TANDEM_TRY(create_eventfd());
  std::unique_ptr<WorkerBlockEngine> engine(new WorkerBlockEngine(std::move(disk), std::move(completion)));
  engine->worker_ = TANDEM_TRY(BlockWorker::create(engine->disk_, engine->completion_.get()));
  return engine;
}

void WorkerBlockEngine::reap(std::vector<BlockRequest*>& ended) {
  drain_eventfd(completion_.get());  // first: what ends from here on signals anew
  worker_->reap(ended);
}

}  // namespace tandem::devices
