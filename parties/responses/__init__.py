"""What answers each kind of question, under the question's name."""
