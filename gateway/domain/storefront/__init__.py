"""Does what the visitors and customers of a store do; its effects reach the owner's records."""
