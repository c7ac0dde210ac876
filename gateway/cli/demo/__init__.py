"""`carteiro demo`: a gateway and a receiver that fails some requests on purpose."""
