"""The kind of a question, by its form: whole document, catalogue, or (nearly always) an ordinary one."""

import json
from pathlib import Path

import pytest

from app.rag.intents import Catalogue, WholeDocument, read_intent

QUESTIONS = Path(__file__).resolve().parents[3].parent / "shared" / "corpus" / "questions.jsonl"

NAMED = [
    ("summarise the storage handbook", "the storage handbook"),
    ("Summarize plan.md", "plan.md"),
    ("Can you please summarize plan.md in five bullets?", "plan.md"),
    ("briefly sum up “The Storage Handbook”.", "The Storage Handbook"),
    ("TL;DR: storage handbook", "storage handbook"),
    ("give me a short overview of the storage handbook", "the storage handbook"),
    ("I'd like you to write a one-page summary of network-runbook.docx, please", "network-runbook.docx"),
    ("a summary of the runbook in German", "the runbook"),
    ("what is the storage handbook about?", "the storage handbook"),
    ("What's plan.md all about", "plan.md"),
    ("what does the runbook cover?", "the runbook"),
    ("what are the key points of theory of operation?", "theory of operation"),
    ("main takeaways from the offer", "the offer"),
    ("read plan.md and summarise it", "plan.md"),
    ("fasse das Handbuch zusammen", "das Handbuch"),
    ("Kannst du mir bitte plan.md kurz zusammenfassen?", "plan.md"),
    ("Gib mir eine kurze Zusammenfassung von plan.md", "plan.md"),
    ("Worum geht es in plan.md?", "plan.md"),
    ("Resume plan.md en tres frases", "plan.md"),
    ("dame un resumen de plan.md", "plan.md"),
    ("¿De qué trata el manual?", "el manual"),
    ("résume le manuel", "le manuel"),
    ("fais-moi un résumé de plan.md", "plan.md"),
    ("De quoi parle plan.md ?", "plan.md"),
    ("请总结一下plan.md", "plan.md"),
    ("plan.md的要点是什么?", "plan.md"),
    ("plan.md主要讲了什么?", "plan.md"),
]


@pytest.mark.parametrize(("question", "name"), NAMED)
def test_a_summary_of_something_names_it(question: str, name: str) -> None:
    """What stands around the name, courtesies and the form of the answer, is not part of it."""
    assert read_intent(question) == WholeDocument((name,), is_bare=False)


@pytest.mark.parametrize(
    "question",
    [
        "summarise it",
        "Summarize this document, please",
        "tl;dr",
        "give me a summary",
        "key points?",
        "what is it about?",
        "what does this file cover?",
        "Fasse es zusammen",
        "resúmeme esto",
        "résume ce document",
        "总结",
        "总结这个文件",
    ],
)
def test_a_summary_of_nothing_named_speaks_of_what_was_talked_about(question: str) -> None:
    """It has no names and says so."""
    assert read_intent(question) == WholeDocument((), is_bare=True)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("list all commands in the storage handbook", ("the storage handbook",)),
        ("extract every date from the minutes of the meeting", ("the minutes of the meeting", "the meeting")),
        ("how many sections does the storage handbook have?", ("the storage handbook",)),
        ("which chapters are in plan.md", ("plan.md",)),
        ("Nenne alle Befehle aus plan.md", ("plan.md",)),
        ("enumera todos los comandos de plan.md", ("plan.md",)),
        ("liste tous les ports dans plan.md", ("plan.md",)),
        ("list all ports", ()),
    ],
)
def test_a_list_of_everything_ends_in_the_documents_name(question: str, names: tuple[str, ...]) -> None:
    """Every preposition may stand before it; without a name it holds only where a document is fixed anyway."""
    assert read_intent(question) == WholeDocument(names, is_bare=False, task="list")


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("translate plan.md to German", "plan.md"),
        ("Übersetze plan.md ins Englische", "plan.md"),
        ("traduce plan.md al inglés", "plan.md"),
        ("traduis plan.md en anglais", "plan.md"),
        ("把plan.md翻译成英文", "plan.md"),
    ],
)
def test_a_translation_needs_the_text_itself(question: str, name: str) -> None:
    """It can't be made from notes."""
    assert read_intent(question) == WholeDocument((name,), is_bare=False, task="translate")


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("which documents mention retention?", "retention"),
        ("Which of my docs talk about ZFS at all?", "ZFS"),
        ('What notes mention "keep within" in my library?', '"keep within"'),
        ("which documents mention “retention”?", "retention"),
        ("how many documents mention restic", "restic"),
        ("list all documents about backups", "backups"),
        ("find all notes on the word ZFS", "ZFS"),
        ("list documents that contain the phrase 'keep within'", '"keep within"'),
        ("in which files is retention mentioned?", "retention"),
        ("do any documents mention port 51820?", "port 51820"),
        ("is syncthing mentioned in any of my notes?", "syncthing"),
        ("Which documents do I have about backups", "backups"),
        ("Welche Dokumente erwähnen ZFS?", "ZFS"),
        ("In welchen Dokumenten wird ZFS erwähnt?", "ZFS"),
        ("¿Cuántos documentos mencionan ZFS?", "ZFS"),
        ("Quels documents parlent de ZFS ?", "ZFS"),
        ("哪些文档提到了ZFS?", "ZFS"),
        ("how many documents do I have?", ""),
        ("How many files are in my library?", ""),
        ("list all documents", ""),
        ("Wie viele Dokumente habe ich?", ""),
    ],
)
def test_a_question_for_documents_is_one_about_the_catalogue(question: str, words: str) -> None:
    """What they are to mention, without what stands around it; a phrase keeps its quotes."""
    assert read_intent(question) == Catalogue(words)


@pytest.mark.parametrize(
    "question",
    [
        "what is ZFS about to do when the disk is full?",
        "what about the retention?",
        "how do I summarise logs with awk every night?",
        "which file contains the private key of traefik?",
        "which files contain the settings?",
        "which page of the web interface contains the token?",
        "which documents do I need for the visa?",
        "which documents mention it?",
        "how many documents can Docent hold?",
        "how many documents does paperless process per minute",
        "what files does restic keep in a repository?",
        "where is the config file?",
        "when does the nightly backup job start?",
        "what does the storage handbook say about backups?",
        "is the backup encrypted?",
        "list the steps to restore a backup",
        "translate",
        "what is a recovery plan?",
        "show me how to list all snapshots",
        "why does my summary page load slowly?",
        "what are the main differences between borg and restic?",
        "in what order are the rules read?",
        "and what about the second one?",
        "please",
        "",
        "summarise this: the quick brown fox jumps over the lazy dog. " * 6,
        "summarise\nthis\ntext\nplease",
    ],
)
def test_anything_else_is_ordinary(question: str) -> None:
    """A miss costs a better answer, a wrong guess costs the right one."""
    assert read_intent(question) is None


def test_every_question_of_the_corpus_is_ordinary() -> None:
    """So are the questions before a follow-up: nothing there asks for a whole document or for a list."""
    if not QUESTIONS.exists():
        pytest.skip("the shared corpus is not here")
    rows = [json.loads(line) for line in QUESTIONS.read_text("utf-8").splitlines() if line.strip()]
    asked = [row["question"] for row in rows] + [text for row in rows for text in texts_in(row.get("history", []))]
    assert len(asked) >= 60
    assert {question: intent for question in asked if (intent := read_intent(question))} == {}


def texts_in(value: object) -> list[str]:
    """Every text in a history, whatever its shape."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in texts_in(item)]
    return [text for item in value for text in texts_in(item)] if isinstance(value, list) else []
