// Reading one attribute of the user's objects.
#pragma once

#include <array>
#include <string>

#include "python.hpp"

namespace cortex {

// Like getattr(node, name, <null>), without creating the exception that says there is none; -1 for other exceptions.
int look_up(PyObject* node, PyObject* name, PyObject** value);

// Reads one attribute, remembering per class where `__slots__` keep it.
//
// A class whose attribute is a plain slot is read by offset. A remembered offset is used only while the class
// has the version tag it had then; Python gives a class a new, globally unique tag whenever it or a base changes.
class Attribute {
 public:
  explicit Attribute(PyObject* name);

  // The value (a new reference), or null where the node has no such attribute. Errors of properties pass through.
  PyObject* get(PyObject* node) const {
    PyObject* value = at_hand(node);
    return value ? Py_NewRef(value) : get_slowly(node);
  }

  // The value (borrowed) where it is known at which place of the node it is, and it is there; else null.
  PyObject* at_hand(PyObject* node) const {
    const unsigned int version = Py_TYPE(node)->tp_version_tag;
    const Place& place = places_[version % kPlaces];
    if (place.version != version || version == 0) return nullptr;
    return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(node) + place.offset);
  }

  // Have what `get` is going to look at brought to the cache, where that can be known without looking for it.
  void prefetch(PyObject* node) const { __builtin_prefetch(at_hand(node)); }

  // Has some node had it? Kept so that a name that no node has can be told from one that some nodes lack.
  bool found() const { return found_; }
  void set_found() const { found_ = true; }

  const std::string& text() const { return text_; }
  nb::handle name() const { return name_; }

 private:
  struct Place {
    unsigned int version = 0;  // of the class, and of no other
    Py_ssize_t offset = 0;
  };
  static constexpr std::size_t kPlaces = 4;

  PyObject* get_slowly(PyObject* node) const;

  nb::object name_;
  std::string text_;
  mutable bool found_ = false;
  mutable std::array<Place, kPlaces> places_{};
};

}  // namespace cortex
