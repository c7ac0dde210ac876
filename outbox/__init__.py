"""The delivery engine: a transactional outbox and its signed webhook deliveries.

It knows nothing of CRM or shops, and needs no web server.
"""
