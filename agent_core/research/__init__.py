"""Research: searches the web, reads the results, and writes a report in which every citation is a
quote from a page that was actually read."""
