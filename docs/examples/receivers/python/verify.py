import base64
import hmac
import re


def refusal(secret, event_id, sent_at, signatures, body, now):
    if not (event_id and sent_at and signatures):
        return "missing_header"
    if not re.fullmatch("[0-9]{1,12}", sent_at):
        return "malformed_timestamp"
    if now - int(sent_at) > 300:
        return "timestamp_too_old"
    if int(sent_at) - now > 300:
        return "timestamp_too_new"
    given = [one.encode() for one in signatures.split(" ") if one.startswith("v1,")]
    if not given:
        return "no_v1_signature"
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = f"{event_id}.{sent_at}.".encode() + body
    right = b"v1," + base64.b64encode(hmac.digest(key, content, "sha256"))
    if not any(hmac.compare_digest(one, right) for one in given):
        return "wrong_signature"
    return ""
