// SPDX-License-Identifier: Apache-2.0
package sluice.client;

import static sluice.client.PendingTest.check;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;

/** Tests of what a daemon makes of items and queries. Arguments: the broker, and the seconds of patience.
 * Nobody else uses the space `java`. */
public final class DaemonTest {
  private final Duration patience;
  private final Queries queries;
  private final Catalogue catalogue;

  private DaemonTest(Duration patience, Queries queries, Catalogue catalogue) {
    this.patience = patience;
    this.queries = queries;
    this.catalogue = catalogue;
  }

  private Query query() {
    return Query.of("java", 3, 1, 0).atLeast(catalogue.flush());
  }

  private String keys(Query query) throws Exception {
    return queries.ask(query, patience).hits().stream().map(Hit::key).collect(Collectors.joining(" "));
  }

  private void expect(String keys, Query query) throws Exception {
    String found = keys(query);
    check(found.equals(keys), found + ", not " + keys);
  }

  private void putFilms() {
    catalogue.put("alien", new Item().vector("java", 3, 1).attribute("year", 1979).attribute("country", "us"));
    catalogue.put("heat", new Item().vector("java", 1, 0).attribute("year", 1995).attribute("country", "us"));
    catalogue.put("ran", new Item().vector("java", 0, 2).attribute("year", 1985).attribute("country", "jp"));
  }

  private void filtersAndExclusionsChooseTheItems() throws Exception {
    putFilms();
    Answer best = queries.ask(Query.of("java", 1, 1, 0).atLeast(catalogue.flush()), patience);
    check(best.exact() && best.bound().getAsDouble() <= best.hits().get(0).score(), best);
    expect("alien heat ran", query());
    expect("alien ran", query().filter("year < $1", 1990));
    expect("heat", query().filter("country in $1 and year > $2", List.of("us", "fr"), 1990));
    expect("heat ran", query().exclude(List.of("alien")));
    expect("alien ran", query().set("max_per", Map.of("attribute", "country", "n", 1)));
    catalogue.put("ran", new Item().attribute("tags", List.of("war", "kings")));
    expect("ran", query().filter("tags has $1", "kings"));
    expect("alien heat", Query.like("java", 2, "ran").atLeast(catalogue.positions()));
    expect("heat", Query.like("java", 2, "ran", "alien").atLeast(catalogue.positions()));
  }

  private void aPutChangesWhatItNamesAndNullRemoves() throws Exception {
    putFilms();
    catalogue.put("heat", new Item().attribute("year", null));
    expect("alien ran", query().filter("year < $1", 3000));
    Hit heat = queries.ask(query().filter("country = 'us'").attributes("year", "country"), patience).hits().get(1);
    check(heat.message().path("attributes").toString().equals("{\"country\":\"us\"}"), heat);
    catalogue.delete("heat");
    expect("alien ran", query());
  }

  private void codesAreSearched() throws Exception {
    catalogue.put("a", new Item().codes("codes", 3, 3));
    catalogue.put("b", new Item().codes("codes", 0, 0));
    expect("a b", Query.of("codes", 2, 1, 1, 1, 1).atLeast(catalogue.flush()));
  }

  private void whatAUserHasSeenIsLeftOut(Map<String, Object> kafka) throws Exception {
    putFilms();
    try (SeenItems seen = new SeenItems(kafka)) {
      seen.add("java user", List.of("alien", "ran"));
      expect("heat", query().excludeSeenBy("java user").atLeastSeen(seen.flush()));
      Positions forgotten = seen.forget("java user").get();
      expect("alien heat ran", query().excludeSeenBy("java user").atLeastSeen(forgotten));
    }
  }

  private void anErrorHasACode() throws Exception {
    try {
      queries.ask(query().filter("no_such = 1"), patience);
      throw new AssertionError("an answer");
    } catch (QueryException error) {
      check(error.code().equals("BAD_QUERY") && !error.canRetry(), error);
      check(error.getMessage().contains("no_such"), error);
    }
  }

  private void aLateAnswerIsCounted() throws Exception {
    long late = queries.counters().late();
    for (long end = System.nanoTime() + patience.toNanos(); queries.counters().late() == late;) {
      check(System.nanoTime() < end, queries.counters());
      try {
        queries.ask(query(), Duration.ofNanos(1));
        throw new AssertionError("an answer to a query whose deadline had passed");
      } catch (TimeoutException | QueryException expected) { // the daemon's error may be faster
        Thread.sleep(5);
      }
    }
  }

  private void aCallbackMaySubmitAndNotAsk() throws Exception {
    Object said = null;
    for (int i = 0; i < 100 && !(said instanceof IllegalStateException); i++) { // an early answer has no callback
      said = queries.submit(query(), patience).<Object>thenApply(first -> {
        try {
          return queries.ask(query(), patience);
        } catch (Exception error) {
          return error;
        }
      }).get();
    }
    check(said instanceof IllegalStateException, said);
    Answer second = queries.submit(query(), patience).thenCompose(first -> queries.submit(query(), patience)).get();
    check(second.exact() && second.watermark().reach(catalogue.positions()), second);
  }

  public static void main(String[] arguments) throws Exception {
    Map<String, Object> kafka = Map.of("bootstrap.servers", arguments[0]);
    Duration patience = Duration.ofSeconds(Long.parseLong(arguments[1]));
    try (Queries queries = new Queries(kafka); Catalogue catalogue = new Catalogue(kafka)) {
      DaemonTest test = new DaemonTest(patience, queries, catalogue);
      test.filtersAndExclusionsChooseTheItems();
      test.aPutChangesWhatItNamesAndNullRemoves();
      test.codesAreSearched();
      test.whatAUserHasSeenIsLeftOut(kafka);
      test.anErrorHasACode();
      test.aLateAnswerIsCounted();
      test.aCallbackMaySubmitAndNotAsk();
      check(queries.counters().duplicates() == 0, queries.counters());
    }
    System.out.println("7 tests passed");
  }
}
