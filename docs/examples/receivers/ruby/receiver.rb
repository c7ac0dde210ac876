require "json"
require "webrick"

require_relative "verify"

seen = {} # use a table with a unique column instead
lock = Mutex.new
quiet = { Logger: WEBrick::Log.new(File::NULL), AccessLog: [] }
server = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: 9000, **quiet)
server.mount_proc("/") do |request, response|
  id = request["webhook-id"]
  body = request.body.to_s
  reason = refusal(ENV.fetch("WEBHOOK_SECRET"), id, request["webhook-timestamp"],
                   request["webhook-signature"], body, Time.now.to_i)
  response.status = reason.empty? ? 204 : 401
  response.body = reason unless reason.empty?
  if reason.empty? && lock.synchronize { seen[id] ? false : seen[id] = true }
    puts "#{JSON.parse(body)["event"]} #{id}"
    $stdout.flush
  end
end
server.start
