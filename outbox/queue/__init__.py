"""What waits to be delivered: fan-out, claim, settle, parked deliveries, replay, log, gauges."""
