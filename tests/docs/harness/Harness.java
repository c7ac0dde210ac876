import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Base64;

import static java.nio.charset.StandardCharsets.UTF_8;

/** Give each line of requests to the function of docs/how-to/verify-signatures.md, and print what it says. */
final class Harness {
    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            byte[][] fields = new byte[words.length][];
            String[] texts = new String[words.length];
            for (int place = 0; place < words.length; place++) {
                String word = words[place].equals("-") ? "" : words[place];
                fields[place] = Base64.getDecoder().decode(word);
                texts[place] = new String(fields[place], UTF_8);
            }
            String reason = Verify.refusal(
                    texts[0], texts[1], texts[2], texts[3], fields[4], Long.parseLong(texts[5]));
            System.out.println(reason.isEmpty() ? "accepted" : reason);
        }
    }
}
