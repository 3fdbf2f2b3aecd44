"""Background jobs in a store you already have."""
