"""Times the imports of an observed Python program.

Placed first on PYTHONPATH as sitecustomize.py. It takes itself off the path, runs
the sitecustomize that the interpreter would have run, and wraps the one function
through which every import that is not yet loaded passes. Lines of the log, times
in nanoseconds of CLOCK_MONOTONIC:

  B <time>                         this file began: the interpreter is up
  I <thread> <begin> <end> <name>  an import, with all it imported in turn
  A <time>                         the interpreter began to finish
  F <path>                         the file of a module, at the end, if asked for
"""


def _firstframe_observe():
    import _frozen_importlib
    import _thread
    import atexit
    import posix
    import sys
    import time

    now = time.monotonic_ns
    began = now()
    folder = posix.environ.get(b"FIRSTFRAME_STARTUP_DIR")
    if not folder:
        return

    state = {"fd": -1, "depth": 0}
    lines = []

    def open_log():
        path = b"%s/imports.%d.%d.log" % (folder, posix.getpid(), now())
        flags = posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND | posix.O_CLOEXEC
        state["fd"] = posix.open(path, flags, 0o600)

    def flush():
        text = "".join(lines)
        del lines[:]
        try:
            posix.write(state["fd"], text.encode("utf-8", "replace"))
        except OSError:
            pass

    def after_fork_in_child():
        old = state["fd"]
        del lines[:]
        state["depth"] = 0
        try:
            posix.close(old)
            open_log()
        except OSError:
            pass

    open_log()
    lines.append("B %d\n" % began)
    load = _frozen_importlib._find_and_load
    identity = _thread.get_native_id if hasattr(_thread, "get_native_id") else _thread.get_ident

    # Under the file name of importlib, so that tracebacks of a failed import leave
    # this frame out as they do those of importlib itself.
    source = """
def _find_and_load(name, import_):
    state["depth"] += 1
    begin = now()
    try:
        return load(name, import_)
    finally:
        end = now()
        state["depth"] -= 1
        lines.append("I %d %d %d %s\\n" % (identity(), begin, end, name))
        if state["depth"] <= 0 or len(lines) > 500:
            flush()
"""
    scope = {"state": state, "now": now, "load": load, "lines": lines, "flush": flush, "identity": identity}
    exec(compile(source, "<frozen importlib._bootstrap>", "exec"), scope)
    _frozen_importlib._find_and_load = scope["_find_and_load"]

    def at_exit():
        lines.append("A %d\n" % now())
        if posix.environ.get(b"FIRSTFRAME_STARTUP_LIST_FILES"):
            for module in list(sys.modules.values()):
                path = getattr(module, "__cached__", None) or getattr(module, "__file__", None)
                if isinstance(path, str):
                    lines.append("F %s\n" % path)
        flush()

    atexit.register(at_exit)
    if hasattr(posix, "register_at_fork"):
        posix.register_at_fork(after_in_child=after_fork_in_child)


def _firstframe_run_the_real_one():
    import sys

    here = __file__.rpartition("/")[0]
    sys.path[:] = [entry for entry in sys.path if entry != here]
    me = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if me is not None:
            sys.modules["sitecustomize"] = me
        if getattr(error, "name", None) != "sitecustomize":
            raise


try:
    _firstframe_observe()
except Exception:  # Observing never breaks the run.
    pass
_firstframe_run_the_real_one()
