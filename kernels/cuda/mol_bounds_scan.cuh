/* SPDX-License-Identifier: Apache-2.0 */
/* The loops over tiles of items for mol_bounds.h, and their launches, for bounds and for screening. Either the warps of
 * a block share tiles, and each works on some of the block's queries; or a block has one query, and each of its warps
 * works on tiles of its own. The first reads items once for many queries, the second keeps all warps busy with one. */
#ifndef KERNELS_CUDA_MOL_BOUNDS_SCAN_CUH
#define KERNELS_CUDA_MOL_BOUNDS_SCAN_CUH

#include "kernels/cuda/mol_bounds_layers.cuh"

/* Up to so many queries, a scan has blocks for each of them. More of them share blocks. */
enum { SINGLE_QUERIES_MAX = 2 };

/* Where a warp's work of a scan belongs. */
struct bound_place {
  unsigned strip; /* of the tile */
  uint32_t query; /* of the block's */
  uint32_t tile;
  uint32_t first_query; /* of the block */
};

/* Threads of a block whose warps share tiles. A constant, but on the model. */
static __device__ __forceinline__ unsigned block_threads()
{
#ifdef SLUICE_CUDA_MODEL
  return blockDim.x;
#else
  return BOUND_THREADS;
#endif
}

/* Start to load the weights. */
template <class S> static __device__ __forceinline__ void load_weights(const struct bound_work &work)
{
  for (unsigned i = threadIdx.x; i < bound_weight_bytes(S::L) / 16; i += blockDim.x)
    copy_async(shared_memory<uint4>() + i, work.weights + i);
}

/* Call work_on(m, items, place) for all queries and strips of items, by whole warpgroups. A tile of items is prefetched
 * while the one before is computed. The grid is [blocks][groups of n_group queries]. */
template <class S, class WORK_ON>
static __device__ __forceinline__ void scan_tiles(const struct bound_work &work, WORK_ON work_on)
{
  bound_memory<S> m = divide_memory<S>(work.n_group, S::STAGES);
  unsigned warp = warp_number();
  uint32_t first_query = blockIdx.y * work.n_group, n_tiles = (work.n + S::TILE - 1) / S::TILE;

  load_weights<S>(work);
  copy_async_commit();
  if (blockIdx.x < n_tiles)
    load_tile<S>(work, blockIdx.x, m.tiles, threadIdx.x, block_threads());
  copy_async_commit();
  load_queries<S>(work, m, first_query, block_threads());
  find_sizes<S>(work, m, first_query);
  copy_async_wait<1>();
  warpgroup_publish();
  for (uint32_t tile = blockIdx.x, i = 0; tile < n_tiles; tile += gridDim.x, i++) {
    copy_async_wait<0>();
    __syncthreads(); /* the tile is there, and nobody works on the one before it any more */
    if (tile + gridDim.x < n_tiles)
      load_tile<S>(work, tile + gridDim.x, m.tiles + (i + 1) % S::STAGES * S::TILE_BYTES, threadIdx.x, block_threads());
    copy_async_commit();
    for (uint32_t q = warp / S::STRIPS; q < work.n_group; q += block_threads() / WARP_LANES / S::STRIPS)
      work_on(m, m.tiles + i % S::STAGES * S::TILE_BYTES, { warp % S::STRIPS, q, tile, first_query });
  }
  copy_async_wait<0>(); /* for a block without tiles */
}

/* Call load(tile, items) and then work_on(m, items, tile) for all tiles, with room for one tile per warp. While a
 * warpgroup waits for its tiles, the others work. Its warps go on together, so some may work on tiles past the end. The
 * grid is [blocks][queries]. */
template <class S, class LOAD, class WORK_ON>
static __device__ __forceinline__ void work_on_own_tiles(const struct bound_work &work, uint32_t n_tiles, LOAD load,
                                                         WORK_ON work_on)
{
  uint32_t n_warps = blockDim.x / WARP_LANES, warp = warp_number();
  uint32_t first = blockIdx.x + warp / WARPGROUP_WARPS * WARPGROUP_WARPS * gridDim.x; /* of the warpgroup */
  uint32_t later = warp % WARPGROUP_WARPS * gridDim.x; /* few tiles are spread over blocks */
  bound_memory<S> m = divide_memory<S>(1, n_warps);
  unsigned char *items = m.tiles + warp * S::TILE_BYTES;

  if (blockIdx.x >= n_tiles)
    return;
  load_weights<S>(work);
  if (first < n_tiles)
    load(first + later, items);
  copy_async_commit();
  load_queries<S>(work, m, blockIdx.y, blockDim.x);
  copy_async_wait<0>();
  warpgroup_publish();
  find_sizes<S>(work, m, blockIdx.y); /* its barriers are also for the copies */
  while (first < n_tiles) {
    work_on(m, items, first + later);
    first += gridDim.x * n_warps;
    __syncwarp();
    if (first < n_tiles)
      load(first + later, items);
    copy_async_commit();
    copy_async_wait<0>();
    __syncwarp();
  }
}

