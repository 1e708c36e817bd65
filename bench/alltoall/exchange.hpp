// One all-to-all of a given size: buffers, counts, the call, the check of what was received.
#pragma once

#include <cstdint>
#include <vector>

#include <mpi.h>

namespace bench {

class Exchange {
 public:
  Exchange(std::int64_t bytes_per_peer, bool vector_counts, MPI_Comm communicator);

  void start(MPI_Request* request);
  // Writes new content to send and spoils what was received, so that an exchange that did nothing is found out.
  void prepare(int round);
  // All received bytes are the senders' of that round.
  bool verify(int round) const;

 private:
  // What rank `from` sends to rank `to`: around the size with vector counts, by a rule that both know.
  std::int64_t count(int from, int to) const;

  std::int64_t bytes_;
  bool vector_counts_;
  MPI_Comm communicator_;
  int rank_ = 0, ranks_ = 1;
  std::vector<int> send_counts_, send_displs_, receive_counts_, receive_displs_;
  std::vector<std::uint8_t> send_, receive_;
};

}  // namespace bench
