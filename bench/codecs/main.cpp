// SPDX-License-Identifier: BSD-3-Clause
// offpath-codecs: what the service's codecs make of scientific data, chunk by chunk as it sends them, and how fast, with
// contexts and buffers that are kept and with new ones for each chunk. JSON on stdout. --write FIELD: that field's bytes.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "../../apps/kit/clocks.hpp"
#include "../../apps/kit/json.hpp"
#include "../../apps/kit/options.hpp"
#include "fields.hpp"
#include "kernels/codecs/coding.hpp"

using namespace offpath::codecs;

namespace {

struct Measured {
  std::size_t coded_bytes = 0;
  double encode_s = 0, decode_s = 0;  // of all chunks once; the best of several times
  double first_s = 0;                 // of the first chunk, which finds nothing that is kept; so, too
  bool whole = true;                  // what was decoded is what was encoded, or as near as was allowed
  double largest_error = 0;           // of a lossy one
};

Measured measure(const Method& method, Keep keep, Bytes data, std::size_t chunk, int repeats) {
  Measured out;
  std::vector<std::uint8_t> coded(chunk), plain(chunk);
  for (int repeat = 0; repeat < repeats; ++repeat) {
    Coding coding(keep);
    double encode_s = 0, decode_s = 0, first_s = 0;
    std::size_t coded_bytes = 0;
    for (int round = 0; round < 2; ++round) {  // the first one makes what is kept
      encode_s = decode_s = 0;
      coded_bytes = 0;
      for (std::size_t at = 0; at < data.size(); at += chunk) {
        const Bytes in = data.subspan(at, std::min(chunk, data.size() - at));
        double begin = kit::seconds_now();
        Loss loss;
        const std::size_t bytes = coding.encode(method, in, Room(coded).first(in.size() - in.size() / 16), &loss);
        const double took_s = kit::seconds_now() - begin;
        encode_s += took_s;
        if (round == 0 && at == 0) first_s = took_s;
        coded_bytes += bytes == 0 ? in.size() : bytes;
        if (bytes == 0) continue;  // it goes as it is
        begin = kit::seconds_now();
        const bool read = coding.decode(method, Bytes(coded).first(bytes), Room(plain).first(in.size()));
        decode_s += kit::seconds_now() - begin;
        const bool lossy = is_lossy(method.codec);
        const bool right = lossy ? loss.check == checksum(Bytes(plain).first(in.size()))
                                 : std::equal(in.begin(), in.end(), plain.begin());
        out.whole = out.whole && read && right;
        out.largest_error = std::max(out.largest_error, loss.largest_error);
        for (std::uint8_t& byte : plain)
          byte = std::uint8_t(~byte);  // what a repeat has left is wrong for the next one
      }
    }
    out.coded_bytes = coded_bytes;
    out.encode_s = repeat == 0 ? encode_s : std::min(out.encode_s, encode_s);
    out.first_s = repeat == 0 ? first_s : std::min(out.first_s, first_s);
    out.decode_s = repeat == 0 ? decode_s : std::min(out.decode_s, decode_s);
  }
  return out;
}

kit::Json row_of(const std::string& field, const Method& method, Keep keep, Bytes data, std::size_t chunk,
                 int repeats) {
  const Measured m = measure(method, keep, data, chunk, repeats);
  const auto per_s = [&](double s) { return s > 0 ? static_cast<double>(data.size()) / s : 0.0; };
  return {{"field", field},
          {"method", text_of(method)},
          {"kept", keep == Keep::all},
          {"chunk_bytes", chunk},
          {"bytes", data.size()},
          {"coded_bytes", m.coded_bytes},
          {"encode_bytes_per_s", per_s(m.encode_s)},
          {"decode_bytes_per_s", per_s(m.decode_s)},
          {"first_chunk_ns", std::round(1e9 * m.first_s)},
          {"chunk_ns", std::round(1e9 * m.encode_s * static_cast<double>(chunk) / static_cast<double>(data.size()))},
          {"largest_error", m.largest_error},
          {"whole", m.whole}};
}

// What is coded.
struct Source {
  std::string name;
  std::vector<std::uint8_t> data;
  unsigned width;  // bytes of its numbers
};

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) out.push_back(word);
  return out;
}

