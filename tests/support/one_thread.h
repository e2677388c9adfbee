/* SPDX-License-Identifier: Apache-2.0 */
/* How many cases a test tries that has one thread, in a program whose other tests have several. The thread sanitizer
 * has nothing to find in it, and makes it some twenty times slower. */
#ifndef TESTS_SUPPORT_ONE_THREAD_H
#define TESTS_SUPPORT_ONE_THREAD_H

#ifdef __SANITIZE_THREAD__
enum { ONE_THREAD_SHARE = 8 };
#else
enum { ONE_THREAD_SHARE = 1 };
#endif

/* Return that share of the usual number, at least 1. */
#define ONE_THREAD_TIMES(n) (((n) + ONE_THREAD_SHARE - 1) / ONE_THREAD_SHARE)

#endif
