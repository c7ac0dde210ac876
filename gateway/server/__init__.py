"""What every door stands on: configuration, connections, middleware, limits, duties."""
