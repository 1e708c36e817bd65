// SPDX-License-Identifier: BSD-3-Clause
#include "neighbours.hpp"

#include <tuple>

#include <mpi.h>

#include "edges.hpp"

namespace amr {
namespace {

Side side_of(int dx, int dy) { return dx < 0 ? kWest : dx > 0 ? kEast : dy < 0 ? kSouth : kNorth; }

}  // namespace

void Neighbours::add(Plan& plan, const Grid& grid, int rank, const Gift& gift) {
  const int from = grid.owner(gift.from), to = grid.owner(gift.to);
  if (from == rank && to == rank)
    plan.own.push_back(gift);
  else if (from == rank)
    plan.out[std::size_t(to)].gifts.push_back(gift);
  else if (to == rank)
    plan.in[std::size_t(from)].gifts.push_back(gift);
}

// Both ranks of a pair list its gifts in the same order.
void Neighbours::plan() {
  const std::size_t ranks = std::size_t(grid_.ranks());
  ghosts_ = {{}, std::vector<Mail>(ranks), std::vector<Mail>(ranks)};
  fluxes_ = ghosts_;
  for (int to = 0; to < grid_.patches(); ++to)
    for (int dx = -1; dx <= 1; ++dx)
      for (int dy = -1; dy <= 1; ++dy) {
        const int from = grid_.neighbour(to, dx, dy);
        if (from < 0 || from == to) continue;
        add(ghosts_, grid_, rank_, {from, to, dx, dy, ghosts_count(grid_.shape(to), dx, dy)});
        if ((dx == 0) != (dy == 0) && grid_.level(from) > grid_.level(to))
          add(fluxes_, grid_, rank_, {from, to, dx, dy, fluxes_count(grid_.shape(to))});
      }
  for (Plan* plan : {&ghosts_, &fluxes_})
    for (std::vector<Mail>* mails : {&plan->out, &plan->in})
      for (Mail& mail : *mails) {
        std::size_t count = 0;
        for (const Gift& gift : mail.gifts) count += gift.count;
        mail.values.resize(count);
      }
}

void Neighbours::exchange(Plan& plan, const Take& take, const Put& put) {
  std::vector<MPI_Request> requests;
  for (int peer = 0; peer < grid_.ranks(); ++peer) {
    Mail& in = plan.in[std::size_t(peer)];
    if (in.values.empty()) continue;
    requests.emplace_back();
    MPI_Irecv(in.values.data(), int(in.values.size()), MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &requests.back());
  }
  for (int peer = 0; peer < grid_.ranks(); ++peer) {
    Mail& out = plan.out[std::size_t(peer)];
    if (out.values.empty()) continue;
    double* at = out.values.data();
    for (const Gift& gift : out.gifts) take(gift, at), at += gift.count;
    requests.emplace_back();
    MPI_Isend(out.values.data(), int(out.values.size()), MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &requests.back());
  }
  for (const Gift& gift : plan.own) {
    buffer_.resize(gift.count);
    take(gift, buffer_.data());
    put(gift, buffer_.data());
  }
  MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  for (const Mail& in : plan.in) {
    const double* at = in.values.data();
    for (const Gift& gift : in.gifts) put(gift, at), at += gift.count;
  }
}

void Neighbours::fill_ghosts() {
  exchange(
      ghosts_,
      [&](const Gift& gift, double* values) {
        const Patch& from = patches_.of(gift.from);
        take_ghosts(from.shape, from.state, grid_.shape(gift.to), gift.dx, gift.dy, values);
      },
      [&](const Gift& gift, const double* values) {
        const Patch& to = patches_.of(gift.to);
        put_ghosts(to.shape, to.state, gift.dx, gift.dy, values);
      });
  for (Patch& patch : patches_.all())
    for (const auto& [side, dx, dy] : {std::tuple{kWest, -1, 0}, {kEast, 1, 0}, {kSouth, 0, -1}, {kNorth, 0, 1}})
      if (grid_.neighbour(patch.number, dx, dy) < 0) mirror(patch.shape, patch.state, side);
}

void Neighbours::correct_fluxes(double time_step) {
  exchange(
      fluxes_,
      [&](const Gift& gift, double* values) {
        const Patch& from = patches_.of(gift.from);
        take_fluxes(from.shape, from.result, grid_.shape(gift.to), side_of(gift.dx, gift.dy), values);
      },
      [&](const Gift& gift, const double* values) {
        const Patch& to = patches_.of(gift.to);
        correct(to.shape, to.next, to.result, side_of(gift.dx, gift.dy), time_step * to.shape.n, values);
      });
}

}  // namespace amr
