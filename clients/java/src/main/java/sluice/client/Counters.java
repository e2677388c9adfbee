// SPDX-License-Identifier: Apache-2.0
package sluice.client;

/**
 * What became of requests, and which answers had no use.
 *
 * @param sent requests
 * @param answered requests that got hits or an error in time
 * @param timedOut requests that were given up: their time was over, or they were cancelled
 * @param failed requests that Kafka did not take, or that were open at the end
 * @param late answers to requests that had been given up or had failed
 * @param duplicates second answers
 * @param foreign answers to other clients
 */
public record Counters(long sent, long answered, long timedOut, long failed, long late, long duplicates,
                       long foreign) {}
