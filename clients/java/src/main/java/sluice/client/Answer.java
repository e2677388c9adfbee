// SPDX-License-Identifier: Apache-2.0
package sluice.client;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.TreeMap;

/**
 * The hits of a query, and what they guarantee.
 *
 * @param hits best first
 * @param exact these are the k best of all items that the query admits
 * @param bound no other item scores above this 32-bit number; empty if there are no others
 * @param watermark how far the state of the catalogue that was searched had read its topic
 * @param generation of the space that was searched
 * @param message all fields, such as `counts`, `times` and `model`
 */
public record Answer(List<Hit> hits, boolean exact, OptionalDouble bound, Positions watermark, long generation,
                     JsonNode message) {
  static Answer of(JsonNode message) {
    List<Hit> hits = new ArrayList<>();
    Map<Integer, Long> watermark = new TreeMap<>();

    message.path("hits").forEach(hit -> hits.add(Hit.of(hit)));
    message.path("watermark").forEach(at -> watermark.put(at.path("partition").asInt(), at.path("next").asLong()));
    JsonNode receipt = message.path("receipt"), bound = receipt.path("bound");
    return new Answer(List.copyOf(hits), receipt.path("exact").asBoolean(),
                      bound.isMissingNode() ? OptionalDouble.empty() : OptionalDouble.of(bound.floatValue()),
                      Positions.of(watermark), message.path("generation").asLong(), message);
  }
}
