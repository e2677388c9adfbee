// SPDX-License-Identifier: Apache-2.0
// Writes items and queries them from Java, with the client in clients/java. clients/java/README.md says how to run it.
// It needs a daemon with a space `films` for vectors with 2 numbers, such as that of the README, and a real Kafka
// (ops/kafka start): Java's client of Kafka does not work with the embedded broker.
import java.time.Duration;
import java.util.Map;
import java.util.stream.Collectors;
import sluice.client.Answer;
import sluice.client.Catalogue;
import sluice.client.Item;
import sluice.client.Positions;
import sluice.client.Queries;
import sluice.client.Query;
import sluice.client.QueryException;

public class Films {
  static String hits(Answer answer) {
    return answer.hits().stream().map(hit -> hit.key() + "=" + hit.score()).collect(Collectors.joining(" "));
  }

  public static void main(String[] arguments) throws Exception {
    Map<String, Object> kafka = Map.of("bootstrap.servers", arguments.length > 0 ? arguments[0] : "127.0.0.1:9092");
    Duration timeout = Duration.ofSeconds(Integer.getInteger("patience_s", 10));

    try (Catalogue catalogue = new Catalogue(kafka); Queries queries = new Queries(kafka)) {
      // Load, and ask for an answer that has seen it.
      catalogue.put("alien", new Item().vector("films", 3, 1));
      catalogue.put("heat", new Item().vector("films", 1, 0));
      catalogue.put("ran", new Item().vector("films", 0, 2));
      Positions written = catalogue.flush();
      Answer answer = queries.ask(Query.of("films", 2, 1, 0).atLeast(written), timeout);
      System.out.println("answer: " + hits(answer) + (answer.exact() ? ", exact" : ""));

      // Delete an item, and see that it is gone.
      Positions deleted = catalogue.delete("alien").get();
      answer = queries.ask(Query.of("films", 2, 1, 0).atLeast(deleted), timeout);
      System.out.println("without alien: " + hits(answer));

      try {
        queries.ask(Query.of("films", 2, 1), timeout);
      } catch (QueryException error) {
        System.out.println("error: " + error.getMessage());
      }
    }
  }
}
