// SPDX-License-Identifier: BSD-3-Clause
// The operations of the program pt2pt: each rank sends messages to one partner and receives as many from it.
//
// A message is posted when its receive is there before it is sent; unexpected when it has arrived before the receive is
// posted, which an empty message behind it tells the receiver. Of columns it lies in short pieces on both sides.
#include "../collectives/operation.hpp"

#include <numeric>

namespace bench {
namespace {

struct Pattern {
  const char* name;
  bool unexpected, wildcard;
  int outstanding;
  std::int64_t piece = 0;  // bytes, as many apart; 0: all of it is one
};

constexpr Pattern kPatterns[] = {
    {"posted", false, false, 1},       {"posted_8", false, false, 8},       {"posted_any", false, true, 1},
    {"posted_any_8", false, true, 8},  {"unexpected", true, false, 1},      {"unexpected_8", true, false, 8},
    {"unexpected_any", true, true, 1}, {"unexpected_any_8", true, true, 8}, {"columns", false, false, 1, 64},
};

class Messages : public Operation {
 public:
  Messages(const Pattern& pattern, std::int64_t bytes, MPI_Comm communicator)
      : pattern_(pattern),
        bytes_(bytes),
        piece_(pattern.piece == 0 ? bytes : std::gcd(bytes, pattern.piece)),
        stride_(pattern.piece == 0 ? piece_ : 2 * piece_),
        communicator_(communicator),
        send_(std::size_t(bytes / piece_ * stride_ * pattern.outstanding)),
        receive_(send_.size()) {
    if (pattern.piece != 0) {
      count_ = 1;
      MPI_Type_vector(int(bytes / piece_), int(piece_), int(stride_), MPI_BYTE, &type_);
      MPI_Type_commit(&type_);
    }
    int ranks = 2;
    MPI_Comm_rank(communicator, &rank_);
    MPI_Comm_size(communicator, &ranks);
    partner_ = (rank_ + ranks / 2) % ranks;  // on another node, where there are several
    prepare(0);
  }
  ~Messages() override {
    if (type_ != MPI_BYTE) MPI_Type_free(&type_);
  }

  int requests() const override { return 2 * pattern_.outstanding + (pattern_.unexpected ? 1 : 0); }

  void post(MPI_Request* requests) override {
    if (!pattern_.unexpected) receive(requests);
  }

  void start(MPI_Request* requests) override {
    for (int i = 0; i < pattern_.outstanding; ++i)
      MPI_Isend(&send_[at(i * bytes_)], count_, type_, partner_, i, communicator_, &requests[pattern_.outstanding + i]);
    if (pattern_.unexpected)
      MPI_Isend(nullptr, 0, MPI_BYTE, partner_, behind(), communicator_, &requests[2 * pattern_.outstanding]);
  }

  void halfway(MPI_Request* requests) override {
    if (!pattern_.unexpected) return;
    MPI_Recv(nullptr, 0, MPI_BYTE, partner_, behind(), communicator_, MPI_STATUS_IGNORE);
    receive(requests);
  }

  void prepare(int round) override {
    for (std::int64_t i = 0; i < all(); ++i) send_[at(i)] = content(rank_, partner_, round, i);
    for (std::uint8_t& byte : receive_) byte = std::uint8_t(~byte);
  }

  // Messages of one sender do not overtake each other, so each receive has its own, also by wildcards.
  bool verify(int round) const override {
    for (std::int64_t i = 0; i < all(); ++i)
      if (receive_[at(i)] != content(partner_, rank_, round, i)) return false;
    return true;
  }

 private:
  std::int64_t all() const { return bytes_ * pattern_.outstanding; }
  // Where that byte lies.
  std::size_t at(std::int64_t byte) const { return std::size_t(byte / piece_ * stride_ + byte % piece_); }
  int behind() const { return pattern_.outstanding; }  // the empty message's tag

  void receive(MPI_Request* requests) {
    for (int i = 0; i < pattern_.outstanding; ++i)
      MPI_Irecv(&receive_[at(i * bytes_)], count_, type_, pattern_.wildcard ? MPI_ANY_SOURCE : partner_,
                pattern_.wildcard ? MPI_ANY_TAG : i, communicator_, &requests[i]);
  }

  Pattern pattern_;
  std::int64_t bytes_, piece_, stride_;
  int count_ = int(bytes_);
  MPI_Datatype type_ = MPI_BYTE;
  MPI_Comm communicator_;
  int rank_ = 0, partner_ = 0;
  std::vector<std::uint8_t> send_, receive_;
};

}  // namespace

Words words() {
  return {
      "pt2pt",
      "--pattern",
      "MPI_Isend and MPI_Irecv, both ways between two ranks,",
      "receives posted before the messages are sent or after they have arrived; any: with wildcards; 8: so many at a "
      "time; columns: in pieces of 64 bytes, as many apart",
      "the length of a message",
      "posted"};
}

std::vector<std::string> operations() {
  std::vector<std::string> names;
  for (const Pattern& pattern : kPatterns) names.push_back(pattern.name);
  return names;
}

std::string refused(int ranks) {
  if (ranks % 2 == 0) return {};
  return std::to_string(ranks) + " ranks are not usable (each needs a partner). Start an even number";
}

std::unique_ptr<Operation> make_operation(const std::string& name, std::int64_t bytes, const std::string&,
                                          MPI_Comm communicator) {
  for (const Pattern& pattern : kPatterns)
    if (name == pattern.name) return std::make_unique<Messages>(pattern, bytes, communicator);
  return nullptr;
}

}  // namespace bench
