"""`pjrt_plugin_path`: the plugin file, made when it is first asked for and kept."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import sys
import sysconfig
import tempfile
from pathlib import Path

from haloc.codegen.target import Target, host_target
from haloc.cpu.disk_cache import default_folder
from haloc.cpu.jit import compile_text
from haloc.cpu.object.atom import split
from haloc.cpu.object.elf import read_elf
from haloc.cpu.object.image import link
from haloc.cpu.object.shared_object import shared_object
from haloc.errors import UnimplementedError
from haloc.flags import Flags
from haloc.pjrt.native.sections import in_sections
from haloc.pjrt.plugin_file.bootstrap import bootstrap

_NAME = "pjrt_plugin_haloc.so"
_PACKAGES = ("haloc", "numpy", "llvmlite", "ml_dtypes", "scipy")


def pjrt_plugin_path() -> str:
    """The path of a shared object that exports `GetPjrtApi`: haloc as a PJRT plugin for CPUs.

    A process without Python that loads it starts the Python of this environment inside itself (its
    libpython is loaded); a process that runs the same version of Python shares it. The file is kept
    in haloc's cache folder, by its content, and is of use on this machine as long as this
    environment is where it is. UnimplementedError on systems other than Linux.
    """
    if platform.system() != "Linux":
        raise UnimplementedError(f"pjrt_plugin_path() writes ELF files, not {platform.system()}'s")
    data = plugin_file()
    folder = Path(Flags.from_environment().cache_dir or default_folder()) / "pjrt"
    path = folder / hashlib.sha256(data).hexdigest()[:16] / _NAME
    if not path.exists() or path.read_bytes() != data:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, written = tempfile.mkstemp(dir=path.parent, prefix=".")
        with open(descriptor, "wb") as file:
            file.write(data)
        # Other processes see all of it or nothing, and keep what they have mapped.
        os.replace(written, path)
    return str(path)


def plugin_file() -> bytes:
    """The bytes of the shared object."""
    host = host_target()
    # For any CPU of the kind: the cache folder may be shared between machines.
    target = Target(host.triple, "generic", frozenset(), 16)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    text = bootstrap(_libpython(), sys.executable, version, _places())
    atoms = split(read_elf(compile_text(in_sections(text), target, 1)))
    image = link(atoms, ["GetPjrtApi"], platform.machine())
    return shared_object(image, _NAME)


def _libpython() -> str:
    """The shared library of this Python; its bare name where it is not among its files."""
    name = str(sysconfig.get_config_var("INSTSONAME") or "")
    if not name.startswith("libpython") or ".so" not in name:
        name = f"libpython{sys.version_info.major}.{sys.version_info.minor}.so.1.0"
    folders = (sysconfig.get_config_var("LIBDIR"), os.path.join(sys.base_prefix, "lib"))
    for folder in folders:
        path = os.path.join(str(folder), name)
        if os.path.exists(path):
            return path
    return name


def _places() -> list[str]:
    """Folders from which haloc and what it needs are imported here."""
    specs = (importlib.util.find_spec(name) for name in _PACKAGES)
    files = [spec.origin for spec in specs if spec is not None and spec.origin]
    return list(dict.fromkeys(str(Path(file).parents[1]) for file in files))
