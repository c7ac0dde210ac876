// Verifies the `v1a` signatures of a delivery with the public keys of Carteiro. It needs no secret.
import { createPublicKey, verify } from 'node:crypto';

const TOLERANCE_SECONDS = 300;

/** Fetch the keys at most once an hour, and once more when no signature fits. */
export async function fetchKeys(carteiroUrl) {
  const answer = await fetch(`${carteiroUrl}/.well-known/carteiro/keys`);
  if (!answer.ok) throw new Error(`no keys: ${answer.status}`);
  return (await answer.json()).keys.map((jwk) => createPublicKey({ key: jwk, format: 'jwk' }));
}

/** Return whether one of the keys has signed these bytes now. Names of headers are in lowercase. */
export function verifyPublic(headers, body, keys, now = Date.now() / 1000) {
  const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signatures } = headers;
  if (!id || !signatures || !(Math.abs(now - Number(at)) <= TOLERANCE_SECONDS)) return false;
  const signed = Buffer.concat([Buffer.from(`${id}.${at}.`), body]);
  return signatures
    .split(' ')
    .filter((one) => one.startsWith('v1a,'))
    .map((one) => Buffer.from(one.slice('v1a,'.length), 'base64'))
    .some((signature) => keys.some((key) => verify(null, signed, key, signature)));
}
