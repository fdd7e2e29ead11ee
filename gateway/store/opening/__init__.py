"""What happens when a store is opened: it is checked, and brought up to the present layout."""
