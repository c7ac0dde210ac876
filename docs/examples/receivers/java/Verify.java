import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Base64;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

import static java.nio.charset.StandardCharsets.UTF_8;

final class Verify {
    static String refusal(
            String secret, String id, String sentAt, String signatures, byte[] body, long now)
            throws GeneralSecurityException {
        if (empty(id) || empty(sentAt) || empty(signatures)) return "missing_header";
        if (!sentAt.matches("[0-9]{1,12}")) return "malformed_timestamp";
        if (now - Long.parseLong(sentAt) > 300) return "timestamp_too_old";
        if (Long.parseLong(sentAt) - now > 300) return "timestamp_too_new";
        byte[] key = Base64.getDecoder().decode(secret.replaceFirst("^whsec_", ""));
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        mac.update((id + "." + sentAt + ".").getBytes(UTF_8));
        String right = "v1," + Base64.getEncoder().encodeToString(mac.doFinal(body));
        String reason = "no_v1_signature";
        for (String one : signatures.split(" ")) {
            if (MessageDigest.isEqual(one.getBytes(UTF_8), right.getBytes(UTF_8))) return "";
            if (one.startsWith("v1,")) reason = "wrong_signature";
        }
        return reason;
    }

    private static boolean empty(String value) {
        return value == null || value.isEmpty();
    }
}
