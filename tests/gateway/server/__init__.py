"""What every door stands on."""
