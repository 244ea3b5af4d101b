// Owns: leak(), which abandons a member in the child of a fork: it constructs a new object over the old one, without
// the old destructor. Threads: the child's only thread.
// Never: reads the member, because another thread of the parent may have been changing it during the fork.
#pragma once
#include <new>

namespace kc {

template <class T>
void leak(T& member) {
  new (static_cast<void*>(&member)) T();
}

}  // namespace kc
