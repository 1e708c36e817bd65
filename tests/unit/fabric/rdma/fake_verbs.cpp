// SPDX-License-Identifier: BSD-3-Clause
#include "fake_verbs.hpp"

#include "base/fd.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <memory>

#undef ibv_query_port
#undef ibv_reg_mr

namespace offpath::testing {
namespace {

struct Device : ibv_device {
  const FakePort* port;
};

struct Context : ibv_context {
  const FakePort* port;
  int reads_answered;
  base::Fd events, tell;
  bool removed = false;
};

struct Region : ibv_mr {
  int access;
};

struct Queue : ibv_cq {
  std::deque<ibv_wc> done;
  bool armed = false;
};

struct Channel : ibv_comp_channel {
  base::Fd tell, hear;
  Queue* queue = nullptr;
};

struct Connection : ibv_qp {
  ibv_qp_attr attributes{};
  uint32_t most_asked = 0;
  struct Asked {
    ibv_send_wr request;
    ibv_sge place;
  };
  std::deque<Asked> asked;
};

std::map<uint32_t, Connection*> connections;
std::map<uint32_t, Region*> regions;
std::vector<Context*> contexts;
std::vector<Channel*> channels;
uint32_t last_number = 0;

void pipe_of(base::Fd& hear, base::Fd& tell) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  hear = base::Fd(ends[0]), tell = base::Fd(ends[1]);
}

Region* region(uint32_t key, const ibv_pd* domain, uint64_t from, uint64_t bytes, int access) {
  const auto found = regions.find(key);
  if (found == regions.end()) return nullptr;
  Region* const there = found->second;
  const auto begin = reinterpret_cast<uint64_t>(there->addr);
  const bool covers = begin <= from && bytes <= there->length && from - begin <= there->length - bytes;
  return covers && there->pd == domain && (there->access & access) == access ? there : nullptr;
}

void complete(Connection& connection, uint64_t number, ibv_wc_status status) {
  auto* const queue = static_cast<Queue*>(connection.send_cq);
  if (static_cast<Context*>(queue->context)->removed) return;
  if (static_cast<int>(queue->done.size()) >= queue->cqe) {
    cards().overflowed = true;
    return;
  }
  ibv_wc& done = queue->done.emplace_back();
  done.wr_id = number;
  done.status = status;
  if (std::exchange(queue->armed, false)) {
    EXPECT_EQ(write(static_cast<Channel*>(queue->channel)->tell.get(), "", 1), 1);
  }
}

void break_off(Connection& connection) {
  connection.state = IBV_QPS_ERR;
  for (const auto& each : std::exchange(connection.asked, {}))
    complete(connection, each.request.wr_id, IBV_WC_WR_FLUSH_ERR);
}

ibv_wc_status read_one(Connection& here, const Connection::Asked& asked) {
  const ibv_qp_attr& own = here.attributes;
  const uint64_t from = asked.request.wr.rdma.remote_addr;
  const uint32_t bytes = asked.place.length;
  if (bytes > cards().longest_message) return IBV_WC_LOC_LEN_ERR;
  if (region(asked.place.lkey, here.pd, asked.place.addr, bytes, IBV_ACCESS_LOCAL_WRITE) == nullptr)
    return IBV_WC_LOC_PROT_ERR;
  const auto found = connections.find(own.dest_qp_num);
  if (!cards().reaches || found == connections.end()) return IBV_WC_RETRY_EXC_ERR;
  Connection& there = *found->second;
  const ibv_qp_attr& others = there.attributes;
  const bool known = (there.state == IBV_QPS_RTR || there.state == IBV_QPS_RTS) && others.dest_qp_num == here.qp_num &&
                     others.rq_psn == own.sq_psn;
  if (!known) return IBV_WC_RETRY_EXC_ERR;
  if (own.max_rd_atomic > others.max_dest_rd_atomic) return IBV_WC_REM_INV_REQ_ERR;
  if ((others.qp_access_flags & IBV_ACCESS_REMOTE_READ) == 0 ||
      region(asked.request.wr.rdma.rkey, there.pd, from, bytes, IBV_ACCESS_REMOTE_READ) == nullptr) {
    break_off(there);
    return IBV_WC_REM_ACCESS_ERR;
  }
  memcpy(reinterpret_cast<void*>(asked.place.addr), reinterpret_cast<const void*>(from), bytes);
  ++cards().reads;
  cards().longest_read = std::max(cards().longest_read, bytes);
  return IBV_WC_SUCCESS;
}

void answer(Connection& connection) {
  if (static_cast<Context*>(connection.context)->removed) return;
  while (!connection.asked.empty()) {
    const auto asked = connection.asked.front();
    connection.asked.pop_front();
    const ibv_wc_status status = connection.state == IBV_QPS_RTS ? read_one(connection, asked) : IBV_WC_WR_FLUSH_ERR;
    complete(connection, asked.request.wr_id, status);
    if (status != IBV_WC_SUCCESS) break_off(connection);
  }
}

int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** refused) {
  auto& connection = static_cast<Connection&>(*qp);
  *refused = request;
  if (request->opcode != IBV_WR_RDMA_READ || request->num_sge != 1 || request->next != nullptr) return EINVAL;
  if (connection.state != IBV_QPS_RTS && connection.state != IBV_QPS_ERR) return EINVAL;
  if (connection.asked.size() >= connection.most_asked) return ENOMEM;
  connection.asked.push_back({*request, *request->sg_list});
  cards().most_under_way = std::max(cards().most_under_way, cards().under_way());
  if (!cards().holds) answer(connection);
  return 0;
}

