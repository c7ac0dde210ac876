# Give each line of requests to the script of docs/how-to/verify-signatures.md, and print what it says.
text() { [ "$1" = - ] || printf %s "$1" | base64 -d; }

while read -r secret id sent_at signatures body now; do
  text "$body" > body
  said=$(WEBHOOK_SECRET=$(text "$secret") NOW=$(text "$now") \
    sh verify.sh "$(text "$id")" "$(text "$sent_at")" "$(text "$signatures")" < body)
  echo "${said#refused: }"
done
