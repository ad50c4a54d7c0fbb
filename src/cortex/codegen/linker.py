"""Link the object code of one function without LLVM: lay out its sections, resolve relative addresses, map it.

Code for x86-64 on Linux refers to its own sections only, by addresses relative to the instruction, and to three
functions of C. Anything else raises `CannotLink`, and LLVM links it (llvm/load.py). Every offset is checked, as a file
may say anything.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import struct
import sys
from dataclasses import dataclass
from functools import cache

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQq")
RELATIVE = struct.Struct("<i")
ELF64, X86_64, RELOCATABLE = b"\x7fELF\x02\x01", 62, 1
WRITABLE, ALLOCATED = 1, 2
NO_BITS, RELATIONS, SYMBOLS = 8, 4, 2
PC32, PLT32 = 2, 4
UNDEFINED = 0
JUMP = b"\xff\x25\x00\x00\x00\x00"  # jmp [rip + 0], to the address that follows
STUB = 16
FUNCTIONS_OF_C = ("memcpy", "memset", "memmove")
MOST_BYTES = 1 << 28


class CannotLink(ValueError):
    """The object is of another form than those that are linked here."""


@dataclass(frozen=True, eq=False)
class MappedCode:
    """A function in memory; valid as long as this object lives."""

    address: int
    memory: mmap.mmap


def links_here() -> bool:
    """Is this a machine whose code is linked here?"""
    return sys.platform == "linux" and platform.machine() == "x86_64"


def map_code(code: bytes, entry: str) -> MappedCode:
    """The function `entry` of an object file in executable memory, which nobody can write any more."""
    if not links_here():
        raise CannotLink("another machine")
    try:
        image, start = link(code, entry)
    except (struct.error, IndexError, UnicodeDecodeError, OverflowError) as error:
        raise CannotLink(str(error)) from None
    try:
        file = os.memfd_create("cortex-code", os.MFD_CLOEXEC)
        try:
            os.write(file, image)
            memory = mmap.mmap(file, len(image), flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
        finally:
            os.close(file)
    except OSError as error:  # a system that forbids it
        raise CannotLink(str(error)) from None
    return MappedCode(_address(memory) + start, memory)


def link(code: bytes, entry: str) -> tuple[bytes, int]:
    """The memory image of an object file, and where in it `entry` is."""
    ident, kind, machine, *_, at, _, _, _, _, size, count, _ = HEADER.unpack_from(code)
    if not ident.startswith(ELF64) or (kind, machine, size) != (RELOCATABLE, X86_64, SECTION.size):
        raise CannotLink("no relocatable object for x86-64")
    sections = [SECTION.unpack_from(code, at + number * size) for number in range(count)]
    image, places = bytearray(), {}
    for number, (_, what, flags, _, offset, length, _, _, align, _) in enumerate(sections):
        if not flags & ALLOCATED or not length:
            continue
        if flags & WRITABLE or align > mmap.PAGESIZE or align & (align - 1) or len(image) + length > MOST_BYTES:
            raise CannotLink("sections of this form")
        image += bytes(-len(image) % max(align, 1))
        places[number] = len(image)
        image += bytes(length) if what == NO_BITS else _slice(code, offset, length)
    table = next((s for s in sections if s[1] == SYMBOLS), None)
    if table is None:
        raise CannotLink("no symbols")
    symbols = list(SYMBOL.iter_unpack(_slice(code, table[4], table[5])))
    names = _slice(code, sections[table[6]][4], sections[table[6]][5])
    image += bytes(-len(image) % STUB)
    stubs: dict[str, int] = {}
    for _, what, _, _, offset, length, _, target, _, _ in sections:
        if what != RELATIONS or target not in places:
            continue
        end = places[target] + sections[target][5]
        for where, info, addend in RELOCATION.iter_unpack(_slice(code, offset, length)):
            if info & 0xFFFFFFFF not in (PC32, PLT32):
                raise CannotLink(f"a relocation of type {info & 0xFFFFFFFF}")
            name, _, _, section, value, _ = symbols[info >> 32]
            is_here = section != UNDEFINED
            goal = _place(places, section) + value if is_here else _stub(image, stubs, _name(names, name))
            place = places[target] + where
            if place + RELATIVE.size > end:
                raise CannotLink("a relocation outside of its section")
            RELATIVE.pack_into(image, place, goal + addend - place)
    for name, _, _, section, value, length in symbols:
        if section in places and _name(names, name) == entry and value + length <= sections[section][5]:
            return bytes(image), places[section] + value
    raise CannotLink(f"no function {entry!r}")


def _slice(code: bytes, offset: int, length: int) -> bytes:
    if offset + length > len(code):
        raise CannotLink("a section outside of the object")
    return code[offset : offset + length]


def _name(names: bytes, at: int) -> str:
    return names[at : names.index(b"\0", at)].decode("utf-8") if at < len(names) and b"\0" in names[at:] else ""


def _place(places: dict[int, int], section: int) -> int:
    if section not in places:
        raise CannotLink("a symbol without memory")
    return places[section]


def _stub(image: bytearray, stubs: dict[str, int], name: str) -> int:
    """Where code jumps to a function of C, which may be too far away for a relative address."""
    if name not in stubs:
        stubs[name] = len(image)
        image += JUMP + _function_of_c(name).to_bytes(8, "little") + bytes(STUB - len(JUMP) - 8)
    return stubs[name]


@cache
def _function_of_c(name: str) -> int:
    if name not in FUNCTIONS_OF_C:
        raise CannotLink(f"the undefined symbol {name!r}")
    return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0


def _address(memory: mmap.mmap) -> int:
    import numpy as np

    return int(np.frombuffer(memory, np.uint8).__array_interface__["data"][0])
