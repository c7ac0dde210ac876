"""Reports: figures over many records of one owner, one report per file."""
