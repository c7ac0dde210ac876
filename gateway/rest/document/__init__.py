"""The OpenAPI document of the REST door, and the page that shows it."""
