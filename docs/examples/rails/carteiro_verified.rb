# Verify webhooks in Rails: a concern for the controller that receives them.
#
# Save it in app/controllers/concerns, verify.rb (docs/examples/receivers/ruby) in lib, and set
# WEBHOOK_SECRET. Then:
#   class CarteiroController < ActionController::Base
#     include CarteiroVerified
#     def create
#       # unique_by: a unique index. No row means that the event was there before.
#       Event.insert({ id: carteiro_id }, unique_by: :id)
#       head :no_content
#     end
#   end
require "verify"

module CarteiroVerified
  def self.included(controller)
    controller.skip_forgery_protection
    controller.before_action :verify_carteiro
  end

  private

  def carteiro_id
    request.headers["webhook-id"].to_s
  end

  # What renders in a before_action ends the request.
  def verify_carteiro
    sent_at, signatures = request.headers["webhook-timestamp"], request.headers["webhook-signature"]
    reason = refusal(ENV.fetch("WEBHOOK_SECRET"), carteiro_id, sent_at.to_s, signatures.to_s,
                     request.raw_post, Time.now.to_i)
    render plain: reason, status: :unauthorized unless reason.empty?
  end
end
