"""Names that come from outside: what a document is called, and which files of a folder are none. Pure.

A name is only ever a column: stored files are called by their hash, folder files are opened component by component.
Called by `app.ingest.uploads`, `app.ingest.folders` and the command line.
"""

import fnmatch
import re
import unicodedata
from typing import Literal

NAME_MAX_BYTES = 255
PATH_MAX_CHARS = 1000
FALLBACK = "unnamed"

SkipReason = Literal[
    "hidden", "secret", "tooling", "unsupported", "link", "special", "mount", "unreadable", "excluded", "name", "deep"
]
"""Why a folder's entry is not a document: a name with a leading dot; keys, passwords and the like; directories of
version control and package managers; pictures, archives and other binary files; a symbolic link; a socket, device or
pipe; another filesystem; no permission; the folder's own patterns; a name that is no text (not UTF-8); a directory
below too many others."""

_TOOLING = frozenset(
    {
        *("node_modules", "__pycache__", "venv", "site-packages", "bower_components", "CVS", "_darcs"),
        *("lost+found", "$RECYCLE.BIN", "System Volume Information", "@eaDir", "#recycle", "#snapshot"),
    }
)
_SECRET_NAMES = (
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.kdbx", "*.kdb", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks"),
    *("*.keystore", "*.ppk", "*.gpg", "*.pgp", "*.ovpn", ".env", ".env.*", "*.env", ".netrc", "_netrc"),
    *(".pgpass", ".htpasswd", "htpasswd", ".git-credentials", "credentials", "credentials.json", "known_hosts"),
    *("authorized_keys", "shadow", "shadow-", "gshadow", "*.age", "secrets.y*ml", "*.tfstate", "wallet.dat"),
    *(
        "id_xmss*",
        "id_*_sk",
        "id_*_sk.pub",
        "*.kwallet",
        "*.asc.key",
        "*.agekey",
        "service-account*.json",
        ".vault_pass*",
    ),
    *(
        ".npmrc",
        ".pypirc",
        ".my.cnf",
        ".s3cfg",
        ".boto",
        "*.tfvars",
        "rclone.conf",
        "wg*.conf",
        "*.psafe3",
        "*.opvault",
    ),
)
_SECRET_DIRS = frozenset({".ssh", ".gnupg", ".aws", ".kube", ".docker", ".password-store", ".azure", ".gcloud"})
_BINARY_ENDINGS = frozenset(
    {
        *(
            "png",
            "jpg",
            "jpeg",
            "gif",
            "bmp",
            "tif",
            "tiff",
            "webp",
            "avif",
            "heic",
            "ico",
            "svgz",
            "psd",
            "raw",
            "cr2",
        ),
        *("mp3", "m4a", "flac", "ogg", "opus", "wav", "aac", "wma", "mp4", "mkv", "avi", "mov", "webm", "wmv", "m4v"),
        *(
            "mpg",
            "mpeg",
            "zip",
            "gz",
            "tgz",
            "bz2",
            "xz",
            "zst",
            "lz4",
            "7z",
            "rar",
            "tar",
            "iso",
            "img",
            "dmg",
            "qcow2",
        ),
        *(
            "vmdk",
            "vdi",
            "ova",
            "exe",
            "dll",
            "so",
            "dylib",
            "o",
            "a",
            "lib",
            "bin",
            "dat",
            "class",
            "jar",
            "war",
            "pyc",
        ),
        *("pyo", "whl", "deb", "rpm", "apk", "msi", "woff", "woff2", "ttf", "otf", "eot", "sqlite", "sqlite3", "db"),
        *("mdb", "wal", "shm", "parquet", "npy", "npz", "pt", "onnx", "safetensors", "gguf", "pkl", "swp", "part"),
        *("crdownload", "tmp"),
    }
)
"""Endings that never hold text: such files are not even opened. Everything else is judged by its content."""


def clean_name(raw: str) -> str:
    """A file's name as given by a browser or a person, made safe to store, show and log; never empty.

    NFC, without control and direction characters. A relative path is kept ("guides/raid.md"), because a folder was
    dropped; a path that is absolute or climbs (`..`) is cut to its last part.
    """
    text = raw.replace("\\", "/")
    parts = [part for part in (_clean_part(part) for part in text.split("/")) if part]
    climbs = any(part.strip() == ".." for part in text.split("/"))
    if text.startswith("/") or climbs or (parts and len(parts[0]) == 2 and parts[0][1] == ":"):
        parts = parts[-1:]
    name = "/".join(parts)
    return name if 0 < len(name) <= PATH_MAX_CHARS else (parts[-1] if parts else FALLBACK)


_SECRET = re.compile("|".join(fnmatch.translate(pattern) for pattern in _SECRET_NAMES))


def skip_reason(name: str, *, is_dir: bool) -> SkipReason | None:
    """Why a folder's entry of this name is passed over unread, or None when it may be a document."""
    lowered = name.lower()
    if name in _SECRET_DIRS or _SECRET.match(lowered):
        return "secret"
    if name.startswith((".", "~$")) or name.endswith("~"):
        return "hidden"
    if is_dir:
        return "tooling" if name in _TOOLING else None
    ending = lowered.rpartition(".")[2] if "." in lowered else ""
    return "unsupported" if ending in _BINARY_ENDINGS else None


def _clean_part(part: str) -> str:
    text = unicodedata.normalize("NFC", part)
    text = "".join(char for char in text if unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"))
    text = " ".join(text.split()).rstrip(". ")
    if text.strip(".") == "":
        return ""
    return _cut(text)


def _cut(text: str) -> str:
    """At most `NAME_MAX_BYTES` bytes, the ending kept."""
    if len(text.encode()) <= NAME_MAX_BYTES:
        return text
    stem, dot, ending = text.rpartition(".")
    tail = dot + ending if stem and len(ending) <= 10 else ""
    room = NAME_MAX_BYTES - len(tail.encode())
    return (stem if tail else text).encode()[:room].decode(errors="ignore") + tail
