"""What mechanisms put out, of any form, read into columns of numbers, and the features of these."""
