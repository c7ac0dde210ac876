"""The pages of records, made from their declarations, and those of orders and stores."""
