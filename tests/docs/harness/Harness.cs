using System;
using System.Linq;
using System.Text;

/// Give each line of requests to the function of docs/how-to/verify-signatures.md, and print what it says.
static class Harness
{
    static void Main()
    {
        for (var line = Console.ReadLine(); line != null; line = Console.ReadLine())
        {
            var fields = line.Split(' ')
                .Select(word => Convert.FromBase64String(word == "-" ? "" : word)).ToArray();
            var texts = fields.Select(Encoding.UTF8.GetString).ToArray();
            var reason = Verify.Refusal(
                texts[0], texts[1], texts[2], texts[3], fields[4], long.Parse(texts[5]));
            Console.WriteLine(reason == "" ? "accepted" : reason);
        }
    }
}
