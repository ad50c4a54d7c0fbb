// What `node.NAME` means: an attribute, a call, or several attributes together.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "python.hpp"

namespace cortex {

// Reads one attribute, remembering per class where `__slots__` keep it.
//
// A class whose attribute is a plain slot is read by offset. A remembered offset is used only while the class
// has the version tag it had then; Python gives a class a new, globally unique tag whenever it or a base changes.
class Attribute {
 public:
  explicit Attribute(PyObject* name);

  // The value (a new reference), or null where the node has no such attribute. Errors of properties pass through.
  PyObject* get(PyObject* node) const {
    PyTypeObject* type = Py_TYPE(node);
    const Place& place = places_[slot_of(type)];
    if (place.type == type && place.version == type->tp_version_tag && place.version != 0) {
      PyObject* value = *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(node) + place.offset);
      Py_XINCREF(value);
      return value;
    }
    return get_slowly(node);
  }

  // Have what `get` is going to look at brought to the cache, where that can be known without looking for it.
  void prefetch(PyObject* node) const {
    PyTypeObject* type = Py_TYPE(node);
    const Place& place = places_[slot_of(type)];
    if (place.type == type) __builtin_prefetch(*reinterpret_cast<PyObject**>(reinterpret_cast<char*>(node) + place.offset));
  }

  // Has some node had it? Kept so that a name that no node has can be told from one that some nodes lack.
  bool found() const { return found_; }
  void set_found() const { found_ = true; }

  const std::string& text() const { return text_; }
  nb::handle name() const { return name_; }

 private:
  struct Place {
    PyTypeObject* type = nullptr;
    unsigned int version = 0;
    Py_ssize_t offset = 0;
  };
  static constexpr std::size_t kPlaces = 4;

  static std::size_t slot_of(PyTypeObject* type) {
    const auto bits = reinterpret_cast<std::uintptr_t>(type);
    return ((bits >> 4) ^ (bits >> 9)) % kPlaces;
  }
  PyObject* get_slowly(PyObject* node) const;

  nb::object name_;
  std::string text_;
  mutable bool found_ = false;
  mutable std::array<Place, kPlaces> places_{};
};

// An attribute as the user of the model redefined it (`fields=`, `children=`).
class Accessor {
 public:
  // `meaning` is null (the attribute `name` itself), a str, a tuple of str, or a callable of one node.
  Accessor(const std::string& name, nb::handle meaning);

  bool is_parts() const { return !parts_.empty(); }
  bool is_call() const { return call_.is_valid(); }
  // Did the user name another attribute than the model does?
  bool is_renamed() const { return !is_call() && (is_parts() || attribute_.text() != name_); }
  const std::string& name() const { return name_; }
  const std::vector<Attribute>& parts() const { return parts_; }
  const Attribute& attribute() const { return attribute_; }
  nb::handle call() const { return call_; }
  void drop_call() { call_.reset(); }

  // The value (a new reference), or null where it is absent. Not for several attributes together.
  PyObject* get(PyObject* node) const {
    if (!call_.is_valid()) return attribute_.get(node);
    return own(PyObject_CallOneArg(call_.ptr(), node)).release().ptr();
  }

 private:
  std::string name_;
  Attribute attribute_;
  std::vector<Attribute> parts_;
  nb::object call_;
};

}  // namespace cortex
