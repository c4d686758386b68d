"""Data sets of recorded searches: Parquet, data card and Croissant, from rows that the program makes."""