/* A scan for one query per block. Call work_on(m, items, place) for all tiles. */
template <class S, class WORK_ON>
static __device__ __forceinline__ void scan_single(const struct bound_work &work, WORK_ON work_on)
{
  work_on_own_tiles<S>(
      work, (work.n + S::TILE - 1) / S::TILE,
      [&](uint32_t tile, unsigned char *items) { load_tile<S>(work, tile, items, warp_lane(), WARP_LANES); },
      [&](const bound_memory<S> &m, const unsigned char *items, uint32_t tile) {
        work_on(m, items, { 0, 0, tile, blockIdx.y });
      });
}

/* The warps of a block whose warps share tiles, and the most of others. */
static inline unsigned bound_warps()
{
  return device_warps_together() == WARPGROUP_WARPS ? BOUND_WARPS : BOUND_WARPS_ALONE;
}

/* The warps of a block that works on one query: as many as have room for their tiles. 0 if the device has not enough
 * shared memory. */
template <class S> static unsigned single_warps()
{
  unsigned together = device_warps_together(), n_warps = bound_warps();

  while (n_warps > 0 && memory_bytes<S>(1, n_warps, WARPS_OF_A_QUERY) > device_shared_bytes(SIZE_MAX))
    n_warps -= together;
  return n_warps;
}

/* Launch a kernel that works on n_tiles tiles for each of n_queries. */
template <class S, class KERNEL>
static err_code_t launch_single(struct device_stream *stream, struct bound_work work, unsigned n_queries,
                                unsigned n_tiles, unsigned n_blocks, KERNEL kernel)
{
  unsigned share = n_blocks / n_queries ? n_blocks / n_queries : 1, n_warps = single_warps<S>();

  work.n_group = 1;
  return launch(stream, dim3(n_tiles < share ? n_tiles : share, n_queries), n_warps * WARP_LANES,
                memory_bytes<S>(1, n_warps, WARPS_OF_A_QUERY), kernel, work);
}

/* The most queries of a block whose warps share tiles. 0 if the device has not enough shared memory. */
template <class S> static uint32_t shared_queries()
{
  uint32_t most = S::QUERIES_MAX;

  while (most > 0 && memory_bytes<S>(most, S::STAGES, bound_warps()) > device_shared_bytes(SIZE_MAX))
    most -= S::WARPGROUP_QUERIES;
  return most;
}

template <class S, class KERNEL>
static err_code_t launch_scan(struct device_stream *stream, struct bound_work work, unsigned n_blocks, KERNEL kernel)
{
  uint32_t most = shared_queries<S>(), whole = blocks_for(work.n_queries, S::WARPGROUP_QUERIES) * S::WARPGROUP_QUERIES;

  work.n_group = whole < most ? whole : most;
  unsigned n_groups = blocks_for(work.n_queries, work.n_group), n_tiles = blocks_for(work.n, S::TILE);
  unsigned share = n_blocks / n_groups ? n_blocks / n_groups : 1;
  return launch(stream, dim3(n_tiles < share ? n_tiles : share, n_groups), bound_warps() * WARP_LANES,
                memory_bytes<S>(work.n_group, S::STAGES, bound_warps()), kernel, work);
}

/* Launch a scan by `single` if the queries are few, else by `shared`. */
template <int N_COMPONENTS, int DIM, class KERNEL>
static err_code_t launch_either(struct device_stream *stream, const struct bound_work &work, unsigned n_blocks,
                                KERNEL single, KERNEL shared)
{
  typedef sizes<N_COMPONENTS, DIM, true> S;

  if (work.n_queries <= SINGLE_QUERIES_MAX)
    return launch_single<S>(stream, work, work.n_queries, blocks_for(work.n, S::TILE), n_blocks, single);
  return launch_scan<sizes<N_COMPONENTS, DIM, false>>(stream, work, n_blocks, shared);
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
