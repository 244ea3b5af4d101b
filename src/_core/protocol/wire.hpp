// Owns: Reader and Writer, the only code that turns wire bytes into values and back.
// Threads: any; each object belongs to its user. Never: reads outside its buffer, allocates by an unchecked length.
#pragma once
#include <cstdint>
#include <string>

namespace kc {

class Writer;  // protocol helper replaces this file
class Reader;

}  // namespace kc
