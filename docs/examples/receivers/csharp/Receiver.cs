using System;
using System.Collections.Concurrent;
using System.IO;
using System.Net;
using System.Text;

static class Receiver
{
    // Use a table with a unique column instead.
    static readonly ConcurrentDictionary<string, bool> Seen =
        new ConcurrentDictionary<string, bool>();

    static void Main()
    {
        var listener = new HttpListener();
        listener.Prefixes.Add("http://127.0.0.1:9000/");
        listener.Start();
        while (true)
        {
            var context = listener.GetContext();
            try { Receive(context); }
            catch (Exception error) { Console.Error.WriteLine(error.Message); }
        }
    }

    static void Receive(HttpListenerContext context)
    {
        var headers = context.Request.Headers;
        var body = new MemoryStream();
        context.Request.InputStream.CopyTo(body);
        var id = headers["webhook-id"];
        var reason = Verify.Refusal(
            Environment.GetEnvironmentVariable("WEBHOOK_SECRET"), id,
            headers["webhook-timestamp"], headers["webhook-signature"], body.ToArray(),
            DateTimeOffset.UtcNow.ToUnixTimeSeconds());
        context.Response.StatusCode = reason == "" ? 204 : 401;
        context.Response.Close(Encoding.UTF8.GetBytes(reason), false);
        // This header is not signed: take the event from the body with your JSON library.
        if (reason == "" && Seen.TryAdd(id, true))
            Console.WriteLine(headers["X-Webhook-Event"] + " " + id);
    }
}