int poll_cq(ibv_cq* cq, int most, ibv_wc* out) {
  auto& queue = static_cast<Queue&>(*cq);
  if (cards().overflowed) return -1;
  int count = 0;
  for (; count < most && !queue.done.empty(); ++count) {
    out[count] = queue.done.front();
    queue.done.pop_front();
  }
  return count;
}

int req_notify_cq(ibv_cq* cq, int) {
  static_cast<Queue*>(cq)->armed = true;
  return 0;
}

const std::vector<ibv_gid_entry>& gids_of(const FakePort& port) {
  static const std::vector<ibv_gid_entry> usual = [] {
    ibv_gid_entry entry{};
    entry.gid.raw[10] = entry.gid.raw[11] = 0xff;
    entry.gid.raw[12] = 10;
    entry.gid_type = IBV_GID_TYPE_ROCE_V2;
    return std::vector{entry};
  }();
  return port.gids.empty() ? usual : port.gids;
}

}  // namespace

FakeCards& cards() {
  static FakeCards only;
  return only;
}

size_t FakeCards::under_way() const {
  size_t count = 0;
  for (const auto& [number, each] : testing::connections) count += each->asked.size();
  return count;
}

void FakeCards::release() {
  holds = false;
  for (const auto& [number, each] : testing::connections) answer(*each);
}

void FakeCards::remove() {
  for (Context* const each : contexts) {
    each->removed = true;
    EXPECT_EQ(write(each->tell.get(), "", 1), 1);
    each->tell = {};
  }
  for (Channel* const each : channels) each->tell = {};  // for ever an error to who waits, as in the kernel
}

void start_anew() {
  EXPECT_EQ(cards().regions, 0U);
  EXPECT_EQ(cards().connections, 0U);
  EXPECT_EQ(cards().locked, 0U);
  EXPECT_FALSE(cards().overflowed) << "of a queue of completions";
  EXPECT_TRUE(contexts.empty());
  cards() = {};
}

}  // namespace offpath::testing

extern "C" {
using namespace offpath::testing;

ibv_device** ibv_get_device_list(int* count) {
  const auto& ports = cards().ports;
  auto** const list = new ibv_device*[ports.size() + 1]();
  for (size_t i = 0; i < ports.size(); ++i) {
    static std::map<const FakePort*, std::unique_ptr<Device>> all;
    auto& device = all[&ports[i]];
    if (device == nullptr) device = std::make_unique<Device>();
    device->port = &ports[i];
    snprintf(device->name, sizeof(device->name), "%s", ports[i].device.c_str());
    list[i] = device.get();
  }
  *count = static_cast<int>(ports.size());
  return list;
}

void ibv_free_device_list(ibv_device** list) { delete[] list; }
const char* ibv_get_device_name(ibv_device* device) { return device->name; }

ibv_context* ibv_open_device(ibv_device* device) {
  auto* const context = new Context{};
  context->device = device;
  context->port = static_cast<Device*>(device)->port;
  context->reads_answered = cards().reads_answered;
  context->ops.post_send = post_send;
  context->ops.poll_cq = poll_cq;
  context->ops.req_notify_cq = req_notify_cq;
  pipe_of(context->events, context->tell);
  context->async_fd = context->events.get();
  contexts.push_back(context);
  return context;
}

int ibv_close_device(ibv_context* context) {
  std::erase(contexts, context);
  delete static_cast<Context*>(context);
  return 0;
}

int ibv_query_device(ibv_context* context, ibv_device_attr* out) {
  *out = {};
  out->phys_port_cnt = 1;
  out->max_qp_rd_atom = static_cast<Context*>(context)->reads_answered;
  out->max_qp_init_rd_atom = cards().reads_asked;
  out->max_cqe = cards().longest_queue;
  return 0;
}

int ibv_query_port(ibv_context* context, uint8_t, _compat_ibv_port_attr* compatible) {
  const FakePort& port = *static_cast<Context*>(context)->port;
  cards().opened = port.device;
  auto& out = *reinterpret_cast<ibv_port_attr*>(compatible);
  out.state = port.state;
  out.active_mtu = out.max_mtu = IBV_MTU_4096;
  out.gid_tbl_len = static_cast<int>(gids_of(port).size());
  out.max_msg_sz = cards().longest_message;
  out.lid = port.ethernet ? 0 : 7;
  out.active_width = port.width;
  out.active_speed = port.speed;
  out.link_layer = port.ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
  return 0;
}

int _ibv_query_gid_ex(ibv_context* context, uint32_t, uint32_t index, ibv_gid_entry* out, uint32_t, size_t) {
  const auto& all = gids_of(*static_cast<Context*>(context)->port);
  if (index >= all.size()) return ENODATA;
  *out = all[index];
  out->gid_index = index;
  return 0;
}

ibv_pd* ibv_alloc_pd(ibv_context* context) { return new ibv_pd{context, 0}; }

int ibv_dealloc_pd(ibv_pd* domain) {
  const auto is_of_it = [&](const auto& each) { return each.second->pd == domain; };
  EXPECT_TRUE(std::none_of(regions.begin(), regions.end(), is_of_it));
  EXPECT_TRUE(std::none_of(connections.begin(), connections.end(), is_of_it));
  delete domain;
  return 0;
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* data, size_t bytes, uint64_t, unsigned int access) {
  rlimit limit{};
  const bool none = getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur == 0;
  if (none || cards().locked + bytes > cards().most_locked) {
    errno = ENOMEM;
    return nullptr;
  }
  auto* const made = new Region{};
  made->context = domain->context, made->pd = domain;
  made->addr = data, made->length = bytes;
  made->access = static_cast<int>(access);
  made->lkey = made->rkey = ++last_number;
  regions[made->lkey] = made;
  cards().locked += bytes;
  ++cards().regions;
  return made;
}

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* data, size_t bytes, int access) {
  return ibv_reg_mr_iova2(domain, data, bytes, 0, static_cast<unsigned int>(access));
}

