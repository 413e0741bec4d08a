"""The queries of this project, one module per kind of data: fields, noise, guarantee and limits together."""
