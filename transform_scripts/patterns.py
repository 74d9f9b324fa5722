"""Pattern sets of MLIR and IREE, named by the purpose that scripts apply them for."""

CLEAN_UP = (
    "linalg.tiling_canonicalization",
    "scf.for_loop_canonicalization",
    "tensor.fold_tensor_empty",
    "canonicalization",
)
"""Make tile shapes static again after tiling, fusion or peeling."""
MERGE_SLICES = ("tensor.merge_consecutive_insert_extract_slice", *CLEAN_UP)
"""The same, and make one slice of a slice of a slice."""
FOLD_SUBSETS = (*CLEAN_UP[:3], "tensor.fold_tensor_subset_ops_into_vector_transfers", CLEAN_UP[3])
"""Make vectorized code read and write the tensors themselves instead of slices of them."""
FOLD_UNIT_DIMS = (
    "linalg.fold_unit_extent_dims_via_slices",
    "canonicalization",
    "tensor.merge_consecutive_insert_extract_slice",
)
"""Drop unit dimensions: the vectorizer only takes an indexing map's sum of loops once all but one of them are gone."""
FOLD_ALIASES = ("memref.fold_memref_alias_ops", "scf.for_loop_canonicalization", "canonicalization")
"""Make code on buffers read and write the buffers themselves instead of parts of them."""
MASKS = ("vector.lower_masked_transfers",)
"""Make reads and writes carry their masks: bufferization takes no ``vector.mask`` around a write (IREE 3.13)."""
CONTRACT = ("vector.reduction_to_contract", "vector.transfer_permutation_patterns", "vector.sink_ops")
"""Turn products and sums into contractions, as a separate set: without it, a reduction step of 2 is 20 times slower."""
ACROSS_LANES = (
    "vector.reorder_multi_reduction_dims",
    "vector.multi_reduction_flattening",
    "vector.multi_reduction_unrolling",
)
"""Turn a reduction of the lanes of several rows into a transposition and element-wise steps, one row per lane."""
