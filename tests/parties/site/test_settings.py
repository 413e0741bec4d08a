"""A site's own configuration: what it may say, and one sentence for everything else.

What a site believes of those who add up: nothing more than it says itself.
"""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.exchanges import agreement_for
from support.questions import QUESTIONS

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Unit
from federation.signed_messages.agreement import Second
from federation.signed_messages.keys import new_site_key
from parties.site.accounts import Account
from parties.site.settings import Belief, SecondSettings, Settings, Source, configuration

GOOD = f"""
name = "north"
plan = "plan.json"
state = "state"
[connection]
key = "key"
[data]
file = "p.csv"
table = "cardiology"
missing = "drop"
[data.columns]
age = "AGE_Y"
sex = {{from = "SEX", map = {{M = "male"}}}}
[policy]
aggregators = ["{"a" * 64}"]
protocols = ["soft_vote"]
[allowance.label]
epsilon = 2
delta = 1e-5
[limits]
memory = "2GiB"
"""


@pytest.fixture
def load(tmp_path):
    def written(text=GOOD, mode=0o600):
        path = tmp_path / "site.toml"
        path.write_text(text)
        path.chmod(mode)
        return Settings.load(path)

    return written


def changed(old, new):
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def test_paths_are_those_of_the_folder_and_all_else_has_a_default(load, tmp_path):
    found = load()
    assert (found.plan, found.state) == (tmp_path / "plan.json", tmp_path / "state")
    assert (found.connection.key, found.data.file) == (tmp_path / "key", tmp_path / "p.csv")
    assert (found.connection.superlink, found.connection.root) == (None, None)
    assert found.data.columns == {"age": "AGE_Y", "sex": Source.model_validate({"from": "SEX", "map": {"M": "male"}})}
    assert (found.data.rows_per_person, found.allowances.rows_per_person) == (0, 0)
    assert (found.policy.approve, found.policy.public_features, found.policy.most_questions) == ("plan", False, 200)
    assert (found.limits.memory, found.limits.seconds, found.limits.letter) == (2 * 2**30, 30, 2**26)
    assert found.means.memory == 2 * 2**30
    assert 2 * found.means.seconds < 30  # a process and the one for blank rows end before their answer leaves
    with pytest.raises(InputError):
        SecondSettings.load(tmp_path / "site.toml")
    assert load(changed('[limits]\nmemory = "2GiB"', "")).limits.memory == 3 * 2**30
    for size, exponent in (("3072MiB", 20), ("3145728KiB", 10), ("3 GiB", 30)):
        assert load(changed('"2GiB"', f'"{size}"')).limits.memory == 3 * 2**30 == int(size[:-3]) * 2**exponent
    assert load(changed('key = "key"', 'key = "/keys/one"\nroot = "ca.crt"')).connection.root == tmp_path / "ca.crt"
    query = 'query = "select 1"\nurl = "sqlite:///x.db"'
    assert load(changed('file = "p.csv"', query)).data.url == f"sqlite:///{tmp_path}/x.db"
    absolute = query.replace("x.db", "/var/x.db")
    assert load(changed('file = "p.csv"', absolute)).data.url == "sqlite:////var/x.db"


def test_accounts_are_those_of_the_file(load):
    row, trusted = '[allowance.row]\nepsilon = 4.0\nadjacency = "add_remove"\n', "[allowance.trusted]\nepsilon = 3\n"
    found = load(GOOD + row + trusted + "answers = 2\n").allowances
    assert found.proved == (
        Account(Unit.LABEL, Adjacency.REPLACE, 2.0, 1e-5),
        Account(Unit.ROW, Adjacency.ADD_REMOVE, 4.0, 0.0),
    )
    assert (found.trusted, found.trusted_answers) == (Account(Unit.PARTY, Adjacency.REPLACE, 3.0, 0.0), 2)
    assert not found.features_are_public
    assert load().allowances.trusted is None
    assert load(GOOD + trusted).allowances.trusted_answers == 1


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("epsilon = 2", "epsilon = inf", "'allowance.label.epsilon' must be a finite number, got Infinity"),
        ("epsilon = 2", 'epsilon = "2"', "'allowance.label.epsilon' must be a number, got \"2\""),
        ("[policy]", "[policy]\nmost-questions = 1.5", "'policy.most-questions' must be a whole number, got 1.5"),
        ("epsilon = 2", "epsilon = -1", "'allowance.label.epsilon' must be at least 0.0, got -1"),
        ("delta = 1e-5", "delta = 1", "'allowance.label.delta' must be less than 1.0, got 1"),
        (
            "delta = 1e-5",
            'adjacency = "replac"',
            "'allowance.label.adjacency' must be one of replace, add_remove, got \"replac\"; did you mean 'replace'?",
        ),
        (
            "[allowance.label]",
            "[allowance.lable]",
            "'allowance.lable' is not known; allowed there: label, row, person, party, trusted; did you mean 'label'?",
        ),
        (
            "[allowance.label]\nepsilon = 2\ndelta = 1e-5",
            "[allowance]",
            "'allowance' must have a section such as [allowance.label], for one of label, row, person, party, trusted",
        ),
        ('"2GiB"', '"2 gigs"', "'limits.memory' must be a number of bytes, or one with its unit such as \"3GiB\", got"),
        ('"2GiB"', "2000000000000000", "'limits.memory' must be at most 1125899906842624, got 2000000000000000"),
        ('"cardiology"', f'"{"x" * 201}"', "'data.table' must have at most 200 characters, got"),
        (
            "[limits]",
            "[limit]",
            "'limit' is not known; allowed there: name, plan, state, connection, data, policy, all",
        ),
        (
            '"drop"',
            '"dropp"',
            '\'data.missing\' must be "drop", "refuse", or a section [data.missing] with COLUMN = VALUE, got "dropp"',
        ),
        ('name = "north"', "", "'name' is missing; it has no default"),
        ("from =", "form =", "'data.columns.sex.form' is not known; allowed there: from, map; did you mean 'from'?"),
        ('"AGE_Y"', "3", "'data.columns.age' must be the name of a column here, or {from = NAME, map = {VALUE-HERE"),
        ("a" * 64, "a" * 20, "'policy.aggregators.0' must be a fingerprint of 64 hexadecimal digits"),
        (f'["{"a" * 64}"]', "[]", "'policy.aggregators' must not be empty, got []"),
        ("[policy]", '[policy]\napprove = "never"', "'policy.approve' must be one of each, plan, auto, got \"never\""),
        (
            '["soft_vote"]',
            f'"{"x" * 59}"',
            f"'policy.protocols' must be a list, between [ and ], got \"{'x' * 56}...",
        ),
        ("[policy]", "[policy]\npublic-features = 1", "'policy.public-features' must be true or false, got 1"),
        ('file = "p.csv"', "", "'data' must name a file, or a query and the url of its data base"),
        ('key = "key"', 'key = "key"\nsuperlink = "here"', "'connection.superlink' must be HOST:PORT, got \"here\""),
        (
            "[connection]",
            "connection = 3\n[connectio]",
            "'connection' must be a section [connection] with key, superli",
        ),
        ('name = "north"', "name = ", "is no TOML: Invalid value (at line 2"),
    ],
)
def test_each_mistake_has_a_sentence(load, tmp_path, old, new, said):
    with pytest.raises(InputError) as refused:
        load(changed(old, new))
    path = tmp_path / "site.toml"
    assert any(line.startswith((f"{path}: {said}", f"{path} {said}")) for line in str(refused.value).splitlines())


