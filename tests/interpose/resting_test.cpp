// SPDX-License-Identifier: BSD-3-Clause
// Where waits rest once another service is in the place of the first one. Sessions without a service.
#include "attach/resting.hpp"
#include "client/session.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace offpath::attach {
namespace {

class Rests : public ::testing::Test {
 protected:
  static std::unique_ptr<offpath_session> make() {
    return std::make_unique<offpath_session>(std::move(base::Memfd::create("resting", session::kSegmentBytes).value()));
  }
  Rests() { sessions_.begin(before_.get()); }

  std::unique_ptr<offpath_session> before_ = make(), next_ = make();
  Sessions sessions_;
  Resting resting_;
};

// A window that was made before stays at its service.
TEST_F(Rests, AreInterruptedByTheSessionThatIsAtWork) {
  EXPECT_EQ(sessions_.awaited(), before_.get());
  sessions_.go_on(before_.get(), next_.get());
  EXPECT_EQ(sessions_.awaited(), next_.get());
  before_->outstanding = 1;
  EXPECT_EQ(sessions_.awaited(), before_.get());
  next_->outstanding = 1;
  EXPECT_EQ(sessions_.awaited(), next_.get());
  sessions_.go_on(before_.get(), next_.get());  // by another thread, which comes late
  EXPECT_EQ(sessions_.newest(), next_.get());
  sessions_.end();
  EXPECT_EQ(sessions_.awaited(), nullptr);
}

// The next service has done nothing yet: nobody who waits keeps the first one from its core all the same.
TEST_F(Rests, AreNeededForWhatStaysAtTheFirstService) {
  resting_.begin({&sessions_, false, true});
  sessions_.go_on(before_.get(), next_.get());
  EXPECT_FALSE(resting_.needed());  // there is a core for each process
  before_->outstanding = 1;
  EXPECT_TRUE(resting_.needed());
}

TEST_F(Rests, AreNeededOnACrowdedNodeOnceAnotherServiceIsThere) {
  resting_.begin({&sessions_, true, true});
  EXPECT_FALSE(resting_.needed());  // nothing was done yet
  sessions_.go_on(before_.get(), next_.get());
  EXPECT_TRUE(resting_.needed());
}

// Whoever has given it nothing waits for those that have.
TEST_F(Rests, AreNeededOnACrowdedNodeOnceTheServiceWorksForAnyOfTheJob) {
  resting_.begin({&sessions_, true, true});
  before_->header().in_use = 1;
  EXPECT_TRUE(resting_.needed());
  Resting uncrowded;
  uncrowded.begin({&sessions_, false, true});
  EXPECT_FALSE(uncrowded.needed());
}

// Also where nothing of the job is offloaded.
TEST_F(Rests, AreNeededWhereverTheUserWantsThem) {
  static bool yields = false;
  const auto set_yields = [](bool wanted) { return std::exchange(yields, wanted); };
  EXPECT_FALSE(resting_.insisted());
  resting_.insist(set_yields);
  EXPECT_TRUE(yields && resting_.insisted());
  resting_.begin({&sessions_, false, false});
  EXPECT_TRUE(resting_.needed());
  resting_.forbid();
  EXPECT_TRUE(resting_.rest());
  Resting unasked;
  unasked.forbid();
  EXPECT_FALSE(unasked.rest());
}

TEST(Sessions, TheOldestAreForgottenAfterMany) {
  Sessions sessions;
  std::vector<std::unique_ptr<offpath_session>> all;
  for (int i = 0; i < 20; ++i)
    all.push_back(
        std::make_unique<offpath_session>(std::move(base::Memfd::create("many", session::kSegmentBytes).value())));
  sessions.begin(all[0].get());
  for (size_t i = 1; i < all.size(); ++i) sessions.go_on(all[i - 1].get(), all[i].get());
  all[0]->outstanding = 1;
  EXPECT_EQ(sessions.busy(), nullptr);
  all[4]->outstanding = 1;
  EXPECT_EQ(sessions.busy(), all[4].get());
}

}  // namespace
}  // namespace offpath::attach
