// What `node.NAME` means: an attribute, a call, steps to something else, or several attributes together.
#pragma once

#include <string>
#include <vector>

#include "attribute.hpp"
#include "python.hpp"
#include "steps.hpp"

namespace cortex {

// An attribute as the user of the model redefined it (`fields=`, `children=`).
class Accessor {
 public:
  // `meaning` is null (the attribute `name` itself), a str, a tuple of str, a callable of one node, or steps as
  // {"steps": ..., "careful": ...}: carefully followed, they give None where they lead nowhere.
  Accessor(const std::string& name, nb::handle meaning);

  bool is_parts() const { return !parts_.empty(); }
  // Is it computed, be it by a callable or by steps?
  bool is_call() const { return how_ != How::kAttribute; }
  // Did the user name another attribute than the model does?
  bool is_renamed() const { return !is_call() && (is_parts() || attribute_.text() != name_); }
  const std::string& name() const { return name_; }
  const std::vector<Attribute>& parts() const { return parts_; }
  const Attribute& attribute() const { return attribute_; }

  int traverse(visitproc visit, void* arg) const;
  void drop_references();

  // The value (a new reference), or null where it is absent. Not for several attributes together.
  PyObject* get(PyObject* node) const { return is_call() ? compute(node) : attribute_.get(node); }

  // The value (borrowed) where it is known at which place of the node it is, and it is there; else null.
  PyObject* at_hand(PyObject* node) const { return is_call() ? nullptr : attribute_.at_hand(node); }

 private:
  enum class How { kAttribute, kCall, kBySteps, kCarefully };
  PyObject* compute(PyObject* node) const;

  How how_ = How::kAttribute;
  std::string name_;
  Attribute attribute_;
  std::vector<Attribute> parts_;
  nb::object call_;
  Steps steps_;
};

}  // namespace cortex
