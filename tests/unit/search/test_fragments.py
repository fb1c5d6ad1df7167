"""Which parts of a question are looked up as substrings. Most questions have none."""

import pytest

from app.search.fragments import fold, fragments_of


@pytest.mark.parametrize(
    "question",
    [
        "How do I restore a backup of my self-hosted photos?",
        "What's the up-to-date way, and/or the old one (e.g. by hand)?",
        "Does NAS mean a disk? Why I.e.? -- and so on...",
        "3 disks, 10 TB",
        "Wie groß ist die Datei",
        "",
        "?!",
    ],
)
def test_ordinary_questions_have_none(question: str) -> None:
    """So that they cost nothing and are ranked as before."""
    assert not fragments_of(question)
    assert fragments_of(question).rest == question


@pytest.mark.parametrize(
    ("question", "joined"),
    [
        ("what does --log.level do?", ["--log.level"]),
        ("use -v, or -Xmx512m", ["-xmx512m"]),
        ("Where is /etc/fstab?", ["/etc/fstab"]),
        ("(see `compose.yaml`)", ["compose.yaml"]),
        ('set "server.port=80".', ["server.port=80"]),
        ("version 3.40.1 of it", ["3.40.1"]),
        ("the .env file and $HOME", [".env", "$home"]),
        ("std::vector in C:\\Temp", ["std::vector", "c:\\temp"]),
        ("mail me@example.org", ["me@example.org"]),
        ("x" * 101 + ".y", []),
        (" ".join(f"a{n}.b" for n in range(20)), [f"a{n}.b" for n in range(8)]),
    ],
)
def test_names_held_together_by_punctuation_are_joined(question: str, joined: list[str]) -> None:
    """Whole, without the marks of the sentence around them."""
    assert list(fragments_of(question).joined) == joined


def test_what_looks_like_an_identifier_is_a_name() -> None:
    """One word to the word index, so that it may stand inside another one."""
    fragments = fragments_of("EADDRINUSE in getUserById of nas03, MY_VAR")
    assert (fragments.names, fragments.joined) == (("eaddrinuse", "getuserbyid", "nas03"), ("my_var",))


@pytest.mark.parametrize(
    ("question", "grams", "rest"),
    [
        ("备份在哪里？", ["备份", "份在", "在哪", "哪里"], " ？"),
        ("猫", ["猫"], " "),
        ("数据数据", ["数据", "据数"], " "),
        ("백업은 어디에", ["백업", "업은", "어디", "디에"], "   "),
        ("カメラ", ["カメ", "メラ"], " "),
        ("สวัสดี", ["สวั", "วัส", "ัสด", "สดี"], " "),
        ("ok", [], "ok"),
    ],
)
def test_writing_without_spaces_becomes_grams(question: str, grams: list[str], rest: str) -> None:
    """Two characters of Han, kana and hangul, three of Thai and its like; a single one is taken as it is."""
    fragments = fragments_of(question)
    assert list(fragments.grams) == grams
    assert fragments.rest == rest


def test_words_beside_them_are_glued() -> None:
    """In such text no blank sets them apart, so that the word index knows them with what is around."""
    fragments = fragments_of("如何配置nginx的SSL证书，v2")
    assert fragments.glued == ("nginx", "ssl")
    assert "nginx" in fragments.rest
    assert fragments_of("nginx and SSL").glued == ()


def test_folding_keeps_every_character_in_its_place() -> None:
    """As SQLite's own: one character for one."""
    assert fold("ÄbC İ") == "Äbc İ"
