using System;
using System.Linq;
using System.Security.Cryptography;
using System.Text;
using System.Text.RegularExpressions;

static class Verify
{
    public static string Refusal(
        string secret, string id, string sentAt, string signatures, byte[] body, long now)
    {
        if (new[] { id, sentAt, signatures }.Any(string.IsNullOrEmpty)) return "missing_header";
        if (!Regex.IsMatch(sentAt, @"\A[0-9]{1,12}\z")) return "malformed_timestamp";
        if (now - long.Parse(sentAt) > 300) return "timestamp_too_old";
        if (long.Parse(sentAt) - now > 300) return "timestamp_too_new";
        var key = Convert.FromBase64String(Regex.Replace(secret, "^whsec_", ""));
        var content = Encoding.UTF8.GetBytes(id + "." + sentAt + ".").Concat(body).ToArray();
        byte[] right;
        using (var hmac = new HMACSHA256(key))
            right = Encoding.UTF8.GetBytes(
                "v1," + Convert.ToBase64String(hmac.ComputeHash(content)));
        var reason = "no_v1_signature";
        foreach (var one in signatures.Split(' '))
        {
            if (CryptographicOperations.FixedTimeEquals(Encoding.UTF8.GetBytes(one), right))
                return "";
            if (one.StartsWith("v1,", StringComparison.Ordinal)) reason = "wrong_signature";
        }
        return reason;
    }
}
