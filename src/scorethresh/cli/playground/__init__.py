"""The page of `scorethresh view`: a server of this machine, and what it keeps of the files that were opened."""
