"""Private label counts of a bag: mechanisms, their exact accounting, and which to use. Unit: one label, replaced."""
