# Give each line of requests to the function of docs/how-to/verify-signatures.md, and print what it says.
require_relative "verify"

$stdin.each_line do |line|
  fields = line.split.map { |field| field == "-" ? "" : field.unpack1("m0") }
  texts = fields.map { |field| field.dup.force_encoding(Encoding::UTF_8) }
  secret, id, sent_at, signatures, _, now = texts
  reason = refusal(secret, id, sent_at, signatures, fields[4], now.to_i)
  puts reason.empty? ? "accepted" : reason
end
