"""`convolution` as a product of matrices whose image side is packed straight from the image.

Output position and channel are the product's free indices, window position and input channel its
contracted index; feature and batch groups are its batch index. Padding and dilation are bounds and
divisions on the image view's coordinates: no padded copy of the image is ever made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from haloc.codegen.kernel import Kernel, kernel_for
from haloc.codegen.target import Target
from haloc.cpu.contraction import elements
from haloc.cpu.contraction.depthwise import Depthwise, depthwise_kernel
from haloc.cpu.contraction.dot import zeros_kernel
from haloc.cpu.contraction.gemm import product_kernel
from haloc.cpu.contraction.plan import Product
from haloc.cpu.contraction.view import Axis, Coordinate, View, simplified
from haloc.ir.dtype import DType
from haloc.ir.module import HloInstruction
from haloc.ops.attrs import ConvDims, WindowDim
from haloc.ops.table import attr


@kernel_for("convolution")
def convolution_kernel(instruction: HloInstruction, target: Target) -> Kernel:
    """out[batch, position, feature] = sum over window and in feature of image * kernel."""
    image, kernel = (o.shape for o in instruction.operands)
    if 0 in (*instruction.shape.dims, *image.dims, *kernel.dims):
        return zeros_kernel(instruction.shape, len(instruction.operands))
    depthwise = depthwise_problem(instruction, target)
    if depthwise is not None:
        return depthwise_kernel(depthwise, target)
    return product_kernel(convolution_product(instruction, target), target)


@dataclass(frozen=True, slots=True)
class Geometry:
    """A convolution's sizes and the row-major strides of its arrays.

    feature_groups, batch_groups: at least one of them is 1. features: output features of a group.
    """

    labels: ConvDims
    window: tuple[WindowDim, ...]
    image_dims: tuple[int, ...]
    kernel_dims: tuple[int, ...]
    out_dims: tuple[int, ...]
    feature_groups: int
    batch_groups: int

    @classmethod
    def of(cls, instruction: HloInstruction) -> Geometry:
        image, kernel = (o.shape for o in instruction.operands)
        return cls(
            attr(instruction, "dim_labels"),
            tuple(attr(instruction, "window")),
            image.dims,
            kernel.dims,
            instruction.shape.dims,
            attr(instruction, "feature_group_count"),
            attr(instruction, "batch_group_count"),
        )

    @property
    def groups(self) -> int:
        return self.feature_groups * self.batch_groups

    @property
    def batch(self) -> int:
        return self.out_dims[self.labels.output_batch]

    @property
    def in_features(self) -> int:
        return self.kernel_dims[self.labels.kernel_input_feature]

    @property
    def out_features(self) -> int:
        return self.out_dims[self.labels.output_feature] // self.groups

    @property
    def out_spatial(self) -> tuple[int, ...]:
        return tuple(self.out_dims[d] for d in self.labels.output_spatial)


def row_major_strides(dims: Sequence[int]) -> list[int]:
    return [prod(dims[d + 1 :]) for d in range(len(dims))]


def convolution_product(instruction: HloInstruction, target: Target) -> Product:
    """The product a `convolution` with no dimension of size 0 stands for.

    Vectors run along output features, unless the result's minor dimension is spatial or the image's
    is the batch (as in gradients of kernels): then the roles are exchanged, and they run along
    output positions.
    """
    geometry = Geometry.of(instruction)
    labels = geometry.labels
    image_type, kernel_type = (o.shape.dtype for o in instruction.operands)
    out_type = instruction.shape.dtype
    type = elements.compute_type(image_type, kernel_type, out_type, "convolution")
    is_exchanged = (
        _minor(geometry.out_dims) in labels.output_spatial
        or _minor(geometry.image_dims) == labels.input_batch
    )
    lanes = target.lanes(elements.type_bytes(type))
    views = _Views(geometry, is_exchanged, _groups_merged(geometry, is_exchanged, lanes))
    image, kernel = views.image(image_type), views.kernel(kernel_type)
    out = views.out(out_type)
    lhs, rhs, buffers = (kernel, image, (1, 0, 2)) if is_exchanged else (image, kernel, (0, 1, 2))
    if out_type.is_complex:
        lhs, out = lhs.with_components(), out.with_components()
    is_strict = "highest" in attr(instruction, "operand_precision")
    return Product(lhs, rhs, out, type, buffers, out_type.is_complex, is_strict)


def _minor(dims: Sequence[int]) -> int:
    """The dimension whose elements lie side by side; -1 for a single element."""
    return max((d for d, size in enumerate(dims) if size > 1), default=-1)


def _groups_merged(geometry: Geometry, is_exchanged: bool, lanes: int) -> int:
    """How many feature groups to treat as one, whose kernel is block-diagonal.

    Output features of one narrow group would leave most lanes idle; the zeros cost nothing as long
    as the merged features fit in one vector, and there are fewer and longer runs to pack.
    """
    if geometry.feature_groups == 1 or is_exchanged:
        return 1
    fitting = range(1, max(1, lanes // geometry.out_features) + 1)
    return max(s for s in fitting if geometry.feature_groups % s == 0)


def depthwise_problem(instruction: HloInstruction, target: Target) -> Depthwise | None:
    """The convolution as one of many narrow groups, if it is that and channels are contiguous."""
    geometry, labels = Geometry.of(instruction), attr(instruction, "dim_labels")
    dtypes = [o.shape.dtype for o in instruction.operands]
    out = instruction.shape.dtype
    type = elements.compute_type(*dtypes, out, "convolution")
    last = len(geometry.out_dims) - 1
    is_contiguous = (
        labels.input_feature == labels.kernel_output_feature == labels.output_feature == last
    )
    ins, outs = geometry.in_features, geometry.out_features
    lanes = target.lanes(elements.type_bytes(type))
    is_narrow = ins <= lanes and outs <= lanes // 2 and outs & (outs - 1) == 0
    if any(elements.is_tabled(d) for d in (*dtypes, out)):
        is_narrow = ins == outs == 1
    if geometry.feature_groups == 1 or not (is_contiguous and is_narrow) or out.is_complex:
        return None
    one_feature = list(geometry.kernel_dims)
    one_feature[labels.kernel_input_feature] = 1
    window_only = _Views(replace(geometry, kernel_dims=tuple(one_feature)), False)
    views = _Views(geometry, False)
    image, kernel = window_only.image(dtypes[0]), views.kernel(dtypes[1])
    channels = geometry.out_dims[last]
    return Depthwise(image, kernel, views.out(out), type, channels, ins, outs)


class _Views:
    """Builds the three views. Coordinates are numbered as the arrays' dimensions are.

    Batch index: groups (and images, when per image). Positions: (images and) out spatial.
    Contracted: window spatial and features. Both in the order their dimensions have in the image.
    merged: this many feature groups count as one.
    """

    def __init__(self, geometry: Geometry, is_exchanged: bool, merged: int = 1):
        self.geometry = geometry
        self.merged = merged
        self.groups = geometry.groups // merged
        self.is_exchanged = is_exchanged
        # Vectors along positions do not cross from image to image, unless images lie side by side.
        self.is_per_image = (
            is_exchanged and _minor(geometry.image_dims) != geometry.labels.input_batch
        )
        labels = geometry.labels
        of_dim = {labels.input_feature: "feature"}
        of_dim |= {d: str(i) for i, d in enumerate(labels.input_spatial)}
        self.contracted = [of_dim[d] for d in sorted(of_dim)]

    def _positions(self, images: Axis, spatial: Sequence[Axis]) -> tuple[Axis, ...]:
        """The axes of an output position, in the order the dimensions have in the image."""
        labels = self.geometry.labels
        placed = dict(zip(labels.input_spatial, spatial, strict=True))
        if not self.is_per_image:
            placed[labels.input_batch] = images
        return tuple(placed[d] for d in sorted(placed))

    def image(self, dtype: DType) -> View:
        geometry, labels = self.geometry, self.geometry.labels
        strides = row_major_strides(geometry.image_dims)
        coordinates = [Coordinate(s) for s in strides]
        batch, feature = labels.input_batch, labels.input_feature
        g_steps = (
            {batch: geometry.batch}
            if geometry.batch_groups > 1
            else {feature: geometry.in_features * self.merged}
        )
        taps = {"feature": Axis(geometry.in_features * self.merged, {feature: 1})}
        positions = []
        for i, (d, w) in enumerate(zip(labels.input_spatial, geometry.window, strict=True)):
            size = geometry.image_dims[d]
            out_size = geometry.out_spatial[i]
            last = (out_size - 1) * w.stride + (w.size - 1) * w.window_dilation - w.padding_low
            is_inside = w.base_dilation == 1 and w.padding_low <= 0 and last < size
            coordinates[d] = Coordinate(
                strides[d], -w.padding_low, None if is_inside else size, w.base_dilation
            )
            positions.append(Axis(out_size, {d: w.stride}))
            taps[str(i)] = Axis(w.size, {d: w.window_dilation})
        images, groups = Axis(geometry.batch, {batch: 1}), Axis(self.groups, g_steps)
        axes = {
            "g": (groups, images) if self.is_per_image else (groups,),
            "x": self._positions(images, positions),
            "k": tuple(taps[name] for name in self.contracted),
        }
        return _rows_joined(simplified(View(dtype, tuple(coordinates), axes)))

    def kernel(self, dtype: DType) -> View:
        geometry, labels = self.geometry, self.geometry.labels
        coordinates = [Coordinate(s) for s in row_major_strides(geometry.kernel_dims)]
        # Zero unless in and out feature are of one group: the difference of their groups, as a
        # coordinate of an array dimension of size 1.
        diagonal = len(coordinates)
        coordinates.append(Coordinate(0, 0, 1 if self.merged > 1 else None))
        in_features = Axis(geometry.in_features, {labels.kernel_input_feature: 1})
        taps = {"feature": (Axis(self.merged, {diagonal: -1}), in_features)}
        for i, (d, w) in enumerate(zip(labels.kernel_spatial, geometry.window, strict=True)):
            if w.reversal:
                coordinates[d] = Coordinate(coordinates[d].stride, w.size - 1)
            taps[str(i)] = (Axis(w.size, {d: -1 if w.reversal else 1}),)
        feature, size = labels.kernel_output_feature, geometry.out_features
        groups = Axis(self.groups, {feature: size * self.merged})
        images = Axis(geometry.batch, {})
        axes = {
            "g": (groups, images) if self.is_per_image else (groups,),
            "x": (Axis(self.merged, {feature: size, diagonal: 1}), Axis(size, {feature: 1})),
            "k": tuple(axis for name in self.contracted for axis in taps[name]),
        }
        return simplified(View(dtype, tuple(coordinates), axes))

    def out(self, dtype: DType) -> View:
        geometry, labels = self.geometry, self.geometry.labels
        coordinates = tuple(Coordinate(s) for s in row_major_strides(geometry.out_dims))
        feature = labels.output_feature
        images = Axis(geometry.batch, {labels.output_batch: 1})
        spatial = zip(labels.output_spatial, geometry.out_spatial, strict=True)
        positions = [Axis(size, {d: 1}) for d, size in spatial]
        merged_features = geometry.out_features * self.merged
        features = (Axis(merged_features, {feature: 1}),)
        groups = Axis(self.groups, {feature: merged_features})
        g = (groups, images) if self.is_per_image else (groups,)
        placed = self._positions(images, positions)
        if self.is_exchanged:
            axes = {"g": g, "x": features, "k": placed}
        else:
            axes = {"g": g, "x": placed, "k": features}
        return simplified(View(dtype, coordinates, axes))


def _rows_joined(view: View) -> View:
    """Join the two minor axes of k, window position w and feature c, into one.

    Possible when w moves only a bounded coordinate of W indices by one, and c only the memory
    within one index, all of it: then (w, c) walks memory evenly, and leaving [0, W) means leaving
    [0, W * C). A row of the window is then one run instead of one run per position.
    """
    axes = view.groups["k"]
    if len(axes) < 2:
        return view
    outer, inner = axes[-2:]
    if len(outer.steps) != 1 or len(inner.steps) != 1:
        return view
    ((bounded, outer_step),) = outer.steps.items()
    ((plain, inner_step),) = inner.steps.items()
    coordinate = view.coordinates[bounded]
    features = inner.size
    if (
        coordinate.size is None
        or coordinate.dilation != 1
        or outer_step != 1
        or view.coordinates[plain].size is not None
        or coordinate.stride != features * inner_step
    ):
        return view
    wider = Coordinate(inner_step, coordinate.start * features, coordinate.size * features)
    coordinates = tuple(wider if n == bounded else c for n, c in enumerate(view.coordinates))
    groups = {
        group: tuple(
            Axis(
                a.size,
                {n: s * (features if n == bounded else 1) for n, s in a.steps.items()},
            )
            for a in members
        )
        for group, members in view.groups.items()
    }
    joined = Axis(outer.size * features, {bounded: 1})
    groups["k"] = (*groups["k"][:-2], joined)
    return View(view.dtype, coordinates, groups)
