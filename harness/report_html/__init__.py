"""Makes the folder of pages that `rekernel report --html` writes."""
