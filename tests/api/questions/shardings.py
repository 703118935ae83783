"""OpSharding, HloSharding, and the shardings of arrays."""

# ruff: noqa: E501  # a question is a line of code

P = "PartitionSpec"

QUESTIONS = {
    # OpSharding
    "op types": "[(t.name, t.value) for t in (OpSharding.Type.REPLICATED, OpSharding.Type.OTHER)]",
    "op default": "s = OpSharding(); (s.type, s.tile_assignment_dimensions, s.SerializeToString())",
    "op bytes": """
s = OpSharding(); s.type = OpSharding.Type.OTHER
s.tile_assignment_dimensions = [2, 1]; s.tile_assignment_devices = [0, 1]
s.SerializeToString().hex()""",
    "op parsing": """
s = OpSharding(); s.ParseFromString(bytes.fromhex('08031a02020122020001'))
(s.type, s.tile_assignment_dimensions, s.tile_assignment_devices)""",
    "op parsing of garbage": "OpSharding().ParseFromString(b'garbage')",
    "op equality": "OpSharding() == OpSharding()",
    "op clone": "s = OpSharding(); s.shard_group_id = 3; c = s.clone(); (c is s, c.shard_group_id)",
    "op pickling": """
s = OpSharding(); s.type = OpSharding.Type.MAXIMAL; s.tile_assignment_devices = [2]
t = pickle.loads(pickle.dumps(s)); (t.type, t.tile_assignment_devices)""",
    "op wrong type": "s = OpSharding(); s.type = 'OTHER'",
    "op unknown attribute": "s = OpSharding(); s.bogus = 1\ns",
    "op last tile dims": """
s = OpSharding(); s.last_tile_dims = [OpSharding.Type.MANUAL]; s.last_tile_dims""",
    "op group": """
s = OpSharding(); s.is_shard_group = True; s.shard_group_id = 7
s.shard_group_type = OpSharding.ShardGroupType.LIKE
(s.is_shard_group, s.shard_group_id, s.shard_group_type, s.SerializeToString().hex())""",
    "op tuple": """
s = OpSharding(); s.type = OpSharding.Type.TUPLE
s.tuple_shardings = [OpSharding(), OpSharding()]; len(s.tuple_shardings)""",
    # HloSharding
    **{
        f"hlo string {text}": f"HloSharding.from_string({text!r})"
        for text in (
            "{replicated}",
            "{manual}",
            "{unknown}",
            "{maximal device=1}",
            "{devices=[2,2]<=[4]}",
            "{devices=[2,2]0,1,2,3}",
            "{devices=[2,2]0,2,1,3}",
            "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}",
            "{devices=[2,1,2]0,1,2,3 last_tile_dims={manual}}",
            "{{replicated}, {manual}}",
            "bogus",
            "{devices=[2,2]<=[3]}",
            "",
        )
    },
    "hlo iota": "HloSharding.iota_tile((2, 2))",
    "hlo iota turned": "HloSharding.iota_tile((4, 2), reshape_dims=(2, 2, 2), transpose_perm=(1, 0, 2))",
    "hlo iota with subgroup": (
        "HloSharding.iota_tile((2, 2), subgroup_types=[OpSharding.Type.REPLICATED])"
    ),
    "hlo iota of nothing": "HloSharding.iota_tile(())",
    "hlo iota bytes": "HloSharding.iota_tile((2, 2)).to_proto().SerializeToString().hex()",
    "hlo iota proto": (
        "p = HloSharding.iota_tile((2, 2)).to_proto(); "
        "(p.type, p.tile_assignment_dimensions, p.iota_reshape_dims, p.iota_transpose_perm)"
    ),
    "hlo subgroup": (
        "HloSharding.subgroup_with_device_ordering(np.arange(4).reshape(2, 1, 2), "
        "subgroup_types=[OpSharding.Type.MANUAL])"
    ),
    "hlo subgroup kinds": (
        "HloSharding.subgroup_with_device_ordering(np.arange(4).reshape(2, 1, 2), "
        "subgroup_types=[OpSharding.Type.MANUAL]).subgroup_types()"
    ),
    "hlo replicate on last": (
        "s = HloSharding.from_string('{devices=[2,1,2]<=[4] last_tile_dim_replicate}'); "
        "(s.replicate_on_last_tile_dim(), s.subgroup_types())"
    ),
    "hlo predicates of replicated": (
        "s = HloSharding.replicate(); (s.is_replicated(), s.is_maximal(), s.is_manual(), "
        "s.is_unknown(), s.is_tiled())"
    ),
    "hlo predicates of tiled": (
        "s = HloSharding.iota_tile((2, 2)); (s.is_replicated(), s.is_maximal(), s.is_manual(), "
        "s.is_unknown(), s.is_tiled())"
    ),
    "hlo counts": (
        "s = HloSharding.iota_tile((4, 2)); (s.num_devices(), s.num_dimensions(), "
        "s.tile_assignment_dimensions(), s.tile_assignment_devices())"
    ),
    "hlo counts of replicated": (
        "s = HloSharding.replicate(); (s.tile_assignment_dimensions(), s.is_tile_assignment_iota())"
    ),
    "hlo counts of maximal": (
        "s = HloSharding.from_string('{maximal device=2}'); "
        "(s.num_devices(), s.num_dimensions(), s.tile_assignment_devices())"
    ),
    "hlo is iota": (
        "(HloSharding.iota_tile((2, 2)).is_tile_assignment_iota(), "
        "HloSharding.from_string('{devices=[2,2]0,2,1,3}').is_tile_assignment_iota())"
    ),
    "hlo axis sizes": (
        "HloSharding.iota_tile((4, 2), reshape_dims=(2, 2, 2), "
        "transpose_perm=(1, 0, 2)).get_axis_sizes()"
    ),
    "hlo axis sizes of replicated": "HloSharding.replicate().get_axis_sizes()",
    "hlo axis sizes of a plain iota": "HloSharding.iota_tile((2, 2)).get_axis_sizes()",
    "hlo tile": "HloSharding.iota_tile((2, 2)).tile(Shape('f32[5,8]'))",
    "hlo tile of replicated": "HloSharding.replicate().tile(Shape('f32[5,8]'))",
    "hlo tuple": (
        "HloSharding.tuple_sharding(Shape('(f32[2], f32[])'), "
        "[HloSharding.replicate(), HloSharding.manual()])"
    ),
    "hlo tuple elements": ("HloSharding.from_string('{{replicated}, {manual}}').tuple_elements()"),
    "hlo tuple of too few": (
        "HloSharding.tuple_sharding(Shape('(f32[2], f32[])'), [HloSharding.replicate()])"
    ),
    "hlo from proto": """
s = OpSharding(); s.type = OpSharding.Type.OTHER
s.tile_assignment_dimensions = [2, 1]; s.tile_assignment_devices = [1, 0]
HloSharding.from_proto(s)""",
    "hlo from a wrong proto": """
s = OpSharding(); s.type = OpSharding.Type.OTHER
s.tile_assignment_dimensions = [2, 2]; s.tile_assignment_devices = [1, 0]
HloSharding.from_proto(s)""",
    "hlo equality": "HloSharding.iota_tile((4,)) == HloSharding.from_string('{devices=[4]0,1,2,3}')",
    "hlo hash": "hash(HloSharding.iota_tile((4,))) == hash(HloSharding.from_string('{devices=[4]<=[4]}'))",
    "hlo pickling": "pickle.loads(pickle.dumps(HloSharding.iota_tile((4,))))",
    **{
        f"hlo {text} copied over {dims}": (
            f"hlo_sharding_util.PartiallyReplicateTiledShardingOnDims(HloSharding.from_string({text!r}), {dims})"
        )
        for text in (
            "{devices=[2,2]<=[4]}",
            "{devices=[2,2]0,2,1,3}",
            "{replicated}",
            "{devices=[2,2,2]<=[8] last_tile_dim_replicate}",
            "{devices=[2,4]<=[4,2]T(1,0)}",
        )
        for dims in ([0], [1], [0, 1], [])
    },
    # PartitionSpec
    "spec repr": f"{P}('x', None, ('y', 'z'))",
    "spec of nothing": f"{P}()",
    "spec length": f"len({P}('x', None))",
    "spec index": f"{P}('x', None)[0]",
    "spec iteration": f"list({P}('x', None))",
    "spec equality": f"({P}('x') == {P}('x'), {P}('x') == {P}('x', None), {P}('x') == ('x',))",
    "spec tuples of one": f"{P}(('x',)) == {P}('x')",
    "spec hash": f"hash({P}('x', None)) == hash({P}('x', None))",
    "spec unconstrained": f"{P}({P}.UNCONSTRAINED)",
    "spec sum": f"{P}('x') + {P}('y')",
    "spec of a number": f"{P}(3)",
    "spec pickling": f"pickle.loads(pickle.dumps({P}('x', None)))",
    "spec unreduced": f"{P}('x', unreduced={{'y'}})",
    # SingleDeviceSharding
    "single repr": "SingleDeviceSharding(devices[0])",
    "single kind": "SingleDeviceSharding(devices[0], memory_kind='pinned_host')",
    "single bad kind": "SingleDeviceSharding(devices[0], memory_kind='bogus')",
    "single equality": (
        "(SingleDeviceSharding(devices[0]) == SingleDeviceSharding(devices[0]), "
        "SingleDeviceSharding(devices[0]) == SingleDeviceSharding(devices[1]))"
    ),
    "single kinds differ": (
        "SingleDeviceSharding(devices[0]) == "
        "SingleDeviceSharding(devices[0], memory_kind='pinned_host')"
    ),
    "single default kind": (
        "SingleDeviceSharding(devices[0]) == SingleDeviceSharding(devices[0], memory_kind='device')"
    ),
    "single hash": (
        "hash(SingleDeviceSharding(devices[0])) == hash(SingleDeviceSharding(devices[0]))"
    ),
    "single devices": (
        "s = SingleDeviceSharding(devices[1]); (s.device_set, s.addressable_devices, "
        "s.num_devices, s.is_fully_addressable, s.is_fully_replicated, s.memory_kind)"
    ),
    "single device list": "SingleDeviceSharding(devices[1])._internal_device_list",
    "single indices": "SingleDeviceSharding(devices[1]).devices_indices_map((2, 3))",
    "single shard shape": "SingleDeviceSharding(devices[1]).shard_shape((2, 3))",
    "single with kind": "SingleDeviceSharding(devices[1]).with_memory_kind('pinned_host')",
    "single device assignment": "SingleDeviceSharding(devices[1])._device_assignment",
    "single hlo": "SingleDeviceSharding(devices[1])._to_xla_hlo_sharding(2)",
    # NamedSharding
    "mesh repr": "mesh(x=2, y=2)",
    "mesh attributes": "m = mesh(x=2, y=2); (m.axis_names, m.shape, m.size, m.empty, m.devices.shape)",
    "mesh ids": "mesh(x=2, y=2).device_ids.tolist()",
    "mesh equality": "(mesh(x=4) == mesh(x=4), mesh(x=4) == mesh(y=4))",
    "mesh too few names": "Mesh(np.array(devices), ('x', 'y'))",
    "mesh repeated names": "Mesh(np.array(devices).reshape(2, 2), ('x', 'x'))",
    "named repr": f"NamedSharding(mesh(x=4), {P}('x'))",
    "named kind": f"NamedSharding(mesh(x=4), {P}('x'), memory_kind='pinned_host')",
    "named bad kind": f"NamedSharding(mesh(x=4), {P}('x'), memory_kind='bogus')",
    "named unknown axis": f"NamedSharding(mesh(x=4), {P}('z'))",
    "named repeated axis": f"NamedSharding(mesh(x=4), {P}('x', 'x'))",
    "named spec of another type": "NamedSharding(mesh(x=4), ('x',))",
    "named equality": (
        f"(NamedSharding(mesh(x=4), {P}('x')) == NamedSharding(mesh(x=4), {P}('x')), "
        f"NamedSharding(mesh(x=4), {P}('x')) == NamedSharding(mesh(x=4), {P}()))"
    ),
    "named hash": (
        f"hash(NamedSharding(mesh(x=4), {P}('x'))) == hash(NamedSharding(mesh(x=4), {P}('x')))"
    ),
    **{
        f"named {what} of {spec}": (f"s = NamedSharding(mesh(x=2, y=2), {P}{spec}); {code}")
        for spec in (
            "('x')",
            "('x', 'y')",
            "(('y', 'x'))",
            "(None, 'y')",
            "()",
            "(('x', 'y'), None)",
        )
        for what, code in (
            ("indices", "list(s.devices_indices_map((4, 8)).items())"),
            ("shard shape", "s.shard_shape((4, 8))"),
            ("hlo", "s._to_xla_hlo_sharding(2)"),
            ("replication", "s.is_fully_replicated"),
        )
    },
    "named uneven": f"NamedSharding(mesh(x=4), {P}('x')).shard_shape((6,))",
    "named uneven indices": f"NamedSharding(mesh(x=4), {P}('x')).devices_indices_map((6,))",
    "named rank too low": f"NamedSharding(mesh(x=4), {P}(None, 'x')).shard_shape((4,))",
    "named devices": (
        f"s = NamedSharding(mesh(x=2), {P}('x')); (sorted(d.id for d in s.device_set), "
        "s.num_devices, s.is_fully_addressable, s.memory_kind, s._device_assignment, "
        "sorted(d.id for d in s.addressable_devices))"
    ),
    "named order of devices": (
        f"s = NamedSharding(Mesh(np.array([devices[2], devices[0]]), ('x',)), {P}('x')); "
        "(s._device_assignment, s._internal_device_list, list(s.devices_indices_map((4,))))"
    ),
    "named parts": f"s = NamedSharding(mesh(x=4), {P}('x')); (s.mesh, s.spec)",
    "named with kind": f"NamedSharding(mesh(x=4), {P}('x')).with_memory_kind('pinned_host')",
    "named equivalence": (
        f"NamedSharding(mesh(x=4), {P}('x')).is_equivalent_to("
        f"NamedSharding(mesh(y=4), {P}('y')), 2)"
    ),
    "named equivalence of none": (
        f"NamedSharding(mesh(x=4), {P}('x')).is_equivalent_to("
        f"NamedSharding(mesh(x=4), {P}(None, 'x')), 2)"
    ),
    "named unconstrained": f"NamedSharding(mesh(x=4), {P}({P}.UNCONSTRAINED))",
    # GSPMDSharding
    "gspmd repr": "GSPMDSharding(devices, HloSharding.iota_tile((4,)))",
    "gspmd of a list": "GSPMDSharding(DeviceList(tuple(devices)), HloSharding.iota_tile((4,)))",
    "gspmd of a proto": "GSPMDSharding(devices, HloSharding.iota_tile((4,)).to_proto())",
    "gspmd indices": (
        "list(GSPMDSharding(devices, HloSharding.iota_tile((2, 2)))"
        ".devices_indices_map((4, 8)).items())"
    ),
    "gspmd partly replicated": (
        "list(GSPMDSharding(devices, HloSharding.from_string("
        "'{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}')).devices_indices_map((4, 8))"
        ".items())"
    ),
    "gspmd shard shape": "GSPMDSharding(devices, HloSharding.iota_tile((2, 2))).shard_shape((4, 8))",
    "gspmd uneven": "GSPMDSharding(devices, HloSharding.iota_tile((4,))).shard_shape((6,))",
    "gspmd equality": (
        "GSPMDSharding(devices, HloSharding.iota_tile((4,))) == "
        "GSPMDSharding(devices, HloSharding.from_string('{devices=[4]0,1,2,3}'))"
    ),
    "gspmd replicated": "GSPMDSharding.get_replicated(devices)",
    "gspmd replicated facts": (
        "s = GSPMDSharding.get_replicated(DeviceList(tuple(devices))); "
        "(s.is_fully_replicated, s.shard_shape((4,)), s.num_devices)"
    ),
    "gspmd kind": "GSPMDSharding(devices, HloSharding.replicate(), memory_kind='pinned_host')",
    "gspmd bad kind": "GSPMDSharding(devices, HloSharding.replicate(), memory_kind='bogus')",
    "gspmd and named": (
        "GSPMDSharding(devices, HloSharding.iota_tile((4,))).is_equivalent_to("
        f"NamedSharding(mesh(x=4), {P}('x')), 1)"
    ),
    # PmapSharding
    "pmap repr": (
        "PmapSharding(np.array(devices), ShardingSpec([Unstacked(4), NoSharding()], "
        "[ShardedAxis(0)]))"
    ),
    "pmap shard shape": (
        "PmapSharding(np.array(devices), ShardingSpec([Unstacked(4), NoSharding()], "
        "[ShardedAxis(0)])).shard_shape((4, 3))"
    ),
    "pmap indices": (
        "list(PmapSharding(np.array(devices), ShardingSpec([Unstacked(4), NoSharding()], "
        "[ShardedAxis(0)])).devices_indices_map((4, 3)).items())"
    ),
    "pmap chunked": (
        "s = PmapSharding(np.array(devices), ShardingSpec([Chunked([4]), NoSharding()], "
        "[ShardedAxis(0)])); (s.shard_shape((8, 3)), list(s.devices_indices_map((8, 3)).items()))"
    ),
    "pmap replicated": (
        "s = PmapSharding(np.array(devices), ShardingSpec([NoSharding()], [Replicated(4)])); "
        "(s.is_fully_replicated, list(s.devices_indices_map((3,)).items()))"
    ),
    "pmap default": "PmapSharding.default((4, 2), 0, devices)",
    "pmap equality": "PmapSharding.default((4, 2), 0, devices) == PmapSharding.default((4, 2), 0, devices)",
    "pmap devices": "PmapSharding.default((4, 2), 0, devices)._internal_device_list",
    "spec parts": "[Unstacked(4), NoSharding(), Chunked([2, 2]), ShardedAxis(1), Replicated(3)]",
    "spec part attributes": (
        "(Unstacked(4).size, Chunked([2, 2]).chunks, ShardedAxis(1).axis, Replicated(3).replicas)"
    ),
    "spec part equality": (
        "(Unstacked(4) == Unstacked(4), Chunked([2]) == Chunked([3]), NoSharding() == NoSharding())"
    ),
    "sharding spec": "ShardingSpec([Chunked([2]), NoSharding()], [ShardedAxis(0), Replicated(2)])",
    "sharding spec parts": (
        "s = ShardingSpec([Chunked([2]), NoSharding()], [ShardedAxis(0), Replicated(2)]); "
        "(s.sharding, s.mesh_mapping)"
    ),
    "sharding spec equality": (
        "ShardingSpec([Chunked([2])], [ShardedAxis(0)]) == "
        "ShardingSpec([Chunked([2])], [ShardedAxis(0)])"
    ),
    # Of all
    "base": "Sharding()",
    "single and named": (
        f"NamedSharding(mesh(x=1), {P}()).is_equivalent_to(SingleDeviceSharding(devices[0]), 2)"
    ),
    "is a sharding": (
        f"[isinstance(s, Sharding) for s in (SingleDeviceSharding(devices[0]), "
        f"NamedSharding(mesh(x=4), {P}()), GSPMDSharding.get_replicated(devices))]"
    ),
}
