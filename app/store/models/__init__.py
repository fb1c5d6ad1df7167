"""The tables, one module per aggregate. Importing this package registers all of them on `Base.metadata`."""

from app.store.models.base import Base, UtcDateTime
from app.store.models.chats import Chat, Message, QueryLog, Turn
from app.store.models.evaluation import AnswerMark, EvalQuestion, EvalRun
from app.store.models.library import Chunk, Collection, CollectionMember, Document, Job
from app.store.models.loop_guard import (
    LoopGuardEnv,
    LoopGuardLoss,
    LoopGuardRun,
    LoopGuardScan,
    LoopGuardTrip,
)
from app.store.models.readings import Reading, RecognisedPage
from app.store.models.setup import Setting, User
from app.store.models.vectors import Generation, Vector
from app.store.models.web_pages import WebPage

__all__ = [
    "AnswerMark",
    "Base",
    "Chat",
    "Chunk",
    "Collection",
    "CollectionMember",
    "Document",
    "EvalQuestion",
    "EvalRun",
    "Generation",
    "Job",
    "LoopGuardEnv",
    "LoopGuardLoss",
    "LoopGuardRun",
    "LoopGuardScan",
    "LoopGuardTrip",
    "Message",
    "QueryLog",
    "Reading",
    "RecognisedPage",
    "Setting",
    "Turn",
    "User",
    "UtcDateTime",
    "Vector",
    "WebPage",
]