// No more than `most` bytes of it; none: it cannot be read.
Source read_file(std::string name, std::size_t most) {
  unsigned width = 8;
  const std::size_t colon = name.rfind(':');
  if (colon != std::string::npos && (name.substr(colon) == ":1" || name.substr(colon) == ":4")) {
    width = static_cast<unsigned>(name.back() - '0');
    name.resize(colon);
  }
  std::ifstream in(name, std::ios::binary);
  std::vector<std::uint8_t> data(most);
  in.read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(most));
  data.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  return {name, std::move(data), width};
}

struct Options : kit::Options {
  Options() : kit::Options("offpath-codecs", "What codecs make of scientific data, and how fast, as JSON.") {}
  std::int64_t bytes = number(bytes, "--bytes", 8 << 20, 1 << 12, std::int64_t{1} << 30, "of each field");
  Numbers chunks = numbers(chunks, "--chunks", {56 << 10}, 1 << 10, 1 << 24, "bytes that are coded at a time");
  int repeats = number(repeats, "--repeats", 3, 1, 1000, "the best of so many is taken");
  std::string file = text(file, "--file",
                          "files besides the fields that are made, separated by commas: of doubles, or with :1 behind "
                          "its name of bytes, with :4 of floats");
  std::string fields =
      text(fields, "--fields", "of the fields that are made, only these, separated by commas; none of them: none");
  bool only_codecs = flag(only_codecs, "--codecs", "only print the names of the codecs that this build has");
  std::string write = text(write, "--write", "only write this field to stdout");
};

int run(const Options& options) {
  const auto bytes = static_cast<std::size_t>(options.bytes);
  const auto refuse = [&](const std::string& problem) { return options.complain(problem, kit::kBadArguments); };
  if (options.only_codecs) {
    for (const CodecId codec : kCodecs) std::puts(name_of(codec));
    for (const CodecId codec : kNumberCodecs) {
      if (is_built(codec)) std::puts(name_of(codec));
    }
    return 0;
  }
  if (!options.write.empty()) {
    const auto data = fields::make(options.write, bytes);
    if (data.empty())
      return refuse("'" + options.write +
                    "' is no field (nothing is written). Use velocity, halo, tiles, single, text or random");
    return std::fwrite(data.data(), 1, data.size(), stdout) == data.size() ? 0 : 1;
  }
  std::vector<Source> sources;
  for (const std::string& name : options.fields.empty() ? fields::names() : words_of(options.fields)) {
    if (options.fields == "none") break;
    sources.push_back({name, fields::make(name, bytes), fields::width_of(name)});
    if (sources.back().data.empty())
      return refuse("'" + name + "' is no field (it is to be measured). Use one of those of --write");
  }
  for (const std::string& name : words_of(options.file)) {
    sources.push_back(read_file(name, bytes));
    if (sources.back().data.empty())
      return refuse("'" + name + "' cannot be read (it is to be measured). Give a file with something in it");
  }
  auto rows = kit::Json::array();
  for (const auto& [name, data, width] : sources) {
    for (const std::int64_t chunk : options.chunks) {
      for (const CodecId codec : kCodecs) {
        const auto add = [&](std::uint8_t filter, Keep keep) {
          rows.push_back(
              row_of(name, {codec, filter, 0}, keep, data, static_cast<std::size_t>(chunk), options.repeats));
        };
        add(1, Keep::all);
        add(1, Keep::nothing);
        if (width > 1) add(static_cast<std::uint8_t>(width), Keep::all);
      }
      const auto elements = static_cast<Elements>(width);
      for (const CodecId codec : kNumberCodecs) {
        if (!is_built(codec) || (elements != Elements::float32 && elements != Elements::float64)) continue;
        for (const double bound : {1e-3, 1e-5}) {
          const Method method{codec, 1, 0, {BoundKind::relative, bound}, elements};
          for (const Keep keep : {Keep::all, Keep::nothing}) {
            rows.push_back(row_of(name, method, keep, data, static_cast<std::size_t>(chunk), options.repeats));
          }
        }
      }
    }
  }
  std::puts(kit::Json{{"rows", rows}}.dump(1).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return kit::run(argc, argv, run); }
