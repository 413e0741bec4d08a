"""The number of examples of a property whose examples take long, or find what they look for seldom."""

from hypothesis import settings

DEFAULT = 25  # examples of a property in the default profile


def examples(number: int) -> int:
    """Return `number` in the default profile, and in proportion more in a profile with more examples."""
    return number * settings.default.max_examples // DEFAULT
