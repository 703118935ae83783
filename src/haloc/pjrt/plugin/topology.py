"""Topologies: devices described, and programs compiled for them and loaded later.

A topology is that of a client which nobody has a handle of.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from haloc.errors import FailedPreconditionError, InvalidArgumentError
from haloc.pjrt.abi.named_values import read_named_values
from haloc.pjrt.plugin.client import CLIENTS, PluginClient, client_of_options
from haloc.pjrt.plugin.compilation import compiled
from haloc.pjrt.plugin.entry import bytes_at, entry, text_at
from haloc.pjrt.plugin.executable import EXECUTABLES, PluginExecutable, forget_destroyed

_MADE: dict[int, PluginClient] = {}
"""By the address of the topology. They live as long as the process."""


@entry("TopologyDescription_Create")
def topology_create(args: Any) -> None:
    name = text_at(args.topology_name, args.topology_name_size)
    if name:
        raise InvalidArgumentError(
            f"topology {name!r}: haloc's topologies have no names; option num_devices says how "
            "many devices there are"
        )
    args.topology = _made(
        client_of_options(read_named_values(args.create_options, args.num_options))
    )


@entry("TopologyDescription_Deserialize")
def topology_deserialize(args: Any) -> None:
    text = text_at(args.serialized_topology, args.serialized_topology_size)
    machine, _, rest = text.rpartition(" ")
    machine, _, platform = machine.rpartition(" ")
    if not rest.isdecimal():
        raise InvalidArgumentError("the bytes are no topology that haloc has serialised")
    client = PluginClient(platform, int(rest))
    if bytes_at(client.topology.get("serialized_bytes"), len(text)).decode() != text:
        raise FailedPreconditionError(
            f"the topology is of another machine ({machine.partition(' ')[0]}): haloc compiles for "
            "the CPU it runs on"
        )
    args.topology = _made(client)


def _made(client: PluginClient) -> int:
    _MADE[client.topology.address] = client
    return client.topology.address


@entry("Compile")
def compile_for_topology(args: Any) -> None:
    client = _MADE.get(args.topology)
    if client is None:
        client = next(c for c in CLIENTS.values() if c.topology.address == args.topology)
    executable = compiled(client, args)
    EXECUTABLES[executable.handle.address] = executable
    args.executable = executable.handle.address


@entry("Client_Load")
def client_load(args: Any) -> None:
    forget_destroyed()
    client, executable = CLIENTS[args.client], EXECUTABLES[args.executable]
    by_id = {d.id: d for d in client.runtime.devices()}
    ids = [d.id for d in executable.compilation.devices]
    missing = [i for i in ids if i not in by_id]
    if missing:
        raise InvalidArgumentError(f"No matching device found for device_id {missing[0]}")
    devices = tuple(by_id[i] for i in ids)
    compilation = replace(executable.compilation, devices=devices, listed=devices)
    loaded = PluginExecutable(
        client, compilation, compilation.options_proto, executable.about.fingerprint
    )
    loaded.register()
    args.loaded_executable = loaded.loaded_handle.address
