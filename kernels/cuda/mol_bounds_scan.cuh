/* SPDX-License-Identifier: Apache-2.0 */
/* A scan of tiles of items for mol_bounds.h: its loop and its launch, for bounds and for screening. */
#ifndef KERNELS_CUDA_MOL_BOUNDS_SCAN_CUH
#define KERNELS_CUDA_MOL_BOUNDS_SCAN_CUH

#include "kernels/cuda/mol_bounds_layers.cuh"

/* Where a warp's work of a scan belongs. */
struct bound_place {
  unsigned group;       /* of 16 items in the tile */
  uint32_t pair;        /* of the block's queries */
  uint32_t tile;
  uint32_t first_query; /* of the block */
};

/* Call work_on(work, m, items, place) for all pairs of queries and groups of items. A tile of items is prefetched while
 * the one before is computed. The grid is [blocks][groups of n_group queries]. */
template <class S, class WORK_ON>
static __device__ __forceinline__ void scan_tiles(const struct bound_work &work, WORK_ON work_on)
{
  bound_memory<S> m = divide_memory<S>(work.n_group, S::STAGES);
  unsigned warp = threadIdx.x / WARP_LANES;
  uint32_t first_query = blockIdx.y * work.n_group, n_tiles = (work.n + S::TILE - 1) / S::TILE;

  for (unsigned i = threadIdx.x; i < bound_weight_bytes(S::L) / 16; i += S::THREADS)
    copy_async(shared_memory<uint4>() + i, work.weights + i);
  if (blockIdx.x < n_tiles)
    load_tile<S>(work, blockIdx.x, m.tiles);
  copy_async_commit();
  for (uint32_t q = warp; q < work.n_group; q += S::WARPS) /* queries past the end repeat the last one */
    load_query<S>(work, m, q, first_query + q < work.n_queries ? first_query + q : work.n_queries - 1);
  for (uint32_t tile = blockIdx.x, i = 0; tile < n_tiles; tile += gridDim.x, i++) {
    if (tile + gridDim.x < n_tiles)
      load_tile<S>(work, tile + gridDim.x, m.tiles + (i + 1) % 2 * S::TILE_BYTES);
    copy_async_commit();
    copy_async_wait<1>();
    __syncthreads();
    for (uint32_t pair = warp / S::GROUPS; pair < (work.n_group + SETS - 1) / SETS; pair += S::WARPS / S::GROUPS)
      work_on(m, m.tiles + i % S::STAGES * S::TILE_BYTES, { warp % S::GROUPS, pair, tile, first_query });
    __syncthreads();
  }
  copy_async_wait<0>(); /* for a block without tiles */
}

template <class S, class KERNEL>
static err_code_t launch_scan(struct device_stream *stream, struct bound_work work, unsigned n_blocks, KERNEL kernel)
{
  uint32_t most = S::QUERIES_MAX, even = (work.n_queries + 1) / SETS * SETS;

  while (most > SETS && memory_bytes<S>(most, S::STAGES) > device_shared_bytes(SIZE_MAX))
    most -= SETS;
  work.n_group = even < most ? even : most;
  unsigned n_groups = blocks_for(work.n_queries, work.n_group), n_tiles = blocks_for(work.n, S::TILE);
  unsigned share = n_blocks / n_groups ? n_blocks / n_groups : 1;
  return launch(stream, dim3(n_tiles < share ? n_tiles : share, n_groups), S::THREADS,
                memory_bytes<S>(work.n_group, S::STAGES), kernel, work);
}

/* Call RUN<P_x, d_P>::run() for the gate's shape. */
template <template <int, int> class RUN, int N_COMPONENTS>
static err_code_t run_components(struct device_stream *stream, const struct bound_work &work, size_t dim,
                                 unsigned n_blocks)
{
  if (dim == 16)
    return RUN<N_COMPONENTS, 16>::run(stream, work, n_blocks);
  if (dim == 32)
    return RUN<N_COMPONENTS, 32>::run(stream, work, n_blocks);
  if (dim == 64)
    return RUN<N_COMPONENTS, 64>::run(stream, work, n_blocks);
  return RUN<N_COMPONENTS, 128>::run(stream, work, n_blocks);
}

template <template <int, int> class RUN>
static err_code_t run_shape(struct device_stream *stream, const struct mol_bounds_input *input, struct bound_work work)
{
  const struct mol_shape *shape = &input->gate->shape;

  if (input->n_queries == 0)
    return ERR_OK;
  work.factors = input->gate->factors;
  work.weights = input->gate->weights;
  work.inv_temperature = shape->inv_temperature;
  work.present = input->present;
  work.items = input->items;
  work.query_components = input->query_components;
  work.query_gates = input->query_gates;
  work.n_queries = (uint32_t)input->n_queries;
  work.admitted = input->admitted;
  return shape->n_item_components == 4 ? run_components<RUN, 4>(stream, work, shape->component_dim, input->n_blocks)
                                       : run_components<RUN, 8>(stream, work, shape->component_dim, input->n_blocks);
}

#endif
