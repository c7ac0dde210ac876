"""The product on top of the delivery engine: CRM REST API, storefront, console, operations."""
