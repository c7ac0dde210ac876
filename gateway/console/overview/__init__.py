"""The first page, its comparison of two periods, and the pages of stores."""
