"""The web console: server-rendered pages over the same units as the API. It contains no SQL."""
