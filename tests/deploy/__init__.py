"""The files of docs/deploy and the image, as people install them."""
