"""Templates of pages."""

import pytest
from jinja2 import TemplateNotFound, UndefinedError

from scenarios.reports.guarantee_page import GUARANTEE, template


def test_it_is_compiled_once():
    assert template(GUARANTEE) is template(GUARANTEE)


def test_values_that_are_not_there_are_errors():
    with pytest.raises(UndefinedError):
        template(GUARANTEE).render()
    with pytest.raises(TemplateNotFound):
        template("absent.html")


def test_values_are_escaped():
    assert template(GUARANTEE).environment.from_string("{{ name }}").render(name="<b>") == "&lt;b&gt;"
