"""Plans: claims named and budgeted in a file, the ledger of their run, the smallest witness of what is falsified."""
