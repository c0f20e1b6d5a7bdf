"""Execution: where and how blocks are computed: processes, a cluster, imports, progress."""
