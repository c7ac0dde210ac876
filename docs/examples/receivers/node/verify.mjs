import { createHmac, timingSafeEqual } from "node:crypto";

export function refusal(secret, id, sentAt, signatures, body, now) {
  if (!id || !sentAt || !signatures) return "missing_header";
  if (!/^[0-9]{1,12}$/.test(sentAt)) return "malformed_timestamp";
  if (now - Number(sentAt) > 300) return "timestamp_too_old";
  if (Number(sentAt) - now > 300) return "timestamp_too_new";
  const given = signatures.split(" ").filter((one) => one.startsWith("v1,"));
  if (given.length === 0) return "no_v1_signature";
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const hmac = createHmac("sha256", key).update(`${id}.${sentAt}.`).update(body);
  const right = Buffer.from(`v1,${hmac.digest("base64")}`);
  const genuine = given.some((one) => {
    const bytes = Buffer.from(one);
    return bytes.length === right.length && timingSafeEqual(bytes, right);
  });
  return genuine ? "" : "wrong_signature";
}
