"""What all rooms use: errors, files, tables, progress, shelves, parts of your own."""
