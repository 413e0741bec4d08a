"""What several releases spend together, and how far one unit moves what is released."""