int ibv_dereg_mr(ibv_mr* region) {
  cards().locked -= region->length;
  --cards().regions;
  regions.erase(region->lkey);
  delete static_cast<Region*>(region);
  return 0;
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  auto* const channel = new Channel{};
  channel->context = context;
  pipe_of(channel->hear, channel->tell);
  channel->fd = channel->hear.get();
  channels.push_back(channel);
  return channel;
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  std::erase(channels, channel);
  delete static_cast<Channel*>(channel);
  return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void*, ibv_comp_channel* channel, int) {
  if (!cards().has_queues || entries > cards().longest_queue) {
    errno = EINVAL;
    return nullptr;
  }
  auto* const queue = new Queue{};
  queue->context = context, queue->channel = channel;
  queue->cqe = entries;
  static_cast<Channel*>(channel)->queue = queue;
  return queue;
}

int ibv_destroy_cq(ibv_cq* queue) {
  for (const auto& [number, each] : connections) EXPECT_NE(each->send_cq, queue);
  delete static_cast<Queue*>(queue);
  return 0;
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** queue, void**) {
  char byte = 0;
  if (read(channel->fd, &byte, 1) != 1) return -1;
  *queue = static_cast<Channel*>(channel)->queue;
  return 0;
}

void ibv_ack_cq_events(ibv_cq*, unsigned int) {}

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  char byte = 0;
  if (read(context->async_fd, &byte, 1) != 1) return -1;
  event->event_type = IBV_EVENT_DEVICE_FATAL;
  return 0;
}

void ibv_ack_async_event(ibv_async_event*) {}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* wanted) {
  auto* const made = new Connection{};
  made->context = domain->context, made->pd = domain;
  made->send_cq = wanted->send_cq;
  made->most_asked = wanted->cap.max_send_wr;
  made->state = IBV_QPS_RESET;
  made->qp_num = ++last_number;
  connections[made->qp_num] = made;
  ++cards().connections;
  return made;
}

int ibv_destroy_qp(ibv_qp* qp) {
  connections.erase(qp->qp_num);
  --cards().connections;
  delete static_cast<Connection*>(qp);
  return 0;
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* next, int mask) {
  auto& connection = static_cast<Connection&>(*qp);
  ibv_qp_attr& now = connection.attributes;
  if (static_cast<Context*>(qp->context)->removed) return EIO;
  if (next->qp_state == IBV_QPS_ERR) {
    break_off(connection);
    return 0;
  }
  if (next->qp_state != connection.state + 1) return EINVAL;
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) now.qp_access_flags = next->qp_access_flags;
  if ((mask & IBV_QP_DEST_QPN) != 0) now.dest_qp_num = next->dest_qp_num;
  if ((mask & IBV_QP_RQ_PSN) != 0) now.rq_psn = next->rq_psn;
  if ((mask & IBV_QP_SQ_PSN) != 0) now.sq_psn = next->sq_psn;
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0) now.max_dest_rd_atomic = next->max_dest_rd_atomic;
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0) now.max_rd_atomic = next->max_rd_atomic;
  if (now.max_dest_rd_atomic > static_cast<Context*>(qp->context)->reads_answered) return EINVAL;
  if ((mask & IBV_QP_AV) != 0) cards().path = next->ah_attr;
  connection.state = next->qp_state;
  return 0;
}
}
