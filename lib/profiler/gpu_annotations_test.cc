#include "lib/profiler/gpu_annotations.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(GpuAnnotations, OneForEachStreamAndStep) {
  GpuAnnotations annotations;
  annotations.AddWork(3, 0, 7, 2000, 3000);
  annotations.AddRegion(3, "fastvideo.region::a", 5);
  annotations.AddWork(3, 0, 7, 1000, 1500);
  annotations.AddWork(3, 1, 9, 4000, 4500);
  annotations.AddRegion(4, "nothing ran", -1);
  annotations.AddWork(5, 0, 7, 1, 2);  // its region was lost
  annotations.AddRegion(6, "b", -1);
  annotations.AddWork(6, 0, 7, 9000, 9001);
  std::vector<std::string> events;
  ASSERT_THAT(annotations.Write(true,
                                [&](const std::string& event) {
                                  events.push_back(event);
                                  return absl::OkStatus();
                                }),
              IsOk());
  EXPECT_THAT(
      events,
      ElementsAre(
          AllOf(HasSubstr("ProfilerStep#5"), HasSubstr("\"ts\": 0.999"),
                HasSubstr("\"dur\": 2.002"), HasSubstr("\"tid\": 7")),
          AllOf(HasSubstr("region::a"), HasSubstr("\"External id\": 3")),
          AllOf(HasSubstr("ProfilerStep#5"), HasSubstr("\"pid\": 1"),
                HasSubstr("\"tid\": 9")),
          HasSubstr("region::a"), HasSubstr("\"name\": \"b\"")));
}

TEST(GpuAnnotations, AnErrorIsPassedOn) {
  GpuAnnotations annotations;
  annotations.AddRegion(1, "a", -1);
  annotations.AddWork(1, 0, 7, 1000, 2000);
  EXPECT_FALSE(annotations
                   .Write(false,
                          [](const std::string&) {
                            return absl::UnavailableError("full");
                          })
                   .ok());
}

}  // namespace
}  // namespace firstframe
