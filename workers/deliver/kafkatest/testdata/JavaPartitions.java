import java.nio.charset.StandardCharsets;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;

/** Records where Apache Kafka's own client puts keys: java -cp 'JARS/*' JavaPartitions.java > java-partitions.txt */
public class JavaPartitions {
    public static void main(String[] args) {
        final int partitions = 6;
        for (int i = 0; i < 1000; i++) {
            String key = i < 600 ? Long.toString((long) i * 7919 * i) : "AODB-é停-" + "x".repeat(i % 9) + i;
            int place = BuiltInPartitioner.partitionForKey(key.getBytes(StandardCharsets.UTF_8), partitions);
            System.out.println(place + " " + key);
        }
    }
}
