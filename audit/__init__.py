"""The audit: from neighbouring losses and transcripts to certificates and verdicts, one room for each step."""
