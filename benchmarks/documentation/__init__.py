"""What README and docs print of runs and commands, made again by the command that the page names."""
