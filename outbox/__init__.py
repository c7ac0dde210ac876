"""The delivery engine: a transactional outbox and the signed webhook deliveries made from it.

Knows nothing of CRM or shops, and runs with no web server.
"""
