require "openssl"

def refusal(secret, id, sent_at, signatures, body, now)
  return "missing_header" if [id, sent_at, signatures].any? { |each| each.to_s.empty? }
  return "malformed_timestamp" unless sent_at.match?(/\A[0-9]{1,12}\z/)
  return "timestamp_too_old" if now - sent_at.to_i > 300
  return "timestamp_too_new" if sent_at.to_i - now > 300

  given = signatures.b.split(" ").select { |one| one.start_with?("v1,") }
  return "no_v1_signature" if given.empty?

  key = secret.delete_prefix("whsec_").unpack1("m")
  content = "#{id}.#{sent_at}.".b + body.b
  right = "v1," + [OpenSSL::HMAC.digest("SHA256", key, content)].pack("m0")
  given.any? { |one| OpenSSL.secure_compare(one, right) } ? "" : "wrong_signature"
end
