# Usage: verify.sh WEBHOOK_ID WEBHOOK_TIMESTAMP WEBHOOK_SIGNATURE < body
set -f
refuse() { echo "refused: $1"; exit 1; }
hex() { od -An -v -tx1 | tr -d ' \n'; }
hmac() { openssl dgst -sha256 -mac HMAC -macopt "hexkey:$1" -binary; }

[ -n "$1" ] && [ -n "$2" ] && [ -n "$3" ] || refuse missing_header
case $2 in *[!0-9]* | ?????????????*) refuse malformed_timestamp ;; esac
age=$(expr "${NOW:-$(date +%s)}" - "$2")
[ "$age" -le 300 ] || refuse timestamp_too_old
[ "$age" -ge -300 ] || refuse timestamp_too_new
key=$(printf %s "${WEBHOOK_SECRET#whsec_}" | base64 -d | hex)
right=v1,$({ printf '%s.%s.' "$1" "$2"; cat; } | hmac "$key" | base64)
# Both are hashed with a random key, so the time of the comparison tells nothing about them.
once=$(openssl rand -hex 32)
reason=no_v1_signature
for one in $3; do
  case $one in v1,*) reason=wrong_signature ;; *) continue ;; esac
  [ "$(printf %s "$one" | hmac "$once" | hex)" = "$(printf %s "$right" | hmac "$once" | hex)" ] &&
    echo accepted && exit
done
refuse "$reason"
