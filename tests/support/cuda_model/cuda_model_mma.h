/* SPDX-License-Identifier: Apache-2.0 */
/* The model's half-precision numbers, tensor cores and special-function unit. */
#ifndef CUDA_MODEL_MMA_H
#define CUDA_MODEL_MMA_H

#include "tests/support/cuda_model/cuda_model.h"

uint16_t cuda_model_half(float x);
float cuda_model_float(uint16_t half);

/* a b + c of both halves of a register. Rounds to f32 before it rounds to half. */
uint32_t cuda_model_half_pair_fma(uint32_t a, uint32_t b, uint32_t c);

/* The larger of both halves of a register, or NaN. */
uint32_t cuda_model_half_pair_max(uint32_t a, uint32_t b);

/* The larger of both halves of a register, or the one that is not NaN. */
uint32_t cuda_model_half_pair_larger(uint32_t a, uint32_t b);

/* Return x with a relative error of this size, up or down depending on x. */
float cuda_model_inexact(float x, float error);

/* tanh with a relative error of 2^-12, up or down. A real special-function unit may be off by 2^-11. */
float cuda_model_fast_tanh(float x);

void cuda_model_mma_f16(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4]);
void cuda_model_mma_halves(uint32_t d[2], const uint32_t a[4], const uint32_t b[2], const uint32_t c[2]);

#endif
