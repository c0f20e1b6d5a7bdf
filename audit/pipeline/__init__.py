"""The pipeline of an audit: search a pair, fit attacks, choose an event, count it on fresh runs, decide."""
