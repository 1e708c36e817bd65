// SPDX-License-Identifier: BSD-3-Clause
// What becomes of payloads that are under way when a service dies (docs/design/0044-recovery.md). Their senders have them
// still, but do not know whether they have arrived, as the word of that may be what was lost. So a sender asks. The receiver
// looks into its own memory: what is not there it receives natively, in the place where the put would have written it.
//
// Words are small eager messages on a communicator of their own, so saying one waits for nobody.
//
// Threads: any. Calls that communicate: Inside.
#pragma once

#include "mpi/lanes/words.hpp"
#include "mpi/messages/ticket.hpp"
#include "mpi/types/datatype.hpp"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace offpath::mpi {

class Resending {
 public:
  // Collective over the job. MPI error code.
  int open();
  void close();
  // Of this process, for what else is said there.
  Seat seat() const;
  // Takes words in, answers questions, ends receives. Never waits. May throw bad_alloc.
  void listen();
  // The library may still write to memory that this process has granted.
  bool receives();

  // ---- as a sender. question, here and wanted are of the payload of a ticket; held and heard of synchronous sends.
  enum class Said { question, here, wanted, refused, held, heard };
  struct Word {
    Said said;
    int tag = 0;        // wanted: of the message with the payload
    uint64_t held = 0;  // held: as Office::Entry; heard: of the sends that are under way, if no others will be
    bool last = false;  // heard: so it is
    Ticket ticket = {};
  };
  // May throw bad_alloc.
  void ask(int receiver, const Ticket& ticket);
  // What was answered; once.
  std::optional<Word> answer(const Ticket& ticket);
  // Sends a payload that was wanted. MPI error code.
  int send(const std::byte* payload, const Word& wanted, int receiver, MPI_Request* sent) const;
  // Which synchronous sends to there are held, if a word has said that.
  std::optional<uint64_t> held(int receiver);

  // ---- as a receiver: that, to a sender whom no service tells it any more. Anywhere. May throw bad_alloc.
  void say_held(int sender);
  // It has heard all of them.
  bool is_heard(int sender);
  // One of those may still come from there: as Office::Entry. After a loss it says once that no more begin.
  bool may_come(int sender, uint64_t held);

 private:
  struct Receiving {
    MPI_Request request;
    Ticket ticket;
    std::byte* payload;
  };
  void say(int to, const Word& word);
  void take(int from, const Word& word);
  Word answer_to(const Ticket& ticket, int from);

  std::mutex mutex_;  // over what follows; the office's may be taken under it
  MPI_Comm comm_ = MPI_COMM_NULL;
  uint64_t wanted_ = 0;
  std::list<Receiving> receiving_;
  std::unordered_map<uint64_t, Word> answers_;  // by signal
  std::unordered_map<int, uint64_t> held_;      // by receiver
  std::unordered_map<int, uint64_t> unheard_;   // by sender: so many words
  std::unordered_map<int, uint64_t> last_;      // by sender: the last ones
};

// The memory of a message that may be sent again.
struct Payload {
  TypeRef type;
  uintptr_t address = 0;
  int64_t count = 0;
  std::unique_ptr<std::byte[]> copy = nullptr;  // packed, where it is sent from that
};

// One that is.
class Again {
 public:
  // Asks. What it is given lives longer. Inside. May throw bad_alloc.
  Again(int receiver, const Ticket& ticket, const Payload& payload);
  // MPI error code once the receiver has it, or never will; the library is done with the payload then. Inside. May throw
  // bad_alloc.
  std::optional<int> advance();

 private:
  std::optional<int> send();

  int receiver_;
  const Ticket& ticket_;
  const Payload& payload_;
  std::vector<std::byte> packed_;
  MPI_Request sent_ = MPI_REQUEST_NULL;
  std::optional<Resending::Word> answer_;
};

}  // namespace offpath::mpi
