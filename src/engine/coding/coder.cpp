// SPDX-License-Identifier: BSD-3-Clause
#include "engine/coding/coder.hpp"

namespace offpath::engine {
namespace {

class Software : public Coder {
 public:
  uint32_t readable() const override { return codecs::all_codecs(); }
  bool prompt() const override { return true; }

  memory::Outcome encode(CodingJob& job, memory::Ticket) override {
    codecs::Loss loss;
    job.bytes = coding_.encode(job.method, job.in, job.out, &loss);
    const bool lossy = codecs::is_lossy(job.method.codec);
    if (job.bytes > 0) job.check = lossy ? loss.check : codecs::checksum(job.in);
    job.largest_error = loss.largest_error;
    return {};
  }
  memory::Outcome decode(CodingJob& job, memory::Ticket) override {
    if (!coding_.decode(job.method, job.in, job.out)) {
      return base::Status::error(OFFPATH_ERR_DAMAGED, "a chunk of %zu bytes is not %zu bytes in the codec %s",
                                 job.in.size(), job.out.size(), codecs::name_of(job.method.codec));
    }
    job.check = codecs::checksum(job.out);
    return {};
  }

 private:
  codecs::Coding coding_;
};

}  // namespace

std::unique_ptr<Coder> make_coder() { return std::make_unique<Software>(); }

}  // namespace offpath::engine
