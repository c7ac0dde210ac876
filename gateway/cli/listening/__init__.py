"""`carteiro listen`: reads the events feed, signs, verifies, prints and forwards each event."""
