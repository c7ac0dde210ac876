"""The delivery queue: fan-out, claim, settle, parked deliveries, replay, log and gauges."""
