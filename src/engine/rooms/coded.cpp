// SPDX-License-Identifier: BSD-3-Clause
// Chunks that come compressed. They are decoded straight to where they belong, if this process can use that in place.
#include "engine/carriers/chunks.hpp"
#include "engine/coding/compression.hpp"
#include "engine/rooms/imports.hpp"

namespace offpath::engine {

using base::Status;
using codecs::CodecId;
using wire::Message;

namespace {

Status check_method(const Message& message, uint32_t readable) {
  const bool known = message.codec > 0 && message.codec < 32 && (readable >> message.codec & 1) != 0;
  if (known && codecs::is_width(message.width)) return {};
  return Status::error(OFFPATH_ERR_DAMAGED, "a chunk in codec %u with filter %u, which this service has not asked for",
                       message.codec, message.width);
}

}  // namespace

// `holder`: whose memory the payload is, given back when it is decoded; null: it is the caller's again on return.
// check_data() has found its place.
void Imports::decode(const Message& message, fabric::Bytes payload, Chunk* holder) {
  Pull& pull = pulls_.at(message.pull_id);
  Operation& operation = *pull.operation;
  CodedChunk* job = compression_.take();
  uint8_t* place_there = pull.target.memory->view(pull.target.address + message.offset, message.length);
  const bool in_place = place_there != nullptr;
  job->method = {static_cast<CodecId>(message.codec), message.width, 0};
  job->out = in_place ? codecs::Room(place_there, message.length) : job->plain_room(message.length);
  job->in = payload;
  if (holder == nullptr && !compression_.coder.prompt()) {
    job->kept.assign(payload.begin(), payload.end());
    job->in = job->kept;
  }
  job->since_ns = compression_.now_ns();
  const memory::Ticket ticket = runner_.next_ticket();
  const Status method = check_method(message, compression_.coder.readable());
  runner_.when_done(operation, method.ok() ? compression_.coder.decode(*job, ticket) : memory::Outcome(method), ticket,
                    [this, message, job, holder, in_place, memory = pull.target.memory](Operation* op, Status status) {
                      if (holder != nullptr) chunks_.give_back(holder);
                      if (status.ok() && job->check != message.check) {
                        status =
                            Status::error(OFFPATH_ERR_DAMAGED, "a compressed chunk has another checksum than was said");
                      }
                      if (op != nullptr && pulls_.contains(message.pull_id)) {
                        pulls_.at(message.pull_id).decode_ns += compression_.now_ns() - job->since_ns;
                        if (!status.ok()) {
                          finish_pull(message.pull_id, status, Cause::target_fault);
                        } else if (in_place) {
                          note_placed(message.pull_id, message.length, {});
                        } else {
                          place(message.pull_id, message.offset, job->out);
                        }
                      }
                      compression_.give_back(job);
                    });
}

}  // namespace offpath::engine
