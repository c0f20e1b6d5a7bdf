"""The catalogue: what each paper claims of each algorithm, one module for each paper."""
