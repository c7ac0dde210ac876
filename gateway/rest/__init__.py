"""The REST door: routes, and handlers that are generic over resources."""
