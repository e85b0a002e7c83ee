#include "lib/activation/module_name.h"

#include "gtest/gtest.h"

namespace firstframe {
namespace {

TEST(CanonicalModule, DropsWrappersAndUnifiesIndices) {
  EXPECT_EQ(CanonicalModule("_orig_mod.module.blocks[3].attn1"),
            "blocks.3.attn1");
  EXPECT_EQ(CanonicalModule("blocks/3/_fsdp_wrapped_module/ffn"),
            "blocks.3.ffn");
  EXPECT_EQ(CanonicalModule("WanTransformer3DModel.blocks.0"), "blocks.0");
  EXPECT_EQ(CanonicalModule("Linear"), "Linear");
  EXPECT_EQ(CanonicalModule("a.module.b"), "a.module.b");
  EXPECT_EQ(CanonicalModule("to_q.base_layer"), "to_q");
  EXPECT_EQ(CanonicalModule("x[a]"), "x[a]");
}

TEST(ModuleTemplate, ReplacesNumbersAlone) {
  EXPECT_EQ(ModuleTemplate("decoder.up_blocks.1.resnets.0.conv1"),
            "decoder.up_blocks.*.resnets.*.conv1");
  EXPECT_EQ(ModuleTemplate("norm2"), "norm2");
  EXPECT_EQ(LeafTemplate("a.resample.1"), "resample.*");
  EXPECT_EQ(LeafTemplate("a.1.conv"), "conv");
}

}  // namespace
}  // namespace firstframe
