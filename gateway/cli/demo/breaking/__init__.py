"""`carteiro demo --break`: a page that breaks the demo, and a ledger of what arrives."""
