"""Send one POST to a receiver: request, egress guard, connection and outcome."""
