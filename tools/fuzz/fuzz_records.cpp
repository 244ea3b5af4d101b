// Owns: the fuzz target of the records layer: everything that a Fetch response's record bytes reach, and their export.
// Threads: one. Never: part of the core.
//
// The code under test is Cython's C++, which needs an interpreter to be loaded (not to run: it is all nogil). So this
// program builds the layer with clang's coverage and sanitizers (tools/fuzz/build_records.py, into
// build/fuzz/records_lib), embeds that Python, and fuzzes the function that tests/core/fuzz.pxi exports as a
// capsule. The modules find libFuzzer's and the sanitizers' entry points in this program, so coverage and findings work
// as if they were linked in. The interpreter is reached by dlopen: no Python header or library is needed to compile.
//
//   tools/fuzz/run.sh fuzz_records            PYTHON names the interpreter (default: .venv/bin/python, then python3)
//
// What it checks beyond the sanitizers is in tests/core/fuzz.pxi: any slicing gives the same records, offsets rise, the
// position never goes back, nothing stays allocated.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

extern "C" const char* __asan_default_options() {
  return "detect_leaks=0:allocator_may_return_null=1";  // the interpreter keeps its own; ours is checked by the pool
}

namespace {

using FuzzOne = int (*)(const uint8_t*, size_t);
FuzzOne fuzz_one = nullptr;

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "fuzz_records: %s\n", why.c_str());
  std::exit(1);
}

template <class F>
F symbol(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (!found) stop(std::string("libpython lacks ") + name);
  return reinterpret_cast<F>(found);
}

std::string python() {
  if (const char* named = std::getenv("PYTHON")) return named;
  return access(".venv/bin/python", X_OK) == 0 ? ".venv/bin/python" : "python3";
}

// Builds the modules; the last line the script prints is libpython's path.
std::string build(const std::string& out) {
  const std::string command = python() + " tools/fuzz/build_records.py " + out;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) stop("cannot run " + command);
  std::string line, last;
  char text[4096];
  while (std::fgets(text, sizeof(text), pipe)) last = text;
  if (pclose(pipe) != 0) stop("failed: " + command);
  while (!last.empty() && last.back() == '\n') last.pop_back();
  return last;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const std::string out = "build/fuzz/records_lib";
  const std::string libpython = build(out);
  void* library = dlopen(libpython.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) stop(dlerror());
  symbol<void (*)(int)>(library, "Py_InitializeEx")(0);
  const std::string script = "import sys; sys.path.insert(0, '" + out + "'); "
                             "import tests.core.records";
  if (symbol<int (*)(const char*)>(library, "PyRun_SimpleString")(script.c_str()) != 0) stop("the layer does not load");
  fuzz_one = reinterpret_cast<FuzzOne>(symbol<void* (*)(const char*, int)>(library, "PyCapsule_Import")(
      "tests.core.records.fuzz_one_capsule", 0));
  if (!fuzz_one) stop("tests.core.records exports no fuzz_one_capsule");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) { return fuzz_one(data, size); }
