"""The questions that this project knows, named after what is asked: fields, noise, promise and caps together."""
