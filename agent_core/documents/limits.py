"""Limits on reading one document."""

MAX_BYTES = 100 << 20
"""Maximum bytes of a file."""
MAX_UNPACKED, MAX_RATIO, MAX_MEMBERS = 200 << 20, 100, 20_000
"""Maximum unpacked bytes of an archive, their ratio to its size, and its members."""
HARMLESS = 16 << 20
"""Bytes to which any archive may unpack at any ratio: tables are often that regular."""
MEMORY = 400 << 20
"""Bytes of address space, also that of the libraries."""
CPU, PATIENCE, WALL = 10, 6.0, 20.0
"""Seconds: the program is killed after so much CPU time, stops by itself in a long document before
that, and is given up after so long."""
MAX_TEXT = 4_000_000
"""Maximum characters of a document's text."""
CUT = "[The rest of the document was not read: it is too long.]"
DAMAGED = "[The rest of the document was not read: it is damaged.]"
REFUSED, ABSENT = 3, 4
"""Exit codes: refused, with the reason on standard error; a package is not installed."""
