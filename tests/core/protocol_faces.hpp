// Owns: conversion of any message to a Python dict and back, for the tests of the codecs.
// Threads: A, with the GIL. Never: part of the core itself.
//
// Strings and bytes are `bytes`, a uuid is 16 bytes, null is None, an array a list, a struct a dict.
#pragma once
#include <Python.h>

#include <type_traits>

#include "protocol/messages/all.hpp"

namespace kc::testing {

struct PythonError {};  // thrown with a Python exception set; the functions of a Face catch it

inline PyObject* checked(PyObject* object) {
  if (!object) throw PythonError();
  return object;
}

inline PyObject* none() {
  Py_INCREF(Py_None);
  return Py_None;
}

// Converts a struct. Fields whose keys are absent keep their defaults; a key that is not a field is an error.
template <class T, class = void>
struct Convert {
  static PyObject* to_python(const T& v) {
    PyObject* dict = checked(PyDict_New());
    const_cast<T&>(v).each_field([dict](const char* name, auto& field) {
      PyObject* value = Convert<std::decay_t<decltype(field)>>::to_python(field);
      const int failed = PyDict_SetItemString(dict, name, value);
      Py_DECREF(value);
      if (failed) throw PythonError();
    });
    return dict;
  }
  static void from_python(PyObject* object, T& v) {
    if (!PyDict_Check(object)) {
      PyErr_SetString(PyExc_TypeError, "a struct field takes a dict");
      throw PythonError();
    }
    Py_ssize_t used = 0;
    v = T();
    v.each_field([object, &used](const char* name, auto& field) {
      PyObject* value = PyDict_GetItemString(object, name);
      if (!value) return;
      ++used;
      Convert<std::decay_t<decltype(field)>>::from_python(value, field);
    });
    if (used == PyDict_Size(object)) return;
    PyErr_Format(PyExc_KeyError, "%R has keys that are not fields", object);
    throw PythonError();
  }
};

template <class T>
struct Convert<T, std::enable_if_t<std::is_arithmetic_v<T>>> {
  static PyObject* to_python(const T& v) {
    if constexpr (std::is_same_v<T, bool>) return PyBool_FromLong(v);
    if constexpr (std::is_floating_point_v<T>) return checked(PyFloat_FromDouble(v));
    return checked(PyLong_FromLongLong(static_cast<long long>(v)));
  }
  static void from_python(PyObject* object, T& v) {
    if constexpr (std::is_floating_point_v<T>) {
      v = PyFloat_AsDouble(object);
    } else {
      const long long value = PyLong_AsLongLong(object);
      v = static_cast<T>(value);
      if (!PyErr_Occurred() && static_cast<long long>(v) != value) {
        PyErr_Format(PyExc_OverflowError, "%lld does not fit the field", value);
      }
    }
    if (PyErr_Occurred()) throw PythonError();
  }
};

template <>
struct Convert<std::string> {
  static PyObject* to_python(const std::string& v) {
    return checked(PyBytes_FromStringAndSize(v.data(), static_cast<Py_ssize_t>(v.size())));
  }
  static void from_python(PyObject* object, std::string& v) {
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(object, &data, &size) < 0) throw PythonError();
    v.assign(data, static_cast<size_t>(size));
  }
};

template <>
struct Convert<Uuid> {
  static PyObject* to_python(const Uuid& v) {
    Writer w;
    w.write_uuid(v);
    return checked(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(w.data()), 16));
  }
  static void from_python(PyObject* object, Uuid& v) {
    std::string bytes;
    Convert<std::string>::from_python(object, bytes);
    Reader r(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    v = r.read_uuid("uuid");
    if (r.ok() && r.remaining() == 0) return;
    PyErr_SetString(PyExc_ValueError, "a uuid has 16 bytes");
    throw PythonError();
  }
};

// The view points into the bytes object, which the caller's dict keeps alive.
template <>
struct Convert<BytesView> {
  static PyObject* to_python(const BytesView& v) {
    if (v.is_null()) return none();
    return checked(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(v.data), v.length));
  }
  static void from_python(PyObject* object, BytesView& v) {
    v = BytesView();
    if (object == Py_None) return;
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(object, &data, &size) < 0) throw PythonError();
    v.data = reinterpret_cast<const uint8_t*>(data);
    v.length = static_cast<int32_t>(size);
  }
};

template <class T>
struct Convert<Nullable<T>> {
  static PyObject* to_python(const Nullable<T>& v) { return v.is_null ? none() : Convert<T>::to_python(v.value); }
  static void from_python(PyObject* object, Nullable<T>& v) {
    v.set_null();
    if (object != Py_None) Convert<T>::from_python(object, v.set_present());
  }
};

template <class T>
struct Convert<std::vector<T>> {
  static PyObject* to_python(const std::vector<T>& v) {
    PyObject* list = checked(PyList_New(static_cast<Py_ssize_t>(v.size())));
    for (size_t i = 0; i < v.size(); ++i) {
      PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), Convert<T>::to_python(v[i]));
    }
    return list;
  }
  static void from_python(PyObject* object, std::vector<T>& v) {
    if (!PyList_Check(object)) {
      PyErr_SetString(PyExc_TypeError, "an array field takes a list");
      throw PythonError();
    }
    v.resize(static_cast<size_t>(PyList_GET_SIZE(object)));
    for (size_t i = 0; i < v.size(); ++i) {
      Convert<T>::from_python(PyList_GET_ITEM(object, static_cast<Py_ssize_t>(i)), v[i]);
    }
  }
};

template <>
struct Convert<Int32Array> {
  static PyObject* to_python(const Int32Array& v) { return Convert<std::vector<int32_t>>::to_python(v.values()); }
  static void from_python(PyObject* object, Int32Array& v) {
    std::vector<int32_t> values;
    Convert<std::vector<int32_t>>::from_python(object, values);
    v = Int32Array(values);
  }
};

