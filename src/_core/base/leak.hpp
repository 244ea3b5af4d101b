// Owns: leaving a member alone for good, in the child of a fork: its destructor will find a new one in its place.
// Threads: the child's only one. Never: reads the member, which another thread may have been changing in the parent.
#pragma once
#include <new>

namespace kc {

template <class T>
void leak(T& member) {
  new (static_cast<void*>(&member)) T();
}

}  // namespace kc
