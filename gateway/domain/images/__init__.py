"""Images of products: decoded and encoded anew, stored, and forgotten when nothing uses them."""
