"""The shared base of all doors: configuration, connections, middleware, limits, duties."""
