"""What the protocols share that regress on labels which parties have made private themselves."""
