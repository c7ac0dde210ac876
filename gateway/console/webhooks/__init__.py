"""The pages of webhooks and of what their receivers need."""
