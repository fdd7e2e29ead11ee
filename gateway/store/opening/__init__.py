"""Opening a store: checks, and upgrades to the present layout."""
