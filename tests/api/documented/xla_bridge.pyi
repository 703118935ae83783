# What the documents of jax.lib.xla_bridge describe; see xla_client.pyi.

@tests("test_xla_client.py")
def get_compile_options(
    num_replicas: int,
    num_partitions: int,
    device_assignment: Any = None,
    use_spmd_partitioning: bool = True,
    use_shardy_partitioner: bool = False,
    use_auto_spmd_partitioning: bool = False,
    auto_spmd_partitioning_mesh_shape: list[int] | None = None,
    auto_spmd_partitioning_mesh_ids: list[int] | None = None,
    env_options_overrides: dict[str, str] | None = None,
    fdo_profile: bytes | None = None,
    detailed_logging: bool = True,
    backend: Client | None = None,
) -> CompileOptions: ...
