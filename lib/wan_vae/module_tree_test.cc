#include "lib/wan_vae/module_tree.h"

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"
#include "lib/wan_vae/testdata.h"

namespace firstframe {
namespace {

class ModuleTreeOf : public ::testing::TestWithParam<const char*> {
 protected:
  ModuleTree Tree() const { return BuildModuleTree(*WanVaePreset(GetParam())); }
};

TEST_P(ModuleTreeOf, HasTheStateDictOfDiffusers) {
  const ModuleTree tree = Tree();
  const auto golden = testing::ReadGoldenParameters(GetParam());
  ASSERT_EQ(tree.parameters.size(), golden.size());
  for (size_t i = 0; i < golden.size(); ++i) {
    EXPECT_EQ(tree.parameters[i].name, golden[i].name);
    EXPECT_EQ(tree.parameters[i].shape, golden[i].shape) << golden[i].name;
  }
}

TEST_P(ModuleTreeOf, NamesExtendTheirParents) {
  const ModuleTree tree = Tree();
  std::set<std::string> names;
  EXPECT_EQ(tree.modules[0].name, "");
  EXPECT_EQ(tree.modules[0].parent, -1);
  for (size_t i = 1; i < tree.modules.size(); ++i) {
    const Module& module = tree.modules[i];
    ASSERT_LT(module.parent, static_cast<int>(i));
    const std::string& parent = tree.modules[module.parent].name;
    const std::string prefix = parent.empty() ? "" : parent + ".";
    EXPECT_EQ(module.name.rfind(prefix, 0), 0u) << module.name;
    EXPECT_EQ(module.name.find('.', prefix.size()), std::string::npos);
    EXPECT_TRUE(names.insert(module.name).second) << module.name;
    EXPECT_FALSE(ModuleKindName(module.kind).empty());
  }
}

INSTANTIATE_TEST_SUITE_P(All, ModuleTreeOf,
                         ::testing::Values("tiny", "small", "wan21"));

TEST(ModuleTree, NamesEveryModuleThatPyTorchHooks) {
  const ModuleTree tree = BuildModuleTree(*WanVaePreset("small"));
  std::set<std::string> names;
  for (const Module& module : tree.modules) names.insert(module.name);
  std::set<std::string> hooked;
  for (const auto& output : testing::ReadGoldenOutputs())
    hooked.insert(output.module);
  for (const std::string& name : hooked) EXPECT_TRUE(names.count(name)) << name;
  // And the other way round: every decoder module but the containers.
  for (const Module& module : tree.modules) {
    if (module.name.rfind("decoder", 0) != 0) continue;
    EXPECT_EQ(hooked.count(module.name),
              module.kind == ModuleKind::kList ? 0u : 1u)
        << module.name;
  }
}

}  // namespace
}  // namespace firstframe
