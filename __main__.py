"""Run the command line by ``python -m overclaim``."""

from overclaim.reports.cli import main

if __name__ == "__main__":
    main()
