"""The inputs of mechanisms: data of any form, its records, neighbouring data, and how pairs of it are drawn."""
