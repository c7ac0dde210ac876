import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.security.GeneralSecurityException;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

import static java.nio.charset.StandardCharsets.UTF_8;

final class Receiver {
    // Use a table with a unique column instead.
    static final Set<String> SEEN = ConcurrentHashMap.newKeySet();

    public static void main(String[] arguments) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 9000), 128);
        server.createContext("/", exchange -> {
            var headers = exchange.getRequestHeaders();
            String id = headers.getFirst("webhook-id");
            byte[] body = exchange.getRequestBody().readAllBytes();
            String reason;
            try {
                reason = Verify.refusal(
                        System.getenv("WEBHOOK_SECRET"), id, headers.getFirst("webhook-timestamp"),
                        headers.getFirst("webhook-signature"), body,
                        System.currentTimeMillis() / 1000);
            } catch (GeneralSecurityException error) {
                throw new IllegalStateException(error);
            }
            byte[] answer = reason.getBytes(UTF_8);
            exchange.sendResponseHeaders(reason.isEmpty() ? 204 : 401,
                    reason.isEmpty() ? -1 : answer.length);
            if (!reason.isEmpty()) exchange.getResponseBody().write(answer);
            exchange.close();
            if (reason.isEmpty() && SEEN.add(id)) {
                // This header is not signed: take the event from the body with your JSON library.
                System.out.println(headers.getFirst("X-Webhook-Event") + " " + id);
            }
        });
        server.start();
    }
}
