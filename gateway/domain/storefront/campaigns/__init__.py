"""Leads, e-books and modals: what a store gives for the data of a visitor."""
