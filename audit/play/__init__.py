"""Play: pairs of neighbouring losses, and transcripts of both worlds, block by block, wherever they are computed."""
