"""The web console: server-rendered pages over the same units as the API. No SQL, no store."""
