#include "lib/base/percentile.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace firstframe {
namespace {

// Expected values were printed by VideoX-Fun's own function.
TEST(Percentile, EqualsTheOriginals) {
  const std::vector<double> percents = {0, 50, 90, 95, 99, 100};
  const std::vector<std::pair<std::vector<double>, std::vector<double>>> cases =
      {{{3}, {3, 3, 3, 3, 3, 3}},
       {{1, 2}, {1, 1.5, 1.9, 1.95, 1.99, 2}},
       {{1, 2, 3, 4, 10},
        {1, 3, 7.6000000000000005, 8.799999999999999, 9.76, 10}}};
  for (const auto& [samples, expected] : cases) {
    for (size_t i = 0; i < percents.size(); ++i) {
      EXPECT_EQ(Percentile(samples, percents[i]), expected[i])
          << samples.size() << " samples, p" << percents[i];
    }
  }
}

TEST(Percentile, TakesSamplesInAnyOrder) {
  EXPECT_EQ(Percentile({10, 1, 4, 3, 2}, 50), 3);
}

TEST(Percentiles, SelectWhatSortingFinds) {
  std::mt19937 random(1);
  const std::vector<double> percents = {0, 1, 50, 50, 95, 99, 100};
  for (size_t size = 1; size < 200; ++size) {
    std::vector<double> samples(size);
    for (double& sample : samples) sample = static_cast<double>(random() % 50);
    std::vector<double> sorted = samples;
    std::sort(sorted.begin(), sorted.end());
    const std::vector<double> found =
        Percentiles(absl::MakeSpan(samples), percents);
    for (size_t i = 0; i < percents.size(); ++i) {
      ASSERT_EQ(found[i], PercentileOfSorted(sorted, percents[i]))
          << "p" << percents[i] << " of " << size;
    }
  }
}

}  // namespace
}  // namespace firstframe
