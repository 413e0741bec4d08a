"""The protocols: a module or a folder for each, under its name, with all that only it uses."""
