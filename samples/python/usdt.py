# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0

"""Probes that a program makes when it runs, on x86-64.

    shop = usdt.Provider('shop', sold=(int, str))
    shop.sold(12, 'pear')
"""

import ctypes
import mmap
import os
import struct

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


class Text(ctypes.c_char_p):
    """A string, which those who trace read with copyinstr()."""

    @classmethod
    def from_param(cls, text):
        return cls(text.encode())


# Where a function finds its arguments, and how many bytes of them, less than 0 where there is a sign.
REGISTERS = ['%rdi', '%rsi', '%rdx', '%rcx', '%r8', '%r9']
KINDS = {int: (-8, ctypes.c_int64), str: (8, Text)}

# What does nothing, which the probe is at, and the return to the caller.
CODE = b'\x90\xc3'
# The file: headers and code on the first pages, then semaphores, which are memory of the process' own, then what is not mapped.
HEADERS = 256


class Probe:
    """A probe. Calling it with its arguments fires it."""

    def __init__(self, site, semaphore, kinds):
        self._semaphore = ctypes.c_uint16.from_address(semaphore)
        self._site = ctypes.CFUNCTYPE(None, *(KINDS[kind][1] for kind in kinds))(site)

    @property
    def enabled(self):
        """Whether somebody listens: ask before an argument that takes work."""
        return self._semaphore.value != 0

    def __call__(self, *arguments):
        if self._semaphore.value:
            self._site(*arguments)


class Provider:
    """Probes, by names and the kinds of their arguments: int and str, six at most. `__` in a name is `-`."""

    def __init__(self, name, **probes):
        code = pages(HEADERS + len(CODE) * len(probes))
        data = pages(2 * len(probes))
        sites = [(HEADERS + len(CODE) * n, code + 2 * n) for n in range(len(probes))]
        notes = b''.join(note(name, probe, *site, kinds) for site, (probe, kinds) in zip(sites, probes.items()))
        with open(os.memfd_create(name), 'wb') as file:
            file.write(elf(code, data, CODE * len(probes), notes))
            file.flush()
            # The code last: those who trace look at the file as soon as that is mapped.
            semaphores = map_file(file, code, data, mmap.PROT_READ | mmap.PROT_WRITE)
            start = map_file(file, 0, code, mmap.PROT_READ | mmap.PROT_EXEC)
        for (site, semaphore), (probe, kinds) in zip(sites, probes.items()):
            setattr(self, probe, Probe(start + site, semaphores + semaphore - code, kinds))


def pages(size):
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE


def map_file(file, offset, size, protection):
    address = libc.mmap(None, size, protection, mmap.MAP_PRIVATE, file.fileno(), offset)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), 'failed to map probes')
    return address


def note(provider, probe, site, semaphore, kinds):
    """SystemTap's note, version 3: where the probe is, what it is called and where its arguments are."""
    places = zip(kinds, REGISTERS[:len(kinds)], strict=True)
    arguments = ' '.join(f'{KINDS[kind][0]}@{register}' for kind, register in places)
    text = b''.join(part.encode() + b'\0' for part in (provider, probe, arguments))
    description = struct.pack('<3Q', site, 0, semaphore) + text
    return struct.pack('<3I8s', 8, len(description), 3, b'stapsdt') + description + bytes(-len(description) % 4)


def elf(code, data, text, notes):
    """A file with a segment of code and one of data, whose addresses are their places in it, and a section of notes."""
    names = b'\0.note.stapsdt\0.shstrtab\0'
    end = code + data
    header = struct.pack('<16s2HI3QI6H', b'\x7fELF\2\1\1', 3, 62, 1, 0, 64, end, 0, 64, 56, 2, 64, 3, 2)
    for flags, start, size in (5, 0, code), (6, code, data):
        header += struct.pack('<2I6Q', 1, flags, start, start, start, size, size, mmap.PAGESIZE)
    sections = bytes(64)
    start = end + 3 * 64
    for name, kind, content in (1, 7, notes), (15, 3, names):
        sections += struct.pack('<2I4Q2I2Q', name, kind, 0, 0, start, len(content), 0, 0, 4, 0)
        start += len(content)
    return header.ljust(HEADERS, b'\0') + text.ljust(end - HEADERS, b'\0') + sections + notes + names
