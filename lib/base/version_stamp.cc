// Compiled by Bazel when a binary is linked; BUILD_SCM_REVISION comes from
// third_party/workspace_status.sh.

extern "C" {
extern const char firstframe_build_commit[];
const char firstframe_build_commit[] =
#ifdef BUILD_SCM_REVISION
    BUILD_SCM_REVISION;
#else
    "unknown";
#endif
}
