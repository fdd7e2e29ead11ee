"""What reading one document may take."""

MAX_BYTES = 100 << 20
"""Of a file."""
MAX_UNPACKED, MAX_RATIO, MAX_MEMBERS = 200 << 20, 100, 20_000
"""Bytes that an archive unpacks to, how many times its size that is, and the files in it."""
HARMLESS = 16 << 20
"""Bytes that may be any number of times the archive's size: tables are often that regular."""
MEMORY = 400 << 20
"""Bytes of address space, also that of the libraries."""
CPU, PATIENCE, WALL = 10, 6.0, 20.0
"""Seconds: the program is killed after so much work, stops by itself in a long document before
that, and is given up after so long."""
MAX_TEXT = 4_000_000
"""Characters that a document gives."""
CUT = "[The rest of the document was not read: it is too long.]"
REFUSED, ABSENT = 3, 4
"""Exit codes: the reason stands in the errors' stream; what reads it is not installed."""