// Sets every field, nested fields too, to a value that is not null, empty or the default; arrays get two elements.
template <class T, class = void>
struct Fill {
  static void fill(T& v) {
    v.each_field([](const char*, auto& field) { Fill<std::decay_t<decltype(field)>>::fill(field); });
  }
};

template <class T>
struct Fill<T, std::enable_if_t<std::is_arithmetic_v<T>>> {
  static void fill(T& v) { v = std::is_same_v<T, bool> ? !v : static_cast<T>(17); }
};

template <>
struct Fill<std::string> {
  static void fill(std::string& v) { v = "abc"; }
};

template <>
struct Fill<Uuid> {
  static void fill(Uuid& v) { v = Uuid(0x0102030405060708, 0x090a0b0c0d0e0f10); }
};

template <>
struct Fill<BytesView> {
  static void fill(BytesView& v) {
    v.data = reinterpret_cast<const uint8_t*>("records");
    v.length = 7;
  }
};

template <>
struct Fill<Int32Array> {
  static void fill(Int32Array& v) { v = Int32Array({17, 17}); }
};

template <class T>
struct Fill<Nullable<T>> {
  static void fill(Nullable<T>& v) { Fill<T>::fill(v.set_present()); }
};

template <class T>
struct Fill<std::vector<T>> {
  static void fill(std::vector<T>& v) {
    v.resize(2);
    for (T& element : v) Fill<T>::fill(element);
  }
};

// The functions of one message type. After a failed decode the caller reads the Reader's error.
struct Face {
  const char* name;
  int16_t min_version;
  int16_t max_version;
  PyObject* (*decode)(Reader&, int16_t);
  bool (*encode)(PyObject*, int16_t, Writer&);          // false: Python exception set
  bool (*transcode)(Reader&, int16_t, Writer&);         // decodes and encodes, without Python
  bool (*refused)(PyObject*, int16_t, const char**);    // false: Python exception set
  void (*sample)(int16_t, Writer&);                     // encodes a message whose fields are all set
  int32_t (*header_version)(int16_t);                   // -1: the message has no header
  int32_t (*response_header_version)(int16_t);          // -1: the message is not a request
};

template <class M>
PyObject* decode_message(Reader& r, int16_t version) {
  M message;
  message.decode(r, version);
  try {
    return Convert<M>::to_python(message);
  } catch (const PythonError&) {
    return nullptr;
  }
}

template <class M>
bool encode_message(PyObject* values, int16_t version, Writer& w) {
  M message;
  try {
    Convert<M>::from_python(values, message);
  } catch (const PythonError&) {
    return false;
  }
  message.encode(w, version);
  return true;
}

template <class M>
bool transcode_message(Reader& r, int16_t version, Writer& w) {
  M message;
  message.decode(r, version);
  if (r.ok()) message.encode(w, version);
  return r.ok();
}

template <class M>
bool refused_field(PyObject* values, int16_t version, const char** field) {
  M message;
  *field = nullptr;
  try {
    Convert<M>::from_python(values, message);
  } catch (const PythonError&) {
    return false;
  }
  message.can_encode(version, field);
  return true;
}

template <class M>
void encode_sample(int16_t version, Writer& w) {
  M message;
  Fill<M>::fill(message);
  message.encode(w, version);
}

template <class M>
auto header_version_of(int16_t version, int) -> decltype(int32_t{M::header_version(version)}) {
  return M::header_version(version);
}
template <class M>
int32_t header_version_of(int16_t, long) {
  return -1;
}
template <class M>
int32_t header_version(int16_t version) {
  return header_version_of<M>(version, 0);
}

template <class M>
auto response_header_version_of(int16_t version, int) -> decltype(int32_t{M::response_header_version(version)}) {
  return M::response_header_version(version);
}
template <class M>
int32_t response_header_version_of(int16_t, long) {
  return -1;
}
template <class M>
int32_t response_header_version(int16_t version) {
  return response_header_version_of<M>(version, 0);
}

// Types that none of our messages has yet, but a new schema can use.
struct Primitives {
  uint16_t unsigned_16 = 0;
  uint32_t unsigned_32 = 0;
  double number = 0;
  Nullable<std::vector<int64_t>> integers;

  template <class F>
  void each_field(F&& f) {
    f("unsigned_16", unsigned_16);
    f("unsigned_32", unsigned_32);
    f("number", number);
    f("integers", integers);
  }
};

// Encodes the values to wire format and decodes them again.
inline PyObject* primitives(PyObject* values, bool flexible, Writer& w) {
  Primitives before, after;
  try {
    Convert<Primitives>::from_python(values, before);
    w.write_uint16(before.unsigned_16);
    w.write_uint32(before.unsigned_32);
    w.write_float64(before.number);
    w.write_integers(before.integers, flexible, true);
    Reader r(w.data(), w.size());
    after.unsigned_16 = r.read_uint16("unsigned_16");
    after.unsigned_32 = r.read_uint32("unsigned_32");
    after.number = r.read_float64("number");
    r.read_integers(after.integers, flexible, true, "integers");
    return Convert<Primitives>::to_python(after);
  } catch (const PythonError&) {
    return nullptr;
  }
}

inline const std::vector<Face>& faces() {
#define KC_FACE(M) \
  Face{M::name, M::min_version, M::max_version, decode_message<M>, encode_message<M>, transcode_message<M>, \
       refused_field<M>, encode_sample<M>, header_version<M>, response_header_version<M>},
  static const std::vector<Face> all{KC_FOR_EACH_MESSAGE(KC_FACE)};
#undef KC_FACE
  return all;
}

}  // namespace kc::testing
