import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Reads the topics of msgexchange (docs/consumers.md) from the start, prints each change once and how many flights there are:
 *
 * <pre>java -cp 'kafka-clients and what it needs' FlightConsumer.java HOST:PORT</pre>
 *
 * It keeps nothing and commits no offset. Whoever keeps something commits after it.
 */
public class FlightConsumer {
    private static final int REMEMBERED = 10_000;

    private final Map<String, String> flights = new HashMap<>();
    private final Map<String, Long> versions = new HashMap<>(); // the highest seen, kept over a flight's end
    private final Set<Long> seen = Collections.newSetFromMap(new LinkedHashMap<>() { // event ids of msg, the newest ones
        @Override
        protected boolean removeEldestEntry(Map.Entry<Long, Boolean> eldest) {
            return size() > REMEMBERED;
        }
    });

    public static void main(String[] args) {
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        p.put("group.id", "flight-consumer-" + System.nanoTime());
        p.put("auto.offset.reset", "earliest");
        p.put("enable.auto.commit", "false");
        FlightConsumer view = new FlightConsumer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(p, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("msg", "schd"));
            while (!Thread.interrupted()) {
                for (ConsumerRecord<String, String> r : consumer.poll(Duration.ofSeconds(1))) {
                    if (r.topic().equals("schd")) {
                        view.state(r);
                    } else if (view.change(r)) {
                        System.out.println(r.value());
                    }
                }
                System.out.println(view.flights.size() + " flights");
            }
        }
    }

    /** Takes a state in, unless a newer one of the flight is known. A value of null ends the flight. */
    void state(ConsumerRecord<String, String> r) {
        long version = number(r, "state-version");
        if (version < versions.getOrDefault(r.key(), 0L)) {
            return;
        }
        versions.put(r.key(), version);
        if (r.value() == null) {
            flights.remove(r.key());
        } else {
            flights.put(r.key(), r.value());
        }
    }

    /** Says whether this is the first record with its event id. */
    boolean change(ConsumerRecord<String, String> r) {
        return seen.add(number(r, "event-id"));
    }

    private static long number(ConsumerRecord<String, String> r, String header) {
        if (!text(r, "schema-version").equals("1")) {
            throw new IllegalStateException("this reader knows schema-version 1, not " + text(r, "schema-version"));
        }
        return Long.parseLong(text(r, header));
    }

    private static String text(ConsumerRecord<String, String> r, String header) {
        return new String(r.headers().lastHeader(header).value(), StandardCharsets.UTF_8);
    }
}
