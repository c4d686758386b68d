/* Marks around the work of a CUDA program, for `rekernel capture`: harness/CAPTURE.md says how they
 * are used. They do nothing where no recorder is loaded. C or C++; link with -ldl where the C
 * library is older than 2.34. */
#pragma once
#include <dlfcn.h>
#include <stdlib.h>

typedef void (*rekernel_mark_function)(const char*, ...);
static inline rekernel_mark_function rekernel_function(const char* name) {
  const char* recorder = getenv("CUDA_INJECTION64_PATH");
  void* library = recorder ? dlopen(recorder, RTLD_NOW | RTLD_LOCAL) : NULL;
  return library ? (rekernel_mark_function)dlsym(library, name) : NULL;
}

/* REKERNEL_BEGIN("a", a, "b", b, "c", c): the problem's inputs and outputs by name, each with its
 * device address. */
#define REKERNEL_BEGIN(...)                                              \
  do {                                                                   \
    rekernel_mark_function begin_ = rekernel_function("rekernel_begin"); \
    if (begin_) begin_(__VA_ARGS__, (const char*)NULL);                  \
  } while (0)
#define REKERNEL_END()                                               \
  do {                                                               \
    rekernel_mark_function end_ = rekernel_function("rekernel_end"); \
    if (end_) end_(NULL);                                            \
  } while (0)

/* How often the work is to be called: as often as the recorder wants, or once. */
static inline int rekernel_calls(void) {
  int calls = 1;
  rekernel_mark_function ask = rekernel_function("rekernel_count_calls");
  if (ask) ask(NULL, &calls);
  return calls;
}
