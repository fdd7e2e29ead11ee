"""Research: searches the web, reads what it finds, and writes a report whose every citation is a
quote that stands in a page that was really read."""
