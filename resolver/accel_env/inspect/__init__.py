"""What a wheel really holds: read from its ELF files and device code, by HTTP range where the server lets us."""
