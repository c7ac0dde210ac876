# Serves docs/examples/rails: what the concern uses of a Rails controller, and an action behind it.
require "json"
require "webrick"

$LOAD_PATH.unshift(__dir__)
require "carteiro_verified"

Request = Struct.new(:headers, :raw_post)

# The part of ActionController that the concern uses.
class Controller
  attr_reader :request, :answer

  class << self
    attr_reader :filter

    def skip_forgery_protection = nil

    def before_action(name) = @filter = name
  end

  def initialize(request) = @request = request

  def render(plain:, status:) = @answer = [{ unauthorized: 401 }.fetch(status), plain]

  def head(status) = @answer = [{ no_content: 204 }.fetch(status), nil]

  def process
    send(self.class.filter)
    create unless answer
    answer
  end
end

class CarteiroController < Controller
  include CarteiroVerified

  SEEN = {}
  LOCK = Mutex.new

  def create
    first = LOCK.synchronize { SEEN[carteiro_id] ? false : SEEN[carteiro_id] = true }
    if first
      puts "#{JSON.parse(request.raw_post)["event"]} #{carteiro_id}"
      $stdout.flush
    end
    head :no_content
  end
end

quiet = { Logger: WEBrick::Log.new(File::NULL), AccessLog: [] }
server = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: ENV.fetch("PORT").to_i, **quiet)
server.mount_proc("/") do |incoming, outgoing|
  controller = CarteiroController.new(Request.new(incoming, incoming.body.to_s))
  outgoing.status, outgoing.body = controller.process
end
server.start
