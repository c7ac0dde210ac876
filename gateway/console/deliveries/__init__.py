"""The pages of deliveries and events, and the forms that send again or cancel."""
