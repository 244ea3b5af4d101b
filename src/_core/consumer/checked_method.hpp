// Owns: CheckedMethod, a compiled method that mocks made from its class check as they check a function.
// Threads: any, with the GIL. Never: adds to the time of a call through an instance.
#pragma once
#include <Python.h>

#include <cstddef>

namespace kc {

// `unittest.mock` reads the signatures of Python functions only, so the class gives the function (`face`), whose
// attributes are this object's too, `__class__` among them. A call through an instance goes to the method's C function:
// the interpreter takes this type as a method, and makes no bound object. A Python poll() would cost every record one
// more call (tests/unit/python/test_signatures.py).
struct CheckedMethod {
  PyObject_HEAD
  PyObject* method;  // a method descriptor of a compiled type
  PyObject* face;    // a function with the same parameters
  vectorcallfunc call;
};

using FastCall = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);

inline PyObject* checked_method_call(PyObject* self, PyObject* const* args, size_t count, PyObject* names) {
  PyObject* method = reinterpret_cast<CheckedMethod*>(self)->method;
  auto* descriptor = reinterpret_cast<PyMethodDescrObject*>(method);
  const Py_ssize_t given = PyVectorcall_NARGS(count);
  if (given < 1 || !PyObject_TypeCheck(args[0], descriptor->d_common.d_type)) {
    return PyObject_Vectorcall(method, args, count, names);  // raises the TypeError
  }
  auto function = reinterpret_cast<FastCall>(reinterpret_cast<void (*)()>(descriptor->d_method->ml_meth));
  return function(args[0], args + 1, given - 1, names);
}

inline PyObject* checked_method_get(PyObject* self, PyObject* instance, PyObject* type) {
  auto* checked = reinterpret_cast<CheckedMethod*>(self);
  if (instance == nullptr) return Py_NewRef(checked->face);
  return Py_TYPE(checked->method)->tp_descr_get(checked->method, instance, type);
}

inline PyTypeObject* checked_method_type() {
  static PyTypeObject type = [] {
    PyTypeObject made = {PyVarObject_HEAD_INIT(nullptr, 0)};
    made.tp_name = "kconsumer.CheckedMethod";
    made.tp_basicsize = sizeof(CheckedMethod);
    made.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_HAVE_VECTORCALL;
    made.tp_vectorcall_offset = offsetof(CheckedMethod, call);
    made.tp_call = PyVectorcall_Call;
    made.tp_descr_get = checked_method_get;
    made.tp_getattro = [](PyObject* self, PyObject* name) {
      return PyObject_GetAttr(reinterpret_cast<CheckedMethod*>(self)->face, name);
    };
    made.tp_dealloc = [](PyObject* self) {
      Py_DECREF(reinterpret_cast<CheckedMethod*>(self)->method);
      Py_DECREF(reinterpret_cast<CheckedMethod*>(self)->face);
      PyObject_Free(self);
    };
    return made;
  }();
  return &type;
}

// A new reference: a CheckedMethod, or `face` where the method is not of the expected kind. NULL: an exception is set.
inline PyObject* checked_method(PyObject* method, PyObject* face) {
  PyTypeObject* type = checked_method_type();
  if (PyType_Ready(type) < 0) return nullptr;
  if (!Py_IS_TYPE(method, &PyMethodDescr_Type) ||
      reinterpret_cast<PyMethodDescrObject*>(method)->d_method->ml_flags != (METH_FASTCALL | METH_KEYWORDS)) {
    return Py_NewRef(face);
  }
  CheckedMethod* made = PyObject_New(CheckedMethod, type);
  if (made == nullptr) return nullptr;
  made->method = Py_NewRef(method);
  made->face = Py_NewRef(face);
  made->call = checked_method_call;
  return reinterpret_cast<PyObject*>(made);
}

}  // namespace kc
