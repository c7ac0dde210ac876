"""What all pages share: templates, wrappers, forms, charts and the pages of records."""