@pytest.mark.parametrize("key", ["seed", "simulation", "draws", "first-party", "allow-code"])
@pytest.mark.parametrize("section", ["", "[policy]", "[limits]"])
def test_nothing_of_a_simulation_can_be_written(load, key, section):
    text = f"{key} = 3\n{GOOD}" if not section else changed(section, f"{section}\n{key} = 3")
    with pytest.raises(InputError, match=f"{key}"):
        load(text)


def test_what_is_wrong_is_told_at_once_and_nothing_twice_and_others_must_not_read_the_file(load, tmp_path):
    text = changed("epsilon = 2", "epsilonn = 2").replace('state = "state"', "seed = 1").replace("a" * 64, "a")
    with pytest.raises(InputError) as refused:
        load(text)
    keys = [line.partition("'")[2].partition("'")[0] for line in str(refused.value).splitlines()]
    assert keys == ["state", "policy.aggregators.0", "allowance.label.epsilon", "allowance.label.epsilonn", "seed"]
    with pytest.raises(InputError, match=r"site\.toml"):
        Settings.load(tmp_path)
    with pytest.raises(InputError, match=rf"chmod.*600.*{tmp_path}/site\.toml"):
        load(mode=0o640)


SECOND = f"""
role = "second-server"
name = "ombud"
plan = "plan.json"
state = "state"
[connection]
key = "key"
[policy]
aggregators = ["{"a" * 64}"]
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("role", "roles", "data"),
        ("second-server", "first-server", r"role.*second-server.*first-server"),
        ("[policy]", '[data]\nfile = "rows.csv"\n[policy]', "data"),
        ("[policy]", '[policy]\nservers = ["two"]', r"policy\.servers"),
    ],
)
def test_a_second_server_has_a_configuration_of_its_own(tmp_path, old, new, said):
    path = tmp_path / "second.toml"
    path.write_text(SECOND)
    path.chmod(0o600)
    found = configuration(path)
    assert (type(found), found.plan, found.connection.key) == (SecondSettings, tmp_path / "plan.json", tmp_path / "key")
    with pytest.raises(InputError):
        Settings.load(path)
    path.write_text(SECOND.replace(old, new))
    with pytest.raises(InputError, match=said):
        configuration(path)


@pytest.fixture(scope="module")
def plan():
    found = agreement_for(Ed25519PrivateKey.generate(), [new_site_key().public_key()], QUESTIONS["counts"])
    return lambda servers: found.model_copy(update={"servers": servers})


def test_a_second_server_is_known_by_its_key(plan):
    two = plan("two").model_copy(update={"second": Second(name="ombud", masks="ab" * 32)})
    with pytest.raises(InputError, match=rf"ombud.*{'ab' * 32}.*policy\.second-servers"):
        Belief(servers=("two",), seconds=("cd" * 32,)).require(two)
    Belief(servers=("two",), seconds=("cd" * 32, "ab" * 32)).require(two)


@pytest.mark.parametrize(
    ("believed", "servers", "said"),
    [
        (("one",), "one_semi_honest", r"policy\.serv"),
        (("one_semi_honest",), "one", r"policy\.servers.*one_semi_honest.*one"),
    ],
)
def test_what_is_not_believed_is_a_sentence(plan, believed, servers, said):
    with pytest.raises(InputError, match=said):
        Belief(servers=believed).require(plan(servers))
    Belief(servers=(*believed, servers)).require(plan(servers))
    assert [*Belief().objections(plan("one"))] == []  # a server that may do what it likes takes no belief
