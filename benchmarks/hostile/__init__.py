"""What hostile parties can still do to what is learned from answers with each party's own noise."""
